// Choice of the board for a kind of view.

import { PolyominoBoard } from "./polyomino.js";
import { SantoriniBoard } from "./santorini.js";
import { TextBoard } from "./text.js";
import { TriominosBoard } from "./triominos.js";

const BOARDS = { polyomino: PolyominoBoard, santorini: SantoriniBoard, triominos: TriominosBoard };

export function boardFor(table) {
  return new (BOARDS[table.game.kind] ?? TextBoard)(table);
}
