"""Stand-ins for a user's own values, from which a withholding answer is computed.

A making is one run of a command with a stand-in for each own value. A stand-in depends on the path
of the value and on the shipped value alone, so people with other values at the same paths get the
same bytes. A command has several makings: the first puts every stand-in near the shipped value, the
others put it far above or far below. Each path has a factor of its own, so that no sum or quotient
of stand-ins stays the same. A figure that is equal in all makings does not depend on own values,
and may be shown.
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
# most that a stand-in of a group is scaled by: the time of a service grows with its load
LARGEST_SPANS = {"traffic": 1.5}
MARK_COUNT = 2**32  # a path's mark is a whole number below it
NEAR_SPAN = 1.1  # least factor between a near stand-in and the shipped value
# Whether each making puts a stand-in above the shipped value, by the mark of its path. The first
# far making puts all below, where an answer fails most often and soonest. The last two put half of
# the paths above and half below: a quotient of two values shows only there.
DIRECTIONS: tuple[Callable[[int], bool], ...] = (
    lambda _: True,
    lambda _: False,
    lambda _: True,
    lambda mark: bool(mark % 2),
    lambda mark: not mark % 2,
)


class Making:
    """One run of a command with stand-ins; caches share nothing between makings."""

    def __init__(self, number: int, own_paths: set[str], span: float = NEAR_SPAN) -> None:
        self.number = number  # index in `DIRECTIONS`
        # least factor between a stand-in and the shipped value, above or below it
        self.span = span
        self.own_paths = own_paths  # paths that were given a stand-in
        self.is_printed = False  # its answer was released, and is printed next
        # paths and texts that the command line sets: those are a person's own, and the values that
        # a study sets in turn are not
        self.typed_settings: set[tuple[str, str]] = set()


@contextmanager
def made_with(making_rules: Making) -> Iterator[None]:
    """Replace every own value that is read in the block by a stand-in.

    Args:
        making_rules: Making that chooses the stand-ins and records their paths.

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
    current_making.own_paths.add(own_input.path)
    mark = crc32(f"{own_input.path} {own_input.as_of}".encode())
    middle = (
        usual if usual and minimum < usual <= maximum else _placeholder_number(minimum, maximum)
    )
    span = min(current_making.span, LARGEST_SPANS.get(own_input.path.partition(".")[0], math.inf))
    scaled_value = _scaled_within_bounds(
        middle,
        DIRECTIONS[current_making.number](mark),
        span * (1 + mark / MARK_COUNT / 2),
        minimum,
        maximum,
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
    shown_value = own_input.stated_quantity and (
        convert(scaled_value, own_input.unit, own_input.stated_quantity[1]),
        own_input.stated_quantity[1],
    )
    return own_input._replace(
        value=scaled_value,
        low=low,
        high=high,
        note=WITHHELD if own_input.note else "",
        stated_quantity=shown_value,
    )


def figures_apart(figures: JsonObject, group: str) -> JsonObject:
    """Return figures, changed to differ between makings where they rest on own values of a group.

    A figure that moves in steps, such as a number of racks, may be equal in all makings by chance.
    It would then be shown as if it held for the own values.

    Args:
        figures: Figures by name; tables of figures may stand among them.
        group: Group of the own values, the first word of their paths.

    """
    current: Making | None = making.get()
    if current is None or not any(path.startswith(f"{group}.") for path in current.own_paths):
        return figures
    changed_figures = dict(figures)
    for figure_name, figure_value in figures.items():
        if isinstance(figure_value, dict):
            changed_figures[figure_name] = figures_apart(figure_value, group)
        elif isinstance(figure_value, (int, float)):
            changed_figures[figure_name] = (figure_value + 1) * (current.number + 1)
    return changed_figures


def _placeholder_number(minimum: float, maximum: float) -> float:
    """Return a value within bounds, for an input without a shipped value."""
    if not math.isfinite(maximum):
        return max(minimum, 1.0)
    if minimum > 0:
        return math.sqrt(minimum * maximum)
    return math.sqrt(maximum) if maximum > 1 else maximum / 2


def _scaled_within_bounds(
    middle: float, up: bool, factor: float, minimum: float, maximum: float
) -> float:
    """Return a value scaled up or down by a factor, within its bounds.

    Where the product lies out of bounds, the value moves part of the way to the bound.
    """
    scaled_value = middle * factor if up else middle / factor
    if minimum <= scaled_value <= maximum:
        return scaled_value
    end = maximum if up and middle < maximum else minimum
    return middle + (end - middle) * (1 - 1 / factor)
