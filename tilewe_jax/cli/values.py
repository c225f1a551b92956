"""Command that tests values of positions against the results of recorded games."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich import box

from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import (
    Agents,
    FailedError,
    GameOptions,
    Json,
    Trust,
    UsageError,
    check_positive,
    check_seed,
    out,
    print_notes,
    progress,
    title,
    usage_errors,
)
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.progress import COMPILING
from tilewe_jax.utils.words import counted


@dataclass(frozen=True)
class ValueTest(GameOptions, Trust, Json):
    """Test how well values of positions predict the results of recorded games, by ply.

    All sources are compared on the same positions. Values and results are those of the player to move: 1 for a win. Intervals
    are 95 %, with games as observations. An example with an engine:

        tilewe-jax value-test --game duo_official --games games.jsonl --agents best:num_simulations=64
        'gtp:command="pentobi-gtp -g duo -l 5 --nobook --noresign -q"'
    """

    games: Annotated[tuple[Path, ...], Option("FILE ...")] = ()
    """Files of finished games, records or .blksgf, or folders of such files."""
    network: Annotated[tuple[str, ...] | None, Option("NETWORK ...", default="the network of best")] = None
    """Sources without search: shipped weights by name, files, folders of runs, or agents whose evaluator is used alone, such as
    puct:num_playouts=16 for playouts. NAME=... names one. Without a value, no network is tested."""
    agents: Agents = ()
    """Sources with search: agents such as best:num_simulations=64, and GTP engines with reg_genmove and move_values."""
    player: Annotated[str | None, Option("NAME")] = None
    """Test only positions before the moves of the player with this name."""
    seat: int | None = None
    """Test only positions before the moves of this seat, from 1."""
    positions: int | None = None
    """Maximum number of positions; of more, a random sample is tested."""
    plies: int = 4
    """Number of plies of a row of the table."""
    batch: int = 64
    """Number of positions searched in parallel."""
    seed: int = 0
    """Seed of the random numbers."""
    move_seconds: Annotated[float, Option(is_rare=True)] = 600.0
    """Limit of the seconds per position of a GTP engine."""

    def run(self) -> None:
        check_positive(
            positions=self.positions, plies=self.plies, batch=self.batch, move_seconds=self.move_seconds, seat=self.seat
        )
        check_seed(self.seed)
        if not self.games:
            raise UsageError("--games is needed, files of finished games")
        from tilewe_jax.arena import values
        from tilewe_jax.replay import recorded

        game = self.make()
        if self.seat is not None and self.seat > game.num_players:
            raise UsageError(f"--seat must be 1 to {game.num_players} in {title(game)}, not {self.seat}")
        sources = self._sources(game)
        games = recorded.finished_games(game, *self.games)
        with usage_errors():
            seat = None if self.seat is None else self.seat - 1
            sample = values.sample(game, games, self.player, seat, self.positions, self.seed)
            predicted = {source.name: self._predicted(source, sample) for source in sources}
        rows = values.table(sample.game, sample.ply, sample.actual, predicted, self.plies)
        if self.json:
            figures = {"game": game.id, "options": dict(game.options), "player": self.player, "seat": self.seat}
            print(json.dumps({**figures, "rows": [row.json() for row in rows]}))
        else:
            _print(title(game), rows)

    def _sources(self, game: Any) -> list[Any]:
        """Create the sources. Raises ``UsageError`` for unknown sources, no sources, and equal names."""
        from tilewe_jax.arena import values

        with usage_errors():
            networks = self.network
            if networks is None:
                networks = tuple(filter(None, [values.default_network(game)]))
            sources = [values.source_without_search(game, text) for text in networks]
            sources += [values.source(game, text) for text in self.agents]
        if not sources:
            raise UsageError(f"there are no values to test; name sources by --network or --agents ({title(game)})")
        name, count = Counter(source.name for source in sources).most_common(1)[0]
        if count > 1:
            raise UsageError(f"{count} sources have the name {name}; name them by NAME=...")
        print_notes(source.agent for source in sources)
        return sources

    def _predicted(self, source: Any, sample: Any) -> Any:
        from tilewe_jax.agents import ForfeitError

        with progress(len(sample.ply), "positions", COMPILING, quiet=self.json) as shown:

            def follow(done: int) -> None:
                shown.update(done, phase=source.name)

            try:
                return source.predict(sample, min(self.batch, len(sample.ply)), self.seed, self.move_seconds, follow)
            except ForfeitError as error:
                raise FailedError(f"{source.name}: {error}") from None


def _print(title: str, rows: list[Any]) -> None:
    """Print the table and the meaning of its columns."""
    several = any(row.difference is not None for row in rows)
    columns = ["plies", "values of", "positions", "mean", "result", "correlation", "Brier", "constant"]
    table = Rows(*columns, *(["difference"] if several else []), wrap=("values of",), title=title, style=box.SIMPLE)
    for row in rows:
        cells = [f"{row.positions:,}", f"{row.predicted:.2f}", f"{row.actual:.2f}"]
        cells += [_figure(row.correlation, row.correlation_ci95, 2), _figure(row.brier, row.brier_ci95), f"{row.constant:.3f}"]
        cells += [_figure(row.difference, row.difference_ci95)] if several else []
        table.add(f"{row.first_ply}-{row.last_ply}", row.source, *cells)
    table.print(out)
    games = max(row.games for row in rows)
    of_first = f"; difference: Brier score minus that of {rows[0].source}" if several else ""
    out.print(f"{counted(games, 'games')}; Brier score: 0 at best; constant: that of the mean result{of_first}")


def _figure(value: float | None, ci95: float | None, digits: int = 3) -> str:
    """Format a number with its interval; a dash for an undefined one."""
    if value is None:
        return "-"
    return f"{value:.{digits}f}" + ("" if ci95 is None else f" ± {ci95:.{digits}f}")
