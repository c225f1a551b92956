"""Reads recorded games from records and from Pentobi's ``.blksgf`` files. Only ``finished_games`` needs JAX."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewe_jax import records
from tilewe_jax.formats import blksgf
from tilewe_jax.host import HostGame
from tilewe_jax.records import Record, RecordError
from tilewe_jax.replay.frames import replay
from tilewe_jax.utils.files import open_input, parse_json
from tilewe_jax.variations import FIELDS

if TYPE_CHECKING:
    from tilewe_jax.game import Game

_HEAD = 4096
"""Number of bytes at the start of a file that decide its format."""
_BATCH = 64
"""Number of games that ``finished_games`` replays in parallel."""


@dataclass(frozen=True)
class RecordedGame:
    """A game of a file, finished or not."""

    game: HostGame
    deal: Any
    """The decisions of chance before the first move, see ``Game.deal``."""
    actions: tuple[int, ...]
    """Action ids in the order of play."""
    names: tuple[str, ...]
    """Names of the players by seat; empty if unknown."""
    result: dict[str, Any] | None
    """Final ``scores`` and ``returns``; ``None`` for an unfinished game."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Unknown fields of its record."""

    @property
    def record(self) -> Record:
        """The game as a record."""
        result = self.result or {"scores": (), "returns": ()}
        return Record(self.deal, self.actions, tuple(result["scores"]), tuple(result["returns"]), self.names, self.extra)

    def replay(self, analyses: Sequence[Any] = ()) -> dict[str, Any]:
        """Return the replay of the game, including hidden information; raises as ``tilewe_jax.replay.frames.replay``."""
        return replay(self.game, self.deal, self.actions, names=self.names, result=self.result, analyses=analyses)


def of_record(game: HostGame, record: Record) -> RecordedGame:
    """Combine a record with its game."""
    result = {"scores": list(record.scores), "returns": list(record.returns)} if record.is_finished else None
    return RecordedGame(game, record.deal, record.actions, record.players, result, record.extra)


@dataclass(frozen=True)
class GameFile:
    """The content of a file of games."""

    games: list[RecordedGame]
    notes: tuple[str, ...] = ()
    """Sentences about ignored content, like ``2 comments are not read``."""
    has_variations: bool = False
    """The ignored content includes variations."""

    def of_one_kind(self, path: str | Path) -> tuple[HostGame, list[Record]]:
        """Return the game and the records. Raises ``RecordError`` if the file has several kinds of games, or none."""
        if not self.games:
            raise RecordError(f"{path}: the file contains no games")
        first = self.games[0].game
        for number, recorded in enumerate(self.games, 1):
            if (recorded.game.id, recorded.game.options) != (first.id, first.options):
                raise RecordError(f"{path}: game {number} is {recorded.game.id}, but the games before are {first.id}")
        return first, [recorded.record for recorded in self.games]


def is_sgf(path: str | Path) -> bool:
    """Recognise a ``.blksgf`` file by its content, or by its name if the content is ambiguous. Raises ``OSError``."""
    with open_input(path, records.FILE_LIMIT) as file:
        head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return head == b"(" or (head != b"{" and has_sgf_name(path))


def has_sgf_name(path: str | Path) -> bool:
    """Recognise the name of a ``.blksgf`` file, ignoring case."""
    return Path(path).suffix.lower() in blksgf.SUFFIXES


def read(path: str | Path, variations: bool = False, keep: bool = False) -> GameFile:
    """Read a file of games, records or ``.blksgf``.

    Args:
      path: the file.
      variations: read each variation of a ``.blksgf`` file as a game, instead of the main lines only.
      keep: keep comments and variations as ``extra`` of the games, see ``tilewe_jax.variations``.

    Raises ``OSError`` if it cannot be read, and ``RecordError`` if its content is wrong.
    """
    if is_sgf(path):
        return of_sgf(blksgf.read(path, variations, keep))
    game, games = records.read_on_host(path)
    with open_input(path, records.FILE_LIMIT) as file:
        header = parse_json(file.readline().decode("utf-8-sig"))
    unknown = [name for name in header if name not in records.HEADER]
    notes = [f"the {_listed('field', unknown)} of line 1 {_are(unknown)} not read"] if unknown else []
    fields = Counter(name for record in games for name in record.extra if name not in (records.VALUES, *FIELDS))
    if fields:
        counts = [f"{name} ({count:,})" for name, count in sorted(fields.items())]
        notes.append(f"the {_listed('field', counts)} of games {_are(counts)} not read")
    return GameFile([of_record(game, record) for record in games], tuple(notes))


def finished_games(game: "Game[Any]", *paths: str | Path) -> list[Record]:
    """Read finished games of one game from files, and replay all of them.

    Ignored content is named on standard error.

    Args:
        game: the game that was played.
        paths: files of games, or folders of files ``*.jsonl``, ``*.blksgf`` or ``*.sgf``, which are searched recursively.

    Raises ``OSError`` for files that cannot be read, and ``RecordError`` for damaged or unfinished games, games with other
    rules or options, or no positions.
    """
    games: list[Record] = []
    places: list[str] = []
    for file in (file for path in paths for file in _files(Path(path))):
        content = read(file)
        for note in content.notes:
            print(f"{file}: {note}", file=sys.stderr)
        for number, (played, record) in enumerate(((each.game, each.record) for each in content.games), 1):
            place = f"{file}, game {number}"
            if (played.id, played.options) != (game.id, game.options):
                raise RecordError(
                    f"{file} has games of {played.id} {dict(played.options)}, not of {game.id} {dict(game.options)}"
                )
            if not record.is_finished:
                raise RecordError(f"{place}: the game is unfinished after its {len(record.actions)} actions")
            games.append(record)
            places.append(place)
    if not any(record.actions for record in games):
        raise RecordError(f"{', '.join(map(str, paths))}: no positions of games")
    for place, verdict in zip(places, records.replay(game, games, _BATCH), strict=True):
        if verdict:
            raise RecordError(f"{place}: {verdict}")
    return games


def _files(path: Path) -> list[Path]:
    """Return the files of games in a folder, or the file itself."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix == ".jsonl" or has_sgf_name(file))


def of_sgf(games: Sequence[blksgf.SgfGame]) -> GameFile:
    """Convert the games of a ``.blksgf`` file."""
    unread = reduce(add, (game.unread for game in games), blksgf.Unread())
    is_single = unread.variations + sum(unread.properties.values()) == 1
    notes = [f"{unread} {'is' if is_single else 'are'} not read"] if unread else []
    empty = [str(number) for number, game in enumerate(games, 1) if not game.actions]
    if empty:
        notes.append(f"{_listed('game', empty)} {'has' if len(empty) == 1 else 'have'} no moves")
    recorded = [of_record(game.game.host, game.record()) for game in games]
    return GameFile(recorded, tuple(notes), unread.variations > 0)


def _listed(noun: str, items: Sequence[str]) -> str:
    shown = ", ".join(item[:40] for item in items[:10]) + f" and {len(items) - 10:,} others" * (len(items) > 10)
    return f"{noun}{'s' * (len(items) > 1)} {shown}"


def _are(items: Sequence[str]) -> str:
    return "is" if len(items) == 1 else "are"
