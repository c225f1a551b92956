// Data stored in this browser: tokens of seats, the name of the user, and preferences.

const PREFIX = "tilewe-jax.";
const MOST_GAMES = 200; // the maximum number of ids in a request to the server
const MOST_RESULTS = 2000;

function read(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key)) ?? otherwise;
  } catch {
    return otherwise; // storage may be disabled, or have data of another version
  }
}

function write(key, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // the page works without storage
  }
}

export const preference = {
  get: (name, otherwise) => read(`preference.${name}`, otherwise),
  set: (name, value) => write(`preference.${name}`, value),
};

/** The token for a game: of this tab, otherwise of this browser, so that two tabs can have two seats. */
export function tokenOf(game) {
  return sessionStorage.getItem(`${PREFIX}token.${game}`) ?? read(`token.${game}`, null);
}

export function keepToken(game, token) {
  sessionStorage.setItem(`${PREFIX}token.${game}`, token);
  write(`token.${game}`, token);
  write("games", [game, ...ownGames().filter((id) => id !== game)].slice(0, MOST_GAMES));
}

/** Use a token in this tab only, until the server accepts it: a wrong token must not replace a right one. */
export function tryToken(game, token) {
  sessionStorage.setItem(`${PREFIX}token.${game}`, token);
}

/** Drop the token of this tab if the browser has another one for the game; return whether it has. */
export function dropTriedToken(game) {
  const kept = read(`token.${game}`, null);
  if (kept === null || kept === tokenOf(game)) return false;
  sessionStorage.removeItem(`${PREFIX}token.${game}`);
  return true;
}

export function forgetToken(game) {
  sessionStorage.removeItem(`${PREFIX}token.${game}`);
  write(`token.${game}`, null);
  write("games", ownGames().filter((id) => id !== game));
}

/** The games in which this browser has or had a seat, the latest first. */
export function ownGames() {
  return read("games", []);
}

/** The seat of this browser in a game, as far as known. */
export const ownSeat = {
  get: (game) => read(`seat.${game}`, null),
  set: (game, seat) => write(`seat.${game}`, seat),
};

/** Whether the user got a hint or an analysis during a game. */
export const helped = {
  get: (game) => read(`helped.${game}`, false),
  set: (game) => write(`helped.${game}`, true),
};

/**
 * Results of finished games of this browser, the latest last: {id, game, at, rivals, won, helped}. `rivals` are the agents of the
 * other seats, null for a person; `won` is the user's share of the win; `helped` tells whether the user took back a move or got help.
 */
export const results = {
  get: () => read("results", []),
  add(result) {
    const others = results.get().filter(({ id }) => id !== result.id);
    write("results", [...others, result].slice(-MOST_RESULTS));
  },
};

/** The puzzles that this browser has solved, as "game/number". */
export const solvedPuzzles = {
  get: () => read("puzzles", []),
  add: (puzzle) => write("puzzles", [...new Set([...solvedPuzzles.get(), puzzle])]),
};

/** Tokens of the seats of players at this screen, if there are several: {seat: token}; and whether they hide tiles from each other. */
export const sharedSeats = {
  get: (game) => read(`shared.${game}`, {}),
  hidden: (game) => read(`curtain.${game}`, false),
  set(game, tokens, hidden) {
    write(`shared.${game}`, tokens);
    write(`curtain.${game}`, hidden || null);
  },
};

/** Invitations to the other seats of a game created by this browser: [{seat, token}]. */
export const invitations = {
  get: (game) => read(`invitations.${game}`, []),
  set: (game, seats) => write(`invitations.${game}`, seats),
};
