"""The command ``render``: pictures, animations and pages of recorded games."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from tilewe_jax.cli.common import (
    FailedError,
    Flag,
    Imports,
    OptionalFile,
    OptionalInt,
    UsageError,
    check_positive,
    check_unused,
    check_writable,
    chosen_game,
    err,
    out,
    print_unread,
    progress,
)

_SUFFIXES = {".svg": "svg", ".gif": "gif", ".html": "html", ".htm": "html"}
"""The format of a file by the end of its name."""
_GRID = 100
"""Maximum number of games of a grid."""
Format = Literal["svg", "gif", "animated-svg", "html", "grid"]


@dataclass(frozen=True)
class Render(Imports):
    """Draw recorded games: a position, a moving picture, a page to step through a game, or many games side by side.

    The format follows from the name of the file to write, .svg, .gif or .html, or is given: svg is one position; gif and
    animated-svg play the whole game; html is one page that opens without a server; grid is the ends of up to 100 games as SVG.
    """

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """A file of games: records, as --out of `rollout` and `match` writes them, or a .blksgf file."""
    out: Annotated[Path, arg(metavar="FILE")]
    """File to write."""
    format: Annotated[Format | None, arg(metavar="FORMAT", help_behavior_hint="")] = None
    """svg, gif, animated-svg, html or grid; by default what the name of --out says."""
    number: int = 1
    """Number of the game in the file, from 1; of a grid, of the first game."""
    variations: Flag = False
    """Take each variation of a .blksgf file for a game, instead of the main lines alone."""
    move: OptionalInt = None
    """svg: draw the position after so many moves, 0 for the start, instead of the last one; html: begin there."""
    theme: Annotated[Literal["light", "dark"] | None, arg(metavar="THEME", help_behavior_hint="")] = None
    """Colours, light or dark; by default light, and on a page as the reader's system has it."""
    numbers: Flag = False
    """Show the number of its move on each piece or tile."""
    analyses: OptionalFile = None
    """html: show the analyses of this file, as --out of `rate` writes it: candidates, and expected outcomes as a graph."""

    def run(self) -> None:
        from tilewe_jax.records import RecordError
        from tilewe_jax.replay import recorded
        from tilewe_jax.utils.extras import MissingExtraError
        from tilewe_jax.utils.files import replacing

        check_positive(number=self.number)
        check_writable(self.out)
        kind = self.format or _SUFFIXES.get(self.out.suffix.lower())
        if kind is None:
            raise UsageError(f"--out {self.out} ends with none of {', '.join(_SUFFIXES)}, so --format must say what it is")
        if kind in ("gif", "animated-svg", "grid"):
            check_unused(self, f"with {kind}", "move")
        if kind != "html":
            check_unused(self, f"with {kind}", "analyses")
        content = recorded.read(self.file, self.variations)
        games = content.games
        game = chosen_game(games, self.number, self.file)
        moves = len(game.actions)
        if self.move is not None and not 0 <= self.move <= moves:
            raise UsageError(f"--move must be 0 to {moves}, the moves of game {self.number}, not {self.move}")
        print_unread(self.file, content, self.variations)
        try:
            with progress(None, "", "drawing"):
                drawn = self._grid(games) if kind == "grid" else self._game(kind, game)
        except MissingExtraError as error:
            raise FailedError(str(error)) from None
        except RecordError as error:
            raise RecordError(f"{self.file}: game {self.number}: {error}") from None
        with replacing(self.out, "wb") as file:
            file.write(drawn if isinstance(drawn, bytes) else drawn.encode())
        (err if str(self.out) == "/dev/stdout" else out).print(f"{kind} written to {self.out}")

    def _grid(self, games: list[Any]) -> str:
        """The ends of many games."""
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
        """A picture, an animation or a page of one game."""
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
        """The analyses of a game in the file of them. Raises ``FailedError`` where it is damaged."""
        from tilewe_jax.replay.frames import analyses_of_answers
        from tilewe_jax.utils.files import JSON_LIMIT, parse_json, read_input

        assert self.analyses
        answers = []
        try:
            for number, line in enumerate(read_input(self.analyses, JSON_LIMIT).splitlines(), 1):
                answer = parse_json(line)
                if not isinstance(answer, dict):
                    raise ValueError(f"line {number} is no JSON object")
                if answer.get("id") == self.number:
                    answers.append(answer)
            if not answers:
                raise ValueError(f"it has no analyses of game {self.number}")
            return analyses_of_answers(game.game, game.deal, game.actions, answers)
        except ValueError as error:
            raise FailedError(f"{self.analyses}: {error}") from None
