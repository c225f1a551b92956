"""Pictures of states on the device, for notebooks: a state is a plain pytree, and only its game knows how it looks."""

from typing import TYPE_CHECKING, Any

from tilewe_jax.draw.pictures import draw, draw_grid
from tilewe_jax.draw.shapes import Options, Svg

if TYPE_CHECKING:
    from tilewe_jax.game import Game


def picture(game: "Game[Any]", state: Any, options: Options | None = None) -> Svg:
    """The picture of a state, with all that is hidden in it.

    Args:
      game: the game.
      state: a state of it, not a batch.
      options: what is marked, and how it looks.
    """
    return draw(game.host(state).view(open=True), options)


def grid(
    game: "Game[Any]", states: Any, options: Options | None = None, *, limit: int = 100, columns: int | None = None
) -> Svg:
    """The picture of a batch of states, side by side.

    Args:
      game: the game.
      states: a batch of its states, along the first axis of each array.
      options: what is marked, and how it looks.
      limit: maximum number of states that are shown, the first ones.
      columns: states in a row; by default so many that the grid is about square.

    Raises ``ValueError`` for an empty batch.
    """
    import jax

    states = jax.device_get(states)
    count = min(limit, len(jax.tree.leaves(states)[0]))
    views = [game.host(jax.tree.map(lambda leaf, i=i: leaf[i], states)).view(open=True) for i in range(count)]
    return draw_grid(views, options, columns=columns)
