// The analysis panel: candidates, the graph of the game, and the largest mistakes.

import { lineChart } from "./chart.js";
import { EMPTY, h, numeral, percent, render, signed } from "./dom.js";
import { icon } from "./icons.js";
import { listed, message, plural, t } from "./language.js";
import { notation, shortMove } from "./moves.js";
import { colorOf, moveSwatch, swatch } from "./seats.js";
import { attempt } from "./speech.js";
import { preference } from "./storage.js";
import { boardSvg, heatOf } from "./render/tilewe-game.js";

const SHOWN = 6; // number of mistakes that are shown at first
const GRAPHS = {
  value: { title: "Win chance", own: "Your win chance" },
  lead: { title: "Score lead", own: "Your score lead" },
  points: { title: "Points", own: "Your points" },
};

/** `services` are those of the table. */
export class AnalysisPanel {
  heat = preference.get("heat", true);
  graph = preference.get("graph", "value");
  preview = null; // candidate shown on the board
  progress = null;
  #asked = new Set();

  constructor(table, { analyse, review, analysisReason }) {
    this.table = table;
    this.game = table.game;
    this.analyse = analyse;
    this.requestReview = review;
    this.available = analysisReason;
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

  /** Review the whole game: one engine values every position, and explains the mistakes. */
  async review() {
    const { game } = this;
    if (this.progress || game.review) return;
    this.progress = { done: 0, all: game.last + 1 };
    this.update();
    await attempt(async () => {
      for (;;) {
        const review = await this.requestReview();
        if (review.analyses) return game.reviewed(review);
        this.progress = review;
        this.update();
      }
    });
    this.progress = null;
    this.update();
  }

  update() {
    const { game } = this;
    const reason = this.available();
    render(
      this.element,
      this.#graphs(),
      reason ? h("p.muted", {}, reason) : [this.#about(), this.#commands(), this.#mistakes(), this.#candidates()],
    );
  }

  #commands() {
    const { game } = this;
    const missing = !game.review && (game.over || game.studied) && game.tree?.isMain() !== false;
    const here = game.analyses.has(game.at);
    return h(
      "div.row.commands",
      {},
      !here && h("button", { dataset: { focus: "analyse" }, disabled: this.#asked.has(game.at), onclick: () => this.ask(game.at) }, icon("chart"), this.#asked.has(game.at) ? "Searching …" : "Analyse this position"),
      missing && h("button", { dataset: { focus: "analyse-all" }, disabled: this.progress !== null, onclick: () => this.review() }, icon("chart"), this.progress ? (this.progress.done ? t`${this.progress.done} of ${this.progress.all} …` : "Starting the engine …") : "Analyse the whole game"),
      this.progress && h("progress", { max: this.progress.all, value: this.progress.done, ariaLabel: "Analysis of the game" }),
      h("label.switch", {}, h("input", { type: "checkbox", checked: this.heat, dataset: { focus: "heat" }, onchange: () => this.toggleHeat() }), "Heat map"),
    );
  }

  // ---- The graph

  #graphs() {
    const { game } = this;
    const known = { value: game.analyses.size > 0, lead: game.view?.kind !== "santorini" && [...game.analyses.values()].some((analysis) => analysis.score_lead), points: game.view?.kind !== "santorini" && game.last > 0 };
    const names = Object.keys(GRAPHS).filter((name) => known[name]);
    if (!names.length) return null;
    const graph = names.includes(this.graph) ? this.graph : names[0];
    return [
      names.length > 1 &&
        h(
          "div.segments",
          { role: "group", ariaLabel: "Graph" },
          names.map((name) =>
            h("button", { "aria-pressed": String(name === graph), dataset: { focus: `graph-${name}` }, onclick: () => { this.graph = name; preference.set("graph", name); this.update(); } }, GRAPHS[name].title),
          ),
        ),
      this.#chart(graph),
    ];
  }

  #chart(graph) {
    const { game } = this;
    const { view } = game;
    const title = t(GRAPHS[graph].title);
    const read = {
      value: (move) => game.review?.values[move] ?? game.analyses.get(move)?.value,
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
    const { mistakes: all = [], proven, opinions = [] } = (graph === "value" && game.review) || {};
    const mistakes = all.slice(0, SHOWN);
    const opinion = two && opinions.some(Boolean) && { color: "var(--muted)", dashed: true, points: opinions.map((said, move) => [move, said?.value?.[seats[0]]]).filter(([, y]) => Number.isFinite(y)) };
    if (opinion) lines.push(opinion);
    return [
      h("p.caption.muted", {}, two ? (game.isYou(seats[0]) ? GRAPHS[graph].own : t`${title} of ${game.nameOf(seats[0])}`) : t`${title} of each player`),
      lineChart({
        lines,
        x: [0, Math.max(1, game.last)],
        range: graph === "value" ? [0, 1] : undefined,
        zero: graph === "value" ? (two ? 0.5 : undefined) : 0,
        area: two,
        cursor: game.at,
        format: graph === "value" ? percent : graph === "lead" ? signed : numeral,
        marks: mistakes.flatMap(({ move, player, loss }) => {
          return [{ x: move, y: read(move)[two ? seats[0] : player], color: colorOf(view, player), title: t`move ${move + 1}: −${percent(loss)}` }];
        }),
        from: proven?.move,
        onpick: (move) => game.goTo(move),
        label: t`${title} over the game. Click to go to a move.`,
      }),
      opinion && h("p.caption.muted.legend", {}, h("span.dash", { ariaHidden: "true" }), t`${listed([...new Set(opinions.flatMap((said, move) => (said ? [game.nameOf(game.moves[move].player)] : [])))])} while playing`),
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
      h("h3", {}, "Best moves", h("span.muted", {}, game.isYou(player) ? "for you" : t`for ${game.nameOf(player)}`)),
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
                  { title: notation(candidate), dataset: { focus: `candidate-${candidate.id}` }, onclick: () => this.#show(candidate), onmouseenter: () => this.#show(candidate, true), onmouseleave: () => this.#show(null) },
                  shortMove(candidate),
                ),
                candidate.id === played?.id && h("span.badge", {}, "played"),
                candidate.variation?.length > 1 && h("span.variation.muted", { title: candidate.variation.join("  ") }, t`then ${candidate.variation.slice(1, 4).join("  ")}`),
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
        analysis.value && `${t(analysis.is_book ? "Opening book" : "Search")}: ${analysis.value.map((value, seat) => `${game.nameOf(seat)} ${percent(value)}`).join(" · ")}`,
        game.kind !== "santorini" && analysis.score_lead && t`; expected lead ${analysis.score_lead.map((lead) => signed(Math.round(10 * lead) / 10)).join(" · ")}`,
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

  // ---- The review

  /** Accuracy of the players, the engine, and the proven part of the game. */
  #about() {
    const { game } = this;
    const { review } = game;
    if (!review) return null;
    const { proven } = review;
    const best = proven && Math.max(...proven.returns);
    const winner = proven && proven.returns.filter((value) => value === best).length === 1 ? proven.returns.indexOf(best) : null;
        return [
      h(
        "dl.accuracy",
        {},
        game.seats.map((_, seat) => h("div", {}, h("dt", {}, swatch(game.view, seat), game.nameOf(seat)), h("dd", {}, review.accuracy[seat] === null ? EMPTY : `${Math.round(review.accuracy[seat])} %`))),
        h("p.caption.muted", {}, t`Accuracy, by ${review.agent.split(":")[0]} with ${review.simulations} simulations a position`),
      ),
      proven && h("p.proven", {}, h("button.link", { dataset: { focus: "proven" }, onclick: () => game.goTo(proven.move) }, t`From move ${proven.move + 1} on`), t` the result was certain with best play: ${outcome(game, winner, proven.margin)}.`),
    ];
  }

  #mistakes() {
    const { game } = this;
    if (!game.review) return null;
    const { mistakes } = game.review;
    if (!mistakes.length) return h("p.muted", {}, "The engine found no mistakes.");
    const shown = this.allMistakes ? mistakes : mistakes.slice(0, SHOWN);
    const more = () => {
      this.allMistakes = true;
      this.update();
    };
    return h(
      "div.mistakes",
      {},
      h("h3", {}, "Largest mistakes"),
      h("ol", {}, shown.map((mistake) => h("li", {}, this.#mistake(mistake)))),
      shown.length < mistakes.length && h("button.quiet", { onclick: more }, t`Show ${mistakes.length - shown.length} more`),
    );
  }

  #mistake(mistake) {
    const { game } = this;
    const { move, player, played, better, line } = mistake;
    const frame = game.frames[move];
    const names = [played, better].map(shortMove);
    const [mine, best] = names[0] === names[1] ? [played.name, better.name] : names;
    const lost = [mistake.loss >= 0.005 && `−${percent(mistake.loss)}`, mistake.points >= 0.5 && game.kind !== "santorini" && `−${plural(Math.round(mistake.points), "point")}`].filter(Boolean);
    const show = () => {
      game.goTo(move);
      this.#show(better);
      this.update();
    };
    return h(
      "button.mistake-card",
      { className: game.at === move ? "shown" : "", dataset: { focus: `mistake-${move}` }, onclick: show },
      frame && h("span.picture", { ariaHidden: "true" }, boardSvg(frame, { coordinates: false, ...ghostOf(better) })),
      h(
        "span.what",
        {},
        h("span.title", {}, h("b", {}, `${move + 1}. ${game.nameOf(player)}`), h("span.loss", {}, lost.join(" · "))),
        h("span", {}, moveSwatch(game, { ...played, player }), t` ${mine}; better: `, h("b", {}, best)),
        h("span.reason", {}, mistake.reason ? message(mistake.reason) : "Both moves are alike in what can be counted; the search finds better play later."),
        line.length > 0 && h("span.muted", {}, t`Then ${line.map(shortMove).join(", ")}`),
        mistake.is_proven && h("span.muted", {}, "Proven."),
      ),
    );
  }
}

/** A proven outcome in words: "Ada wins by 3 points". */
function outcome(game, winner, margin) {
  if (winner === null) return t("a tie");
  const wins = game.isYou(winner) ? t("you win") : t`${game.nameOf(winner)} wins`;
  return game.kind === "santorini" ? wins : t`${wins} by ${plural(Math.abs(margin), "point")}`;
}

/** Marks that show a move before it is played. */
export function ghostOf(move) {
  if (move.cells) return { ghost: { cells: move.cells, color: String(move.color), legal: true } };
  if (move.points) return { ghost: { points: move.points, cell: move.cell, numbers: move.numbers, legal: true } };
  if (move.to) return { legal: [move.to, ...(move.build ? [move.build] : [])], ...(move.from ? { selected: move.from } : {}) };
  return {};
}
