// The HTTP API of the server. Each failure is an Error with a message for the user.

import { isAway, reached } from "./away.js";
import { request as send } from "./backend.js";
import { message, t } from "./language.js";

/** Send a request; resolve to its successful response. */
async function respond(path, options) {
  const response = await send(path, options).catch(() => null);
  const answered = response !== null && !isAway(response);
  reached(answered);
  if (!answered) throw Object.assign(new Error("The server cannot be reached. Check your connection and try again."), { away: true });
  if (!response.ok) {
    const body = await response.json().catch(() => null);
    const error = new Error(sentence(body?.error ?? t`The server answered with an error (${response.status}).`));
    error.status = response.status;
    error.field = body?.field ?? null;
    throw error;
  }
  return response;
}

async function request(path, options = {}) {
  const response = await respond(path, { ...options, headers: { Accept: "application/json", ...options.headers } });
  return response.json().catch(() => null);
}

const text = async (path, options) => (await respond(path, options)).text();

/** Turn a message of the server, which has lower case and no full stop, into a sentence in the language of the page. */
export function sentence(text) {
  const words = message(text);
  const first = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

const post = (path, body) => request(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });

export const api = {
  catalog: () => request("/api/catalog"),
  games: () => request("/api/games"),
  gamesOf: (ids) => request(`/api/games?ids=${ids.join()}`),
  position: (request) => post("/api/positions", request),
  create: (settings) => post("/api/games", settings),
  takeSeat: (id, seat, name) => post(`/api/games/${id}/seats/${seat}`, { name }),
  rematch: (id, token) => post(`/api/games/${id}/rematch`, { token }),
  upload: (text) => request("/api/studies", { method: "POST", body: text, headers: { "Content-Type": "text/plain" } }),
  study: (id, number) => request(`/api/studies/${id}?number=${number}`),
  review: (id) => request(`/api/games/${id}/review`),
  reviewStudy: (id, number) => request(`/api/studies/${id}/review?number=${number}`),
  analyseStudy: (id, number, move, more = {}) => post(`/api/studies/${id}/analysis`, { number, move, ...more }),
  studyLine: (id, number, actions, move, more = {}) => post(`/api/studies/${id}/line`, { number, actions, move, ...more }),
  explore: (id, number, actions, source) => post(`/api/studies/${id}/explore`, { number, actions, source }),
  studyVariations: (id, number, tree) => post(`/api/studies/${id}/variations`, { number, ...tree }),
  studyRecord: (id, number, tree, format) => text(`/api/studies/${id}/record?format=${format}`, { method: "POST", body: JSON.stringify({ number, ...tree }) }),
  gamePosition: (id, move) => request(`/api/games/${id}/position?move=${move}`),
  record: (id) => text(`/api/games/${id}/record?format=jsonl`),
  puzzles: () => request("/api/puzzles"),
  puzzle: (game, number) => request(`/api/puzzles/${game}/${number}`),
  puzzleRule: (game, number, move, action) => request(`/api/puzzles/${game}/${number}?move=${move}&explain=${action}`),
  runs: () => request("/api/runs"),
  runGames: (run) => request(`/api/runs/${encodeURIComponent(run)}/games`),
  metrics: (run, after) => request(`/api/runs/${encodeURIComponent(run)}/metrics?after=${after}`),
};

let known;

/** The catalogue of games, requested once; `fresh` requests it again, for the state of the engines. */
export function catalog(fresh = false) {
  if (fresh || !known) {
    known = api.catalog();
    known.catch(() => (known = undefined));
  }
  return known;
}
