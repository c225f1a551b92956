"""Commands for other programs: a GTP engine, and conversion of files of games."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import (
    GameOptions,
    Imports,
    Trust,
    UsageError,
    check_positive,
    check_seed,
    check_writable,
    chosen_game,
    print_skipped,
    print_written,
    progress,
    usage_errors,
    use_one_thread,
)
from tilewe_jax.utils.words import counted


@dataclass(frozen=True)
class Gtp(GameOptions, Trust):
    """Play as an engine for other programs, which send commands of the Go Text Protocol (GTP) to standard input.

    Commands, moves and colours match Pentobi's engine, so that twogtp and any GTP controller can use this engine;
    list_commands lists the commands. Under time_settings, a puct agent searches until the time for the move is over, with at
    most the simulations of --agent; agents without a time limit reject the command.
    """

    agent: Annotated[str, Option("AGENT")] = "best"
    """Agent that plays, as for `match`: best is the strongest search that is shipped for the game."""
    seed: int = 0
    """Seed of the agent's random numbers."""
    name: Annotated[str, Option("NAME")] = "tilewe-jax"
    """Name that the engine reports, for example to distinguish two agents of a match."""
    ponder: bool = False
    """Let a puct agent search during the opponents' turns, until its tree is full."""

    def run(self) -> None:
        check_seed(self.seed)
        if not self.name.strip() or not self.name.isprintable():
            raise UsageError(f"--name must be printable text in one line, not {self.name!r}")
        use_one_thread()
        from importlib.metadata import version

        from tilewe_jax.agents import agent as make_agent
        from tilewe_jax.agents.host_agent import HostAgent
        from tilewe_jax.formats.names import GtpGame, gtp_game
        from tilewe_jax.interop.gtp import GtpError, GtpSession, serve
        from tilewe_jax.registry import make

        game = self.make()
        games: dict[Any, Any] = {}

        def agent(names: GtpGame) -> HostAgent:
            played = games.get(names.config) or make(names.host.id)
            try:
                with progress(None, "", quiet=True):
                    return make_agent(self.agent, played).host(self.seed, ponders=self.ponder)
            except (ValueError, MemoryError) as error:
                raise GtpError(str(error)) from None

        try:
            with usage_errors():
                names = gtp_game(game.id, **game.options)
                if names.has_deal:
                    raise UsageError(f"GTP has no command for the random start of {game.id}; use --set placement=chosen")
                games[names.config] = game
                session = GtpSession(names, agent, version("tilewe-jax"), self.name.strip())
        except GtpError as error:
            raise UsageError(str(error)) from None
        serve(session, sys.stdin.buffer, sys.stdout.buffer)


@dataclass(frozen=True)
class Convert(Imports):
    """Convert files of games between records and Pentobi's .blksgf.

    The format of the first file follows from its content, the format of the second from its name: .blksgf or .sgf, otherwise
    records. With --variations or --number, a .blksgf file can be converted to another one, with a tree for each game. Pentobi
    has duo_official, classic and classic_2, and opens files of a single game.
    """

    source: Annotated[Path, Option("IN")]
    """File to read: records, as --out of `rollout` and `match` writes them, or a .blksgf file."""
    target: Annotated[Path, Option("OUT")]
    """File to write."""
    number: int | None = None
    """Convert only this game of the file, from 1."""
    variations: bool = False
    """Read each variation of a .blksgf file as a game. By default variations and comments stay with their game."""

    def run(self) -> None:
        from tilewe_jax import records
        from tilewe_jax.formats import blksgf
        from tilewe_jax.replay import recorded

        check_positive(number=self.number)
        check_writable(self.target)
        to_sgf, is_part = recorded.has_sgf_name(self.target), self.variations or self.number is not None
        from_sgf = recorded.is_sgf(self.source) if self.source.is_file() else recorded.has_sgf_name(self.source)
        if to_sgf == from_sgf and not (to_sgf and is_part):
            both = f"both files are {'.blksgf' if to_sgf else 'records'}"
            raise UsageError(f"{both}; one of the two files must end with .blksgf, and the other one must not")
        content = recorded.read(self.source, self.variations, keep=not self.variations)
        game, games = content.of_one_kind(self.source)
        if self.number is not None:
            games = [chosen_game(games, self.number, self.source)]
        if to_sgf:
            try:
                blksgf.write_records(self.target, game, games)
            except ValueError as error:
                raise records.RecordError(f"{self.source}: {error}") from None
        else:
            records.write(self.target, game, games)
        print_skipped(self.source, content, self.variations)
        print_written(counted(len(games), "games"), self.target)
