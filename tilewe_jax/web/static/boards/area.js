// Base class of boards: drawing, cursor, pointer and keys.

import { boardSvg, cellAt } from "../render/tilewe-game.js";
import { h } from "../dom.js";
import { arrive } from "../motion.js";

const DRAG = 8; // pixels after which a touch is a drag

/**
 * The board of a game with a cursor. Subclasses handle cells (`pick`, `hover`), add marks (`decoration`), and handle keys besides
 * the arrow keys (`command`).
 *
 * `table` is the view of the game: {game, submit(action), explain(action), say(text), changed()}.
 */
export class BoardArea {
  cursor = null; // [x, y], or null
  dragged = false; // whether the current touch is a drag
  pointing = null; // type of the pointer that moved the cursor last; "keyboard" for keys

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

  /** Whether the user may move in the position on display. */
  get active() {
    return this.game.yourTurn && this.game.live && !this.table.busy;
  }

  /** The view to draw; a subclass may show an incomplete turn. */
  get view() {
    return this.game.view;
  }

  // ---- For subclasses

  decoration() {
    return {};
  }

  hover() {}

  pick() {}

  command() {
    return false;
  }

  /** Remove the cursor after the pointer has left the board. */
  left() {
    if (this.pointing !== "mouse") return;
    this.cursor = null;
    this.changed();
  }

  /** Update after a change of the game. */
  update() {
    this.redraw();
  }

  // ---- Drawing

  /** Draw in the next frame. */
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
      // A ghost at the cursor replaces its mark.
      ...(keyboard && this.cursor && !decoration.ghost ? { cursor: this.cursor } : {}),
    });
    this.element.replaceChildren(this.svg);
    this.#arrive();
  }

  #arrive() {
    const { lastMove, arrivedAt, live, you, shared } = this.game;
    if (arrivedAt === null || !live || !lastMove) return;
    const isOwn = lastMove.player === you && !shared; // it was already seen in its place
    const piece = isOwn ? null : this.pieceOf(lastMove);
    arrive(performance.now() - arrivedAt, this.svg.querySelectorAll(".tilewe-last"), piece, piece && this.origin(lastMove, piece));
  }

  /** The drawn piece of the last move, or null. */
  pieceOf() {
    return null;
  }

  /** The offset from which a piece slides into place: from the edge of the board that is nearest. */
  origin(move, piece) {
    const { width, height } = this.svg.viewBox.baseVal;
    const box = piece.getBBox();
    const [x, y] = [box.x + box.width / 2 - width / 2, box.y + box.height / 2 - height / 2];
    const length = Math.hypot(x, y) || 1;
    return [(120 * x) / length, (120 * y) / length];
  }

  changed() {
    this.redraw();
    this.table.changed();
  }

  // ---- Pointer

  cellAt(event) {
    return this.svg ? cellAt(this.svg, event.clientX, event.clientY - this.lift(event)) : null;
  }

  /** Distance in pixels of a dragged piece above the pointer. */
  lift() {
    return 0;
  }

  #pointed(event) {
    if (event.pointerType === "touch") {
      if (!event.buttons || !this.pressedAt) return;
      // A tap selects its cell; only a drag moves the cursor.
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

  /** Handle a key; return whether the board uses it. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const moves = { ArrowLeft: "west", ArrowRight: "east", ArrowUp: "up", ArrowDown: "down" };
    const keys = { Enter: "place", " ": "place", Escape: "cancel", r: "right", R: "left", f: "flip", n: "next", p: "previous", l: "find", L: "findBack", e: "why", d: "draw", x: "pass" };
    const name = moves[event.key] ?? keys[event.key] ?? keys[event.key.toLowerCase()];
    return name ? this.act(name) : false;
  }

  /** Execute the command of a key or gamepad button. */
  act(name) {
    const step = { west: [-1, 0], east: [1, 0], up: [0, 1], down: [0, -1] }[name];
    if (!step) return this.command(name);
    this.pointing = "keyboard";
    this.cursor = this.step(step);
    this.hover();
    this.changed();
    return true;
  }

  /** The next cell of the cursor in a direction. */
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
