"""Ranges contain the stated share of measured runs, and the share follows its inputs."""

from __future__ import annotations

import csv
import gzip
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tco import evaluate
from tco.validation import back_test as study
from tco.validation.unexplained import (
    effect_width,
    fit_variance_components,
    residuals,
    unexplained_rows,
)
from tests.catalogue import CATALOGUE
from tests.cli import document, tco
from tests.study_helpers import belief_of
from tests.validation.today import predicted, rows_of, table_of

HELD_BACK = ("tier B;", "tier C;")
PARAMETERS = {"inference": "unexplained_serving", "training": "unexplained_training"}

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "data/measured/inference.csv.gz"


@pytest.fixture(scope="module")
def some_runs(tmp_path_factory):
    """The rows of two chips of the file of serving runs, one of them a part of its rows."""
    with gzip.open(MEASURED, "rt", encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    chip = header.index("accelerator")
    chip_rows = [row for row in rows if "GB200" in row[chip]] + [
        row for row in rows if "H200" in row[chip]
    ][::4]
    path = tmp_path_factory.mktemp("measured") / "some.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *chip_rows])
    return path


def test_the_command_states_the_share_inside(some_runs):
    back_test_document = document("validate", str(some_runs), "--back-test")
    assert [chip_coverage["chip"] for chip_coverage in back_test_document["chips"]] == [
        "gb200-gpu",
        "h200-sxm",
    ]
    for coverage in [*back_test_document["chips"], back_test_document["summary"]]:
        assert coverage["inside"] + coverage["below"] + coverage["above"] == pytest.approx(1)
        assert coverage["inside"] > coverage["inside_by_parameters_alone"]
        assert coverage["median_width"] > 1
    assert back_test_document["summary"]["rows"] == sum(
        chip_coverage["rows"] for chip_coverage in back_test_document["chips"]
    )
    assert "are the ranges right?" in tco("validate", str(some_runs), "--back-test").stdout


def test_rows_are_counted_where_they_lie():
    draws = np.tile(np.linspace(0, 100, 101), (3, 1))
    coverage_totals = study.coverage_statistics(
        [study.range_coverage(np.array([50.0, 5.0, 95.0]), draws, draws / 2)]
    )
    assert coverage_totals == study.Tested(
        3,
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
        pytest.approx(9),
        pytest.approx(1 / 3),
    )


def test_a_range_moves_with_its_value():
    launch_range = belief_of(CATALOGUE.practice("nvidia", "launch_time"))
    tripled_range = study.rescaled_range(launch_range, 3 * launch_range.value)
    assert (tripled_range.low, tripled_range.value, tripled_range.high) == pytest.approx(
        (3 * launch_range.low, 3 * launch_range.value, 3 * launch_range.high)
    )


def test_kinds_without_ranges_are_refused():
    command_result = tco("validate", str(ROOT / "data/measured/collectives.csv.gz"), "--back-test")
    assert command_result.exit_code == 2
    assert "expected inference or training" in command_result.stderr


@cache
def left_by_the_fit(kind):
    """Return the residuals that today's fit leaves on its own rows."""
    table = table_of(kind)
    table = table[~table["notes"].astype(str).str.startswith(HELD_BACK)].reset_index(drop=True)
    measurements = rows_of(table)
    return residuals(kind, measurements, predicted(kind, measurements))


@pytest.mark.parametrize("kind", PARAMETERS)
def test_the_rows_of_the_catalogue_are_what_the_fit_leaves_unexplained(kind):
    residual_frame = left_by_the_fit(kind)
    for row in unexplained_rows(kind, residual_frame, CATALOGUE, "2026-11"):
        shipped_row = CATALOGUE.practice(row.family, row.attribute)
        assert shipped_row.value == 0
        assert (shipped_row.low, shipped_row.high) == pytest.approx(
            (row.low, row.high), rel=0.02, abs=1e-3
        )


@pytest.mark.parametrize("kind", PARAMETERS)
def test_rows_lie_inside_what_is_not_explained(kind):
    """Four rows in five lie within 1.28 standard deviations of their owners' effects.

    The effects of a row's owners are normal and add up.
    """
    residual_frame = left_by_the_fit(kind)
    owners = [
        *(residual_frame[level] for level in ("family", "chip", "engine", "model")),
        *(
            pd.Series(effect_owner, residual_frame.index)
            for effect_owner in ("configuration", "run")
        ),
    ]
    widths = {
        effect_owner: width_of(kind, effect_owner)
        for effect_owner in {owner for column in owners for owner in column} - {""}
    }
    variance = sum((column.map(widths).fillna(0.0) ** 2 for column in owners), 0.0)
    inside = residual_frame.residual.abs() < 1.2816 * np.sqrt(variance)
    assert 0.72 <= inside.mean() <= 0.88
    by = inside.groupby(residual_frame.chip).agg(["size", "mean"])
    assert by["mean"][by["size"] >= 30].min() > 0.55


def width_of(kind, owner):
    """Return the standard deviation of an owner's effect, from its P95.

    A model without a row of its own has that of all.
    """
    has_own_effect = (owner, PARAMETERS[kind]) in CATALOGUE.calibration_rows or owner in (
        *CATALOGUE.parts,
        *CATALOGUE.models,
    )
    return (
        np.log1p(CATALOGUE.practice(owner if has_own_effect else "model", PARAMETERS[kind]).high)
        / 1.6449
    )


def rows_of_chips(effects, runs):
    """Return rows of chips whose effects are known.

    Each configuration is one row, off its chip's effect by as much on either side.
    """
    chip_residuals = [
        (f"chip {chip_number}", effect + off)
        for chip_number, effect in enumerate(effects)
        for off in runs
    ]
    residual_frame = pd.DataFrame(chip_residuals, columns=["chip", "residual"])
    return residual_frame.assign(
        family="one", engine="one", model="one", configuration=range(len(chip_residuals))
    )


def test_variances_are_those_of_the_balanced_layout():
    """Likeliest variances of a balanced layout are SSW / a(n-1) and SSB/an - v_k/n.

    There are a chips with n configurations each, and the mean is zero.
    """
    effects, runs = np.array([-0.3, -0.2, 0.1, 0.4]), np.array([-0.15, -0.05, 0.05, 0.15])
    components = fit_variance_components(rows_of_chips(effects, runs))
    variances = components.variances
    inside = (runs**2).sum() / (len(runs) - 1)
    assert variances["configuration"] == pytest.approx(inside, rel=1e-3)
    assert variances["chip"] == pytest.approx((effects**2).mean() - inside / len(runs), rel=1e-3)
    assert max(variances[level] for level in ("family", "engine", "model")) < 0.003
    assert effect_width(components, "chip", "of another kind") == pytest.approx(
        variances["chip"] ** 0.5
    )


def test_more_rows_tell_more_of_a_chip():
    sparse_fit, dense_fit = (
        fit_variance_components(rows_of_chips([-0.2, 0.2, 0.0], np.tile([-0.1, 0.1], times)))
        for times in (1, 8)
    )
    assert (
        effect_width(dense_fit, "chip", "chip 2")
        < effect_width(sparse_fit, "chip", "chip 2")
        < effect_width(sparse_fit, "chip", "chip 3")
    )


def test_two_chips_share_what_they_have_in_common():
    b200_paths, h200_paths = (
        {
            path
            for path in evaluate(
                name, {"workload.interactivity": "20 token/s", "workload.as_deployed": "0"}
            ).inputs
            if path.endswith(".unexplained_serving")
        }
        for name in ("b200-hgx8", "h200-hgx8")
    )
    assert {path.split(".")[1] for path in b200_paths & h200_paths} == {
        "nvidia",
        "trtllm",
        "deepseek-v3",
    }
    assert {path.split(".")[1] for path in b200_paths - h200_paths} == {
        "b200-sxm",
        "configuration-b200-hgx8",
        "run-b200-hgx8",
    }


def test_what_nobody_has_measured_is_wider():
    width = {
        owner: CATALOGUE.practice(owner, "unexplained_serving").high
        for owner in ("b200-sxm", "trn3", "nvidia", "tpu")
    }
    # chips of a family have little in common beyond what is known of them
    assert width["b200-sxm"] <= width["trn3"]
    assert width["nvidia"] < width["tpu"]


def test_ratios_lie_inside_their_ranges():
    ratio_document = document("validate", str(MEASURED), "--ratios")["ratios"]
    assert ratio_document["n"] > 1000
    assert 0.70 <= ratio_document["inside"] <= 0.88
    assert ratio_document["median_off"] < 0.25
    assert ratio_document["order"] > 0.94
    assert (
        sum(chip_ratios["n"] for chip_ratios in ratio_document["by"]["accelerator"].values())
        <= 2 * ratio_document["n"]
    )
    # without its own rows H100's pairs over several servers are far off
    chips = ratio_document["by"]["accelerator"]
    assert (
        min(chip_ratios["inside"] for name, chip_ratios in chips.items() if name != "h100-sxm")
        > 0.70
    )
    assert chips["h100-sxm"]["inside"] < 0.70


def test_ratios_need_two_chips(some_runs, tmp_path):
    header, *rows = some_runs.read_text(encoding="utf-8").splitlines()
    gb200_file = tmp_path / "alone.csv"
    gb200_file.write_text(
        "\n".join([header, *(row for row in rows if "GB200" in row)][:20]) + "\n", encoding="utf-8"
    )
    command_result = tco("validate", str(gb200_file), "--ratios")
    assert command_result.exit_code == 3
    assert "no two chips" in command_result.stderr
