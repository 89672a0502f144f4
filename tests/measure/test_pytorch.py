"""The GPU's way of timing, on a toy library that counts what it is asked to do."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco.measure.pytorch import Meter, TorchKernels


class Toy:
    """A library whose events read a clock that only calls move, by so many milliseconds each."""

    def __init__(self, milliseconds):
        self.now, self.step, self.captured, self.recording = 0.0, milliseconds, 0, False
        self.cuda = SimpleNamespace(
            Event=self.event,
            CUDAGraph=self.graph_of_calls,
            graph=self.graph,
            empty_cache=lambda: None,
        )

    def call(self):
        if self.recording:
            self.captured += 1
        else:
            self.now += self.step

    def event(self, enable_timing):
        toy, event = self, SimpleNamespace(at=0.0)
        event.record = lambda: setattr(event, "at", toy.now)
        event.synchronize = lambda: None
        event.elapsed_time = lambda end_event: end_event.at - event.at
        return event

    def graph_of_calls(self):
        return SimpleNamespace(
            replay=lambda: setattr(self, "now", self.now + self.captured * self.step)
        )

    def graph(self, graph):
        toy = self

        class Capture:
            def __enter__(self):
                toy.recording = True

            def __exit__(self, *reason):
                toy.recording = False

        return Capture()


@pytest.mark.parametrize(("milliseconds", "calls"), [(0.002, 64), (0.1, 10), (40.0, 1)])
def test_a_graph_holds_about_a_millisecond_of_calls(milliseconds, calls):
    toy = Toy(milliseconds)
    operation = TorchKernels(toy, "cuda", Meter("")).captured(toy.call)
    assert operation.operands == toy.call  # which holds the operands
    assert operation.calls == toy.captured == pytest.approx(calls, abs=1)
    assert operation.run(3) == pytest.approx(3 * operation.calls * milliseconds / 1e3, rel=1e-9)
