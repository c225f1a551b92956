// The form for a new game: seats, options, clock.

import { api } from "./api.js";
import { link, LOCAL } from "./backend.js";
import { h, render } from "./dom.js";
import { icon } from "./icons.js";
import { message, plural, t } from "./language.js";
import { applies, firstMove, optionField } from "./options.js";
import { about } from "./rules.js";
import { seatColor } from "./render/tilewe-game.js";
import { attempt } from "./speech.js";
import { invitations, keepToken, preference, sharedSeats } from "./storage.js";

const KINDS = { you: "You", here: "Another player, this screen", engine: "Engine", friend: "Friend, by link", open: "Anyone, from the lobby" };
const PRESETS = { engine: ["engine", "Engine"], friend: ["link", "A friend"], open: ["open", "Anyone"], here: ["person", "Same screen"], watch: ["eye", "Watch engines"] };
const UNITS = { 1: t("seconds"), 60: t("minutes"), 3600: t("hours"), 86_400: t("days") };
const CLOCKS = [[0, 0], [60, 1], [180, 2], [300, 5], [600, 5], [900, 10], [1800, 20], [259_200, 86_400], [604_800, 172_800]];
const OWN = CLOCKS.length; // index of the clock to one's own taste

export class Setup {
  constructor(catalogue, go) {
    this.catalogue = catalogue;
    this.go = go;
    this.element = h("form.setup", { ariaLabel: "New game", onsubmit: (event) => this.#submit(event) });
    this.clock = 0;
    this.ownClock = preference.get("clock", [[15, 60], [10, 1]]); // time and increment as [number, unit]
    this.drawn = preference.get("drawn", false);
    this.casual = true;
    this.listed = true;
  }

  /** Choose a game; with a position, its options are given and fixed. */
  choose(id, { options = {}, position = null } = {}) {
    this.game = this.catalogue.games.find((game) => game.id === id);
    this.options = { ...options };
    this.position = position;
    const levels = this.game.levels.length;
    this.level = Math.min(preference.get(`level.${id}`, Math.floor(levels / 3)), Math.max(0, levels - 1));
    this.#preset(this.canEngine ? preference.get("preset", "engine") : "friend");
  }

  get canEngine() {
    return !["off", "failed"].includes(this.catalogue.engine?.state) && this.game.levels.length > 0;
  }

  /** Whether a preset or a kind of seat is available: engines or people may be away. */
  #offers(name) {
    if (name === "engine" || name === "watch") return this.canEngine;
    return !LOCAL || (name !== "friend" && name !== "open");
  }

  value(name) {
    return this.options[name] ?? this.game.options[name].default;
  }

  get players() {
    if (this.game.options.players) return Number(this.value("players"));
    return this.game.players[0];
  }

  #preset(name) {
    this.preset = this.#offers(name) ? name : LOCAL ? "engine" : "friend";
    const other = this.preset === "watch" ? "engine" : this.preset;
    this.seats = Array.from({ length: this.players }, (_, seat) => ({ kind: seat === 0 && this.preset !== "watch" ? "you" : other, level: this.level }));
    this.update();
  }

  update() {
    const { game } = this;
    const { title, tagline } = about(game.id, this.catalogue);
    const open = this.element.querySelector("details.more")?.open; // read now, because the toggle event arrives later
    render(
      this.element,
      h("header", {}, h("h2", {}, title), h("p.muted", {}, tagline)),
      this.players > 1 &&
        h(
          "fieldset.presets",
          {},
          h("legend", {}, "Play against"),
          Object.entries(PRESETS)
            .filter(([name]) => this.#offers(name))
            .map(([name, [picture, text]]) =>
              h("button", { type: "button", "aria-pressed": String(this.preset === name), dataset: { focus: `preset-${name}` }, onclick: () => { preference.set("preset", name); this.#preset(name); } }, icon(picture), text),
            ),
        ),
      game.options.players && !this.position && this.#field("players"),
      this.#levels(),
      this.#seats(),
      h("details.more", { open }, h("summary", { dataset: { focus: "more" } }, "Board, clock and rules"), this.#more()),
      this.refusalLine = h("p.refusal", { role: "alert", hidden: true }),
      h("button.primary.large", { type: "submit", dataset: { focus: "start" } }, "Start game"),
    );
  }

  // ---- Seats

  /** One level for all engines; the list of seats can set different levels. */
  #levels() {
    if (!this.seats.some(({ kind }) => kind === "engine")) return null;
    const { levels } = this.game;
    const shown = levels[this.level];
    return h(
      "fieldset.levels",
      {},
      h("legend", {}, "Level"),
      h(
        "div.level-row",
        { role: "radiogroup", ariaLabel: "Level of the engine", onkeydown: (event) => this.#levelKey(event) },
        levels.map(({ title }, index) =>
          h("button", { type: "button", role: "radio", className: this.#isReady(index) ? "ready" : "", ariaChecked: String(index === this.level), ariaLabel: t`Level ${index + 1}: ${message(title)}${this.#isReady(index) ? t(", ready") : ""}`, title: message(title), tabIndex: index === this.level ? 0 : -1, dataset: { focus: `level-${index}` }, onclick: () => this.#setLevel(index) }, String(index + 1)),
        ),
      ),
      h("p.level-name", {}, message(shown.title), shown.elo !== null && shown.elo !== undefined && h("span.muted", {}, t` · rating ${shown.elo}`), h("span.muted", {}, this.#preparation(shown))),
    );
  }

  /** Whether the search of a level is compiled, for the usual options of the game. */
  #isReady(level) {
    return this.game.levels[level].warm === true && !Object.keys(this.options).length;
  }

  /** When a level can move for the first time, as far as the server knows. */
  #preparation({ warm, seconds }) {
    if (LOCAL || warm === undefined) return "";
    if (Object.keys(this.options).length) return " · the first move may take longer";
    return warm ? t(" · ready") : ` · ${firstMove(seconds)}`;
  }

  /** Take over which levels are ready. */
  refresh({ games }) {
    for (const game of this.catalogue.games) game.levels = games.find(({ id }) => id === game.id)?.levels ?? game.levels;
    const before = this.element.contains(document.activeElement) && document.activeElement.dataset.focus;
    if (!before) this.update(); // never under the user's hands
  }

  #setLevel(level) {
    this.level = level;
    preference.set(`level.${this.game.id}`, level);
    for (const seat of this.seats) seat.level = level;
    this.update();
  }

  #levelKey(event) {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const count = this.game.levels.length;
    this.#setLevel((this.level + step + count) % count);
    this.element.querySelector('.level-row [aria-checked="true"]').focus();
  }

  #seats() {
    const { game } = this;
    const order = game.id === "triominos" || this.position ? null : this.seats.length > 1;
    return h(
      "fieldset.seats",
      {},
      h("legend", {}, this.seats.length > 1 ? "Seats" : "Seat", order && h("span.muted", {}, " · seat 1 moves first")),
      this.seats.map((seat, index) =>
        h(
          "div.seat-row",
          {},
          h("span.seat-number", { style: { "--a": this.#color(index) } }, String(index + 1)),
          h(
            "select",
            { ariaLabel: t`Seat ${index + 1}`, dataset: { focus: `seat-${index}` }, onchange: (event) => this.#setKind(index, event.target.value) },
            Object.entries(KINDS)
              .filter(([kind]) => this.#offers(kind))
              .map(([kind, text]) => h("option", { value: kind, selected: seat.kind === kind }, text)),
          ),
          seat.kind === "engine" &&
            h(
              "select",
              { ariaLabel: t`Level of seat ${index + 1}`, dataset: { focus: `seat-level-${index}` }, onchange: (event) => { seat.level = Number(event.target.value); } },
              game.levels.map(({ title }, level) => h("option", { value: level, selected: seat.level === level }, `${level + 1} ${message(title)}`)),
            ),
          seat.kind === "you" && h("input", { type: "text", maxLength: 40, placeholder: "Your name", ariaLabel: "Your name", value: preference.get("name", ""), dataset: { focus: "name" }, oninput: (event) => preference.set("name", event.target.value) }),
        ),
      ),
      this.seats.length > 1 &&
        h(
          "div.row.spread",
          {},
          h("label.switch", {}, h("input", { type: "checkbox", checked: this.drawn, dataset: { focus: "drawn" }, onchange: (event) => { this.drawn = event.target.checked; preference.set("drawn", this.drawn); } }), "Draw the seats at random"),
          this.seats.length === 2 && h("button.quiet.swap", { type: "button", dataset: { focus: "swap" }, onclick: () => { this.seats.reverse(); this.update(); } }, icon("redo"), "Swap seats"),
        ),
    );
  }

  #color(seat) {
    const kind = ["santorini", "triominos"].includes(this.game.id) ? this.game.id : "polyomino";
    return `var(--tilewe-${seatColor(kind, seat)})`;
  }

  #setKind(index, kind) {
    if (kind === "you") for (const seat of this.seats) if (seat.kind === "you") seat.kind = this.canEngine ? "engine" : "friend";
    this.seats[index].kind = kind;
    this.preset = null;
    this.update();
  }

  // ---- Options

  #more() {
    return [
      !this.position && h("a.button.quiet", { href: link(`/editor?game=${this.game.id}&options=${encodeURIComponent(JSON.stringify(this.options))}`), dataset: { link: "", focus: "editor" } }, icon("open"), "Set up a position"),
      Object.keys(this.position ? {} : this.game.options)
        .filter((name) => name !== "players" && applies(name, this.game.options, this.options))
        .map((name) => this.#field(name)),
      h(
        "label.field",
        {},
        h("span", {}, "Clock"),
        h(
          "select",
          { dataset: { focus: "clock" }, onchange: (event) => { this.clock = Number(event.target.value); this.update(); } },
          CLOCKS.map(([seconds, increment], index) => h("option", { value: index, selected: index === this.clock }, seconds ? t`${duration(seconds)} + ${duration(increment)} per move` : "no clock")),
          h("option", { value: OWN, selected: this.clock === OWN }, "your own"),
        ),
      ),
      this.clock === OWN && [this.#time(0, "Time of each player", 1), this.#time(1, "More after each move", 0)],
      h("label.switch", {}, h("input", { type: "checkbox", checked: this.casual, onchange: (event) => { this.casual = event.target.checked; } }), h("span", {}, "Casual", h("small.muted", {}, "undo, hints and analysis during the game"))),
      !LOCAL && h("label.switch", {}, h("input", { type: "checkbox", checked: this.listed, onchange: (event) => { this.listed = event.target.checked; } }), h("span", {}, "Listed", h("small.muted", {}, "anyone can find the game in the lobby and watch it"))),
    ];
  }

  /** A part of the clock to one's own taste. */
  #time(part, label, least) {
    const set = (index, value) => {
      this.ownClock[part][index] = value;
      preference.set("clock", this.ownClock);
      this.refusalLine.hidden = true;
    };
    const [number, unit] = this.ownClock[part];
    return h(
      "label.field",
      {},
      h("span", {}, label),
      h("input", { type: "number", min: least, max: 999, value: number, required: true, dataset: { focus: `clock-${part}` }, onchange: (event) => event.target.checkValidity() && set(0, Number(event.target.value)) }),
      h("select", { ariaLabel: t`${t(label)}: unit`, dataset: { focus: `clock-unit-${part}` }, onchange: (event) => set(1, Number(event.target.value)) }, Object.entries(UNITS).map(([seconds, name]) => h("option", { value: seconds, selected: Number(seconds) === unit }, name))),
    );
  }

  #field(name) {
    const option = this.game.options[name];
    const set = (given) => {
      if (given === option.default) delete this.options[name];
      else this.options[name] = given;
      if (name === "players") this.#preset(this.preset ?? "engine");
      else this.update();
    };
    return optionField(name, option, this.value(name), set);
  }

  // ---- Start

  /** Show the server's reason in the form until an option changes, if the options are incompatible or the clock is too long. */
  #refused(error) {
    if (!["options", "clock"].includes(error.field)) throw error;
    this.element.querySelector("details.more").open = true;
    this.refusalLine.textContent = error.message;
    this.refusalLine.hidden = false;
  }

  async #submit(event) {
    event.preventDefault();
    const { game } = this;
    const name = preference.get("name", "");
    if (this.drawn) shuffle(this.seats);
    const engines = this.seats.filter(({ kind }) => kind === "engine").length;
    const seats = this.seats.map(({ kind, level }, index) => {
      if (kind === "engine") return { kind, agent: game.levels[level].agent, name: engines > 1 ? `Engine ${index + 1}` : "Engine" };
      if (kind === "you") return name ? { kind: "human", name } : { kind: "human" };
      return { kind: kind === "open" ? kind : "human" };
    });
    const [seconds, increment] = CLOCKS[this.clock] ?? this.ownClock.map(([number, unit]) => number * unit);
    const settings = { game: game.id, options: this.options, seats, clock: seconds ? { seconds, increment } : null, casual: this.casual, public: this.listed, position: this.position };
    const button = this.element.querySelector("[type=submit]");
    button.disabled = true;
    const created = await attempt(() => api.create(settings).catch((error) => this.#refused(error)));
    button.disabled = false;
    if (!created) return;
    const mine = ["you", "here"].map((wanted) => this.seats.findIndex(({ kind }) => kind === wanted)).find((seat) => seat >= 0);
    const own = created.seats.find(({ seat }) => seat === mine);
    if (own) keepToken(created.id, own.token);
    const shared = created.seats.filter(({ seat }) => seat === mine || this.seats[seat].kind === "here");
    if (shared.length > 1) sharedSeats.set(created.id, Object.fromEntries(shared.map(({ seat, token }) => [seat, token])), game.hidden);
    invitations.set(created.id, created.seats.filter(({ seat }) => this.seats[seat].kind === "friend"));
    this.go(`/game/${created.id}`);
  }
}

/** Bring a list into a random order. */
function shuffle(list) {
  for (let last = list.length - 1; last > 0; last--) {
    const chosen = Math.floor(Math.random() * (last + 1));
    [list[last], list[chosen]] = [list[chosen], list[last]];
  }
}

/** "30 min", "1 day". */
function duration(seconds) {
  if (seconds >= 86_400) return plural(seconds / 86_400, "day");
  return seconds >= 60 ? `${seconds / 60} min` : `${seconds} s`;
}

/** "2 players", "1 to 4 players". */
export function playersInWords([fewest, most]) {
  return fewest === most ? plural(fewest, "player") : t`${fewest} to ${most} players`;
}
