// The keys, and a short guide of the page.

import { h, typing } from "./dom.js";
import { icon } from "./icons.js";

const KEYS = {
  "Everywhere": [
    [["?"], "this help"],
    [["Tab"], "from one control to the next; the board and each tray are one stop"],
  ],
  "On the board": [
    [["←", "↑", "→", "↓"], "move the cursor"],
    [["Enter", "Space"], "place the piece, choose the worker or cell, place the tile"],
    [["R", "Shift+R"], "rotate right, rotate left"],
    [["F"], "flip the piece"],
    [["N", "P"], "next, previous piece or tile"],
    [["L", "Shift+L"], "go to the next, previous place where the piece may lie"],
    [["E"], "say why the piece may not lie here"],
    [["Esc"], "take back what is chosen"],
    [["D", "X"], "draw a tile, pass (where the rules have it)"],
  ],
  "In the game": [
    [[",", "."], "one move back, one forward (also ← → while you watch)"],
    [["Home", "End"], "to the start, back to the latest move"],
    [["U", "Y"], "ask to take back a move, redo it (casual games)"],
    [["H"], "hint (casual games)"],
    [["V"], "say the position: scores, whose turn, the last move"],
    [["T"], "show the board as text"],
    [["M"], "hide or show the heat map"],
  ],
  "With a mouse": [
    ["Click", "place"],
    ["Wheel", "rotate; with Shift, another piece"],
    ["Right click", "flip"],
  ],
  "With a gamepad": [
    ["Stick or D-pad", "move the cursor"],
    [["A", "B"], "place, flip"],
    [["LB", "RB"], "rotate left, rotate right"],
    [["X", "Y"], "previous piece, next piece"],
  ],
};

let dialog;

export function showHelp() {
  if (!dialog) {
    dialog = h(
      "dialog.help",
      { ariaLabel: "Keys" },
      h("header", {}, h("h2", {}, "Keys"), h("button.quiet", { ariaLabel: "Close", onclick: () => dialog.close() }, icon("close"))),
      h(
        "div.help-columns",
        {},
        Object.entries(KEYS).map(([title, keys]) =>
          h("section", {}, h("h3", {}, title), h("dl", {}, keys.map(([key, text]) => [h("dt", {}, keyCaps(key)), h("dd", {}, text)]))),
        ),
      ),
    );
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    document.body.append(dialog);
  }
  if (!dialog.open) dialog.showModal();
}

/** A list of keys as key caps; a text is what is done with a mouse or a stick. */
function keyCaps(keys) {
  return typeof keys === "string" ? keys : keys.flatMap((key) => [h("kbd", {}, key), " "]);
}

export function helpButton() {
  return h("button.quiet", { ariaLabel: "Keys and help", title: "Keys (?)", onclick: showHelp }, icon("help"));
}

export function helpKeys(event) {
  if (event.key === "?" && !typing(event.target) && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    showHelp();
  }
}
