"""The explorer: the moves that were played from a position, and how their games ended. Plain Python without JAX.

Symmetric positions are one position, and symmetric moves are one move. Different orders of moves may reach the same position.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.utils.files import parse_json, read_input

MAX_POSITIONS = 50_000
"""Maximum number of positions in an index, about 30 MB. A full index counts on in the positions that it has."""
MAX_PLIES = 24
"""Positions after more moves are not indexed: they hardly occur twice."""
BOOKS = Path(__file__).parent / "books"
"""Folder of the shipped opening books."""
_BOOK_LIMIT = 1 << 26
"""Maximum size of a book in bytes."""


class _Canonical:
    """A position up to symmetry."""

    def __init__(self, game: HostGame, position: HostPosition) -> None:
        assert game.symmetries
        self._moves, self._position = game.symmetries.moves, position
        keys = list(map(hash, game.symmetries.positions(position)))
        self.key = min(keys)
        """A hash of 64 bits, the same for all symmetric positions in this process."""
        self._symmetries = [index for index, key in enumerate(keys) if key == self.key]

    def move(self, action: int) -> int:
        """Return a hash of a legal action, the same for all symmetric actions of symmetric positions."""
        images = self._moves(self._position, action)
        return min(hash(images[index]) for index in self._symmetries)


@dataclass
class Tally:
    """The games with a move from a position. Results and points are of the player who moved."""

    count: int = 0
    wins: int = 0
    draws: int = 0
    losses: int = 0
    points: int = 0
    """Sum of the final points."""
    lead: int = 0
    """Sum of the leads in points over the best other player."""

    def add(self, player: int, scores: Sequence[int], returns: Sequence[float]) -> None:
        """Count a finished game."""
        self.count += 1
        best = max(returns)
        if returns[player] < best:
            self.losses += 1
        elif list(returns).count(best) > 1:
            self.draws += 1
        else:
            self.wins += 1
        self.points += scores[player]
        self.lead += scores[player] - max((score for seat, score in enumerate(scores) if seat != player), default=0)


def can_explore(game: HostGame) -> bool:
    """Return whether positions of a game can be compared."""
    return not game.has_hidden_information and game.symmetries is not None


def check_game(game: HostGame) -> None:
    """Raise ``ValueError`` for a game whose positions cannot be compared."""
    if not can_explore(game):
        raise ValueError(f"positions of {game.id} cannot be explored; the explorer needs a game without hidden information")


@dataclass
class Index:
    """Games by their positions, for games of all kinds.

    Args:
      max_positions: maximum number of positions.
      max_plies: maximum number of moves before an indexed position.
    """

    max_positions: int = MAX_POSITIONS
    max_plies: int = MAX_PLIES
    num_games: int = 0
    """Number of games that were added."""
    _tallies: dict[tuple[str, int], dict[int, Tally]] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """True if new positions are ignored."""
        return len(self._tallies) >= self.max_positions

    def add(self, game: HostGame, deal: Any, actions: Sequence[int], scores: Sequence[int], returns: Sequence[float]) -> None:
        """Add a finished game. Raises ``ValueError`` for an illegal action or a game that cannot be explored."""
        check_game(game)
        self.num_games += 1
        position, kind = game.init_from_deal(deal), _kind(game)
        for action in actions[: self.max_plies]:
            after = position.after(action)  # raises for an illegal action
            canonical = _Canonical(game, position)
            tallies = self._tallies.get((kind, canonical.key))
            if tallies is None and not self.is_full:
                tallies = self._tallies[kind, canonical.key] = {}
            if tallies is not None:
                tallies.setdefault(canonical.move(action), Tally()).add(position.current_player, scores, returns)
            position = after

    def moves(self, game: HostGame, position: HostPosition) -> dict[int, Tally]:
        """Return the played moves of a position by action, the most played first; of symmetric moves, the first action.

        Raises ``ValueError`` for a game that cannot be explored.
        """
        check_game(game)
        canonical = _Canonical(game, position)
        return _by_action(canonical, position, self._tallies.get((_kind(game), canonical.key), {}))


def table(game: HostGame, position: HostPosition, index: Index) -> list[dict[str, Any]]:
    """Return the played moves of a position as JSON values, the most played first.

    Each has the fields of ``HostPosition.action_view``; ``count``, ``wins``, ``draws`` and ``losses``; and in games with points
    ``points`` and ``lead``, the means of the final points and of the lead over the best other player.
    """
    has_points = position.view()["kind"] != "santorini"
    rows = []
    for action, tally in index.moves(game, position).items():
        row = {**position.action_view(action), "count": tally.count}
        row |= {"wins": tally.wins, "draws": tally.draws, "losses": tally.losses}
        if has_points:
            row |= {"points": tally.points / tally.count, "lead": tally.lead / tally.count}
        rows.append(row)
    return rows


# ---- Opening books


def has_book(game: HostGame) -> bool:
    """Return whether the package has an opening book of a game."""
    return not game.options and game.symmetries is not None and (BOOKS / f"{game.id}.jsonl").exists()


def book_table(game: HostGame, position: HostPosition) -> list[dict[str, Any]]:
    """Return the moves of the shipped opening book in a position as JSON values, the best first.

    Each has the fields of ``HostPosition.action_view``, the ``value`` for the player to move, its standard ``error``, and the
    number of ``visits``. Raises ``OSError`` or ``ValueError`` if the book cannot be read.
    """
    if not has_book(game):
        return []
    canonical = _Canonical(game, position)
    moves = _by_action(canonical, position, _book(game).get(canonical.key, {}))
    player = position.current_player
    return [
        {**position.action_view(action), "value": move.value[player], "error": move.error, "visits": move.visits}
        for action, move in sorted(moves.items(), key=_cost(player))
    ]


@dataclass(frozen=True)
class _BookMove:
    visits: int
    value: tuple[float, ...]
    error: float


@cache
def _book(game: HostGame) -> dict[int, dict[int, _BookMove]]:
    """Return the moves of the shipped book by canonical position and move, with values backed up as in ``agents.book``."""
    lines = read_input(BOOKS / f"{game.id}.jsonl", _BOOK_LIMIT).split(b"\n")
    rows: dict[str, Mapping[str, Any]] = {row["key"]: row for row in map(parse_json, lines[1:-1])}
    done: dict[str, list[tuple[int, _BookMove]]] = {}

    def evaluated(key: str) -> list[tuple[int, _BookMove]]:
        if key not in done:
            row = rows[key]
            done[key] = [(action, _BookMove(visits, tuple(value), error)) for action, visits, value, error, _ in row["moves"]]
            for index, (action, *_, following) in enumerate(row["moves"]):
                if following in rows:
                    _, best = min(evaluated(following), key=_cost(rows[following]["player"]))
                    visits = rows[following]["simulations"]
                    done[key][index] = action, _BookMove(visits, best.value, best.error)
        return done[key]

    book = {}
    for key, row in rows.items():
        position = game.init_from_deal(None)
        for action in row["actions"]:
            position = position.after(action)
        canonical = _Canonical(game, position)
        book[canonical.key] = {canonical.move(action): move for action, move in evaluated(key)}
    return book


def _cost(player: int) -> Callable[[tuple[int, _BookMove]], tuple[float, int]]:
    """Return the order of actions and their moves by value minus error for a player, the best first."""
    return lambda item: (item[1].error - item[1].value[player], item[0])


# ---- Helpers


def _kind(game: HostGame) -> str:
    """Return the rules of a game as text: positions of games with other options are other positions."""
    return f"{game.id} {json.dumps(game.options, sort_keys=True)}"


def _by_action(canonical: _Canonical, position: HostPosition, by_move: Mapping[int, Any]) -> dict[int, Any]:
    """Return values of canonical moves by legal action, in the order of descending ``count`` if they have one."""
    rest, found = dict(by_move), {}
    for action in position.legal_actions() if rest else ():
        move = canonical.move(action)
        if move in rest:
            found[action] = rest.pop(move)
    return dict(sorted(found.items(), key=lambda item: -getattr(item[1], "count", 0)))
