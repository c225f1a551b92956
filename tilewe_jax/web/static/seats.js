// Colours of players, the same on the board, in lists and in graphs.

import { h } from "./dom.js";
import { seatColor } from "./render/tilewe-game.js";

/** The CSS colours of a seat; two if the player has two colours. */
export function colorsOf(view, seat) {
  if (view?.kind === "polyomino") return view.colors.filter(({ player }) => player === seat).map(({ name }) => property(name));
  return [property(seatColor(view?.kind, seat))];
}

export function colorOf(view, seat) {
  return colorsOf(view, seat)[0];
}

const property = (name) => `var(--tilewe-${name})`;

/** A mark in the colours of a seat. */
export function swatch(view, seat) {
  return mark(...colorsOf(view, seat));
}

/** A mark in one of the colours of a polyomino game, by its name. */
export function colorSwatch(name) {
  return mark(property(name));
}

/** A mark in the colour of a move's piece or player. */
export function moveSwatch({ view }, move) {
  return view.kind === "polyomino" ? colorSwatch(view.colors[move.color].name) : swatch(view, move.player);
}

function mark(first, second = first) {
  return h("span.swatch", { style: { "--a": first, "--b": second }, ariaHidden: "true" });
}
