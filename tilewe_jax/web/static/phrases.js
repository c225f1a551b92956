// The phrases that players can say instead of a chat; the server has the same list.

import { h } from "./dom.js";
import { icon } from "./icons.js";

export const PHRASES = {
  hello: "Hello!",
  luck: "Good luck!",
  good: "Good move!",
  oops: "Oops!",
  wait: "One moment, please.",
  thanks: "Thank you for the game!",
  bye: "I must go.",
  again: "Another game?",
};

/** A menu of the phrases; `say(phrase)` sends one. */
export function phraseMenu(say) {
  const choose = (phrase) => {
    menu.open = false;
    menu.querySelector("summary").focus();
    say(phrase);
  };
  function onkeydown(event) {
    if (event.key === "Escape") menu.open = false;
  }
  const menu = h(
    "details.menu.phrases",
    { onkeydown },
    h("summary.button", { ariaLabel: "Say something", title: "Say something", dataset: { focus: "phrases" } }, icon("speech"), h("span", {}, "Say")),
    h("div.menu-content", {}, Object.entries(PHRASES).map(([phrase, text]) => h("button", { dataset: { phrase, focus: `phrase-${phrase}` }, onclick: () => choose(phrase) }, text))),
  );
  return menu;
}
