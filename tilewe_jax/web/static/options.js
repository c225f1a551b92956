// The options of games: labels and form fields.

import { h } from "./dom.js";
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

function optionLabel(name) {
  return name in LABELS ? t(LABELS[name]) : name.replaceAll("_", " ");
}

function valueLabel(name, value) {
  if (typeof value === "boolean") return value ? t("yes") : t("no");
  return VALUES[name]?.[value] ?? String(value);
}

/** Whether an option applies, by the options of the catalogue and the chosen values. */
export function applies(name, options, values) {
  const [other, needed] = ONLY_WITH[name] ?? [];
  return other === undefined || (values[other] ?? options[other].default) === needed;
}

/** A form field for an option of the catalogue; `set` receives a chosen value. */
export function optionField(name, option, value, set) {
  const focus = { focus: `option-${name}` };
  let control;
  if (typeof option.default === "boolean") {
    return h("label.switch", {}, h("input", { type: "checkbox", checked: value, dataset: focus, onchange: (event) => set(event.target.checked) }), optionLabel(name));
  }
  if (option.choices || (option.range && option.range[1] - option.range[0] < 8)) {
    const choices = option.choices ?? Array.from({ length: option.range[1] - option.range[0] + 1 }, (_, index) => option.range[0] + index);
    control = h("select", { dataset: focus, onchange: (event) => set(choices[event.target.selectedIndex]) }, choices.map((choice) => h("option", { selected: choice === value }, valueLabel(name, choice))));
  } else if (option.range) {
    control = h("input", { type: "number", min: option.range[0], max: option.range[1], value, required: true, dataset: focus, onchange: (event) => event.target.checkValidity() && set(Number(event.target.value)) });
  } else {
    control = h("input", { type: typeof option.default === "number" ? "number" : "text", value: value ?? "", dataset: focus, onchange: (event) => set(typeof option.default === "number" ? Number(event.target.value) : event.target.value) });
  }
  return h("label.field", {}, h("span", {}, optionLabel(name), name === "size" && h("small.muted", {}, t`${option.range?.[0]} to ${option.range?.[1]} cells per side`)), control);
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
