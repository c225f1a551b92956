"""A recorded game as one HTML page that needs nothing else, and the parts of it for other pages. Plain Python, without JAX."""

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from tilewe_jax.draw.shapes import printable

_PAGE = """<!doctype html>
<html lang="en"{theme}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
html {{ background: var(--tilewe-paper) }}
body {{ margin: 0; padding: 8px 6px 24px }}
</style>
</head>
<body>
{game}
{script}
</body>
</html>
"""


def page(replay: Mapping[str, Any], title: str, *, theme: str | None = None, move: int = 0, numbers: bool = False) -> str:
    """A page with one game, which opens from a file without a server.

    Args:
      replay: the game, see ``tilewe_jax.replay.frames``.
      title: the title of the page.
      theme: "light" or "dark"; by default as the reader's system has it.
      move: the number of moves after which the game is shown first.
      numbers: whether pieces show the number of their move at first.
    """
    attributes = {"move": str(move), "numbers": "on" if numbers else "off"}
    return _PAGE.format(
        theme=f' data-theme="{theme}"' if theme else "",
        title=html.escape(printable(title)),
        game=game_element(replay, attributes),
        script=script_element(),
    )


def game_element(replay: Mapping[str, Any], attributes: Mapping[str, str] | None = None) -> str:
    """The element ``<tilewe-game>`` with a game in it. The page needs ``script_element`` too, once."""
    given = "".join(f' {name}="{html.escape(value)}"' for name, value in (attributes or {}).items())
    # In a script element nothing but its end tag is special, so that no "<" of a name may stay.
    data = json.dumps(replay, separators=(",", ":")).replace("<", "\\u003c")
    return f'<tilewe-game{given}><script type="application/json">{data}</script></tilewe-game>'


def script_element() -> str:
    """The program of the element, inline: browsers load no modules from files."""
    return f'<script type="module">\n{script()}</script>'


def script() -> str:
    """The text of ``static/tilewe-game.js``."""
    return files("tilewe_jax.draw").joinpath("static", "tilewe-game.js").read_text("utf-8")
