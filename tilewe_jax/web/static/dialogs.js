// Small dialogs: a question, and a text field.

import { h } from "./dom.js";

/** Ask; gives whether the answer was yes. */
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

/** A dialog of this content, with a button that closes it. */
export function infoDialog(title, ...content) {
  const dialog = h("dialog.question", { ariaLabel: title }, h("h2", {}, title), content, h("div.row.end", {}, h("button", { onclick: () => dialog.close() }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
