"""What an input may be: the range of its row, the distribution of its attribute, and draws of it.

`low` and `high` are the 5th and 95th percentile of belief, the value its median or its most likely (`tco.studies.beliefs`). Whatever leaves
the bounds of its attribute is moved to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from tco.catalog.rows import attributes
from tco.chain.inputs import bounds
from tco.foundation.files import data_directory, read_csv
from tco.foundation.provenance import LEADER, Input
from tco.graph.run import side_by_side
from tco.studies.beliefs import LOGNORMAL, STEPS, place_of_value, values_at

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.chain.result import Result

Array = np.ndarray[Any, Any]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
COLUMNS = ("cause", "pattern", "loading", "low", "high", "kind", "note")


class Range(NamedTuple):
    """The range of an input, in its unit."""

    path: str
    low: float
    value: float
    high: float
    unit: str
    minimum: float  # of its attribute
    maximum: float
    steps: bool  # it decides how many of something there are, and so structure
    shown: tuple[float, str] | None  # value and unit as the catalogue writes them
    leader: str  # the input whose draws it shares: its own, unless it is known to follow another
    belief: str = LOGNORMAL  # its distribution

    @property
    def shape(self) -> str:
        """The distribution it is drawn from."""
        return STEPS if self.steps else self.belief

    @property
    def home(self) -> float:
        """The place of its value."""
        return place_of_value(self.shape, self.low, self.value, self.high)

    def at(self, place: Array) -> Array:
        """Return the values at some places, as standard normal deviates."""
        many = values_at(self.shape, self.low, self.value, self.high, place)
        return many.clip(self.minimum, self.maximum, out=many)


def ranges_of(result: Result) -> dict[str, Range]:
    """Return the range of every input of a result that has one."""
    held = result.structure.readings if result.structure else {}
    found = {}
    for path, given in sorted(result.inputs.items()):
        if given.low is None or given.high is None or given.low >= given.high:
            continue
        steps = path in held and not isinstance(held[path], bool)
        found[path] = range_of(given, steps)
    return found


def range_of(given: Input, steps: bool = False) -> Range:
    """Return the range of an input that has a low and a high."""
    leader = f"performance.{given.note.removeprefix(LEADER)}" if given.note.startswith(LEADER) else given.path
    low, high = (float(end) for end in (given.low, given.high))  # type: ignore[arg-type]
    return Range(given.path, low, given.value, high, given.unit, *bounds(given.path), steps, given.shown, leader, belief_of(given.path))


def belief_of(path: str) -> str:
    """Return the distribution that the attribute of an input names; what is derived errs by a factor."""
    found = attributes().get((path.partition(".")[0], path.rpartition(".")[2]))
    return found.belief if found else LOGNORMAL


def loadings(catalogue: Catalogue, path: str) -> dict[str, float]:
    """Return the causes that move an input, with its correlation with each; of several patterns of a cause the first holds."""
    rows = catalogue.once("causes", lambda: list(read_csv(data_directory() / "causes.csv", COLUMNS)))
    found: dict[str, float] = catalogue.once(
        ("loadings", path), lambda: {row["cause"]: float(row["loading"]) for _, row in reversed(rows) if fnmatchcase(path, row["pattern"])}
    )
    return found


class Dice:
    """Random places of inputs: those of draw i rest on the seed, the path and i alone, so that scenarios share those of a common input."""

    def __init__(self, catalogue: Catalogue, seed: int, start: int, stop: int) -> None:
        self.catalogue, self.seed, self.count = catalogue, np.array([seed], dtype=np.uint64), stop - start
        self.pairs = np.arange(start // 2 * 2, stop + stop % 2, 2, dtype=np.uint64) * GOLDEN
        self.own = slice(start % 2, start % 2 + stop - start)  # of the draws of these pairs
        self.thrown: dict[str, Array] = {}

    def throw(self, name: str) -> Array:
        """Return the standard normal deviates of a name: those of Box and Muller, two draws from two uniform numbers."""
        found = self.thrown.get(name)
        if found is None:
            key = mixed(mixed(self.seed.copy()) + np.uint64(crc32(name.encode())))
            one, other = (uniform(mixed(self.pairs + place)) for place in (key + GOLDEN, key + GOLDEN + GOLDEN))
            other *= np.pi
            half = np.tan(other, out=other)  # of the angle: cosine and sine of the whole follow in a third of their time
            radius = np.log(one, out=one)
            radius *= -2
            radius = np.sqrt(radius, out=radius)
            square = half**2
            radius /= 1 + square
            whole = np.empty((len(self.pairs), 2))
            np.multiply(radius, np.subtract(1, square, out=square), out=whole[:, 0])
            half *= 2
            np.multiply(radius, half, out=whole[:, 1])
            found = self.thrown[name] = whole.ravel()[self.own]
        return found

    def places(self, one: Range) -> Array:
        """Return the places of an input: its own, or in part those of the causes it shares with others, normal all the same."""
        shared = loadings(self.catalogue, one.leader)
        if not shared:
            return self.throw(one.leader)
        own: Array = np.sqrt(1 - sum(loading**2 for loading in shared.values())) * self.throw(one.leader)
        for cause, loading in shared.items():
            own += loading * self.throw(f"cause {cause}")
        return own

    def settings(self, ranges: Mapping[str, Range]) -> dict[str, tuple[Array, str]]:
        """Return inputs where they are drawn, as an evaluation takes them."""
        drawn = side_by_side(lambda one: one.at(self.places(one)), [*ranges.values()], self.count)
        return {path: (many, ranges[path].unit) for path, many in zip(ranges, drawn, strict=True)}


def mixed(many: Array) -> Array:
    """Mix 64-bit numbers thoroughly: the output of SplitMix64 (Steele, Lea and Flood 2014), which counts in steps of `GOLDEN`."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        many ^= many >> np.uint64(shift)
        many *= np.uint64(factor)
    many ^= many >> np.uint64(31)
    return many


def uniform(many: Array) -> Array:
    """Return 64-bit numbers as numbers above zero and up to one."""
    many >>= np.uint64(11)
    many += np.uint64(1)
    found = many.view(np.int64).astype(float)
    found *= 2.0**-53
    return found


def settings_of(ranges: Mapping[str, Range], places: Mapping[str, Array]) -> dict[str, tuple[Array, str]]:
    """Return the inputs at some places, as an evaluation takes them."""
    return {path: (ranges[path].at(many), ranges[path].unit) for path, many in places.items()}
