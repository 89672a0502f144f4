"""How many draws of all prices at once a second prices. Run with `--benchmark-only`."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tco.chain.connections import design_network
from tco.chain.inputs import Inputs, load_scenario
from tco.chain.ownership import cost_of, rebates_of
from tco.chain.placement import needs_sidecar
from tco.hardware.bill import bill_of_materials

CHUNK = 8192  # draws at a time: arrays that stay in the cache


def drawn(given):
    """An input as a chunk of draws from its range, or as its number where it has none."""
    if given.low is None or given.low == given.high:
        return given.value
    return np.random.default_rng(0).uniform(given.low, given.high, CHUNK)


def price(inputs, known):
    """The cost of a world in all draws, from the rows up."""
    values = inputs.values(drawn)
    values.update(known)
    bill = bill_of_materials(inputs.system, values, inputs.catalogue)
    cost = cost_of(inputs, values, bill, design_network(inputs, values), rebates_of(inputs, values, bill))
    return cost, values


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("name", ["trn3-nl72x2", "gb200-nvl72"])
def test_draws_of_all_prices(name, benchmark, catalogue):
    """2 M draws a second of CPU time is the mark of a machine at rest."""
    inputs = Inputs(catalogue, load_scenario(catalogue, name), {}, {})
    assert not needs_sidecar(inputs)
    cost, values = price(inputs, {})
    assert cost.per_chip_hour.shape == (CHUNK,)
    known = dict(values)
    benchmark(lambda: price(inputs, known))
    rate = CHUNK / benchmark.stats.stats.min
    benchmark.extra_info["draws_per_second"] = round(rate)
    assert rate >= 1e6
