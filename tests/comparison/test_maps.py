"""Each point of a map of two inputs equals an evaluation there, and the best system is the best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tco
from tco import DataError, map_of
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.cli import tco as command

NOBODY = -1

TRN3, GB200, TOKEN = "trn3-nl72x2", "gb200-nvl72", "usd_per_million_output_tokens"
SPEED, PRICE = "workload.interactivity", "parts.gb200-gpu.price"


def test_point_of_a_map_equals_an_evaluation_there():
    metric_map = map_of(
        [TRN3, GB200],
        (SPEED, PRICE),
        TOKEN,
        (("20 token/s", "60 token/s"), ("20000 USD", "60000 USD")),
    )
    for row, column in ((0, 0), (len(metric_map.y.values) - 1, 3)):
        settings = {
            SPEED: f"{float(metric_map.x.values[column])!r} token/s",
            PRICE: f"{float(metric_map.y.values[row])!r} USD",
        }
        costs = [
            tco.evaluate(name, settings, catalogue=CATALOGUE).metrics[TOKEN]
            for name in (TRN3, GB200)
        ]
        # a batch is solved here, and searched on a grid there
        assert metric_map.values[:, row, column] == pytest.approx(costs, rel=0.02)
        assert metric_map.best[row, column] == int(np.argmin(costs))
    # the price of the other's chip moves nothing
    assert np.ptp(metric_map.values[0], axis=0) == pytest.approx(0)
    assert sum(metric_map.leaders.values()) == pytest.approx(1)


def test_best_is_the_least_cost_or_the_highest_rate_or_none_without_values():
    values = np.array([[1.0, 3.0, np.nan], [2.0, np.nan, np.nan]])
    metric_map = replace(
        map_of([GB200], ("terms.rate", PRICE), "tco_usd_per_chip_hour"), values=values
    )
    assert metric_map.best.tolist() == [0, 0, NOBODY]
    assert replace(metric_map, metric="output_tokens_per_s_per_chip").best.tolist() == [
        1,
        0,
        NOBODY,
    ]


def test_the_command_prints_table_and_document():
    words = (
        "solve",
        TRN3,
        "--vary",
        SPEED,
        "--vary",
        PRICE,
        "--from",
        "10 token/s",
        "--from",
        "1e4 USD",
        "--to",
        "80 token/s",
        "--to",
        "6e4 USD",
        "--until",
        f"{TOKEN}={GB200}",
    )
    map_document = document(*words)
    assert map_document["schema"] == "tco.solve-map/1"
    assert {best_scenario for row in map_document["best"] for best_scenario in row} <= {
        TRN3,
        GB200,
        None,
    }
    assert len(map_document["best"]) == len(map_document["inputs"][1]["values"])
    assert f"A {TRN3}" in command(*words).stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--vary", PRICE, "--until", f"{TOKEN}={GB200}"), 2, "name both"),
        (
            ("--vary", "site.electricty_price", "--until", f"{TOKEN}={GB200}"),
            3,
            "did you mean 'site.electricity_price'",
        ),
        (("--vary", SPEED, "--until", f"{TOKEN}=3"), 2, "expected METRIC=SCENARIO"),
        (
            ("--vary", SPEED, "--from", "3", "--until", f"{TOKEN}={GB200}"),
            2,
            "--from is given 1 times and --vary 2",
        ),
    ],
)
def test_impossible_map_is_refused(words, code, message):
    done = command("solve", TRN3, "--vary", PRICE, *words)
    assert (done.exit_code, message in done.stderr) == (code, True), done.stderr


def test_inputs_that_move_nothing_are_refused():
    with pytest.raises(DataError, match="no scenario of trn3-nl72x2 reads it"):
        map_of(
            [TRN3],
            (PRICE, "parts.h100-sxm.price"),
            TOKEN,
            (("1e4 USD", "6e4 USD"), ("1e4 USD", "6e4 USD")),
        )
