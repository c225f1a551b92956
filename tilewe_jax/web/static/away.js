// While the server cannot be reached: a note, and the games that run in this browser, if it keeps them.

import { link, LOCAL, request } from "./backend.js";
import { h, render } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./language.js";
import { toast } from "./speech.js";

const RETRY = 4000; // milliseconds
const AWAY = [502, 503, 504]; // answers of a reverse proxy without its server, if they are not JSON

const note = h("div.away", { role: "status", hidden: true });
let retry;

/** Whether a response comes from a reverse proxy that does not reach the server. */
export const isAway = (response) => AWAY.includes(response.status) && !response.headers.get("content-type")?.includes("json");

/** Note whether the server has answered. While it does not, it is asked again and again. */
export function reached(answered) {
  if (LOCAL || answered === note.hidden) return;
  note.hidden = answered;
  clearInterval(retry);
  if (answered) return;
  document.body.append(note);
  retry = setInterval(askServer, RETRY);
  show();
}

/** Ask whether the server answers. */
export async function askServer() {
  const response = await request("/healthz").catch(() => null);
  reached(response !== null && !isAway(response));
}

async function show() {
  const isKept = Boolean((await registration())?.active);
  render(note, h("p", {}, "The server cannot be reached. This page tries again."), isKept && playLink("primary"));
}

const playLink = (className = "") => h("a.button", { className, href: link("/offline/"), dataset: { focus: "play-offline" } }, icon("person"), "Play offline");

/** The registration of the service worker that keeps the games, if there is one. */
async function registration() {
  const registered = await navigator.serviceWorker?.getRegistration(link("/")).catch(() => undefined); // private windows may refuse
  const worker = registered && (registered.active ?? registered.waiting ?? registered.installing);
  return worker?.scriptURL === new URL(link("/offline.js"), location).href ? registered : undefined;
}

/** Resolve once all files are kept. */
function kept({ active, waiting, installing }) {
  return new Promise((resolve, reject) => {
    if (active || waiting) resolve();
    else {
      installing.onstatechange = () => {
        if (installing.state === "redundant") reject(new Error("The files could not be kept in this browser. Check your connection and try again."));
        else resolve();
      };
    }
  });
}

/** Fill a section of the lobby: keep the games in this browser, or play them. `bytes` is the size of the files. */
export async function offlineSection(section, bytes) {
  if (LOCAL || !bytes || !navigator.serviceWorker) return;
  const size = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 1, minimumFractionDigits: 1 }).format(bytes / 1e6);
  const draw = (...content) => render(section, h("h2", {}, "Play offline"), content);
  const ready = () => draw(h("p.muted", {}, "This browser keeps the games. Without a network, open this page as usual."), playLink());
  const wait = async (given) => {
    draw(h("p.muted", {}, t`Downloading ${size} MB. You can go on playing meanwhile.`), h("progress", {}));
    try {
      await kept(await given);
      ready();
    } catch (error) {
      toast(error.message, "bad");
      offer();
    }
  };
  const offer = () =>
    draw(
      h("p.muted", {}, "Keep the games in this browser, to play without a network: against engines, or with others at this screen."),
      h("button", { dataset: { focus: "keep" }, onclick: () => wait(navigator.serviceWorker.register(link("/offline.js"))) }, icon("download"), t`Download ${size} MB`),
    );
  const given = await registration();
  if (!given) offer();
  else if (given.active) ready();
  else wait(given);
  section.hidden = false;
}
