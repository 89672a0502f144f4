"""One input against a metric: what a scenario that is set to the value costs, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from tco import evaluate
from tco.comparison.input_lines import lines_of
from tco.core.errors import DataError
from tests.cli import tco

COST = "usd_per_million_output_tokens"


@pytest.mark.parametrize(
    ("path", "ends", "unit"),
    [
        ("workload.interactivity", ("20 token/s", "80 token/s"), "token/s"),
        ("parts.gb200-gpu.price", ("20000 USD", "40000 USD"), "USD"),
    ],
)
def test_a_point_of_a_line_is_the_scenario_set_to_its_value(path, ends, unit):
    (line,) = lines_of(["gb200-nvl72"], path, COST, ends, steps=3).lines
    expected = [
        evaluate("gb200-nvl72", set={path: f"{value} {unit}"}).metrics[COST]
        for value, _ in line.finite_points
    ]
    assert [metric for _, metric in line.finite_points] == pytest.approx(expected, rel=1e-9)


def test_cost_is_linear_in_the_price_of_electricity_and_flat_where_nothing_rests_on_an_input():
    ends = ("0.05 USD/kWh", "0.25 USD/kWh")
    names = ["gb200-nvl72", "trn3-nl72x2"]
    lines = lines_of(names, "site.electricity_price", "tco_usd_per_chip_hour", ends, steps=5)
    for line in lines.lines:
        prices, costs = np.transpose(line.finite_points)
        slope, base = np.polyfit(prices, costs, 1)
        assert costs == pytest.approx(base + slope * prices, rel=1e-9)
        power_kw = line.result.metrics["facility_power_w_per_chip"] / 1e3
        assert 0 < slope < power_kw * 1.5  # USD per hour for a USD/kWh
    ends = ("20000 USD", "40000 USD")
    still = lines_of(names, "parts.gb200-gpu.price", COST, ends, steps=3)
    assert len({metric for _, metric in still.lines[1].finite_points}) == 1
    assert still.notes == [
        "trn3-nl72x2: gb200-gpu price does not move its cost per million output tokens"
    ]


def test_a_value_that_no_plan_reaches_has_no_metric_and_a_reason():
    ends = ("50 token/s", "100000 token/s")
    lines = lines_of(["gb200-nvl72"], "workload.interactivity", COST, ends, steps=3)
    assert lines.points[0].metric is not None
    assert lines.points[-1].metric is None
    assert "no answer at" in lines.notes[0]


def test_a_ratio_of_a_line_is_that_of_the_costs_behind_it():
    ends = ("3 year", "6 year")
    names = ["gb200-nvl72", "trn3-nl72x2"]
    baseline, line = lines_of(names, "terms.life", COST, ends, steps=3).lines
    (ratio,) = lines_of(names[1:], "terms.life", "perf_per_tco_vs_baseline", ends, steps=3).lines
    expected = [
        cost / line_cost
        for (_, cost), (_, line_cost) in zip(
            baseline.finite_points, line.finite_points, strict=True
        )
    ]
    assert [metric for _, metric in ratio.finite_points] == pytest.approx(expected, rel=1e-12)


def test_line_over_dates_has_a_point_per_month():
    lines = lines_of(["gb200-nvl72"], "terms.date", COST, ("2026-01", "2026-03"))
    months = [lines.today.plain(value) for value in lines.input_values]
    assert months == ["2026-01", "2026-02", "2026-03"]


def test_an_unknown_metric_is_refused():
    with pytest.raises(DataError, match="unknown metric"):
        lines_of(["gb200-nvl72"], "terms.life", "price")


def test_an_input_that_moves_no_line_is_refused():
    ends = ("20000 USD", "40000 USD")
    with pytest.raises(DataError, match="does not move"):
        lines_of(["trn3-nl72x2"], "parts.gb200-gpu.price", COST, ends, steps=3)


def test_the_printed_numbers_have_their_terms_and_each_row_once():
    numbers = tco("plot", "line", "trn3-nl72x2", "--vary", "parts.trn3.price", "--steps", "5")
    lines = numbers.stdout.splitlines()
    assert lines[0] == "Cost per million output tokens, USD, by trn3 price with HBM"
    assert any(line.startswith("Buyer Amazon (hyperscaler) | ") for line in lines)
    rows = [line.split()[:2] for line in lines if line.lstrip()[:1].isdigit()]
    assert len(rows) == len({tuple(cells) for cells in rows}) == 5
    assert sum("base case" in line for line in lines[5:]) == 1
