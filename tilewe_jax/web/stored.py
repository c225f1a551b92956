"""Stored games, and the interface of the database."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tilewe_jax.utils.files import parse_json


class StoreError(Exception):
    """The database cannot be used; the message is one line."""


class UsedError(StoreError):
    """Another server uses the database."""


class DamagedError(StoreError):
    """A row of the database is damaged. It stays in the file, and other rows remain usable."""


StoredMove = tuple[int, str | None]
"""Action of a move, and a JSON text with more about it."""


@dataclass(frozen=True)
class StoredGame:
    """A game in the database."""

    created: float
    """Seconds since 1970."""
    setup: dict[str, Any]
    state: dict[str, Any]
    moves: tuple[StoredMove, ...]
    updated: float = 0.0
    """Time of the last change, in seconds since 1970."""


ListedGame = tuple[str, dict[str, Any], dict[str, Any], int]
"""Id, setup, state and number of moves of a game."""


class Storage(Protocol):
    """A database: an SQLite file in ``store.Store``, memory of the browser in a page without a server."""

    async def add(self, game: str, setup: str, state: str, is_public: bool) -> None:
        """Add a game with its setup and state, JSON texts."""

    async def change(self, game: str, state: str, is_over: bool, first_move: int, moves: Sequence[StoredMove]) -> None:
        """Set the state of a game, a JSON text, and replace its moves from number ``first_move`` on.

        Raises ``StoreError``, after which the game is unchanged.
        """

    async def add_study(self, study_id: str, content: str) -> None:
        """Add a study."""

    async def delete_older(self, seconds: float, *, keep: Collection[str] = ()) -> None:
        """Delete studies of this age, and games without a change for this time except those to ``keep``."""

    def game(self, game_id: str) -> StoredGame | None:
        """Return the game with this id, or ``None``. Raises ``DamagedError``."""

    def newest(self, count: int) -> list[ListedGame]:
        """Return the newest public games. Damaged games are omitted."""

    def named(self, ids: Sequence[str]) -> list[ListedGame]:
        """Return the games with these ids, newest first. Unknown ids and damaged games are omitted."""

    def ended(self, since: float, count: int) -> list[tuple[str, float]]:
        """Return ids and times of the last change of public games that have ended, changed at or after a time, oldest first."""

    def count_games(self) -> int:
        """Return the number of games."""

    def count_studies(self) -> int:
        """Return the number of studies."""

    def num_bytes(self) -> int:
        """Return the size in bytes of the used part of the database."""

    def study(self, study_id: str) -> str | None:
        """Return the content of the study with this id, or ``None``. Raises ``DamagedError``."""

    def report(self, kind: str, row_id: Any, error: object) -> None:
        """Log a damaged row once."""


def json_object(text: Any) -> dict[str, Any]:
    """Return a JSON object from the database. Raises ``ValueError``."""
    if not isinstance(text, str):
        raise ValueError("it is not text")
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    json.dumps(value, allow_nan=False)  # raises ``ValueError`` for infinite numbers, which cannot be sent
    return value
