"""The ranges are held against what was measured: the share inside is computed again, and moves with what it rests on."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from tco.performance.chip.formats import families_of
from tco.studies.ranges import range_of
from tco.studies.validation import back_test as study
from tco.studies.validation.score import Prediction
from tco.studies.validation.unexplained import PARAMETERS, time_beyond, unexplained_rows
from tests.cli import document, tco
from tests.shipped import CATALOGUE
from tests.studies.validation.today import validated

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]
MEASURED = ROOT / "data/measured/inference.csv.gz"


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """The rows of two chips of the file of serving runs, one of them a part of its rows."""
    with gzip.open(MEASURED, "rt", encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    chip = header.index("accelerator")
    kept = [row for row in rows if "GB200" in row[chip]] + [row for row in rows if "H200" in row[chip]][::4]
    path = tmp_path_factory.mktemp("measured") / "some.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *kept])
    return path


def test_the_command_states_the_share_inside(some):
    found = document("validate", str(some), "--back-test")
    assert [one["chip"] for one in found["chips"]] == ["gb200-gpu", "h200-sxm"]
    for one in [*found["chips"], found["summary"]]:
        assert one["inside"] + one["below"] + one["above"] == pytest.approx(1)
        assert one["inside"] > one["inside_by_parameters_alone"]
        assert one["median_width"] > 1
    assert found["summary"]["rows"] == sum(one["rows"] for one in found["chips"])
    assert "are the ranges right?" in tco("validate", str(some), "--back-test").stdout


def test_rows_are_counted_where_they_lie():
    draws = np.tile(np.linspace(0, 100, 101), (3, 1))
    found = study.summed([study.held(np.array([50.0, 5.0, 95.0]), draws, draws / 2)])
    assert found == study.Tested(3, pytest.approx(1 / 3), pytest.approx(1 / 3), pytest.approx(1 / 3), pytest.approx(9), pytest.approx(1 / 3))


def test_a_range_moves_with_its_value():
    one = range_of(CATALOGUE.practice("nvidia", "launch_time"))
    other = study.moved(one, 3 * one.value)
    assert (other.low, other.value, other.high) == pytest.approx((3 * one.low, 3 * one.value, 3 * one.high))


def test_kinds_without_ranges_are_refused():
    found = tco("validate", str(ROOT / "data/measured/collectives.csv.gz"), "--back-test")
    assert found.exit_code == 2
    assert "expected inference or training" in found.stderr


@pytest.mark.parametrize("kind", PARAMETERS)
def test_the_rows_of_the_catalogue_are_what_the_fit_leaves_unexplained(kind):
    rows = validated(kind).rows
    made = Prediction(*(rows[name].to_numpy() for name in ("measured", "predicted", "target", "skipped")))
    families = set(families_of(CATALOGUE).values())
    found = list(unexplained_rows(kind, made, families, "2026-11"))
    assert {row["family"] for row in found} == families
    for row in found:
        kept = CATALOGUE.practice(row["family"], row["attribute"])
        assert kept.value == 0
        assert (kept.low, kept.high) == pytest.approx((row["low"], row["high"]), rel=2e-3)


def test_beyond_is_of_time_whatever_was_measured():
    made = Prediction(
        target=np.array([2.0, 100.0, 5.0]),
        predicted=np.array([1.0, 200.0, 1.0]),
        target_name=np.array(["step_time_s", "total_tput_tok_s_per_gpu", "tpot_ms_mean"], dtype=object),
        skip=np.array(["", "", "suspect"], dtype=object),
    )
    assert time_beyond(made) == pytest.approx([1.0, 1.0])
