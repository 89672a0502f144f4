"""No file of published measurements has a larger median error or tail than the committed report."""

import csv

import numpy as np
import pytest

from tests.scenario_helpers import plain_values
from tests.validation.today import (
    KINDS,
    ROOT,
    file_of,
    rows_of,
    scored,
    table_of,
    validated,
)

MAY_RISE = {"median_ape": 0.01, "p90_ape": 0.03}


def committed(kind):
    rows = list(csv.DictReader((ROOT / f"reports/validation/{kind}.csv").read_text().splitlines()))
    return rows[0], {row["member"]: row for row in rows if row["group"] == "left_out"}


@pytest.mark.parametrize("kind", KINDS)
def test_no_error_rises_above_the_committed_one(kind):
    validation = validated(kind)
    assert validation.kind == kind
    committed_scores, left_out = committed(kind)
    for name, rise in MAY_RISE.items():
        assert validation.card[name] <= float(committed_scores[name]) + rise, (
            f"{kind}: {name} rose from {committed_scores[name]} to {validation.card[name]:.4f}"
        )
    # what the catalogue says beside every answer is what the file gives today
    stated = validation.card["left_out"]["nothing"]
    assert stated["median_ape"] == pytest.approx(validation.card["median_ape"], abs=0.002)
    assert stated["n"] == validation.card["scored"]
    assert left_out


@pytest.mark.parametrize(
    "kind",
    sorted(path.name.removesuffix(".csv.gz") for path in (ROOT / "data/measured").glob("*.csv.gz")),
)
def test_every_measured_row_names_its_source(kind):
    assert (table_of(kind).source_id != "").all()


def test_a_model_made_worse_is_seen():
    worse = plain_values(performance__nvidia__tile_efficiency="0.5")
    committed_scores, _ = committed("kernels")
    card = scored(file_of("kernels"), worse).card
    assert card["median_ape"] > float(committed_scores["median_ape"]) + MAY_RISE["median_ape"]


def test_errors_inside_a_curve_are_free_of_its_offset():
    card = validated("inference").card
    assert card["curves"]["n"] > 100
    assert card["curves"]["p90_ape"] < card["p90_ape"]
    assert np.isfinite(card["curves"]["spearman_p10"])


@pytest.mark.parametrize("kind", ["collectives", "inference", "training"])
def test_what_is_said_of_a_chip_is_so(kind):
    """The error beside an answer is that of the chip's own rows today."""
    rows, parts = validated(kind).rows, np.array(rows_of(table_of(kind)).parts)
    error, is_scored = (
        np.abs(rows.predicted / rows.measured - 1).to_numpy(),
        (rows.skipped == "").to_numpy(),
    )
    stated = [
        row
        for row in csv.DictReader((ROOT / "data/accuracy/chips.csv").read_text().splitlines())
        if row["kind"] == kind
    ]
    assert {row["part"] for row in stated} == set(parts[is_scored])
    for row in stated:
        chip_errors = error[is_scored & (parts == row["part"])]
        assert int(row["n"]) == len(chip_errors), row["part"]
        assert [float(row["median_ape"]), float(row["p90_ape"])] == pytest.approx(
            [np.median(chip_errors), np.quantile(chip_errors, 0.9)], abs=0.002
        ), row["part"]
