// What the boards of all games share: drawing, the cursor, and pointer and keys on it.

import { boardSvg, cellAt } from "../render/tilewe-game.js";
import { h } from "../dom.js";

const DRAG = 8; // pixels after which a finger drags

/**
 * The board of a game, with its cursor. A game's own class says what a cell means (`pick`, `hover`), what is drawn
 * (`decoration`) and which keys it has besides the arrows (`command`).
 *
 * `table` is the page about it: {game, submit(action), explain(action), say(text), changed()}.
 */
export class BoardArea {
  cursor = null; // [x, y]; null until the board is pointed at or gets the focus
  dragged = false; // whether a finger that is down has moved
  pointing = null; // the type of pointer that moved the cursor last, "keyboard" for keys

  constructor(table) {
    this.table = table;
    this.game = table.game;
    this.element = h("div.board", {
      tabIndex: 0,
      role: "application",
      ariaRoleDescription: "board",
      ariaLabel: this.label,
      dataset: { focus: "board" },
    });
    this.element.addEventListener("pointermove", (event) => this.#pointed(event));
    this.element.addEventListener("pointerdown", (event) => this.#pressed(event));
    this.element.addEventListener("pointerup", (event) => this.#released(event));
    this.element.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.left());
    this.element.addEventListener("blur", () => this.redraw());
    this.element.addEventListener("focus", () => this.redraw());
  }

  get label() {
    return "Board. Arrow keys move, Enter places, question mark lists all keys.";
  }

  /** Whether the user may act on what is shown. */
  get active() {
    return this.game.yourTurn && this.game.live && !this.table.busy;
  }

  /** The view to draw; a game may show a turn that is half made. */
  get view() {
    return this.game.view;
  }

  // ---- For a game's own class

  decoration() {
    return {};
  }

  hover() {}

  pick() {}

  command() {
    return false;
  }

  /** The pointer has left the board. */
  left() {
    if (this.pointing !== "mouse") return;
    this.cursor = null;
    this.changed();
  }

  /** New state of the game. */
  update() {
    this.redraw();
  }

  // ---- Drawing

  /** Draw soon, once for all that changes meanwhile. */
  redraw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw();
    });
  }

  draw() {
    if (!this.view) return;
    const keyboard = this.pointing === "keyboard" && this.game.yourTurn && this.game.live && document.activeElement === this.element;
    const decoration = this.decoration();
    if (this.view.size) this.element.dataset.size = this.view.size;
    this.svg = boardSvg(this.view, {
      coordinates: true,
      last: this.game.lastMove,
      ...this.table.marks(),
      ...decoration,
      // A piece at the cursor shows where it is.
      ...(keyboard && this.cursor && !decoration.ghost ? { cursor: this.cursor } : {}),
    });
    this.element.replaceChildren(this.svg);
  }

  changed() {
    this.redraw();
    this.table.changed();
  }

  // ---- Pointer

  cellAt(event) {
    return this.svg ? cellAt(this.svg, event.clientX, event.clientY - this.lift(event)) : null;
  }

  /** By how many pixels what is moved lies above the pointer. */
  lift() {
    return 0;
  }

  #pointed(event) {
    if (event.pointerType === "touch") {
      if (!event.buttons || !this.pressedAt) return;
      // A tap means the cell under it; only what is dragged from there would be hidden by the finger.
      this.dragged ||= Math.hypot(event.clientX - this.pressedAt[0], event.clientY - this.pressedAt[1]) > DRAG;
      if (!this.dragged) return;
    }
    this.#moveTo(event);
  }

  #moveTo(event) {
    const cell = this.cellAt(event);
    if (!cell) return event.pointerType === "mouse" ? this.left() : undefined;
    this.pointing = event.pointerType;
    if (String(cell) === String(this.cursor)) return undefined;
    this.cursor = cell;
    this.hover();
    this.changed();
    return undefined;
  }

  #pressed(event) {
    if (event.button) return;
    this.element.focus({ preventScroll: true });
    this.dragged = false;
    this.pressedAt = [event.clientX, event.clientY];
    if (event.pointerType === "touch") this.element.setPointerCapture?.(event.pointerId);
    this.#moveTo(event);
  }

  #released(event) {
    if (event.button) return;
    const cell = this.cellAt(event);
    this.dragged = false;
    if (cell && String(cell) === String(this.cursor)) this.pick(cell, event.pointerType);
  }

  // ---- Keys and gamepad

  /** Handle a key; gives whether it meant something here. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const moves = { ArrowLeft: "west", ArrowRight: "east", ArrowUp: "up", ArrowDown: "down" };
    const keys = { Enter: "place", " ": "place", Escape: "cancel", r: "right", R: "left", f: "flip", n: "next", p: "previous", l: "find", L: "findBack", e: "why", d: "draw", x: "pass" };
    const name = moves[event.key] ?? keys[event.key] ?? keys[event.key.toLowerCase()];
    return name ? this.act(name) : false;
  }

  /** Do what a key or a button of a gamepad says. */
  act(name) {
    const step = { west: [-1, 0], east: [1, 0], up: [0, 1], down: [0, -1] }[name];
    if (!step) return this.command(name);
    this.pointing = "keyboard";
    this.cursor = this.step(step);
    this.hover();
    this.changed();
    return true;
  }

  /** The cell that the cursor goes to. */
  step([dx, dy]) {
    const { size } = this.view;
    if (!this.cursor) return [size >> 1, size >> 1];
    const [x, y] = this.cursor;
    return [Math.max(0, Math.min(size - 1, x + dx)), Math.max(0, Math.min(size - 1, y + dy))];
  }
}

/** The name of a cell: c3. */
export function cellName([x, y]) {
  return `${x < 26 ? "" : "a"}${String.fromCharCode(97 + (x % 26))}${y + 1}`;
}
