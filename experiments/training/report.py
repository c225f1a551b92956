"""The report of a run: one HTML file with everything in it, pictures and games too, that needs no network."""

import html
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np

from experiments.arena.ratings import plackett_luce
from experiments.training import metrics
from experiments.training.loss import BINS
from tilewe_jax import records
from tilewe_jax.files import replacing

_GAMES = 6
"""Example games at most."""
_PICTURES = 80
"""Positions of a game at most."""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #222 }}
h1 {{ font-size: 1.5em }} h2 {{ font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #ccc }}
table {{ border-collapse: collapse }} td, th {{ padding: .15em .8em .15em 0; text-align: left; vertical-align: top }}
.plots {{ display: flex; flex-wrap: wrap; gap: 1em }} .plots svg {{ max-width: 520px; height: auto }}
.game svg {{ max-width: 420px; height: auto; display: block }} .game {{ margin: 1em 0 2em }}
.game img {{ max-width: 420px; display: none }} .game img.now {{ display: block }}
details {{ margin-top: 1em }}
</style></head><body>
<h1>{title}</h1>
{body}
<script>
for (const game of document.querySelectorAll(".game")) {{
  const pictures = game.querySelectorAll("img"), slider = game.querySelector("input"), label = game.querySelector("output");
  const show = () => {{
    pictures.forEach((picture, i) => picture.classList.toggle("now", i == slider.value));
    label.textContent = pictures[slider.value].alt;
  }};
  slider.addEventListener("input", show);
  game.querySelector(".back").addEventListener("click", () => {{ slider.stepDown(); show(); }});
  game.querySelector(".on").addEventListener("click", () => {{ slider.stepUp(); show(); }});
  show();
}}
</script></body></html>
"""


def write(folder: Path) -> Path:
    """Write ``report.html`` of the run in a folder, and give its path. Raises ``ValueError`` where there is no run."""
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        raise ValueError(f"{folder} has no run: there is no config.json in it") from None
    rows, tests = metrics.read(folder / metrics.LINES), metrics.read(folder / metrics.TESTS)
    parts = [_summary(config, rows, tests)]
    if rows:
        parts.append(_section("Learning", _learning(rows)))
    if tests:
        parts.append(_section("Strength", _strength(tests)))
    if rows:
        parts.append(_section("Games and search", _playing(rows)))
        parts.append(_section("Throughput", _throughput(rows)))
    if games := _games(folder):
        parts.append("<h2>Games of the tests</h2>" + "".join(games))
    settings = "".join(f"<tr><td>{_text(name)}<td>{_text(value)}" for name, value in config.items())
    parts.append(f"<details><summary>All settings</summary><table>{settings}</table></details>")
    path = folder / "report.html"
    with replacing(path, "w") as file:
        file.write(_PAGE.format(title=f"Training of {_text(config['game'])}", body="\n".join(parts)))
    return path


def curve(folder: Path) -> str:
    """How often the player of a run won against each opponent, in the course of the run: the text of an SVG file.

    Raises ``ValueError`` where there were no tests.
    """
    tests = metrics.read(folder / metrics.TESTS)
    if not tests:
        raise ValueError(f"{folder} has no tests to draw a curve of")
    return _strength(tests)[0]


def elo(tests: Sequence[dict[str, Any]]) -> list[tuple[str, float, float]]:
    """Ratings, and half the widths of their 95 % intervals, of all that played in the tests, from all those games together.

    The player of a test is named by its round, opponents by their names.
    """
    names: dict[str, int] = {}
    tables: list[np.ndarray] = []
    results: list[np.ndarray] = []
    before = ""
    for test in tests:
        now = str(test["round"])
        for opponent, found in test["opponents"].items():
            sits = [now, before if opponent == "last" else opponent]
            index = np.array([names.setdefault(name, len(names)) for name in sits])
            tables.append(index[np.array(found["tables"])])
            results.append(np.array(found["results"], float))
        before = now
    if not tables or tables[0].shape[1] < 2:
        return []
    rated = plackett_luce(np.concatenate(tables), np.concatenate(results), len(names))
    return [(name, float(rated.players[i]), float(rated.player_margins[i])) for name, i in names.items()]


def _summary(config: dict[str, Any], rows: list[dict[str, Any]], tests: list[dict[str, Any]]) -> str:
    facts = {"game": config["game"], "options": dict(config["options"]) or "default", "network": config["network"]}
    if rows:
        games = sum(row["games"] for row in rows)
        facts |= {
            "rounds": f"{rows[-1]['round']:,}",
            "hours": f"{rows[-1]['seconds'] / 3600:.2f}",
            "games": f"{games:,}",
            "moves": f"{sum(row['moves'] for row in rows):,}",
        }
    if tests:
        for name, found in tests[-1]["opponents"].items():
            facts[f"against {name}"] = f"{found['win_share']:.1%} ± {found['error']:.1%} of the last test"
    return "<table>" + "".join(f"<tr><th>{_text(name)}<td>{_text(value)}" for name, value in facts.items()) + "</table>"


def _learning(rows: list[dict[str, Any]]) -> list[str]:
    learned = [row for row in rows if "policy" in row]
    if not learned:
        return []
    x = [row["round"] for row in learned]

    def losses(axes: Any) -> None:
        for name in ("policy", "win", "margin"):
            axes.plot(x, _smooth([row[name] for row in learned]), label=name)
        axes.set_xlabel("round")
        axes.set_ylabel("loss above the entropy of its target, nats")
        axes.legend()

    def agreement(axes: Any) -> None:
        axes.plot(x, _smooth([row["agreement"] for row in learned]))
        axes.set_xlabel("round")
        axes.set_ylabel("first choice is that of the search")

    def calibration(axes: Any) -> None:
        count, given, won = np.sum([row["calibration"] for row in learned[-max(1, len(learned) // 5) :]], axis=0)
        there = count > 0
        axes.plot([0, 1], [0, 1], color="#bbb", linewidth=1)
        axes.scatter(given[there] / count[there], won[there] / count[there], s=200 * np.sqrt(count[there] / count.sum()))
        axes.set_xlabel(f"share of the win that the network gives a seat, in {BINS} bins")
        axes.set_ylabel("share that it had")

    return [
        _plot("Losses", losses),
        _plot("Agreement with the search", agreement),
        _plot("Calibration, last fifth of the run", calibration),
    ]


def _strength(tests: list[dict[str, Any]]) -> list[str]:
    def shares(axes: Any) -> None:
        for name in dict.fromkeys(name for test in tests for name in test["opponents"]):
            mine = [test for test in tests if name in test["opponents"]]
            found = [test["opponents"][name] for test in mine]
            x, y, error = ([*column] for column in zip(*_points(mine, found), strict=True))
            axes.errorbar(x, y, 1.96 * np.array(error), label=name, capsize=3)
        axes.set_xlabel("games of self-play")
        axes.set_ylabel("share of the wins, 95 % intervals")
        axes.set_ylim(0, 1.03)
        axes.legend(loc="lower right", fontsize=8)

    rated = {name: (rating, margin) for name, rating, margin in elo(tests)}
    mine = [test for test in tests if str(test["round"]) in rated]

    def against(what: str, scale: float) -> Callable[[Any], None]:
        def draw(axes: Any) -> None:
            ratings = [rated[str(test["round"])] for test in mine]
            x = [test[what] / scale for test in mine]
            axes.errorbar(x, [rating for rating, _ in ratings], [margin for _, margin in ratings], capsize=3)
            others = [name for name in rated if name not in {str(test["round"]) for test in mine}]
            for name in others:
                axes.axhline(rated[name][0], color="#999", linewidth=1)
                axes.annotate(name, (x[0], rated[name][0]), fontsize=8, color="#555")
            axes.set_xlabel("hours" if what == "seconds" else "games of self-play")
            axes.set_ylabel("Elo, 95 % intervals")

        return draw

    plots = [_plot("Wins against each opponent", shares)]
    if mine:
        plots += [_plot("Elo over games", against("games_before", 1)), _plot("Elo over hours", against("seconds", 3600))]
    return plots


def _points(tests: list[dict[str, Any]], found: list[dict[str, Any]]) -> list[tuple[float, float, float]]:
    return [(test["games_before"], each["win_share"], each["error"]) for test, each in zip(tests, found, strict=True)]


def _playing(rows: list[dict[str, Any]]) -> list[str]:
    x = [row["round"] for row in rows]

    def entropy(axes: Any) -> None:
        axes.plot(x, _smooth([row["search_entropy"] for row in rows]), label="search")
        learned = [row for row in rows if "entropy" in row]
        axes.plot([row["round"] for row in learned], _smooth([row["entropy"] for row in learned]), label="network")
        axes.plot(x, _smooth([row["surprise"] for row in rows]), label="surprise: search against network")
        axes.set_xlabel("round")
        axes.set_ylabel("nats")
        axes.legend()

    def length(axes: Any) -> None:
        ended = [row for row in rows if row["games"]]
        axes.plot([row["round"] for row in ended], _smooth([row["plies"] / row["games"] for row in ended]))
        axes.set_xlabel("round")
        axes.set_ylabel("moves of a game")

    def seats(axes: Any) -> None:
        last = rows[-max(1, len(rows) // 5) :]
        games = max(1, sum(row["games"] for row in last))
        share = np.sum([row["returns"] for row in last], axis=0) / games
        error = 1.96 * np.sqrt(np.maximum(share * (1 - share), 0) / games)
        axes.bar(np.arange(len(share)) + 1, share, yerr=error, capsize=4)
        axes.set_xticks(np.arange(len(share)) + 1)
        axes.set_xlabel(f"seat, last {games:,} games of self-play")
        axes.set_ylabel("share of the wins, 95 % intervals")

    return [_plot("Entropy of the policy", entropy), _plot("Length of games", length), _plot("Seats", seats)]


def _throughput(rows: list[dict[str, Any]]) -> list[str]:
    x = [row["seconds"] / 3600 for row in rows]

    def simulations(axes: Any) -> None:
        axes.plot(x, [row["simulations"] / max(row["play_seconds"], 1e-9) for row in rows])
        axes.set_xlabel("hours")
        axes.set_ylabel("simulations a second of self-play")

    def time(axes: Any) -> None:
        axes.plot(x, _smooth([row["play_seconds"] for row in rows]), label="self-play")
        axes.plot(x, _smooth([row["learn_seconds"] for row in rows]), label="learning")
        axes.set_xlabel("hours")
        axes.set_ylabel("seconds of a round")
        axes.set_ylim(bottom=0)
        axes.legend()

    return [_plot("Simulations", simulations), _plot("Time", time)]


def _games(folder: Path) -> list[str]:
    """The games of the last tests, as pictures to step through."""
    shown: list[str] = []
    for path in sorted((folder / "games").glob("*.jsonl"), reverse=True):
        if len(shown) >= _GAMES:
            break
        game, found = records.read(path)
        step = jax.jit(game.apply)
        for record in found[:1]:
            state = game.init_from_deal(record.deal)
            pictures = [_picture(game.svg(state), "start")]
            for ply, action in enumerate(record.actions[:_PICTURES], 1):
                who = int(game.current_player(state))
                name = record.players[who] if record.players else f"player {who + 1}"
                said = f"{ply}. {name} (seat {who + 1}): {game.action_name(action, state)}"
                state = step(state, jnp.int32(action))
                pictures.append(_picture(game.svg(state), said))
            title = f"round {int(path.stem.split('-')[0]):,}: {', '.join(record.players)}; scores {list(record.scores)}"
            controls = (
                f'<button class="back">&larr;</button> <input type="range" min="0" max="{len(pictures) - 1}" value="0">'
                ' <button class="on">&rarr;</button> <output></output>'
            )
            shown.append(f'<div class="game"><p>{_text(title)}</p>{controls}{"".join(pictures)}</div>')
    return shown


def _picture(svg: str, said: str) -> str:
    # As images, since identifiers in one drawing must not meet those of another.
    return f'<img alt="{_text(said)}" src="data:image/svg+xml,{quote(svg)}">'


def _plot(title: str, draw: Callable[[Any], None]) -> str:
    figure = matplotlib.figure.Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    draw(axes)
    axes.set_title(title)
    axes.grid(color="#eee")
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _section(title: str, plots: list[str]) -> str:
    return f"<h2>{title}</h2><div class=plots>{''.join(plots)}</div>" if plots else ""


def _smooth(values: Sequence[float]) -> np.ndarray:
    """A running mean over a fiftieth of the run."""
    if not len(values):
        return np.zeros(0)
    width = max(1, len(values) // 50)
    padded = np.pad(np.asarray(values, float), (width - 1, 0), mode="edge")
    return np.convolve(padded, np.ones(width) / width, mode="valid")


def _text(value: Any) -> str:
    return html.escape(str(value))
