"""Single games on the device for packages that step one game at a time, with one compiled call per step and NumPy results."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BytesIO
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import NDArray

from tilewe_jax.batching.environment import zero_sum
from tilewe_jax.draw.pictures import draw
from tilewe_jax.game import Game
from tilewe_jax.host import IllegalActionError
from tilewe_jax.registry import available_games, make_description
from tilewe_jax.replay.animation import png
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import out_of_range, shown
from tilewe_jax.utils.extras import optional_import


@dataclass(frozen=True)
class Position:
    """A position of one game and its properties."""

    state: Any
    """State of the game."""
    current_player: int
    """The player to move, from 0; unspecified at the end."""
    legal: NDArray[np.bool_]
    """Mask of the legal actions, ``[num_actions]``; all false at the end."""
    is_terminal: bool
    """Whether the game is over, truncated or not."""
    is_truncated: bool
    """Whether a cap ended the game."""
    rewards: NDArray[np.float32]
    """Outcome by seat, see ``batching.zero_sum``; zero before the end."""


def as_game(game: Game[Any] | str, options: dict[str, Any]) -> Game[Any]:
    """Return a game unchanged, or make it by name. Raises ``ValueError`` like ``make``, and for options of a made game."""
    if isinstance(game, str):
        return make_description(game, options)
    if not isinstance(game, Game):
        raise TypeError(f"game must be the name of a game or a Game, got {shown(game)}")
    if options:
        raise ValueError(f"options ({', '.join(options)}) are only valid for a game given by name")
    return game


def registered_ids() -> Iterator[tuple[str, str]]:
    """Yield the name of every game and its id in the registries of other packages, ``tilewe_jax/NAME-vVERSION``."""
    for name in available_games():
        yield name, f"tilewe_jax/{name}-v{make_description(name, {}).version}"


def checked_actions(actions: Any, batch: int, num_actions: int) -> NDArray[np.integer[Any]]:
    """Check the actions of a batch of games, integers ``[batch]``.

    Raises ``TypeError`` for other dtypes, ``ValueError`` for another shape, and ``IllegalActionError`` for integers that are
    not action ids.
    """
    array = np.asarray(actions)
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"actions must be integers [{batch}], got {array.dtype}{list(array.shape)}")
    if array.shape != (batch,):
        raise ValueError(f"actions must be integers [{batch}], got {array.dtype}{list(array.shape)}")
    if outside := array[(array < 0) | (array >= num_actions)].tolist():
        raise IllegalActionError(f"action {outside[0]} is illegal: {out_of_range(num_actions)}")
    return array


def pixels(view: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Draw a view (``HostPosition.view``) as ``uint8[height, width, 3]``; needs the extra ``[render]``."""
    image = optional_import("PIL.Image", "render")
    return np.asarray(image.open(BytesIO(png(draw(view)))).convert("RGB"))


def init(game: Game[Any], seed: int) -> Position:
    """Start a new game. The seed, of at most 63 bits, determines its chance."""
    return position(*_compiled(game).init(jax.random.key(seed)))


def apply(game: Game[Any], state: Any, action: int) -> Position:
    """Return the position after a legal action."""
    return position(*_compiled(game).apply(state, np.int32(action)))


def of_state(game: Game[Any], state: Any) -> Position:
    """Return the position of a state."""
    return position(state, _compiled(game).facts(state))


def observe(game: Game[Any], state: Any, player: int) -> NDArray[np.float32]:
    """Return the observation of a player."""
    return np.array(_compiled(game).observe(state, np.int32(player)))


def position(state: Any, facts: tuple[Any, ...]) -> Position:
    """Return the position of a state and its ``Compiled.facts``."""
    player, legal, is_terminal, is_truncated, rewards = map(np.asarray, facts)
    return Position(state, int(player), legal, bool(is_terminal), bool(is_truncated), rewards)


class Compiled:
    """The compiled functions of a single game."""

    def __init__(self, game: Game[Any]) -> None:
        def facts(state: Any) -> tuple[Any, ...]:
            is_terminal = game.is_terminal(state)
            rewards = zero_sum(game.returns(state), is_terminal.astype(jnp.float32))
            return game.current_player(state), game.legal_action_mask(state), is_terminal, game.is_truncated(state), rewards

        def with_facts(function: Any, *arguments: Any) -> tuple[Any, tuple[Any, ...]]:
            state = function(*arguments)
            return state, facts(state)

        self.facts = jax.jit(facts)
        self.init = jax.jit(partial(with_facts, game.init))
        self.apply = jax.jit(partial(with_facts, game.apply))
        self.observe = jax.jit(game.observe)
        self.determinize = jax.jit(game.determinize)


def _compiled(game: Game[Any]) -> Compiled:
    require_backend()
    return _compiled_once(game)


@lru_cache(maxsize=8)
def _compiled_once(game: Game[Any]) -> Compiled:
    return Compiled(game)


def determinize(game: Game[Any], state: Any, player: int, key: PRNGKeyArray) -> Any:
    """Return the state with all information hidden from a player resampled."""
    return _compiled(game).determinize(state, np.int32(player), key)
