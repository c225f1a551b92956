"""Pentobi's game files (``.blksgf``), a dialect of the Smart Game Format (SGF): https://www.red-bean.com/sgf/.

A file is one or more trees of nodes, ``(;GM[Blokus Duo];B[e10,f10,f9];W[...])``; a game is the main line of a tree. Games
that begin at the start are read, without their comments and variations; games without variations are written.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewe_jax.files import read_input, replacing
from tilewe_jax.host import HostGame, IllegalActionError, shared_win
from tilewe_jax.interop.blokus import BlokusGame, blokus_game, game_of_name
from tilewe_jax.records import FILE_LIMIT, Record, RecordError

Node = dict[str, list[str]]
"""The values of each property of a node."""

_TOKEN = re.compile(r"\s+|[();]|([A-Za-z0-9]+)|\[((?:[^\]\\]|\\.)*)\]", re.DOTALL)
_SETUP = ("AB", "AW", "A1", "A2", "A3", "A4", "AE", "PL")


@dataclass(frozen=True)
class SgfGame:
    """A game of a file, finished or not."""

    game: BlokusGame
    actions: tuple[int, ...]
    """Action ids in the order of play; all are legal."""
    players: tuple[str, ...]
    """Names of the players by seat; empty where the file names none."""

    def record(self) -> Record:
        """The game as a record. Raises ``ValueError`` where it is not over."""
        position = self.game.start()
        for action in self.actions:
            position = position.after(action)
        if not position.is_terminal:
            raise ValueError(f"the game is not over after its {len(self.actions)} moves")
        scores = position.scores()
        return Record(None, self.actions, scores, shared_win(scores), self.players)


def parse(text: str) -> list[SgfGame]:
    """The games of a text. Raises ``ValueError``, which says what is wrong and in which game."""
    games = []
    for number, nodes in enumerate(main_lines(text), 1):
        try:
            games.append(_game(nodes))
        except ValueError as error:
            raise ValueError(f"game {number}: {error}") from None
    return games


def main_lines(text: str) -> list[list[Node]]:
    """The nodes of the main line of each tree of an SGF text. Raises ``ValueError`` for what is no SGF."""
    trees: list[list[Node]] = []
    depth = 0
    has_ended = False  # the main line ends with the first parenthesis that closes
    node: Node | None = None
    values: list[str] | None = None
    for offset, token in _tokens(text):
        if token[0] == "(":
            if not depth:
                trees.append([])
                has_ended = False
            depth, node, values = depth + 1, None, None
        elif token[0] == ")" and depth:
            depth, node, values, has_ended = depth - 1, None, None, True
        elif token[0] == ";" and depth:
            node, values = {}, None
            if not has_ended:
                trees[-1].append(node)
        elif token[1] and node is not None:
            values = node.setdefault(token[1], [])
        elif token[2] is not None and values is not None:
            values.append(re.sub(r"\\(.)", r"\1", token[2], flags=re.DOTALL))
        else:
            raise ValueError(f"this is no SGF: {token[0][:20]!r} at character {offset + 1} is out of place")
    if depth:
        raise ValueError("this is no SGF: the text ends inside of a tree")
    if not trees:
        raise ValueError("this is no SGF: it has no tree")
    return trees


def _tokens(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """The tokens of an SGF text but white space, each with its place. Raises ``ValueError`` for what is none."""
    offset = 0
    while offset < len(text):
        token = _TOKEN.match(text, offset)
        if not token:
            raise ValueError(f"this is no SGF: {text[offset : offset + 20]!r} at character {offset + 1}")
        if not token[0].isspace():
            yield offset, token
        offset = token.end()


def render(game: BlokusGame, actions: Sequence[int], players: Sequence[str] = ()) -> str:
    """A game, finished or not, as a tree. Raises ``ValueError`` where an action is illegal, or the game has other options."""
    if game.config != game_of_name(game.name).config:
        raise ValueError(f"{game.host.id} with other options than the default ones cannot be written as .blksgf")
    root = f";GM[{game.name}]CA[UTF-8]"
    for player, name in zip(game.players, players, strict=bool(players)):
        root += f"P{player.upper()}[{_escaped(name)}]"
    lines = [root]
    position = game.start()
    for action in actions:
        color = game.colors[position.current_color][0].upper()
        position = position.after(action)
        lines.append(f";{color}[{game.move_text(action)}]")
    return f"({chr(10).join(lines)})\n"


def read(path: str | Path) -> list[SgfGame]:
    """Read the games of a file. Raises ``OSError`` where it cannot be read, ``RecordError`` where its content is wrong."""
    try:
        return parse(read_input(path, FILE_LIMIT).decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise RecordError(f"{path} is not a file of games: it is not text") from None
    except ValueError as error:
        raise RecordError(f"{path}: {error}") from None


def read_records(path: str | Path) -> tuple[BlokusGame, list[Record]]:
    """Read finished games of one kind as records. Raises ``OSError`` and ``RecordError`` as ``read`` does."""
    games = read(path)
    records = []
    for number, sgf in enumerate(games, 1):
        if sgf.game.host.id != games[0].game.host.id:
            raise RecordError(f"{path}: game {number} is {sgf.game.name}, and the games before are {games[0].game.name}")
        try:
            records.append(sgf.record())
        except ValueError as error:
            raise RecordError(f"{path}: game {number}: {error}") from None
    return games[0].game, records


def write_records(path: str | Path, game: HostGame, records: Iterable[Record]) -> None:
    """Write records as a file with one tree a game, replacing an existing file atomically.

    Pentobi opens files of a single game.

    Raises ``ValueError`` where the game cannot be written or a record does not replay; ``OSError`` as ``files.replacing``.
    """
    names = blokus_game(game)
    with replacing(path) as file:
        for number, record in enumerate(records, 1):
            try:
                file.write(render(names, record.actions, record.players))
            except ValueError as error:
                raise ValueError(f"game {number}: {error}") from None


def _game(nodes: list[Node]) -> SgfGame:
    """The game of a main line. Raises ``ValueError``."""
    root = nodes[0] if nodes else {}
    if "GM" not in root:
        raise ValueError("it does not name its game, like GM[Blokus Duo]")
    game = game_of_name("".join(root["GM"]))
    position = game.start()
    actions: list[int] = []
    colors = {name.upper(): color for color, names in enumerate(game.colors) for name in names}
    for node in nodes:
        if setup := [name for name in _SETUP if name in node]:
            raise ValueError(f"it sets up a position ({setup[0]}); only games from the start are read")
        for name, values in node.items():
            color = colors.get(name)
            if color is None or not values:
                continue
            move = ",".join(values)  # one value for each cell in files of early versions of Pentobi
            if color != position.current_color:
                turn = game.colors[position.current_color][0].upper()
                raise ValueError(f"move {len(actions) + 1}, {name}[{move[:80]}], is not the turn of {turn}")
            try:
                action = game.action(move)
                position = position.after(action)
            except IllegalActionError as error:
                raise ValueError(f"move {len(actions) + 1}, {name}[{move}]: {error}") from None
            except ValueError as error:
                raise ValueError(f"move {len(actions) + 1}: {error}") from None
            actions.append(action)
    players = tuple("".join(root.get(f"P{player.upper()}", [])) for player in game.players)
    return SgfGame(game, tuple(actions), players if any(players) else ())


def _escaped(text: str) -> str:
    return re.sub(r"([\]\\])", r"\\\1", text)
