// Small dialogs: a question, and information.

import { h } from "./dom.js";

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

/** Show a dialog with a button to close it. */
export function infoDialog(title, ...content) {
  const dialog = h("dialog.question", { ariaLabel: title }, h("h2", {}, title), content, h("div.row.end", {}, h("button", { onclick: () => dialog.close() }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
