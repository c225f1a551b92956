"""The report of a run: one self-contained HTML file with plots and games. ``comparison`` compares several runs."""

import html
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tilewe_jax import records
from tilewe_jax.arena.ratings import plackett_luce
from tilewe_jax.replay import recorded
from tilewe_jax.replay.page import game_element, script_element
from tilewe_jax.training import curves, metrics
from tilewe_jax.training.config import CONFIG, read_settings
from tilewe_jax.training.curves import plot, short
from tilewe_jax.training.loss import BINS
from tilewe_jax.utils.extras import optional_import
from tilewe_jax.utils.files import check_regular, replacing

_GAMES = 6
"""Maximum number of example games."""
_MOVES = 300
"""Maximum number of moves of a game."""

PAGE = """<!doctype html>
<html lang="en" data-theme="light"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 1500px; margin: 1em auto; padding: 0 1em; color: #222 }}
h1 {{ font-size: 1.5em }} h2 {{ font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #ccc }}
table {{ border-collapse: collapse }} td, th {{ padding: .15em .8em .15em 0; text-align: left; vertical-align: top }}
td {{ overflow-wrap: anywhere }}
.facts, .plots, .games {{ display: grid; gap: .3em 1.5em }}
.facts {{ grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr)); margin: 0 }}
.facts div {{ display: flex; flex-wrap: wrap; column-gap: 1em }} .facts dd {{ margin: 0; flex: 1 1 10em }}
.facts dt {{ font-weight: bold; min-width: 7em; overflow-wrap: anywhere }}
.plots {{ grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)) }}
.plots svg {{ width: 100%; height: auto }}
.games {{ grid-template-columns: repeat(auto-fill, minmax(min(100%, 560px), 1fr)) }}
.game {{ margin: 1em 0; min-width: 0 }} .game p {{ overflow-wrap: anywhere; margin: 0 0 .5em }}
details {{ margin-top: 1em }}
</style></head><body>
<h1>{title}</h1>
{body}
{script}
</body></html>
"""


Result = TypeVar("Result")


def of_damaged_files(function: Callable[[Path], Result]) -> Callable[[Path], Result]:
    """Decorate a function of a run's folder to raise ``ValueError`` for unexpected values in its files."""

    @wraps(function)
    def wrapped(folder: Path) -> Result:
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):  # instead of warnings
                return function(folder)
        except records.RecordError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"the files of the run in {folder} are damaged: {type(error).__name__}: {error}") from error

    return wrapped


def settings_of(folder: Path) -> dict[str, Any]:
    """Read the settings of the run in a folder, of any version. Raises ``ValueError`` if they are missing or damaged."""
    config: dict[str, Any] = read_settings(folder)
    for part, name in (("game", "id"), ("network", "architecture"), ("network", "size")):
        if not isinstance(config, dict) or not isinstance(config.get(part), dict) or name not in config[part]:
            raise ValueError(f"{folder / CONFIG} has no settings of a run: {part}.{name} is missing")
    return config


@of_damaged_files
def write(folder: Path) -> Path:
    """Write ``report.html`` of the run in a folder, and return its path.

    Raises ``ValueError`` for missing and damaged files, and ``MissingExtraError`` without the extra ``plots``.
    """
    config = settings_of(folder)
    check_regular(folder)
    rows, evaluations = metrics.read(folder / metrics.METRICS), metrics.read(folder / metrics.EVALUATIONS)
    parts = [_summary(config, rows, evaluations)]
    if rows:
        parts.append(section("Losses", curves.losses([curves.Group("", [(rows, evaluations)])])))
        parts.append(section("Self-play", _learning(rows)))
    if evaluations:
        parts.append(section("Strength", _strength(evaluations)))
    if tested := [evaluation for evaluation in evaluations if "values" in evaluation]:
        parts += [section("Values on games of others", _value_plots(tested)), _value_table(tested[-1])]
    if games := _games(folder):
        parts.append(f'<h2>Games of the evaluations</h2><div class="games">{"".join(games)}</div>')
    settings = "".join(f"<tr><td>{escaped(name)}<td>{escaped(value)}" for name, value in flat(config))
    parts.append(f"<details><summary>All settings</summary><table>{settings}</table></details>")
    path = folder / "report.html"
    with replacing(path, "w") as file:
        title = f"Training of {escaped(config['game']['id'])}"
        file.write(PAGE.format(title=title, body="\n".join(parts), script=script_element() if games else ""))
    return path


@of_damaged_files
def curve(folder: Path) -> str:
    """Plot the win rates against each opponent over a run, and return the text of an SVG file.

    Raises ``ValueError`` for a run without evaluations.
    """
    evaluations = metrics.read(folder / metrics.EVALUATIONS)
    if not evaluations:
        raise ValueError(f"{folder} has no evaluations to plot")
    return _strength(evaluations)[0]


def elo(evaluations: Sequence[dict[str, Any]]) -> list[tuple[str, float, float]]:
    """Rate all agents of the evaluations by all games together.

    Returns tuples of name, Elo, and half the width of the 95 % interval. The agent of the run is named by the iteration of the
    evaluation.
    """
    names: dict[str, int] = {}
    seating: list[np.ndarray] = []
    results: list[np.ndarray] = []
    before = ""
    for evaluation in evaluations:
        current = str(evaluation["iteration"])
        for opponent, figures in evaluation["opponents"].items():
            pair = [current, before if opponent == "last" else opponent]
            index = np.array([names.setdefault(name, len(names)) for name in pair])
            seating.append(index[np.array(figures["seating"])])
            results.append(np.array(figures["results"], float))
        before = current
    if not seating or seating[0].shape[1] < 2:
        return []
    rated = plackett_luce(np.concatenate(seating), np.concatenate(results), len(names))
    return [(name, float(rated.players[i]), float(rated.player_ci95[i])) for name, i in names.items()]


def flat(config: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Flatten nested settings to pairs of dotted name and value."""
    rows: list[tuple[str, Any]] = []
    for name, value in config.items():
        rows += flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return rows


def _summary(config: dict[str, Any], rows: list[dict[str, Any]], evaluations: list[dict[str, Any]]) -> str:
    """Return the list of facts at the top of the report."""
    game, network = config["game"], config["network"]
    facts = {
        "game": game["id"],
        "options": dict(game.get("options", ())) or "default",
        "network": f"{network['architecture']} architecture, {network['size']}",
    }
    if rows:
        games = sum(row["games"] for row in rows)
        facts |= {
            "iterations": f"{rows[-1]['iteration']:,}",
            "hours": f"{rows[-1]['seconds'] / 3600:.2f}",
            "games": f"{games:,}",
            "moves": f"{sum(row['moves'] for row in rows):,}",
        }
        if missing := metrics.missing_iterations(rows):
            facts["without rows"] = missing
    if evaluations:
        for name, figures in evaluations[-1]["opponents"].items():
            rate, error = figures["win_rate"], figures["standard_error"]
            facts[f"against {name}"] = f"{rate:.1%} ± {error:.1%} in the last evaluation"
        if "values" in evaluations[-1]:
            facts["values on games of others"] = metrics.value_text(evaluations[-1]["values"][-1])
    rows_of_facts = (f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="facts">{"".join(rows_of_facts)}</dl>'


def _learning(rows: list[dict[str, Any]]) -> list[str]:
    """Plot the calibration of expected outcomes and the win rates of the seats."""
    learned = [row for row in rows if "policy_loss" in row]

    def calibration(axes: Any) -> None:
        sums = np.sum([row["calibration"] for row in learned[-max(1, len(learned) // 5) :]], axis=0)
        count, expected, real = sums[:, sums[0] > 0]
        axes.plot([0, 1], [0, 1], color="#bbb", linewidth=1)
        axes.scatter(expected / count, real / count, s=200 * np.sqrt(count / count.sum()))
        axes.set_xlabel(f"expected outcome of a seat, in {BINS} bins")
        axes.set_ylabel("mean outcome")

    def seats(axes: Any) -> None:
        last = rows[-max(1, len(rows) // 5) :]
        games = max(1, sum(row["games"] for row in last))
        rate = np.sum([row["returns"] for row in last], axis=0) / games
        error = 1.96 * np.sqrt(np.maximum(rate * (1 - rate), 0) / games)
        axes.bar(np.arange(len(rate)) + 1, rate, yerr=error, capsize=4)
        axes.set_xticks(np.arange(len(rate)) + 1)
        axes.set_xlabel(f"seat, last {games:,} games of self-play")
        axes.set_ylabel("win rate, 95 % intervals")

    shown = [plot("Calibration, last fifth of the run", calibration)] if learned else []
    return [*shown, plot("Seats", seats)]


def _strength(evaluations: list[dict[str, Any]]) -> list[str]:
    """Plot win rates and Elo over games and hours."""

    def win_rates(axes: Any) -> None:
        names = list(dict.fromkeys(name for evaluation in evaluations for name in evaluation["opponents"]))
        handles: list[Any] = []
        for name in names:
            points = [(row["games_before"], row["opponents"][name]) for row in evaluations if name in row["opponents"]]
            x, y = [games for games, _ in points], [figures["win_rate"] for _, figures in points]
            error = [figures["standard_error"] for _, figures in points]
            handles.append(axes.errorbar(x, y, 1.96 * np.array(error), capsize=3))
        axes.set_xlabel("games of self-play")
        axes.set_ylabel("win rate, 95 % intervals")
        axes.set_ylim(0, 1.03)
        # matplotlib ignores labels with a leading underscore unless they are passed to the legend.
        axes.legend(handles, [short(name) for name in names], loc="lower right", fontsize=8)

    rated = {name: (rating, ci95) for name, rating, ci95 in elo(evaluations)}
    own = [evaluation for evaluation in evaluations if str(evaluation["iteration"]) in rated]

    def against(field: str, scale: float) -> Callable[[Any], None]:
        def draw(axes: Any) -> None:
            ratings = [rated[str(evaluation["iteration"])] for evaluation in own]
            x = [evaluation[field] / scale for evaluation in own]
            axes.errorbar(x, [rating for rating, _ in ratings], [ci95 for _, ci95 in ratings], capsize=3)
            opponents = [name for name in rated if name not in {str(evaluation["iteration"]) for evaluation in own}]
            for name in opponents:
                axes.axhline(rated[name][0], color="#999", linewidth=1)
                box = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8}
                axes.annotate(short(name), (x[0], rated[name][0]), fontsize=8, color="#555", bbox=box, zorder=1)
            axes.set_xlabel("hours" if field == "seconds" else "games of self-play")
            axes.set_ylabel("Elo, 95 % intervals")

        return draw

    plots = [plot("Win rate against each opponent", win_rates)]
    if own:
        plots += [plot("Elo over games", against("games_before", 1)), plot("Elo over hours", against("seconds", 3600))]
    return plots


def _value_plots(evaluations: list[dict[str, Any]]) -> list[str]:
    """Plot how well values predict the results of games between others, by ply, over the run."""

    def over_games(field: str, label: str) -> Callable[[Any], None]:
        def draw(axes: Any) -> None:
            plies = list(dict.fromkeys(map(_plies, (row for evaluation in evaluations for row in evaluation["values"][:-1]))))
            colors = optional_import("matplotlib", "plots").colormaps["viridis"](np.linspace(0, 0.9, len(plies)))
            for name, color in zip(plies, colors, strict=True):
                points = [
                    (evaluation["games_before"], row[field])
                    for evaluation in evaluations
                    for row in evaluation["values"][:-1]
                    if _plies(row) == name and row[field] is not None
                ]
                axes.plot(*zip(*points, strict=True) if points else ((), ()), marker=".", color=color, label=name)
            axes.axhline(0, color="#bbb", linewidth=1)
            axes.set_xlabel("games of self-play")
            axes.set_ylabel(label)
            axes.legend(title="plies", fontsize=7, title_fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))

        return draw

    return [
        plot("Correlation with the result", over_games("correlation", "correlation")),
        plot("Gain over a constant", over_games("gain", "Brier score of a constant minus Brier score")),
    ]


def _value_table(evaluation: dict[str, Any]) -> str:
    """Return the table of the values in an evaluation."""

    def figure(row: dict[str, Any], name: str) -> str:
        value, ci95 = row[name], row[f"{name}_ci95"]
        return "-" if value is None else f"{value:.3f}" + ("" if ci95 is None else f" ± {ci95:.3f}")

    head = "<tr><th>plies<th>positions<th>mean<th>result<th>correlation<th>Brier score<th>of a constant<th>gain"
    rows = [
        (
            _plies(row),
            f"{row['positions']:,}",
            f"{row['predicted']:.2f}",
            f"{row['actual']:.2f}",
            figure(row, "correlation"),
            figure(row, "brier"),
            f"{row['constant']:.3f}",
            figure(row, "gain"),
        )
        for row in evaluation["values"]
    ]
    body = "".join("<tr>" + "".join(f"<td>{escaped(cell)}" for cell in row) for row in rows)
    games = max(row["games"] for row in evaluation["values"])
    return (
        f"<p>Iteration {evaluation['iteration']:,}: values and results of the player to move in {games:,} games, with 95 %"
        f" intervals.</p><table>{head}{body}</table>"
    )


def _plies(row: dict[str, Any]) -> str:
    return f"{row['first_ply']}-{row['last_ply']}"


def _games(folder: Path) -> list[str]:
    """Return the elements of example games from the last evaluations."""
    shown: list[str] = []
    for path in sorted((folder / "games").glob("*.jsonl"), reverse=True):
        if len(shown) >= _GAMES:
            break
        for game in recorded.read(path).games[:1]:
            scores = game.result["scores"] if game.result else None
            title = f"iteration {int(path.stem.split('-')[0]):,}: {', '.join(game.names)}; scores {scores}"
            is_cut = len(game.actions) > _MOVES
            part = replace(game, actions=game.actions[:_MOVES], result=None if is_cut else game.result)
            shown.append(f'<div class="game"><p>{escaped(title)}</p>{game_element(part.replay())}</div>')
    return shown


def section(title: str, plots: list[str]) -> str:
    """Return a section of a report with these plots; nothing without plots."""
    return f"<h2>{title}</h2><div class=plots>{''.join(plots)}</div>" if plots else ""


def escaped(value: Any) -> str:
    """Return a value as text of HTML."""
    return html.escape(str(value))
