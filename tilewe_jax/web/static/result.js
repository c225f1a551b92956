// The result of a game: winners, points and counts.

import { h, numeral, render } from "./dom.js";
import { listed, plural, t } from "./language.js";
import { swatch } from "./seats.js";

/** The outcome as text. */
export function verdict(game) {
  const { over, you, winners } = game;
  if (!over) return "";
  if (over.scores.length === 1) return t`${numeral(over.scores[0])} points`;
  if (winners.length === over.scores.length) return t("A draw");
  if (winners.length === 1) return winners[0] === you && !game.shared ? t("You win") : t`${game.nameOf(winners[0])} wins`;
  return t`${listed(winners.map((seat) => game.nameOf(seat)))} share the win`;
}

const REASONS = {
  resignation: ["You resigned.", (name) => t`${name} resigned.`],
  time: ["You ran out of time.", (name) => t`${name} ran out of time.`],
};

/** Why the game ended, if the points do not say it. */
function ending(game, view) {
  const { reason, seat } = game.over;
  if (REASONS[reason]) {
    const [own, other] = REASONS[reason];
    return game.isYou(seat) ? own : other(game.nameOf(seat));
  }
  if (view.kind !== "santorini" || game.winners.length !== 1) return null;
  const [winner] = game.winners;
  const isUp = view.workers.slice(2 * winner, 2 * winner + 2).some(([x, y]) => view.heights[y * view.size + x] === "3");
  if (isUp) return "A worker has reached the third level.";
  return game.isYou(1 - winner) ? "You could not move." : t`${game.nameOf(1 - winner)} could not move.`;
}

/** Fill the result card. `buttons` are below its table. */
export function resultCard(element, game, buttons) {
  const view = game.frames[game.last];
  element.hidden = !game.over || !game.live;
  if (element.hidden) return;
  const { scores } = game.over;
  const columns = columnsOf(view);
  const reason = ending(game, view);
  render(
    element,
    h("h2", {}, verdict(game)),
    reason && h("p.muted", {}, reason),
    view.kind !== "santorini" &&
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", {}, "Player"), h("th", {}, "Points"), columns.map(({ title, about }) => h("th", { title: about }, title)))),
        h("tbody", {}, game.standings.map((seat) => h("tr", { className: game.winners.includes(seat) ? "winner" : "" }, h("td", {}, swatch(view, seat), game.nameOf(seat)), h("td.number", {}, h("b", {}, numeral(scores[seat]))), columns.map(({ of }) => h("td.number", {}, numeral(of(seat))))))),
      ),
    view.kind === "polyomino" && h("p.muted", {}, t`${plural(view.empty, "cell")} of ${view.size * view.size} remained empty.`),
    h("div.row", {}, buttons),
  );
}

function columnsOf(view) {
  if (view.kind === "polyomino") {
    const sum = (count) => (seat) => view.colors.filter(({ player }) => player === seat).reduce((total, color) => total + count(color), 0);
    return [
      { title: "Pieces left", of: sum((color) => color.pieces.length) },
      { title: "Void tiles", about: "Empty cells that touch the player's pieces by an edge", of: sum((color) => color.void) },
    ];
  }
  if (view.kind === "triominos") {
    return [{ title: "Tiles left", of: (seat) => (Array.isArray(view.trays[seat]) ? view.trays[seat].length : view.trays[seat]) }];
  }
  return [];
}
