"""Comments and variations of recorded games: trees of moves as JSON values. Plain Python, without JAX.

A record of a game may have two further fields: ``comments``, texts by the number of moves before them (as a text), and
``variations``, a list of lines that leave the game. A line has ``move``, the number of moves before it, ``actions``, at least
one, and its own ``comments`` and ``variations``, after its first action or later. All numbers count from the start of the game.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tilewe_jax.host import HostGame, HostPosition

FIELDS = ("comments", "variations")
MAX_DEPTH = 50
"""Maximum depth of variations of variations."""
MAX_COMMENT = 10_000
"""Maximum number of characters of a comment."""

Json = dict[str, Any]


def checked(game: HostGame, deal: Any, actions: Sequence[int], values: Mapping[str, Any]) -> Json:
    """Return the comments and variations of a game. Raises ``ValueError`` for wrong values and for illegal actions.

    Args:
      game: the game.
      deal: the decisions of chance before the first move.
      actions: the legal actions of the game.
      values: an object with ``FIELDS``, which may be absent.
    """
    positions = [game.init_from_deal(deal)]
    for action in actions:
        positions.append(positions[-1].after(action))
    return _line(positions, 0, values, 0)


def _line(positions: Sequence[HostPosition], first: int, values: Mapping[str, Any], depth: int) -> Json:
    """Check the comments and variations of a line, which are after at least ``first`` moves."""
    last = len(positions) - 1
    comments, variations = values.get("comments") or {}, values.get("variations") or []
    if depth > MAX_DEPTH:
        raise ValueError(f"variations must be nested at most {MAX_DEPTH} deep")
    if not isinstance(comments, Mapping) or not isinstance(variations, list):
        raise ValueError("comments must be an object of texts by number of moves, and variations a list")
    for number, text in comments.items():
        if not (isinstance(number, str) and number.isdecimal() and first <= int(number) <= last):
            raise ValueError(f"a comment must be at a number of moves from {first} to {last}, got {str(number)[:80]!r}")
        if not isinstance(text, str) or len(text) > MAX_COMMENT:
            raise ValueError(f"a comment must be a text of at most {MAX_COMMENT:,} characters")
    return {
        "comments": {number: text for number, text in comments.items() if text},
        "variations": [_variation(positions, first, each, depth + 1) for each in variations],
    }


def _variation(positions: Sequence[HostPosition], first: int, values: Any, depth: int) -> Json:
    last = len(positions) - 1
    move, actions = (values.get("move"), values.get("actions")) if isinstance(values, dict) else (None, None)
    if type(move) is not int or not first <= move <= last:
        raise ValueError(f"move of a variation must be an integer from {first} to {last}, got {str(move)[:80]}")
    if not isinstance(actions, list) or not actions or not all(type(action) is int for action in actions):
        raise ValueError("actions of a variation must be a list of action ids, at least one")
    line = list(positions[: move + 1])
    for action in actions:
        try:
            line.append(line[-1].after(action))
        except ValueError as error:
            raise ValueError(f"a variation after {move} moves, move {len(line)}: {error}") from None
    return {"move": move, "actions": actions, **_line(line, move + 1, values, depth)}


def count_moves(variations: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of moves of all variations, also of variations of variations."""
    return sum(len(each["actions"]) + count_moves(each["variations"]) for each in variations)
