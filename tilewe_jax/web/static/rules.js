// The rules of each game in a few sentences, for those who have never played it.

import { GAMES } from "./games.js"; // the server makes it of what the games declare

/** What people read about a game: the catalogue's title where the page knows no better. */
export function about(id, catalogue) {
  const listed = catalogue?.games?.find((game) => game.id === id);
  return GAMES[id] ?? { title: listed?.title ?? id, tagline: "", rules: [] };
}
