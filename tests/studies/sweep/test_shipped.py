"""The studies that come with the program, each at a tiny size."""

from __future__ import annotations

import pytest

import tco
from tco.foundation.files import read_toml
from tco.studies.sweep.study import read_study, shipped_studies
from tests.cli import tco as cli

NAMES = sorted(shipped_studies())


def test_there_are_some():
    assert len(NAMES) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_study_runs(name, tmp_path):
    whole = read_toml(shipped_studies()[name])
    for word in ("title", "question", "answer"):
        assert len(whole[word]) > 20
    assert whole["question"].endswith("?")
    some = {**whole, "scenarios": whole["scenarios"][:1], "grid": {path: values[:1] for path, values in whole.get("grid", {}).items()}}
    if "draw" in whole:
        some["draw"] = {**whole["draw"], "samples": 4}
    found = tco.sweep(some, tmp_path / "o").to_frame()
    assert len(found) == (4 if "draw" in whole else 1)
    assert found[whole["report"]].notna().any().all(), "a metric that it reports has no value"


def test_a_shipped_study_is_found_by_its_name(tmp_path):
    done = cli("sweep", "memory-prices", "-o", tmp_path / "o")
    assert done.exit_code == 0, done.stderr
    assert "December 2027" in done.stdout
    assert read_study("memory-prices").document["question"] in done.stdout.replace("\n", " ")
    done = cli("sweep", "memory-price", "-o", tmp_path / "o")
    assert done.exit_code == 3
    assert "did you mean 'memory-prices'" in done.stderr
