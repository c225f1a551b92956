// The rules of each game in a few sentences, for those who have never played it.

import { GAMES } from "./games.js"; // which `tilewe-jax play` reads too

/** What people read about a game: the catalogue's title where the page knows no better. */
export function about(id, catalogue) {
  const listed = catalogue?.games?.find((game) => game.id === id);
  return GAMES[id] ?? { title: listed?.title ?? id, tagline: "", rules: [] };
}
