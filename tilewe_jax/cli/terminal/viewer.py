"""Recorded games on a terminal, and the layout of the screen of ``play``. Plain Python, without JAX.

``View``, ``pressed`` and ``screen`` are pure: the shown position, the effect of a key, and the lines. ``run`` shows them on a
terminal.
"""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.records import Record, RecordError
from tilewe_jax.replay.recorded import RecordedGame

KEYS = "right/left: move  home/end  number+enter: go to move  N/P: game  q: quit"
"""Last line of the screen."""

_SEQUENCES = {
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1b[7~": "home",
    "\x1b[8~": "end",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[Z": "back tab",
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x1b": "escape",
    "\x04": "end of input",
}
"""Control sequences of keys. Some terminals send ``O`` for ``[``, see ``keys_of``."""
_LETTERS = {
    " ": "right",
    "n": "right",
    "l": "right",
    "p": "left",
    "h": "left",
    "N": "next game",
    "P": "previous game",
    "j": "down",
    "k": "up",
    "g": "home",
    "G": "end",
    "escape": "q",
    "end of input": "q",
}
"""Aliases of keys while no line is typed."""
_TOKEN = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|[\s\S]")
_ANSI = re.compile(r"(\x1b\[[0-9;]*m)")
_NARROWEST = 24
"""Minimum width of the text beside a board, in columns."""


@dataclass
class Replay:
    """A recorded game with cached positions."""

    game: HostGame
    record: Record
    number: int
    """Number of the game in its file, for messages."""
    positions: list[HostPosition] = field(default_factory=list)

    def position(self, move: int) -> HostPosition:
        """Return the position after ``move`` moves. Raises ``RecordError`` for an illegal move."""
        if not self.positions:
            self.positions.append(self.game.init_from_deal(self.record.deal))
        for ply in range(len(self.positions), move + 1):
            action = self.record.actions[ply - 1]
            try:
                self.positions.append(self.positions[-1].after(action))
            except ValueError as error:
                raise RecordError(f"game {self.number}, move {ply}: {error}") from None
        return self.positions[move]

    @property
    def names(self) -> list[str]:
        """Names of the players by seat, if the record has them, without control characters."""
        return ["".join(letter if letter.isprintable() else "?" for letter in name) for name in self.record.players]

    def last_action(self, move: int) -> int | None:
        """Return the last one of ``move`` actions."""
        return self.record.actions[move - 1] if move else None

    def player(self, move: int) -> str:
        """Describe the player of a move, from 1, see ``seat``."""
        return self.seat(self.position(move - 1).current_player)

    def seat(self, seat: int) -> str:
        """Describe a player: the number of the seat, from 1, and the name if the record has it."""
        return f"player {seat + 1}" + (f" ({self.names[seat]})" if self.names else "")

    def move_line(self, move: int) -> str:
        """Describe a move, from 1, with its player."""
        self.position(move)  # raises an error before an illegal action is named
        name = self.position(move - 1).action_name(self.record.actions[move - 1])
        return f"{move:3d}. {self.player(move)}: {name}"

    def text(self, move: int, color: bool, seat: int | None = None, open: bool = True) -> str:
        """Print the position after ``move`` moves, see ``HostPosition.text``, with the last move marked."""
        return self.position(move).text(color, last_action=self.last_action(move), seat=seat, open=open)

    def play(self, action: int) -> None:
        """Add a move to the game. Raises ``IllegalActionError``."""
        moves = len(self.record.actions)
        self.positions[moves + 1 :] = [self.position(moves).after(action)]
        self.record = replace(self.record, actions=(*self.record.actions, action))

    def take_back(self, moves: int) -> None:
        """Keep only the first ``moves`` moves of the game."""
        self.record = replace(self.record, actions=self.record.actions[:moves])
        del self.positions[moves + 1 :]


@dataclass(frozen=True)
class View:
    """The shown position."""

    game: int = 0
    """Index of the game."""
    move: int = 0
    """Number of moves that were played."""
    top: int = 0
    """Number of lines that are scrolled off the top."""
    typed: str = ""
    """Typed digits of the number of a move."""


def pressed(view: View, key: str, lengths: Sequence[int]) -> View | None:
    """Return the view after a key; ``None`` if the key ends the program.

    Args:
      view: the view before.
      key: a character, or a name of ``keys_of``.
      lengths: number of moves of each game.
    """
    length = lengths[view.game]
    if key in "0123456789":
        return replace(view, typed=(view.typed + key)[-6:])
    if key == "q":
        return replace(view, typed="") if view.typed else None
    moves = {
        "right": view.move + 1,
        "left": view.move - 1,
        "page down": view.move + 10,
        "page up": view.move - 10,
        "home": 0,
        "end": length,
        "enter": int(view.typed) if view.typed else view.move + 1,
    }
    if key in moves:
        return replace(view, move=max(0, min(moves[key], length)), typed="")
    if key in ("next game", "previous game"):
        game = max(0, min(view.game + (1 if key == "next game" else -1), len(lengths) - 1))
        return view if game == view.game else View(game)
    if key in ("up", "down"):
        return replace(view, top=max(0, view.top + (1 if key == "down" else -1)))
    return replace(view, typed=view.typed[:-1]) if key == "backspace" else view


def keys_of(text: str, *, typing: bool = False) -> list[str]:
    """Split the input of a terminal into keys: names like ``right``, and characters.

    Args:
      text: the input.
      typing: whether a line is typed, without aliases of keys.
    """
    keys = [_SEQUENCES.get(token.replace("\x1bO", "\x1b["), token if len(token) == 1 else "") for token in _TOKEN.findall(text)]
    return keys if typing else [_LETTERS.get(key, key) for key in keys]


def screen(view: View, replay: Replay, games: int, width: int, height: int, color: bool = True) -> list[str]:
    """Lay out the game, its players with their points, the last move, the position and the keys in lines of this size."""
    moves = len(replay.record.actions)
    title = f"{replay.game.id}, game {view.game + 1} of {games}, move {view.move} of {moves}"
    head = head_of(replay, view.move, title, width)
    is_at_end = replay.record.is_finished and view.move == moves
    head[-1] += f"; scores {list(replay.record.scores)}" if is_at_end else ""
    foot = f"go to move {view.typed}_" if view.typed else KEYS
    return frame(head, replay.text(view.move, color).split("\n"), [foot], view.top, width, height)


def head_of(replay: Replay, move: int, title: str, width: int) -> list[str]:
    """Return three lines: a title, the players with their points, and the last one of ``move`` moves."""
    position, seats = replay.position(move), range(replay.game.num_players)
    to_move = None if position.is_terminal else position.current_player
    room = max(6, width // len(seats) - 10)  # for a name; the line of the last move has it in full
    names = [f" {name}" if len(name) <= room else f" {name[: room - 1]}…" for name in replay.names] or [""] * len(seats)
    points = "   ".join(
        f"{'>' if seat == to_move else ' '}{seat + 1}{names[seat]}: {score}"
        for seat, score in zip(seats, position.scores(), strict=True)
    )
    return [title, f"points {points}", replay.move_line(move).strip() if move else "the start"]


def frame(head: Sequence[str], body: Sequence[str], foot: Sequence[str], top: int | None, width: int, height: int) -> list[str]:
    """Lay out a head, a body and a foot in the lines of a terminal.

    If they do not fit, the head and the text of the body stand beside the board. Otherwise part of the body is shown, from
    line ``top`` on; ``None`` shows the last move, which has a star.
    """
    rows = max(1, height - len(foot))
    shown = [*head, *body]
    if len(shown) > rows:
        shown = _beside(head, body, rows, width) or _scrolled(head, body, rows, top)
    lines = [*shown, *[""] * (rows - len(shown)), *foot]
    return [clipped(line, width) for line in lines[-height:] if height > 0]


def board_and_text(body: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Split the lines of a position into the board and the text, which starts with the first line with a colon."""
    end = next((number for number, line in enumerate(body) if ":" in line), len(body))
    return body[:end], body[end:]


def _beside(head: Sequence[str], body: Sequence[str], rows: int, width: int) -> list[str]:
    """Lay out the board with the head and the text to its right; empty if they do not fit."""
    board, text = board_and_text(body)
    widths = [len(_ANSI.sub("", line)) for line in board]
    left = max(widths, default=0) + 2
    if len(board) > rows or width - left < _NARROWEST:
        return []
    right = [part for line in [*head, *text] for part in textwrap.wrap(line, width - left, subsequent_indent="  ")]
    if len(right) > rows:
        return []
    count = max(len(board), len(right))
    padded = [line + " " * (left - length) for line, length in zip(board, widths, strict=True)]
    padded += [" " * left] * (count - len(board))
    return [before + after for before, after in zip(padded, [*right, *[""] * (count - len(right))], strict=True)]


def _scrolled(head: Sequence[str], body: Sequence[str], rows: int, top: int | None) -> list[str]:
    """Lay out a part of the body below the head; a short text of the body stays with the head."""
    board, text = board_and_text(body)
    if len(head) + len(text) <= rows // 2:
        head, body = [*head, *text], board
    room = max(1, rows - len(head))
    if top is None:
        top = max(0, next((number for number, line in enumerate(body) if "*" in line), 0) - room // 2)
    top = min(top, max(0, len(body) - room))
    shown = body[top : top + room]
    part = f" (lines {top + 1} to {top + len(shown)} of {len(body)}: arrow up and down)"
    return [*(line + part * (number == 0) for number, line in enumerate(head)), *shown]


def clipped(line: str, width: int) -> str:
    """Cut a line with ANSI colours to a width."""
    parts: list[str] = []
    for part in _ANSI.split(line):
        if _ANSI.fullmatch(part):
            parts.append(part)
        else:
            parts.append(part[:width])
            width -= len(parts[-1])
    return "".join(parts)


def can_run() -> bool:
    """Return whether standard input and output are a terminal that ``run`` supports."""
    if sys.platform == "win32":
        return False
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def run(games: Sequence[RecordedGame], view: View, color: bool = True) -> None:
    """Show games on the terminal until the user quits, and always restore the terminal.

    Raises ``RecordError`` for an illegal move, ``KeyboardInterrupt`` after Ctrl-C.
    """
    if sys.platform == "win32":
        raise RuntimeError("games are shown on the terminals of Linux and macOS only")
    from tilewe_jax.cli.terminal import screen as terminal

    lengths = [len(recorded.record.actions) for recorded in games]
    replay = Replay(games[view.game].game, games[view.game].record, view.game + 1)
    with terminal.Terminal(sys.stdin, sys.stdout) as own_terminal:
        while True:
            size = shutil.get_terminal_size()
            own_terminal.draw(screen(view, replay, len(games), size.columns, size.lines, color))
            for key in keys_of(own_terminal.read()):
                after = pressed(view, key, lengths)
                if after is None:
                    return
                if after.game != view.game:
                    replay = Replay(games[after.game].game, games[after.game].record, after.game + 1)
                view = after


def printed(replay: Replay, brief: bool, color: bool) -> Iterator[str]:
    """Yield each move and the position after it; if ``brief``, only the last position."""
    moves = len(replay.record.actions)
    for move in range(1, moves + 1):
        yield replay.move_line(move)
        if not brief:
            yield replay.text(move, color) + "\n"
    if brief:
        yield replay.text(moves, color)
