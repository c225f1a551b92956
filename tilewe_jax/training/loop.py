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

from tilewe_jax import settings
from tilewe_jax.game import Game
from tilewe_jax.networks import Model, registry, weights
from tilewe_jax.training import checkpoint, loss, metrics, processes
from tilewe_jax.training.agents import check_warmup
from tilewe_jax.training.config import TrainConfig
from tilewe_jax.training.evaluation import Evaluation, check_evaluation, last_weights
from tilewe_jax.training.loss import Losses
from tilewe_jax.training.metrics import Log
from tilewe_jax.training.program import Program, SlimState, TrainState, check_memory, memory_needed, slim
from tilewe_jax.utils.extras import optional_import
from tilewe_jax.utils.files import replacing
from tilewe_jax.utils.progress import Progress

CONFIG = "config.json"
"""File with the settings of a run."""
LOCK = ".lock"
"""File that a process locks while it trains in a folder. The operating system unlocks it when the process ends."""
_CHECKPOINTS = "checkpoints"


def is_free(folder: Path) -> bool:
    """Whether a run may start in a folder: it is empty, or has only the files of a run without a finished checkpoint."""
    if not folder.is_dir():
        return not folder.exists()
    # The settings, or the temporary file that replaces them; checkpoints, none of them finished.
    left = (CONFIG, LOCK, ".writing-")
    others = [path for path in folder.iterdir() if not path.name.startswith(left) and path.name != _CHECKPOINTS]
    return not others and checkpoint.has_no_other(folder / _CHECKPOINTS)


class Run:
    """A run in a folder, of a program for these settings.

    Raises ``ValueError`` where the game has no such opponent or policy, ``MemoryError`` where memory does not suffice,
    ``MissingExtraError`` without an extra that a setting asks for.
    """

    def __init__(self, config: TrainConfig, folder: Path, program: Program) -> None:
        self.config, self.folder, self.program, self.game = config, folder, program, program.game
        if config.tensorboard:
            optional_import("tensorboardX", "tensorboard")
        check_warmup(config.selfplay, self.game)
        check_evaluation(config, self.game)
        check_memory(config, self.game, program.mesh.devices.size)
        self.leads = jax.process_index() == 0
        """Whether this process writes the files of the run."""
        self.note: str | None = None
        """Note on the weights that the run begins with, see ``tilewe_jax.networks.weights.Weights``."""
        self.notes: list[str] = []
        """Notes on data that a resumed run lacks, a line each."""
        self.is_stopped = False
        """True if ``train`` ended early because of ``stop``, in any process."""
        self._checkpoints = folder / _CHECKPOINTS

    def needed(self) -> dict[str, int]:
        """Estimated bytes that each device needs, by purpose."""
        return memory_needed(self.config, self.game, self.program.mesh.devices.size)

    def start(self) -> TrainState:
        """A new run, with its first checkpoint, of iteration 0.

        Raises ``ValueError`` where the folder has something in it already, which is left as it is. A folder in which a run was
        killed before this checkpoint was finished is begun again.
        """
        processes.led(self._check_free)
        initial = initial_weights(self.config, self.game)
        state = self.program.begin(self.config.seed)
        if initial:
            self.note = initial.note
            start = jax.jit(partial(loss.start, self.config, self.game), out_shardings=self.program.shardings.learner)
            state = replace(state, learner=start(_fitted(initial, state.learner.model)))
        processes.led(self._begin_folder)
        self._connect()
        self._save(0, state)
        return state

    def _check_free(self) -> None:
        if not is_free(self.folder):
            raise ValueError(f"{self.folder} is not empty; go on with what is there by --resume, or choose another folder")

    def _begin_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        checkpoint.delete_unfinished(self._checkpoints)
        self._write_config()

    def _write_config(self) -> None:
        with replacing(self.folder / CONFIG, "w") as file:
            json.dump(settings.to_json(self.config), file, indent=1)

    def _connect(self) -> None:
        """Have the collectives of all devices connect while all processes are here."""
        if processes.are_several():
            processes.meet()
            self._any(False)
            self.program.connect()

    def newest_checkpoint(self) -> int | None:
        """The iteration of the newest finished checkpoint, or ``None``."""
        return max(checkpoint.numbers(self._checkpoints), default=None)

    def resume(self, number: int | None = None) -> TrainState:
        """Restore the newest checkpoint, or start a new run if ``start`` was killed before it wrote the first one.

        Changed settings apply from here on. The files of the folder are checked before
        anything in it is changed.

        Args:
            number: checkpoint to restore instead of the newest one. Later ones are renamed.

        Raises ``CheckpointError`` if the checkpoint does not exist or has other settings, and if it or a file of the run is
        damaged; then it names the newest earlier checkpoint that is whole.
        """
        chosen = processes.led(lambda: self._choose(number))
        if chosen is None:
            return self.start()
        like, made_for = self.program.like, (self.config, self.game.version)
        if checkpoint.is_slim(self._checkpoints, chosen):
            kept: SlimState = checkpoint.restore(self._checkpoints, chosen, slim(like), *made_for)
            # Not the games again with which the run began.
            begun = self.program.begin(self.config.seed + chosen)
            state = replace(begun, learner=kept.learner, keys=kept.keys, iteration=kept.iteration)
        else:
            state = checkpoint.restore(self._checkpoints, chosen, like, *made_for)
        self._connect()
        if self.leads:
            for path in checkpoint.set_aside(self._checkpoints, chosen):
                self.notes.append(f"{path}: a checkpoint after iteration {chosen}, which is not used any more")
            checkpoint.delete_unfinished(self._checkpoints)
            self._write_config()
        return state

    def _choose(self, number: int | None) -> int | None:
        """The checkpoint to resume from, verified, as are the other files; ``None`` for a run that has none yet."""
        newest = checkpoint.newest(self._checkpoints)
        if newest is None and number is None and is_free(self.folder):
            return None
        if newest is None:
            raise checkpoint.CheckpointError(
                f"{self._checkpoints} has no checkpoint to go on with; begin a run in another folder, where network.init"
                " can name weights of this one"
            )
        chosen = newest if number is None else number
        if number is not None and number not in (available := checkpoint.numbers(self._checkpoints)):
            listed = ", ".join(map(str, available)) or "none"
            raise checkpoint.CheckpointError(f"{self._checkpoints} has no checkpoint of iteration {number}; it has {listed}")
        try:
            checkpoint.verify(self._checkpoints, chosen)
        except checkpoint.CheckpointError as error:
            earlier = checkpoint.newest_whole(self._checkpoints, chosen)
            advice = "no earlier checkpoint is whole"
            if earlier is not None:
                advice = f"the checkpoint of iteration {earlier} is whole: --resume --checkpoint {earlier} goes on from it"
            raise checkpoint.CheckpointError(f"{error}; {advice}") from None
        self._check_files(chosen)
        return chosen

    def _check_files(self, iteration: int) -> None:
        """Raise ``CheckpointError`` if a file that is needed beside a checkpoint is damaged."""
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
        """Play and learn until the iterations, or the minutes, are over, or ``stop`` says so; then keep what there is.

        Only the process that leads has a log. ``began`` is the ``time.monotonic()`` from which on the minutes count, by default
        now; ``minutes`` limits this call alone, in addition to the limit for the whole run in the settings. ``progress`` shows
        the phase.
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
            if progress and progress.is_compiling:
                progress.phase("training")
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
        self.is_stopped = self._any(self.is_stopped or stop())
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
        late, self.is_stopped = self._any(late, stop())
        return late or self.is_stopped

    def _any(self, *flags: bool) -> Any:
        """Combine flags of all processes by "or"; several flags give a tuple."""
        if jax.process_count() > 1:
            flags = tuple(map(bool, np.any(multihost_utils.process_allgather(np.array(flags)), axis=0)))
        return flags if len(flags) > 1 else flags[0]

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
