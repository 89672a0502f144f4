"""Ladders of rates: stages of open arrivals at a fleet of engines, one after another.

A stage sends a fixed number of requests at random times, and ends when the last one is answered.
Each stage goes through the same prompts in the same order. Prompts are of groups that begin with
one prefix. The first stage follows a warm-up that sends each prompt once. A client gives up a
request after some minutes; its first token is then not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tco.core.types import FloatArray
from tco.performance.service.engine import Engine
from tco.performance.service.routing import AffinityRouter, AffinityRules, RandomRouter
from tco.performance.service.simulation import Arrival, EngineRun

PAUSE = 30.0  # seconds between two stages
WARM_UP = 50.0  # seconds over which every prompt is sent at first
PATIENCE = 300.0  # seconds after which a client gives up a request, the default of aiohttp


class Prompts(NamedTuple):
    """Prompts of a ladder, in tokens: groups begin with one prefix, each with some questions."""

    prefix: float
    groups: int
    question: float
    per_group: int  # prompts of a group that come back; 0 where every question is new
    answer: float


class RateStage(NamedTuple):
    """A stage of a ladder."""

    rate: float  # requests per second
    seconds: float


class Router(NamedTuple):
    """Rules of a router, which spreads requests by lot where it knows no prefixes."""

    sticky_share: float  # of a prompt, from which an engine that was sent it is sticky; 0 by lot
    queue_limit: float  # seconds of prompts that a sticky engine may have to read beyond others


class RoutedFleet(NamedTuple):
    """Engines alike behind a router."""

    engine: Engine
    servers: int
    router: Router


def first_tokens_of_ladder(
    engine: Engine,
    load: Mapping[str, float],
    stages: Sequence[tuple[float, float]],
    seed: int,
) -> list[FloatArray]:
    """Return times to first token of each stage of a ladder of plain numbers, in seconds.

    Args:
        engine: Each of the engines.
        load: `servers`, the router's `sticky_share` and `queue_limit_s`, and of the prompts
            `prefix_tokens`, `prefix_groups`,
            `question_tokens`, `prompts_per_group` and `output_tokens`.
        stages: Requests per second and seconds of each stage, in the order in which they are run.
        seed: Of arrivals and of choices by lot.

    """
    fleet = RoutedFleet(
        engine, int(load["servers"]), Router(load["sticky_share"], load["queue_limit_s"])
    )
    prompts = Prompts(
        load["prefix_tokens"],
        max(int(load["prefix_groups"]), 1),
        load["question_tokens"],
        int(load["prompts_per_group"]),
        load["output_tokens"],
    )
    return first_tokens(fleet, prompts, [RateStage(*stage) for stage in stages], seed)


def first_tokens(
    fleet: RoutedFleet, prompts: Prompts, stages: Sequence[RateStage], seed: int
) -> list[FloatArray]:
    """Return times to first token of every stage, in seconds.

    Args:
        fleet: Engines and their router.
        prompts: What is sent.
        stages: Rates, in the order in which they are run.
        seed: Of arrivals and of choices by lot.

    """
    draws = np.random.default_rng([seed, 20260])
    runs = [EngineRun(fleet.engine) for _ in range(fleet.servers)]
    router = _router_of(fleet, draws)
    order = draws.permutation(prompts.groups * max(prompts.per_group, 1))
    warm_up = RateStage(len(order) / WARM_UP, WARM_UP)
    times = []
    for stage in (warm_up, *stages):
        begin = max(run.now for run in runs) + PAUSE
        count = int(stage.rate * stage.seconds)
        arrived = begin + np.sort(draws.uniform(0, stage.seconds, count))
        sent = []
        for request_index, instant in enumerate(arrived.tolist()):
            arrival = _arrival_of(prompts, int(order[request_index % len(order)]), instant)
            number = router.choose(arrival, runs)
            sent.append((number, len(runs[number].arrived)))
            runs[number].submit(arrival)
        for run in runs:
            run.advance()
        waits, taken = [], []
        for (number, request_index), instant in zip(sent, arrived.tolist(), strict=True):
            waits.append(runs[number].first[request_index] - instant)
            taken.append(runs[number].last[request_index] - instant)
        answered = np.array(taken) <= PATIENCE
        times.append(np.array(waits)[answered] if answered.any() else np.array(waits))
    return times[1:]


def _arrival_of(prompts: Prompts, number: int, instant: float) -> Arrival:
    group = number % prompts.groups
    question = prompts.groups + number if prompts.per_group else -1
    length = prompts.prefix + prompts.question
    return Arrival(instant, length, prompts.answer, group, prompts.prefix, prompts.prefix, question)


def _router_of(fleet: RoutedFleet, draws: np.random.Generator) -> RandomRouter | AffinityRouter:
    """Return a fleet's router, which is told how fast its engines read a prompt alone."""
    if not fleet.router.sticky_share:
        return RandomRouter(draws)
    engine = fleet.engine
    rate = engine.budget / engine.pass_time(engine.budget, engine.budget / 2, 0, 0.0)
    rules = AffinityRules(fleet.router.sticky_share, fleet.router.queue_limit * rate)
    return AffinityRouter(draws, rules, fleet.servers, engine.room)
