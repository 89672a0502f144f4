"""The algorithms of a collective: the buffer with which each reaches half of its rate."""

from __future__ import annotations

import pytest

from tco.fabric.collectives import VAST, half_rate
from tests.fabric_helpers import OPERATIONS, rank_group, timings
from tests.scenario_helpers import links_of, system_of

SYSTEMS = ["h100-hgx8", "gb200-nvl72", "trn2-nl32x2-3d", "trn3-nl72x2", "mi300x-8", "tpuv7-cube64"]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_half_of_the_rate_is_reached_at_the_size_said(system, operation):
    links, ranks = links_of(system), int(system_of(system).system.chips)
    for name, vast in timings(links, operation, ranks, VAST).items():
        size = half_rate(links, operation, rank_group(links, ranks), name)
        assert size / timings(links, operation, ranks, size)[name].time == pytest.approx(
            VAST / vast.time / 2, rel=1e-3
        )
