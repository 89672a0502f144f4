"""A scenario asked for many values of its inputs together: draws of a range, or the cases of a sweep.

Every draw decides its structure and takes the best plan for it: draws are grouped by the structure they get, and each group is evaluated as
arrays. Or plan and structure are held. Either way the batch of a plan is solved for the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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
from tco.foundation.finite import finite
from tco.foundation.provenance import Input
from tco.foundation.values import Values, as_number
from tco.hardware.bill import offers

Array = np.ndarray[Any, Any]
PILOTS = 1024  # draws in which every plan is weighed; all others choose among those that are the best in one of them
LOOKED_AT = 3  # draws of a training job that no plan fits, whose own plans are searched
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
    plans: Any = None  # of serving that of every draw, of training those to choose among; none: that of the structure


@finite
def evaluate_draws(
    scenario: str | Path | Scenario,
    set: Mapping[str, Any],  # noqa: A002 - as in `evaluate`
    *,
    structure: Structure | None = None,
    hold: bool = False,
    catalogue: Catalogue | None = None,
    variant: Mapping[str, str] | None = None,
) -> Draws:
    """Evaluate a scenario for arrays of inputs, all of one length, each with its own structure, the best plan and the batch that meets the target.

    With `hold` plan and structure are those of the scenario with those of the settings that are one value; a `structure` that is given is held.
    """
    catalogue = catalogue or load_catalogue()
    found = scenario if isinstance(scenario, Scenario) else load_scenario(catalogue, scenario)
    chosen = dict((variant or {}) if structure is None else structure.variant_of(found.system, variant))
    case = Case(catalogue, found, *parted(catalogue, found, set, chosen), chosen)
    if structure is not None:
        return gathered(case, [Group(np.arange(case.count), structure)])
    centre = case.answer({})
    groups = [Group(np.arange(case.count), structure_in(centre))] if hold else grouped(case, centre)
    return gathered(case, groups)


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario with the settings that are one value, and the draws of the others."""

    catalogue: Catalogue
    scenario: Scenario
    fixed: dict[str, Any]
    drawn: dict[str, tuple[Array, str]]  # with their units
    variant: dict[str, str]

    @property
    def count(self) -> int:
        """How many draws there are."""
        return len(next(iter(self.drawn.values()))[0])

    def answer(self, settings: Mapping[str, Any], plan: Any = None) -> Result:
        """Evaluate one value of every input."""
        return evaluate(self.scenario, {**self.fixed, **settings}, plan, catalogue=self.catalogue, variant=self.variant)

    def at(self, draw: int, paths: Iterable[str]) -> dict[str, tuple[float, str]]:
        """Return some inputs as they are in one draw."""
        return {path: (float(self.drawn[path][0][draw]), self.drawn[path][1]) for path in paths}

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
def grouped(case: Case, centre: Result) -> list[Group]:
    """Return draws by the structure they get, with their plans."""
    held = structure_in(centre)
    inputs = case.inputs(held, np.arange(case.count))
    decided = decisions(case, inputs.values(as_number), inputs, held)
    jobs: dict[tuple[Any, ...], list[Any]] = {}
    sized: dict[tuple[float, ...], tuple[Structure, Any]] = {}
    found = []
    for members in alike(decided, case.count):
        draw = members[0]
        parts = {name: held_part(inputs, name, int(column[draw])) for name, column in decided.items() if name in held.alternatives}
        read = {path: of_kind(held.readings[path], column[draw]) for path, column in decided.items() if path in held.readings}
        size = {path: one for path, one in read.items() if not isinstance(one, bool)}
        key = tuple(size.values())
        if key not in sized:
            settings = resized(case, held, size, draw)
            plans = plans_trained(case, settings, jobs) if inputs.kind == "training" else None
            known = plans[0] if plans else centre.plan if inputs.kind == "serving" else None
            sized[key] = structure_in(case.answer(settings, known) if settings else centre), plans
        own, plans = sized[key]
        own = own._replace(alternatives={**own.alternatives, **parts}, readings={**own.readings, **read})
        found.append(Group(members, own, plans))
    return served(case, centre, decided, found) if inputs.kind == "serving" else found


def alike(decided: Mapping[str, Array], count: int) -> list[Array]:
    """Return the places of draws for which the same was decided."""
    if not decided:
        return [np.arange(count)]
    table = np.stack([np.broadcast_to(column, count) for column in decided.values()])
    _, group = np.unique(table, axis=1, return_inverse=True)
    return [np.flatnonzero(group.ravel() == place) for place in range(group.max() + 1)]


def resized(case: Case, held: Structure, size: Mapping[str, float], draw: int) -> dict[str, tuple[float, str]]:
    """Return the settings under which a draw has sizes of its own, such as another number of chips; none where they are those that are held."""
    moved = {path for path, one in size.items() if one != held.readings[path]}
    if not moved:
        return {}
    return case.at(draw, moved if moved <= case.drawn.keys() else case.drawn.keys())


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


# ---------------------------------------------------------------- plans of draws
def plans_trained(case: Case, settings: Mapping[str, Any], known: dict[tuple[Any, ...], list[Any]]) -> list[Any]:
    """Return the quickest plans of a training job under some settings: those `known` of a job of its size, or those of a search."""
    from tco.performance.training.each import candidates

    inputs = Inputs(case.catalogue, case.scenario, {**case.fixed, **settings}, case.variant)
    job, reached, _ = job_on(inputs, inputs.values(as_number))
    size = job.chips, job.batch, job.length
    if size not in known:
        known[size] = candidates(job, reached)
    return known[size]


def plans_of_missed(case: Case, group: Group, missed: Array) -> list[Any]:
    """Return the quickest plans of draws of a training job that no plan of their group fits; none in serving, where all were weighed."""
    if not isinstance(group.plans, list):
        return []
    some = missed[np.linspace(0, len(missed) - 1, min(len(missed), LOOKED_AT)).astype(int)]
    found = dict.fromkeys(plan for draw in some for plan in plans_trained(case, case.at(draw, case.drawn), {}))
    return [plan for plan in found if plan not in group.plans]


def served(case: Case, centre: Result, decided: Mapping[str, Array], groups: list[Group]) -> list[Group]:
    """Return groups with the plan of each draw; draws that differ in nothing that serving decides by are weighed together, whatever else they get."""
    from tco.performance.serving.each import distinct, every_plan, put_together

    inputs = Inputs(case.catalogue, case.scenario, case.fixed, case.variant)
    values = inputs.values(as_number)
    every = every_plan(*server_of(inputs, values), values)
    structure_of = {int(draw): group.structure for group in groups for draw in group.draws}
    pilots = np.zeros(case.count, dtype=bool)
    pilots[np.linspace(0, case.count - 1, min(case.count, PILOTS)).astype(int)] = True
    WORKLOADS[inputs.kind](inputs, values, centre.plan)
    parts = alike({path: many for path, many in decided.items() if path in inputs.readings}, case.count)

    def weighed(which: Array, plans: Any) -> list[tuple[Array, Any]]:
        """Return the best of some plans for some of the draws."""
        found = []
        for part in parts:
            members, size = part[which[part]], max(CELLS // rows_of(plans), 1)
            for start in range(0, len(members), size):
                piece = members[start : start + size]
                found.append((piece, best_plans(case.inputs(structure_of[int(part[0])], piece), plans)))
        return found

    found = weighed(pilots, every)
    if not pilots.all():
        found += weighed(~pilots, distinct([plans for _, plans in found]))
    return [group._replace(plans=put_together(found)) for group in groups]


def best_plans(inputs: Inputs, plans: Any) -> Any:
    """Return the best of some plans for each draw."""
    from tco.performance.serving.each import plan_of_each

    rows = inputs.values(as_row)
    return plan_of_each(*server_of(inputs, rows), rows, plans)


def rows_of(plans: Any) -> int:
    """Return how many plans are weighed at once."""
    return max(len(plans.decode.chips), len(plans.prefill.chips))


# ---------------------------------------------------------------- arrays in pieces
def gathered(case: Case, groups: list[Group]) -> Draws:
    """Evaluate groups of draws piece by piece, and put them together in the order of the draws."""
    metrics: dict[str, Array | None] = dict.fromkeys(METRICS)
    meets, sequences = np.zeros(case.count, dtype=bool), np.full(case.count, np.nan)
    structure_of = np.zeros(case.count, dtype=int)
    every = list(groups)
    for number, group in enumerate(every):  # which grows by draws that have to look further
        structure_of[group.draws] = number
        for start in range(0, len(group.draws), CELLS):
            piece = group.draws[start : start + CELLS]
            inputs = case.inputs(group.structure, piece)
            values = inputs.values(as_number)
            workload, meets[piece], sequences[piece] = WORK[inputs.kind](inputs, values, group._replace(draws=piece))
            for name, value in run(inputs, values, None, workload).metrics.items():
                if value is not None and name in metrics:
                    found = metrics[name]
                    if found is None:
                        found = metrics[name] = np.full(case.count, np.nan)
                    found[piece] = value
        missed = group.draws[~meets[group.draws]]
        if number < len(groups) and len(missed) and (further := plans_of_missed(case, group, missed)):
            every.append(Group(missed, group.structure, further))
    return Draws(metrics, meets, None if np.isnan(sequences).all() else sequences, [group.structure for group in every], structure_of)


def serving_of_draws(inputs: Inputs, values: Values, group: Group) -> tuple[Any, Any, Any]:
    """Return what draws serve, whether they meet the targets, and the sequences of each attention group."""
    from tco.performance.serving.each import meets_targets, part_of, plan_held
    from tco.performance.serving.result import evaluated

    if group.plans is None and group.structure.plan is None:
        return without_plan(inputs.kind, "the structure holds no plan"), False, np.nan
    machine, model = server_of(inputs, values)
    plan = plan_held(machine, model, values, group.structure.plan) if group.plans is None else part_of(group.plans, group.draws)
    found = evaluated(machine, model, values, plan)
    return found, meets_targets(machine, values, found), plan.decode.sequences


def training_of_draws(inputs: Inputs, values: Values, group: Group) -> tuple[Any, Any, Any]:
    """Return what draws train, whether memory suffices, and nothing of attention groups."""
    from tco.performance.training.each import train_each

    plans = group.plans or [group.structure.plan]
    if plans == [None]:
        return without_plan(inputs.kind, "the structure holds no plan"), False, np.nan
    job, reached, formats = job_on(inputs, values)
    return *train_each(job, reached, formats, plans), np.nan


def stated_of_draws(inputs: Inputs, values: Values, group: Group) -> tuple[Any, Any, Any]:
    """Return the rates that a scenario states: there is no target they could miss."""
    return WORKLOADS[inputs.kind](inputs, values, group.structure.plan), True, np.nan


WORK = {"serving": serving_of_draws, "training": training_of_draws, "stated": stated_of_draws}


def as_row(given: Input) -> Any:
    """The reading of many values as a row, beside which plans are a column."""
    return given.value.reshape(1, -1) if np.ndim(given.value) else given.value
