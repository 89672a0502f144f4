"""The GPU's way of timing, on a toy library that counts what it is asked to do."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco import DataError
from tco.studies.measure.pytorch import MOST_CALLS, TorchKernels, choose_device, device_name, library_name, load_torch, timed_by_clock
from tests.studies.room import Meter


class Toy:
    """A library whose events read a clock that only calls move, by so many milliseconds each."""

    def __init__(self, milliseconds):
        self.now, self.step, self.captured, self.recording = 0.0, milliseconds, 0, False
        self.cuda = SimpleNamespace(Event=self.event, CUDAGraph=self.graph_of_calls, graph=self.graph, empty_cache=lambda: None)

    def call(self):
        if self.recording:
            self.captured += 1
        else:
            self.now += self.step

    def event(self, enable_timing):
        toy, seen = self, SimpleNamespace(at=0.0)
        seen.record = lambda: setattr(seen, "at", toy.now)
        seen.synchronize = lambda: None
        seen.elapsed_time = lambda other: other.at - seen.at
        return seen

    def graph_of_calls(self):
        return SimpleNamespace(replay=lambda: setattr(self, "now", self.now + self.captured * self.step))

    def graph(self, graph):
        toy = self

        class Capture:
            def __enter__(self):
                toy.recording = True

            def __exit__(self, *reason):
                toy.recording = False

        return Capture()


@pytest.mark.parametrize(("milliseconds", "calls"), [(0.002, MOST_CALLS), (0.1, 10), (40.0, 1)])
def test_a_graph_holds_about_a_millisecond_of_calls(milliseconds, calls):
    toy = Toy(milliseconds)
    operation = TorchKernels(toy, "cuda", Meter("")).captured(toy.call)
    assert operation.held == toy.call  # which holds the operands
    assert operation.calls == toy.captured == pytest.approx(calls, abs=1)
    assert operation.run(3) == pytest.approx(3 * operation.calls * milliseconds / 1e3, rel=1e-9)


def test_calls_are_timed_by_the_clock():
    seen = []
    assert timed_by_clock(lambda: seen.append(1), 5) >= 0
    assert len(seen) == 5


def library(gpus, hip=None):
    cuda = SimpleNamespace(is_available=lambda: gpus > 0, get_device_name=lambda one: "NVIDIA Toy", nccl=SimpleNamespace(version=lambda: (2, 27, 3)))
    return SimpleNamespace(cuda=cuda, version=SimpleNamespace(hip=hip), __version__="2.9")


def test_the_gpu_is_measured_where_there_is_one():
    assert [choose_device(library(gpus), None) for gpus in (0, 1)] == ["cpu", "cuda"]
    assert choose_device(library(1), "cpu") == "cpu"
    assert device_name(library(1), "cuda") == "NVIDIA Toy"


def test_a_gpu_that_is_not_there():
    with pytest.raises(DataError, match="--device cuda: PyTorch finds no GPU"):
        choose_device(library(0), "cuda")


def test_what_moves_the_data_is_named():
    assert library_name(library(8), "cuda") == "NCCL 2.27.3 via PyTorch 2.9"
    assert library_name(library(8, hip="7.0"), "cuda") == "RCCL 2.27.3 via PyTorch 2.9"
    assert library_name(library(0), "cpu") == "gloo via PyTorch 2.9"


def test_a_missing_library_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(DataError, match=r"not installed: pip install 'tco\[measure\]'"):
        load_torch()
