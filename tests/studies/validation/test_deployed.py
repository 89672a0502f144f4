"""How much longer deployments take than best plans: a fit that finds what was put in, and plans that take as much longer."""

from __future__ import annotations

import csv
from functools import cache

import numpy as np
import pandas as pd
import pytest

from tco import evaluate
from tco.foundation.provenance import P95
from tco.performance.software import SPEEDS, shares_of
from tco.studies.validation.deployed import AGE, ON_SALE, deployed_rows, fitted, gaps
from tests.chain import plain_values
from tests.cli import document
from tests.shipped import CATALOGUE, DATA
from tests.studies.validation.today import table_of

RATE = "output_tokens_per_s_per_chip"
CHIPS = {"one": (1.0, 1.2, 1.5), "other": (1.8, 1.6, 1.2), "third": (1.3, 1.3, 1.3)}  # time at 20, 50 and 100 tokens/s a user
AGES = {"one": 1.0, "other": 1.0, "third": 1.0}  # years since the chip came out
USES = {"prompts_fp8": 1.15, "even_fp8": 1.0, "answers_fp4": 1 / 1.15}


def runs(noise=0.05, weak=0.0, bounds=0, chips=CHIPS, ages=AGES):
    """Runs of chips in three uses each, some of which are weak, and some that say the least that software does."""
    random = np.random.default_rng(1)
    rows = []
    for chip, times in chips.items():
        for use, factor in USES.items():
            for speed in np.geomspace(15, 150, 20):
                middle = np.exp(np.interp(np.log(speed), np.log(list(SPEEDS.values())), np.log(times)))
                lies_off = noise * random.normal() + (1.5 if random.random() < weak else 0.0)
                rows.append((chip, use, speed, ages[chip], middle * factor * np.exp(lies_off), False))
        rows += [(chip, "even_fp8", speed, ages[chip], 4.0, True) for speed in np.geomspace(15, 150, bounds)]
    return pd.DataFrame(rows, columns=["chip", "use", "speed", "age", "times", "bound"])


@pytest.mark.parametrize(("weak", "bounds"), [(0.0, 0), (0.1, 0), (0.0, 10), (0.1, 10)])
def test_a_fit_finds_what_was_put_in_whatever_weak_and_young_runs_say(weak, bounds):
    found = {(row["family"], row["attribute"]): row["value"] for row in deployed_rows(runs(weak=weak, bounds=bounds), "2026-11")}
    for chip, times in CHIPS.items():
        for use, factor in USES.items():
            for name, time in zip(SPEEDS, times, strict=True):
                assert found[chip, f"deployed_{name}"] * found[chip, f"deployed_{use}"] == pytest.approx(time * factor, rel=0.06)


def test_a_chip_without_runs_lies_anywhere_among_chips():
    """Its logarithm is as wide as those of the three chips, with what is not known of their middle."""
    found = {row["attribute"]: row for row in deployed_rows(runs(), "2026-11") if row["family"] == "chip"}
    spread = np.std([np.log(time) for times in CHIPS.values() for time in np.array(times) / np.mean(list(CHIPS.values()), axis=0)])
    row = found["deployed_middle"]
    assert np.log(row["high"] / row["value"]) / P95 > spread
    assert 1.2 < row["value"] < 1.6
    assert found["deployed_prompts_bf16"]["value"] == 1


def test_a_chip_without_runs_is_one_a_year_after_its_release():
    """Six chips that lose a fifth with every year they are out: what is said of another is the line at one year, and much nearer than chips lie."""
    ages = {str(number): 0.5 * number for number in range(1, 7)}
    chips = {name: tuple(1.1 * 1.2 ** (age - 1) for _ in SPEEDS) for name, age in ages.items()}
    found = {(row["family"], row["attribute"]): row for row in deployed_rows(runs(chips=chips, ages=ages), "2026-11")}
    row = found["chip", "deployed_middle"]
    assert row["value"] == pytest.approx(1.1, rel=0.05)
    assert row["high"] / row["low"] < 1.2
    assert found["6", "deployed_middle"]["value"] == pytest.approx(chips["6"][1], rel=0.05)


def test_single_runs_lie_off_by_the_noise_put_in():
    made = fitted(runs(noise=0.05))
    assert np.sqrt(made.scatter) == pytest.approx(0.04, abs=0.01)  # the core of Student's t is narrower than a bell curve
    (row,) = (row for row in deployed_rows(runs(noise=0.05), "2026-11") if row["family"] == "run")
    assert np.log(row["high"]) / P95 == pytest.approx(np.sqrt(made.scatter), rel=0.01)


@pytest.mark.parametrize(("speed", "times"), [(15, 1.1), (50, 1.25), (100, 1.3)])
def test_a_plan_as_deployed_is_a_best_plan_of_a_higher_speed(speed, times):
    """R(v) = R*(t v) / t with public software, in each regime of speed."""
    plain = {"workload.ttft": "0 s", "workload.draft_tokens": "0", "workload.software": "public"}
    row = "performance.gb200-gpu.deployed_"
    deployed = {f"{row}slow": "1.1", f"{row}middle": "1.25", f"{row}fast": "1.3", f"{row}prompts_fp8": "1"}
    best = plain | {"workload.as_deployed": "0", "workload.interactivity": f"{speed * times!r} token/s"}
    found = evaluate("gb200-nvl72", plain | deployed | {"workload.interactivity": f"{speed} token/s"}, catalogue=CATALOGUE).metrics[RATE]
    assert found == pytest.approx(evaluate("gb200-nvl72", best, catalogue=CATALOGUE).metrics[RATE] / times, rel=1e-6)


def test_the_best_software_leaves_nothing_of_the_gap():
    best = {"workload.software": "best"}
    found = [evaluate("trn3-nl72x2", best | {"workload.as_deployed": flag}, catalogue=CATALOGUE).metrics[RATE] for flag in "01"]
    assert found[1] == pytest.approx(found[0], rel=1e-9)


@cache
def measured():
    """The published runs that no other run beats, over the best plans."""
    return pd.concat([gaps(table_of(kind), CATALOGUE, plain_values()) for kind in ("inference", "trainium_inference")], ignore_index=True)


@pytest.mark.thorough
def test_what_is_shipped_is_the_fit_of_the_rows_that_are():
    found = {(row["family"], row["attribute"]): row for row in deployed_rows(measured(), "2026-11")}
    with (DATA / "calibration" / "deployed.csv").open(encoding="utf-8") as file:
        shipped = {(row["family"], row["attribute"]): row for row in csv.DictReader(file)}
    assert found.keys() == shipped.keys()
    for key, row in found.items():
        for name in ("value", "low", "high"):
            assert float(shipped[key][name]) == pytest.approx(row[name], rel=0.01, abs=0.005), (key, name)


# ---------------------------------------------------------------- against published rates
CHIP_OF = {"gb200-nvl72": ("GB200", "gb200-gpu"), "b200-hgx8": ("B200", "b200-sxm"), "mi355x-8": ("MI355X", "mi355x")}
BASE = "gb200-nvl72"


def published(speed):
    """The most output tokens a second and chip that published runs of each chip make at a speed: R1 or V3 in FP8, 8k in, 1k out."""
    table = table_of("inference")
    fits = table.model.str.contains("R1|V3") & table.precision.str.contains("fp8") & table.isl_tokens.astype(float).between(8000, 8300)
    fits &= table.osl_tokens.astype(float).between(900, 1100) & (table.interactivity_tok_s_per_user.astype(float) >= 0.985 * speed)
    decoding = (table.decode_gpus.astype(float) / table.n_gpus.astype(float)).fillna(1.0)
    rates = table.output_tput_tok_s_per_gpu.astype(float) * decoding
    return {name: rates[fits & table.accelerator.str.match(rf"{chip}\b")].max() for name, (chip, _) in CHIP_OF.items()}


def chip_hours(*settings):
    """Chip-hours a token over GB200's in the middle of the draws, by system and speed."""
    found = document("compare", *CHIP_OF, "--baseline", BASE, "--speeds", "20,50", *(word for one in settings for word in ("--set", one)))
    hours = {row["scenario"]: row["metrics"]["tco_usd_per_used_chip_hour"] for row in found["rows"]}
    tokens = {(one["scenario"], one["tokens_per_s_per_user"]): one["median_usd_per_million_output_tokens"] for one in found["curve"]}
    return {(name, speed): cost / tokens[BASE, speed] * hours[BASE] / hours[name] for (name, speed), cost in tokens.items() if name != BASE}


@pytest.mark.thorough
def test_costs_stand_as_published_ones_do():
    """Within 25 %, prices apart."""
    ours = chip_hours()
    for (name, speed), ratio in ours.items():
        rates = published(speed)
        assert ratio == pytest.approx(rates[BASE] / rates[name], rel=0.25), (name, speed)


@pytest.mark.thorough
def test_most_runs_lie_in_the_range_of_a_fit_that_saw_them():
    """Eight in ten in P10 to P90, give or take eight in a hundred, of every chip with twenty runs or more."""
    made, known = fitted(measured()), measured()[~measured().bound]
    inside = []
    for run in known.itertuples():
        shares = dict(zip(SPEEDS, shares_of(run.speed, SPEEDS), strict=True))
        weighed = [({("common", name), ("chip", f"{run.chip} {name}")}, share) for name, share in shares.items()]
        age = {AGE: run.age - ON_SALE}
        has = np.array(
            [
                age.get(own, 0.0) + sum(share for owners, share in [*weighed, ({("use", f"{run.chip} {run.use}")}, 1.0)] if own in owners)
                for own in made.owners
            ]
        )
        width = np.sqrt(has @ made.covariance @ has + made.scatter)
        inside.append(abs(np.log(run.times) - has @ made.effects) < 1.2816 * width)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.08)
    for chip, own in known.assign(inside=inside).groupby("chip"):
        assert len(own) < 20 or own.inside.mean() == pytest.approx(0.8, abs=0.08), chip
