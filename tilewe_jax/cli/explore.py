"""Command that counts the moves of recorded games by position."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import FailedError, Json, UsageError, check_positive, out, print_skipped, title
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import counted


@dataclass(frozen=True)
class Explore(Json):
    """Show the moves that recorded games played from a position, and how these games ended for the player who moved.

    Symmetric positions count as one position, and so do positions that different orders of moves reach. A result is a win, a
    draw or a loss; points and lead (over the best other player) are means at the end of the games.
    """

    files: Annotated[tuple[Path, ...], Option("FILE ...")]
    """Files of finished games of one kind: records or .blksgf files."""
    after: Annotated[tuple[str, ...], Option("MOVE ...")] = ()
    """Show the moves of the position after these moves."""
    positions: Annotated[int, Option(is_rare=True)] = 1_000_000
    """Maximum number of positions in memory, about 0.6 kB each; more positions are not counted."""

    def run(self) -> None:
        check_positive(positions=self.positions)
        if not self.files:
            raise UsageError("FILE is needed, a file of games")
        from tilewe_jax import explorer
        from tilewe_jax.replay import recorded

        host, index = None, explorer.Index(self.positions, len(self.after) + 1)
        for path in self.files:
            content = recorded.read(path)
            print_skipped(path, content, variations=False)
            kind, games = content.of_one_kind(path)
            host = host or kind
            if (kind.id, kind.options) != (host.id, host.options):
                raise FailedError(f"{path}: games of {title(kind)}, but {self.files[0]} has games of {title(host)}")
            for game in games:
                if game.is_finished:
                    try:
                        index.add(host, game.deal, game.actions, game.scores, game.returns)
                    except ValueError as error:
                        raise FailedError(f"{path}: {error}") from None
        assert host
        rows = explorer.table(host, self._position(host), index)
        if self.json:
            print(json.dumps({"game": host.id, "options": host.options, "games": index.num_games, "moves": rows}))
        else:
            _print_table(rows, f"{title(host)}: {counted(index.num_games, 'games')}")

    def _position(self, host: Any) -> Any:
        """The position after the moves of --after."""
        try:
            position = host.init_from_deal(None)
        except ValueError as error:
            raise FailedError(f"the position must have a fixed start: {error}") from None
        for name in self.after:
            try:
                position = position.after(position.action_of_name(name))
            except ValueError as error:
                raise UsageError(f"--after: {error}") from None
        return position


def _print_table(rows: list[dict[str, Any]], name: str) -> None:
    if not rows:
        out.print(f"{name}: no game reached this position")
        return
    has_points = "points" in rows[0]
    table = Rows("move", "games", "wins", "draws", "losses", *(("points", "lead") if has_points else ()), title=name)
    for row in rows:
        counts = [f"{row[column]:,}" for column in ("count", "wins", "draws", "losses")]
        table.add(row["name"], *counts, *([f"{row['points']:.1f}", f"{row['lead']:+.1f}"] if has_points else []))
    table.print(out)
