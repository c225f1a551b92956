"""The command in which agents play matches against each other or against themselves."""

import builtins
import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewe_jax.arguments import Option
from tilewe_jax.cli import common
from tilewe_jax.cli.common import (
    Agents,
    Folder,
    GameOptions,
    Trust,
    UsageError,
    check_positive,
    check_seed,
    check_unused,
    check_writable,
    out,
    print_notes,
    progress,
    title,
    usage_errors,
)
from tilewe_jax.cli.shards import Sharded, describe
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import counted

if TYPE_CHECKING:
    from tilewe_jax.arena.results import Results

_LEADERS = 4
"""Number of agents whose win rates are shown during a match."""


@dataclass(frozen=True, kw_only=True)
class Match(GameOptions, Trust, Sharded):
    """Play matches between agents, and print win rates and Elo with 95 % intervals.

    An agent is the name of a built-in policy; a search such as puct:num_simulations=64,network=runs/duo; best, the strongest
    search for the game, or best:num_simulations=400; a level for people, level:1, level:2, ...; gtp:command="..." for an engine
    that speaks GTP; or module:factory. NAME= in front names the agent. --list shows the agents of a game.
    """

    agents: Agents
    """Agents that play, by default all built-in policies of the game. A single agent takes all seats, an agent that is named
    twice takes two seats."""
    run_: Folder = None
    """Folder of a run of `train`: all its networks play too, each with the search `gumbel`."""
    num_simulations: Annotated[int, Option(is_rare=True)] = 32
    """Number of simulations per move of the networks of --run."""
    games: int = 400
    """Number of games. They come in sets, in which every agent plays from every seat after the same start."""
    opening: int = 0
    """Number of random moves at the start of each game, the same in all games of a set."""
    sprt: Annotated[tuple[float, float] | None, Option("ELO0 ELO1")] = None
    """Stop when a sequential test (SPRT) accepts elo <= ELO0 or elo >= ELO1 for the first agent against the second."""
    batch: int = 128
    """Number of games played in parallel; more are faster, and need more memory."""
    seed: int = 0
    """Seed of the games; they do not depend on --batch."""
    devices: Annotated[int, Option(is_rare=True)] = 1
    """Number of devices that share the batch; on a CPU they are virtual."""
    move_seconds: Annotated[float, Option(is_rare=True)] = 60.0
    """Limit of the seconds per move of a player in plain Python, who forfeits the game beyond it."""
    list: bool = False
    """List the built-in agents, the levels and the searches of the game, and play nothing."""
    out: Path | None = None
    """Write all games to this file, for `replay` and `show`: JSON lines, a game a line. With --shard, a folder."""
    plot: Path | None = None
    """Write a picture of the Elo ratings to this file, as SVG."""

    def run(self) -> None:
        check_positive(games=self.games, batch=self.batch, move_seconds=self.move_seconds, num_simulations=self.num_simulations)
        check_seed(self.seed)
        if self.list:
            check_unused(self, "with --list", "run_", "sprt", "out", "plot", "shard", "ray")
        if self.run_:
            check_unused(self, "with --run, whose game is played", "game", "players", "set")
        else:
            check_unused(self, "without --run", "num_simulations")
        self.check_shards("sprt")
        if not self.shard:
            check_writable(self.out)
            check_writable(self.plot)
        if self.ray:
            self.run_on_ray()
            return
        common.ask_for_devices(self.devices)
        common.use_one_thread(min(self.games, self.batch))

        game = _game_of_run(self.run_) if self.run_ else self.make()
        if self.list:
            self._list(game)
            return
        players = self._players(game)
        results = self._play(game, players)
        simulations = {player.name: player.spec.num_simulations(game) if player.spec else 0 for player in players}
        self.finish(game, [results], {**describe(players), "simulations": simulations})
        if results.interrupted:
            raise KeyboardInterrupt

    num_matches = 1

    def report_results(self, game: Any, matches: "builtins.list[Results]", about: dict[str, Any]) -> None:
        """Print the standings, and write the games and the picture."""
        from tilewe_jax import records

        (results,) = matches
        summary = {**results.summary(), **_speed(results, about["simulations"])}
        if self.out:
            records.write(self.out, game, results.records, self.seed)
        if self.plot:
            _plot(self.plot, game, results.games, summary["agents"])
        if self.json:
            print(json.dumps(summary))
        else:
            _print(game, summary)
            if self.out:
                out.print(f"{counted(results.games, 'games')} written to {self.out}")

    def _list(self, game: Any) -> None:
        from tilewe_jax.agents.levels import level_names
        from tilewe_jax.agents.spec import search_agents

        names = [*sorted(game.policies()), "best", *level_names(game), *search_agents()]
        print(json.dumps({"game": game.id, "agents": names}) if self.json else "\n".join(names))

    def _players(self, game: Any) -> Any:
        """Make the players, and print notes on them to standard error."""
        from tilewe_jax.agents import agent

        agents = self.agents or (() if self.run_ else tuple(game.policies()))
        with usage_errors():
            players = {text: agent(text, game) for text in agents}
        by_name: dict[str, str] = {}
        for text, player in players.items():
            if by_name.setdefault(player.name, text) != text:
                raise UsageError(
                    f"{by_name[player.name]!r} and {text!r} have the same name {player.name!r}; give another NAME="
                )
        print_notes(players.values())
        if self.run_:
            return [players[text] for text in agents] + _players_of_run(game, self.run_, self.num_simulations)
        return [players[text] for text in (agents if len(agents) > 1 else agents * game.num_players)]

    def _play(self, game: Any, players: Any) -> Any:
        """Play, and show the progress. Ctrl-C before the end of the first batch raises ``KeyboardInterrupt``."""
        from tilewe_jax import arena

        options: dict[str, Any] = {"devices": self.devices, "opening": self.opening, "move_seconds": self.move_seconds}
        with usage_errors():
            test = arena.Sprt(*self.sprt) if self.sprt else None
            part = self.part
            with progress(len(part.games(self.games, game.num_players)), quiet=self.json) as shown:

                def follow(results: Any) -> None:
                    shown.update(results.games, partial(_so_far, results), "playing")

                keep = self.out is not None
                results = arena.play_match(
                    game, players, self.games, self.batch, self.seed, follow, keep=keep, sprt=test, shard=part, **options
                )
        if results.interrupted and (self.shard or not results.games):
            raise KeyboardInterrupt
        return results


def _plot(path: Path, game: Any, games: int, rows: list[dict[str, Any]]) -> None:
    """Write a picture of the ratings of agents with their intervals."""
    from tilewe_jax.draw.charts import intervals
    from tilewe_jax.utils.files import replacing

    bars = [(row["agent"], row["elo"], row["elo_ci95"]) for row in rows if row["elo"] is not None]
    if bars:
        with replacing(path) as file:
            file.write(intervals(f"{title(game)}: Elo after {counted(games, 'games')}, 95 % intervals", bars))


def _speed(results: "Results", simulations: dict[str, int]) -> dict[str, Any]:
    """Return the speed of the games, from the number of simulations per move of each player."""
    if not results.games:
        return {"moves": 0}
    plies, seating = results.all("plies"), results.all("seating")
    searched = sum(int(plies[seating == index].sum()) * simulations[name] for index, name in enumerate(results.names))
    seconds = max(results.seconds, 1e-9)
    return {
        "moves": int(plies.sum()),
        "games_per_second": round(results.games / seconds, 2),
        "simulations_per_second": round(searched / seconds),
    }


def _so_far(results: Any) -> str:
    """Describe the standings and the speed of a running match in a few words."""
    parts = []
    if results.games and len(results.names) > 1:
        outcomes = {name: results.outcomes(index) for index, name in enumerate(results.names)}
        rates = sorted(((rows.mean(), name) for name, rows in outcomes.items() if rows.size), reverse=True)
        parts.append("win rates " + ", ".join(f"{name} {rate:.0%}" for rate, name in rates[:_LEADERS]))
    if results.ply:
        parts.append(f"move {results.ply} of the next")
    if moves := sum(results.decisions.values()):
        parts.append(f"{moves / max(results.clock, 1e-9):,.1f} moves/s")
    return ", ".join(parts)


def _elo(row: dict[str, Any]) -> str:
    return "-" if row["elo"] is None else f"{row['elo']:z.0f} ± {row['elo_ci95']:.0f}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _print(game: Any, summary: dict[str, Any]) -> None:
    columns = ("agent", "Elo", "games", "win rate", "95 % interval", "wins", "ties", "mean score", "legal")
    table = Rows(*columns, wrap=("agent",), title=title(game))
    for row in summary["agents"]:
        low, high = row["win_rate_ci95"]
        table.add(
            row["agent"],
            _elo(row),
            f"{row['games']:,}",
            _number(row["win_rate"], ".4f"),
            f"{low:.4f} to {high:.4f}",
            f"{row['wins']:,}",
            f"{row['ties']:,}",
            _number(row["mean_score"], ".2f"),
            f"{row['legal_actions']:.0f}",
        )
    table.print(out)
    for row in summary["agents"]:
        if "last_fault" in row:
            out.print(f"{row['agent']} forfeited {counted(row['forfeits'], 'games')}, the last time for: {row['last_fault']}")
    names = [row["agent"] for row in summary["agents"]]
    if len(names) > 2:
        numbers = [str(number) for number in range(1, len(names) + 1)]
        caption = "fraction of the games of both agents in which the agent of the row was ahead"
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
    rate = summary.get("simulations_per_second")
    searched = f", {rate:,} simulations/s" if rate else ""
    out.print(f"{games} in {summary['seconds']:.1f} s{searched}, after {seconds:.0f} s of compiling")


def _players_of_run(game: Any, folder: Path, num_simulations: int) -> list[Any]:
    """Make a player for each network of a run of `train`, named after its file, and print notes on them to standard error.

    Names of files are not parsed as agents, which might name code.
    """
    from tilewe_jax.agents import AgentSpec, agent

    # Without noise, two networks would repeat the same few games.
    search = AgentSpec.parse(f"gumbel:num_simulations={num_simulations},gumbel_scale=1")
    players = []
    for path in sorted((folder / "weights").glob("*.npz")):
        with usage_errors():
            spec = replace(search, evaluator=replace(search.evaluator, network=str(path)))
            players.append(agent(spec, game, name=path.stem))
    print_notes(players)
    return players


def _game_of_run(folder: Path) -> Any:
    """Make the game of a run of `train`."""
    from tilewe_jax.training.checkpoint import CheckpointError
    from tilewe_jax.training.run import read_config

    try:
        with usage_errors():
            return read_config(folder).game.make()
    except CheckpointError as error:
        raise UsageError(str(error)) from None
