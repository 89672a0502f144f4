"""Peaks, memory and intensities of a chip and its domain, as `tco systems show` prints them."""

from __future__ import annotations

import json

import pytest

from tests.cli import tco
from tests.scenario_helpers import chip_figures, system_of


def figures(catalogue, name: str, settings=None, variant=None):
    inputs = system_of(name, variant, catalogue, **(settings or {}))
    return chip_figures(inputs, inputs.values())


def test_figures_of_a_trainium3_domain_are_those_by_hand(catalogue):
    """144 chips: 362 PFLOP/s of FP8, 20.7 TB and 706 TB/s, as published."""
    system_figures = figures(catalogue, "trn3-nl72x2")
    assert system_figures.domain["chips"] == 144
    assert system_figures.domain["peak_fp8_flop_per_s"] == pytest.approx(362e15, rel=0.003)
    assert system_figures.domain["hbm_bytes"] == 144 * 144 * 2**30
    assert system_figures.domain["hbm_byte_per_s"] == pytest.approx(706e12, rel=0.001)
    assert system_figures.chip["flop_per_byte_bf16"] == pytest.approx(671 / 4.9, rel=1e-12)
    assert (
        system_figures.chip["flop_per_byte_fp8"]
        == system_figures.chip["flop_per_byte_fp4"]
        == pytest.approx(2517 / 4.9, rel=1e-12)
    )
    assert system_figures.notes == []


@pytest.mark.parametrize(
    ("name", "published"), [("trn2-nl16", 225.9), ("h100-hgx8", 300), ("tpuv6e-256", 560)]
)
def test_intensities_are_the_published_ones(catalogue, name, published):
    assert figures(catalogue, name).chip["flop_per_byte_bf16"] == pytest.approx(published, rel=0.02)


def test_a_format_the_chip_does_not_compute_is_null_with_a_reason(catalogue):
    system_figures = figures(catalogue, "trn2-nl16")
    assert system_figures.chip["flop_per_byte_fp4"] is None
    assert system_figures.notes == ["flop_per_byte_fp4: trn2 computes no FP4"]


def test_a_value_nobody_states_is_null_with_a_reason(own_data):
    own_data.parts(
        *(
            f"my-chip,{name}"
            for name in (
                "price,9,USD,,,2026-01,vendor,tco-model,,",
                "tdp,9,W,,,2026-01,vendor,tco-model,,",
            )
        )
    )
    own_data.write("systems/mine.toml", MINE)
    system_figures = figures(own_data.catalogue(), "mine")
    assert set(system_figures.chip.values()) == {None}
    assert system_figures.domain == {"chips": 4, **dict.fromkeys(list(system_figures.domain)[1:])}
    assert (
        "parts.my-chip.hbm_bandwidth is missing, so what follows from it is not computed"
        in system_figures.notes
    )


def test_variant_changes_the_figures(catalogue):
    plain, fast = (
        figures(catalogue, "trn2-nl16", variant={"hbm": option}).chip for option in ("2.9", "3.2")
    )
    assert fast["flop_per_byte_bf16"] == pytest.approx(
        plain["flop_per_byte_bf16"] * 2.9 / 3.2, rel=1e-12
    )


def test_the_page_and_the_document_agree():
    page, document = (
        tco("systems", "show", "gb200-nvl72").stdout,
        json.loads(tco("systems", "show", "gb200-nvl72", "--format", "json").stdout),
    )
    lines = {line.split(",")[0]: line.split() for line in page.splitlines()}
    chip, domain = document["figures"]["chip"], document["figures"]["domain"]
    assert lines["dense FP8 peak"][-3:] == ["5", "360", f"{chip['flop_per_byte_fp8']:.4g}"]
    assert domain["peak_fp8_flop_per_s"] == 360e15
    assert lines["HBM bandwidth"][-2:] == ["8", "576"]
    assert (domain["hbm_byte_per_s"], domain["chips"]) == (576e12, 72)
    assert document["notes"] == []
    assert document["tree"], "what was there before stays"


MINE = """\
name = "Mine"
chip = "my-chip"
owner_pays = "selling-price"
cooling = "air"
source = "tco-model"
racks = 1

[assemblies]
world = { my-chip = 4, power-shelf-33kw = 1 }

[fabric]
kind = "star"
"""
