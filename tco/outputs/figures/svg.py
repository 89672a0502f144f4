"""A drawing that grows downwards: marks and words in the one style, and the document they make."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from tco.foundation.streams import plain
from tco.outputs.figures.style import BODY, CLASS, FONT, SMALL, TITLE, attributes
from tco.outputs.figures.words import width_of, wrapped

MARGIN = 8.0
TAIL = 6.0  # pixels before words in small
LEADING = 1.35  # of the size, from a line to the next
SHAPES = ("circle", "square", "diamond", "triangle")
Point = tuple[float, float]


def place(value: float) -> str:
    """Return a place in hundredths of a pixel, in few characters."""
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-0", "0" if abs(value) < 0.005 else "-0")


def said(words: str) -> str:
    """Return words as an XML document may hold them."""
    return escape(plain(words), quote=False)


class Drawing:
    """The marks of a figure, drawn for a width; `bottom` is where what comes next begins."""

    def __init__(self, title: str, description: str, width: float) -> None:
        self.title, self.description, self.width = title, description, width
        self.left, self.right = MARGIN, width - MARGIN
        self.bottom = MARGIN
        self.marks: list[str] = []
        self.paragraph(title, "ink", TITLE, bold=True)

    # ---------------------------------------------------------------- marks
    def add(self, element: str, look: str, attributes_of: str, tip: str = "") -> None:
        """Add a mark; `tip` is what is said of it where one points at it."""
        inside = f"><title>{said(tip)}</title></{element}>" if tip else "/>"
        self.marks.append(f"<{element}{attributes(look)}{attributes_of}{inside}")

    def rectangle(self, x: float, y: float, width: float, height: float, look: str, tip: str = "") -> None:
        """Add a rectangle by its upper left corner."""
        self.add(
            "rect",
            look,
            f' shape-rendering="crispEdges" x="{place(x)}" y="{place(y)}" width="{place(max(width, 0.0))}" height="{place(max(height, 0.0))}"',
            tip,
        )

    def line(self, start: Point, end: Point, look: str) -> None:
        """Add a straight line."""
        self.add("line", look, f' x1="{place(start[0])}" y1="{place(start[1])}" x2="{place(end[0])}" y2="{place(end[1])}"')

    def path(self, points: Iterable[Point], look: str, tip: str = "") -> None:
        """Add a line through some points, or with a look that is filled the area within them."""
        self.add("polyline", look, f' points="{" ".join(f"{place(x)},{place(y)}" for x, y in points)}"', tip)

    def mark(self, at: Point, radius: float, look: str, tip: str = "", shape: str = "circle") -> None:
        """Add a point in one of the shapes, or a short line."""
        x, y = at
        if shape == "line":
            self.line((x - radius, y), (x + radius, y), look)
            return
        if shape == "circle":
            self.add("circle", look, f' cx="{place(x)}" cy="{place(y)}" r="{place(radius)}"', tip)
            return
        turns = {"square": (0.125, 0.375, 0.625, 0.875), "diamond": (0.0, 0.25, 0.5, 0.75), "triangle": (0.25, 0.5833, 0.9167)}[shape]
        reach = radius * 1.3
        corners = [(x + reach * math.cos(turn * math.tau), y - reach * math.sin(turn * math.tau)) for turn in turns]
        self.add("polygon", look, f' points="{" ".join(f"{place(one)},{place(other)}" for one, other in corners)}"', tip)

    def text(
        self,
        at: Point,
        words: str,
        look: str = "ink",
        size: float = BODY,
        anchor: str = "start",
        bold: bool = False,
        halo: bool = False,
        tail: str = "",
    ) -> None:
        """Add a line of words, its base line at a place; a halo keeps what lies below from running into it, a tail follows in small."""
        where = f' x="{place(at[0])}" y="{place(at[1])}" font-size="{place(size)}"'
        where += f' text-anchor="{anchor}"' if anchor != "start" else ""
        where += ' font-weight="bold"' if bold else ""
        line, more = said(words), said(tail)
        small = f' dx="{TAIL}" font-size="{SMALL}" font-weight="normal"'
        if halo:
            behind = f"<tspan{small}>{more}</tspan>" if tail else ""
            self.marks.append(f'<text aria-hidden="true"{attributes("halo")}{where}>{line}{behind}</text>')
        behind = f"<tspan{attributes('muted')}{small}>{more}</tspan>" if tail else ""
        self.marks.append(f"<text{attributes(look)}{where}>{line}{behind}</text>")

    # ---------------------------------------------------------------- what stands above and below the marks
    def paragraph(self, words: str, look: str = "muted", size: float = SMALL, bold: bool = False) -> None:
        """Add words below all that is there, broken to the width."""
        for line in wrapped(words, self.right - self.left, size, bold):
            self.text((self.left, self.bottom + size), line, look, size, bold=bold)
            self.bottom += size * LEADING

    def legend(self, entries: Sequence[tuple[str, str]], shapes: Sequence[str] = ("square",)) -> None:
        """Add what looks mean: each with its words and in its shape, in as many rows as they need."""
        x, row, lead = self.left, BODY * 1.5, BODY + 4
        self.bottom += 4
        for at, (look, words) in enumerate(entries):
            lines = wrapped(words, self.right - self.left - lead, BODY)
            wide = lead + max(width_of(line, BODY) for line in lines)
            if x + wide > self.right and x > self.left:
                x, self.bottom = self.left, self.bottom + row
            self.mark((x + BODY / 2, self.bottom + BODY / 2 + 1), BODY / 2 - 1, look, shape=shapes[at % len(shapes)])
            for line in lines[:-1]:
                self.text((x + lead, self.bottom + BODY - 1), line)
                self.bottom += BODY * LEADING
            self.text((x + lead, self.bottom + BODY - 1), lines[-1])
            x += wide + BODY
        self.bottom += row

    def svg(self) -> str:
        """Return the document."""
        height = place(math.ceil(self.bottom + MARGIN))
        wide = place(self.width)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="{CLASS}" role="img" viewBox="0 0 {wide} {height}" width="{wide}" height="{height}"'
        about = f"<title>{said(self.title)}</title>\n<desc>{said(self.description)}</desc>"
        paper = f'<rect{attributes("paper")} width="{wide}" height="{height}"/>'
        return "\n".join([f'{head} font-family="{FONT}">', about, paper, *self.marks, "</svg>"]) + "\n"
