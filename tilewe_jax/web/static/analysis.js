// The analysis panel: candidates, the graph of the game, and the largest mistakes.

import { lineChart } from "./chart.js";
import { EMPTY, h, numeral, percent, plural, render, signed } from "./dom.js";
import { icon } from "./icons.js";
import { shortMove } from "./moves.js";
import { colorOf, moveSwatch } from "./seats.js";
import { attempt } from "./speech.js";
import { preference } from "./storage.js";
import { heatOf } from "./render/tilewe-game.js";

const CONCURRENT = 8; // maximum number of concurrent requests during the analysis of a game
const GRAPHS = { value: "Win chance", lead: "Score lead", points: "Points" };

/** `analyse(move)` requests an analysis; `available()` returns the reason if none is available, otherwise null. */
export class AnalysisPanel {
  heat = preference.get("heat", true);
  graph = preference.get("graph", "value");
  preview = null; // candidate shown on the board
  progress = null;
  #asked = new Set();

  constructor(table, analyse, available) {
    this.table = table;
    this.game = table.game;
    this.analyse = analyse;
    this.available = available;
    this.element = h("section.analysis", { ariaLabel: "Analysis" });
  }

  /** Marks of the analysis on the board. */
  marks() {
    const analysis = this.game.analyses.get(this.game.at);
    const marks = {};
    if (!analysis || this.element.closest("[hidden]")) return marks;
    if (this.heat) marks.heat = heatOf(analysis);
    if (this.preview && this.previewAt === this.game.at) Object.assign(marks, ghostOf(this.preview));
    return marks;
  }

  toggleHeat() {
    this.heat = !this.heat;
    preference.set("heat", this.heat);
    this.table.update();
  }

  async ask(move) {
    if (this.game.analyses.has(move) || this.#asked.has(move) || this.available()) return;
    this.#asked.add(move);
    this.update();
    await attempt(async () => this.game.analysed(move, await this.analyse(move)));
    this.#asked.delete(move);
    this.update();
  }

  /** Positions without an analysis, by the number of moves before them. */
  get #missing() {
    return Array.from({ length: this.game.last + 1 }, (_, move) => move).filter((move) => !this.game.analyses.has(move));
  }

  /** Analyse every position of the game. */
  async askAll() {
    const { game } = this;
    const waiting = this.#missing;
    const all = waiting.length;
    this.progress = { done: 0, all };
    this.update();
    const work = async () => {
      for (let move = waiting.shift(); move !== undefined; move = waiting.shift()) {
        const analysis = await this.analyse(move);
        this.progress.done += 1;
        game.analysed(move, analysis);
      }
    };
    await attempt(() => Promise.all(Array.from({ length: CONCURRENT }, work)));
    waiting.length = 0;
    this.progress = null;
    this.update();
  }

  update() {
    const { game } = this;
    const reason = this.available();
    render(
      this.element,
      this.#graphs(),
      reason ? h("p.muted", {}, reason) : [this.#commands(), this.#mistakes(), this.#candidates()],
    );
  }

  #commands() {
    const { game } = this;
    const missing = this.#missing.length > 0;
    const here = game.analyses.has(game.at);
    return h(
      "div.row.commands",
      {},
      !here && h("button", { dataset: { focus: "analyse" }, disabled: this.#asked.has(game.at), onclick: () => this.ask(game.at) }, icon("chart"), this.#asked.has(game.at) ? "Searching …" : "Analyse this position"),
      missing && (game.over || game.studied) && h("button", { dataset: { focus: "analyse-all" }, disabled: this.progress !== null, onclick: () => this.askAll() }, icon("chart"), this.progress ? `${this.progress.done} of ${this.progress.all} …` : "Analyse the whole game"),
      this.progress && h("progress", { max: this.progress.all, value: this.progress.done, ariaLabel: "Analysis of the game" }),
      h("label.switch", {}, h("input", { type: "checkbox", checked: this.heat, dataset: { focus: "heat" }, onchange: () => this.toggleHeat() }), "Heat map"),
    );
  }

  // ---- The graph

  #graphs() {
    const { game } = this;
    const known = { value: game.analyses.size > 0, lead: [...game.analyses.values()].some((analysis) => analysis.score_lead), points: game.view?.kind !== "santorini" && game.last > 0 };
    const names = Object.keys(GRAPHS).filter((name) => known[name]);
    if (!names.length) return null;
    const graph = names.includes(this.graph) ? this.graph : names[0];
    return [
      names.length > 1 &&
        h(
          "div.segments",
          { role: "group", ariaLabel: "Graph" },
          names.map((name) =>
            h("button", { "aria-pressed": String(name === graph), dataset: { focus: `graph-${name}` }, onclick: () => { this.graph = name; preference.set("graph", name); this.update(); } }, GRAPHS[name]),
          ),
        ),
      this.#chart(graph),
    ];
  }

  #chart(graph) {
    const { game } = this;
    const { view } = game;
    const read = {
      value: (move) => game.analyses.get(move)?.value,
      lead: (move) => game.analyses.get(move)?.score_lead,
      points: (move) => game.frames[move]?.scores,
    }[graph];
    const moves = Array.from({ length: game.last + 1 }, (_, move) => move);
    const two = game.seats.length === 2 && graph !== "points";
    const seats = two ? [game.you ?? 0] : game.seats.map((_, seat) => seat);
    const lines = seats.map((seat) => ({
      color: colorOf(view, seat),
      points: moves.map((move) => [move, read(move)?.[seat]]).filter(([, y]) => Number.isFinite(y)),
    }));
    const mistakes = graph === "value" ? game.mistakes().slice(0, 5) : [];
    return [
      h("p.caption.muted", {}, two ? (game.nameOf(seats[0]) === "You" ? `Your ${GRAPHS[graph].toLowerCase()}` : `${GRAPHS[graph]} of ${game.nameOf(seats[0])}`) : `${GRAPHS[graph]} of each player`),
      lineChart({
        lines,
        x: [0, Math.max(1, game.last)],
        range: graph === "value" ? [0, 1] : undefined,
        zero: graph === "value" ? (two ? 0.5 : undefined) : 0,
        area: two,
        cursor: game.at,
        format: graph === "value" ? percent : graph === "lead" ? signed : numeral,
        marks: mistakes.flatMap(({ move, player, loss }) => {
          const value = game.analyses.get(move)?.value?.[two ? seats[0] : player];
          return value === undefined ? [] : [{ x: move, y: value, color: colorOf(view, player), title: `move ${move + 1}: −${percent(loss)}` }];
        }),
        onpick: (move) => game.goTo(move),
        label: `${GRAPHS[graph]} over the game. Click to go to a move.`,
      }),
    ];
  }

  // ---- Candidates

  #candidates() {
    const { game } = this;
    const analysis = game.analyses.get(game.at);
    if (!analysis) return null;
    const player = game.view.current_player;
    const candidates = (analysis.candidates ?? []).slice(0, 8);
    if (!candidates.length) return null;
    const most = Math.max(...candidates.map(({ visits }) => visits), 1);
    const played = game.moves[game.at];
    return h(
      "div.candidates",
      {},
      h("h3", {}, "Best moves", h("span.muted", {}, `for ${game.nameOf(player) === "You" ? "you" : game.nameOf(player)}`)),
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", {}, "Move"), h("th", { title: "Number of simulations with this move" }, "Visits"), h("th", { title: "Win chance of the player to move" }, "Win"))),
        h(
          "tbody",
          {},
          candidates.map((candidate) =>
            h(
              "tr",
              { className: [candidate.id === played?.id ? "played" : "", this.preview === candidate ? "previewed" : ""].join(" ") },
              h(
                "td",
                {},
                h(
                  "button.link",
                  { title: candidate.name, dataset: { focus: `candidate-${candidate.id}` }, onclick: () => this.#show(candidate), onmouseenter: () => this.#show(candidate, true), onmouseleave: () => this.#show(null) },
                  shortMove(candidate),
                ),
                candidate.id === played?.id && h("span.badge", {}, "played"),
                candidate.variation?.length > 1 && h("span.variation.muted", { title: candidate.variation.join("  ") }, `then ${candidate.variation.slice(1, 4).join("  ")}`),
              ),
              h("td.number", {}, h("span.bar", { style: { "--share": candidate.visits / most } }), String(candidate.visits)),
              h("td.number", { title: candidate.value?.map((value, seat) => `${game.nameOf(seat)} ${percent(value)}`).join(", ") }, candidate.value ? percent(candidate.value[player]) + (candidate.value_error ? ` ± ${percent(candidate.value_error)}` : "") : EMPTY),
            ),
          ),
        ),
      ),
      h(
        "p.muted.caption",
        {},
        analysis.value && `${analysis.is_book ? "Opening book" : "Search"}: ${analysis.value.map((value, seat) => `${game.nameOf(seat)} ${percent(value)}`).join(" · ")}`,
        analysis.score_lead && `; expected lead ${analysis.score_lead.map((lead) => signed(Math.round(10 * lead) / 10)).join(" · ")}`,
      ),
    );
  }

  /** Show a candidate on the board; with a mouse, while the pointer is over its name. */
  #show(candidate, hovering = false) {
    this.preview = candidate;
    this.previewAt = this.game.at;
    this.table.board.redraw();
    if (candidate && !hovering) this.table.say(`${shortMove(candidate)}, ${plural(candidate.visits, "visit")}`);
  }

  // ---- Mistakes

  #mistakes() {
    const { game } = this;
    if (!game.over && !game.studied) return null;
    const mistakes = game.mistakes().slice(0, 6);
    if (!mistakes.length) return null;
    return h(
      "div.mistakes",
      {},
      h("h3", {}, "Largest mistakes"),
      h(
        "ol",
        {},
        mistakes.map((mistake) =>
          h(
            "li",
            {},
            h(
              "button.mistake",
              {
                dataset: { focus: `mistake-${mistake.move}` },
                onclick: () => {
                  game.goTo(mistake.move);
                  this.#show(mistake.best);
                  this.update();
                },
              },
              h("span.number", {}, String(mistake.move + 1)),
              moveSwatch(game, mistake.played),
              h("span.what", {}, h("b", {}, shortMove(mistake.played)), h("span.muted", {}, `better: ${shortMove(mistake.best) === shortMove(mistake.played) ? mistake.best.name : shortMove(mistake.best)}`)),
              h("span.loss", {}, `−${percent(mistake.loss)}`),
            ),
          ),
        ),
      ),
    );
  }
}

/** Marks that show a move before it is played. */
function ghostOf(move) {
  if (move.cells) return { ghost: { cells: move.cells, color: String(move.color), legal: true } };
  if (move.points) return { ghost: { points: move.points, cell: move.cell, numbers: move.numbers, legal: true } };
  if (move.to) return { legal: [move.to, ...(move.build ? [move.build] : [])], ...(move.from ? { selected: move.from } : {}) };
  return {};
}
