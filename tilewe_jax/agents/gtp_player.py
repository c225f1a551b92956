"""External engines that speak the Go Text Protocol (GTP) as players on the host."""

import json
import os
import shlex
import threading
import weakref
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tilewe_jax.agents.host_player import ForfeitError, OngoingGame
from tilewe_jax.formats import blksgf
from tilewe_jax.formats.blokus import PASS, BlokusGame
from tilewe_jax.formats.names import gtp_game
from tilewe_jax.game import Game
from tilewe_jax.host import POSITION, is_position
from tilewe_jax.interop.gtp_client import CommandError, EngineError, GtpEngine, search_move
from tilewe_jax.settings import assignments, changed, setting, validate


@dataclass(frozen=True)
class GtpSettings:
    """The settings of a GTP engine, ``gtp:command="program -option",max_processes=8``."""

    command: str = ""
    """Command line of the engine."""
    max_processes: int = setting(32, 1)
    """Maximum number of processes; Pentobi takes about 100 MB per process at levels 1 to 5."""
    start_seconds: float = setting(60.0, 0, 1e6, positive=True)
    """Maximum time until the engine answers its first command, in seconds."""

    def __post_init__(self) -> None:
        validate(self)


class GtpPlayer:
    """A GTP engine as a player of any game with moves in GTP (``GTP_GAMES``).

    Each game has its own process, which receives every move, up to ``max_processes`` games. Beyond that, the process that has
    been idle longest replays the moves of the other game. An engine that dies, hangs, resigns or plays an illegal move
    forfeits the game; its process is killed and replaced for the next game.

    Args:
        game: the game.
        command: see ``GtpSettings``.
        max_processes: see ``GtpSettings``.
        start_seconds: see ``GtpSettings``.

    Raises ``ValueError`` if the engine does not start, or does not play the game.
    """

    def __init__(
        self,
        game: Game[Any],
        command: str,
        max_processes: int = GtpSettings.max_processes,
        start_seconds: float = GtpSettings.start_seconds,
    ) -> None:
        self.name = f'gtp:command="{command}"'
        self.command, self.max_processes, self.start_seconds = command, max_processes, start_seconds
        self._names = gtp_game(game.id, **game.options)
        self._seats: dict[int, _Seat] = {}
        """Engines by the identity of their game, the least recently used first."""
        self._waiting: list[_Seat] = []
        """Engines without a game."""
        self._started: list[tuple[GtpEngine, float]] = []
        """All engines, and their CPU seconds at startup."""
        self._lock = threading.RLock()  # reentrant: the garbage collector calls ``_release`` at any time
        try:
            self._waiting.append(self._start())
        except EngineError as error:
            raise ValueError(f"does not work: {error}") from None
        except CommandError as error:
            raise ValueError(f"does not play {game.id}: {error}") from None

    def choose(self, game: OngoingGame, seconds: float, seed: str) -> int:
        """Return the engine's action. Raises ``ForfeitError`` with the reason if the engine fails."""
        with self._at(game, seconds, seed) as (seat, engine):
            return self._generated(seat, engine, seconds)

    def value(self, game: OngoingGame, seconds: float, seed: str) -> float:
        """Return the engine's value of a position for the player to move, by ``gtp_client.search_move``, clipped to [0, 1].

        Raises ``ForfeitError`` with the reason if the engine fails or has no values.
        """
        with self._at(game, seconds, seed) as (seat, engine):
            return min(max(search_move(engine, self._color(seat), seconds)[1], 0.0), 1.0)

    def choose_all(self, games: Sequence[OngoingGame], seconds: float, seeds: Sequence[str]) -> list[int | ForfeitError]:
        """Return the actions in several games, computed in parallel, or the error of a forfeit."""

        def ask(game: OngoingGame, seed: str) -> int | ForfeitError:
            try:
                return self.choose(game, seconds, seed)
            except ForfeitError as forfeit:
                return forfeit

        with ThreadPoolExecutor(min(len(games), self.max_processes, os.cpu_count() or 1)) as threads:
            try:
                return list(threads.map(ask, games, seeds))
            except BaseException:  # on Ctrl-C, do not wait for the engines
                threads.shutdown(wait=False, cancel_futures=True)
                self.close()
                raise

    def close(self) -> None:
        """Kill all processes; later moves start new ones."""
        with self._lock:
            for seat in [*self._seats.values(), *self._waiting]:
                seat.close()
            self._waiting.clear()

    def cpu_seconds(self) -> float:
        """Return the CPU time of all processes in seconds, excluding startup."""
        return sum(engine.cpu_seconds() - at_start for engine, at_start in list(self._started))

    def _start(self) -> "_Seat":
        """Start an engine that plays the game. Raises ``EngineError`` or ``CommandError``."""
        engine = GtpEngine(self.command)
        try:
            commands = engine.send("list_commands", self.start_seconds).split()
            if self._names.config != gtp_game(self._names.host.id).config:
                # Other options must be part of the command line; ``boardsize`` checks the size.
                engine.send(f"boardsize {self._names.config.size}", self.start_seconds)
            elif "set_game" in commands:
                engine.send(f"set_game {self._names.name}", self.start_seconds)
        except CommandError:
            engine.close()
            raise
        self._started.append((engine, engine.cpu_seconds()))
        return _Seat(engine, "set_random_seed" in commands)

    def _engine_of(self, game: OngoingGame) -> "_Seat":
        """Return the engine of a game, marked as busy; it may be closed, or know another game."""
        with self._lock:
            seat = self._seats.pop(id(game), None)
            if seat is None:
                weakref.finalize(game, self._release, id(game))
                if self._waiting:
                    seat = self._waiting.pop()
                elif len(self._seats) < self.max_processes:
                    seat = _Seat()
                else:
                    oldest = next(key for key, seat in self._seats.items() if not seat.is_busy)
                    seat = self._seats.pop(oldest)
                seat.game = None
            self._seats[id(game)] = seat
            seat.is_busy = True
            return seat

    def _release(self, game: int) -> None:
        """Keep the engine of a finished game for the next game."""
        with self._lock:
            seat = self._seats.pop(game, None)
            if seat is not None:
                seat.game = None
                self._waiting.append(seat)

    @contextmanager
    def _at(self, game: OngoingGame, seconds: float, seed: str) -> Iterator[tuple["_Seat", GtpEngine]]:
        """Context manager with the engine of a game in its position. Failures kill the engine and raise ``ForfeitError``."""
        seat = self._engine_of(game)
        try:
            yield seat, self._replayed(seat, game, seconds, seed)
        except (EngineError, CommandError, ForfeitError) as error:
            seat.close()
            raise ForfeitError(str(error)) from None
        finally:
            seat.is_busy = False

    def _replayed(self, seat: "_Seat", game: OngoingGame, seconds: float, seed: str) -> GtpEngine:
        """Send the actions of a game that its engine does not know yet, and return the engine."""
        if seat.engine is None or not seat.engine.is_open:
            started = self._start()
            seat.engine, seat.takes_seed, seat.game = started.engine, started.takes_seed, None
        engine = seat.engine
        assert engine
        if seat.game is None:
            engine.send("clear_board", seconds)
            if seat.takes_seed:
                engine.send(f"set_random_seed {zlib.crc32(seed.encode()) >> 1}", seconds)
            seat.position, seat.played, seat.game = self._set_up(engine, game, seconds), 0, id(game)
        for action in self._actions(game)[seat.played :]:
            engine.send(f"play {self._color(seat)} {self._names.move_text(action, seat.position)}", seconds)
            seat.position, seat.played = seat.position.after(action), seat.played + 1
        return engine

    def _set_up(self, engine: GtpEngine, game: OngoingGame, seconds: float) -> Any:
        """Let an engine start a game from its position, and return the position.

        Raises ``ForfeitError`` if the engine lacks a command for positions.
        """
        if not is_position(game.deal):
            return self._names.start()
        facts = game.deal[POSITION]
        commands = engine.send("list_commands", seconds).split()
        if "set_position" in commands:
            engine.send(f"set_position {json.dumps(facts)}", seconds)
        elif "loadsgf" in commands and isinstance(self._names, BlokusGame):
            with TemporaryDirectory(prefix="tilewe-position-") as folder:
                path = Path(folder) / "position.blksgf"
                path.write_text(blksgf.render(self._names, (), deal=game.deal))
                engine.send(f"loadsgf {path}", seconds)
        else:
            raise ForfeitError("the engine lacks a command to start from a position")
        return self._names.host.init_from_deal(game.deal)

    def _generated(self, seat: "_Seat", engine: GtpEngine, seconds: float) -> int:
        """Let the engine play a move, and return its action."""
        move = engine.send(f"genmove {self._color(seat)}", seconds).strip()
        if move.lower() == "resign":
            raise ForfeitError("the engine resigned")
        if move.lower() == PASS and not self._names.has_passes:
            raise ForfeitError("the engine passed although it can move")
        try:
            action = self._names.action(move, seat.position)
        except ValueError as error:
            raise ForfeitError(f"the engine gave an {error}") from None
        if rule := seat.position.explain(action):
            raise ForfeitError(f"the engine gave an illegal move, {move}: {rule}")
        seat.position, seat.played = seat.position.after(action), seat.played + 1
        return action

    def _actions(self, game: OngoingGame) -> list[int]:
        """Return the actions to send for a game: the actions that reproduce its deal, and the actions played."""
        if not self._names.has_deal or is_position(game.deal):
            return game.actions

        def create() -> list[int]:
            return list(self._names.deal_actions(game.game.host(game.start())))

        return game.view("deal in GTP", create, lambda deal, _: deal) + game.actions

    def _color(self, seat: "_Seat") -> str:
        return self._names.colors[self._names.current_color(seat.position)][0]


class _Seat:
    """An engine and its position."""

    def __init__(self, engine: GtpEngine | None = None, takes_seed: bool = False) -> None:
        self.engine, self.takes_seed = engine, takes_seed
        self.game: int | None = None
        """Identity of its game; ``None`` before ``clear_board``."""
        self.position: Any = None
        self.played = 0
        self.is_busy = False

    def close(self) -> None:
        """Kill the process; the seat can get another one."""
        self.game = None
        if self.engine is not None:
            self.engine.close()


def gtp_player(game: Game[Any], text: str) -> GtpPlayer:
    """Create the player of a text ``gtp:command="...",max_processes=8``. Raises ``ValueError``."""
    try:
        settings = changed(GtpSettings(), assignments(_split(text.removeprefix("gtp:")), "gtp:"))
        if not settings.command:
            raise ValueError('command is missing; engines are given as gtp:command="program -option"')
        return GtpPlayer(game, *astuple(settings))
    except ValueError as error:
        raise ValueError(f"agent {text!r} {error}") from None


def _split(text: str) -> list[str]:
    """Split settings at commas outside double quotes, and remove the quotes."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace, lexer.whitespace_split, lexer.quotes, lexer.commenters, lexer.escape = ",", True, '"', "", ""
    return list(lexer)
