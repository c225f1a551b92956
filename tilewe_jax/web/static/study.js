// Studies: upload a record, step through it, and analyse it.

import { api, catalog } from "./api.js";
import { link, LOCAL, place } from "./backend.js";
import { h, render } from "./dom.js";
import { icon } from "./icons.js";
import { Game } from "./model.js";
import { hasEditor } from "./editors/index.js";
import { editorPage } from "./positions.js";
import { about } from "./rules.js";
import { spokenMove } from "./moves.js";
import { linkField, save, SHARE, studyDownloads } from "./share.js";
import { infoDialog } from "./dialogs.js";
import { message, t } from "./language.js";
import { attempt, say, toast } from "./speech.js";
import { preference } from "./storage.js";
import { Table } from "./table.js";
import { Tree } from "./variations.js";

const LARGEST = 1_000_000; // maximum size of an upload in bytes

export function study(container, { parts: [id], go }) {
  if (!id) {
    upload(container, go);
    return () => {};
  }
  const page = new StudyPage(container, id, go);
  return () => page.end();
}

/** A field to choose or drop a file, which opens a study of it. */
export function dropField(go) {
  const input = h("input.visually-hidden", { type: "file", accept: ".jsonl,.json,.blksgf,.sgf,.txt", id: "record-file", onchange: () => input.files[0] && send(input.files[0]) });
  const send = async (file) => {
    if (file.size > LARGEST) {
      toast(t`${file.name} is larger than 1 MB. Choose a smaller file.`, "bad");
      return;
    }
    const created = await attempt(async () => api.upload(await file.text()));
    for (const note of created?.notes ?? []) toast(`${file.name}: ${message(note)}.`);
    if (created) go(`/study/${created.id}`);
  };
  const field = h("label.drop", { htmlFor: "record-file" }, input, icon("upload"), h("span", {}, h("b", {}, "Open a record"), h("span.muted", {}, "choose or drop a .jsonl file of this program or a .blksgf file")));
  field.addEventListener("dragover", (event) => {
    event.preventDefault();
    field.classList.add("over");
  });
  field.addEventListener("dragleave", () => field.classList.remove("over"));
  field.addEventListener("drop", (event) => {
    event.preventDefault();
    field.classList.remove("over");
    if (event.dataTransfer.files[0]) send(event.dataTransfer.files[0]);
  });
  return field;
}

function upload(container, go) {
  document.title = t("Study · tilewe_jax");
  render(
    container,
    h(
      "div.narrow",
      {},
      h("h1", {}, "Study a game"),
      h("p.lead", {}, "Step through a recorded game, see the engine's analysis of each position, and find the decisive mistakes."),
      dropField(go),
      h("p.muted", {}, LOCAL ? "To study a game that you played here, open its page after the end." : "To study a game of this server, open its page after the end."),
    ),
  );
}

class StudyPage {
  exploring = false; // whether the user plays on from a position
  opponent = ""; // the agent that answers, empty for nobody
  side = null; // the seat of the user if an agent answers

  constructor(container, id, go) {
    this.container = container;
    this.id = id;
    this.go = go;
    const { query } = place();
    this.number = Number(query.get("number") ?? 1);
    this.move = Number(query.get("move") ?? 0);
    render(container, h("p.loading", {}, "Loading the record …"));
    this.#load();
  }

  end() {
    this.ended = true;
    this.table?.end();
  }

  async #load() {
    let replay;
    try {
      replay = await api.study(this.id, this.number);
    } catch (error) {
      if (!this.ended) render(this.container, h("div.notice", {}, h("h1", {}, "This study cannot be opened"), h("p", {}, error.message), h("a.button", { href: link("/study"), dataset: { link: "" } }, "Open another record")));
      return;
    }
    if (this.ended) return;
    this.container.classList.add("wide");
    const game = (this.game = new Game());
    this.games = replay.games;
    this.replay = replay;
    this.tree = new Tree({ ...replay, ...(await this.#draft()) });
    this.line = this.tree.main;
    this.levels = (await catalog().catch(() => null))?.games.find(({ id }) => id === replay.game)?.levels ?? [];
    if (this.ended) return;
    this.table = new Table(this.container, game, {
      submit: (action) => this.#play(action),
      explain: (action) => this.#explain(action),
      analyse: (move) => this.#analyse(move),
      review: () => this.#reviewed(),
      analysisReason: () => null,
      explore: replay.explored && ((source) => api.explore(this.id, this.number, this.#actionsTo(this.line[game.at]), source)),
      follow: (action) => this.#follow(action),
      status: () => this.#status(),
      actions: () => this.#actions(),
      notes: () => this.#notes(),
    });
    game.load(replay);
    game.tree = {
      comment: (number) => this.line[number]?.comment,
      isMain: () => this.#isMain,
      others: (index) => this.line[index].children.filter((node) => node !== this.line[index + 1]).map((node) => ({ move: node.move, isGame: this.tree.isMain(node), show: () => this.#show(node) })),
    };
    game.addEventListener("change", () => {
      if (game.review) this.review = game.review;
      game.analyses.forEach((analysis, move) => this.line[move] && (this.line[move].analysis = analysis));
    });
    this.#show(this.tree.main[Math.min(this.move, replay.moves.length)]);
    document.title = `${game.seats.map((_, seat) => game.nameOf(seat)).join(" – ")} · ${t("Study")}`;
  }

  #status() {
    const { game } = this;
    return [
      h("strong", {}, about(game.game).title),
      h("span.muted", {}, this.exploring && game.live ? t`Playing on: ${game.over ? t("the end") : t`${game.nameOf(game.view.current_player)} to move`}` : game.at === 0 ? "Start" : t`After move ${game.at} of ${game.last}`),
      !this.tree.isMain(this.line[game.at]) && h("span.badge", {}, "variation"),
      this.#chooser(),
    ];
  }

  #actions() {
    const { game } = this;
    const node = this.line[game.at];
    const button = (name, title, picture, run) => h("button", { title, dataset: { focus: `action-${picture}` }, onclick: run }, icon(picture), h("span", {}, name));
    return [
      this.exploring && game.live ? button("Stop", "Stop playing on", "close", () => this.#show(node)) : !game.view.terminal && button("Play on", "Play on from this position", "open", () => this.#explore(node)),
      !this.tree.isMain(node) && button("Delete", "Delete this variation from this move on", "undo", () => this.#delete(node)),
      hasEditor(game.kind) && button("Edit", "Open this position in the editor", "text", () => this.#edit()),
      button(SHARE, SHARE, "share", () => this.#share()),
    ];
  }

  /** The opponent of variations, and the comment on the position. */
  #notes() {
    const { game } = this;
    const node = this.line[game.at];
    const write = (event) => {
      node.comment = event.target.value;
      this.#keep();
    };
    const choose = (event) => {
      this.opponent = event.target.value;
      this.side = game.view.current_player;
    };
    const options = [["", "Nobody: I move for all players"], ...this.levels.map(({ agent, title }) => [agent, message(title)])];
    return h(
      "div.study-notes",
      {},
      this.exploring && this.levels.length > 0 && h("label.field", {}, h("span", {}, "Who answers"), h("select", { dataset: { focus: "opponent" }, onchange: choose }, options.map(([value, text]) => h("option", { value, selected: value === this.opponent }, text)))),
      h("label.field", {}, h("span", {}, game.at ? t`Comment on move ${game.at}` : "Comment on the start"), h("textarea", { rows: 2, maxLength: 10_000, value: node.comment, dataset: { focus: `comment-${game.at}` }, oninput: write, onchange: () => this.table.timeline.update() })),
    );
  }

  // ---- Variations

  /** Whether the line on display is the recorded game. */
  get #isMain() {
    return !this.exploring && this.tree.isMain(this.line.at(-1));
  }

  /** The review of the recorded game, which is shown then. */
  async #reviewed() {
    const review = await api.reviewStudy(this.id, this.number);
    if (review.analyses && !this.#isMain) this.#show(this.tree.main[0]);
    return review;
  }

  #actionsTo(node) {
    return this.tree.pathTo(node).slice(1).map(({ move }) => move.id);
  }

  /** Show the line through a position, at this position. */
  #show(node, exploring = false) {
    const { game, tree } = this;
    this.exploring = exploring;
    this.line = exploring ? tree.pathTo(node) : tree.lineThrough(node);
    const end = this.line.at(-1);
    game.moves = this.line.slice(1).map(({ move }) => move);
    game.frames = this.line.map(({ frame }) => frame);
    game.analyses = new Map(this.line.flatMap(({ analysis }, move) => (analysis ? [[move, analysis]] : [])));
    const isMain = this.#isMain;
    game.review = isMain ? (this.review ?? null) : null;
    game.over = isMain && game.result ? game.result : (end.state?.over && { ...end.state.over, reason: null }) || null;
    game.orientations ??= end.state?.orientations ?? null;
    game.legal = exploring && !game.over ? end.state.legal : null;
    game.you = exploring ? end.frame.current_player : null;
    game.goTo(this.line.indexOf(node));
  }

  /** The legal moves of a position, from the server. */
  async #known(node) {
    const actions = this.#actionsTo(node);
    node.state ??= await api.studyLine(this.id, this.number, actions, actions.length);
    return node.state;
  }

  /** Play on from a position. */
  async #explore(node) {
    await attempt(async () => {
      await this.#known(node);
      this.side = node.frame.current_player;
      this.#show(node, true);
      this.table.board.element.focus({ preventScroll: true });
    });
  }

  /** Play a move in a variation, and let the opponent answer. */
  async #play(action) {
    const before = this.line.at(-1);
    if (this.table.busy || !this.exploring) return;
    this.table.busy = true;
    await attempt(async () => {
      let node = await this.#moved(before, action);
      while (this.opponent && this.line.at(-1) === node && !node.state.over && node.frame.current_player !== this.side) {
        const actions = this.#actionsTo(node);
        const answer = await api.analyseStudy(this.id, this.number, actions.length, { actions, agent: this.opponent });
        if (this.line.at(-1) !== node) break;
        node = await this.#moved(node, answer.action);
        say(`${this.game.nameOf(node.move.player)} ${spokenMove(node.move)}`);
      }
    });
    this.table.busy = false;
    this.table.update();
  }

  /** Go on by a move that was played from the position on display; a new move starts a variation. */
  async #follow(action) {
    const node = this.line[this.game.at];
    const known = node.children.find(({ move }) => move.id === action);
    if (known) return this.#show(known);
    return attempt(async () => this.#show(await this.#added(node, action)));
  }

  async #moved(node, action) {
    const child = await this.#added(node, action);
    this.#show(child, true);
    return child;
  }

  /** Add a move to the tree. */
  async #added(node, action) {
    const actions = [...this.#actionsTo(node), action];
    const answer = await api.studyLine(this.id, this.number, actions, actions.length - 1);
    const child = this.tree.child(node, answer.moves[0], answer.frames[0]);
    child.state = answer;
    this.#keep();
    return child;
  }

  async #explain(action) {
    return api.studyLine(this.id, this.number, this.#actionsTo(this.line.at(-1)), 0, { explain: action });
  }

  #analyse(move) {
    return api.analyseStudy(this.id, this.number, move, { actions: this.#actionsTo(this.line[move]) });
  }

  #delete(node) {
    this.#show(this.tree.remove(node));
    this.#keep();
  }

  /** Comments and variations are kept in this browser; files and new studies contain them, too. */
  #keep() {
    preference.set(`study.${this.id}.${this.number}`, this.tree.data);
  }

  async #draft() {
    const kept = preference.get(`study.${this.id}.${this.number}`, null);
    return kept && (await api.studyVariations(this.id, this.number, kept).catch(() => null));
  }

  /** Open the position on display in the editor. */
  async #edit() {
    await attempt(async () => {
      const { game, options } = this.game;
      const { position } = await this.#known(this.line[this.game.at]);
      this.go(await editorPage({ game, options, position }));
    });
  }

  #share() {
    const name = `${this.game.game}-${this.number}`;
    const forms = ["jsonl", ...(["duo", "duo_official", "classic", "classic_2"].includes(this.game.game) ? ["blksgf"] : [])];
    const file = (form) => attempt(async () => save(`${name}.${form}`, "application/octet-stream", await api.studyRecord(this.id, this.number, this.tree.data, form)));
    const publish = async () => {
      const created = await attempt(async () => api.upload(await api.studyRecord(this.id, this.number, this.tree.data, "jsonl")));
      if (created) {
        document.querySelector("dialog[open]")?.close();
        this.go(`/study/${created.id}?move=${Math.min(this.game.at, this.replay.moves.length)}`);
      }
    };
    infoDialog(
      SHARE,
      !LOCAL && [h("p", {}, "Anyone with this link can see this position:"), linkField("Link to this position", location.origin + link(`/study/${this.id}?number=${this.number}&move=${this.game.at}`))],
      !LOCAL && h("p.muted", {}, "Your comments and variations are kept in this browser only. A new study with its own link contains them."),
      studyDownloads(`${name}-${this.game.at}`, () => this.table.board.svg, this.replay),
      h(
        "div.downloads",
        {},
        forms.map((form) => h("button", { dataset: { focus: `download-${form}` }, onclick: () => file(form) }, icon("download"), form === "jsonl" ? "Record with variations" : t`Record with variations (.${form})`)),
        !LOCAL && h("button", { dataset: { focus: "publish" }, onclick: publish }, icon("share"), "New study with variations"),
      ),
    );
  }

  /** Buttons to choose a game of the file. */
  #chooser() {
    if (!(this.games > 1)) return null;
    const open = (number) => this.go(`/study/${this.id}?number=${number}`);
    return h(
      "span.row.chooser",
      {},
      h("button.quiet", { ariaLabel: "Previous game", disabled: this.number <= 1, onclick: () => open(this.number - 1) }, icon("previous")),
      t`Game ${this.number} of ${this.games}`,
      h("button.quiet", { ariaLabel: "Next game", disabled: this.number >= this.games, onclick: () => open(this.number + 1) }, icon("next")),
    );
  }
}
