"""The smallest fleet that keeps promises, with each engine simulated under its share of traffic.

Engines read prompts, decode, or do both.

Engines of a pool are alike and are given requests without regard to their state, so that one of
them stands for all. A prompt's cache then goes to a decoding engine: the first token takes what
both pools take, requests of one joined with those of the other by lot. Closed forms only say how
many engines a pool needs at least. The same random numbers serve every plan and size, so that a
tighter promise never needs a smaller fleet.

What is bought are whole scale-up domains. The least fleet therefore has the fewest domains, and of
fleets with as many domains the fewest chips.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tco.core.trace import untraced_value
from tco.core.types import AnyArray, FloatArray
from tco.performance.service.engine import Engine, engine_for_plan
from tco.performance.service.samples import (
    REQUESTS,
    STEADY,
    is_growing,
    share_served,
    within_context,
)
from tco.performance.service.simulation import Requests, simulate_requests
from tco.performance.service.traffic import Promise, Traffic
from tco.performance.serving import passes
from tco.performance.serving.plan_choice import decode_axes, offered_axes
from tco.performance.serving.plans import (
    SEQUENCES,
    DecodePlan,
    ServingWorkload,
    attention_chips,
    decode_plan_from_axes,
    decoding_at,
    depths_of,
    plan_at,
    quantity_at_plan,
)

SPEEDS = np.geomspace(8, 512, 10)  # tokens/s a user for which the best plan of each size is tried
STABLE = 0.98  # of the rate an engine could hold
WAITS = frozenset(("ttft", "e2e"))  # times with a wait in them
READ, DECODE, BOTH = "read", "decode", "both"
# times the requests under way that an engine which begins empty is given first, and no more
FILLING, MOST = (
    2,
    20000,
)
ROUNDS = 12  # in which the sequences under way settle
# times as many engines decode as the promise of each token asks for, where the first one waits for
# them
LONGER = (
    1.0,
    1.05,
    1.15,
    1.35,
)
FIRST = 8  # plans whose engines are tried with both, those first that need the least
TRIED = 16  # plans, where none keeps a promise, to say how near they come
CLOSE = 1000  # the least engines are found to one part in so many
SPARE = 8  # times the engines that are needed at least, among which the least is looked for


class PoolPlan(NamedTuple):
    """A plan of a pool: its engine, chips, and the requests a second that one engine could hold."""

    plan: DecodePlan
    chips: float
    rate: float
    quickest: float  # seconds: of a token where it decodes, of a prompt alone where it reads
    build: Callable[[], Engine]

    def engines(self, rate: float) -> int:
        """Return the engines that a rate of requests asks for at least."""
        return max(int(np.ceil(rate / (STABLE * self.rate))), 1)


class Times(NamedTuple):
    """Request times of a pool (s), and cached share of prompt tokens.

    `first` ends when the pool hands over the first token, or the prompt. `last` ends when it hands
    over the last token.
    """

    first: FloatArray
    last: FloatArray
    answer: FloatArray
    cached_share: float  # share of the tokens of prompts
    growing: bool = False  # whether requests wait ever longer


class ServingFleet(NamedTuple):
    """Engines of both pools, or of one that does both, and what requests see of them."""

    decoder: PoolPlan
    decoders: int
    reader: PoolPlan | None  # none where engines that decode read prompts beside
    readers: int
    times: dict[str, FloatArray]
    answer: float  # mean tokens of an answer
    cached_share: float  # share of the prompts' tokens that were found in a cache
    utilisation: float  # rate over the one that its chips could hold
    domains: int  # scale-up domains that hold its engines and spare chips
    growing: bool = False  # whether requests wait ever longer

    @property
    def chips(self) -> float:
        """Chips of both pools."""
        return self.decoder.chips * self.decoders + (
            self.reader.chips * self.readers if self.reader else 0
        )

    def is_cheaper_than(self, rival_fleet: ServingFleet | None) -> bool:
        """Say whether it needs fewer domains, or as many and fewer chips."""
        return rival_fleet is None or (self.domains, self.chips) < (
            rival_fleet.domains,
            rival_fleet.chips,
        )


def chips_with_spares(chips: float, goodput: float) -> int:
    """Return chips of engines and the spare chips that failures ask for.

    Args:
        chips: Chips of whole engines.
        goodput: Share of the hours that failures leave.

    """
    return math.ceil(chips / goodput - 1e-9)


def domains_holding(engines: Sequence[tuple[float, int]], domain_chips: int) -> int:
    """Return the number of scale-up domains that hold `engines`.

    An engine lies within one domain. An engine that is larger fills whole domains, and the rest of
    it shares a domain as a smaller engine does. The largest engines are placed first, each in the
    fullest domain that has room.

    Args:
        engines: Chips of one engine and number of such engines, by pool.
        domain_chips: Chips of one scale-up domain.

    """
    pieces = Counter[int]()
    for engine_chips, count in engines:
        full_domains, rest = divmod(int(engine_chips), domain_chips)
        pieces[domain_chips] += full_domains * count
        pieces[rest] += count
    offered = pieces.total()  # no piece needs a second domain
    domains_by_room = Counter({domain_chips: offered})
    for piece_chips in sorted(filter(None, pieces), reverse=True):
        unplaced = pieces[piece_chips]
        for room, domains in sorted(domains_by_room.items()):
            pieces_per_domain = room // piece_chips
            if not pieces_per_domain:
                continue
            placed = min(unplaced, pieces_per_domain * domains)
            filled, left_over = divmod(placed, pieces_per_domain)
            domains_by_room[room] -= filled
            domains_by_room[room - pieces_per_domain * piece_chips] += filled
            if left_over:
                domains_by_room[room] -= 1
                domains_by_room[room - left_over * piece_chips] += 1
            unplaced -= placed
    return offered - domains_by_room[domain_chips]


# ---------------------------------------------------------------- plans
def _best_of_each_size(chips: AnyArray, scores: Sequence[AnyArray]) -> list[tuple[int, int]]:
    """Return the indices of the best plans of every size, by any of the scores above zero."""
    plan_indices = set[tuple[int, int]]()
    for size in np.unique(chips):
        for score in scores:
            able = np.where(chips == size, score, 0.0)
            if able.any():
                plan_indices.add(divmod(int(able.argmax()), able.shape[1]))
    return sorted(plan_indices)


def _decoders_of(workload: ServingWorkload) -> list[PoolPlan]:
    """Return the best plans that decode, of every size at every speed."""
    axes = decoding_at(
        decode_axes(workload),
        np.array([SEQUENCES], dtype=float),
        depths_of(workload),
    )
    pass_result = passes.decode_pass(workload, axes)
    time, memory = np.broadcast_arrays(pass_result.per_token, pass_result.memory)
    rate = np.where(
        memory <= workload.machine.memory, axes.sequences / attention_chips(axes) / time, 0.0
    )
    scores = [np.where(time * speed <= 1, rate, 0.0) for speed in SPEEDS]
    pool_plans = []
    for plan_index in _best_of_each_size(axes.chips, scores):
        plan = plan_at(axes, plan_index)
        sequences = plan.sequences * plan.chips / attention_chips(plan)
        build = cache(lambda plan=plan, most=sequences: engine_for_plan(workload, plan, most))
        pool_plans.append(
            PoolPlan(
                plan,
                plan.chips,
                float(sequences / time[plan_index] / workload.request.answer),
                float(time[plan_index]),
                build,
            )
        )
    return pool_plans


def _readers_of(workload: ServingWorkload, fresh: float) -> list[PoolPlan]:
    """Return, per plan size, the fastest prefill plan by rate and by time to read a prompt.

    They read a share `fresh` of the tokens of prompts.
    """
    axes = offered_axes(workload.machine, workload.model, workload.request.prompt)
    pass_result = passes.prefill_pool(workload, axes)
    fits = pass_result.memory <= workload.machine.memory
    speeds = 1 / pass_result.per_prompt / attention_chips(axes), 1 / pass_result.until_read
    scores = [np.where(fits, speed, 0.0) for speed in speeds]
    pool_plans = []
    for plan_index in _best_of_each_size(axes.chips, scores):
        plan = plan_at(axes, plan_index)
        rate = (
            plan.chips
            / attention_chips(plan)
            / float(quantity_at_plan(pass_result.per_prompt, plan_index))
            / fresh
        )
        build = cache(lambda plan=plan: engine_for_plan(workload, decode_plan_from_axes(plan, 1.0)))
        pool_plans.append(
            PoolPlan(
                decode_plan_from_axes(plan, 1.0),
                plan.chips,
                rate,
                float(quantity_at_plan(pass_result.until_read, plan_index)),
                build,
            )
        )
    return pool_plans


# ---------------------------------------------------------------- search
def under_way(
    engine: Engine, rate: float, before: Requests, requests: Requests, seed: int
) -> Requests:
    """Return requests preceded by those that the engine is already decoding, by Little's law.

    Among answers under way, longer ones are more frequent in proportion to their length, and any
    part of an answer may be done.
    """
    answer, context = float(before.answer.mean()), float((before.prompt + before.answer / 2).mean())
    count = most = int(engine.most)
    for _ in range(ROUNDS):
        count = min(
            max(int(rate * answer * engine.step_time(max(count, 1), max(count, 1) * context)), 0),
            most,
        )
    draws = np.random.default_rng([seed, count])
    chosen = draws.choice(len(before.answer), count, p=before.answer / before.answer.sum())
    done = np.floor(draws.uniform(size=count) * before.answer[chosen])
    first = Requests(*(request_field[chosen] for request_field in before))._replace(
        arrived=np.zeros(count)
    )
    first = first._replace(prompt=first.prompt + done, answer=first.answer - done)
    return Requests(*(np.concatenate(both) for both in zip(first, requests, strict=True)))


class Search:
    """The fleets of one machine under one traffic, each pool of each size simulated once."""

    def __init__(
        self,
        workload: ServingWorkload,
        traffic: Traffic,
        router: str,
        seed: int,
        pause: float,
        goodput: float,
        count: int = REQUESTS,
    ) -> None:
        self.count, self.context = count, workload.model.context
        self.traffic, self.router, self.seed, self.pause = traffic, router, seed, pause
        self.goodput, self.domain_chips = goodput, int(workload.machine.links.world)
        self.start = float(untraced_value(workload.machine.shared("first_token_start")))
        drawn = traffic.requests(1, "random", REQUESTS, seed, pause)[1]
        fitting_requests = within_context(drawn, self.context)
        self.served_share = share_served(traffic, self.context)
        self.rate = traffic.values["requests_per_s"] * self.served_share  # of what is served
        self.answer = float(fitting_requests.answer.mean())
        # of the prompts' tokens, where a cache forgets nothing
        fresh = self.fresh = 1 - float(
            fitting_requests.prior_tokens.sum() / fitting_requests.prompt.sum()
        )
        self.decoders = _decoders_of(workload)
        self.readers = _readers_of(workload, fresh)
        self.prompt = float(fitting_requests.prompt.mean())
        self.known: dict[tuple[DecodePlan, int, str], Times] = {}

    def times(self, pool: PoolPlan, engines: int, does: str) -> Times:
        """Return the request times of a pool of `engines` engines, in seconds.

        Each engine reads, decodes or does both, as `does` says.
        """
        times_key = pool.plan, engines, does
        if times_key not in self.known:
            engine, engine_rate = pool.build(), self.rate / engines
            count = self.count + (
                min(int(FILLING * engine_rate * self.answer * pool.quickest), MOST)
                if does == BOTH
                else 0
            )
            drawn = self.traffic.requests(
                engines,
                "random" if does == DECODE else self.router,
                math.ceil(count / self.served_share),
                self.seed,
                self.pause,
            )
            before, requests = (within_context(part, self.context) for part in drawn)
            if does == DECODE:
                requests = under_way(engine, engine_rate, before, requests, self.seed)
            served = simulate_requests(
                engine,
                requests,
                None if does == DECODE else before,
                read=does != DECODE,
                decode=does != READ,
            )
            steady = slice(len(requests.arrived) - round(self.count * STEADY), None)
            first, last, answer = (
                served_field[steady] for served_field in (served.first, served.last, served.answer)
            )
            self.known[times_key] = Times(
                first,
                last,
                answer,
                float(served.cached_tokens[steady].sum() / requests.prompt[steady].sum()),
                is_growing(first),
            )
        return self.known[times_key]

    def joined(self, decoding: Times, reading: Times | None) -> dict[str, FloatArray]:
        """Return TTFT, TPOT and end-to-end time of requests, in seconds.

        Requests of both pools are joined at random.
        """
        before: Any = (
            0.0
            if reading is None
            else np.random.default_rng(self.seed).choice(reading.first, len(decoding.first))
        )
        first, last = (
            token_times + before + self.start for token_times in (decoding.first, decoding.last)
        )
        return {
            "ttft": first,
            "tpot": (last - first) / np.maximum(decoding.answer - 1, 1),
            "e2e": last,
        }

    def keeps(
        self, promises: Sequence[Promise], decoding: Times, reading: Times | None = None
    ) -> bool:
        """Say whether promises are kept; a wait that grows keeps none."""
        growing = decoding.growing or (reading is not None and reading.growing)
        if growing and any(promise.metric in WAITS for promise in promises):
            return False
        times = self.joined(decoding, reading)
        return all(
            np.quantile(times[promise.metric], promise.quantile) <= promise.limit
            for promise in promises
        )

    def least(self, pool: PoolPlan, good: Callable[[int], bool], most: int) -> int | None:
        """Return the smallest number of a pool's engines that is good, or None beyond `most`.

        More engines are never worse.
        """
        low = pool.engines(self.rate)
        if low > most or good(low):
            return low if low <= most else None
        high = low
        while high < most:
            low, high = high, min(high * 2, most)
            if good(high):
                break
        else:
            return None
        while high - low > max(1, low // CLOSE):
            middle = (low + high) // 2
            low, high = (low, middle) if good(middle) else (middle, high)
        return high

    def domains_of(self, engines: Sequence[tuple[float, int]]) -> int:
        """Return the scale-up domains that hold engines and spare chips.

        Args:
            engines: Chips of one engine and number of such engines, by pool.

        """
        chips = sum(engine_chips * count for engine_chips, count in engines)
        needed = math.ceil(chips_with_spares(chips, self.goodput) / self.domain_chips)
        return max(needed, domains_holding(engines, self.domain_chips))

    def most_chips(self, best: ServingFleet | None) -> float:
        """Return the chips below which a fleet may be cheaper than the best one."""
        if best is None:
            return np.inf
        with_fewer_domains = (best.domains - 1) * self.domain_chips * self.goodput
        return max(best.chips, math.floor(with_fewer_domains + 1e-9) + 1)

    def cheapest(self, promises: Sequence[Promise]) -> ServingFleet | None:
        """Return the fleet with the fewest domains that keeps promises.

        Of fleets with as many domains it has the fewest chips. There is none where no plan keeps
        the promises.
        """
        limit = {
            metric_name: min(
                (promise.limit for promise in promises if promise.metric == metric_name),
                default=np.inf,
            )
            for metric_name in ("ttft", "tpot", "e2e")
        }
        readers = sorted(
            (reader for reader in self.readers if reader.quickest <= limit["ttft"]),
            key=lambda reader: reader.engines(self.rate) * reader.chips,
        )
        best: ServingFleet | None = None
        least = readers[0].engines(self.rate) * readers[0].chips if readers else np.inf
        for pool in sorted(
            self.decoders, key=lambda decoder: decoder.engines(self.rate) * decoder.chips
        ):
            room = self.most_chips(best)
            if pool.engines(self.rate) * pool.chips + least >= room:
                break

            def soon(n: int, pool: PoolPlan = pool) -> bool:
                speeds = [promise for promise in promises if promise.metric not in WAITS]
                return self.keeps(speeds, self.times(pool, n, DECODE))

            needed = self.least(pool, soon, self.most(pool, room))
            for engines in (
                dict.fromkeys(int(np.ceil(needed * share)) for share in LONGER) if needed else ()
            ):
                best = self.with_readers(pool, engines, readers, promises, best)
        return self.together(promises, best)

    def together(
        self, promises: Sequence[Promise], best: ServingFleet | None
    ) -> ServingFleet | None:
        """Return the cheaper of a fleet and the smallest one whose engines both read and decode.

        Only the plans that could need the fewest chips are tried.
        """
        mixed_pools = []
        for pool in self.decoders:
            if pool.engines(self.rate) * pool.chips < self.most_chips(best):
                engine = pool.build()
                reading = (
                    self.fresh
                    * self.prompt
                    / (engine.budget * engine.groups)
                    * engine.pass_time(engine.budget, self.prompt / 2, 0, 0.0)
                )
                mixed_pools.append(pool._replace(rate=1 / (1 / pool.rate + reading)))
        for pool in sorted(
            mixed_pools, key=lambda mixed_pool: mixed_pool.engines(self.rate) * mixed_pool.chips
        )[:FIRST]:
            room = self.most_chips(best)

            def good(n: int, pool: PoolPlan = pool) -> bool:
                return self.keeps(promises, self.times(pool, n, BOTH))

            count = self.least(pool, good, self.most(pool, room))
            if count is not None and count * pool.chips < room:
                times = self.times(pool, count, BOTH)
                load = min(self.rate / (count * pool.rate), 1.0)
                joined, answer = self.joined(times, None), float(times.answer.mean())
                domains = self.domains_of([(pool.chips, count)])
                fleet = ServingFleet(
                    pool,
                    count,
                    None,
                    0,
                    joined,
                    answer,
                    times.cached_share,
                    load,
                    domains,
                    times.growing,
                )
                best = fleet if fleet.is_cheaper_than(best) else best
        return best

    def most(self, pool: PoolPlan, room: float) -> int:
        """Return the most engines of a pool to try: as many as fit, or a multiple of the need."""
        return int(min(room / pool.chips, SPARE * (pool.engines(self.rate) + 1)))

    def with_readers(
        self,
        pool: PoolPlan,
        engines: int,
        readers: Sequence[PoolPlan],
        promises: Sequence[Promise],
        best: ServingFleet | None,
    ) -> ServingFleet | None:
        """Return the cheaper of a fleet and the least one of so many engines that decode."""
        decoding = self.times(pool, engines, DECODE)
        if not self.keeps(promises, decoding):
            return best
        for reader in readers:
            room = self.most_chips(best) - engines * pool.chips
            if reader.engines(self.rate) * reader.chips >= room:
                continue

            def good(n: int, reader: PoolPlan = reader) -> bool:
                return self.keeps(promises, decoding, self.times(reader, n, READ))

            count = self.least(reader, good, self.most(reader, room))
            if count is not None and count * reader.chips < room:
                reading = self.times(reader, count, READ)
                chips = engines * pool.chips, count * reader.chips
                load = chips[0] * self.rate / (engines * pool.rate) + chips[1] * self.rate * (
                    1 - reading.cached_share
                ) / self.fresh / (count * reader.rate)
                times, answer = self.joined(decoding, reading), float(decoding.answer.mean())
                load = min(load / sum(chips), 1.0)
                domains = self.domains_of([(pool.chips, engines), (reader.chips, count)])
                fleet = ServingFleet(
                    pool,
                    engines,
                    reader,
                    count,
                    times,
                    answer,
                    reading.cached_share,
                    load,
                    domains,
                    decoding.growing or reading.growing,
                )
                best = fleet if fleet.is_cheaper_than(best) else best
        return best

    def nearest(self, promises: Sequence[Promise]) -> list[float]:
        """Return the least that is seen of each promise, in seconds.

        Some plans are tried, with several times the engines that they need.
        """
        reader = min(self.readers, key=lambda pool_plan: pool_plan.quickest)
        reading = self.times(reader, SPARE * reader.engines(self.rate), READ)
        tried_decoders = self.decoders[:: -(-len(self.decoders) // TRIED)]
        tried_times = [
            self.joined(self.times(decoder, SPARE * decoder.engines(self.rate), DECODE), reading)
            for decoder in tried_decoders
        ]
        return [
            min(
                float(np.quantile(times[promise.metric], promise.quantile)) for times in tried_times
            )
            for promise in promises
        ]
