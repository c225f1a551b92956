// Puzzles: positions in which one move alone wins. The player finds this move; the best reply is played.

import { api } from "./api.js";
import { link } from "./backend.js";
import { h, render } from "./dom.js";
import { icon } from "./icons.js";
import { plural, t } from "./language.js";
import { Game } from "./model.js";
import { spokenMove } from "./moves.js";
import { about } from "./rules.js";
import { attempt, say } from "./speech.js";
import { solvedPuzzles } from "./storage.js";
import { Table } from "./table.js";
import { boardSvg } from "./render/tilewe-game.js";

const DAY = 24 * 60 * 60 * 1000; // milliseconds

/** The puzzle of a day, the same for everybody: [game, number]; null without puzzles. */
function dailyOf(counts, date = new Date()) {
  const games = Object.keys(counts).sort();
  if (!games.length) return null;
  const day = Math.floor(Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / DAY);
  const game = games[day % games.length];
  return [game, (Math.floor(day / games.length) % counts[game]) + 1];
}

const address = (game, number) => link(`/puzzle/${game}/${number}`);

/** Fill a section of the first page with the puzzle of the day; it stays hidden if there is none. */
export async function dailyCard(section) {
  const counts = (await api.puzzles().catch(() => null))?.puzzles ?? {};
  const daily = dailyOf(counts);
  const puzzle = daily && (await api.puzzle(...daily).catch(() => null));
  if (!puzzle) return;
  const [game, number] = daily;
  const solved = solvedPuzzles.get();
  const isSolved = solved.includes(`${game}/${number}`);
  section.hidden = false;
  render(
    section,
    h("h2", {}, "Puzzle of the day"),
    h(
      "a.card.daily",
      { href: address(game, number), dataset: { link: "", focus: "daily" } },
      h("span.picture", { ariaHidden: "true" }, boardSvg(puzzle.frames[puzzle.start], { coordinates: false })),
      h(
        "span.what",
        {},
        h("b", {}, about(game).title),
        h("span", {}, t`${moverOf(puzzle)} to move. One move alone wins.`),
        h("span.muted", {}, isSolved ? "You have solved it." : solved.length ? t`Puzzles solved so far: ${solved.length}` : "Proven by exact search."),
      ),
    ),
  );
}

/** The colour to move, or the number of the player in games without colours of pieces. */
function moverOf({ frames, start, player }) {
  const view = frames[start];
  if (view.kind !== "polyomino") return t`Player ${player + 1}`;
  const name = t(view.colors[view.current_color].name);
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

export function puzzle(container, { parts: [game, number], go }) {
  const page = new PuzzlePage(container, game, Number(number), go);
  return () => page.end();
}

class PuzzlePage {
  state = "asked"; // then "wrong", "solved" or "shown"

  constructor(container, game, number, go) {
    this.container = container;
    this.id = game;
    this.number = number;
    this.go = go;
    render(container, h("p.loading", {}, "Loading the puzzle …"));
    this.#load();
  }

  end() {
    this.ended = true;
    this.table?.end();
  }

  async #load() {
    let puzzle;
    try {
      this.counts = (await api.puzzles()).puzzles;
      if (!this.id) [this.id, this.number] = dailyOf(this.counts) ?? ["none", 0];
      puzzle = await api.puzzle(this.id, this.number);
    } catch (error) {
      if (!this.ended) render(this.container, h("div.notice", {}, h("h1", {}, "This puzzle cannot be opened"), h("p", {}, error.message), h("a.button", { href: link("/"), dataset: { link: "" } }, "Back to the first page")));
      return;
    }
    if (this.ended) return;
    this.container.classList.add("wide");
    this.puzzle = puzzle;
    this.left = puzzle.asked; // moves that the player still has to find
    const game = (this.game = new Game());
    this.table = new Table(this.container, game, {
      submit: (action) => this.#answer(action),
      explain: (action) => api.puzzleRule(this.id, this.number, game.last, action),
      analyse: () => null,
      review: () => null,
      analysisReason: () => "Press “Study” to analyse this position.",
      status: () => this.#status(),
      header: (_, __, requests) => render(requests, this.#verdict()),
      actions: () => this.#actions(),
      notes: () => h("p.muted.solved-count", {}, t`Puzzles solved so far: ${solvedPuzzles.get().length}`),
    });
    game.load({ ...puzzle, names: puzzle.names.map((_, seat) => (seat === puzzle.player ? t("You") : t("Opponent"))) });
    this.#show(puzzle.start);
    document.title = `${t`Puzzle ${this.number} of ${puzzle.count}`} · ${about(this.id).title}`;
  }

  /** Show the line up to a position. The player moves there while the puzzle is not solved. */
  #show(last) {
    const { game, puzzle } = this;
    game.moves = puzzle.moves.slice(0, last);
    game.frames = puzzle.frames.slice(0, last + 1);
    game.over = null;
    game.legal = this.left ? puzzle.legal[last] : null;
    game.you = this.left ? puzzle.player : null;
    game.goTo(last);
  }

  #answer(action) {
    const { game, puzzle } = this;
    const expected = puzzle.moves[game.last];
    if (action !== expected.id) {
      this.state = "wrong";
      say(t("This move does not win. Try another one."));
      this.table.update();
      return;
    }
    this.left -= 1;
    // Best replies follow, up to the next move that the player has to find.
    let last = game.last + 1;
    while (puzzle.moves[last] && puzzle.moves[last].player !== puzzle.player) last += 1;
    this.state = this.left ? "asked" : "solved";
    if (!this.left) {
      if (!this.helped) solvedPuzzles.add(`${this.id}/${this.number}`);
      say(t("Solved."));
    } else say(puzzle.moves.slice(game.last + 1, last).map((move) => [game.nameOf(move.player), spokenMove(move)].join(" ")).join(". "));
    this.#show(last);
  }

  /** Show the whole line; the puzzle does not count as solved. */
  #solution() {
    const at = this.puzzle.start + 1;
    this.state = "shown";
    this.helped = true;
    this.left = 0;
    this.#show(this.puzzle.moves.length);
    this.game.goTo(at);
  }

  /** Start again from the position of the puzzle. */
  #again() {
    this.state = "asked";
    this.helped = true;
    this.left = this.puzzle.asked;
    this.#show(this.puzzle.start);
    this.table.board.element.focus({ preventScroll: true });
  }

  // ---- Display

  #status() {
    const { puzzle } = this;
    const text = this.left ? "Find the only winning move" : t`After move ${this.game.at} of ${this.game.last}`;
    return [h("strong", {}, about(this.id).title), h("span.muted", {}, t`Puzzle ${this.number} of ${puzzle.count}`), h("span", {}, text)];
  }

  #verdict() {
    const { puzzle } = this;
    if (this.state === "wrong") return h("div.bar.wrong", { role: "status" }, h("p", {}, "This move does not win. Try another one."), h("button", { dataset: { focus: "bar-solution" }, onclick: () => this.#solution() }, "Show the solution"));
    if (this.state === "asked") return this.left < puzzle.asked ? h("div.bar.right", { role: "status" }, h("p", {}, h("b", {}, "Right."), " ", h("span", {}, "Find the next move."))) : null;
    const scores = puzzle.frames.at(-1).scores;
    const lead = scores[puzzle.player] - Math.max(...scores.filter((_, seat) => seat !== puzzle.player));
    const margin = puzzle.frames[0].kind === "santorini" ? "You win with best play." : t`You win with best play, by ${plural(lead, "point")}.`;
    return h(
      "div.bar",
      { role: "status", className: this.state === "solved" ? "right" : "" },
      h("p", {}, h("b", {}, this.state === "solved" ? "Solved." : "The solution."), " ", h("span", {}, margin)),
      h("button.primary", { dataset: { focus: "next-puzzle" }, onclick: () => this.#next() }, "Next puzzle"),
    );
  }

  #actions() {
    const button = (name, title, picture, run) => h("button", { title, dataset: { focus: `action-${picture}` }, onclick: run }, icon(picture), h("span", {}, name));
    return [
      this.left ? button("Solution", "Show the solution", "bulb", () => this.#solution()) : button("Again", "Start this puzzle again", "undo", () => this.#again()),
      !this.left && this.game.last < this.puzzle.moves.length && button("Best play", "Show best play to the end", "next", () => this.#rest()),
      button("Next", "Next puzzle", "next", () => this.#next()),
      button("Study", "Play on from this position, and analyse it", "open", () => this.#study()),
    ];
  }

  /** Add best play by both sides after the moves that the player found. */
  #rest() {
    const at = this.game.last;
    this.#show(this.puzzle.moves.length);
    this.game.goTo(Math.min(at + 1, this.game.last));
  }

  /** Open the next puzzle that is not solved yet, of this game if it has any. */
  #next() {
    const solved = new Set(solvedPuzzles.get());
    const games = [this.id, ...Object.keys(this.counts).filter((id) => id !== this.id)];
    for (const id of games) {
      for (let step = 1; step <= this.counts[id]; step += 1) {
        const number = id === this.id ? ((this.number + step - 1) % this.counts[id]) + 1 : step;
        if (!solved.has(`${id}/${number}`) && !(id === this.id && number === this.number)) return this.go(`/puzzle/${id}/${number}`);
      }
    }
    return this.go(`/puzzle/${this.id}/${(this.number % this.counts[this.id]) + 1}`);
  }

  /** Open a study of the line at the position on display. */
  async #study() {
    const { puzzle } = this;
    const header = { format: "tilewe-jax-games/1", game: puzzle.game, options: puzzle.options, version: puzzle.version, seed: null };
    const record = { deal: puzzle.deal, actions: puzzle.actions, scores: null, returns: null };
    const created = await attempt(async () => api.upload(`${JSON.stringify(header)}\n${JSON.stringify(record)}\n`));
    if (created) this.go(`/study/${created.id}?move=${this.game.at}`);
  }
}
