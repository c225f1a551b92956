"""Commands that let players play each other."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from tyro.conf import arg

from experiments.commands import common
from experiments.commands.common import (
    GameOptions,
    UsageError,
    check_positive,
    check_writable,
    out,
    plot_ratings,
    progress_bar,
    title,
)


@dataclass(frozen=True)
class Arena:
    """Let players play each other and rate them.

    A player is a name (`tilewe-jax arena --list` shows those of a game), a search like puct:num_simulations=64, or
    module:factory for what that function gives, a policy or an engine of tilewe; and name=... gives it another name.
    """

    players: Annotated[tuple[str, ...], arg(metavar="PLAYER ...")] = ()
    """Who plays; by default all that the game has. One that is named twice takes two seats."""
    game: str = "tilewe"
    """Id of the game; `tilewe-jax games` lists them."""
    seats: int | None = None
    """Number of players in a game, where the game lets you choose."""
    set: Annotated[tuple[str, ...], arg(metavar="OPTION=VALUE ...")] = ()
    """Further options of the game, like size=10."""
    games: int = 1000
    """Number of games."""
    batch: int = 2000
    """Games played at once."""
    seed: int = 0
    """Decides the games, whatever the batch."""
    devices: int = 1
    """Number of devices among which a batch is divided; on a CPU they are made."""
    sprt: tuple[float, float] | None = None
    """Two Elo: stop once it is clear by which of them the first player is stronger than the second."""
    move_seconds: float = 60.0
    """Time for a move of an engine on the host."""
    list: bool = False
    """List the players of the game, and play no games."""
    out: Path | None = None
    """Write the games to this file, as JSON lines that `replay` and `show` read."""
    plot: Path | None = None
    """Write a picture of the ratings to this file, as SVG."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        check_positive(games=self.games, batch=self.batch, devices=self.devices, move_seconds=self.move_seconds)
        check_writable(self.out)
        check_writable(self.plot)
        common.ask_for_devices(self.devices)
        from experiments import arena
        from experiments.arena.ratings import Sprt
        from search import search_agents
        from tilewe_jax import records

        game = GameOptions(self.game, self.seats, self.set).make()
        if self.list:
            names = [*sorted(game.policies()), *search_agents()]
            print(json.dumps({"game": game.id, "players": names}) if self.json else "\n".join(names))
            return
        try:
            players = [arena.player(game, text) for text in self.players or game.policies()]
            sprt = Sprt(*self.sprt) if self.sprt else None
            with progress_bar("playing", self.games) as progress:
                results = arena.compete(
                    game,
                    players,
                    self.games,
                    self.batch,
                    self.seed,
                    progress,
                    keep=self.out is not None,
                    sprt=sprt,
                    move_seconds=self.move_seconds,
                    devices=self.devices,
                )
        except (ValueError, MemoryError) as error:
            raise UsageError(str(error)) from None
        summary = results.summary()
        if self.out:
            records.write(self.out, game, results.records, self.seed)
        rated = [row for row in summary["players"] if row["elo"] is not None]
        if self.plot and rated:
            plot_ratings(self.plot, game, results.games, [(row["name"], row["elo"], row["margin"]) for row in rated])
        if self.json:
            print(json.dumps(summary))
        else:
            _print_arena(game, summary)
        if results.interrupted:
            raise KeyboardInterrupt


def _print_arena(game: Any, summary: dict[str, Any]) -> None:
    def elo(row: dict[str, Any]) -> str:
        return "-" if row["elo"] is None else f"{row['elo']:.0f} ± {row['margin']:.0f}"

    def number(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    table = Table("player", "Elo", "games", "win share", "ties", "mean score", "legal", "forfeits", title=title(game))
    for row in summary["players"]:
        share, score = number(row["win_share"], ".4f"), number(row["mean_score"], ".2f")
        legal = f"{row['legal_actions']:.0f}"
        table.add_row(row["name"], elo(row), f"{row['games']:,}", share, f"{row['ties']:,}", score, legal, str(row["forfeits"]))
    out.print(table)
    for row in summary["players"]:
        if "last_fault" in row:
            out.print(f"{row['name']} forfeited, the last time for: {row['last_fault']}", markup=False)
    names = [row["name"] for row in summary["players"]]
    if len(names) > 1:
        pairs = Table("ahead of", *names, title="share of the games of both in which the one was ahead")
        for name in names:
            pairs.add_row(name, *(number(summary["pairs"][name].get(other), ".3f") for other in names))
        out.print(pairs)
    seats = Table("seat", "Elo", "win share", "mean score")
    for row in summary["seats"]:
        seats.add_row(str(row["seat"]), elo(row), number(row["win_share"], ".4f"), number(row["mean_score"], ".2f"))
    out.print(seats)
    if "sprt" in summary:
        test = summary["sprt"]
        low, high = test["bounds"]
        found = f"{test['verdict']}, log likelihood ratio {test['llr']}, bounds {low} and {high}"
        out.print(f"{test['first']} against {test['second']}: {found}")
    out.print(
        f"{summary['games']:,} games in {summary['seconds']:.1f} s, after {summary['compile_seconds']:.0f} s of compiling"
    )


@dataclass(frozen=True)
class Selfplay(GameOptions):
    """Let one player play all seats, and keep the games."""

    agent: str = "puct:num_simulations=64"
    """Who plays: a name (`tilewe-jax arena --list`), or a search like puct:num_simulations=64,num_playouts=4."""
    games: int = 256
    """Number of games."""
    batch: int = 256
    """Games played at once."""
    seed: int = 0
    """Decides the games, whatever the batch."""
    devices: int = 1
    """Number of devices among which a batch is divided; on a CPU they are made."""
    out: Path | None = None
    """Write the games to this file, as JSON lines that `replay` and `show` read."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        check_positive(games=self.games, batch=self.batch, devices=self.devices)
        check_writable(self.out)
        common.ask_for_devices(self.devices)
        from experiments import arena
        from tilewe_jax import records

        game = self.make()
        try:
            players = [arena.player(game, self.agent)] * game.num_players
            with progress_bar("playing", self.games) as progress:
                keep = self.out is not None
                results = arena.compete(
                    game, players, self.games, self.batch, self.seed, progress, keep=keep, devices=self.devices
                )
        except (ValueError, MemoryError) as error:
            raise UsageError(str(error)) from None
        if self.out:
            records.write(self.out, game, results.records, self.seed)
        moves = int(results.all("plies").sum()) if results.games else 0
        seconds = max(results.seconds, 1e-9)
        searcher = players[0].search
        simulations = moves * searcher.num_simulations(game) if searcher else 0
        summary = {
            "game": game.id,
            "options": game.options,
            "agent": self.agent,
            "games": results.games,
            "moves": moves,
            "seconds": round(results.seconds, 3),
            "cpu_seconds": round(results.cpu_seconds, 3),
            "compile_seconds": round(results.compile_seconds, 1),
            "games_per_second": round(results.games / seconds, 2),
            "simulations_per_second": round(simulations / seconds),
            "mean_score": results.all("scores").mean(axis=0).round(4).tolist() if results.games else [],
            "interrupted": results.interrupted,
        }
        if self.json:
            print(json.dumps(summary))
        else:
            table = Table("figure", "value", title=f"{title(game)}: {self.agent} plays itself")
            for name in ("games", "moves", "games_per_second", "simulations_per_second", "compile_seconds"):
                table.add_row(name, f"{summary[name]:,}")
            out.print(table)
            if self.out:
                out.print(f"{results.games:,} games written to {self.out}")
        if results.interrupted:
            raise KeyboardInterrupt


@dataclass(frozen=True)
class Eval:
    """Let players play each other, seats balanced, and tell how often each wins, with 95 % intervals."""

    players: Annotated[tuple[str, ...], arg(metavar="AGENT ...")] = ()
    """Who plays, as for `arena`; one that is named twice takes two seats. A network is one of a search's settings,
    gumbel:num_simulations=64,network=NAME."""
    game: str = "tilewe"
    """Id of the game; `tilewe-jax games` lists them."""
    seats: int | None = None
    """Number of players in a game, where the game lets you choose."""
    set: Annotated[tuple[str, ...], arg(metavar="OPTION=VALUE ...")] = ()
    """Further options of the game, like size=10."""
    run_folder: Annotated[Path | None, arg(name="run")] = None
    """A run of `train`: all the weights that it kept play, each as `gumbel` with so many simulations."""
    sims: int = 32
    """Simulations of those."""
    games: int = 400
    """Number of games."""
    opening: int = 0
    """Moves that chance plays at the beginning. Games come in sets, in which the players sit in all seats in turn, and chance
    deals and plays alike."""
    batch: int = 256
    """Games played at once."""
    seed: int = 0
    """Decides the games, whatever the batch."""
    devices: int = 1
    """Number of devices among which a batch is divided; on a CPU they are made."""
    plot: Path | None = None
    """Write a picture of the ratings to this file, as SVG."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        check_positive(games=self.games, batch=self.batch, devices=self.devices, sims=self.sims)
        check_writable(self.plot)
        common.ask_for_devices(self.devices)
        from experiments import arena, config

        texts = list(self.players)
        if self.run_folder:
            try:
                made = config.from_json(json.loads((self.run_folder / "config.json").read_text()))
            except (OSError, ValueError) as error:
                raise UsageError(f"{self.run_folder} has no run: {error}") from None
            game = made.make()
            weights = sorted((self.run_folder / "weights").glob("*.npz"))
            search = f"gumbel:num_simulations={self.sims},gumbel_scale=1"
            texts += [f"{path.stem}={search},network={path}" for path in weights]
        else:
            game = GameOptions(self.game, self.seats, self.set).make()
        if not texts:
            raise UsageError("--players are needed, or --run")
        try:
            players = [arena.player(game, text) for text in texts]
            with progress_bar("playing", self.games) as progress:
                settings = self.games, self.batch, self.seed, progress
                results = arena.compete(game, players, *settings, devices=self.devices, opening=self.opening)
        except (ValueError, MemoryError) as error:
            raise UsageError(str(error)) from None
        if not results.games:
            raise KeyboardInterrupt
        summary = results.standings()
        if self.plot:
            bars = [(row["agent"], row["elo"], row["elo_margin"]) for row in summary["agents"] if row["elo"] is not None]
            plot_ratings(self.plot, game, results.games, bars)
        if self.json:
            print(json.dumps(summary))
        else:
            table = Table("agent", "games", "wins", "ties", "win share", "95 % interval", "Elo", title=title(game))
            for row in summary["agents"]:
                low, high = row["interval"]
                rating = "-" if row["elo"] is None else f"{row['elo']:.0f} ± {row['elo_margin']:.0f}"
                counts = (str(row[name]) for name in ("games", "wins", "ties"))
                table.add_row(row["agent"], *counts, f"{row['win_share']:.4f}", f"{low:.4f} to {high:.4f}", rating)
            out.print(table)
        if results.interrupted:
            raise KeyboardInterrupt
