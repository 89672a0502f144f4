"""Engines with requests in flight, many plans at once: each gets what it gets alone."""

from __future__ import annotations

import numpy as np
import pytest

from tco.performance.serving.loaded import under_load
from tco.performance.serving.plans import PrefillPlan, ServingPlan, decoding, plan_axes
from tests.performance.servers import server


@pytest.mark.parametrize("name", ["gb200-nvl72", "trn3-nl32x2"])
def test_plans_of_one_split_run_batches_of_their_own(name):
    """Plans that split attention alike but span more chips hold other batches of the requests in flight."""
    made = server(name, workload__concurrency="512")
    machine, model, request = made.machine, made.model, made.request
    axes = plan_axes(model, machine.links, 0)

    def rates(plan):
        engines = ServingPlan(decoding(plan, 1.0), plan, np.maximum(machine.links.world / plan.chips, 1))
        return under_load(machine, model, engines, request, machine.values).rates["output_tokens_per_s_per_chip"]

    many = np.broadcast_to(rates(axes), axes.chips.shape)
    for row, found in enumerate(many[:, 0]):
        assert found == pytest.approx(rates(PrefillPlan(*(float(axis[row, 0]) for axis in axes))), rel=1e-12), row
