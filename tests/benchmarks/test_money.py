"""The money of a scenario by month: three milliseconds, whatever is asked of it."""

from __future__ import annotations

from tco import evaluate
from tests.study_helpers import money_of

DEAL = {
    "money.rent": "3.3 USD/chip/h",
    "money.contract": "3 year",
    "money.debt_share": "0.6",
    "money.deposit": "0.2",
    "workload": "stated",
}


def test_the_money_of_a_deal(benchmark, catalogue):
    result = evaluate("gb200-nvl72", DEAL, catalogue=catalogue)
    assert benchmark(money_of, result, catalogue).irr_per_year is not None
    if benchmark.enabled:
        assert benchmark.stats.stats.min <= 3e-3
