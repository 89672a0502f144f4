"""A scenario asked for many values of its inputs together: draws of a range, or the cases of a sweep.

The structure is held, or decided anew in every draw: draws are then grouped by the structure they get, and each group is evaluated as
arrays. Either way the axes of a plan are held or chosen among those near the best at the centre or the best at the far ends of the ranges,
and its batch is solved for the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from tco.catalog import Catalogue, load_catalogue
from tco.chain.inputs import Inputs, Scenario, load_scenario
from tco.chain.metrics import METRICS
from tco.chain.programs import ALL, Lot, Part, Programs, spread
from tco.chain.result import Result
from tco.chain.scenario import evaluate
from tco.chain.settings import given_of
from tco.chain.stages import exactly
from tco.chain.structure import Structure
from tco.chain.workloads import job_on, server_of
from tco.foundation.errors import DataError
from tco.foundation.provenance import way
from tco.foundation.values import Values, as_number
from tco.hardware.bill import offers
from tco.performance.serving.plans import ServingPlan

Array = np.ndarray[Any, Any]
NEAR = 0.1
PILOTS = 256  # draws that tell which plans can be the best
LAST = 16  # scenarios with settings whose programs are kept
CELLS = 2**15  # draws that studies ask for together


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
    plans: Any  # to choose among: of training a list, of serving always ALL; none holds that of the structure


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
        return gathered(case, [Group(np.arange(case.count), structure, None)], None)
    centre = case.answer({})
    held = [Group(np.arange(case.count), structure_in(centre), None)]
    return gathered(case, list(grouped(case, centre)) if replan else held, centre)


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

    def answer(self, settings: Mapping[str, Any], workload: bool = True) -> Result:
        """Evaluate one value of every input; without the workload only what the chips cost."""
        return evaluate(self.scenario, {**self.fixed, **settings}, catalogue=self.catalogue, variant=self.variant, workload=workload)

    def at_one_value(self, structure: Structure, paths: Iterable[str]) -> Inputs:
        """Return the inputs of a structure, some of those that are drawn set to one of their values."""
        some = {path: (float(self.drawn[path][0][0]), self.drawn[path][1]) for path in paths}
        return Inputs(self.catalogue, self.scenario, self.fixed | some, self.variant, structure)

    def refuse(self, structure: Structure) -> None:
        """Refuse values that are out of bounds, or that no workload can be asked with."""
        inputs = self.inputs(structure, slice(None))
        values = inputs.values(as_number)
        for path in self.drawn:
            values.override(path, inputs.unit_of(path), values.given[path])
        if inputs.kind == "serving":
            server_of(inputs, values)
        elif inputs.kind == "training":
            job_on(inputs, values)

    def inputs(self, structure: Structure, draws: Any) -> Inputs:
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
    decided = decisions(case, inputs.values(as_number), inputs, held)
    table = np.stack([np.broadcast_to(column, case.count) for column in decided.values()]) if decided else np.zeros((1, case.count))
    _, first, group = np.unique(table, axis=1, return_index=True, return_inverse=True)
    serving = isinstance(centre.plan, ServingPlan)
    near = ALL if serving else plans_near(case, centre)
    for place, draw in enumerate(first):
        parts = {name: held_part(inputs, name, int(decided[name][draw])) for name in decided if name in held.alternatives}
        read = {path: of_kind(held.readings[path], column[draw]) for path, column in decided.items() if path in held.readings}
        members = np.flatnonzero(group.ravel() == place)
        moved = {path for path, one in read.items() if not isinstance(one, bool) and one != held.readings[path]}
        own, plans = held, near
        if moved:
            paths = moved if moved <= case.drawn.keys() else case.drawn.keys()
            own, plans = at_another_size(case, held, paths, int(draw), near if serving else None)
        yield Group(members, own._replace(alternatives={**own.alternatives, **parts}, readings={**own.readings, **read}), plans)


def at_another_size(case: Case, held: Structure, paths: Iterable[str], draw: int, plans: Any) -> tuple[Structure, Any]:
    """Return the structure, and the plans to choose among, where some inputs are as in a draw: what they decide is read at its own centre."""
    there = {path: (float(case.drawn[path][0][draw]), case.drawn[path][1]) for path in sorted(paths)}
    known = programs_of(case).sizes
    key = exactly(held.plan), tuple(there.items())
    if key not in known:
        answer = case.answer(there, plans is None)
        own = structure_in(answer)
        own = own._replace(plan=answer.plan or held.plan, readings={**held.readings, **own.readings})
        known[key] = own, (plans or (plans_near(case, answer) if answer.plan is not None else None))
    found: tuple[Structure, Any] = known[key]
    return found


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


def plans_near(case: Case, answer: Result) -> list[Any]:
    """Return the plans of training whose rate is near that of the best one."""
    from tco.performance.training.each import candidates

    inputs = Inputs(case.catalogue, case.scenario, case.fixed, case.variant, answer.structure)
    job, reached, _ = job_on(inputs, inputs.values(as_number))
    return candidates(job, reached, answer.metrics["step_s"], case.near)


# ---------------------------------------------------------------- draws of a program
def gathered(case: Case, groups: list[Group], centre: Result | None) -> Draws:
    """Run the programs of groups of draws, and put them together in the order of the draws."""
    case.refuse(groups[0].structure)
    drawn, programs = frozenset(case.drawn), programs_of(case)
    batch: Array = np.full(case.count, np.nan)
    found = Draws({}, np.zeros(case.count, dtype=bool), batch, [], np.zeros(case.count, dtype=int))
    lots: dict[int, tuple[Lot, list[Part]]] = {}
    with programs.lock:
        for number, (draws, structure, plans) in enumerate(groups):
            found.structures.append(structure)
            found.structure_of[draws] = number
            lot, names = programs.names(case.at_one_value, structure, drawn, plans)
            lots.setdefault(id(lot), (lot, []))[1].append(Part(draws, names, structure.plan))
        for lot, parts in lots.values():
            run_lot(case, lot, parts, found, centre)
    metrics = {name: found.metrics.get(name) for name in METRICS}
    return found._replace(metrics=metrics, sequences=None if np.isnan(batch).all() else batch)


def programs_of(case: Case) -> Programs:
    """Return the programs of a scenario with some settings; those that were asked for last are kept."""
    kept: dict[str, Programs] = case.catalogue.once("programs", dict)
    key = repr((case.scenario, sorted(case.fixed.items()), sorted(case.variant.items()), way.get()))
    found = kept.pop(key) if key in kept else Programs()
    kept[key] = found
    for old in list(kept)[:-LAST]:
        kept.pop(old, None)
    return found


def run_lot(case: Case, lot: Lot, parts: list[Part], found: Draws, centre: Result | None) -> None:
    """Run a program in all draws of its parts."""
    places = np.arange(case.count) if len(parts) == 1 == len(found.structures) else np.sort(np.concatenate([part.draws for part in parts]))
    many = {path: one if len(places) == case.count else one[places] for path, (one, _) in case.drawn.items()}
    own = [part._replace(draws=np.searchsorted(places, part.draws)) for part in parts]
    chooses = lot.plans is not None and centre is not None
    pilots = pilots_of(case, centre) if chooses else None  # type: ignore[arg-type]
    metrics, meets, batch = lot.run(many, own, len(places), pilots, case.near)
    found.meets[places], found.sequences[places] = meets, batch  # type: ignore[index]
    spread(found.metrics, {name: value for name, value in metrics.items() if name in METRICS}, places, case.count)  # type: ignore[arg-type]


def pilots_of(case: Case, centre: Result) -> dict[str, Array]:
    """Return draws that tell which plans can be the best: first the centre, then each input at its value or at an end of its range.

    Which it is is a matter of the input's path, so that the plans found are the same whatever is drawn. An input without a range takes the
    ends of what is asked; one that decides how many of something there are stays as it is.
    """
    held, found = structure_in(centre).readings, {}
    for path, (many, _) in case.drawn.items():
        given = centre.inputs.get(path)
        value = float(np.median(many)) if given is None else given.value
        low, high = (many.min(), many.max()) if given is None or given.low is None else (given.low, given.high)
        if not isinstance(held.get(path, True), bool):
            low = high = value
        ends = np.array([low, value, value, high])[np.random.default_rng(crc32(path.encode())).integers(0, 4, PILOTS)]
        ends[0] = value
        found[path] = ends
    return found
