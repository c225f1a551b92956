// Games without a drawing: the board as text, and a list of legal moves.

import { h, render } from "../dom.js";
import { t } from "../language.js";

export class TextBoard {
  constructor(table) {
    this.table = table;
    this.game = table.game;
    this.element = h("div.board.text-board", { tabIndex: 0, ariaLabel: "Board as text", dataset: { focus: "board" } });
    this.tray = h("section.tray-area", { ariaLabel: "Legal moves" });
    this.tools = null;
    this.note = null;
    this.filter = "";
  }

  get active() {
    return this.game.yourTurn && this.game.live && !this.table.busy;
  }

  update() {
    render(this.element, h("pre", {}, this.game.view?.text ?? ""));
    this.#drawMoves();
  }

  #drawMoves() {
    if (!this.active) {
      render(this.tray);
      return;
    }
    const moves = this.game.legal.filter(({ name }) => name.includes(this.filter));
    render(
      this.tray,
      h("h2.tray-title", {}, "Your moves", h("span.muted", {}, t`${this.game.legal.length} legal`)),
      this.game.legal.length > 20 &&
        h("input", {
          type: "search",
          placeholder: "Filter moves",
          ariaLabel: "Filter moves",
          value: this.filter,
          dataset: { focus: "filter" },
          oninput: (event) => {
            this.filter = event.target.value;
            this.#drawMoves();
          },
        }),
      h("div.move-buttons", {}, moves.slice(0, 300).map((move) => h("button", { onclick: () => this.table.submit(move.id), dataset: { action: move.id } }, move.name))),
    );
  }

  key() {
    return false;
  }

  act() {
    return false;
  }

  suggest(move) {
    this.filter = move.name;
    this.#drawMoves();
  }
}
