"""Notebook display of results, as a line or a table.

A printed result shows a line. A result at the end of a cell shows a table.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

ROWS = 60  # of a table; a longer one shows its first and its last


class Shown:
    """A result that has a line and a table of its own, however much it holds."""

    @property
    @abstractmethod
    def line(self) -> str:
        """Summary of the result in one line."""

    @abstractmethod
    def to_frame(self) -> Any:
        """Return it as a pandas data frame."""

    def table(self) -> Any:
        """Return the data frame that is shown: all of it, unless that is long."""
        return self.to_frame()

    def __repr__(self) -> str:
        """Return the type, the summary line and a pointer to `to_frame()`."""
        return f"{type(self).__name__}({self.line}; to_frame() has all of it)"

    def _repr_html_(self) -> str:
        """Show a table, in a notebook."""
        return html_of(self.table(), self.line)


def html_of(frame: Any, title: str, below: str = "") -> str:
    """Return a data frame as HTML with title and line below.

    Args:
        frame: A pandas data frame; rows beyond `ROWS` are elided.
        title: Text of the title.
        below: Text of the line; an empty text adds no line.

    """
    from html import escape  # its table of entities takes a millisecond, and only a notebook asks

    html: str = frame.to_html(
        float_format=lambda cell_value: f"{cell_value:,.6g}", border=0, max_rows=ROWS, na_rep=""
    )
    return f"<h4>{escape(title)}</h4>{html}" + (f"<p>{escape(below)}</p>" if below else "")
