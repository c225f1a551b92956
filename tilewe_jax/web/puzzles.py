"""The puzzles of the page: files of ``tilewe-jax puzzles`` in the folder ``tilewe_jax/puzzles``. Plain Python without JAX."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.records import Record, read_on_host
from tilewe_jax.replay.frames import replay
from tilewe_jax.web.requests import integer_of
from tilewe_jax.web.session import RefusedError, legal_of

Json = dict[str, Any]

FOLDER = Path(__file__).parents[1] / "puzzles"
"""The shipped puzzles, a file for each game."""


@cache
def puzzles_of(game: str) -> tuple[HostGame, Sequence[Record]]:
    """Return the shipped puzzles of a game. Raises ``FileNotFoundError`` for a game without any."""
    return read_on_host(FOLDER / f"{game}.jsonl")


@cache
def counts() -> dict[str, int]:
    """Return the number of puzzles by id of the game."""
    return {file.stem: len(puzzles_of(file.stem)[1]) for file in sorted(FOLDER.glob("*.jsonl"))}


def answer(game: str, number: int, query: Mapping[str, str]) -> Json:
    """Answer a request for a puzzle; with ``move`` and ``explain`` in the query, only the ``rule``. Raises ``RefusedError``."""
    if "explain" not in query:
        return puzzle(game, number)
    move, action = (integer_of(query, name, 0, 1 << 20, 0) for name in ("move", "explain"))
    return {"rule": rule(game, number, move, action)}


def puzzle(game: str, number: int) -> Json:
    """Return a puzzle for a client.

    Args:
      game: id of the game.
      number: number of the puzzle, from 1.

    Returns:
      A replay of the game with the winning move and best play after it, with ``version``, ``deal`` and ``actions``; ``start``,
      the number of moves before the puzzle; ``player``, the seat that wins; ``asked``, the number of its moves in the line,
      from the first one on, that are the only wins; ``legal``, the legal actions before each of these moves, by the number of
      earlier moves; ``orientations`` as in states of games; ``number`` and ``count``.

    Raises ``RefusedError`` for an unknown puzzle.
    """
    host, record, count = _found(game, number)
    answer, start = record.extra["puzzle"], len(record.actions)
    actions = (*record.actions, *answer["line"])
    positions = _positions(host, record)
    asked = [move for move in range(start, len(actions)) if positions[move].current_player == answer["player"]]
    return {
        **replay(host, record.deal, actions, names=["" for _ in range(host.num_players)]),
        "version": host.version,
        "deal": record.deal,
        "actions": list(actions),
        "start": start,
        "player": answer["player"],
        "asked": answer["asked"],
        "legal": {move: legal_of(host, positions[move]) for move in asked[: answer["asked"]]},
        "orientations": list(host.shapes) or None,
        "number": number,
        "count": count,
    }


def rule(game: str, number: int, move: int, action: int) -> str | None:
    """Return the rule that an action breaks after ``move`` moves of the game and the line, or ``None`` for a legal action.

    Raises ``RefusedError`` for an unknown puzzle or an invalid number.
    """
    host, record, _ = _found(game, number)
    positions = _positions(host, record)
    if not 0 <= move < len(positions):
        raise RefusedError(f"move must be 0 to {len(positions) - 1}, got {move}", "move")
    try:
        return positions[move].explain(action)
    except ValueError as error:
        raise RefusedError(str(error), "explain") from None


def _found(game: str, number: int) -> tuple[HostGame, Record, int]:
    """Return a puzzle with its game, and the number of puzzles of the game. Raises ``RefusedError``."""
    count = counts().get(game, 0)
    if not 1 <= number <= count:
        raise RefusedError("this puzzle does not exist", status=404)
    host, records = puzzles_of(game)
    return host, records[number - 1], count


def _positions(host: HostGame, record: Record) -> list[HostPosition]:
    """Return all positions of the game and the line of a puzzle."""
    positions: list[HostPosition] = [host.init_from_deal(record.deal)]
    for action in (*record.actions, *record.extra["puzzle"]["line"]):
        positions.append(positions[-1].after(action))
    return positions
