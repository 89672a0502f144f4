"""Which cases a partition holds: a pure function of its number.

Cases are numbered scenario by scenario, then by the inputs that are set one value at a time (texts, and numbers that may change the plan),
then by those asked as arrays, in the order of the study's file, and last by draws. A setting is a scenario with a value of each of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
SETTINGS = 32  # of a partition at most: each is a search of plans, and what is computed between two files is lost where a run is killed
ROWS = 2**18  # of a partition at most
NUMBERS = 2**24  # of a partition at most, in all columns
LEAST = 2**15  # rows where there are that many, however many the columns


class Slice(NamedTuple):
    """Some cases of one setting."""

    scenario: int
    places: tuple[int, ...]  # of the values that the setting takes
    start: int  # places of its cases, from ...
    stop: int  # ... to before


class Layout(NamedTuple):
    """How many there are of everything that cases are counted by."""

    scenarios: int
    outer: tuple[int, ...]  # values of the inputs that a setting fixes
    inner: tuple[int, ...]  # values of those asked as arrays
    draws: int
    columns: int

    @property
    def settings(self) -> int:
        """How many settings there are."""
        return self.scenarios * prod(self.outer)

    @property
    def within(self) -> int:
        """How many cases a setting has."""
        return prod(self.inner) * self.draws

    @property
    def cases(self) -> int:
        """How many cases there are."""
        return self.settings * self.within

    @property
    def rows(self) -> int:
        """How many cases of one setting a partition holds at most."""
        return min(ROWS, max(NUMBERS // self.columns, LEAST))

    @property
    def together(self) -> int:
        """How many settings a partition holds; less than one is one."""
        return min(SETTINGS, self.rows // self.within)

    @property
    def pieces(self) -> int:
        """How many partitions a setting is cut into that does not fit one."""
        return -(-self.within // self.rows)

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return -(-self.settings // self.together) if self.together else self.settings * self.pieces

    def slices(self, number: int) -> Iterator[Slice]:
        """Yield the cases of a partition, setting by setting."""
        if self.together:
            first = number * self.together
            for setting in range(first, min(first + self.together, self.settings)):
                yield self.slice(setting, 0, self.within)
            return
        setting, piece = divmod(number, self.pieces)
        yield self.slice(setting, piece * self.rows, min((piece + 1) * self.rows, self.within))

    def slice(self, setting: int, start: int, stop: int) -> Slice:
        """Return cases of a setting by its number."""
        scenario, rest = divmod(setting, prod(self.outer))
        places = []
        for count in reversed(self.outer):
            rest, place = divmod(rest, count)
            places.append(place)
        return Slice(scenario, tuple(reversed(places)), start, stop)

    def cases_in(self, number: int) -> int:
        """How many cases a partition holds."""
        return sum(one.stop - one.start for one in self.slices(number))

    def coordinates(self, cases: Array) -> tuple[list[Array], Array]:
        """Return the places of cases on the axes asked as arrays, and their draws."""
        rest, draws = np.divmod(cases, self.draws)
        places = []
        for count in reversed(self.inner):
            rest, place = np.divmod(rest, count)
            places.append(place)
        return places[::-1], draws
