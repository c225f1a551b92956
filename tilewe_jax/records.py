"""Recorded games: JSON Lines files that can be replayed.

The first line is the header: the format; the id, options and rules version of the game; and a seed for information. Each
further line is one game: the deal (``null`` for a fixed start), the action ids, the final scores and returns (``null`` for an
unfinished game), and the names of the players if known. Further fields of a game are preserved. Files store no PRNG key, so
that they outlive changes of random generators.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

from tilewe_jax.host import HostGame
from tilewe_jax.utils.files import open_input, parse_json, replacing

if TYPE_CHECKING:
    import numpy as np

    from tilewe_jax.game import Game

# JAX and NumPy are imported inside of functions, so that files can be read and shown without them.

AnyGame = TypeVar("AnyGame", "Game[Any]", HostGame)

FORMAT = "tilewe-jax-games/1"
"""Name and version of the file format, stored in the header."""
FILE_LIMIT = 1 << 30
"""Maximum size of a file in bytes, enough for about two million games of Tilewe."""
LINE_LIMIT = 1 << 20
"""Maximum size of a line in bytes."""
HEADER = ("format", "game", "options", "version", "seed")
"""Fields of the first line of a file."""
VALUES = "values"
"""Further field of a game that training reads: the expected returns by seat before each action, or ``None`` for no values."""
_FIELDS = ("deal", "actions", "scores", "returns", "players")


class RecordError(ValueError):
    """A file is not a file of records, is damaged, or has another version. The message names the file, line and reason."""


@dataclass(frozen=True)
class Record:
    """One game, usually a finished one."""

    deal: Any
    """The random part of the initial state, see ``Game.deal``."""
    actions: tuple[int, ...]
    """Action ids in the order of play."""
    scores: tuple[int, ...]
    """Final scores by seat; empty for an unfinished game."""
    returns: tuple[float, ...]
    """Final returns by seat; empty for an unfinished game."""
    players: tuple[str, ...] = ()
    """Names of the players by seat; empty if unknown."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the line, which are preserved but not interpreted."""

    @property
    def is_finished(self) -> bool:
        """True if the record has a result."""
        return bool(self.scores)


def write(path: str | Path, game: "Game[Any] | HostGame", games: Iterable[Record], seed: int | None = None) -> None:
    """Write a file of records, replacing an existing one atomically.

    Args:
      path: the file; unchanged if writing fails.
      game: the game that was played.
      games: the records.
      seed: the seed of the games, for information only.

    Raises ``OSError`` if the file cannot be written.
    """
    with replacing(path) as file:
        file.writelines(lines(game, games, seed))


def lines(game: "Game[Any] | HostGame", games: Iterable[Record], seed: int | None = None) -> Iterator[str]:
    """Format the lines of a file of records; arguments as in ``write``."""
    header = {"format": FORMAT, "game": game.id, "options": game.options, "version": game.version, "seed": seed}
    yield json.dumps(header) + "\n"
    for record in games:
        yield json.dumps(to_json(record)) + "\n"


def to_json(record: Record) -> dict[str, Any]:
    """Return a record as a JSON object, the line of a file."""
    fields = {"deal": record.deal, "actions": record.actions, "scores": None, "returns": None}
    if record.is_finished:
        fields |= {"scores": record.scores, "returns": record.returns}
    if record.players:
        fields["players"] = record.players
    return {**fields, **record.extra}


def read(path: str | Path) -> "tuple[Game[Any], list[Record]]":
    """Read a file of records and validate the format of every line; ``replay`` checks the games.

    A byte order mark at the start and empty lines at the end are accepted.

    Args:
      path: the file, at most ``FILE_LIMIT`` bytes.

    Returns:
      The game, made from its id and options, and the records.

    Raises ``OSError`` if the file cannot be read, ``RecordError`` for invalid content.
    """
    from tilewe_jax.registry import make

    return _read(path, make)


def read_on_host(path: str | Path) -> tuple[HostGame, list[Record]]:
    """Like ``read``, but returns the host form of the game, which for built-in games does not import JAX."""
    from tilewe_jax.host_games import make_host_game

    return _read(path, make_host_game)


def _read(path: str | Path, make: Callable[..., AnyGame]) -> tuple[AnyGame, list[Record]]:
    with open_input(path, FILE_LIMIT) as file:
        lines = _lines(path, file)
        header = _parse(path, 1, next(lines, ""))
        if header.get("format") != FORMAT:
            raise RecordError(f"{path} is not a file of games: the format in its first line must be {FORMAT}")
        try:
            game = make(header["game"], **header["options"])
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(f"{path}, line 1: {error}") from None
        if header.get("version") != game.version:
            raise RecordError(f"{path}: version of {game.id} must be {game.version}, got {header.get('version')}")
        deals: set[str] = set()
        games: list[Record] = []
        empty = 0
        for number, line in enumerate(lines, 2):
            if not line.strip():
                empty = empty or number
                continue
            if empty:
                raise RecordError(f"{path}, line {empty}: empty line between games")
            value = _parse(path, number, line)
            try:
                games.append(from_json(game, value, deals))
            except ValueError as error:
                raise RecordError(f"{path}, line {number}: {error}") from None
    return game, games


def _lines(path: str | Path, file: BinaryIO) -> Iterator[str]:
    """Read a file line by line. Raises ``RecordError`` for text that is not UTF-8 and for lines that are too long."""
    number = 0
    while line := file.readline(LINE_LIMIT + 1):
        number += 1
        if len(line) > LINE_LIMIT:
            raise RecordError(f"{path}, line {number}: longer than {LINE_LIMIT:,} bytes")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise RecordError(f"{path} is not a file of games: not UTF-8 text") from None


def batches(game: "Game[Any]", records: Sequence[Record], batch: int) -> "Iterator[tuple[Sequence[Record], Any, np.ndarray]]":
    """Split records into batches of one shape, so that replaying them compiles once.

    Args:
      game: the game that was played.
      records: the records.
      batch: maximum number of games in a batch; B is this number or the number of records.

    Yields for each batch its records, at most B; their initial states on the host, ``[B, ...]``; and their actions, int32
    ``[game.max_steps, B]``, with -1 after the end of a game and as padding of the last batch.

    Raises ``ValueError`` for an invalid deal.
    """
    import jax
    import numpy as np

    size = min(batch, len(records))
    starts: dict[str, Any] = {}
    for start in range(0, len(records), batch):
        part = records[start : start + batch]
        actions = np.full((game.max_steps, size), -1, np.int32)
        for index, record in enumerate(part):
            actions[: len(record.actions), index] = record.actions
        deals = [record.deal for record in part]
        deals += deals[:1] * (size - len(part))
        texts = [json.dumps(deal) for deal in deals]
        for text, deal in zip(texts, deals, strict=True):  # most games share a deal, and initial states are expensive
            if text not in starts:
                starts[text] = jax.device_get(game.init_from_deal(deal))
        yield part, jax.tree.map(lambda *leaves: np.stack(leaves), *(starts[text] for text in texts)), actions


class Positions(NamedTuple):
    """The positions before the actions of a batch of B records, N positions on the host, ordered by ply."""

    record: "np.ndarray"
    """Index of the record in the batch, ``int[N]``."""
    ply: "np.ndarray"
    """Number of actions before the position, ``int[N]``."""
    player: "np.ndarray"
    """The player to move, ``int32[N]``."""
    action: "np.ndarray"
    """The action that was played, ``int32[N]``."""
    state: Any
    """The positions, ``[N, ...]``."""
    final: Any
    """The position after the last action of each record, ``[B, ...]``; the last batch is padded."""


def positions(game: "Game[Any]", records: Sequence[Record], batch: int = 64) -> Iterator[tuple[Sequence[Record], Positions]]:
    """Yield records in batches, with the positions before their actions, which must be legal.

    Args:
      game: the game that was played.
      records: the records.
      batch: maximum number of games in a batch.

    Raises ``ValueError`` for an invalid deal.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    @jax.jit
    def run(state: Any, actions: jax.Array) -> tuple[Any, tuple[Any, jax.Array]]:
        def step(state: Any, action: jax.Array) -> tuple[Any, tuple[Any, jax.Array]]:
            return jax.vmap(game.apply)(state, action), (state, jax.vmap(game.current_player)(state))

        return jax.lax.scan(step, state, actions)

    for part, initial, actions in batches(game, records, batch):
        final, (states, players) = jax.device_get(run(initial, jnp.asarray(actions)))
        ply, index = np.nonzero(actions >= 0)
        state = jax.tree.map(lambda leaf, ply=ply, index=index: leaf[ply, index], states)
        yield part, Positions(index, ply, players[ply, index], actions[ply, index], state, final)


def replay(
    game: "Game[Any]", records: Sequence[Record], batch: int = 1024, follow: Callable[[int], object] = lambda done: None
) -> list[str | None]:
    """Replay records and compare their results.

    Args:
      game: the game that was played.
      records: the records.
      batch: number of games in a batch.
      follow: called after each batch with the number of games replayed so far.

    Returns:
      For each record ``None`` if all actions are legal and lead to the recorded scores and returns; otherwise the reason. Of
      a record without a result only the actions are checked.

    Raises ``ValueError`` for an invalid deal.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from tilewe_jax.utils.loops import scan

    @jax.jit
    def run(state: Any, actions: jax.Array) -> tuple[jax.Array, ...]:
        def step(state: Any, action: jax.Array) -> tuple[Any, tuple[jax.Array, jax.Array]]:
            legal, over = jax.vmap(game.is_legal)(state, action), jax.vmap(game.is_terminal)(state)
            return jax.vmap(game.apply)(state, jnp.where(legal, action, -1)), (legal | (action < 0), over)

        state, (legal, over) = scan(step, state, actions)
        first_illegal = jnp.where(jnp.all(legal, axis=0), -1, jnp.argmin(legal, axis=0).astype(jnp.int32))
        is_late = jnp.take_along_axis(over, first_illegal[None], axis=0)[0]
        ended = jax.vmap(game.is_terminal)(state)
        return first_illegal, is_late, ended, jax.vmap(game.scores)(state), jax.vmap(game.returns)(state)

    verdicts: list[str | None] = []
    for part, state, actions in batches(game, records, batch):
        illegal, late, over, scores, returns = map(np.asarray, run(state, jnp.asarray(actions)))
        for index, record in enumerate(part):
            if illegal[index] >= 0:
                ply = int(illegal[index])
                reason = "comes after the end of the game" if late[index] else "is not legal"
                verdicts.append(f"action {ply + 1}, {record.actions[ply]}, {reason}")
            else:
                verdicts.append(_verdict(record, bool(over[index]), scores[index].tolist(), returns[index].tolist()))
        follow(len(verdicts))
    return verdicts


def _verdict(record: Record, over: bool, scores: list[int], returns: list[float]) -> str | None:
    """The error in the result of a record with legal actions, or ``None``."""
    if not record.is_finished:
        return f"the game is over after {len(record.actions)} actions, but the result is missing" if over else None
    if not over:
        return f"the game is not over after {len(record.actions)} actions"
    if tuple(scores) != record.scores:
        return f"the scores must be {scores}, got {list(record.scores)}"
    # Files may round. The comparison is false for NaN.
    pairs = zip(returns, record.returns, strict=True)
    if not all(abs(value - recorded) <= 1e-6 + 1e-5 * abs(recorded) for value, recorded in pairs):
        return f"the returns must be {returns}, got {list(record.returns)}"
    return None


def _parse(path: str | Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = parse_json(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise RecordError(f"{path}, line {number}: not a JSON object")
    return value


def from_json(game: AnyGame, value: dict[str, Any], deals: set[str]) -> Record:
    """Validate a record that ``to_json`` wrote.

    Args:
      game: the game that was played.
      value: the JSON object.
      deals: collects deals that are known to be valid, as JSON.

    Raises ``ValueError`` for an invalid record.
    """
    fields: list[Any] = [value.get(name) for name in ("actions", "scores", "returns")]
    is_finished = not ("scores" in value and "returns" in value and fields[1:] == [None, None])
    if not is_finished:
        fields[1:] = [[], []]
    if (
        "deal" not in value
        or not all(isinstance(field, list) for field in fields)
        or not all(type(item) is int and abs(item) < 1 << 31 for field in fields[:2] for item in field)
        or not all(type(item) in (int, float) and abs(item) < 1 << 31 for item in fields[2])
    ):
        raise ValueError("a game must have a deal, and lists of actions, scores and returns")
    actions, scores, returns = fields
    if is_finished and (len(scores) != game.num_players or len(returns) != game.num_players):
        raise ValueError(f"scores and returns of {game.id} must be {game.num_players} numbers")
    if len(actions) > game.max_steps or not all(0 <= action < game.num_actions for action in actions):
        raise ValueError(f"at most {game.max_steps} actions from 0 to {game.num_actions - 1} are valid")
    players = value.get("players", [])
    names = isinstance(players, list) and all(isinstance(name, str) for name in players)
    if not names or len(players) not in (0, game.num_players):
        raise ValueError(f"players must be {game.num_players} names")
    deal = json.dumps(value["deal"])
    if deal not in deals:
        game.init_from_deal(value["deal"])
        deals.add(deal)
    extra = {name: item for name, item in value.items() if name not in _FIELDS}
    return Record(value["deal"], tuple(actions), tuple(scores), tuple(map(float, returns)), tuple(players), extra)
