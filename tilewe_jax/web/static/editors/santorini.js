// Positions of Santorini: heights and workers.

import { h } from "../dom.js";
import { t } from "../language.js";
import { cellName } from "../boards/area.js";
import { swatch } from "../seats.js";
import { PositionEditor } from "./base.js";

const name = (player) => t`Player ${player + 1}`;

export class SantoriniEditor extends PositionEditor {
  mode = "up"; // "up" and "down" change heights, 0 and 1 put workers of a player

  get #size() {
    return this.blank.view.size;
  }

  #height([x, y]) {
    return Number(this.facts.heights[this.#size - 1 - y][x]);
  }

  #setHeight([x, y], height) {
    const row = this.facts.heights[this.#size - 1 - y];
    this.facts.heights[this.#size - 1 - y] = row.slice(0, x) + height + row.slice(x + 1);
  }

  fitted({ heights, workers, current_player: player }) {
    const size = this.#size;
    const range = Array.from({ length: size }, (_, index) => index);
    const rows = range.map((row) => heights[heights.length - size + row] ?? ""); // the lowest row stays
    const isInside = (name) => name.charCodeAt(0) - 97 < size && Number(name.slice(1)) <= size;
    return { heights: rows.map((row) => range.map((x) => row[x] ?? "0").join("")), workers: workers.map((own) => own.filter(isInside)), current_player: player };
  }

  get view() {
    const { view } = this.blank;
    const cell = (text) => (text ? [text.charCodeAt(0) - 97, Number(text.slice(1)) - 1] : null);
    const workers = this.facts.workers.flatMap((own) => [cell(own[0]), cell(own[1])]);
    return { ...view, heights: [...this.facts.heights].reverse().join(""), workers, current_player: this.facts.current_player, terminal: false, winner: null, placing: workers.includes(null) };
  }

  marks(cursor) {
    return cursor && this.page.pointing === "mouse" ? { hover: cursor } : {};
  }

  describe(cell) {
    const player = this.facts.workers.findIndex((own) => own.includes(cellName(cell)));
    const height = this.#height(cell);
    return [cellName(cell), height === 4 ? t("dome") : t`level ${height}`, player >= 0 && t`worker of ${name(player)}`].filter(Boolean).join(", ");
  }

  press(cell) {
    if (this.mode === "up" || this.mode === "down") this.#build(cell, this.mode === "up" ? 1 : 4);
    else this.#stand(cell, this.mode);
  }

  #build(cell, step) {
    this.change(() => this.#setHeight(cell, (this.#height(cell) + step) % 5));
  }

  /** Put a worker of a player; the one that was put first moves there if both stand on the board. A click on it removes it. */
  #stand(cell, player) {
    const place = cellName(cell);
    this.change(() => {
      const isOwn = this.facts.workers[player].includes(place);
      const workers = this.facts.workers.map((own) => own.filter((other) => other !== place));
      if (!isOwn) workers[player] = [...workers[player].slice(-1), place];
      this.facts.workers = workers;
    });
  }

  #take(cell) {
    this.change(() => {
      this.#setHeight(cell, 0);
      this.facts.workers = this.facts.workers.map((own) => own.filter((other) => other !== cellName(cell)));
    });
  }

  act(command) {
    const modes = ["up", "down", 0, 1];
    const { cursor } = this.page;
    if (command === "place" && cursor) this.press(cursor);
    else if (command === "remove" && cursor) this.#take(cursor);
    else if (command === "flip" && cursor) this.#build(cursor, 4);
    else if (command === "next" || command === "previous") this.#choose(modes[(modes.indexOf(this.mode) + (command === "next" ? 1 : 3)) % 4]);
    else if (command === "cancel") {
      this.page.cursor = null;
      this.page.update();
    }
  }

  #choose(mode) {
    this.mode = mode;
    this.page.update();
  }

  tools() {
    const choices = [["up", t("Build up")], ["down", t("Take down"), t("Take a level down (right click)")], ...[0, 1].map((player) => [player, [swatch(this.view, player), t("Worker")], t`worker of ${name(player)}`])];
    return this.radios("mode", "A click on a cell", choices, this.mode, (mode) => this.#choose(mode));
  }

  movers() {
    return this.radios("mover", "Who is to move", [0, 1].map((player) => [player, [swatch(this.view, player), name(player)]]), this.facts.current_player, (player) => this.change(() => (this.facts.current_player = player)));
  }

  moverName(view) {
    return name(view.current_player);
  }

  facts_() {
    return h("p.muted.caption", {}, "Heights are 0 to 3; the fourth level is a dome.");
  }
}
