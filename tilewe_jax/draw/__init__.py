"""Pictures of games, drawn from views: JSON values that describe a position. Plain Python, without JAX.

``HostPosition.view`` returns the view of a position from a seat, and ``action_view`` describes an action. Cells are [x, y] with
[0, 0] at the bottom left. Every view has ``kind``, ``num_players``, ``current_player``, ``terminal``, and ``scores`` by seat.

- ``"polyomino"``:
  ``size``; ``cells``, a string of ``size * size`` characters with y = 0 first, "." for an empty cell or the digit of a
  colour; ``colors``, a list with ``name``, ``player``, ``score``, remaining ``pieces``, number of ``void`` cells (empty, with a
  neighbour of that colour), and ``out``; ``current_color``; ``empty``, the number of empty cells; ``start_cells``, the open
  start cells of the current colour; ``voluntary_pass``. Actions are "place" (``color``, ``piece``, ``orientation``, ``cells``)
  or "pass" (``color``).
- ``"santorini"``:
  ``size``; ``heights``, a string of digits with y = 0 first; ``workers``, four cells or ``None``, the first two of player 0;
  ``placing``; ``winner``, a seat or ``None``. Actions are "turn" (``worker``, ``from``, ``to``, ``build``) or "place"
  (``worker``, ``to``).
- ``"triominos"``:
  ``tiles``, a list with ``tile`` (like "125"), ``cell``, ``points`` (its left, middle and right corner in the plane, y
  downwards, sides of length 1) and ``numbers`` at these points; ``trays``, by seat a list of tiles, or their number if they
  are hidden; ``pile``, the number of tiles; ``draws`` in this turn; ``passes`` in a row; ``round``, from 0; ``target`` or
  ``None``; ``frontier``, the free cells beside a tile with their ``points``. Actions are "place" (``tile``, ``cell``,
  ``points``, ``numbers``, ``gain`` in points and its ``reason``), "draw" or "pass" (``gain``). Here cells are (column, row),
  y downwards.
- ``"text"``:
  ``text``, for third-party games without a view. Actions are "other".

An action also has its ``id`` and ``name``.

``draw`` and ``draw_grid`` draw views with the ``Drawing`` that a game has registered for their kind (``pictures.register``).
``tilewe_jax.replay`` draws states of games on the device.
"""

from tilewe_jax.draw.pictures import draw, draw_grid
from tilewe_jax.draw.shapes import Options

__all__ = ["Options", "draw", "draw_grid"]
