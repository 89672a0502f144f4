"""The one mapping every quantity comes from: `values[path]`. The mapping alone chooses the reading.

A path is a dotted name such as `parts.trn3.tdp` or `site.electricity_price`. What it gives is a float, an array, a quantity or
a traced leaf. Derived values are named too: `values.derived(path, unit, compute)` computes one, unless the user has set that
path; then the given value cuts off whatever lay below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tco.errors import DataError, unknown
from tco.trace import Trace, Traced
from tco.units import convert, parse_quantity

# From the firmest to the weakest; a line carries the worst kind it rests on.
KINDS = ("measured", "vendor", "filing", "analyst", "press", "derived", "estimate", "assumed")
SOURCED = frozenset(("measured", "vendor", "filing", "analyst", "press", "derived"))


def worst(kinds: list[str]) -> str:
    """Return the weakest of several kinds; nothing at all counts as derived."""
    return max(kinds, key=KINDS.index, default="derived")


@dataclass(frozen=True, slots=True)
class Input:
    """A number and where it comes from. `value`, `low` and `high` are in `unit`, the unit the formulas take."""

    path: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    as_of: str = ""
    kind: str = "assumed"
    source: str = ""
    note: str = ""
    shown: tuple[float, str] | None = None  # value and unit as the catalogue or the user writes them
    where: str = ""  # file:line or file:key
    overlay: bool = False  # a person's own number


Reader = Callable[[Input], Any]


def as_number(given: Input) -> float:
    """The number reading."""
    return given.value


def as_traced(trace: Trace) -> Reader:
    """The traced reading: every input becomes a leaf of the trace."""

    def read(given: Input) -> Traced:
        leaf = trace.leaf(given.path, given.value, given.unit, given.source, given.kind, given.path)
        leaf.node.shown, leaf.node.note = given.shown, given.note
        return leaf

    return read


@dataclass(frozen=True, slots=True)
class Given:
    """A setting that replaces an input: by the user, by a scenario, or by a variant of a system."""

    text: str
    source: str = "set by the user"
    kind: str = "assumed"


class Values(dict[str, Any]):
    """Inputs by path, resolved on first use, with the user's settings over the catalogue."""

    def __init__(
        self,
        resolve: Callable[[str], Input],
        read: Reader = as_number,
        given: Mapping[str, Given] | None = None,
        bounds: Callable[[str], tuple[float, float]] = lambda _: (-math.inf, math.inf),
    ) -> None:
        super().__init__()
        self.resolve = resolve
        self.bounds = bounds
        self.read = read
        self.given = dict(given or {})
        self.inputs: dict[str, Input] = {}  # every input used, for baselines and diffs
        self.derived_units: dict[str, str] = {}  # every derived path met

    def __missing__(self, path: str) -> Any:
        found = self.input(path)
        value = self[path] = self.read(found)
        return value

    def input(self, path: str) -> Input:
        """Return the input behind a path, with its provenance; an unknown path raises `DataError`."""
        found = self.inputs.get(path)
        if found is None:
            given = self.given.get(path)
            found = self.resolve(path) if given is None else self.override(path, self.resolve(path).unit, given)
            self.inputs[path] = found
        return found

    def override(self, path: str, unit: str, given: Given) -> Input:
        """Return the input a setting gives for a path, checked for unit, finiteness and the bounds of its attribute."""
        try:
            value = parse_quantity(given.text, unit)
        except DataError as error:
            raise DataError(f"{path}={given.text}: {error}") from None
        number, _, unit_text = given.text.strip().partition(" ")
        shown = (float(number), unit_text.strip()) if not number.endswith("%") else (value, unit)
        made = Input(path, value, unit, value, value, "", given.kind, given.source, "", shown, given.source)
        return bounded(made, *self.bounds(path))

    def has(self, path: str) -> bool:
        """Say whether the user has set this path."""
        return path in self.given

    def derived(self, path: str, unit: str, compute: Callable[[], Any]) -> Any:
        """Return the value of a named derived quantity: computed, or what the user has set instead."""
        self.derived_units[path] = unit
        if path in self.given:
            if path not in self.inputs:
                self.inputs[path] = self.override(path, unit, self.given[path])
                self[path] = self.read(self.inputs[path])
            return self[path]
        value = compute()
        if isinstance(value, Traced) and value.node.path is None:
            value.node.path = path
        return value

    def kind(self, *paths: str) -> str:
        """Return the worst kind among some inputs."""
        return worst([self.input(path).kind for path in paths])

    def check_given(self, known: Callable[[str], bool]) -> list[str]:
        """Return the set paths that had no effect; a path that is no input at all raises `DataError`."""
        unused = [path for path in self.given if path not in self.inputs]
        for path in unused:
            if not known(path):
                raise unknown("input path", path, [*self.inputs, *self.derived_units], "--set")
        return unused


def bounded(given: Input, minimum: float, maximum: float) -> Input:
    """Return the input if its value lies within the bounds of its attribute; else raise `DataError`."""
    for name, number in (("value", given.value), ("low", given.low), ("high", given.high)):
        if number is not None and not (math.isfinite(number) and minimum <= number <= maximum):
            unit = given.unit or "1"
            raise DataError(f"{given.where}: {given.path}: {name} {number:g} {unit} is outside {minimum:g} to {maximum:g} {unit}")
    if given.low is not None and given.low > given.value:
        raise DataError(f"{given.where}: {given.path}: low {given.low:g} is above the value {given.value:g}")
    if given.high is not None and given.high < given.value:
        raise DataError(f"{given.where}: {given.path}: high {given.high:g} is below the value {given.value:g}")
    return given


def in_unit(given: Input, unit: str) -> float:
    """Return the value of an input in another unit of its dimension."""
    return convert(given.value, given.unit, unit)
