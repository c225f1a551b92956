"""Plots with Matplotlib, from the extra ``plots``."""

import io
from typing import Any

from tilewe_jax.utils.extras import optional_import


def new_figure(width: float, height: float) -> Any:
    """Create a figure, with its size in inches. Raises ``MissingExtraError`` without the extra ``plots``."""
    return optional_import("matplotlib.figure", "plots").Figure(figsize=(width, height), layout="constrained")


def svg(figure: Any) -> str:
    """Convert a figure to SVG. Dollar signs, as in names of agents, do not start mathematical notation."""
    for text in figure.findobj(lambda artist: hasattr(artist, "set_parse_math")):
        text.set_parse_math(False)
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()
