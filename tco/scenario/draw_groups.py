"""Grouping of draws by structure, with the plans that each group may choose among."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tco.core.array_cache import cached_arrays, text_array
from tco.core.inputs import Readings, Values
from tco.core.types import AnyArray, JsonMapping, Settings
from tco.scenario.draw_case import Case
from tco.scenario.network_choice import SWITCH, cheapest_clos_parts_by_draw
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Result
from tco.scenario.scenario_programs import ALL_PLANS, structure_in, structure_key
from tco.scenario.structure import Structure
from tco.scenario.workload import job_on
from tco.system.bill import offers

TRAINING_CANDIDATES = 12  # quickest plans of a training job that its draws choose among
MISSED_DRAWS_SEARCHED = 3  # draws that no plan of their group fits, for which plans are searched


class StructureGroup(NamedTuple):
    """Draws of one structure."""

    draws: AnyArray  # indices of the draws
    structure: Structure
    # training plans to choose among, or `ALL_PLANS` of serving; None for the plan of the structure
    plans: Any = None


class Grouping(NamedTuple):
    """Draws grouped by structure. The structures themselves are found on request."""

    draws: list[AnyArray]  # indices of the draws of each group
    keys: list[str]  # of each group, a text of what decides its arithmetic
    find: Callable[[], list[StructureGroup]]  # returns the groups with their structures


def grouping_of(groups: list[StructureGroup]) -> Grouping:
    """Return the grouping of groups whose structures are known."""
    group_keys = [_group_key(group) for group in groups]
    return Grouping([group.draws for group in groups], group_keys, lambda: groups)


def _group_key(group: StructureGroup) -> str:
    """Return a text of what decides a group's arithmetic within its scenario."""
    structure = group.structure
    texts = sorted(structure.texts.items())
    has_no_prefill_pool = getattr(structure.plan, "readers", None) is None
    return repr((structure_key(structure, group.plans or None), texts, has_no_prefill_pool))


def draws_by_structure(
    case: Case, centre: Result, inputs: ResolvedScenario, input_values: Values
) -> Grouping:
    """Return the draws grouped by structure, from the disk cache where the groups are known.

    The cache key has all that decides the groups: the settings other than prices, the structure of
    the centre, and the first draw of each distinct set of decisions.

    Args:
        case: The draws.
        centre: Result with every input at its value.
        inputs: Inputs of all draws on the structure of the centre.
        input_values: Inputs by path, some of them arrays over the draws.

    """
    base_structure = structure_in(centre)
    decided = decisions(inputs, input_values, base_structure)
    choices: list[dict[str, str]] = []
    choice_by_draw = cheapest_clos_parts_by_draw(inputs, input_values)
    if choice_by_draw is not None:
        choices, decided[SWITCH] = choice_by_draw
    find = cache(lambda: groups_by_structure(case, centre, inputs, decided, choices))
    alternatives = inputs.system.alternatives
    open_slots = {slot for slot, parts in alternatives.items() if len(parts) > 1}
    is_cacheable = inputs.kind != "training" and open_slots <= decided.keys()
    if not is_cacheable or not case.programs.is_shipped:
        return grouping_of(find())

    equal_draws = equal_groups(decided, case.count)
    first_draws = np.array([draws[0] for draws in equal_draws])

    def make_arrays() -> list[AnyArray]:
        grouping = grouping_of(find())
        group_by_draw = np.zeros(case.count, dtype=np.int32)
        for group_index, draws in enumerate(grouping.draws):
            group_by_draw[draws] = group_index
        return [group_by_draw[first_draws], text_array(json.dumps(grouping.keys))]

    # A size that is not drawn itself follows from other drawn inputs: all of them are in the key.
    size_paths = decided.keys() & base_structure.readings.keys()
    are_sizes_drawn = size_paths <= case.drawn.keys()
    base_key = _group_key(StructureGroup(np.arange(0), base_structure, ALL_PLANS))
    key_parts = [repr((case.settings_key(centre), base_key, choices)).encode()]
    for decision_name, column in sorted(decided.items()):
        key_parts += [decision_name.encode(), column[first_draws].tobytes()]
    for path, array in sorted(case.input_arrays().items()):
        key_parts += [path.encode(), b"" if are_sizes_drawn else array[first_draws].tobytes()]
    group_of_equal_draws, packed_keys = cached_arrays(key_parts, make_arrays)
    group_by_draw = np.empty(case.count, dtype=np.int32)
    for group_index, draws in zip(group_of_equal_draws, equal_draws, strict=True):
        group_by_draw[draws] = group_index
    group_keys = json.loads(packed_keys.tobytes())
    draws_by_group = [np.flatnonzero(group_by_draw == index) for index in range(len(group_keys))]
    return Grouping(draws_by_group, group_keys, find)


def groups_by_structure(
    case: Case,
    centre: Result,
    inputs: ResolvedScenario,
    decided: Mapping[str, AnyArray],
    choices: Sequence[Mapping[str, str]],
) -> list[StructureGroup]:
    """Return the groups of draws with the same structure, with the plans of each group.

    Different numbers may decide the same structure, such as cluster sizes with as many tiers.
    Groups are in the order of their keys, so the cache does not depend on which draw comes first.

    Args:
        case: The draws.
        centre: Result with every input at its value.
        inputs: Inputs of all draws on the structure of the centre.
        decided: Decisions that differ between draws, arrays of shape (draws,) by name.
        choices: Pairs of switch and optic that `decided` has the index of.

    """
    base_structure = structure_in(centre)
    plans_by_size: dict[tuple[Any, ...], list[Any]] = {}
    structures_by_texts: dict[Any, list[PlannedStructure]] = {}
    groups_by_key: dict[tuple[Any, ...], tuple[StructureGroup, list[AnyArray]]] = {}
    for draws in equal_groups(decided, case.count):
        draw = draws[0]
        parts = {
            decision_name: held_part(inputs, decision_name, int(column[draw]))
            for decision_name, column in decided.items()
            if decision_name in base_structure.alternatives
        }
        flags: dict[str, bool] = {}
        sizes: dict[str, float] = {}
        for path, column in decided.items():
            if isinstance(base_structure.readings.get(path), bool):
                flags[path] = bool(column[draw])
            elif path in base_structure.readings:
                sizes[path] = float(column[draw])
        texts = dict(choices[int(decided[SWITCH][draw])]) if SWITCH in decided else {}
        known_structures = structures_by_texts.setdefault(tuple(texts.values()), [])
        for planned in known_structures:
            if planned.structure.readings.decide_alike(sizes):
                break
        else:
            planned = _planned_structure(
                case, centre, inputs.kind, sizes, texts, draw, plans_by_size
            )
            known_structures.append(planned)
        structure = planned.structure
        group_key = id(structure), *parts.values(), *flags.values()
        if group_key not in groups_by_key:
            readings = Readings({**structure.readings, **flags}, structure.readings.decisions)
            alternatives = {**structure.alternatives, **parts}
            structure = structure._replace(alternatives=alternatives, readings=readings)
            groups_by_key[group_key] = StructureGroup(draws, structure, planned.plans), []
        groups_by_key[group_key][1].append(draws)
    groups = [
        group._replace(draws=np.sort(np.concatenate(draws_of_group)))
        for group, draws_of_group in groups_by_key.values()
    ]
    return sorted(groups, key=_group_key)


class PlannedStructure(NamedTuple):
    """A structure, with the plans that its draws choose among as in `StructureGroup`."""

    structure: Structure
    plans: Any


def _planned_structure(
    case: Case,
    centre: Result,
    kind: str,
    sizes: dict[str, float],
    texts: dict[str, str],
    draw: int,
    plans_by_size: dict[tuple[Any, ...], list[Any]],
) -> PlannedStructure:
    """Return the structure of a draw by its sizes and texts, with the plans to choose among."""
    base_structure = structure_in(centre)
    settings: JsonMapping = {}
    if any(base_structure.texts.get(path) != part for path, part in texts.items()):
        settings = _size_settings(case, base_structure, sizes, draw) | texts
    elif not base_structure.readings.decide_alike(sizes):
        settings = _size_settings(case, base_structure, sizes, draw)
    plan: Any = centre.plan
    plans: Any = ALL_PLANS if kind == "serving" else None
    if kind == "training":
        plans = quickest_training_plans(case, settings, plans_by_size)
        plan = plans[0] if plans else None
    structure = base_structure
    if settings:
        structure = case.programs.structure_under(tuple(settings.items()), plan)
    return PlannedStructure(structure, plans)


def equal_groups(decided: Mapping[str, AnyArray], count: int) -> list[AnyArray]:
    """Return the indices of draws in groups with equal decisions.

    Args:
        decided: Decisions by name, each an array of shape (draws,).
        count: Number of draws.

    Returns:
        Ascending indices of the draws of each group; every draw is in exactly one group.

    """
    if not decided:
        return [np.arange(count)]
    group_by_draw = np.zeros(count, dtype=int)
    for column in decided.values():
        options, option_by_draw = np.unique(column, return_inverse=True)
        combinations = group_by_draw * len(options) + option_by_draw
        _, group_by_draw = np.unique(combinations, return_inverse=True)
    return [np.flatnonzero(group_by_draw == index) for index in range(group_by_draw.max() + 1)]


def _size_settings(
    case: Case, base_structure: Structure, sizes: Mapping[str, float], draw: int
) -> dict[str, tuple[float, str]]:
    """Return the settings that give a draw its sizes, such as its number of chips.

    There are none where the sizes are those of the base structure. A size that is not drawn itself
    follows from other drawn inputs, so all drawn inputs are set.
    """
    changed_paths = {path for path, size in sizes.items() if size != base_structure.readings[path]}
    if not changed_paths:
        return {}
    if not changed_paths <= case.drawn.keys():
        return case.inputs_at_draw(draw, case.drawn.keys())
    return case.inputs_at_draw(draw, changed_paths)


def decisions(
    inputs: ResolvedScenario, input_values: Values, base_structure: Structure
) -> dict[str, AnyArray]:
    """Return the decisions about structure that differ between draws.

    Args:
        inputs: Resolved scenario of all draws.
        input_values: Values of the inputs, some of them arrays over the draws.
        base_structure: Structure whose readings name the inputs that decide.

    Returns:
        Arrays of shape (draws,). A place of the system tree has the index of the alternative that
        is cheapest over its life. An input path has the number that decides.

    """
    decision_arrays: dict[str, AnyArray] = {}
    for tree_place, candidates in offers(inputs.system, input_values, inputs.catalogue).items():
        if len(candidates) > 1:
            from tco.scenario.part_choice import (
                cheapest_offers,  # most systems list no alternatives
            )

            chosen = cheapest_offers(inputs, tree_place, candidates)
            if np.ndim(chosen):
                decision_arrays[tree_place] = chosen
    for path, reading in base_structure.readings.items():
        number = input_values.number(path)
        if np.ndim(number):
            decision_arrays[path] = number > 0 if isinstance(reading, bool) else number
    return decision_arrays


def held_part(inputs: ResolvedScenario, tree_place: str, chosen: int) -> str:
    """Return the part with an index among the alternatives of a place.

    Args:
        inputs: Resolved scenario, with the alternatives of its system.
        tree_place: Place in the system tree.
        chosen: Index of the part among the alternatives of the place.

    """
    return list(inputs.system.alternatives[tree_place])[chosen]


def quickest_training_plans(
    case: Case, settings: Settings, plans_by_size: dict[tuple[Any, ...], list[Any]]
) -> list[Any]:
    """Return the quickest plans of a training job, found once for jobs of the same size.

    Args:
        case: The draws.
        settings: Settings of the job by input path.
        plans_by_size: Plans found earlier, by chips, batch and length; new plans are added.

    """
    from tco.performance.training.search import search_training_plans

    inputs = case.programs.inputs(None, settings)
    job, machine, _ = job_on(inputs, inputs.values())
    job_size = job.chips, job.batch, job.length
    if job_size not in plans_by_size:
        quickest = search_training_plans(job, machine, count=TRAINING_CANDIDATES).top
        plans_by_size[job_size] = [candidate.plan for candidate in quickest]
    return plans_by_size[job_size]


def plans_for_missed_draws(case: Case, group: StructureGroup, missed_draws: AnyArray) -> list[Any]:
    """Return further training plans for draws that no plan of their group fits.

    Args:
        case: All draws.
        group: Group of the draws. Other workloads than training have no further plans.
        missed_draws: Indices of the draws.

    """
    if not isinstance(group.plans, list):
        return []
    search_count = min(len(missed_draws), MISSED_DRAWS_SEARCHED)
    positions = np.linspace(0, len(missed_draws) - 1, search_count).astype(int)
    plans: dict[Any, None] = {}
    for draw in missed_draws[positions]:
        settings = case.inputs_at_draw(draw, case.drawn)
        plans |= dict.fromkeys(quickest_training_plans(case, settings, {}))
    return [plan for plan in plans if plan not in group.plans]
