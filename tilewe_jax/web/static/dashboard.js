// Training: curves and games of runs, and live self-play games.

import { api } from "./api.js";
import { compact, lineChart } from "./chart.js";
import { h, render } from "./dom.js";
import { plural, t } from "./language.js";
import { LiveGrid } from "./live.js";
import { boardSvg } from "./render/tilewe-game.js";
import { about } from "./rules.js";
import { preference } from "./storage.js";

const REFRESH = 5000;
const COLORS = ["violet", "blue", "red", "green", "yellow", "grey"].map((name) => `var(--tilewe-${name})`);
// The most important columns; the others follow by name.
const FIRST = ["policy_loss", "outcome_loss", "score_loss", "agreement", "policy_entropy", "search_entropy", "surprise", "returns", "plies"];
const X = ["iteration", "step", "steps", "round"];

export function dashboard(container) {
  const page = new Dashboard(container);
  return () => page.end();
}

class Dashboard {
  rows = { metrics: [], evaluations: [] };
  next = 0;

  constructor(container) {
    document.title = t("Training · tilewe_jax");
    this.picker = h("div.row", {});
    this.tiles = h("div.tiles", {});
    this.charts = h("div.charts", {});
    this.live = new LiveGrid();
    this.games = h("section.newest", { hidden: true });
    render(
      container,
      h("div.dashboard", {}, h("header.row.spread", {}, h("h1", {}, "Training"), this.picker), this.live.element, this.tiles, this.charts, this.games),
    );
    container.classList.add("wide");
    this.#runs();
  }

  end() {
    this.ended = true;
    clearTimeout(this.timer);
    this.live.end();
  }

  async #runs() {
    let runs;
    try {
      ({ runs } = await api.runs());
    } catch (error) {
      render(this.charts, h("p.muted", {}, error.message));
      return;
    }
    if (this.ended) return;
    this.runs = runs;
    if (!this.runs.length) {
      render(
        this.charts,
        h("div.notice", {}, h("h2", {}, "No runs yet"), h("p", {}, "This page shows the curves of training runs. Start the server with the folder of your runs:"), h("pre", {}, "tilewe-jax serve --runs runs")),
      );
      return;
    }
    const last = preference.get("run", "");
    this.#open(this.runs.find(({ name }) => name === last)?.name ?? this.runs[0].name);
  }

  #open(name) {
    clearTimeout(this.timer);
    preference.set("run", name);
    this.run = name;
    this.rows = { metrics: [], evaluations: [] };
    this.next = 0;
    render(
      this.picker,
      h("label.field", {}, h("span", {}, "Run"), h("select", { onchange: (event) => this.#open(event.target.value), dataset: { focus: "run" } }, this.runs.map((run) => h("option", { translate: false, value: run.name, selected: run.name === name }, run.game ? `${run.name} · ${about(run.game).title}` : run.name)))),
    );
    this.#refresh(name);
    this.#newest(name);
  }

  /** Show the last positions of the newest games of a run. */
  async #newest(name) {
    const news = await api.runGames(name).catch(() => null);
    if (this.ended || this.run !== name) return;
    const views = (news?.games ?? []).map(({ view }) => view);
    this.games.hidden = views.length === 0;
    if (views.length) render(this.games, h("h2", {}, "Newest games"), h("div.boards", {}, views.map((view) => h("div.card", {}, boardSvg(view, { coordinates: false })))));
  }

  async #refresh(name) {
    const news = await api.metrics(name, this.next).catch(() => null);
    if (this.ended || this.run !== name) return;
    if (news) {
      const metrics = news.metrics;
      const { evaluations } = news;
      const changed = metrics.length || evaluations.length !== this.rows.evaluations.length || !this.drawn;
      this.rows.metrics.push(...metrics);
      this.rows.evaluations = evaluations; // evaluations are few and sent completely
      this.next = news.next;
      if (changed) this.#draw();
    }
    // A long run arrives in several parts.
    this.timer = setTimeout(() => this.#refresh(name), news?.metrics.length ? 200 : REFRESH);
  }

  #draw() {
    this.drawn = true;
    const { metrics, evaluations } = this.rows;
    const run = this.runs.find(({ name }) => name === this.run) ?? {};
    const latest = metrics.at(-1) ?? {};
    const tile = (title, value, translate = true) => value !== undefined && h("div.stat", { translate }, h("dt", {}, title), h("dd", {}, value));
    render(
      this.tiles,
      h(
        "dl.stats",
        {},
        tile("State", run.finished === undefined ? undefined : run.finished ? t("finished") : t("running")),
        tile("Iterations", compact(xOf(latest, metrics.length))),
        ...["policy_loss", "outcome_loss", "agreement"].filter((name) => Number.isFinite(latest[name])).map((name) => tile(title(name), compact(Number(latest[name].toPrecision(4))), false)),
        evaluations.length > 0 && tile("Evaluations", compact(evaluations.length)),
      ),
    );
    render(this.charts, this.#chartsOf(evaluations, "Evaluations"), this.#chartsOf(metrics, "Metrics"));
  }

  #chartsOf(rows, heading) {
    if (!rows.length) return heading === "Metrics" ? h("p.muted", {}, "This run has no rows yet.") : null;
    const flat = rows.map((row) => flatten(row));
    const names = [...new Set(flat.flatMap((row) => Object.keys(row)))].filter((name) => !X.includes(name) && name !== "time" && flat.some((row) => row[name]?.some(Number.isFinite)));
    const rank = (name) => (FIRST.indexOf(name) + 1 || FIRST.length + 1);
    names.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
    const last = xOf(rows.at(-1), rows.length - 1);
    const main = names.filter((name) => FIRST.includes(name) || name.startsWith("opponents."));
    const others = names.filter((name) => !main.includes(name));
    const grid = (shown) =>
      h(
        "div.chart-grid",
        {},
        shown.map((name) => {
          const seats = Math.max(...flat.map((row) => row[name]?.length ?? 0));
          const lines = Array.from({ length: seats }, (_, seat) => ({
            color: COLORS[seats > 1 ? seat + 1 : 0],
            points: thinned(flat.map((row, at) => [xOf(rows[at], at), row[name]?.[seat]]).filter(([, y]) => Number.isFinite(y))),
          }));
          const latest = lines.map(({ points }) => compact(Number(points.at(-1)?.[1].toPrecision(4) ?? NaN))).join(" · ");
          return h(
            "figure.card",
            {},
            h("figcaption", { translate: false }, title(name), h("b", {}, latest)),
            rows.length > 1 && lineChart({ lines, x: [xOf(rows[0], 0), last], format: compact, height: 140, label: t`${title(name)}: ${latest} at the end` }),
          );
        }),
      );
    const open = this.charts.querySelector(`[data-focus="more-${heading}"]`)?.parentElement.open;
    return h(
      "section",
      {},
      h("h2", {}, heading, h("span.muted", {}, plural(rows.length, "row"))),
      grid(main),
      others.length > 0 &&
        h("details.others", { open }, h("summary", { dataset: { focus: `more-${heading}` } }, plural(others.length, "more curve")), grid(others)),
    );
  }
}

/** The x coordinate of a row: its iteration or step, otherwise its index. */
function xOf(row, index) {
  const name = X.find((column) => Number.isFinite(row[column]));
  return name ? row[name] : index;
}

/** Numbers and short lists of numbers (by seat), with dotted names for nested objects. */
function flatten(row, prefix = "", result = {}) {
  for (const [name, value] of Object.entries(row)) {
    if (typeof value === "number") result[prefix + name] = [value];
    else if (Array.isArray(value)) {
      if (value.length <= 6 && value.every((item) => typeof item === "number")) result[prefix + name] = value;
    } else if (value && typeof value === "object") flatten(value, `${prefix}${name}.`, result);
  }
  return result;
}

/** At most `most` points, evenly spaced, with the first and the last. */
function thinned(points, most = 400) {
  if (points.length <= most) return points;
  return Array.from({ length: most }, (_, index) => points[Math.round((index * (points.length - 1)) / (most - 1))]);
}

function title(name) {
  const opponent = name.match(/^opponents\.(.+)\.(\w+)$/);
  const words = (opponent ? `${opponent[2]} against ${opponent[1]}` : name).replaceAll(/[._]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
