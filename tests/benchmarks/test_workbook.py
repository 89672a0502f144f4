"""The workbook of the four headline racks, from scenario to bytes. Run with `--benchmark-only`."""

from __future__ import annotations

from tco import evaluate
from tests.report.helpers import workbook_of
from tests.scenario_helpers import HEADLINE
from tests.study_helpers import compare_results


def test_four_racks_side_by_side(benchmark, catalogue):
    def export():
        base, results = compare_results(
            [evaluate(name, catalogue=catalogue, trace=True) for name in HEADLINE]
        )
        return workbook_of(results, catalogue, base, "tco export")

    content = benchmark.pedantic(export, rounds=3, warmup_rounds=1)
    assert content.startswith(b"PK")
    assert benchmark.stats.stats.min <= 2
