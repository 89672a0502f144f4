"""Collectives among the devices of one machine: a process for each rank, NCCL between GPUs, gloo between processes of a CPU.

Every rank takes the slowest rank's time as its own, so all of them decide alike how often to call and when to stop.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from tco.foundation.errors import DataError
from tco.foundation.streams import tell
from tco.studies.measure.machine import Meter
from tco.studies.measure.pytorch import load_torch, number_format
from tco.studies.measure.run import Effort, Operation, Outcome, Timing, measure
from tco.studies.measure.sweeps import Collective

PATIENCE = timedelta(seconds=120)  # a rank that waits longer for the others gives up
RESULTS, MEETING = "results.json", "meeting"


@dataclass(slots=True)
class TorchCollectives:
    """Backend of one rank."""

    torch: Any
    device: str
    meter: Meter

    def conditions(self) -> str:
        """Return clock and power of the first GPU, or the threads of a process."""
        return self.meter.conditions() if self.device == "cuda" else f"threads a rank: {self.torch.get_num_threads()}"

    def ready(self, collective: Collective) -> Operation:
        """Return the collective; every rank must have room for it, or none starts."""
        try:
            call, reason = self.call(collective), ""
        except RuntimeError as error:
            call, reason = None, str(error)
        if self.slowest(0.0 if call else 1.0) or call is None:
            raise RuntimeError(reason or "another rank has no room for it")
        return Operation(lambda rounds: self.seconds(call, rounds))

    def call(self, collective: Collective) -> Callable[[], Any]:
        """Return a function that starts the collective once."""
        torch, group = self.torch, self.torch.distributed
        dtype = number_format(torch, collective.dtype)
        whole, other = (torch.zeros(collective.numbers, dtype=dtype, device=self.device) for _ in range(2))
        share = other[: collective.numbers // collective.ranks]
        gather = getattr(group, "all_gather_single", None) or group.all_gather_into_tensor  # the name of older releases
        scatter = getattr(group, "reduce_scatter_single", None) or group.reduce_scatter_tensor
        return {
            "all_reduce": lambda: group.all_reduce(whole),
            "all_gather": lambda: gather(whole, share),
            "reduce_scatter": lambda: scatter(share, whole),
            "alltoall": lambda: group.all_to_all_single(other, whole),
        }[collective.op]

    def seconds(self, call: Callable[[], Any], rounds: int) -> float:
        """Return the seconds the slowest rank needs for some calls that all begin together."""
        self.slowest(0.0)  # nobody leaves before all have come
        begin = time.perf_counter()
        for _ in range(rounds):
            call()
        self.wait()
        return self.slowest(time.perf_counter() - begin)

    def wait(self) -> None:
        """Wait until the device has done what was started."""
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def slowest(self, value: float) -> float:
        """Return the largest value of all ranks."""
        held = self.torch.tensor([value], dtype=self.torch.float64, device=self.device)
        self.torch.distributed.all_reduce(held, op=self.torch.distributed.ReduceOp.MAX)
        return float(held.item())


def rank_of_group(rank: int, ranks: int, device: str, shapes: Sequence[Collective], effort: Effort, folder: str, loud: bool) -> None:
    """Run one rank through a sweep; the first writes what all of them found."""
    torch = load_torch()
    if device == "cuda":
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
        if sys.platform == "linux":
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # the ranks share a machine, whatever its host name resolves to
    group, first = torch.distributed, rank == 0  # the first rank speaks, reads the meter and writes
    group.init_process_group(
        "nccl" if device == "cuda" else "gloo", init_method=f"file://{folder}/{MEETING}", rank=rank, world_size=ranks, timeout=PATIENCE
    )
    found = []
    with Meter(device if first else "") as meter:
        for outcome in measure(TorchCollectives(torch, device, meter), shapes, effort):
            found.append((outcome.timing, outcome.conditions, outcome.failure))
            if first and loud:
                tell(f"{len(found)}/{len(shapes)} {outcome.shape}")
    group.destroy_process_group()
    if first:
        (Path(folder) / RESULTS).write_text(json.dumps(found), encoding="utf-8")


def measure_group(ranks: int, device: str, shapes: Sequence[Collective], effort: Effort, loud: bool) -> list[Outcome[Collective]]:
    """Return the outcomes of a sweep over some ranks; a group that breaks raises `DataError`."""
    torch = load_torch()
    with tempfile.TemporaryDirectory() as folder:
        try:
            torch.multiprocessing.spawn(rank_of_group, (ranks, device, shapes, effort, folder, loud), nprocs=ranks)
        except Exception as error:  # the library wraps whatever a rank ran into
            last = str(error).strip().splitlines()
            raise DataError(f"the group of {ranks} ranks broke: {last[-1] if last else type(error).__name__}") from None
        found = json.loads((Path(folder) / RESULTS).read_text(encoding="utf-8"))
    return [
        Outcome(shape, Timing(*timing) if timing else None, conditions, failure)
        for shape, (timing, conditions, failure) in zip(shapes, found, strict=True)
    ]


def library_name(torch: Any, device: str) -> str:
    """Return what moves the data, and that PyTorch launches it."""
    if device == "cpu":
        moves = "gloo"
    else:
        version = ".".join(str(part) for part in torch.cuda.nccl.version())
        moves = f"{'RCCL' if torch.version.hip else 'NCCL'} {version}"
    return f"{moves} via PyTorch {torch.__version__}"
