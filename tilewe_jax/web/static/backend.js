// The connection to the server: requests, sockets and addresses. Everything that needs a server goes through this module.
// A page without a server has ../static_site/backend.js at its place, with the same exports, which asks a worker in the browser.

/** Whether the games are in this browser only, so that nobody else can join or watch. */
export const LOCAL = false;
/** The format in which games are animated. */
export const ANIMATION = "gif";

/** The path before all paths of the server, like "/games"; empty for none. This file is at `BASE`/static/backend.js. */
const BASE = new URL("..", import.meta.url).pathname.slice(0, -1);

/** Send an HTTP request; resolve to a `Response`. */
export const request = (path, options) => fetch(BASE + path, options);

/** Open a WebSocket. */
export function connect(path) {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return new WebSocket(`${scheme}//${location.host}${BASE}${path}`);
}

/** The address of a page, such as "/game/ID?move=3", for links. */
export const link = (page) => BASE + page;

/** The page at an address: its path, its query, and its token, which is empty without an invitation. */
export function place(address = location) {
  const { pathname } = address;
  return { path: pathname.startsWith(`${BASE}/`) ? pathname.slice(BASE.length) : pathname, query: new URLSearchParams(address.search), token: address.hash.slice(1) };
}

/** Properties of a link that downloads a file of the API. */
export const fileLink = (path, name) => ({ href: BASE + path, download: name });
