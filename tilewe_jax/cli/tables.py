"""Tables that never cut their cells, however narrow the terminal is."""

from collections.abc import Collection, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tilewe_jax.cli.streams import plain

_FOLDED = 12
"""Width to which a column of text may shrink, unless a word of it, such as an agent, is longer."""


class Rows:
    """A table whose columns of text wrap, and whose columns of numbers and ids do not.

    If the console is too narrow for it, each cell is printed on its own line.

    Args:
        columns: the headers.
        wrap: the headers of the columns of text.
        title: the title above the table.
        style: the lines around the cells.
    """

    def __init__(self, *columns: str, wrap: Collection[str] = (), title: str = "", style: box.Box = box.HEAVY_HEAD) -> None:
        self._columns, self._wrap, self._title, self._style = columns, wrap, title, style
        self._rows: list[tuple[str, ...]] = []

    def add(self, *cells: str) -> None:
        """Add a row."""
        self._rows.append(cells)

    def print(self, console: Console) -> None:
        """Print the table."""
        rows = [tuple(plain(cell, console.encoding) for cell in row) for row in self._rows]
        # Headers in one line, or with one word per line.
        for headers in (self._columns, tuple(header.replace(" ", "\n") for header in self._columns)):
            if self._width(headers, rows) <= console.width:
                console.print(self._table(headers, rows), soft_wrap=False)
                return
        for line in self._lines(rows):
            console.print(line)

    def _width(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
        """Return the minimum width of the table."""
        width = 1
        for index, header in enumerate(headers):
            cells = [*header.split("\n"), *(row[index] for row in rows)]
            longest = max(Text(cell).cell_len for cell in cells)
            if self._columns[index] in self._wrap:
                longest = min(longest, max(_FOLDED, *(Text(word).cell_len for cell in cells for word in cell.split())))
            width += 3 + longest
        return width

    def _table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
        table = Table(title=Text(self._title) if self._title else None, box=self._style)
        for name, header in zip(self._columns, headers, strict=True):
            table.add_column(Text(header), overflow="fold", no_wrap=name not in self._wrap)
        for row in rows:
            table.add_row(*map(Text, row))
        return table

    def _lines(self, rows: Sequence[Sequence[str]]) -> list[str]:
        """Return a line for the first cell of each row, and below it lines for the others with their headers."""
        lines = [self._title] if self._title else []
        for first, *others in rows:
            lines.append(first if first else "-")
            lines += [f"  {header}: {cell}" for header, cell in zip(self._columns[1:], others, strict=True)]
        return lines
