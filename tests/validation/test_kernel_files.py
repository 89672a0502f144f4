"""Files of kernels with a publisher's columns are read and scored; contradictions are left out."""

from __future__ import annotations

import csv
import gzip
import shlex

import pytest

from tests.cli import document, tco
from tests.validation.today import ROOT, file_of, validated

# and the bar of their median error
FITS = {
    "amd_gemm_kernels": 0.07,
    "amd_moe_kernels": 0.13,
    "moe_kernels": 0.12,
    "mla_kernels": 0.13,
}
SUSPECT = "suspect: the same time stands for other shapes"


@pytest.mark.parametrize("name", FITS)
def test_a_file_is_met_as_its_fit_says(name):
    card = validated(name).card
    stated = csv.DictReader((ROOT / "data/accuracy/kinds.csv").read_text().splitlines())
    (row,) = (row for row in stated if row["kind"] == name and row["left_out"] == "nothing")
    assert card["median_ape"] == pytest.approx(float(row["median_ape"]), abs=2e-3)
    assert card["median_ape"] < FITS[name]
    assert card["scored"] == int(row["n"])
    assert card["n"] == card["scored"] + sum(card["skipped"].values())


def test_kernels_before_a_chips_release_are_not_scored():
    card = validated("amd_gemm_kernels").card
    (reason,) = (reason for reason in card["skipped"] if "mature" in reason)
    assert reason.startswith("suspect")
    assert card["skipped"][reason] == 269
    assert card["by"]["accelerator"]["MI450X"]["n"] == 283


def test_times_that_stand_for_several_shapes_are_not_scored():
    """98 of 124 rows of the MI450X class repeat one sweep for other layers and are not scored.

    The others have no number of chosen experts.
    """
    card = validated("amd_moe_kernels").card
    assert card["skipped"] == {SUSPECT: 98, "suspect: negative topk": 26}
    assert "MI450X" not in card["by"]["accelerator"]


def test_layers_of_experts_that_state_rates_alone_are_scored_by_these(tmp_path):
    with gzip.open(ROOT / "data/measured/amd_moe_kernels.csv.gz", "rt", encoding="utf-8") as stream:
        rows = [
            row
            for row in csv.DictReader(stream)
            if row["accelerator"] == "MI355X" and row["tflops"]
        ][:20]
    path = tmp_path / "rates.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(
            stream, [name for name in rows[0] if name != "time_us"], extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(rows)
    card = document("validate", path)
    assert (card["n"], card["scored"], list(card["by"]["target"])) == (20, 20, ["tflops"])


@pytest.mark.parametrize("name", ["moe_kernels", "mla_kernels", "amd_moe_kernels"])
def test_the_command_beside_a_row_gives_its_prediction(name):
    rows = validated(name).rows
    rows = rows[rows.skipped == ""]
    for _, row in rows.iloc[:: len(rows) // 3].iterrows():
        assert document(*shlex.split(row.command)[1:])[row.key] * row.scale == pytest.approx(
            row.predicted, rel=1e-9
        )


def test_accepted_lengths_are_met_by_one_chance_and_its_decline():
    validation = validated("speculative_acceptance")
    assert validation.kind == "acceptance"
    assert validation.card["scored"] == 72
    assert validation.card["median_ape"] < 0.06


def test_an_accepted_length_beyond_its_drafts_is_refused(own_data):
    rows = "model,draft_tokens,acceptance_length_tokens_per_step\na,3,4.5\nb,3,0.5\nc,,2\nd,3,2.5\n"
    validation_document = document("validate", str(own_data.write("lengths.csv", rows)))
    assert validation_document["scored"] == 1
    assert sorted(validation_document["skipped"].values()) == [1, 2]


def test_a_header_without_its_other_columns_is_named(own_data):
    done = tco(
        "validate",
        str(own_data.write("half.csv", "accelerator,mla_dtype,time_us\nH100 SXM,bfloat16,10\n")),
    )
    assert done.exit_code == 3
    assert "half.csv:1" in done.stderr
    assert "op_name" in done.stderr


def test_small_files_of_other_publishers_are_read():
    for name, count in {"mi450x_grouped_gemm": 8, "amd_collectives": 64}.items():
        assert validated(name).card["scored"] == count, file_of(name)
