"""Where a value stands: scales with their ticks, and the axes of a plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tco.report.figures.style import BODY, SMALL
from tco.report.figures.svg import Drawing, Point, text_width
from tco.report.table import significant

STEPS = (1.0, 2.0, 5.0, 10.0)
ROOM = 1.15  # beyond the values of a scale of ratios
NEAR = 1e-9  # of a step: rounding


class Linear(NamedTuple):
    """Equal distances for equal differences."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float) -> Linear:
        """Return the scale that spans some values and no more."""
        known = list(values)
        low, high = min(known, default=0.0), max(known, default=0.0)
        return (
            cls(low, high, start, end)
            if high > low
            else cls(low - abs(low) / 2 - (not low), high + abs(high) / 2 + (not high), start, end)
        )

    @classmethod
    def rounded(cls, values: Iterable[float], start: float, end: float, ticks: int = 6) -> Linear:
        """Return the scale that spans some values, its ends on ticks."""
        low, high, *_ = cls.over(values, start, end)
        step = round_step(high - low, ticks)
        return cls(
            math.floor(low / step + NEAR) * step, math.ceil(high / step - NEAR) * step, start, end
        )

    def position_of(self, value: float) -> float:
        """Return the place of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Return round values between the ends."""
        step = round_step(self.high - self.low, most)
        first, last = math.ceil(self.low / step - NEAR), math.floor(self.high / step + NEAR)
        return [position * step for position in range(first, last + 1)]


class Log(NamedTuple):
    """Equal distances for equal ratios."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float) -> Log:
        """Return the scale that spans some values above nought, with a little room beyond them."""
        known = [value for value in values if value > 0] or [1.0]
        return cls(min(known) / ROOM, max(known) * ROOM, start, end)

    def position_of(self, value: float) -> float:
        """Return the place of a value."""
        return self.start + math.log(value / self.low) / math.log(self.high / self.low) * (
            self.end - self.start
        )

    def ticks(self, most: int = 6) -> list[float]:
        """Return powers of ten, with the fives and twos between them where there is room, without
        some of them where there is little.
        """
        lowest, highest = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        found: list[float] = []
        for steps in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
            found = [
                value
                for power in range(lowest, highest + 1)
                for step in steps
                if self.holds(value := step * 10.0**power)
            ]
            if len(found) < 2:  # less than a step of these: equal differences
                return [
                    value
                    for value in Linear(self.low, self.high, self.start, self.end).ticks(most)
                    if value > 0
                ]
            if len(found) <= most:
                return found
        return found[:: -(-len(found) // most)]

    def holds(self, value: float) -> bool:
        """Say whether a value lies between the ends."""
        return self.low * (1 - NEAR) <= value <= self.high * (1 + NEAR)


Scale = Linear | Log


def round_step(span: float, most: int) -> float:
    """Return the least of 1, 2 and 5 times a power of ten of which a span holds no more than
    some.
    """
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(step * power for step in STEPS if span / (step * power) <= most * (1 + NEAR))


def tick_words(value: float) -> str:
    """Return a round value in few characters."""
    return significant(value, 3).replace("-", "−")


def separated_positions(
    places: Sequence[float], gap: float, low: float, high: float
) -> list[float]:
    """Return places moved apart until each lies a gap from the next, in the same order and within
    two ends if there is room.
    """
    order = sorted(range(len(places)), key=lambda at: places[at])
    groups: list[list[float]] = []  # of labels that touch: the middle they would have, and how many
    for at in order:
        groups.append([min(max(places[at], low), high), 1.0])
        while (
            len(groups) > 1
            and groups[-1][0] - groups[-2][0] < gap * (groups[-1][1] + groups[-2][1]) / 2
        ):
            middle, count = groups.pop()
            before, many = groups[-1]
            whole = count + many
            reach = gap * (whole - 1) / 2
            groups[-1] = [
                max(min((middle * count + before * many) / whole, high - reach), low + reach),
                whole,
            ]
    moved = [
        middle + gap * (at - (count - 1) / 2)
        for middle, count in groups
        for at in range(round(count))
    ]
    found = [0.0] * len(places)
    for at, place in zip(order, moved, strict=True):
        found[at] = place
    return found


TICK_ROOM = 58.0  # pixels a number on the lower axis needs


@dataclass(slots=True)
class Plot:
    """Two scales within a drawing; y grows upwards."""

    drawing: Drawing
    x: Scale
    y: Scale

    def point_of(self, x: float, y: float) -> Point:
        """Return the place of a pair of values."""
        return self.x.position_of(x), self.y.position_of(y)

    def axes(self, x_words: str, y_words: str, grid: bool = True, above: float = 9.0) -> None:
        """Draw grid, ticks and what is on either axis; the words of y stand `above` it, read
        without turning the head.
        """
        drawing, (left, right) = self.drawing, (self.x.start, self.x.end)
        base, top = self.y.start, self.y.end
        drawing.text((drawing.left, top - above), y_words, "muted", BODY)
        for value in self.y.ticks(max(int((base - top) / 36), 2)):
            y = self.y.position_of(value)
            drawing.line((left, y), (right if grid else left - 4, y), "grid" if grid else "axis")
            drawing.text((left - 5, y + 4), tick_words(value), "muted", SMALL, "end")
        for value in self.x.ticks(max(int((right - left) / TICK_ROOM), 2)):
            x = self.x.position_of(value)
            drawing.line((x, base), (x, base + 4), "axis")
            words = tick_words(value)
            half = text_width(words, SMALL) / 2
            drawing.text(
                (min(max(x, drawing.left + half), drawing.right - half), base + 16),
                words,
                "muted",
                SMALL,
                "middle",
            )
        drawing.line((left, base), (right, base), "axis")
        drawing.text(((left + right) / 2, base + 33), x_words, "muted", BODY, "middle")
        drawing.bottom = base + 40
