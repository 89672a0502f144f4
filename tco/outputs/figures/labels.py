"""Names beside points: each takes the first free place around its point, and stands nowhere rather than over another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tco.outputs.figures.style import SMALL
from tco.outputs.figures.svg import Drawing, Point
from tco.outputs.figures.words import width_of

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
                self.keep_clear((start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])), STEP / 2)

    def name(self, at: Point, radius: float, words: str, mark: Mark | None = None, size: float = SMALL, bold: bool = False) -> bool:
        """Write words beside a point, if there is room; say whether there was."""
        wide = width_of(words, size, bold) + (MARK if mark else 0.0)
        for anchor, start, base in self.places(at, radius + 4, size):
            box = box_of((start, base), wide, size, anchor)
            if self.is_free(box):
                self.taken.append(box)
                if mark:
                    look, shape = mark
                    self.drawing.mark((box[0] + MARK / 2, base - size * 0.35), size * 0.36, look, shape=shape)
                    self.drawing.text((box[0] + MARK, base), words, "ink", size, bold=bold, halo=True)
                else:
                    self.drawing.text((start, base), words, "ink", size, anchor, bold=bold, halo=True)
                return True
        return False

    def write(self, at: Point, words: str, size: float = SMALL, anchor: str = "start", bold: bool = False) -> None:
        """Write words at a place, and take its room."""
        self.taken.append(box_of(at, width_of(words, size, bold), size, anchor))
        self.drawing.text(at, words, "ink", size, anchor, bold=bold, halo=True)

    @staticmethod
    def places(at: Point, gap: float, size: float) -> Sequence[tuple[str, float, float]]:
        """Return where words may stand around a point: their anchor and where it lies, the best first."""
        x, y = at
        middle, above, below = y + size * 0.35, y - gap, y + gap + size * 0.7
        right, left = ([(side, x + way * gap, base) for base in (middle, above, below)] for side, way in (("start", 1), ("end", -1)))
        return [right[0], ("middle", x, above), ("middle", x, below), left[0], *right[1:], *left[1:]]

    def is_free(self, box: Box) -> bool:
        """Say whether nothing stands in a box, and all of it lies in the plot."""
        left, top, right, bottom = self.room
        if box[0] < left or box[1] < top or box[2] > right or box[3] > bottom:
            return False
        return all(box[2] <= one[0] or box[0] >= one[2] or box[3] <= one[1] or box[1] >= one[3] for one in self.taken)


def box_of(at: Point, wide: float, size: float, anchor: str) -> Box:
    """Return the room of a line of words at a place."""
    left = at[0] - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return left - 1, at[1] - size * 0.85, left + wide + 1, at[1] + size * 0.25
