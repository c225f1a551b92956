// Base class of the editors of positions.

import { h } from "../dom.js";
import { icon } from "../icons.js";

const key = (value) => JSON.stringify(value);

/**
 * An editor has `facts`, the position for the server; `view`, for drawing; and handles cells (`press`) and commands (`act`).
 * `page` is the page: {cursor, remember(), changed(), update()}.
 */
export class PositionEditor {
  constructor(page, blank) {
    this.page = page;
    this.blank = blank;
    this.facts = structuredClone(blank.position);
  }

  /** Show a position of the server or of a link. */
  load(facts) {
    this.facts = { ...structuredClone(this.blank.position), ...structuredClone(facts) };
  }

  /** Show a position of the same game with other options, as far as it fits. */
  adopt(facts) {
    this.load(this.fitted(facts));
  }

  /** Change the position. */
  change(run) {
    this.page.remember();
    run();
    this.page.changed();
  }

  clear() {
    this.facts = structuredClone(this.blank.position);
  }

  trays() {
    return null;
  }

  /** Whether the chosen piece can be put at the cursor. */
  get mayPut() {
    return false;
  }

  marks() {
    return {};
  }

  /** Further facts in the panel. */
  facts_() {
    return null;
  }

  /** The next cell of the cursor in a direction. */
  step(cursor, [dx, dy]) {
    const { size } = this.blank.view;
    if (!cursor) return [size >> 1, size >> 1];
    return [cursor[0] + dx, cursor[1] + dy].map((number) => Math.max(0, Math.min(size - 1, number)));
  }

  /** Radio buttons: `choices` are [value, content, label] with a focus name. */
  radios(name, title, choices, chosen, choose) {
    return h(
      "fieldset.choices",
      {},
      h("legend", {}, title),
      h(
        "div.choice-row",
        { role: "radiogroup", ariaLabel: title, onkeydown: (event) => this.#radioKey(event, choices, chosen, choose, name) },
        choices.map(([value, content, label]) =>
          h("button", { type: "button", role: "radio", ariaChecked: String(key(value) === key(chosen)), ariaLabel: label ?? null, title: label ?? null, tabIndex: key(value) === key(chosen) ? 0 : -1, dataset: { focus: `${name}-${value}` }, onclick: () => choose(value) }, content),
        ),
      ),
    );
  }

  #radioKey(event, choices, chosen, choose, name) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const index = choices.findIndex(([value]) => key(value) === key(chosen));
    const [value] = choices[(index + step + choices.length) % choices.length];
    choose(value);
    document.querySelector(`[data-focus="${CSS.escape(`${name}-${value}`)}"]`)?.focus();
  }

  tool(name, title, picture) {
    return h("button.tool", { ariaLabel: title, title, dataset: { focus: `tool-${name}` }, onclick: () => this.act(name) }, icon(picture));
  }
}
