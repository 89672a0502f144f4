"""The cost regression: kept, read back, and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tco.foundation.errors import DataError
from tco.studies.baseline import baseline_path, drifts, load, save
from tco.studies.state import state_of
from tests.chain import again

NAME = "gb200-nvl72"


def states(**settings):
    return {NAME: state_of(again(NAME, **settings))}


def test_kept_and_read_back(tmp_path):
    path = tmp_path / "deep" / "main.json"
    save(path, states())
    assert load(path) == states()


def test_kept_twice_is_the_same_bytes(tmp_path):
    save(tmp_path / "a.json", states())
    save(tmp_path / "b.json", states())
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_drift_names_its_cause():
    found = drifts(states(), states(site__electricity_price="0.3 USD/kWh"), 1e-9, None)
    assert {drift.move.metric for drift in found} >= {"energy_usd_per_chip_hour", "tco_usd_per_chip_hour"}
    assert all([cause.path for cause in drift.why] == ["site.electricity_price"] for drift in found)


def test_no_drift_no_news():
    assert drifts(states(), states(), 0.0, None) == []


@pytest.mark.parametrize(("allowed", "drifted"), [(None, True), (0.5, False), (1e-6, True)])
def test_an_increase_may_be_tolerated(allowed, drifted):
    found = drifts(states(), states(site__pue="1.3"), 1e-9, allowed)
    assert ("facility_power_w_per_chip" in {drift.move.metric for drift in found}) is drifted


def test_a_decrease_is_not_loosened():
    found = drifts(states(), states(site__pue="1.01"), 1e-9, 0.5)
    assert "facility_power_w_per_chip" in {drift.move.metric for drift in found}


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "/etc/passwd"])
def test_a_name_is_no_path(name):
    with pytest.raises(DataError, match="is no name for a baseline"):
        baseline_path(name)


def test_a_name_is_a_file_of_its_folder():
    assert baseline_path("main", Path("x")) == Path("x/main.json")


def test_an_unknown_baseline_gets_the_nearest_name(tmp_path):
    save(tmp_path / "headline.json", states())
    with pytest.raises(DataError, match="unknown baseline 'headlin'; did you mean 'headline'"):
        load(tmp_path / "headlin.json")


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"scenarios": 1}', '{"scenarios": {"a": {}}}', '{"scenarios": {"a": 1}}', '{"scenarios": null}']
)
def test_a_broken_baseline(tmp_path, content):
    path = tmp_path / "main.json"
    path.write_text(content)
    with pytest.raises(DataError, match="is no baseline; `tco baseline save` writes one"):
        load(path)
