// The page: shows the view of an address.

import { link, place } from "./backend.js";
import { h, render } from "./dom.js";
import { dashboard } from "./dashboard.js";
import { editor } from "./editor.js";
import { helpButton, helpKeys } from "./help.js";
import { translatePage } from "./language.js";
import { languageButton } from "./language_button.js";
import { lobby } from "./lobby.js";
import { play } from "./play.js";
import { puzzle } from "./puzzle.js";
import { study } from "./study.js";
import { applyTheme, themeButton } from "./theme.js";

// A view is a function of the container and {go, parts}, the parts of its path; it returns a function that ends it.
const VIEWS = [
  [/^\/game\/([\w-]+)$/, play],
  [/^\/study(?:\/([\w-]+))?$/, study],
  [/^\/editor$/, editor],
  [/^\/puzzle(?:\/(\w+)\/(\d+))?$/, puzzle],
  [/^\/dashboard$/, dashboard],
  [/^\/$/, lobby],
];

const main = document.getElementById("main");
let leave = () => {};

export function go(page) {
  visit(link(page));
}

function visit(address) {
  history.pushState(null, "", address);
  show();
}

function show() {
  leave();
  leave = () => {};
  const { path } = place();
  for (const item of document.querySelectorAll(".top nav a[data-link]")) {
    const target = place(new URL(item.href)).path;
    const current = target === "/" ? path === "/" : path.startsWith(target);
    if (current) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  main.className = "";
  for (const [pattern, view] of VIEWS) {
    const match = path.match(pattern);
    if (match) {
      leave = view(main, { go, parts: match.slice(1) });
      return;
    }
  }
  document.title = "tilewe_jax";
  render(main, h("div.notice", {}, h("h1", {}, "This page does not exist"), h("p", {}, h("a", { href: link("/"), dataset: { link: "" } }, "Choose a game"))));
}

document.addEventListener("click", (event) => {
  const item = event.target.closest("a[data-link]");
  if (!item || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  visit(item.href);
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
addEventListener("popstate", show);
addEventListener("hashchange", () => {
  if (place().token.length > 7) show(); // the user pasted an invitation into the address
});

translatePage();
applyTheme();
document.getElementById("top-tools").append(...languageButton(), themeButton(), helpButton());
addEventListener("keydown", helpKeys);
show();
