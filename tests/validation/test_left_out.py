"""Left-out errors follow from the stored refits, and an altered one is noticed."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from tco.validation.back_test import pair_order_accuracy
from tco.validation.calibrate import Refit, left_out_predictions
from tco.validation.fit import scores_of_rows
from tests.catalogue import CATALOGUE
from tests.scenario_helpers import plain_values
from tests.validation.today import KINDS, ROOT, FitProblem, scores, table_of

pytestmark = pytest.mark.thorough

# a chip whose refit is run again
SAMPLES = {
    "kernels": "h100-sxm",
    "collectives": "h100-sxm",
    "training": "b200-sxm",
    "inference": "mi355x",
}
SAMPLES |= {"amd_gemm_kernels": "mi300x", "mla_kernels": "h100-sxm", "moe_kernels": "h100-sxm"}


def stated(name):
    return list(csv.DictReader((ROOT / f"data/accuracy/{name}.csv").read_text().splitlines()))


def problem_of(kind):
    return FitProblem(
        kind if kind in KINDS else "kernels", table_of(kind), CATALOGUE, plain_values(), kind
    )


def refit_predictions(problem, kind):
    """Return the predictions of every group left out, by the parameters of its refit.

    All are computed at once.
    """
    sets: dict[tuple[str, str], dict[str, float]] = {}
    for row in stated("left_out"):
        if row["kind"] == kind:
            sets.setdefault((row["left_out"], row["member"]), {})[row["path"]] = float(row["value"])
    predictions = problem.predict(problem.measurements)
    groups = [group for group in problem.groups_to_leave_out() if group[:2] in sets]
    paths = [parameter.path for parameter in problem.free.parameters]
    predicted = problem.predictions_at(
        np.log([[sets[group[:2]][path] for path in paths] for group in groups])
    )
    refits = []
    for (name, member, is_left_out), group_prediction in zip(groups, predicted, strict=True):
        rows = np.flatnonzero(is_left_out & (predictions.skip == ""))
        refits.append(Refit(name, member, sets[name, member], rows, group_prediction[rows]))
    return predictions, refits


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_left_out_figure_follows_from_its_refits(kind):
    problem = problem_of(kind)
    predictions, refits = refit_predictions(problem, kind)
    by_name = {row["left_out"]: row for row in stated("kinds") if row["kind"] == kind}
    assert {refit.left_out for refit in refits} == set(by_name) - {"nothing"}
    for name in {refit.left_out for refit in refits}:
        parts = [refit for refit in refits if refit.left_out == name]
        card = scores(
            np.concatenate([predictions.target[refit.rows] for refit in parts]),
            np.concatenate([refit.predicted for refit in parts]),
        )
        for figure in ("n", "median_ape", "p90_ape", "spearman"):
            assert float(by_name[name][figure]) == pytest.approx(card[figure], abs=2e-4), (
                f"{kind}, {name} left out: {figure}"
            )
    blind = left_out_predictions(predictions, refits)
    for row in (row for row in stated("chips") if row["kind"] == kind):
        median = scores_of_rows(blind, problem.measurements.parts == row["part"])["median_ape"]
        assert row["left_out"] == ("" if median is None else row["left_out"])
        assert median is None or float(row["left_out"]) == pytest.approx(median, abs=2e-4), row[
            "part"
        ]
    for row in (row for row in stated("orders") if row["kind"] == kind):
        again = pair_order_accuracy(problem.measurements, blind)
        assert [float(row[name]) for name in ("pairs", "right", "ratio_error")] == pytest.approx(
            [again[name] for name in ("pairs", "right", "ratio_error")], abs=2e-4
        )


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_refit_run_again_finds_the_same(kind):
    """The stored values of a chip left out are where the search from the priors ends."""
    problem, part = problem_of(kind), SAMPLES[kind]
    stored_values = {
        row["path"]: float(row["value"])
        for row in stated("left_out")
        if (row["kind"], row["left_out"], row["member"]) == (kind, "accelerator", part)
    }
    (again,) = problem.fit_without_each([problem.measurements.parts == part])
    assert again.converged
    assert set(stored_values) == set(again.values)
    for path, value in again.values.items():
        assert stored_values[path] == pytest.approx(value, rel=1e-3), path


@pytest.mark.parametrize("kind", ["kernels", "collectives", "inference"])
def test_a_fitted_range_reaches_the_values_that_refits_found(kind):
    refit_values = {}
    for row in stated("left_out"):
        if row["kind"] == kind:
            refit_values.setdefault(row["path"], []).append(float(row["value"]))
    fitted = list(csv.DictReader((ROOT / f"data/calibration/{kind}.csv").read_text().splitlines()))
    for row in fitted:
        # what no refit explains: the back-test holds it
        if row["attribute"].startswith("unexplained_"):
            continue
        values = refit_values[f"performance.{row['family']}.{row['attribute']}"]
        assert float(row["low"]) <= min(values) * 1.001, row
        assert float(row["high"]) >= max(values) * 0.999, row


def test_a_refit_that_finds_little_does_not_raise_the_other_end():
    """A refit that finds a tenth of the wait widens the low end of its range alone.

    The refit leaves out the largest model; nothing says that the wait may be ten times as long.
    """
    rows = {
        row["attribute"]: row
        for row in csv.DictReader(
            (ROOT / "data/calibration/inference.csv").read_text().splitlines()
        )
    }
    wait = rows["exchange_wait"]
    assert (
        float(wait["high"]) / float(wait["value"]) < 2 < float(wait["value"]) / float(wait["low"])
    )
