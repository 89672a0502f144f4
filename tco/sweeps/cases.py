"""Metrics of a scenario in many cases, with plans searched where needed.

Inputs that the search of plans reads are set one value at a time, each with a search of its own.
Other inputs leave the plan as it is and are set as arrays. All else that decides structure (the
cheapest of alternatives, tiers, whether racks fit their site) is found for every case. Cases are
grouped by these decisions.
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

# of a number of a Sobol sequence, and with them its longest: what the generator knows how to skip
BITS = 30
ROUNDS = 4  # of a Feistel network: what follows is a random permutation (Luby and Rackoff 1988)
ENDS = 2.0**-54, 1 - 2.0**-53  # the lowest and highest share: beyond them a deviate is infinite


def dice_of(
    catalogue: Catalogue, draw: Draw, drawn_names: tuple[str, ...], start: int, stop: int
) -> Dice:
    """Return the dice of some draws; `drawn_names` are drawn for in one order."""
    if draw.method == "latin-hypercube":
        return Strata(catalogue, draw.seed, start, stop, draw.samples)
    if draw.method == "sobol":
        return Sequence(catalogue, draw.seed, start, stop, drawn_names)
    return Dice(catalogue, draw.seed, start, stop)


class Strata(Dice):
    """A Latin hypercube (McKay, Beckman and Conover 1979): a draw in each N-th of probability."""

    def __init__(
        self, catalogue: Catalogue, seed: int, start: int, stop: int, samples: int
    ) -> None:
        super().__init__(catalogue, seed, start, stop)
        self.draws, self.samples = np.arange(start, stop, dtype=np.uint64), samples

    def throw(self, name: str) -> AnyArray:
        """Return the standard normal deviates of a name."""
        deviates = self.thrown.get(name)
        if deviates is None:
            name_key = splitmix64(splitmix64(self.seed.copy()) + np.uint64(crc32(name.encode())))
            stratum_shares = uniform(splitmix64(name_key + (self.draws + np.uint64(1)) * GOLDEN))
            deviates = self.thrown[name] = _deviates(
                (permuted(self.draws, self.samples, splitmix64(name_key)) + stratum_shares)
                / self.samples
            )
        return deviates


class Sequence(Dice):
    """A scrambled Sobol sequence: every name is a dimension of it."""

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
    """Return the values of a random permutation of `count` at `positions`.

    The permutation is a Feistel network, walked until its value is below `count`.
    """
    half = np.uint64(max((count - 1).bit_length() + 1, 2) // 2)
    low = (np.uint64(1) << half) - np.uint64(1)
    permuted_values, outside = positions.copy(), np.ones(len(positions), dtype=bool)
    while outside.any():
        left, right = permuted_values[outside] >> half, permuted_values[outside] & low
        for turn in range(ROUNDS):
            left, right = (
                right,
                left ^ (splitmix64(cipher_key + right * GOLDEN + np.uint64(turn)) & low),
            )
        permuted_values[outside] = (left << half) | right
        outside[outside] = permuted_values[outside] >= count
    return permuted_values


def _deviates(shares: AnyArray) -> AnyArray:
    from scipy.special import ndtri

    deviates: AnyArray = ndtri(np.clip(shares, *ENDS))
    return deviates


# the generator of a sequence goes on from where it stands: those of threads would meet
_engines = threading.local()


def _sobol_points(seed: int, dimensions: int, start: int, stop: int) -> AnyArray:
    """Return some points of a scrambled Sobol sequence."""
    import warnings

    from scipy.stats import qmc

    cached_engines: dict[tuple[int, int], Any] = _engines.__dict__.setdefault("kept", {})
    engine = cached_engines.get((seed, dimensions))
    if engine is None or engine.num_generated > start:
        cached_engines.clear()
        engine = cached_engines[seed, dimensions] = qmc.Sobol(
            dimensions, scramble=True, bits=BITS, seed=np.random.default_rng(seed)
        )
    if engine.num_generated < start:
        engine.fast_forward(start - engine.num_generated)
    with warnings.catch_warnings():
        # that the first points are no power of two: of a piece of them that says nothing
        warnings.simplefilter("ignore", UserWarning)
        points: AnyArray = engine.random(stop - start)
    return points


FITS = "fits"  # whether the racks fit the site, among what is decided
FixedSettings = tuple[tuple[str, Any], ...]  # path and value of each setting of one value


class StudyScenario(NamedTuple):
    """A scenario of a study, and how its plans are chosen; equal ones share their searches."""

    name: str
    function: ScenarioFunction  # of what the scenario's file states
    plan: str  # best, or held

    def __hash__(self) -> int:
        return hash(self.name)


class SettledCase(NamedTuple):
    """A scenario at one value of each of its settings, with its plan."""

    result: Result
    reads: frozenset[str]  # inputs that the search of the plan read

    @property
    def fits(self) -> bool:
        """Whether its racks fit the site."""
        scenario_result = self.result
        return (
            scenario_result.bill is None
            or scenario_result.metrics["tco_usd_per_chip_hour"] is not None
        )


class CaseDraws(NamedTuple):
    """Drawn inputs of all cases, with each case's place in the dice."""

    paths: frozenset[str]
    dice: Dice
    dice_indices: AnyArray  # of each case in the dice


@lru_cache(maxsize=512)
def settle_case(scenario: StudyScenario, fixed: FixedSettings) -> SettledCase:
    """Evaluate a scenario at one value of each input, its plan searched."""
    settings, axes = split_plan_axes(fixed)
    return SettledCase(*scenario.function._replace(plan=axes or None).searched(settings))


def split_plan_axes(fixed: FixedSettings) -> tuple[JsonObject, dict[str, str]]:
    """Split settings into those of inputs and the axes of the plan."""
    axes = {
        path.removeprefix(PLAN): axis_text for path, axis_text in fixed if path.startswith(PLAN)
    }
    return {path: setting_value for path, setting_value in fixed if not path.startswith(PLAN)}, axes


def evaluate_setting(
    scenario: StudyScenario,
    fixed: FixedSettings,
    centre: JsonMapping,
    axes: ArraysWithUnits,
    drawn: CaseDraws | None,
    count: int,
) -> CaseResults:
    """Evaluate the cases of one setting.

    Args:
        scenario: The scenario of the cases.
        fixed: Settings of one value in all cases.
        centre: Value of every axis at which the plan is found, where plans are searched.
        axes: Array and unit of every other setting.
        drawn: Drawn inputs of the cases; None without draws.
        count: Number of cases.

    """
    settled = settle_case(scenario, (*fixed, *centre.items()))
    searched = [path for path in axes if path in settled.reads and scenario.plan == "best"]
    case_results = CaseResults(count)
    if not searched:
        for cases, case in _cases_by_structure(scenario, fixed, axes, settled, count):
            case_results.add(cases, *_evaluate_structure(scenario, fixed, axes, drawn, cases, case))
        return case_results
    for cases in equal_groups({path: axes[path][0] for path in searched}, count):
        first = int(cases[0])
        searched_settings = _settings_at(axes, first, searched)
        centre_of_rest = {
            path: axis_value for path, axis_value in centre.items() if path not in searched
        }
        rest = {
            path: (axis_values[cases], unit)
            for path, (axis_values, unit) in axes.items()
            if path not in searched
        }
        part = evaluate_setting(
            scenario,
            (*fixed, *searched_settings),
            centre_of_rest,
            rest,
            None if drawn is None else drawn._replace(dice_indices=drawn.dice_indices[cases]),
            len(cases),
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
    """Yield cases by the structure that they get.

    For which of their values the structure is found is the same, since no plan rests on them
    otherwise.
    """
    structure = settled.result.structure
    decided = {}
    if axes and structure is not None:
        decided = _decisions_of_axes(scenario, fixed, axes, structure, settled.fits)
    for cases in equal_groups(
        {decision_name: decision_values for decision_name, (decision_values, _) in decided.items()},
        count,
    ):
        first = int(cases[0])
        if all(decision_values[first] == reading for decision_values, reading in decided.values()):
            yield cases, settled
        else:
            yield cases, settle_case(scenario, (*fixed, *_settings_at(axes, first, axes)))


def _decisions_of_axes(
    scenario: StudyScenario,
    fixed: FixedSettings,
    axes: ArraysWithUnits,
    structure: Structure,
    fits: bool,
) -> dict[str, tuple[AnyArray, float]]:
    """Return structure decisions that follow the axes, per case and as settled."""
    settings = split_plan_axes(fixed)[0] | dict(axes)
    inputs = scenario.function._replace(structure=structure).inputs(settings)
    input_values, count = inputs.values(), len(next(iter(axes.values()))[0])
    decided: dict[str, tuple[AnyArray, float]] = {}
    for decision_name, column in decisions(inputs, input_values, structure).items():
        if decision_name in structure.alternatives:
            parts = [
                held_part(inputs, decision_name, index) for index in range(int(column.max()) + 1)
            ]
            part = structure.alternatives[decision_name]
            reading = float(parts.index(part)) if part in parts else -1.0
        else:
            reading = float(structure.readings[decision_name])
        decided[decision_name] = np.broadcast_to(column, count), reading
    if not inputs.system.bare:
        bill = bill_of_materials(inputs.system, input_values, inputs.catalogue)
        beyond = beyond_a_position(input_values, bill, inputs.system.racks)
        if np.ndim(beyond):
            decided[FITS] = ~beyond, float(fits)
    return decided


def _evaluate_structure(
    scenario: StudyScenario,
    fixed: FixedSettings,
    axes: ArraysWithUnits,
    drawn: CaseDraws | None,
    cases: AnyArray,
    settled: SettledCase,
) -> tuple[Mapping[str, AnyArray | None], AnyArray, Mapping[str, AnyArray]]:
    """Evaluate cases of one structure: their metrics, met targets and drawn inputs."""
    settled_result = settled.result
    is_stated = settled_result.texts["workload.kind"] == "stated"  # then no plan is searched
    settings, _ = split_plan_axes(fixed)
    points = {path: (axis_values[cases], unit) for path, (axis_values, unit) in axes.items()}
    sampled: ArraysWithUnits = {}
    if drawn is not None:
        taken = settings.keys() | points.keys()
        sampled = _sampled_inputs(scenario, settled_result, drawn, cases, taken)
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
    with_batch = scenario.plan == "best" and drawn is None  # nothing that the plan rests on differs
    holds = with_batch or scenario.plan == "held" or is_stated
    function = scenario.function._replace(
        settings=settings, structure=settled_result.structure if holds else None
    )
    draws = function.draws(points, solve=not with_batch)
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
    taken: Set[str],
) -> ArraysWithUnits:
    """Return the drawn inputs of cases, without those that have a setting."""
    ranges = {
        path: belief
        for path, belief in beliefs_of(settled_result).items()
        if path in drawn.paths and path not in taken
    }
    deviates = {
        path: drawn.dice.correlated_deviates(belief)[drawn.dice_indices[cases]]
        for path, belief in ranges.items()
    }
    # what decides structure stays as it is where that is held: a plan is one of so many chips
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
    """Metrics, target checks and drawn inputs of cases.

    A metric of any case is held for all cases, with nan where a case lacks the metric.
    """

    def __init__(self, count: int) -> None:
        """Cases of which nothing is known yet."""
        self.metrics, self.inputs = dict[str, AnyArray](), dict[str, AnyArray]()
        self.meets = np.zeros(count, dtype=bool)

    def add(
        self,
        cases: AnyArray,
        metrics: Mapping[str, AnyArray | None],
        meets: AnyArray,
        inputs: Mapping[str, AnyArray],
    ) -> None:
        """Add the metrics, targets and inputs of some of the cases."""
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
        """Case metrics and target checks in the form of `Draws`."""
        return Draws(
            {metric_name: self.metrics.get(metric_name) for metric_name in METRICS},
            self.meets,
            None,
            [],
            np.zeros(len(self.meets), dtype=int),
        )
