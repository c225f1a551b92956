// Live self-play games: a grid of small boards on a canvas.

import { catalog } from "./api.js";
import { connect } from "./backend.js";
import { h } from "./dom.js";
import { plural, t } from "./language.js";
import { PALETTE } from "./render/tilewe-game.js";
import { about } from "./rules.js";
import { shownTheme } from "./theme.js";

const GAP = 5;
const HEIGHT = 400; // maximum height of the grid in CSS pixels, unless cells would be smaller than a pixel
const FIRST_DELAY = 1000;

/** The grid is hidden until the first games arrive. */
export class LiveGrid {
  constructor() {
    this.canvas = h("canvas", { role: "img", ariaLabel: "Live self-play games" });
    this.caption = h("span.muted", {});
    this.element = h("section.live", { hidden: true }, h("h2", {}, "Live self-play ", this.caption), this.canvas);
    this.delay = FIRST_DELAY;
    this.finished = new Set(); // step and number of each finished game
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
    this.socket = connect("/api/live");
    this.socket.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (message.type !== "grid") return;
      this.delay = FIRST_DELAY;
      this.grid = message;
      this.element.hidden = message.cells.length === 0;
      for (const game of message.over ?? []) this.finished.add(`${message.step}.${game}`);
      this.caption.textContent = [message.game && about(message.game).title, plural(message.cells.length, "game"), this.finished.size && t`${this.finished.size} finished since you opened this page`].filter(Boolean).join(" · ");
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
    const over = new Set(this.grid.over);
    const ratio = devicePixelRatio || 1;
    const width = Math.floor(this.canvas.parentElement.clientWidth * ratio);
    // The largest cell size in whole pixels at which the grid fits its height.
    const gap = Math.round(GAP * ratio);
    const columnsOf = (side) => Math.max(1, Math.floor((width + gap) / (side * size + gap)));
    let side = Math.max(1, Math.floor(8 * ratio));
    while (side > 1 && Math.ceil(cells.length / columnsOf(side)) * (side * size + gap) > HEIGHT * ratio) side -= 1;
    const columns = columnsOf(side);
    const step = side * size + gap;
    this.canvas.width = width;
    this.canvas.height = Math.ceil(cells.length / columns) * step;
    const context = this.canvas.getContext("2d");
    const theme = PALETTE[shownTheme()];
    const fills = kind === "santorini" ? SANTORINI.map((name) => theme[name]) : ["blue", "yellow", "red", "green"].map((name) => theme[name]);
    cells.forEach((board, index) => {
      const left = (index % columns) * step;
      const top = Math.floor(index / columns) * step;
      context.globalAlpha = over.has(index) ? 0.45 : 1;
      context.fillStyle = theme.grid;
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

// Colours by character: heights, then the workers of both players.
const SANTORINI = ["ground", "storey1", "storey2", "storey3", "dome", "blue", "red"];
