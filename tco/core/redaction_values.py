"""Stand-ins for a person's own values: an answer that keeps them back is made with these, and never
with the values themselves.

A stand-in follows from the path of a value and from what is shipped, from nothing else. So nothing
that is made with stand-ins tells of the values: whoever has other values at the same paths makes
the same bytes. Several makings put them far above and far below what is shipped, each path by a
factor of its own, so that no sum or quotient of them stays, and one near it; a figure that is the
same in all makings does not rest on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from zlib import crc32

from tco.core.provenance import Input, making
from tco.core.types import JsonObject
from tco.core.units import convert

WITHHELD = "withheld"
# how far stand-ins of a group lie at most: a service takes as long as its load is large
REACH = {"traffic": 1.5}
PLACES = 2**32  # of a path's mark
NEAR = 1.1  # how many times as great as what is shipped a stand-in near it is at least
# Whether a making puts a value above what is shipped, by the parity of its path's mark: what two
# values do against each other shows in the last two.
WAYS: tuple[Callable[[int], bool], ...] = (
    lambda _: True,
    lambda _: True,
    lambda _: False,
    lambda mark: bool(mark % 2),
    lambda mark: not mark % 2,
)


class Making:
    """One making of an answer with stand-ins; what is computed in it is known in no other."""

    def __init__(self, number: int, met: set[str], span: float = NEAR) -> None:
        self.number = number  # of `WAYS`
        # how many times as great as what is shipped, or as small, a stand-in is at least
        self.span = span
        self.met = met  # the paths that have one
        self.shown = False  # its answer met none, and was shown as it is
        # paths and texts on the command line: what a study sets in turn is no value of a person's
        # own
        self.said: set[tuple[str, str]] = set()


@contextmanager
def made_with(making_rules: Making) -> Iterator[None]:
    """Put a stand-in in the place of every own value that is read within.

    Args:
        making_rules: The making, which decides the stand-ins and records their paths.

    """
    token = making.set(making_rules)
    try:
        yield
    finally:
        making.reset(token)


def placeholder_value(
    own_input: Input, usual: float | None, minimum: float, maximum: float
) -> Input:
    """Return a stand-in for a person's own value in the current making.

    `usual` is the shipped value in its place, if there is a shipped value.

    The stand-in keeps no value of the input. It keeps the path, date, kind, source and unit of the
    input, and whether the input is a range.

    Args:
        own_input: The person's own input.
        usual: Shipped value in the unit of `own_input`, or None.
        minimum: Least value that the input may have, in the unit of `own_input`.
        maximum: Greatest value that the input may have, in the unit of `own_input`; may be
            infinite.

    """
    current_making: Making = making.get()
    current_making.met.add(own_input.path)
    mark = crc32(f"{own_input.path} {own_input.as_of}".encode())
    middle = (
        usual if usual and minimum < usual <= maximum else _placeholder_number(minimum, maximum)
    )
    span = min(current_making.span, REACH.get(own_input.path.partition(".")[0], math.inf))
    scaled_value = _scaled_within_bounds(
        middle, WAYS[current_making.number](mark), span * (1 + mark / PLACES / 2), minimum, maximum
    )
    if own_input.unit == "count":
        scaled_value = max(float(round(scaled_value)), math.ceil(minimum), 1.0)
    low, high = (
        None
        if end is None
        else scaled_value
        if end == own_input.value
        else max(minimum, min(share * scaled_value, maximum))
        for end, share in ((own_input.low, 0.9), (own_input.high, 1.1))
    )
    shown_value = own_input.shown and (
        convert(scaled_value, own_input.unit, own_input.shown[1]),
        own_input.shown[1],
    )
    return own_input._replace(
        value=scaled_value,
        low=low,
        high=high,
        note=WITHHELD if own_input.note else "",
        shown=shown_value,
    )


def figures_apart(figures: JsonObject, group: str) -> JsonObject:
    """Return figures that differ between all makings where they rest on own values of a group.

    A figure that moves in steps, such as a number of racks, may be the same in all makings by
    chance. It would be shown as if it held for the own values.

    Args:
        figures: Figures by name; tables of figures may stand among them.
        group: Group of the own values, the first word of their paths.

    """
    current: Making | None = making.get()
    if current is None or not any(path.startswith(f"{group}.") for path in current.met):
        return figures
    return {
        figure_name: figures_apart(figure_value, group)
        if isinstance(figure_value, dict)
        else (figure_value + 1) * (current.number + 1)
        if isinstance(figure_value, (int, float))
        else figure_value
        for figure_name, figure_value in figures.items()
    }


def _placeholder_number(minimum: float, maximum: float) -> float:
    """Return some value within bounds, for what nothing is shipped of."""
    if not math.isfinite(maximum):
        return max(minimum, 1.0)
    return (
        math.sqrt(minimum * maximum)
        if minimum > 0
        else math.sqrt(maximum)
        if maximum > 1
        else maximum / 2
    )


def _scaled_within_bounds(
    middle: float, up: bool, factor: float, minimum: float, maximum: float
) -> float:
    """Return a value moved up or down by a factor; where its bounds come before that, into what is
    left of them.
    """
    scaled_value = middle * factor if up else middle / factor
    if minimum <= scaled_value <= maximum:
        return scaled_value
    end = maximum if up and middle < maximum else minimum
    return middle + (end - middle) * (1 - 1 / factor)
