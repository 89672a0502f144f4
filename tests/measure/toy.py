"""A toy in PyTorch's place, behind `tco measure`."""

from __future__ import annotations

import csv
import sys
from types import SimpleNamespace

from tests.cli import tco

SESSION = "tco.measure.session"


def library(gpus, hip=None):
    """A library with some GPUs."""
    cuda = SimpleNamespace(
        is_available=lambda: gpus > 0,
        device_count=lambda: gpus,
        get_device_name=lambda device_index: "Toy GPU",
    )
    cuda.nccl = SimpleNamespace(version=lambda: (2, 27))
    return SimpleNamespace(cuda=cuda, version=SimpleNamespace(hip=hip), __version__="2.9")


def machine(ready, conditions="toy"):
    """A machine that gets a kernel ready as it is told."""
    return lambda torch, device, meter: SimpleNamespace(ready=ready, conditions=lambda: conditions)


def operation(run, calls=1):
    """Something that takes `run(rounds)` seconds for so many rounds of so many calls."""
    return SimpleNamespace(run=run, calls=calls)


def group(ranks, device, shapes, effort, loud, seconds=lambda shape: 6e-5 + shape.size / 6e10):
    """A group of ranks that takes some seconds for each shape."""
    timed = (
        SimpleNamespace(seconds=seconds(shape), low=6e-5, high=1, runs=5, calls=9)
        for shape in shapes
    )
    return [
        SimpleNamespace(shape=shape, timing=timing, conditions="toy", failure="")
        for shape, timing in zip(shapes, timed, strict=True)
    ]


def measured(monkeypatch, tmp_path, ready, *options, shapes=None, gpus=0, name="H100 SXM"):
    """Return the rows of kernels that `tco measure` writes."""
    monkeypatch.setitem(sys.modules, "torch", library(gpus))
    monkeypatch.setattr(f"{SESSION}.TorchKernels", machine(ready))
    if shapes is not None:
        monkeypatch.setattr(f"{SESSION}.kernels", lambda device, quick: shapes)
    path = tmp_path / "k.csv"
    done = tco("measure", "--name", name, "-o", path, *options)
    assert done.exit_code == 0, done.stderr
    return rows_in(path)


def rows_in(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
