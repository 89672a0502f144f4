"""Rates of a group's collective algorithms, to find the fastest at many message sizes at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.core.elementwise import as_array, elementwise_minimum
from tco.core.formula import MANY, extent, stack_terms
from tco.fabric import collective_costs as cost
from tco.fabric.collective_times import AlgorithmTiming, GroupLinks
from tco.fabric.collectives import algorithms_for, timings_of_available
from tco.fabric.links import Links


class Paces(NamedTuple):
    """Timing coefficients of a group's collective algorithms for any transfer size.

    Each field has an axis of the algorithms in front of all other axes.
    """

    latency: Any  # s; infinite where a group does not have the algorithm
    per_unit: Any  # s on the wire per byte or token
    chunk: Any  # s per chunk; zero for a transfer in one piece


def evenly(links: Links, operation: str) -> bool:
    """Return whether the time of an operation is a function of latency, wire and chunk alone.

    It is not where the caller of a library adds time, such as the time to stage the data.

    Args:
        links: Links of the chips, with their library.
        operation: Name of the operation.

    """
    return operation not in links.library.called


def paces_of(group_links: GroupLinks, operation: str, least_amount: Any) -> Paces:
    """Return the timing coefficients of the algorithms that a library offers a group.

    An algorithm is left out if another algorithm is faster at every size.

    Args:
        group_links: The group on its links.
        operation: Name of the operation.
        least_amount: Unit of the amount to send: one byte, or `Tokens` with a count of one.

    Returns:
        Latency, wire time of `least_amount` and chunk time, all in s.

    Raises:
        DataError: The operation is unknown.

    """
    algorithms = algorithms_for(group_links, operation, least_amount)
    timings = [*timings_of_available(group_links, operation, algorithms, least_amount).values()]
    axes = extent(seconds for timing in timings for seconds in (timing.time, timing.chunk))[0]
    paces = Paces(
        latency=stack_terms([_latency_or_inf(timing) for timing in timings], axes),
        per_unit=stack_terms([timing.wire for timing in timings], axes),
        chunk=stack_terms([timing.chunk for timing in timings], axes),
    )
    algorithm_indices = undominated_algorithms(paces)
    if len(algorithm_indices) == len(timings):
        return paces
    return Paces(*(field[algorithm_indices] for field in paces))


def _latency_or_inf(timing: AlgorithmTiming) -> Any:
    is_absent = np.isinf(timing.time)
    return np.where(is_absent, np.inf, timing.latency) if np.any(is_absent) else timing.latency


def undominated_algorithms(paces: Paces) -> list[int]:
    """Return the indices of the algorithms that no other algorithm dominates.

    An algorithm dominates another if no coefficient is larger for any group. The first of several
    equal algorithms dominates the rest.
    """
    count = len(paces.latency)
    dominates = np.ones((count, count), dtype=bool)
    for field in paces:
        coefficients = field.reshape(count, -1)
        dominates &= (coefficients[:, None] <= coefficients[None]).all(axis=2)
    is_equal = dominates & dominates.T
    is_not_earlier = np.arange(count)[:, None] >= np.arange(count)
    dominates &= ~(is_equal & is_not_earlier)
    return [int(algorithm_index) for algorithm_index in np.flatnonzero(~dominates.any(axis=0))]


def _with_axes_after_first(field: Any, axes: int) -> Any:
    missing = axes - (field.ndim - 1)
    return field.reshape(len(field), *[1] * missing, *field.shape[1:]) if missing > 0 else field


def shortest_collective_time(paces: Paces, amount: Any) -> Any:
    """Return the time of the fastest algorithm for an amount, s.

    Large arrays are evaluated one algorithm at a time.

    Args:
        paces: Timing coefficients; the first axis of each field holds the algorithms.
        amount: Bytes or tokens to send, a number or an array.

    Returns:
        Seconds, in the broadcast shape of `amount` and of the paces of one algorithm.

    """
    paces = Paces(*(_with_axes_after_first(field, np.ndim(amount)) for field in paces))
    if extent((amount, paces.latency))[1] <= MANY:
        algorithm_times = cost.pipelined_time(paces.latency, paces.per_unit * amount, paces.chunk)
        return np.minimum.reduce(as_array(algorithm_times))
    times = (
        cost.pipelined_time(latency, unit_time * amount, chunk)
        if np.any(chunk)
        else cost.direct_time(latency, unit_time * amount)
        for latency, unit_time, chunk in zip(*paces, strict=True)
    )
    shortest_time = next(times)
    for time in times:
        shortest_time = elementwise_minimum(shortest_time, time)
    return shortest_time
