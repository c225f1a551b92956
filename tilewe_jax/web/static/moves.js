// Moves as text, for lists and screen readers.

import { cellName } from "./boards/area.js";
import { numeral, signed } from "./dom.js";
import { message, t } from "./language.js";

/** A short text for the list of moves. */
export function shortMove(move) {
  switch (move.kind) {
    case "place":
      if (move.piece) return `${move.piece} ${cellName(move.cells[0])}`;
      if (move.tile) return [...move.tile].join("-");
      return t`worker ${cellName(move.to)}`;
    case "turn":
      return `${cellName(move.from)} → ${cellName(move.to)}${move.build ? t`, builds ${cellName(move.build)}` : ""}`;
    case "draw":
      return t("draws");
    case "pass":
      return t("passes");
    default:
      return move.name;
  }
}

/** A move in the notation of records; a draw and a pass in the language of the page. */
export function notation({ name }) {
  return name === "draw" || name === "pass" ? shortMove({ kind: name }) : name;
}

/** The points of a move, "+15", in games that score each move. */
export function gainOf(move) {
  return move.gain === undefined ? "" : signed(move.gain);
}

/** A move as a sentence without its subject: "places W5 at c3". */
export function spokenMove(move) {
  switch (move.kind) {
    case "place":
      if (move.piece) return t`places ${move.piece} at ${cellName(move.cells[0])}`;
      if (move.tile) return t`places ${[...move.tile].join(" ")} for ${numeral(move.gain)} points${move.reason ? `, ${message(move.reason)}` : ""}`;
      return t`places a worker on ${cellName(move.to)}`;
    case "turn":
      return t`moves from ${cellName(move.from)} to ${cellName(move.to)}${move.build ? t` and builds on ${cellName(move.build)}` : ""}`;
    case "draw":
      return t`draws a tile for ${signed(move.gain)}`;
    case "pass":
      return move.gain === undefined ? t("passes") : t`passes for ${signed(move.gain)}`;
    default:
      return t`plays ${move.name}`;
  }
}
