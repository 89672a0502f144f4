"""A figure as it is drawn: words measured by hand, marks with tips, room for names; as SVG, or
through a browser as PNG.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from tco.core.errors import DataError
from tco.core.streams import printable_line
from tco.report.figures.style import BODY, CLASS, FONT, SMALL, TITLE, mark_attributes

# Hundredths of the size that each character from the space on takes in DejaVu Sans, plain and bold.
# Few fonts are wider: what fits in it fits.
PLAIN = """
32 40 46 84 64 95 78 27 39 39 50 84 32 36 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 84 84 53 100 68 69 70 77 63 58 77 75 29 29 66 56 86 75
79 60 79 69 63 61 73 68 99 69 61 69 39 34 39 84 50 50 61 63 55 63 62 35 63 63 28 28 58 28 97 63 61 63 63 41 52 39 63 59 82 59 59 52 64 34 64 84
"""
BOLD = """
35 46 52 84 70 100 87 31 46 46 52 84 38 42 38 37 70 70 70 70 70 70 70 70 70 70 40 40 84 84 84 58 100 77 76 73 83 68 68 82 84 37 37 77 64 100 84
85 73 85 77 72 68 81 77 110 77 72 73 46 37 46 84 50 50 67 72 59 72 68 44 72 71 34 34 67 34 104 71 69 72 72 49 60 48 71 65 92 65 65 58 71 37 71 84
"""
LEAST = 5  # characters that are left of a text at least
WIDEST = 1.0  # of the size, what any other character takes at most
WIDTHS, BOLD_WIDTHS = (
    {chr(32 + at): int(width) / 100 for at, width in enumerate(face.split())}
    for face in (PLAIN, BOLD)
)
WIDTHS["\u00a0"], BOLD_WIDTHS["\u00a0"] = WIDTHS[" "], BOLD_WIDTHS[" "]


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text in pixels, or a little more."""
    widths = BOLD_WIDTHS if bold else WIDTHS
    return sum(widths.get(character, WIDEST) for character in text) * size


def truncate_to_width(text: str, room: float, size: float, bold: bool = False) -> str:
    """Return a text, or its beginning where it is wider than some room; nothing where too little
    would be left of it.
    """
    if text_width(text, size, bold) <= room:
        return text
    for length in range(len(text) - 1, LEAST - 1, -1):
        short = text[:length].rstrip(" -/.,") + "…"
        if text_width(short, size, bold) <= room:
            return short
    return ""


def distinct(titles: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    """Return titles, or where two are alike or one is another's name, the names that tell apart
    what they stand for.
    """
    mistaken = any(
        title in names and title != name for title, name in zip(titles, names, strict=True)
    )
    return names if mistaken or len(set(titles)) < len(titles) else titles


def wrapped(text: str, room: float, size: float, bold: bool = False) -> list[str]:
    """Return the lines of a text broken between words; a word that is wider than the room is
    shortened.
    """
    lines: list[str] = []
    for word in text.replace(" %", "\u00a0%").split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, bold) <= room:
            lines[-1] = longer
        else:
            lines.append(truncate_to_width(word, room, size, bold) or word[:1])
    return lines


MARGIN = 8.0
TAIL = 6.0  # pixels before words in small
LEADING = 1.35  # of the size, from a line to the next
SHAPES = ("circle", "square", "diamond", "triangle")
Point = tuple[float, float]


def format_coordinate(value: float) -> str:
    """Return a place in hundredths of a pixel, in few characters."""
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-0", "0" if abs(value) < 0.005 else "-0")


def xml_text(words: str) -> str:
    """Return words as an XML document may hold them."""
    return escape(printable_line(words), quote=False)


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
        inside = f"><title>{xml_text(tip)}</title></{element}>" if tip else "/>"
        self.marks.append(f"<{element}{mark_attributes(look)}{attributes_of}{inside}")

    def rectangle(
        self, x: float, y: float, width: float, height: float, look: str, tip: str = ""
    ) -> None:
        """Add a rectangle by its upper left corner."""
        self.add(
            "rect",
            look,
            f' shape-rendering="crispEdges" x="{format_coordinate(x)}" y="{format_coordinate(y)}" '
            f'width="{format_coordinate(max(width, 0.0))}" height="{format_coordinate(max(height, 0.0))}"',
            tip,
        )

    def line(self, start: Point, end: Point, look: str) -> None:
        """Add a straight line."""
        self.add(
            "line",
            look,
            f' x1="{format_coordinate(start[0])}" y1="{format_coordinate(start[1])}" x2="{format_coordinate(end[0])}" '
            f'y2="{format_coordinate(end[1])}"',
        )

    def path(self, points: Iterable[Point], look: str, tip: str = "") -> None:
        """Add a line through some points, or with a look that is filled the area within them."""
        self.add(
            "polyline",
            look,
            f' points="{" ".join(f"{format_coordinate(x)},{format_coordinate(y)}" for x, y in points)}"',
            tip,
        )

    def mark(
        self, at: Point, radius: float, look: str, tip: str = "", shape: str = "circle"
    ) -> None:
        """Add a point in one of the shapes, or a short line."""
        x, y = at
        if shape == "line":
            self.line((x - radius, y), (x + radius, y), look)
            return
        if shape == "circle":
            self.add(
                "circle",
                look,
                f' cx="{format_coordinate(x)}" cy="{format_coordinate(y)}" r="{format_coordinate(radius)}"',
                tip,
            )
            return
        turns = {
            "square": (0.125, 0.375, 0.625, 0.875),
            "diamond": (0.0, 0.25, 0.5, 0.75),
            "triangle": (0.25, 0.5833, 0.9167),
        }[shape]
        reach = radius * 1.3
        corners = [
            (x + reach * math.cos(turn * math.tau), y - reach * math.sin(turn * math.tau))
            for turn in turns
        ]
        self.add(
            "polygon",
            look,
            f' points="{" ".join(f"{format_coordinate(one)},{format_coordinate(other)}" for one, other in corners)}"',
            tip,
        )

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
        """Add a line of words, its base line at a place; a halo keeps what lies below from running
        into it, a tail follows in small.
        """
        where = f' x="{format_coordinate(at[0])}" y="{format_coordinate(at[1])}" font-size="{format_coordinate(size)}"'
        where += f' text-anchor="{anchor}"' if anchor != "start" else ""
        where += ' font-weight="bold"' if bold else ""
        line, more = xml_text(words), xml_text(tail)
        small = f' dx="{TAIL}" font-size="{SMALL}" font-weight="normal"'
        if halo:
            behind = f"<tspan{small}>{more}</tspan>" if tail else ""
            self.marks.append(
                f'<text aria-hidden="true"{mark_attributes("halo")}{where}>{line}{behind}</text>'
            )
        behind = f"<tspan{mark_attributes('muted')}{small}>{more}</tspan>" if tail else ""
        self.marks.append(f"<text{mark_attributes(look)}{where}>{line}{behind}</text>")

    # ---------------------------------------------------------------- what stands above and below
    # the marks
    def paragraph(
        self, words: str, look: str = "muted", size: float = SMALL, bold: bool = False
    ) -> None:
        """Add words below all that is there, broken to the width."""
        for line in wrapped(words, self.right - self.left, size, bold):
            self.text((self.left, self.bottom + size), line, look, size, bold=bold)
            self.bottom += size * LEADING

    def paragraphs(self, lines: Iterable[str]) -> None:
        """Add lines that are said below the marks, each a paragraph of its own."""
        for line in lines:
            self.paragraph(line)

    def legend(
        self, entries: Sequence[tuple[str, str]], shapes: Sequence[str] = ("square",)
    ) -> None:
        """Add what looks mean: each with its words and in its shape, in as many rows as they
        need.
        """
        x, row, lead = self.left, BODY * 1.5, BODY + 4
        self.bottom += 4
        for at, (look, words) in enumerate(entries):
            lines = wrapped(words, self.right - self.left - lead, BODY)
            wide = lead + max(text_width(line, BODY) for line in lines)
            if x + wide > self.right and x > self.left:
                x, self.bottom = self.left, self.bottom + row
            self.mark(
                (x + BODY / 2, self.bottom + BODY / 2 + 1),
                BODY / 2 - 1,
                look,
                shape=shapes[at % len(shapes)],
            )
            for line in lines[:-1]:
                self.text((x + lead, self.bottom + BODY - 1), line)
                self.bottom += BODY * LEADING
            self.text((x + lead, self.bottom + BODY - 1), lines[-1])
            x += wide + BODY
        self.bottom += row

    def svg(self) -> str:
        """Return the document."""
        height = format_coordinate(math.ceil(self.bottom + MARGIN))
        wide = format_coordinate(self.width)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{CLASS}" role="img" viewBox="0 0 '
            f'{wide} {height}" width="{wide}" height="{height}"'
        )
        about = f"<title>{xml_text(self.title)}</title>\n<desc>{xml_text(self.description)}</desc>"
        paper = f'<rect{mark_attributes("paper")} width="{wide}" height="{height}"/>'
        return (
            "\n".join([f'{head} font-family="{FONT}">', about, paper, *self.marks, "</svg>"]) + "\n"
        )


STEP = 5.0  # pixels from one to the next of the places a line takes
MARK = 14.0  # pixels that a mark before words takes
Box = tuple[float, float, float, float]  # left, top, right, bottom
Mark = tuple[str, str]  # look and shape


class Labels:
    """The room of a plot that is taken, and what is still free."""

    def __init__(self, drawing: Drawing, room: Box) -> None:
        self.drawing, self.room = drawing, room
        self.taken: list[Box] = []

    def keep_clear(self, at: Point, radius: float) -> None:
        """Take the room of a point."""
        self.taken.append((at[0] - radius, at[1] - radius, at[0] + radius, at[1] + radius))

    def keep_clear_along(self, points: Sequence[Point]) -> None:
        """Take the room of a line through some points."""
        for start, end in pairwise(points):
            steps = math.ceil(math.dist(start, end) / STEP)
            for at in range(steps + 1):
                share = at / max(steps, 1)
                self.keep_clear(
                    (
                        start[0] + share * (end[0] - start[0]),
                        start[1] + share * (end[1] - start[1]),
                    ),
                    STEP / 2,
                )

    def name(
        self,
        at: Point,
        radius: float,
        words: str,
        mark: Mark | None = None,
        size: float = SMALL,
        bold: bool = False,
    ) -> bool:
        """Write words beside a point, if there is room; say whether there was."""
        wide = text_width(words, size, bold) + (MARK if mark else 0.0)
        for anchor, start, base in self.label_positions(at, radius + 4, size):
            box = box_of((start, base), wide, size, anchor)
            if self.is_free(box):
                self.taken.append(box)
                if mark:
                    look, shape = mark
                    self.drawing.mark(
                        (box[0] + MARK / 2, base - size * 0.35), size * 0.36, look, shape=shape
                    )
                    self.drawing.text(
                        (box[0] + MARK, base), words, "ink", size, bold=bold, halo=True
                    )
                else:
                    self.drawing.text(
                        (start, base), words, "ink", size, anchor, bold=bold, halo=True
                    )
                return True
        return False

    def write(
        self, at: Point, words: str, size: float = SMALL, anchor: str = "start", bold: bool = False
    ) -> None:
        """Write words at a place, and take its room."""
        self.taken.append(box_of(at, text_width(words, size, bold), size, anchor))
        self.drawing.text(at, words, "ink", size, anchor, bold=bold, halo=True)

    @staticmethod
    def label_positions(at: Point, gap: float, size: float) -> Sequence[tuple[str, float, float]]:
        """Return label anchors and positions around a point, best first.

        An entry is the text anchor, x and y.
        """
        x, y = at
        middle, above, below = y + size * 0.35, y - gap, y + gap + size * 0.7
        right, left = (
            [(side, x + way * gap, base) for base in (middle, above, below)]
            for side, way in (("start", 1), ("end", -1))
        )
        return [
            right[0],
            ("middle", x, above),
            ("middle", x, below),
            left[0],
            *right[1:],
            *left[1:],
        ]

    def is_free(self, box: Box) -> bool:
        """Say whether nothing stands in a box, and all of it lies in the plot."""
        left, top, right, bottom = self.room
        if box[0] < left or box[1] < top or box[2] > right or box[3] > bottom:
            return False
        return all(
            box[2] <= one[0] or box[0] >= one[2] or box[3] <= one[1] or box[1] >= one[3]
            for one in self.taken
        )


def box_of(at: Point, wide: float, size: float, anchor: str) -> Box:
    """Return the room of a line of words at a place."""
    left = at[0] - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return left - 1, at[1] - size * 0.85, left + wide + 1, at[1] + size * 0.25


ZOOM = 2.0  # points for each pixel of the document: sharp on paper and on dense screens
# what matplotlib brings, the same on every machine
FACE, FILES = (
    "DejaVu Sans",
    ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
)


def png_of(svg: str) -> bytes:
    """Return an SVG figure as PNG, bytes.

    Args:
        svg: Text of the figure.

    Raises:
        DataError: resvg-py or matplotlib is not installed; the message says how to install both.

    """
    letters = find_spec("matplotlib")
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        letters = None
    if letters is None:
        raise DataError(
            "a figure as PNG needs resvg-py and matplotlib: pip install '.[report]', or write it "
            "as .svg"
        )
    folder = Path(next(iter(letters.submodule_search_locations or ())), "mpl-data", "fonts", "ttf")
    fonts = [str(folder / name) for name in FILES]
    return bytes(
        svg_to_bytes(
            svg_string=svg,
            zoom=ZOOM,
            font_files=fonts,
            font_family=FACE,
            sans_serif_family=FACE,
            skip_system_fonts=True,
        )
    )
