r"""Training runs with different settings, each for the same CPU time, and what their networks win against each other.

    python -m experiments.sweep.sweep --preset santorini_cpu --cpu-minutes 10 --out runs/sweep \
        --vary replay.replay_ratio=8 "selfplay.tree_nodes=true loss.td_lambda=0.9"

CPU time and not the clock, as machines are shared; iterations in which something is compiled do not count. A finished run is
not repeated, so the same command goes on, and with more under ``--vary`` it adds to what is there.
"""

import json
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import jax
from tyro.conf import arg

from tilewe_jax import arena, presets, settings
from tilewe_jax.agents import player as make_player
from tilewe_jax.cli.parsing import ArgumentError, assignments, parse
from tilewe_jax.networks import weights
from tilewe_jax.search.settings import check_settings, setting
from tilewe_jax.training import metrics
from tilewe_jax.training.checkpoint import CheckpointError
from tilewe_jax.training.config import TrainConfig, changed
from tilewe_jax.training.loop import Run
from tilewe_jax.training.program import Program
from tilewe_jax.training.run import locked, read_config
from tilewe_jax.utils.files import read_json, replacing

BASE = "base"
"""Name of the run with the settings of the preset."""
RESULTS = "sweep.json"
"""Name of the file of results, in the folder of the sweep."""
_COMPILED = "/jax/core/compile/backend_compile_duration"
_COLUMNS = {"elo": "Elo", "elo_ci95": "±", "iterations": "iterations", "games_learned": "games", "cpu_seconds": "CPU s"}

Texts = Annotated[tuple[str, ...], arg(metavar="SETTINGS ...", help_behavior_hint="")]


@dataclass(frozen=True)
class Settings:
    """Train with the settings of a preset and with variants of them, and play the networks against each other.

    Raises ``ValueError`` for numbers out of range, and for variants that change nothing or are named twice.
    """

    out: Path
    """Folder of the runs, one for each variant, and of the results."""
    preset: str = "santorini_cpu"
    """Settings to begin with: a name that `tilewe-jax train --list` shows, or a file of Python that defines CONFIG."""
    set: Texts = ()
    """Settings of all runs that differ from the preset, such as selfplay.num_games=64."""
    vary: Texts = ()
    """The variants, each the settings in which it differs from the first run, separated by spaces within one argument."""
    cpu_minutes: float = setting(10.0, 0)
    """CPU minutes of each run, without compilation."""
    agent: str = "gumbel:num_simulations=32,gumbel_scale=0"
    """Agent in which the networks play each other."""
    games: int = setting(600, 1)
    """Number of games that are played by all networks together."""
    batch: int = setting(200, 1)
    """Number of these games that are played at once."""
    opening: int = setting(2, 0)
    """Number of random moves at the beginning of these games."""
    seed: int = setting(0, 0)
    """Seed of these games; that of the runs is among their settings."""

    def __post_init__(self) -> None:
        check_settings(self)
        if len({BASE, *self.vary}) <= len(self.vary):
            raise ValueError(f"the variants must differ from each other and from {BASE!r}, not be {list(self.vary)}")

    def configs(self) -> dict[str, TrainConfig]:
        """The settings of each run, by its name."""
        base = changed(presets.load(self.preset), assignments(self.set, "--set"))
        # The time ends a run; what it plays in between is no part of what it has learned.
        base = replace(base, iterations=settings.UNLIMITED, max_minutes=0.0)
        base = replace(base, evaluation=replace(base.evaluation, eval_every=settings.UNLIMITED, opponents=(), gate=None))
        configs = {BASE: base} | {text: changed(base, assignments(text.split(), "--vary")) for text in self.vary}
        for name, config in configs.items():
            if name != BASE and config == base:
                raise ValueError(f"the variant {name!r} changes nothing")
        return configs


class CpuClock:
    """Measures the CPU time of the parts of a loop in which nothing is compiled: each call ends one and begins the next.

    It takes note of all compilation from its creation on, for as long as the process lasts.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last: float | None = None
        self._compiled = False
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration_secs: float, **about: str | int) -> None:
        del duration_secs, about
        self._compiled |= event == _COMPILED

    def __call__(self) -> float:
        """The CPU seconds so far."""
        now = time.process_time()
        if self._last is not None and not self._compiled:
            self.seconds += now - self._last
        self._last, self._compiled = now, False
        return self.seconds


def train(config: TrainConfig, folder: Path, cpu_seconds: float) -> dict[str, Any]:
    """Train for so much CPU time. Returns figures of the run, with the file of its weights, as JSON."""
    run, clock = Run(config, folder, Program(config)), CpuClock()
    with locked(folder):
        state = run.start()
        log = metrics.Log(folder, config, None)
        try:
            state = run.train(state, log, lambda: clock() >= cpu_seconds)
        finally:
            log.close()
    iterations = int(state.iteration)
    return {
        "iterations": iterations,
        "games_learned": log.games,
        "cpu_seconds": round(clock.seconds, 1),
        "weights": str(folder / "weights" / f"{iterations:06d}.npz"),
    }


def check_finished(folder: Path, config: TrainConfig, is_finished: bool) -> None:
    """Raise ``ValueError`` where the run in a folder was interrupted, or has other settings."""
    if not is_finished:
        raise ValueError(f"{folder} has a run that was interrupted; delete the folder, and it is made again")
    known = {name: value for name, _, _, value in settings.leaves(config)}
    if different := settings.differences(config, read_config(folder, known=known)):
        raise ValueError(f"{folder} has a run with other settings: {', '.join(different)}; choose another folder")


def run_all(given: Settings) -> dict[str, Any]:
    """Make the runs that are not finished, play the match, and write the results, which are returned as JSON."""
    given.out.mkdir(parents=True, exist_ok=True)
    runs, configs = {}, given.configs()
    for name, config in configs.items():
        folder = given.out / re.sub(r"[^\w.]+", "-", name)  # agents are named with the path, and have signs of their own
        finished = folder / "finished.json"
        if folder.exists():
            check_finished(folder, config, finished.exists())
            # Not the network that the file names, which may be a program.
            runs[name] = read_json(finished) | {"weights": str(weights.find(str(folder)))}
        else:
            runs[name] = train(config, folder, 60 * given.cpu_minutes)
            with replacing(finished, "w") as file:
                json.dump(runs[name], file)
        print(f"{name}: {runs[name]['iterations']} iterations, {runs[name]['cpu_seconds']:.0f} CPU s", flush=True)
    game = configs[BASE].game.make()
    separator = "," if ":" in given.agent else ":"
    agents = {name: f"{given.agent}{separator}network={run['weights']}" for name, run in runs.items()}
    players = [replace(make_player(game, agent), name=name) for name, agent in agents.items()]
    results = arena.play_match(game, players, given.games, given.batch, given.seed, opening=given.opening)
    rated = {row["agent"]: row for row in results.summary()["agents"]}
    rows = [{"variant": name, **run, **{key: rated[name][key] for key in ("elo", "elo_ci95")}} for name, run in runs.items()]
    summary = {"preset": given.preset, "set": given.set, "agent": given.agent, "games": given.games, "runs": rows}
    with replacing(given.out / RESULTS, "w") as file:
        json.dump(summary, file, indent=1)
    return summary


def main(arguments: list[str] | None = None) -> None:
    """Run the program; see ``Settings``."""
    try:
        given = parse(Settings, sys.argv[1:] if arguments is None else arguments, "python -m experiments.sweep.sweep")
        summary = run_all(given)
    except (ArgumentError, CheckpointError, OSError, ValueError) as error:
        sys.exit(str(error))
    print("  ".join(f"{title:>10}" for title in _COLUMNS.values()))
    for row in sorted(summary["runs"], key=lambda row: -row["elo"]):
        print("  ".join(f"{row[key]:10.0f}" for key in _COLUMNS), row["variant"], sep="  ")


if __name__ == "__main__":
    main()
