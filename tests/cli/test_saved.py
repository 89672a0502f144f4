"""Saved results on the command line: they stand where a scenario is named."""

from __future__ import annotations

import json

import pytest

import tco as program
from tests.cli import document, tco


@pytest.fixture(scope="module")
def results_folder(tmp_path_factory):
    """Two saved results in a folder."""
    folder = tmp_path_factory.mktemp("results")
    for name in ("trn3-nl72x2", "gb200-nvl72"):
        program.evaluate(name).save(folder / f"{name}.json")
    return folder


@pytest.mark.thorough
def test_compare_takes_saved_results(results_folder):
    names = ("trn3-nl72x2", "gb200-nvl72")
    saved_document, live = (
        document("compare", *(results_folder / f"{name}.json" for name in names)),
        document("compare", *names),
    )
    assert saved_document == live


def test_a_saved_result_is_priced_and_has_no_operators(results_folder):
    file = results_folder / "gb200-nvl72.json"
    assert tco("price", file).stdout == tco("price", "gb200-nvl72").stdout
    refused = tco("perf", file)
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert (
        "keeps its plan but no operators; expected a scenario such as gb200-nvl72" in refused.stderr
    )


def test_diff_takes_saved_results(results_folder):
    trn3_path, gb200_path = results_folder / "trn3-nl72x2.json", results_folder / "gb200-nvl72.json"
    assert document("diff", trn3_path, "trn3-nl72x2")["metrics"] == []
    assert (
        document("diff", trn3_path, gb200_path)["metrics"]
        == document("diff", "trn3-nl72x2", "gb200-nvl72")["metrics"]
    )
    assert tco("diff", trn3_path, gb200_path, "--exit-code").exit_code == 1


def test_a_baseline_takes_saved_results(results_folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    file = results_folder / "gb200-nvl72.json"
    assert tco("baseline", "save", "main", file).exit_code == 0
    assert document("baseline", "check", "main")["ok"]
    path = tmp_path / "reports" / "baselines" / "main.json"
    state = json.loads(path.read_text())
    state["scenarios"][str(file)]["formulas"]["used_chip_hour"] = "of another day"
    state["scenarios"][str(file)]["metrics"]["tco_usd_per_used_chip_hour"] *= 2
    path.write_text(json.dumps(state))
    (drift,) = document("baseline", "check", "main", code=1)["drift"]
    assert drift["metric"] == "tco_usd_per_used_chip_hour"
    assert drift["why"] == ["program changed: formula used_chip_hour is another"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "is no saved result: it states no schema"),
        ('{"schema": "tco.price/1"}', "tco.price/1"),
        ("", "broken JSON"),
    ],
)
@pytest.mark.parametrize("command", [("compare",), ("baseline", "save", "main")], ids=" ".join)
def test_another_file_is_refused(command, content, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text(content)
    done = tco(*command, "bad.json")
    assert done.exit_code == 3
    assert done.stderr.startswith("error: bad.json")
    assert message in done.stderr


def test_a_file_that_is_not_there_is_refused(tmp_path):
    done = tco("compare", tmp_path / "none.json")
    assert done.exit_code == 3
    assert "no such file" in done.stderr


def test_a_saved_result_takes_no_settings(results_folder):
    done = tco("compare", results_folder / "gb200-nvl72.json", "--set", "site.pue=1.3")
    assert done.exit_code == 2
    assert "a saved result cannot be changed" in done.stderr
