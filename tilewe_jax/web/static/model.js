// The client's copy of a game: its moves, a view of each position, and the position on display.

import { message, t } from "./language.js";

/** Whether a seat has the server's default name. */
export const isUnnamed = (name) => !name || /^player \d+$/.test(name);

/** The name of a seat as the page shows it: names that the program gives are translated. */
export function shownName(name) {
  const [, word, number] = name.match(/^(player|Engine) (\d+)$/) ?? [];
  if (!word) return name === "Engine" ? t("Engine") : name;
  return word === "player" ? t`Player ${number}` : t`Engine ${number}`;
}

/** Emits "change" after each change, and "moved" with the new moves. */
export class Game extends EventTarget {
  id = null;
  game = "";
  options = {};
  frames = []; // frames[n] is the view after n moves; earlier ones may be missing
  moves = [];
  seats = [];
  you = null;
  legal = null;
  clock = null;
  clockAt = 0; // performance.now() at the arrival of the clock
  arrivedAt = null; // performance.now() at the arrival of the last move, if it arrived alone during the game
  lostAt = null; // performance.now() at the loss of the connection, which stops the clocks
  undo = null;
  redo = false;
  undone = []; // moves that were taken back, the first one first, until another move is made
  undos = 0; // number of undos, which identifies the known moves to the server
  engine = null;
  over = null;
  thinking = false;
  casual = false;
  set_up = false; // whether the game started from a position
  rounds = null;
  orientations = null;
  rematch = null;
  analyses = new Map(); // by number of moves
  review = null; // the review of the whole game, see the server's README.md
  shown = null; // number of the frame on display; null follows the game
  studied = false; // whether this is a study of a record
  tree = null; // in a study: comment(number) on a position; others(index), moves instead of a move; isMain(), if the game itself is shown
  sharedSeats = new Set(); // seats of the players at this screen, if there are several

  /** Merge a state message of the server. */
  merge(message) {
    const moves = message.moves ?? [];
    const base = message.move - moves.length;
    const wentBack = base < this.moves.length;
    const live = this.shown === null;
    if (wentBack) this.review = null;
    if (wentBack) for (const move of this.analyses.keys()) if (move > base) this.analyses.delete(move);
    if (moves.length || wentBack) this.arrivedAt = this.id !== null && moves.length === 1 && !wentBack ? performance.now() : null;
    if (wentBack) this.undone = [...this.moves.slice(base), ...this.undone];
    for (const { id } of moves) this.undone = this.undone[0]?.id === id ? this.undone.slice(1) : [];
    this.moves = [...this.moves.slice(0, base), ...moves];
    this.frames.length = Math.min(this.frames.length, base + 1);
    const frames = message.frames ?? []; // only the last ones of a long game
    frames.forEach((frame, index) => (this.frames[message.move + 1 - frames.length + index] = frame));
    if (message.start) this.frames[0] = message.start;
    this.frames[message.move] = message.view;
    for (const name of ["id", "game", "options", "seats", "you", "legal", "undo", "over", "thinking", "rounds", "orientations", "rematch", "casual", "set_up", "redo", "undos", "engine"]) {
      if (message[name] !== undefined) this[name] = message[name];
    }
    if (message.clock !== undefined) {
      this.clock = message.clock;
      this.clockAt = performance.now();
    }
    this.lostAt = null;
    if (!live && this.shown > message.move) this.shown = null;
    this.changed();
    if (moves.length && !wentBack) this.dispatchEvent(new CustomEvent("moved", { detail: moves }));
  }

  /** Load the replay of a study. */
  load(replay) {
    this.studied = true;
    this.game = replay.game;
    this.options = replay.options;
    this.frames = replay.frames;
    this.moves = replay.moves;
    this.seats = replay.names.map((name) => ({ kind: "record", name, connected: true }));
    this.over = this.result = replay.result ? { ...replay.result, reason: null } : null;
    this.orientations = replay.orientations ?? null;
    this.analyses.clear();
    (replay.analyses ?? []).forEach((analysis, move) => analysis && this.analyses.set(move, analysis));
    this.shown = 0;
    this.changed();
  }

  /** Stop the clocks, because the connection is lost. */
  lost() {
    this.lostAt ??= performance.now();
    this.changed();
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }

  get last() {
    return this.moves.length;
  }

  /** The number of moves before the position on display. */
  get at() {
    return this.shown ?? this.last;
  }

  get view() {
    return this.frames[this.at] ?? this.frames[this.last];
  }

  get live() {
    return this.at === this.last;
  }

  get kind() {
    return this.view?.kind;
  }

  /** Whether several people play at this screen. */
  get shared() {
    return this.sharedSeats.size > 0;
  }

  /** Whether the user may move now. */
  get yourTurn() {
    return this.you !== null && !this.over && this.legal !== null && this.frames[this.last]?.current_player === this.you;
  }

  /** The seats with the highest return after the end; empty in games for one player. */
  get winners() {
    const returns = this.over?.returns ?? this.over?.scores ?? [];
    const best = Math.max(...returns);
    return returns.length < 2 ? [] : returns.flatMap((value, seat) => (value === best ? [seat] : []));
  }

  /** The seats in the order of the result. A player who resigned or lost on time is last, whatever the points. */
  get standings() {
    const { returns, scores, seat: loser } = this.over ?? {};
    const rank = (seat) => [returns?.[seat] ?? 0, seat === loser ? 0 : 1, scores?.[seat] ?? 0];
    return this.seats
      .map((_, seat) => seat)
      .sort((a, b) => {
        const [first, second] = [rank(a), rank(b)];
        const at = first.findIndex((value, index) => value !== second[index]);
        return at < 0 ? a - b : second[at] - first[at];
      });
  }

  /** The move that led to the position on display. */
  get lastMove() {
    return this.moves[this.at - 1] ?? null;
  }

  goTo(move) {
    const target = Math.max(0, Math.min(this.last, move));
    if (target < this.last && !this.frames[target]) return;
    this.shown = target === this.last && !this.studied ? null : target;
    this.changed();
  }

  nameOf(seat) {
    const { name, kind } = this.seats[seat] ?? {};
    if (this.isYou(seat)) return t("You");
    if (kind === "open") return t("Open seat");
    if (isUnnamed(name)) return t`Player ${seat + 1}`; // a rematch changes the seats, but not the default names
    return shownName(kind === "engine" ? message(name) : name); // engines have the titles of their levels
  }

  /** Whether a seat is called "You": that of the user, if nobody else plays at this screen. */
  isYou(seat) {
    return seat === this.you && !this.shared && !this.studied;
  }

  /** Add the analysis of a position. */
  analysed(move, analysis) {
    this.analyses.set(move, analysis);
    this.changed();
  }

  /** Add the review of the game. */
  reviewed(review) {
    this.review = review;
    review.analyses.forEach((analysis, move) => this.analyses.set(move, analysis));
    this.changed();
  }
}
