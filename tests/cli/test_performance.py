"""The screen of `tco perf` says what its dashes are, and its evidence in sentences."""

from __future__ import annotations

import math
import re

import pytest

from tests.cli import document, tco


@pytest.mark.parametrize("name", ["h100-hgx8", "llama-3.1-405b-training-gb200-nvl72"])
def test_dashes_stand_where_a_resource_has_no_peak(name):
    perf = document("perf", name)
    operators, figures = perf["operators"], perf["figures"]
    assert {row["bound"] for row in operators if row["of_bound"] is not None} <= {
        "compute",
        "memory",
    }
    text = " ".join(tco("perf", name).stdout.split())
    assert "-: only compute and memory have a peak." in text
    assert any(row["at_bound"] is None for row in figures) == (name == "h100-hgx8")


def test_error_of_a_fit_without_the_chip_is_a_sentence():
    text = " ".join(tco("perf", "gb200-nvl72").stdout.split())
    assert "of gb200-gpu, median error 6 %. A fit without these runs has a median error of" in text


def test_plan_is_said_to_be_of_decode_where_there_is_one():
    assert "Plan of decode: data parallel" in tco("perf", "gb200-nvl72").stdout
    training = tco("perf", "llama-3.1-405b-training-gb200-nvl72").stdout
    assert "Plan: tensor parallel" in training


@pytest.mark.parametrize("name", ["trn3-nl72x2", "gb200-nvl72", "h100-hgx8"])
def test_rate_per_chip_is_the_product_of_the_factors_on_the_screen(name):
    text = tco("perf", name).stdout
    (line,) = [line for line in text.splitlines() if " output tokens/s per decode chip x " in line]
    product, _, rate = line.partition(" = ")
    factors = [
        float(factor.replace(",", "")) for factor in re.findall(r"(?:^|x )([\d.,]+) ", product)
    ]
    assert len(factors) == 4
    assert "for production overhead" in product
    stated = document("perf", name)["metrics"]["output_tokens_per_s_per_chip"]
    assert math.prod(factors) == pytest.approx(stated, rel=3e-3)
    assert float(rate.split()[0].replace(",", "")) == pytest.approx(stated, rel=5e-3)
