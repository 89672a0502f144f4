"""Evaluation of a scenario for arrays of input values: draws of ranges, or the cases of a sweep.

Every draw has its own structure and its best plan: draws are grouped by structure, and each group
is evaluated as arrays. With a fixed plan all draws share plan and structure. Either way the batch
of a plan is solved for the target, unless the batch is fixed as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from tco.catalog import Catalogue, load_catalogue
from tco.compile.execute import keep_memory
from tco.core.array_cache import cached_arrays, text_array
from tco.core.elementwise import as_array
from tco.core.errors import DataError
from tco.core.formula import finite
from tco.core.inputs import Readings, Values, given_of
from tco.core.memory import LazySequence
from tco.core.provenance import making
from tco.core.types import AnyArray, JsonMapping, JsonObject, Settings
from tco.performance.deployment import FLEET, OPERATED_BY
from tco.performance.serving.plans import ServingPlan
from tco.scenario import metrics as joined
from tco.scenario.beliefs import has_range
from tco.scenario.compiled import (
    CompiledStructures,
    DrawGroup,
    DrawResults,
    metrics_of_partitions,
    scatter_into,
)
from tco.scenario.document import Scenario, load_scenario
from tco.scenario.metric_arithmetic import (
    MetricArithmetic,
    Trace,
    TracedGroup,
    cached_arithmetics,
    metric_arithmetics,
    stated_arithmetic,
)
from tco.scenario.metrics import METRICS, OUTPUT_RATE
from tco.scenario.network_choice import SWITCH, cheapest_clos_parts_by_draw
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Result
from tco.scenario.scenario_programs import (
    ALL_PLANS,
    ScenarioPrograms,
    TracedStructure,
    structure_in,
    structure_key,
)
from tco.scenario.served_draws import ServingQuestion, serve_draws
from tco.scenario.structure import Structure, variants_under
from tco.scenario.workload import job_on, workload_kind
from tco.system.bill import offers

Many = Mapping[str, tuple[AnyArray, str]]  # numbers with their unit, by path
# draws at values and ends of ranges in which every plan is weighed; all others choose among those
# that are the best in one of them
PILOTS = 256
CANDIDATES = 12  # plans of a training job that its draws choose among
COST = "usd_per_million_output_tokens"
LOOKED_AT = 3  # draws of a training job that no plan fits, whose own plans are searched
LAST = 16  # scenarios with settings whose programs are kept
CELLS = 2**15  # draws that studies ask for together


class Draws(NamedTuple):
    """Metrics, feasibility and structure of a scenario in every draw."""

    metrics: dict[str, AnyArray | None]  # None where no draw has the metric, nan where one has not
    meets: AnyArray  # whether memory suffices and the targets are met
    sequences: AnyArray | None  # of an attention group; none in training
    structures: Sequence[Structure]  # that draws got
    structure_of: AnyArray  # place of each draw's in that list
    # what they come to at other speeds, by tokens/s a user: few of the metrics
    by_speed: Mapping[float, Draws] = {}

    def part(self, which: slice) -> Draws:
        """Return some of the draws."""
        metrics = {
            metric_name: None if array is None else array[which]
            for metric_name, array in self.metrics.items()
        }
        sequences = None if self.sequences is None else self.sequences[which]
        draws_by_speed = {speed: draws.part(which) for speed, draws in self.by_speed.items()}
        return Draws(
            metrics,
            self.meets[which],
            sequences,
            self.structures,
            self.structure_of[which],
            draws_by_speed,
        )


class StructureGroup(NamedTuple):
    """Draws of one structure."""

    draws: AnyArray  # their places
    structure: Structure
    # to choose among: of training a list, of serving ALL_PLANS; none: that of the structure
    plans: Any = None


def _case_of_settings(
    catalogue: Catalogue,
    scenario: str | Path | Scenario,
    settings: Settings,
    structure: Structure | None,
    variant: Mapping[str, str] | None,
) -> Case:
    """Return the programs of a scenario with its settings of one value, and the draws of others."""
    document = load_scenario(catalogue, scenario)
    array_settings = {path: setting for path, setting in settings.items() if _is_many(setting)}
    programs = programs_of(
        catalogue,
        document,
        {path: setting for path, setting in settings.items() if path not in array_settings},
        variants_under(structure, document.system, variant),
    )
    return Case(programs, _sampled_input_arrays(programs, array_settings))


@finite
def evaluate_draws(
    scenario: str | Path | Scenario,
    set: Settings,  # noqa: A002 - as in `evaluate`
    *,
    structure: Structure | None = None,
    hold: bool = False,
    catalogue: Catalogue | None = None,
    variant: Mapping[str, str] | None = None,
    solve: bool = True,
    speeds: Sequence[float] = (),
) -> Draws:
    """Evaluate a scenario for arrays of inputs, all of the same length.

    Each draw has its own structure, the best plan, and the batch that meets the target. With `hold`
    plan and structure are those of the scenario under the settings of a single value. A plan that
    is quicker than asked may be the best at a speed of `speeds`.

    Args:
        scenario: Id, file or document of the scenario.
        set: Settings by input path; an array of shape (draws,), with its unit or alone, is drawn.
        structure: Decisions of an earlier evaluation, held in every draw; None decides anew.
        hold: Whether all draws share plan and structure.
        catalogue: Holds the documents, parts and rows; None loads the default catalogue.
        variant: Variants of the system by key; they win over those of the scenario.
        solve: Whether the batch of a held plan is solved for the target. If False the plan keeps
            its batch, even if the plan then misses the target.
        speeds: Further speeds of a serving workload, in tokens/s per user; plans and batches are
            chosen for each speed.

    Raises:
        DataError: No setting is an array, the arrays differ in length, a path or value is refused,
            or arithmetic has no finite result.

    """
    case = _case_of_settings(catalogue or load_catalogue(), scenario, set, structure, variant)
    programs = case.programs
    centre = None if structure is not None else programs.centre
    inputs = programs.inputs(structure or structure_in(programs.centre), case.drawn)
    input_values = inputs.values()
    case.refuse(inputs, input_values)
    if structure is not None or hold or centre is None:
        fixed: Structure = inputs.structure  # type: ignore[assignment]
        return _evaluate_groups(
            case,
            _grouping_of([StructureGroup(np.arange(case.count), fixed)]),
            None,
            solve,
            speeds,
        )
    return _evaluate_groups(
        case, _grouping(case, centre, inputs, input_values), centre, True, speeds
    )


@dataclass(frozen=True, slots=True)
class Case:
    """The programs of a scenario with some settings, and the draws of others."""

    programs: ScenarioPrograms
    drawn: Many

    @property
    def count(self) -> int:
        """Number of draws."""
        return len(next(iter(self.drawn.values()))[0])

    def inputs_at_draw(self, draw: int, paths: Iterable[str]) -> dict[str, tuple[float, str]]:
        """Return some inputs as they are in one draw."""
        return {path: (float(self.drawn[path][0][draw]), self.drawn[path][1]) for path in paths}

    def at_one_value(self, structure: Structure, paths: Iterable[str]) -> ResolvedScenario:
        """Return a structure's inputs with some drawn inputs at one of their values."""
        return self.programs.inputs(structure, self.inputs_at_draw(0, paths))

    @property
    def numbers_set(self) -> dict[str, float]:
        """The settings of one value that are numbers, in the units of their inputs."""
        inputs = self.programs.own_inputs
        input_values = inputs.values()
        return {
            path: float(input_values.input(path).value)
            for path in self.programs.fixed
            if path in inputs.setting_values and path not in self.drawn
        }

    def input_arrays(self) -> dict[str, AnyArray]:
        """Return the values of the drawn inputs, and of settings as inputs of one value."""
        arrays = {path: array for path, (array, _) in self.drawn.items()}
        return arrays | {
            path: np.full(self.count, number) for path, number in self.numbers_set.items()
        }

    def settings_key(self, centre: Result | None) -> str:
        """Return scenario, variant and settings, beside what is shipped.

        A price, a part's or a software's figure that is set is left out, as is an input that the
        scenario does not read: they are inputs whose value may be another, like those that are
        drawn. One that decides structure has its value. Figures of parts and software decide the
        plans of an operator who runs no fleet.
        """
        programs, numbers = self.programs, self.numbers_set
        read = {} if centre is None else centre.inputs
        readings = {} if centre is None else structure_in(centre).readings
        is_fleet = programs.own_inputs.text(OPERATED_BY) == FLEET

        def is_leaf(path: str) -> bool:
            is_price = path not in read or read[path].unit.startswith("USD")
            is_figure = is_fleet and path.startswith(("parts.", "performance."))
            return path in numbers and path not in readings and (is_price or is_figure)

        settings = [
            (path, str(setting_text))
            for path, setting_text in sorted(programs.fixed.items())
            if not is_leaf(path)
        ]
        return repr((programs.scenario, sorted(programs.variant.items()), settings))

    def refuse(self, inputs: ResolvedScenario, input_values: Values) -> None:
        """Refuse values that are out of bounds, or that no workload can be asked with."""
        for path in self.drawn:
            input_values.input(path)
        workload_kind(inputs).judge(inputs, input_values)


def _is_many(setting: Any) -> bool:
    """Say whether a setting is an array, with its unit or alone."""
    try:
        return not isinstance(setting, str) and bool(
            np.ndim(setting[0] if isinstance(setting, tuple) and len(setting) == 2 else setting)
        )
    except ValueError:  # rows of different lengths, which are refused as no setting
        return False


def _sampled_input_arrays(programs: ScenarioPrograms, array_settings: JsonMapping) -> Many:
    """Return the arrays of settings with the units of their inputs.

    Arrays of different lengths raise `DataError`.
    """
    if not array_settings:
        raise DataError("nothing is drawn: give at least one input as an array")
    drawn = {
        path: (given_of(path, setting, programs.unit_of).array, programs.unit_of(path))
        for path, setting in array_settings.items()
    }
    shapes = {path: np.shape(array) for path, (array, _) in drawn.items()}
    if len({*shapes.values()}) > 1 or len(next(iter(shapes.values()))) != 1:
        shapes_text = ", ".join(
            f"{path} has {'x'.join(map(str, shape))}" for path, shape in shapes.items()
        )
        raise DataError(
            f"draws need one row of values for each input, all of one length: {shapes_text}"
        )
    return drawn


# ---------------------------------------------------------------- groups of one structure
class Grouping(NamedTuple):
    """Draws by the structure they get."""

    draws: list[AnyArray]  # places of the draws of each group
    keys: list[str]  # of the structures: what their arithmetic rests on
    # finds the groups, where somebody has to know the structures themselves
    find: Callable[[], list[StructureGroup]]


def _grouping_of(groups: list[StructureGroup]) -> Grouping:
    group_keys = [_group_key(group) for group in groups]
    return Grouping([group.draws for group in groups], group_keys, lambda: groups)


def _group_key(group: StructureGroup) -> str:
    """Return the facts that decide a group's arithmetic, beside its scenario."""
    structure = group.structure
    texts = sorted(structure.texts.items())
    readers = getattr(structure.plan, "readers", None) is None
    return repr((structure_key(structure, group.plans or None), texts, readers))


def _grouping(
    case: Case, centre: Result, inputs: ResolvedScenario, input_values: Values
) -> Grouping:
    """Return draws by the structure they get, from the disk cache where it is known.

    What is cached rests on all that decides: the settings that are no prices, the structure of the
    centre, and the first draw of each distinct decision.
    """
    base = structure_in(centre)
    decided, choices = decisions(inputs, input_values, base), list[dict[str, str]]()
    if weighed := cheapest_clos_parts_by_draw(inputs, input_values):
        choices, decided[SWITCH] = weighed
    find = cache(lambda: group_draws(case, centre, inputs, decided, choices))
    alternatives = inputs.system.alternatives
    open_slots = {slot_name for slot_name, parts in alternatives.items() if len(parts) > 1}
    is_known = inputs.kind != "training" and open_slots <= decided.keys()
    if not is_known or not case.programs.is_shipped:
        return _grouping_of(find())

    alike = equal_groups(decided, case.count)
    first_draws = np.array([members[0] for members in alike])

    def make_arrays() -> list[AnyArray]:
        grouping = _grouping_of(find())
        index = np.zeros(case.count, dtype=np.int32)
        for number, draws in enumerate(grouping.draws):
            index[draws] = number
        return [index[first_draws], text_array(json.dumps(grouping.keys))]

    sizes = decided.keys() & base.readings.keys()
    # a draw whose size follows from several inputs is resized by all of them
    is_drawn = sizes <= case.drawn.keys()
    described = _group_key(StructureGroup(np.arange(0), base, ALL_PLANS))
    parts = [repr((case.settings_key(centre), described, choices)).encode()]
    for decision_name, column in sorted(decided.items()):
        parts += [decision_name.encode(), column[first_draws].tobytes()]
    for path, array in sorted(case.input_arrays().items()):
        parts += [path.encode(), b"" if is_drawn else array[first_draws].tobytes()]
    group_of, packed = cached_arrays(parts, make_arrays)
    index = np.empty(case.count, dtype=np.int32)
    for number, members in zip(group_of, alike, strict=True):
        index[members] = number
    group_keys = json.loads(packed.tobytes())
    return Grouping(
        [np.flatnonzero(index == number) for number in range(len(group_keys))], group_keys, find
    )


def group_draws(
    case: Case,
    centre: Result,
    inputs: ResolvedScenario,
    decided: Mapping[str, AnyArray],
    choices: Sequence[Mapping[str, str]],
) -> list[StructureGroup]:
    """Group the draws by structure, with the plans of each group.

    Numbers that decide the same, such as cluster sizes with as many tiers, are of one structure.
    Groups are in the order of their keys, so that arithmetic is cached whichever draw comes first.

    Args:
        case: The draws.
        centre: Result with every input at its value.
        inputs: Inputs of all draws on the structure of the centre.
        decided: Inputs that decide structure and differ between draws.
        choices: Texts that may be chosen, by the number that `decided` has for them.

    """
    base_structure = structure_in(centre)
    jobs: dict[tuple[Any, ...], list[Any]] = {}
    sized: dict[Any, list[tuple[Structure, Any]]] = {}  # by switch and module
    groups_by_key: dict[tuple[Any, ...], tuple[StructureGroup, list[AnyArray]]] = {}
    for members in equal_groups(decided, case.count):
        draw = members[0]
        parts = {
            decision_name: held_part(inputs, decision_name, int(column[draw]))
            for decision_name, column in decided.items()
            if decision_name in base_structure.alternatives
        }
        read = {
            path: _of_kind(base_structure.readings[path], column[draw])
            for path, column in decided.items()
            if path in base_structure.readings
        }
        flags = {path: reading for path, reading in read.items() if isinstance(reading, bool)}
        size = {path: reading for path, reading in read.items() if path not in flags}
        texts = dict(choices[int(decided[SWITCH][draw])]) if SWITCH in decided else {}
        structure_pairs = sized.setdefault(tuple(texts.values()), [])
        structure, plans = next(
            (pair for pair in structure_pairs if pair[0].readings.decide_alike(size)), (None, None)
        )
        if structure is None:
            structure, plans = _resolve_draw_structure(
                case, centre, inputs.kind, size, texts, draw, jobs
            )
            structure_pairs.append((structure, plans))
        group_key = id(structure), *parts.values(), *flags.values()
        if group_key not in groups_by_key:
            readings = Readings({**structure.readings, **flags}, structure.readings.decisions)
            alternatives = {**structure.alternatives, **parts}
            structure = structure._replace(alternatives=alternatives, readings=readings)
            groups_by_key[group_key] = StructureGroup(members, structure, plans), []
        groups_by_key[group_key][1].append(members)
    groups = [
        group._replace(draws=np.sort(np.concatenate(group_members)))
        for group, group_members in groups_by_key.values()
    ]
    return sorted(groups, key=_group_key)


def _resolve_draw_structure(
    case: Case,
    centre: Result,
    kind: str,
    size: dict[str, float],
    texts: dict[str, str],
    draw: int,
    jobs: dict[tuple[Any, ...], list[Any]],
) -> tuple[Structure, Any]:
    """Return the structure of a draw by its sizes and texts, with the plans to choose among."""
    base_structure = structure_in(centre)
    settings: JsonObject = (
        {}
        if base_structure.readings.decide_alike(size)
        else _own_size_settings(case, base_structure, size, draw)
    )
    if any(base_structure.texts.get(path) != part for path, part in texts.items()):
        settings = _own_size_settings(case, base_structure, size, draw) | texts
    plans: list[Any] | str | None = ALL_PLANS if kind == "serving" else None
    if kind == "training":
        plans = _plans_trained(case, settings, jobs)
    plan = next(iter(plans), None) if isinstance(plans, list) else centre.plan
    structure = (
        case.programs.structure_under(tuple(settings.items()), plan) if settings else base_structure
    )
    return structure, plans


def equal_groups(decided: Mapping[str, AnyArray], count: int) -> list[AnyArray]:
    """Return the places of draws in groups of equal decisions.

    Args:
        decided: Decisions by name, each an array of shape (draws,).
        count: Number of draws.

    Returns:
        Ascending places of the draws of each group; every draw is in exactly one group.

    """
    if not decided:
        return [np.arange(count)]
    group = np.zeros(count, dtype=int)
    for column in decided.values():
        kinds, kind = np.unique(column, return_inverse=True)
        _, group = np.unique(group * len(kinds) + kind, return_inverse=True)
    return [np.flatnonzero(group == group_number) for group_number in range(group.max() + 1)]


def _own_size_settings(
    case: Case, base_structure: Structure, size: Mapping[str, float], draw: int
) -> dict[str, tuple[float, str]]:
    """Return the settings of a draw's own sizes, such as its number of chips.

    There are none where the sizes are those of the base structure.
    """
    resized_paths = {
        path for path, reading in size.items() if reading != base_structure.readings[path]
    }
    if not resized_paths:
        return {}
    return case.inputs_at_draw(
        draw, resized_paths if resized_paths <= case.drawn.keys() else case.drawn.keys()
    )


def decisions(
    inputs: ResolvedScenario, input_values: Values, base_structure: Structure
) -> dict[str, AnyArray]:
    """Return the inputs that decide structure and differ between draws.

    A place of the system tree has the index of its cheapest alternative over its life. A path has
    its reading.

    Args:
        inputs: Resolved scenario of all draws.
        input_values: Values of the inputs, some of them arrays over the draws.
        base_structure: Structure whose readings name the paths that decide.

    Returns:
        Arrays by place or path, of shape (draws,).

    """
    decision_arrays: dict[str, AnyArray] = {}
    for tree_place, candidates in offers(inputs.system, input_values, inputs.catalogue).items():
        if len(candidates) > 1:
            from tco.scenario.part_choice import cheapest_offers  # most trees list none

            chosen = cheapest_offers(inputs, tree_place, candidates)
            if np.ndim(chosen):
                decision_arrays[tree_place] = chosen
    for path, reading in base_structure.readings.items():
        number = input_values.number(path)
        if np.ndim(number):
            decision_arrays[path] = number > 0 if isinstance(reading, bool) else number
    return decision_arrays


def held_part(inputs: ResolvedScenario, tree_place: str, chosen: int) -> str:
    """Return a part among the alternatives of a place.

    Args:
        inputs: Resolved scenario, with the alternatives of its system.
        tree_place: Place in the system tree.
        chosen: Index of the part among the alternatives of the place.

    """
    return list(inputs.system.alternatives[tree_place])[chosen]


def _of_kind(reading: float, drawn_value: Any) -> float:
    return bool(drawn_value) if isinstance(reading, bool) else float(drawn_value)


# ---------------------------------------------------------------- plans of draws
def _plans_trained(
    case: Case, settings: Settings, known_plans: dict[tuple[Any, ...], list[Any]]
) -> list[Any]:
    """Return a job's quickest plans under some settings, from `known_plans` or a search."""
    from tco.performance.training.search import search_training_plans

    inputs = case.programs.inputs(None, settings)
    job, reached, _ = job_on(inputs, inputs.values())
    size = job.chips, job.batch, job.length
    if size not in known_plans:
        quickest = search_training_plans(job, reached, count=CANDIDATES).top
        known_plans[size] = [candidate.plan for candidate in quickest]
    return known_plans[size]


def _plans_of_missed(case: Case, group: StructureGroup, missed: AnyArray) -> list[Any]:
    """Return the quickest training plans for draws that no plan of their group fits.

    Serving has none, as its search weighed all plans.
    """
    if not isinstance(group.plans, list):
        return []
    sampled_draws = missed[np.linspace(0, len(missed) - 1, min(len(missed), LOOKED_AT)).astype(int)]
    quickest_plans = dict.fromkeys(
        plan
        for draw in sampled_draws
        for plan in _plans_trained(case, case.inputs_at_draw(draw, case.drawn), {})
    )
    return [plan for plan in quickest_plans if plan not in group.plans]


# ---------------------------------------------------------------- draws of a program
def _evaluate_groups(
    case: Case,
    grouping: Grouping,
    centre: Result | None,
    solve: bool,
    speeds: Sequence[float],
) -> Draws:
    """Run the programs of groups of draws, and put them together in the order of the draws."""
    structure_of: AnyArray = np.zeros(case.count, dtype=int)
    for number, draws in enumerate(grouping.draws):
        structure_of[draws] = number
    structures: Sequence[Structure] = LazySequence(
        lambda: [group.structure for group in grouping.find()]
    )
    with case.programs.lock:
        if is_served(case, centre, grouping):
            speed_results = _serving_results(case, grouping, centre, solve, speeds)
        elif case.programs.own_inputs.kind == "stated":
            speed_results = [_rated_as_stated(case, grouping, centre)]
        else:
            speed_results, structures = _looked_at(case, grouping.find(), structure_of)
    base_draws, *draws_at_speeds = [
        Draws(
            {metric_name: speed_result.metrics.get(metric_name) for metric_name in METRICS},
            speed_result.meets,
            None if np.isnan(speed_result.batch).all() else speed_result.batch,
            structures,
            structure_of,
        )
        for speed_result in speed_results
    ]
    for draws_at_speed in draws_at_speeds:
        draws_at_speed.metrics[COST] = _cost_at(base_draws, draws_at_speed)
    return base_draws._replace(
        by_speed=_as_good_as_quicker(dict(zip(speeds, draws_at_speeds, strict=True)))
    )


def _cost_at(base_draws: Draws, draws_at_speed: Draws) -> AnyArray | None:
    hour, rate = (
        base_draws.metrics["tco_usd_per_used_chip_hour"],
        draws_at_speed.metrics[OUTPUT_RATE],
    )
    if hour is None or rate is None:
        return None
    return as_array(joined.usd_per_million(hour, rate, 1.0))


def _as_good_as_quicker(draws_by_speed: dict[float, Draws]) -> dict[float, Draws]:
    """Return draws at some speeds, each on the plan of a higher speed where that makes more tokens.

    A plan that reaches the higher speed reaches the lower one too.
    """
    quicker: Draws | None = None
    for speed in sorted(draws_by_speed, reverse=True):
        slower = draws_by_speed[speed]
        if (
            quicker is not None
            and (rate := slower.metrics[OUTPUT_RATE]) is not None
            and (quicker_rate := quicker.metrics[OUTPUT_RATE]) is not None
        ):
            better = quicker.meets & ~(slower.meets & (rate >= quicker_rate))
            for metric, quicker_values in quicker.metrics.items():
                if quicker_values is not None:
                    slower.metrics[metric][better] = quicker_values[better]  # type: ignore[index]
            slower.meets[better] = True
        quicker = slower
    return draws_by_speed


def programs_of(
    catalogue: Catalogue, scenario: Scenario, fixed: JsonObject, variant: dict[str, str]
) -> ScenarioPrograms:
    """Return the programs of a scenario with some settings, and cache the last ones."""
    cached_programs: dict[str, ScenarioPrograms] = catalogue.once("programs", dict)
    programs_key = repr((scenario, sorted(fixed.items()), sorted(variant.items()), making.get()))
    programs = (
        cached_programs.pop(programs_key)
        if programs_key in cached_programs
        else ScenarioPrograms(catalogue, scenario, fixed, variant)
    )
    cached_programs[programs_key] = programs
    for old in list(cached_programs)[:-LAST]:
        cached_programs.pop(old, None)
    return programs


def is_served(case: Case, centre: Result | None, grouping: Grouping) -> bool:
    """Say whether draws have a serving workload with plans, searched or held."""
    if centre is not None:
        return case.programs.own_inputs.kind == "serving"
    return isinstance(grouping.find()[0].structure.plan, ServingPlan)


def _looked_at(
    case: Case, groups: list[StructureGroup], structure_of: AnyArray
) -> tuple[list[DrawResults], list[Structure]]:
    """Run groups of draws of a workload that is no serving.

    Draws that no plan of their group fits are run on plans of their own.

    Returns:
        The results, and the structures. `structure_of` is changed to their index in each draw.

    """
    draw_results = DrawResults({}, np.zeros(case.count, dtype=bool), np.full(case.count, np.nan))
    structures = [group.structure for group in groups]
    _run_programs(case, groups, draw_results)
    for group in groups:
        missed = group.draws[~draw_results.meets[group.draws]]
        if len(missed) and (plans := _plans_of_missed(case, group, missed)):
            structure_of[missed] = len(structures)
            structures.append(group.structure)
            _run_programs(case, [StructureGroup(missed, group.structure, plans)], draw_results)
    return [draw_results], structures


def _run_programs(case: Case, groups: list[StructureGroup], draw_results: DrawResults) -> None:
    """Write the results of groups into those of all draws, a program at a time."""
    groups_by_program: dict[int, tuple[CompiledStructures, list[DrawGroup]]] = {}
    for group, traced in zip(groups, _traced_structures(case, groups), strict=True):
        compiled = traced.compiled
        _, draw_groups = groups_by_program.setdefault(id(compiled), (compiled, []))
        draw_groups.append(DrawGroup(group.draws, traced.step_indices))
    for compiled, draw_groups in groups_by_program.values():
        draws = np.sort(np.concatenate([group.draws for group in draw_groups]))
        drawn = {path: array[draws] for path, (array, _) in case.drawn.items()}
        groups_among_draws = [
            group._replace(draws=np.searchsorted(draws, group.draws)) for group in draw_groups
        ]
        results = compiled.run_without_serving(drawn, groups_among_draws, len(draws))
        draw_results.meets[draws] = results.meets
        draw_results.batch[draws] = results.batch
        scatter_into(draw_results.metrics, _known_metrics(results), draws, case.count)


def _known_metrics(draw_results: DrawResults) -> dict[str, AnyArray]:
    return {
        metric_name: metric_values
        for metric_name, metric_values in draw_results.metrics.items()
        if metric_name in METRICS
    }


def _traced_structures(case: Case, groups: Sequence[StructureGroup]) -> list[TracedStructure]:
    """Return the program of each group of draws."""
    return [
        case.programs.traced_structure(
            case.at_one_value, group.structure, frozenset(case.drawn), group.plans or None
        )
        for group in groups
    ]


def _serving_results(
    case: Case,
    grouping: Grouping,
    centre: Result | None,
    solve: bool,
    speeds: Sequence[float],
) -> list[DrawResults]:
    """Return the results of draws of a serving workload, with settings as inputs of one value."""
    keep_memory()
    settings = case.numbers_set
    inputs = case.input_arrays()
    traced = _traced_groups(case, grouping)
    drawn = sorted(inputs)
    arithmetics = _arithmetics_of(
        case, grouping, centre, drawn, lambda: metric_arithmetics(traced, drawn)
    )
    pilots, plan = None, None
    if centre is None:
        plan = grouping.find()[0].structure.plan
    else:
        leaves = [leaf for part in arithmetics for leaf in part.leaves]
        pilots = _pilots_of(case, centre, {leaf.path for leaf in leaves})
        length = len(next(iter(pilots.values())))
        pilots |= {path: np.full(length, number) for path, number in settings.items()}
    question = ServingQuestion(inputs, case.count, pilots, solve, speeds)
    speed_results = serve_draws(question, grouping.draws, plan, arithmetics, traced)
    return [
        speed_result._replace(metrics=_known_metrics(speed_result))
        for speed_result in speed_results
    ]


def _rated_as_stated(case: Case, grouping: Grouping, centre: Result | None) -> DrawResults:
    """Return the results of draws that choose no plan, with settings as inputs of one value."""
    inputs = case.input_arrays()
    drawn, traced = sorted(inputs), _traced_groups(case, grouping)
    (arithmetic,) = _arithmetics_of(
        case, grouping, centre, drawn, lambda: [stated_arithmetic(traced, drawn)]
    )
    kernel = arithmetic.kernel
    metrics = metrics_of_partitions(
        kernel, arithmetic.metrics, grouping.draws, kernel.values(inputs), case.count
    )
    every_draw = np.ones(case.count, dtype=bool)
    return DrawResults(metrics, every_draw, np.full(case.count, np.nan))


def _traced_groups(case: Case, grouping: Grouping) -> Trace:
    """Return a function that gives the program of each group, traced once it is called."""
    return cache(
        lambda: [
            TracedGroup(traced.compiled, traced.step_indices[0])
            for traced in _traced_structures(case, grouping.find())
        ]
    )


def _arithmetics_of(
    case: Case,
    grouping: Grouping,
    centre: Result | None,
    drawn: Sequence[str],
    make: Callable[[], list[MetricArithmetic]],
) -> list[MetricArithmetic]:
    """Return the arithmetic of metrics, from the disk cache where it rests on shipped data."""
    arithmetic_key = repr((case.settings_key(centre), grouping.keys, drawn))
    arithmetics = case.programs.arithmetics
    if arithmetic_key not in arithmetics:
        arithmetics[arithmetic_key] = (
            cached_arithmetics([arithmetic_key.encode()], make)
            if case.programs.is_shipped and centre is not None
            else make()
        )
    known_arithmetics: list[MetricArithmetic] = arithmetics[arithmetic_key]
    return known_arithmetics


def _ends_met(path: str, ranged: bool) -> AnyArray:
    """Return which of low, value and high an input has in each pilot draw."""
    quarters = np.random.default_rng(crc32(path.encode())).integers(0, 4, max(PILOTS, 3))
    low_to_high = np.array([0, 1, 1, 2], dtype=np.int8)[quarters]
    low_to_high[:3] = (1, 1, 1) if ranged else (1, 0, 2)
    return low_to_high[:PILOTS]


def _pilots_of(case: Case, centre: Result, read: Container[str]) -> dict[str, AnyArray]:
    """Return pilot draws that tell which plans can be best: centres, then ends of the ranges.

    They are of the inputs that the workload reads; of all where it reads none that is drawn.

    The path of an input alone decides which end it takes, so that the plans found do not depend on
    the other inputs that are drawn. An input without a range takes the least and greatest of its
    values. An input that decides a count stays at its value.
    """
    base_readings = structure_in(centre).readings
    low_to_high, ranged_paths = [], {}
    drawn = {path: array for path, (array, _) in case.drawn.items()}
    drawn = {path: array for path, array in drawn.items() if path in read} or drawn
    for path, array in drawn.items():
        nominal = centre.inputs.get(path)
        ranged = nominal is not None and has_range(nominal)
        if nominal is not None and ranged:
            low, nominal_value, high = nominal.low, nominal.value, nominal.high
        else:
            low, nominal_value, high = array.min(), float(np.median(array)), array.max()
        if not isinstance(base_readings.get(path, True), bool):
            low = high = nominal_value
        low_to_high.append((low, nominal_value, high))
        ranged_paths[path] = ranged
    parts = [f"pilots {PILOTS} {ranged_paths}".encode()]
    (ends_met,) = cached_arrays(
        parts,
        lambda: [np.stack([_ends_met(path, ranged) for path, ranged in ranged_paths.items()])],
    )
    ends = np.take_along_axis(np.array(low_to_high, dtype=float), ends_met, axis=1)
    is_fixed = (ends == ends[:, :1]).all()
    return dict(zip(drawn, ends[:, :1] if is_fixed else ends, strict=True))
