"""Requests through serving engines: chunks of prompts beside tokens, first come first served.

An engine takes in a request where its memory has room for the prompt, and for the share of the
answers under way that the engine foresees. Caches then grow by a token an iteration. Where they
find no room, the engine pauses the request that it took in last, and reads its tokens again later.
What a slot (a session, or all who share a prefix) left behind stays until its room is needed, the
least recently used first. Iterations in which nothing changes are taken together.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from tco.core.types import FloatArray
from tco.performance.service.engine import Engine

ENDLESS = float("inf")
ANSWERS = -2  # slots of answers count down from here


class Requests(NamedTuple):
    """Requests in the order they arrive: seconds, and tokens."""

    arrived: FloatArray
    prompt: FloatArray
    answer: FloatArray
    slot: FloatArray  # whose prompts begin alike
    prior_tokens: FloatArray  # tokens of the prompt that the slot has had before
    keeps: FloatArray  # tokens that it may come back to


class Served(NamedTuple):
    """Times of first and last token after arrival, in seconds, with answer and cached tokens."""

    first: FloatArray
    last: FloatArray
    answer: FloatArray
    cached_tokens: FloatArray


class Arrival(NamedTuple):
    """A request that comes to an engine: seconds, and tokens."""

    arrived: float
    prompt: float
    answer: float
    slot: int  # whose prompts begin alike
    prior_tokens: float  # tokens of the prompt that the slot has had before
    keeps: float  # tokens that it may come back to
    question: int = -1  # slot of the rest of the prompt, where the very same prompt comes back


class Cache:
    """Token memory of an engine: tokens in use, idle and free.

    Tokens in use belong to requests under way and to the slots of these requests. Idle tokens
    belong to slots without a request under way.
    """

    def __init__(self, room: float) -> None:
        self.free, self.kept = room, 0.0  # tokens of nobody, and of slots that may be dropped
        self.idle: OrderedDict[int, float] = OrderedDict()
        self.used: dict[int, list[float]] = {}  # tokens, and requests that use them

    def cached_tokens(self, slot: int) -> float:
        """Return the tokens that are held of a slot."""
        return self.used[slot][0] if slot in self.used else self.idle.get(slot, 0.0)

    def take(self, slot: int, tokens: float, whatever: bool, foreseen: float = 0.0) -> bool:
        """Make room for tokens of a request beside what its slot has; say whether there is.

        Args:
            slot: Whose tokens the request begins with.
            tokens: Tokens that it adds.
            whatever: Whether it is taken in without room.
            foreseen: Tokens that must find room later, beside it.

        """
        idle_tokens = self.idle.get(slot, 0.0)
        if self.free + self.kept - idle_tokens < tokens + foreseen and not whatever:
            return False
        if slot in self.used:
            self.used[slot][1] += 1
        else:
            self.idle.pop(slot, None)
            self.kept -= idle_tokens
            self.used[slot] = [idle_tokens, 1]
        self.free -= tokens
        if self.free < 0:
            self.drop()
        return True

    def leave(self, slot: int, tokens: float, keeps: float) -> None:
        """Give back the tokens of a request, and keep so many of its slot."""
        used = self.used[slot]
        self.free += tokens
        if keeps > used[0]:
            self.free -= keeps - used[0]
            used[0] = keeps
        used[1] -= 1
        if not used[1]:
            del self.used[slot]
            if used[0]:
                self.idle[slot] = used[0]
                self.kept += used[0]
        if self.free < 0:
            self.drop()

    def share(self, slot: int, tokens: float) -> float:
        """Share the tokens that a request has read of its slot, and return their number."""
        used = self.used[slot]
        more = max(tokens - used[0], 0.0)
        used[0] += more
        return more

    def store(self, slot: int, tokens: float) -> None:
        """Keep tokens of a slot that nobody uses, as the most recent ones."""
        before = self.idle.pop(slot, 0.0)
        self.free += before - tokens
        self.kept += tokens - before
        self.idle[slot] = tokens
        self.drop()

    def drop(self) -> None:
        """Drop the least recently used slots until there is room."""
        while self.free < 0 and self.idle:
            tokens = self.idle.popitem(last=False)[1]
            self.free += tokens
            self.kept -= tokens


class EngineRun:
    """An engine at work on requests, which are numbered as they come."""

    def __init__(self, engine: Engine, read: bool = True, decode: bool = True) -> None:
        self.engine, self.reads, self.decodes = engine, read, decode
        self.most = max(engine.most, 1.0)
        self.crowds = engine.foreseen < 1  # whether answers may outgrow the room
        self.cache = Cache(engine.room)
        self.arrived: list[float] = []  # seconds
        self.prompt: list[float] = []  # tokens to read, with those of an answer that was paused
        self.answer: list[float] = []  # tokens to decode
        self.slot: list[int] = []  # whose prompts begin alike
        self.known: list[float] = []  # tokens of the prompt that the slot has had before
        self.keeps: list[float] = []  # tokens that it may come back to
        self.question: list[int] = []  # slot of the rest of the prompt, below zero if it is new
        self.first: list[float] = []  # seconds
        self.last: list[float] = []  # seconds
        self.found: list[float] = []  # tokens
        self.need: list[float] = []  # tokens of memory, those that it has decoded not counted
        self.begun: list[float] = []  # the iteration that it decodes from
        self.waiting: deque[list[float]] = deque()  # prompts under way: number, tokens left, keys
        self.running: list[tuple[float, int]] = []  # the iteration a sequence ends with, its number
        self.joined: list[int] = []  # that decode their first token next
        self.paused: deque[int] = deque()  # that lost their room
        self.now = self.iteration = 0.0
        self.cached = 0.0  # tokens of the sequences that decode
        self.remaining = 0.0  # tokens that those under way have still to decode
        self.head = 0  # the request that is taken in next
        self.full = False  # it finds no room

    def submit(self, arrival: Arrival) -> None:
        """Queue a request, which comes no earlier than those before it."""
        self.arrived.append(arrival.arrived)
        self.prompt.append(arrival.prompt)
        self.answer.append(arrival.answer)
        self.slot.append(arrival.slot)
        self.known.append(arrival.prior_tokens)
        self.keeps.append(arrival.keeps)
        self.question.append(arrival.question)
        for column in (self.first, self.last, self.found, self.need, self.begun):
            column.append(0.0)

    def submit_all(self, requests: Requests) -> None:
        """Queue requests that share no questions, none earlier than those before them."""
        count = len(requests.arrived)
        self.arrived.extend(requests.arrived.tolist())
        self.prompt.extend(requests.prompt.tolist())
        self.answer.extend(requests.answer.tolist())
        self.slot.extend(requests.slot.tolist())
        self.known.extend(requests.prior_tokens.tolist())
        self.keeps.extend(requests.keeps.tolist())
        self.question.extend([-1] * count)
        for column in (self.first, self.last, self.found, self.need, self.begun):
            column.extend([0.0] * count)

    def advance(self, until: float = ENDLESS) -> None:
        """Run iterations that begin before a time."""
        running, arrived, paused, cache = self.running, self.arrived, self.paused, self.cache
        while self.now < until:
            coming = arrived[self.head] if self.head < len(arrived) else ENDLESS
            if not self.waiting and not running and not paused:
                if coming >= until:
                    return
                self.now = max(self.now, coming)
            self.full = False
            if coming <= self.now or paused:
                self.take_in()
            if self.waiting:
                self.read()
            else:
                self.decode(until)
            while running and running[0][0] <= self.iteration:
                number = heappop(running)[1]
                self.cached -= self.prompt[number] + self.answer[number] - self.reads
                self.end(number)
            if cache.free < 0:
                self.make_room()

    def take_in(self) -> None:
        """Take in the requests that have arrived, one after another, as long as there is room."""
        self.full = False
        while self.paused:
            self.full = not self.admit(self.paused[0])
            if self.full:
                return
            self.paused.popleft()
        count, now = len(self.arrived), self.now
        while self.head < count and self.arrived[self.head] <= now:
            self.full = not self.admit(self.head)
            if self.full:
                return
            self.head += 1

    def admit(self, number: int) -> bool:
        """Begin a request if there is room for it; say whether there is."""
        under_way = len(self.waiting) + len(self.running)
        if under_way >= self.most:
            return False
        cache, slot, question = self.cache, self.slot[number], self.question[number]
        reused_tokens = foreseen = 0.0
        if self.reads:
            prefix_tokens = self.known[number]
            if prefix_tokens:
                reused_tokens = min(prefix_tokens, cache.cached_tokens(slot))
            if question >= 0 and reused_tokens >= prefix_tokens:
                reused_tokens += min(
                    cache.cached_tokens(question), self.prompt[number] - prefix_tokens
                )
        fresh = self.prompt[number] - reused_tokens
        if self.decodes:
            foreseen = self.engine.foreseen * (self.remaining + self.answer[number])
        if not cache.take(slot, fresh, not under_way, foreseen):
            return False
        if self.decodes:
            self.remaining += self.answer[number]
        self.found[number], self.need[number] = reused_tokens, fresh
        if not self.reads:
            self.joined.append(number)
            self.start_decoding(number, self.answer[number])
            return True
        if question >= 0:
            cache.take(question, 0.0, True)
        self.waiting.append([number, max(fresh, 1.0), reused_tokens])
        return True

    def start_decoding(self, number: int, tokens: float) -> None:
        """Have a request decode so many tokens."""
        self.cached += self.prompt[number]
        self.begun[number] = self.iteration
        heappush(self.running, (self.iteration + tokens, number))

    def read(self) -> None:
        """Run an iteration that reads a chunk of the prompts under way, the first ones first.

        Sequences decode a token beside, unless the engine reads prompts alone.
        """
        engine, finished = self.engine, []
        decoding_sequences = len(self.running) if engine.mixed else 0
        quota = left = max(engine.budget * engine.groups - decoding_sequences, 1.0)
        longest = key_total = 0.0
        for prompt in self.waiting:
            part = min(prompt[1], left, engine.budget)
            longest, key_total = max(longest, part), key_total + part * (prompt[2] + part / 2)
            left -= part
            prompt[1] -= part
            prompt[2] += part
            if prompt[1] <= 0:
                finished.append(int(prompt[0]))
            if left <= 0:
                break
        tokens = quota - left
        cached = self.cached if decoding_sequences else 0.0
        time = engine.pass_time(
            max(tokens / engine.groups, longest), key_total / tokens, decoding_sequences, cached
        )
        self.pass_by(time, 1.0 if decoding_sequences else 0.0)
        if not finished:
            return
        for number in finished:
            self.finish_reading(number)
        self.waiting = deque(prompt for prompt in self.waiting if prompt[1] > 0)

    def finish_reading(self, number: int) -> None:
        """Hand out the first token of a request, whose prompt others may use from now on."""
        self.first[number] = self.first[number] or self.now
        keeps, question = self.keeps[number], self.question[number]
        if keeps:
            prefix = min(keeps, self.prompt[number])
            self.need[number] -= self.cache.share(self.slot[number], prefix)
        if question >= 0:
            rest = self.prompt[number] - self.known[number]
            self.need[number] -= self.cache.share(question, rest)
        if self.decodes:
            self.remaining -= 1
            self.cache.free -= 1
        if self.decodes and self.answer[number] > 1:
            self.start_decoding(number, self.answer[number] - 1)
        else:
            self.end(number)

    def decode(self, until: float) -> None:
        """Run the iterations until a sequence ends, a request may be taken in or room is short."""
        step_time, cache, size = self.engine.step_time, self.cache, len(self.running)
        time = step_time(size, self.cached)
        steps = self.running[0][0] - self.iteration
        if self.crowds and steps * size > cache.free:
            steps = min(steps, (cache.free + cache.kept) // size)
        limit = until
        if not self.full and self.head < len(self.arrived) and self.arrived[self.head] < limit:
            limit = self.arrived[self.head]
        if steps > 1 and self.now + steps * time > limit:
            steps = min(steps, float(int((limit - self.now) / time) + 1))
        if self.joined:
            for number in self.joined:
                self.first[number] = self.first[number] or self.now + time
            self.joined.clear()
        if steps > 1:
            time = steps * step_time(size, self.cached + size * (steps - 1) / 2)
        self.pass_by(time, max(steps, 1.0))

    def pass_by(self, time: float, iterations: float) -> None:
        """Let time go by in which every sequence decodes a token an iteration."""
        tokens = len(self.running) * iterations
        self.now += time
        self.iteration += iterations
        self.cached += tokens
        self.remaining -= tokens
        self.cache.free -= tokens
        if self.cache.free < 0:
            self.cache.drop()

    def make_room(self) -> None:
        """Pause the requests that were taken in last until caches have room."""
        while self.cache.free < 0 and len(self.running) > 1:
            ends, number = max(self.running, key=lambda item: (self.begun[item[1]], item[1]))
            self.running.remove((ends, number))
            heapify(self.running)
            decoded = self.iteration - self.begun[number]
            left = ends - self.iteration
            self.cached -= self.prompt[number] + decoded
            self.remaining -= left
            self.release(number, decoded + self.reads)
            self.prompt[number] += decoded + self.reads
            self.answer[number] = left
            self.paused.appendleft(number)

    def end(self, number: int) -> None:
        """End a request."""
        self.last[number] = self.now
        self.release(number, self.answer[number])

    def release(self, number: int, decoded: float) -> None:
        """Free the room of a request that has decoded tokens, and keep what may return."""
        tokens = self.need[number] + (decoded if self.decodes else 0.0)
        question = self.question[number]
        if self.reads and question >= 0:
            self.cache.leave(question, 0.0, 0.0)
            self.cache.store(ANSWERS - question, decoded)
        self.cache.leave(self.slot[number], tokens, self.keeps[number] if self.reads else 0.0)


def simulate_requests(
    engine: Engine,
    requests: Requests,
    before: Requests | None = None,
    read: bool = True,
    decode: bool = True,
) -> Served:
    """Run requests through an engine that holds what it can of those before them.

    Args:
        engine: Times of its iterations, and its room.
        requests: In the order they arrive.
        before: Those whose prompts it has had, if any.
        read: Whether it reads prompts.
        decode: Whether it decodes answers.

    """
    run = EngineRun(engine, read, decode)
    if before is not None:
        for slot, tokens in zip(before.slot.tolist(), before.keeps.tolist(), strict=True):
            if tokens:
                run.cache.take(slot, 0.0, True)
                run.cache.leave(slot, 0.0, tokens)
    run.submit_all(requests)
    run.advance()
    first, last = (np.array(times) - requests.arrived for times in (run.first, run.last))
    return Served(first, last, requests.answer, np.array(run.found))
