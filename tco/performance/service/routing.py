"""Routers: the engine that a request goes to, by lot or where its prefix is cached.

A Kubernetes service gives each connection to a server by lot. The router of llm-d's optimized
baseline keeps an index of the prompts that it sent to each engine. Engines that were sent enough
of a prompt are sticky: the least loaded of them gets the request, unless its queue of prompts
would take longer than that of the least loaded of the others by more than a limit.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tco.performance.service.simulation import Arrival, EngineRun


class AffinityRules(NamedTuple):
    """Limits by which a router weighs cached prefixes against prompt queues."""

    sticky_share: float  # of a prompt, from which an engine that was sent it is sticky
    queue_limit: float  # tokens that a sticky engine may have to read beyond another


class RandomRouter:
    """Sends each request to an engine by lot."""

    def __init__(self, draws: np.random.Generator) -> None:
        self.draws = draws

    def choose(self, _: Arrival, runs: Sequence[EngineRun]) -> int:
        """Return the number of the engine that a request goes to."""
        return int(self.draws.integers(len(runs)))


class PrefixIndex:
    """Prompts that were sent to an engine, the least recent ones forgotten beyond its room."""

    def __init__(self, room: float) -> None:
        self.room, self.tokens = room, 0.0
        self.slots: OrderedDict[int, float] = OrderedDict()

    def matched(self, arrival: Arrival) -> float:
        """Return the tokens of a prompt that were sent before."""
        prefix = min(self.slots.get(arrival.slot, 0.0), arrival.prior_tokens)
        if arrival.question < 0 or prefix < arrival.prior_tokens:
            return prefix
        return prefix + self.slots.get(arrival.question, 0.0)

    def record(self, arrival: Arrival) -> None:
        """Remember a prompt as the most recent one."""
        parts = {arrival.slot: arrival.prior_tokens}
        if arrival.question >= 0:
            parts = {arrival.question: arrival.prompt - arrival.prior_tokens} | parts
        for slot, tokens in parts.items():
            self.tokens += tokens - self.slots.pop(slot, 0.0)
            self.slots[slot] = tokens
        while self.tokens > self.room:
            self.tokens -= self.slots.popitem(last=False)[1]


class AffinityRouter:
    """Sends a request where its prefix is cached, unless that engine has too much to read."""

    def __init__(
        self, draws: np.random.Generator, rules: AffinityRules, engines: int, room: float
    ) -> None:
        self.draws, self.rules = draws, rules
        self.indexes = [PrefixIndex(room) for _ in range(engines)]
        self.unread: list[deque[tuple[int, float]]] = [deque() for _ in range(engines)]

    def queued(self, run: EngineRun, number: int, instant: float) -> float:
        """Return the tokens of prompts that an engine has to read at an instant."""
        unread = self.unread[number]
        while unread and 0 < run.first[unread[0][0]] <= instant:
            unread.popleft()
        return sum(tokens for _, tokens in unread)

    def choose(self, arrival: Arrival, runs: Sequence[EngineRun]) -> int:
        """Return the number of the engine that a request goes to."""
        queued, fresh, sticky = [], [], []
        for number, run in enumerate(runs):
            if self.unread[number]:
                run.advance(arrival.arrived)
            matched = self.indexes[number].matched(arrival)
            queued.append(self.queued(run, number, arrival.arrived))
            fresh.append(arrival.prompt - matched)
            if matched >= self.rules.sticky_share * arrival.prompt:
                sticky.append(number)
        chosen = self.candidates(queued, sticky)
        load = [queued[item] + fresh[item] for item in chosen]
        ties = [item for item, tokens in zip(chosen, load, strict=True) if tokens == min(load)]
        best = ties[int(self.draws.integers(len(ties)))]
        self.indexes[best].record(arrival)
        self.unread[best].append((len(runs[best].arrived), fresh[best]))
        return best

    def candidates(self, queued: Sequence[float], sticky: Sequence[int]) -> Sequence[int]:
        """Return the engines among which the least loaded is chosen."""
        everyone = range(len(queued))
        nonsticky_engines = set(everyone) - set(sticky)
        if not sticky or not nonsticky_engines:
            return everyone
        least = min(queued[number] for number in sticky)
        if least - min(queued[number] for number in nonsticky_engines) > self.rules.queue_limit:
            return everyone
        return sticky
