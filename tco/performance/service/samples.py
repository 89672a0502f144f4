"""Limits of a simulation: requests that are served, requests above a quantile, growing queues.

An engine rejects a request that is longer than the context of its model. A rejected request keeps
no promise. A quantile is measured where some requests lie above it. A wait has a value where the
queue does not grow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tco.core.errors import DataError
from tco.core.types import FloatArray
from tco.performance.service.simulation import Requests
from tco.performance.service.traffic import Promise, Traffic

REQUESTS = 3000  # of a simulation, the first fifth of which is not looked at
STEADY = 0.8  # share that is looked at
LENGTHS = 20_000  # requests, twice, whose lengths say which share is served
ABOVE = 10  # requests above a promised quantile
LARGEST_SIMULATION = 12_500  # requests
PARTS = 8  # of a simulation, whose spread says how sure it is
# a queue grows where the second half waits longer by this share, and by so many standard errors
GROWTH, ERRORS = 0.25, 3.0


def within_context(requests: Requests, context: float) -> Requests:
    """Return the requests whose prompt and answer fit a context, in tokens."""
    fits = requests.prompt + requests.answer <= context
    return requests if fits.all() else Requests(*(column[fits] for column in requests))


def share_served(traffic: Traffic, context: float) -> float:
    """Return the share of the requests that fit a context, in tokens."""
    drawn = traffic.requests(1, "random", LENGTHS, 0, 1.0)
    return sum(len(within_context(part, context).arrived) for part in drawn) / (2 * LENGTHS)


def promises_of_served(
    promises: Sequence[Promise], served_share: float, reason: str
) -> tuple[Promise, ...]:
    """Return promises as quantiles of the requests that are served; rejected ones break them.

    Args:
        promises: Promises to all requests.
        served_share: Share of the requests that are served.
        reason: Which requests are rejected and why, for the text of an error.

    Raises:
        DataError: More requests are rejected than a promise lets pass.

    """
    judged = tuple(
        promise._replace(quantile=promise.quantile / served_share) for promise in promises
    )
    for promise, served in zip(promises, judged, strict=True):
        if served.quantile >= 1:
            raise DataError(
                f"{_name(promise)} cannot be kept: {reason}; expected a percentile below "
                f"p{served_share * 100:.4g}"
            )
    return judged


def simulated_requests(promises: Sequence[Promise]) -> int:
    """Return the requests of a simulation that measures promised quantiles.

    Raises:
        DataError: A quantile needs more requests than are simulated.

    """
    needed = REQUESTS
    for promise in promises:
        # digits beyond the ninth are of the rounding of the quantile
        looked_at = math.ceil(round(ABOVE / (1 - promise.quantile), 6))
        requests = math.ceil(looked_at / STEADY)
        if requests > LARGEST_SIMULATION:
            highest = 100 * (1 - ABOVE / (STEADY * LARGEST_SIMULATION))
            raise DataError(
                f"{_name(promise)} is not measured: it needs {requests:,} simulated requests, "
                f"{ABOVE} of them above it, and at most {LARGEST_SIMULATION:,} are simulated; "
                f"expected p{highest:g} or lower"
            )
        needed = max(needed, requests)
    return needed


def _name(promise: Promise) -> str:
    return f"promise {promise.metric} p{promise.quantile * 100:.12g}"


def quantile_error(times: FloatArray, quantile: float) -> float:
    """Return the standard error of a quantile of simulated times, s.

    The error follows from the quantiles of consecutive parts of the simulation.

    Args:
        times: Times in the order of the simulation, s.
        quantile: Quantile from 0 to 1.

    """
    quantiles = [np.quantile(part, quantile) for part in np.array_split(times, PARTS)]
    return float(np.std(quantiles, ddof=1) / np.sqrt(PARTS))


def is_growing(waits: FloatArray) -> bool:
    """Say whether waits, in the order of the simulation, are longer in its second half."""
    means = np.array([part.mean() for part in np.array_split(waits, PARTS)])
    early, late = np.split(means, 2)
    growth = late.mean() - early.mean()
    error = np.sqrt((early.var(ddof=1) + late.var(ddof=1)) / (PARTS / 2))
    return bool(growth > max(GROWTH * early.mean(), ERRORS * error))
