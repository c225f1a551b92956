"""Commands that analyse positions of other programs, in JSON lines, and the moves of recorded games."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Annotated, Any

from rich import box

from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import (
    Agents,
    GameOptions,
    GamesFile,
    Json,
    Trust,
    UsageError,
    check_positive,
    check_seed,
    check_writable,
    chosen_game,
    out,
    print_notes,
    print_written,
    progress,
    usage_errors,
    use_one_thread,
)
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.progress import COMPILING, Progress
from tilewe_jax.utils.words import counted

AGENT = "puct:num_simulations=64"
MAX_BATCH = 1 << 16
"""Maximum number of positions per search."""
MAX_SCORE_PLAYOUTS = 1 << 16
"""Maximum number of playouts of each position."""


@dataclass(frozen=True)
class Analyze(GameOptions, Trust):
    """Analyse positions for other programs: requests in JSON lines on standard input, answers on standard output.

    A request names a game and its moves, as in {"id": "a", "game": "duo", "moves": ["W5n-a1e5"]}. The answer has the values of
    all players, and for each candidate its visits, prior, values and principal variation. Waiting requests are searched
    in parallel. docs/guides/analyze.md explains all fields.
    """

    agent: Annotated[str, Option("AGENT")] = AGENT
    """Agent that searches, puct or gumbel with their settings (see `tilewe-jax match --list`), which requests may change."""
    others: Agents = ()
    """Agents that requests may name besides --agent and the levels of a game."""
    batch: int = 64
    """Maximum number of positions searched in parallel; more are faster, and need more memory."""
    score_playouts: int = 16
    """Number of playouts from which the score lead is estimated; 0 estimates none."""
    seed: int = 0
    """Seed of the random numbers; the same requests get the same answers."""

    def run(self) -> None:
        check_search(self.batch, self.score_playouts, self.seed)
        use_one_thread(self.batch)
        from importlib.metadata import version

        from tilewe_jax.agents.analysis import AgentAnalyzer
        from tilewe_jax.host_games import make_host_game
        from tilewe_jax.interop.analysis import AnalysisSession, serve_standard_streams
        from tilewe_jax.interop.analysis_requests import Defaults, GameSpec

        game = self.make()
        settings = {"seed": self.seed, "score_playouts": self.score_playouts}
        with usage_errors():
            analyzer = AgentAnalyzer(
                self.agent, self.batch, self.others, compiling=lambda: progress(None, "", quiet=True), **settings
            )
            spec = GameSpec(make_host_game(game.id, **game.options), game.options)
            print_notes([analyzer.prepare(spec)])
        session = AnalysisSession(Defaults(game.id, game.options), analyzer, version("tilewe-jax"))
        serve_standard_streams(session)


@dataclass(frozen=True)
class Rate(GamesFile, Trust, Json):
    """Rate the moves of recorded games by a search of the position before and after each move.

    Values are for the player who moved, 1 for a win. The loss is the value of the best move minus the value of the move played.
    """

    agent: Annotated[str, Option("AGENT")] = AGENT
    """Agent that searches, puct or gumbel with their settings; `tilewe-jax match --list` shows them."""
    number: int | None = None
    """Rate only this game of the file, from 1."""
    mistakes: int = 5
    """Number of the largest mistakes that are listed at the end."""
    batch: int = 64
    """Maximum number of positions searched in parallel; more are faster, and need more memory."""
    score_playouts: int = 0
    """Number of playouts from which the score lead in --out is estimated; 0 estimates none."""
    seed: int = 0
    """Seed of the random numbers; the same seed gives the same ratings."""
    out: Path | None = None
    """Write all analyses to this file: JSON lines, a move a line, in the form of `analyze`."""
    brief: bool = False
    """Print only the summary, without the tables of moves."""

    def run(self) -> None:
        check_search(self.batch, self.score_playouts, self.seed)
        use_one_thread(self.batch)
        check_positive(number=self.number, mistakes=self.mistakes)
        check_writable(self.out)
        from tilewe_jax.agents import review
        from tilewe_jax.agents.analysis import AgentAnalyzer

        content = self.read()
        games = review.games_of(self.file, content.games)
        if self.number is not None:
            games = [chosen_game(games, self.number, self.file)]
        self.print_skipped(content)
        compiling = Compiling()
        with usage_errors():
            analyzer = AgentAnalyzer(
                self.agent, self.batch, seed=self.seed, score_playouts=self.score_playouts, compiling=compiling
            )
            print_notes(analyzer.prepare(game.spec) for game in games)
            result = self._rate(games, analyzer, compiling)
        if self.json:
            print(json.dumps(result.summary(self.agent, self.mistakes)))
        else:
            _print_result(result, self.mistakes, self.brief)
            if self.out:
                print_written(counted(result.num_moves, "moves"), self.out)
        if result.interrupted:
            raise KeyboardInterrupt

    def _rate(self, games: list[Any], analyzer: Any, compiling: "Compiling") -> "_Result":
        """Rate the games. After Ctrl-C the result has the games so far; before the first game Ctrl-C is raised."""
        from tilewe_jax.agents import review
        from tilewe_jax.utils.files import replacing

        result = _Result()
        total = sum(len(game.actions) + 1 for game in games)
        with ExitStack() as stack:
            file = stack.enter_context(replacing(self.out)) if self.out else None
            shown = compiling.shown = stack.enter_context(progress(total, "positions", quiet=self.json))

            def follow(count: int) -> None:
                shown.update(count, result.note, "searching")

            analyzed = review.analyzed_games(analyzer, (game.request() for game in games), follow)
            try:
                for game, (request, analyses, search) in zip(games, analyzed, strict=True):
                    moves = review.rated_moves(request, analyses, search.game.has_hidden_information)
                    result.add(game, moves)
                    if file:
                        for rated in moves:
                            row = review.rated_answer(request, analyses[rated.turn], rated, game.name(rated.player))
                            file.write(json.dumps(row, allow_nan=False) + "\n")
            except KeyboardInterrupt:
                if not result.rated:
                    raise
                result.interrupted = True
        return result


class Compiling:
    """Context manager in which the progress shows that JAX compiles."""

    def __init__(self) -> None:
        self.shown: Progress | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if self.shown:
            self.shown.phase(COMPILING)
        yield
        if self.shown:
            self.shown.phase("searching")


class _Result:
    """The rated games, and the losses of each player."""

    def __init__(self) -> None:
        self.rated: list[tuple[Any, list[Any]]] = []
        """The games with their rated moves."""
        self.tallies: dict[str, Any] = {}
        self.interrupted = False

    def add(self, game: Any, moves: list[Any]) -> None:
        """Add a game."""
        from tilewe_jax.agents.review import Tally

        self.rated.append((game, moves))
        for rated in moves:
            self.tallies.setdefault(player_name(game, rated), Tally()).add(rated)

    @property
    def num_moves(self) -> int:
        """Number of moves that were rated."""
        return sum(len(moves) for _, moves in self.rated)

    def note(self) -> str:
        """Describe the mean losses so far in a few words."""
        means = {name: tally.loss / tally.rated for name, tally in self.tallies.items() if tally.rated}
        return ", ".join(["mean loss", *(f"{name} {mean:.3f}" for name, mean in means.items())]) if means else ""

    def largest(self, count: int) -> list[tuple[Any, Any, str | None]]:
        """Return the moves with the largest losses, with their games and the reasons why they are mistakes."""
        from tilewe_jax.interop.analysis import explained

        lost = ((game, rated) for game, moves in self.rated for rated in moves if rated.loss)
        return [
            (game, rated, explained(game.request(), rated.turn, rated.best_action)["reason"])
            for game, rated in nlargest(count, lost, key=lambda item: item[1].loss)
        ]

    def summary(self, agent: str, mistakes: int) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "agent": agent,
            "games": len(self.rated),
            "moves": self.num_moves,
            "players": [{"player": name, **tally.summary()} for name, tally in sorted(self.tallies.items())],
            "mistakes": [
                {
                    "game": game.number,
                    "turn": rated.turn,
                    "player": player_name(game, rated),
                    "move": rated.move,
                    "best_move": rated.best_move,
                    "loss": round(rated.loss, 6),
                    "points": rated.points,
                    "reason": reason,
                }
                for game, rated, reason in self.largest(mistakes)
            ],
            "interrupted": self.interrupted,
        }


def player_name(game: Any, rated: Any) -> str:
    """Return the name in the file of the player of a move, or the number of the seat."""
    return game.name(rated.player) or f"player {rated.player + 1}"


def check_search(batch: int, score_playouts: int, seed: int) -> None:
    """Check the options of an analysis."""
    check_positive(batch=batch)
    check_seed(seed)
    if not 0 <= score_playouts <= MAX_SCORE_PLAYOUTS:
        raise UsageError(f"--score-playouts must be 0 to {MAX_SCORE_PLAYOUTS:,}, not {score_playouts}")
    if batch > MAX_BATCH:
        raise UsageError(f"--batch must be at most {MAX_BATCH:,}, not {batch}")


def _print_result(result: _Result, mistakes: int, brief: bool) -> None:
    for game, moves in () if brief else result.rated:
        names = ", ".join(f"{seat} {name}" for seat, name in enumerate(map(game.name, range(len(game.players))), 1))
        columns = ("move", "seat", "played", "best", "visits", "prior", "before", "after", "loss")
        table = Rows(*columns, title=f"game {game.number}" + (f": {names}" if names else ""), style=box.SIMPLE)
        for rated in moves:
            table.add(
                str(rated.turn + 1),
                str(rated.player + 1),
                rated.move,
                rated.best_move if rated.best_action != rated.action else "=",
                f"{rated.visits:,}",
                f"{rated.prior:.3f}",
                f"{rated.value_before:.3f}",
                f"{rated.value_after:.3f}",
                _loss(rated.loss),
            )
        table.print(out)
    table = Rows("player", "moves", "best moves", "rated", "mean loss", "accuracy", wrap=("player",))
    for name, tally in sorted(result.tallies.items()):
        mean, accuracy = tally.summary()["mean_loss"], tally.summary()["accuracy"]
        shown = "-" if accuracy is None else f"{accuracy:.1f} %"
        table.add(name, f"{tally.moves:,}", f"{tally.best / tally.moves:.0%}", f"{tally.rated:,}", _loss(mean), shown)
    table.print(out)
    for game, rated, reason in result.largest(mistakes):
        out.print(
            f"game {game.number}, move {rated.turn + 1}: {player_name(game, rated)} played {rated.move} and lost"
            f" {rated.loss:.3f} against {rated.best_move}" + (f". {reason}" if reason else ""),
        )


def _loss(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.3f}"
