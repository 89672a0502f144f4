"""Requests through an engine, iteration by iteration: chunks of prompts beside what decodes, caches as memory allows, first come, first served.

What a slot (a session, or those who share a prefix) had read before is kept while there is room, the least recently used dropped first. Where
nothing is read, nothing changes until the next request arrives or ends: such iterations are taken together.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from tco.performance.service.engine import Engine

Array = np.ndarray[Any, Any]


class Requests(NamedTuple):
    """Requests in the order they arrive: seconds, and tokens."""

    arrived: Array
    prompt: Array
    answer: Array
    slot: Array  # whose prompts begin alike
    known: Array  # tokens of the prompt that the slot has had before
    keeps: Array  # tokens that it may come back to


class Served(NamedTuple):
    """When requests had their first and last token, in seconds after they arrived; tokens of their answers, and of prompts found in a cache."""

    first: Array
    last: Array
    answer: Array
    found: Array


class Cache:
    """What an engine's memory holds, in tokens: of requests under way, of slots whose requests are, and of those that nobody uses now."""

    def __init__(self, room: float) -> None:
        self.free, self.kept = room, 0.0  # tokens of nobody, and of slots that may be dropped
        self.idle: OrderedDict[int, float] = OrderedDict()
        self.used: dict[int, list[float]] = {}  # tokens, and requests that use them

    def held(self, slot: int) -> float:
        """Return the tokens that are held of a slot."""
        return self.used[slot][0] if slot in self.used else self.idle.get(slot, 0.0)

    def take(self, slot: int, tokens: float, whatever: bool) -> bool:
        """Make room for tokens of a request beside what its slot has; say whether there is, `whatever` takes them in any case."""
        mine = self.idle.get(slot, 0.0)
        if self.free + self.kept - mine < tokens and not whatever:
            return False
        if slot in self.used:
            self.used[slot][1] += 1
        else:
            self.idle.pop(slot, None)
            self.kept -= mine
            self.used[slot] = [mine, 1]
        self.free -= tokens
        self.drop()
        return True

    def leave(self, slot: int, tokens: float, keeps: float) -> None:
        """Give back the tokens of a request, and keep so many of its slot."""
        used = self.used[slot]
        more = max(keeps - used[0], 0.0)
        self.free += tokens - more
        used[0] += more
        used[1] -= 1
        if not used[1]:
            del self.used[slot]
            if used[0]:
                self.idle[slot] = used[0]
                self.kept += used[0]
        self.drop()

    def drop(self) -> None:
        """Drop the least recently used slots until there is room."""
        while self.free < 0 and self.idle:
            tokens = self.idle.popitem(last=False)[1]
            self.free += tokens
            self.kept -= tokens

    def warm(self, before: Requests) -> None:
        """Begin with what earlier requests left."""
        for slot, tokens in zip(before.slot.tolist(), before.keeps.tolist(), strict=True):
            if tokens:
                self.take(slot, 0.0, True)
                self.leave(slot, 0.0, tokens)


class Run:
    """An engine at work on requests."""

    def __init__(self, engine: Engine, requests: Requests, read: bool, decode: bool) -> None:
        self.engine, self.reads, self.decodes = engine, read, decode
        self.arrived, self.prompt, self.answer, self.slot, self.known, self.keeps = (one.tolist() for one in requests)
        self.count, self.cache = len(self.arrived), Cache(engine.room)
        self.first, self.last, self.found, self.need = ([0.0] * self.count for _ in range(4))
        self.waiting: deque[list[float]] = deque()  # prompts under way: place, tokens left, keys before them
        self.running: list[tuple[float, int]] = []  # the iteration a sequence ends with, and its place
        self.joined: list[int] = []  # that decode their first token next
        self.now = self.iteration = 0.0
        self.cached = 0.0  # tokens of the sequences that decode
        self.head = 0  # the request that is taken in next
        self.full = False  # it finds no room

    def go(self) -> None:
        """Serve all requests."""
        while self.head < self.count or self.waiting or self.running:
            if not self.waiting and not self.running:
                self.now = max(self.now, self.arrived[self.head])
            self.take_in()
            if self.waiting:
                self.read()
            else:
                self.decode()
            while self.running and self.running[0][0] <= self.iteration:
                place = heappop(self.running)[1]
                self.cached -= self.prompt[place] + self.answer[place] - 1
                self.end(place)

    def take_in(self) -> None:
        """Take in the requests that have arrived, one after another, as long as there is room."""
        engine, cache = self.engine, self.cache
        self.full = False
        while self.head < self.count and self.arrived[self.head] <= self.now:
            place, under_way = self.head, len(self.waiting) + len(self.running)
            prompt, slot = self.prompt[place], self.slot[place]
            known = min(self.known[place], cache.held(slot)) if self.reads else 0.0
            need = prompt - known + (engine.reserved * self.answer[place] if self.decodes else 0.0)
            self.full = under_way >= max(engine.most, 1.0) or not cache.take(slot, need, not under_way)
            if self.full:
                break
            self.found[place], self.need[place] = known, need
            if self.reads:
                self.waiting.append([place, prompt - known, known])
            else:
                self.joined.append(place)
                self.cached += prompt
                heappush(self.running, (self.iteration + self.answer[place], place))
            self.head += 1

    def read(self) -> None:
        """Run an iteration that reads a chunk of the prompts under way, the first ones first; sequences decode a token beside."""
        engine, finished = self.engine, []
        quota = left = engine.budget * engine.groups
        longest = keys = 0.0
        for one in self.waiting:
            part = min(one[1], left, engine.budget)
            longest, keys, left = max(longest, part), keys + part * (one[2] + part / 2), left - part
            one[1] -= part
            one[2] += part
            if one[1] <= 0:
                finished.append(int(one[0]))
            if left <= 0:
                break
        taken, size = quota - left, len(self.running)
        self.pass_by(engine.pass_time(max(taken / engine.groups, longest), keys / taken, size, self.cached), 1.0)
        for place in finished:
            self.first[place] = self.now
            if self.decodes and self.answer[place] > 1:
                self.cached += self.prompt[place]
                heappush(self.running, (self.iteration + self.answer[place] - 1, place))
            else:
                self.end(place)
        if finished:
            self.waiting = deque(one for one in self.waiting if one[1] > 0)

    def decode(self) -> None:
        """Run the iterations until a sequence ends or a request may be taken in."""
        engine, size = self.engine, len(self.running)
        time = engine.step_time(size, self.cached)
        steps = max(self.running[0][0] - self.iteration, 1.0)
        if self.head < self.count and not self.full:
            steps = min(steps, max(1.0, float(int((self.arrived[self.head] - self.now) / time) + 1)))
        for place in self.joined:
            self.first[place] = self.now + time
        self.joined.clear()
        self.pass_by(steps * engine.step_time(size, self.cached + size * (steps - 1) / 2), steps)

    def pass_by(self, time: float, iterations: float) -> None:
        """Let time go by in which every sequence decodes a token an iteration."""
        self.now += time
        self.iteration += iterations
        self.cached += len(self.running) * iterations

    def end(self, place: int) -> None:
        """End a request."""
        self.last[place] = self.now
        self.cache.leave(self.slot[place], self.need[place], self.keeps[place] if self.reads else 0.0)


def serve(engine: Engine, requests: Requests, before: Requests | None = None, read: bool = True, decode: bool = True) -> Served:
    """Run requests through an engine, which keeps what it can of those `before`; or through one that only reads prompts, or only decodes."""
    run = Run(engine, requests, read, decode)
    if before is not None:
        run.cache.warm(before)
    run.go()
    first, last = (np.array(one) - requests.arrived for one in (run.first, run.last))
    return Served(first, last, requests.answer, np.array(run.found))
