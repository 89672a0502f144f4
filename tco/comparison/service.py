"""Cost of a service: fewest racks that keep promises under traffic.

Costs are per token, month and agent. Chips in use are the chips of whole engines and the spare
chips that failures ask for. Whole scale-up domains are bought, and every chip of a domain is paid
for at any hour. Money is of the bought domains. Rates per chip, utilisation, power and energy are
of the chips in use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.core.errors import DataError, refuse_unknown
from tco.core.inputs import Values
from tco.core.redaction_values import figures_apart
from tco.core.types import AnyArray, JsonObject
from tco.evaluation.evaluation import catalogue_for
from tco.models.architecture import Architecture
from tco.performance.layer.chip_model import Machine
from tco.performance.service.fleet import WAITS, Search, ServingFleet, chips_with_spares
from tco.performance.service.samples import (
    REQUESTS,
    promises_of_served,
    quantile_error,
    share_served,
    simulated_requests,
    within_context,
)
from tco.performance.service.traffic import (
    GROUP,
    PROMISED,
    ROUTERS,
    Promise,
    Traffic,
    load_traffic,
    own_promises,
)
from tco.performance.serving.plans import ServingRequest, decode_plan_document, request_of
from tco.scenario import metrics as joined
from tco.scenario.document import load_scenario
from tco.scenario.evaluate import evaluate
from tco.scenario.resolve import resolve_scenario
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Result, why_absent
from tco.scenario.workload import scenario_model, server_of

HOURS_A_MONTH = 730.5
PERCENTILES = (50, 90, 99)
BASIS = "facility power at the meter of the chips in use, as provisioned, at the site's mean PUE"
LENGTHS = {"workload.input_tokens": "prompt", "workload.output_tokens": "answer"}
METRICS = (
    *("chips", "chips_bought", "racks", "usd_per_million_output_tokens"),
    *("usd_per_million_output_tokens_in_use", "usd_per_month", "requests_per_s_per_chip"),
    *("output_tokens_per_s_per_chip", "rejected_share", "attainment"),
    *(f"{metric_name}_p{percentile}_s" for metric_name in PROMISED for percentile in PERCENTILES),
    *("utilisation", "hit_rate", "agents_per_chip", "agents_per_mw", "usd_per_agent_hour"),
    "joule_per_token",
)
GROWING_QUEUE = (
    "the queue still grows at the end of the simulation: waits have no value; promise a ttft or "
    "e2e to get more chips"
)
# metrics that rest on waits
OF_WAITS = frozenset(
    (
        *(f"{metric_name}_p{percentile}_s" for metric_name in WAITS for percentile in PERCENTILES),
        *("agents_per_chip", "agents_per_mw", "usd_per_agent_hour"),
    )
)


class Service(NamedTuple):
    """A system under traffic: the least fleet that keeps promises, and its figures."""

    result: Result
    traffic: Traffic
    promises: tuple[Promise, ...]
    router: str
    fleet: ServingFleet
    plan: JsonObject
    metrics: dict[str, float]  # without waits where the queue still grows
    errors: dict[str, float]  # standard errors of what was simulated
    range: dict[str, float] | None  # of the cost of tokens of what is bought, by percentile
    power_basis: str = BASIS
    # least cost of tokens of all systems over its own, of what is bought
    share_of_best: float = 1.0
    notes: tuple[str, ...] = ()


def _inputs_for_traffic(
    catalogue: Catalogue,
    scenario_name: str,
    settings: Mapping[str, str],
    variant: Mapping[str, str],
    traffic: Traffic,
) -> tuple[ResolvedScenario, dict[str, str]]:
    """Return the inputs of a scenario whose workload has the mean lengths of some traffic, and the
    settings that say so.
    """
    if clash := [
        path
        for path in (*LENGTHS, "workload.cache_hit", "workload.concurrency", "workload.offline")
        if path in settings
    ]:
        raise DataError(
            f"--set {clash[0]}: traffic says how long requests are and how they come; set "
            f"{GROUP}.* instead"
        )
    scenario = load_scenario(catalogue, scenario_name)
    unset = resolve_scenario(catalogue, scenario, dict(settings), dict(variant))
    if unset.kind != "serving":
        raise DataError(f"{scenario_name}: its workload is no serving of requests (workload.kind)")
    context = scenario_model(unset, unset.values()).context
    drawn = traffic.requests(1, "random", REQUESTS, 0, 1.0)[1]
    served = within_context(drawn, context)
    if not len(served.arrived):
        raise DataError(
            f"{traffic.id}: every request is longer than the context, {context:,} tokens"
        )
    length_settings = {
        **settings,
        **{
            path: f"{round(float(getattr(served, field_name).mean()))}"
            for path, field_name in LENGTHS.items()
        },
    }
    return resolve_scenario(
        catalogue, scenario, dict(length_settings), dict(variant)
    ), length_settings


def _size_serving_fleet(
    scenario: str,
    traffic: str,
    promises: Sequence[str] = (),
    set: Mapping[str, str] | None = None,  # noqa: A002
    variant: Mapping[str, str] | None = None,
    data: Path | None = None,
    *,
    racks: float | None = None,
    router: str = ROUTERS[0],
    samples: int = 0,
    seed: int = 0,
) -> Service:
    """Return the least fleet of a system that keeps promises, and its cost.

    It has the fewest scale-up domains, and no more than `racks` racks. Promises are texts such as
    `ttft p99 <= 2 s`; without any those of the traffic hold. With `samples` the cost has a range:
    that of the same plan in steady state, prices and practice drawn together.
    """
    refuse_unknown("router", [router], ROUTERS, "--router")
    catalogue = catalogue_for(scenario, data)
    traffic_settings, rest = _split_by_group(set or {}, GROUP)
    loaded_traffic = load_traffic(catalogue, traffic, traffic_settings)
    required_promises = _required_promises(promises, loaded_traffic, traffic)
    inputs, settings = _inputs_for_traffic(catalogue, scenario, rest, variant or {}, loaded_traffic)
    input_values = inputs.values()
    machine, model = server_of(inputs, input_values)
    request = request_of(input_values)
    _, paid = _split_by_group(rest, "workload")
    scenario_result = evaluate(scenario, paid, catalogue=catalogue, variant=variant, workload=False)
    goodput = scenario_result.metrics["goodput"] or 1.0
    pause = _pause_of_user(loaded_traffic, request, input_values)
    served_share = share_served(loaded_traffic, model.context)
    rejection = _rejection_text(loaded_traffic, model, served_share)
    judged = promises_of_served(required_promises, served_share, rejection)
    count = simulated_requests(judged)
    search = Search(machine, model, request, loaded_traffic, router, seed, pause, goodput, count)
    if not search.decoders or not search.readers:
        raise DataError(f"{scenario}: {model.id} fits no plan of {inputs.system.id}")
    fleet = _cheapest_fleet(scenario, search, judged, required_promises)
    input_values.check_given(inputs.is_known)
    metrics = _fleet_metrics(scenario_result, search, required_promises, fleet)
    if racks is not None and metrics["racks"] > racks:
        raise DataError(f"{scenario}: {_too_few_racks(racks, search.rate, fleet, metrics)}")
    noted = {rejection: served_share < 1, GROWING_QUEUE: fleet.growing}
    notes = tuple(f"{scenario}: {note}" for note, is_true in noted.items() if is_true)
    drawn_of = (scenario, settings, data, fleet, metrics, samples, seed)
    spread = _token_cost_percentiles(*drawn_of) if samples else None
    return Service(
        scenario_result,
        loaded_traffic,
        required_promises,
        router,
        fleet,
        figures_apart(_fleet_plan(fleet, machine), GROUP),
        figures_apart(_without_growing_waits(fleet, metrics), GROUP),
        figures_apart(_quantile_errors(fleet), GROUP),
        spread and figures_apart(spread, GROUP),
        notes=notes,
    )


def _pause_of_user(traffic: Traffic, request: ServingRequest, input_values: Values) -> Any:
    return traffic.thinking + request.answer / max(input_values["workload.interactivity"], 1.0)


def _required_promises(
    promises: Sequence[str], loaded_traffic: Traffic, traffic: str
) -> tuple[Promise, ...]:
    required_promises = own_promises(promises, "--promise") or loaded_traffic.promises
    if not required_promises:
        raise DataError(f"{traffic}: promises nothing; say --promise, such as 'ttft p99 <= 2 s'")
    return required_promises


def _split_by_group(
    settings: Mapping[str, str], group: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings of inputs in a group, and the others."""
    in_group = {path: text for path, text in settings.items() if path.startswith(f"{group}.")}
    return in_group, {path: text for path, text in settings.items() if path not in in_group}


def _rejection_text(traffic: Traffic, model: Architecture, served_share: float) -> str:
    return (
        f"{100 * (1 - served_share):.2g} % of the requests of {traffic.id} are longer than "
        f"the context of {model.id}, {model.context:,} tokens, and are rejected"
    )


def _cheapest_fleet(
    scenario: str, search: Search, judged: Sequence[Promise], promises: Sequence[Promise]
) -> ServingFleet:
    """Return the cheapest fleet that keeps the promises as judged; none raises `DataError`."""
    fleet = search.cheapest(judged)
    if fleet is not None:
        return fleet
    nearest = "; ".join(
        f"of {promise} the nearest is {nearest_time:.3g} s"
        for promise, nearest_time in zip(promises, search.nearest(judged), strict=True)
    )
    raise DataError(
        f"{scenario}: no plan keeps {', '.join(map(str, promises))} under {search.traffic.id}: "
        f"{nearest}"
    )


def _without_growing_waits(fleet: ServingFleet, metrics: dict[str, float]) -> dict[str, float]:
    return {
        metric_name: metric_value
        for metric_name, metric_value in metrics.items()
        if not (fleet.growing and metric_name in OF_WAITS)
    }


def _quantile_errors(fleet: ServingFleet) -> dict[str, float]:
    return {
        f"{metric_name}_p{percentile}_s": quantile_error(times, percentile / 100)
        for metric_name, times in fleet.times.items()
        for percentile in PERCENTILES
        if not (fleet.growing and metric_name in WAITS)
    }


def _fleet_plan(fleet: ServingFleet, machine: Machine) -> JsonObject:
    """Return the plans of a fleet's engines and how many there are, by phase."""
    decoder = _described(fleet.decoder.plan, machine) | {"engines": fleet.decoders}
    if fleet.reader is None:
        return {"both": decoder}
    reader = _described(fleet.reader.plan, machine, "drafts", "batch")
    return {"decode": decoder, "prefill": reader | {"engines": fleet.readers}}


def services(scenarios: Sequence[str], *asked: Any, **how: Any) -> tuple[list[Service], list[str]]:
    """Return the services of some scenarios, and reasons for broken promises.

    Args:
        scenarios: Ids and files of scenarios.
        *asked: Id or file of the traffic, and the promises as texts.
        **how: Keywords of `_size_serving_fleet`, such as `router`, `racks` and `samples`.

    Returns:
        Services that keep the promises, each with its share of the best cost; and an error text for
        each other scenario.

    Raises:
        DataError: No scenario keeps the promises; the error is of the first scenario.

    """
    sized_services, missed = list[Service](), list[DataError]()
    for scenario_name in scenarios:
        try:
            sized_services.append(_size_serving_fleet(scenario_name, *asked, **how))
        except DataError as error:
            missed.append(error)
    if not sized_services:
        raise missed[0]
    cost = [service.metrics["usd_per_million_output_tokens"] for service in sized_services]
    return [
        service._replace(share_of_best=min(cost) / service_cost)
        for service, service_cost in zip(sized_services, cost, strict=True)
    ], list(map(str, missed))


def _described(plan: Any, machine: Machine, *without: str) -> JsonObject:
    return {"chips": int(plan.chips)} | {
        axis_name: axis
        for axis_name, axis in decode_plan_document(plan, machine.links).items()
        if axis_name not in without
    }


def _too_few_racks(
    racks: float, rate: float, fleet: ServingFleet, metrics: Mapping[str, float]
) -> str:
    """Return the error text for racks that cannot hold `rate` requests/s."""
    needs = f"{rate:g} requests/s need {metrics['racks']:g} racks"
    domain_racks = metrics["racks"] / fleet.domains
    domains = math.floor(racks / domain_racks + 1e-9)
    if not domains:
        return (
            f"{needs}; one scale-up domain takes {domain_racks:g}; say --racks {metrics['racks']:g}"
        )
    chips = domains * metrics["chips_bought"] / fleet.domains
    could = rate * min(chips / metrics["chips"], 1.0)
    return f"{needs}; {racks:g} could hold about {could:.3g}"


def _fleet_metrics(
    scenario_result: Result, search: Search, promises: Sequence[Promise], fleet: ServingFleet
) -> dict[str, float]:
    """Return the figures of a fleet, by metric.

    By Little's law the sessions under way are the rate of requests x (time of one + time until the
    next).

    Args:
        scenario_result: The system's costs per chip.
        search: The search that found the fleet, with the traffic it serves.
        promises: What each request was promised.
        fleet: The fleet.

    Raises:
        DataError: The system has no cost per chip-hour, or no power.

    """
    hour, power, domain_chips, domain_racks = (
        scenario_result.metrics[metric_name]
        for metric_name in (
            *("tco_usd_per_chip_hour", "facility_power_w_per_chip"),
            *("chips", "racks"),
        )
    )
    if hour is None or power is None or domain_chips is None or domain_racks is None:
        why = why_absent(scenario_result, "tco_usd_per_chip_hour")
        raise DataError(f"{scenario_result.scenario}: tco_usd_per_chip_hour has no value: {why}")
    times, rate = fleet.times, search.rate
    chips = chips_with_spares(fleet.chips, search.goodput)
    chips_bought = fleet.domains * domain_chips
    tokens_per_s = rate * fleet.answer
    agents = rate * (float(times["e2e"].mean()) + search.traffic.thinking)
    together = np.logical_and.reduce(
        [times[promise.metric] <= promise.limit for promise in promises]
    )
    return {
        "chips": chips,
        "chips_bought": chips_bought,
        "racks": fleet.domains * domain_racks,
        "usd_per_million_output_tokens": float(
            joined.usd_per_million(hour, tokens_per_s / chips_bought, 1.0)
        ),
        "usd_per_million_output_tokens_in_use": float(
            joined.usd_per_million(hour, tokens_per_s / chips, 1.0)
        ),
        "usd_per_month": hour * chips_bought * HOURS_A_MONTH,
        "requests_per_s_per_chip": rate / chips,
        "output_tokens_per_s_per_chip": tokens_per_s / chips,
        "rejected_share": 1 - search.served_share,
        "attainment": float(together.mean()) * search.served_share,
        **_wait_quantiles(times),
        "utilisation": fleet.utilisation,
        "hit_rate": fleet.found,
        "agents_per_chip": agents / chips,
        "agents_per_mw": agents / (chips * power / 1e6),
        "usd_per_agent_hour": hour * chips_bought / agents,
        "joule_per_token": power * chips / tokens_per_s,
    }


def _wait_quantiles(times: Mapping[str, AnyArray]) -> dict[str, float]:
    return {
        f"{metric_name}_p{percentile}_s": float(np.quantile(times[metric_name], percentile / 100))
        for metric_name in PROMISED
        for percentile in PERCENTILES
    }


def _token_cost_percentiles(
    scenario: str,
    settings: Mapping[str, str],
    data_folder: Path | None,
    fleet: ServingFleet,
    metrics: Mapping[str, float],
    samples: int,
    seed: int,
) -> dict[str, float] | None:
    """Return percentiles of the cost of tokens: those of pools in steady state at the fleet's
    speed, over their own base case.
    """
    from tco.sampling.uncertainty import draw_statistics, uncertainty

    cost = "usd_per_million_output_tokens"
    speed = {
        "workload.interactivity": f"{1 / fleet.decoder.quickest:.6g} token/s",
        "workload.ttft": "0 s",
    }
    drawn = uncertainty(
        scenario, samples=samples, seed=seed, set={**settings, **speed}, data=data_folder, hold=True
    )
    base = drawn.asked.result.metrics[cost]
    cost_statistics = draw_statistics(cost, drawn.sample.metrics[cost])
    if base is None or cost_statistics is None:
        return None
    return {
        percentile_name: metrics[cost] * percentile_value / base
        for percentile_name in ("p10", "p50", "p90")
        if (percentile_value := cost_statistics[percentile_name]) is not None
    }
