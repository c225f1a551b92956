// The lobby: all games, the form for a new game, and lists of games in progress.

import { api, catalog } from "./api.js";
import { offlineSection } from "./away.js";
import { link, LOCAL } from "./backend.js";
import { h, render, verbatim } from "./dom.js";
import { icon } from "./icons.js";
import { message, plural, t } from "./language.js";
import { shownName } from "./model.js";
import { scrollTo } from "./motion.js";
import { optionsInWords } from "./options.js";
import { resultsOf } from "./results.js";
import { about } from "./rules.js";
import { dailyCard } from "./puzzle.js";
import { playersInWords, Setup } from "./setup.js";
import { attempt, toast } from "./speech.js";
import { keepToken, ownGames, ownSeat, preference, sharedSeats, tokenOf } from "./storage.js";
import { dropField } from "./study.js";
import { boardSvg } from "./render/tilewe-game.js";

const REFRESH = 4000; // milliseconds
const MOST_OWN = 3; // own games that are not folded

export function lobby(container, { go }) {
  const page = new Lobby(container, go);
  return () => page.end();
}

class Lobby {
  constructor(container, go) {
    this.go = go;
    document.title = t("tilewe_jax · play");
    this.badge = h("div.engine-state", { role: "status" });
    this.cards = h("div.cards", { role: "radiogroup", ariaLabel: "Games", onkeydown: (event) => this.#cardKey(event) });
    this.form = h("div.form-place", {});
    this.own = h("div.lists.own", {});
    this.results = h("div", {});
    this.finished = new Map(); // finished own games by id
    this.lists = h("div.lists", {});
    this.daily = h("section", { hidden: true });
    this.offline = h("section.offline", { hidden: true });
    render(
      container,
      h("section.hero", {}, h("div", {}, h("h1", {}, "Choose a game"), h("p.lead", {}, LOCAL ? "Play against an engine at your level, or with others at this screen. Games stay in this browser." : "Play against an engine at your level, a friend, or anyone in the lobby.")), this.badge),
      h("div.lobby", {}, h("section", { ariaLabel: "Games" }, this.own, this.cards), this.form, h("div.below", {}, this.daily, this.results, this.lists, h("section", {}, h("h2", {}, "Study"), dropField(go), h("a.button.editor-link", { href: link("/editor"), dataset: { link: "", focus: "editor-link" } }, icon("open"), "Position editor")), this.offline)),
    );
    this.#load();
  }

  end() {
    this.ended = true;
    clearTimeout(this.timer);
    clearTimeout(this.engineTimer);
  }

  async #load() {
    const [catalogue, samples] = await Promise.all([catalog(true).catch((error) => void (error.away || toast(error.message, "bad"))), fetch(new URL("./samples.json", import.meta.url)).then((response) => response.json())]);
    if (this.ended) return;
    if (!catalogue) {
      render(this.cards, h("p.muted", {}, "The games appear here when the server answers."));
      this.timer = setTimeout(() => this.#load(), REFRESH);
      return;
    }
    this.catalogue = catalogue;
    this.samples = samples;
    this.setup = new Setup(catalogue, this.go);
    render(this.form, this.setup.element);
    const last = preference.get("game", catalogue.games[0].id);
    this.#choose(catalogue.games.some(({ id }) => id === last) ? last : catalogue.games[0].id);
    this.#engine();
    this.#refresh();
    dailyCard(this.daily);
    offlineSection(this.offline, catalogue.offline);
  }

  #choose(id) {
    this.chosen = id;
    preference.set("game", id);
    render(
      this.cards,
      this.catalogue.games.map((game) => {
        const { title, tagline } = about(game.id, this.catalogue);
        this.pictures ??= {};
        this.pictures[game.id] ??= this.#picture(game.id);
        return h(
          "button.card.game",
          { role: "radio", ariaChecked: String(game.id === id), tabIndex: game.id === id ? 0 : -1, dataset: { focus: `game-${game.id}`, game: game.id }, onclick: () => this.#pick(game.id) },
          h("span.picture", { ariaHidden: "true" }, this.pictures[game.id]),
          h("span.title", {}, title),
          h("span.tagline", {}, tagline || playersInWords(game.players)),
          h("span.players-count", {}, icon("person"), playersInWords(game.players)),
        );
      }),
    );
    this.setup.choose(id);
    render(this.results, resultsOf(this.catalogue.games.find((game) => game.id === id)));
  }

  #pick(id) {
    this.#choose(id);
    if (matchMedia("(max-width: 899px)").matches) scrollTo(this.form);
  }

  #cardKey(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const ids = this.catalogue.games.map(({ id }) => id);
    this.#choose(ids[(ids.indexOf(this.chosen) + step + ids.length) % ids.length]);
    this.cards.querySelector('[aria-checked="true"]').focus();
  }

  #picture(id) {
    const view = this.samples[id];
    if (!view) return icon("text");
    return boardSvg(view, { coordinates: false });
  }

  async #engine() {
    const { state } = this.catalogue.engine ?? { state: "off" };
    const texts = {
      starting: ["thinking", LOCAL ? "The games are starting. You can choose one now." : "The engines are warming up. You can start a game now; their first moves take longer."],
      ready: ["", "Engines are ready"],
      failed: ["", LOCAL ? "The games do not start in this browser" : "The engines do not start; play against people"],
      off: ["", "This server has no engines; play against people"],
    };
    const [className, text] = texts[state] ?? ["", state];
    this.badge.className = `engine-state ${state} ${className}`;
    render(this.badge, icon("engine"), text, className && [h("i", {}), h("i", {}), h("i", {})]);
    if (state !== "starting" || this.ended) return;
    this.engineTimer = setTimeout(async () => {
      const fresh = await catalog(true).catch(() => this.catalogue);
      this.catalogue.engine = fresh.engine;
      this.setup.refresh(fresh);
      this.#engine();
    }, 2000);
  }

  // ---- Lists of games

  async #refresh() {
    // Own games are requested by their ids, because the public list omits private and older games; finished ones do not change.
    const ids = ownGames().filter((id) => tokenOf(id));
    const open = ids.filter((id) => !this.finished.has(id));
    const [games, news] = await Promise.all([api.games(), open.length ? api.gamesOf(open) : []]).catch(() => []);
    if (this.ended) return;
    if (games) {
      for (const game of news) if (game.over) this.finished.set(game.id, game);
      this.#drawLists(games, ids.map((id) => this.finished.get(id) ?? news.find((game) => game.id === id)).filter(Boolean));
    }
    this.timer = setTimeout(() => this.#refresh(), REFRESH);
  }

  #drawLists(games, mine) {
    const turn = (game) => game.mover !== null && (game.mover === ownSeat.get(game.id) || game.mover in sharedSeats.get(game.id));
    const own = mine.filter(({ over }) => !over).sort((a, b) => turn(b) - turn(a));
    const folded = [...own.splice(MOST_OWN), ...mine.filter(({ over }) => over)];
    const others = games.filter(({ id }) => !mine.some((game) => game.id === id));
    const open = others.filter(({ over, open_seats: seats }) => !over && seats.length).slice(0, 6);
    const running = others.filter((game) => !game.over && !game.open_seats.length).slice(0, 6);
    const over = games.filter((game) => game.over).slice(0, 4);
    const list = (title, items, empty, action) =>
      (items.length || empty) &&
      h("section", {}, h("h2", {}, title), items.length ? h("ul.game-list", {}, items.map((game) => this.#item(game, action))) : h("p.muted", {}, empty));
    const button = (game) => h("a.button", { className: turn(game) ? "primary" : "", href: link(`/game/${game.id}`), dataset: { link: "", focus: `own-${game.id}` } }, game.over ? "View" : turn(game) ? "Your turn" : "Continue");
    render(
      this.own,
      list("Your games", own, "", button),
      folded.length > 0 && h("details", { open: this.own.querySelector("details")?.open }, h("summary", { dataset: { focus: "finished" } }, t`More of your games (${folded.length})`), h("ul.game-list", {}, folded.map((game) => this.#item(game, button)))),
    );
    render(
      this.lists,
      list("Open games", open, LOCAL ? "" : "Nobody is waiting. Start a game for anyone, and it will appear here.", (game) => h("button.primary", { dataset: { focus: `join-${game.id}` }, onclick: () => this.#join(game) }, "Join")),
      list("In progress", running, "", (game) => h("a.button", { href: link(`/game/${game.id}`), dataset: { link: "", focus: `watch-${game.id}` } }, icon("eye"), "Watch")),
      list("Just finished", over, "", (game) => h("a.button", { href: link(`/game/${game.id}`), dataset: { link: "", focus: `over-${game.id}` } }, "View")),
    );
  }

  #item(game, action) {
    const details = [optionsInWords(game.options), plural(game.moves, "move")].filter(Boolean).join(" · ");
    return h("li", {}, h("span.what", {}, h("b", {}, about(game.game, this.catalogue).title), h("span", { translate: false }, verbatim(game.names.map((name) => shownName(message(name))).join(" – "))), h("span.muted", {}, details)), action(game));
  }

  async #join(game) {
    const taken = await attempt(() => api.takeSeat(game.id, game.open_seats[0], preference.get("name", "") || null));
    if (!taken) return;
    keepToken(game.id, taken.token);
    this.go(`/game/${game.id}`);
  }
}
