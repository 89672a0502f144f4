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
