// Links to a game, and downloads: picture, animation, record.

import { ANIMATION, fileLink, link, LOCAL } from "./backend.js";
import { infoDialog } from "./dialogs.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./language.js";
import { PALETTE } from "./render/tilewe-game.js";
import { shownTheme } from "./theme.js";
import { toast } from "./speech.js";

/** What is done with a game: without a server there are no links to it. */
export const SHARE = LOCAL ? "Save" : "Share";

/** Copy a text, also on pages without HTTPS, where the clipboard API is not available. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = h("textarea", { value: text, className: "visually-hidden" });
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  toast("Link copied.", "good");
}

/** A link with a button to copy it. */
export function linkField(label, address) {
  const field = h("input", { type: "text", readOnly: true, value: address, ariaLabel: label, onfocus: () => field.select() });
  return h("div.link-field", {}, field, h("button", { onclick: () => copy(address), ariaLabel: t`Copy: ${label}` }, icon("copy"), "Copy"));
}

/** The current board as the text of an SVG file, with colour values instead of the page's colour properties. */
function pictureOf(svg) {
  const colors = PALETTE[shownTheme()];
  const alone = svg.cloneNode(true);
  alone.setAttribute("font-family", "system-ui, sans-serif"); // the style sheet sets it on the page
  return new XMLSerializer().serializeToString(alone).replace(/var\(--tilewe-([\w-]+)\)/g, (text, name) => colors[name] ?? text);
}

/** Save a text as a file. */
export function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Downloads of a study: the position as a picture, and the game as data for `<tilewe-game>`. */
export function studyDownloads(name, svg, replay) {
  const item = (text, kind, ending, content) => {
    return h("button", { dataset: { focus: `download-${ending}` }, onclick: () => save(`${name}.${ending}`, kind, content()) }, icon("download"), text);
  };
  return h(
    "div.downloads",
    {},
    item("Picture (SVG)", "image/svg+xml", "svg", () => pictureOf(svg())),
    item("Game for <tilewe-game> (JSON)", "application/json", "json", () => JSON.stringify(replay)),
  );
}

export function shareDialog(game) {
  const base = `/api/games/${game.id}`;
  const records = game.over || game.view.kind !== "triominos";
  const blksgf = ["duo", "duo_official", "classic", "classic_2"].includes(game.game);
  const item = (path, name, text) => h("a.button", fileLink(path, name), icon("download"), text);
  infoDialog(
    SHARE,
    !LOCAL && h("p", {}, "Anyone with this link can watch the game and step through its moves:"),
    !LOCAL && linkField("Link for spectators", location.origin + link(`/game/${game.id}${game.live ? "" : `?move=${game.at}`}`)),
    h(
      "div.downloads",
      {},
      item(`${base}/picture?move=${game.at}&theme=${shownTheme()}`, `${game.id}-${game.at}.svg`, "Picture (SVG)"),
      item(`${base}/animation?format=${ANIMATION}&theme=${shownTheme()}`, `${game.id}.${ANIMATION}`, t`Animation (${ANIMATION.toUpperCase()})`),
      records && item(`${base}/record?format=jsonl`, `${game.id}.jsonl`, "Record"),
      records && blksgf && item(`${base}/record?format=blksgf`, `${game.id}.blksgf`, "Record (.blksgf)"),
    ),
    !records && h("p.muted", {}, "The record is available after the end of the game, because it shows all tiles."),
  );
}
