// Creating and replacing elements, and formatting values.

import { t } from "./language.js";


export { EMPTY, numeral, signed } from "./render/tilewe-game.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * Create an element: `h("button.primary#go", {onclick, ariaLabel: "Go"}, "text", child, ...)`.
 * Properties of the element are set as properties, so that handlers are functions and never text; others as attributes.
 * `dataset` and `style` are objects. Children that are null, undefined or false are omitted; lists are flattened.
 * Texts of the page are translated, in children and in properties; `verbatim` keeps texts of users.
 */
export function h(selector, properties = {}, ...children) {
  const [, tag, rest] = selector.match(/^([\w-]+)(.*)$/);
  const element = document.createElement(tag);
  for (const [, mark, name] of rest.matchAll(/([.#])([\w-]+)/g)) {
    if (mark === ".") element.classList.add(name);
    else element.id = name;
  }
  for (const [name, given] of Object.entries(properties)) {
    if (given === undefined || given === null) continue;
    const value = TEXTS.has(name) ? t(String(given)) : given;
    if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else if (name === "className") element.classList.add(...value.split(" ").filter(Boolean));
    else if (name in element && !READ_ONLY.has(name)) element[name] = value;
    else if (value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...nodes(children));
  return element;
}

const TEXTS = new Set(["title", "ariaLabel", "aria-label", "ariaRoleDescription", "aria-valuetext", "placeholder"]);
const READ_ONLY = new Set(["list", "form", "role"]); // read-only properties, which have attributes

/** Create an SVG element with attributes. */
export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) element[name] = value;
    else element.setAttribute(name, TEXTS.has(name) ? t(value) : value);
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children
    .flat(3)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (typeof child === "string" ? t(child) : child));
}

/** A text of a user, such as a name or a comment, which is not translated. */
export function verbatim(text) {
  return document.createTextNode(text);
}

/**
 * Replace the children of a container. Focus (by `data-focus`) and scroll position are kept, so that an arriving move does not
 * disturb players who use the keyboard.
 */
export function render(container, ...children) {
  const active = document.activeElement;
  const key = container.contains(active) ? active.dataset.focus : undefined;
  const top = container.scrollTop;
  container.replaceChildren(...nodes(children));
  if (top) container.scrollTop = top;
  if (key !== undefined) container.querySelector(`[data-focus="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  return container;
}

/** Return a function that calls `run` after `wait` milliseconds without another call. */
export function debounce(run, wait) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), wait);
  };
}

/** Whether keys belong to a form field or an open dialog. */
export function typing(target) {
  return target instanceof Element && target.closest("input:not([type=range],[type=checkbox],[type=radio]), select, textarea, dialog[open], [contenteditable]") !== null;
}

export function percent(share) {
  return `${Math.round(100 * share)} %`;
}
