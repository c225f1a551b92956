// A service worker that keeps all files of this folder, so that later visits need no network. Written by `tilewe-jax site`.
// A new version takes over once no tab shows the old one, so that a page never mixes files of two versions.

const PREFIX = `tilewe-jax ${self.registration.scope} `; // caches belong to the whole host
const VERSION = `${PREFIX}{version}`;
const FILES = {files};

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(VERSION).then((cache) => cache.addAll(FILES)));
});

self.addEventListener("activate", (event) => {
  const isOld = (name) => name.startsWith(PREFIX) && name !== VERSION;
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter(isOld).map((name) => caches.delete(name)))));
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  event.respondWith(caches.open(VERSION).then(async (cache) => (await cache.match(event.request, { ignoreSearch: true })) ?? fetch(event.request)));
});
