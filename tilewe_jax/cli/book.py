"""The command that builds and shows opening books."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import (
    FailedError,
    GameOptions,
    Json,
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
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import counted


@dataclass(frozen=True, kw_only=True)
class Book(GameOptions, Trust, Json):
    """Extend an opening book by long searches of the positions that matter most, or show its moves.

    The book grows from the initial position along the best moves and the moves that lose little (drop-out expansion, Lincke
    2000), and is written after every batch of searches, so that Ctrl-C loses little and the same command continues. Agents
    play from it with the setting book=FILE, and from the book of the package with book=true. For example:

        tilewe-jax book openings.jsonl --game santorini --agent best:num_simulations=1000 --minutes 10
    """

    file: Annotated[Path, Option("FILE")]
    """File of the book; created if needed."""
    game: Annotated[str, Option("GAME", default="the game of the file")] = ""
    """Game of a new book: an id that `tilewe-jax games` lists, or module:factory for a custom game."""
    minutes: float | None = None
    """Extend the book for this time; by default only show it."""
    agent: Annotated[str, Option("AGENT")] = "best:num_simulations=1000"
    """Search that values the positions, with its settings."""
    plies: int = 4
    """The book contains positions with fewer moves than this, so it plays the first --plies moves."""
    full_plies: Annotated[int, Option(is_rare=True)] = 0
    """New positions with fewer moves than this keep all legal moves, which are expanded first."""
    ply_loss: Annotated[float, Option(is_rare=True)] = 0.02
    """Loss of value, between 0 and 1, that costs the same as one more move."""
    searches: Annotated[int, Option(is_rare=True)] = 4
    """Number of independent searches of a position, from which the errors of values are estimated."""
    batch: int = 8
    """Number of positions that are searched in one call."""
    seed: int = 0
    """Seed of the searches; the same options give the same book, however often it is interrupted."""
    after: Annotated[tuple[str, ...], Option("MOVE ...")] = ()
    """Show the moves of the position after these moves."""

    def run(self) -> None:
        check_positive(minutes=self.minutes)
        check_seed(self.seed)
        game = self._game()
        line = self._line(game)
        if self.minutes is not None:
            check_writable(self.file)
            self._extend(game, self.minutes)
        self._show(game, line)

    def _game(self) -> Any:
        """Return the game of the options, by default the game of the file."""
        if not self.file.exists() and (self.minutes is None or not self.game):
            raise UsageError(f"{self.file} does not exist; --game and --minutes create it")
        if self.game:
            return self.make()
        check_unused(self, "without --game, because the file names its game", "players", "set")
        from tilewe_jax.agents import book as books
        from tilewe_jax.registry import make_game

        try:
            return make_game(*books.game_of(self.file))
        except ValueError as error:
            raise FailedError(str(error)) from None

    def _extend(self, game: Any, minutes: float) -> None:
        from tilewe_jax.agents import book as books
        from tilewe_jax.arena import book_builder

        with usage_errors():
            settings = book_builder.BookSettings(
                self.plies, self.full_plies, self.ply_loss, self.searches, self.batch, self.seed
            )
            builder = book_builder.open_book(game, self.file, self.agent, settings)
        print_notes([builder])
        positions = builder.book.positions
        with progress(None, "positions", quiet=self.json) as shown:
            for _ in builder.extend(60 * minutes):
                books.write(self.file, builder.book)
                shown.update(len(positions), lambda: _so_far(builder), "searching")

    def _line(self, game: Any) -> tuple[list[int], Any]:
        """Return the actions of --after, and the position after them."""
        import jax

        position, actions = game.host(game.init(jax.random.key(0))), []
        for name in self.after:
            try:
                actions.append(position.action_of_name(name))
            except ValueError as error:
                raise UsageError(f"--after: {error}") from None
            position = position.after(actions[-1])
        return actions, position

    def _show(self, game: Any, line: tuple[list[int], Any]) -> None:
        """Print the moves of a position."""
        from tilewe_jax.agents import book as books

        try:
            book = books.load(game, str(self.file))
        except ValueError as error:
            raise FailedError(str(error)) from None
        actions, position = line
        moves = book.moves_after(actions, book.evaluated())
        rows = [
            {
                "move": position.action_name(move.action),
                "action": move.action,
                "value": list(move.value),
                "error": move.error,
                "visits": move.visits,
                "positions": book.num_below(move.next),
            }
            for move in moves
        ]
        if self.json:
            summary = {"game": game.id, "options": game.options, "agents": book.agents, "positions": len(book.positions)}
            print(json.dumps({**summary, "after": list(self.after), "moves": rows}))
            return
        number = counted(len(book.positions), "positions")
        if not rows:
            out.print(f"{title(game)}: the position is not in the book of {number}")
            return
        table = Rows("move", "value", "error", "visits", "positions", title=f"{title(game)}: {number}")
        player = position.current_player
        for row in rows:
            value = f"{row['value'][player]:.3f}"
            table.add(row["move"], value, f"{row['error']:.3f}", f"{row['visits']:,}", f"{row['positions']:,}")
        table.print(out)


def _so_far(builder: Any) -> str:
    """Describe the best line of a book."""
    book = builder.book
    evaluated = book.evaluated()
    root = next(key for key, position in book.positions.items() if not position.actions)
    best = evaluated[root][0]
    deepest = max(len(position.actions) for position in book.positions.values())
    return f"up to {counted(deepest, 'moves')}, first player {best.value[book.positions[root].player]:.3f}"
