"""The algorithms of a collective: the buffer with which each reaches half of its rate."""

from __future__ import annotations

import pytest

from tco.chain.connections import links_of_system
from tco.chain.inputs import system_inputs
from tco.fabric.algorithms import OPERATIONS, VAST, candidates, half_rate
from tco.fabric.links import group_of

SYSTEMS = ["h100-hgx8", "gb200-nvl72", "trn2-nl32x2-3d", "trn3-nl72x2", "mi300x-8", "tpuv7-cube64"]


def read(catalogue, name: str):
    inputs = system_inputs(catalogue, name, {}, {})
    return links_of_system(inputs, inputs.values()), int(inputs.system.chips)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_half_of_the_rate_is_reached_at_the_size_said(catalogue, system, operation):
    links, ranks = read(catalogue, system)
    for name, vast in candidates(links, operation, ranks, VAST).items():
        size = half_rate(links, operation, group_of(links, ranks), name)
        assert size / candidates(links, operation, ranks, size)[name] == pytest.approx(VAST / vast / 2, rel=1e-3)
