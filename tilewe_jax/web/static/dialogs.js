// Small dialogs: a question, and information.

import { h } from "./dom.js";
import { t } from "./language.js";

/** Ask a question; resolve to true if the answer is yes. */
export function confirmDialog(title, text, yes, danger = false) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog.question",
      { ariaLabel: title },
      h(
        "form",
        { method: "dialog" },
        h("h2", {}, title),
        h("p", {}, text),
        h("div.row.end", {}, h("button", { value: "no" }, "Cancel"), h("button", { value: "yes", className: danger ? "danger" : "primary", autofocus: true }, yes)),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/**
 * Cover the whole page until the next player at this screen is ready. `ready` is called then; the page stays covered until the
 * caller closes the dialog, which this returns.
 */
export function curtain(name, ready) {
  const start = () => {
    button.disabled = true;
    ready();
  };
  const button = h("button.primary.large", { autofocus: true, onclick: start }, "Show my tiles");
  const dialog = h("dialog.curtain", { ariaLabel: t`${name} is next` }, h("h2", {}, t`${name} is next`), h("p", {}, t`Hand the screen to ${name}. The tiles of the other players are covered.`), button);
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Show a dialog with a button to close it. */
export function infoDialog(title, ...content) {
  const dialog = h("dialog.question", { ariaLabel: title }, h("h2", {}, title), content, h("div.row.end", {}, h("button", { onclick: () => dialog.close() }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
