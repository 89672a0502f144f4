"""What a service costs: the least chips of a system that keep promises under traffic, and what they cost a token, a month and an agent.

Utilisation is what comes out: the rate over the one that the same chips could hold. Chips are those of whole engines, and as many more as
failures keep from work; all are paid for at any hour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.chain import metrics as joined
from tco.chain.inputs import Inputs, load_scenario
from tco.chain.metrics import Metric
from tco.chain.result import Result, why_absent
from tco.chain.scenario import evaluate
from tco.chain.workloads import server_of
from tco.foundation.errors import DataError, refuse_unknown
from tco.performance.service.fleet import REQUESTS, Fleet, Search, quantile_error
from tco.performance.service.traffic import GROUP, PROMISED, ROUTERS, Promise, Traffic, load_traffic, promise_of
from tco.performance.serving.plans import describe, request_of
from tco.studies.evaluation import catalogue_for

HOURS_A_MONTH = 730.5
PERCENTILES = (50, 90, 99)
BASIS = "facility power at the meter, as provisioned, at the site's mean PUE"
LENGTHS = {"workload.input_tokens": "prompt", "workload.output_tokens": "answer"}
METRICS = {
    "chips": Metric("", "chips of whole engines, spare ones for failures among them"),
    "racks": Metric("", "racks that hold them"),
    "usd_per_million_output_tokens": Metric("USD/Mtoken", "cost per million output tokens"),
    "usd_per_month": Metric("USD", "cost a month"),
    "requests_per_s_per_chip": Metric("1/s", "requests per second and chip"),
    "output_tokens_per_s_per_chip": Metric("token/s/chip", "output tokens per second and chip"),
    "attainment": Metric("", "share of the requests that get all that was promised"),
    **{f"{name}_p{at}_s": Metric("s", f"{words}, P{at}") for name, words in PROMISED.items() for at in PERCENTILES},
    "utilisation": Metric("", "load over what the chips could hold"),
    "hit_rate": Metric("", "share of the prompts' tokens found in a cache"),
    "agents_per_chip": Metric("1/chip", "sessions under way per chip"),
    "agents_per_mw": Metric("1/MW", "sessions under way per megawatt"),
    "usd_per_agent_hour": Metric("USD/h", "cost per session and hour"),
    "joule_per_token": Metric("J", "energy per output token"),
}


class Service(NamedTuple):
    """A system under traffic: the least fleet that keeps promises, and what it comes to."""

    result: Result
    traffic: Traffic
    promises: tuple[Promise, ...]
    router: str
    fleet: Fleet
    plan: dict[str, Any]
    metrics: dict[str, float]
    errors: dict[str, float]  # standard errors of what was simulated
    range: dict[str, float] | None  # of the cost of tokens, by percentile
    power_basis: str = BASIS
    share_of_best: float = 1.0  # the least cost of tokens of all that are asked together, over its own


def asked_of(
    catalogue: Catalogue, name: str, settings: Mapping[str, str], variant: Mapping[str, str], traffic: Traffic
) -> tuple[Inputs, dict[str, str]]:
    """Return the inputs of a scenario whose workload has the mean lengths of some traffic, and the settings that say so."""
    if clash := [path for path in (*LENGTHS, "workload.cache_hit", "workload.concurrency", "workload.offline") if path in settings]:
        raise DataError(f"--set {clash[0]}: traffic says how long requests are and how they come; set {GROUP}.* instead")
    some = traffic.requests(1, "random", REQUESTS, 0, 1.0)[1]
    own = {**settings, **{path: f"{round(float(getattr(some, name).mean()))}" for path, name in LENGTHS.items()}}
    inputs = Inputs(catalogue, load_scenario(catalogue, name), dict(own), dict(variant))
    if inputs.kind != "serving":
        raise DataError(f"{name}: its workload is no serving of requests (workload.kind)")
    return inputs, own


def service(
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
    """Return the least fleet of a scenario's system that keeps promises under traffic, no larger than some racks, and what it costs.

    Promises are texts such as `ttft p99 <= 2 s`; without any those of the traffic hold. With `samples` the cost has a range: that of the same
    plan in steady state, prices and practice drawn together.

    >>> found = service("gb200-nvl72", "chat", ["ttft p90 <= 5 s"])
    >>> found.metrics["ttft_p90_s"] <= 5
    True
    """
    refuse_unknown("router", [router], ROUTERS, "--router")
    catalogue, given = catalogue_for(scenario, data), dict(set or {})
    own = {path: text for path, text in given.items() if path.startswith(f"{GROUP}.")}
    found = load_traffic(catalogue, traffic, own)
    asked = tuple(map(promise_of, promises)) or found.promises
    if not asked:
        raise DataError(f"{traffic}: promises nothing; say --promise, such as 'ttft p99 <= 2 s'")
    rest = {path: text for path, text in given.items() if path not in own}
    inputs, settings = asked_of(catalogue, scenario, rest, variant or {}, found)
    values = inputs.values()
    machine, model = server_of(inputs, values)
    request = request_of(values)
    search = Search(machine, model, request, found, router, seed, found.thinking + request.answer / max(values["workload.interactivity"], 1.0))
    if not search.decoders or not search.readers:
        raise DataError(f"{scenario}: {model.id} fits no plan of {inputs.system.id}")
    fleet = search.cheapest(asked)
    if fleet is None:
        nearest = "; ".join(f"of {text} the nearest is {value:.3g} s" for text, value in search.nearest(asked).items())
        raise DataError(f"{scenario}: no plan keeps {', '.join(map(str, asked))} under {found.id}: {nearest}")
    values.check_given(inputs.is_known)
    paid = {path: text for path, text in rest.items() if not path.startswith("workload.")}
    result = evaluate(scenario, paid, catalogue=catalogue, variant=variant, workload=False)
    metrics = metrics_of(result, found, asked, fleet)
    if racks is not None and metrics["racks"] > racks:
        could = search.rate * racks / metrics["racks"]
        raise DataError(f"{scenario}: {search.rate:g} requests/s need {metrics['racks']:g} racks; {racks:g} could hold about {could:.3g}")
    errors = {f"{name}_p{at}_s": quantile_error(times, at / 100) for name, times in fleet.times.items() for at in PERCENTILES}
    spread = range_of(scenario, settings, data, fleet, metrics, samples, seed) if samples else None
    plan = {"decode" if fleet.reader else "both": described(fleet.decoder.plan, machine) | {"engines": fleet.decoders}}
    if fleet.reader is not None:
        plan["prefill"] = described(fleet.reader.plan, machine, "drafts", "batch") | {"engines": fleet.readers}
    return Service(result, found, asked, router, fleet, plan, metrics, errors, spread)


def services(scenarios: Sequence[str], *asked: Any, **how: Any) -> tuple[list[Service], list[str]]:
    """Return the services of some scenarios, and why others keep no promise; where none does the first one's reason is raised."""
    found, missed = list[Service](), list[DataError]()
    for name in scenarios:
        try:
            found.append(service(name, *asked, **how))
        except DataError as error:
            missed.append(error)
    if not found:
        raise missed[0]
    cost = [one.metrics["usd_per_million_output_tokens"] for one in found]
    return [one._replace(share_of_best=min(cost) / own) for one, own in zip(found, cost, strict=True)], list(map(str, missed))


def described(plan: Any, machine: Any, *without: str) -> dict[str, Any]:
    """Return the axes of a plan by name."""
    return {"chips": int(plan.chips)} | {name: axis for name, axis in describe(plan, machine.links).items() if name not in without}


def metrics_of(result: Result, traffic: Traffic, promises: Sequence[Promise], fleet: Fleet) -> dict[str, float]:
    """Return what a fleet comes to. By Little's law the sessions under way are the rate of requests x (time of one + time until the next)."""
    hour, power = (result.metrics[name] for name in ("tco_usd_per_chip_hour", "facility_power_w_per_chip"))
    if hour is None or power is None:
        raise DataError(f"{result.scenario}: tco_usd_per_chip_hour has no value: {why_absent(result, 'tco_usd_per_chip_hour')}")
    times, rate = fleet.times, traffic.values["requests_per_s"]
    chips = float(np.ceil(fleet.chips / (result.metrics["goodput"] or 1.0) - 1e-9))
    a_rack = (result.metrics["chips"] or 1.0) / (result.metrics["racks"] or 1.0)
    tokens = rate * fleet.answer / chips
    agents = rate * (float(times["e2e"].mean()) + traffic.thinking)
    together = np.logical_and.reduce([times[one.metric] <= one.limit for one in promises])
    return {
        "chips": chips,
        "racks": float(np.ceil(chips / a_rack - 1e-9)),
        "usd_per_million_output_tokens": float(joined.usd_per_million(hour, tokens, 1.0)),
        "usd_per_month": hour * chips * HOURS_A_MONTH,
        "requests_per_s_per_chip": rate / chips,
        "output_tokens_per_s_per_chip": tokens,
        "attainment": float(together.mean()),
        **{f"{name}_p{at}_s": float(np.quantile(times[name], at / 100)) for name in PROMISED for at in PERCENTILES},
        "utilisation": fleet.utilisation,
        "hit_rate": fleet.found,
        "agents_per_chip": agents / chips,
        "agents_per_mw": agents / (chips * power / 1e6),
        "usd_per_agent_hour": hour * chips / agents,
        "joule_per_token": power / tokens,
    }


def range_of(
    scenario: str, settings: Mapping[str, str], data: Path | None, fleet: Fleet, metrics: Mapping[str, float], samples: int, seed: int
) -> dict[str, float] | None:
    """Return percentiles of the cost of tokens: those of pools in steady state at the fleet's speed, over their own base case."""
    from tco.studies.uncertainty import spread, uncertainty  # most answers draw nothing

    cost = "usd_per_million_output_tokens"
    speed = {"workload.interactivity": f"{1 / fleet.decoder.quickest:.6g} token/s", "workload.ttft": "0 s"}
    drawn = uncertainty(scenario, samples=samples, seed=seed, set={**settings, **speed}, data=data, hold=True)
    base, found = drawn.asked.result.metrics[cost], spread(cost, drawn.sample.metrics[cost])
    if base is None or found is None:
        return None
    return {name: metrics[cost] * value / base for name in ("p10", "p50", "p90") if (value := found[name]) is not None}
