// The page of a game to play or watch: a table connected to the server.

import { alertTo } from "./alerts.js";
import { api, sentence } from "./api.js";
import { link, place } from "./backend.js";
import { Connection, sendOnce } from "./connection.js";
import { confirmDialog, curtain } from "./dialogs.js";
import { h, numeral, render } from "./dom.js";
import { hasEditor } from "./editors/index.js";
import { icon } from "./icons.js";
import { t } from "./language.js";
import { Game, isUnnamed } from "./model.js";
import { scrollTo } from "./motion.js";
import { shortMove, spokenMove } from "./moves.js";
import { firstMove } from "./options.js";
import { phraseMenu, PHRASES } from "./phrases.js";
import { editorPage } from "./positions.js";
import { resultCard, verdict } from "./result.js";
import { about } from "./rules.js";
import { linkField, SHARE, shareDialog } from "./share.js";
import { attempt, say, toast } from "./speech.js";
import { dropTriedToken, forgetToken, helped, invitations, keepToken, ownSeat, preference, results, sharedSeats, tokenOf, tryToken } from "./storage.js";
import { Table } from "./table.js";

export function play(container, { parts: [id], go }) {
  const page = new PlayPage(container, id, go);
  return () => page.end();
}

class PlayPage {
  link = { name: "connecting", text: "" };
  guest = false; // whether the user came by a link or took a seat here, without entering a name
  hinting = false; // a hint is being computed

  constructor(container, id, go) {
    this.container = container;
    this.id = id;
    this.go = go;
    this.game = new Game();
    const { query, token } = place();
    this.showMove = Number(query.get("move") ?? NaN);
    if (token) {
      // The token of an invitation must not stay in the address, which users copy and browsers store.
      tryToken(id, token);
      this.invited = this.guest = true;
      history.replaceState(null, "", location.pathname + location.search);
    }
    this.shared = sharedSeats.get(id);
    this.game.sharedSeats = new Set(Object.keys(this.shared).map(Number));
    render(container, h("p.loading", {}, "Joining the game …"));
    this.game.addEventListener("moved", (event) => this.#moved(event.detail));
    // Behind a curtain, nobody has a seat until a player is ready.
    this.#connect(sharedSeats.hidden(id) ? null : tokenOf(id));
  }

  end() {
    this.curtain?.close();
    this.connection.close();
    this.table?.end();
    document.title = "tilewe_jax";
  }

  #connect(token = tokenOf(this.id)) {
    this.connection = new Connection(this.id, token, {
      state: (message) => this.#state(message),
      message: (message) => this.#message(message),
      status: (name, text) => this.#status(name, text),
      known: () => this.#known(),
    });
  }

  #known() {
    const name = preference.get("name", "");
    // At a shared screen, the stored name may belong to another player.
    return { after: this.game.last, undos: this.game.undos, ...(name && !this.game.shared ? { name } : {}) };
  }

  /** At a shared screen, join again at the seat to move. */
  #changeSeat() {
    const { game } = this;
    const mover = game.frames[game.last].current_player;
    if (this.curtain?.open && (mover === game.you || game.over)) this.curtain.close();
    if (game.over || mover === game.you || !this.shared[mover] || this.table.busy || this.curtain?.open) return;
    const change = () => {
      keepToken(this.id, this.shared[mover]);
      this.connection.close();
      this.#connect();
    };
    if (sharedSeats.hidden(this.id)) this.curtain = curtain(game.nameOf(mover), change);
    else change();
  }

  // ---- From the server

  #state(message) {
    if (!this.table) {
      this.table = new Table(this.container, this.game, {
        submit: (action) => this.#submit(action),
        explain: (action) => this.connection.send({ type: "explain", action }),
        analyse: (move) => this.#analyse(move),
        review: () => api.review(this.id),
        analysisReason: () => this.#analysisReason(),
        status: () => this.#statusLine(),
        header: (above, card, requests) => this.#header(above, card, requests),
        actions: () => this.#actions(),
        notes: () => this.#mayEdit && h("button.quiet", { title: "Open this position in the editor", dataset: { focus: "action-text" }, onclick: () => this.#edit() }, icon("text"), "Edit position"),
        key: (event) => this.#key(event),
      });
      this.container.classList.add("wide");
    }
    const isFirst = this.game.id === null;
    const wasOver = this.game.over;
    const wasTurn = this.game.yourTurn;
    const before = this.game.rematch;
    this.game.merge(message);
    if (Number.isFinite(this.showMove)) {
      this.game.goTo(this.showMove);
      this.showMove = NaN;
    }
    document.title = `${this.game.yourTurn ? t("● Your turn · ") : ""}${about(this.game.game).title} · tilewe_jax`;
    if (!wasTurn && this.game.yourTurn && !this.game.over) setTimeout(() => this.game.yourTurn && say("Your turn"), 900);
    if (isFirst && this.game.you !== null) ownSeat.set(this.id, this.game.you);
    if (this.game.over && !wasOver) {
      this.#recordResult();
      say(t`Game over. ${verdict(this.game)}.`);
      invitations.set(this.id, null);
    }
    if (!isFirst) alertTo(this.game, { moved: message.moves?.length > 0, turned: !wasTurn && this.game.yourTurn && !this.game.shared, ended: this.game.over && !wasOver });
    if (this.game.rematch && !before) this.#rematchOffered();
    this.#changeSeat();
  }

  /** Redo the last undo. At a shared screen, the moves are made again, each at its seat. */
  #redo() {
    if (!this.game.shared) return this.#ask({ type: "redo" });
    const { player, id } = this.game.undone[0];
    return attempt(() => sendOnce(this.id, this.shared[player], () => this.#known(), { type: "move", action: id, move: this.game.last }));
  }

  get #mayRedo() {
    const { game } = this;
    return game.shared ? !game.over && game.undo === null && game.sharedSeats.has(game.undone[0]?.player) : game.redo;
  }

  /** Store the result of the user in this browser. */
  #recordResult() {
    const { game } = this;
    const before = results.get().find(({ id }) => id === this.id);
    if (game.you === null || game.shared || game.seats.length < 2 || game.set_up || before) return;
    const rivals = game.seats.filter((_, seat) => seat !== game.you).map(({ agent }) => agent ?? null);
    results.add({ id: this.id, game: game.game, at: Date.now(), rivals, won: game.over.returns[game.you], helped: game.undos > 0 || helped.get(this.id) });
  }

  #message(message) {
    if (message.type === "error") toast(message.error, "bad");
    if (message.type === "said" && PHRASES[message.phrase]) {
      this.table?.players.hear(message.seat, PHRASES[message.phrase]);
      if (message.seat !== this.game.you) say(`${this.game.nameOf(message.seat)}: ${t(PHRASES[message.phrase])}`);
    }
  }

  #status(name, text = "") {
    const wasLost = this.game.lostAt !== null;
    this.link = { name, text };
    if (name === "refused") this.curtain?.close();
    if (name === "waiting") this.game.lost();
    if (name === "open" && this.invited) {
      this.invited = false;
      keepToken(this.id, tokenOf(this.id));
    }
    if (name === "refused" && dropTriedToken(this.id)) {
      this.invited = false;
      toast(text, "bad");
      this.#connect();
    } else if (name === "refused") {
      const mine = tokenOf(this.id) !== null;
      render(
        this.container,
        h(
          "div.notice",
          {},
          h("h1", {}, "You cannot join this game"),
          h("p", {}, text),
          h("div.row", {}, h("a.button", { href: link("/"), dataset: { link: "" } }, "Back to the lobby"), mine && h("button", { onclick: () => { forgetToken(this.id); this.go(`/game/${this.id}`); } }, "Watch instead")),
        ),
      );
    } else if (name === "connecting" && wasLost) {
      this.link.text = "Connection lost. Connecting …";
      this.table?.update();
    } else if (name !== "connecting") this.table?.update();
    // Shown only if connecting takes longer, to avoid flicker.
    else setTimeout(() => this.link.name === "connecting" && this.table?.update(), 800);
  }

  #moved(moves) {
    const move = moves.at(-1);
    if (move.player !== this.game.you) say(`${this.game.nameOf(move.player)} ${spokenMove(move)}`);
    if (move.note) toast(sentence(move.note), "bad");
    const [before, after] = [this.game.frames[this.game.last - 1], this.game.frames[this.game.last]];
    if (after?.kind === "triominos" && before && before.round !== after.round) {
      toast(t`Round ${after.round} is over: ${this.game.seats.map((_, seat) => `${this.game.nameOf(seat)} ${numeral(after.scores[seat])}`).join(", ")}.`);
    }
  }

  // ---- Actions of the user

  async #submit(action) {
    if (this.table.busy) return;
    this.table.busy = true;
    this.table.element.classList.add("busy");
    await attempt(() => this.connection.send({ type: "move", action, move: this.game.last }));
    this.table.busy = false;
    this.table.element.classList.remove("busy");
    this.table.update();
    this.#changeSeat();
  }

  /** Undo. At a shared screen, take back the last move of any player; another seat agrees automatically. */
  #undo() {
    const { sharedSeats: here } = this.game;
    const last = this.game.moves.at(-1)?.player;
    if (!here.has(last)) return this.#ask({ type: "undo" });
    return attempt(async () => {
      const as = (seat, message) => sendOnce(this.id, this.shared[seat], () => this.#known(), message);
      await as(last, { type: "undo" });
      await as([...here].find((seat) => seat !== last), { type: "answer_undo", accept: true });
    });
  }

  #analyse(move) {
    if (!this.game.over) helped.set(this.id);
    return this.connection.send({ type: "analyze", move });
  }

  #ask(message) {
    return attempt(() => this.connection.send(message));
  }

  async #hint() {
    const at = this.game.last;
    helped.set(this.id);
    this.hinting = true;
    this.table.update();
    const hint = await this.#ask({ type: "hint" });
    this.hinting = false;
    this.table.update();
    if (!hint || this.game.last !== at) return;
    this.table.board.suggest(hint);
    this.table.board.element.focus({ preventScroll: true });
    say(t`Hint: ${shortMove(hint)}`);
  }

  async #resign() {
    const { you, last } = this.game;
    const yes = await confirmDialog("Resign this game?", "The other players win.", "Resign", true);
    if (yes && you !== null && last >= 0) this.#ask({ type: "resign" });
  }

  async #rematch() {
    const { rematch, shared } = this.game;
    // After a restart of the server the offer has no token; the request returns one.
    if (rematch && !shared && (rematch.token || tokenOf(rematch.id))) {
      this.#joinRematch(rematch);
      return;
    }
    const tokens = this.game.shared ? Object.values(this.shared) : [tokenOf(this.id)];
    const created = await attempt(() => Promise.all(tokens.map((token) => api.rematch(this.id, token))));
    if (!created) return;
    if (this.game.shared) sharedSeats.set(created[0].id, Object.fromEntries(created.map(({ seat, token }) => [seat, token])), this.#hidden);
    this.#joinRematch(created[0]);
  }

  /** Open the position on display in the editor. */
  async #edit() {
    if (this.game.you !== null) helped.set(this.id); // the editor offers analyses
    const position = await attempt(() => api.gamePosition(this.id, this.game.at));
    if (position) this.go(await editorPage(position));
  }

  #joinRematch({ id, token }) {
    if (token) keepToken(id, token);
    this.go(`/game/${id}`);
  }

  #rematchOffered() {
    toast("A rematch is ready. Press “Join the rematch”.");
    this.table?.update();
  }

  async #takeSeat(seat) {
    const name = preference.get("name", "");
    const taken = await attempt(() => api.takeSeat(this.id, seat, name));
    if (!taken) return;
    keepToken(this.id, taken.token);
    this.guest = true;
    this.connection.close();
    this.#connect();
  }

  /** Send the name of the user to the other players. */
  async #rename(name) {
    if (!name.trim()) return;
    preference.set("name", name.trim());
    await this.#ask({ type: "name", name });
  }

  #key(event) {
    const { game } = this;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() !== "z") return false;
    if (event.altKey) return false;
    const name = event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) ? (event.shiftKey ? "y" : "u") : event.key.toLowerCase();
    if (name === "u" && this.#mayUndo) this.#undo();
    else if (name === "y" && this.#mayRedo) this.#redo();
    else if (name === "h" && this.#mayHint) this.#hint();
    else return false;
    return true;
  }

  get #mayUndo() {
    const { game } = this;
    return game.casual && !this.#hidden && game.you !== null && !game.over && game.undo === null && game.moves.some(({ player }) => player === game.you || game.sharedSeats.has(player));
  }

  /** Whether tiles are hidden, so that undo is not available. */
  get #hidden() {
    return this.game.kind === "triominos";
  }

  /** Whether there is another person at another screen. */
  get #mayTalk() {
    const { game } = this;
    return game.you !== null && game.seats.some(({ kind }, seat) => kind === "human" && seat !== game.you && !game.sharedSeats.has(seat));
  }

  /** Whether the editor is offered: during a casual game in which no other person plays. */
  get #mayEdit() {
    const { game } = this;
    const others = game.seats.some(({ kind }, seat) => ["human", "open"].includes(kind) && seat !== game.you && !game.sharedSeats.has(seat));
    return game.casual && !game.over && !this.#hidden && !others && hasEditor(game.kind);
  }

  get #hasEngine() {
    return !["off", "failed"].includes(this.game.engine?.state);
  }

  get #mayHint() {
    return this.game.casual && this.game.yourTurn && this.game.live && this.#hasEngine && !this.hinting;
  }

  #analysisReason() {
    const { game } = this;
    if (!this.#hasEngine) return "Analysis is not available: this server has no engines.";
    if (!game.over && !game.casual) return "Analysis is available after the end, because this is not a casual game.";
    if (this.#hidden && !game.over && !(game.yourTurn && game.live)) return "Tiles are hidden: during the game, you can analyse only the current position when it is your turn.";
    return null;
  }

  // ---- Display

  #statusLine() {
    const { game } = this;
    const parts = [];
    if (this.link.name === "waiting" || this.link.name === "connecting") {
      parts.push(h("span.connection", { role: "status" }, h("i.presence.away", {}), h("span", {}, this.link.text || "Connecting …")));
    }
    if (!game.live) {
      parts.push(h("span", {}, t`After move ${game.at} of ${game.last}`), h("button.link", { onclick: () => game.goTo(game.last) }, game.over ? "Go to the end" : "Back to the game"));
    } else if (game.over) parts.push(h("strong", {}, t`Game over: ${verdict(game)}`));
    else parts.push(...this.#turn());
    return parts;
  }

  #turn() {
    const { game } = this;
    const player = game.view.current_player;
    const color = game.kind === "polyomino" && game.view.colors.length > game.seats.length ? ` (${t(game.view.colors[game.view.current_color].name)})` : "";
    if (game.yourTurn) return [h("strong.your-turn", {}, game.shared ? t`${game.nameOf(player)} to move${color}` : t`Your turn${color}`)];
    const seat = game.seats[player];
    if (seat?.kind === "engine") {
      if (game.engine?.state === "starting" || game.engine?.warm === false) return [h("span.thinking", {}, t`The engine is warming up: ${firstMove(game.engine.seconds)}`, h("i", {}), h("i", {}), h("i", {}))];
      return [h("span.thinking", {}, t`${game.nameOf(player)}${color} is thinking`, h("i", {}), h("i", {}), h("i", {}))];
    }
    if (seat?.kind === "open") return [h("span", {}, "Waiting for a player to take the open seat")];
    return [h("span", {}, t`${game.nameOf(player)}${color} to move`)];
  }

  #header(element, card, requests) {
    const { game } = this;
    resultCard(card, game, [
      game.you !== null && h("button.primary", { dataset: { focus: "rematch" }, onclick: () => this.#rematch() }, game.rematch ? "Join the rematch" : "Rematch"),
      h("button", { dataset: { focus: "review" }, onclick: () => this.#review() }, icon("chart"), "Analyse"),
      h("a.button", { href: link("/"), dataset: { link: "" } }, "New game"),
    ]);
    renderOnce(element, this.#invitations());
    renderOnce(requests, [this.#undoRequest() ?? this.#openSeat() ?? this.#nameBar()].filter(Boolean));
  }

  #review() {
    this.table.openTab("analysis");
    this.game.goTo(0);
    if (!this.#analysisReason()) this.table.analysis.review();
    scrollTo(this.table.panel, "nearest");
  }

  /** Open a study of the finished game at the position on display. */
  async #study() {
    const created = await attempt(async () => api.upload(await api.record(this.id)));
    if (created) this.go(`/study/${created.id}?move=${this.game.at}`);
  }

  #invitations() {
    const { game } = this;
    if (game.over) return [];
    return (invitations.get(this.id) ?? [])
      .filter(({ seat }) => seat !== game.you && game.seats[seat] && !game.seats[seat].connected)
      .map(({ seat, token }) =>
        h("div.card.invite", {}, h("p", {}, h("b", {}, t`Invite ${game.nameOf(seat)}: `), "send this link to a friend. It gives access to this seat."), linkField(t`Invitation for seat ${seat + 1}`, location.origin + link(`/game/${this.id}#${token}`))),
      );
  }

  /** A form for the name of a user who came by a link. */
  #nameBar() {
    const { game } = this;
    if (!this.guest || game.you === null || game.over || game.shared || !isUnnamed(game.seats[game.you].name)) return null;
    const field = h("input", { type: "text", maxLength: 40, placeholder: "Your name", ariaLabel: "Your name", dataset: { focus: "guest-name" } });
    const submit = (event) => {
      event.preventDefault();
      this.#rename(field.value);
    };
    const later = () => {
      this.guest = false;
      this.table.update();
    };
    return h("form.bar.name-bar", { onsubmit: submit }, h("b", {}, t`Player ${game.you + 1}`), field, h("button.primary", { type: "submit" }, "Set name"), h("button.quiet", { type: "button", ariaLabel: "Play without a name", onclick: later }, icon("close")));
  }

  #openSeat() {
    const { game } = this;
    const seat = game.seats.findIndex(({ kind }) => kind === "open");
    if (seat < 0 || game.you !== null || game.over) return null;
    return h("div.bar", {}, h("p", {}, "This game has an open seat."), h("button.primary", { onclick: () => this.#takeSeat(seat) }, "Take the seat"));
  }

  #undoRequest() {
    const { game } = this;
    if (game.undo === null || game.you === null || game.shared) return null;
    if (game.undo === game.you) return h("div.bar", {}, h("p", {}, "You asked to take back your move. Another player must agree."));
    const answer = (accept) => () => this.#ask({ type: "answer_undo", accept });
    return h("div.bar", {}, h("p", {}, t`${game.nameOf(game.undo)} asks to take back a move.`), h("button.primary", { onclick: answer(true) }, "Agree"), h("button", { onclick: answer(false) }, "Decline"));
  }

  #actions() {
    const { game } = this;
    const button = (name, title, picture, run, properties = {}) =>
      h("button", { ariaLabel: title, title, dataset: { focus: `action-${picture}` }, onclick: run, ...properties }, icon(picture), h("span", {}, name));
    const playing = game.you !== null && !game.over;
    return [
      playing && game.casual && !this.#hidden && button("Undo", "Undo (U)", "undo", () => this.#undo(), { disabled: !this.#mayUndo }),
      playing && game.casual && this.#mayRedo && button("Redo", "Redo (Y)", "redo", () => this.#redo()),
      playing && game.casual && this.#hasEngine && button(this.hinting ? "Searching" : "Hint", "Hint (H)", "bulb", () => this.#hint(), { disabled: !this.#mayHint }),
      this.#mayTalk && (this.phraseMenu ??= phraseMenu((phrase) => this.#ask({ type: "say", phrase }))),
      playing && button("Resign", "Resign", "flag", () => this.#resign()),
      game.over && button("Study", "Play on from a position, with variations and comments", "open", () => this.#study()),
      button(SHARE, SHARE === "Share" ? "Share and download" : "Save to files", "share", () => shareDialog(game)),
    ];
  }
}

/** Render children, unless they have the text of those on display, so that what a user types in them stays. */
function renderOnce(container, children) {
  const key = children.map((child) => child.textContent).join();
  if (container.dataset.shown === key) return;
  container.dataset.shown = key;
  render(container, children);
}
