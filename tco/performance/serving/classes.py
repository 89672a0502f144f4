"""Plans of an operator class: engines of one server, or pools of published sizes, at any load.

A fleet may run any pools in any proportion, which `search` covers. Whoever owns a server runs
engines that read and write on its chips. Published sweeps run a few sizes of pools. Each row is a
plan with the requests that one of its engines has in flight; the best row gives every user the
speed that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tco.core.types import Quantity
from tco.performance.deployment import APART, BENCHMARK, SERVER, Deployer, PoolShape
from tco.performance.layer.chip_model import Machine
from tco.performance.serving.passes import prefill_pool, prefill_rate
from tco.performance.serving.plan_choice import (
    LoadedChoice,
    PlanChoice,
    choose_under_load,
    offered_axes,
    rate_under_load,
)
from tco.performance.serving.plans import (
    DecodePlan,
    PrefillPlan,
    ServingPlan,
    ServingWorkload,
    as_prefill_plan,
    attention_chips,
    decoding_at,
    depths_of,
)

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
# requests in flight of an engine, up to 1,448
FLIGHTS = np.array(sorted({*np.round(2.0 ** np.arange(0, 10.51, 0.25)).tolist()}))
COARSE = 8  # every so many of these are tried first
TILE_STEP = 0.1  # share by which a plan may make more with fewer requests in flight
REFINED = 24  # plans whose requests in flight are solved between two of these
HALVINGS = 10


def _require_deployer(machine: Machine) -> Deployer:
    if machine.deployer is None:
        raise ValueError("plans of a class are searched for who deploys them")
    return machine.deployer


def _broadcast_column(column_values: Quantity, row_count: int) -> FloatArray:
    return np.broadcast_to(np.asarray(column_values, dtype=float), (row_count, 1)).copy()


def _with_flights(
    decode: DecodePlan, prefill: PrefillPlan, engines: float, readers: float | None
) -> ServingPlan:
    """Return every plan with every number of requests in flight of an engine, a row each."""
    plans = len(np.ravel(decode.chips))

    def spread(axis: Any) -> FloatArray:
        return np.repeat(np.ravel(_broadcast_column(axis, plans)), len(FLIGHTS))[:, None]

    row_count = plans * len(FLIGHTS)
    flight = np.tile(FLIGHTS, plans)[:, None]
    read = None if readers is None else _broadcast_column(readers, row_count)
    return ServingPlan(
        DecodePlan(*map(spread, decode)),
        PrefillPlan(*map(spread, prefill)),
        _broadcast_column(engines, row_count),
        read,
        flight=flight,
    )


def _axes_of_size(axes: PrefillPlan, allowed: Callable[[FloatArray], Any]) -> PrefillPlan:
    row_mask = np.ravel(allowed(np.asarray(axes.chips)))
    return PrefillPlan(*(axis[row_mask] for axis in axes))


def _pool_plans(
    workload: ServingWorkload,
    shape: PoolShape,
) -> ServingPlan | None:
    """Return pools of a published size at every load; None where no plan reads or decodes."""
    axes = offered_axes(workload.machine, workload.model, 0)
    decode_axes = _axes_of_size(axes, lambda chips: chips == shape.decode_chips)
    prefill_axes = _axes_of_size(
        offered_axes(workload.machine, workload.model, workload.request.prompt),
        lambda chips: chips == shape.prefill_chips,
    )
    if not len(decode_axes.chips) or not len(prefill_axes.chips):
        return None
    readers = _worthwhile_readers(workload, prefill_axes)
    if readers is None:
        return None
    decode = decoding_at(decode_axes, 1.0, depths_of(workload))
    count, reader_count = len(decode.chips), len(readers.chips)
    before = PrefillPlan(
        *(np.tile(_broadcast_column(axis, reader_count), (count, 1)) for axis in readers)
    )
    pairs = DecodePlan(
        *(np.repeat(_broadcast_column(axis, count), reader_count, axis=0) for axis in decode)
    )
    return _with_flights(pairs, before, shape.decode_engines, shape.prefill_engines)


def _worthwhile_readers(
    workload: ServingWorkload,
    axes: PrefillPlan,
) -> PrefillPlan | None:
    """Return the prefill plans of one size that read in time and that none betters; None for none.

    One betters another where it reads no slower, both in all and a single prompt, and needs no more
    memory.
    """
    prefill = prefill_pool(workload, axes)
    rate = prefill_rate(workload.request.prompt, attention_chips(axes), prefill.per_prompt)
    columns = -rate, prefill.until_read, prefill.memory
    costs = np.hstack([_broadcast_column(column, len(axes.chips)) for column in columns])
    limits = (
        np.inf,
        workload.values["workload.ttft"] or np.inf,
        float(workload.machine.memory),
    )
    feasible = np.flatnonzero((costs <= limits).all(axis=1))
    if not len(feasible):
        return None
    rivals, plans = costs[feasible, None], costs[feasible]
    is_bettered = ((rivals <= plans).all(axis=2) & (rivals < plans).any(axis=2)).any(axis=0)
    return PrefillPlan(*(axis[feasible[~is_bettered]] for axis in axes))


def _concatenate_serving_plans(parts: list[ServingPlan]) -> ServingPlan:
    """Return the rows of several sets of plans as one."""

    def joined(field_name: str) -> Any:
        phases = [getattr(part, field_name) for part in parts]
        return phases[0]._make(np.concatenate(axes) for axes in zip(*phases, strict=True))

    engines, readers, flight = (
        np.concatenate([getattr(part, field_name) for part in parts])
        for field_name in ("engines", "readers", "flight")
    )
    return ServingPlan(joined("decode"), joined("prefill"), engines, readers, flight=flight)


def plans_of_class(
    workload: ServingWorkload,
    class_name: str,
) -> ServingPlan | None:
    """Return every plan of a class at every load, a row each.

    Args:
        workload: Requests, and the model and the machine, with its deployer, that serve them.
        class_name: Class of the plans: `SERVER`, or pools apart.

    Returns:
        Plans, or None where no pools of a published size can run a plan.

    """
    machine = workload.machine
    if class_name == SERVER:
        most = min(_require_deployer(machine).server_chips, float(machine.links.domain))
        axes = _axes_of_size(offered_axes(machine, workload.model, 0), lambda chips: chips <= most)
        decode = decoding_at(axes, 1.0, depths_of(workload))
        return _with_flights(decode, as_prefill_plan(decode), 1.0, None)
    shapes = [_pool_plans(workload, shape) for shape in _require_deployer(machine).pools]
    pool_plans = [plans for plans in shapes if plans is not None]
    return _concatenate_serving_plans(pool_plans) if pool_plans else None


def chosen_in_class(workload: ServingWorkload) -> LoadedChoice:
    """Return the best plan of an operator's class.

    A benchmark takes the better of one server and of separate pools.
    """
    deployer_name = _require_deployer(workload.machine).name
    class_names = (SERVER, APART) if deployer_name == BENCHMARK else (deployer_name,)
    class_results = [_best_of_class(workload, class_name) for class_name in class_names]

    def rate(class_result: LoadedChoice) -> float:
        return (
            0.0
            if class_result.loaded is None
            else float(class_result.loaded.rates["output_tokens_per_s_per_chip"])
        )

    return max(class_results, key=rate)


def _best_of_class(
    workload: ServingWorkload,
    class_name: str,
) -> LoadedChoice:
    """Return the best plan of a class, with requests in flight interpolated between the grid's."""
    plans = plans_of_class(workload, class_name)
    if plans is None:
        reason = "no pools of a published size divide these chips"
        return LoadedChoice(PlanChoice(None, 0, 0, None, reason=reason), plan=None, loaded=None)
    likely_plans, feasible = _plans_near_best(workload, plans)
    class_result = choose_under_load(workload, likely_plans)
    plan_count = len(plans.flight) // len(FLIGHTS)
    choice = class_result.choice._replace(plans=plan_count, feasible=feasible)
    class_result = class_result._replace(choice=choice)
    if class_result.loaded is None:
        return class_result
    return _refine_loads(workload, likely_plans, class_result)


def _plans_near_best(
    workload: ServingWorkload,
    plans: ServingPlan,
) -> tuple[ServingPlan, int]:
    """Return the plans that may be the best, at every load, and how many keep the promises.

    Every plan is tried at some loads first. Between two of them it makes at most what it makes at
    the larger, but for a step of tiles. Where none keeps the promises, all may be the best.
    """
    steps = len(FLIGHTS)
    loads = np.append(np.arange(0, steps - 1, COARSE), steps - 1)
    tried = np.arange(0, len(plans.decode.chips), steps)[:, None] + loads
    rated = rate_under_load(workload, plans.in_rows(tried.ravel()))
    rate = np.reshape(rated.rate, tried.shape)
    is_feasible = np.reshape(rated.fits & rated.meets, tried.shape)
    if not is_feasible.any():
        return plans, 0
    is_before_last = np.maximum.accumulate(is_feasible[:, ::-1], axis=1)[:, ::-1]
    reachable = np.hstack([is_feasible.any(axis=1, keepdims=True), is_before_last[:, :-1]])
    most = np.where(reachable, rate, 0.0).max(axis=1)
    likely = np.flatnonzero(most * (1 + TILE_STEP) >= np.where(is_feasible, rate, 0.0).max())
    likely_rows = likely[:, None] * steps + np.arange(steps)
    return plans.in_rows(likely_rows.ravel()), int(is_feasible.any(axis=1).sum())


def _refine_loads(
    workload: ServingWorkload,
    plans: ServingPlan,
    class_result: LoadedChoice,
) -> LoadedChoice:
    """Return the best plan with as many requests in flight as just keep the promises."""
    steps = len(FLIGHTS)
    best = np.ravel(class_result.choice.best).reshape(-1, steps)
    likely = np.argsort(-best.max(axis=1), kind="stable")[:REFINED]
    likely_rows, flight_index = likely, best[likely].argmax(axis=1)
    low, high = FLIGHTS[flight_index], FLIGHTS[np.minimum(flight_index + 1, steps - 1)]
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        tried = _rows_at(plans, likely_rows * steps, middle)
        choice = choose_under_load(workload, tried).choice
        meets = (
            np.zeros(len(likely_rows), dtype=bool)
            if choice.best is None
            else np.ravel(choice.best) > 0
        )
        low, high = np.where(meets, middle, low), np.where(meets, high, middle)
    final = choose_under_load(workload, _rows_at(plans, likely_rows * steps, low))
    if (
        final.loaded is None
        or class_result.loaded is None
        or final.loaded.rates["output_tokens_per_s_per_chip"]
        < class_result.loaded.rates["output_tokens_per_s_per_chip"]
    ):
        return class_result
    return final._replace(
        choice=final.choice._replace(
            plans=class_result.choice.plans, feasible=class_result.choice.feasible
        )
    )


def _rows_at(plans: ServingPlan, plan_rows: Any, flight: Any) -> ServingPlan:
    """Return some rows of plans, each with other requests in flight."""
    flights = np.asarray(flight, dtype=float)[:, None]
    return plans.in_rows(plan_rows)._replace(flight=flights)
