"""Every shipped file of measurements is judged in every form."""

from __future__ import annotations

import re

import pytest

from tests.cli import tco

LARGE, SMALL = (
    ["kernels", "collectives"],
    ["trainium_kernels", "trainium_collectives", "trainium_inference", "trainium_training"],
)


@pytest.mark.parametrize(
    ("name", "form"),
    [*((name, "table") for name in [*LARGE, *SMALL]), *((name, "md") for name in SMALL)],
)
def test_a_shipped_file_is_judged(name, form):
    done = tco("validate", f"data/measured/{name}.csv.gz", "--format", form)
    assert done.exit_code == 0, done.stderr
    assert "predictions against measurements of " in done.stdout.splitlines()[0]
    assert re.search(r"rows are compared[.;]", done.stdout)
    assert "Half of the predictions are within " in done.stdout


@pytest.mark.parametrize("name", ["trainium_kernels", "data/measured/trainium_kernels.csv.gz"])
def test_a_shipped_file_is_found_by_name_from_any_folder(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert tco("validate", name).stdout.startswith("trainium_kernels")


def test_own_file_precedes_a_shipped_file_of_the_same_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels").write_text("")
    done = tco("validate", "kernels")
    assert (done.exit_code, done.stderr.strip()) == (
        3,
        "error: kernels: is empty, expected a CSV of measurements",
    )
    assert (
        "travel with the program are amd_collectives, amd_gemm_kernels"
        in tco("validate", "kernel").stderr
    )


@pytest.fixture(scope="module")
def serving_answer():
    return tco("validate", "inference").stdout


def count(text):
    return int(text.replace(",", ""))


def test_rows_of_a_group_are_all_compared_rows(serving_answer):
    """Rows without a value and rows beyond the largest parts are counted too."""
    scored = count(re.search(r"^([\d,]+) of [\d,]+ rows are compared", serving_answer, re.M)[1])
    _, _, *blocks = serving_answer.split("\n\n")
    assert len(blocks) >= 6
    for block in blocks:
        _, _, *lines = block.strip().splitlines()
        rows = [re.match(r"(?P<name>.+?) {2,}(?P<rows>[\d,]+)( |$)", line) for line in lines]
        below = [re.search(r"with ([\d,]+) rows", line) for line in lines]
        counts = [row["rows"] for row in rows if row] + [line[1] for line in below if line]
        assert sum(map(count, counts)) == scored, block
    assert re.search(r"^not stated +351$", serving_answer, re.M)


def test_ranges_are_told_in_per_cent(serving_answer):
    assert "At the median its upper end is 24 % above its lower end." in serving_answer


def test_scores_of_the_fit_say_whose_rows_they_count(serving_answer):
    words = "Their rows are all that the fit rests on, not this file alone."
    assert words in tco("validate", "trainium_kernels").stdout
    assert words not in serving_answer


def test_columns_of_a_file_are_told_in_words():
    text = tco("validate", "trainium_inference").stdout
    assert (
        "output tokens/s per chip (output_tput_tok_s_per_gpu)"
        in tco("validate", "inference").stdout
    )
    assert "  without its chip " in text
    assert "without its ...: each row is predicted by a fit that never saw its chip" in text
    assert "-0.0" not in text


def test_a_skipped_row_names_the_columns_to_fill():
    text = tco("validate", "inference").stdout
    assert "speculative decoding not stated: fill spec_decoding" in text
    assert "267 curves" in next(line for line in text.splitlines() if "shape of each curve" in line)
