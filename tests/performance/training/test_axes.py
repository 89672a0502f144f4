"""Axes of a training plan on the fabric, against counts by hand."""

from __future__ import annotations

import pytest

from tco import evaluate
from tests.catalogue import CATALOGUE
from tests.performance.training.jobs import whole_plan


def test_axes_of_a_plan_by_hand():
    """Axes of GPT-3 on 64 A100 in servers of eight are those counted by hand.

    Tensor 4 and data 2 lie in a server, eight stages over eight servers; there are 384
    micro-batches of 2.
    """
    plan = whole_plan((4, 1, 8, 2, 1, 0, 2, 1), "1f1b")._replace(
        recompute="selective", zero=1, sequence_parallel=1
    )
    axes = {
        axis.name: axis
        for axis in evaluate("train-gpt3-175b-a100x64", plan=plan, catalogue=CATALOGUE).axes
    }
    assert {name: (axis.ranks, axis.domains, axis.hops) for name, axis in axes.items()} == {
        "tensor": (4, 1, 1.0),
        "pipeline": (8, 8, None),
        "data": (2, 1, 1.0),
    }
    hidden = 2 * 2048 * 12288 * 2  # bytes of the hidden states of a micro-batch
    # 12 layers, four collectives a part both ways
    assert axes["tensor"].bytes == pytest.approx(384 * 12 * 8 * hidden, rel=1e-12)
    assert axes["pipeline"].bytes == pytest.approx(384 * 2 * hidden / 4, rel=1e-12)
    assert sum(axis.time_s for axis in axes.values()) > 0
