"""A figure as matplotlib draws it: words, legend and axes from the top down, as SVG or PNG."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from itertools import cycle, zip_longest
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.text import Annotation
from matplotlib.textpath import TextToPath
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from tco.core.streams import printable_line
from tco.report.figures.style import GRID, INK, MUTED, PAPER
from tco.report.table import significant

# Text is laid out with the widths of DejaVu Sans. Few fonts are wider: what fits in it fits.
FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
SMALL, TITLE = 11, 15  # pixels
MARGIN, LEADING = 8.0, 1.35  # pixels; of the size, from a line to the next
DPI = 72  # a point is a pixel
SHEET = 4000.0  # pixels: height of the sheet that a figure is cut from
TICK_ROOM = 62.0  # pixels that a number needs along an axis
ROOM = 1.15  # beyond the values of a scale of ratios
BAR = 0.66  # of a row, from its top to the middle of its bar
Point = tuple[float, float]
MARKERS = ("o", "s", "D", "^")
# where a name may stand beside its point, the best first: across and up
SIDES = np.array([(1, 0), (0, 1), (0, -1), (-1, 0), (-1, 1), (1, -1), (1, 1)])
styled = rc_context(
    {
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.labelcolor": MUTED,
        "axes.xmargin": 0,
        "font.family": "DejaVu Sans",
        "font.size": SMALL,
        "grid.color": GRID,
        "lines.markeredgewidth": 0,
        "legend.borderaxespad": 0,
        "legend.borderpad": 0,
        "legend.columnspacing": 1,
        "legend.frameon": False,
        "legend.handlelength": 1,
        "legend.handletextpad": 0.3,
        "svg.fonttype": "none",
        "text.color": INK,
        "text.parse_math": False,
        "xtick.labelcolor": MUTED,
        "xtick.major.size": 0,
        "ytick.labelcolor": MUTED,
        "ytick.major.size": 0,
    }
)
TIP = r"<g id=(['\"])tip:(.*?)\1>"
# From matplotlib's SVG to one that may stand in a page with others, in order: pattern, replacement.
# An identifier remains of markers alone; numbers in tags have two decimals. Patterns that text may
# hold too end in IN_TAG.
IN_TAG = "(?=[^<]*>)"
REWRITES = (
    (r"(?s)^.*?<svg [^>]*>|<defs>\s*<style.*?</defs>|<clipPath.*?</clipPath>", ""),
    (
        r'(?: clip-path="[^"]*"| id="(?!m[0-9a-f]{10}")[^"]*"| transform="rotate\(-0[^"]*"'
        "|font-family: [^;]*; )" + IN_TAG,
        "",
    ),
    (r"(\.\d\d)\d+" + IN_TAG, r"\1"),
    (r"\s*\n\s*", " "),
    (r"(<(g|defs)/?>\s*</\2>|<g/>)\s*", ""),
    *[(r"<g>\s*(<(?:path|use|text) [^>]*?(?:/|>[^<]*</text)>\s*)</g>\s*", r"\1")] * 3,
    (r"> <", ">\n<"),
)


@cache
def text_width(words: str, size: float = SMALL, weight: str = "normal") -> float:
    """Return the width of a text in pixels."""
    font = FontProperties(family="DejaVu Sans", weight=weight, size=size)
    return float(TextToPath().get_text_width_height_descent(words, font, ismath=False)[0])


def shortened(words: str, room: float, weight: str = "normal") -> str:
    """Return a text, or its beginning where it is wider than some room in pixels."""
    short = words
    while len(short) > 1 and text_width(short, weight=weight) > room:
        words = words[:-1]
        short = words.rstrip(" -/.,") + "…"
    return short


def distinct_titles(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return titles, or names where two titles are alike or one is another's name.

    Args:
        pairs: Title and name of each thing.

    """
    titles, scenario_names = map(list, zip(*pairs, strict=True))
    mistaken = any(
        title in scenario_names and title != scenario_name for title, scenario_name in pairs
    )
    return scenario_names if mistaken or len(set(titles)) < len(titles) else titles


def tick_text(tick_value: float, _position: float = 0) -> str:
    """Return the number at a tick in few characters."""
    return significant(tick_value, 3).replace("-", "−")


def tip(artists: Iterable[Artist], words: str) -> None:
    """Give artists the words that show where one points at them."""
    for artist in artists:
        artist.set_gid(f"tip:{printable_line(words)}")


def write_beside(axes: Axes, x: float, y: float, words: str, gap: float, **style: Any) -> None:
    """Write words on the right of a point of axes, or on the left by a gap below nought."""
    side = "left" if gap > 0 else "right"
    axes.annotate(
        words,
        (x, y),
        (gap, 0),
        textcoords="offset points",
        ha=side,
        va="center_baseline",
        **style,
    )


class Drawing:
    """A figure of a width; `bottom` is the pixel where what comes next begins."""

    def __init__(self, title: str, description: str, width: float, *lines: str) -> None:
        self.title, self.description, self.width = title, description, width
        self.figure = Figure(figsize=(width / DPI, SHEET / DPI), dpi=DPI)
        FigureCanvasAgg(self.figure)  # measures names
        self.bottom = MARGIN
        self.paragraphs(title, size=TITLE, weight="bold", color=INK)
        self.paragraphs(*lines)

    def text(self, x: float, y: float, words: str, **style: Any) -> None:
        """Add words at a pixel, counted from the upper left corner."""
        self.figure.text(x / self.width, 1 - y / SHEET, printable_line(words), **style)

    def paragraphs(
        self, *lines: str, size: float = SMALL, weight: str = "normal", color: str = MUTED
    ) -> None:
        """Add lines below all that is there, each broken to the width."""
        room = self.width - 2.5 * MARGIN
        for words in map(printable_line, lines):
            for line in _broken_lines(words, room, size, weight):
                self.bottom += size * LEADING
                self.text(MARGIN, self.bottom, line, size=size, weight=weight, color=color)

    def legend(self, colours: Mapping[str, str], markers: Sequence[str] = "s") -> None:
        """Add what colours mean, in as many columns as find room.

        Args:
            colours: Words with the colour of their mark.
            markers: Markers of the entries, repeated.

        """
        handles = [
            Line2D([], [], color=colour, marker=marker, linestyle="none", mew=marker == "_")
            for colour, marker in zip(colours.values(), cycle(markers), strict=False)
        ]
        room = self.width - 2 * MARGIN
        labels = [shortened(words, room - 20) for words in colours]
        widest = max((text_width(label) for label in labels), default=0) + 32
        columns = max(min(int(room / widest), len(labels)), 1)
        corner = (MARGIN / self.width, 1 - (self.bottom + 8) / SHEET)
        self.figure.legend(handles, labels, ncols=columns, loc="upper left", bbox_to_anchor=corner)
        self.bottom += math.ceil(len(labels) / columns) * SMALL * 1.5 + 8

    def axes(
        self,
        height: float,
        left: float = 54,
        right: float = 18,
        x_words: str = "",
        y_words: str = "",
    ) -> Axes:
        """Add axes below all that is there.

        Args:
            height: Height in pixels.
            left: Pixels between the axes and the left edge of the figure.
            right: Pixels between the axes and the right edge of the figure.
            x_words: Words below the axis of x.
            y_words: Words above the axis of y, read without turning the head.

        """
        if y_words:
            self.bottom += SMALL + 8
            self.text(MARGIN, self.bottom, y_words, color=MUTED)
        self.bottom += height + 10
        axes = self.figure.add_axes(
            (
                left / self.width,
                1 - self.bottom / SHEET,
                1 - (left + right) / self.width,
                height / SHEET,
            ),
            frameon=False,
            xlabel=x_words,
        )
        axes.locator_params("x", nbins=max(int(axes.bbox.width / TICK_ROOM), 2))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(tick_text)
        self.bottom += 40 if x_words else 22
        return axes

    def rows(
        self,
        row_names: Sequence[str],
        height: float,
        left: float = MARGIN,
        right: float = 18,
        details: Sequence[str] = (),
    ) -> Axes:
        """Add axes with a row for each name from the top down, the name above the bar.

        Args:
            row_names: Names of the rows.
            height: Height of a row in pixels.
            left: Pixels between the axes and the left edge of the figure.
            right: Pixels between the axes and the right edge of the figure.
            details: Words on the right of each name.

        """
        room = self.width - 2 * MARGIN
        for row_index, (row_name, detail) in enumerate(
            zip_longest(row_names, details, fillvalue="")
        ):
            base = self.bottom + 10 + height * (row_index + 0.35)
            short = shortened(row_name, room - text_width(f"{detail}  "), "bold")
            self.text(MARGIN, base, short, weight="bold")
            self.text(self.width - MARGIN, base, detail, color=MUTED, ha="right")
        axes = self.axes(height * len(row_names), left, right)
        axes.set(ylim=(len(row_names) - BAR, -BAR), yticks=())
        return axes

    def group(
        self, title: str, row_names: Sequence[str], height: float, left: float, right: float = 18
    ) -> Axes:
        """Add a title, and axes with a row for each name from the top down, the name on the left.

        Args:
            title: Words above the rows.
            row_names: Names of the rows.
            height: Height of a row in pixels.
            left: Pixels between the axes and the left edge of the figure.
            right: Pixels between the axes and the right edge of the figure.

        """
        self.bottom += SMALL * 1.5
        self.text(MARGIN, self.bottom, title, weight="bold")
        axes = self.axes(height * len(row_names), left, right)
        axes.set_yticks(range(len(row_names)), row_names, color=INK)
        axes.set_ylim(len(row_names) - 0.5, -0.5)
        return axes

    def name_lines(
        self, labels: Labels, lines: Sequence[tuple[str, str, str, Sequence[Point]]]
    ) -> None:
        """Name lines beside their points, or all of them in a legend if one finds no room.

        Args:
            labels: Labels of the axes.
            lines: Name, colour, marker and points of each line.

        """
        for name, colour, _, points in lines:
            frame = {"edgecolor": colour, "facecolor": PAPER, "boxstyle": "round,pad=0.15"}
            if not points or not labels.place_label(points, name, 8, weight="bold", bbox=frame):
                labels.clear()
                self.legend(
                    {name: colour for name, colour, _, _ in lines},
                    [marker for _, _, marker, _ in lines],
                )
                return

    def svg(self, tips: bool = True) -> str:
        """Return the figure as an SVG document, the same bytes for the same data.

        Args:
            tips: Whether marks say what they are where one points at them.

        """
        with rc_context({"svg.hashsalt": f"{self.title} {self.width}"}):
            svg = self._saved("svg", dict.fromkeys(("Date", "Creator", "Format", "Type")))
        svg_text = svg.decode("utf-8")
        svg_text = re.sub(TIP, r"<g><title>\2</title>" if tips else "<g>", svg_text)
        for pattern, replacement in REWRITES:
            svg_text = re.sub(pattern, replacement, svg_text)
        size = f"{self.width:g} {math.ceil(self.bottom + MARGIN)}"
        width, height = size.split()
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'class="tco-figure" role="img" viewBox="0 0 {size}" width="{width}" '
            f'height="{height}" font-family="{FONT}" stroke-linejoin="round">\n'
            f"<title>{escape(printable_line(self.title), quote=False)}</title>\n"
            f"<desc>{escape(printable_line(self.description), quote=False)}</desc>{svg_text}"
        )

    def png(self) -> bytes:
        """Return the figure as a PNG of two points for each pixel."""
        return self._saved("png", {"Software": None}, dpi=2 * DPI)

    @styled
    def _saved(self, form: str, metadata: Mapping[str, None], **options: Any) -> bytes:
        stream = io.BytesIO()
        foot = (SHEET - math.ceil(self.bottom + MARGIN)) / DPI
        part = Bbox([[0, foot], [self.width / DPI, SHEET / DPI]])
        with warnings.catch_warnings():
            # a name may have letters that the font lacks; a browser has others
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            self.figure.savefig(stream, format=form, bbox_inches=part, metadata=metadata, **options)
        return stream.getvalue()


def _broken_lines(words: str, room: float, size: float, weight: str) -> list[str]:
    """Return a text in lines no wider than `room` pixels; a wider word is broken inside."""
    lines: list[str] = []
    line = ""
    for word in words.replace(" %", "\u00a0%").split(" "):
        longer = f"{line} {word}" if line else word
        if text_width(longer, size, weight) <= room:
            line = longer
            continue
        if line:
            lines.append(line)
        line = word
        while text_width(line, size, weight) > room:
            count = len(line) - 1
            while count > 1 and text_width(line[:count], size, weight) > room:
                count -= 1
            lines.append(line[:count])
            line = line[count:]
    return [*lines, line] if line else lines


def scale_by_ratios(axis: XAxis | YAxis, axis_values: Iterable[float]) -> None:
    """Scale an axis by the ratios of some values above nought, with room beyond them."""
    positive = [axis_value for axis_value in axis_values if axis_value > 0] or [1.0]
    low, high = min(positive) / ROOM, max(positive) * ROOM
    axis_name = axis.axis_name
    axis.axes.set(**{f"{axis_name}scale": "log", f"{axis_name}lim": (low, high)})
    decades = math.log10(high / low)
    ticks = axis.get_tick_space() / decades  # of a power of ten
    steps = (1, 2, 5) if ticks > 5 else (1, 3) if ticks > 3.5 else (1,)
    if decades < 1:
        axis.set_major_locator(MaxNLocator(max(axis.get_tick_space() // 2, 2)))
    else:
        axis.set_major_locator(LogLocator(subs=steps))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(tick_text)


class Labels:
    """Names beside the points of axes, none over a line, a point or another name."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.boxes: list[Bbox] = []
        self.lines: list[Path] = []
        self.names: list[Annotation] = []

    def keep_clear(self, points: Sequence[Point], radius: float) -> None:
        """Keep names off some points, by a radius in pixels, and off the line through them."""
        pixels = self.axes.transData.transform(points)
        self.lines.append(Path(pixels))
        self.boxes += [Bbox([pixel - radius, pixel + radius]) for pixel in pixels]

    def place_label(self, points: Sequence[Point], words: str, gap: float, **style: Any) -> bool:
        """Write words beside the first point that has room for them, and say whether one has.

        Args:
            points: Values of the points.
            words: Name to write.
            gap: Pixels between a point and the words.
            style: Style of the words.

        """
        label = self.axes.annotate(
            words, points[0], (0, 0), textcoords="offset points", va="bottom", **style
        )
        size = label.get_window_extent().size
        for point, pixel in zip(points, self.axes.transData.transform(points), strict=True):
            for side in SIDES:
                offset = gap * side + size * (side - 1) / 2
                box = Bbox([pixel + offset, pixel + offset + size])
                if self._is_free(box):
                    self.boxes.append(box)
                    label.xy = point
                    label.set_position(offset)
                    self.names.append(label)
                    return True
        label.remove()
        return False

    def clear(self) -> None:
        """Take back every name that stands beside a point."""
        for label in self.names:
            label.remove()
        self.names.clear()

    def _is_free(self, box: Bbox) -> bool:
        room = self.axes.bbox
        return (
            room.contains(*box.min)
            and room.contains(*box.max)
            and not box.count_overlaps(self.boxes)
            and not any(line.intersects_bbox(box, filled=False) for line in self.lines)
        )
