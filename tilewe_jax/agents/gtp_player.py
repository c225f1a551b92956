"""Engines of other programs that speak the Go Text Protocol (GTP) as players of the arena, each in processes of its own."""

import os
import re
import threading
import weakref
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tilewe_jax.agents.host_player import ForfeitError, HostGame
from tilewe_jax.formats.blokus import PASS
from tilewe_jax.formats.names import gtp_game
from tilewe_jax.game import Game
from tilewe_jax.interop.gtp_client import CommandError, EngineError, GtpEngine

MAX_PROCESSES = 32
"""Default of ``max_processes``: Pentobi takes about 100 MB each at levels 1 to 5."""
START_SECONDS = 60.0
"""Default of ``start_seconds``."""
_SETTING = re.compile(r'(\w+)=(?:"([^"]*)"|([^",][^,]*|))(?:,|$)')


class GtpPlayer:
    """An engine that speaks GTP as a player of any game that has moves in GTP (``GTP_GAMES``).

    Each game under way has a process, which hears of every move, while there are no more than ``max_processes`` games; in
    further games the engine that has waited longest is given all moves anew. An engine that dies, hangs, resigns or gives no
    legal move forfeits that game. Its process is ended, and another one is started for the next game.

    Args:
        game: the game that is played.
        command: the command line of the engine.
        max_processes: maximum number of processes at a time.
        start_seconds: seconds that an engine may take until it answers its first command.

    Raises ``ValueError`` where the engine does not start, or does not play the game.
    """

    def __init__(
        self, game: Game[Any], command: str, max_processes: int = MAX_PROCESSES, start_seconds: float = START_SECONDS
    ) -> None:
        self.name = f'gtp:command="{command}"'
        self.command, self.max_processes, self.start_seconds = command, max_processes, start_seconds
        self._names = gtp_game(game.id, **game.options)
        self._seats: dict[int, _Seat] = {}
        """Engines by the identity of their game, the one that was asked longest ago first."""
        self._waiting: list[_Seat] = []
        """Engines whose games are over."""
        self._started: list[tuple[GtpEngine, float]] = []
        """All engines, and the CPU seconds that each took to start."""
        self._lock = threading.RLock()  # the end of a game may be noticed anywhere, by the garbage collector
        try:
            self._waiting.append(self._start())
        except EngineError as error:
            raise ValueError(f"does not work: {error}") from None
        except CommandError as error:
            raise ValueError(f"does not play {game.id}: {error}") from None

    def choose(self, game: HostGame, seconds: float, seed: str) -> int:
        """The engine's action. Raises ``ForfeitError``, which says what is wrong with the engine."""
        seat = self._engine_of(game)
        try:
            return self._ask(seat, game, seconds, seed)
        except (EngineError, CommandError, ForfeitError) as error:
            seat.close()
            raise ForfeitError(str(error)) from None
        finally:
            seat.is_busy = False

    def choose_all(self, games: Sequence[HostGame], seconds: float, seeds: Sequence[str]) -> list[int | ForfeitError]:
        """The actions in several games, asked for side by side; the reason where the engine forfeits."""

        def ask(game: HostGame, seed: str) -> int | ForfeitError:
            try:
                return self.choose(game, seconds, seed)
            except ForfeitError as forfeit:
                return forfeit

        with ThreadPoolExecutor(min(len(games), self.max_processes, os.cpu_count() or 1)) as threads:
            try:
                return list(threads.map(ask, games, seeds))
            except BaseException:  # Ctrl-C does not wait for engines that think
                threads.shutdown(wait=False, cancel_futures=True)
                self.close()
                raise

    def close(self) -> None:
        """End all processes; those that are needed are started again."""
        with self._lock:
            for seat in [*self._seats.values(), *self._waiting]:
                seat.close()
            self._waiting.clear()

    def cpu_seconds(self) -> float:
        """CPU time that the engines have taken to play, in all processes, without what they took to start."""
        return sum(engine.cpu_seconds() - at_start for engine, at_start in list(self._started))

    def _start(self) -> "_Seat":
        """A new engine that plays the game. Raises ``EngineError`` and ``CommandError``."""
        engine = GtpEngine(self.command)
        try:
            commands = engine.send("list_commands", self.start_seconds).split()
            if self._names.config != gtp_game(self._names.host.id).config:
                # Its command line must say the options; an engine of one size only has no boardsize.
                engine.send(f"boardsize {self._names.config.size}", self.start_seconds)
            elif "set_game" in commands:
                engine.send(f"set_game {self._names.name}", self.start_seconds)
        except CommandError:
            engine.close()
            raise
        self._started.append((engine, engine.cpu_seconds()))
        return _Seat(engine, "set_random_seed" in commands)

    def _engine_of(self, game: HostGame) -> "_Seat":
        """The engine of a game, marked as busy; it may have played another game, or have been closed."""
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
        """Keep the engine of a game that is over for the next one."""
        with self._lock:
            seat = self._seats.pop(game, None)
            if seat is not None:
                seat.game = None
                self._waiting.append(seat)

    def _ask(self, seat: "_Seat", game: HostGame, seconds: float, seed: str) -> int:
        if seat.engine is None or not seat.engine.is_open:
            started = self._start()
            seat.engine, seat.takes_seed, seat.game = started.engine, started.takes_seed, None
        engine = seat.engine
        assert engine
        if seat.game is None:
            engine.send("clear_board", seconds)
            if seat.takes_seed:
                engine.send(f"set_random_seed {zlib.crc32(seed.encode()) >> 1}", seconds)
            seat.position, seat.played, seat.game = self._names.start(), 0, id(game)
        for action in self._actions(game)[seat.played :]:
            engine.send(f"play {self._color(seat)} {self._names.move_text(action, seat.position)}", seconds)
            seat.position, seat.played = seat.position.after(action), seat.played + 1
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

    def _actions(self, game: HostGame) -> list[int]:
        """All that the engine hears of a game: the actions that stand for its deal, and those that were played."""
        if not self._names.has_deal:
            return game.actions

        def begin() -> list[int]:
            return list(self._names.deal_actions(game.game.host(game.start())))

        return game.view("deal in GTP", begin, lambda deal, _: deal) + game.actions

    def _color(self, seat: "_Seat") -> str:
        return self._names.colors[self._names.current_color(seat.position)][0]


class _Seat:
    """An engine, and the position that it knows of."""

    def __init__(self, engine: GtpEngine | None = None, takes_seed: bool = False) -> None:
        self.engine, self.takes_seed = engine, takes_seed
        self.game: int | None = None
        """Identity of the game that it plays; ``None`` before ``clear_board``."""
        self.position: Any = None
        self.played = 0
        self.is_busy = False

    def close(self) -> None:
        """End the process; the seat remains, for another one."""
        self.game = None
        if self.engine is not None:
            self.engine.close()


def gtp_player(game: Game[Any], text: str) -> GtpPlayer:
    """The player of a text ``gtp:command="...",max_processes=8``. Raises ``ValueError``."""
    settings: dict[str, str] = {}
    rest = text.removeprefix("gtp:")
    while rest:
        match = _SETTING.match(rest)
        if not match or match[1] in settings:
            raise ValueError(f'{text!r} is wrong from {rest[:40]!r} on; engines are given as gtp:command="program -option"')
        settings[match[1]] = match[3] if match[2] is None else match[2]
        rest = rest[match.end() :]
    try:
        command = settings.pop("command")
        max_processes = int(settings.pop("max_processes", MAX_PROCESSES))
        start_seconds = float(settings.pop("start_seconds", START_SECONDS))
    except KeyError:
        raise ValueError(f'{text!r} has no command; engines are given as gtp:command="program -option"') from None
    except ValueError:
        raise ValueError(f"{text!r}: max_processes and start_seconds must be numbers") from None
    if settings or max_processes < 1 or not 0 < start_seconds < 1e6:
        raise ValueError(f"{text!r}: the settings are command, max_processes (from 1) and start_seconds (above 0)")
    try:
        return GtpPlayer(game, command, max_processes, start_seconds)
    except ValueError as error:
        raise ValueError(f"agent {text!r} {error}") from None
