"""Commands for other programs: an engine that speaks GTP, and files of games in their format."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from experiments.commands.common import (
    Flag,
    GameOptions,
    OptionalInt,
    UsageError,
    check_positive,
    check_seed,
    check_writable,
    chosen_game,
    err,
    out,
    progress,
)
from tilewe_jax.words import counted


@dataclass(frozen=True)
class Gtp(GameOptions):
    """Play as an engine for other programs, which send commands of the Go Text Protocol (GTP) to standard input.

    Commands are those of Pentobi's engine, and so are moves and colours of its games, so that its twogtp and any GTP controller
    can drive it; send list_commands for all of them. Under time_settings, a puct agent thinks no longer than the time for the
    move, and at most as many simulations as it is given here; agents that cannot keep to a time refuse the command.
    """

    agent: Annotated[str, arg(metavar="AGENT")] = "best"
    """Agent that plays, as for `arena`: best is the strongest search that is shipped for the game."""
    seed: int = 0
    """Seed of the agent's random numbers."""
    ponder: Flag = False
    """Let a puct agent think on the opponents' time: it searches on while they are to move, as far as its tree has room."""

    def run(self) -> None:
        check_seed(self.seed)
        from importlib.metadata import version

        from experiments import arena
        from experiments.arena.gtp_agent import PlayerAgent
        from tilewe_jax.interop.gtp import GtpError, GtpSession, serve
        from tilewe_jax.interop.names import GtpGame, gtp_game
        from tilewe_jax.registry import make

        game = self.make()
        games: dict[Any, Any] = {}

        def agent(names: GtpGame) -> PlayerAgent:
            played = games.get(names.config) or make(names.host.id)
            try:
                player = arena.player(played, self.agent)
                with progress(None, "", quiet=True):
                    return PlayerAgent(played, player, self.seed, self.ponder)
            except (ValueError, MemoryError) as error:
                raise GtpError(str(error)) from None

        try:
            names = gtp_game(game.id, **game.options)
            if names.has_deal:
                raise UsageError(f"GTP has no command for how {game.id} begins by chance; an engine plays placement=chosen")
            games[names.config] = game
            session = GtpSession(names, agent, version("tilewe-jax"))
        except (GtpError, ValueError) as error:
            raise UsageError(str(error)) from None
        serve(session, sys.stdin.buffer, sys.stdout.buffer)


@dataclass(frozen=True)
class Convert:
    """Convert files of games: from records to Pentobi's .blksgf, and back.

    The names of the files say which: one of them ends with .blksgf. Pentobi has duo_official, classic and classic_2, and opens
    files of a single game.
    """

    source: Annotated[Positional[Path], arg(metavar="IN")]
    """File to read: records, as --out of `rollout`, `arena` and `selfplay` writes them, or a .blksgf file of finished games."""
    target: Annotated[Positional[Path], arg(metavar="OUT")]
    """File to write."""
    number: OptionalInt = None
    """Convert only this game of the file, from 1."""

    def run(self) -> None:
        from tilewe_jax import records
        from tilewe_jax.interop import blksgf

        check_positive(number=1 if self.number is None else self.number)
        check_writable(self.target)
        to_sgf = self.target.suffix == ".blksgf"
        if to_sgf == (self.source.suffix == ".blksgf"):
            raise UsageError("one of the two files must end with .blksgf, and the other one must not")
        if to_sgf:
            game, games = records.read_on_host(self.source)
            games = self._chosen(games)
            try:
                blksgf.write_records(self.target, game, games)
            except ValueError as error:
                raise records.RecordError(f"{self.source}: {error}") from None
        else:
            from tilewe_jax.registry import make

            names, games = blksgf.read_records(self.source)
            games = self._chosen(games)
            records.write(self.target, make(names.host.id), games)
        (err if str(self.target) == "/dev/stdout" else out).print(f"{counted(len(games), 'games')} written to {self.target}")

    def _chosen(self, games: list[Any]) -> list[Any]:
        """The games to convert."""
        if self.number is None:
            return games
        return [chosen_game(games, self.number, self.source)]
