"""The command ``render``: pictures, animations and pages of recorded games."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import (
    FailedError,
    GamesFile,
    UsageError,
    check_move,
    check_positive,
    check_unused,
    chosen_game,
    needed_file,
    print_written,
    progress,
)

_SUFFIXES = {".svg": "svg", ".gif": "gif", ".html": "html", ".htm": "html"}
"""Formats by the suffix of the file."""
_GRID = 100
"""Maximum number of games of a grid."""
Format = Literal["svg", "gif", "animated-svg", "html", "grid"]


@dataclass(frozen=True)
class Render(GamesFile):
    """Draw recorded games: a position, an animation, a page to step through a game, or a grid of many games.

    The format follows from the name of the file to write, .svg, .gif or .html, unless --format gives it: svg is one position;
    gif and animated-svg play the whole game; html is a page that opens without a server; grid shows the final positions of up
    to 100 games as SVG.
    """

    out: Path | None = None
    """File to write (required)."""
    format: Annotated[Format | None, Option("FORMAT")] = None
    """svg, gif, animated-svg, html or grid; by default the format of the name of --out."""
    number: int = 1
    """Number of the game in the file, from 1; of the first game of a grid."""
    move: int | None = None
    """svg: draw the position after this number of moves, 0 for the start, instead of the last one; html: start there."""
    theme: Annotated[Literal["light", "dark"] | None, Option("THEME")] = None
    """Colours, light or dark; by default light, and on a page the setting of the reader's system."""
    numbers: bool = False
    """Show the number of the move on each piece or tile."""
    analyses: Path | None = None
    """html: show the analyses of this file, as --out of `rate` writes it: candidates, and expected outcomes as a graph."""

    def run(self) -> None:
        from tilewe_jax.records import RecordError
        from tilewe_jax.utils.files import replacing

        check_positive(number=self.number)
        path = needed_file(self.out)
        kind = self.format or _SUFFIXES.get(path.suffix.lower())
        if kind is None:
            raise UsageError(f"--out {path} does not end with {', '.join(_SUFFIXES)}; give its --format")
        if kind in ("gif", "animated-svg", "grid"):
            check_unused(self, f"with {kind}", "move")
        if kind != "html":
            check_unused(self, f"with {kind}", "analyses")
        content = self.read()
        games = content.games
        game = chosen_game(games, self.number, self.file)
        check_move(self.move, len(game.actions), self.number)
        self.print_skipped(content)
        try:
            with progress(None, "", "drawing"):
                drawn = self._grid(games) if kind == "grid" else self._game(kind, game)
        except RecordError as error:
            raise RecordError(f"{self.file}: game {self.number}: {error}") from None
        with replacing(path, "wb") as file:
            file.write(drawn if isinstance(drawn, bytes) else drawn.encode())
        print_written(kind, path)

    def _grid(self, games: list[Any]) -> str:
        """Draw the final positions of many games."""
        from tilewe_jax.draw.pictures import draw_grid
        from tilewe_jax.records import RecordError
        from tilewe_jax.replay.animation import frames_of

        views, looks, captions = [], [], []
        for number, game in enumerate(games[self.number - 1 : self.number - 1 + _GRID], self.number):
            try:
                replay = game.replay()
            except RecordError as error:
                raise RecordError(f"{self.file}: game {number}: {error}") from None
            views.append(replay["frames"][-1])
            looks.append(frames_of(replay, theme=self.theme or "light", numbers=self.numbers)[-1])
            captions.append(f"game {number}: {' to '.join(map(str, views[-1]['scores']))}")
        return draw_grid(views, looks, captions=captions)

    def _game(self, kind: str, game: Any) -> str | bytes:
        """Draw a picture, an animation or a page of one game."""
        from tilewe_jax.draw.pictures import draw
        from tilewe_jax.replay import animation
        from tilewe_jax.replay.frames import caption_of
        from tilewe_jax.replay.page import page

        replay = game.replay()
        if self.analyses:
            replay["analyses"] = self._analyses(game)
        theme = self.theme or "light"
        if kind == "svg":
            move = len(game.actions) if self.move is None else self.move
            look = animation.frames_of(replay, theme=theme, numbers=self.numbers)[move]
            return draw(replay["frames"][move], look, names=replay["names"], caption=caption_of(replay, move))
        if kind == "animated-svg":
            return animation.animated_svg(replay, theme=theme, numbers=self.numbers)
        if kind == "gif":
            try:
                return animation.gif(replay, theme=theme, numbers=self.numbers)
            except ValueError as error:
                raise FailedError(str(error)) from None
        title = f"{replay['game']}: game {self.number} of {self.file.name}"
        return page(replay, title, theme=self.theme, move=self.move or 0, numbers=self.numbers)

    def _analyses(self, game: Any) -> list[dict[str, Any] | None]:
        """Read the analyses of a game. Raises ``FailedError`` for an invalid file."""
        from tilewe_jax.replay.frames import analyses_of_answers
        from tilewe_jax.utils.files import JSON_LIMIT, parse_json, read_input

        assert self.analyses
        answers = []
        try:
            for number, line in enumerate(read_input(self.analyses, JSON_LIMIT).splitlines(), 1):
                answer = parse_json(line)
                if not isinstance(answer, dict):
                    raise ValueError(f"line {number} is not a JSON object")
                if answer.get("id") == self.number:
                    answers.append(answer)
            if not answers:
                raise ValueError(f"analyses of game {self.number} are missing")
            return analyses_of_answers(game.game, game.deal, game.actions, answers)
        except ValueError as error:
            raise FailedError(f"{self.analyses}: {error}") from None
