// Positions of the polyomino games: the pieces of each colour.

import { api } from "../api.js";
import { h } from "../dom.js";
import { icon } from "../icons.js";
import { plural, t } from "../language.js";
import { cellName } from "../boards/area.js";
import { extent, Orientations, sizedPiece } from "../boards/pieces.js";
import { colorSwatch } from "../seats.js";
import { PIECES } from "../render/tilewe-game.js";
import { PositionEditor } from "./base.js";

const named = (name) => t(name).charAt(0).toUpperCase() + t(name).slice(1);
const same = (a, b) => String(a) === String(b);
const textOf = (cells) => cells.map(cellName).join();
const cellsOf = (text) => text.split(",").map(cellOf);

function cellOf(name) {
  const [, letters, digits] = name.match(/^([a-z]+)(\d+)$/);
  return [26 * (letters.length - 1) + letters.charCodeAt(letters.length - 1) - 97, Number(digits) - 1];
}

export class PolyominoEditor extends PositionEditor {
  color = 0; // index of the colour whose pieces are put

  constructor(page, blank) {
    super(page, blank);
    this.orientations = new Orientations(blank.orientations);
    this.orientation = this.orientations.first(this.orientations.pieces.at(-1));
    this.names = blank.view.colors.map(({ name }) => name);
    this.starts = [blank.view.start_cells];
  }

  /** Request the start cells of the other colours. */
  async prepare({ game, options }) {
    const views = this.names.slice(1).map((name) => api.position({ game, options, position: { ...this.blank.position, current_color: name } }));
    for (const { view } of await Promise.all(views)) this.starts.push(view.start_cells);
  }

  load(facts) {
    super.load(facts);
    this.color = Math.max(0, this.names.indexOf(this.facts.current_color));
    this.#keepPiece();
  }

  fitted({ placed, current_color: color, out = [], monomino_last: last = [] }) {
    const { size } = this.blank.view;
    const fits = (text) => cellsOf(text).every((cell) => Math.max(...cell) < size);
    const own = Object.fromEntries(this.names.map((name) => [name, (placed[name] ?? []).filter(fits)]));
    const isLast = (name) => last.includes(name) && own[name].some((text) => cellsOf(text).length === 1);
    return { placed: own, current_color: this.names.includes(color) ? color : this.names[0], out: this.names.filter((name) => out.includes(name)), monomino_last: this.names.filter(isLast) };
  }

  #own(color = this.color) {
    return (this.facts.placed[this.names[color]] ??= []);
  }

  #pieceOf(cells) {
    const left = Math.min(...cells.map(([x]) => x));
    const bottom = Math.min(...cells.map(([, y]) => y));
    return this.orientations.byCells.get(cells.map(([x, y]) => [x - left, y - bottom]).map(String).sort().join(" "));
  }

  /** The piece on a cell: {color, text, orientation}, or undefined. */
  #at(cell) {
    for (const [color, name] of this.names.entries()) {
      for (const text of this.facts.placed[name] ?? []) {
        const cells = cellsOf(text);
        if (cells.some((each) => same(each, cell))) return { color, text, orientation: this.#pieceOf(cells) };
      }
    }
    return undefined;
  }

  /** The names of the pieces that a colour has not placed. */
  #left(color) {
    const placed = new Set(this.#own(color).map((text) => this.#pieceOf(cellsOf(text))?.piece));
    return this.orientations.pieces.filter((piece) => !placed.has(piece));
  }

  get view() {
    const { view } = this.blank;
    const cells = Array(view.size ** 2).fill(".");
    for (const [color] of this.names.entries()) {
      for (const text of this.#own(color)) for (const [x, y] of cellsOf(text)) cells[y * view.size + x] = String(color);
    }
    const isOpen = !this.#own().length || this.page.game === "duo";
    return { ...view, cells: cells.join(""), current_color: this.color, current_player: view.colors[this.color].player, terminal: false, start_cells: isOpen ? this.starts[this.color].filter(([x, y]) => cells[y * view.size + x] === ".") : [] };
  }

  /** The chosen piece at the cursor, kept on the board: {cells, free}, or null. */
  get #ghost() {
    const { cursor } = this.page;
    if (!cursor || !this.orientation) return null;
    const { size } = this.blank.view;
    const [width, height] = extent(this.orientation.cells);
    const x = Math.max(0, Math.min(size - width, cursor[0] - ((width - 1) >> 1)));
    const y = Math.max(0, Math.min(size - height, cursor[1] - (height >> 1)));
    const cells = this.orientation.cells.map(([dx, dy]) => [x + dx, y + dy]);
    return { cells, free: cells.every((cell) => !this.#at(cell)) };
  }

  get mayPut() {
    return Boolean(this.#ghost?.free);
  }

  marks(cursor) {
    const ghost = cursor && !(this.page.pointing === "mouse" && this.#at(cursor)) ? this.#ghost : null;
    if (!ghost) return cursor && this.#at(cursor) ? { hover: cursor } : {};
    return { ghost: { cells: ghost.cells, color: String(this.color), legal: ghost.free } };
  }

  describe(cell) {
    const at = this.#at(cell);
    return `${cellName(cell)}, ${at ? `${at.orientation?.piece} ${named(this.names[at.color])}` : t("free")}`;
  }

  press(cell, isTouch) {
    if (this.#at(cell)) this.#remove(cell);
    else if (!isTouch) this.#put();
    else this.page.update();
  }

  #remove(cell) {
    const at = this.#at(cell);
    if (!at) return;
    this.change(() => {
      this.facts.placed[this.names[at.color]] = this.#own(at.color).filter((text) => text !== at.text);
      this.color = at.color;
      if (at.orientation) this.orientation = at.orientation;
      this.facts.monomino_last = (this.facts.monomino_last ?? []).filter((name) => name !== this.names[at.color]);
    });
  }

  #put() {
    const ghost = this.#ghost;
    if (!ghost?.free) return;
    this.change(() => {
      this.#own().push(textOf(ghost.cells));
      const name = this.names[this.color];
      // The order of the pieces is unknown but for the last one.
      this.facts.monomino_last = [...(this.facts.monomino_last ?? []).filter((other) => other !== name), ...(ghost.cells.length === 1 ? [name] : [])];
      this.#keepPiece();
    });
  }

  /** Choose another piece if the chosen one is on the board. */
  #keepPiece() {
    const left = this.#left(this.color);
    if (this.orientation && left.includes(this.orientation.piece)) return;
    const order = this.orientations.pieces;
    const from = this.orientation ? order.indexOf(this.orientation.piece) : order.length;
    const piece = left.findLast((each) => order.indexOf(each) < from) ?? left.at(-1);
    this.orientation = piece ? this.orientations.first(piece) : null;
  }

  act(name) {
    const { orientation } = this;
    if (name === "place") {
      if (this.page.cursor && this.#at(this.page.cursor)) this.#remove(this.page.cursor);
      else this.#put();
    } else if (name === "remove") this.#remove(this.page.cursor);
    else if (name === "cancel") this.page.cursor = null;
    else if (!orientation) return;
    else if (name === "next" || name === "previous") {
      const left = this.#left(this.color);
      const index = left.indexOf(orientation.piece);
      this.orientation = this.orientations.first(left[(index + (name === "next" ? 1 : -1) + left.length) % left.length]);
    } else this.orientation = this.orientations.turned(orientation, name);
    this.page.update();
  }

  tools() {
    if (!this.orientation) return null;
    return [
      this.tool("previous", "Previous piece (P)", "previous"),
      this.tool("left", "Rotate left (Shift+R)", "rotateLeft"),
      h("span.chosen", { ariaHidden: "true" }, sizedPiece(this.orientation.cells, this.color)),
      this.tool("right", "Rotate right (R)", "rotateRight"),
      this.tool("flip", "Flip (F)", "flip"),
      this.tool("next", "Next piece (N)", "next"),
      h("button.primary.place", { disabled: !this.mayPut, dataset: { focus: "tool-place" }, onclick: () => this.act("place") }, icon("check"), "Put"),
    ];
  }

  trays() {
    const left = new Set(this.#left(this.color));
    const chosen = this.orientation?.piece;
    const title = t`Pieces of ${t(this.names[this.color])}`;
    return h(
      "section.tray-area",
      { ariaLabel: "Pieces" },
      this.radios("color", "Put pieces of", this.names.map((name, index) => [index, [colorSwatch(name), named(name)]]), this.color, (color) => {
        this.color = color;
        this.#keepPiece();
        this.page.update();
      }),
      h(
        "div.tray.current",
        {},
        h("h2.tray-title", {}, title, h("span.muted", {}, t`${left.size} left`)),
        h(
          "div.tray-pieces",
          { role: "radiogroup", ariaLabel: title },
          this.orientations.pieces.map((piece) => {
            const shown = piece === chosen ? this.orientation.cells : PIECES[piece];
            if (!left.has(piece)) return h("span.piece.used", { ariaHidden: "true" }, sizedPiece(shown, this.color));
            return h(
              "button.piece",
              { role: "radio", ariaChecked: String(piece === chosen), ariaLabel: `${piece}, ${plural(shown.length, "cell")}`, title: piece, dataset: { focus: `piece-${piece}`, piece }, onclick: () => { this.orientation = this.orientations.first(piece); this.page.update(); } },
              sizedPiece(shown, this.color),
            );
          }),
        ),
      ),
    );
  }

  movers() {
    return this.radios("mover", "Who is to move", this.names.map((name) => [name, [colorSwatch(name), named(name)]]), this.facts.current_color, (name) => this.change(() => (this.facts.current_color = name)));
  }

  moverName(view) {
    return named(view.colors[view.current_color].name);
  }

  facts_() {
    const out = new Set(this.facts.out ?? []);
    const set = (name, is) => this.change(() => (this.facts.out = this.names.filter((each) => (each === name ? is : out.has(each)))));
    return h(
      "details.more",
      { open: this.open, ontoggle: (event) => (this.open = event.target.open) },
      h("summary", { dataset: { focus: "editor-out" } }, "Who does not move any more"),
      this.names.map((name) => h("label.switch", {}, h("input", { type: "checkbox", checked: out.has(name), dataset: { focus: `out-${name}` }, onchange: (event) => set(name, event.target.checked) }), h("span", {}, named(name), h("small.muted", {}, "has passed for the rest of the game")))),
    );
  }
}
