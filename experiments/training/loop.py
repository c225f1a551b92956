"""The training loop: play, learn, evaluate, keep; for every game, on one device or on many hosts."""

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

from experiments import settings
from experiments.config import TrainConfig
from experiments.networks import Model, registry, weights
from experiments.training import checkpoint, loss
from experiments.training.agents import check_warmup
from experiments.training.evaluation import Evaluation, check_evaluation
from experiments.training.loss import Losses
from experiments.training.metrics import Log
from experiments.training.program import Program, SlimState, TrainState, check_memory, memory_needed, slim
from tilewe_jax.files import replacing
from tilewe_jax.game import Game


class Run:
    """A run in a folder, of a program for these settings.

    Raises ``ValueError`` where the game has no such opponent or policy, ``MemoryError`` where memory does not suffice.
    """

    def __init__(self, config: TrainConfig, folder: Path, program: Program) -> None:
        self.config, self.folder, self.program, self.game = config, folder, program, program.game
        check_warmup(config.selfplay, self.game)
        check_evaluation(config, self.game)
        check_memory(config, self.game, program.mesh.devices.size)
        self.leads = jax.process_index() == 0
        """Whether this process writes the files of the run."""
        self.note: str | None = None
        """Note on the weights that the run begins with, see ``experiments.networks.weights.Weights``."""
        self._checkpoints = folder / "checkpoints"

    def needed(self) -> dict[str, int]:
        """Estimated bytes that each device needs, by purpose."""
        return memory_needed(self.config, self.game, self.program.mesh.devices.size)

    def start(self) -> TrainState:
        """A new run, with its first checkpoint, of iteration 0.

        Raises ``ValueError`` where the folder has something in it already, which is left as it is. A folder in which a run was
        killed before this checkpoint was finished is begun again.
        """
        if self.leads and not self._is_free():
            raise ValueError(f"{self.folder} is not empty; go on with what is there by --resume, or choose another folder")
        initial = initial_weights(self.config, self.game)
        state = self.program.begin(self.config.seed)
        if initial:
            self.note = initial.note
            start = jax.jit(partial(loss.start, self.config, self.game), out_shardings=self.program.shardings.learner)
            state = replace(state, learner=start(_fitted(initial, state.learner.model)))
        if self.leads:
            self.folder.mkdir(parents=True, exist_ok=True)
            checkpoint.delete_unfinished(self._checkpoints)
            self._write_config()
        self._save(0, state)
        return state

    def _write_config(self) -> None:
        with replacing(self.folder / "config.json", "w") as file:
            json.dump(settings.to_json(self.config), file, indent=1)

    def newest_checkpoint(self) -> int | None:
        """The iteration of the newest checkpoint that is whole; ``None`` where there is none."""
        return max(checkpoint.numbers(self._checkpoints), default=None)

    def _is_free(self) -> bool:
        """Whether the folder has nothing in it but what ``start`` leaves when it is killed."""
        if not self.folder.is_dir():
            return True
        # The settings, or the temporary file that replaces them; checkpoints, none of them finished.
        begun = [
            path for path in self.folder.iterdir() if not path.name.startswith("config.json") and path != self._checkpoints
        ]
        return not begun and checkpoint.has_no_other(self._checkpoints)

    def resume(self) -> TrainState:
        """The newest checkpoint that is whole, or a new run where ``start`` was killed before the first one was.

        Settings that may change, and have, are those of the run from now on.

        Raises ``CheckpointError`` where there is none, or it has other settings.
        """
        newest = self.newest_checkpoint()
        if newest is None and self._is_free():
            return self.start()
        if newest is None:
            raise checkpoint.CheckpointError(
                f"{self._checkpoints} has no checkpoint to go on with; begin a run in another folder, where network.init"
                " can name weights of this one"
            )
        like, made_for = self.program.like, (self.config, self.game.version)
        if checkpoint.is_slim(self._checkpoints, newest):
            kept: SlimState = checkpoint.restore(self._checkpoints, newest, slim(like), *made_for)
            # Not the games again with which the run began.
            begun = self.program.begin(self.config.seed + newest)
            state = replace(begun, learner=kept.learner, keys=kept.keys, iteration=kept.iteration)
        else:
            state = checkpoint.restore(self._checkpoints, newest, like, *made_for)
        if self.leads:
            self._write_config()
        return state

    def train(
        self,
        state: TrainState,
        log: Log | None,
        stop: Callable[[], bool] = lambda: False,
        began: float | None = None,
        minutes: float = math.inf,
    ) -> TrainState:
        """Play and learn until the iterations, or the minutes, are over, or ``stop`` says so; then keep what there is.

        Only the process that leads has a log. ``began`` is the ``time.monotonic()`` from which on the minutes count, by default
        now; ``minutes`` is a limit for this call alone, beside that of the settings for the whole run.
        """
        config, program = self.config, self.program
        every = config.evaluation.eval_every, config.checkpoint.checkpoint_every
        before = log.evaluations[-1]["iteration"] if log and log.evaluations else None
        evaluation = Evaluation(config, self.game, self.folder, before) if log else None
        began = time.monotonic() if began is None else began
        started = began - (log.seconds if log else 0.0)
        deadline = min(began + minutes * 60, started + (config.max_minutes * 60 or math.inf))
        iteration = saved = int(state.iteration)
        empty_at = iteration - int(self.program.rows_filled(state)) // config.selfplay.unroll_length
        saved_at, pace = time.monotonic(), _Pace()
        while iteration < config.iterations:
            if self._ends(log, deadline - pace.of(self._kinds(iteration, empty_at)), stop):
                break
            begin = time.monotonic()
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
                log.add_iteration(iteration, learned - started, played - begin, learned - played, stats, losses)
            if iteration % every[0] == 0:
                state = self._evaluate(iteration, state, log, evaluation, started)
            evaluated = time.monotonic()
            if iteration % every[1] == 0 or self._any(log is not None and self._is_due(evaluated - saved_at)):
                self._save(iteration, state)
                saved, saved_at = iteration, time.monotonic()
            pace.add({"warm-up" if warm_up else "self-play": played - begin, "learning": learned - played})
            if iteration % every[0] == 0:
                pace.add({"evaluation": evaluated - learned})
        if saved != iteration:
            self._save(iteration, state)
        if log:
            self._keep(iteration, state, log)
        return state

    def _evaluate(
        self, iteration: int, state: TrainState, log: Log | None, evaluation: Evaluation | None, started: float
    ) -> TrainState:
        """Play the games of an evaluation; with a gate, let the newest weights play from here on where they pass."""
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
        """What is done in the iteration after this one, each of which is compiled the first time."""
        config = self.config
        kinds = ["warm-up" if iteration < config.selfplay.warmup_iterations else "self-play"]
        if self._learns(iteration + 1 - empty_at):
            kinds.append("learning")
        if (iteration + 1) % config.evaluation.eval_every == 0:
            kinds.append("evaluation")
        return kinds

    def _learns(self, iterations: int) -> bool:
        """Whether the buffer holds enough positions after so many iterations of self-play since it was empty."""
        return iterations * self.config.selfplay.unroll_length >= self.config.replay.min_replay_size

    def _is_due(self, seconds: float) -> bool:
        """Whether a checkpoint is to be written so many seconds after the one before."""
        return 0 < self.config.checkpoint.checkpoint_minutes * 60 < seconds

    def _ends(self, log: Log | None, deadline: float, stop: Callable[[], bool]) -> bool:
        """Whether to end, which all processes have to decide alike."""
        late = log is not None and time.monotonic() > deadline
        return self._any(late or stop())

    def _any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        return bool(np.any(multihost_utils.process_allgather(np.array(flag)))) if jax.process_count() > 1 else flag

    def _save(self, number: int, state: TrainState) -> None:
        kept = slim(state) if self.config.checkpoint.slim else state
        checkpoint.save(self._checkpoints, number, kept, self.config, self.game.version)

    def _keep(self, number: int, state: TrainState, log: Log) -> Model:
        """Write the average weights to a file of their own, and return them."""
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
    """The weights that a new run begins with, read; ``None`` for random ones. Raises ``ValueError``."""
    network = config.network
    return weights.read_initial(game, network.init, "network.init", network.architecture) if network.init else None


def _fitted(initial: weights.Weights, model: Model) -> Model:
    """Weights for a network: as they are, or as what the network makes of those of a smaller one (``grown_from``).

    Raises ``ValueError`` where they fit in neither way.
    """
    if jax.tree.map(jnp.shape, initial.model) == jax.tree.map(jnp.shape, model):
        return initial.model
    grown: Model | None = getattr(model, "grown_from", lambda model: None)(initial.model)
    if grown:
        return grown
    about = f"{initial.description.architecture} {initial.description.size}"
    raise ValueError(f"network.init has weights of {about}, which do not fit network.architecture and network.size")


class _Pace:
    """How long the parts of an iteration take: as long as the last time; a new part compiles, like the first iteration."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._first = 0.0

    def add(self, seconds: dict[str, float]) -> None:
        """Add measured parts."""
        self._first = self._first or sum(seconds.values())
        self._last |= seconds

    def of(self, parts: list[str]) -> float:
        """Seconds that these parts will take together; 0 before anything was measured."""
        return sum(self._last.get(part) or self._first for part in parts)
