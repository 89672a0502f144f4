"""A cell of two inputs changed together equals the scenario at these values."""

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
    metric_field = field_of(
        ["gb200-nvl72", "trn3-nl72x2"],
        [ELECTRICITY, SPEED],
        metric,
        set={"workload.draft_tokens": "0"},
        steps=3,
    )
    field_values = metric_field.values
    for scenario_index, name in enumerate(("gb200-nvl72", "trn3-nl72x2")):
        for y, speed in enumerate(metric_field.y.values):
            for x, price in enumerate(metric_field.x.values):
                cell_settings = {
                    "workload.draft_tokens": "0",
                    ELECTRICITY: f"{price!r} {metric_field.x.unit}",
                    SPEED: f"{speed!r} {metric_field.y.unit}",
                }
                evaluated_metric = tco.evaluate(name, cell_settings, catalogue=CATALOGUE).metrics[
                    metric
                ]
                if evaluated_metric is None:
                    assert np.isnan(field_values[scenario_index, y, x])
                else:
                    assert least < field_values[scenario_index, y, x] / evaluated_metric < most
    beyond = np.isnan(
        field_values[1, 2]
    ).all()  # three times the interactivity is more than that rack can
    assert beyond == (metric == COST)
    assert np.isfinite(field_values[0]).all()


def test_an_input_that_a_scenario_does_not_rest_on_leaves_it_as_it_is():
    metric_field = field_of(
        ["gb200-nvl72", "trn3-nl72x2"],
        [GPU, ELECTRICITY],
        HOUR,
        [("20000 USD", "40000 USD"), (None, None)],
        steps=3,
    )
    gb200_values, trn3_values = metric_field.values
    assert np.allclose(trn3_values, trn3_values[:, :1])
    assert (np.diff(gb200_values, axis=1) > 0).all()
    assert (np.diff(trn3_values, axis=0) > 0).all()
    still = field_of(
        ["gb200-nvl72", "trn3-nl72x2"], [GPU, "parts.nvlink-cable.price"], HOUR, steps=2
    )
    assert (still.values[1] == tco.evaluate("trn3-nl72x2", catalogue=CATALOGUE).metrics[HOUR]).all()


def test_values_are_even_in_ratio_around_today_and_within_the_bounds_of_the_input():
    metric_field = field_of(["gb200-nvl72"], ["terms.utilisation", ELECTRICITY], HOUR, steps=5)
    assert metric_field.x.values[-1] == 1  # not three times 0.8
    assert np.allclose(np.diff(np.log(metric_field.y.values)), np.log(9) / 4)
    assert metric_field.y.values[2] == pytest.approx(metric_field.y.today)


def test_values_from_zero_are_even_in_difference():
    metric_field = field_of(
        ["gb200-nvl72"],
        [ELECTRICITY, "terms.rate"],
        HOUR,
        [("0 USD/kWh", "0.2 USD/kWh"), (None, None)],
        steps=3,
    )
    assert metric_field.x.values == pytest.approx([0, 0.1, 0.2])


@pytest.mark.parametrize(
    ("vary", "metric", "ends", "kind", "message"),
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
def test_a_bad_question_is_refused(vary, metric, ends, kind, message):
    with pytest.raises(kind, match=message):
        field_of(["gb200-nvl72"], vary, metric, ends)


def test_price_of_a_chip_built_from_parts_moves_its_rack():
    ends = (("2000 USD", "8000 USD"), (None, None))
    vary = ("parts.trn3.price", "site.electricity_price")
    field = field_of(["trn3-nl32x2", "gb200-nvl72"], vary, HOUR, ends, steps=3)
    for column in (0, 2):
        settings = {
            vary[0]: f"{float(field.x.values[column])!r} USD",
            vary[1]: f"{float(field.y.values[0])!r} {field.y.unit}",
        }
        expected = tco.evaluate("trn3-nl32x2", settings, catalogue=CATALOGUE).metrics[HOUR]
        assert field.values[0, 0, column] == pytest.approx(expected, rel=1e-9)
    assert np.ptp(field.values[1], axis=1) == pytest.approx(0)


def test_input_that_another_replaces_is_refused_by_name():
    wafer, price = "parts.trn3.wafer_price", "parts.trn3.price"
    ends = (("10000 USD", "30000 USD"), (None, None))
    with pytest.raises(DataError, match=f"{wafer}: no scenario of .*: {price} stands in its"):
        field_of(
            ["trn3-nl32x2"],
            (wafer, "terms.life"),
            HOUR,
            ends,
            set={price: "5000 USD"},
            steps=2,
        )
    with pytest.raises(DataError, match=f"{wafer}: it moves nothing, {price} stands in its"):
        field_of(["trn3-nl32x2"], (wafer, price), HOUR, ends, steps=2)
