"""The part of a figure that has two axes: grid, ticks with their numbers, and what the axes mean."""

from __future__ import annotations

from dataclasses import dataclass

from tco.outputs.figures.scales import Scale, tick_words
from tco.outputs.figures.style import BODY, SMALL
from tco.outputs.figures.svg import Drawing, Point
from tco.outputs.figures.words import width_of

TICK_ROOM = 58.0  # pixels a number on the lower axis needs


@dataclass(slots=True)
class Plot:
    """Two scales within a drawing; y grows upwards."""

    drawing: Drawing
    x: Scale
    y: Scale

    def at(self, x: float, y: float) -> Point:
        """Return the place of a pair of values."""
        return self.x.at(x), self.y.at(y)

    def axes(self, x_words: str, y_words: str, grid: bool = True, above: float = 9.0) -> None:
        """Draw grid, ticks and what is on either axis; the words of y stand `above` it, read without turning the head."""
        drawing, (left, right) = self.drawing, (self.x.start, self.x.end)
        base, top = self.y.start, self.y.end
        drawing.text((drawing.left, top - above), y_words, "muted", BODY)
        for value in self.y.ticks(max(int((base - top) / 36), 2)):
            y = self.y.at(value)
            drawing.line((left, y), (right if grid else left - 4, y), "grid" if grid else "axis")
            drawing.text((left - 5, y + 4), tick_words(value), "muted", SMALL, "end")
        for value in self.x.ticks(max(int((right - left) / TICK_ROOM), 2)):
            x = self.x.at(value)
            drawing.line((x, base), (x, base + 4), "axis")
            words = tick_words(value)
            half = width_of(words, SMALL) / 2
            drawing.text((min(max(x, drawing.left + half), drawing.right - half), base + 16), words, "muted", SMALL, "middle")
        drawing.line((left, base), (right, base), "axis")
        drawing.text(((left + right) / 2, base + 33), x_words, "muted", BODY, "middle")
        drawing.bottom = base + 40
