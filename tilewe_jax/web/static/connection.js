// The WebSocket of a game: reconnects automatically and resumes from the last known move.

import { sentence } from "./api.js";
import { askServer } from "./away.js";
import { connect } from "./backend.js";
import { message, t } from "./language.js";

const FIRST_DELAY = 400;
const LONGEST_DELAY = 15_000;
const PING_EVERY = 5_000;
const PONG_WITHIN = 3_000;
const NOT_NOW = [4408, 4429, 4503]; // close codes after which another attempt may succeed

/** Send one message as another seat over a separate connection; resolve to the answer. */
export function sendOnce(id, token, known, message) {
  return new Promise((resolve, reject) => {
    let sent = false;
    const connection = new Connection(id, token, {
      known,
      state() {
        if (sent) return;
        sent = true;
        connection.send(message).then(resolve, reject).finally(() => connection.close());
      },
      message() {},
      status: (name, text) => name === "refused" && reject(new Error(text)),
    });
  });
}

/**
 * `handlers`: `state(message)` and `message(message)` handle unsolicited messages of the server; `status(name, text)` receives
 * "connecting", "open", "waiting" or "refused", with a text for the user; `known()` returns the known moves as {after, undos}.
 */
export class Connection {
  #socket;
  #pending = new Map();
  #count = 0;
  #delay = FIRST_DELAY;
  #timer;
  #ping;
  #closed = false;
  #joined = false;
  #refusal = null;

  constructor(id, token, handlers) {
    this.id = id;
    this.token = token;
    this.handlers = handlers;
    this.retry = () => document.visibilityState !== "hidden" && this.#reconnectNow();
    this.cut = () => this.#drop();
    addEventListener("online", this.retry);
    addEventListener("offline", this.cut);
    document.addEventListener("visibilitychange", this.retry);
    this.#connect();
  }

  close() {
    this.#closed = true;
    removeEventListener("online", this.retry);
    removeEventListener("offline", this.cut);
    document.removeEventListener("visibilitychange", this.retry);
    clearTimeout(this.#timer);
    clearInterval(this.#ping);
    this.#socket?.close();
    this.#reject("The page was closed.");
  }

  /** Send a message; resolve to the answer, or reject with the reason of the refusal. */
  send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN || !this.#joined) {
      return Promise.reject(new Error("Not connected to the server. Wait until the page has reconnected."));
    }
    const ref = ++this.#count;
    this.#socket.send(JSON.stringify({ ...message, ref }));
    return new Promise((resolve, reject) => this.#pending.set(ref, { resolve, reject }));
  }

  #connect() {
    this.handlers.status("connecting");
    this.#joined = false;
    this.#refusal = null;
    const socket = connect(`/api/games/${this.id}/socket`);
    this.#socket = socket;
    let heard = Date.now();
    let opened = false;
    socket.onopen = () => {
      opened = true;
      socket.send(JSON.stringify({ type: "join", token: this.token, ...this.handlers.known() }));
      clearInterval(this.#ping);
      this.#ping = setInterval(() => {
        if (Date.now() - heard > PING_EVERY + PONG_WITHIN) this.#drop(); // the connection is dead
        else socket.send(JSON.stringify({ type: "ping" }));
      }, PING_EVERY);
    };
    socket.onmessage = (event) => {
      heard = Date.now();
      this.#receive(JSON.parse(event.data));
    };
    socket.onclose = (event) => {
      if (!opened && !this.#closed) askServer();
      this.#lost(socket, event.code);
    };
  }

  #receive(message) {
    if (message.type === "pong") return;
    if (!this.#joined && message.type === "error") {
      this.#refusal = sentence(message.error); // the close code shows whether another attempt may succeed
      return;
    }
    if (message.type === "state" && !this.#joined) {
      this.#joined = true;
      this.#delay = FIRST_DELAY;
      this.handlers.status("open");
    }
    const waiting = message.ref !== undefined ? this.#pending.get(message.ref) : undefined;
    if (waiting) {
      this.#pending.delete(message.ref);
      if (message.type === "error") waiting.reject(Object.assign(new Error(sentence(message.error)), { field: message.field }));
      else waiting.resolve(message);
    }
    if (message.type === "state") this.handlers.state(message);
    else if (!waiting) this.handlers.message(message);
  }

  /** Close a dead connection without waiting for the close event, which may take long. */
  #drop() {
    const socket = this.#socket;
    if (socket.readyState > WebSocket.OPEN) return;
    socket.onclose = socket.onmessage = null;
    socket.close();
    this.#lost(socket, 1006);
  }

  #lost(socket, code) {
    if (socket !== this.#socket) return;
    clearInterval(this.#ping);
    this.#reject("The connection was lost. Try again once the page has reconnected.");
    if (this.#closed) return;
    if (this.#refusal && code >= 4000 && !NOT_NOW.includes(code)) {
      this.close();
      this.handlers.status("refused", this.#refusal);
      return;
    }
    const delay = this.#delay * (0.75 + Math.random() / 2); // spreads the clients after a restart of the server
    this.#delay = Math.min(2 * this.#delay, LONGEST_DELAY);
    this.handlers.status("waiting", t`Connection lost. Trying again in ${Math.max(1, Math.round(delay / 1000))} s.`);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), delay);
  }

  #reconnectNow() {
    if (this.#closed || this.#socket?.readyState < WebSocket.CLOSING) return;
    clearTimeout(this.#timer);
    this.#delay = FIRST_DELAY;
    this.#connect();
  }

  #reject(text) {
    for (const { reject } of this.#pending.values()) reject(new Error(text));
    this.#pending.clear();
  }
}
