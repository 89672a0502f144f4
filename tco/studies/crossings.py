"""Where a function of one number is zero: bracketed on a grid, then narrowed down by Ridder's method.

Two zeros between neighbours of the grid are not seen. A function may have no value somewhere, and may jump over zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

Gap = Callable[[float], float | None]
CLOSE = 4e-16  # of a number: two that are closer have none between
MOST = 200  # steps, of which every one at least halves a bracket


class Crossing(NamedTuple):
    """The last number found before a zero and the first beyond it, in the order of the grid; both are the zero where it is met."""

    before: float
    beyond: float


def crossings(gap: Gap, grid: Sequence[float], stepwise: bool = False) -> Iterator[Crossing]:
    """Yield the zeros of a function between the neighbours of a grid, and on it; a stepwise one has nothing between two neighbours."""
    at = [(one, gap(one)) for one in grid]
    for place, (one, value) in enumerate(at):
        if value == 0:
            yield Crossing(one, one)
        elif place + 1 < len(at):
            other, its = at[place + 1]
            if value is not None and its is not None and value * its < 0:
                found = Crossing(one, other) if stepwise else narrowed(gap, one, other)
                if found is not None:
                    yield found


def narrowed(gap: Gap, a: float, b: float) -> Crossing | None:
    """Return the zero in a bracket, or the two sides of a jump over it; none where the function has no value on the way."""
    at_a, at_b = gap(a), gap(b)
    for _ in range(MOST):
        middle = (a + b) / 2
        if abs(b - a) <= CLOSE * max(abs(a), abs(b)) or middle in (a, b):
            break
        at_middle = gap(middle)
        if at_a is None or at_b is None or at_middle is None:
            return None
        if at_middle == 0:
            return Crossing(middle, middle)
        slope = (at_middle**2 - at_a * at_b) ** 0.5
        guess = middle + (middle - a) * (1 if at_a > at_b else -1) * at_middle / slope
        at_guess = gap(guess)
        if at_guess is None:
            return None
        if at_guess == 0:
            return Crossing(guess, guess)
        known = sorted([(a, at_a), (middle, at_middle), (guess, at_guess), (b, at_b)], key=lambda one: abs(one[0] - a))
        (a, at_a), (b, at_b) = next(pair for pair in pairwise(known) if pair[0][1] * pair[1][1] < 0)
    return Crossing(a, b)
