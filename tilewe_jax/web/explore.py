"""The explorer of the page: the moves that were played from a position of a study, by source of the games."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tilewe_jax import explorer
from tilewe_jax.replay import recorded
from tilewe_jax.replay.frames import followed
from tilewe_jax.web.catalog import make_game
from tilewe_jax.web.exports import Studies, study_session
from tilewe_jax.web.forms import fits
from tilewe_jax.web.session import RefusedError
from tilewe_jax.web.stored import Storage, StoreError

log = logging.getLogger("tilewe_jax.web")

Json = dict[str, Any]

SECONDS = 0.3
"""Time in which a request reads further games; the client asks again while games are left."""
MAX_STUDIES = 4
"""Maximum number of studies whose games are indexed at the same time."""
MAX_SEEN = 100_000
"""Maximum number of ids of games that are remembered."""
_BATCH = 200
"""Number of games that one query of the database names."""
_Add = Callable[[explorer.Index], None]
"""Adds a game to an index."""


class Feed:
    """An index that grows by the games of a source, a few at a time."""

    def __init__(self, games: Callable[[], Iterator[_Add]]) -> None:
        self.index = explorer.Index()
        self._games, self._rest = games, games()

    def advance(self, seconds: float = SECONDS) -> bool:
        """Add games for some time; return whether there may be more. A game that cannot be read is logged and skipped."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            add = next(self._rest, None)
            if add is None:
                self._rest = self._games()  # the source may have new games later
                return False
            try:
                add(self.index)
            except (LookupError, TypeError, ValueError, OSError, StoreError) as error:
                log.warning("the explorer skips a game: %s", error)
        return True


class Explorers:
    """The sources of the explorer.

    Args:
      store: the games of this server; public games that have ended are counted.
      studies: the studies; the games of the study on display are a source too.
      files: files of games.
    """

    def __init__(self, store: Storage, studies: Studies, files: Sequence[Path] = ()) -> None:
        self._store, self._studies, self._files = store, studies, list(files)
        self._reading = asyncio.Semaphore(1)
        self._server = Feed(self._stored)
        self._loaded = Feed(self._of_files) if files else None
        self._of_study: dict[str, Feed] = {}
        self._seen: dict[str, None] = {}
        """Ids of the games of the server that were added, the newest last: a rematch changes a game that has ended."""
        self._newest = 0.0
        """Time of the last change of the newest game that was added."""

    async def moves(self, study_id: str, request: Any) -> Json:
        """Return the moves from a position of a study.

        Args:
          study_id: the study.
          request: ``number`` of the game, ``actions`` from its start, and ``source``: "server", "files", "study" or "book".

        Returns:
          ``moves``, see ``explorer.table`` and ``explorer.book_table``; ``games``, the number of games of the source, ``None``
          for the book; ``reading``, true if there are more games to read; ``full``, true if the index ignores new positions;
          and ``sources``, the names of the sources.

        Raises ``RefusedError``.
        """
        if not fits(request, {"number": int, "actions": [int], "source": ("server", "files", "study", "book")}):
            raise RefusedError('the body must be like {"number": 1, "actions": [3190], "source": "server"}')
        content = await asyncio.to_thread(self._studies.games, study_id, request["number"])
        values, source = content[request["number"] - 1], request["source"]

        def build() -> Json:
            host = make_game(values["game"], values["options"])
            explorer.check_game(host)
            if len(request["actions"]) > host.max_steps:
                raise RefusedError(f"a game has at most {host.max_steps} moves", "actions")
            position = study_session(host, values).setup.start
            for after, _ in followed(position, request["actions"]):
                position = after
            sources = ["server", *(["files"] if self._loaded else []), *(["study"] if len(content) > 1 else [])]
            sources += ["book"] if explorer.has_book(host) else []
            if source == "book":
                answer: Json = {"moves": explorer.book_table(host, position), "games": None, "reading": False, "full": False}
            else:
                feed = self._feed(source, study_id, content)
                is_reading = feed.advance()
                index = feed.index
                moves = explorer.table(host, position, index)
                answer = {"moves": moves, "games": index.num_games, "reading": is_reading, "full": index.is_full}
            return {**answer, "sources": sources}

        async with self._reading:
            try:
                return await asyncio.to_thread(build)
            except (OSError, TypeError, ValueError) as error:
                raise RefusedError(str(error), "actions") from None

    def _feed(self, source: str, study_id: str, content: Sequence[Json]) -> Feed:
        if source == "server":
            return self._server
        if source == "files":
            if self._loaded is None:
                raise RefusedError("no files of games are loaded; serve --games FILE loads them", "source", 409)
            return self._loaded
        if study_id not in self._of_study:
            games = _of_study(content)
            self._of_study[study_id] = Feed(lambda: games)  # a study does not change
        feed = self._of_study.pop(study_id)
        self._of_study[study_id] = feed  # most recently used last
        for old in list(self._of_study)[:-MAX_STUDIES]:
            del self._of_study[old]
        return feed

    # ---- Games of the sources

    def _stored(self) -> Iterator[_Add]:
        """The games of the server that ended since the last one that was read."""
        while True:
            before = self._newest
            batch = self._store.ended(before, _BATCH)
            for game, at in batch:
                self._newest = at
                if game not in self._seen:
                    self._seen[game] = None
                    yield partial(self._add_stored, game)
            for game in list(self._seen)[:-MAX_SEEN]:
                del self._seen[game]
            if len(batch) < _BATCH or self._newest == before:
                return

    def _add_stored(self, game_id: str, index: explorer.Index) -> None:
        stored = self._store.game(game_id)
        over = stored.state.get("over") if stored else None
        if stored is None or not over:
            return
        host = make_game(stored.setup["game"], stored.setup["options"])
        if not explorer.can_explore(host):
            return
        actions = [action for action, _ in stored.moves]
        index.add(host, stored.setup["deal"], actions, over["scores"], over["returns"])

    def _of_files(self) -> Iterator[_Add]:
        """The games of the files, each of which is read once."""
        while self._files:
            path = self._files.pop(0)
            try:
                games = recorded.read(path).games
            except (OSError, ValueError) as error:
                log.warning("the explorer cannot read %s: %s", path, error)
                continue
            for game in games:
                if game.result:
                    yield partial(_add_recorded, game)


def _add_recorded(game: recorded.RecordedGame, index: explorer.Index) -> None:
    assert game.result
    index.add(game.game, game.deal, game.actions, game.result["scores"], game.result["returns"])


def _of_study(content: Sequence[Json]) -> Iterator[_Add]:
    return (partial(_add_of_study, values) for values in content if values["result"])


def _add_of_study(values: Json, index: explorer.Index) -> None:
    host = make_game(values["game"], values["options"])
    index.add(host, values["deal"], values["actions"], values["result"]["scores"], values["result"]["returns"])
