// The page without a server: requests and sockets go to a worker, which runs the rooms of the server in Python.
// It stands at the place of ../static/backend.js, with the same exports.

import { sentence } from "./api.js";
import { attempt } from "./speech.js";

export const LOCAL = true;
export const ANIMATION = "svg";

const CATALOG = new URL("./catalog.json", import.meta.url); // so that the games are shown before Python has started
const OFFLINE = new URL("../offline.js", import.meta.url);

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "games" });
const asked = new Map(); // by number: {resolve, reject}
const sockets = new Map(); // by number
let count = 0;
let engine = { state: "starting", reason: null };

const started = new Promise((resolve) => {
  worker.onmessage = ({ data }) => {
    if (data.type === "ready") {
      engine = { state: "ready", reason: null };
      resolve();
      // The files are kept for later visits without a network, once nobody waits for them.
      navigator.serviceWorker?.register(OFFLINE).catch(() => {});
    } else if (data.type === "failed") fail(data.reason);
    else if (data.type === "answer") take(data).resolve(new Response(data.body, { status: data.status, headers: { "Content-Type": data.kind } }));
    else if (data.type === "message") sockets.get(data.socket)?.onmessage?.({ data: data.text });
    else if (data.type === "closed") sockets.get(data.socket)?.ended(data.code);
  };
  worker.onerror = (event) => fail(event.message);
  worker.onmessageerror = () => fail("a message could not be read");
});

function take({ number }) {
  const waiting = asked.get(number);
  asked.delete(number);
  return waiting;
}

/** Python does not run: refuse everything that waits for it. */
function fail(text) {
  engine = { state: "failed", reason: text || "the worker could not be loaded" };
  for (const { reject } of asked.values()) reject(new Error(reason()));
  asked.clear();
  for (const socket of sockets.values()) socket.refused();
}

const reason = () => `the games did not start in this browser: ${engine.reason}`;

export async function request(path, { method = "GET", body = null } = {}) {
  if (path === "/api/catalog") {
    const catalog = await (await fetch(CATALOG)).json();
    return new Response(JSON.stringify({ ...catalog, engine }), { status: 200 });
  }
  if (engine.state === "failed") {
    return new Response(JSON.stringify({ error: reason(), field: null }), { status: 500 });
  }
  const number = ++count;
  return new Promise((resolve, reject) => {
    asked.set(number, { resolve, reject });
    worker.postMessage({ type: "request", number, method, path, body });
  });
}

/** The part of the interface of `WebSocket` that the page uses. */
class Socket {
  readyState = WebSocket.CONNECTING;
  onopen = null;
  onmessage = null;
  onclose = null;

  constructor(path) {
    this.number = ++count;
    sockets.set(this.number, this);
    started.then(() => {
      if (this.readyState !== WebSocket.CONNECTING) return;
      this.readyState = WebSocket.OPEN;
      worker.postMessage({ type: "connect", socket: this.number, path });
      this.onopen?.();
    });
    if (engine.state === "failed") setTimeout(() => this.refused());
  }

  send(text) {
    worker.postMessage({ type: "send", socket: this.number, text });
  }

  close() {
    if (this.readyState === WebSocket.OPEN) worker.postMessage({ type: "disconnect", socket: this.number });
    this.readyState = WebSocket.CLOSED;
    sockets.delete(this.number);
  }

  refused() {
    this.onmessage?.({ data: JSON.stringify({ type: "error", ref: null, error: reason(), field: null }) });
    this.ended(4500);
  }

  ended(code) {
    if (this.readyState === WebSocket.CLOSED) return;
    this.readyState = WebSocket.CLOSED;
    sockets.delete(this.number);
    this.onclose?.({ code });
  }
}

export const connect = (path) => new Socket(path);

export const link = (page) => `#${page}`;

export function place(address = location) {
  const [path, query = ""] = (address.hash.slice(1) || "/").split("?");
  return { path, query: new URLSearchParams(query), token: "" };
}

export function fileLink(path, name) {
  const save = async () => {
    const response = await request(path);
    if (!response.ok) throw new Error(sentence((await response.json()).error));
    const address = URL.createObjectURL(await response.blob());
    const anchor = Object.assign(document.createElement("a"), { href: address, download: name });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  const onclick = (event) => {
    event.preventDefault();
    attempt(save);
  };
  return { href: link(place().path), onclick };
}
