"""Pentobi's game files (``.blksgf``), a dialect of the Smart Game Format (SGF): https://www.red-bean.com/sgf/.

A file is a collection of trees of nodes, ``(;GM[Blokus Duo];B[e10,f10,f9];W[...])``. A line is a path from the root of a tree
to a leaf; the first line is the main line. The reader returns the main line of each tree, with ``keep`` its comments and
variations, or with ``variations`` every line as a game. ``Unread`` counts the ignored content.

Games may start from a position: before the first move, ``AB``, ``AW``, ``A1`` to ``A4`` add pieces, one a value, ``AE`` removes
pieces, and ``PL`` sets the colour to move. The pieces of a colour are in the order of play as far as it matters: if the single
cell is the last one, it counts as the latest piece.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from tilewe_jax.formats.blokus import PASS, BlokusGame, blokus_game, game_of_name
from tilewe_jax.games.polyomino import setup
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import POSITION, HostGame, IllegalActionError, shared_win
from tilewe_jax.records import FILE_LIMIT, Record, RecordError
from tilewe_jax.utils.files import read_input, replacing
from tilewe_jax.variations import FIELDS, MAX_COMMENT, MAX_DEPTH, checked

SUFFIXES = (".blksgf", ".sgf")
"""File name extensions, lower-case."""

_TOKEN = re.compile(r"\s+|[();]|([A-Za-z0-9]+)|\[((?:[^\]\\]|\\.)*)\]", re.DOTALL)
_COLORS = ("B", "BLACK", "W", "WHITE", "1", "BLUE", "2", "YELLOW", "3", "RED", "4", "GREEN")
"""Properties that are moves."""
_SETUP = ("AB", "AW", "A1", "A2", "A3", "A4", "AE")
"""Properties that set up a position."""
_FILE = ("CA", "FF", "AP", "ST")
"""Properties of a root that describe the file rather than the game."""


@dataclass(frozen=True, eq=False)
class SgfNode:
    """A node of a tree."""

    properties: list[tuple[str, list[str]]] = field(default_factory=list)
    """Names, upper-case for known properties, and values, in the order of the file."""
    children: list["SgfNode"] = field(default_factory=list)
    """Next nodes: first the main line, then variations."""


@dataclass(frozen=True)
class Unread:
    """Counts of the ignored content of a tree."""

    variations: int = 0
    """Number of lines except the main line."""
    properties: Mapping[str, int] = field(default_factory=dict)
    """Number of properties by name."""

    def __bool__(self) -> bool:
        return bool(self.variations or self.properties)

    def __add__(self, other: "Unread") -> "Unread":
        return Unread(self.variations + other.variations, dict(Counter(self.properties) + Counter(other.properties)))

    def __str__(self) -> str:
        """Describe the content, like ``43 variations, 2 comments, the properties TE (9), DT``."""
        others = dict(self.properties)
        parts = [(self.variations, "variation"), (others.pop("C", 0) + others.pop("GC", 0), "comment")]
        texts = [f"{count:,} {name}{'s' * (count > 1)}" for count, name in parts if count]
        if others:
            names = [name[:20] + f" ({count:,})" * (count > 1) for name, count in sorted(others.items())]
            shown = ", ".join(names[:20]) + f" and {len(names) - 20} others" * (len(names) > 20)
            texts.append(f"the {'property' if len(names) == 1 else 'properties'} {shown}")
        return ", ".join(texts)


@dataclass(frozen=True)
class SgfGame:
    """A line of a file as a game, finished or not."""

    game: BlokusGame
    actions: tuple[int, ...]
    """Legal action ids in the order of play."""
    players: tuple[str, ...]
    """Names of the players by seat; empty if the file has no names."""
    scores: tuple[int, ...] = ()
    """Final scores by seat; empty for an unfinished game."""
    deal: Any = None
    """The start as in records: ``None``, or a position."""
    unread: Unread = Unread()
    """The ignored content of the tree, only in the first game of a tree."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Comments and variations, see ``tilewe_jax.variations``; empty unless they are kept."""

    def record(self) -> Record:
        """Convert the game to a record, without a result if it is unfinished."""
        returns = shared_win(self.scores) if self.scores else ()
        return Record(self.deal, self.actions, self.scores, returns, self.players, self.extra)


def parse(text: str, variations: bool = False, keep: bool = False) -> list[SgfGame]:
    """Parse the games of a text.

    Args:
      text: the content of a file.
      variations: whether to return every line of a tree as a game, not only the main line.
      keep: whether to keep the comments and variations of a tree with its main line.

    Raises ``ValueError``, which names the game and the error.
    """
    games: list[SgfGame] = []
    for number, root in enumerate(trees(text), 1):
        try:
            games += [_kept(root)] if keep else _games(root, variations)
        except ValueError as error:
            raise ValueError(f"game {number}: {error}") from None
    return games


def trees(text: str) -> list[SgfNode | None]:
    """Parse the trees of an SGF text into their roots, ``None`` for an empty tree. Raises ``ValueError``."""
    tops: list[SgfNode] = []
    opened: list[SgfNode] = []  # for each open parenthesis, the node before it
    node = SgfNode()
    is_open = False  # whether properties may follow
    values: list[str] | None = None
    for offset, token in _tokens(text):
        if token[0] == "(":
            if not opened:
                node = SgfNode()
                tops.append(node)
            opened.append(node)
            is_open, values, is_variation = False, None, True
        elif token[0] == ")" and opened:
            node = opened.pop()
            is_open, values, is_variation = False, None, False
        elif token[0] == ";" and opened and (is_variation or not node.children):
            node.children.append(child := SgfNode())
            node, is_open, values, is_variation = child, True, None, False
        elif token[1] and is_open:
            values = []
            node.properties.append((_canonical(token[1]), values))
        elif token[2] is not None and values is not None:
            values.append(re.sub(r"\\(?:\r\n|\n\r|\n|\r|(.))", r"\1", token[2], flags=re.DOTALL))
        else:
            raise ValueError(f"invalid SGF: unexpected {token[0][:20]!r} at character {offset + 1}")
    if opened:
        raise ValueError("invalid SGF: the text ends inside of a tree")
    if not tops:
        raise ValueError("invalid SGF: no tree")
    return [_root(number, top) for number, top in enumerate(tops, 1)]


def _root(number: int, top: SgfNode) -> SgfNode | None:
    """The root of a tree, the only child of ``top``. Raises ``ValueError`` for several children."""
    if len(top.children) > 1:
        raise ValueError(f"game {number}: a tree must start with one node, got several variations")
    return top.children[0] if top.children else None


def _canonical(name: str) -> str:
    """The canonical name of a known property: upper-case, or without lower-case letters as in files before FF[4]."""
    for known in (name.upper(), re.sub("[a-z]", "", name)):
        if known in (*_COLORS, *_SETUP, *_FILE, "GM", "PL", "SZ", "C", "GC", "PB", "PW", "P1", "P2", "P3", "P4"):
            return known
    return name


def _tokens(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the tokens of an SGF text with their offsets, without white space. Raises ``ValueError``."""
    offset = 0
    while offset < len(text):
        token = _TOKEN.match(text, offset)
        if not token:
            raise ValueError(f"invalid SGF: {text[offset : offset + 20]!r} at character {offset + 1}")
        if not token[0].isspace():
            yield offset, token
        offset = token.end()


def render(
    game: BlokusGame,
    actions: Sequence[int],
    players: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    deal: Any = None,
) -> str:
    """Format a game, finished or not, as a tree.

    Args:
      game: the game.
      actions: its actions.
      players: names of the players by seat.
      extra: comments and variations, see ``tilewe_jax.variations``.
      deal: the start as in records: ``None``, or a position.

    Raises ``ValueError`` for an illegal action, other options than default, invalid comments or variations, or a position in
    which a colour has passed although it could move.
    """
    if game.config != game_of_name(game.name).config:
        raise ValueError(f"options of {game.host.id} must be default in .blksgf files, got {game.host.options}")
    root = f";GM[{game.name}]CA[UTF-8]"
    for player, name in zip(game.players, players, strict=bool(players)):
        root += f"P{player.upper()}[{_escaped(name)}]"
    start = game.host.init_from_deal(deal)
    assert isinstance(start, PolyominoPosition)
    if deal is not None:
        root += _setup(game, start)
    if comment := (extra or {}).get("comments", {}).get("0"):
        root += f"C[{_escaped(comment)}]"
    tree = checked(game.host, deal, actions, extra) if extra else {"comments": {}, "variations": []}
    return f"({chr(10).join([root, *_nodes(game, start, 0, actions, tree)])})\n"


def _setup(game: BlokusGame, start: PolyominoPosition) -> str:
    """Return the properties that set up a position. Raises ``ValueError`` if a colour is out although it could move."""
    facts = setup.write(start)
    text = ""
    for color, (name, pieces) in enumerate(facts["placed"].items()):
        if name in facts["out"] and not start.is_terminal and start.position.can_place(color):
            raise ValueError(f"{name} has passed although it could move, which .blksgf files cannot express")
        is_last = name in facts["monomino_last"]
        ordered = sorted(pieces, key=lambda cells: ("," not in cells) == is_last)
        if ordered:
            text += f"A{game.colors[color][0].upper()}" + "".join(f"[{cells}]" for cells in ordered)
    return f"{text}PL[{game.colors[start.current_color][0].upper()}]"


def _nodes(
    game: BlokusGame, position: PolyominoPosition, move: int, actions: Sequence[int], line: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the nodes of a line from ``position`` on, after ``move`` moves, with its comments and variations."""
    number, variations = move, line["variations"]
    for index, action in enumerate(actions):
        if position.is_terminal:
            raise ValueError(f"move {number + 1}, action {action}, comes after the end of the game")
        if branches := [each for each in variations if each["move"] == number]:
            rest = {"comments": line["comments"], "variations": [each for each in variations if each["move"] > number]}
            yield from _branches(game, position, number, actions[index:], rest, branches)
            return
        color = game.colors[position.current_color][0].upper()
        position = position.after(action)
        number += 1
        comment = line["comments"].get(str(number))
        yield f";{color}[{game.move_text(action)}]" + (f"C[{_escaped(comment)}]" if comment else "")
    if branches := [each for each in variations if each["move"] == number]:
        yield from _branches(game, position, number, (), {"comments": {}, "variations": []}, branches)


def _branches(
    game: BlokusGame,
    position: PolyominoPosition,
    move: int,
    actions: Sequence[int],
    rest: Mapping[str, Any],
    branches: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    """Yield the rest of a line and the variations at its first position. At its end, an empty node is its rest."""
    yield "(" + ("\n".join(_nodes(game, position, move, actions, rest)) or ";") + ")"
    for branch in branches:
        yield "(" + ("\n".join(_nodes(game, position, move, branch["actions"], branch)) or ";") + ")"


def read(path: str | Path, variations: bool = False, keep: bool = False) -> list[SgfGame]:
    """Read the games of a file, see ``parse``.

    Raises ``OSError`` if the file cannot be read, ``RecordError`` for invalid content.
    """
    try:
        return parse(read_input(path, FILE_LIMIT).decode("utf-8-sig"), variations, keep)
    except UnicodeDecodeError:
        raise RecordError(f"{path} is not a file of games: not UTF-8 text") from None
    except ValueError as error:
        raise RecordError(f"{path}: {error}") from None


def write_records(path: str | Path, game: HostGame, records: Iterable[Record]) -> None:
    """Write records as a file with one tree per game, replacing an existing file atomically.

    Pentobi only opens files with a single game.

    Raises ``ValueError`` for a game that cannot be written, and for a record whose moves are illegal or lead to another result,
    because a file contains only moves; ``OSError`` if the file cannot be written.
    """
    names = blokus_game(game)
    with replacing(path) as file:
        for number, record in enumerate(records, 1):
            try:
                kept = {name: record.extra[name] for name in FIELDS if name in record.extra}
                file.write(text := render(names, record.actions, record.players, kept, record.deal))
                scores = parse(text)[0].scores
                if record.scores != scores:
                    end = f"ends with the scores {list(scores)}" if scores else "is not over"
                    raise ValueError(f"the replayed game {end}, but the scores of the record are {list(record.scores)}")
            except ValueError as error:
                raise ValueError(f"game {number}: {error}") from None


@dataclass(frozen=True)
class _Line:
    """A line of a tree so far."""

    position: PolyominoPosition
    actions: tuple[int, ...] = ()
    deal: Any = None
    """The start as in records."""


def _root_values(root: SgfNode | None) -> tuple[SgfNode, BlokusGame, tuple[str, ...]]:
    """The root of a tree, its game and the names of its players. Raises ``ValueError`` without a game."""
    properties = root.properties if root else []
    names = ["".join(values) for name, values in properties if name == "GM"]
    if root is None or not names:
        raise ValueError("the root has no name of the game, such as GM[Blokus Duo]")
    game = game_of_name(names[0])
    values_of = {name: "".join(values) for name, values in reversed(properties)}  # the first of several values wins
    given = [values_of.get(f"P{player.upper()}", "") for player in game.players]
    return root, game, tuple(given) if any(given) else ()


def _kept(root: SgfNode | None) -> SgfGame:
    """The main line of a tree with its comments and variations. Raises ``ValueError``."""
    root, game, players = _root_values(root)
    line, extra = _collected(game, _Line(game.start()), root, 0)
    unread = _unread(game, root, True)
    properties = {name: count for name, count in unread.properties.items() if name != "C"}
    scores = line.position.scores() if line.position.is_terminal else ()
    kept = {name: each for name, each in extra.items() if each}
    return SgfGame(game, line.actions, players, scores, line.deal, Unread(0, properties), kept)


def _collected(game: BlokusGame, line: _Line, node: SgfNode, depth: int) -> tuple[_Line, dict[str, Any]]:
    """Follow the first children from a node to a leaf; return the line with its comments and variations."""
    if depth > MAX_DEPTH:
        raise ValueError(f"variations must be nested at most {MAX_DEPTH} deep")
    comments: dict[str, str] = {}
    variations: list[dict[str, Any]] = []
    while True:
        line = _after(game, line, node)
        number = len(line.actions)
        if text := "\n".join("".join(values) for name, values in node.properties if name == "C")[:MAX_COMMENT]:
            comments[str(number)] = "\n".join(filter(None, [comments.get(str(number)), text]))
        for child in node.children[1:]:
            branch, extra = _collected(game, line, child, depth + 1)
            if early := extra["comments"].pop(str(number), None):  # of a node without a move
                comments[str(number)] = "\n".join(filter(None, [comments.get(str(number)), early]))
            if branch.deal != line.deal:
                raise ValueError("a variation sets up another position; only whole games start from a position")
            if len(branch.actions) > number:
                variations.append({"move": number, "actions": list(branch.actions[number:]), **extra})
        if not node.children:
            return line, {"comments": comments, "variations": variations}
        node = node.children[0]


def _games(root: SgfNode | None, variations: bool) -> list[SgfGame]:
    """The games of a tree. Raises ``ValueError``."""
    root, game, players = _root_values(root)
    games: list[SgfGame] = []
    waiting = [(root, _Line(game.start()))]
    while waiting:
        node, line = waiting.pop()
        try:
            line = _after(game, line, node)
        except ValueError as error:
            raise ValueError(f"variation {len(games)}: {error}" if games else str(error)) from None
        waiting += [(child, line) for child in reversed(node.children if variations else node.children[:1])]
        if not node.children:
            scores = line.position.scores() if line.position.is_terminal else ()
            unread = Unread() if games else _unread(game, root, variations)
            games.append(SgfGame(game, line.actions, players, scores, line.deal, unread))
    return games


def _after(game: BlokusGame, line: _Line, node: SgfNode) -> _Line:
    """Extend a line by a node. Raises ``ValueError`` for illegal moves and for an invalid set-up position."""
    if not line.actions:
        line = _set_up(game, line, list(takewhile(lambda item: item[0] not in _COLORS, node.properties)))
    for name, values in node.properties:
        value = ",".join(values)  # early versions of Pentobi write one value per cell of a move
        if name in _COLORS:
            line = _moved(game, line, name, value)
        elif name in _SETUP and line.actions:
            raise ValueError(f"{name} after {len(line.actions)} moves: a position can be set up before the first move only")
        elif name == "SZ" and value != str(game.config.size):
            raise ValueError(f"SZ[{value[:80]}] must be {game.config.size}, the size of {game.name}")
        elif name == "PL" and line.actions and not line.position.is_terminal:
            turn = line.position.current_color
            if _colors(game).get(value.strip().upper()) != turn:
                color = game.colors[turn][0].upper()
                raise ValueError(f"PL[{value[:80]}] after {len(line.actions)} moves must be {color}, whose turn it is")
    return line


def _set_up(game: BlokusGame, line: _Line, properties: list[tuple[str, list[str]]]) -> _Line:
    """Apply properties that set up a position. Raises ``ValueError`` for an invalid position."""
    if not any(name in (*_SETUP, "PL") for name, _ in properties):
        return line
    facts = setup.write(line.position)
    placed, names = facts["placed"], list(facts["placed"])
    for name, values in properties:
        pieces = [setup.piece_text(game.config, value) for value in values] if name in _SETUP else []
        if name == "AE":
            for piece in pieces:
                if not any(piece in own for own in placed.values()):
                    raise ValueError(f"AE[{piece[:80]}] must be a piece on the board")
            placed = {each: [piece for piece in own if piece not in pieces] for each, own in placed.items()}
        elif name in _SETUP or name == "PL":
            value = name[1:] if name in _SETUP else "".join(values).strip().upper()
            color = _colors(game).get(value)
            if color is None:
                known = " ".join(accepted[0].upper() for accepted in game.colors)
                raise ValueError(
                    f"{name}[{','.join(values)[:80]}]: {value[:20]} is not a color of {game.name}; colors are {known}"
                )
            if name == "PL":
                facts["current_color"] = names[color]
            else:
                placed[names[color]] = [*placed[names[color]], *pieces]
    last = [color for color, own in placed.items() if own and "," not in own[-1]]
    position = setup.read(game.config, {"placed": placed, "current_color": facts["current_color"], "monomino_last": last})
    facts = setup.write(position)
    return _Line(position, (), None if facts == setup.write(game.start()) else {POSITION: facts})


def _moved(game: BlokusGame, line: _Line, name: str, value: str) -> _Line:
    """Extend a line by a move. A pass that the rules imply leaves it unchanged. Raises ``ValueError``."""
    position = line.position
    label = f"move {len(line.actions) + 1}"
    move = f"{label}, {name}[{value[:80]}]"
    color = _colors(game).get(name)
    if color is None:
        known = " ".join(names[0].upper() for names in game.colors)
        raise ValueError(f"{move}: {name} is not a color of {game.name}, whose colors are {known}")
    if value.strip().lower() in ("", PASS) and not game.has_passes:
        if game.must_pass(position, color):
            return line
        raise ValueError(f"{move}: {game.name} has no pass; colors without a move are skipped automatically")
    if position.is_terminal:
        raise ValueError(f"{move}: the game is over")
    if color != position.current_color:
        raise ValueError(f"{move}: it is the turn of {game.colors[position.current_color][0].upper()}")
    try:
        action = game.action(value)
        return replace(line, position=position.after(action), actions=(*line.actions, action))
    except IllegalActionError as error:
        raise ValueError(f"{move}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{label}: {error}") from None


def _colors(game: BlokusGame) -> dict[str, int]:
    """The colors of a game by the names of their properties."""
    return {name.upper(): color for color, names in enumerate(game.colors) for name in names}


def _unread(game: BlokusGame, root: SgfNode, variations: bool) -> Unread:
    """Count the ignored content of a tree."""
    names = {f"P{player.upper()}" for player in game.players}
    properties: Counter[str] = Counter()
    once = {"GM", *names, *_FILE}  # read in the root, once
    leaves, waiting = 0, [root]
    while waiting:
        node = waiting.pop()
        for name, values in node.properties:
            is_utf8 = name != "CA" or "".join(values).strip().upper() in ("UTF-8", "UTF8", "US-ASCII", "ASCII")
            if node is root and name in once and is_utf8:
                once.remove(name)
            elif name not in (*_COLORS, *_SETUP, "PL", "SZ"):
                properties[name] += 1
        waiting += node.children
        leaves += not node.children
    return Unread(0 if variations else leaves - 1, dict(properties))


def _escaped(text: str) -> str:
    return re.sub(r"([\]\\])", r"\\\1", text)
