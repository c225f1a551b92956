"""The training loop: self-play, learning, evaluations and checkpoints, on one device or on many hosts."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from tilewe_jax import settings
from tilewe_jax.game import Game
from tilewe_jax.networks import Model, registry, weights
from tilewe_jax.training import checkpoint, loss, metrics, processes, trackers
from tilewe_jax.training.agents import check_warmup
from tilewe_jax.training.config import CONFIG, TrainConfig
from tilewe_jax.training.evaluation import Evaluation, check_evaluation, last_weights, value_sample
from tilewe_jax.training.loss import Losses
from tilewe_jax.training.metrics import Log
from tilewe_jax.training.program import Program, SlimState, TrainState, check_memory, slim
from tilewe_jax.utils.files import replacing
from tilewe_jax.utils.progress import Progress

LOCK = ".lock"
"""File that is locked while a process trains in the folder. The operating system unlocks it when the process ends."""
_CHECKPOINTS = "checkpoints"


def is_free(folder: Path) -> bool:
    """Return whether a run may start in a folder: it is empty, or holds only files of a run without a finished checkpoint."""
    if not folder.is_dir():
        return not folder.exists()
    own = (CONFIG, LOCK, ".writing-")  # the last one starts the names of temporary files
    others = [path for path in folder.iterdir() if not path.name.startswith(own) and path.name != _CHECKPOINTS]
    return not others and checkpoint.has_no_other(folder / _CHECKPOINTS)


class Run:
    """A training run in a folder.

    Args:
        config: settings of the run.
        folder: folder of the run.
        program: the compiled functions for these settings.

    Raises ``ValueError`` for unknown opponents and policies, ``MemoryError`` if the run does not fit into memory, and
    ``MissingExtraError`` if a setting needs an extra that is not installed.
    """

    def __init__(self, config: TrainConfig, folder: Path, program: Program) -> None:
        self.config, self.folder, self.program, self.game = config, folder, program, program.game
        trackers.check(config)
        check_warmup(config.selfplay, self.game)
        check_evaluation(config, self.game)
        check_memory(config, self.game, program.mesh.devices.size)
        self._value_sample = value_sample(config, self.game)
        self.leads = jax.process_index() == 0
        """Whether this process writes the files of the run."""
        self.notes: list[str] = []
        """One line for each file of a resumed run that is no longer used."""
        self.is_stopped = False
        """True if ``train`` ended early because of ``stop``, in any process."""
        self._checkpoints = folder / _CHECKPOINTS

    def start(self) -> TrainState:
        """Start a new run, and write its checkpoint of iteration 0.

        A run that was killed before it finished this checkpoint is replaced. Raises ``ValueError`` if the folder has other
        files, which are not changed.
        """
        processes.led(self._check_free)
        initial = initial_weights(self.config, self.game)
        processes.check_arrays({f"the weights {self.config.network.init}": initial and initial.model})
        state = self.program.init(self.config.seed)
        if initial:
            start = jax.jit(partial(loss.start, self.config, self.game), out_shardings=self.program.shardings.learner)
            state = replace(state, learner=start(_fitted(initial, state.learner.model)))
        processes.led(self._prepare_folder)
        self._connect()
        self._save(0, state)
        return state

    def _check_free(self) -> None:
        if not is_free(self.folder):
            raise ValueError(f"{self.folder} is not empty; continue its run with --resume, or choose another folder")

    def _prepare_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        checkpoint.delete_unfinished(self._checkpoints)
        self._write_config()

    def _write_config(self) -> None:
        with replacing(self.folder / CONFIG, "w") as file:
            json.dump(settings.to_json(self.config), file, indent=1)

    def _connect(self) -> None:
        """Connect the collectives of all devices while all processes wait for each other."""
        if processes.are_several():
            processes.wait_for_all()
            self._any(False)
            self.program.connect()

    def newest_checkpoint(self) -> int | None:
        """Return the iteration of the newest finished checkpoint, or ``None``."""
        return max(checkpoint.numbers(self._checkpoints), default=None)

    def resume(self, number: int | None = None) -> TrainState:
        """Restore the newest checkpoint, or start a new run if ``start`` was killed before it wrote the first one.

        Changed settings apply from here on. All files are checked before any of them is changed.

        Args:
            number: checkpoint to restore instead of the newest one. Later checkpoints are renamed.

        Raises ``CheckpointError`` if the checkpoint does not exist or has other settings, or if it or another file of the run
        is damaged. The message names the newest earlier checkpoint that is not damaged.
        """
        chosen = processes.led(lambda: self._choose(number))
        if chosen is None:
            return self.start()
        name = f"the hash of checkpoint {chosen}"
        processes.check_equal({name: checkpoint.hash_of_sums(self._checkpoints, chosen)})
        like, made_for = self.program.like, (self.config, self.game.version)
        if checkpoint.is_slim(self._checkpoints, chosen):
            kept: SlimState = checkpoint.restore(self._checkpoints, chosen, slim(like), *made_for)
            # Another seed, so that the games differ from the first games of the run.
            fresh = self.program.init(self.config.seed + chosen)
            state = replace(fresh, learner=kept.learner, keys=kept.keys, iteration=kept.iteration)
        else:
            state = checkpoint.restore(self._checkpoints, chosen, like, *made_for)
        self._connect()
        if self.leads:
            for path in checkpoint.set_aside(self._checkpoints, chosen):
                self.notes.append(f"{path}: a checkpoint after iteration {chosen} that is no longer used")
            checkpoint.delete_unfinished(self._checkpoints)
            self._write_config()
        return state

    def _choose(self, number: int | None) -> int | None:
        """Return the checkpoint to resume from, or ``None`` for a run without one, after checking all files."""
        newest = checkpoint.newest(self._checkpoints)
        if newest is None and number is None and is_free(self.folder):
            return None
        if newest is None:
            raise checkpoint.CheckpointError(
                f"{self._checkpoints} has no checkpoint to resume from; start a run in another folder, where network.init can"
                " name weights of this one"
            )
        chosen = newest if number is None else number
        if number is not None and number not in (available := checkpoint.numbers(self._checkpoints)):
            listed = ", ".join(map(str, available)) or "none"
            raise checkpoint.CheckpointError(f"{self._checkpoints} has no checkpoint of iteration {number}; it has {listed}")
        try:
            checkpoint.verify(self._checkpoints, chosen)
        except checkpoint.CheckpointError as error:
            earlier = checkpoint.newest_whole(self._checkpoints, chosen)
            advice = "there is no earlier undamaged checkpoint"
            if earlier is not None:
                advice = f"the checkpoint of iteration {earlier} is undamaged: continue with --resume --checkpoint {earlier}"
            raise checkpoint.CheckpointError(f"{error}; {advice}") from None
        self._check_files(chosen)
        return chosen

    def _check_files(self, iteration: int) -> None:
        """Raise ``CheckpointError`` if the metrics, or the weights of the previous evaluation, are damaged."""
        try:
            metrics.read(self.folder / metrics.METRICS)
            rows = [row for row in metrics.read(self.folder / metrics.EVALUATIONS) if row["iteration"] <= iteration]
            last_weights(self.config, self.game, self.folder, rows[-1]["iteration"] if rows else None)
        except ValueError as error:
            raise checkpoint.CheckpointError(str(error)) from None

    def train(
        self,
        state: TrainState,
        log: Log | None,
        stop: Callable[[], bool] = lambda: False,
        began: float | None = None,
        minutes: float = math.inf,
        progress: Progress | None = None,
    ) -> TrainState:
        """Train until a limit is reached, then write a checkpoint and weights.

        Args:
            state: state of the run.
            log: log of the run, in the leading process; ``None`` in other processes.
            stop: called before each iteration; true ends the training.
            began: ``time.monotonic()`` from which the minutes count, by default now.
            minutes: limit of this call, in addition to ``config.max_minutes`` of the whole run.
            progress: shows the phase.

        Returns the state after the last iteration.
        """
        config, program = self.config, self.program
        every = config.evaluation.eval_every, config.checkpoint.checkpoint_every
        before = log.evaluations[-1]["iteration"] if log and log.evaluations else None
        evaluation = Evaluation(config, self.game, self.folder, before, self._value_sample) if log else None
        began = time.monotonic() if began is None else began
        started = began - (log.seconds if log else 0.0)
        deadline = min(began + minutes * 60, started + (config.max_minutes * 60 or math.inf))
        iteration = saved = int(state.iteration)
        empty_at = iteration - int(self.program.rows_filled(state)) // config.selfplay.unroll_length
        saved_at, pace = time.monotonic(), _Pace()
        while iteration < config.iterations:
            if self._ends(log, deadline - pace.of(self._kinds(iteration, empty_at)), stop):
                break
            start = time.monotonic()
            warm_up = iteration < config.selfplay.warmup_iterations
            state, stats = (program.warm_up if warm_up else program.play)(state)
            stats = jax.device_get(stats)
            played = time.monotonic()
            iteration += 1
            losses: list[Losses] = []
            if self._learns(iteration - empty_at):
                for _ in range(config.num_updates):
                    state, parts = program.learn(state)
                    losses.append(parts)
            losses = jax.device_get(losses)
            learned = time.monotonic()
            if log:
                log.add_iteration(iteration, learned - started, played - start, learned - played, stats, losses)
            if progress and progress.is_compiling:
                progress.phase("training")
            if iteration % every[0] == 0:
                state = self._evaluate(iteration, state, log, evaluation, started)
            evaluated = time.monotonic()
            if iteration % every[1] == 0 or self._any(
                log is not None and 0 < config.checkpoint.checkpoint_minutes * 60 < evaluated - saved_at
            ):
                self._save(iteration, state)
                saved, saved_at = iteration, time.monotonic()
            pace.add({"warm-up" if warm_up else "self-play": played - start, "learning": learned - played})
            if iteration % every[0] == 0:
                pace.add({"evaluation": evaluated - learned})
        if saved != iteration:
            self._save(iteration, state)
        self.is_stopped = self._any(self.is_stopped or stop())
        if log:
            self._keep(iteration, state, log)
        return state

    def _evaluate(
        self, iteration: int, state: TrainState, log: Log | None, evaluation: Evaluation | None, started: float
    ) -> TrainState:
        """Play the games of an evaluation. With a gate, accept the newest weights for self-play if they pass it."""
        passes, gate = False, self.config.evaluation.gate
        if log and evaluation:
            log.progress.phase("evaluating")
            model = self._keep(iteration, state, log)
            figures = evaluation.run(iteration, model)
            if gate:
                figures["gate"] = evaluation.gate(model, jax.device_get(state.learner.acting))
                passes = figures["gate"]["verdict"] == "H1"
            log.add_evaluation(iteration, time.monotonic() - started, figures)
            log.progress.phase("training")
        return self.program.accept(state) if gate and self._any(passes) else state

    def _kinds(self, iteration: int, empty_at: int) -> list[str]:
        """Return the parts of the next iteration. Each part compiles when it runs for the first time."""
        config = self.config
        kinds = ["warm-up" if iteration < config.selfplay.warmup_iterations else "self-play"]
        if self._learns(iteration + 1 - empty_at):
            kinds.append("learning")
        if (iteration + 1) % config.evaluation.eval_every == 0:
            kinds.append("evaluation")
        return kinds

    def _learns(self, iterations: int) -> bool:
        """Return whether the replay buffer, empty before these iterations, holds enough positions to learn from."""
        return iterations * self.config.selfplay.unroll_length >= self.config.replay.min_replay_size

    def _ends(self, log: Log | None, deadline: float, stop: Callable[[], bool]) -> bool:
        """Return whether to end; the result is the same in all processes."""
        late = log is not None and time.monotonic() > deadline
        late, self.is_stopped = self._any(late, stop())
        return late or self.is_stopped

    def _any(self, *flags: bool) -> Any:
        """Combine the flags of all processes by "or". Several flags give a tuple."""
        if jax.process_count() > 1:
            flags = tuple(map(bool, np.any(multihost_utils.process_allgather(np.array(flags)), axis=0)))
        return flags if len(flags) > 1 else flags[0]

    def _save(self, number: int, state: TrainState) -> None:
        kept = slim(state) if self.config.checkpoint.slim else state
        checkpoint.save(self._checkpoints, number, kept, self.config, self.game.version)

    def _keep(self, number: int, state: TrainState, log: Log) -> Model:
        """Write the average weights to a file, and return them."""
        model: Model = jax.device_get(state.learner.average)
        config, game = self.config, self.game
        description = weights.Description(
            game.id,
            game.options,
            registry.resolve(game, config.network.architecture),
            config.network.size,
            config.selfplay.search.score_weight or 0.0,
        )
        run = {"iteration": number, "games": log.games, "hours": log.seconds / 3600, "config": settings.to_json(config)}
        folder = self.folder / "weights"
        folder.mkdir(exist_ok=True)
        weights.save(folder / f"{number:06d}.npz", model, description, game.version, run)
        return model


def initial_weights(config: TrainConfig, game: Game[Any]) -> weights.Weights | None:
    """Read the weights of ``network.init``; ``None`` for random weights. Raises ``ValueError``."""
    network = config.network
    return weights.read_initial(game, network.init, "network.init", network.architecture) if network.init else None


def _fitted(initial: weights.Weights, model: Model) -> Model:
    """Return the initial weights, extended by ``grown_from`` if they are those of a smaller network.

    Raises ``ValueError`` for weights that do not fit the network.
    """
    if jax.tree.map(jnp.shape, initial.model) == jax.tree.map(jnp.shape, model):
        return initial.model
    grown: Model | None = getattr(model, "grown_from", lambda model: None)(initial.model)
    if grown:
        return grown
    about = f"{initial.description.architecture} {initial.description.size}"
    raise ValueError(f"network.init has weights of {about}, which do not fit network.architecture and network.size")


class _Pace:
    """Predicts the duration of an iteration: a known part takes as long as before, a new part as long as the first."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._first = 0.0

    def add(self, seconds: dict[str, float]) -> None:
        """Record the seconds of each part of an iteration."""
        self._first = self._first or sum(seconds.values())
        self._last |= seconds

    def of(self, parts: list[str]) -> float:
        """Return the predicted seconds of these parts; 0 before the first iteration."""
        return sum(self._last.get(part) or self._first for part in parts)
