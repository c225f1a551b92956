// Santorini: choose a worker, move it, build.

import { sentence } from "../api.js";
import { h, render } from "../dom.js";
import { icon } from "../icons.js";
import { BoardArea, cellName } from "./area.js";
import { t } from "../language.js";

const STEPS = ["Worker", "Move", "Build"];
const same = (a, b) => a !== null && b !== null && String(a) === String(b);

export class SantoriniBoard extends BoardArea {
  worker = null; // index of the chosen worker, or null
  to = null; // chosen destination, or null

  constructor(table) {
    super(table);
    this.tray = null;
    this.tools = h("div.tools.steps", { role: "status" });
  }

  update() {
    if (this.seen !== this.game.last || !this.active) {
      this.seen = this.game.last;
      this.worker = this.to = this.refused = null;
    }
    this.#drawTools();
    this.redraw();
  }

  /** The legal moves that agree with the current choices. */
  get #open() {
    if (!this.active) return [];
    return this.game.legal.filter(
      (move) => move.kind === "place" || ((this.worker === null || move.worker === this.worker) && (this.to === null || same(move.to, this.to))),
    );
  }

  /** The step of the turn: "place", "worker", "to" or "build". */
  get #step() {
    if (this.game.view?.placing) return "place";
    return this.worker === null ? "worker" : this.to === null ? "to" : "build";
  }

  /** The cells that can be chosen now. */
  get choices() {
    const step = this.#step;
    const cells = this.#open.map((move) => ({ place: move.to, worker: move.from, to: move.to, build: move.build })[step]).filter(Boolean);
    return [...new Map(cells.map((cell) => [String(cell), cell])).values()];
  }

  /** The position with the chosen worker at its destination. */
  get view() {
    const { view } = this.game;
    if (this.to === null || !view || !this.active) return view;
    return { ...view, workers: view.workers.map((cell, worker) => (worker === this.worker ? this.to : cell)) };
  }

  decoration() {
    const marks = this.active ? { legal: this.choices } : {};
    if (this.active && this.worker !== null) marks.selected = this.to ?? this.game.view.workers[this.worker];
    if (this.cursor && this.pointing === "mouse" && this.choices.some((cell) => same(cell, this.cursor))) marks.hover = this.cursor;
    return marks;
  }

  pieceOf(move) {
    const placed = this.view.workers.filter(Boolean);
    return this.svg.querySelectorAll(".tilewe-worker")[placed.findIndex((cell) => same(cell, move.to))];
  }

  origin(move, piece) {
    if (!move.from) return super.origin(move, piece);
    const side = Math.floor(600 / this.view.size);
    return [side * (move.from[0] - move.to[0]), side * (move.to[1] - move.from[1])];
  }

  hover() {
    if (this.pointing !== "keyboard") return;
    const { view } = this;
    const [x, y] = this.cursor;
    const worker = view.workers.findIndex((cell) => same(cell, this.cursor));
    const height = Number(view.heights[y * view.size + x]);
    const parts = [cellName(this.cursor), height === 4 ? t("dome") : t`level ${height}`];
    if (worker >= 0) parts.push(this.game.isYou(worker >> 1) ? t("your worker") : t`worker of ${this.game.nameOf(worker >> 1)}`);
    if (this.choices.some((cell) => same(cell, this.cursor))) parts.push(t("can be chosen"));
    this.table.say(parts.join(", "));
  }

  pick(cell) {
    if (!this.active) return;
    const step = this.#step;
    if (this.choices.some((choice) => same(choice, cell))) {
      this.#choose(step, cell);
      return;
    }
    // Choosing another own worker restarts the turn.
    const worker = this.game.view.workers.findIndex((place) => same(place, cell));
    if (worker >= 0 && this.game.legal.some((move) => move.worker === worker)) {
      this.worker = worker;
      this.to = null;
      this.#changed();
    } else if (step !== "place") {
      this.#refuse(step, cell);
    }
  }

  #choose(step, cell) {
    if (step === "worker") this.worker = this.game.view.workers.findIndex((place) => same(place, cell));
    else if (step === "to") this.to = cell;
    const { size, heights } = this.game.view;
    const wins = step === "to" && heights[cell[1] * size + cell[0]] === "3"; // then any build will do
    const move = this.#open.find((each) => (step === "place" ? same(each.to, cell) : step === "build" ? same(each.build, cell) : wins));
    if (move) {
      this.table.submit(move.id);
      return;
    }
    this.#changed();
    this.table.say(this.note?.text ?? "");
  }

  /** Explain why a cell cannot be chosen. */
  async #refuse(step, cell) {
    const action = this.#actionFor(step, cell);
    let text = step === "worker" ? "Choose one of your workers that can move." : step === "to" ? "A worker moves to an adjacent cell without a worker or dome, at most one level up." : "You cannot build there.";
    const { view } = this.game;
    const worker = view.workers.findIndex((place) => same(place, cell));
    if (worker >= 0 && step !== "worker") text = this.game.isYou(worker >> 1) ? "Your other worker stands there." : t`A worker of ${this.game.nameOf(worker >> 1)} stands there.`;
    else if (action !== null) {
      try {
        const { rule } = await this.table.explain(action);
        // The rule names cells by row and column from the top.
        if (rule) text = sentence(rule.replace(/\((\d+), (\d+)\)/g, (_, row, column) => cellName([Number(column), view.size - 1 - row])));
      } catch {
        // the general text remains
      }
    }
    this.refused = text;
    this.table.say(text);
    this.table.changed();
  }

  /** The action of an illegal turn, 64 * worker + 8 * move + build, which the server explains. */
  #actionFor(step, cell) {
    const direction = (from, to) => DIRECTIONS.findIndex(([dx, dy]) => from[0] + dx === to[0] && from[1] + dy === to[1]);
    if (step === "worker" || this.worker === null) return null;
    const from = this.game.view.workers[this.worker];
    const move = direction(from, step === "to" ? cell : this.to);
    const build = step === "to" ? 7 - Math.max(0, move) : direction(this.to, cell);
    return move < 0 || build < 0 ? null : 64 * (this.worker % 2) + 8 * move + build;
  }

  command(name) {
    if (name === "place") {
      if (!this.cursor) return this.act("up");
      this.pick(this.cursor);
    } else if (name === "cancel") {
      if (this.to !== null) this.to = null;
      else this.worker = null;
      this.#changed();
    } else if (name === "find" || name === "findBack" || name === "next" || name === "previous") {
      const cells = this.choices;
      if (!cells.length) return true;
      const index = cells.findIndex((cell) => same(cell, this.cursor));
      const step = name === "find" || name === "next" ? 1 : -1;
      this.cursor = cells[index < 0 ? 0 : (index + step + cells.length) % cells.length];
      this.pointing = "keyboard";
      this.hover();
      this.changed();
    } else if (name === "why") this.table.say(this.note?.text ?? "");
    else return false;
    return true;
  }

  suggest(move) {
    this.worker = move.kind === "turn" ? move.worker : null;
    this.to = move.kind === "turn" && move.build ? move.to : null;
    this.cursor = move.build ?? move.to;
    this.pointing = "keyboard";
    this.#changed();
  }

  #changed() {
    this.refused = null;
    this.#drawTools();
    this.changed();
  }

  get note() {
    if (!this.active) return null;
    if (this.refused) return { text: this.refused, kind: "bad" };
    if (this.#step === "place") return { text: "Place a worker on any free cell.", kind: "info" };
    const text = { worker: "Choose one of your workers.", to: "Choose a cell to move to, at most one level up.", build: "Choose a cell to build on. Esc cancels the move." }[this.#step];
    return { text, kind: "info" };
  }

  #drawTools() {
    if (!this.active || this.game.view.placing) {
      render(this.tools);
      return;
    }
    const at = { worker: 0, to: 1, build: 2 }[this.#step];
    render(
      this.tools,
      h("ol.step-list", {}, STEPS.map((text, index) => h("li", { className: index < at ? "done" : index === at ? "current" : "", "aria-current": index === at ? "step" : null }, text))),
      this.worker !== null && h("button.quiet", { title: "Back (Esc)", dataset: { focus: "tool-back" }, onclick: () => this.act("cancel") }, icon("undo"), "Back"),
    );
  }
}

// The directions of actions in their order: NW, N, NE, W, E, SW, S, SE, with y up.
const DIRECTIONS = [[-1, 1], [0, 1], [1, 1], [-1, 0], [1, 0], [-1, -1], [0, -1], [1, -1]];
