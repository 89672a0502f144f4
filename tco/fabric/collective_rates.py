"""Rates of a group's collective algorithms, to find the fastest at many message sizes at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.core.elementwise import as_array, elementwise_minimum
from tco.core.formula import MANY, extent, stack_terms
from tco.fabric import collective_costs as cost
from tco.fabric.collective_times import GroupLinks
from tco.fabric.collectives import algorithms_for, timings_of_available
from tco.fabric.links import Links


class Paces(NamedTuple):
    """Timing coefficients of a group's collective algorithms for any transfer size.

    Each field has an axis of the algorithms in front of all other axes.
    """

    latency: Any  # without end where a group does not have the algorithm
    per_unit: Any  # on the wire, of one byte or token
    chunk: Any  # zero where the transfer is in one piece


def evenly(links: Links, operation: str) -> bool:
    """Say whether times of an operation grow evenly with the bytes sent.

    Times do not grow evenly where the caller of a library stages the data.

    Args:
        links: Links of the chips, with their library.
        operation: Name of the operation.

    """
    return operation not in links.library.called


def paces_of(group_links: GroupLinks, operation: str, least_amount: Any) -> Paces:
    """Return the paces of the algorithms that a library offers a group.

    An algorithm that another algorithm beats at any size is left out.

    Args:
        group_links: The group on its links.
        operation: Name of the operation.
        least_amount: The least amount to send: a byte, or one of the `Tokens` of a rank.

    Returns:
        Latency and chunk time in s, wire time in s for `least_amount`; the first axis holds the
        algorithms.

    Raises:
        DataError: The operation is unknown.

    """
    timings = list(
        timings_of_available(
            group_links,
            operation,
            algorithms_for(group_links, operation, least_amount),
            least_amount,
        ).values()
    )
    axes = extent(
        timing_value for timing in timings for timing_value in (timing.time, timing.chunk)
    )[0]
    never = [np.isinf(timing.time) for timing in timings]
    latencies = [
        np.where(ends, np.inf, timing.latency) if np.any(ends) else timing.latency
        for ends, timing in zip(never, timings, strict=True)
    ]
    algorithm_paces = Paces(
        *(
            stack_terms(terms, axes)
            for terms in (
                latencies,
                [timing.wire for timing in timings],
                [timing.chunk for timing in timings],
            )
        )
    )
    algorithm_indices = undominated_algorithms(algorithm_paces)
    return (
        Paces(*(field[algorithm_indices] for field in algorithm_paces))
        if len(algorithm_indices) < len(timings)
        else algorithm_paces
    )


def undominated_algorithms(paces: Paces) -> list[int]:
    """Return the indices of the algorithms that no other beats in every term, for every group."""
    count = len(paces.latency)
    beats = np.ones((count, count), dtype=bool)
    for field in paces:
        flat = field.reshape(count, -1)
        beats &= (flat[:, None] <= flat[None]).all(axis=2)
    equal = beats & beats.T
    # of equals the first one stays
    beats &= ~(equal & (np.arange(count)[:, None] >= np.arange(count)))
    return [int(algorithm_index) for algorithm_index in np.flatnonzero(~beats.any(axis=0))]


def _in_front(field: Any, axes: int) -> Any:
    missing = axes - (field.ndim - 1)
    return field.reshape(len(field), *[1] * missing, *field.shape[1:]) if missing > 0 else field


def shortest_collective_time(paces: Paces, amount: Any) -> Any:
    """Return the time of the quickest algorithm for an amount, s.

    Large arrays are evaluated algorithm by algorithm.

    Args:
        paces: Timing coefficients; the first axis of each field holds the algorithms.
        amount: Bytes or tokens to send, a number or an array.

    Returns:
        Seconds, in the broadcast shape of `amount` and of the paces of one algorithm.

    """
    paces = Paces(*(_in_front(field, np.ndim(amount)) for field in paces))
    if extent((amount, paces.latency))[1] <= MANY:
        algorithm_times = cost.pipelined_time(paces.latency, paces.per_unit * amount, paces.chunk)
        return np.minimum.reduce(as_array(algorithm_times))
    times = (
        cost.pipelined_time(latency, unit_time * amount, chunk)
        if np.any(chunk)
        else cost.direct_time(latency, unit_time * amount)
        for latency, unit_time, chunk in zip(*paces, strict=True)
    )
    least = next(times)
    for time in times:
        least = elementwise_minimum(least, time)
    return least
