"""Questions of claims against figures that vendors and papers publish: no plan is searched."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco.core.errors import DataError
from tco.evidence.check import check_claim
from tco.evidence.ledger import Premise, read_ledger
from tco.evidence.questions import Context
from tests.catalogue import CATALOGUE

LEDGER = read_ledger(CATALOGUE)


def finding_of(formula, unit="", settings=None, **fields):
    """Return the finding on a claim that has another formula."""
    claim = LEDGER["C001"]._replace(
        formula=formula, formula_unit=unit, note="", kind="computed", **fields
    )
    ledger = LEDGER | {"C001": claim}
    return check_claim(Context(CATALOGUE, settings or {}, ledger, claim))


@pytest.mark.parametrize(
    ("formula", "unit", "figure"),
    [
        # 36 superchips of two GPUs and a CPU, on nine trays of two switches
        ("chips(gb200-nvl72)", "", 72),
        ("racks(gb200-nvl72)", "", 1),
        ("count(gb200-nvl72, grace-cpu)", "", 36),
        ("count(gb200-nvl72, nvswitch-5)", "", 18),
        ("count(gb200-nvl72, 'n*switch-5')", "", 18),
        ("chips(trn3-nl72x2)", "", 144),
        ("racks(trn3-nl72x2)", "", 2),
        # 8 shelves of 4,500 USD, and a manifold of 8,000
        ("price(gb200-nvl72, power-shelf-33kw)", "USD", 36_000),
        ("price(gb200-nvl72, power-shelf-33kw, rack-manifold)", "USD", 44_000),
        # a cube of 4 x 4 x 4, and a square of 4 x 4
        ("torus(tpuv7-cube64, places)", "", 64),
        ("torus(tpuv7-cube64, dimensions)", "", 3),
        ("torus(tpuv7-cube64, longest)", "", 4),
        ("torus(tpuv7-cube64, neighbours)", "", 6),
        ("torus(trn2-nl16, places)", "", 16),
        ("torus(trn2-nl16, neighbours)", "", 4),
        # fat trees of switches of 64 ports: k, k^2 / 2 and k^3 / 4
        ("clos_reach(64)", "", 64),
        ("clos_reach(64, 64)", "", 2048),
        ("clos_reach(64, 64, 64)", "", 65_536),
        ("experts(deepseek-v3, all)", "", 256),
        ("experts(deepseek-v3, active)", "", 8),
        ("peak(gb200-nvl72, fp8)", "PFLOP/s", 5),
        ("peak(gb200-nvl72, bf16)", "PFLOP/s", 2.5),
        ("chip(gb200-nvl72, hbm_bandwidth)", "TB/s", 8),
        ("chip(h100-hgx8, scale_up_bandwidth)", "GB/s", 450),
        # the latent of 512 and the key of 64 numbers of each of 61 layers
        ("cached_per_token(gb200-nvl72)", "byte/token", 61 * 576),
        ("scope(gb200-nvl72, world, chips)", "", 72),
        # every chip is a switch away from every other
        ("scope(gb200-nvl72, world, hops_worst)", "", 1),
        ("networks(gb200-nvl72)", "", 2),
        ("rows * 3", "", 21),
        ("port / lane", "", 4),
        ("C002 / C002 * 3", "", 3),
    ],
)
def test_a_question_is_answered_as_its_vendor_does(formula, unit, figure):
    given = {
        "rows": Premise("7", 7.0, ""),
        "port": Premise("400 Gb/s", 50e9, "Gb/s"),
        "lane": Premise("100 Gb/s", 12.5e9, "Gb/s"),
    }
    assert finding_of(formula, unit, given=given).computed == pytest.approx(figure, rel=1e-9)


def test_the_power_of_a_rack_is_that_of_its_operators():
    """Racks of GB200 draw 120 to 132 kW."""
    finding = finding_of("power(gb200-nvl72)", "kW")
    assert 115 < finding.computed < 135
    assert "parts.gb200-gpu.tdp" in finding.rests_on
    assert not any(path.endswith("price") for path in finding.rests_on)


def test_a_setting_goes_before_the_catalogue_and_is_what_a_claim_rests_on():
    settings = {"parts.gb200-gpu.hbm_bandwidth": "4 TB/s"}
    formula = "chip(gb200-nvl72, hbm_bandwidth)"
    finding = finding_of(formula, "TB/s", settings)
    assert finding.computed == pytest.approx(4)
    assert finding.rests_on == ["parts.gb200-gpu.hbm_bandwidth"]
    assert finding_of("chips(gb200-nvl72)").rests_on == []


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("C001 + 1", "C001 rests on itself"),
        ("chips(gb200-nvl7)", "did you mean 'gb200-nvl72'"),
        ("count(gb200-nvl72, grace-cpus)", "did you mean 'grace-cpu'"),
        ("torus(gb200-nvl72, places)", "the fabric is no torus"),
        ("torus(tpuv7-cube64, place)", "did you mean 'places'"),
        ("experts(llama-3.1-405b, all)", "has no routed experts"),
        ("rows * 3", "unknown name 'rows'"),
        ("scope(gb200-nvl72, room, chips)", "unknown extent 'room'"),
    ],
)
def test_a_question_that_has_no_answer_says_why(formula, message):
    with pytest.raises(DataError, match=message):
        finding_of(formula)


def test_a_claim_without_a_formula_has_no_value():
    (bare,) = [claim for claim in LEDGER.values() if not claim.formula][:1]
    with pytest.raises(DataError, match=f"{bare.id} has no formula"):
        finding_of(f"{bare.id} + 1")


@pytest.mark.parametrize(
    ("formula", "figure"),
    [
        ("rate(rack, input_tokens_per_s_per_chip)", 300),
        # a quarter of the chips read, and the rest decode
        ("pool(rack, prefill)", 300 / 0.25),
        ("pool(rack, decode)", 60 / 0.75),
    ],
)
def test_a_chip_of_a_pool_does_what_all_chips_do_over_its_share(monkeypatch, formula, figure):
    workload = SimpleNamespace(
        rates={"input_tokens_per_s_per_chip": 300.0, "output_tokens_per_s_per_chip": 60.0},
        prefill_share=0.25,
    )
    monkeypatch.setattr(Context, "walked", lambda *_: workload)
    formula = formula.replace("rack", "gb200-nvl72")
    assert finding_of(formula, "token/s/chip").computed == pytest.approx(figure)
    workload.prefill_share = None
    if formula.startswith("pool"):
        with pytest.raises(DataError, match="serves on one pool"):
            finding_of(formula, "token/s/chip")
    workload.rates = {}
    with pytest.raises(DataError, match="gb200-nvl72 has no"):
        finding_of(formula, "token/s/chip")
