// The position editor: pieces, workers, heights and tiles put by hand, checked by the rules, to play, analyse and share.

import { api, catalog, sentence } from "./api.js";
import { link, place } from "./backend.js";
import { infoDialog } from "./dialogs.js";
import { debounce, h, render, typing } from "./dom.js";
import { editorFor } from "./editors/index.js";
import { icon } from "./icons.js";
import { message, t } from "./language.js";
import { applies, optionField } from "./options.js";
import { editorPage, unpacked } from "./positions.js";
import { about } from "./rules.js";
import { Setup } from "./setup.js";
import { linkField } from "./share.js";
import { attempt, say } from "./speech.js";
import { boardSvg, cellAt } from "./render/tilewe-game.js";

const KEYS = { Enter: "place", " ": "place", Escape: "cancel", r: "right", R: "left", f: "flip", n: "next", p: "previous", Delete: "remove", Backspace: "remove" };
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const FIRST_OPTIONS = ["players", "size"];

export function editor(container, { go }) {
  const page = new EditorPage(container, go);
  return () => page.end();
}

class EditorPage {
  cursor = null; // [x, y] on the board, or null
  pointing = null; // type of the pointer that moved the cursor last; "keyboard" for keys
  #before = []; // earlier {options, facts}, as JSON, the latest last
  #untouched = ""; // the usual start as JSON, empty if another position was loaded
  #starts = 0;
  #checks = 0;

  constructor(container, go) {
    this.go = go;
    document.title = `${t("Position editor")} · tilewe_jax`;
    this.board = h("div.board", { tabIndex: 0, role: "application", ariaRoleDescription: "board", ariaLabel: "Board. Arrow keys move, Enter puts, Delete removes.", dataset: { focus: "board" } });
    this.status = h("div.status", {});
    this.noteLine = h("p.note", { role: "status" });
    this.tools = h("div.tools-place", {});
    this.tray = h("aside.side.left", { ariaLabel: "Pieces" });
    this.panel = h("section.card.editor-panel", { ariaLabel: "Position" });
    this.element = h(
      "div.table.editor",
      {},
      this.tray,
      h("section.center", { ariaLabel: "Board" }, h("div.status-place", {}, this.status), h("div.board-place", {}, this.board), this.noteLine, this.tools),
      h("aside.side.right", { ariaLabel: "Position" }, this.panel),
    );
    render(container, this.element);
    this.board.addEventListener("pointermove", (event) => event.pointerType === "mouse" && this.#pointed(event));
    this.board.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.#point(null, "mouse"));
    this.board.addEventListener("pointerdown", (event) => {
      this.pressed = event.button === 0;
      this.board.focus({ preventScroll: true });
    });
    this.board.addEventListener("pointercancel", () => (this.pressed = false));
    this.board.addEventListener("pointerup", (event) => this.pressed && this.#clicked(event)); // no click, because drawing replaces its target
    this.board.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      this.kind?.act("flip");
    });
    for (const name of ["focus", "blur"]) this.board.addEventListener(name, () => this.#draw());
    this.onkey = (event) => this.#key(event);
    addEventListener("keydown", this.onkey);
    this.check = debounce(() => this.#check(), 120);
    this.#open();
  }

  end() {
    this.ended = true;
    removeEventListener("keydown", this.onkey);
  }

  // ---- Positions

  async #open() {
    const catalogue = await attempt(() => catalog());
    if (!catalogue || this.ended) return;
    this.catalogue = catalogue;
    const { query, token } = place();
    const code = query.get("position") ?? token;
    const shared = code ? await attempt(() => unpacked(code)) : null;
    const wanted = shared?.game ?? query.get("game");
    const known = catalogue.games.some(({ id }) => id === wanted);
    const load = known && shared?.position ? (kind) => kind.load(shared.position) : null;
    await this.#start(known ? wanted : "duo_official", known ? (shared?.options ?? optionsIn(query)) : {}, load);
  }

  /** Show the usual start of a game, or the position that `load` shows in its editor. */
  async #start(game, options, load = null, before = []) {
    const number = ++this.#starts;
    const blank = await attempt(() => api.position({ game, options }));
    const kind = blank && !blank.rule && (await editorFor({ game, options, page: this, blank }));
    if (this.ended || number !== this.#starts) return;
    if (!kind) {
      if (blank) this.#say(sentence(message(blank.rule)), "bad");
      if (this.kind) this.#drawPanel();
      return;
    }
    Object.assign(this, { game, options, kind, cursor: null });
    this.#before = before;
    this.#untouched = load ? "" : JSON.stringify(kind.facts);
    for (const name of ["polyomino", "santorini", "triominos"]) this.element.classList.toggle(`kind-${name}`, name === blank.view.kind);
    load?.(kind);
    this.changed();
  }

  /** Change an option of the game. The position is kept as far as it fits. */
  #setOption(name, value) {
    const { game, kind, options: before } = this;
    const { [name]: _, ...options } = before;
    if (value !== this.#offered[name].default) options[name] = value;
    if (JSON.stringify(kind.facts) === this.#untouched) return this.#start(game, options);
    return this.#start(game, options, (fresh) => fresh.adopt(kind.facts), [...this.#before, JSON.stringify({ options: before, facts: kind.facts })]);
  }

  /** The options of the game in the catalogue. */
  get #offered() {
    return this.catalogue.games.find(({ id }) => id === this.game).options;
  }

  /** Remember the position before a change. */
  remember() {
    this.#before.push(JSON.stringify({ options: this.options, facts: this.kind.facts }));
  }

  /** Draw and check the position after a change. */
  changed() {
    this.update();
    this.check();
  }

  #undo() {
    const before = this.#before.pop();
    if (before === undefined) return;
    const { options, facts } = JSON.parse(before);
    if (JSON.stringify(options) !== JSON.stringify(this.options)) {
      this.#start(this.game, options, (kind) => kind.load(facts), this.#before);
      return;
    }
    this.kind.load(facts);
    this.changed();
  }

  /** Check the position; resolve when the answer to the latest check has arrived. */
  #check() {
    this.latest = this.#checked(++this.#checks);
    return this.latest;
  }

  async #checked(number) {
    const facts = this.kind.facts;
    const answer = await api.position({ game: this.game, options: this.options, position: facts }).catch((error) => ({ rule: error.message }));
    if (number !== this.#checks) return this.latest;
    if (this.ended) return undefined;
    this.answer = answer;
    if (answer.rule) this.#say(sentence(message(answer.rule)), "bad");
    else if (answer.over) this.#say(t("In this position the game is over."), "info");
    else this.#say(t`The position is valid. ${this.kind.moverName(answer.view)} is to move.`, "good");
    this.#drawPanel();
    return undefined;
  }

  #say(text, kind) {
    this.noteLine.className = `note ${kind}`;
    this.noteLine.textContent = text;
  }

  // ---- Drawing

  update() {
    render(this.status, h("h1.editor-title", {}, "Position editor"), h("span.muted", {}, about(this.game, this.catalogue).title));
    render(this.tray, this.kind.trays());
    this.tray.hidden = !this.tray.childElementCount;
    render(this.tools, h("div.tools", { role: "toolbar", ariaLabel: "Tools" }, this.kind.tools()));
    this.#drawPanel();
    this.#draw();
  }

  #draw() {
    if (!this.kind) return;
    const keyboard = this.pointing === "keyboard" && document.activeElement === this.board;
    const marks = this.kind.marks(this.pointing === "keyboard" && !keyboard ? null : this.cursor);
    const { view } = this.kind;
    if (view.size) this.board.dataset.size = view.size;
    this.svg = boardSvg(view, { coordinates: true, ...marks, ...(keyboard && this.cursor && !marks.ghost ? { cursor: this.cursor } : {}) });
    this.board.replaceChildren(this.svg);
    const put = this.tools.querySelector(".place");
    if (put) put.disabled = !this.kind.mayPut;
  }

  #drawPanel() {
    const valid = this.answer && !this.answer.rule;
    const ready = valid && !this.answer.over;
    const button = (name, picture, run, disabled, className = "") => h("button", { className, disabled, dataset: { focus: `editor-${picture}` }, onclick: run }, icon(picture), h("span", {}, name));
    render(
      this.panel,
      h(
        "label.field",
        {},
        h("span", {}, "Which game"),
        h(
          "select",
          { dataset: { focus: "editor-game" }, onchange: (event) => this.#start(event.target.value, {}) },
          this.catalogue.games.map(({ id }) => h("option", { value: id, selected: id === this.game }, about(id, this.catalogue).title)),
        ),
      ),
      this.#fields(),
      this.kind.movers(),
      this.kind.facts_(),
      h(
        "div.row.actions",
        { role: "toolbar", ariaLabel: "The position" },
        button("Play", "person", () => this.#play(), !ready, "primary"),
        button("Analyse", "chart", () => this.#analyse(), !valid),
        button("Share", "share", () => this.#share(), !this.answer),
      ),
      h(
        "div.row.actions",
        { role: "toolbar", ariaLabel: "Changes" },
        button("Undo", "undo", () => this.#undo(), !this.#before.length),
        button("Clear", "close", () => this.#clear()),
        button("Text", "text", () => this.#text()),
      ),
    );
  }

  /** Fields for the options of the game; most games are changed by the first ones only. */
  #fields() {
    const offered = this.#offered;
    const names = Object.keys(offered).filter((name) => applies(name, offered, this.options));
    const field = (name) => optionField(name, offered[name], this.options[name] ?? offered[name].default, (value) => this.#setOption(name, value));
    const more = names.filter((name) => !FIRST_OPTIONS.includes(name));
    const open = this.panel.querySelector("details.options")?.open;
    return [
      FIRST_OPTIONS.filter((name) => names.includes(name)).map(field),
      more.length > 0 && h("details.more.options", { open }, h("summary", { dataset: { focus: "editor-options" } }, "More options"), more.map(field)),
    ];
  }

  // ---- Pointer and keys

  #pointed(event) {
    this.#point(this.svg && cellAt(this.svg, event.clientX, event.clientY), "mouse");
  }

  #point(cell, pointing) {
    if (String(cell) === String(this.cursor) && this.pointing === pointing) return;
    this.cursor = cell;
    this.pointing = pointing;
    this.#draw();
  }

  #clicked(event) {
    this.pressed = false;
    const cell = this.svg && cellAt(this.svg, event.clientX, event.clientY);
    if (!cell) return;
    this.#point(cell, event.pointerType || "mouse");
    this.kind.press(cell, event.pointerType === "touch");
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey) {
      if (event.key === "z" && !typing(event.target)) {
        event.preventDefault();
        this.#undo();
      }
      return;
    }
    if (event.altKey || typing(event.target) || !this.kind || !this.element.contains(event.target)) return;
    const onBoard = event.target === this.board;
    const step = STEPS[event.key];
    const name = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
    if (step && onBoard) {
      event.preventDefault();
      this.#point(this.kind.step(this.cursor, step), "keyboard");
      if (this.cursor) say(this.kind.describe(this.cursor));
    } else if (name && (onBoard || !["place", "remove"].includes(name))) {
      event.preventDefault();
      if (["place", "remove"].includes(name) && !this.cursor) this.#point(this.kind.step(null, [0, 0]), "keyboard");
      else this.kind.act(name);
    }
  }

  // ---- The buttons

  #clear() {
    this.remember();
    this.kind.clear();
    this.changed();
  }

  async #play() {
    await this.#check(); // the last change may be newer than the last answer
    if (this.answer.rule || this.answer.over) return;
    const setup = new Setup(this.catalogue, (page) => {
      dialog.close();
      this.go(page);
    });
    setup.choose(this.game, { options: this.options, position: this.answer.position });
    const dialog = infoDialog("Play from this position", setup.element);
    dialog.classList.add("play-position");
  }

  async #analyse() {
    await this.#check();
    if (this.answer.rule) return;
    const created = await attempt(() => api.upload(this.answer.record));
    if (created) this.go(`/study/${created.id}`);
  }

  async #share() {
    const page = await editorPage({ game: this.game, options: this.options, position: this.kind.facts });
    const address = new URL(link(page), location.href).href;
    infoDialog("Share this position", h("p", {}, "Anyone with this link can open the position, play from it and analyse it. The link contains the whole position."), linkField("Link to this position", address));
  }

  /** Show the position as text, which can be replaced. */
  async #text() {
    await this.#check();
    const field = h("textarea", { rows: 9, value: JSON.stringify(this.answer?.position ?? this.kind.facts, null, 1), ariaLabel: "Position as text", spellcheck: false });
    const apply = async () => {
      const text = field.value.trim();
      await attempt(async () => {
        const position = text.startsWith("{") ? JSON.parse(text) : text;
        const answer = await api.position({ game: this.game, options: this.options, position });
        if (answer.rule) throw new Error(sentence(message(answer.rule)));
        this.remember();
        this.kind.load(answer.position);
        this.changed();
        dialog.close();
      });
    };
    const dialog = infoDialog("The position as text", h("p.muted", {}, "Programs read this text, for example tilewe-jax analyze. You can also paste a position here."), field, h("button.primary", { onclick: apply, dataset: { focus: "apply-text" } }, "Use this position"));
    dialog.classList.add("editor-text");
  }
}

/** The options of a game in the query of a link. */
function optionsIn(query) {
  try {
    return JSON.parse(query.get("options") ?? "{}");
  } catch {
    return {};
  }
}
