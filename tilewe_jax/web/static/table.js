// The view of one game: board, trays, players, moves, analysis. Games and studies share it.

import { alertSwitches } from "./alerts.js";
import { AnalysisPanel } from "./analysis.js";
import { ExplorerPanel } from "./explorer.js";
import { boardFor } from "./boards/index.js";
import { confirmDialog } from "./dialogs.js";
import { h, numeral, render, signed, typing } from "./dom.js";
import { watchGamepads } from "./gamepad.js";
import { icon } from "./icons.js";
import { t } from "./language.js";
import { Players } from "./players.js";
import { about } from "./rules.js";
import { say } from "./speech.js";
import { preference } from "./storage.js";
import { picturesOf } from "./lessons.js";
import { describe, numbersOf } from "./render/tilewe-game.js";
import { Timeline } from "./timeline.js";

const LESSONS = 3; // moves

/**
 * `services` are functions of the surrounding page: `submit(action)`, `explain(action)`, `analyse(move)`, `review()`, `analysisReason()`;
 * `status()` returns the line above the board; `header(header, result, requests)` fills the header, the result card and the bars
 * above the board; `explore(source)` resolves to the moves played from the position, and `follow(action)` plays one of them;
 * `actions()` returns the buttons below the players, `notes()` elements below the list of moves; `key(event)` handles further keys.
 */
export class Table {
  busy = false; // a move has been sent and is not acknowledged yet
  board = null;
  #ending = [];

  constructor(container, game, services) {
    this.game = game;
    this.services = services;
    this.players = new Players(game);
    this.timeline = new Timeline(game);
    this.analysis = new AnalysisPanel(this, services);
    this.explorer = services.explore ? new ExplorerPanel(this, services) : null;
    this.tab = preference.get("tab", "moves");
    this.textBoard = preference.get("text", false);
    this.numbers = preference.get("numbers", false);
    this.coordinates = preference.get("coordinates", true);
    this.corners = preference.get("corners", true);

    this.status = h("div.status", {});
    this.header = h("div.header", {});
    this.result = h("section.result", { ariaLabel: "Result", hidden: true });
    this.boardPlace = h("div.board-place", {});
    this.requests = h("div.requests", { role: "group", ariaLabel: "Requests", ariaLive: "polite" });
    this.noteLine = h("p.note", { ariaLive: "off" });
    this.toolsPlace = h("div.tools-place", {});
    this.trayPlace = h("aside.side.left", { ariaLabel: "Pieces" });
    this.text = h("pre.board-text", { tabIndex: 0, ariaLabel: "Board as text" });
    this.actions = h("div.row.actions", { role: "toolbar", ariaLabel: "Game" });
    // The tabs and their content stay in place, so that updates keep the focus and the scroll position.
    this.tabs = h("div.tabs", { role: "tablist", ariaLabel: "About the game", onkeydown: (event) => this.#tabKey(event) });
    this.content = h("div.panel-content", { id: "panel-content", role: "tabpanel" });
    this.panel = h("section.panel", {}, this.tabs, this.content);
    this.element = h(
      "div.table",
      {},
      this.trayPlace,
      h("section.center", { ariaLabel: "Board" }, h("div.status-place", {}, this.status, this.requests), this.boardPlace, this.noteLine, this.toolsPlace, this.timeline.bar, this.text),
      h("aside.side.right", { ariaLabel: "Game" }, this.header, this.result, this.players.element, this.actions, this.panel),
    );
    render(container, this.element);

    this.onchange = () => this.update();
    game.addEventListener("change", this.onchange);
    this.onkey = (event) => this.#key(event);
    addEventListener("keydown", this.onkey);
    this.stopGamepads = watchGamepads((name, pad) => this.board?.act(name, pad));
  }

  end() {
    this.game.removeEventListener("change", this.onchange);
    removeEventListener("keydown", this.onkey);
    this.stopGamepads();
    this.players.end();
  }

  /** Whether the board explains itself: during the first moves of a player's first game. */
  get lessons() {
    return this.isFirstGame && this.game.moves.filter(({ player }) => player === this.game.you).length < LESSONS;
  }

  // ---- For the board

  submit(action) {
    return this.services.submit(action);
  }

  explain(action) {
    return this.services.explain(action);
  }

  say(text) {
    say(text);
  }

  confirm(title, text, yes) {
    return confirmDialog(title, text, yes);
  }

  /** Marks on the board besides those of the game. */
  marks() {
    const marks = { coordinates: this.coordinates, ...this.analysis.marks(), ...this.explorer?.marks() };
    if (this.numbers) marks.numbers = numbersOf(this.game, this.game.at);
    return marks;
  }

  /** Update the note after a change of the board's state, such as a moved ghost or a chosen worker. */
  changed() {
    const note = this.board?.note;
    this.noteLine.className = `note ${note?.kind ?? ""}`;
    this.noteLine.textContent = t(note?.text ?? "");
  }

  // ---- Drawing

  update() {
    const { game } = this;
    if (!game.view) return;
    if (!this.board) {
      // In a player's first game, the rules are shown until the first move.
      this.teaching = game.you !== null && !preference.get(`played.${game.game}`, false);
      this.isFirstGame = this.teaching;
      if (this.teaching) this.tab = "rules";
      this.board = boardFor(this);
      this.element.classList.add(`kind-${game.kind}`);
      this.element.classList.toggle("watching", game.you === null);
      render(this.boardPlace, this.board.element);
      render(this.trayPlace, this.board.tray);
      this.trayPlace.hidden = !this.board.tray;
      render(this.toolsPlace, this.board.tools);
    }
    this.element.classList.toggle("watching", game.you === null);
    this.element.classList.toggle("past", !game.live || Boolean(game.over));
    if (this.teaching && game.moves.some(({ player }) => player === game.you)) {
      preference.set(`played.${game.game}`, true);
      this.teaching = false;
      if (this.tab === "rules") this.tab = "moves";
    }
    this.board.update();
    this.players.update();
    this.timeline.update();
    render(this.status, this.services.status());
    this.services.header?.(this.header, this.result, this.requests);
    const menuIsOpen = this.actions.querySelector(".menu")?.open;
    render(this.actions, this.services.actions?.(), this.#viewMenu(menuIsOpen));
    this.#drawPanel();
    this.text.hidden = !this.textBoard;
    if (this.textBoard) this.text.textContent = describe(game.view);
    this.changed();
  }

  #drawPanel() {
    const { game } = this;
    const tabs = { moves: "Moves", analysis: "Analysis", ...(this.explorer ? { explorer: "Explorer" } : {}), ...(game.rounds?.length ? { rounds: "Rounds" } : {}), rules: "Rules" };
    if (!tabs[this.tab]) this.tab = "moves";
    const content = { moves: () => [this.timeline.list, this.services.notes?.()], analysis: () => this.analysis.element, explorer: () => this.explorer.element, rounds: () => roundsTable(game), rules: () => rulesOf(game) }[this.tab]();
    render(
      this.tabs,
      Object.entries(tabs).map(([name, title]) =>
        h("button.tab", { role: "tab", id: `tab-${name}`, ariaSelected: String(name === this.tab), "aria-controls": "panel-content", tabIndex: name === this.tab ? 0 : -1, dataset: { focus: `tab-${name}` }, onclick: () => this.openTab(name) }, title),
      ),
    );
    this.content.setAttribute("aria-labelledby", `tab-${this.tab}`);
    render(this.content, content);
    if (this.tab === "moves") this.timeline.update();
    else if (this.tab === "analysis") this.analysis.update();
    else if (this.tab === "explorer") this.explorer.update();
  }

  #tabKey(event) {
    const names = [...this.tabs.children].map(({ id }) => id.replace("tab-", ""));
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.openTab(names[(names.indexOf(this.tab) + step + names.length) % names.length]);
    this.panel.querySelector('[aria-selected="true"]').focus();
  }

  openTab(name) {
    if (this.tab !== name) this.content.scrollTop = 0;
    this.tab = name;
    preference.set("tab", name);
    this.update();
  }

  #viewMenu(open = false) {
    const toggle = (name, title) =>
      h("label.switch", {}, h("input", { type: "checkbox", checked: this[name], onchange: (event) => this.#toggle(name, event.target.checked) }), title);
    return h(
      "details.menu",
      { open },
      h("summary.button", { ariaLabel: "Display and alerts", title: "Display and alerts", dataset: { focus: "view-menu" } }, icon("eye"), h("span", {}, "View")),
      h(
        "div.menu-content",
        {},
        toggle("coordinates", "Coordinates"),
        toggle("numbers", "Move numbers"),
        this.game.kind === "polyomino" && !this.game.studied && toggle("corners", "Open corners"),
        toggle("textBoard", "Board as text"),
        !this.game.studied && alertSwitches(),
      ),
    );
  }

  #toggle(name, value = !this[name]) {
    this[name] = value;
    preference.set({ textBoard: "text" }[name] ?? name, value);
    this.update();
  }

  // ---- Keys

  #key(event) {
    if (typing(event.target) || event.defaultPrevented || !this.board) return;
    const onControl = event.target.closest?.("button, a, summary, input, [role=radiogroup], [role=tablist]");
    const onBoard = this.board.element.contains(event.target);
    if (onControl && ["Enter", " ", "Escape"].includes(event.key)) return; // the control handles these keys
    if (onControl?.matches("input") && event.key.startsWith("Arrow")) return;
    if ((onBoard || (this.game.yourTurn && this.game.live)) && this.board.key(event)) {
      event.preventDefault();
      this.board.element.focus({ preventScroll: true }); // later keys go to the board, too
      return;
    }
    if (this.#command(event)) event.preventDefault();
  }

  #command(event) {
    if (event.altKey || event.metaKey || event.ctrlKey) return this.services.key?.(event) ?? false;
    const { game } = this;
    const commands = {
      ",": () => game.goTo(game.at - 1),
      ".": () => game.goTo(game.at + 1),
      ArrowLeft: () => game.goTo(game.at - 1),
      ArrowRight: () => game.goTo(game.at + 1),
      Home: () => game.goTo(0),
      End: () => game.goTo(game.last),
      t: () => this.#toggle("textBoard"),
      m: () => this.analysis.toggleHeat(),
      v: () => say(this.summary()),
    };
    const command = commands[event.key] ?? commands[event.key.toLowerCase()];
    if (command) command();
    else return this.services.key?.(event) ?? false;
    return true;
  }

  /** A description of the position for screen readers. */
  summary() {
    const { game } = this;
    const scores = game.kind === "santorini" ? "" : game.seats.map((_, seat) => `${game.nameOf(seat)} ${numeral(game.view.scores[seat])}`).join(", ");
    return `${this.status.textContent}. ${scores}. ${describe(game.view)}`;
  }
}

const COLUMNS = { start: "At the start", tiles: "Tiles", hexagons: "Hexagons", bridges: "Bridges", bonus: "First tile", draws: "Draws", passes: "Passes", end: "End" };

/** The points of each round by source. */
function roundsTable(game) {
  return game.rounds.map((round, index) => {
    // A line below the name, because seven columns would be wider than the panel.
    const sources = (row) => Object.keys(COLUMNS).filter((name) => row[name]).map((name) => `${t(COLUMNS[name])} ${signed(row[name])}`);
    const ended = { out: ([seat]) => (game.isYou(seat) ? "you have placed all tiles" : t`${game.nameOf(seat)} has placed all tiles`), stuck: () => "no player could move" }[round.reason];
    return h(
      "div.round",
      {},
      h("h3", {}, t`Round ${index + 1}`, ended && h("span.muted", {}, ended(round.winners ?? []))),
      h(
        "table.rounds",
        {},
        h("thead", {}, h("tr", {}, h("th", {}, "Player"), h("th", {}, "Sum"))),
        h("tbody", {}, round.points.map((row, seat) => h("tr", {}, h("td", {}, game.nameOf(seat), h("span.muted.sources", {}, sources(row).join(" · "))), h("td.number", {}, h("b", {}, numeral(row.total)))))),
      ),
    );
  });
}

function rulesOf(game) {
  const { title, rules } = about(game.game);
  const target = game.view?.target;
  return h("div.rules", {}, h("h3", {}, title), picturesOf(game.kind), h("ul", {}, rules.map((rule) => h("li", {}, rule)), target && h("li", {}, t`The game ends after the round in which a player reaches ${target} points.`)));
}
