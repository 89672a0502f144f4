"""Deployments reach a share of the best plans of their class: fits and published rates."""

from __future__ import annotations

import csv
from functools import cache

import numpy as np
import pandas as pd
import pytest

from tco.core.provenance import P95
from tco.validation.deployed import (
    CLASS,
    ENGINE,
    ENVELOPE,
    FAMILY_SPREAD,
    PUBLISHER_SPREAD,
    deployed_rows,
    family_effects,
    fit_mixed_model,
    gaps,
)
from tests.catalogue import CATALOGUE, DATA
from tests.cli import document
from tests.scenario_helpers import plain_values
from tests.validation.today import table_of

CLASSES = {"server": -0.1, "apart": -0.25}  # logarithms of the share of the best rate
ENGINES = {"trtllm": 0.2, "sglang": -0.15, "vllm": -0.05}


def runs(noise=0.05, weak=0.0, spread=0.15):
    """Runs of thirty envelopes in two classes on three engines, some of which are weak."""
    random = np.random.default_rng(1)
    rows = []
    for number in range(30):
        level = spread * random.normal()
        for _ in range(8):
            operator, engine = random.choice(list(CLASSES)), random.choice(list(ENGINES))
            lies_off = noise * random.normal() - (1.5 if random.random() < weak else 0.0)
            share = CLASSES[operator] + ENGINES[engine] + level + lies_off
            rows.append((operator, engine, f"envelope {number}", "chip", 50.0, share))
    return pd.DataFrame(rows, columns=[CLASS, ENGINE, ENVELOPE, "chip", "speed", "share"])


CONFIGURED = pd.DataFrame(
    [("nvidia", "many", 0.02)] * 100
    + [("nvidia", "few", 0.1)] * 4
    + [("trainium", "alone", 0.87)] * 7,
    columns=["family", "source", "residual"],
)


@pytest.mark.parametrize("weak", [0.0, 0.1])
def test_a_fit_finds_what_was_put_in_whatever_weak_runs_say(weak):
    fitted_values = {
        row.family: row.value for row in deployed_rows(runs(weak=weak), CONFIGURED, "2026-11")
    }
    for operator, share in CLASSES.items():
        for engine, more in ENGINES.items():
            assert fitted_values[operator] * fitted_values[engine] == pytest.approx(
                np.exp(share + more), rel=0.06
            )
    assert fitted_values["benchmark"] == pytest.approx(
        np.sqrt(fitted_values["server"] * fitted_values["apart"]), rel=1e-3
    )


def test_what_systems_have_alone_is_as_wide_as_envelopes_lie_apart():
    (row,) = (
        row
        for row in deployed_rows(runs(spread=0.15), CONFIGURED, "2026-11")
        if row.family == "run"
    )
    assert row.value == 1
    assert np.log(row.high) / P95 == pytest.approx(0.15, rel=0.15)
    # the core of Student's t is narrower than a bell curve
    assert np.sqrt(fit_mixed_model(runs(noise=0.05)).noise.variance) == pytest.approx(
        0.04, abs=0.01
    )


def test_an_engine_without_runs_is_as_wide_as_engines_lie_apart():
    effects = fit_mixed_model(runs())
    mean, deviation = effects.of(ENGINE, "nobody's")
    assert mean == 0
    assert deviation == pytest.approx(np.std(list(ENGINES.values())), rel=0.3)


def test_a_family_shrinks_by_its_publishers_and_not_by_their_rows():
    """By hand: a mean of n medians of variance W^2 / n beside a prior of U^2."""
    effects_by_family = family_effects(CONFIGURED)
    for family, medians, count in (("nvidia", [-0.02, -0.1], 104), ("trainium", [-0.87], 7)):
        weight = len(medians) / PUBLISHER_SPREAD**2
        share = weight / (weight + 1 / FAMILY_SPREAD**2)
        assert effects_by_family[family] == pytest.approx(
            (share * np.mean(medians), np.sqrt(share / weight), count), rel=1e-12
        )


def test_seven_slow_runs_of_a_new_family_count_in_part():
    (row,) = (
        row for row in deployed_rows(runs(), CONFIGURED, "2026-11") if row.family == "trainium"
    )
    assert np.exp(-0.87) < row.value < 1
    assert row.low < np.exp(-0.87) < 1.2 * row.value


@cache
def measured():
    """The published runs that no other run beats, over the best plans of their class."""
    return pd.concat(
        [
            gaps(table_of(kind), CATALOGUE, plain_values())
            for kind in ("inference", "trainium_inference")
        ],
        ignore_index=True,
    )


@pytest.mark.thorough
def test_shipped_classes_lie_in_the_range_of_published_runs():
    """Half of a class's unbeaten runs at least lie in its shipped range, as does their median."""
    with (DATA / "calibration" / "deployment.csv").open(encoding="utf-8") as file:
        shipped = {
            row["family"]: row
            for row in csv.DictReader(file)
            if row["attribute"] == "deployment_efficiency"
        }
    for operator, class_runs in measured().groupby(CLASS):
        low, high = (np.log(float(shipped[operator][side])) for side in ("low", "high"))
        assert low < class_runs["share"].astype(float).median() < high
        assert class_runs["share"].astype(float).between(low, high).mean() >= 0.5, operator


# ---------------------------------------------------------------- against published rates
CHIP_OF = {
    "gb200-nvl72": ("GB200", "gb200-gpu"),
    "b200-hgx8": ("B200", "b200-sxm"),
    "mi355x-8": ("MI355X", "mi355x"),
}
BASE = "gb200-nvl72"


def published_rates(speed):
    """Return the highest published output tokens per second per chip at a speed, by chip.

    The runs are of R1 or V3 in FP8, with 8k tokens in and 1k out.
    """
    table = table_of("inference")
    fits = (
        table.model.str.contains("R1|V3")
        & table.precision.str.contains("fp8")
        & table.isl_tokens.astype(float).between(8000, 8300)
    )
    fits &= table.osl_tokens.astype(float).between(900, 1100) & (
        table.interactivity_tok_s_per_user.astype(float) >= 0.985 * speed
    )
    decoding = (table.decode_gpus.astype(float) / table.n_gpus.astype(float)).fillna(1.0)
    rates = table.output_tput_tok_s_per_gpu.astype(float) * decoding
    return {
        name: rates[fits & table.accelerator.str.match(rf"{chip}\b")].max()
        for name, (chip, _) in CHIP_OF.items()
    }


def chip_hours(*settings):
    """Chip-hours a token over GB200's in the middle of the draws, by system and speed."""
    comparison = document(
        "compare",
        *CHIP_OF,
        "--baseline",
        BASE,
        "--speeds",
        "20,50",
        *(word for setting in settings for word in ("--set", setting)),
    )
    hours = {
        row["scenario"]: row["metrics"]["tco_usd_per_used_chip_hour"] for row in comparison["rows"]
    }
    tokens = {
        (curve_point["scenario"], curve_point["tokens_per_s_per_user"]): curve_point[
            "median_usd_per_million_output_tokens"
        ]
        for curve_point in comparison["curve"]
    }
    return {
        (name, speed): cost / tokens[BASE, speed] * hours[BASE] / hours[name]
        for (name, speed), cost in tokens.items()
        if name != BASE
    }


@pytest.mark.thorough
@pytest.mark.xfail(
    reason="GB200 over MI355X at 20 tokens/s is 1.68 where 2.25 is published, and the search takes "
    "minutes",
    run=False,
)
def test_costs_stand_as_published_ones_do():
    """Within 25 %, prices apart, in the class of plans that is published."""
    ours = chip_hours("workload.operated_by=benchmark")
    for (name, speed), ratio in ours.items():
        rates = published_rates(speed)
        assert ratio == pytest.approx(rates[BASE] / rates[name], rel=0.25), (name, speed)
