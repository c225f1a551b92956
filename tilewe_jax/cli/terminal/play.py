"""Games of people against each other and against engines in the terminal. Plain Python, without JAX.

``Play`` holds the game and the text on the screen; its only file is the file of the game, which it replaces after every move.
``run`` shows it on a terminal, or in plain lines if the terminal cannot draw.
"""

import os
import re
import shlex
import shutil
import sys
import textwrap
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tilewe_jax import records
from tilewe_jax.cli.analyze import AGENT
from tilewe_jax.cli.common import FailedError, UsageError
from tilewe_jax.cli.terminal import viewer
from tilewe_jax.cli.terminal.engine import Engine
from tilewe_jax.cli.terminal.viewer import Replay
from tilewe_jax.games.polyomino.notation import cell_name
from tilewe_jax.host import HostPosition, Offer, shared_win
from tilewe_jax.host_games import OFFERS
from tilewe_jax.interop.analysis_requests import action_of_move
from tilewe_jax.utils.files import replacing
from tilewe_jax.utils.words import counted

MAX_LISTED = 100
"""Maximum number of moves in a list."""
_MAX_TYPED = 200
_MESSAGE_LINES = 2
"""Maximum number of lines of a message below the board; a longer one replaces the board."""
HELP = (
    "MOVE           play it; the start of its name is enough if no other starts so",
    "moves [WORDS]  list the legal moves that start with, or cover, all these words",
    "NUMBER         play this move of the list",
    "show MOVE      show the board after a move, which is not played yet",
    "hint           ask an engine for a move",
    "undo           take back your last move and those after it",
    "rules          the rules of the game",
    "quit           leave; the game is saved after every move",
)
_KEYS = (
    "Tab, Shift-Tab: complete, and try one move after the other on the board",
    "left, right: look back and forward     up, down: scroll",
)


class Play:
    """A running game in the terminal.

    Args:
        replay: the game so far.
        agents: the agent of each seat, ``None`` for a person.
        is_hidden: whether the game has hidden information.
        file: the file of the game; ``None`` creates a new one with the first move.
    """

    def __init__(self, replay: Replay, agents: list[str | None], is_hidden: bool, file: Path | None = None) -> None:
        self.replay, self.agents, self.file = replay, agents, file
        self.is_hidden = is_hidden
        self.has_left = False
        """The player wants to leave."""
        self.typed = ""
        """The typed line or a proposed move. A legal move is shown on the board."""
        self.message: list[str] = []
        """The last message."""
        self._people = [seat for seat, agent in enumerate(agents) if agent is None]
        self._looker: int | None = None
        """Seat of the person at the terminal, if several people have hidden information."""
        self._back: int | None = None
        """Number of moves of the earlier position that is shown."""
        self._top: int | None = None
        self._stem: tuple[str, int] | None = None
        """The text typed before Tab, and the index of the tried move."""
        self._listed: list[int] = []
        self._legal: dict[str, int] = {}
        self._legal_after = -1
        self._asked: tuple[str, tuple[int, ...] | None, bool] | None = None
        """The open question to the engine: agent, actions, whether it is a hint."""
        self._since = 0.0
        self._states: dict[str, str] = {}
        self._wants_hint = False

    # ---- The game

    @property
    def moves(self) -> int:
        """Number of moves played."""
        return len(self.replay.record.actions)

    @property
    def position(self) -> HostPosition:
        """The current position."""
        return self.replay.position(self.moves)

    @property
    def agent_to_move(self) -> str | None:
        """The agent to move; ``None`` for a person."""
        return None if self.position.is_terminal else self.agents[self.position.current_player]

    @property
    def is_covered(self) -> bool:
        """Return whether the screen hides all trays until the person to move has pressed Enter."""
        is_shared = self.is_hidden and len(self._people) > 1 and not self.position.is_terminal
        return is_shared and self.agent_to_move is None and self._looker != self.position.current_player

    @property
    def legal(self) -> dict[str, int]:
        """The legal moves by name."""
        if self._legal_after != self.moves:
            position = self.position
            self._legal = {position.action_name(action): action for action in position.legal_actions()}
            self._legal_after = self.moves
        return self._legal

    def play(self, action: int) -> None:
        """Play a legal action, and save the game."""
        self.replay.play(action)
        self._moved()
        if self.position.is_terminal:
            self.say(self.result())

    def result(self) -> str:
        """Describe the result of a finished game."""
        scores, names = self.position.scores(), [self.replay.seat(seat) for seat in range(len(self.agents))]
        points = " to ".join(map(str, scores))
        if len(scores) == 1:
            return f"The game is over: {points} points."
        winners = [name for name, share in zip(names, shared_win(scores), strict=True) if share]
        return f"The game is over: {' and '.join(winners)} {'win' if len(winners) > 1 else 'wins'}, {points}."

    def save(self) -> None:
        """Replace the file of the game. After a failure the game continues with a message."""
        record, game, position = self.replay.record, self.replay.game, self.position
        if position.is_terminal:
            record = replace(record, scores=position.scores(), returns=tuple(game.returns(position)))
        try:
            if self.file is None:
                self.file = _new_file(game.id)
            with replacing(self.file) as file:
                file.writelines(records.lines(game, [record]))
        except OSError as error:
            self.say(f"The game is not saved: {self.file or 'this folder'}: {error.strerror}")

    def go_on(self, game: str) -> str:
        """Describe how to continue the game later."""
        if self.file is None or not self.file.exists():
            return "The game is not saved." if self.moves else "No move was played, and nothing is saved."
        if self.position.is_terminal:
            return f"The game is saved; see it again with: tilewe-jax show {shlex.quote(str(self.file))}"
        words = ["tilewe-jax", "play", *(["--game", game] if ":" in game else []), "--resume", str(self.file)]
        if any(agent and not is_safe(agent) for agent in self.agents):
            words += [word for agent in self.agents for word in ("--agent", agent or "human")]
        return f"The game is saved; go on with: {shlex.join(words)}"

    def _moved(self) -> None:
        self._back, self._stem, self._listed, self.typed, self.message = None, None, [], "", []
        self._top, self._wants_hint = None, False
        self.save()

    # ---- Lines that are typed

    def say(self, *lines: str) -> None:
        """Show a message."""
        self.message, self._top = list(lines), None

    def enter(self, line: str) -> None:
        """Execute a command or a move."""
        self.message, self._top, self._back, self._stem = [], None, None, None
        words, game = line.split(), self.replay.game.id
        known = OFFERS.get(game, Offer(game, (1, 1), rules=("The rules of this game are not described.",)))
        commands = {
            "help": lambda: self.say(*HELP, "", *_KEYS, "", known.notation),
            "rules": lambda: self.say(*known.about, known.notation),
            "moves": lambda: self._list(words[1:]),
            "show": lambda: self._propose(" ".join(words[1:])),
            "hint": self._hint,
            "undo": self._undo,
            "quit": self._leave,
            "exit": self._leave,
            "q": self._leave,
            "?": lambda: self.enter("help"),
        }
        if words and words[0] in commands and (words[0] in ("quit", "exit", "q", "help", "rules") or not self.is_covered):
            commands[words[0]]()
        elif self.is_covered:
            self._looker = self.position.current_player
        elif words and (action := self._action(" ".join(words))) is not None:
            self.play(action)

    def _leave(self) -> None:
        self.has_left = True

    def _may_move(self) -> bool:
        """Return whether a person is to move; otherwise show the reason."""
        if self.position.is_terminal:
            self.say(self.result())
        elif self.agent_to_move:
            self.say(f"It is the turn of {self.replay.player(self.moves + 1)}.")
        return not self.position.is_terminal and not self.agent_to_move

    def _action(self, text: str) -> int | None:
        """Return the legal action of a text, or ``None`` after showing the reason."""
        if not self._may_move():
            return None
        matches = self._starting_with(text)
        if text in self.legal or len(matches) == 1:
            return self.legal[text if text in self.legal else matches[0]]
        if matches:
            self._list([text])
            return None
        if text.isdecimal() and 1 <= int(text) <= len(self._listed):
            return self._listed[int(text) - 1]
        try:
            action = action_of_move(self.replay.game, self.position, text)
            reason = self.position.explain(action)
        except ValueError as error:
            reason = str(error)
        if reason is None:
            return action
        similar = get_close_matches(text, self.legal, 3)
        hint = f"did you mean {', '.join(similar)}?" if similar else "see moves, and help"
        self.say(f"{self._in_names(reason)}; {hint}")
        return None

    def _starting_with(self, text: str) -> list[str]:
        return [name for name in self.legal if name.lower().startswith(text.lower())]

    def _list(self, words: list[str]) -> None:
        """List the legal moves that match all words."""
        if not self._may_move():
            return
        found = {name: action for name, action in self.legal.items() if all(self._has(name, action, word) for word in words)}
        if len(found) > MAX_LISTED:
            kinds = Counter(name.partition("-")[0] for name in found)
            self.say(f"{len(found)} legal moves, too many for a list. They start with (moves START lists them):",
                     *_in_columns([f"{kind} ({count})" for kind, count in kinds.items()]))  # fmt: skip
            return
        self._listed = list(found.values())
        self.say(f"{counted(len(found), 'legal moves')}{' with ' * bool(words)}{' '.join(words)}:",
                 *_in_columns([f"{number} {name}" for number, name in enumerate(found, 1)]))  # fmt: skip

    def _has(self, name: str, action: int, word: str) -> bool:
        cells = self.position.action_view(action).get("cells")
        if cells is None:
            return word.lower() in name.lower()
        return name.lower().startswith(word.lower()) or word in {cell_name((x, y)) for x, y in cells}

    def _propose(self, text: str) -> None:
        """Show a move without playing it."""
        action = self._action(text)
        if action is not None:
            self.typed = self.position.action_name(action)
            self.say(f"This is {self.typed}; it is not played yet.")

    def _hint(self) -> None:
        if self._may_move():
            self._wants_hint = True

    def _undo(self) -> None:
        seats = [self.replay.position(move).current_player for move in range(self.moves)]
        own = [move for move, seat in enumerate(seats) if seat in self._people]
        if self.is_hidden:
            self.say("Undo would forget drawn tiles, and is not possible in this game.")
        elif not own:
            self.say("You have not moved yet.")
        else:
            self.replay.take_back(own[-1])
            self._legal_after = -1
            self._moved()

    def _in_names(self, reason: str) -> str:
        """Replace the numbers in messages of Santorini by the names of cells and workers."""
        if self.replay.game.id != "santorini":
            return reason
        size = self.position.view()["size"]
        reason = re.sub(r"\((-?\d+), (\d+)\)", lambda cell: f"{chr(ord('a') + int(cell[2]))}{size - int(cell[1])}", reason)
        workers = {"1": "O", "2": "U", "-1": "X", "-2": "Y"}
        reason = re.sub(r"worker (-?[12])\b", lambda worker: f"worker {workers[worker[1]]}", reason)
        return reason.replace("player -1", "player 2").partition("; rows and columns")[0]

    # ---- Keys

    def press(self, key: str) -> None:
        """Handle a key of a terminal that draws."""
        if key == "enter":
            line, self.typed = self.typed, ""
            self.enter(line)
        elif key in ("tab", "back tab"):
            self._complete(1 if key == "tab" else -1)
        elif key in ("up", "down", "page up", "page down"):
            self._top = max(0, (self._top or 0) + {"up": -1, "down": 1, "page up": -10, "page down": 10}[key])
        elif key in ("left", "right", "home", "end"):
            shown = self.moves if self._back is None else self._back
            shown = {"left": max(0, shown - 1), "right": shown + 1, "home": 0, "end": self.moves}[key]
            self._back = shown if shown < self.moves else None
        elif key == "end of input":
            self.has_left = True
        elif key in ("backspace", "escape") or (len(key) == 1 and key.isprintable()):
            kept = {"backspace": self.typed[:-1], "escape": ""}
            self.typed, self._stem, self._back = kept.get(key, (self.typed + key)[:_MAX_TYPED]), None, None

    def _complete(self, step: int) -> None:
        """Complete the line to the common start of the matching moves, then try them in turn."""
        if self.is_covered or not self._may_move():
            return
        stem, number = self._stem or (self.typed, -1 if step > 0 else 0)
        found = self._starting_with(stem)
        common = os.path.commonprefix(found)  # noqa: RUF071 - of names, not of paths
        if not found or (self._stem is None and len(common) > len(stem)):
            self.typed = common or self.typed
            self.say(f"{len(found)} legal moves start with {self.typed}" if len(found) != 1 else "Enter plays this move.")
            return
        number = (number + step) % len(found)
        self._stem, self.typed, self._back = (stem, number), found[number], None
        self.say(
            f"{number + 1} of {len(found)} moves{' that start with ' * bool(stem)}{stem}: Tab tries the next, Enter plays."
        )

    # ---- The engine

    @property
    def is_waiting(self) -> bool:
        """Return whether the game waits for the engine."""
        return self.agent_to_move is not None or self._wants_hint

    def think(self, engine: Engine) -> None:
        """Ask the engine for a move, for a hint, or to compile, one question at a time."""
        actions = self.replay.record.actions
        new = next((agent for agent in self.agents if agent and agent not in self._states), None)
        if self._asked or self.has_left:
            return
        if agent := self.agent_to_move:
            self._asked = agent, actions, False
        elif self._wants_hint:
            self._asked = AGENT, actions, True
        elif new and not self.position.is_terminal:
            self._asked = new, None, False
        else:
            return
        self._since = time.monotonic()
        self._states.setdefault(self._asked[0], "starting")
        engine.ask(self._asked[0], self._asked[1])

    def answered(self, row: dict[str, Any]) -> None:
        """Handle an answer of the engine, or drop it if its position was taken back.

        Raises ``UsageError`` for an agent that cannot play this game, ``FailedError`` for one that fails later.
        """
        agent, state = row["agent"], row["state"]
        if state == "failed" and not (self._asked and self._asked[2]):
            raise (FailedError if self._states.get(agent) == "ready" else UsageError)(row["error"])
        self._states[agent] = state
        if state == "compiling" or self._asked is None:
            return
        (_, actions, is_hint), self._asked = self._asked, None
        if actions != self.replay.record.actions:
            return
        if is_hint and self._wants_hint:
            self._wants_hint = False
            if state == "failed":
                self.say(row["error"])
            else:
                self._propose(self.position.action_name(row["action"]))
        elif not is_hint:
            self.play(row["action"])

    def engine_line(self) -> str:
        """Describe the activity of the engine."""
        agent = self._asked[0] if self._asked else self.agent_to_move
        state = self._states.get(agent or "", "starting")
        words = {"ready": "thinks", "starting": "starts", "compiling": "is being compiled, the first time for up to minutes"}
        return f"{agent} {words[state]}"

    # ---- The screen

    def text(self, color: bool) -> str:
        """Print the shown position with the typed move, and with the hidden information that the person may see."""
        seat = self._people[0] if len(self._people) == 1 else self._looker if not self.is_covered else None
        if self.agent_to_move and len(self._people) > 1:
            seat = None
        shown = self.moves if self._back is None else self._back
        now = self.replay.text(shown, color, seat, open=not self.is_hidden)
        if self._back is not None or self.agent_to_move or self.is_covered or self.typed not in self.legal:
            return now
        action = self.legal[self.typed]
        after = self.position.after(action).text(color, last_action=action, open=not self.is_hidden)
        # The text below the board stays: the text after the move would reveal the tile that is drawn.
        return "\n".join(
            [*viewer.board_and_text(after.split("\n"))[0], *viewer.board_and_text(now.split("\n"))[1]]
        )  # fmt: skip

    def prompt(self) -> str:
        """Return the text in front of the typed line."""
        if self.position.is_terminal:
            return "quit to leave> "
        if self.is_covered:
            return f"{self.replay.player(self.moves + 1)}: press Enter when only you can see this> "
        return f"{self.replay.player(self.moves + 1)}> "

    def screen(self, width: int, height: int, color: bool) -> list[str]:
        """Lay out the lines of a terminal."""
        shown = self.moves if self._back is None else self._back
        foot = [f"{self.prompt()}{self.typed}_"]
        if self.is_waiting:
            foot.insert(0, f"{self.engine_line()}: {time.monotonic() - self._since:.0f} s")
        message = [part for line in self.message for part in textwrap.wrap(line, width) or [""]]
        if len(message) > _MESSAGE_LINES and self.typed not in self.legal:
            foot = ["up, down: scroll.  Enter: back to the board", foot[-1]]
            return viewer.frame([], message, foot, self._top or 0, width, height)
        title = f"{self.replay.game.id}, move {shown} of {self.moves}" + (" (right: forward)" if shown < self.moves else "")
        head = viewer.head_of(self.replay, shown, title, width)
        idle = "help, moves, hint, undo, rules, quit.  Tab: try the moves" if not self.is_waiting else ""
        foot = [*(message[:_MESSAGE_LINES] or [idle]), *foot]
        return viewer.frame(head, self.text(color).split("\n"), foot, self._top, width, height)


def is_safe(agent: str) -> bool:
    """Return whether an agent is safe to read from a file: a level or `best`, which name neither a file nor a program."""
    return agent == "best" or re.fullmatch(r"level:\d+", agent) is not None


def run(play: Play, engine: Engine, plain: bool, color: bool) -> None:
    """Play until the player leaves or, on plain lines, the game or the input ends.

    Raises ``KeyboardInterrupt`` after Ctrl-C, ``OSError`` if the terminal is gone, and the errors of ``Play.answered``.
    """
    if plain or not viewer.can_run() or sys.platform == "win32":
        _run_on_lines(play, engine, color)
        return
    from tilewe_jax.cli.terminal.screen import Terminal

    with Terminal(sys.stdin, sys.stdout) as terminal:
        while not play.has_left:
            play.think(engine)
            size = shutil.get_terminal_size()
            terminal.draw(play.screen(size.columns, size.lines, color))
            keys = viewer.keys_of(terminal.read(engine.output, 1.0 if play.is_waiting else None), typing=True)
            for key in keys:
                play.press(key)
            if not keys and engine.has_answer():
                play.answered(engine.receive())


def _run_on_lines(play: Play, engine: Engine, color: bool) -> None:
    """Play with plain lines."""
    announced, shown, said = play.moves, -1, ""
    while not play.has_left:
        play.think(engine)
        if play.is_waiting:
            if said != (said := play.engine_line()):
                print(said, flush=True)
            play.answered(engine.receive())
        for move in range(announced + 1, play.moves + 1):
            print(play.replay.move_line(move))
        announced = play.moves
        if not play.is_waiting:
            if play.is_covered and shown != play.moves and sys.stdout.isatty():
                print("\n" * 100)  # hide the screen of the previous player
            if (shown != play.moves and not play.is_covered) or play.typed:
                print(play.text(color))
                shown, play.typed = play.moves, ""
            if play.message:
                print("\n".join(play.message))
            play.message = []
            if play.position.is_terminal:
                return
            print(play.prompt(), end="", flush=True)
            line = sys.stdin.buffer.readline(1 << 12)
            if not line:
                print()
                return
            play.enter("".join(letter if letter.isprintable() else " " for letter in line.decode(errors="replace")))


def _new_file(game: str) -> Path:
    """Create a new file in this folder, named after the game."""
    number = 1
    while True:
        with suppress(FileExistsError):
            path = Path(f"{game.replace('/', '-')}-{number}.jsonl")
            path.open("x").close()
            return path
        number += 1


def _in_columns(entries: list[str], width: int = 78) -> list[str]:
    """Arrange entries in lines."""
    room = max(map(len, entries), default=1) + 2
    per_line = max(1, width // room)
    rows = [entries[start : start + per_line] for start in range(0, len(entries), per_line)]
    return ["".join(entry.ljust(room) for entry in row).rstrip() for row in rows]
