"""Beliefs about inputs: 5th and 95th percentile, distribution and correlated draws.

The column `belief` of `data/attributes.csv` names the distribution of an input:

- Log-normal for an input that errs by a factor, such as a price, a time or a failure rate.
- Normal for a signed input.
- PERT for a share or a specification.
- Triangular for a count or a life.
- Steps for a flag. An input that decides a count of the structure is drawn in steps too.

Inputs that share a cause have correlated standard normal deviates, whatever their distributions. A
draw outside the bounds of its attribute is moved to the bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from tco.catalog.rows import attribute_of_path
from tco.compile.execute import keep_memory
from tco.core.files import data_directory, read_csv
from tco.core.provenance import LEADER, Input
from tco.core.types import AnyArray
from tco.scenario.distributions import (
    LOGNORMAL,
    STEPS,
    deviate_of_value,
    distribution_quantiles,
)
from tco.scenario.resolved import bounds

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.scenario.result import Result

PAIRS_PER_CALL = 2**16  # pairs of antithetic deviates that are computed in one call
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
CAUSE_COLUMNS = ("cause", "pattern", "loading", "low", "high", "kind", "note")


class Range(NamedTuple):
    """The range of an input, in its unit."""

    path: str
    low: float  # 5th percentile
    value: float
    high: float  # 95th percentile
    unit: str
    minimum: float  # bounds of the attribute, which draws are moved to
    maximum: float
    steps: bool  # whether the input decides a count of the structure
    stated_quantity: tuple[float, str] | None  # value and unit as the catalogue writes them
    leader: str  # path whose draws the input shares: its own, unless it follows another input
    belief: str = LOGNORMAL  # distribution of the attribute

    @property
    def shape(self) -> str:
        """Distribution that the draws have."""
        return STEPS if self.steps else self.belief

    @property
    def home(self) -> float:
        """Standard normal deviate of the value."""
        return deviate_of_value(self.shape, self.low, self.value, self.high)

    def quantile(self, deviates: AnyArray) -> AnyArray:
        """Return new quantiles at standard normal deviates, within the bounds."""
        quantiles = distribution_quantiles(self.shape, self.low, self.value, self.high, deviates)
        return quantiles.clip(self.minimum, self.maximum, out=quantiles)


def beliefs_of(scenario_result: Result) -> dict[str, Range]:
    """Return the ranges of the uncertain inputs of a result, by path.

    Args:
        scenario_result: The result with its inputs.

    Returns:
        Ranges in the order of the paths. An input without a low or a high, or with a low that is
        not below the high, is left out.

    """
    structure_readings = scenario_result.structure.readings if scenario_result.structure else {}
    ranges = {}
    for path, result_input in sorted(scenario_result.inputs.items()):
        if not has_range(result_input):
            continue
        steps = path in structure_readings and not isinstance(structure_readings[path], bool)
        ranges[path] = belief_of(result_input, steps)
    return ranges


def has_range(result_input: Input) -> bool:
    """Return whether an input has a low that is below its high."""
    low, high = result_input.low, result_input.high
    return low is not None and high is not None and bool(low < high)


def belief_of(uncertain_input: Input, steps: bool = False) -> Range:
    """Return the range of an input with a low and high.

    Args:
        uncertain_input: The input; its low and high are not None.
        steps: Whether the input decides a count, and so the structure.

    """
    path, note = uncertain_input.path, uncertain_input.note
    ends = uncertain_input.low, uncertain_input.high
    low, high = (float(end) for end in ends)  # type: ignore[arg-type]
    minimum, maximum = bounds(path)
    attribute = attribute_of_path(path)
    return Range(
        path=path,
        low=low,
        value=uncertain_input.value,
        high=high,
        unit=uncertain_input.unit,
        minimum=minimum,
        maximum=maximum,
        steps=steps,
        stated_quantity=uncertain_input.stated_quantity,
        leader=f"performance.{note.removeprefix(LEADER)}" if note.startswith(LEADER) else path,
        belief=attribute.belief if attribute else LOGNORMAL,  # a derived value errs by a factor
    )


def loadings(catalogue: Catalogue, path: str) -> dict[str, float]:
    """Return the correlation of an input with each of its causes.

    Args:
        catalogue: Catalogue that caches the rows of `causes.csv`.
        path: Path of the input.

    Returns:
        Correlation by cause, from the first row of the cause whose pattern matches the path.

    """
    patterns = catalogue.once("causes", _cause_patterns)
    return catalogue.once(
        ("loadings", path),
        lambda: {cause: loading for matches, cause, loading in patterns if matches(path)},
    )


def _cause_patterns() -> list[tuple[Callable[[str], Any], str, float]]:
    """Return path matcher, cause and correlation of each row of causes, in reverse order."""
    cause_rows = [row for _, row in read_csv(data_directory() / "causes.csv", CAUSE_COLUMNS)]
    return [
        (re.compile(translate(row["pattern"])).match, row["cause"], float(row["loading"]))
        for row in reversed(cause_rows)
    ]


class Dice:
    """Random deviates of inputs, which depend on the seed, the path and the draw's index alone.

    Scenarios therefore share the deviates of a common input.
    """

    def __init__(self, catalogue: Catalogue, seed: int, start: int, stop: int) -> None:
        self.catalogue = catalogue
        self.seed = np.array([seed], dtype=np.uint64)
        self.count = stop - start
        self.pairs = np.arange(start // 2 * 2, stop + stop % 2, 2, dtype=np.uint64) * GOLDEN
        # Pairs begin at an even draw, so they may have a draw more at either end.
        self.draws_of_pairs = slice(start % 2, start % 2 + stop - start)
        self.thrown: dict[str, AnyArray] = {}
        self.drawn: dict[Range, AnyArray] = {}

    def throw(self, stream_name: str) -> AnyArray:
        """Return a stream's standard normal deviates by Box and Muller, in antithetic pairs."""
        self._throw_missing([stream_name])
        return self.thrown[stream_name]

    def _throw_missing(self, stream_names: Iterable[str]) -> None:
        """Compute the deviates of streams that have none yet, many streams in one call."""
        missing = [name for name in dict.fromkeys(stream_names) if name not in self.thrown]
        streams_per_call = max(PAIRS_PER_CALL // len(self.pairs), 1)
        for first in range(0, len(missing), streams_per_call):
            names = missing[first : first + streams_per_call]
            hashes = np.array([crc32(name.encode()) for name in names], dtype=np.uint64)
            stream_keys = splitmix64(splitmix64(self.seed.copy()) + hashes).reshape(-1, 1)
            radius, angle = (
                uniform(splitmix64(self.pairs + key_offset))
                for key_offset in (stream_keys + GOLDEN, stream_keys + GOLDEN + GOLDEN)
            )
            first_of_pair = np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)
            pairs = np.stack((first_of_pair, -first_of_pair), axis=-1)
            deviates = pairs.reshape(len(names), -1)[:, self.draws_of_pairs]
            self.thrown.update(zip(names, deviates, strict=True))

    def correlated_deviates(self, input_range: Range) -> AnyArray:
        """Return an input's standard normal deviates, correlated by the causes that it shares."""
        loading_by_cause = loadings(self.catalogue, input_range.leader)
        if not loading_by_cause:
            return self.throw(input_range.leader)
        shared_variance = sum(loading**2 for loading in loading_by_cause.values())
        deviates: AnyArray = np.sqrt(1 - shared_variance) * self.throw(input_range.leader)
        for cause, loading in loading_by_cause.items():
            deviates += loading * self.throw(f"cause {cause}")
        return deviates

    def settings(self, ranges: Mapping[str, Range]) -> dict[str, tuple[AnyArray, str]]:
        """Return the draws of inputs with their units, as settings of an evaluation."""
        keep_memory()
        leaders = {input_range.leader for input_range in ranges.values()}
        causes = {cause for leader in leaders for cause in loadings(self.catalogue, leader)}
        self._throw_missing([*sorted(leaders), *(f"cause {cause}" for cause in sorted(causes))])
        return {
            path: (self._values_of(input_range), input_range.unit)
            for path, input_range in ranges.items()
        }

    def _values_of(self, input_range: Range) -> AnyArray:
        """Return the draws of an input, computed once for all scenarios and dates."""
        drawn = self.drawn.get(input_range)
        if drawn is None:
            drawn = input_range.quantile(self.correlated_deviates(input_range))
            drawn.flags.writeable = False
            self.drawn[input_range] = drawn
        return drawn


def splitmix64(integers: AnyArray) -> AnyArray:
    """Mix the bits of 64-bit numbers.

    The mixing is the output function of SplitMix64 (Steele, Lea and Flood 2014). The state of
    SplitMix64 advances by `GOLDEN`.

    Args:
        integers: Array of uint64 of any shape, overwritten in place.

    Returns:
        The same array with the mixed numbers.

    """
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        integers ^= integers >> np.uint64(shift)
        integers *= np.uint64(factor)
    integers ^= integers >> np.uint64(31)
    return integers


def uniform(integers: AnyArray) -> AnyArray:
    """Return 64-bit numbers as floats above zero and up to one.

    Args:
        integers: Array of uint64 of any shape, overwritten in place.

    Returns:
        Array of floats of the same shape, from the upper 53 bits of each number.

    """
    integers >>= np.uint64(11)
    integers += np.uint64(1)
    uniform_numbers = integers.view(np.int64).astype(float)
    uniform_numbers *= 2.0**-53
    return uniform_numbers


def settings_of(
    ranges: Mapping[str, Range], deviates_by_path: Mapping[str, AnyArray]
) -> dict[str, tuple[AnyArray, str]]:
    """Return inputs at deviates of their ranges, as settings of an evaluation.

    Args:
        ranges: Range of each input by path, at least of the paths of `deviates_by_path`.
        deviates_by_path: Standard normal deviates by path.

    Returns:
        Values and their unit by path; the values have the shape of the deviates.

    """
    return {
        path: (ranges[path].quantile(deviates), ranges[path].unit)
        for path, deviates in deviates_by_path.items()
    }
