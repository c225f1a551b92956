"""Commands for other programs: an engine that speaks GTP, and files of games in their format."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from tilewe_jax.cli.common import (
    Flag,
    GameOptions,
    Imports,
    OptionalInt,
    Trust,
    UsageError,
    check_positive,
    check_seed,
    check_writable,
    chosen_game,
    err,
    out,
    print_unread,
    progress,
)
from tilewe_jax.utils.words import counted


@dataclass(frozen=True)
class Gtp(GameOptions, Trust):
    """Play as an engine for other programs, which send commands of the Go Text Protocol (GTP) to standard input.

    Commands are those of Pentobi's engine, and so are moves and colours of its games, so that its twogtp and any GTP controller
    can drive it; send list_commands for all of them. Under time_settings, a puct agent thinks no longer than the time for the
    move, and at most as many simulations as it is given here; agents that cannot keep to a time refuse the command.
    """

    agent: Annotated[str, arg(metavar="AGENT")] = "best"
    """Agent that plays, as for `match`: best is the strongest search that is shipped for the game."""
    seed: int = 0
    """Seed of the agent's random numbers."""
    name: Annotated[str, arg(metavar="NAME")] = "tilewe-jax"
    """Name that the engine reports, for example to tell two agents of a match apart."""
    ponder: Flag = False
    """Let a puct agent think on the opponents' time: it searches on while they are to move, as far as its tree has room."""

    def run(self) -> None:
        check_seed(self.seed)
        if not self.name.strip() or not self.name.isprintable():
            raise UsageError(f"--name must be printable text in one line, not {self.name!r}")
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
            names = gtp_game(game.id, **game.options)
            if names.has_deal:
                raise UsageError(f"GTP has no command for how {game.id} begins by chance; an engine plays placement=chosen")
            games[names.config] = game
            session = GtpSession(names, agent, version("tilewe-jax"), self.name.strip())
        except (GtpError, ValueError) as error:
            raise UsageError(str(error)) from None
        serve(session, sys.stdin.buffer, sys.stdout.buffer)


@dataclass(frozen=True)
class Convert(Imports):
    """Convert files of games: from records to Pentobi's .blksgf, and back.

    The content of the first file says its format, and the name of the second one: .blksgf or .sgf, or any other for records. A
    .blksgf file becomes another one, of a tree for each game, with --variations or --number. Pentobi has duo_official, classic
    and classic_2, and opens files of a single game.
    """

    source: Annotated[Positional[Path], arg(metavar="IN")]
    """File to read: records, as --out of `rollout` and `match` writes them, or a .blksgf file."""
    target: Annotated[Positional[Path], arg(metavar="OUT")]
    """File to write."""
    number: OptionalInt = None
    """Convert only this game of the file, from 1."""
    variations: Flag = False
    """Take each variation of a .blksgf file for a game, instead of the main lines alone."""

    def run(self) -> None:
        from tilewe_jax import records
        from tilewe_jax.formats import blksgf
        from tilewe_jax.replay import recorded

        check_positive(number=1 if self.number is None else self.number)
        check_writable(self.target)
        to_sgf, is_part = recorded.has_sgf_name(self.target), self.variations or self.number is not None
        from_sgf = recorded.is_sgf(self.source) if self.source.is_file() else recorded.has_sgf_name(self.source)
        if to_sgf == from_sgf and not (to_sgf and is_part):
            both = f"both files are {'.blksgf' if to_sgf else 'records'}"
            raise UsageError(f"{both}; one of the two files must end with .blksgf, and the other one must not")
        content = recorded.read(self.source, self.variations)
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
        print_unread(self.source, content, self.variations)
        (err if str(self.target) == "/dev/stdout" else out).print(f"{counted(len(games), 'games')} written to {self.target}")
