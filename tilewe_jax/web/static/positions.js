// Positions in links: {game, options, position} as compressed text.

import { LOCAL } from "./backend.js";
import { t } from "./language.js";

const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

/** A value as compressed text for a link. */
async function packed(value) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(value)), new CompressionStream("deflate-raw"));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The value of a text of `packed`. */
export async function unpacked(text) {
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
  } catch {
    throw new Error(t("This link to a position is damaged."));
  }
}

/** The page of the editor with a position. On a server it is in the part of the address that browsers do not send. */
export async function editorPage(value) {
  const code = await packed(value);
  return LOCAL ? `/editor?position=${code}` : `/editor#${code}`;
}
