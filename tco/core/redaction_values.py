"""Stand-ins for a user's own values, from which an answer that withholds them is computed.

A making is one run of a command with a stand-in for each own value. A stand-in depends only on the
path of the value and on the shipped value, so users with other values at the same paths get the
same bytes. A command has several makings: in the first every stand-in is near the shipped value, in
the others it is far above or far below. Each path has a different factor, so that no sum or
quotient of stand-ins stays the same. A figure that is equal in all makings does not depend on own
values, and may be shown.
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
# Largest factor of stand-ins by group. The time to compute a service grows with its load.
LARGEST_SPANS = {"traffic": 1.5}
MARK_COUNT = 2**32  # the mark of a path is a whole number below this
NEAR_SPAN = 1.1  # smallest factor between a near stand-in and the shipped value
# Whether a stand-in is above the shipped value, by making and mark of the path. In the first far
# making all stand-ins are below, where an answer fails most often and soonest. In the last two half
# of them are above and half below, which also changes the quotient of two values.
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
        # Smallest factor between a stand-in and the shipped value, above or below it.
        self.span = span
        self.own_paths = own_paths  # paths that have a stand-in
        self.is_printed = False  # whether the answer was released and is printed next
        # Paths and texts of the command line, which are the user's own. Values that a study varies
        # are not.
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
    """Return a stand-in for a user's own value in the current making.

    The stand-in keeps no value of the input. It keeps the path, date, kind, source and unit of the
    input, and whether the input is a range.

    Args:
        own_input: The user's own input.
        usual: Shipped value of the input in the unit of `own_input`, or None.
        minimum: Smallest value that the input may have, in the unit of `own_input`.
        maximum: Largest value that the input may have, in the unit of `own_input`; may be infinite.

    """
    current_making: Making = making.get()
    current_making.own_paths.add(own_input.path)
    mark = crc32(f"{own_input.path} {own_input.as_of}".encode())
    if usual and minimum < usual <= maximum:
        shipped_value = usual
    else:
        shipped_value = _placeholder_number(minimum, maximum)
    span = min(current_making.span, LARGEST_SPANS.get(own_input.path.partition(".")[0], math.inf))
    scaled_value = _scaled_within_bounds(
        shipped_value,
        is_raised=DIRECTIONS[current_making.number](mark),
        factor=span * (1 + mark / MARK_COUNT / 2),
        minimum=minimum,
        maximum=maximum,
    )
    if own_input.unit == "count":
        scaled_value = max(float(round(scaled_value)), math.ceil(minimum), 1.0)

    def placeholder_end(end: float | None, share: float) -> float | None:
        if end is None:
            return None
        if end == own_input.value:
            return scaled_value
        return max(minimum, min(share * scaled_value, maximum))

    shown_value = own_input.stated_quantity and (
        convert(scaled_value, own_input.unit, own_input.stated_quantity[1]),
        own_input.stated_quantity[1],
    )
    return own_input._replace(
        value=scaled_value,
        low=placeholder_end(own_input.low, 0.9),
        high=placeholder_end(own_input.high, 1.1),
        note=WITHHELD if own_input.note else "",
        stated_quantity=shown_value,
    )


def figures_apart(figures: JsonObject, group: str) -> JsonObject:
    """Return figures, changed to differ between makings where a group has own values.

    A figure that moves in steps, such as a number of racks, may be equal in all makings by chance.
    Without the change it would be shown, although it depends on own values.

    Args:
        figures: Figures by name; a figure may be a table of figures.
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
    value: float, is_raised: bool, factor: float, minimum: float, maximum: float
) -> float:
    """Return a value scaled up or down by a factor, within its bounds.

    Where the product is out of bounds, the value moves part of the way to the bound.
    """
    scaled_value = value * factor if is_raised else value / factor
    if minimum <= scaled_value <= maximum:
        return scaled_value
    bound = maximum if is_raised and value < maximum else minimum
    return value + (bound - value) * (1 - 1 / factor)
