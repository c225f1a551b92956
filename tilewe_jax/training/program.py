"""The state of a run as one pytree, and its compiled functions.

``play`` adds positions to the replay buffer, and ``learn`` makes an optimizer step. Games and replay buffer are sharded over
the devices by games; the rest of the state is replicated.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int32, PRNGKeyArray

from tilewe_jax import networks
from tilewe_jax.agents import agent
from tilewe_jax.game import Game, observation_shape
from tilewe_jax.search import bytes_per_node
from tilewe_jax.search.memory import device_memory
from tilewe_jax.training import agents, endings, learner, loss, processes, recorded, replay, selfplay
from tilewe_jax.training.config import TrainConfig
from tilewe_jax.training.learner import Learner
from tilewe_jax.training.loss import Losses
from tilewe_jax.training.replay import Positions, Replay
from tilewe_jax.training.selfplay import SelfplayState, SelfplayStats

_AXIS = "data"


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TrainState:
    """State of a run."""

    learner: Learner
    """Network and optimizer."""
    games: SelfplayState[Any]
    """The games in progress."""
    replay: Replay[Any]
    """The replay buffer."""
    keys: PRNGKeyArray
    """Two keys, for self-play and for learning."""
    iteration: Int32[Array, ""]
    """Number of iterations of self-play."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SlimState:
    """State of a run without games and replay buffer, as in a slim checkpoint."""

    learner: Learner
    keys: PRNGKeyArray
    iteration: Int32[Array, ""]


def slim(state: TrainState) -> SlimState:
    """Return the part of a state for a slim checkpoint."""
    return SlimState(state.learner, state.keys, state.iteration)


_Update = Callable[[TrainState], tuple[TrainState, Any]]


class Program:
    """The compiled functions of a run.

    Args:
        config: settings of the run.
        devices: number of devices of each process, by default all.

    Raises ``ValueError`` if there are fewer devices, or if games or batch cannot be divided by their number.
    """

    def __init__(self, config: TrainConfig, devices: int | None = None) -> None:
        self.config, self.game = config, config.game.make()
        available = jax.devices()
        count = len(available) if devices is None else devices * jax.process_count()
        if not 1 <= count <= len(available):
            raise ValueError(f"devices must be between 1 and {len(available)}, the number available, got {count}")
        divided = {"selfplay.num_games": config.selfplay.num_games, "optimizer.batch_size": config.optimizer.batch_size}
        for name, value in divided.items():
            if value % count:
                raise ValueError(f"{name} must be a multiple of the number of devices, {count}, got {value}")
        opponent = agents.opponent_policy(config.selfplay, self.game)
        recorded_positions = _recorded_positions(config, self.game)
        processes.check_arrays({config.selfplay.opponent: opponent, "the recorded games": recorded_positions})
        self.mesh = Mesh(np.array(available[:count]), (_AXIS,))
        everywhere, by_game = PartitionSpec(), PartitionSpec(_AXIS)
        # Positions in the buffer are [rows, games, ...].
        buffer: Any = Replay(PartitionSpec(None, _AXIS), everywhere)  # type: ignore[arg-type]
        self._specs = TrainState(everywhere, by_game, buffer, everywhere, everywhere)  # type: ignore[arg-type]
        shaped = jax.eval_shape(self._init, 0)
        self.shardings = jax.tree.map(
            lambda spec, part: jax.tree.map(lambda _: NamedSharding(self.mesh, spec), part),
            self._specs,
            shaped,
            is_leaf=lambda leaf: isinstance(leaf, PartitionSpec),
        )
        self.like: TrainState = jax.tree.map(
            lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), shaped, self.shardings
        )
        """Shapes and shardings of the state."""
        self.init: Callable[[int], TrainState] = jax.jit(self._init, out_shardings=self.shardings)
        """Creates the state of a new run from a seed."""

        # Weights and positions are arguments, because constants would be compiled into the functions.
        def fixed(value: Any) -> tuple[Any, ...]:
            return () if value is None else (jax.device_put(value, NamedSharding(self.mesh, everywhere)),)

        self.play = self._divided(partial(self._play, False), *fixed(opponent))
        """Plays ``unroll_length`` moves in every game, and adds the positions to the replay buffer."""
        self.warm_up = self._divided(partial(self._play, True), *fixed(opponent))
        """Like ``play``, with the agents of the warm-up."""
        self.learn = self._divided(self._learn, *fixed(recorded_positions))
        """Makes an optimizer step."""

        def rows_filled(state: TrainState) -> Array:
            return jnp.max(jnp.sum(state.replay.positions.game_index >= 0, axis=0, dtype=jnp.int32))

        self.rows_filled: Callable[[TrainState], Array] = jax.jit(
            rows_filled, out_shardings=NamedSharding(self.mesh, everywhere)
        )
        """Returns the number of rows of the replay buffer with positions."""
        accept = jax.jit(lambda state: replace(state, learner=replace(state.learner, accepted=state.learner.average)))
        self.accept: Callable[[TrainState], TrainState] = accept
        """Accepts the newest weights for self-play, for runs with a gate."""

    def connect(self) -> None:
        """Connect all devices by running a collective."""
        total = jax.shard_map(
            lambda: jax.lax.psum(jnp.int32(1), _AXIS), mesh=self.mesh, in_specs=(), out_specs=PartitionSpec(), check_vma=False
        )
        jax.block_until_ready(jax.jit(total)())

    def _divided(self, function: Callable[..., tuple[TrainState, Any]], *fixed: Any) -> _Update:
        """Compile a function of fixed arguments and the state for all devices, each with its shard of the state."""
        mapped = jax.shard_map(
            function,
            mesh=self.mesh,
            in_specs=(*[PartitionSpec()] * len(fixed), self._specs),
            out_specs=(self._specs, PartitionSpec()),
            check_vma=False,
        )
        compiled: Any = jax.jit(mapped, donate_argnums=len(fixed))
        if not fixed:
            return cast(_Update, compiled)
        update: Any = partial(compiled, *fixed)
        update.lower = partial(compiled.lower, *fixed)
        return cast(_Update, update)

    def _init(self, seed: int | Array) -> TrainState:
        config = self.config
        key_model, key_games, key_run = jax.random.split(jax.random.key(seed), 3)
        num_games = config.selfplay.num_games
        network = config.network
        model = networks.make(self.game, network.architecture, network.size, key_model, network.registered_by)
        return TrainState(
            learner=loss.start(config, self.game, model),
            games=selfplay.start(config.selfplay, self.game, key_games, num_games),
            replay=replay.empty(
                self.game,
                config.replay.replay_size,
                num_games,
                config.selfplay.search.num_candidates,
                final_states=config.loss.ownership_loss_weight > 0,
            ),
            keys=jax.random.split(key_run),
            iteration=jnp.int32(0),
        )

    def _play(self, warm_up: bool, *arguments: Any) -> tuple[TrainState, SelfplayStats]:
        """Run an iteration of self-play. The arguments are the policy of the opponent, if there is one, and the state."""
        *opponent, state = arguments
        config, game = self.config.selfplay, self.game
        key = jax.random.fold_in(state.keys[0], state.iteration)
        if warm_up:
            players, network = agents.warmup_agents(config, game), None
        else:
            players = agents.full_and_fast(config, game, agents.evaluator(config, game))
            network = agents.network_of(config, state.learner.acting)
        play = partial(selfplay.play, final_states=self.config.loss.ownership_loss_weight > 0, params=network)
        games, positions, stats = play(config, game, players, state.games, key, *opponent)
        if self.config.replay.solve_nodes:
            positions = endings.with_exact_outcomes(game, positions, self.config.replay.solve_nodes)
            stats = replace(stats, solved=jnp.sum(positions.is_solved, dtype=jnp.int32))
        buffer = replay.add(state.replay, positions, self.config.loss.td_lambda)
        after = replace(state, games=games, replay=buffer, iteration=state.iteration + 1)
        return after, jax.lax.psum(stats, _AXIS)

    def _learn(self, *arguments: Any) -> tuple[TrainState, Losses]:
        """Make an optimizer step. Each device samples its part of the batch from its shard of the buffer.

        The arguments are the positions of recorded games, if there are any, and the state. The function is not called in a
        compiled loop, where XLA's CPU compiler makes gradients of convolutions thirty times as slow.
        """
        *positions, state = arguments
        config, count = self.config, self.config.optimizer.batch_size // self.mesh.devices.size
        from_records = round(config.replay.records_fraction * count) if positions else 0
        key = jax.random.fold_in(state.keys[1], state.learner.steps)
        key_sample, key_loss = jax.random.split(jax.random.fold_in(key, jax.lax.axis_index(_AXIS)))
        index = replay.sample(state.replay, key_sample, count - from_records, config.replay.surprise_fraction)
        batch = replay.take(state.replay, index)
        for recorded_games in positions:
            key_records, available = jax.random.fold_in(key_sample, 1), len(recorded_games.game_index)
            drawn = jax.random.randint(key_records, (from_records,), 0, available, jnp.int32)
            batch = jax.tree.map(lambda leaf, more, i=drawn: jnp.concatenate([leaf, more[i]]), batch, recorded_games)
        grads, losses = jax.lax.pmean(loss.gradients(config.loss, self.game, state.learner, batch, key_loss), _AXIS)
        return replace(state, learner=learner.update(config.optimizer, state.learner, grads)), losses


def _recorded_positions(config: TrainConfig, game: Game[Any]) -> Positions[Any] | None:
    """Return the positions of ``replay.records``, or ``None`` if it is not set. Raises ``ValueError``."""
    given, selfplay_config = config.replay, config.selfplay
    if not given.records or not given.records_fraction:
        return None
    try:
        return recorded.read(
            game,
            Path(given.records),
            given.replay_size * selfplay_config.num_games,
            selfplay_config.search.num_candidates,
            final_states=config.loss.ownership_loss_weight > 0,
        )
    except OSError as error:
        raise ValueError(f"replay.records: {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"replay.records: {error}") from None


def check_memory(config: TrainConfig, game: Game[Any], devices: int) -> None:
    """Raise ``MemoryError``, which names the number of games that fit, if a run does not fit into memory."""
    needed, available = memory_needed(config, game, devices), device_memory()
    if sum(needed.values()) <= available:
        return
    fixed = sum(size for purpose, size in needed.items() if purpose not in _GROWS_WITH_GAMES)
    num_games = config.selfplay.num_games
    fitting = max(0, int((available - fixed) / ((sum(needed.values()) - fixed) / num_games)) // devices * devices)
    parts = ", ".join(f"{purpose} {size / 1e9:,.1f} GB" for purpose, size in needed.items())
    advice = f"at most {fitting:,}" if fitting else "no value"
    raise MemoryError(
        f"the run needs about {sum(needed.values()) / 1e9:,.1f} GB per device ({parts}), but has {available / 1e9:.1f} GB;"
        f" selfplay.num_games: {advice} fits"
    )


_GROWS_WITH_GAMES = ("replay buffer", "positions of an iteration", "search trees")


def memory_needed(config: TrainConfig, game: Game[Any], devices: int) -> dict[str, int]:
    """Estimate the memory that each device needs, in bytes, by purpose."""
    network, selfplay_config, search = config.network, config.selfplay, config.selfplay.search
    model = jax.eval_shape(
        lambda: networks.make(game, network.architecture, network.size, jax.random.key(0), network.registered_by)
    )
    weights = 4 * networks.num_parameters(model)
    games = selfplay_config.num_games // devices
    determinizations = selfplay_config.num_determinizations if game.has_hidden_information else 1
    nodes = games * determinizations * (search.num_simulations // determinizations + 1)
    size = networks.SIZES[network.size]
    rows = int(np.prod(observation_shape(game)[-2:], dtype=np.int64))
    activations = 4 * size.channels * rows * (4 * size.blocks + 4) * (config.optimizer.batch_size // devices)
    position = replay.bytes_per_position(game, search.num_candidates, config.loss.ownership_loss_weight > 0)
    rival = agent(selfplay_config.opponent, game).spec if selfplay_config.opponent else None
    rival_trees = 0
    if rival and rival.is_search:
        rival_nodes = selfplay.chunk_of_games(games) * rival.num_trees(game) * (rival.search.num_simulations + 1)
        rival_trees = 2 * rival_nodes * bytes_per_node(game, rival.search.num_candidates)
    return {
        "replay buffer": config.replay.replay_size * games * position,
        "positions of an iteration": selfplay_config.unroll_length * games * position,
        "search trees": 2 * nodes * bytes_per_node(game, search.num_candidates) + rival_trees,
        "weights, their average and the optimizer": 4 * weights,
        "activations": activations,
    }
