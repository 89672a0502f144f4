"""The frontier of serving: cost against interactivity, over all plans and batches.

It is that of one system or of two.

Prefill plans, decode plans and batches are the axes of one array evaluation. A decode pool may take
its prompts from a prefill pool of another system: a token then costs what the chips of both cost,
in the proportion the workload asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path
from typing import Any

import numpy as np

from tco.catalog import Catalogue
from tco.comparison.frontier_records import Frontier, Frontiers, Point, PoolScenario
from tco.core.elementwise import as_array
from tco.core.errors import DataError, UsageError, unknown
from tco.core.formula import finite
from tco.core.types import AnyArray, TextMapping
from tco.evaluation.evaluation import catalogue_for
from tco.evaluation.scenario_function import Evaluation, ScenarioFunction
from tco.performance.chip.roofline import cache_bytes
from tco.performance.deployment import deployed_rate
from tco.performance.serving import disaggregation as apart
from tco.performance.serving import passes
from tco.performance.serving.passes import PassResult
from tco.performance.serving.plan_choice import memory_shortfall_reason, offered_axes, pass_at
from tco.performance.serving.plans import (
    SEQUENCES,
    DecodePlan,
    PrefillPlan,
    ServingPlan,
    ServingWorkload,
    attention_chips,
    borders_crossed,
    decoding_at,
    depths_of,
    request_of,
)
from tco.scenario import metrics as joined
from tco.scenario.document import Scenario, load_scenario
from tco.scenario.workload import server_of


def pool_of(
    catalogue: Catalogue,
    scenario_name: str,
    settings: TextMapping,
    serving: Scenario | None = None,
) -> PoolScenario:
    """Return a scenario as a pool; with `serving` it takes that scenario's workload.

    Its prices stay its own.
    """
    racks = catalogue.ids("systems")
    if not (
        scenario_name in catalogue.scenarios
        or scenario_name.endswith(".toml")
        or scenario_name.partition("@")[0] in racks
    ):
        raise unknown("scenario or system", scenario_name, sorted({*catalogue.scenarios, *racks}))
    scenario = load_scenario(catalogue, scenario_name)
    if serving is not None:
        chosen = {
            path: setting_text
            for path, setting_text in scenario.settings.items()
            if not path.startswith("workload.")
        }
        chosen |= {
            path: setting_text
            for path, setting_text in serving.settings.items()
            if path.startswith("workload.")
        }
        # a person's own setting stays his own
        where = serving.where if serving.has_user_settings else scenario.where
        scenario = scenario._replace(
            documents=scenario.documents | {"workload": serving.documents["workload"]},
            settings=chosen,
            where=where,
        )
    function = ScenarioFunction(scenario, catalogue, settings, refuse=False)
    inputs = function.inputs({})
    if inputs.kind != "serving":
        raise DataError(
            f"{scenario_name}: its workload trains (workload.kind), a frontier is one of serving"
        )
    input_values = inputs.values()
    if input_values.exists("workload.offline"):
        raise DataError(
            f"{scenario_name}: workload.offline is set; a frontier goes over every batch, leave it "
            "at zero"
        )
    if input_values.input("workload.concurrency").value > 0:
        raise DataError(
            f"{scenario_name}: workload.concurrency is set; a frontier goes over every batch, "
            "leave it at zero"
        )
    evaluation = Evaluation(scenario_name, settings, catalogue, function.result({}))
    return PoolScenario(evaluation, scenario, *server_of(inputs, input_values), input_values)


@dataclass(slots=True)
class Grid:
    """Every pair of plans: prefill plans, decode plans and batches on the three axes."""

    decode: DecodePlan
    prefill: PrefillPlan
    step: PassResult
    rate: Any
    share: Any
    first: Any
    handed: Any
    cache: Any
    cost: Any  # infinite where a pair does not fit or is too late
    hour: Any
    reason: str = ""  # why no pair is feasible


def evaluate_plan_grid(decode: PoolScenario, prefill: PoolScenario, separate: bool) -> Grid:
    """Evaluate every pair of plans of a decode and a prefill pool."""
    input_values = decode.values
    request, limit = request_of(input_values), input_values["workload.ttft"] or np.inf
    prompt, answer = request.prompt, request.answer
    decoding, reading = (
        ServingWorkload(pool.machine, pool.model, request) for pool in (decode, prefill)
    )
    plan, before = _plans_of_pools(decoding, reading, decode.result.plan)
    step = passes.decode_pass(decoding, plan)
    ready = passes.prefill_pool(reading, before)
    decode_rate = passes.decode_rate(plan.sequences, attention_chips(plan), step.per_token)
    whole_prompt = ready.until_read
    read = passes.prefill_rate(prompt, attention_chips(before), ready.per_prompt)
    decode_fits = step.memory <= decode.machine.memory
    prefill_fits = ready.memory <= prefill.machine.memory
    handed: Any = 0.0
    cache: Any = 0.0
    if separate:
        out, into = prefill.machine.links, decode.machine.links
        cache = cache_bytes(
            1, prompt, *passes.cached_numbers(prefill.model, 1), prefill.machine.cache_size
        )
        decode_rate = apart.fed_rate(decode_rate, into.network, cache, answer)
        read = apart.fed_rate(read, out.network, cache, prompt)
        slower = max(out.latencies.network_step, into.latencies.network_step)
        handed = apart.hand_over_time(
            cache, attention_chips(before), out.network, attention_chips(plan), into.network, slower
        )
        exposed = apart.exposed_hand_over(
            handed, whole_prompt, input_values["performance.network.streamed_share"]
        )
        first = apart.time_to_first_token_apart(whole_prompt, exposed, step.time)
    else:
        first = passes.time_to_first_token(whole_prompt, step.time)
    soon = first <= limit
    hourly, read_hourly = (
        pool.evaluation.metric("tco_usd_per_used_chip_hour") for pool in (decode, prefill)
    )
    # pools are in the proportion that is best for the money, of one system in that for its chips
    dearer = read_hourly / hourly
    pools = decode_rate, read / dearer, prompt, answer, decode.machine.shared("pool_sharpness")
    spent = passes.prefill_share(*pools)
    share = spent / (spent + (1 - spent) * dearer)
    hour = joined.hour_of_both_pools(hourly, read_hourly, share)
    rate = passes.output_rate(*pools) * hour / hourly
    if decode.machine.deployed is not None:
        rate = deployed_rate(rate, decode.machine.deployed)
    cost = np.where(
        decode_fits & prefill_fits & soon, as_array(joined.usd_per_million(hour, rate, 1.0)), np.inf
    )
    reason = ""
    if not np.any(decode_fits):
        reason = f"no decode plan: {memory_shortfall_reason(step.memory, decode.machine)}"
    elif not np.any(prefill_fits):
        reason = f"no prefill plan: {memory_shortfall_reason(ready.memory, prefill.machine)}"
    elif not np.any(np.isfinite(cost)):
        reason = f"no pair of plans gives the first token within {limit:g} s"
    return Grid(plan, before, step, rate, share, first, handed, cache, cost, hour, reason)


def _plans_of_pools(
    decoding: ServingWorkload, reading: ServingWorkload, chosen: ServingPlan | None
) -> tuple[DecodePlan, PrefillPlan]:
    """Return the plans of a search of both pools, prefill plans on an axis before decode's.

    The sequences of a group of the `chosen` plan are tried beside those of every search.
    """
    prompt = decoding.request.prompt
    chosen_sequences = (
        [float(chosen.decode.sequences)] if chosen is not None and chosen.engines is None else []
    )
    batches = np.array([sorted({*map(float, SEQUENCES), *chosen_sequences})])
    axes = offered_axes(decoding.machine, decoding.model, prompt + decoding.request.answer)
    plan = decoding_at(axes, batches, depths_of(decoding))
    prefill_axes = offered_axes(reading.machine, reading.model, prompt)
    return plan, PrefillPlan(*(axis[:, :, None] for axis in prefill_axes))


def _undominated_points(speed: AnyArray, cost: AnyArray) -> AnyArray:
    order = np.lexsort((np.arange(cost.size), cost, -speed))
    best = np.minimum.accumulate(np.concatenate(([np.inf], cost[order][:-1])))
    return order[cost[order] < best]


def frontier_of(decode: PoolScenario, prefill: PoolScenario, separate: bool) -> Frontier:
    """Return the frontier of one system, or of a decode and a prefill pool."""
    if reason := decode.misfit or prefill.misfit:
        return Frontier(decode, prefill, separate, reason=reason)
    grid = evaluate_plan_grid(decode, prefill, separate)
    feasible = int(np.count_nonzero(np.isfinite(grid.cost)))
    pool_frontier = Frontier(
        decode, prefill, separate, plans=grid.cost.size, feasible=feasible, reason=grid.reason
    )
    if grid.reason:
        return pool_frontier
    # the cheapest prefill plan of every decode plan, then the decode plans no other beats
    best = grid.cost.argmin(axis=0)
    least = grid.cost.min(axis=0)
    undominated_plans = _undominated_points(
        np.broadcast_to(as_array(passes.tokens_per_user(grid.step.per_token)), best.shape).ravel(),
        least.ravel(),
    )
    plan_rows, batches = np.unravel_index(undominated_plans, best.shape)
    grid_indices = best[plan_rows, batches], plan_rows, batches
    pool_frontier.points = _frontier_points(pool_frontier, grid, grid_indices)
    decode_axes, before = (
        [np.broadcast_to(axis, grid.cost.shape)[grid_indices] for axis in plan]
        for plan in (grid.decode, grid.prefill)
    )
    pool_frontier.point_plans = ServingPlan(DecodePlan(*decode_axes), PrefillPlan(*before))
    return pool_frontier


def _frontier_points(
    frontier: Frontier, grid: Grid, grid_indices: tuple[AnyArray, AnyArray, AnyArray]
) -> list[Point]:
    """Return the points at some places of the grid."""
    input_values, separate = frontier.decode.values, frontier.separate

    def at_grid_points(quantity: Any) -> AnyArray:
        return np.broadcast_to(quantity, grid.cost.shape)[grid_indices]

    plan, rate, share = grid.decode, at_grid_points(grid.rate), at_grid_points(grid.share)
    read = passes.input_rate(
        rate, input_values["workload.input_tokens"], input_values["workload.output_tokens"]
    )
    power = joined.power_of_both_pools(
        frontier.decode.evaluation.metric("facility_power_w_per_chip"),
        frontier.prefill.evaluation.metric("facility_power_w_per_chip"),
        share,
    )
    speed = at_grid_points(passes.tokens_per_user(grid.step.per_token))
    quick = np.flatnonzero(speed >= input_values["workload.interactivity"])
    target = quick[-1] if quick.size else -1  # the slowest that is quick enough is the cheapest
    columns = (
        speed,
        rate,
        read,
        at_grid_points(grid.cost),
        joined.usd_per_million(at_grid_points(grid.hour), rate + read, 1.0),
        joined.tokens_per_megawatt(rate, power),
        at_grid_points(grid.step.per_token),
        at_grid_points(grid.first),
        share,
        apart.chips_per_chip(share),
        at_grid_points(grid.handed),
        at_grid_points(grid.cache),
        at_grid_points(grid.step.memory),
    )
    crossed = borders_crossed(plan, frontier.decode.machine.links)[grid_indices[1]]
    counts = [at_grid_points(count) for count in _counts_of_plans(plan, grid.prefill)]
    count_rows = np.rint(counts).astype(int).T.tolist()
    frontier_points = []
    for position, numbers in enumerate(
        zip(*(as_array(column).tolist() for column in columns), strict=True)
    ):
        *rates, handed, cache, memory = numbers
        bounds = pass_at(
            grid.step, (int(grid_indices[1][position]), int(grid_indices[2][position]))
        ).shares
        bound = max(bounds, key=lambda bound_name: bounds[bound_name])
        hand_over = (handed, cache) if separate else (None, None)
        figures = (*rates, *hand_over, memory, *count_rows[position], str(crossed[position]))
        is_target = bool(position == target)
        frontier_points.append(Point._make((*figures, bound, bounds[bound], is_target, False)))
    return frontier_points


def _counts_of_plans(plan: DecodePlan, before: PrefillPlan) -> tuple[Any, ...]:
    """Return the counts of a point's plans, in the order of its fields."""
    return (
        plan.chips,
        plan.tensor_parallel,
        plan.context_parallel,
        plan.pipeline_parallel,
        plan.sequences * plan.chips / attention_chips(plan),
        plan.drafts,
        *before[:4],
    )


def mark_cheapest(frontiers: Sequence[Frontier]) -> None:
    """Mark the points of a workload that no other system's point beats."""
    for workload in {frontier.decode.workload for frontier in frontiers}:
        alike = [frontier for frontier in frontiers if frontier.decode.workload == workload]
        point_positions = [
            (frontier, position) for frontier in alike for position in range(len(frontier.points))
        ]
        points = [frontier.points[position] for frontier, position in point_positions]
        speed = np.array([point.tokens_per_s_per_user for point in points])
        leading = (
            _undominated_points(
                speed, np.array([point.usd_per_million_output_tokens for point in points])
            )
            if points
            else ()
        )
        for point_index in leading:
            frontier, position = point_positions[point_index]
            frontier.points[position] = points[point_index]._replace(cheapest=True)


def _system_frontiers(
    decoding: Sequence[tuple[str, Catalogue]],
    prefilling: Sequence[tuple[str, Catalogue]],
    settings: TextMapping,
) -> list[Frontier]:
    """Return the frontier of every system, and with prefill systems of every pair of pools."""
    frontiers = []
    for decode_name, catalogue in decoding:
        pool = pool_of(catalogue, decode_name, settings)
        frontiers.append(frontier_of(pool, pool, bool(prefilling)))
        for prefill_name, its_catalogue in prefilling:
            if prefill_name != decode_name:
                frontiers.append(
                    frontier_of(
                        pool, pool_of(its_catalogue, prefill_name, settings, pool.scenario), True
                    )
                )
    mark_cheapest(frontiers)
    return frontiers


@finite
def frontier(
    scenarios: Sequence[str],
    prefill: Sequence[str] = (),
    set: TextMapping | None = None,  # noqa: A002
    data: Path | None = None,
    ranges: bool = False,
    hold: bool = False,
) -> Frontiers:
    """Return the cost against interactivity of every system.

    With `prefill` the cost is that of every pair of pools: a decode system and a system of
    `prefill`.

    Args:
        scenarios: Scenarios or systems by name, or scenario files.
        prefill: Scenarios or systems that prefill.
        set: Values by input path, as a user sets them.
        data: Folder of data that comes after the shipped data; None for no folder.
        ranges: Whether every input is drawn within its range at each point of a frontier.
        hold: Whether draws keep the plan of the point; else each draw has its best plan.

    Raises:
        UsageError: `ranges` and `prefill` are both asked for.
        DataError: A name is unknown, a scenario does not suit a frontier, or a number is not
            finite.

    >>> (found,) = frontier(["gb200-nvl72"])
    >>> found.chosen.tokens_per_s_per_user >= 50
    True
    """
    if ranges and prefill:
        raise UsageError(
            "a range goes without systems that prefill: what is drawn are scenarios, and no pairs "
            "of them"
        )
    shared = catalogue_for(None, data)
    decoding, prefilling = (
        [
            (scenario_name, catalogue_for(scenario_name, data) if isfile(scenario_name) else shared)
            for scenario_name in part
        ]
        for part in (scenarios, prefill)
    )
    frontiers = Frontiers(_system_frontiers(decoding, prefilling, dict(set or {})))
    if ranges:
        from tco.comparison.designs import add_bands  # draws are not what most ask for

        for system_frontier in frontiers:
            add_bands(system_frontier, hold)
    return frontiers
