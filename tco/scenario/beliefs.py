"""Beliefs about inputs: 5th and 95th percentile, distribution and correlated draws.

Low and high are the 5th and 95th percentile of belief. The column `belief` in
`data/attributes.csv` names the distribution. An input that errs by a factor (prices, times, rates
of failure) is log-normal on either side of its value, the median. A signed input is normal on
either side of its value. A share or a specification is a PERT distribution (Malcolm et al. 1959),
and a count or a life a triangular distribution: both are judged between two ends, with the value as
the most likely. A flag, and a size that decides structure, is drawn in steps. Places are standard
normal deviates. Places of inputs that share a cause go together, whatever distributions the inputs
have. A draw outside the bounds of its attribute is moved to the bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from tco.catalog.rows import attribute_of_path
from tco.compile.execute import keep_memory
from tco.core.files import data_directory, read_csv
from tco.core.provenance import LEADER, P95, Input
from tco.core.types import AnyArray
from tco.scenario.resolved import bounds

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.scenario.result import Result

LOGNORMAL, NORMAL, PERT, TRIANGULAR, STEPS = (
    "lognormal",
    "normal",
    "pert",
    "triangular",
    "steps",
)
# three values for all: 18.5 % of draws beyond it on either side (extended Pearson-Tukey, Keefer and
# Bodily 1983)
STEP = 0.8964733640019076
# columns of a table from the median to the 95th percentile, which are columns of it themselves
FINE = 64
REACH = 3  # times as far go its columns: beyond lies less than one draw in a million
SHAPES = 64  # intervals of the most likely value's place between the ends
ANGLES = 1024  # intervals of an integral over a density


class QuantileTable(NamedTuple):
    """Quantiles of all distributions of a kind, by where the most likely value lies.

    A row is a distribution with its 5th percentile at 0 and its 95th at 1; a column is a quantile.
    """

    likely: AnyArray  # the most likely value of each row on the same scale, ascending
    quantiles: AnyArray

    def row(self, likely: float) -> AnyArray:
        """Return the quantiles for a most likely value, a share from 5th to 95th percentile."""
        row_position = float(np.interp(likely, self.likely, np.arange(len(self.likely))))
        first = min(int(row_position), len(self.likely) - 2)
        row_quantiles: AnyArray = self.quantiles[first] + (row_position - first) * (
            self.quantiles[first + 1] - self.quantiles[first]
        )
        return row_quantiles


PLACES = np.arange(-REACH * FINE, REACH * FINE + 1) * (P95 / FINE)


@cache
def _quantile_table(kind: str) -> QuantileTable:
    """Return the table of a kind of distributions."""
    modes = np.linspace(0, 1, SHAPES + 1)
    shares = np.array([math.erfc(-deviate / math.sqrt(2)) / 2 for deviate in PLACES])
    unit_quantiles = (triangular if kind == TRIANGULAR else pert)(modes[:, None], shares)
    low, high = (unit_quantiles[:, (REACH + side) * FINE] for side in (-1, 1))
    return QuantileTable(
        (modes - low) / (high - low), (unit_quantiles - low[:, None]) / (high - low)[:, None]
    )


def triangular(mode: AnyArray, shares: AnyArray) -> AnyArray:
    """Return quantiles of triangular distributions from 0 to 1.

    They are sqrt(p m) below the mode m, and 1 - sqrt((1 - p)(1 - m)) above.
    """
    unit_quantiles: AnyArray = np.where(
        shares < mode, np.sqrt(shares * mode), 1 - np.sqrt((1 - shares) * (1 - mode))
    )
    return unit_quantiles


def pert(mode: AnyArray, shares: AnyArray) -> AnyArray:
    """Return quantiles of PERT distributions from 0 to 1, which are Beta(1 + 4 m, 5 - 4 m).

    The densities are integrated over the angle of x = (1 - cos t) / 2, which samples both ends
    closely.
    """
    angles = np.linspace(0, np.pi, ANGLES + 1)
    x = (1 - np.cos(angles)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.exp(4 * (_xlogy(mode, x) + _xlogy(1 - mode, x[::-1]))) * np.sin(angles)
    below = np.concatenate(
        [np.zeros((len(mode), 1)), np.cumsum(density[:, 1:] + density[:, :-1], axis=1)], axis=1
    )
    return np.array(
        [np.interp(shares * density_sums[-1], density_sums, x) for density_sums in below]
    )


def _xlogy(share: AnyArray, x: AnyArray) -> AnyArray:
    return np.where(share > 0, share * np.log(x), 0.0)


# ---------------------------------------------------------------- places and values
def _feasible_distribution(belief: str, low: float) -> str:
    return TRIANGULAR if belief == LOGNORMAL and low <= 0 else belief


def _values_at(
    belief: str, low: float, central_value: float, high: float, deviates: AnyArray
) -> AnyArray:
    """Return the values of a range at some places."""
    shape = _feasible_distribution(belief, low)
    if shape == STEPS:
        return np.asarray(
            np.where(deviates < -STEP, low, np.where(deviates > STEP, high, central_value)),
            dtype=float,
        )
    if shape == LOGNORMAL:
        quantile_values = _bent(
            math.log(central_value / low) / P95, math.log(high / central_value) / P95, deviates
        )
        with np.errstate(over="ignore"):  # what has no end is moved to the bound of its attribute
            np.exp(quantile_values, out=quantile_values)
        quantile_values *= central_value
        return quantile_values
    if shape == NORMAL:
        return np.asarray(
            central_value
            + _bent((central_value - low) / P95, (high - central_value) / P95, deviates)
        )
    return _interpolate_quantiles(
        low + (high - low) * _quantile_table(shape).row((central_value - low) / (high - low)),
        deviates,
    )


def _bent(below: float, above: float, deviates: AnyArray) -> AnyArray:
    return np.asarray(
        (np.maximum if above >= below else np.minimum)(below * deviates, above * deviates)
    )


def _interpolate_quantiles(quantile_row: AnyArray, deviates: AnyArray) -> AnyArray:
    """Interpolate the quantiles of a row at normal deviates.

    The columns are evenly spaced, so that none is searched.
    """
    last, slopes = len(quantile_row) - 1, np.append(np.diff(quantile_row), 0.0)
    interpolated_values = np.asarray(deviates * (FINE / P95))
    interpolated_values += REACH * FINE
    interpolated_values.clip(0, last, out=interpolated_values)
    first = interpolated_values.astype(np.intp)
    interpolated_values *= slopes.take(first)
    interpolated_values += (quantile_row - slopes * np.arange(last + 1)).take(first)
    return interpolated_values


def _place_of_value(belief: str, low: float, central_value: float, high: float) -> float:
    shape = _feasible_distribution(belief, low)
    if shape not in (PERT, TRIANGULAR):
        return 0.0
    likely = (central_value - low) / (high - low)
    return float(np.interp(likely, _quantile_table(shape).row(likely), PLACES))


THROWN = 2**16  # pairs of draws that are thrown together
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
    stated_quantity: tuple[float, str] | None  # value and unit as the catalogue writes them
    leader: str  # the input whose draws it shares: its own, unless it is known to follow another
    belief: str = LOGNORMAL  # its distribution

    @property
    def shape(self) -> str:
        """The distribution it is drawn from."""
        return STEPS if self.steps else self.belief

    @property
    def home(self) -> float:
        """The place of its value."""
        return _place_of_value(self.shape, self.low, self.value, self.high)

    def quantile(self, deviates: AnyArray) -> AnyArray:
        """Return the values at some places, as standard normal deviates."""
        range_values = _values_at(self.shape, self.low, self.value, self.high, deviates)
        return range_values.clip(self.minimum, self.maximum, out=range_values)


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
    """Say whether an input has a low that is below its high."""
    low, high = result_input.low, result_input.high
    return low is not None and high is not None and bool(low < high)


def belief_of(uncertain_input: Input, steps: bool = False) -> Range:
    """Return the range of an input with a low and high.

    Args:
        uncertain_input: The input; its low and high are not None.
        steps: Whether the input decides a count, and so the structure.

    """
    leader = (
        f"performance.{uncertain_input.note.removeprefix(LEADER)}"
        if uncertain_input.note.startswith(LEADER)
        else uncertain_input.path
    )
    ends = uncertain_input.low, uncertain_input.high
    low, high = (float(end) for end in ends)  # type: ignore[arg-type]
    attribute = attribute_of_path(uncertain_input.path)
    belief = attribute.belief if attribute else LOGNORMAL  # what is derived errs by a factor
    return Range(
        uncertain_input.path,
        low,
        uncertain_input.value,
        high,
        uncertain_input.unit,
        *bounds(uncertain_input.path),
        steps,
        uncertain_input.stated_quantity,
        leader,
        belief,
    )


def loadings(catalogue: Catalogue, path: str) -> dict[str, float]:
    """Return the correlation of an input with each of its causes.

    Args:
        catalogue: Keeps the rows of `causes.csv` once read.
        path: Path of the input.

    Returns:
        Correlation by cause. The first row of a cause whose pattern matches the path holds.

    """
    patterns = catalogue.once("causes", _cause_patterns)
    return catalogue.once(
        ("loadings", path),
        lambda: {cause: loading for matches, cause, loading in patterns if matches(path)},
    )


def _cause_patterns() -> list[tuple[Callable[[str], Any], str, float]]:
    """Return a matcher of paths, cause and correlation of each row of causes, the last first."""
    cause_rows = [row for _, row in read_csv(data_directory() / "causes.csv", COLUMNS)]
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
        self.own = slice(start % 2, start % 2 + stop - start)  # of the draws of these pairs
        self.thrown: dict[str, AnyArray] = {}
        self.drawn: dict[Range, AnyArray] = {}

    def throw(self, stream_name: str) -> AnyArray:
        """Return a stream's standard normal deviates by Box and Muller, in antithetic pairs."""
        self._throw_missing([stream_name])
        return self.thrown[stream_name]

    def _throw_missing(self, stream_names: Iterable[str]) -> None:
        """Throw the deviates of names that have none, those of many names at once."""
        missing = [name for name in dict.fromkeys(stream_names) if name not in self.thrown]
        together = max(THROWN // len(self.pairs), 1)
        for first in range(0, len(missing), together):
            names = missing[first : first + together]
            hashes = np.array([crc32(name.encode()) for name in names], dtype=np.uint64)
            stream_keys = splitmix64(splitmix64(self.seed.copy()) + hashes).reshape(-1, 1)
            radius, angle = (
                uniform(splitmix64(self.pairs + key_offset))
                for key_offset in (stream_keys + GOLDEN, stream_keys + GOLDEN + GOLDEN)
            )
            drawn = np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)
            deviates = np.stack((drawn, -drawn), axis=-1).reshape(len(names), -1)[:, self.own]
            self.thrown.update(zip(names, deviates, strict=True))

    def correlated_deviates(self, input_range: Range) -> AnyArray:
        """Return an input's standard normal deviates, correlated by the causes that it shares."""
        shared = loadings(self.catalogue, input_range.leader)
        if not shared:
            return self.throw(input_range.leader)
        deviates: AnyArray = np.sqrt(
            1 - sum(loading**2 for loading in shared.values())
        ) * self.throw(input_range.leader)
        for cause, loading in shared.items():
            deviates += loading * self.throw(f"cause {cause}")
        return deviates

    def settings(self, ranges: Mapping[str, Range]) -> dict[str, tuple[AnyArray, str]]:
        """Return inputs where they are drawn, as an evaluation takes them."""
        keep_memory()
        leaders = {input_range.leader for input_range in ranges.values()}
        causes = {cause for leader in leaders for cause in loadings(self.catalogue, leader)}
        self._throw_missing([*sorted(leaders), *(f"cause {cause}" for cause in sorted(causes))])
        return {
            path: (self._values_of(input_range), input_range.unit)
            for path, input_range in ranges.items()
        }

    def _values_of(self, input_range: Range) -> AnyArray:
        """Return the values of an input in all draws, which scenarios and dates share."""
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
    """Return 64-bit numbers as numbers above zero and up to one.

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
    """Return inputs at places of their ranges, as settings of an evaluation.

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
