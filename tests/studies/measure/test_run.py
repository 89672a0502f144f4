"""The clockwork, on a toy whose clock is known."""

from __future__ import annotations

import pytest

from tco.studies.measure.run import FEWEST_RUNS, MOST_ROUNDS, QUICK, Effort, measure, time_of
from tests.studies.room import Operation


class Toy:
    """An operation of a known time whose first round is slow, as one that compiles is."""

    def __init__(self, seconds, calls=1, first=5.0):
        self.seconds, self.calls, self.first, self.rounds = seconds, calls, first, []

    def run(self, rounds):
        self.rounds.append(rounds)
        return self.first if len(self.rounds) == 1 else rounds * self.calls * self.seconds

    def operation(self):
        return Operation(self.run, self.calls)


EFFORT = Effort(shortest=0.01, warm_up=0.1, longest=1.0, runs=21)


def test_the_slow_first_round_is_forgotten():
    timing = time_of(Toy(2e-6).operation(), EFFORT)
    assert (timing.low, timing.seconds, timing.high) == pytest.approx((2e-6,) * 3, rel=1e-12)


def test_a_short_kernel_is_called_until_the_clock_sees_it():
    toy = Toy(2e-6)
    timing = time_of(toy.operation(), EFFORT)
    assert timing.calls * 2e-6 >= EFFORT.shortest
    assert timing.runs == EFFORT.runs
    assert sum(toy.rounds) * 2e-6 >= EFFORT.warm_up + EFFORT.runs * EFFORT.shortest


def test_calls_of_a_captured_graph_count():
    one, many = (time_of(Toy(3e-6, calls).operation(), EFFORT) for calls in (1, 64))
    assert many.seconds == pytest.approx(one.seconds, rel=1e-12)
    assert many.calls % 64 == 0


def test_a_long_kernel_is_run_few_times():
    toy = Toy(0.9, first=0.9)
    timing = time_of(toy.operation(), EFFORT)
    assert (timing.runs, timing.calls) == (FEWEST_RUNS, 1)
    assert len(toy.rounds) == 2 + 1 + FEWEST_RUNS  # the first, the look at the clock, one to warm up, the runs


def test_the_median_stands_against_a_disturbance():
    times = iter([1.0, 0.01] + [0.01] * 18 + [0.5] * 3)
    timing = time_of(Operation(lambda rounds: next(times)), Effort(shortest=0.01, warm_up=0.0, longest=1.0, runs=21))
    assert timing.seconds == 0.01
    assert timing.high > timing.seconds


def test_a_clock_that_sees_nothing_ends():
    toy = Toy(0.0, first=0.0)
    assert time_of(toy.operation(), Effort(shortest=0.01, warm_up=0.0, longest=1.0, runs=3)).calls == MOST_ROUNDS


class Backend:
    """Shapes are times; a negative one cannot be run."""

    def ready(self, shape):
        if shape < 0:
            raise RuntimeError("out of memory: tried to allocate too much\nand a long tale")
        return Toy(shape).operation()

    def conditions(self):
        return "idle"


def test_a_shape_that_cannot_be_run_stops_nothing():
    good, bad, last = measure(Backend(), [1e-3, -1.0, 2e-3], QUICK)
    assert (good.timing.seconds, last.timing.seconds) == pytest.approx((1e-3, 2e-3))
    assert (good.conditions, good.failure) == ("idle", "")
    assert (bad.shape, bad.timing, bad.failure) == (-1.0, None, "out of memory: tried to allocate too much")


def test_an_error_of_ours_is_not_swallowed():
    class Broken(Backend):
        def ready(self, shape):
            raise KeyError(shape)

    with pytest.raises(KeyError):
        list(measure(Broken(), [1.0], QUICK))
