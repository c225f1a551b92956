// The moves of a game: a list, a slider, and buttons to step through them.

import { h, render, verbatim } from "./dom.js";
import { icon } from "./icons.js";
import { message, t } from "./language.js";
import { gainOf, notation, shortMove } from "./moves.js";
import { moveSwatch } from "./seats.js";

export class Timeline {
  constructor(game) {
    this.game = game;
    this.slider = h("input", { type: "range", min: 0, ariaLabel: "Move", oninput: () => game.goTo(Number(this.slider.value)) });
    const step = (name, title, to) => h("button.quiet", { ariaLabel: title, title, onclick: () => game.goTo(to()) }, icon(name));
    this.count = h("output.muted", {});
    this.bar = h(
      "div.timeline",
      { role: "group", ariaLabel: "Step through the game" },
      step("first", "Go to the start (Home)", () => 0),
      step("previous", "Go one move back (,)", () => game.at - 1),
      this.slider,
      step("next", "Go one move forward (.)", () => game.at + 1),
      step("last", "Go to the latest move (End)", () => game.last),
      this.count,
    );
    this.list = h("ol.moves", { ariaLabel: "Moves", tabIndex: 0 });
  }

  update() {
    const { game } = this;
    this.bar.hidden = game.last === 0;
    this.slider.max = game.last;
    this.slider.value = game.at;
    this.slider.setAttribute("aria-valuetext", game.at ? t`after move ${game.at}` : t("start"));
    this.count.textContent = `${game.at} / ${game.last}`;
    render(
      this.list,
      game.moves.map((move, index) =>
        h(
          "li",
          {},
          h(
            "button",
            {
              className: `move ${game.at === index + 1 ? "shown" : ""}`,
              title: notation(move),
              "aria-current": game.at === index + 1 ? "true" : null,
              dataset: { focus: `move-${index}` },
              onclick: () => game.goTo(index + 1),
            },
            h("span.number", {}, String(index + 1)),
            moveSwatch(game, move),
            h("span", {}, shortMove(move)),
            move.reason && h("span.reason", {}, message(move.reason)),
            h("span.gain", {}, gainOf(move)),
          ),
          this.#branches(index),
        ),
      ),
      game.last === 0 && h("li.muted.empty", {}, "No moves yet."),
    );
    const scroller = this.list.parentElement;
    const shown = this.list.querySelector(".shown") ?? this.list.lastElementChild;
    if (scroller && shown) scroller.scrollTop = Math.max(0, shown.offsetTop - scroller.clientHeight / 2);
  }

  /** The comment after a move, and the moves of other lines in its place. */
  #branches(index) {
    const { tree } = this.game;
    const comment = tree?.comment(index + 1);
    const others = tree?.others(index) ?? [];
    return [
      comment && h("p.comment", {}, verbatim(comment)),
      others.length > 0 && h("div.row.others", { role: "group", ariaLabel: t`Other moves instead of move ${index + 1}` }, others.map(({ move, isGame, show }) => h("button.quiet", { title: notation(move), dataset: { focus: `other-${index}-${move.id}` }, onclick: show }, moveSwatch(this.game, move), `${isGame ? t("game: ") : ""}${shortMove(move)}`))),
    ];
  }
}
