// Runs the rooms of the server in Python (Pyodide), and keeps their games in the browser's database.

import { loadPyodide } from "../pyodide/pyodide.mjs";

const waiting = []; // messages that arrived before Python has started
let server = null;
let database = null;

/** Open the database, or resolve to null if the browser offers none, as in some private windows. */
function open() {
  return new Promise((resolve) => {
    try {
      const opening = indexedDB.open("tilewe-jax", 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore("rows");
      opening.onsuccess = () => resolve(opening.result);
      opening.onerror = opening.onblocked = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
}

/** All rows of the database as {key: text}. */
function rows() {
  if (!database) return Promise.resolve({});
  return new Promise((resolve) => {
    const stored = {};
    const reading = database.transaction("rows").objectStore("rows").openCursor();
    reading.onsuccess = () => {
      const cursor = reading.result;
      if (!cursor) return resolve(stored);
      stored[cursor.key] = cursor.value;
      return cursor.continue();
    };
    reading.onerror = () => resolve(stored);
  });
}

/** Write a row, or delete it if the text is null; resolve once it is written. */
function save(key, text) {
  if (!database) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const writing = database.transaction("rows", "readwrite");
    if (text === undefined || text === null) writing.objectStore("rows").delete(key);
    else writing.objectStore("rows").put(text, key);
    writing.oncomplete = () => resolve();
    writing.onerror = writing.onabort = () => reject(new Error(String(writing.error?.message ?? "the browser's storage is full")));
  });
}

/** Rejects if a file cannot be loaded, for which Pyodide would wait forever. */
const missing = new Promise((_, reject) => {
  const load = self.fetch;
  self.fetch = async (...given) => {
    const response = await load(...given).catch(() => ({ ok: false }));
    if (!response.ok) reject(new Error(`${String(given[0].url ?? given[0]).split("/").at(-1)} could not be loaded`));
    return response;
  };
});

async function start() {
  const files = fetch(new URL("../python/tilewe_jax.zip", import.meta.url)).then((response) => response.arrayBuffer());
  const stored = open().then((opened) => {
    database = opened;
    return rows();
  });
  const python = await loadPyodide({ indexURL: new URL("../pyodide/", import.meta.url).href });
  python.unpackArchive(await files, "zip", { extractDir: "/lib/games" });
  python.runPython("import sys; sys.path.insert(0, '/lib/games')");
  const { Local } = python.pyimport("tilewe_jax.web.local");
  server = Local(python.toPy(await stored), save);
  postMessage({ type: "ready" });
  for (const message of waiting.splice(0)) handle(message);
}

async function handle(message) {
  const { type, number, socket } = message;
  if (type === "request") {
    const answer = await server.request(message.method, message.path, message.body ?? "");
    const [status, kind, body] = answer.toJs();
    answer.destroy();
    postMessage({ type: "answer", number, status, kind, body });
  } else if (type === "connect") {
    server.connect(socket, message.path, (text) => postMessage({ type: "message", socket, text }), (code) => postMessage({ type: "closed", socket, code }));
  } else if (type === "send") server.receive(socket, message.text);
  else if (type === "disconnect") server.disconnect(socket);
}

onmessage = ({ data }) => (server ? handle(data) : waiting.push(data));

Promise.race([start(), missing]).catch((error) => postMessage({ type: "failed", reason: String(error.message ?? error).trim().split("\n").at(-1) }));
