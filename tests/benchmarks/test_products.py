"""Time of a product on arrays of plans and batches; a pass of serving computes a dozen.

Run with `--benchmark-only`.
"""

from __future__ import annotations

import numpy as np
import pytest

from tco import load_catalogue
from tests.performance.servers import chip_on, computed_on, operands, product
from tests.scenario_helpers import plain_values


def made(chip):
    catalogue = load_catalogue()
    values = plain_values()
    return operands(chip_on(catalogue, values, chip), computed_on(values, chip, "fp8", "precision"))


@pytest.mark.parametrize(
    ("shape", "most"), [((), 0.2e-3), ((36, 30), 0.6e-3), ((100, 1000), 60e-3)], ids=str
)
@pytest.mark.parametrize("chip", ["gb200-gpu", "trn3"])
@pytest.mark.parametrize("groups", [None, 8.0], ids=["dense", "grouped"])
def test_a_product(benchmark, chip, shape, most, groups):
    rests, generator = made(chip), np.random.default_rng(3)
    rows = generator.uniform(1, 4096, shape) if shape else 300.0
    columns = generator.uniform(64, 8192, (shape[0], 1)) if shape else 4096.0
    benchmark.pedantic(product, (rests, rows, columns, 7168.0, groups), rounds=10, warmup_rounds=1)
    assert benchmark.stats.stats.min <= most
