"""Threads that record or read a shared catalogue at the same time do not disturb each other."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tco import evaluate, load_catalogue
from tests.registry import FORMULA
from tests.scenario_helpers import nodes_below, recording

THREADS = 8
# thousands of plans, not a million
FEW_CHIPS = {
    "workload.model": "megatron-gpt-7.5b",
    "cluster.chips": "8",
    "workload.global_batch": "8",
}
NAMES: dict[str, dict[str, str]] = {
    "trn3-nl72x2": {},
    "gb200-nvl72": {},
    "train-gpt3-175b-a100x64": FEW_CHIPS,
}


@pytest.fixture
def hurried() -> Iterator[None]:
    """Switch threads as often as the interpreter allows."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


def graph(node):
    """Return the nodes of a graph in order, with their paths, values and inputs, each node once."""
    return [
        (n.id, n.name, n.value, n.unit, n.path, [name for name, _ in n.inputs])
        for n in nodes_below(node)
    ]


def answer(name, trace, catalogue):
    """Return the parts of a result that two evaluations must agree on to the last bit."""
    result = evaluate(name, NAMES[name], catalogue=catalogue, trace=trace)
    return (
        result.metrics,
        result.notes,
        [(line.path, line.usd_per_chip_hour, line.kind) for line in result.lines],
        sorted(result.inputs),
        {metric: graph(node) for metric, node in result.nodes.items()},
    )


@pytest.mark.thorough
def test_eight_threads_give_the_answer_of_one(hurried):
    names = tuple(NAMES)
    jobs = [(names[i % len(names)], i % 2 == 0) for i in range(4 * THREADS)]
    single_answers = {job: answer(*job, load_catalogue()) for job in set(jobs)}
    # all begin to fill an empty catalogue at the same moment
    shared, start = (
        load_catalogue(),
        Barrier(THREADS),
    )

    def of_thread(number):
        start.wait()
        return [(job, answer(*job, shared)) for job in jobs[number::THREADS]]

    with ThreadPoolExecutor(THREADS) as pool:
        for job, thread_answer in (
            pair
            for thread_answers in pool.map(of_thread, range(THREADS))
            for pair in thread_answers
        ):
            assert thread_answer == single_answers[job], job


def test_a_recording_is_of_its_thread_alone():
    with ThreadPoolExecutor(1) as pool, recording():
        assert pool.submit(FORMULA.extended_price, 3.0, 2).result() == 6.0
        assert FORMULA.extended_price(3.0, 2).value == 6.0


@pytest.mark.parametrize("name", NAMES)
def test_a_traced_result_pickles(name):
    traced_result = evaluate(name, NAMES[name], catalogue=load_catalogue(), trace=True)
    again = pickle.loads(pickle.dumps(traced_result))
    for part in (
        "scenario",
        "metrics",
        "notes",
        "lines",
        "bill",
        "rebates",
        "inputs",
        "texts",
        "shares",
        "bounds",
        "standing",
    ):
        assert getattr(again, part) == getattr(traced_result, part), part
    assert {metric: graph(node) for metric, node in again.nodes.items()} == {
        metric: graph(node) for metric, node in traced_result.nodes.items()
    }
    for traced_node, unpickled_node in zip(
        nodes_below(traced_result.nodes["tco_usd_per_chip_hour"]),
        nodes_below(again.nodes["tco_usd_per_chip_hour"]),
        strict=True,
    ):
        assert traced_node.formula is unpickled_node.formula
