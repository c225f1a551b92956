// Pictures of the rules, and marks on the board of a first game.

import { h, s } from "./dom.js";
import { boardSvg } from "./render/tilewe-game.js";

const COLORS = ["blue", "yellow"].map((name, player) => ({ name, player, score: 0, pieces: [], void: 0, out: false }));

/** A polyomino board of 5 x 5 cells, from its top row; "s" is a start cell. */
function polyomino(rows) {
  const cells = rows.split(" ").reverse().join("");
  const at = [...cells].flatMap((cell, index) => (cell === "s" ? [[index % 5, Math.floor(index / 5)]] : []));
  return { kind: "polyomino", num_players: 2, current_player: 0, current_color: 0, terminal: false, scores: [0, 0], size: 5, cells: cells.replaceAll("s", "."), colors: COLORS, empty: 0, start_cells: at, voluntary_pass: false };
}

function santorini(rows, workers) {
  return { kind: "santorini", num_players: 2, current_player: 0, terminal: false, scores: [0, 0], size: 3, heights: rows.split(" ").reverse().join(""), workers, placing: false, winner: null };
}

const H = Math.sqrt(3) / 2;
const HUB = [1, H];
const RIM = [[2, H], [1.5, 2 * H], [0.5, 2 * H], [0, H], [0.5, 0], [1.5, 0]]; // around the hub
const DIGITS = [1, 2, 4, 5, 0, 2];

/** Tiles of Triominos around a point that has the number 3: those with these indices, 0 to 5. */
function triominos(...indices) {
  const tiles = indices.map((index) => sector(index, DIGITS[index], DIGITS[(index + 1) % 6]));
  return { kind: "triominos", num_players: 2, current_player: 0, terminal: false, scores: [0, 0], tiles, frontier: [], trays: [0, 0], pile: 0, draws: 0, passes: 0, round: 0, target: null };
}

const sector = (index, first, second) => ({ cell: [index, 0], points: [HUB, RIM[index], RIM[(index + 1) % 6]], numbers: [3, first, second] });

const ALL = { bounds: [0, 0, 2, 2 * H] };

/** View, options and caption of each picture by kind of view. */
export const PICTURES = {
  polyomino: [
    [polyomino("..... ..... ..... ..... s...."), { ghost: { cells: [[0, 0], [0, 1], [1, 1]], legal: true } }, "The first piece covers a start cell."],
    [polyomino("..... ..... ..... 00... 0...."), { ghost: { cells: [[2, 2], [3, 2], [3, 3]], legal: true } }, "Each further piece touches your colour at a corner …"],
    [polyomino("..... ..... ..... 00... 0...."), { ghost: { cells: [[2, 1], [3, 1], [3, 2]], legal: false } }, "… and never along an edge."],
    [polyomino("..... 111.. ..... 00... 0...."), { ghost: { cells: [[2, 2], [3, 2], [3, 3]], legal: true } }, "Edges of other colours are free to touch."],
  ],
  santorini: [
    [santorini("000 010 000", [[0, 0], [2, 2], null, null]), { last: { from: [0, 0], to: [1, 1] }, legal: [[0, 1], [1, 0], [1, 1]] }, "Move one of your workers, at most one level up."],
    [santorini("000 110 000", [[1, 1], [2, 2], null, null]), { last: { to: [1, 1], build: [0, 1] } }, "Then build one level beside it."],
    [santorini("034 020 000", [[1, 1], [2, 0], null, null]), { last: { from: [1, 1], to: [1, 2] } }, "Step from the second level to the third, and you win. Nobody steps on a dome."],
  ],
  triominos: [
    [triominos(0, 1), { ...ALL, ghost: { ...sector(2, 4, 5), legal: true } }, "Along an edge, both numbers are the same."],
    [triominos(0, 1), { ...ALL, ghost: { ...sector(2, 1, 5), legal: false } }, "Here 1 would meet 4: the tile does not fit."],
    [triominos(0, 1, 2, 3, 4), { ...ALL, ghost: { ...sector(5, 2, 1), legal: true } }, "The sixth tile around a point completes a hexagon, for extra points."],
  ],
};

/** The rules of a kind of view as pictures. */
export function picturesOf(kind) {
  const pictures = PICTURES[kind];
  if (!pictures) return null;
  return h(
    "div.pictures",
    {},
    pictures.map(([view, options, caption]) => {
      const svg = boardSvg(view, { coordinates: false, ...options });
      svg.setAttribute("aria-hidden", "true"); // the caption says the same
      return h("figure", {}, svg, h("figcaption", {}, caption));
    }),
  );
}

/**
 * Marks on the drawn board of a polyomino game for players who do not know it: the word Start beside start cells, and a cross on
 * each closed cell. Cells are [x, y] with y upwards.
 */
export function markBoard(svg, size, starts, closed) {
  const ground = svg.querySelector(".tilewe-ground");
  const [left, top, edge] = [ground.x.baseVal.value + 3, ground.y.baseVal.value + 3, ground.width.baseVal.value - 6];
  const side = edge / size;
  const middle = ([x, y]) => [left + (x + 0.5) * side, top + (size - 0.5 - y) * side];
  const arm = 0.14 * side;
  const crosses = closed.map((cell) => {
    const [x, y] = middle(cell);
    return `M${x - arm} ${y - arm}l${2 * arm} ${2 * arm}M${x + arm} ${y - arm}l${-2 * arm} ${2 * arm}`;
  });
  svg.append(
    s(
      "g",
      { class: "lesson", "aria-hidden": "true" },
      s("path", { d: crosses.join("") }),
      starts.map(([x, y]) => {
        const [cx, cy] = middle([x, y]);
        const anchor = x < 2 ? "start" : x > size - 3 ? "end" : "middle";
        const shift = { start: -0.4, end: 0.4, middle: 0 }[anchor] * side;
        return s("text", { x: cx + shift, y: cy + (y < size / 2 ? -0.6 : 0.95) * side, "text-anchor": anchor }, "Start");
      }),
    ),
  );
}
