"""Games as environments of Pgx. Needs the extra ``[interop]``.

    from tilewe_jax.interop import pgx

    env = pgx.PgxEnv("duo", size=8)

``pgx.make`` supports only the games of Pgx. Importing this module replaces ``pgx.save_svg`` and ``pgx.save_svg_animation`` by
functions that also support states of these games; names imported from Pgx earlier stay unchanged.
"""

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from tilewe_jax.batching.environment import zero_sum
from tilewe_jax.draw.pictures import draw, draw_grid
from tilewe_jax.draw.shapes import Options, el
from tilewe_jax.game import Game, as_action, observation_shape
from tilewe_jax.interop import single
from tilewe_jax.lanes import typed_key
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.extras import optional_import

pgx = optional_import("pgx")
core = optional_import("pgx.core")
Env: Any = core.Env
State: Any = core.State
struct = optional_import("pgx._src.struct")


@struct.dataclass
class PgxState(State):
    """A state of Pgx with the state of the game."""

    current_player: Array
    """``int32``: the player to move, which is not a seat, see ``PgxEnv``."""
    observation: Array
    """The observation of that player."""
    rewards: Array
    """``float32[players]``: rewards of the last step, by player."""
    terminated: Array
    """``bool``: whether the game ended by its rules or by an illegal action."""
    truncated: Array
    """``bool``: whether a cap ended the game."""
    legal_action_mask: Array
    """``bool[num_actions]``: the legal actions; all actions at the end."""
    _step_count: Array
    _seat_of: Array
    """``int32[players]``: the seat of each player."""
    _x: Any
    """The state of the game."""
    _game: Game[Any] = struct.field(pytree_node=False)

    @property
    def env_id(self) -> Any:
        """Id of the game."""
        return self._game.id

    def to_svg(self, *, color_theme: str | None = None, scale: float | None = None) -> str:
        """Return a picture of the position, or of all positions of a batch, as seen by the player to move."""
        del scale  # SVG files scale freely
        options = Options(theme=color_theme or "light")
        if not self.current_player.ndim:
            return draw(self._view(jax.device_get(self)), options)
        states = jax.device_get(self)
        count = self.current_player.shape[0]
        return draw_grid([self._view(jax.tree.map(lambda leaf, i=i: leaf[i], states)) for i in range(count)], options)

    def _view(self, state: Any) -> dict[str, Any]:
        return self._game.host(state._x).view(seat=int(state._seat_of[state.current_player]))

    def save_svg(self, filename: Any, *, color_theme: str | None = None, scale: float | None = None) -> None:
        """Write ``to_svg`` to a file."""
        Path(filename).write_text(self.to_svg(color_theme=color_theme, scale=scale), encoding="utf-8")


def save_svg_animation(
    states: Sequence[PgxState],
    filename: Any,
    *,
    color_theme: str | None = None,
    scale: float | None = None,
    frame_duration_seconds: float | None = None,
) -> None:
    """Write an animation of states, or of batches of states, like ``pgx.save_svg_animation``.

    Args:
      states: at least one state.
      filename: output file.
      color_theme: "light" or "dark".
      scale: unused, because SVG files scale freely.
      frame_duration_seconds: duration of each state, 0.2 seconds by default.

    Raises ``ValueError`` for an empty list of states or a duration that is not positive.
    """
    seconds = 0.2 if frame_duration_seconds is None else frame_duration_seconds
    if not states or not seconds > 0:
        raise ValueError(f"an animation needs states and a positive duration, got {len(states)} states for {seconds} s each")
    frames = [state.to_svg(color_theme=color_theme, scale=scale) for state in states]
    sizes = [re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', frame) for frame in frames]
    width, height = (max(float(size[side]) for size in sizes if size) for side in (1, 2))
    count, parts = len(frames), []
    for index, frame in enumerate(frames):
        times = {"dur": f"{seconds * count:g}s", "repeatCount": "indefinite", "calcMode": "discrete"}
        shown = {"values": "hidden;visible;hidden", "keyTimes": f"0;{index / count:.6g};{(index + 1) / count:.6g}"}
        animation = el("animate", {"attributeName": "visibility", **times, **shown}) if count > 1 else ""
        parts.append(el("g", {"visibility": "visible" if index == count - 1 else "hidden"}, animation, frame))
    root = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width:g} {height:g}"}
    Path(filename).write_text(el("svg", root, *parts), encoding="utf-8")


def _also_ours(of_pgx: Callable[..., None], ours: Callable[..., None]) -> Callable[..., None]:
    """Return a function that calls ``ours`` for states of this module and ``of_pgx`` for other states."""

    @functools.wraps(of_pgx)
    def save(state: Any, *args: Any, **kwargs: Any) -> None:
        first = state if isinstance(state, State) else next(iter(state), None)
        (ours if isinstance(first, PgxState) else of_pgx)(state, *args, **kwargs)

    return save


pgx.save_svg = _also_ours(pgx.save_svg, PgxState.save_svg)
pgx.save_svg_animation = _also_ours(pgx.save_svg_animation, save_svg_animation)


class PgxEnv(Env):
    """A game as an environment of Pgx.

    Like in Pgx, each game assigns the seats to the players at random, ``current_player`` is a player, and
    ``rewards`` are by player, see ``batching.zero_sum``. An illegal action ends the game with a reward of -1 for its player.
    """

    def __init__(self, game: Game[Any] | str, /, **options: Any) -> None:
        super().__init__()
        self.game = single.as_game(game, options)

    def _init(self, key: PRNGKeyArray) -> PgxState:
        require_backend()
        seat_key, game_key = jax.random.split(key)
        players = self.game.num_players
        seat_of = jax.random.permutation(seat_key, jnp.arange(players, dtype=jnp.int32))
        state = self.game.init(typed_key(game_key))
        mover = _player_of(seat_of, self.game.current_player(state))
        return PgxState(
            current_player=mover,
            observation=jnp.zeros(observation_shape(self.game), jnp.float32),  # `init` replaces it
            rewards=jnp.zeros(players, jnp.float32),
            terminated=jnp.zeros((), jnp.bool_),
            truncated=jnp.zeros((), jnp.bool_),
            legal_action_mask=self.game.legal_action_mask(state),
            _step_count=jnp.zeros((), jnp.int32),
            _seat_of=seat_of,
            _x=state,
            _game=self.game,
        )

    def step(self, state: Any, action: Any, key: PRNGKeyArray | None = None) -> Any:
        """Play an action; integers that are not action ids are illegal. Raises ``TypeError`` for other values."""
        require_backend()
        action = as_action(action)
        is_inside = (action >= 0) & (action < self.num_actions)
        illegal = jnp.argmin(state.legal_action_mask).astype(jnp.int32)  # array indices would wrap or clip
        return super().step(state, jnp.where(is_inside, action, illegal), key)

    def _step(self, state: Any, action: Array, key: PRNGKeyArray | None) -> Any:
        del key  # the initial state contains all chance of a game
        after = self.game.step(state._x, action)
        is_over = self.game.is_terminal(after)
        truncated = is_over & self.game.is_truncated(after)
        rewards = zero_sum(self.game.returns(after), is_over.astype(jnp.float32))
        return state.replace(
            current_player=_player_of(state._seat_of, self.game.current_player(after)),
            rewards=rewards[state._seat_of],
            terminated=is_over & ~truncated,
            truncated=truncated,
            legal_action_mask=self.game.legal_action_mask(after) | truncated,
            _x=after,
        )

    def _observe(self, state: Any, player_id: Array) -> Array:
        return self.game.observe(state._x, state._seat_of[player_id])

    @property
    def id(self) -> Any:
        """Id of the game."""
        return self.game.id

    @property
    def version(self) -> str:
        """Version of the rules."""
        return f"v{self.game.version}"

    @property
    def num_players(self) -> int:
        """Number of players."""
        return self.game.num_players

    @property
    def num_actions(self) -> int:
        """Number of action ids."""
        return self.game.num_actions

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of an observation."""
        return observation_shape(self.game)


def _player_of(seat_of: Array, seat: Array) -> Array:
    return jnp.argmax(seat_of == seat).astype(jnp.int32)
