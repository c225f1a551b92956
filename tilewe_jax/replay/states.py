"""Draws states of games on the device, for notebooks."""

from typing import TYPE_CHECKING, Any

from tilewe_jax.draw.pictures import draw, draw_grid
from tilewe_jax.draw.shapes import Options, Svg

if TYPE_CHECKING:
    from tilewe_jax.game import Game


def picture(game: "Game[Any]", state: Any, options: Options | None = None) -> Svg:
    """Draw a state of a game, not a batch, including hidden information."""
    return draw(game.host(state).view(open=True), options)


def grid(
    game: "Game[Any]", states: Any, options: Options | None = None, *, limit: int = 100, columns: int | None = None
) -> Svg:
    """Draw a grid of states, including hidden information.

    Args:
      game: the game.
      states: a batch of its states, along the first axis of each array.
      options: marks and colours.
      limit: maximum number of states that are drawn, from the first on.
      columns: states in a row; by default the grid is about square.

    Raises ``ValueError`` for an empty batch.
    """
    import jax

    states = jax.device_get(states)
    count = min(limit, len(jax.tree.leaves(states)[0]))
    views = [game.host(jax.tree.map(lambda leaf, i=i: leaf[i], states)).view(open=True) for i in range(count)]
    return draw_grid(views, options, columns=columns)
