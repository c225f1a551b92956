// The list of keys.

import { h, typing } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./language.js";

const KEYS = [
  [
    "Everywhere",
    [
      [["?"], "show this help"],
      [["Tab"], "go to the next control; the board and each tray count as one"],
    ],
  ],
  [
    "On the board",
    [
      [["←", "↑", "→", "↓"], "move the cursor"],
      [["Enter", "Space"], "place the piece or tile, choose the worker or cell"],
      [["R", "Shift+R"], "rotate right, rotate left"],
      [["F"], "flip the piece"],
      [["N", "P"], "choose the next, previous piece or tile"],
      [["L", "Shift+L"], "go to the next, previous legal place"],
      [["E"], "say why the piece cannot be placed here"],
      [["Esc"], "cancel the choice"],
      [["D", "X"], "draw a tile, pass (if the game allows it)"],
    ],
  ],
  [
    "In the game",
    [
      [[",", "."], "go one move back, forward (also ← → while you watch)"],
      [["Home", "End"], "go to the start, to the latest move"],
      [["U", "Y"], "undo, redo a move (casual games)"],
      [["H"], "get a hint (casual games)"],
      [["V"], "read out the position: scores, turn, last move"],
      [["T"], "show the board as text"],
      [["M"], "hide or show the heat map"],
    ],
  ],
  [
    "With a mouse",
    [
      ["Click", t("place")],
      ["Wheel", "rotate; with Shift, another piece"],
      ["Right click", t("flip")],
    ],
  ],
  [
    "With a gamepad",
    [
      ["Stick or D-pad", "move the cursor"],
      [["A", "B"], "place, flip"],
      [["LB", "RB"], "rotate left, rotate right"],
      [["X", "Y"], "previous piece, next piece"],
    ],
  ],
];

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
        KEYS.map(([title, keys]) =>
          h("section", {}, h("h3", {}, title), h("dl", {}, keys.map(([key, text]) => [h("dt", {}, keyCaps(key)), h("dd", {}, text)]))),
        ),
      ),
    );
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    document.body.append(dialog);
  }
  if (!dialog.open) dialog.showModal();
}

/** Keys as key caps; texts such as "Click" unchanged. */
function keyCaps(keys) {
  return typeof keys === "string" ? keys : keys.flatMap((key) => [h("kbd", {}, key), " "]);
}

export function helpButton() {
  return h("button.quiet", { ariaLabel: "Keys and help", title: "Keys (?)", dataset: { focus: "help" }, onclick: showHelp }, icon("help"));
}

export function helpKeys(event) {
  if (event.key === "?" && !typing(event.target) && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    showHelp();
  }
}
