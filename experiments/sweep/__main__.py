r"""Training runs with different settings, each for the same CPU time, and a match of their networks.

    python -m experiments.sweep --preset santorini_cpu --cpu-minutes 10 --out runs/sweep \
        --vary replay.replay_ratio=8 "replay.replay_ratio=8 loss.td_lambda=0.9"

CPU time is measured instead of wall-clock time, because machines are shared; iterations that compile do not count. Finished
runs are not repeated: the same command continues a sweep, and more variants add to it.
"""

import json
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax

from tilewe_jax import agents, arena, presets, settings
from tilewe_jax.arena.shards import WHOLE, Shard
from tilewe_jax.arguments import from_arguments
from tilewe_jax.training import Program, Run, metrics
from tilewe_jax.training.config import TrainConfig, changed
from tilewe_jax.training.run import locked

BASE = "base"
"""Name of the run with the settings of the preset."""


@dataclass(frozen=True)
class Settings:
    """Train with the settings of a preset and with variants of them, and play a match of the networks."""

    preset: str
    """Preset of ``tilewe-jax train --list``, or a file of Python that defines CONFIG."""
    out: Path
    """Folder of the runs and of the result, ``sweep.json``."""
    vary: tuple[str, ...] = ()
    """Variants: settings that differ from the first run, separated by spaces within one argument."""
    set: tuple[str, ...] = ()
    """Settings of all runs that differ from the preset, such as ``selfplay.num_games=64``."""
    cpu_minutes: float = 10.0
    """CPU minutes of each run, without compilation."""
    agent: str = "gumbel:num_simulations=32,gumbel_scale=0"
    """Agent of the match, without its network."""
    games: int = 600
    """Number of games that all networks play together."""
    batch: int = 200
    """Number of games that are played in parallel."""
    opening: int = 2
    """Number of random moves at the start of these games."""
    seed: int = 0
    """Seed of these games; the seed of the runs is among their settings."""
    shard: str = ""
    """Train only part I of N of the runs, given as I/N (for example 1/4), without the match. The same command without it then
    plays the match."""

    def configs(self) -> dict[str, TrainConfig]:
        """Return the settings of each run by its name. Raises ``ValueError`` for a variant that changes nothing."""
        base = changed(presets.load(self.preset), dict(text.split("=", 1) for text in self.set))
        base = replace(base, iterations=settings.UNLIMITED, max_minutes=0.0)
        base = replace(base, evaluation=replace(base.evaluation, eval_every=settings.UNLIMITED, opponents=(), gate=None))
        configs = {BASE: base}
        for text in self.vary:
            configs[text] = changed(base, dict(part.split("=", 1) for part in text.split()))
            if configs[text] == base:
                raise ValueError(f"the variant {text!r} changes nothing")
        return configs


class CpuClock:
    """CPU seconds of the parts of a loop that do not compile: each call ends a part and starts the next."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last: float | None = None
        self._compiled = False
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration_secs: float, **about: str | int) -> None:
        del duration_secs, about
        self._compiled |= event == "/jax/core/compile/backend_compile_duration"

    def __call__(self) -> float:
        """Return the CPU seconds so far."""
        now = time.process_time()
        if self._last is not None and not self._compiled:
            self.seconds += now - self._last
        self._last, self._compiled = now, False
        return self.seconds


def train(config: TrainConfig, folder: Path, cpu_seconds: float) -> dict[str, Any]:
    """Train for some CPU time. Returns figures of the run as JSON."""
    run, clock = Run(config, folder, Program(config)), CpuClock()
    with locked(folder):
        state, log = run.start(), metrics.Log(folder, config, None)
        try:
            state = run.train(state, log, lambda: clock() >= cpu_seconds)
        finally:
            log.close()
    return {"iterations": int(state.iteration), "games_learned": log.games, "cpu_seconds": round(clock.seconds, 1)}


def sweep(given: Settings) -> dict[str, Any]:
    """Train the runs that are not finished, play the match, and write the result, which is returned as JSON.

    With a shard, train only its runs, and return their figures.
    """
    configs, runs, players = given.configs(), {}, []
    game = configs[BASE].game.make()
    part = Shard.parse(given.shard) if given.shard else WHOLE
    for index, (name, config) in enumerate(configs.items()):
        if index % part.count != part.number - 1:
            continue
        folder = given.out / re.sub(r"[^\w.]+", "-", name)
        finished, text = folder / "finished.json", repr(config)
        if finished.exists():
            saved = json.loads(finished.read_text())
            if saved.pop("settings") != text:
                raise ValueError(f"{folder} has a run with other settings; choose another folder")
            runs[name] = saved
        elif folder.exists():
            raise ValueError(f"{folder} has a run that was interrupted; delete the folder to repeat it")
        else:
            runs[name] = train(config, folder, 60 * given.cpu_minutes)
            finished.write_text(json.dumps({**runs[name], "settings": text}))
        print(f"{name}: {runs[name]['iterations']} iterations, {runs[name]['cpu_seconds']:.0f} CPU s", flush=True)
        separator = "," if ":" in given.agent else ":"
        players.append(agents.agent(f"{given.agent}{separator}network={folder}", game, name=name))
    if given.shard:
        return {"runs": runs}
    results = arena.play_match(game, players, given.games, given.batch, given.seed, opening=given.opening)
    rated = {row["agent"]: row for row in results.summary()["agents"]}
    rows = [{"variant": name, **run, **{key: rated[name][key] for key in ("elo", "elo_ci95")}} for name, run in runs.items()]
    summary = {"preset": given.preset, "set": given.set, "agent": given.agent, "games": given.games, "runs": rows}
    (given.out / "sweep.json").write_text(json.dumps(summary, indent=1) + "\n")
    for row in sorted(rows, key=lambda row: -row["elo"]):
        rating = f"{row['elo']:5.0f} +- {row['elo_ci95']:.0f}"
        print(rating, f"{row['iterations']} iterations, {row['games_learned']} games", row["variant"], sep="  ")
    return summary


def main(arguments: list[str] | None = None) -> None:
    """Run the program; see ``Settings``."""
    try:
        sweep(from_arguments(Settings, arguments, "python -m experiments.sweep"))
    except (OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
