"""Files of baselines, made by hand: what is kept, replaced, listed, foreign or not guarded."""

from __future__ import annotations

import json

import pytest

from tco.core.errors import DataError, UsageError
from tco.regression.baseline import (
    SCHEMA,
    baseline_path,
    baseline_scenarios,
    load_baseline,
    load_stakes,
    save_baseline,
    unguarded_scenarios,
)
from tests.regression.test_two_writers import STATE

FIGURES = {"50": {"a": {"p50_usd": 1.0}}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that commands are run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_states_of_other_scenarios_stay_and_figures_are_those_of_the_last_save(folder):
    path = baseline_path("main")
    assert str(path) == "reports/baselines/main.json"
    assert save_baseline(path, {"a": STATE, "b": STATE}, FIGURES) == []
    assert load_stakes(path) == FIGURES
    newer = STATE | {"tco_version": "1"}
    assert save_baseline(path, {"b": newer, "c": newer}, {}) == ["a"]
    assert load_baseline(path) == {"a": STATE, "b": newer, "c": newer}
    assert load_stakes(path) == {}
    assert json.loads(path.read_text())["schema"] == SCHEMA
    assert path.read_text().count("\n") > 3 * len(STATE)  # a value a line


def test_what_is_no_number_in_json_is_not_written(folder):
    path = baseline_path("main")
    save_baseline(path, {"a": STATE}, {})
    with pytest.raises(ValueError, match="JSON compliant"):
        save_baseline(path, {"a": STATE | {"metrics": {"capex_usd": float("nan")}}}, {})
    assert load_baseline(path) == {"a": STATE}


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "a\\b"])
def test_a_name_that_is_no_name_of_a_file_is_refused(name):
    with pytest.raises(DataError, match="is no name for a baseline"):
        baseline_path(name)


@pytest.mark.parametrize(
    "content",
    [
        {"schema": SCHEMA},
        {"schema": SCHEMA, "scenarios": []},
        {"schema": "tco.result/1", "scenarios": {}},
        [],
    ],
)
def test_a_file_that_is_no_baseline_stays_as_it_is(folder, content):
    path = folder / "main.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="is no baseline"):
        save_baseline(path, {"a": STATE}, {})
    assert json.loads(path.read_text()) == content


def test_a_file_of_another_version_is_said_to_be(folder):
    path = folder / "main.json"
    path.write_text(json.dumps({"schema": "tco.baseline/1", "scenarios": {}}))
    with pytest.raises(DataError, match="another version of tco"):
        load_baseline(path)


def test_an_unknown_baseline_names_the_nearest_or_how_to_save_one(folder):
    with pytest.raises(DataError, match="as there is none; `tco baseline save`"):
        load_baseline(baseline_path("main"))
    save_baseline(baseline_path("main"), {"a": STATE}, {})
    with pytest.raises(DataError, match="did you mean 'main'"):
        load_baseline(baseline_path("mian"))


@pytest.mark.parametrize("stakes", [[], {"50": []}, {"50": {"a": []}}, {"50": {"a": 1}}])
def test_figures_that_are_no_tables_are_refused(folder, stakes):
    path = folder / "main.json"
    path.write_text(json.dumps({"schema": SCHEMA, "scenarios": {}, "stakes": stakes}))
    with pytest.raises(DataError, match="stakes: expected tables"):
        load_stakes(path)


def test_a_folder_that_cannot_be_made_is_said(folder):
    (folder / "reports").write_text("a file")
    with pytest.raises(UsageError, match="cannot be made"):
        save_baseline(baseline_path("main"), {"a": STATE}, {})


def test_scenario_files_that_no_baseline_holds_are_unguarded(folder):
    scenario = 'system = "gb200-nvl72"\nworkload = "deepseek-v3-8k-1k"\n'
    (folder / "scenarios").mkdir()
    (folder / "far").mkdir()
    for name in ("a.toml", "b.toml", "scenarios/c.toml", "far/d.toml", "far/e.toml"):
        (folder / name).write_text(scenario)
    (folder / "other.toml").write_text('system = "gb200-nvl72"\n')
    (folder / "broken.toml").write_text("system = ")
    assert unguarded_scenarios() == ["a.toml", "b.toml", "scenarios/c.toml"]
    save_baseline(
        baseline_path("main"), dict.fromkeys(("a.toml", "far/d.toml", "gb200-nvl72"), STATE), {}
    )
    (folder / "reports/baselines/bad.json").write_text("{")
    # beside a file that a baseline holds others are looked for, too
    assert unguarded_scenarios() == ["b.toml", "scenarios/c.toml", "far/e.toml"]
    listed = baseline_scenarios()
    assert list(listed) == ["bad", "main"]
    assert listed["main"] == ["a.toml", "far/d.toml", "gb200-nvl72"]
    assert "is no baseline" in listed["bad"]
