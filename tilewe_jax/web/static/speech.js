// Announcements: for screen readers in a live region, and for all users in notes at the edge.

import { h } from "./dom.js";
import { icon } from "./icons.js";

let clearing;

/** Have screen readers read a text, even if it equals the previous one. */
export function say(text) {
  const live = document.getElementById("live");
  live.replaceChildren();
  clearTimeout(clearing);
  clearing = setTimeout(() => live.replaceChildren(h("p", {}, text)), 50);
}

/** Show a note and have it read. `kind` is "info", "good" or "bad"; bad notes stay longer. */
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

/** Run a function and return its result; if it fails, show the reason and return undefined. */
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    toast(error.message, "bad");
    return undefined;
  }
}
