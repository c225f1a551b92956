// Studies: upload a record, step through it, and analyse it.

import { api } from "./api.js";
import { link, LOCAL, place } from "./backend.js";
import { h, render } from "./dom.js";
import { icon } from "./icons.js";
import { Game } from "./model.js";
import { about } from "./rules.js";
import { linkField, SHARE, studyDownloads } from "./share.js";
import { infoDialog } from "./dialogs.js";
import { attempt, toast } from "./speech.js";
import { Table } from "./table.js";

const LARGEST = 1_000_000; // maximum size of an upload in bytes

export function study(container, { parts: [id], go }) {
  if (!id) {
    upload(container, go);
    return () => {};
  }
  const page = new StudyPage(container, id, go);
  return () => page.end();
}

/** A field to choose or drop a file, which opens a study of it. */
export function dropField(go) {
  const input = h("input.visually-hidden", { type: "file", accept: ".jsonl,.json,.blksgf,.sgf,.txt", id: "record-file", onchange: () => input.files[0] && send(input.files[0]) });
  const send = async (file) => {
    if (file.size > LARGEST) {
      toast(`${file.name} is larger than 1 MB. Choose a smaller file.`, "bad");
      return;
    }
    const created = await attempt(async () => api.upload(await file.text()));
    for (const note of created?.notes ?? []) toast(`${file.name}: ${note}.`);
    if (created) go(`/study/${created.id}`);
  };
  const field = h("label.drop", { htmlFor: "record-file" }, input, icon("upload"), h("span", {}, h("b", {}, "Open a record"), h("span.muted", {}, "choose or drop a .jsonl file of this program or a .blksgf file")));
  field.addEventListener("dragover", (event) => {
    event.preventDefault();
    field.classList.add("over");
  });
  field.addEventListener("dragleave", () => field.classList.remove("over"));
  field.addEventListener("drop", (event) => {
    event.preventDefault();
    field.classList.remove("over");
    if (event.dataTransfer.files[0]) send(event.dataTransfer.files[0]);
  });
  return field;
}

function upload(container, go) {
  document.title = "Study · tilewe_jax";
  render(
    container,
    h(
      "div.narrow",
      {},
      h("h1", {}, "Study a game"),
      h("p.lead", {}, "Step through a recorded game, see the engine's analysis of each position, and find the decisive mistakes."),
      dropField(go),
      h("p.muted", {}, LOCAL ? "To study a game that you played here, open its page after the end." : "To study a game of this server, open its page after the end."),
    ),
  );
}

class StudyPage {
  constructor(container, id, go) {
    this.container = container;
    this.id = id;
    this.go = go;
    const { query } = place();
    this.number = Number(query.get("number") ?? 1);
    this.move = Number(query.get("move") ?? 0);
    render(container, h("p.loading", {}, "Loading the record …"));
    this.#load();
  }

  end() {
    this.ended = true;
    this.table?.end();
  }

  async #load() {
    let replay;
    try {
      replay = await api.study(this.id, this.number);
    } catch (error) {
      if (!this.ended) render(this.container, h("div.notice", {}, h("h1", {}, "This study cannot be opened"), h("p", {}, error.message), h("a.button", { href: link("/study"), dataset: { link: "" } }, "Open another record")));
      return;
    }
    if (this.ended) return;
    this.container.classList.add("wide");
    const game = (this.game = new Game());
    this.games = replay.games;
    this.table = new Table(this.container, game, {
      submit: () => {},
      explain: () => Promise.reject(new Error("Recorded games are read-only.")),
      analyse: (move) => api.analyseStudy(this.id, this.number, move),
      review: () => api.reviewStudy(this.id, this.number),
      analysisReason: () => null,
      status: () => [h("strong", {}, about(game.game).title), h("span.muted", {}, game.at === 0 ? "Start" : `After move ${game.at} of ${game.last}`), this.#chooser()],
      actions: () => [h("button", { dataset: { focus: "share" }, onclick: () => this.#share() }, icon("share"), h("span", {}, SHARE))],
    });
    this.replay = replay;
    game.load(replay);
    game.goTo(this.move);
    document.title = `${game.seats.map(({ name }) => name).join(" – ")} · Study`;
  }

  #share() {
    infoDialog(SHARE, !LOCAL && [h("p", {}, "Anyone with this link can see this position:"), linkField("Link to this position", location.origin + link(`/study/${this.id}?number=${this.number}&move=${this.game.at}`))], studyDownloads(`${this.game.game}-${this.number}-${this.game.at}`, () => this.table.board.svg, this.replay));
  }

  /** Buttons to choose a game of the file. */
  #chooser() {
    if (!(this.games > 1)) return null;
    const open = (number) => this.go(`/study/${this.id}?number=${number}`);
    return h(
      "span.row.chooser",
      {},
      h("button.quiet", { ariaLabel: "Previous game", disabled: this.number <= 1, onclick: () => open(this.number - 1) }, icon("previous")),
      `Game ${this.number} of ${this.games}`,
      h("button.quiet", { ariaLabel: "Next game", disabled: this.number >= this.games, onclick: () => open(this.number + 1) }, icon("next")),
    );
  }
}
