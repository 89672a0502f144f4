"""Cost rises or falls steadily over the whole range of an input."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenario_helpers import HEADLINE, again, result

HOUR, USED = "tco_usd_per_chip_hour", "tco_usd_per_used_chip_hour"
RISING = [  # path, unit, smallest, largest, metric
    ("terms.rate", "", 0.0, 0.4, HOUR),
    ("terms.maintenance", "", 0.0, 0.2, HOUR),
    ("site.pue", "", 1.0, 2.5, HOUR),
    ("site.electricity_price", "USD/kWh", 0.01, 1.0, HOUR),
    ("site.usd_per_mw", "MUSD/MW", 1.0, 40.0, HOUR),
    ("site.load_factor", "", 0.1, 1.0, HOUR),
    ("cluster.storage_share", "", 0.0, 0.3, HOUR),
]
FALLING = [
    ("terms.life", "year", 1.0, 12.0, HOUR),
    ("terms.life_building", "year", 8.0, 40.0, HOUR),
    ("terms.life_network", "year", 1.0, 12.0, HOUR),
    ("terms.residual", "", 0.0, 0.5, HOUR),
    ("terms.utilisation", "", 0.1, 1.0, USED),
    ("terms.availability", "", 0.5, 1.0, USED),
]


def cost(path, unit, value, metric):
    return again("trn3-nl72x2", **{path.replace(".", "__"): f"{value!r} {unit}"}).metrics[metric]


def pair(low, high):
    """Two values of the range, the second larger by at least a hundredth of the range."""
    return st.tuples(st.floats(0, 0.99), st.floats(0.01, 1)).map(
        lambda x: (low + x[0] * (high - low), low + min(x[0] + x[1], 1) * (high - low))
    )


@pytest.mark.parametrize(
    ("path", "unit", "low", "high", "metric"), RISING, ids=[row[0] for row in RISING]
)
def test_cost_rises_with_the_input(path, unit, low, high, metric):
    @settings(max_examples=25)
    @given(pair(low, high))
    def rises(values):
        less, more = values
        assert cost(path, unit, more, metric) > cost(path, unit, less, metric)

    rises()


@pytest.mark.parametrize(
    ("path", "unit", "low", "high", "metric"), FALLING, ids=[row[0] for row in FALLING]
)
def test_cost_falls_with_the_input(path, unit, low, high, metric):
    @settings(max_examples=25)
    @given(pair(low, high))
    def falls(values):
        less, more = values
        assert cost(path, unit, more, metric) < cost(path, unit, less, metric)

    falls()


@pytest.mark.parametrize("name", HEADLINE)
@pytest.mark.parametrize("part", ["price", "own_price"])
def test_no_part_gets_cheaper_by_costing_more(name, part):
    """A tenth more on any single price of the bill raises the cost, by no more than a tenth."""
    base = result(name)
    paths = [
        path
        for path in base.inputs
        if path.startswith("parts.") and path.endswith(f".{part}") and base.inputs[path].value > 0
    ]
    assert paths or part == "own_price"
    for path in paths:
        given_ = base.inputs[path]
        more = again(
            name, **{path.replace(".", "__"): f"{given_.value * 1.1!r} {given_.unit}"}
        ).metrics["tco_gross_usd_per_chip_hour"]
        assert 1 < more / base.metrics["tco_gross_usd_per_chip_hour"] <= 1.1, path


@pytest.mark.parametrize("name", HEADLINE)
def test_a_dearer_share_gives_more_back(name):
    base = result(name)
    for path in [path for path in base.inputs if path.startswith("shares.")]:
        dearer = again(
            name, **{path.replace(".", "__"): f"{base.inputs[path].value * 2!r} USD/share"}
        )
        assert dearer.metrics["rebate_usd_per_chip"] >= base.metrics["rebate_usd_per_chip"]
        assert (
            dearer.metrics["tco_gross_usd_per_chip_hour"]
            == base.metrics["tco_gross_usd_per_chip_hour"]
        )


@pytest.mark.parametrize("name", HEADLINE)
@pytest.mark.parametrize("attribute", ["hbm_bandwidth", "peak_fp8", "peak_bf16"])
def test_faster_hardware_is_never_slower(name, attribute, catalogue):
    """On the same plan, and a fortiori on the best one."""
    base = result(name)
    chip = next(path.split(".")[1] for path in base.inputs if path.endswith(".hbm_bandwidth"))
    path = f"parts.{chip}.{attribute}"
    given_ = base.inputs[path]
    faster = again(name, **{path.replace(".", "__"): f"{given_.value * 1.5!r} {given_.unit}"})
    assert faster.metrics["output_tokens_per_s_per_chip"] >= base.metrics[
        "output_tokens_per_s_per_chip"
    ] * (1 - 1e-12)
