// The options of games in words that need no manual.

const LABELS = {
  size: "Board size",
  players: "Players",
  voluntary_pass: "Passing is allowed",
  placement: "Workers at the start",
  tiles: "Tiles",
  start: "Who begins a round",
  game: "Length",
  target: "Points to win",
  max_rounds: "Rounds at most",
};

const VALUES = {
  placement: { default: "in the middle", random: "drawn by lot", chosen: "placed by the players" },
  start: { random: "drawn by lot", highest: "the highest tile", winner: "the last winner" },
  game: { single: "one round", target: "rounds to a target" },
};

/** The options that mean nothing unless another one has a value. */
const ONLY_WITH = { target: ["game", "target"], max_rounds: ["game", "target"] };

export function optionLabel(name) {
  return LABELS[name] ?? name.replaceAll("_", " ");
}

export function valueLabel(name, value) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return VALUES[name]?.[value] ?? String(value);
}

export function applies(name, values) {
  const [other, needed] = ONLY_WITH[name] ?? [];
  return other === undefined || values[other] === needed;
}

/** The options of a game that differ from the default ones, in a line: "10 × 10, rounds to a target". */
export function optionsInWords(options) {
  return Object.entries(options ?? {})
    .map(([name, value]) => (name === "size" ? `${value} × ${value}` : typeof value === "boolean" ? (value ? optionLabel(name).toLowerCase() : "") : name === "players" ? `${value} players` : VALUES[name]?.[value] ?? `${optionLabel(name).toLowerCase()} ${value}`))
    .filter(Boolean)
    .join(", ");
}
