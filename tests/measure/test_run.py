"""Rounds, calls and medians of `tco measure`, on a toy whose clock is known."""

from __future__ import annotations

import re

import pytest

from tests.measure import toy


class Toy:
    """An operation of a known time whose first round is slow, as one that compiles is."""

    def __init__(self, seconds, calls=1, first=5.0):
        self.seconds, self.calls, self.first, self.rounds = seconds, calls, first, []

    def run(self, rounds):
        self.rounds.append(rounds)
        return self.first if len(self.rounds) == 1 else rounds * self.calls * self.seconds


@pytest.fixture
def timed(monkeypatch, tmp_path):
    """Return a function that measures an operation with a toy clock.

    It returns time, P10 and P90 in microseconds, the number of runs and the calls of each run.
    """

    def measure_time(run, *options, calls=1):
        (row,) = toy.measured(
            monkeypatch,
            tmp_path,
            lambda kernel: toy.operation(run, calls),
            *options,
            shapes=["one"],
        )
        note_match = re.match(
            r"median of (\d+) runs, calls a run: (\d+), P10-P90 ([\d.e-]+?)-([\d.e-]+) us",
            row["notes"],
        )
        return (
            float(row["time_us"]),
            float(note_match[3]),
            float(note_match[4]),
            int(note_match[1]),
            int(note_match[2]),
        )

    monkeypatch.setattr(f"{toy.SESSION}.kernel_cells", lambda *_: {"notes": ""})
    return measure_time


def test_slow_first_round_is_left_out(timed):
    assert timed(Toy(2e-6).run)[:3] == (2, 2, 2)


def test_a_short_kernel_is_called_until_the_clock_sees_it(timed):
    toy_kernel = Toy(2e-6)
    *_, runs, calls = timed(toy_kernel.run)
    assert calls * 2e-6 >= 0.01
    assert runs == 21
    assert sum(toy_kernel.rounds) * 2e-6 >= 0.2 + 21 * 0.01


def test_time_of_a_captured_graph_is_divided_by_its_calls(timed):
    single_call, captured_calls = (timed(Toy(3e-6, calls).run, calls=calls) for calls in (1, 64))
    assert captured_calls[0] == single_call[0] == 3
    assert captured_calls[-1] % 64 == 0


def test_a_long_kernel_is_run_few_times(timed):
    toy_kernel = Toy(0.9, first=0.9)
    assert timed(toy_kernel.run)[3:] == (3, 1)
    # the first, the look at the clock, one to warm up, the runs
    assert len(toy_kernel.rounds) == 2 + 1 + 3


def test_median_is_unmoved_by_a_disturbance(timed):
    times = iter([1.0, *[0.01] * 39, *[0.5] * 3])
    time, _, high, *_ = timed(lambda rounds: next(times))
    assert time == 1e4
    assert high > time


def test_clock_that_never_advances_ends_the_measurement(timed):
    assert timed(Toy(0.0, first=0.0).run, "--quick")[-1] == 2**20


def test_error_of_the_program_is_raised(timed):
    def broken(rounds):
        raise KeyError(rounds)

    with pytest.raises(AssertionError, match="fault: KeyError"):
        timed(broken)
