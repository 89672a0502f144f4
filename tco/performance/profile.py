"""Time of a phase by operator, with the bound that limits each and that bound's least time.

A phase is anything with a `time`, `lines` and the `shares` of its bounds; commands and tables need
no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tco.core.types import JsonObject

if TYPE_CHECKING:
    from tco.performance.layer.operators import Operator

BOUNDS_OF_A_PASS = ("compute", "memory", "link", "latency")
# the last two: launches of the host, and idle pipeline stages
BOUNDS = (
    *BOUNDS_OF_A_PASS,
    "host",
    "bubble",
)
COUNTS = ("ideal", "flops", "bytes", "launches")


class TimedPass(Protocol):
    """A pass with its time in seconds and the operators it consists of."""

    @property
    def time(self) -> Any:
        """Time of the pass in seconds."""

    @property
    def operators(self) -> Sequence[Operator]:
        """Operators of the pass."""


@dataclass(slots=True)
class OperatorProfile:
    """An operator of a phase: its time, its bound, and the bound's least time at its peak."""

    name: str
    time: float
    bound: str
    ideal: float | None = None
    flops: float | None = None
    bytes: float | None = None  # through memory, or handed to a collective
    launches: float | None = None

    @property
    def of_bound(self) -> float | None:
        """Share of the bound that is reached: 1 leaves nothing to gain."""
        return None if self.ideal is None or not self.time else self.ideal / self.time


def _bound_of(operator: Operator) -> str:
    """Return the bound of an operator's time: compute, memory, link or latency.

    Compute stands for its FLOPs, memory for its bytes. Latency is the time before either starts.
    """
    size = float(operator.bytes)
    moving = size / float(operator.bandwidth)
    if operator.link:
        return "link" if moving > float(operator.latency) else "latency"
    computing = float(operator.flops) / float(operator.compute_rate)
    if max(computing, moving) < float(operator.latency):
        return "latency"
    return "compute" if computing >= moving else "memory"


def time_by_bound(pass_result: TimedPass) -> dict[str, float]:
    """Return the share of a pass's time by bound; time outside operators counts as latency."""
    pass_time = float(pass_result.time)
    shares = dict.fromkeys(BOUNDS_OF_A_PASS, 0.0)
    for operator in pass_result.operators:
        shares[_bound_of(operator)] += float(operator.time) / pass_time
    shares["latency"] += max(0.0, 1 - sum(shares.values()))
    return shares


def profile_lines(phase: TimedPass) -> list[OperatorProfile]:
    """Return a pass's time by operator name; time outside operators belongs to the host."""
    lines = []
    for operator in phase.operators:
        if not float(operator.time):  # a collective of one chip
            continue
        bound = _bound_of(operator)
        # a link moves another number of bytes than its buffer holds, and latency has no peak
        ideal = None
        if bound == "compute":
            ideal = float(operator.flops) / float(operator.compute_rate)
        elif bound == "memory":
            ideal = float(operator.bytes) / float(operator.bandwidth)
        layers = float(operator.layers)
        counts = [
            None if amount_per_layer is None else float(amount_per_layer) * layers
            for amount_per_layer in (ideal, operator.flops, operator.bytes, operator.kernels)
        ]
        lines.append(OperatorProfile(operator.name, float(operator.time), bound, *counts))
    lines = joined_lines(lines)
    rest = float(phase.time) - sum(line.time for line in lines)
    if rest > 1e-9 * float(phase.time):
        lines.append(OperatorProfile("host and scheduling", rest, "host"))
    return lines


def joined_lines(lines: Iterable[OperatorProfile]) -> list[OperatorProfile]:
    """Return lines with those of one name added up, in the order of their first."""
    sums: dict[str, OperatorProfile] = {}
    for line in lines:
        first = sums.setdefault(line.name, line)
        if first is line:
            continue
        first.time += line.time
        for count_name in COUNTS:
            before, more = getattr(first, count_name), getattr(line, count_name)
            setattr(first, count_name, None if before is None or more is None else before + more)
    return list(sums.values())


class Report(NamedTuple):
    """Workload plan in names and numbers, with search, runner-up, memory and phases."""

    plan: JsonObject
    search: JsonObject
    runner_up: JsonObject | None
    margin: float | None  # how far the runner-up lies behind
    memory: dict[str, float]
    phases: JsonObject  # with the `lines` and the `shares` of each
