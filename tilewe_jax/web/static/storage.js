// What this browser remembers: the seats that it holds, the name of its user, and how the page looks.

const PREFIX = "tilewe-jax.";
const MOST_GAMES = 200; // the maximum number of ids in a request to the server

function read(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key)) ?? otherwise;
  } catch {
    return otherwise; // storage may be switched off, or hold what another version wrote
  }
}

function write(key, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // the page works without it, and forgets
  }
}

export const preference = {
  get: (name, otherwise) => read(`preference.${name}`, otherwise),
  set: (name, value) => write(`preference.${name}`, value),
};

/** Tokens of the seats of a game: that of this tab first, then that of the browser, so that two tabs can hold two seats. */
export function tokenOf(game) {
  return sessionStorage.getItem(`${PREFIX}token.${game}`) ?? read(`token.${game}`, null);
}

export function keepToken(game, token) {
  sessionStorage.setItem(`${PREFIX}token.${game}`, token);
  write(`token.${game}`, token);
  write("games", [game, ...ownGames().filter((id) => id !== game)].slice(0, MOST_GAMES));
}

/** Use a token in this tab, until the server has accepted it: a wrong one must not replace that of a seat. */
export function tryToken(game, token) {
  sessionStorage.setItem(`${PREFIX}token.${game}`, token);
}

/** Go back to the browser's token for a game from another one of this tab; whether there is one to go back to. */
export function dropTriedToken(game) {
  const kept = read(`token.${game}`, null);
  if (kept === null || kept === tokenOf(game)) return false;
  sessionStorage.removeItem(`${PREFIX}token.${game}`);
  return true;
}

export function forgetToken(game) {
  sessionStorage.removeItem(`${PREFIX}token.${game}`);
  write(`token.${game}`, null);
  endOwnGame(game);
}

/** Take a game that is over from the list of those that go on; its token is kept for a rematch. */
export function endOwnGame(game) {
  write("games", ownGames().filter((id) => id !== game));
}

/** The games in which this browser holds a seat, the latest first. */
export function ownGames() {
  return read("games", []);
}

/** Where several people play at one screen: the tokens of their seats, {seat: token}. */
export const sharedSeats = {
  get: (game) => read(`shared.${game}`, {}),
  set: (game, tokens) => write(`shared.${game}`, tokens),
};

/** Links that invite to the other seats of a game which this browser has created: [{seat, token}]. */
export const invitations = {
  get: (game) => read(`invitations.${game}`, []),
  set: (game, seats) => write(`invitations.${game}`, seats),
};
