"""Two inputs moved together: a cell is what the scenario comes to there, whichever way it is
asked.
"""

from __future__ import annotations

import numpy as np
import pytest

import tco
from tco import DataError, UsageError
from tco.comparison.maps import field_of
from tests.catalogue import CATALOGUE

COST, HOUR = "usd_per_million_output_tokens", "tco_usd_per_chip_hour"
ELECTRICITY, SPEED, GPU = (
    "site.electricity_price",
    "workload.interactivity",
    "parts.gb200-gpu.price",
)


@pytest.mark.parametrize(
    ("metric", "least", "most"), [(HOUR, 1 - 1e-9, 1 + 1e-9), (COST, 0.7, 1 + 2e-3)]
)  # a batch is solved, not one of a grid
def test_a_cell_is_the_answer_of_the_scenario_there(metric, least, most):
    found = field_of(
        ["gb200-nvl72", "trn3-nl72x2"],
        [ELECTRICITY, SPEED],
        metric,
        set={"workload.draft_tokens": "0"},
        steps=3,
    )
    every = found.values
    for at, name in enumerate(("gb200-nvl72", "trn3-nl72x2")):
        for y, speed in enumerate(found.y.values):
            for x, price in enumerate(found.x.values):
                asked = {
                    "workload.draft_tokens": "0",
                    ELECTRICITY: f"{price!r} {found.x.unit}",
                    SPEED: f"{speed!r} {found.y.unit}",
                }
                alone = tco.evaluate(name, asked, catalogue=CATALOGUE).metrics[metric]
                if alone is None:
                    assert np.isnan(every[at, y, x])
                else:
                    assert least < every[at, y, x] / alone < most
    beyond = np.isnan(every[1, 2]).all()  # three times the interactivity is more than that rack can
    assert beyond == (metric == COST)
    assert np.isfinite(every[0]).all()


def test_an_input_that_a_scenario_does_not_rest_on_leaves_it_as_it_is():
    found = field_of(
        ["gb200-nvl72", "trn3-nl72x2"],
        [GPU, ELECTRICITY],
        HOUR,
        [("20000 USD", "40000 USD"), (None, None)],
        steps=3,
    )
    own, other = found.values
    assert np.allclose(other, other[:, :1])
    assert (np.diff(own, axis=1) > 0).all()
    assert (np.diff(other, axis=0) > 0).all()
    still = field_of(
        ["gb200-nvl72", "trn3-nl72x2"], [GPU, "parts.nvlink-cable.price"], HOUR, steps=2
    )
    assert (still.values[1] == tco.evaluate("trn3-nl72x2", catalogue=CATALOGUE).metrics[HOUR]).all()


def test_values_are_even_in_ratio_around_today_and_within_the_bounds_of_the_input():
    found = field_of(["gb200-nvl72"], ["terms.utilisation", ELECTRICITY], HOUR, steps=5)
    assert found.x.values[-1] == 1  # not three times 0.8
    assert np.allclose(np.diff(np.log(found.y.values)), np.log(9) / 4)
    assert found.y.values[2] == pytest.approx(found.y.today)


def test_from_nought_values_are_even_in_difference():
    found = field_of(
        ["gb200-nvl72"],
        [ELECTRICITY, "terms.rate"],
        HOUR,
        [("0 USD/kWh", "0.2 USD/kWh"), (None, None)],
        steps=3,
    )
    assert found.x.values == pytest.approx([0, 0.1, 0.2])


@pytest.mark.parametrize(
    ("vary", "metric", "ends", "kind", "said"),
    [
        ([ELECTRICITY], HOUR, [(None, None)], UsageError, "two inputs"),
        ([ELECTRICITY, ELECTRICITY], HOUR, [(None, None)] * 2, UsageError, "two inputs"),
        ([ELECTRICITY, "terms.lief"], HOUR, [(None, None)] * 2, DataError, "terms.life"),
        ([ELECTRICITY, "workload.model"], HOUR, [(None, None)] * 2, DataError, "is a text"),
        ([ELECTRICITY, "terms.life"], "cost", [(None, None)] * 2, DataError, "metric"),
        (
            [ELECTRICITY, "terms.life"],
            "step_s",
            [(None, None)] * 2,
            DataError,
            "step_s has no value",
        ),
        (
            [ELECTRICITY, "terms.life"],
            HOUR,
            [("0.2 USD/kWh", "0.1 USD/kWh"), (None, None)],
            UsageError,
            "reversed",
        ),
        (
            [ELECTRICITY, "terms.life"],
            HOUR,
            [("0.1", None), (None, None)],
            DataError,
            "such as '0.1 USD/kWh'",
        ),
        (
            [ELECTRICITY, "terms.utilisation"],
            HOUR,
            [(None, None), ("0.5", "1.5")],
            DataError,
            "lies within",
        ),
        ([ELECTRICITY, "terms.residual"], HOUR, [(None, None)] * 2, UsageError, "zero"),
    ],
)
def test_a_bad_question_is_refused(vary, metric, ends, kind, said):
    with pytest.raises(kind, match=said):
        field_of(["gb200-nvl72"], vary, metric, ends)
