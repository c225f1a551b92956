"""Draws charts as SVG text. Plain Python."""

import math
import re
import textwrap
from collections.abc import Sequence
from xml.sax.saxutils import escape

_STYLE = (
    "text{font:11px sans-serif;fill:#777;text-anchor:middle;dominant-baseline:central}"
    ".name{font-size:13px;fill:#444;text-anchor:start}"
)
_NAME_WIDTH = 7.2
"""Approximate width of a character of class ``name`` in pixels, for wrapping, which SVG leaves to the author."""
_LINE = 20
"""Height of a line of class ``name`` in pixels."""


def intervals(title: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """Draw a chart of numbers with error bars, a row for each, as SVG text.

    Args:
      title: text above the chart.
      rows: name, number, and half the width of its interval; at least one row. Long names are wrapped.
    """
    low = min(0.0, *(value - margin for _, value, margin in rows))
    high = max(0.0, *(value + margin for _, value, margin in rows))
    names = [_wrapped(name, 40) for name, *_ in rows]
    left = max(170, 32 + math.ceil(_NAME_WIDTH * max(len(line) for lines in names for line in lines)))
    plot = 420
    width = left + plot + 110
    heading = textwrap.wrap(title, int((width - 28) / _NAME_WIDTH))
    top = 18 + _LINE * len(heading)
    bottom = top + sum(8 + _LINE * len(lines) for lines in names) + 6

    def at(value: float) -> float:
        return round(left + plot * (value - low) / ((high - low) or 1.0), 1)

    parts = [_svg(width, bottom + 34)]
    parts += [f'<text class="name" x="14" y="{22 + _LINE * row}">{escape(line)}</text>' for row, line in enumerate(heading)]
    power = 10.0 ** math.floor(math.log10(max(high - low, 1e-6) / 2))
    grid_step = next(power * round_number for round_number in (1, 2, 5, 10) if (high - low) / (power * round_number) <= 6)
    for line in range(math.ceil(low / grid_step), math.floor(high / grid_step) + 1):
        x = at(line * grid_step)
        parts.append(f'<path d="M{x} {top}V{bottom}" stroke="{"#999" if line == 0 else "#ddd"}"/>')
        parts.append(f'<text x="{x}" y="{bottom + 14}">{line * grid_step:g}</text>')
    y = top + 8.0
    for lines, (_, value, margin) in zip(names, rows, strict=True):
        for row, text in enumerate(lines):
            parts.append(f'<text class="name" x="14" y="{y + _LINE * (row + 0.5):g}">{escape(text)}</text>')
        middle = y + _LINE * len(lines) / 2
        y += 8 + _LINE * len(lines)
        ends = f"M{at(value - margin)} {middle - 5:g}v10M{at(value + margin)} {middle - 5:g}v10"
        bar = f"M{at(value - margin)} {middle:g}H{at(value + margin)}{ends}"
        parts.append(f'<path d="{bar}" stroke="#3f6fb5" stroke-width="1.5"/>')
        parts.append(f'<circle cx="{at(value)}" cy="{middle:g}" r="3" fill="#3f6fb5"/>')
        parts.append(f'<text class="name" x="{left + plot + 14}" y="{middle:g}">{value:.0f} ± {margin:.0f}</text>')
    return "".join(parts) + "</svg>\n"


def _wrapped(name: str, width: int) -> list[str]:
    """Wrap the name of an agent, after punctuation if possible."""
    lines = [""]
    for word in re.findall(r"[^,:;/ ]*[,:;/ ]*", name):
        for part in [word[i : i + width] for i in range(0, len(word), width)]:
            if len(lines[-1]) + len(part) > width:
                lines.append("")
            lines[-1] += part
    return lines


def _svg(width: int, height: int) -> str:
    """Return the opening tag of a picture, with its style and a white ground."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<style>{_STYLE}</style><rect width="{width}" height="{height}" fill="#fff"/>'
    )
