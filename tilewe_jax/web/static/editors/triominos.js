// Positions of Triominos: tiles on the table, trays, and points.

import { h } from "../dom.js";
import { icon } from "../icons.js";
import { plural, t } from "../language.js";
import { rotations } from "../boards/triominos.js";
import { boundsOf, tileSvg } from "../render/tilewe-game.js";
import { swatch } from "../seats.js";
import { PositionEditor } from "./base.js";

const ORIENTATIONS = ["ABC", "ACB", "CAB", "CBA", "BCA", "BAC"]; // those with an even index face up
const HEIGHT = Math.sqrt(3) / 2;
const same = (a, b) => String(a) === String(b);
const facesUp = ([x, y]) => (x + y) % 2 === 0;
const neighbours = ([x, y]) => [[x + 1, y], [x, facesUp([x, y]) ? y + 1 : y - 1], [x - 1, y]];

function pointsOf([x, y]) {
  const [base, apex] = facesUp([x, y]) ? [y + 1, y] : [y, y + 1];
  return [[x, base], [x + 1, apex], [x + 2, base]].map(([u, v]) => [u / 2, v * HEIGHT]);
}

function read(name) {
  const [, tile, orientation, x, y] = name.match(/^(\d{3})-([ABC]{3})@(-?\d+),(-?\d+)$/);
  const cell = [Number(x), Number(y)];
  return { name, tile, cell, points: pointsOf(cell), numbers: [...orientation].map((letter) => Number(tile["ABC".indexOf(letter)])) };
}

function nameOf(tile, numbers, cell) {
  const orientation = ORIENTATIONS.find((each, index) => (index % 2 === 0) === facesUp(cell) && same([...each].map((letter) => Number(tile["ABC".indexOf(letter)])), numbers));
  return `${tile}-${orientation}@${cell}`;
}

export class TriominosEditor extends PositionEditor {
  tile = null;
  turn = 0;

  constructor(page, blank) {
    super(page, blank);
    const { trays, pile } = blank.position;
    this.all = [...trays.flat(), ...pile].sort((a, b) => a[2] - b[2] || a[1] - b[1] || a[0] - b[0]);
    this.load(blank.position);
  }

  /** The pile has all tiles that are neither on the table nor in trays, in an order that the server draws. */
  load(facts) {
    super.load(facts);
    for (const name of ["pile", "seed"]) delete this.facts[name];
    this.#keepTile();
  }

  adopt(facts) {
    super.adopt(facts);
    this.#centre();
  }

  fitted({ placed, trays, current_player: player, points = [], draws = 0, passes = 0, round = 0 }) {
    const { all } = this;
    const blank = this.blank.position.trays;
    const kept = placed.filter((name) => all.includes(read(name).tile));
    const used = new Set([...kept.map((name) => read(name).tile), ...trays.flat()]);
    // Further players get the tiles that they would have at the start.
    const own = blank.map((dealt, index) => (trays[index] ?? dealt.filter((tile) => !used.has(tile))).filter((tile) => all.includes(tile)));
    return { placed: kept, trays: own, current_player: Math.min(player, own.length - 1), points: own.map((_, index) => points[index] ?? 0), draws, passes: Math.min(passes, own.length), round };
  }

  clear() {
    this.load(this.blank.position);
  }

  get #placed() {
    return this.facts.placed.map(read);
  }

  get #pile() {
    const used = new Set([...this.#placed.map(({ tile }) => tile), ...this.facts.trays.flat()]);
    return this.all.filter((tile) => !used.has(tile));
  }

  #keepTile() {
    const movable = [...this.facts.trays.flat(), ...this.#pile];
    if (!movable.includes(this.tile)) this.tile = this.#pile[0] ?? movable[0] ?? null;
  }

  get view() {
    const placed = this.#placed;
    const taken = new Set(placed.map(({ cell }) => String(cell)));
    const free = new Map(placed.flatMap(({ cell }) => neighbours(cell)).filter((cell) => !taken.has(String(cell))).map((cell) => [String(cell), cell]));
    const frontier = (placed.length ? [...free.values()] : [[0, 0]]).map((cell) => ({ cell, points: pointsOf(cell) }));
    return { ...this.blank.view, tiles: placed, frontier, trays: this.facts.trays, pile: this.#pile.length, scores: this.facts.points ?? this.blank.view.scores, current_player: this.facts.current_player, terminal: false };
  }

  #turned(points) {
    return rotations(this.tile, points)[this.turn % 3];
  }

  /** The numbers in the rotation that matches the neighbours, otherwise in the chosen rotation. */
  #numbersAt(cell) {
    const known = new Map(this.#placed.flatMap(({ points, numbers }) => points.map((point, index) => [point.map((u) => u.toFixed(3)).join(), numbers[index]])));
    const points = pointsOf(cell);
    const fits = (numbers) => points.every((point, index) => [undefined, numbers[index]].includes(known.get(point.map((u) => u.toFixed(3)).join())));
    const chosen = this.#turned(points);
    if (fits(chosen)) return { numbers: chosen, fits: true };
    const other = rotations(this.tile, points).find(fits);
    return { numbers: other ?? chosen, fits: other !== undefined };
  }

  #free(cell) {
    return cell && this.view.frontier.find((free) => same(free.cell, cell));
  }

  get mayPut() {
    return Boolean(this.tile && this.#free(this.page.cursor));
  }

  marks(cursor) {
    const { view } = this;
    const marks = { bounds: boundsOf(view, true), frontier: true };
    const free = this.#free(cursor);
    if (!free || !this.tile) return marks;
    const { numbers, fits } = this.#numbersAt(free.cell);
    return { ...marks, ghost: { points: free.points, cell: free.cell, numbers, legal: fits } };
  }

  step(cursor, [dx, dy]) {
    const cells = [...this.view.frontier, ...this.view.tiles].map(({ cell }) => cell);
    const from = cells.find((cell) => same(cell, cursor));
    if (!from) return this.view.frontier[0]?.cell ?? cells[0] ?? null;
    const distance = ([x, y]) => {
      const along = ((x - from[0]) / 2) * dx - (y - from[1]) * dy;
      return along > 0.2 ? along + 2 * (Math.abs(((x - from[0]) / 2) * dy) + Math.abs((y - from[1]) * dx)) : Infinity;
    };
    const best = cells.reduce((a, b) => (distance(b) < distance(a) ? b : a), from);
    return distance(best) < Infinity ? best : from;
  }

  describe(cell) {
    const placed = this.#placed.find((each) => same(each.cell, cell));
    if (placed) return [...placed.tile].join(" ");
    return this.tile ? t`free cell, ${[...this.tile].join(" ")} ${this.#numbersAt(cell).fits ? t("fits") : t("does not fit")}` : t("free cell");
  }

  press(cell, isTouch) {
    if (this.#placed.some((each) => same(each.cell, cell))) this.#remove(cell);
    else if (!isTouch) this.#put();
    else this.page.update();
  }

  #remove(cell) {
    const placed = this.#placed.find((each) => same(each.cell, cell));
    if (!placed) return;
    this.change(() => {
      this.facts.placed = this.facts.placed.filter((name) => name !== placed.name);
      this.tile = placed.tile;
      this.#centre();
    });
  }

  /** Move the figure so that a tile lies on (0, 0), where the rules begin; a single tile is turned for that. */
  #centre() {
    const placed = this.#placed;
    if (!placed.length || placed.some(({ cell }) => same(cell, [0, 0]))) return;
    const up = placed.find(({ cell }) => facesUp(cell));
    const moved = ({ name, cell: [x, y] }) => name.replace(/@.*/, `@${x - up.cell[0]},${y - up.cell[1]}`);
    this.facts.placed = up ? placed.map(moved) : [`${placed[0].tile}-ABC@0,0`];
    this.page.cursor = null;
  }

  #put() {
    const free = this.#free(this.page.cursor);
    if (!free || !this.tile) return;
    const { numbers } = this.#numbersAt(free.cell);
    this.change(() => {
      this.#take(this.tile);
      this.facts.placed.push(nameOf(this.tile, numbers, free.cell));
      this.#keepTile();
    });
  }

  /** Remove a tile from the trays. */
  #take(tile) {
    this.facts.trays = this.facts.trays.map((tray) => tray.filter((other) => other !== tile));
  }

  /** Give a tile to a player, or to the pile for null. */
  #give(tile, player) {
    this.change(() => {
      this.#take(tile);
      if (player !== null) this.facts.trays[player].push(tile);
    });
  }

  act(name) {
    const movable = [...this.facts.trays.flat(), ...this.#pile];
    if (name === "place") {
      if (this.#free(this.page.cursor)) this.#put();
      else this.#remove(this.page.cursor);
      return;
    }
    if (name === "remove") return void this.#remove(this.page.cursor);
    if (name === "right" || name === "left") this.turn += name === "right" ? 2 : 1;
    else if ((name === "next" || name === "previous") && movable.length) this.tile = movable[(movable.indexOf(this.tile) + (name === "next" ? 1 : -1) + movable.length) % movable.length];
    else if (name === "cancel") this.page.cursor = null;
    this.page.update();
  }

  tools() {
    const owner = this.tile ? this.facts.trays.findIndex((tray) => tray.includes(this.tile)) : -1;
    return [
      this.tool("left", "Rotate left (Shift+R)", "rotateLeft"),
      this.tool("right", "Rotate right (R)", "rotateRight"),
      h("button.primary.place", { disabled: !this.mayPut, dataset: { focus: "tool-place" }, onclick: () => this.act("place") }, icon("check"), "Put"),
      this.tile &&
        h(
          "label.field",
          {},
          h("span", {}, t`${[...this.tile].join("-")} is in`),
          h(
            "select",
            { dataset: { focus: "editor-owner" }, onchange: (event) => this.#give(this.tile, event.target.value === "" ? null : Number(event.target.value)) },
            h("option", { value: "", selected: owner < 0 }, "the pile"),
            this.facts.trays.map((_, player) => h("option", { value: player, selected: player === owner }, t`tray ${player + 1}`)),
          ),
        ),
    ];
  }

  trays() {
    const tray = (title, tiles, mark, focus) =>
      h(
        "div.tray.waiting",
        {},
        h("h2.tray-title", {}, mark, title, h("span.muted", {}, plural(tiles.length, "tile"))),
        h(
          "div.tray-tiles",
          { role: "radiogroup", ariaLabel: title },
          tiles.map((tile) => h("button.tile", { role: "radio", ariaChecked: String(tile === this.tile), ariaLabel: [...tile].join(" "), title: [...tile].join("-"), dataset: { focus: `${focus}-${tile}`, tile }, onclick: () => { this.tile = tile; this.turn = 0; this.page.update(); } }, tileSvg(tile, {}))),
        ),
      );
    return h(
      "section.tray-area",
      { ariaLabel: "Tiles" },
      this.facts.trays.map((tiles, player) => tray(t`Tray of player ${player + 1}`, tiles, swatch(this.view, player), `tray${player}`)),
      tray(t("Pile"), this.#pile, null, "pile"),
    );
  }

  movers() {
    const names = this.facts.trays.map((_, player) => [player, [swatch(this.view, player), t`Player ${player + 1}`]]);
    return this.radios("mover", "Who is to move", names, this.facts.current_player, (player) => this.change(() => { this.facts.current_player = player; delete this.facts.starter; }));
  }

  moverName(view) {
    return t`Player ${view.current_player + 1}`;
  }

  facts_() {
    const points = this.facts.points ?? this.facts.trays.map(() => 0);
    const number = (label, value, least, most, set, focus) => h("label.field", {}, h("span", {}, label), h("input", { type: "number", min: least, max: most, value, dataset: { focus }, onchange: (event) => event.target.checkValidity() && this.change(() => set(Number(event.target.value))) }));
    return h(
      "fieldset.numbers",
      {},
      h("legend", {}, "Points and turns"),
      points.map((value, player) => number(t`Points of player ${player + 1}`, value, -100_000, 100_000, (given) => (this.facts.points = points.map((old, each) => (each === player ? given : old))), `points-${player}`)),
      number("Tiles drawn in this turn", this.facts.draws ?? 0, 0, 3, (given) => (this.facts.draws = given), "draws"),
      number("Passes in a row", this.facts.passes ?? 0, 0, points.length, (given) => (this.facts.passes = given), "passes"),
    );
  }
}
