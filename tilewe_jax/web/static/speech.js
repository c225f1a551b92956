// What the page says: to screen readers by the live region, and to everybody by short notes at the edge.

import { h } from "./dom.js";
import { icon } from "./icons.js";

let clearing;

/** Have screen readers read a text out. The same text twice is read twice. */
export function say(text) {
  const live = document.getElementById("live");
  live.replaceChildren();
  clearTimeout(clearing);
  clearing = setTimeout(() => live.replaceChildren(h("p", {}, text)), 50);
}

/** Show a short note, and read it out. `kind` is "info", "good" or "bad"; bad news stays longer. */
export function toast(text, kind = "info") {
  const note = h("div.toast", { className: kind }, h("span", {}, text));
  const remove = () => note.remove();
  note.append(h("button.quiet", { ariaLabel: "Close this note", onclick: remove }, icon("close")));
  const toasts = document.getElementById("toasts");
  toasts.append(note);
  while (toasts.children.length > 3) toasts.firstChild.remove();
  setTimeout(remove, kind === "bad" ? 9000 : 4500);
  say(text);
}

/** Run something that may fail, and show why it failed. Gives what it gives, or undefined. */
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    toast(error.message, "bad");
    return undefined;
  }
}
