"""A scenario asked for many values of its inputs together: draws of a range, or the cases of a sweep.

The structure is held, or decided anew in every draw: draws are then grouped by the structure they get, and each group is evaluated as
arrays. Either way the axes of a plan are held or chosen among those near the best at the centre or the best at the far ends of the ranges,
and its batch is solved for the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from tco.catalog import Catalogue, load_catalogue
from tco.chain.inputs import Inputs, Scenario, load_scenario
from tco.chain.metrics import METRICS
from tco.chain.result import Result
from tco.chain.scenario import evaluate, run
from tco.chain.settings import given_of
from tco.chain.structure import Structure
from tco.chain.workloads import WORKLOADS, job_on, server_of, without_plan
from tco.foundation.errors import DataError
from tco.foundation.provenance import Input
from tco.foundation.values import Values, as_number
from tco.hardware.bill import offers
from tco.performance.serving.plans import ServingPlan

Array = np.ndarray[Any, Any]
NEAR = 0.1
CORNERS = 4  # of the ranges, in each of which the best of all plans is a candidate too, and as many opposite ones
CELLS = 2**15  # numbers of one array: more no longer fit the cache, with fewer the calls cost more than the numbers


class Draws(NamedTuple):
    """What a scenario comes to in every draw."""

    metrics: dict[str, Array | None]  # None where no draw has the metric, nan where one has not
    meets: Array  # whether memory suffices and the targets are met
    sequences: Array | None  # of an attention group; none in training
    structures: list[Structure]  # that draws got
    structure_of: Array  # place of each draw's in that list


class Group(NamedTuple):
    """Draws of one structure."""

    draws: Array  # their places
    structure: Structure
    plans: Any  # to choose among; none: that of the structure


def evaluate_draws(
    scenario: str | Path | Scenario,
    set: Mapping[str, Any],  # noqa: A002 - as in `evaluate`
    *,
    structure: Structure | None = None,
    replan: bool = False,
    near: float = NEAR,
    catalogue: Catalogue | None = None,
    variant: Mapping[str, str] | None = None,
) -> Draws:
    """Evaluate a scenario for arrays of inputs, all of one length, each with the batch that meets the target.

    The structure is that given, or that of the scenario with those of the settings that are one value. With `replan` every draw decides
    its own, and takes the best of some plans: those whose rate at the centre is at most a share `near` below that of the best, and in serving
    those that are the best where all inputs lie at the ends of their ranges.
    """
    catalogue = catalogue or load_catalogue()
    found = scenario if isinstance(scenario, Scenario) else load_scenario(catalogue, scenario)
    if replan and structure is not None:
        raise DataError("replan decides the structure anew in every draw: give the one or the other")
    chosen = dict((variant or {}) if structure is None else structure.variant_of(found.system, variant))
    case = Case(catalogue, found, *parted(catalogue, found, set, chosen), chosen, near)
    if structure is not None:
        return gathered(case, [Group(np.arange(case.count), structure, None)])
    centre = case.answer({})
    return gathered(case, list(grouped(case, centre)) if replan else [Group(np.arange(case.count), structure_in(centre), None)])


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario with the settings that are one value, and the draws of the others."""

    catalogue: Catalogue
    scenario: Scenario
    fixed: dict[str, Any]
    drawn: dict[str, tuple[Array, str]]  # with their units
    variant: dict[str, str]
    near: float  # candidates have the best rate less this share, or more

    @property
    def count(self) -> int:
        """How many draws there are."""
        return len(next(iter(self.drawn.values()))[0])

    def answer(self, settings: Mapping[str, Any]) -> Result:
        """Evaluate one value of every input."""
        return evaluate(self.scenario, {**self.fixed, **settings}, catalogue=self.catalogue, variant=self.variant)

    def inputs(self, structure: Structure, draws: Array) -> Inputs:
        """Return the inputs of some draws on a structure."""
        some = {path: (many[draws], unit) for path, (many, unit) in self.drawn.items()}
        return Inputs(self.catalogue, self.scenario, self.fixed | some, self.variant, structure)


def parted(
    catalogue: Catalogue, scenario: Scenario, settings: Mapping[str, Any], variant: dict[str, str]
) -> tuple[dict[str, Any], dict[str, tuple[Array, str]]]:
    """Return the settings that are one value, and the arrays of the others; arrays of different lengths raise `DataError`."""
    plain = Inputs(catalogue, scenario, {path: one for path, one in settings.items() if isinstance(one, str)}, variant)
    given = {path: given_of(path, one, plain.unit_of) for path, one in settings.items()}
    drawn = {path: (one.many, plain.unit_of(path)) for path, one in given.items() if one.many is not None}
    if not drawn:
        raise DataError("nothing is drawn: give at least one input as an array")
    shapes = {path: many.shape for path, (many, _) in drawn.items()}
    if len({*shapes.values()}) > 1 or len(next(iter(shapes.values()))) != 1:
        said = ", ".join(f"{path} has {'x'.join(map(str, shape))}" for path, shape in shapes.items())
        raise DataError(f"draws need one row of values for each input, all of one length: {said}")
    return {path: one for path, one in settings.items() if path not in drawn}, drawn


# ---------------------------------------------------------------- groups of one structure
def grouped(case: Case, centre: Result) -> Iterator[Group]:
    """Yield draws by the structure they get, each with the plans to choose among."""
    held = structure_in(centre)
    if centre.plan is None:
        raise DataError(f"{case.scenario.name}: no plan at the centre to choose others near: {'; '.join(centre.notes)}")
    inputs = case.inputs(held, np.arange(case.count))
    values = inputs.values(as_number)
    decided = decisions(case, values, inputs, held)
    table = np.stack([np.broadcast_to(column, case.count) for column in decided.values()]) if decided else np.zeros((1, case.count))
    _, first, group = np.unique(table, axis=1, return_index=True, return_inverse=True)
    far = plans_far(case, centre)
    near = plans_near(case, centre, far)
    for place, draw in enumerate(first):
        parts = {name: held_part(inputs, name, int(decided[name][draw])) for name in decided if name in held.alternatives}
        read = {path: of_kind(held.readings[path], column[draw]) for path, column in decided.items() if path in held.readings}
        members = np.flatnonzero(group.ravel() == place)
        if all(isinstance(one, bool) or one == held.readings[path] for path, one in read.items()):
            own = held._replace(alternatives={**held.alternatives, **parts}, readings={**held.readings, **read})
            yield Group(members, own, near)
            continue
        moved = {path for path, one in read.items() if not isinstance(one, bool) and one != held.readings[path]}
        which = moved if moved <= case.drawn.keys() else case.drawn.keys()  # another size: other plans, near the best at its own centre
        answer = case.answer({path: (float(case.drawn[path][0][draw]), case.drawn[path][1]) for path in which})
        other = structure_in(answer)
        own = other._replace(alternatives={**other.alternatives, **parts}, readings={**other.readings, **read})
        yield Group(members, own, plans_near(case, answer, far) if answer.plan is not None else None)


def structure_in(answer: Result) -> Structure:
    """Return the structure of an evaluation."""
    if answer.structure is None:
        raise ValueError("a result that was not evaluated has no structure")
    return answer.structure


def decisions(case: Case, values: Values, inputs: Inputs, held: Structure) -> dict[str, Array]:
    """Return what decides structure and differs between draws: the cheapest of alternatives by its place, and readings by their path."""
    found: dict[str, Array] = {}
    for place, some in offers(inputs.system, values, case.catalogue).items():
        prices = np.stack(np.broadcast_arrays(*(offer.price for offer in some)))
        if prices.ndim > 1:
            found[place] = prices.argmin(axis=0)
    for path, reading in held.readings.items():
        number = values.number(path)
        if np.ndim(number):
            found[path] = number > 0 if isinstance(reading, bool) else number
    return found


def held_part(inputs: Inputs, place: str, chosen: int) -> str:
    """Return one of the parts that may stand in a place."""
    return list(inputs.system.alternatives[place])[chosen]


def of_kind(reading: float, found: Any) -> float:
    """Return a decision as structure remembers it: a flag, or a number."""
    return bool(found) if isinstance(reading, bool) else float(found)


def plans_near(case: Case, answer: Result, far: Any) -> Any:
    """Return the plans whose rate is near that of the best one, and in serving those of `far` that it may have."""
    if isinstance(answer.plan, ServingPlan):
        from tco.performance.serving.each import candidates

        return candidates(answer.serving.choices, case.near, far)  # type: ignore[union-attr]
    from tco.performance.training.each import candidates as quickest

    inputs = Inputs(case.catalogue, case.scenario, case.fixed, case.variant, answer.structure)
    job, reached, _ = job_on(inputs, inputs.values(as_number))
    return quickest(job, reached, answer.metrics["step_s"], case.near)


def plans_far(case: Case, centre: Result) -> Any:
    """Return the plans that are the best where all inputs lie at the ends of their ranges; none where every plan is a candidate, and in training."""
    if case.near >= 1 or not isinstance(centre.plan, ServingPlan) or not (ends := far_ends(case, centre)):
        return None
    from tco.performance.serving.each import candidates, plan_of_each

    inputs = replace(case, drawn=ends).inputs(structure_in(centre), np.arange(2 * CORNERS))
    values = inputs.values(as_row)
    return plan_of_each(*server_of(inputs, values), values, candidates(centre.serving.choices, 1.0))  # type: ignore[union-attr]


def far_ends(case: Case, answer: Result) -> dict[str, tuple[Array, str]]:
    """Return corners of what is drawn: every input with a range at its low or its high, and in the opposite corner at the other end.

    Which end is a matter of the input's path, so that the plans found there are the same whatever is drawn. An input that decides how many
    of something there are stays as it is.
    """
    held, found = structure_in(answer).readings, {}
    for path, (_, unit) in case.drawn.items():
        given = answer.inputs.get(path)
        if given is None:
            continue
        low, high = given.low, given.high
        if low is None or high is None or not isinstance(held.get(path, True), bool):
            low = high = given.value
        side = np.array([crc32(path.encode()) >> corner & 1 for corner in range(CORNERS)], dtype=bool)
        found[path] = np.where(np.concatenate([side, ~side]), high, low), unit
    return found


# ---------------------------------------------------------------- arrays in pieces
def gathered(case: Case, groups: list[Group]) -> Draws:
    """Evaluate groups of draws piece by piece, and put them together in the order of the draws."""
    metrics: dict[str, Array | None] = dict.fromkeys(METRICS)
    meets, sequences = np.zeros(case.count, dtype=bool), np.full(case.count, np.nan)
    structure_of = np.zeros(case.count, dtype=int)
    for number, group in enumerate(groups):
        structure_of[group.draws] = number
        size = max(CELLS // rows_of(group.plans), 1)
        for start in range(0, len(group.draws), size):
            piece = group.draws[start : start + size]
            inputs = case.inputs(group.structure, piece)
            values = inputs.values(as_number)
            workload, meets[piece], sequences[piece] = WORK[inputs.kind](inputs, values, group)
            for name, value in run(inputs, values, None, workload).metrics.items():
                if value is not None and name in metrics:
                    found = metrics[name]
                    if found is None:
                        found = metrics[name] = np.full(case.count, np.nan)
                    found[piece] = value
    return Draws(metrics, meets, None if np.isnan(sequences).all() else sequences, [group.structure for group in groups], structure_of)


def rows_of(plans: Any) -> int:
    """Return how many plans are weighed at once."""
    return max(len(plans.decode.chips), len(plans.prefill.chips)) if isinstance(plans, ServingPlan) else 1


def serving_of_draws(inputs: Inputs, values: Values, group: Group) -> tuple[Any, Any, Any]:
    """Return what draws serve, whether they meet the targets, and the sequences of each attention group."""
    from tco.performance.serving.each import meets_targets, plan_held, plan_of_each
    from tco.performance.serving.result import evaluated

    if group.structure.plan is None:
        return without_plan(inputs.kind, "the structure holds no plan"), False, np.nan
    machine, model = server_of(inputs, values)
    if group.plans is None:
        plan = plan_held(machine, model, values, group.structure.plan)
    else:
        rows = inputs.values(as_row)
        plan = plan_of_each(*server_of(inputs, rows), rows, group.plans)
    found = evaluated(machine, model, values, plan)
    return found, meets_targets(machine, values, found), plan.decode.sequences


def training_of_draws(inputs: Inputs, values: Values, group: Group) -> tuple[Any, Any, Any]:
    """Return what draws train, whether memory suffices, and nothing of attention groups."""
    from tco.performance.training.each import train_each

    if group.structure.plan is None:
        return without_plan(inputs.kind, "the structure holds no plan"), False, np.nan
    job, reached, formats = job_on(inputs, values)
    return *train_each(job, reached, formats, group.plans or [group.structure.plan]), np.nan


def stated_of_draws(inputs: Inputs, values: Values, group: Group) -> tuple[Any, Any, Any]:
    """Return the rates that a scenario states: there is no target they could miss."""
    return WORKLOADS[inputs.kind](inputs, values, group.structure.plan), True, np.nan


WORK = {"serving": serving_of_draws, "training": training_of_draws, "stated": stated_of_draws}


def as_row(given: Input) -> Any:
    """The reading of many values as a row, beside which plans are a column."""
    return given.value.reshape(1, -1) if np.ndim(given.value) else given.value
