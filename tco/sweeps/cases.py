"""Metrics of a scenario in the many cases of a study, with a search of plans where needed.

An input that the search of plans reads takes one value at a time, with a search for each. Other
inputs leave the plan as it is and are evaluated as arrays. Cases are grouped by the other
decisions about structure: the cheapest of alternatives, the tiers, and whether racks fit their
site.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from tco.catalog import Catalogue
from tco.core.types import AnyArray, JsonMapping, JsonObject
from tco.evaluation.scenario_function import ScenarioFunction
from tco.scenario.beliefs import GOLDEN, Dice, beliefs_of, settings_of, splitmix64, uniform
from tco.scenario.compiled import scatter_into
from tco.scenario.draw_case import ArraysWithUnits
from tco.scenario.draw_groups import decisions, equal_groups, held_part
from tco.scenario.evaluate_samples import Draws
from tco.scenario.metrics import METRICS, needs_site
from tco.scenario.pricing import beyond_a_position
from tco.scenario.result import Result
from tco.scenario.structure import Structure
from tco.sweeps.study import PLAN, Draw
from tco.system.bill import bill_of_materials

# Bits of a number of a Sobol sequence. The generator can skip at most 2^30 points.
SOBOL_BITS = 30
# Rounds of a Feistel network after which its permutation is random (Luby and Rackoff 1988).
FEISTEL_ROUNDS = 4
# Lowest and highest probability of a draw: beyond them a deviate is infinite.
PROBABILITY_BOUNDS = 2.0**-54, 1 - 2.0**-53
FITS = "fits"  # name of the decision whether the racks fit the site
FixedSettings = tuple[tuple[str, Any], ...]  # path and value of each setting of one value
# The last Sobol generator of each thread, by seed and dimensions: it continues where it stopped.
_thread_state = threading.local()


def dice_of(
    catalogue: Catalogue, draw: Draw, drawn_names: tuple[str, ...], start: int, stop: int
) -> Dice:
    """Return the source of some draws of a study.

    Args:
        catalogue: Catalogue with the causes that inputs share.
        draw: Method, seed and number of the draws.
        drawn_names: Names that are drawn, in the order of their dimensions in a Sobol sequence.
        start: First draw.
        stop: Draw after the last one.

    """
    if draw.method == "latin-hypercube":
        return Strata(catalogue, draw.seed, start, stop, draw.samples)
    if draw.method == "sobol":
        return Sequence(catalogue, draw.seed, start, stop, drawn_names)
    return Dice(catalogue, draw.seed, start, stop)


class Strata(Dice):
    """A Latin hypercube (McKay, Beckman and Conover 1979): one draw in each N-th of probability."""

    def __init__(
        self, catalogue: Catalogue, seed: int, start: int, stop: int, samples: int
    ) -> None:
        super().__init__(catalogue, seed, start, stop)
        self.draws = np.arange(start, stop, dtype=np.uint64)
        self.samples = samples

    def throw(self, name: str) -> AnyArray:
        """Return the standard normal deviates of a name."""
        deviates = self.thrown.get(name)
        if deviates is None:
            name_key = splitmix64(splitmix64(self.seed.copy()) + np.uint64(crc32(name.encode())))
            # `splitmix64` mixes the key in place: the places below take the mixed key too
            strata = permuted(self.draws, self.samples, splitmix64(name_key))
            places_in_stratum = uniform(splitmix64(name_key + (self.draws + np.uint64(1)) * GOLDEN))
            deviates = _deviates((strata + places_in_stratum) / self.samples)
            self.thrown[name] = deviates
        return deviates


class Sequence(Dice):
    """A scrambled Sobol sequence, with a dimension for each name."""

    def __init__(
        self, catalogue: Catalogue, seed: int, start: int, stop: int, drawn_names: tuple[str, ...]
    ) -> None:
        super().__init__(catalogue, seed, start, stop)
        points = _sobol_points(seed, len(drawn_names), start, stop)
        self.thrown = {
            drawn_name: _deviates(points[:, dimension])
            for dimension, drawn_name in enumerate(drawn_names)
        }


def permuted(positions: AnyArray, count: int, cipher_key: AnyArray) -> AnyArray:
    """Return the values of a random permutation of `count` numbers at `positions`.

    The permutation is a Feistel network. It is applied again to values that are not below `count`.
    """
    half_bits = np.uint64(max((count - 1).bit_length() + 1, 2) // 2)
    low_mask = (np.uint64(1) << half_bits) - np.uint64(1)
    permuted_values = positions.copy()
    is_outside = np.ones(len(positions), dtype=bool)
    while is_outside.any():
        left = permuted_values[is_outside] >> half_bits
        right = permuted_values[is_outside] & low_mask
        for round_number in range(FEISTEL_ROUNDS):
            round_hash = splitmix64(cipher_key + right * GOLDEN + np.uint64(round_number))
            left, right = right, left ^ (round_hash & low_mask)
        permuted_values[is_outside] = (left << half_bits) | right
        is_outside[is_outside] = permuted_values[is_outside] >= count
    return permuted_values


def _deviates(probabilities: AnyArray) -> AnyArray:
    from scipy.special import ndtri

    deviates: AnyArray = ndtri(np.clip(probabilities, *PROBABILITY_BOUNDS))
    return deviates


def _sobol_points(seed: int, dimensions: int, start: int, stop: int) -> AnyArray:
    """Return some points of a scrambled Sobol sequence."""
    import warnings

    from scipy.stats import qmc

    generators: dict[tuple[int, int], Any] = _thread_state.__dict__.setdefault("generators", {})
    generator = generators.get((seed, dimensions))
    if generator is None or generator.num_generated > start:
        generators.clear()
        generator = qmc.Sobol(
            dimensions, scramble=True, bits=SOBOL_BITS, seed=np.random.default_rng(seed)
        )
        generators[seed, dimensions] = generator
    if generator.num_generated < start:
        generator.fast_forward(start - generator.num_generated)
    with warnings.catch_warnings():
        # scipy warns of counts that are not a power of two; these points are only part of them.
        warnings.simplefilter("ignore", UserWarning)
        points: AnyArray = generator.random(stop - start)
    return points


class StudyScenario(NamedTuple):
    """A scenario of a study, and how its plans are chosen. Equal scenarios share their searches."""

    name: str
    function: ScenarioFunction  # the scenario as its file states it
    plan: str  # `best`, `near` or `held`

    def __hash__(self) -> int:
        return hash(self.name)


class SettledCase(NamedTuple):
    """A scenario at one value of each of its settings, with its plan."""

    result: Result
    reads: frozenset[str]  # inputs that the search of the plan read

    @property
    def fits(self) -> bool:
        """Whether the racks fit the site, or there are no racks."""
        has_cost = self.result.metrics["tco_usd_per_chip_hour"] is not None
        return self.result.bill is None or has_cost


class CaseDraws(NamedTuple):
    """Draws of the drawn inputs, and the draw of each case."""

    paths: frozenset[str]  # drawn inputs
    dice: Dice
    dice_indices: AnyArray  # index of each case's draw among those of `dice`


@lru_cache(maxsize=512)
def settle_case(scenario: StudyScenario, fixed: FixedSettings) -> SettledCase:
    """Evaluate a scenario at one value of each input, with a search of its plan."""
    settings, axes = split_plan_axes(fixed)
    return SettledCase(*scenario.function._replace(plan=axes or None).searched(settings))


def split_plan_axes(fixed: FixedSettings) -> tuple[JsonObject, dict[str, str]]:
    """Return the settings of inputs by path, and those of plan axes by axis."""
    settings: JsonObject = {}
    axes: dict[str, str] = {}
    for path, setting in fixed:
        if path.startswith(PLAN):
            axes[path.removeprefix(PLAN)] = setting
        else:
            settings[path] = setting
    return settings, axes


def evaluate_setting(
    scenario: StudyScenario,
    fixed: FixedSettings,
    centre: JsonMapping,
    axes: ArraysWithUnits,
    drawn: CaseDraws | None,
    count: int,
) -> CaseResults:
    """Evaluate the cases that share some settings.

    Args:
        scenario: The scenario of the cases.
        fixed: Settings that all cases share.
        centre: Value of each axis at which the plan is searched; empty where plans are held.
        axes: Array and unit of each other setting, by path.
        drawn: Drawn inputs of the cases; None without draws.
        count: Number of cases.

    """
    settled = settle_case(scenario, (*fixed, *centre.items()))
    case_results = CaseResults(count)
    search_paths = [path for path in axes if path in settled.reads and scenario.plan == "best"]
    if not search_paths:
        for cases, case in _cases_by_structure(scenario, fixed, axes, settled, count):
            case_results.add(cases, *_evaluate_structure(scenario, fixed, axes, drawn, cases, case))
        return case_results
    for cases in equal_groups({path: axes[path][0] for path in search_paths}, count):
        search_settings = _settings_at(axes, int(cases[0]), search_paths)
        drawn_of_cases = None
        if drawn is not None:
            drawn_of_cases = drawn._replace(dice_indices=drawn.dice_indices[cases])
        part = evaluate_setting(
            scenario=scenario,
            fixed=(*fixed, *search_settings),
            centre={path: number for path, number in centre.items() if path not in search_paths},
            axes={
                path: (axis_values[cases], unit)
                for path, (axis_values, unit) in axes.items()
                if path not in search_paths
            },
            drawn=drawn_of_cases,
            count=len(cases),
        )
        case_results.add(cases, part.metrics, part.meets, part.inputs)
    return case_results


def _settings_at(axes: ArraysWithUnits, case: int, paths: Iterable[str]) -> FixedSettings:
    return tuple((path, (float(axes[path][0][case]), axes[path][1])) for path in paths)


def _cases_by_structure(
    scenario: StudyScenario,
    fixed: FixedSettings,
    axes: ArraysWithUnits,
    settled: SettledCase,
    count: int,
) -> Iterator[tuple[AnyArray, SettledCase]]:
    """Yield the cases of each structure, with the structure evaluated at one of them.

    Any of the cases gives the same structure, since the plan does not depend on the axes.
    """
    structure = settled.result.structure
    decided: dict[str, CaseDecision] = {}
    if axes and structure is not None:
        decided = _decisions_of_axes(scenario, fixed, axes, structure, settled.fits)
    for cases in equal_groups({name: decision.cases for name, decision in decided.items()}, count):
        first = int(cases[0])
        if all(decision.cases[first] == decision.settled for decision in decided.values()):
            yield cases, settled
        else:
            yield cases, settle_case(scenario, (*fixed, *_settings_at(axes, first, axes)))


class CaseDecision(NamedTuple):
    """A decision about structure, as a number."""

    cases: AnyArray  # in each case
    settled: float  # in the settled case


def _decisions_of_axes(
    scenario: StudyScenario,
    fixed: FixedSettings,
    axes: ArraysWithUnits,
    structure: Structure,
    fits: bool,
) -> dict[str, CaseDecision]:
    """Return the decisions about structure that depend on the axes, by name."""
    settings = split_plan_axes(fixed)[0] | dict(axes)
    inputs = scenario.function._replace(structure=structure).inputs(settings)
    input_values = inputs.values()
    count = len(next(iter(axes.values()))[0])
    decided: dict[str, CaseDecision] = {}
    for name, column in decisions(inputs, input_values, structure).items():
        if name in structure.alternatives:
            parts = [held_part(inputs, name, index) for index in range(int(column.max()) + 1)]
            part = structure.alternatives[name]
            settled_number = float(parts.index(part)) if part in parts else -1.0
        else:
            settled_number = float(structure.readings[name])
        decided[name] = CaseDecision(np.broadcast_to(column, count), settled_number)
    if not inputs.system.bare:
        bill = bill_of_materials(inputs.system, input_values, inputs.catalogue)
        is_beyond_position = beyond_a_position(input_values, bill, inputs.system.racks)
        if np.ndim(is_beyond_position):
            decided[FITS] = CaseDecision(~is_beyond_position, float(fits))
    return decided


def _evaluate_structure(
    scenario: StudyScenario,
    fixed: FixedSettings,
    axes: ArraysWithUnits,
    drawn: CaseDraws | None,
    cases: AnyArray,
    settled: SettledCase,
) -> tuple[Mapping[str, AnyArray | None], AnyArray, Mapping[str, AnyArray]]:
    """Evaluate cases of one structure, and return metrics, met targets and drawn inputs."""
    settled_result = settled.result
    is_stated = settled_result.texts["workload.kind"] == "stated"  # stated rates need no plan
    settings, _ = split_plan_axes(fixed)
    points = {path: (axis_values[cases], unit) for path, (axis_values, unit) in axes.items()}
    sampled: ArraysWithUnits = {}
    if drawn is not None:
        set_paths = settings.keys() | points.keys()
        sampled = _sampled_inputs(scenario, settled_result, drawn, cases, set_paths)
    inputs = {path: drawn_values for path, (drawn_values, _) in sampled.items()}
    points |= sampled
    if not points:
        metrics = {
            metric_name: None
            if metric_value is None
            else np.full(len(cases), metric_value, dtype=float)
            for metric_name, metric_value in settled_result.metrics.items()
        }
        return metrics, np.full(len(cases), settled_result.plan is not None or is_stated), inputs
    # The searched plan is the best in all cases, with its batch, as no case changes what it reads.
    keeps_batch = scenario.plan == "best" and drawn is None
    keeps_structure = keeps_batch or scenario.plan == "held" or is_stated
    function = scenario.function._replace(
        settings=settings, structure=settled_result.structure if keeps_structure else None
    )
    draws = function.draws(points, solve=not keeps_batch)
    if settled.fits:
        return draws.metrics, draws.meets, inputs
    metrics = {
        metric_name: None if needs_site(metric_name) else metric_values
        for metric_name, metric_values in draws.metrics.items()
    }
    return metrics, draws.meets, inputs


def _sampled_inputs(
    scenario: StudyScenario,
    settled_result: Result,
    drawn: CaseDraws,
    cases: AnyArray,
    set_paths: Set[str],
) -> ArraysWithUnits:
    """Return the drawn inputs of cases, without those that have a setting."""
    ranges = {
        path: belief
        for path, belief in beliefs_of(settled_result).items()
        if path in drawn.paths and path not in set_paths
    }
    deviates = {
        path: drawn.dice.correlated_deviates(belief)[drawn.dice_indices[cases]]
        for path, belief in ranges.items()
    }
    # Under a held structure the inputs that decided it keep their values: a plan has a fixed number
    # of chips, for example.
    fixed = {
        path: np.full(len(cases), belief.value)
        for path, belief in ranges.items()
        if scenario.plan == "held" and belief.steps
    }
    return {
        path: (fixed.get(path, drawn_values), unit)
        for path, (drawn_values, unit) in settings_of(ranges, deviates).items()
    }


class CaseResults:
    """Metrics, met targets and drawn inputs of cases, which are added group by group.

    A metric of some cases is nan in the other cases.
    """

    def __init__(self, count: int) -> None:
        self.metrics: dict[str, AnyArray] = {}
        self.inputs: dict[str, AnyArray] = {}
        self.meets = np.zeros(count, dtype=bool)

    def add(
        self,
        cases: AnyArray,
        metrics: Mapping[str, AnyArray | None],
        meets: AnyArray,
        inputs: Mapping[str, AnyArray],
    ) -> None:
        """Add the metrics, met targets and drawn inputs of some of the cases."""
        self.meets[cases] = meets
        for arrays, part in ((self.metrics, metrics), (self.inputs, inputs)):
            present = {
                column_name: column_values
                for column_name, column_values in part.items()
                if column_values is not None
            }
            scatter_into(arrays, present, cases, len(self.meets))

    @property
    def draws(self) -> Draws:
        """Metrics and met targets of the cases in the form of `Draws`."""
        return Draws(
            metrics={metric_name: self.metrics.get(metric_name) for metric_name in METRICS},
            meets=self.meets,
            sequences=None,
            structures=[],
            structure_of=np.zeros(len(self.meets), dtype=int),
        )
