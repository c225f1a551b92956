"""Games as environments of Gymnasium: one player learns, the opponents play inside. Needs the extra ``[interop]``.

    from tilewe_jax.interop import gymnasium

    envs = gymnasium.GameVectorEnv("santorini", num_envs=1024, opponent="greedy")

Importing this module registers all games: ``gymnasium.make_vec("tilewe_jax/santorini-v1", num_envs=1024)`` makes the same
batch, and ``gymnasium.make("tilewe_jax/santorini-v1")`` a single game.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray
from numpy.typing import NDArray

from tilewe_jax.batching.environment import zero_sum
from tilewe_jax.batching.reset import auto_reset
from tilewe_jax.game import Game, Policy, chosen_by, observation_shape
from tilewe_jax.interop import single
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_choice, check_count, checked_action
from tilewe_jax.utils.extras import optional_import
from tilewe_jax.utils.loops import while_loop

gymnasium = optional_import("gymnasium")
vector = optional_import("gymnasium.vector")
Env: Any = gymnasium.Env
VectorEnv: Any = vector.VectorEnv

AUTORESET_MODES = tuple(mode.value for mode in vector.AutoresetMode)
ILLEGAL = ("lose", "random")
RENDER_MODES = ("ansi", "rgb_array")
ILLEGAL_REWARD = -1.0
"""Reward of an illegal action with ``illegal="lose"``."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Games:
    """State of a ``GameVectorEnv``."""

    state: Any
    """States of the game, ``[batch, ...]``: the learner is to move, or the game is over."""
    seat: Int32[Array, "batch"]
    """The seat of the learner in each game."""
    ended: Bool[Array, "batch"]
    """Whether the game ended and was not reset yet."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Outcome:
    """Result of a step for the learners."""

    reward: Float32[Array, "batch"]
    terminated: Bool[Array, "batch"]
    truncated: Bool[Array, "batch"]
    illegal: Bool[Array, "batch"]
    final_observation: Float32[Array, "batch ..."]
    """Observation after the step, before any reset."""


class GameVectorEnv(VectorEnv):
    """A batch of games, each with one learner and compiled opponents, stepped in one call on the device.

    Observations are ``float32[num_envs, ...]``, from the seat of the learner. ``info["action_mask"]``,
    ``int8[num_envs, num_actions]``, marks the legal actions, or all actions after the end of a game; ``info["seat"]`` is the
    seat of the learner. Rewards are given at the end of a game, from -1 to 1, see ``batching.zero_sum``.

    A game that ends before the first turn of the learner ends with the next step, for any action.

    Args:
      game: a game or its name.
      num_envs: number of games.
      opponent: policy of all other seats, or its name in ``game.policies()``. Its illegal actions are replaced by random ones.
      seat: seat of the learner; by default drawn for each game.
      illegal: effect of an illegal action of the learner, which ``info["illegal"]`` reports: "lose" ends the game with a
        reward of -1, "random" plays a random action instead.
      append_mask: whether to flatten observations and append the action mask, for learners whose policies receive only
        observations: ``float32[num_envs, observation size + num_actions]``.
      autoreset_mode: "SameStep" (the step that ends a game resets it, and ``info["final_obs"]`` has the last observation),
        "NextStep" (the next step resets it), or "Disabled" (use ``reset`` with ``options={"reset_mask": ...}``).
      render_mode: "ansi" for texts, "rgb_array" for pixels, or ``None``; see ``render``.
      **options: options of a game given by name.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 2}

    def __init__(
        self,
        game: Game[Any] | str,
        /,
        num_envs: int = 1,
        *,
        opponent: Policy | str = "random",
        seat: int | None = None,
        illegal: str = "lose",
        append_mask: bool = False,
        autoreset_mode: Any = "SameStep",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.game = single.as_game(game, options)
        mode = getattr(autoreset_mode, "value", autoreset_mode)
        check_choice("autoreset_mode", mode, AUTORESET_MODES)
        check_choice("illegal", illegal, ILLEGAL)
        if isinstance(opponent, str):
            check_choice("opponent", opponent, tuple(self.game.policies()))
        check_choice("render_mode", render_mode, (*RENDER_MODES, None))
        num_envs = check_count("num_envs", num_envs)
        seat = None if seat is None else check_count("seat", seat, 0, self.game.num_players - 1)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.autoreset_mode = vector.AutoresetMode(mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}  # type: ignore[misc]
        shape = observation_shape(self.game)
        if append_mask:
            shape = (math.prod(shape) + self.game.num_actions,)
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)
        self.single_action_space = gymnasium.spaces.Discrete(self.game.num_actions)
        self.observation_space = vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = vector.utils.batch_space(self.single_action_space, num_envs)
        self._rules = _Rules(self.game, opponent, seat, illegal, append_mask)
        self._games: Games | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Restart all games, or the games in ``options["reset_mask"]``. A seed determines the chance of all later games."""
        require_backend()
        super().reset(seed=seed)
        start, _, observe = _compiled(self._rules)
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, np.bool_)))
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ValueError(f"reset_mask must be bool[{self.num_envs}], got {mask.dtype}{list(mask.shape)}")
        if self._games is None and not mask.all():
            raise ValueError("the first reset must reset all games")
        key = self._key()
        if self._games is None:
            states = jax.vmap(self.game.init)(jax.random.split(key, self.num_envs))
            self._games = Games(states, jnp.zeros(self.num_envs, jnp.int32), jnp.zeros(self.num_envs, jnp.bool_))
        self._games = start(self._games, jnp.asarray(mask), key)
        observation, action_mask = observe(self._games)
        return np.array(observation), self._info(action_mask)

    def step(
        self, actions: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play an action of the learner in each game, then the opponents until the learner is to move again.

        Raises ``TypeError`` for other dtypes than integers, ``ValueError`` for another shape than ``[num_envs]`` and, without
        auto-reset, for finished games, ``IllegalActionError`` for integers that are not action ids, and ``ResetNeeded`` before
        the first reset.
        """
        games = self._started()
        actions = single.checked_actions(actions, self.num_envs, self.game.num_actions)
        waiting = np.asarray(games.ended)  # reset by this step instead of playing an action
        if self.autoreset_mode == vector.AutoresetMode.DISABLED and waiting.any():
            raise ValueError("a game is over; reset it with options={'reset_mask': ...}")
        start, step, observe = _compiled(self._rules)
        self._games, outcome = step(games, jnp.asarray(actions, jnp.int32), self._key())
        terminated, truncated = np.array(outcome.terminated), np.array(outcome.truncated)
        ended = terminated | truncated
        same_step = self.autoreset_mode == vector.AutoresetMode.SAME_STEP
        resets = ended if same_step else waiting
        if resets.any():
            self._games = start(self._games, jnp.asarray(resets), self._key())
        observation, action_mask = observe(self._games)
        info = self._info(action_mask, illegal=np.array(outcome.illegal))
        if same_step and ended.any():
            final = np.full(self.num_envs, None, dtype=object)
            for index in np.flatnonzero(ended):
                final[index] = np.array(outcome.final_observation[index])
            info |= {"final_obs": final, "_final_obs": ended}
        return np.array(observation), np.array(outcome.reward, np.float64), terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the legal actions, ``[num_envs, num_actions]``; Stable-Baselines3-Contrib calls this method."""
        return np.array(_compiled(self._rules)[2](self._started())[1])

    def render(self) -> tuple[Any, ...] | None:
        """Return all positions as seen by the learner: texts, or pixels (needs the extra ``[render]``)."""
        if self.render_mode is None or self._games is None:
            return None
        require_backend()
        states, seats = jax.device_get((self._games.state, self._games.seat))
        positions = (self.game.host(jax.tree.map(lambda leaf, i=i: leaf[i], states)) for i in range(self.num_envs))
        if self.render_mode == "ansi":
            return tuple(position.text(seat=int(seat), open=False) for position, seat in zip(positions, seats, strict=True))
        return tuple(single.pixels(position.view(seat=int(seat))) for position, seat in zip(positions, seats, strict=True))

    def _started(self) -> Games:
        require_backend()
        if self._games is None:
            raise gymnasium.error.ResetNeeded("call reset first")
        return self._games

    def _key(self) -> PRNGKeyArray:
        return jax.random.key(int(self.np_random.integers(2**63)))

    def _info(self, action_mask: Array, **more: NDArray[Any]) -> dict[str, Any]:
        assert self._games is not None
        values = {"action_mask": np.array(action_mask, np.int8), "seat": np.array(self._games.seat), **more}
        return values | {f"_{name}": np.ones(self.num_envs, np.bool_) for name in values}


class GameEnv(Env):
    """A single game of a learner against opponents; arguments, rewards and information as in ``GameVectorEnv``."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 2}

    def __init__(self, game: Game[Any] | str, /, *, render_mode: str | None = None, **settings: Any) -> None:
        self._vector = GameVectorEnv(game, 1, render_mode=render_mode, autoreset_mode="Disabled", **settings)
        self.game = self._vector.game
        self.render_mode = render_mode
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start a new game. A seed determines the chance of all later games."""
        super().reset(seed=seed)
        observation, info = self._vector.reset(seed=None if seed is None else int(seed))
        return observation[0], _first(info)

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Play an action of the learner, then the opponents until the learner is to move again.

        Raises like ``GameVectorEnv.step``, and ``ResetNeeded`` after the end of the game.
        """
        action = checked_action(action, self.game.num_actions)
        if bool(self._vector._started().ended[0]):
            raise gymnasium.error.ResetNeeded("the game is over; call reset before step")
        observation, reward, terminated, truncated, info = self._vector.step(np.array([action], np.int32))
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), _first(info)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the legal actions, ``[num_actions]``."""
        masks: NDArray[np.bool_] = self._vector.action_masks()[0]
        return masks

    def render(self) -> Any:
        """Return the position as seen by the learner: a text, or pixels."""
        frames = self._vector.render()
        return None if frames is None else frames[0]


@dataclass(frozen=True)
class _Rules:
    """The functions that ``GameVectorEnv`` compiles."""

    game: Game[Any]
    opponent: Policy | str
    seat: int | None
    illegal: str
    append_mask: bool

    def start(self, games: Games, mask: Bool[Array, "batch"], key: PRNGKeyArray) -> Games:
        """Restart the games of a mask; the opponents play until the learner is to move."""
        batch = mask.shape[0]
        init_key, seat_key, play_key = jax.random.split(key, 3)
        states = auto_reset(self.game, jax.random.split(init_key, batch), mask, games.state)
        if self.seat is None:
            seat = jax.random.randint(seat_key, (batch,), 0, self.game.num_players, jnp.int32)
        else:
            seat = jnp.full(batch, self.seat, jnp.int32)
        seat = jnp.where(mask, seat, games.seat)
        return Games(self._play_opponents(states, seat, play_key), seat, games.ended & ~mask)

    def step(self, games: Games, action: Int32[Array, "batch"], key: PRNGKeyArray) -> tuple[Games, Outcome]:
        """Play an action in each game that has not ended, then the opponents."""
        game, batch, waiting = self.game, action.shape[0], games.ended
        action_key, play_key = jax.random.split(key)
        over = jax.vmap(game.is_terminal)(games.state)
        legal = jax.vmap(game.is_legal)(games.state, action)
        illegal = ~legal & ~over & ~waiting
        if self.illegal == "random":
            sampled = jax.vmap(game.sample_action)(games.state, jax.random.split(action_key, batch))
            action, legal, lost = jnp.where(illegal, sampled, action), legal | illegal, jnp.zeros_like(illegal)
        else:
            lost = illegal
        states = jax.vmap(game.apply)(games.state, jnp.where(legal & ~waiting, action, -1))
        # Games lost by an illegal action keep their state until the reset.
        states = self._play_opponents(states, games.seat, play_key)
        over = jax.vmap(game.is_terminal)(states)
        truncated = over & jax.vmap(game.is_truncated)(states) & ~waiting
        rewards = zero_sum(jax.vmap(game.returns)(states), over.astype(jnp.float32))
        reward = jnp.take_along_axis(rewards, games.seat[:, None], axis=1)[:, 0]
        outcome = Outcome(
            reward=jnp.where(waiting, 0.0, jnp.where(lost, ILLEGAL_REWARD, reward)),
            terminated=((over & ~truncated) | lost) & ~waiting,
            truncated=truncated,
            illegal=illegal,
            final_observation=self._observe(states, games.seat, self._legal(states, over)),
        )
        return Games(states, games.seat, outcome.terminated | outcome.truncated | waiting), outcome

    def observe(self, games: Games) -> tuple[Float32[Array, "batch ..."], Bool[Array, "batch num_actions"]]:
        """Return the observations and legal actions of the learners; after the end of a game, all actions."""
        legal = self._legal(games.state, games.ended | jax.vmap(self.game.is_terminal)(games.state))
        return self._observe(games.state, games.seat, legal), legal

    def _legal(self, states: Any, over: Bool[Array, "batch"]) -> Bool[Array, "batch num_actions"]:
        return jax.vmap(self.game.legal_action_mask)(states) | over[:, None]

    def _observe(
        self, states: Any, seat: Int32[Array, "batch"], legal: Bool[Array, "batch num_actions"]
    ) -> Float32[Array, "batch ..."]:
        observation = jax.vmap(self.game.observe)(states, seat)
        if not self.append_mask:
            return observation
        return jnp.concatenate([observation.reshape(seat.shape[0], -1), legal.astype(jnp.float32)], axis=1)

    def _play_opponents(self, states: Any, seat: Int32[Array, "batch"], key: PRNGKeyArray) -> Any:
        """Play the opponents until the learner is to move or the game is over."""

        def others_move(states: Any) -> Bool[Array, "batch"]:
            return ~jax.vmap(self.game.is_terminal)(states) & (jax.vmap(self.game.current_player)(states) != seat)

        built_in = self.game.policies()[self.opponent] if isinstance(self.opponent, str) else None

        def choose(state: Any, key: PRNGKeyArray) -> Int32[Array, ""]:
            if built_in:
                return built_in(state, key)
            assert not isinstance(self.opponent, str)
            policy_key, random_key = jax.random.split(key)
            action = chosen_by(self.opponent, state, policy_key)
            return jnp.where(self.game.is_legal(state, action), action, self.game.sample_action(state, random_key))

        def play(carry: tuple[Any, PRNGKeyArray]) -> tuple[Any, PRNGKeyArray]:
            states, key = carry
            key, action_key = jax.random.split(key)
            actions = jax.vmap(choose)(states, jax.random.split(action_key, seat.shape[0]))
            return jax.vmap(self.game.apply)(states, jnp.where(others_move(states), actions, -1)), key

        states, _ = while_loop(lambda carry: jnp.any(others_move(carry[0])), play, (states, key))
        return states


@lru_cache(maxsize=8)
def _compiled(rules: _Rules) -> tuple[Any, Any, Any]:
    return jax.jit(rules.start), jax.jit(rules.step), jax.jit(rules.observe)


def _first(info: dict[str, Any]) -> dict[str, Any]:
    return {name: value[0] for name, value in info.items() if not name.startswith("_")}


def _register() -> None:
    for name, registered_id in single.registered_ids():
        gymnasium.register(
            registered_id,
            entry_point=partial(GameEnv, name),
            vector_entry_point=partial(GameVectorEnv, name),
        )


_register()
