"""Notebook display of results, as a line or a table.

A printed result shows a line. A result at the end of a cell shows a table.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

LARGEST_ROW_COUNT = 60  # a longer table shows its first and its last rows


class Shown:
    """Base class of results that notebooks display as a line and a table."""

    @property
    @abstractmethod
    def line(self) -> str:
        """Summary of the result in one line."""

    @abstractmethod
    def to_frame(self) -> Any:
        """Return the whole result as a pandas data frame."""

    def table(self) -> Any:
        """Return the data frame to display; a subclass may shorten it."""
        return self.to_frame()

    def __repr__(self) -> str:
        """Return the type, the summary line and a pointer to `to_frame()`."""
        return f"{type(self).__name__}({self.line}; to_frame() has all of it)"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook displays."""
        return html_of(self.table(), self.line)


def html_of(frame: Any, title: str, below: str = "") -> str:
    """Return a data frame as HTML with title and line below.

    Args:
        frame: A pandas data frame; rows beyond `LARGEST_ROW_COUNT` are left out.
        title: Text of the title.
        below: Text of the line; an empty text adds no line.

    """
    from html import escape  # a slow import that only notebooks need

    html: str = frame.to_html(
        float_format=lambda cell_value: f"{cell_value:,.6g}",
        border=0,
        max_rows=LARGEST_ROW_COUNT,
        na_rep="",
    )
    return f"<h4>{escape(title)}</h4>{html}" + (f"<p>{escape(below)}</p>" if below else "")
