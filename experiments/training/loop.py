"""The training loop: play, learn, test, keep; for every game, on one device or on many hosts.

A run is one pytree (``State``). Two compiled functions take it on: ``play`` puts positions into the buffer, ``learn`` learns
from them. Games and buffer are divided by lanes over the devices, the rest is the same on all of them.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int32, PRNGKeyArray

from experiments import networks
from experiments.config import Config
from experiments.networks import weights as trained
from experiments.training import checkpoint, replay, selfplay
from experiments.training import loss as learning
from experiments.training.evaluation import Tests
from experiments.training.loss import Learner, Losses
from experiments.training.metrics import Log
from experiments.training.replay import Replay
from experiments.training.selfplay import Games, Tally
from search.determinization import has_hidden_information
from search.exported import observation_shape
from search.memory import bytes_per_node, device_memory
from tilewe_jax.files import replacing
from tilewe_jax.game import Game

_AXIS = "data"


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """A run, all of it."""

    learner: Learner
    games: Games[Any]
    replay: Replay[Any]
    keys: PRNGKeyArray
    """One for playing, one for learning."""
    round: Int32[Array, ""]


class Program:
    """The compiled functions of a run, on so many devices of each process.

    Raises ``ValueError`` where lanes or batch cannot be divided among the devices.
    """

    def __init__(self, config: Config, devices: int | None = None) -> None:
        self.config, self.game = config, config.make()
        available = jax.devices()
        count = len(available) if devices is None else devices * jax.process_count()
        for name in ("lanes", "batch"):
            if getattr(config, name) % count:
                raise ValueError(f"{name} must be a multiple of the number of devices, {count}, not {getattr(config, name)}")
        self.mesh = Mesh(np.array(available[:count]), (_AXIS,))
        everywhere, by_lane = PartitionSpec(), PartitionSpec(_AXIS)
        # The positions of the buffer are [rows, lanes, ...].
        buffer: Any = Replay(PartitionSpec(None, _AXIS), everywhere)  # type: ignore[arg-type]
        self.specs = State(everywhere, by_lane, buffer, everywhere, everywhere)  # type: ignore[arg-type]
        shaped = jax.eval_shape(self._begin, 0)
        self.shardings = jax.tree.map(
            lambda spec, part: jax.tree.map(lambda _: NamedSharding(self.mesh, spec), part),
            self.specs,
            shaped,
            is_leaf=lambda leaf: isinstance(leaf, PartitionSpec),
        )
        self.like: State = jax.tree.map(
            lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), shaped, self.shardings
        )
        self.begin: Callable[[int], State] = jax.jit(self._begin, out_shardings=self.shardings)
        self.play = self._divided(partial(self._play, False))
        self.teach = self._divided(partial(self._play, True))
        self.learn = self._divided(self._learn)
        promote = jax.jit(lambda state: replace(state, learner=replace(state.learner, passed=state.learner.average)))
        self.promote: Callable[[State], State] = promote

    def _divided(self, function: Callable[[State], tuple[State, Any]]) -> Callable[[State], tuple[State, Any]]:
        mapped = jax.shard_map(
            function, mesh=self.mesh, in_specs=(self.specs,), out_specs=(self.specs, PartitionSpec()), check_vma=False
        )
        compiled: Callable[[State], tuple[State, Any]] = jax.jit(mapped, donate_argnums=0)
        return compiled

    def _begin(self, seed: int | Array) -> State:
        config = self.config
        one, two, three = jax.random.split(jax.random.key(seed), 3)
        model = networks.make(self.game, config.network, one)
        return State(
            learner=learning.start(config, model),
            games=selfplay.begin(self.game, two, config.lanes),
            replay=replay.empty(self.game, config.buffer, config.lanes, config.candidates),
            keys=jax.random.split(three),
            round=jnp.int32(0),
        )

    def _play(self, taught: bool, state: State) -> tuple[State, Tally]:
        config, game = self.config, self.game
        key = jax.random.fold_in(state.keys[0], state.round)
        by = (
            selfplay.teachers(config, game)
            if taught
            else selfplay.players(config, game, selfplay.evaluator(config, game, state.learner.plays))
        )
        games, moved, ended, tally = selfplay.play(config, game, by, state.games, key)
        after = replace(state, games=games, replay=replay.add(state.replay, moved, ended), round=state.round + 1)
        return after, jax.lax.psum(tally, _AXIS)

    def _learn(self, state: State) -> tuple[State, Losses]:
        key = jax.random.fold_in(state.keys[1], state.learner.steps)
        devices = self.mesh.devices.size
        learner, losses = learning.learn(self.config, self.game, state.learner, state.replay, key, _AXIS, devices)
        return replace(state, learner=learner), losses


def memory_needed(config: Config, game: Game[Any], devices: int) -> dict[str, int]:
    """Bytes that each device needs, by what for; an estimate, made before anything is."""
    weights = 4 * networks.parameters(jax.eval_shape(lambda: networks.make(game, config.network, jax.random.key(0))))
    lanes, worlds = config.lanes // devices, config.worlds if has_hidden_information(game) else 1
    trees = lanes * worlds * (config.simulations // worlds + 1) * bytes_per_node(game, config.candidates)
    size = networks.SIZES[config.network]
    rows = int(np.prod(observation_shape(game)[-2:], dtype=np.int64))
    activations = 4 * size.channels * rows * (4 * size.blocks + 4) * (config.batch // devices)
    return {
        "buffer": config.buffer * lanes * replay.bytes_per_position(game, config.candidates),
        "positions of a round": config.steps * lanes * replay.bytes_per_position(game, config.candidates),
        "search trees": 2 * trees,
        "weights, their average and the optimiser": 4 * weights,
        "activations": activations,
    }


class Run:
    """A run in a folder, of a program for these settings. Raises ``MemoryError`` where memory does not suffice."""

    def __init__(self, config: Config, folder: Path, program: Program) -> None:
        self.config, self.folder, self.program, self.game = config, folder, program, program.game
        needed, there = sum(self.needed().values()), device_memory()
        if needed > there:
            parts = ", ".join(f"{what} {size / 1e9:.1f} GB" for what, size in self.needed().items())
            raise MemoryError(f"about {needed / 1e9:.1f} GB a device are needed ({parts}), and there are {there / 1e9:.1f} GB")
        self.leads = jax.process_index() == 0
        self.checkpoints = folder / "checkpoints"

    def needed(self) -> dict[str, int]:
        """Bytes that each device needs."""
        return memory_needed(self.config, self.game, self.program.mesh.devices.size)

    def start(self) -> State:
        """A new run. Raises ``ValueError`` where the folder has something in it already, which is left as it is."""
        if self.leads and self.folder.is_dir() and any(self.folder.iterdir()):
            raise ValueError(f"{self.folder} is not empty; go on with what is there by --resume, or choose another folder")
        state = self.program.begin(self.config.seed)
        if self.config.init:
            path = trained.find(self.config.init)
            if path is None:
                raise ValueError(f"init must be shipped weights ({', '.join(trained.names())}) or a file of them")
            model = trained.read(self.game, path, of_any_game=True).model
            begun = jax.jit(partial(learning.start, self.config), out_shardings=self.program.shardings.learner)(model)
            state = replace(state, learner=begun)
        if self.leads:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.folder / "config.json", "w") as file:
                json.dump(self.config.json(), file, indent=1)
        return state

    def resume(self) -> State:
        """The newest checkpoint that is whole. Raises ``CheckpointError`` where there is none, or it has other settings."""
        there = checkpoint.numbers(self.checkpoints)
        if not there:
            raise checkpoint.CheckpointError(f"{self.checkpoints} has no checkpoint to go on with")
        state: State = checkpoint.restore(self.checkpoints, there[-1], self.program.like, self.config, self.game.version)
        return state

    def train(self, state: State, log: Log | None, stop: Callable[[], bool] = lambda: False) -> State:
        """Play and learn until the rounds, or the minutes, are over, or ``stop`` says so; then keep what there is.

        Only the process that leads has a log.
        """
        config, program = self.config, self.program
        before = log.tests[-1]["round"] if log and log.tests else None
        tests = Tests(config, self.game, self.folder, before) if log else None
        begun = time.monotonic() - (log.seconds if log else 0.0)
        done = kept = int(state.round)
        while done < config.rounds and not self._ends(log, begun, stop):
            now = time.monotonic()
            state, tally = (program.teach if done < config.teach else program.play)(state)
            tally = jax.device_get(tally)
            played = time.monotonic() - now
            done += 1
            losses: list[Losses] = []
            if done * config.steps >= config.fill:
                for _ in range(config.updates):
                    state, parts = program.learn(state)
                    losses.append(parts)
            losses = jax.device_get(losses)
            if log:
                log.round(done, time.monotonic() - begun, played, time.monotonic() - now - played, tally, losses)
            if done % config.test_every == 0:
                passes = False
                if log and tests:
                    model = self._keep(done, state, log)
                    found = tests.run(done, model)
                    if config.gate:
                        found["gate"] = tests.gate(model, jax.device_get(state.learner.plays))
                        passes = found["gate"]["verdict"] == "H1"
                    log.test(done, time.monotonic() - begun, found)
                if config.gate and self._any(passes):
                    state = program.promote(state)
            if done % config.checkpoint_every == 0:
                self._save(done, state)
                kept = done
        if kept != done:
            self._save(done, state)
        if log:
            self._keep(done, state, log)
        return state

    def _ends(self, log: Log | None, begun: float, stop: Callable[[], bool]) -> bool:
        """Whether to end, which all processes have to know alike."""
        late = log is not None and 0 < self.config.minutes * 60 < time.monotonic() - begun
        return self._any(late or stop())

    def _any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        return bool(np.any(multihost_utils.process_allgather(np.array(flag)))) if jax.process_count() > 1 else flag

    def _save(self, number: int, state: State) -> None:
        checkpoint.save(self.checkpoints, number, state, self.config, self.game.version, self.config.keep)

    def _keep(self, number: int, state: State, log: Log) -> networks.Model:
        """Write the weights that play to a file of their own, and give them."""
        model: networks.Model = jax.device_get(state.learner.average)
        about = {"round": number, "games": log.games, "hours": log.seconds / 3600, "game_version": self.game.version}
        folder = self.folder / "weights"
        folder.mkdir(exist_ok=True)
        trained.save(folder / f"{number:06d}.npz", model, self.config, about)
        return model
