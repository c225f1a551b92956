// Choice of the editor for a kind of view.

import { PolyominoEditor } from "./polyomino.js";
import { SantoriniEditor } from "./santorini.js";
import { TriominosEditor } from "./triominos.js";

const EDITORS = { polyomino: PolyominoEditor, santorini: SantoriniEditor, triominos: TriominosEditor };

/** Whether there is an editor for a kind of view. */
export const hasEditor = (kind) => kind in EDITORS;

/** The editor of a game with its options on a page; `blank` is the answer to the request of the usual start. */
export async function editorFor({ game, options, page, blank }) {
  const kind = new EDITORS[blank.view.kind](page, blank);
  await kind.prepare?.({ game, options });
  return kind;
}
