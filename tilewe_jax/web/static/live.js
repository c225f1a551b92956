// Self-play games as they go on: a grid of small boards on a canvas.

import { catalog } from "./api.js";
import { h, plural } from "./dom.js";
import { PALETTE } from "./render/tilewe-game.js";
import { shownTheme } from "./theme.js";

const GAP = 6;
const FIRST_DELAY = 1000;

/** Hidden until the server has games to show. */
export class LiveGrid {
  constructor() {
    this.canvas = h("canvas", { role: "img", ariaLabel: "Self-play games as they go on" });
    this.caption = h("span.muted", {});
    this.element = h("section.live", { hidden: true }, h("h2", {}, "Self-play, live ", this.caption), this.canvas);
    this.delay = FIRST_DELAY;
    this.observer = new ResizeObserver(() => this.#draw());
    this.observer.observe(this.element);
    this.#connect();
  }

  end() {
    this.ended = true;
    clearTimeout(this.timer);
    this.observer.disconnect();
    this.socket?.close();
  }

  async #connect() {
    const { live } = await catalog().catch(() => ({}));
    if (!live || this.ended) return;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(`${scheme}//${location.host}/api/live`);
    this.socket.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (message.type !== "grid") return;
      this.delay = FIRST_DELAY;
      this.grid = message;
      this.element.hidden = message.cells.length === 0;
      this.caption.textContent = plural(message.cells.length, "game");
      this.frame ??= requestAnimationFrame(() => this.#draw());
    };
    this.socket.onclose = () => {
      if (this.ended) return;
      this.delay = Math.min(2 * this.delay, 30_000);
      this.timer = setTimeout(() => this.#connect(), this.delay);
    };
  }

  #draw() {
    this.frame = undefined;
    if (!this.grid?.cells.length) return;
    const { cells, size, kind } = this.grid;
    const ratio = devicePixelRatio || 1;
    const width = Math.floor(this.canvas.parentElement.clientWidth * ratio);
    const columns = Math.max(1, Math.round(Math.sqrt((cells.length * width) / (420 * ratio))));
    const side = Math.max(1, Math.floor((width - GAP * ratio * (columns - 1)) / columns / size));
    const step = side * size + GAP * ratio;
    this.canvas.width = width;
    this.canvas.height = Math.ceil(cells.length / columns) * step;
    const context = this.canvas.getContext("2d");
    const theme = PALETTE[shownTheme()];
    const fills = kind === "santorini" ? SANTORINI.map((name) => theme[name]) : ["blue", "yellow", "red", "green"].map((name) => theme[name]);
    cells.forEach((board, index) => {
      const left = (index % columns) * step;
      const top = Math.floor(index / columns) * step;
      context.fillStyle = theme.board;
      context.fillRect(left, top, side * size, side * size);
      for (let cell = 0; cell < board.length; cell++) {
        const fill = fills[board.charCodeAt(cell) - 48];
        if (!fill) continue;
        context.fillStyle = fill;
        context.fillRect(left + (cell % size) * side, top + (size - 1 - Math.floor(cell / size)) * side, side, side);
      }
    });
  }
}

// By height, then the workers of both players.
const SANTORINI = ["ground", "storey1", "storey2", "storey3", "dome", "blue", "red"];
