"""Published limits of parallel training, by roots of gather, exchange and compute times.

A block of two matrices over chips that share out the batch (FSDP ways) and each matrix (tensor
parallelism). Rings are taken as long, so that a gather moves the whole buffer, and weights travel
over two axes of a torus, activations over one, as the source has it.
"""

from __future__ import annotations

import json
import math

import pytest
from scipy.optimize import brentq

from tests.catalogue import FeedForward
from tests.registry import FORMULA, read_rows

ROWS = {row["id"]: row for row in read_rows("limits.csv")}
HIDDEN, AXIS, SIZE = 8192, 1e11, 2  # whatever width and link: both cancel; BF16


def block(width: float) -> float:
    return FeedForward(width, 2).parameters(HIDDEN)


def gathering(chips: float, width: float, fsdp_ways: float) -> float:
    """Time to gather a chip's part of the weights over its FSDP ways."""
    weights = FORMULA.sharded_bytes(block(width), SIZE, FORMULA.per_rank(chips, fsdp_ways), 1)
    return FORMULA.wire_time(weights, FORMULA.lanes_rate(2, AXIS), 0, 1)


def exchanging(batch: float, fsdp_ways: float) -> float:
    """Time to gather and to scatter the activations of a way's part of the batch."""
    return FORMULA.repeated(
        FORMULA.wire_time(
            FORMULA.message_bytes(FORMULA.per_rank(batch, fsdp_ways), HIDDEN, SIZE), AXIS, 0, 1
        ),
        2,
    )


def computing(batch: float, chips: float, width: float, peak: float) -> float:
    """Time of the block's products."""
    return FORMULA.computing_time(FORMULA.passing_flops(block(width), batch), chips * peak)


def best_ways(batch: float, chips: float, width: float) -> float:
    """Return the FSDP ways at which weights and activations take equally long."""
    return brentq(
        lambda fsdp_ways: gathering(chips, width, fsdp_ways) - exchanging(batch, fsdp_ways),
        1,
        chips,
    )


def communicating(batch: float, chips: float, width: float, fsdp_ways: float) -> float:
    return gathering(chips, width, fsdp_ways) + exchanging(batch, fsdp_ways)


def expected(name: str):
    row = ROWS[name]
    return json.loads(row["inputs"]), pytest.approx(
        float(row["expected"]), rel=float(row["tolerance"])
    )


def test_best_fsdp_ways():
    """Least traffic is where both kinds of it take equally long: X = sqrt(2 B N / F)."""
    published_inputs, published = expected("ROO012")
    job = published_inputs["B"], published_inputs["N"], published_inputs["F"]
    fsdp_ways = best_ways(*job)
    assert fsdp_ways == published
    least = communicating(*job, fsdp_ways)
    assert all(least < communicating(*job, fsdp_ways * factor) for factor in (0.5, 0.99, 1.01, 2))


@pytest.mark.parametrize("chips", [512, 4096])
def test_least_batch_per_chip_of_fsdp_with_tensor_parallelism(chips):
    """Below B / N = 2 a^2 / F no mix of ways computes for as long as it communicates.

    a is FLOPs per byte of a link.
    """
    published_inputs, published = expected("ROO013")
    width, peak = published_inputs["F"], published_inputs["a"] * AXIS
    assert FORMULA.machine_balance(peak, AXIS) == published_inputs["a"]

    def spare(log_batch: float) -> float:
        batch = chips * math.exp(log_batch)
        return computing(batch, chips, width, peak) - communicating(
            batch, chips, width, best_ways(batch, chips, width)
        )

    assert math.exp(brentq(spare, math.log(50), math.log(1000))) == published
