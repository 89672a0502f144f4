"""Metrics of a scenario in many cases, with plans searched where needed.

Inputs that the search of plans reads are set one value at a time, each with a search of its own.
Other inputs leave the plan as it is and are set as arrays. All else that decides structure (the
cheapest of alternatives, tiers, whether racks fit their site) is found for every case. Cases are
grouped by these decisions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from tco.catalog import Catalogue
from tco.core.types import AnyArray, JsonMapping, JsonObject
from tco.evaluation.workers import Folders, catalogue_on
from tco.scenario.beliefs import GOLDEN, Dice, beliefs_of, settings_of, splitmix64, uniform
from tco.scenario.compiled import scatter_into
from tco.scenario.document import Scenario
from tco.scenario.evaluate import OF_THE_SITE, assemble_result, run
from tco.scenario.evaluate_samples import (
    Draws,
    Many,
    decisions,
    equal_groups,
    evaluate_draws,
    held_part,
)
from tco.scenario.metrics import METRICS
from tco.scenario.plan_records import plan_for
from tco.scenario.pricing import beyond_a_position
from tco.scenario.resolve import resolve_scenario
from tco.scenario.result import Result
from tco.scenario.structure import Structure
from tco.scenario.workload import workload_kind
from tco.sweeps.study import PLAN, Draw
from tco.system.bill import bill_of_materials

# of a number of a Sobol sequence, and with them its longest: what the generator knows how to skip
BITS = 30
ROUNDS = 4  # of a Feistel network: what follows is a random permutation (Luby and Rackoff 1988)
ENDS = 2.0**-54, 1 - 2.0**-53  # the lowest and highest share: beyond them a deviate is infinite


def dice_of(
    catalogue: Catalogue, draw: Draw, thrown: tuple[str, ...], start: int, stop: int
) -> Dice:
    """Return the dice of some draws; `thrown` are all names that are drawn for, in one order."""
    if draw.method == "latin-hypercube":
        return Strata(catalogue, draw.seed, start, stop, draw.samples)
    if draw.method == "sobol":
        return Sequence(catalogue, draw.seed, start, stop, thrown)
    return Dice(catalogue, draw.seed, start, stop)


class Strata(Dice):
    """A Latin hypercube (McKay, Beckman and Conover 1979): of N draws of an input, one lies in each
    N-th of its probability.
    """

    def __init__(
        self, catalogue: Catalogue, seed: int, start: int, stop: int, samples: int
    ) -> None:
        super().__init__(catalogue, seed, start, stop)
        self.draws, self.samples = np.arange(start, stop, dtype=np.uint64), samples

    def throw(self, name: str) -> AnyArray:
        """Return the standard normal deviates of a name."""
        found = self.thrown.get(name)
        if found is None:
            key = splitmix64(splitmix64(self.seed.copy()) + np.uint64(crc32(name.encode())))
            within = uniform(splitmix64(key + (self.draws + np.uint64(1)) * GOLDEN))
            found = self.thrown[name] = deviates(
                (permuted(self.draws, self.samples, splitmix64(key)) + within) / self.samples
            )
        return found


class Sequence(Dice):
    """A scrambled Sobol sequence: every name is a dimension of it."""

    def __init__(
        self, catalogue: Catalogue, seed: int, start: int, stop: int, names: tuple[str, ...]
    ) -> None:
        super().__init__(catalogue, seed, start, stop)
        points = sobol_points(seed, len(names), start, stop)
        self.thrown = {name: deviates(points[:, place]) for place, name in enumerate(names)}


def permuted(places: AnyArray, count: int, key: AnyArray) -> AnyArray:
    """Return the values of a random permutation of `count` at `places`.

    The permutation is a Feistel network, walked until its value is below `count`.
    """
    half = np.uint64(max((count - 1).bit_length() + 1, 2) // 2)
    low = (np.uint64(1) << half) - np.uint64(1)
    found, outside = places.copy(), np.ones(len(places), dtype=bool)
    while outside.any():
        left, right = found[outside] >> half, found[outside] & low
        for turn in range(ROUNDS):
            left, right = right, left ^ (splitmix64(key + right * GOLDEN + np.uint64(turn)) & low)
        found[outside] = (left << half) | right
        outside[outside] = found[outside] >= count
    return found


def deviates(shares: AnyArray) -> AnyArray:
    """Return the standard normal deviates of shares of probability."""
    from scipy.special import ndtri

    found: AnyArray = ndtri(np.clip(shares, *ENDS))
    return found


# the generator of a sequence goes on from where it stands: those of threads would meet
_engines = threading.local()


def sobol_points(seed: int, dimensions: int, start: int, stop: int) -> AnyArray:
    """Return some points of a scrambled Sobol sequence."""
    import warnings

    from scipy.stats import qmc

    kept: dict[tuple[int, int], Any] = _engines.__dict__.setdefault("kept", {})
    engine = kept.get((seed, dimensions))
    if engine is None or engine.num_generated > start:
        kept.clear()
        engine = kept[seed, dimensions] = qmc.Sobol(
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
Fixed = tuple[tuple[str, Any], ...]  # settings of one value


class StudyScenario(NamedTuple):
    """A scenario of a study, and how its plans are chosen, as it travels. Equal ones share what was
    searched.
    """

    name: str
    scenario: Scenario  # what its file says
    folders: Folders  # laid over the shipped data
    plan: str

    @property
    def catalogue(self) -> Catalogue:
        """The data it sees."""
        return catalogue_on(self.folders)

    def __hash__(self) -> int:
        return hash((self.name, self.folders))


class Settled(NamedTuple):
    """A scenario with one value of each of its settings: its plan, and the inputs that the search
    for it read.
    """

    answer: Result
    reads: frozenset[str]

    @property
    def fits(self) -> bool:
        """Whether its racks fit the site."""
        return self.answer.bill is None or self.answer.metrics["tco_usd_per_chip_hour"] is not None


class CaseDraws(NamedTuple):
    """Drawn inputs of all cases, with each case's place in the dice."""

    paths: frozenset[str]
    dice: Dice
    places: AnyArray  # of each case in the dice


@lru_cache(maxsize=512)
def settled(asked: StudyScenario, fixed: Fixed) -> Settled:
    """Evaluate a scenario at one value of each input, its plan searched."""
    settings, axes = parted(fixed)
    inputs = resolve_scenario(asked.catalogue, asked.scenario, settings, {}, None)
    values = inputs.values()
    found = workload_kind(inputs).walk(inputs, values, plan_for(inputs.kind, axes or None))
    reads = frozenset() if inputs.kind == "stated" else frozenset(values.inputs)
    return Settled(
        assemble_result(
            inputs, values, run(inputs, values, None, found), 0.0, trace=False, refuse=False
        ),
        reads,
    )


def parted(fixed: Fixed) -> tuple[JsonObject, dict[str, str]]:
    """Return settings, and the axes of the plan among them."""
    axes = {path.removeprefix(PLAN): text for path, text in fixed if path.startswith(PLAN)}
    return {path: value for path, value in fixed if not path.startswith(PLAN)}, axes


def cases_of(
    asked: StudyScenario,
    fixed: Fixed,
    centre: JsonMapping,
    axes: Many,
    drawn: CaseDraws | None,
    count: int,
) -> CaseResults:
    """Evaluate cases of one setting; `centre` has a value of every axis at which the plan is
    found.
    """
    answer = settled(asked, (*fixed, *centre.items()))
    found = CaseResults(count)
    searched = [path for path in axes if path in answer.reads] if asked.plan == "best" else []
    if not searched:
        for group, some in structured(asked, fixed, axes, answer, count):
            found.take(group, *on_structure(asked, fixed, axes, drawn, group, some))
        return found
    for places in equal_groups({path: axes[path][0] for path in searched}, count):
        own = tuple((path, (float(axes[path][0][places[0]]), axes[path][1])) for path in searched)
        others = {path: value for path, value in centre.items() if path not in searched}
        rest = {
            path: (many[places], unit)
            for path, (many, unit) in axes.items()
            if path not in searched
        }
        dice = None if drawn is None else drawn._replace(places=drawn.places[places])
        part = cases_of(asked, (*fixed, *own), others, rest, dice, len(places))
        found.take(places, part.metrics, part.meets, part.inputs)
    return found


def structured(
    asked: StudyScenario, fixed: Fixed, axes: Many, answer: Settled, count: int
) -> Iterator[tuple[AnyArray, Settled]]:
    """Yield cases by the structure they get; for which of their values it is found is the same,
    since no plan rests on them otherwise.
    """
    structure = answer.answer.structure
    decided = (
        decided_by(asked, fixed, axes, structure, answer) if axes and structure is not None else {}
    )
    for places in equal_groups({name: many for name, (many, _) in decided.items()}, count):
        if all(many[places[0]] == own for many, own in decided.values()):
            yield places, answer
        else:
            yield (
                places,
                settled(
                    asked,
                    (
                        *fixed,
                        *(
                            (path, (float(many[places[0]]), unit))
                            for path, (many, unit) in axes.items()
                        ),
                    ),
                ),
            )


def decided_by(
    asked: StudyScenario, fixed: Fixed, axes: Many, structure: Structure, answer: Settled
) -> dict[str, tuple[AnyArray, float]]:
    """Return structure decisions that follow the axes, per case and as settled."""
    inputs = resolve_scenario(
        asked.catalogue,
        asked.scenario,
        parted(fixed)[0] | dict(axes),
        dict(structure.variant),
        structure,
    )
    values, count = inputs.values(), len(next(iter(axes.values()))[0])
    found: dict[str, tuple[AnyArray, float]] = {}
    for name, many in decisions(inputs, values, structure).items():
        if name in structure.alternatives:
            parts = [held_part(inputs, name, place) for place in range(int(many.max()) + 1)]
            own = (
                float(parts.index(structure.alternatives[name]))
                if structure.alternatives[name] in parts
                else -1.0
            )
        else:
            own = float(structure.readings[name])
        found[name] = np.broadcast_to(many, count), own
    if not inputs.system.bare:
        beyond = beyond_a_position(
            values, bill_of_materials(inputs.system, values, asked.catalogue), inputs.system.racks
        )
        if np.ndim(beyond):
            found[FITS] = ~beyond, float(answer.fits)
    return found


def on_structure(
    asked: StudyScenario,
    fixed: Fixed,
    axes: Many,
    drawn: CaseDraws | None,
    group: AnyArray,
    answer: Settled,
) -> tuple[Mapping[str, AnyArray | None], AnyArray, Mapping[str, AnyArray]]:
    """Evaluate cases of one structure: their metrics, whether targets are met, and what was
    drawn.
    """
    result = answer.answer
    settings: JsonObject = parted(fixed)[0] | {
        path: (many[group], unit) for path, (many, unit) in axes.items()
    }
    # then no plan is searched
    inputs, stated = (
        dict[str, AnyArray](),
        result.texts["workload.kind"] == "stated",
    )
    if drawn is not None:
        ranges = {
            path: one
            for path, one in beliefs_of(result).items()
            if path in drawn.paths and path not in settings
        }
        thrown = settings_of(
            ranges,
            {
                path: drawn.dice.correlated_deviates(one)[drawn.places[group]]
                for path, one in ranges.items()
            },
        )
        # what decides structure stays as it is where that is held: a plan is one of so many chips
        if asked.plan == "held":
            thrown = {
                path: (
                    np.full(len(group), ranges[path].value) if ranges[path].steps else many,
                    unit,
                )
                for path, (many, unit) in thrown.items()
            }
        settings |= thrown
        inputs = {path: many for path, (many, _) in thrown.items()}
    if not axes and not inputs:
        metrics = {
            name: None
            if (value := result.metrics[name]) is None
            else np.full(len(group), value, dtype=float)
            for name in METRICS
        }
        return metrics, np.full(len(group), result.plan is not None or stated), inputs
    with_batch = asked.plan == "best" and drawn is None  # nothing that the plan rests on differs
    structure = result.structure if with_batch or asked.plan == "held" or stated else None
    many = evaluate_draws(
        asked.scenario,
        settings,
        structure=structure,
        catalogue=asked.catalogue,
        solve=not with_batch,
    )
    made, meets = many.metrics, many.meets
    if not answer.fits:
        made = {
            name: None if any(word in name for word in OF_THE_SITE) else many
            for name, many in made.items()
        }
    return made, meets, inputs


class CaseResults:
    """Metrics, target checks and drawn inputs of cases.

    A metric of any case is held for all cases, with nan where a case lacks the metric.
    """

    def __init__(self, count: int) -> None:
        """Cases of which nothing is known yet."""
        self.metrics, self.inputs = dict[str, AnyArray](), dict[str, AnyArray]()
        self.meets = np.zeros(count, dtype=bool)

    def take(
        self,
        places: AnyArray,
        metrics: Mapping[str, AnyArray | None],
        meets: AnyArray,
        inputs: Mapping[str, AnyArray],
    ) -> None:
        """Take in what some of the cases come to."""
        self.meets[places] = meets
        for own, others in ((self.metrics, metrics), (self.inputs, inputs)):
            scatter_into(
                own,
                {name: many for name, many in others.items() if many is not None},
                places,
                len(self.meets),
            )

    @property
    def draws(self) -> Draws:
        """Case metrics and target checks in the form of `Draws`."""
        return Draws(
            {name: self.metrics.get(name) for name in METRICS},
            self.meets,
            None,
            [],
            np.zeros(len(self.meets), dtype=int),
        )
