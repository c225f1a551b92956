"""The engine side of the Go Text Protocol (GTP), version 2, with the commands of Pentobi's engine.

A controller sends one command per line, ``[id] name argument ...``, and receives ``=[id] text`` or ``?[id] reason``, followed
by an empty line: https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html. ``formats.names`` defines moves and
colours. The player is an argument, a ``GtpAgent``; this module does not need JAX.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, runtime_checkable

from tilewe_jax.formats import blksgf
from tilewe_jax.formats.blokus import PASS, BlokusGame
from tilewe_jax.formats.names import GtpGame, color_of, gtp_game_of_name
from tilewe_jax.host import POSITION, HostPosition
from tilewe_jax.records import RecordError
from tilewe_jax.replay.recorded import of_sgf
from tilewe_jax.utils.files import parse_json, replacing

LINE_LIMIT = 1 << 16
"""Maximum size of a command, in bytes."""
PROTOCOL_VERSION = "2"
PARAM_BASE = {"accept_illegal": "0", "resign": "0"}
"""Pentobi's parameters of all engines: whether illegal moves can be played, and whether ``genmove`` may resign."""


class GtpError(Exception):
    """A failed command; the message is the answer."""


@dataclass(frozen=True)
class Command:
    """A parsed command."""

    id: str
    """The number before the name, as digits; empty without one."""
    name: str
    """The name; empty if the line consists of an id."""
    arguments: tuple[str, ...] = ()


def parse_command(line: str) -> Command | None:
    """Parse a line; ``None`` for empty lines and comments, which get no answer.

    Control characters and everything after ``#`` are ignored.

    >>> parse_command("12 play b e10,f10 # a comment")
    Command(id='12', name='play', arguments=('b', 'e10,f10'))
    """
    kept = "".join(" " if letter == "\t" else letter for letter in line if letter >= " " or letter == "\t")
    words = kept.replace("\x7f", "").partition("#")[0].split()
    if not words:
        return None
    command_id = words.pop(0) if words[0].isascii() and words[0].isdigit() else ""
    return Command(command_id, words[0] if words else "", tuple(words[1:]))


def format_response(command_id: str, text: str, success: bool = True) -> str:
    r"""Format the answer to a command, including the final empty line; empty lines within the text become spaces.

    >>> format_response("12", "cannot undo", success=False)
    '?12 cannot undo\n\n'
    """
    lines = text.rstrip().split("\n")
    body = "\n".join([lines[0], *(line or " " for line in lines[1:])])
    # The space remains before an empty text, because twogtp requires it.
    return f"{'=' if success else '?'}{command_id} {body}\n\n"


def seconds_per_move(main_time: float, overtime: float, overtime_moves: int, moves: int) -> float | None:
    """Return the seconds per move for GTP's ``time_settings``; ``None`` for unlimited time.

    Args:
        main_time: seconds for the whole game.
        overtime: seconds for each further period.
        overtime_moves: number of moves in a period; in GTP, 0 with a positive ``overtime`` means unlimited time.
        moves: number of moves that share ``main_time``.
    """
    if overtime > 0 and overtime_moves == 0:
        return None
    return main_time / moves + (overtime / overtime_moves if overtime_moves else 0.0)


class GtpAgent(Protocol):
    """A player behind an engine."""

    name: str

    def choose(self, actions: Sequence[int]) -> int:
        """Return the action after the actions from the start. Raises ``GtpError`` on failure."""
        ...

    def new_game(self, deal: Any = None) -> None:
        """Forget earlier games. The next game starts from ``deal``: ``None``, or a position, see ``Game.init_from_deal``."""
        ...

    def set_time(self, seconds: float | None) -> None:
        """Set or, with ``None``, remove the limit of seconds per move. Raises ``GtpError`` if limits are unsupported."""
        ...

    def set_seed(self, seed: int) -> None:
        """Restart the random number generator."""
        ...


@dataclass(frozen=True)
class SearchedMove:
    """An action that a search visited at the root."""

    action: int
    visits: int
    value: float
    """Mean value for the player to move, between 0 and 1."""


@dataclass(frozen=True)
class LastSearch:
    """Result of the last search of an agent."""

    value: float
    """Mean value of the position for the player to move, between 0 and 1."""
    moves: tuple[SearchedMove, ...]
    """Visited moves in descending order of visits."""


@runtime_checkable
class SearchingAgent(GtpAgent, Protocol):
    """A player that reports its settings and its last search."""

    @property
    def parameters(self) -> Mapping[str, str]:
        """Settings by name, as text."""

    def last_search(self) -> LastSearch | None:
        """Return the result of the last ``choose`` of this game, or ``None``."""
        ...


@runtime_checkable
class PonderingAgent(GtpAgent, Protocol):
    """A player that thinks during the turns of its opponents."""

    def ponder(self, actions: Sequence[int] | None) -> None:
        """Search the position after the actions in the background until the next call of a method; ``None`` stops it."""
        ...


class GtpSession:
    """An engine: the current game, and the answers to commands.

    Unlike Pentobi, it enforces turns: only the colour to move can play, and colours without a move are skipped. A
    ``PonderingAgent`` ponders while a colour is to move for which no move was generated in this game.

    Args:
        game: the initial game.
        agents: creates the agent of a game; raises ``GtpError`` if it cannot play the game.
        version: the answer to ``version``.
        name: the answer to ``name``.
        log: receives messages for the user; writes to standard error by default.
    """

    def __init__(
        self,
        game: GtpGame,
        agents: Callable[[GtpGame], GtpAgent],
        version: str = "",
        name: str = "tilewe-jax",
        log: Callable[[str], None] | None = None,
    ) -> None:
        self.game = game
        self.is_over = False
        """True after ``quit``."""
        self._agents, self._log = agents, log or _log
        self._agent = agents(game)
        self._seconds: float | None = None
        self._actions: list[int] = []
        self._deal: Any = None
        """The start of the game: ``None``, or a position."""
        self._positions: list[HostPosition] = [game.start()]
        self._own_colors: set[int] = set()
        """Colours for which ``genmove`` was called."""
        self._searched = self._position
        """Position of the last generated move."""
        self._commands: dict[str, tuple[Callable[..., str], int, int]] = {
            "name": (lambda: name, 0, 0),
            "version": (lambda: version, 0, 0),
            "protocol_version": (lambda: PROTOCOL_VERSION, 0, 0),
            "list_commands": (lambda: "\n".join(sorted(self._commands)), 0, 0),
            "known_command": (lambda name: "true" if name in self._commands else "false", 1, 1),
            "quit": (self._quit, 0, 0),
            "boardsize": (self._boardsize, 1, 1),
            "clear_board": (self._clear_board, 0, 0),
            "set_game": (self._set_game, 1, 8),
            "play": (self._play, 2, 16),
            "p": (lambda *words: self._play_move("".join(words)), 1, 16),
            "genmove": (self._genmove, 1, 1),
            "g": (lambda: self._genmove(self._color()), 0, 0),
            "reg_genmove": (self._chosen, 1, 1),
            "undo": (self._undo, 0, 0),
            "all_legal": (self._all_legal, 1, 1),
            "set_position": (lambda *words: self._start_from({POSITION: _facts(" ".join(words))}), 1, 2000),
            "get_position": (self._get_position, 0, 0),
            "showboard": (lambda: "\n" + self._position.text(), 0, 0),
            "final_score": (self._final_score, 0, 0),
            "time_settings": (self._time_settings, 3, 3),
            "set_random_seed": (self._set_random_seed, 1, 1),
            "get_place": (self._get_place, 1, 1),
            "get_value": (lambda: f"{self._last_search().value:.6f}", 0, 0),
            "move_values": (self._move_values, 0, 0),
            "move_info": (self._move_info, 1, 1),
            "param": (lambda *words: self._param(self._searching_agent().parameters, *words), 0, 2),
            "param_base": (lambda *words: self._param(PARAM_BASE, *words), 0, 2),
            "cputime": (lambda: f"{time.process_time():.3f}", 0, 0),
            "loadsgf": (self._loadsgf, 1, 2),
            "savesgf": (self._savesgf, 1, 1),
        }
        """Function, minimum and maximum number of arguments of each command."""

    @property
    def actions(self) -> tuple[int, ...]:
        """Actions of the current game."""
        return tuple(self._actions)

    def answer(self, line: str) -> str:
        """Return the answer to a line; empty for empty lines and comments. Never raises an exception."""
        command = parse_command(line)
        if command is None:
            return ""
        try:
            return format_response(command.id, self._run(command))
        except (GtpError, ValueError) as error:
            message = str(error)
        except OSError as error:
            message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        except Exception as error:  # one command must not end the engine
            message = f"{type(error).__name__}: {error}"
        return format_response(command.id, " ".join(message.split()) or "failed", success=False)

    def _run(self, command: Command) -> str:
        if command.name not in self._commands:
            raise GtpError(f"unknown command {command.name[:80]}".rstrip())
        function, minimum, maximum = self._commands[command.name]
        if not minimum <= len(command.arguments) <= maximum:
            wanted = str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
            raise GtpError(f"{command.name} takes {wanted} argument{'s' * (wanted != '1')}, got {len(command.arguments)}")
        return function(*command.arguments)

    @property
    def _position(self) -> HostPosition:
        return self._positions[-1]

    def _color(self) -> str:
        """Return the colour to move."""
        return self.game.colors[self.game.current_color(self._position)][0]

    def _quit(self) -> str:
        self.is_over = True
        self.close()
        return ""

    def close(self) -> None:
        """Stop pondering."""
        if isinstance(self._agent, PonderingAgent):
            self._agent.ponder(None)

    def _ponder(self) -> None:
        """Start pondering if an opponent of the agent is to move, otherwise stop it."""
        if isinstance(self._agent, PonderingAgent):
            is_opponent = not self._position.is_terminal and self.game.current_color(self._position) not in self._own_colors
            self._agent.ponder(self.actions if is_opponent and self._own_colors else None)

    def _boardsize(self, size: str) -> str:
        if _integer(size, "the board size") != self.game.config.size:
            raise GtpError("unacceptable size")
        return self._clear_board()

    def _clear_board(self) -> str:
        return self._start_from(None)

    def _start_from(self, deal: Any) -> str:
        """Start a game from a position, or from the usual start for ``None``."""
        start = self.game.start() if deal is None else self.game.host.init_from_deal(deal)
        self._agent.new_game(deal)
        self._deal, self._actions, self._positions = deal, [], [start]
        self._own_colors.clear()
        return ""

    def _get_position(self) -> str:
        """Return the facts of the position, as for ``set_position``."""
        positions = self.game.host.positions
        assert positions
        return json.dumps(positions.write(self._position), separators=(",", ":"))

    def _set_game(self, *words: str) -> str:
        self._change_game(gtp_game_of_name(" ".join(words)))
        return self._clear_board()

    def _change_game(self, game: GtpGame) -> None:
        if game.config != self.game.config:
            agent = self._agents(game)
            if self._seconds is not None:
                agent.set_time(self._seconds)
            self.close()
            self._agent, self.game = agent, game

    def _play(self, color: str, *words: str) -> str:
        if not self._has_turn(color) and not self._position.is_terminal:
            raise GtpError(f"it is the turn of {self._color()}")
        return self._play_move("".join(words))

    def _play_move(self, move: str) -> str:
        action = self.game.action(move, self._position)
        self._positions.append(self._position.after(action))
        self._actions.append(action)
        self._ponder()
        return ""

    def _genmove(self, color: str) -> str:
        move = self._chosen(color)
        if move != PASS or self._has_turn(color):
            self._own_colors.add(color_of(self.game, color))
            self._play_move(move)
        return move

    def _has_turn(self, color: str) -> bool:
        return not self._position.is_terminal and color_of(self.game, color) == self.game.current_color(self._position)

    def _chosen(self, color: str) -> str:
        """Return the move of the agent for a colour; a pass if the colour cannot move."""
        if not self._has_turn(color):
            if self.game.must_pass(self._position, color_of(self.game, color)):
                return PASS
            if self._position.is_terminal:
                raise GtpError("the game is over")
            raise GtpError(f"it is the turn of {self._color()}")
        self._searched = self._position
        action = self._agent.choose(tuple(self._actions))
        if rule := self._position.explain(action):
            raise GtpError(f"{self._agent.name} chose an illegal action, {action}: {rule}")
        return self.game.move_text(action, self._position)

    def _undo(self) -> str:
        if not self._actions:
            raise GtpError("cannot undo")
        self._actions.pop()
        self._positions.pop()
        self._ponder()
        return ""

    def _all_legal(self, color: str) -> str:
        legal = self.game.legal_actions(self._position, color_of(self.game, color))
        return "\n".join(self.game.move_text(action, self._position) for action in legal)

    def _final_score(self) -> str:
        scores = self._position.scores()
        if len(scores) != 2:
            return " ".join(map(str, scores))
        margin = scores[0] - scores[1]
        return f"{'B' if margin > 0 else 'W'}+{abs(margin)}" if margin else "0"

    def _get_place(self, color: str) -> str:
        """Return the rank of the player of a colour by points, followed by "shared" for ties."""
        scores = self._position.scores()
        score = scores[color_of(self.game, color) % len(scores)]
        place = 1 + sum(each > score for each in scores)
        return f"{place} shared" if scores.count(score) > 1 else str(place)

    def _searching_agent(self) -> SearchingAgent:
        if not isinstance(self._agent, SearchingAgent):
            raise GtpError(f"{self._agent.name} does not search")
        return self._agent

    def _last_search(self) -> LastSearch:
        search = self._searching_agent().last_search()
        if search is None:
            raise GtpError("no search in this game yet; run genmove or reg_genmove first")
        return search

    def _move_values(self) -> str:
        return "\n".join(
            f"{move.visits} {move.visits:.1f} {move.value:.3f} {self.game.move_text(move.action, self._searched)}"
            for move in self._last_search().moves
        )

    def _move_info(self, move: str) -> str:
        if not isinstance(self.game, BlokusGame):
            raise GtpError(f"move_info does not support {self.game.name}")
        return "\n" + self.game.move_info(move)

    def _param(self, parameters: Mapping[str, str], *words: str) -> str:
        """List the parameters. Parameters are fixed when the engine starts: only the current value can be set."""
        if not words:
            return "\n".join(f"{name} {value}" for name, value in parameters.items())
        if len(words) == 1:
            raise GtpError("give a parameter and its value, or no argument to list all parameters")
        name, value = words
        if name not in parameters:
            raise GtpError(f"unknown parameter {name[:80]!r}; the parameters are {', '.join(parameters)}")
        if not _is_same(value, parameters[name]):
            raise GtpError(f"{name} is fixed to {parameters[name]} while this engine runs, got {value[:80]}")
        return ""

    def _time_settings(self, main_time: str, overtime: str, overtime_moves: str) -> str:
        per_period = _integer(overtime_moves, "the number of moves")
        moves = -(-self.game.host.max_steps // self.game.host.num_players)
        seconds = seconds_per_move(_seconds(main_time), _seconds(overtime), per_period, moves)
        self._agent.set_time(seconds)
        self._seconds = seconds
        return ""

    def _set_random_seed(self, seed: str) -> str:
        self._agent.set_seed(_integer(seed, "the seed"))
        return ""

    def _loadsgf(self, path: str, move_number: str = "") -> str:
        try:
            games = blksgf.read(path)
        except RecordError as error:
            raise GtpError(str(error)) from None
        loaded = games[0]
        number = _integer(move_number, "the move number") if move_number else len(loaded.actions) + 1
        if not 1 <= number <= len(loaded.actions) + 1:
            raise GtpError(f"the move number must be 1 to {len(loaded.actions) + 1}, got {number}")
        if len(games) > 1:
            self._log(f"{path}: read the first of {len(games)} games")
        for note in of_sgf(games[:1]).notes:
            self._log(f"{path}: {note}")
        actions = loaded.actions[: number - 1]
        self._change_game(loaded.game)
        self._start_from(loaded.deal)
        for action in actions:
            self._positions.append(self._position.after(action))
            self._actions.append(action)
        return ""

    def _savesgf(self, path: str) -> str:
        if not isinstance(self.game, BlokusGame):
            raise GtpError(f"savesgf does not support {self.game.name}")
        text = blksgf.render(self.game, self._actions, deal=self._deal)
        with replacing(path) as file:
            file.write(text)
        return ""


def serve(session: GtpSession, commands: BinaryIO, answers: BinaryIO) -> None:
    """Answer commands until ``quit`` or the end of input, then close the session. Lines over ``LINE_LIMIT`` are errors."""
    try:
        while not session.is_over and (line := commands.readline(LINE_LIMIT + 1)):
            if len(line) > LINE_LIMIT:
                while line and not line.endswith(b"\n"):
                    line = commands.readline(LINE_LIMIT)
                answer = format_response("", f"a command must have at most {LINE_LIMIT:,} bytes", success=False)
            else:
                answer = session.answer(line.decode("utf-8", "replace"))
            if answer:
                answers.write(answer.encode("utf-8", "replace"))
                answers.flush()
    finally:
        session.close()


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _is_same(text: str, value: str) -> bool:
    """Return whether two texts have the same value; 0 and 1 mean false and true."""
    truths = {"0": "false", "1": "true"}
    if value in truths.values():
        text = truths.get(text, text)
    try:
        return text == value or float(text) == float(value)
    except ValueError:
        return False


def _facts(text: str) -> Any:
    """Return the facts of a position: a JSON object, or a text in the notation of a game."""
    try:
        return parse_json(text) if text.startswith("{") else text
    except ValueError:
        raise GtpError(f"a position must be a JSON object, got {text[:40]!r}") from None


def _integer(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise GtpError(f"{what} must be an integer, got {text[:40]!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not (math.isfinite(seconds) and seconds >= 0):
        raise GtpError(f"seconds must be a number of at least 0, got {text[:40]!r}")
    return seconds
