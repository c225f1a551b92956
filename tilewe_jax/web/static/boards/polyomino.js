// Polyomino games: trays, the ghost of a piece, and its placement.

import { sentence } from "../api.js";
import { debounce, h, render } from "../dom.js";
import { icon } from "../icons.js";
import { message, plural, t } from "../language.js";
import { markBoard } from "../lessons.js";
import { colorSwatch } from "../seats.js";
import { PIECES } from "../render/tilewe-game.js";
import { BoardArea, cellName } from "./area.js";
import { extent, Orientations, sizedPiece } from "./pieces.js";

const COARSE = matchMedia("(pointer: coarse)").matches; // touch instead of a mouse

export class PolyominoBoard extends BoardArea {
  #legal = new Set();
  #legalOf = null; // the list from which #legal was made
  #fitting = null; // pieces that can be placed now; null while others are to move
  #rules = new Map(); // the server's explanations of illegal actions in this position
  #rulesAt = null;
  #chosen = new Map(); // the chosen orientation by index of the colour

  constructor(table) {
    super(table);
    this.tray = h("section.tray-area", { ariaLabel: "Pieces" });
    this.tools = h("div.tools", { role: "toolbar", ariaLabel: "The piece" });
    this.ask = debounce((action) => this.#askWhy(action), 160);
    this.element.addEventListener("contextmenu", (event) => {
      if (!this.orientation) return;
      event.preventDefault();
      this.act("flip");
    });
    this.element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
  }

  // ---- The position

  /** The colours of the user; empty for spectators. */
  get ownColors() {
    const view = this.game.view;
    const seat = this.game.you;
    return seat === null ? [] : view.colors.map((color, index) => ({ ...color, index })).filter(({ player }) => player === seat);
  }

  /** The user's colour to move, otherwise the user's first colour. */
  get color() {
    const own = this.ownColors;
    const current = this.game.view.current_color;
    return own.find(({ index }) => index === current) ?? own[0] ?? null;
  }

  /** The chosen piece of the colour to move, as an orientation, or null. */
  get orientation() {
    return this.#chosen.get(this.color?.index) ?? null;
  }

  set orientation(orientation) {
    this.#chosen.set(this.color.index, orientation);
  }

  /** The colours of the other player if two people share the screen: this player prepares a piece meanwhile. */
  get #preparing() {
    const { sharedSeats: here, you, over, view } = this.game;
    if (here.size !== 2 || you === null || over) return [];
    return view.colors.map((color, index) => ({ ...color, index })).filter(({ player }) => player !== you && here.has(player));
  }

  update() {
    const { game } = this;
    if (game.orientations && !this.orientations) this.orientations = new Orientations(game.orientations);
    const turned = game.legal !== this.#legalOf;
    if (turned) {
      this.#legalOf = game.legal;
      this.#legal = new Set(game.legal ?? []);
      const cells = game.view.size ** 2;
      this.#fitting = game.legal && this.orientations && new Set(game.legal.map((action) => this.orientations.byId.get(Math.floor(action / cells))?.piece));
    }
    const position = `${game.undos} ${game.last}`;
    const moved = this.#rulesAt !== position;
    if (moved) {
      this.#rulesAt = position;
      this.#rules.clear();
      if (this.pointing === "touch") this.cursor = null; // the touch has ended
    }
    if (this.color) this.#keepPiece(this.color, turned ? this.#fitting : null);
    for (const color of this.#preparing) this.#keepPiece(color, null);
    if (moved && this.ghost?.legal === false) {
      // A resting mouse pointed at the previous position, so its ghost waits for the next movement; a cursor of keys stays.
      if (this.pointing === "mouse") this.cursor = null;
      else this.#explain();
    }
    this.#drawTray();
    this.#drawTools();
    this.redraw();
  }

  /** Select another piece of a colour if the selected one was placed or is not among those that fit. */
  #keepPiece(color, fit) {
    const chosen = this.#chosen.get(color.index);
    if (!this.orientations || this.game.over || !color.pieces.length) {
      this.#chosen.delete(color.index);
    } else if (!chosen || !color.pieces.includes(chosen.piece) || (fit && !fit.has(chosen.piece))) {
      const order = this.orientations.pieces;
      const from = chosen ? order.indexOf(chosen.piece) : order.length;
      // Larger pieces first, because they are harder to place later.
      const available = order.filter((piece) => color.pieces.includes(piece));
      const fitting = available.filter((piece) => fit?.has(piece));
      const left = fitting.length ? fitting : available;
      this.#chosen.set(color.index, this.orientations.first(left.findLast((piece) => order.indexOf(piece) < from) ?? left.at(-1)));
    }
  }

  // ---- The ghost

  /** The selected piece at the cursor, kept on the board: {action, cells, legal, at}, or null. */
  get ghost() {
    if (!this.cursor || !this.orientation || !this.game.live || this.game.over) return null;
    if (!this.game.yourTurn && this.pointing !== "mouse") return null; // planning ahead needs a mouse
    const { size } = this.game.view;
    const [width, height] = extent(this.orientation.cells);
    const x = Math.max(0, Math.min(size - width, this.cursor[0] - ((width - 1) >> 1)));
    const y = Math.max(0, Math.min(size - height, this.cursor[1] - (height >> 1)));
    if (width > size || height > size) return null;
    const action = this.orientation.id * size * size + y * size + x;
    return { action, at: [x, y], cells: this.orientation.cells.map(([dx, dy]) => [x + dx, y + dy]), legal: this.game.yourTurn ? this.#legal.has(action) : null };
  }

  decoration() {
    const ghost = this.ghost;
    const marks = {};
    if ((this.table.corners || this.table.lessons) && this.game.yourTurn && this.game.live) marks.legal = this.#cellsFor().open;
    this.element.classList.toggle("planning", ghost?.legal === null);
    if (ghost) marks.ghost = { cells: ghost.cells, color: String(this.color.index), legal: ghost.legal };
    return marks;
  }

  pieceOf() {
    const middle = (element) => {
      const { x, y, width, height } = element.getBBox();
      return [x + width / 2, y + height / 2];
    };
    const mark = this.svg.querySelector(".tilewe-last");
    if (!mark) return null;
    const [x, y] = middle(mark);
    return [...this.svg.querySelectorAll(".tilewe-piece")].find((piece) => {
      const [a, b] = middle(piece);
      return Math.hypot(a - x, b - y) < 5; // less than half a cell
    });
  }

  draw() {
    super.draw();
    if (!this.svg || !this.table.lessons || !this.active) return;
    const { size, start_cells: starts } = this.game.view;
    markBoard(this.svg, size, starts, this.#cellsFor().closed);
  }

  /**
   * Cells for the colour to move: `open` are free cells that touch its pieces only diagonally, and start cells, one of which a piece
   * must cover; `closed` are free cells that touch its pieces along an edge.
   */
  #cellsFor() {
    const { size, cells, current_color: color, start_cells: starts } = this.game.view;
    const at = (x, y) => (x >= 0 && y >= 0 && x < size && y < size ? cells[y * size + x] : undefined);
    const own = String(color);
    const open = [...starts];
    const closed = [];
    for (let y = 0; y < size; y++) {
      for (let x = 0; x < size; x++) {
        const beside = [at(x + 1, y), at(x - 1, y), at(x, y + 1), at(x, y - 1)];
        const diagonal = [at(x + 1, y + 1), at(x + 1, y - 1), at(x - 1, y + 1), at(x - 1, y - 1)];
        if (at(x, y) !== ".") continue;
        if (beside.includes(own)) closed.push([x, y]);
        else if (diagonal.includes(own)) open.push([x, y]);
      }
    }
    return { open, closed };
  }

  /** Request the explanation of an illegal ghost. */
  #explain() {
    const ghost = this.ghost;
    if (ghost && ghost.legal === false && !this.#rules.has(ghost.action)) this.ask(ghost.action);
  }

  hover() {
    this.#explain();
    const ghost = this.ghost;
    if (ghost && this.pointing === "keyboard") this.#sayGhost();
  }

  #sayGhost = debounce(() => {
    const ghost = this.ghost;
    if (!ghost) return;
    const state = { true: t("fits"), false: t`does not fit: ${message(this.#rules.get(ghost.action) ?? "")}`, null: "" }[ghost.legal];
    this.table.say(t`${this.orientation.piece} at ${cellName(ghost.at)} ${state}`);
  }, 400);

  async #askWhy(action) {
    const at = this.game.last;
    try {
      const { rule } = await this.table.explain(action);
      if (this.game.last !== at) return;
      this.#rules.set(action, rule);
      this.changed();
    } catch {
      // without a connection the piece stays red without a reason
    }
  }

  /** The note below the board: {text, kind}, or null. */
  get note() {
    const { game } = this;
    if (game.over || !game.live || game.you === null) return null;
    if (!game.yourTurn) return null;
    const ghost = this.ghost;
    if (!ghost) {
      if (!this.orientation) return null;
      if (!this.#fitting?.has(this.orientation.piece)) return { text: t`${this.orientation.piece} fits nowhere now. Choose another piece.`, kind: "bad" };
      if (this.table.lessons) {
        const isFirst = !this.game.view.cells.includes(String(this.game.view.current_color));
        return { text: isFirst ? "Cover a cell marked Start with your first piece." : "Cover a dot. Crosses mark the cells along your edges, which are closed.", kind: "info" };
      }
      return { text: COARSE ? "Tap the board to position the piece, then press Place." : "Click on the board to place the piece, or press L to find a place for it.", kind: "info" };
    }
    if (ghost.legal) return { text: t`${this.orientation.piece} fits here.`, kind: "good" };
    const rule = this.#rules.get(ghost.action);
    return { text: rule ? sentence(rule) : "The piece cannot be placed here.", kind: "bad" };
  }

  // ---- Acting

  /** A dragged piece is shown one and a half cells above the finger. */
  lift(event) {
    if (event.pointerType !== "touch" || !this.dragged || !this.orientation) return 0;
    const cell = this.element.clientWidth / (this.game.view.size + 1);
    return cell * (1.5 + (extent(this.orientation.cells)[1] >> 1)); // the ghost is centred on the cursor
  }

  pick(cell, pointer) {
    if (pointer === "touch") return; // a finger hides its cell, so the Place button confirms
    this.#place();
  }

  #place() {
    const ghost = this.ghost;
    if (!ghost || !this.active) return;
    if (ghost.legal) {
      this.table.submit(ghost.action);
      return;
    }
    const rule = this.#rules.get(ghost.action);
    this.element.classList.remove("shake");
    void this.element.offsetWidth; // restarts the animation
    this.element.classList.add("shake");
    if (rule) this.table.say(rule);
    else this.ask(ghost.action);
  }

  /** Execute a command. If two people with a gamepad each share the screen, the player who waits prepares a piece. */
  act(name, pad) {
    const waiting = this.#preparing;
    const pads = [...this.game.sharedSeats].sort();
    const color = pad === undefined ? null : waiting.find(({ player }) => player === pads[pad]);
    return color ? this.#handle(name, color) : super.act(name);
  }

  /** Turn or change the piece of a colour; return whether the command does so. */
  #handle(name, color) {
    if (name === "right" || name === "left" || name === "flip") this.#choose(color, this.orientations.turned(this.#chosen.get(color.index), name));
    else if (name === "next" || name === "previous") this.#another(color, name === "next" ? 1 : -1);
    else return false;
    return true;
  }

  command(name) {
    if (name === "pass") return this.#pass();
    if (!this.orientation) return false;
    if (this.#handle(name, this.color)) return true;
    if (name === "place") {
      if (!this.cursor) this.act("up");
      else this.#place();
    } else if (name === "find" || name === "findBack") this.#find(name === "find" ? 1 : -1);
    else if (name === "why") this.table.say(this.note?.text ?? "No piece is chosen");
    else if (name === "cancel") {
      this.cursor = null;
      this.changed();
    } else return false;
    return true;
  }

  #choose(color, orientation) {
    this.#chosen.set(color.index, orientation);
    this.#moved();
  }

  #another(color, step) {
    const left = this.orientations.pieces.filter((piece) => color.pieces.includes(piece));
    const index = left.indexOf(this.#chosen.get(color.index).piece);
    const next = this.orientations.first(left[(index + step + left.length) % left.length]);
    this.#choose(color, next);
    if (this.pointing === "keyboard" || !this.cursor) this.table.say(`${next.piece}, ${plural(next.cells.length, "cell")}`);
  }

  #moved() {
    this.hover();
    this.#drawTray();
    this.#drawTools();
    this.changed();
  }

  /** Legal actions of a piece in this orientation; with `any`, in all orientations if this one has none. */
  #placesOf(orientation, any = false) {
    if (!orientation) return [];
    const { size } = this.game.view;
    const places = (id) => [...this.#legal].filter((action) => Math.floor(action / (size * size)) === id);
    const here = places(orientation.id);
    if (here.length || !any) return here;
    return this.orientations.byPiece.get(orientation.piece).flatMap(({ id }) => places(id));
  }

  /** Move the ghost to the next legal place. */
  #find(step) {
    const { size } = this.game.view;
    const places = this.#placesOf(this.orientation, true);
    if (!places.length) {
      this.table.say(t`${this.orientation.piece} fits nowhere now`);
      return;
    }
    const current = places.indexOf(this.ghost?.action ?? -1);
    const action = places[current < 0 ? (step > 0 ? 0 : places.length - 1) : (current + step + places.length) % places.length];
    this.#showAction(action, size);
    this.pointing = "keyboard";
    this.#moved();
  }

  /** Show a suggested move. */
  suggest(move) {
    if (move.kind !== "place") return;
    this.#showAction(move.id, this.game.view.size);
    this.pointing = "keyboard";
    this.#moved();
  }

  #showAction(action, size) {
    this.orientation = this.orientations.byId.get(Math.floor(action / (size * size)));
    const [width, height] = extent(this.orientation.cells);
    const anchor = action % (size * size);
    this.cursor = [(anchor % size) + ((width - 1) >> 1), Math.floor(anchor / size) + (height >> 1)];
  }

  #pass() {
    const pass = this.#passAction;
    if (pass === undefined || !this.active) return false;
    this.table.confirm("Pass for the rest of the game?", "You cannot place any more pieces after a pass. The other players continue.", "Pass").then((yes) => yes && this.table.submit(pass));
    return true;
  }

  get #passAction() {
    const view = this.game.view;
    return view?.voluntary_pass && this.game.yourTurn ? this.game.legal.at(-1) : undefined;
  }

  #wheel(event) {
    if (!this.orientation || !this.cursor || this.pointing !== "mouse") return;
    event.preventDefault();
    // A mouse wheel sends large steps and a touchpad many small ones, so 40 pixels make one turn.
    this.turned = (this.turned ?? 0) + (event.deltaY || event.deltaX);
    if (Math.abs(this.turned) < 40) return;
    const forward = this.turned > 0;
    this.turned = 0;
    this.act(event.shiftKey ? (forward ? "next" : "previous") : forward ? "right" : "left");
  }

  // ---- Trays and tools

  #drawTray() {
    const view = this.game.view;
    if (!view) return;
    const own = this.orientations ? [...this.ownColors, ...this.#preparing] : [];
    const others = view.colors.map((color, index) => ({ ...color, index })).filter(({ index }) => !own.some((color) => color.index === index));
    // The colour to move first; the trays of two players stay in their places.
    const order = this.#preparing.length ? (a, b) => a.index - b.index : (a, b) => (b.index === this.color?.index) - (a.index === this.color?.index);
    render(
      this.tray,
      own.sort(order).map((color) => this.#ownTray(color)),
      h("div.small-trays", {}, others.map((color) => this.#smallTray(color))),
    );
  }

  #trayTitle({ player, name }) {
    const isOne = this.ownColors.length === 1;
    if (this.game.shared) return isOne ? t`${this.game.nameOf(player)}: pieces` : t`${this.game.nameOf(player)}: ${t(name)} pieces`;
    return isOne ? t("Your pieces") : t`Your ${t(name)} pieces`;
  }

  #ownTray(color) {
    const current = this.color?.index === color.index;
    const preparing = color.player !== this.game.you;
    const orientation = this.game.over || !(current || preparing) ? null : this.#chosen.get(color.index);
    const chosen = orientation?.piece;
    const left = new Set(color.pieces);
    const stuck = (piece) => this.#fitting !== null && current && !this.#fitting.has(piece);
    const title = this.#trayTitle(color);
    const kind = current ? "current" : preparing ? "preparing" : "waiting";
    return h(
      "div.tray",
      { className: `${kind} ${this.ownColors.length > 1 || this.#preparing.length ? "of-two" : ""}` },
      h("h2.tray-title", {}, title, h("span.muted", {}, t`${color.pieces.length} left`)),
      preparing && orientation && h("div.tools", { role: "toolbar", ariaLabel: t`${this.game.nameOf(color.player)}: prepare a piece` }, this.#pieceTools(color)),
      h(
        "div.tray-pieces",
        { role: "radiogroup", ariaLabel: t`${title}, ${color.pieces.length} left`, onkeydown: (event) => this.#trayKey(event, color) },
        this.orientations.pieces.map((piece) => {
          const shown = piece === chosen ? orientation.cells : PIECES[piece];
          if (!left.has(piece)) return h("span.piece.used", { ariaHidden: "true" }, sizedPiece(shown, color.index));
          return h(
            "button.piece",
            {
              role: "radio",
              className: stuck(piece) ? "stuck" : "",
              ariaChecked: String(piece === chosen),
              ariaLabel: `${piece}, ${plural(shown.length, "cell")}${stuck(piece) ? t(", fits nowhere now") : ""}`,
              title: stuck(piece) ? t`${piece}: fits nowhere now` : piece,
              tabIndex: piece === chosen ? 0 : -1,
              dataset: { focus: `piece-${color.index}-${piece}`, piece },
              disabled: !current && !preparing,
              onclick: () => this.#choose(color, this.orientations.first(piece)),
            },
            sizedPiece(shown, color.index),
          );
        }),
      ),
    );
  }

  #trayKey(event, color) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.#another(color, step);
    this.tray.querySelector(`[data-focus="piece-${color.index}-${this.#chosen.get(color.index).piece}"]`)?.focus();
  }

  /** The buttons that choose and turn a piece of a colour. */
  #pieceTools(color) {
    const suffix = color.index === this.color.index ? "" : `-${color.index}`;
    const tool = (name, title, picture) =>
      h("button.tool", { ariaLabel: title, title, dataset: { focus: `tool-${name}${suffix}` }, onclick: () => this.#handle(name, color) }, icon(picture));
    return [
      tool("previous", "Previous piece (P)", "previous"),
      tool("left", "Rotate left (Shift+R)", "rotateLeft"),
      h("span.chosen", { ariaHidden: "true" }, sizedPiece(this.#chosen.get(color.index).cells, color.index)),
      tool("right", "Rotate right (R)", "rotateRight"),
      tool("flip", "Flip (F)", "flip"),
      tool("next", "Next piece (N)", "next"),
    ];
  }

  #smallTray(color) {
    const { game } = this;
    return h(
      "details.small-tray",
      { open: true, ariaLabel: t`${t(color.name)} pieces` },
      h("summary", {}, colorSwatch(color.name), h("span", {}, game.you === null || game.view.colors.length > game.seats.length ? `${game.nameOf(color.player)} · ${t(color.name)}` : game.nameOf(color.player)), h("span.muted", {}, t`${color.pieces.length} left`)),
      h(
        "div.tray-pieces",
        { role: "img", ariaLabel: t`Pieces left: ${color.pieces.join(", ") || t("none")}` },
        color.pieces.map((piece) => h("span.piece", { title: piece }, sizedPiece(PIECES[piece], color.index))),
      ),
    );
  }

  #drawTools() {
    this.tools.dataset.orientation = this.orientation?.name ?? "";
    const usable = this.orientation && this.game.you !== null && !this.game.over;
    if (!usable) {
      render(this.tools);
      return;
    }
    const pass = this.#passAction;
    render(
      this.tools,
      this.#pieceTools(this.color),
      h("button.primary.place", { disabled: !this.active || !this.ghost?.legal, dataset: { focus: "tool-place" }, onclick: () => this.act("place") }, icon("check"), "Place"),
      pass !== undefined && h("button.pass", { dataset: { focus: "tool-pass" }, onclick: () => this.act("pass") }, "Pass"),
    );
  }

  changed() {
    const place = this.tools.querySelector(".place");
    if (place) place.disabled = !this.active || !this.ghost?.legal;
    super.changed();
  }
}
