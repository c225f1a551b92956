// Moves as text, for lists and screen readers.

import { cellName } from "./boards/area.js";
import { numeral, signed } from "./dom.js";

/** A short text for the list of moves. */
export function shortMove(move) {
  switch (move.kind) {
    case "place":
      if (move.piece) return `${move.piece} ${cellName(move.cells[0])}`;
      if (move.tile) return [...move.tile].join("-");
      return `worker ${cellName(move.to)}`;
    case "turn":
      return `${cellName(move.from)} → ${cellName(move.to)}${move.build ? `, builds ${cellName(move.build)}` : ""}`;
    case "draw":
      return "draws";
    case "pass":
      return "passes";
    default:
      return move.name;
  }
}

/** The points of a move, "+15", in games that score each move. */
export function gainOf(move) {
  return move.gain === undefined ? "" : signed(move.gain);
}

/** A move as a sentence without its subject: "places W5 at c3". */
export function spokenMove(move) {
  switch (move.kind) {
    case "place":
      if (move.piece) return `places ${move.piece} at ${cellName(move.cells[0])}`;
      if (move.tile) return `places ${[...move.tile].join(" ")} for ${numeral(move.gain)} points${move.reason ? `, ${move.reason}` : ""}`;
      return `places a worker on ${cellName(move.to)}`;
    case "turn":
      return `moves from ${cellName(move.from)} to ${cellName(move.to)}${move.build ? ` and builds on ${cellName(move.build)}` : ""}`;
    case "draw":
      return `draws a tile for ${signed(move.gain)}`;
    case "pass":
      return move.gain === undefined ? "passes" : `passes for ${signed(move.gain)}`;
    default:
      return `plays ${move.name}`;
  }
}
