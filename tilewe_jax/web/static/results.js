// The results of this browser's user against each level, and a rating from them.

import { h, numeral } from "./dom.js";
import { message, plural, t } from "./language.js";
import { results } from "./storage.js";

const SCALE = 400 / Math.LN10; // Elo points of a logistic unit

/** The probability of a win against a rating. */
const expected = (own, other) => 1 / (1 + Math.exp((other - own) / SCALE));

/**
 * The rating with the highest likelihood for games [{elo, won}], with one drawn game against their mean rating added, so that it
 * is finite: {rating, error}, where `error` is half the width of a 95 % interval.
 */
export function ratingOf(games) {
  const mean = games.reduce((sum, { elo }) => sum + elo, 0) / games.length;
  const all = [...games, { elo: mean, won: 0.5 }];
  let [low, high] = [mean - 2000, mean + 2000];
  while (high - low > 0.5) {
    const middle = (low + high) / 2;
    if (all.reduce((sum, { elo, won }) => sum + won - expected(middle, elo), 0) > 0) low = middle;
    else high = middle;
  }
  const information = all.reduce((sum, { elo }) => sum + expected(low, elo) * (1 - expected(low, elo)), 0);
  return { rating: Math.round(low), error: Math.round((1.96 * SCALE) / Math.sqrt(information)) };
}

/** The results in a game of the catalogue, or null without any. */
export function resultsOf(game) {
  const played = results.get().filter((result) => result.game === game.id);
  if (!played.length) return null;
  const levels = game.levels.map((level) => ({ ...level, games: played.filter(({ rivals }) => rivals.length && rivals.every((agent) => agent === level.agent)) }));
  const others = played.filter(({ rivals }) => !levels.some(({ agent }) => rivals.length && rivals.every((rival) => rival === agent)));
  const rows = [...levels, { title: t("other players"), games: others }].filter(({ games }) => games.length);
  const count = (games, wanted) => String(games.filter(({ won }) => wanted(won)).length);
  const rated = levels.filter(({ elo }) => elo !== null && elo !== undefined).flatMap(({ elo, games }) => games.filter(({ rivals, helped }) => rivals.length === 1 && !helped).map(({ won }) => ({ elo, won })));
  return h(
    "section.own-results",
    {},
    h("h2", {}, "Your results"),
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ["Against", "Rating", "Won", "Shared", "Lost"].map((title) => h("th", {}, title)))),
      h(
        "tbody",
        {},
        rows.map(({ title, elo, games }) =>
          h("tr", {}, h("td", {}, message(title)), h("td.number", {}, elo === null || elo === undefined ? "–" : String(elo)), [(won) => won === 1, (won) => won > 0 && won < 1, (won) => won === 0].map((wanted) => h("td.number", {}, count(games, wanted)))),
        ),
      ),
    ),
    rated.length > 0 && ownRating(rated),
    h(
      "details",
      {},
      h("summary", { dataset: { focus: "ratings" } }, "What the numbers mean"),
      h("p.muted", {}, "The levels of a game have played matches against each other. A level that is 100 points above another one wins about 64 of 100 games against it, 200 points above it about 76, and 400 points about 91. The weakest level has 0 points, the numbers are accurate to about 200 points, and those of different games cannot be compared. Your rating is the one that makes your results most likely. It counts games of two against one level, without undo and hints. Your results stay in this browser."),
    ),
  );
}

function ownRating(rated) {
  const { rating, error } = ratingOf(rated);
  return h("p", {}, "Your rating: ", h("b", {}, numeral(rating)), h("span.muted", {}, t` ± ${error}, from ${plural(rated.length, "game")}`));
}
