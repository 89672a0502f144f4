"""A short run of both fuzzers."""

from __future__ import annotations

import pytest

from tests.fuzz.run import run

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
