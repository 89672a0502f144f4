"""Published figures come out of the chain on the terms their source states, and others are agreed with where they should be."""

from __future__ import annotations

import pytest

from tco.catalog import load_catalogue, schema
from tco.foundation.errors import DataError
from tco.studies.published import figure, publication
from tests.chain import result
from tests.cli import tco

CATALOGUE = load_catalogue()
FOUND = {name: publication(CATALOGUE, name) for name in CATALOGUE.published}
MUST = [one for found in FOUND.values() for one in found.figures if one.kind == "published"]
SAME_TERMS = "inferencex-2026-08"


@pytest.mark.parametrize("name", FOUND)
def test_what_was_published_comes_out(name):
    assert list(FOUND[name].findings()) == []


@pytest.mark.parametrize("name", FOUND)
def test_a_file_is_in_order(name):
    path = CATALOGUE.published[name]
    assert schema.check_scenario(path, CATALOGUE.toml(path), CATALOGUE.sources) == []


def test_the_worked_examples_are_among_them():
    have = [one.published for one in MUST]
    for want in (1.81, 0.36, 2.37, 2.49, 135, 1.525, 49_248, 1.856, 2.218, 1.514, 49_860, 20.7e6, 32.83e6):
        assert want in have
    assert len(MUST) >= 40
    assert max(one.tolerance for one in MUST) <= 0.10
    assert all(one.low < one.published < one.high for one in MUST)


def test_nine_gpus_on_one_set_of_terms():
    """At least seven of nine within 15 %, and no row may set anything for its GPU."""
    rows = CATALOGUE.toml(CATALOGUE.published[SAME_TERMS])
    assert not any("set" in row or "variant" in row for kind in ("published", "cross_check") for row in rows[kind])
    hours = [one for one in FOUND[SAME_TERMS].figures if one.metric == "tco_usd_per_chip_hour"]
    assert len(hours) == 9
    assert {one.tolerance for one in hours} == {0.15}
    assert sum(abs(one.computed / one.published - 1) <= 0.15 for one in hours) >= 7


def test_what_does_not_come_out_is_said():
    wrong = FOUND["b300-2026-06"]
    moved = wrong._replace(figures=[one._replace(computed=one.high * 1.001) for one in wrong.figures])
    assert len(list(moved.findings())) == len(wrong.figures)
    few = FOUND[SAME_TERMS]._replace(at_least=8)
    assert list(few.findings()) == [f"{SAME_TERMS}: 7 of 9 cross-checks hold, at least 8 are wanted"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"metric": "tco_usd_per_chip_our"}, "unknown metric 'tco_usd_per_chip_our'; did you mean 'tco_usd_per_chip_hour'"),
        ({"metric": "usd", "lines": ["server"]}, "unknown cost line 'server'"),
        ({"metric": "bill_usd", "parts": ["b300"]}, "unknown part of the bill 'b300'"),
        ({"metric": "capex_usd"}, "expected value and tolerance, or low and high"),
        ({"metric": "capex_usd", "unit": "W", "low": 0, "high": 1}, "expected 'USD'"),
    ],
)
def test_a_bad_row(row, message):
    with pytest.raises(DataError, match=message):
        figure("published", {"source": "x", **row}, "here", lambda _: result("gb200-nvl72"))


def test_a_figure_may_be_asked_for_by_name():
    done = tco("price", "published/b300-2026-06", "--format", "csv")
    assert done.exit_code == 0
    assert "servers/system" in done.stdout
