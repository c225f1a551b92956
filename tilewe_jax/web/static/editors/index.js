// Choice of the editor for a kind of view.

import { PolyominoEditor } from "./polyomino.js";
import { SantoriniEditor } from "./santorini.js";
import { TriominosEditor } from "./triominos.js";

const EDITORS = { polyomino: PolyominoEditor, santorini: SantoriniEditor, triominos: TriominosEditor };

/** The editor of a game, for the answer to the request of its usual start. */
export async function editorFor(page, blank) {
  const kind = new EDITORS[blank.view.kind](page, blank);
  await kind.prepare?.();
  return kind;
}
