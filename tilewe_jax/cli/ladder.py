"""Commands that measure strength against the levels of an opponent, and find balanced openings."""

import contextlib
import hashlib
import json
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from tilewe_jax.arguments import Option
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
    use_one_thread,
)
from tilewe_jax.cli.shards import Sharded, describe, make_folder
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import counted

MAX_LEVELS = 100


@dataclass(frozen=True)
class Ladder(GameOptions, Trust, Sharded):
    """Measure agents against the levels of an opponent, with 95 % intervals and CPU times.

    Games start with balanced openings if the package has a list for the game, and each opening is played from every seat. An
    example with an engine in a process for each game:

        tilewe-jax ladder --game duo_official --agent puct:num_simulations=64
        --opponent 'gtp:command="pentobi-gtp -g duo -l {level} --nobook --noresign -q"' --levels 1-6 --out ladder
    """

    agent: Agents = ()
    """Agents to measure one by one, as for `match`."""
    opponent: Annotated[str, Option("AGENT")] = ""
    """Opponent, as for `match`; {level} in it stands for the level."""
    levels: Annotated[str, Option("LEVELS")] = ""
    """Levels of the opponent, such as 1-6 or 1,3,5."""
    games: Annotated[tuple[int, ...], Option("GAMES ...")] = (100,)
    """Number of games at each level, or one number for each of the levels; rounded up to whole openings."""
    own_seats: Annotated[int, Option(is_rare=True)] = 1
    """Number of seats of the agent; the opponent has the others."""
    openings: Path | None = None
    """File of openings, as `openings` writes it, instead of the list of the package."""
    random_opening: Annotated[int | None, Option(is_rare=True)] = None
    """Start with this number of random moves instead of a list of openings; 2 if the package has no list for the game."""
    seconds_per_move: float | None = None
    """Mean CPU seconds per move of the agents, whose numbers of simulations are then chosen by a measurement."""
    equal_time: bool = False
    """Play each level once more with the number of simulations that takes the CPU time of the opponent."""
    precision: Annotated[float | None, Option(is_rare=True)] = None
    """End a match early at this half-width of the interval of the win rate, such as 0.05."""
    repeats: Annotated[int, Option(is_rare=True)] = 1
    """Play every match this number of times, with different seeds, and show the win rate of each."""
    level_elo: Annotated[tuple[float, ...], Option("ELO ...", is_rare=True)] = ()
    """Ratings of the levels, one each; the ratings of Pentobi's levels are known."""
    batch: int = 32
    """Number of games played in parallel: searched in one call, with a process each for engines."""
    seed: int = 0
    """Seed of the games."""
    move_seconds: Annotated[float, Option(is_rare=True)] = 600.0
    """Limit of the seconds per move of a player on the host."""
    out: Folder = None
    """Folder to create for ladder.json, ladder.svg (extra `plots`), and the games of every match, or with --shard for the
    results of all shards."""

    def run(self) -> None:
        check_positive(
            batch=self.batch,
            move_seconds=self.move_seconds,
            repeats=self.repeats,
            own_seats=self.own_seats,
            games=min(self.games, default=0),
            seconds_per_move=self.seconds_per_move,
            precision=self.precision,
        )
        check_seed(self.seed)
        levels = self._levels()
        games = self._games(levels)
        if not self.agent or not self.opponent:
            raise UsageError("--agent and --opponent are needed")
        use_one_thread(self.batch)
        if self.openings and self.random_opening is not None:
            raise UsageError("--random-opening cannot be given with --openings")
        self.check_shards("seconds_per_move", "equal_time", "precision")
        if self.ray:
            self.run_on_ray()
            return
        from tilewe_jax.arena import ladder

        game = self.make()
        if not 0 < self.own_seats < game.num_players:
            raise UsageError(f"--own-seats must be 1 to {game.num_players - 1} in {title(game)}, not {self.own_seats}")
        opening, source = self._opening(game)
        settings = ladder.Settings(
            0, self.own_seats, opening, self.precision, self.repeats, self.batch, self.seed, self.move_seconds, self.part
        )
        with usage_errors():
            for count in games:
                settings.shard.games(count, game.num_players)  # raises errors before the first match
            agents, about = self._agents(game, opening)
        about |= {"openings": source, "hash of the openings": hashlib.sha256(repr(opening).encode()).hexdigest()[:16]}
        report = None if self.shard else self._report(game, levels, about)
        rungs = []
        try:
            with usage_errors():
                for agent in agents:
                    for level, count in zip(levels, games, strict=True):
                        own = replace(settings, games=count)
                        rung = self._climb(game, agent, level, own, report)
                        rungs.append(rung)
                        theirs = rung.cpu_seconds_per_move(1)
                        if self.equal_time and theirs:
                            with progress(None, "", f"level {level}: finding the simulations of equal time", quiet=self.json):
                                timed = ladder.at_seconds_per_move(game, agent, theirs, opening, self.batch, self.seed)
                            self._climb(game, timed, level, own, report, is_equal_time=True)
        finally:
            if report:
                report.end()
        if self.shard:
            self.finish(game, [results for rung in rungs for results in rung.repeats], about)

    @property
    def num_matches(self) -> int:
        return len(self.agent) * len(self._levels()) * self.repeats

    def report_results(self, game: Any, matches: list[Any], about: dict[str, Any]) -> None:
        """Report the matches of all agents and levels with all repeats, in the order of play."""
        from tilewe_jax.arena.ladder import Rung

        levels = self._levels()
        report = self._report(game, levels, about)
        rungs = [Rung(agent, level, False) for agent in self.agent for level in levels]
        for index, rung in enumerate(rungs):
            rung.repeats += matches[index * self.repeats : (index + 1) * self.repeats]
            report.add(rung)
        report.end()

    def _report(self, game: Any, levels: list[int | None], about: dict[str, Any]) -> "_Report":
        if self.out:
            make_folder(self.out)
        return _Report(self, game, about, self._ratings(game, levels))

    def _games(self, levels: list[int | None]) -> tuple[int, ...]:
        """Return the number of games at each level."""
        games = self.games * len(levels) if len(self.games) == 1 else self.games
        if len(games) != len(levels):
            raise UsageError(
                f"--games must be one number or one for each of {counted(len(levels), 'levels')}, not {len(self.games)}"
            )
        return games

    def _levels(self) -> list[int | None]:
        """Parse the levels: ``[None]`` for an opponent without levels."""
        if ("{level}" in self.opponent) != bool(self.levels):
            raise UsageError("--levels and {level} in --opponent must be given together")
        if not self.levels:
            return [None]
        levels: list[int | None] = []
        for part in self.levels.split(","):
            match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            if not first <= last < first + MAX_LEVELS:
                raise UsageError(f"--levels must be like 1-6 or 1,3,5, at most {MAX_LEVELS}, not {self.levels[:80]!r}")
            levels += range(first, last + 1)
        return levels

    def _opening(self, game: Any) -> tuple[Any, str]:
        """Return the start of the games, for the match and in words."""
        from tilewe_jax.arena import openings

        path = self.openings or (openings.find(game) if self.random_opening is None else None)
        if path is None:
            count = 2 if self.random_opening is None else self.random_opening
            if not 0 <= count <= game.max_steps:
                raise UsageError(f"--random-opening must be 0 to {game.max_steps}, the longest game, not {count}")
            return count, counted(count, "random moves")
        with usage_errors():
            rows = openings.read(game, path)
        return [row.actions for row in rows], f"{len(rows)} of {path.name}"

    def _ratings(self, game: Any, levels: list[int | None]) -> dict[int, float]:
        """Return the known ratings of levels."""
        from tilewe_jax.arena.ladder import PENTOBI_ELO

        if self.level_elo:
            if len(self.level_elo) != len(levels) or None in levels:
                raise UsageError(
                    f"--level-elo must be one for each of {counted(len(levels), 'levels')}, not {len(self.level_elo)}"
                )
            return {level: elo for level, elo in zip(levels, self.level_elo, strict=True) if level is not None}
        known = PENTOBI_ELO.get(game.id, ()) if "pentobi" in self.opponent.lower() else ()
        return dict(enumerate(known, 1))

    def _agents(self, game: Any, opening: Any) -> tuple[list[str], dict[str, Any]]:
        """Return the agents, with the number of simulations for --seconds-per-move, and ``describe(players)``.

        Raises ``ValueError`` for invalid agents.
        """
        from tilewe_jax.agents import agent as make_agent
        from tilewe_jax.arena import ladder

        players = [make_agent(agent, game) for agent in self.agent]  # raises errors before the first match
        print_notes(players)
        players += [ladder.checked_opponent(game, self.opponent, level) for level in self._levels()]
        about = describe(players)
        if self.seconds_per_move is None:
            return list(self.agent), about
        with progress(None, "", "finding the simulations for --seconds-per-move", quiet=self.json):
            return [
                ladder.at_seconds_per_move(game, agent, self.seconds_per_move, opening, self.batch, self.seed)
                for agent in self.agent
            ], about

    def _climb(
        self, game: Any, agent: str, level: int | None, settings: Any, report: "_Report | None", is_equal_time: bool = False
    ) -> Any:
        """Play a match, and report it."""
        from tilewe_jax.arena import ladder

        name = "" if level is None else f"level {level}: "
        with progress(len(settings.shard.games(settings.games, game.num_players)) * self.repeats, quiet=self.json) as shown:
            earlier: list[Any] = []

            def follow(results: Any) -> None:
                if not earlier or earlier[-1] is not results:
                    earlier.append(results)
                games = sum(each.games for each in earlier)
                shown.update(games, lambda: _so_far(results), f"{name}playing")

            rung = ladder.climb(game, agent, self.opponent, level, settings, follow, is_equal_time)
        if report:
            report.add(rung)
        if rung.is_interrupted:
            raise KeyboardInterrupt
        return rung


def _so_far(results: Any) -> str:
    """Describe the running match of an agent against its opponent in a few words."""
    parts = [f"win rate {results.outcomes(0).mean():.0%}"] if results.games else []
    return ", ".join([*parts, *([f"move {results.ply} of the next"] if results.ply else [])])


class _Report:
    """The results of a ladder, printed at the end and stored after every match."""

    def __init__(self, command: Ladder, game: Any, about: dict[str, Any], ratings: dict[int, float]) -> None:
        self._command, self._game, self._about, self._ratings = command, game, about, ratings
        self._rungs: list[Any] = []

    def add(self, rung: Any) -> None:
        """Add a match, and write its games and the results so far."""
        self._rungs.append(rung)
        folder = self._command.out
        if folder:
            from tilewe_jax import records

            name = f"{len(self._rungs):02}" + ("" if rung.level is None else f"-level{rung.level}")
            games = [record for results in rung.repeats for record in results.records]
            records.write(folder / f"{name}.jsonl", self._game, games, self._command.seed)
            self._write(folder)

    def summary(self) -> dict[str, Any]:
        """Return all results as JSON."""
        from tilewe_jax.arena.ladder import elo_on_scale

        by_agent: dict[str, list[Any]] = {}
        for rung in self._rungs:
            by_agent.setdefault("equal time" if rung.is_equal_time else rung.agent, []).append(rung)
        agents = []
        for name, rungs in by_agent.items():
            rating = elo_on_scale(rungs, self._ratings)
            elo = {} if rating is None else {"elo": round(rating[0]), "elo_ci95": round(rating[1])}
            agents.append({"agent": name, **elo, "levels": [rung.summary() for rung in rungs]})
        return {
            "game": self._game.id,
            "options": self._game.options,
            "opponent": self._command.opponent,
            "openings": self._about["openings"],
            **{name: getattr(self._command, name) for name in ("own_seats", "repeats", "batch", "seed")},
            "level_elo": self._ratings,
            "agents": agents,
            "device": self._about["device"],
            "jax": self._about["jax"],
        }

    def end(self) -> None:
        """Print the results."""
        if not self._rungs:
            return
        summary = self.summary()
        if self._command.json:
            print(json.dumps(summary))
            return
        for entry in summary["agents"]:
            _print(self._game, entry, self._command.opponent)
        if self._command.out:
            out.print(f"written to {self._command.out}")

    def _write(self, folder: Path) -> None:
        from tilewe_jax.utils.extras import MissingExtraError
        from tilewe_jax.utils.files import replacing

        summary = self.summary()
        with replacing(folder / "ladder.json") as file:
            file.write(json.dumps(summary, indent=1) + "\n")
        if any(row["level"] is not None for entry in summary["agents"] for row in entry["levels"]):
            with contextlib.suppress(MissingExtraError), replacing(folder / "ladder.svg") as file:
                file.write(plot(summary))


def _print(game: Any, entry: dict[str, Any], opponent: str) -> None:
    """Print the table of an agent."""
    elo = f", Elo {entry['elo']} ± {entry['elo_ci95']} on the scale of the levels" if "elo" in entry else ""
    out.print(f"{title(game)}: {entry['agent']} against {opponent}{elo}")
    table = Rows("level", "W-D-L", "win rate (95 %)", "score margin", "by seat", "CPU ms a move, opponent")
    for row in entry["levels"]:
        low, high = row["win_rate_ci95"]
        margin_low, margin_high = row["score_margin_ci95"]
        table.add(
            "-" if row["level"] is None else str(row["level"]),
            f"{row['wins']}-{row['draws']}-{row['losses']}",
            f"{row['win_rate']:.2f} ({low:.2f}-{high:.2f})",
            f"{row['score_margin']:+.1f} ± {(margin_high - margin_low) / 2:.1f}",
            " ".join("-" if rate is None else f"{rate:.2f}" for rate in row["win_rate_by_seat"]),
            f"{_milliseconds(row['cpu_seconds_per_move'])}, {_milliseconds(row['opponent_cpu_seconds_per_move'])}",
        )
    table.print(out)
    if entry["agent"] == "equal time":
        for row in entry["levels"]:
            out.print(f"level {row['level']}: {row['agent']}")
    for row in entry["levels"]:
        level = "" if row["level"] is None else f"level {row['level']}: "
        if "win_rates_of_repeats" in row:
            rates = ", ".join(f"{rate:.3f}" for rate in row["win_rates_of_repeats"])
            out.print(f"{level}win rates of the repeats {rates}")
        for name, fault in row.get("faults", {}).items():
            out.print(f"{level}{name} forfeited, the last time for: {fault}")


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.1f}"


def plot(summary: dict[str, Any]) -> str:
    """Plot win rates by level with their intervals, as SVG."""
    from tilewe_jax.utils.plots import new_figure, svg

    figure, handles, names = new_figure(6.4, 4.2), [], []
    axes = figure.add_subplot()
    for entry in summary["agents"]:
        rows = entry["levels"]
        rates = [row["win_rate"] for row in rows]
        errors = [[abs(row["win_rate_ci95"][end] - row["win_rate"]) for row in rows] for end in (0, 1)]
        names.append(entry["agent"] if len(entry["agent"]) <= 60 else f"{entry['agent'][:59]}…")
        handles.append(axes.errorbar([row["level"] for row in rows], rates, errors, marker="o", capsize=3))
    rows = summary["agents"][0]["levels"]
    axes.axhline(rows[0]["equal_players"], color="#999", linewidth=1)
    axes.set_xticks(sorted({row["level"] for entry in summary["agents"] for row in entry["levels"]}))
    axes.set(xlabel="level of the opponent", ylabel="win rate, 95 % intervals", ylim=(0, 1))
    axes.set_title(summary["game"])
    axes.grid(color="#eee")
    # Matplotlib would leave out labels that start with an underscore.
    figure.legend(handles, names, loc="outside lower center", fontsize="small", frameon=False)
    return svg(figure)


@dataclass(frozen=True)
class Openings(GameOptions, Trust):
    """Find balanced openings: first moves that both a search and Pentobi value at about one half, or an opening book.

    Each player places a random piece of five cells in turn. With more than two players, whose seats differ in value, the
    values are compared with the mean of such openings. For example:

        tilewe-jax openings --game duo_official --engine 'pentobi-gtp -g duo -l 7 --nobook --noresign -q' --out openings.json
    """

    engine: Annotated[tuple[str, ...], Option("COMMAND ...")] = ()
    """Command line of Pentobi's GTP engine, with the game and the level. Of several, the first one should have a low level: it
    values all openings, and the others value the remaining ones."""
    agent: Annotated[str, Option("AGENT")] = "puct:num_simulations=1000"
    """Search that values the openings first, with its settings."""
    book: Path | None = None
    """Take the openings from this opening book, as `book` writes it, instead of searching for them."""
    count: int = 50
    """Number of openings."""
    tolerance: float = 0.05
    """Maximum difference of a value, between 0 and 1, from the value of an equal game."""
    processes: int = 1
    """Number of engines that search in parallel."""
    seed: int = 0
    """Seed of the moves."""
    out: Path | None = None
    """Write the openings to this file (required)."""

    def run(self) -> None:
        check_positive(count=self.count, tolerance=self.tolerance, processes=self.processes)
        check_seed(self.seed)
        if self.book:
            check_unused(self, "with --book", "engine", "agent", "processes", "seed")
        if not (self.engine or self.book) or not self.out:
            raise UsageError("--out and one of --engine and --book are needed")
        check_writable(self.out)
        from tilewe_jax.arena import openings

        game = self.make()
        if self.book:
            with usage_errors():
                rows = openings.from_book(game, self.book, self.count, self.tolerance)
            openings.write(self.out, game, rows, {"book": self.book.name, "tolerance": self.tolerance})
            out.print(f"{counted(len(rows), 'openings')} written to {self.out}")
            return
        about: dict[str, Any] = {
            "engines": [_without_folder(engine) for engine in self.engine],
            "agent": self.agent,
            "tolerance": self.tolerance,
            "seed": self.seed,
        }
        balanced: list[Any] = []
        with (
            usage_errors(),
            progress(self.count, "openings") as shown,
            openings.Finder(game, self.engine, self.agent, self.tolerance, self.seed, self.processes) as finder,
        ):
            about["equal"] = finder.equal

            def follow(count: int, tried: int) -> None:
                shown.update(count, lambda: f"{tried:,} tried", "searching")

            for opening in finder.find(self.count, follow):
                balanced.append(opening)
                openings.write(self.out, game, balanced, about)
        out.print(f"{counted(len(balanced), 'openings')} written to {self.out}")


def _without_folder(command: str) -> str:
    """Remove the folder of the program from a command line."""
    program, *arguments = shlex.split(command) or [""]
    return shlex.join([Path(program).name, *arguments])
