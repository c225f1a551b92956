// The explorer panel: the moves that were played from the position on display, and how their games ended.

import { LOCAL } from "./backend.js";
import { h, percent, render, signed } from "./dom.js";
import { plural, t } from "./language.js";
import { notation, shortMove } from "./moves.js";
import { preference } from "./storage.js";
import { ghostOf } from "./analysis.js";

const SOURCES = { server: LOCAL ? "Games played here" : "Games on this server", files: "Loaded games", study: "Games of this file", book: "Opening book" };
const SHOWN = 12; // moves
const WAIT = 150; // milliseconds before a request, so that stepping through a game asks for few positions

/** `services` are those of the table. */
export class ExplorerPanel {
  source = preference.get("explorer", "server");
  preview = null; // move shown on the board
  #answers = new Map(); // by source and position
  #wanted = "";

  constructor(table, { explore, follow }) {
    this.table = table;
    this.game = table.game;
    this.explore = explore;
    this.follow = follow;
    this.element = h("section.explorer", { ariaLabel: "Explorer" });
  }

  /** Marks of the panel on the board: the move under the pointer. */
  marks() {
    return this.preview && this.previewAt === this.game.at && this.element.isConnected ? ghostOf(this.preview) : {};
  }

  get #key() {
    return [this.source, ...this.game.moves.slice(0, this.game.at).map(({ id }) => id)].join();
  }

  update() {
    const key = this.#key;
    if (!this.#answers.has(key) && this.#wanted !== key) {
      this.#wanted = key;
      setTimeout(() => this.#ask(key), WAIT);
    }
    this.#draw();
  }

  async #ask(key) {
    if (key !== this.#key || !this.element.isConnected) {
      if (this.#wanted === key) this.#wanted = "";
      return;
    }
    let answer;
    try {
      answer = await this.explore(this.source);
    } catch (error) {
      answer = { moves: [], error: error.message, sources: this.sources };
    }
    if (this.#answers.size > 200) this.#answers.clear();
    if (!answer.reading) this.#answers.set(key, answer);
    this.last = answer;
    this.sources = answer.sources ?? this.sources;
    if (key !== this.#key) return;
    if (this.sources && !this.sources.includes(this.source)) {
      this.#choose(this.sources[0]);
      return;
    }
    this.#draw();
    if (answer.reading) this.#ask(key);
  }

  #choose(source) {
    this.source = source;
    preference.set("explorer", source);
    this.update();
  }

  #draw() {
    const answer = this.#answers.get(this.#key) ?? (this.last?.reading ? this.last : null);
    const sources = this.sources ?? [this.source];
    render(
      this.element,
      h(
        "label.field",
        {},
        h("span", {}, "Source"),
        h("select", { dataset: { focus: "explorer-source" }, onchange: (event) => this.#choose(event.target.value) }, sources.map((name) => h("option", { value: name, selected: name === this.source }, SOURCES[name]))),
      ),
      answer ? this.#content(answer) : h("p.muted", {}, "Looking up the position …"),
    );
  }

  #content(answer) {
    if (answer.error) return h("p.muted", {}, answer.error);
    const total = answer.games !== null && h("p.muted.caption", {}, answer.reading ? t`${plural(answer.games, "game")} so far. Symmetric positions count together.` : t`${plural(answer.games, "game")}. Symmetric positions count together.`);
    const full = answer.full && h("p.muted.caption", {}, "The index is full: new positions are not counted.");
    if (!answer.moves.length) return [h("p.muted", {}, this.source === "book" ? "The position is not in the opening book." : "No game reached this position."), total, full];
    const shown = this.all ? answer.moves : answer.moves.slice(0, SHOWN);
    const more = () => {
      this.all = true;
      this.#draw();
    };
    return [
      this.source === "book" ? this.#book(shown) : this.#games(shown),
      shown.length < answer.moves.length && h("button.quiet", { dataset: { focus: "explorer-more" }, onclick: more }, t`Show ${answer.moves.length - shown.length} more`),
      this.source === "book" && h("p.muted.caption", {}, "Win chance of the player to move, by long searches."),
      total,
      full,
    ];
  }

  #games(moves) {
    const hasPoints = moves[0].lead !== undefined;
    return h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("th", {}, "Move"), h("th", { title: "Number of games" }, "Played"), h("th.results", { title: "Wins, draws and losses of the player to move" }, "Results"), hasPoints && h("th", { title: "Mean points of the player to move, and the lead" }, "Points"))),
      h(
        "tbody",
        {},
        moves.map((move) =>
          h(
            "tr",
            {},
            this.#cell(move),
            h("td.number", {}, String(move.count)),
            h("td.results", { title: t`Wins: ${move.wins}, draws: ${move.draws}, losses: ${move.losses}` }, this.#results(move)),
            hasPoints && h("td.number", { title: t`Mean lead: ${signed(Math.round(10 * move.lead) / 10)}` }, `${Math.round(move.points)} (${signed(Math.round(move.lead))})`),
          ),
        ),
      ),
    );
  }

  #results({ count, wins, draws, losses }) {
    const part = (name, number) => number > 0 && h(`i.${name}`, { style: { "--share": number / count } });
    return [h("span.shares", { ariaHidden: "true" }, part("won", wins), part("drawn", draws), part("lost", losses)), h("span", {}, percent((wins + draws / 2) / count))];
  }

  #book(moves) {
    return h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("th", {}, "Move"), h("th", { title: "Number of simulations" }, "Visits"), h("th", { title: "Win chance of the player to move" }, "Win"))),
      h("tbody", {}, moves.map((move) => h("tr", {}, this.#cell(move), h("td.number", {}, String(move.visits)), h("td.number", {}, `${percent(move.value)} ± ${percent(move.error)}`)))),
    );
  }

  #cell(move) {
    const show = (shown) => () => {
      this.preview = shown;
      this.previewAt = this.game.at;
      this.table.board.redraw();
    };
    const play = () => {
      this.preview = null;
      this.follow(move.id);
    };
    return h("td", {}, h("button.link", { title: notation(move), dataset: { focus: `explore-${move.id}` }, onclick: play, onmouseenter: show(move), onmouseleave: show(null), onfocus: show(move), onblur: show(null) }, shortMove(move)));
  }
}
