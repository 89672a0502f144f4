"""The values of an input that a study goes through: a list, or so many steps from one value to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tco.chain.texts import DOCUMENTS, TEXTS
from tco.foundation.errors import DataError, unknown
from tco.foundation.units import convert, parse_quantity

Array = np.ndarray[Any, Any]
RANGE = ("from", "to", "steps", "scale")
SCALES = ("linear", "log")
PLAN = "plan."  # begins the path of an axis of the plan


class Axis(NamedTuple):
    """An input and its values: texts, or numbers of one unit, each found by its place alone so that no number of them needs memory."""

    path: str
    unit: str | None  # none: texts
    listed: tuple[Any, ...] = ()
    start: float = 0.0
    stop: float = 0.0
    steps: int = 0
    log: bool = False

    @property
    def length(self) -> int:
        """How many values there are."""
        return len(self.listed) or self.steps

    def at(self, places: Array) -> Array:
        """Return the numbers at some places."""
        if self.listed:
            return np.asarray(self.listed, dtype=float)[places]
        share = places / (self.steps - 1)
        many = self.start * (self.stop / self.start) ** share if self.log else self.start + (self.stop - self.start) * share
        return np.where(places == self.steps - 1, self.stop, many)

    def setting(self, place: int) -> Any:
        """Return one value as an evaluation takes it."""
        return self.listed[place] if self.unit is None else (float(self.at(np.array([place]))[0]), self.unit)


def axis_of(path: str, found: Any, where: str, unit_of: Callable[[str], str]) -> Axis:
    """Return the values that a study's file gives for a path; whatever is wrong with them raises `DataError`."""
    if isinstance(found, dict):
        return spaced(path, found, where, unit_of)
    if not isinstance(found, list) or not found:
        raise DataError(f"{where}: expected a list of values with one value or more, or {{ from, to, steps, scale }}")
    if twice := next((one for place, one in enumerate(found) if one in found[:place]), None):
        raise DataError(f"{where}: {twice!r} is listed twice")
    if path in TEXTS or path in DOCUMENTS or path.startswith(PLAN):
        return Axis(path, None, tuple(str(one) for one in found))
    numbers, name = in_one_unit(found, path, where, unit_of)
    return Axis(path, name, tuple(numbers))


def spaced(path: str, found: dict[str, Any], where: str, unit_of: Callable[[str], str]) -> Axis:
    """Return so many steps from one value to another."""
    if path in TEXTS or path in DOCUMENTS or path.startswith(PLAN):
        raise DataError(f"{where}: takes names, expected a list of them")
    for key in found:
        if key not in RANGE:
            raise unknown("key", key, RANGE, where)
    if missing := [key for key in RANGE[:3] if key not in found]:
        raise DataError(f"{where}: {missing[0]} is missing, expected {{ from, to, steps }} and perhaps scale")
    (start, stop), name = in_one_unit([found["from"], found["to"]], path, where, unit_of)
    steps, scale = found["steps"], found.get("scale", "linear")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 2:
        raise DataError(f"{where}: steps is {steps!r}, expected a whole number of 2 or more")
    if scale not in SCALES:
        raise unknown("scale", str(scale), SCALES, where)
    if start >= stop:
        hint = "the range is reversed" if start > stop else "both ends are the same"
        raise DataError(f"{where}: from {found['from']} to {found['to']}: {hint}, expected the lower value first")
    if scale == "log" and start <= 0:
        raise DataError(f"{where}: from {found['from']} on a log scale, expected a value above zero")
    return Axis(path, name, (), start, stop, steps, scale == "log")


def in_one_unit(found: list[Any], path: str, where: str, unit_of: Callable[[str], str]) -> tuple[list[float], str]:
    """Return values as numbers of the unit that they are written in, or of the input's own where they differ or name none."""
    own = unit_of(path)
    try:
        read = [quantity(one, own) for one in found]
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    names = {name for _, name in read}
    if len(names) == 1:
        return [number for number, _ in read], names.pop()
    return [float(convert(number, name, own)) for number, name in read], own


def quantity(found: Any, own: str) -> tuple[float, str]:
    """Return a value and the unit it is written in; a bare number is pure, as it is everywhere."""
    text = found.strip() if isinstance(found, str) else repr(found)
    value = parse_quantity(text, own)
    number, _, name = text.replace("%", " %").partition(" ")
    return (float(number), name.strip()) if name.strip() else (value, own)
