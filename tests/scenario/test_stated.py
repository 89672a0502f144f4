"""Scenarios that state a system's price, a token rate or a repayment instead of computing it."""

from __future__ import annotations

import pytest

from tco import DataError, evaluate
from tests.scenario_helpers import again, nodes_below

NAME = "gb200-nvl72"


def test_the_price_of_a_whole_system_is_one_line(catalogue):
    evaluation = evaluate(
        NAME, {"system.price": "3 MUSD", "workload": "stated"}, catalogue=catalogue
    )
    servers = [line for line in evaluation.lines if line.asset == "servers"]
    assert [line.path for line in servers] == ["servers/system"]
    assert servers[0].usd == 3e6
    assert sum(line.usd_per_chip_hour for line in evaluation.lines) == pytest.approx(
        evaluation.metrics["tco_usd_per_chip_hour"], rel=1e-12
    )
    dearer = evaluate(NAME, {"system.price": "4 MUSD", "workload": "stated"}, catalogue=catalogue)
    assert dearer.metrics["tco_usd_per_chip_hour"] > evaluation.metrics["tco_usd_per_chip_hour"]


def test_a_stated_rate_is_charged_as_a_computed_one(catalogue):
    stated = evaluate(
        NAME,
        {"workload": "stated", "workload.output_rate": "1000 token/s/chip"},
        catalogue=catalogue,
        trace=True,
    )
    used = stated.metrics["tco_usd_per_used_chip_hour"]
    assert stated.metrics["usd_per_million_output_tokens"] == pytest.approx(used / 3.6, rel=1e-12)
    assert stated.metrics["input_tokens_per_s_per_chip"] is None
    assert stated.metrics["usd_per_million_tokens"] is None
    assert stated.standing.validated_rows == 0
    assert "stated" in stated.standing.text
    assert "workload.output_rate" in {
        node.path for node in nodes_below(stated.nodes["usd_per_million_output_tokens"])
    }


def test_stated_price_of_the_system_includes_the_chips(catalogue):
    evaluation = evaluate(NAME, {"workload": "stated"}, catalogue=catalogue)
    assert evaluation.metrics["output_tokens_per_s_per_chip"] is None
    assert (
        evaluation.metrics["tco_usd_per_chip_hour"] == again(NAME).metrics["tco_usd_per_chip_hour"]
    )


def test_scenario_without_a_model_has_no_plan(catalogue):
    with pytest.raises(DataError, match="runs no model"):
        evaluate(NAME, {"workload": "stated"}, {"tp": "8"}, catalogue=catalogue)
