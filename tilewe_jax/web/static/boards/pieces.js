// Pieces and their orientations, as the server lists them: [{id, name, piece, cells}].

import { pieceSvg } from "../render/tilewe-game.js";

const key = (cells) => cells.map(String).sort().join(" ");

function normalized(cells) {
  const left = Math.min(...cells.map(([x]) => x));
  const bottom = Math.min(...cells.map(([, y]) => y));
  return cells.map(([x, y]) => [x - left, y - bottom]);
}

const TURNS = {
  right: ([x, y]) => [y, -x],
  left: ([x, y]) => [-y, x],
  flip: ([x, y]) => [-x, y],
};

/** The orientations of a game by id, and their rotations and reflections. */
export class Orientations {
  constructor(list) {
    this.byId = new Map(list.map((orientation) => [orientation.id, orientation]));
    this.byPiece = new Map();
    for (const orientation of list) {
      if (!this.byPiece.has(orientation.piece)) this.byPiece.set(orientation.piece, []);
      this.byPiece.get(orientation.piece).push(orientation);
    }
    this.pieces = [...this.byPiece.keys()];
    this.byCells = new Map(list.map((orientation) => [key(orientation.cells), orientation]));
  }

  first(piece) {
    return this.byPiece.get(piece)[0];
  }

  /** The orientation after a rotation by 90 degrees ("right" or "left") or a reflection ("flip"). */
  turned(orientation, turn) {
    return this.byCells.get(key(normalized(orientation.cells.map(TURNS[turn]))));
  }
}

/** Width and height of normalized cells. */
export function extent(cells) {
  return [1 + Math.max(...cells.map(([x]) => x)), 1 + Math.max(...cells.map(([, y]) => y))];
}

/** A picture of a piece in a colour, with its width and height in cells for the style. */
export function sizedPiece(cells, color) {
  const svg = pieceSvg(cells, String(color));
  const [width, height] = extent(cells);
  svg.style.setProperty("--w", width);
  svg.style.setProperty("--h", height);
  svg.setAttribute("aria-hidden", "true");
  return svg;
}
