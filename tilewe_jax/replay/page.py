"""A recorded game as a self-contained HTML page, and the parts of it for other pages. Plain Python, without JAX."""

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
    """Return a page with one game, which opens from a file without a server.

    Args:
      replay: the game, see ``tilewe_jax.replay.frames``.
      title: the title of the page.
      theme: "light" or "dark"; by default the theme of the reader's system.
      move: the number of moves before the position that is shown first.
      numbers: whether pieces initially show the number of their move.
    """
    attributes = {"move": str(move), "numbers": "on" if numbers else "off"}
    return _PAGE.format(
        theme=f' data-theme="{theme}"' if theme else "",
        title=html.escape(printable(title)),
        game=game_element(replay, attributes),
        script=script_element(),
    )


def game_element(replay: Mapping[str, Any], attributes: Mapping[str, str] | None = None) -> str:
    """Return the element ``<tilewe-game>`` with a game. The page must contain ``script_element`` once."""
    given = "".join(f' {name}="{html.escape(value)}"' for name, value in (attributes or {}).items())
    # Escape "<", because names could contain the end tag of the script element.
    data = json.dumps(replay, separators=(",", ":")).replace("<", "\\u003c")
    return f'<tilewe-game{given}><script type="application/json">{data}</script></tilewe-game>'


def script_element() -> str:
    """Return the program of the element, inline, because browsers do not load modules from files."""
    return f'<script type="module">\n{script()}</script>'


def script() -> str:
    """Return the text of ``static/tilewe-game.js``."""
    return files("tilewe_jax.draw").joinpath("static", "tilewe-game.js").read_text("utf-8")
