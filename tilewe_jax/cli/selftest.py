"""Command that checks whether the device of this machine computes the games and searches exactly."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import FailedError, Json, check_positive, check_writable, out, progress, usage_errors
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import counted

IMPORTANCE = ("santorini", "duo_official", "tilewe", "triominos")
"""Games whose columns are checked first; they have all forms of the rules, of the searches and of the networks."""
AGREEMENT = 0.75
"""Minimum fraction of the decisions of networks that agree with the CPU; devices round products in bfloat16 differently."""
ADVICE = (
    "Please attach the report to an issue. To find the cause, run the command again with JAX_DISABLE_MOST_OPTIMIZATIONS=1,"
    " without your own XLA_FLAGS, with another version of jaxlib, and with JAX_PLATFORMS=cpu"
)


@dataclass
class Result:
    """Comparison of a column of the signature with its table."""

    setup: str
    """Name of the setup, see ``signature.SETUPS``."""
    column: str
    """Column of the setup."""
    verdict: str
    """"exact"; "rounded", searches with a network whose actions differ in few positions; "other random numbers", games that
    follow the rules; or "wrong"."""
    seconds: float
    """Wall time with compilation."""
    found: dict[str, Any] = field(default_factory=dict)
    """The first difference, with its inputs and both answers."""


@dataclass(frozen=True)
class Selftest(Json):
    """Check that this machine computes games and searches exactly, on the device that JAX chooses.

    Fixed random games, fixed searches and fixed decisions of the shipped networks are compared with the results of this
    version. If some differ, the games are replayed by the rules in plain Python, the searches are repeated on the CPU, and a
    report has the first difference. The exit code is 1 if a result is wrong.
    """

    game: Annotated[str, Option("GAME")] = ""
    """Game to check; by default all games."""
    minutes: float = 2.0
    """Time after which no further check starts; most of it is compilation."""
    report: Path = Path("selftest.json")
    """File of the report, written if a result is wrong."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks import signature

        check_positive(minutes=self.minutes)
        check_writable(self.report)
        with usage_errors():
            names = signature.setups_of(self.game)
        cells = _in_order([(name, column) for name in names for column in signature.columns_of(name)])
        results: list[Result] = []
        end = time.monotonic() + 60 * self.minutes
        with progress(len(cells), "checks", "compiling and playing", quiet=self.json) as shown:
            for name, column in cells:
                if results and time.monotonic() > end:
                    break
                results.append(check(name, column))
                shown.update(len(results))
        about, wrong = environment(), [result for result in results if result.verdict == "wrong"]
        content = {**about, "checks": [vars(result) for result in results], "not_checked": cells[len(results) :]}
        if wrong:
            from tilewe_jax.utils.files import replacing

            with replacing(self.report, "w") as file:
                json.dump(content, file, indent=1)
        if self.json:
            print(json.dumps(content))
        else:
            _print(results, len(cells) - len(results), about)
        if wrong:
            raise FailedError(f"{_sentence(wrong[0])}. The report is {self.report}. {ADVICE}")


def environment() -> dict[str, Any]:
    """Return the versions, the device and the settings that results may depend on, as JSON."""
    from importlib.metadata import version

    import jax

    settings = ("jax_enable_x64", "jax_default_prng_impl", "jax_threefry_partitionable", "jax_default_matmul_precision")
    return {
        "tilewe_jax": version("tilewe-jax"),
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "device": jax.devices()[0].device_kind,
        "devices": jax.device_count(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        **{name: getattr(jax.config, name) for name in settings},
    }


def check(name: str, column: str) -> Result:
    """Compare a column of a setup with the table."""
    from tilewe_jax.cli.benchmarks import signature

    started, setup = time.monotonic(), signature.SETUPS[name]
    expected = json.loads(signature.TABLE.read_text())[name][column]
    results = signature.COLUMNS[column](setup)
    is_exact = signature.digest(results) == expected
    verdict, found = ("exact", {}) if is_exact else _explain(setup, column, results)
    return Result(name, column, verdict, round(time.monotonic() - started, 1), found)


def _in_order(cells: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the columns of the most important setups first, one column after the other."""
    last = len(IMPORTANCE)
    columns = ("random", "search", "network")

    def place(cell: tuple[str, str]) -> tuple[bool, int, int]:
        rank = IMPORTANCE.index(cell[0]) if cell[0] in IMPORTANCE else last
        return rank == last, columns.index(cell[1]), rank

    return sorted(cells, key=place)


def _explain(setup: Any, column: str, results: list[Any]) -> tuple[str, dict[str, Any]]:
    """Return the verdict on results that differ from the table, and the first difference."""
    if column == "random":
        first = next(_broken_rules(setup.make(), results), None)
        if first:
            return "wrong", first
    if not _has_random_numbers_of_the_table():
        return "other random numbers", {}
    differences = [_difference(*arrays) for arrays in _arrays(results, _on_cpu(setup, column))]
    found = next(filter(None, differences), {"cpu": "the CPU of this machine has the same results"})
    is_rounded = column == "network" and all(each.get("fraction", 0.0) <= 1 - AGREEMENT for each in differences)
    return ("rounded" if is_rounded else "wrong"), found


def _has_random_numbers_of_the_table() -> bool:
    import jax

    settings: Any = jax.config
    return bool(settings.jax_default_prng_impl == "threefry2x32" and settings.jax_threefry_partitionable)


def _broken_rules(game: Any, results: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield what breaks the rules in random games and in the masks of their positions, by the rules in plain Python."""
    import jax
    import numpy as np

    from tilewe_jax.cli.benchmarks import signature
    from tilewe_jax.host_games import make_host_game

    games, masks = results[:2]
    host = make_host_game(game.id, **game.options)
    for index, row in enumerate(np.asarray(games.actions)):  # JAX would compile a selection for each number of moves
        deal = game.deal(jax.tree.map(lambda leaf, index=index: leaf[index], games.initial))
        position, actions = host.init_from_deal(deal), row[row >= 0].tolist()
        with_mask = int(games.rollout.lengths[index]) * index // signature.POSITIONS if index < len(masks) else -1
        for ply, action in enumerate(actions):
            legal = position.legal_actions()
            inputs = {"game": index, "ply": ply, "deal": deal, "actions": actions[:ply]}
            if ply == with_mask and (mask := np.flatnonzero(masks[index]).tolist()) != sorted(legal):
                yield {**inputs, "what": "legal actions", "device": mask, "rules": sorted(legal)}
            if action not in legal:
                yield {**inputs, "what": "action", "device": action, "rules": sorted(legal)}
                break
            position = position.after(action)
        else:
            inputs = {"game": index, "ply": len(actions), "deal": deal, "actions": actions}
            scores = np.asarray(games.rollout.scores[index]).tolist()
            if not position.is_terminal:
                yield {**inputs, "what": "end of the game", "device": True, "rules": False}
            elif scores != list(position.scores()):
                yield {**inputs, "what": "scores", "device": scores, "rules": list(position.scores())}


def _on_cpu(setup: Any, column: str) -> list[Any]:
    """Compute a column again, on the CPU of this machine."""
    import jax

    from tilewe_jax.cli.benchmarks import signature

    signature.forget_games()
    with jax.default_device(jax.devices("cpu")[0]):
        results = signature.COLUMNS[column](setup)
    signature.forget_games()
    return results


def _arrays(results: list[Any], others: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the paths of the integer and bool arrays of two trees with the same structure, and the arrays."""
    import jax
    import numpy as np

    for (path, leaf), other in zip(jax.tree.leaves_with_path(results), jax.tree.leaves(others), strict=True):
        if np.asarray(leaf).dtype.kind in "iub":
            yield jax.tree_util.keystr(path), np.asarray(leaf), np.asarray(other)


def _difference(path: str, device: Any, cpu: Any) -> dict[str, Any]:
    """Return the first row in which two arrays differ, with both values, and how many differ; empty if they are equal."""
    import numpy as np

    rows = np.flatnonzero((device != cpu).reshape(len(device), -1).any(axis=1))
    if not len(rows):
        return {}
    row = int(rows[0])
    values = {"device": device[row].tolist(), "cpu": cpu[row].tolist()}
    return {"what": path, "row": row, "rows": len(rows), "fraction": len(rows) / len(device), **values}


def _sentence(result: Result) -> str:
    """Describe a wrong result in one sentence."""
    found, where = result.found, f"{result.setup}, {result.column}"
    if "rules" in found:
        return f"wrong: {where}: the {found['what']} of game {found['game']} at ply {found['ply']} differ from the rules"
    if "row" in found:
        differ = f"{counted(found['rows'], 'rows')} of {found['what']}"
        return f"wrong: {where}: device and CPU differ in {differ}, first in row {found['row']}"
    return f"wrong: {where}: device and CPU of this machine agree, and differ from the shipped results"


def _print(results: list[Result], left: int, about: dict[str, Any]) -> None:
    """Print the verdicts as a table, and a line with the device."""
    table = Rows("game", "what", "verdict", "seconds", wrap=("verdict",), title="selftest")
    for result in results:
        table.add(result.setup, result.column, result.verdict, f"{result.seconds:.0f}")
    table.print(out)
    versions = f"{about['device']}, JAX {about['jax']}, jaxlib {about['jaxlib']}"
    exact = sum(result.verdict == "exact" for result in results)
    rest = f"; {left} were not reached, see --minutes" if left else ""
    out.print(f"{exact} of {counted(len(results), 'checks')} exact on {versions}{rest}")
