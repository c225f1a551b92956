// The players: names, points, clocks, and counts of the game.

import { h, numeral, render, verbatim } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./language.js";
import { isUnnamed } from "./model.js";
import { Counters } from "./motion.js";
import { swatch } from "./seats.js";

const HEARD = 6000; // milliseconds

export class Players {
  constructor(game) {
    this.game = game;
    this.said = new Map(); // phrases by seat
    this.element = h("section.players", { ariaLabel: "Players" });
    this.timer = setInterval(() => this.#tick(), 200);
    this.counters = new Counters((seat, points) => {
      if (this.scores[seat]) this.scores[seat].textContent = numeral(points);
    });
  }

  end() {
    clearInterval(this.timer);
    clearTimeout(this.forgetting);
  }

  /** Show a phrase beside the name of a player for a while. */
  hear(seat, text) {
    this.said.set(seat, text);
    this.update();
    clearTimeout(this.forgetting);
    this.forgetting = setTimeout(() => {
      this.said.clear();
      this.update();
    }, HEARD);
  }

  update() {
    const { game } = this;
    const { view } = game;
    if (!view) return;
    this.clocks = [];
    this.scores = [];
    render(
      this.element,
      game.seats.map((seat, index) => {
        const moves = !view.terminal && view.current_player === index;
        const thinking = moves && game.live && game.thinking;
        const clock = game.clock && h("span.clock", { role: "timer", ariaLabel: t`Clock of ${game.nameOf(index)}` });
        if (clock) this.clocks[index] = clock;
        if (view.kind !== "santorini") this.scores[index] = h("span.score", { ariaLabel: t`${numeral(view.scores[index])} points` });
        return h(
          "div.player",
          { className: [moves ? "to-move" : "", game.winners.includes(index) ? "winner" : ""].join(" "), "aria-current": moves ? "true" : null },
          swatch(view, index),
          h(
            "div.player-name",
            {},
            h("span.name", { title: game.nameOf(index) }, verbatim(game.nameOf(index))),
            h("span.muted.role", {}, this.#role(seat, index), thinking && h("span.thinking", { ariaLabel: "thinking" }, "thinking", h("i", {}), h("i", {}), h("i", {}))),
          ),
          this.said.has(index) && h("span.said", {}, this.said.get(index)),
          clock,
          this.scores[index],
          this.#details(view, index),
        );
      }),
    );
    this.scores.forEach((_, seat) => this.counters.set(seat, view.scores[seat], game.live && game.arrivedAt !== null));
    this.#tick();
  }

  #role(seat, index) {
    if (seat.kind === "engine") return [icon("engine"), agentName(seat.agent)];
    if (seat.kind === "record") return null;
    if (seat.kind === "open") return [icon("open"), "waiting for a player"];
    if (index === this.game.you || this.game.sharedSeats.has(index)) return isUnnamed(seat.name) ? null : [icon("person"), h("span.own-name", { title: seat.name }, verbatim(seat.name))];
    return [h("i.presence", { className: seat.connected ? "here" : "away" }), seat.connected ? t("connected") : "not connected"];
  }

  #details(view, index) {
    if (view.kind === "polyomino") {
      const colors = view.colors.filter(({ player }) => player === index);
      const sum = (count) => colors.reduce((total, color) => total + count(color), 0);
      const out = colors.filter(({ out }) => out);
      return h(
        "dl.counts",
        {},
        count("pieces left", sum((color) => color.pieces.length)),
        count("void tiles", sum((color) => color.void), "Empty cells that touch the player's pieces by an edge"),
        out.length > 0 && !view.terminal && h("span.badge", { title: "Has passed or cannot place another piece" }, out.length < colors.length ? t`${out.map(({ name }) => t(name)).join(", ")} out` : "out"),
      );
    }
    if (view.kind === "triominos") {
      const tray = view.trays[index];
      return h("dl.counts", {}, count(t("tiles"), typeof tray === "number" ? tray : tray.length));
    }
    return null;
  }

  #tick() {
    const { game } = this;
    if (!game.clock || !this.clocks) return;
    const isLost = game.lostAt !== null;
    const gone = game.over ? 0 : ((game.lostAt ?? performance.now()) - game.clockAt) / 1000;
    this.clocks.forEach((clock, seat) => {
      const left = Math.max(0, game.clock.remaining[seat] - (game.clock.running === seat ? gone : 0));
      clock.textContent = clockText(left);
      clock.classList.toggle("low", left < 20);
      clock.classList.toggle("running", game.clock.running === seat && !game.over && !isLost);
      clock.classList.toggle("stopped", isLost);
    });
  }
}

function agentName(agent) {
  const level = agent?.match(/^level:(.+)$/);
  return level ? t`level ${level[1]}` : (agent ?? t("engine"));
}

function count(label, number, title) {
  return h("div", { title }, h("dt", {}, label), h("dd", {}, String(number)));
}

function clockText(seconds) {
  if (seconds < 10) return numeral(seconds.toFixed(1));
  const whole = Math.ceil(seconds); // so that a full minute is shown as 1:00
  const two = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  if (hours >= 48) return t`${Math.floor(hours / 24)} d ${hours % 24} h`;
  return `${hours ? `${hours}:${two(Math.floor(whole / 60) % 60)}` : Math.floor(whole / 60)}:${two(whole % 60)}`;
}
