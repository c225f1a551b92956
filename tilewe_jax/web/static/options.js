// Labels of the options of games.

import { plural, t } from "./language.js";

const LABELS = {
  size: "Board size",
  players: "Players",
  voluntary_pass: "Allow passing",
  placement: "Workers at the start",
  tiles: "Tiles",
  start: "First player of a round",
  game: "Length",
  target: "Points to win",
  max_rounds: "Maximum number of rounds",
};

const VALUES = {
  placement: { default: "in the middle", random: t("random"), chosen: "placed by the players" },
  start: { random: t("random"), highest: "the highest tile", winner: "the last winner" },
  game: { single: "one round", target: "rounds to a target" },
};

/** Options that apply only if another option has a value. */
const ONLY_WITH = { target: ["game", "target"], max_rounds: ["game", "target"] };

export function optionLabel(name) {
  return name in LABELS ? t(LABELS[name]) : name.replaceAll("_", " ");
}

export function valueLabel(name, value) {
  if (typeof value === "boolean") return value ? t("yes") : t("no");
  return VALUES[name]?.[value] ?? String(value);
}

export function applies(name, values) {
  const [other, needed] = ONLY_WITH[name] ?? [];
  return other === undefined || values[other] === needed;
}

/** The options of a game in one line: "10 × 10, rounds to a target". */
export function optionsInWords(options) {
  return Object.entries(options ?? {})
    .map(([name, value]) => (name === "size" ? `${value} × ${value}` : typeof value === "boolean" ? (value ? optionLabel(name) : "") : name === "players" ? plural(value, "player") : VALUES[name]?.[value] ? t(VALUES[name][value]) : `${optionLabel(name)}: ${value}`))
    .filter(Boolean)
    .join(", ");
}

/** When an engine moves whose search is not compiled yet: "first move in about 40 s". */
export function firstMove(seconds) {
  if (seconds === null || seconds === undefined) return t("the first move may take a minute or more");
  return seconds < 100 ? t`first move in about ${Math.max(5, Math.ceil(seconds / 5) * 5)} s` : t`first move in about ${Math.ceil(seconds / 60)} min`;
}
