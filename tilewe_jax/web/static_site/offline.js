// A service worker that keeps the games in the browser, so that later visits need no network. `tilewe-jax site` writes it for a folder,
// `tilewe-jax serve --offline` for its page: then it also keeps the page of the server, and shows it while the server is away.
// A new version takes over once no tab shows the old one, so that the games never mix files of two versions.

const PREFIX = `tilewe-jax ${self.registration.scope} `; // caches belong to the whole host
const VERSION = `${PREFIX}{version}`;
const address = (path) => new URL(path, self.location).href;
const FILES = new Set({files}.map(address));
const PAGE = address("./"); // the page for all addresses of the server
const GAMES = address("{games}"); // the games in the browser, which never wait for the network
const API = address("api/");
const AWAY = [502, 503, 504]; // answers of a reverse proxy without its server

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(VERSION).then((cache) => cache.addAll([...FILES])));
});

self.addEventListener("activate", (event) => {
  const isOld = (name) => name.startsWith(PREFIX) && name !== VERSION;
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter(isOld).map((name) => caches.delete(name)))));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  const file = origin + pathname;
  if (request.method !== "GET") return;
  if (file.startsWith(GAMES)) event.respondWith(kept(file).then((answer) => answer ?? fetch(request)));
  else if (FILES.has(file)) event.respondWith(served(request, file));
  else if (request.mode === "navigate" && !file.startsWith(API)) event.respondWith(served(request, PAGE));
});

const kept = async (file) => (await caches.open(VERSION)).match(file, { ignoreVary: true });

/** The answer of the server, or the kept file while the server is away. */
async function served(request, file) {
  const answer = await fetch(request).catch(() => null);
  return (answer && !AWAY.includes(answer.status) ? answer : await kept(file)) ?? answer ?? Response.error();
}
