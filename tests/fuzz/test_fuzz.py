"""A short run of both fuzzers."""

from __future__ import annotations

import pytest

from tests.fuzz.run import outcome, patience, run

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("first", range(0, 120, 60))
def test_arguments_end_well(first):
    codes, failures = run("arguments", range(first, first + 60))
    assert failures == []
    assert {0, 2, 3} <= codes.keys()


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_damaged_files_end_well(first):
    codes, failures = run("files", range(first, first + 20))
    assert failures == []
    assert codes[3]


def test_a_case_without_end_is_a_failure(monkeypatch):
    def wait(*_):
        while True:
            pass

    monkeypatch.setattr("tests.fuzz.run.app", wait)
    monkeypatch.setattr("tests.fuzz.run.LONGER", {"claims": 1})
    monkeypatch.setattr(
        "tests.fuzz.run.testing.CliRunner.invoke", lambda _, hang, *__, **___: hang()
    )
    assert outcome(["claims"]) == (None, "took too long")


def test_commands_of_dozens_of_scenarios_have_more_time_than_others():
    assert patience(["price", "claims"]) == patience([]) == patience(["--", "claims"]) == 10
    assert patience(["claims", "--quiet"]) == patience(["report"]) == 40
