"""A single chip: its scale-up domain serves as in its server, and it has no cost."""

from __future__ import annotations

import json

import pytest

import tco as package
from tests.cli import tco

PAIRS = [
    ("h100-sxm", "h100-hgx8"),
    ("b200-sxm", "b200-hgx8"),
    ("gb200-gpu", "gb200-nvl72"),
    ("mi300x", "mi300x-8"),
    ("mi355x", "mi355x-8"),
]


@pytest.mark.parametrize(("chip", "system"), PAIRS)
def test_a_chip_alone_serves_as_in_its_server(chip, system):
    settings = {"workload.model": "llama-3.1-8b"}
    chip_metrics, inside = (package.evaluate(name, settings).metrics for name in (chip, system))
    for metric in (
        "output_tokens_per_s_per_chip",
        "input_tokens_per_s_per_chip",
        "tpot_s",
        "ttft_s",
        "hbm_bytes",
        "scale_up_byte_per_s",
    ):
        assert chip_metrics[metric] == pytest.approx(inside[metric], rel=1e-12), metric


def test_a_chip_alone_costs_nothing_that_is_known():
    chip_result = package.evaluate("l40s", {"workload.model": "llama-3.1-8b"})
    assert chip_result.bill is None
    assert chip_result.metrics["tco_usd_per_chip_hour"] is None
    assert chip_result.metrics["capex_usd"] is None
    assert any("chip alone" in note for note in chip_result.notes)


@pytest.mark.parametrize(
    "command", [["price", "l40s"], ["bom", "h100-sxm"], ["compare", "h100-sxm"]]
)
def test_a_bill_of_a_chip_alone_is_refused(command):
    done = tco(*command)
    assert done.exit_code == 3
    assert "has no bill" in done.stderr


def test_the_size_of_the_domain_is_an_input():
    small, large = (
        json.loads(
            tco(
                "collective",
                "gb200-gpu",
                "--size",
                "1MiB",
                "--format",
                "json",
                "--set",
                f"parts.gb200-gpu.scale_up_domain={chips}",
            ).stdout
        )
        for chips in (8, 72)
    )
    assert small["ranks"] == 8
    assert large["ranks"] == 72


def test_a_system_id_with_a_variant_stands_for_a_scenario():
    gen1_result, gen3_result = (
        package.evaluate("trn3-nl72x2@switch=gen1"),
        package.evaluate("trn3-nl72x2@switch=gen3"),
    )
    assert gen1_result.metrics == package.evaluate("trn3-nl72x2").metrics
    assert gen1_result.metrics["capex_usd"] != gen3_result.metrics["capex_usd"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("trn3-nl72x2@switch", "KEY=VALUE"),
        ("trn3-nl72x2@switch=gen9", "gen"),
        ("h100-sxm@switch=gen2", "no variants"),
        ("h100-sxn", "h100-sxm"),
    ],
)
def test_a_bad_name_says_what_was_expected(name, words):
    done = tco("perf", name)
    assert done.exit_code == 3
    assert words in done.stderr


@pytest.mark.parametrize("plan", ["tp", "tp=", "=8", "tp=8,tp=4", ""])
def test_a_malformed_plan_is_refused(plan):
    done = tco("perf", "gb200-nvl72", "--plan", plan)
    assert done.exit_code == 2
    assert "--plan" in done.stderr
