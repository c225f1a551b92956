"""Opening books: positions of the first plies up to symmetry, with the values of their moves by long searches.

A book is a file of JSON lines: a head, then one position per line. Positions are found by a hash of the state that all
symmetric positions share, so transpositions and mirrored games use the same line. ``tilewe_jax.arena.book_builder`` makes
books.
"""

import json
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, PRNGKeyArray, UInt32

from tilewe_jax.bits import hash32
from tilewe_jax.game import Action, Game, state_shapes
from tilewe_jax.utils.files import parse_json, read_input, replacing
from tilewe_jax.utils.loops import fori_loop

FORMAT = "tilewe-jax-book/1"
FOLDER = Path(__file__).parents[1] / "books"
"""Folder of the shipped books, one per game with default options."""
FILE_LIMIT = 1 << 26
"""Maximum size of a book, in bytes."""
DIGITS = 4
"""Decimal digits of values and errors in books."""


# ---- Keys of positions


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PositionKey:
    """Identifies a position up to symmetry."""

    words: UInt32[Array, "2"]
    """Hash of the canonical position: the smallest hash of the symmetric positions."""
    symmetry: Int32[Array, ""]
    """Index of the symmetry that maps the position to the canonical position."""


def position_key(game: Game[Any], state: Any) -> PositionKey:
    """Return the key of a position, which all symmetric positions share; two others share a key with probability 2**-64."""
    symmetries = jnp.arange(game.num_symmetries, dtype=jnp.int32)
    words = jax.vmap(lambda index: _hash(game.transform(state, index)))(symmetries)
    first = words[:, 0]
    second = jnp.where(first == jnp.min(first), words[:, 1], jnp.uint32(2**32 - 1))
    index = jnp.argmin(second).astype(jnp.int32)
    return PositionKey(words[index], index)


def state_after(game: Game[Any], actions: Int32[Array, "T"]) -> Any:
    """Return the state after at least one action from the fixed start of a game; the action -1 changes nothing."""
    state = game.init(jax.random.key(0))
    return fori_loop(0, actions.size, lambda ply, state: game.apply(state, actions[ply]), state)


@partial(jax.jit, static_argnums=0)
def _key_after(game: Game[Any], actions: Int32[Array, "T"]) -> PositionKey:
    """Return the key of the position after actions from the start."""
    return position_key(game, state_after(game, actions))


def _hash(state: Any) -> UInt32[Array, "2"]:
    """Hash all arrays of a state."""
    words = jnp.concatenate([_words(leaf) for leaf in jax.tree.leaves(state)])
    numbers = jnp.arange(words.size, dtype=jnp.int32)
    return jnp.stack([jnp.sum(hash32(words, numbers + half * words.size), dtype=jnp.uint32) for half in range(2)])


def _words(leaf: Array) -> UInt32[Array, "words"]:
    """Return the bits of an array."""
    flat = jnp.ravel(leaf)
    if flat.dtype == jnp.bool_:
        return flat.astype(jnp.uint32)
    size = min(flat.dtype.itemsize, 4)  # 64-bit numbers become two words
    return jnp.ravel(jax.lax.bitcast_convert_type(flat, jnp.dtype(f"uint{8 * size}"))).astype(jnp.uint32)


def key_text(words: Any) -> str:
    """Return the two words of a key as text."""
    return f"{int(words[0]):08x}{int(words[1]):08x}"


def key_words(key: str) -> tuple[int, int]:
    """Return the two words of a key."""
    return int(key[:8], 16), int(key[8:], 16)


# ---- Content of a book


@dataclass(frozen=True)
class BookMove:
    """A move in a position of a book."""

    action: int
    """Action id, in the position that the line of the file reaches."""
    visits: int
    """Number of simulations through the move, in all searches of the position."""
    value: tuple[float, ...]
    """Value after the move, by seat."""
    error: float
    """Standard error of the value: the error estimated from independent searches of the position, but at least
    0.5 / sqrt(visits), the bound for independent simulations. It does not contain errors common to all searches."""
    next: str | None
    """Key of the position after the move; ``None`` if the game is over. Files keep only keys in the book, and "" for others."""


@dataclass(frozen=True)
class BookPosition:
    """A position of a book."""

    key: str
    """Its ``PositionKey.words`` as 16 hexadecimal digits."""
    actions: tuple[int, ...]
    """Actions from the start of a game that reach the position."""
    symmetry: int
    """Its ``PositionKey.symmetry``."""
    player: int
    """The player to move."""
    agent: int
    """Index of the agent that searched it in ``Book.agents``."""
    simulations: int
    """Number of simulations of all its searches."""
    moves: tuple[BookMove, ...]
    """The most visited moves. Of symmetric moves, only one is stored."""


@dataclass
class Book:
    """An opening book in memory."""

    game: Game[Any]
    agents: list[str] = field(default_factory=list)
    """Texts of the agents that searched the positions."""
    positions: dict[str, BookPosition] = field(default_factory=dict)
    """Positions by key."""

    def evaluated(self) -> dict[str, tuple[BookMove, ...]]:
        """Return the moves of each position with values backed up through the book, the best move first.

        A move to a position of the book gets the value and the error of the best move in that position, and the simulations of
        the position as visits. The best move has the highest value minus error for the player to move.
        """
        done: dict[str, tuple[BookMove, ...]] = {}
        pending: set[str] = set()

        def visit(key: str) -> tuple[BookMove, ...]:
            if key not in done:
                pending.add(key)
                position = self.positions[key]
                moves = [backed_up(move) for move in position.moves]
                player = position.player
                done[key] = tuple(sorted(moves, key=lambda move: (move.error - move.value[player], move.action)))
                pending.discard(key)
            return done[key]

        def backed_up(move: BookMove) -> BookMove:
            if move.next not in self.positions or move.next in pending:  # a game may repeat positions
                return move
            best = visit(move.next)[0]
            return replace(move, value=best.value, error=best.error, visits=self.positions[move.next].simulations)

        for key in self.positions:
            visit(key)
        return done

    def moves_in(self, located: PositionKey, evaluated: dict[str, tuple[BookMove, ...]]) -> tuple[BookMove, ...]:
        """Return the evaluated moves of a position in its own orientation, the best first; empty if it is not in the book."""
        key = key_text(located.words)
        if key not in self.positions:
            return ()
        to_position = self._frames(self.positions[key])[int(located.symmetry)]
        return tuple(replace(move, action=int(to_position[move.action])) for move in evaluated[key])

    def moves_after(self, actions: Sequence[int], evaluated: dict[str, tuple[BookMove, ...]]) -> tuple[BookMove, ...]:
        """Return the evaluated moves of the position after actions, see ``moves_in``."""
        line = jnp.array([*actions, -1], jnp.int32)  # the loop needs at least one action
        return self.moves_in(_key_after(self.game, line), evaluated)

    def num_below(self, key: str | None) -> int:
        """Return the number of positions of the book that can be reached from a position, including itself."""
        reached: set[str] = set()
        waiting = [key]
        while waiting:
            each = waiting.pop()
            if each is not None and each in self.positions and each not in reached:
                reached.add(each)
                waiting += [move.next for move in self.positions[each].moves]
        return len(reached)

    def table(self, margin: float = 0.0) -> "BookTable":
        """Return the book as arrays.

        Args:
            margin: see ``good_moves``.
        """
        rows, evaluated = [], self.evaluated()
        for key, position in self.positions.items():
            good = good_moves(evaluated[key], position.player, margin)
            rows.append(self._frames(position)[:, [move.action for move in good]])
        actions = np.full((len(rows), self.game.num_symmetries, max(row.shape[1] for row in rows)), -1, np.int32)
        for target, row in zip(actions, rows, strict=True):
            target[:, : row.shape[1]] = row
        keys = np.array([key_words(key) for key in self.positions], np.uint32)
        return BookTable(jnp.asarray(keys), jnp.asarray(actions))

    def _frames(self, position: BookPosition) -> np.ndarray:
        """Return the id of each action in the orientations of a position, ``int32[symmetries, actions]``.

        Row ``s`` is for the orientation that symmetry ``s`` maps to the canonical position.
        """
        images = np.asarray(self.game.action_symmetries)
        return np.stack([np.argsort(image)[images[position.symmetry]] for image in images]).astype(np.int32)


def good_moves(moves: Sequence[BookMove], player: int, margin: float) -> list[BookMove]:
    """Return the moves that a book plays: the best move, and with a margin those whose value is at most this much lower.

    Args:
        moves: evaluated moves, the best first.
        player: the player to move.
        margin: maximum loss of value.
    """
    best, *others = moves
    return [best, *(move for move in others if margin and move.value[player] >= best.value[player] - margin)]


# ---- Lookup on the device


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BookTable:
    """The best moves of a book as arrays: N positions, S symmetries, M moves."""

    keys: UInt32[Array, "N 2"]
    """Keys of the positions."""
    actions: Int32[Array, "N S M"]
    """Moves to play by ``PositionKey.symmetry`` of the position, padded with -1."""

    def move(self, game: Game[Any], state: Any, key: PRNGKeyArray) -> Action:
        """Return a move of the book, drawn uniformly if there are several; -1 if the position is not in the book."""
        located = position_key(game, state)
        is_equal = jnp.all(self.keys == located.words[None], axis=1)
        moves = self.actions[jnp.argmax(is_equal), located.symmetry]
        number = jax.random.randint(key, (), 0, jnp.sum(moves >= 0, dtype=jnp.int32), jnp.int32)
        action = jnp.where(jnp.any(is_equal), moves[number], -1)
        return jnp.where(game.is_legal(state, action), action, -1)


# ---- Files


def check_game(game: Game[Any]) -> None:
    """Raise ``ValueError`` for a game without books: with hidden information, or with several initial states."""
    if game.has_hidden_information:
        raise ValueError(f"a book needs a game without hidden information; {game.id} has hidden information")
    if not game.fixed_start:
        raise ValueError(f"a book needs a game with a fixed start; {game.id} with these options starts at random")


def find(game: Game[Any], name: str | bool) -> Path:
    """Return the path of a book: of the shipped book for ``True``, otherwise ``name``. Raises ``ValueError``."""
    if name is not True:
        return Path(str(name))
    path = FOLDER / f"{game.id}.jsonl"
    if not path.exists() or game.options:
        games = ", ".join(sorted(each.stem for each in FOLDER.glob("*.jsonl")))
        options = f" {game.options}" if game.options else ""
        raise ValueError(
            f"no book is shipped for {game.id}{options}, only for {games or 'no game'} with default options;"
            " tilewe-jax book makes one, and book=FILE names it"
        )
    return path


def load(game: Game[Any], name: str | bool) -> Book:
    """Load a book for playing: the shipped one for ``True``, otherwise a file.

    Raises ``ValueError`` for a missing or damaged file, a book of another game, or a game without books.
    """
    check_game(game)
    path = find(game, name)
    try:
        book, is_current = read(game, path)
    except OSError as error:
        raise ValueError(f"book {path}: {error.strerror}") from None
    if not is_current:
        raise ValueError(
            f"{path}: its keys are of another form of positions; tilewe-jax book renews them when it extends the book"
        )
    if not book.positions:
        raise ValueError(f"{path}: the book contains no positions")
    return book


def read(game: Game[Any], path: Path) -> tuple[Book, bool]:
    """Read a book, and return whether its keys fit the states of the game, whose form may have changed.

    Raises ``OSError``, or ``ValueError`` for a damaged file or another game.
    """
    lines = read_input(path, FILE_LIMIT).split(b"\n")
    head = _head(path, lines[0])
    named = head.get("game"), head.get("options"), head.get("version")
    if named != (game.id, game.options, game.version):
        raise ValueError(
            f"{path}: the book is for {named[0]} {named[1]}, version {named[2]}, not for {game.id} {game.options},"
            f" version {game.version}"
        )
    book = Book(game, head.get("agents", []))
    for number, line in enumerate(lines[1:-1], 2):
        try:
            position = _position(game, parse_json(line), len(book.agents))
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path}: line {number} is damaged: {error!r}") from None
        except ValueError as error:
            raise ValueError(f"{path}: line {number} is damaged: {error}") from None
        book.positions[position.key] = position
    if lines[-1] or not len(lines) - 2 == len(book.positions) == head.get("positions"):
        raise ValueError(f"{path}: the file is damaged: it has {len(book.positions)} of {head.get('positions')} positions")
    if book.positions and all(position.actions for position in book.positions.values()):
        raise ValueError(f"{path}: the book lacks the initial position")
    return book, head.get("layout") == _layout(game)


def game_of(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the id and the options of the game of a book. Raises ``OSError``, or ``ValueError`` for another file."""
    head = _head(path, read_input(path, FILE_LIMIT).partition(b"\n")[0])
    return str(head.get("game")), dict(head.get("options", {}))


def _head(path: Path, line: bytes) -> dict[str, Any]:
    try:
        head = parse_json(line)
    except ValueError:
        head = None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ValueError(f"{path}: not an opening book ({FORMAT})")
    return head


def write(path: Path, book: Book) -> None:
    """Replace a file by a book, atomically."""
    game = book.game
    head = {
        "format": FORMAT,
        "game": game.id,
        "options": game.options,
        "version": game.version,
        "layout": _layout(game),
        "agents": book.agents,
        "positions": len(book.positions),
    }
    rows = (json.dumps(_row(position, book.positions), separators=(",", ":")) for position in book.positions.values())
    with replacing(path) as file:
        file.write("\n".join([json.dumps(head), *rows]) + "\n")


def _layout(game: Game[Any]) -> str:
    """Return a checksum of the form of the states of a game, on which keys depend."""
    leaves = jax.tree_util.tree_leaves_with_path(state_shapes(game))
    return (
        f"{zlib.crc32(str([(jax.tree_util.keystr(path), leaf.shape, str(leaf.dtype)) for path, leaf in leaves]).encode()):08x}"
    )


def _row(position: BookPosition, known: Collection[str]) -> dict[str, Any]:
    """Return a position as JSON, with the keys of ``known`` positions."""
    moves = [
        [move.action, move.visits, list(move.value), move.error, move.next if move.next is None or move.next in known else ""]
        for move in position.moves
    ]
    return {**{name: getattr(position, name) for name in _FIELDS}, "moves": moves}


_FIELDS = ("key", "actions", "symmetry", "player", "agent", "simulations")


def _position(game: Game[Any], row: Any, num_agents: int) -> BookPosition:
    """Read a position. Raises ``ValueError``, ``KeyError`` or ``TypeError`` for a damaged one."""
    moves = tuple(
        BookMove(
            action=_number(action, game.num_actions),
            visits=_number(visits),
            value=_value(game, value),
            error=_float(error),
            next=following if following in (None, "") else _key(following),
        )
        for action, visits, value, error, following in row["moves"]
    )
    if not moves:
        raise ValueError("its list of moves is empty")
    return BookPosition(
        key=_key(row["key"]),
        actions=tuple(_number(action, game.num_actions) for action in row["actions"]),
        symmetry=_number(row["symmetry"], game.num_symmetries),
        player=_number(row["player"], game.num_players),
        agent=_number(row["agent"], num_agents),
        simulations=_number(row["simulations"]),
        moves=moves,
    )


def _number(value: Any, end: int = 2**31) -> int:
    if type(value) is not int or not 0 <= value < end:
        raise ValueError(f"{value!r:.80} must be an integer from 0 to {end - 1}")
    return value


def _float(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise ValueError(f"{value!r:.80} must be a number from 0 to 1")
    return float(value)


def _value(game: Game[Any], values: Sequence[Any]) -> tuple[float, ...]:
    if len(values) != game.num_players:
        raise ValueError(f"a value must have {game.num_players} numbers, not {len(values)}")
    return tuple(map(_float, values))


def _key(text: Any) -> str:
    if not isinstance(text, str) or len(text) != 16 or set(text) - set("0123456789abcdef"):
        raise ValueError(f"{text!r:.80} must be a key of 16 hexadecimal digits")
    return text
