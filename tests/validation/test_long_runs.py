"""Long runs fall short of the best plan along a fitted line; the shipped rows are its values."""

from __future__ import annotations

import math

import pytest

from tco.validation.long_runs import LongRun, fit_decline, long_run_rows, long_runs
from tests.catalogue import CATALOGUE
from tests.validation.today import VALUES, table_of


def runs_on(publisher: str, chip: str, level: float, *sizes: int) -> list[LongRun]:
    """Runs of one publisher that lose 3 % for each doubling from a level at 1,024 chips."""
    return [
        LongRun(publisher, chip, "gpt3-175b", chips, level * 0.97 ** math.log2(chips / 1024))
        for chips in sizes
    ]


def test_a_line_through_exact_runs_is_theirs():
    line = fit_decline(
        runs_on("a", "h100-sxm", 0.9, 512, 2048, 8192) + runs_on("b", "tpu-v5p", 0.9, 1024, 4096)
    )
    assert math.exp(line.level) == pytest.approx(0.9, rel=1e-9)
    assert math.exp(line.slope) == pytest.approx(0.97, rel=1e-9)
    assert line.slope_spread == pytest.approx(0, abs=1e-9)


def test_a_publisher_of_more_runs_weighs_no_more():
    single, several = (
        runs_on("a", "h100-sxm", 0.8, 1024),
        runs_on("a", "h100-sxm", 0.8, *[1024] * 9),
    )
    rest = runs_on("b", "tpu-v5p", 1.0, 512, 2048, 8192) + runs_on(
        "c", "tpu-v6e", 0.9, 512, 2048, 8192
    )
    assert fit_decline(single + rest).level == pytest.approx(
        fit_decline(several + rest).level, abs=1e-9
    )


def test_publishers_that_differ_widen_the_range():
    alike = (
        runs_on("a", "h100-sxm", 0.9, 512, 2048)
        + runs_on("b", "tpu-v5p", 0.9, 512, 2048)
        + runs_on("c", "tpu-v6e", 0.9, 512, 2048)
    )
    different = (
        runs_on("a", "h100-sxm", 0.8, 512, 2048)
        + runs_on("b", "tpu-v5p", 0.9, 512, 2048)
        + runs_on("c", "tpu-v6e", 1.0, 512, 2048)
    )
    assert fit_decline(different).level_spread > fit_decline(alike).level_spread + 0.05
    rate, decline = long_run_rows(different, "2026-11")
    assert rate.low < rate.value < rate.high
    assert decline.value == pytest.approx(0.03, rel=1e-3)


@pytest.mark.thorough
def test_the_shipped_rows_are_those_of_the_measured_runs():
    runs = long_runs(table_of("training"), CATALOGUE, VALUES)
    assert {run.publisher for run in runs} == {"meta", "deepseek", "mlperf"}
    for row in long_run_rows(runs, "2026-11"):
        shipped = CATALOGUE.practice("training", row.attribute)
        assert (shipped.value, shipped.low, shipped.high) == pytest.approx(
            (row.value, row.low, row.high), rel=2e-3
        )
