"""Tables for a terminal: cells are folded to its width, never cut."""

from __future__ import annotations

import io

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from tco.outputs.table import Table, plain


def drawn(table: Table, width: int) -> str:
    """Return a table folded to some width."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, no_color=True, highlight=False)
    for line in (*([table.title] if table.title else []), *table.above):
        console.print(plain(line), markup=False)
    if table.columns:
        grid = Grid(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for position, name in enumerate(table.columns):
            grid.add_column(Text(name), justify="left" if table.side(position) == "left" else "right", overflow="fold")
        for row in table.rows:
            grid.add_row(*(Text(plain(cell)) for cell in row))
        console.print(grid)
    for line in table.below:
        console.print(plain(line), markup=False)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"
