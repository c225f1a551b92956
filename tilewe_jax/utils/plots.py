"""Plots with Matplotlib, from the extra ``plots``."""

import io
from typing import Any

from tilewe_jax.utils.extras import optional_import


def new_figure(width: float, height: float) -> Any:
    """An empty figure, of a size in inches. Raises ``MissingExtraError`` without the extra ``plots``."""
    return optional_import("matplotlib.figure", "plots").Figure(figsize=(width, height), layout="constrained")


def svg(figure: Any) -> str:
    """A figure as the text of an SVG file; texts are shown as they are, since names of agents may have dollar signs."""
    for text in figure.findobj(lambda artist: hasattr(artist, "set_parse_math")):
        text.set_parse_math(False)
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()
