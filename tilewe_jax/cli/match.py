"""Commands in which agents play games against each other."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from tilewe_jax.cli import common
from tilewe_jax.cli.common import (
    Agents,
    FailedError,
    Flag,
    GameOptions,
    OptionalFile,
    OptionalFolder,
    Trust,
    UsageError,
    check_positive,
    check_seed,
    check_unused,
    check_writable,
    out,
    plot_ratings,
    print_notes,
    progress,
    title,
)
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import counted

_LEADERS = 4
"""Number of agents whose win rates are shown while a match goes on."""


@dataclass(frozen=True)
class Arena(GameOptions, Trust):
    """Let agents play each other, and rate them by Elo.

    An agent is a built-in one by its name (`tilewe-jax arena --list` shows those of a game); a search with its settings, such
    as puct:num_simulations=64,num_playouts=4; best, the strongest search that is shipped for the game, with its network and
    the settings that suit it, or best:num_simulations=400; level:1, level:2, ... for people, where the game has levels;
    gtp:command="..." with the command line of an engine that speaks GTP; or module:factory, a function of yours that returns
    a policy or a player in plain Python. NAME= before it, as in strong=best:num_simulations=400, is its name in the tables.
    """

    agents: Agents = ()
    """Agents that play, by default all that the game has built in. An agent that is named twice takes two seats."""
    games: int = 1000
    """Number of games."""
    batch: int = 250
    """Number of games played side by side; more are faster, and need more memory."""
    seed: int = 0
    """Seed of the games; they do not depend on --batch."""
    devices: int = 1
    """Number of devices that share the batch; on a CPU, as many virtual ones are made."""
    sprt: Annotated[tuple[float, float] | None, arg(metavar="ELO0 ELO1", help_behavior_hint="")] = None
    """Sequential test: stop once it is decided by which of two Elo differences the first agent is stronger than the second."""
    move_seconds: float = 60.0
    """Seconds that a player in plain Python may take for a move; whoever takes longer forfeits the game."""
    list: Flag = False
    """List the built-in agents, the levels and the searches of the game, and play nothing."""
    out: OptionalFile = None
    """Write all games to this file, for `replay` and `show`: JSON lines, a game a line."""
    plot: OptionalFile = None
    """Write a picture of the Elo ratings to this file, as SVG."""
    json: Flag = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        check_positive(games=self.games, batch=self.batch, move_seconds=self.move_seconds)
        check_seed(self.seed)
        if self.list:
            check_unused(self, "with --list", "agents", "sprt", "out", "plot")
        check_writable(self.out)
        check_writable(self.plot)
        common.ask_for_devices(self.devices)
        from tilewe_jax import records
        from tilewe_jax.agents.levels import level_names
        from tilewe_jax.agents.spec import search_agents

        game = self.make()
        if self.list:
            names = [*sorted(game.policies()), "best", *level_names(game), *search_agents()]
            print(json.dumps({"game": game.id, "agents": names}) if self.json else "\n".join(names))
            return
        results = _play(
            game,
            _players(game, self.agents or tuple(game.policies())),
            self.games,
            self.batch,
            self.seed,
            keep=self.out is not None,
            sprt=self.sprt,
            move_seconds=self.move_seconds,
            devices=self.devices,
            quiet=self.json,
        )
        summary = results.summary()
        if self.out:
            records.write(self.out, game, results.records, self.seed)
        if self.plot:
            plot_ratings(self.plot, game, results.games, summary["agents"])
        if self.json:
            print(json.dumps(summary))
        else:
            _print_arena(game, summary)
        if results.interrupted:
            raise KeyboardInterrupt


def _players(game: Any, agents: tuple[str, ...]) -> list[Any]:
    """The players that agents given as text stand for; notes on them go to standard error."""
    from tilewe_jax.agents import agent

    try:
        players = {text: agent(text, game) for text in agents}
    except ValueError as error:
        raise UsageError(str(error)) from None
    by_name: dict[str, str] = {}
    for text, player in players.items():
        if by_name.setdefault(player.name, text) != text:
            raise UsageError(f"{by_name[player.name]!r} and {text!r} have the same name {player.name!r}; give another NAME=")
    print_notes(players.values())
    return [players[text] for text in agents]


def _play(
    game: Any,
    players: list[Any],
    games: int,
    batch: int,
    seed: int,
    sprt: tuple[float, float] | None = None,
    quiet: bool = False,
    so_far: Callable[[Any], str] | None = None,
    **options: Any,
) -> Any:
    """Play a match, and show its progress. Ctrl-C before the end of the first batch raises ``KeyboardInterrupt``."""
    from tilewe_jax import arena

    try:
        test = arena.Sprt(*sprt) if sprt else None
        with progress(games, quiet=quiet) as shown:

            def follow(results: Any) -> None:
                shown.update(results.games, partial(so_far or _so_far, results), "playing")

            results = arena.play_match(game, players, games, batch, seed, follow, sprt=test, **options)
    except (ValueError, MemoryError) as error:
        raise UsageError(str(error)) from None
    if results.interrupted and not results.games:
        raise KeyboardInterrupt
    return results


def _so_far(results: Any) -> str:
    """The standings of a match under way, in a few words."""
    parts = []
    if results.games and len(results.names) > 1:
        outcomes = {name: results.outcomes(index) for index, name in enumerate(results.names)}
        rates = sorted(((rows.mean(), name) for name, rows in outcomes.items() if rows.size), reverse=True)
        parts.append("win rates " + ", ".join(f"{name} {rate:.0%}" for rate, name in rates[:_LEADERS]))
    if results.ply:
        parts.append(f"move {results.ply} of the next")
    return ", ".join(parts)


def _elo(row: dict[str, Any]) -> str:
    return "-" if row["elo"] is None else f"{row['elo']:z.0f} ± {row['elo_ci95']:.0f}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _print_faults(summary: dict[str, Any]) -> None:
    for row in summary["agents"]:
        if "last_fault" in row:
            out.print(f"{row['agent']} forfeited, the last time for: {row['last_fault']}")


def _print_arena(game: Any, summary: dict[str, Any]) -> None:
    columns = ("agent", "Elo", "games", "win rate", "ties", "mean score", "legal", "forfeits")
    table = Rows(*columns, wrap=("agent",), title=title(game))
    for row in summary["agents"]:
        table.add(
            row["agent"],
            _elo(row),
            f"{row['games']:,}",
            _number(row["win_rate"], ".4f"),
            f"{row['ties']:,}",
            _number(row["mean_score"], ".2f"),
            f"{row['legal_actions']:.0f}",
            str(row["forfeits"]),
        )
    table.print(out)
    _print_faults(summary)
    names = [row["agent"] for row in summary["agents"]]
    if len(names) > 1:
        numbers = [str(number) for number in range(1, len(names) + 1)]
        caption = "fraction of the games of both in which the row's agent was ahead"
        pairs = Rows("agent", "ahead of", *numbers, wrap=("agent",), title=caption)
        for number, name in zip(numbers, names, strict=True):
            pairs.add(name, number, *(_number(summary["pairs"][name].get(opponent), ".3f") for opponent in names))
        pairs.print(out)
    seats = Rows("seat", "Elo", "win rate", "mean score")
    for row in summary["seats"]:
        seats.add(str(row["seat"]), _elo(row), _number(row["win_rate"], ".4f"), _number(row["mean_score"], ".2f"))
    seats.print(out)
    if "sprt" in summary:
        test = summary["sprt"]
        low, high = test["bounds"]
        verdict = f"{test['verdict']}, log likelihood ratio {test['llr']}, bounds {low} and {high}"
        out.print(f"{test['first']} against {test['second']}: {verdict}")
    games, seconds = counted(summary["games"], "games"), summary["compile_seconds"]
    out.print(f"{games} in {summary['seconds']:.1f} s, after {seconds:.0f} s of compiling")


@dataclass(frozen=True)
class Selfplay(GameOptions, Trust):
    """Let one agent play against itself in all seats, and keep the games."""

    agent: Annotated[str, arg(metavar="AGENT")] = "puct:num_simulations=64"
    """Agent that plays, as for `arena`: a built-in one by its name, a search with its settings, or module:factory."""
    games: int = 256
    """Number of games."""
    batch: int = 128
    """Number of games played side by side; more are faster, and need more memory."""
    seed: int = 0
    """Seed of the games; they do not depend on --batch."""
    devices: int = 1
    """Number of devices that share the batch; on a CPU, as many virtual ones are made."""
    out: OptionalFile = None
    """Write all games to this file, for `replay` and `show`: JSON lines, a game a line."""
    json: Flag = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        check_positive(games=self.games, batch=self.batch)
        check_seed(self.seed)
        check_writable(self.out)
        common.ask_for_devices(self.devices)
        from tilewe_jax import records

        game = self.make()
        keep = self.out is not None
        players = _players(game, (self.agent,) * game.num_players)
        num_simulations = players[0].spec.num_simulations(game) if players[0].spec else 0
        options: dict[str, Any] = {"keep": keep, "devices": self.devices, "quiet": self.json}
        so_far = partial(self._so_far, num_simulations)
        results = _play(game, players, self.games, self.batch, self.seed, so_far=so_far, **options)
        if self.out:
            records.write(self.out, game, results.records, self.seed)
        moves = int(results.all("plies").sum()) if results.games else 0
        seconds = max(results.seconds, 1e-9)
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
            "simulations_per_second": round(moves * num_simulations / seconds),
            "mean_score": results.all("scores").mean(axis=0).round(4).tolist() if results.games else [],
            "interrupted": results.interrupted,
        }
        if self.json:
            print(json.dumps(summary))
        else:
            table = Rows("figure", "value", title=f"{title(game)}: {self.agent} plays itself")
            for name in ("games", "moves", "games_per_second", "simulations_per_second", "compile_seconds"):
                table.add(name, f"{summary[name]:,}")
            table.print(out)
            if self.out:
                out.print(f"{counted(results.games, 'games')} written to {self.out}")
        if results.interrupted:
            raise KeyboardInterrupt

    def _so_far(self, num_simulations: int, results: Any) -> str:
        """What was measured so far, in the games under way too."""
        under_way = min(self.batch, self.games - results.games)
        parts = [f"{under_way:,} under way"] if under_way else []
        if results.ply:
            parts.append(f"move {results.ply}")
        if moves := sum(results.decisions.values()):
            per_second = moves / max(results.clock, 1e-9)
            parts.append(f"{per_second:,.1f} moves/s")
            if num_simulations:
                parts.append(f"{per_second * num_simulations:,.0f} simulations/s")
        return ", ".join(parts)


@dataclass(frozen=True)
class Eval(GameOptions, Trust):
    """Let agents play each other, and print how often each wins, with 95 % intervals.

    Games come in sets, in which every agent plays from every seat after the same start. A network is one of the settings of a
    search, as in gumbel:num_simulations=64,network=santorini: the name of shipped weights, or a file.
    """

    agents: Agents = ()
    """Agents that play, as for `arena`. An agent that is named twice takes two seats."""
    run_folder: Annotated[OptionalFolder, arg(name="run")] = None
    """Folder of a run of `train`: all networks that it kept play each other, each with the search `gumbel`."""
    num_simulations: int = 32
    """Number of simulations per move of the networks of --run."""
    games: int = 400
    """Number of games."""
    opening: int = 0
    """Number of random moves at the beginning of each game, the same ones in all games of a set."""
    batch: int = 128
    """Number of games played side by side; more are faster, and need more memory."""
    seed: int = 0
    """Seed of the games; they do not depend on --batch."""
    devices: int = 1
    """Number of devices that share the batch; on a CPU, as many virtual ones are made."""
    plot: OptionalFile = None
    """Write a picture of the Elo ratings to this file, as SVG."""
    json: Flag = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        check_positive(games=self.games, batch=self.batch, num_simulations=self.num_simulations)
        check_seed(self.seed)
        if self.run_folder:
            check_unused(self, "with --run, whose game is played", "game", "players", "set")
        else:
            check_unused(self, "without --run", "num_simulations")
        check_writable(self.plot)
        common.ask_for_devices(self.devices)

        game = _game_of_run(self.run_folder) if self.run_folder else self.make()
        players = _players(game, self.agents)
        if self.run_folder:
            players += _players_of_run(game, self.run_folder, self.num_simulations)
        if not players:
            raise UsageError("--agents are needed, or --run")
        options: dict[str, Any] = {"devices": self.devices, "opening": self.opening, "quiet": self.json}
        results = _play(game, players, self.games, self.batch, self.seed, **options)
        summary = results.summary()
        if self.plot:
            plot_ratings(self.plot, game, results.games, summary["agents"])
        if self.json:
            print(json.dumps(summary))
        else:
            columns = ("agent", "games", "wins", "ties", "win rate", "95 % interval", "Elo")
            table = Rows(*columns, wrap=("agent",), title=title(game))
            for row in summary["agents"]:
                low, high = row["win_rate_ci95"]
                counts = (str(row[name]) for name in ("games", "wins", "ties"))
                rate = _number(row["win_rate"], ".4f")
                table.add(row["agent"], *counts, rate, f"{low:.4f} to {high:.4f}", _elo(row))
            table.print(out)
            _print_faults(summary)
        if results.interrupted:
            raise KeyboardInterrupt


def _players_of_run(game: Any, folder: Path, num_simulations: int) -> list[Any]:
    """A player for each network that a run of `train` kept, by the name of its file; notes on them go to standard error.

    No name of a file becomes the text of an agent, which might name code.
    """
    from dataclasses import replace

    from tilewe_jax.agents import AgentSpec, agent

    # With noise, or the same two networks would play the same few games again and again.
    search = AgentSpec.parse(f"gumbel:num_simulations={num_simulations},gumbel_scale=1")
    players = []
    for path in sorted((folder / "weights").glob("*.npz")):
        try:
            spec = replace(search, evaluator=replace(search.evaluator, network=str(path)))
            players.append(agent(spec, game, name=path.stem))
        except ValueError as error:
            raise UsageError(str(error)) from None
    print_notes(players)
    return players


def _game_of_run(folder: Path) -> Any:
    """The game of a run of `train`."""
    from tilewe_jax.training.checkpoint import CheckpointError
    from tilewe_jax.training.run import read_config
    from tilewe_jax.utils.trust import UntrustedError

    try:
        return read_config(folder).game.make()
    except UntrustedError as error:
        raise FailedError(str(error)) from None
    except (CheckpointError, ValueError) as error:
        raise UsageError(str(error)) from None
