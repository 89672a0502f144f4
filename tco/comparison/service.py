"""Cost of a service: fewest racks that keep promises under traffic.

Costs are per token, month and agent. Chips in use are the chips of whole engines and the spare
chips that failures ask for. Whole scale-up domains are bought, and every chip of a domain is paid
for at any hour. Money is of the bought domains. Rates per chip, utilisation, power and energy are
of the chips in use. The energy that is paid for follows the load that the simulation finds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.catalog.rows import input_attributes
from tco.comparison.filled_site import purchases
from tco.core.errors import DataError, UsageError, refuse_unknown
from tco.core.redaction_values import figures_apart
from tco.core.types import AnyArray, JsonObject, TextMapping
from tco.evaluation.evaluation import catalogue_for
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
from tco.performance.serving.plans import (
    ServingWorkload,
    decode_plan_document,
)
from tco.scenario import metrics as joined
from tco.scenario.document import load_scenario
from tco.scenario.evaluate import evaluate
from tco.scenario.resolve import resolve_scenario
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Result, why_absent
from tco.scenario.workload import scenario_model, serving_workload

HOURS_A_MONTH = 730.5
RATE = f"{GROUP}.requests_per_s"
UTILISATION = "terms.utilisation"
ROUNDS = 6  # in which the rate of users and their fleet settle
SETTLED = 0.02  # relative change of the time between requests at which they have
PERCENTILES = (50, 90, 99)
BASIS = "facility power at the meter of the chips in use, as provisioned, at the site's mean PUE"
LENGTHS = {"workload.input_tokens": "prompt", "workload.output_tokens": "answer"}
METRICS = (
    *("chips", "chips_bought", "racks", "usd_per_million_output_tokens"),
    *("usd_per_million_output_tokens_in_use", "usd_per_month", "requests_per_s_per_chip"),
    *("output_tokens_per_s_per_chip", "rejected_share", "attainment"),
    *(f"{metric_name}_p{percentile}_s" for metric_name in PROMISED for percentile in PERCENTILES),
    *("utilisation", "hit_rate", "agents_per_chip", "agents_per_mw", "usd_per_agent_hour"),
    *("joule_per_token", "capex_usd", "capex_with_hall_usd"),
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
    mean_tokens: dict[str, float]  # of the requests served, by `prompt` and `answer`
    range: dict[str, float] | None  # of the cost of tokens of what is bought, by percentile
    users: int | None = None  # sessions under way that were asked for, from which the rate follows
    power_basis: str = BASIS
    # least cost of tokens of all systems over its own, of what is bought
    share_of_best: float = 1.0
    notes: tuple[str, ...] = ()


def _inputs_for_traffic(
    catalogue: Catalogue,
    scenario_name: str,
    settings: TextMapping,
    variant: TextMapping,
    traffic: Traffic,
) -> tuple[ResolvedScenario, dict[str, str]]:
    """Return a scenario's inputs and settings with the mean lengths of some traffic."""
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


class ServiceRequest(NamedTuple):
    """Traffic, promises and limits that each system is sized for."""

    traffic: str = "chat"  # id or file
    promises: Sequence[str] = ()  # texts such as `ttft p99 <= 2 s`; those of the traffic for none
    settings: Mapping[str, str] = {}
    variant: Mapping[str, str] = {}
    data: Path | None = None
    racks: float | None = None  # most racks to buy
    users: int | None = None  # sessions under way, in place of a rate of requests
    router: str = ROUTERS[0]
    samples: int = 0  # draws of the cost's range
    seed: int = 0

    @property
    def traffic_settings(self) -> dict[str, str]:
        """Settings of the traffic."""
        return {
            path: setting_text
            for path, setting_text in self.settings.items()
            if path.startswith(f"{GROUP}.")
        }

    @property
    def own_settings(self) -> dict[str, str]:
        """Settings of all that is not the traffic."""
        return {
            path: setting_text
            for path, setting_text in self.settings.items()
            if not path.startswith(f"{GROUP}.")
        }


class _ServedSystem(NamedTuple):
    """A system with the traffic that it is to serve."""

    result: Result  # its cost, without a workload
    traffic: Traffic
    promises: tuple[Promise, ...]
    inputs: ResolvedScenario
    settings: dict[str, str]  # with the mean lengths of the traffic
    workload: ServingWorkload  # of mean lengths
    pause: float  # seconds between two requests of a session at the workload's speed
    served_share: float  # of the requests, those no longer than the context

    @property
    def rejection(self) -> str:
        """Sentence on requests that are longer than the context."""
        model = self.workload.model
        return (
            f"{100 * (1 - self.served_share):.2g} % of the requests of {self.traffic.id} are "
            f"longer than the context of {model.id}, {model.context:,} tokens, and are "
            "rejected"
        )

    @property
    def judged(self) -> tuple[Promise, ...]:
        """Promises of the requests that are served."""
        return promises_of_served(self.promises, self.served_share, self.rejection)


def _evaluate_cost(
    scenario: str, demand: ServiceRequest, catalogue: Catalogue, implied: TextMapping | None = None
) -> Result:
    """Return the cost of a system without a workload; settings go before implied ones."""
    paid = {
        path: setting_text
        for path, setting_text in demand.own_settings.items()
        if not path.startswith("workload.")
    }
    settings = {**(implied or {}), **paid}
    return evaluate(scenario, settings, catalogue=catalogue, variant=demand.variant, workload=False)


def _utilisation_of_domains(fleet: ServingFleet, domain_chips: float) -> dict[str, str]:
    """Return the utilisation of all chips that are bought, as a setting.

    The fleet's load is that of its engines. Spare and other chips of its domains idle. A smaller
    utilisation than the input may have counts as the smallest one.
    """
    utilisation = fleet.utilisation * fleet.chips / (fleet.domains * domain_chips)
    smallest = input_attributes()["terms", "utilisation"].minimum
    return {UTILISATION: f"{max(utilisation, smallest):.12g}"}


def _served_system(scenario: str, demand: ServiceRequest) -> _ServedSystem:
    """Return a system whose workload has the mean lengths of the traffic."""
    catalogue = catalogue_for(scenario, demand.data)
    traffic = load_traffic(catalogue, demand.traffic, demand.traffic_settings)
    promises = own_promises(demand.promises, "--promise") or traffic.promises
    if not promises:
        raise DataError(
            f"{demand.traffic}: promises nothing; say --promise, such as 'ttft p99 <= 2 s'"
        )
    inputs, settings = _inputs_for_traffic(
        catalogue, scenario, demand.own_settings, demand.variant, traffic
    )
    input_values = inputs.values()
    workload = serving_workload(inputs, input_values)
    result = _evaluate_cost(scenario, demand, catalogue)
    speed = max(input_values["workload.interactivity"], 1.0)
    pause = traffic.thinking + workload.request.answer / speed
    served_share = share_served(traffic, workload.model.context)
    input_values.check_given(inputs.is_known)
    return _ServedSystem(result, traffic, promises, inputs, settings, workload, pause, served_share)


def _cheapest_fleet(
    system: _ServedSystem, demand: ServiceRequest, traffic: Traffic
) -> tuple[Search, ServingFleet]:
    """Return the least fleet that keeps the promises under traffic, and the search that found it.

    Raises:
        DataError: No plan fits, or none keeps the promises.

    """
    scenario, judged = system.result.scenario, system.judged
    search = Search(
        system.workload,
        traffic,
        demand.router,
        demand.seed,
        system.pause,
        system.result.metrics["goodput"] or 1.0,
        simulated_requests(judged),
    )
    if not search.decoders or not search.readers:
        raise DataError(
            f"{scenario}: {system.workload.model.id} fits no plan of {system.inputs.system.id}"
        )
    fleet = search.cheapest(judged)
    if fleet is None:
        nearest = "; ".join(
            f"of {promise} the nearest is {nearest_time:.3g} s"
            for promise, nearest_time in zip(system.promises, search.nearest(judged), strict=True)
        )
        raise DataError(
            f"{scenario}: no plan keeps {', '.join(map(str, system.promises))} under "
            f"{traffic.id}: {nearest}"
        )
    return search, fleet


def _fleet_for_users(
    system: _ServedSystem, demand: ServiceRequest, users: int
) -> tuple[Search, ServingFleet]:
    """Return the least fleet for sessions under way, and the search that found it.

    By Little's law the rate is users / (time of a request + time until the next). The time of a
    request is the fleet's own: fleet and rate are found in turn.

    Raises:
        DataError: The rate is beyond what traffic may have.

    """
    attribute = input_attributes()[GROUP, "requests_per_s"]
    session_time, share = system.pause, 1.0
    for _ in range(ROUNDS):
        rate = users / session_time
        if rate > attribute.maximum:
            raise DataError(
                f"--users {users}: they send {rate:.3g} requests/s, expected at most "
                f"{attribute.maximum:g}"
            )
        traffic_values = system.traffic.values | {"requests_per_s": rate}
        search, fleet = _cheapest_fleet(
            system, demand, system.traffic._replace(values=traffic_values)
        )
        settled_time = session_seconds(search.traffic, fleet)
        if fleet.growing or math.isclose(settled_time, session_time, rel_tol=SETTLED):
            break
        # a longer time means fewer requests and so a shorter time: half steps do not swing
        session_time, share = session_time + share * (settled_time - session_time), 0.5
    return search, fleet


def session_seconds(traffic: Traffic, fleet: ServingFleet) -> float:
    """Return the mean time from a request of a session to its next, in seconds."""
    return float(fleet.times["e2e"].mean()) + traffic.thinking


def _size_serving_fleet(scenario: str, demand: ServiceRequest) -> Service:
    """Return the least fleet of a system that keeps promises, and its cost.

    It has the fewest scale-up domains, and no more racks than asked for. With samples the cost has
    a range: that of the same plan in steady state, prices and practice drawn together. The load
    that is found sets the utilisation, in the base case and in the draws.
    """
    system = _served_system(scenario, demand)
    if demand.users is None:
        search, fleet = _cheapest_fleet(system, demand, system.traffic)
    else:
        search, fleet = _fleet_for_users(system, demand, demand.users)
    load = _utilisation_of_domains(fleet, system.result.metrics["chips"])
    at_load = _evaluate_cost(scenario, demand, catalogue_for(scenario, demand.data), load)
    metrics = _fleet_metrics(at_load, search, system.promises, fleet)
    if demand.racks is not None and metrics["racks"] > demand.racks:
        raise DataError(f"{scenario}: {_too_few_racks(demand.racks, search.rate, fleet, metrics)}")
    errors = {
        f"{metric_name}_p{percentile}_s": quantile_error(times, percentile / 100)
        for metric_name, times in fleet.times.items()
        for percentile in PERCENTILES
        if not (fleet.growing and metric_name in WAITS)
    }
    spread = (
        _token_cost_percentiles(scenario, system.settings, load, demand, fleet, metrics)
        if demand.samples
        else None
    )
    request = system.workload.request  # of mean lengths
    measured = {
        metric_name: metric_value
        for metric_name, metric_value in metrics.items()
        if not (fleet.growing and metric_name in OF_WAITS)
    }
    return Service(
        system.result,
        search.traffic,
        system.promises,
        demand.router,
        fleet,
        figures_apart(_plans_of(fleet, system.workload.machine), GROUP),
        figures_apart(measured, GROUP),
        figures_apart(errors, GROUP),
        figures_apart(
            {"prompt": float(request.prompt), "answer": float(request.answer)},
            GROUP,
        ),
        spread and figures_apart(spread, GROUP),
        demand.users,
        notes=_service_notes(scenario, system, fleet),
    )


def _plans_of(fleet: ServingFleet, machine: Machine) -> JsonObject:
    """Return the axes and engines of each pool, by what it does."""
    plans = {
        "decode" if fleet.reader else "both": _described(fleet.decoder.plan, machine)
        | {"engines": fleet.decoders}
    }
    if fleet.reader is not None:
        plans["prefill"] = _described(fleet.reader.plan, machine, "drafts", "batch") | {
            "engines": fleet.readers
        }
    return plans


def _service_notes(scenario: str, system: _ServedSystem, fleet: ServingFleet) -> tuple[str, ...]:
    notes = [f"{scenario}: {system.rejection}"] if system.served_share < 1 else []
    if fleet.growing:
        notes.append(
            f"{scenario}: the queue still grows at the end of the simulation: waits have no value; "
            "promise a ttft or e2e to get more chips"
        )
    return tuple(notes)


def services(scenarios: Sequence[str], demand: ServiceRequest) -> tuple[list[Service], list[str]]:
    """Return the services of some scenarios, and reasons for broken promises.

    Args:
        scenarios: Ids and files of scenarios.
        demand: Traffic, promises and all else that is asked of each.

    Returns:
        Services that keep the promises, each with its share of the best cost; and an error text for
        each other scenario.

    Raises:
        UsageError: Users and a rate of requests are both stated.
        DataError: A scenario is unknown, or none keeps the promises, with the error of the first.

    """
    refuse_unknown("router", [demand.router], ROUTERS, "--router")
    if demand.users is not None and RATE in demand.settings:
        raise UsageError(
            f"--users {demand.users}: the rate of requests follows from the users; leave out --set "
            f"{RATE}, or --users"
        )
    for scenario_name in scenarios:  # a misspelt name is no system that misses its promises
        load_scenario(catalogue_for(scenario_name, demand.data), scenario_name)
    sized_services, missed = list[Service](), list[DataError]()
    for scenario_name in scenarios:
        try:
            sized_services.append(_size_serving_fleet(scenario_name, demand))
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
        for metric_name in ("tco_usd_per_chip_hour", "facility_power_w_per_chip", "chips", "racks")
    )
    if hour is None or power is None or domain_chips is None or domain_racks is None:
        why = why_absent(scenario_result, "tco_usd_per_chip_hour")
        raise DataError(f"{scenario_result.scenario}: tco_usd_per_chip_hour has no value: {why}")
    times, rate = fleet.times, search.rate
    chips = chips_with_spares(fleet.chips, search.goodput)
    chips_bought = fleet.domains * domain_chips
    tokens_per_s = rate * fleet.answer
    agents = rate * session_seconds(search.traffic, fleet)
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
        "capex_usd": float(scenario_result.metrics["capex_usd"] or 0.0) * fleet.domains,
        "capex_with_hall_usd": fleet.domains
        * sum(float(line.amount) for line in purchases(scenario_result)),
        "usd_per_month": hour * chips_bought * HOURS_A_MONTH,
        "requests_per_s_per_chip": rate / chips,
        "output_tokens_per_s_per_chip": tokens_per_s / chips,
        "rejected_share": 1 - search.served_share,
        "attainment": float(together.mean()) * search.served_share,
        **_wait_quantiles(times),
        "utilisation": fleet.utilisation,
        "hit_rate": fleet.cached_share,
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
    settings: TextMapping,
    load: TextMapping,
    demand: ServiceRequest,
    fleet: ServingFleet,
    metrics: Mapping[str, float],
) -> dict[str, float] | None:
    """Return percentiles of token cost, from steady pools at the fleet's speed.

    Their ratio to the base case of these pools is applied.
    """
    from tco.sampling.uncertainty import draw_statistics, uncertainty

    cost = "usd_per_million_output_tokens"
    speed = {
        "workload.interactivity": f"{1 / fleet.decoder.quickest:.6g} token/s",
        "workload.ttft": "0 s",
    }
    drawn = uncertainty(
        scenario,
        samples=demand.samples,
        seed=demand.seed,
        set={**load, **settings, **speed},
        data=demand.data,
        hold=True,
    )
    base = drawn.evaluation.result.metrics[cost]
    cost_statistics = draw_statistics(cost, drawn.sample.metrics[cost])
    if base is None or cost_statistics is None:
        return None
    return {
        percentile_name: metrics[cost] * percentile_value / base
        for percentile_name in ("p10", "p50", "p90")
        if (percentile_value := cost_statistics[percentile_name]) is not None
    }
