// Triominos: trays, the tile at a free cell, drawing and passing.

import { h, render, signed } from "../dom.js";
import { icon } from "../icons.js";
import { listed, message, plural, t } from "../language.js";
import { boundsOf, tileSvg } from "../render/tilewe-game.js";
import { swatch } from "../seats.js";
import { BoardArea } from "./area.js";

const same = (a, b) => String(a) === String(b);
const corner = ([x, y]) => `${x.toFixed(3)} ${y.toFixed(3)}`;

const spaced = (tile) => [...tile].join("-");

/** The numbers of a tile in the order of a cell's points, for each of its three rotations. */
export function rotations(tile, points) {
  const [[ax, ay], [bx, by], [cx, cy]] = points;
  const clockwise = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax) > 0; // y points down
  const numbers = [...tile].map(Number);
  return [0, 1, 2].map((turn) => {
    const turned = [0, 1, 2].map((index) => numbers[(index + turn) % 3]);
    return clockwise ? turned : [turned[0], turned[2], turned[1]];
  });
}

export class TriominosBoard extends BoardArea {
  tile = null;
  turn = null; // rotation chosen by the user at the current cell, or null

  constructor(table) {
    super(table);
    this.tray = h("section.tray-area", { ariaLabel: "Tiles" });
    this.tools = h("div.tools", { role: "toolbar", ariaLabel: "The tile, the pile and passing" });
  }

  get hand() {
    const tray = this.game.view?.trays?.[this.game.you];
    return Array.isArray(tray) ? tray : [];
  }

  get #placements() {
    return this.game.yourTurn && this.game.live ? this.game.legal.filter(({ kind }) => kind === "place") : [];
  }

  #word(kind) {
    return this.active ? this.game.legal.find((move) => move.kind === kind) : undefined;
  }

  update() {
    if (!this.hand.includes(this.tile) || (this.seen !== this.game.last && !this.#targets.length)) {
      // The tile of the placement with the most points.
      const best = this.#placements.reduce((a, b) => (!a || b.gain > a.gain ? b : a), null);
      this.tile = best?.tile ?? (this.hand.includes(this.tile) ? this.tile : this.hand[0]) ?? null;
    }
    if (this.seen !== this.game.last) {
      this.seen = this.game.last;
      this.turn = null;
      if (this.cursor && !this.#free(this.cursor)) this.cursor = null;
    }
    this.#drawTray();
    this.#drawTools();
    this.redraw();
  }

  // ---- The frontier

  #free(cell) {
    return this.game.view.frontier.find((free) => same(free.cell, cell));
  }

  cellAt(event) {
    const cell = super.cellAt(event);
    return cell && this.#free(cell) ? cell : null;
  }

  /** The nearest free cell in a direction. */
  step([dx, dy]) {
    const center = ({ points }) => [0, 1].map((axis) => points.reduce((sum, point) => sum + point[axis], 0) / 3);
    const { frontier } = this.game.view;
    const from = this.cursor && this.#free(this.cursor);
    if (!from) return (this.#targets[0] ?? frontier[0])?.cell ?? null;
    const [x, y] = center(from);
    let nearest = null;
    let least = Infinity;
    for (const free of frontier) {
      const [a, b] = center(free);
      const along = (a - x) * dx - (b - y) * dy; // y points down in the plane
      const aside = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
      const distance = along + 2 * aside;
      if (along > 0.05 && distance < least) [nearest, least] = [free.cell, distance];
    }
    return nearest ?? this.cursor;
  }

  /** The legal placements of the chosen tile. */
  get #targets() {
    return this.#placements.filter(({ tile }) => tile === this.tile);
  }

  /** The chosen tile at the cursor: {points, numbers, legal, move}, or null. */
  get ghost() {
    const free = this.cursor && this.#free(this.cursor);
    if (!free || !this.tile || !this.active) return null;
    const here = this.#targets.filter(({ cell }) => same(cell, free.cell));
    const turns = rotations(this.tile, free.points);
    const fits = (numbers) => here.find((move) => same(move.numbers, numbers));
    const turn = this.turn ?? Math.max(0, turns.findIndex(fits));
    const numbers = turns[turn];
    const move = fits(numbers);
    return { points: free.points, cell: free.cell, numbers, legal: Boolean(move), move, turn };
  }

  decoration() {
    // The bounds always include the frontier, so that the board does not jump between turns.
    const marks = { bounds: boundsOf(this.game.view, true), frontier: this.active };
    if (this.active) marks.legal = this.#targets.map(({ cell }) => cell);
    const ghost = this.ghost;
    if (ghost) marks.ghost = { points: ghost.points, cell: ghost.cell, numbers: ghost.numbers, legal: ghost.legal };
    return marks;
  }

  pieceOf(move) {
    return move.cell ? this.svg.querySelector(`.tilewe-tile[data-cell="${move.cell}"]`) : null;
  }

  hover() {
    this.turn = null;
    if (this.pointing === "keyboard") this.table.say(this.note?.text ?? "Free cell");
  }

  /** The reason why the tile does not fit in its rotation. */
  #mismatch(ghost) {
    const shown = new Map();
    for (const { points, numbers } of this.game.view.tiles) points.forEach((point, index) => shown.set(corner(point), numbers[index]));
    const wrong = ghost.points.flatMap((point, index) => {
      const neighbour = shown.get(corner(point));
      return neighbour !== undefined && neighbour !== ghost.numbers[index] ? [t`${ghost.numbers[index]} would meet ${neighbour}`] : [];
    });
    if (wrong.length) return t`${spaced(this.tile)} does not fit: ${listed(wrong)}.`;
    return t`${spaced(this.tile)} cannot be placed here.`;
  }

  get note() {
    const { game } = this;
    if (!this.active || game.over) return null;
    const ghost = this.ghost;
    if (ghost?.legal) {
      const { gain, reason } = ghost.move;
      return { text: t`${spaced(this.tile)} fits here: ${signed(gain)} points${reason ? `, ${message(reason)}` : ""}.`, kind: "good" };
    }
    if (ghost) return { text: this.#mismatch(ghost), kind: "bad" };
    if (this.#targets.length) return { text: t`${spaced(this.tile)} fits in ${plural(new Set(this.#targets.map(({ cell }) => String(cell))).size, "place")}, marked on the board.`, kind: "info" };
    if (this.#placements.length) return { text: t`${spaced(this.tile)} fits nowhere now. Choose one of the bright tiles.`, kind: "info" };
    if (this.#word("draw")) return { text: "No tile fits. Draw a tile.", kind: "info" };
    return { text: "No tile fits, and you cannot draw another one. Pass.", kind: "info" };
  }

  // ---- Acting

  pick(cell, pointer) {
    if (pointer !== "touch") this.#place();
  }

  #place() {
    const ghost = this.ghost;
    if (!ghost) return;
    if (ghost.legal) this.table.submit(ghost.move.id);
    else this.table.say(this.#mismatch(ghost));
  }

  select(tile) {
    this.tile = tile;
    this.turn = null;
    this.#changed();
    if (this.pointing === "keyboard") this.table.say(`${[...tile].join(" ")}, ${t(this.note?.text ?? "")}`);
  }

  command(name) {
    if (name === "draw" || name === "pass") {
      const move = this.#word(name);
      if (!move) this.table.say(name === "draw" ? "You cannot draw a tile now" : "You cannot pass while you can place or draw a tile");
      else this.table.submit(move.id);
    } else if (name === "place") {
      if (!this.cursor) this.act("find");
      else this.#place();
    } else if (name === "right" || name === "left") {
      const ghost = this.ghost;
      if (!ghost) return true;
      this.turn = (ghost.turn + (name === "right" ? 2 : 1)) % 3;
      this.#changed();
      if (this.pointing === "keyboard") this.table.say(this.note?.text ?? "");
    } else if (name === "next" || name === "previous") {
      const { hand } = this;
      if (hand.length) this.select(hand[(hand.indexOf(this.tile) + (name === "next" ? 1 : -1) + hand.length) % hand.length]);
    } else if (name === "find" || name === "findBack") {
      const cells = [...new Map(this.#targets.map(({ cell }) => [String(cell), cell])).values()];
      if (!cells.length) {
        this.table.say(t`${spaced(this.tile)} fits nowhere now`);
        return true;
      }
      const index = cells.findIndex((cell) => same(cell, this.cursor));
      this.cursor = cells[index < 0 ? 0 : (index + (name === "find" ? 1 : -1) + cells.length) % cells.length];
      this.pointing = "keyboard";
      this.hover();
      this.#changed();
    } else if (name === "why") this.table.say(this.note?.text ?? "");
    else if (name === "cancel") {
      this.cursor = null;
      this.#changed();
    } else return false;
    return true;
  }

  suggest(move) {
    if (move.kind !== "place") return;
    this.tile = move.tile;
    this.cursor = move.cell;
    this.turn = null;
    this.pointing = "keyboard";
    this.#changed();
  }

  #changed() {
    this.#drawTray();
    this.#drawTools();
    this.changed();
  }

  changed() {
    const place = this.tools.querySelector(".place");
    if (place) place.disabled = !this.ghost?.legal;
    super.changed();
  }

  // ---- Trays and tools

  #drawTray() {
    const { game } = this;
    const { view } = game;
    if (!view) return;
    const fitting = new Set(this.#placements.map(({ tile }) => tile));
    const { hand } = this;
    const title = game.shared ? t`${game.nameOf(game.you)}: tiles` : t("Your tiles");
    const own =
      game.you !== null &&
      h(
        "div.tray",
        { className: this.active ? "current" : "waiting" },
        h("h2.tray-title", {}, title, h("span.muted", {}, plural(hand.length, "tile"))),
        h(
          "div.tray-tiles",
          { role: "radiogroup", ariaLabel: `${title}, ${hand.length}`, onkeydown: (event) => this.#trayKey(event) },
          hand.map((tile) =>
            h(
              "button.tile",
              {
                role: "radio",
                className: fitting.has(tile) ? "fits" : "",
                ariaChecked: String(tile === this.tile),
                ariaLabel: `${[...tile].join(" ")}${fitting.has(tile) ? t(", fits") : ""}`,
                tabIndex: tile === this.tile ? 0 : -1,
                dataset: { focus: `tile-${tile}`, tile },
                onclick: () => this.select(tile),
              },
              tileSvg(tile, {}),
            ),
          ),
        ),
      );
    const others = view.trays.map((tray, seat) => ({ tray, seat })).filter(({ seat }) => seat !== game.you);
    render(
      this.tray,
      own,
      h(
        "div.small-trays",
        {},
        others.map(({ tray, seat }) => {
          const hidden = typeof tray === "number";
          const count = hidden ? tray : tray.length;
          return h(
            "div.small-tray",
            {},
            h("h3.tray-title", {}, swatch(view, seat), game.nameOf(seat), h("span.muted", {}, plural(count, "tile"))),
            h(
              "div.tray-tiles",
              { role: "img", ariaLabel: hidden ? t`${count} hidden tiles` : t`Tiles: ${tray.join(", ")}` },
              hidden ? Array.from({ length: count }, () => h("span.back", {})) : tray.map((tile) => h("span.tile", {}, tileSvg(tile, {}))),
            ),
          );
        }),
        h("p.pile", {}, h("span.back", {}), t`${plural(view.pile, "tile")} in the pile`),
      ),
    );
  }

  #trayKey(event) {
    const step = { ArrowRight: "next", ArrowDown: "next", ArrowLeft: "previous", ArrowUp: "previous" }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.act(step);
    this.tray.querySelector('[aria-checked="true"]')?.focus();
  }

  #drawTools() {
    const { game } = this;
    if (game.you === null || game.over || !game.live) {
      render(this.tools);
      return;
    }
    const draw = this.#word("draw");
    const pass = this.#word("pass");
    const tool = (name, title, picture) => h("button.tool", { ariaLabel: title, title, dataset: { focus: `tool-${name}` }, onclick: () => this.act(name) }, icon(picture));
    render(
      this.tools,
      tool("left", "Rotate left (Shift+R)", "rotateLeft"),
      tool("right", "Rotate right (R)", "rotateRight"),
      h("button.primary.place", { disabled: !this.ghost?.legal, dataset: { focus: "tool-place" }, onclick: () => this.act("place") }, icon("check"), "Place"),
      h("button", { disabled: !draw, title: "Draw (D)", dataset: { focus: "tool-draw" }, onclick: () => this.act("draw") }, "Draw", h("span.price", {}, signed(draw?.gain ?? -5))),
      h("button", { disabled: !pass, title: "Pass (X)", dataset: { focus: "tool-pass" }, onclick: () => this.act("pass") }, "Pass", h("span.price", {}, signed(pass?.gain ?? -10))),
    );
  }
}
