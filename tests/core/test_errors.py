"""Errors that reach a user: exit codes and nearest names."""

from __future__ import annotations

import pytest

from tco import DataError, TcoError, UsageError
from tco.core.errors import nearest, nearest_name, unknown


def test_exit_codes():
    assert (UsageError.exit_code, DataError.exit_code) == (2, 3)
    assert issubclass(UsageError, TcoError)
    assert issubclass(DataError, TcoError)


@pytest.mark.parametrize(
    ("name", "hint"), [("trn3-nl72x", "trn3-nl72x2"), ("gb200-nvl27", "gb200-nvl72"), ("zzz", "")]
)
def test_nearest(name, hint):
    assert nearest(name, ["trn3-nl72x2", "gb200-nvl72"]) == (
        f"; did you mean {hint!r}?" if hint else ""
    )


def test_unknown_names_the_few_there_are():
    assert str(unknown("switch", "zzz", ["b", "a"])) == "unknown switch 'zzz'; there are a, b"


def test_unknown_of_many_names_the_command_that_lists_them():
    assert (
        str(unknown("part", "zzz", [f"part-{n}" for n in range(13)], "file:3"))
        == "file:3: unknown part 'zzz'; `tco parts list` lists what there is"
    )


@pytest.mark.parametrize(
    ("name", "candidates", "near"),
    [
        ("trn3.price", ["parts.vrm-trn3.price", "parts.trn3.price"], "parts.trn3.price"),
        ("h200", ["gh200", "h200-sxm"], "h200-sxm"),
    ],
)
def test_a_whole_word_is_nearer_than_a_part_of_one(name, candidates, near):
    assert nearest_name(name, candidates) == near
