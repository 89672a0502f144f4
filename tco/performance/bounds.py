"""Which bound binds: how the time of a pass divides into compute, memory, link and latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tco.performance.serving.operators import Operator
    from tco.performance.serving.phases import PassResult

BOUNDS = ("compute", "memory", "link", "latency")


def bound_of(operator: Operator) -> str:
    """Return what takes most of one operator's time: its FLOPs, its bytes, its link, or the latency before either."""
    size = float(operator.bytes)
    moving = size / float(operator.bandwidth)
    if operator.link:
        return "link" if moving > float(operator.latency) else "latency"
    computing = computing_time(operator)
    if max(computing, moving) < float(operator.latency):
        return "latency"
    return "compute" if computing >= moving else "memory"


def computing_time(operator: Operator) -> float:
    """Return the time of one layer on the matrix units, or on the engines beside them if they take longer."""
    computing = float(operator.flops) / float(operator.compute_rate)
    return computing if operator.beside is None else max(computing, float(operator.beside))


def time_by_bound(result: PassResult) -> dict[str, float]:
    """Return the share of a pass's time by bound; what no operator takes (host, scheduling) counts as latency."""
    whole = float(result.time)
    shares = dict.fromkeys(BOUNDS, 0.0)
    for operator in result.operators:
        shares[bound_of(operator)] += float(operator.time) / whole
    shares["latency"] += max(0.0, 1 - sum(shares.values()))
    return shares
