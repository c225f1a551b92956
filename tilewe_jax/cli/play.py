"""The command that plays in the terminal."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import SystemRandom
from types import FrameType
from typing import TYPE_CHECKING, Annotated

from tilewe_jax.agents.levels import LEVELS, agent_of, is_name
from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import (
    GameOptions,
    Trust,
    UsageError,
    check_unused,
    check_writable,
    in_color,
    usage_errors,
    use_one_thread,
)

if TYPE_CHECKING:
    from tilewe_jax.host import HostGame
    from tilewe_jax.records import Record

HUMAN = "human"


@dataclass(frozen=True)
class Play(GameOptions, Trust):
    """Play in the terminal, against engines or against people at the same keyboard.

    Type the names of moves; Tab tries them on the board, and help lists the commands. The game is saved after every move, and
    --resume continues it. Without a terminal that draws, moves are read from lines, and positions are printed.
    """

    agent: Annotated[tuple[str, ...], Option("AGENT", is_repeated=True, default="level:1")] = ()
    """Agent of all seats except the first, or one --agent for each seat; human is a person. An agent is level:N, from beginner
    to strongest, or an agent of `tilewe-jax match --list`."""
    resume: Path | None = None
    """Continue the game in this file, which is replaced after every move. Its levels need not be given again."""
    out: Path | None = None
    """New file for the game, by default GAME-1.jsonl, or the next free number."""
    plain: bool = False
    """Read lines and print positions on a terminal too."""

    def run(self) -> None:
        from tilewe_jax import records
        from tilewe_jax.cli.terminal import play
        from tilewe_jax.cli.terminal.engine import Engine
        from tilewe_jax.cli.terminal.viewer import Replay

        use_one_thread()
        if self.resume is None:
            host, is_hidden, record = self._new_game()
        else:
            check_unused(self, "with --resume, whose file names the game", "players", "set", "out")
            host, is_hidden, record = self._old_game(self.resume)
        replay = Replay(host, record, 1)
        agents = self._agents(host, record)
        try:
            is_over = replay.position(len(record.actions)).is_terminal
        except records.RecordError as error:
            raise records.RecordError(f"{self.resume}: {error}") from None
        if is_over:
            raise UsageError(f"the game in {self.resume} is over; tilewe-jax show {self.resume} shows it")
        person = "you" if agents.count(None) == 1 else HUMAN
        replay.record = replace(record, players=tuple(agent or person for agent in agents))
        game = play.Play(replay, agents, is_hidden, self.resume or self.out)
        engine = Engine(self.game if ":" in self.game else host.id, dict(host.options), record.deal, self.import_, self.trust)
        hung_up = _watch_for_hang_up()
        try:
            play.run(game, engine, self.plain, in_color())
            if game.position.is_terminal and not self.plain:
                print(game.text(in_color()) + f"\n{game.result()}")
        finally:
            engine.close()
            if game.moves or self.resume:
                game.save()
            with suppress(OSError):  # the terminal may be gone
                print(game.go_on(self.game), flush=True)
            if hung_up:
                os._exit(128 + hung_up[0])  # the terminal is gone

    def _new_game(self) -> "tuple[HostGame, bool, Record]":
        """Return the game, whether it has hidden information, and a record without moves."""
        from tilewe_jax.host_games import OFFERS, make_host_game
        from tilewe_jax.records import Record

        check_writable(self.out or Path("game.jsonl"))
        if self.out and self.out.exists():
            raise UsageError(f"--out: {self.out} exists; continue its game with --resume, or give another file")
        if self.game not in OFFERS:
            game = self.make()
            host = make_host_game(game.id, **game.options)
        else:
            players = {} if self.players is None else {"players": self.players}
            with usage_errors():
                host = make_host_game(self.game, **(self.options() if self.set else players))
        return host, host.has_hidden_information, Record(host.new_deal(SystemRandom()), (), (), ())

    def _old_game(self, file: Path) -> "tuple[HostGame, bool, Record]":
        """Return the game of a file, whether it has hidden information, and its record."""
        from tilewe_jax import records

        if ":" in self.game:  # registers a custom game
            self.make()
        host, games = records.read_on_host(file)
        if len(games) != 1:
            raise UsageError(f"--resume takes a file with one game, and {file} has {len(games)}")
        check_writable(file)
        return host, host.has_hidden_information, games[0]

    def _agents(self, host: "HostGame", record: "Record") -> list[str | None]:
        """Return the agent of each seat, ``None`` for a person."""
        seats = range(host.num_players)
        agents: Sequence[str] = self.agent
        if not agents and record.players:
            agents = [_agent_of_file(seat, name) for seat, name in enumerate(record.players)]
        elif not agents:
            agents = ["level:1" if host.id in LEVELS else "random"]
            agents = [HUMAN, *agents * (host.num_players - 1)]
        elif len(agents) == 1 < host.num_players:
            agents = [HUMAN if agents[0] == HUMAN or not seat else agents[0] for seat in seats]
        if len(agents) != host.num_players:
            raise UsageError(f"give --agent once, or once for each of the {host.num_players} seats, not {len(agents)} times")
        for text in agents:
            try:
                if is_name(text):
                    agent_of(host, text)
            except ValueError as error:
                raise UsageError(f"--agent: {error}") from None
        return [None if text == HUMAN else text for text in agents]


def _agent_of_file(seat: int, name: str) -> str:
    """Return the agent of a seat from an untrusted file, which must name neither a program nor another file."""
    from tilewe_jax.cli.terminal.play import is_safe

    if is_safe(name):
        return name
    if name in ("", "you", HUMAN):
        return HUMAN
    raise UsageError(f"seat {seat + 1} was played by {name!r}; give --agent for each seat, human for a person")


def _watch_for_hang_up() -> list[int]:
    """End the command when its terminal is closed; the returned list then has the signal."""
    signals: list[int] = []

    def hang_up(number: int, frame: FrameType | None) -> None:
        del frame
        signals.append(number)
        raise SystemExit(128 + number)

    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, hang_up)
    return signals
