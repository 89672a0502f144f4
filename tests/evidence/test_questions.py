"""Questions of claims against figures that vendors and papers publish: no plan is searched."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tco.core.errors import DataError
from tco.evidence import check
from tco.evidence.check import check_claim
from tco.evidence.draws import ClaimUnderDraws, ConclusionProbability
from tco.evidence.ledger import Premise, read_ledger
from tco.evidence.questions import Context, Underived
from tco.scenario.evaluate_samples import Draws
from tests.catalogue import CATALOGUE

COST, TOKENS = "usd_per_million_output_tokens", "output_tokens_per_s_per_chip"
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
    premises = {
        "rows": Premise("7", 7.0, ""),
        "port": Premise("400 Gb/s", 50e9, "Gb/s"),
        "lane": Premise("100 Gb/s", 12.5e9, "Gb/s"),
    }
    assert finding_of(formula, unit, premises=premises).computed == pytest.approx(figure, rel=1e-9)


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


@pytest.mark.parametrize(
    ("probability", "verdict"),
    [(1.0, "holds"), (0.9, "holds"), (0.89, "open"), (0.11, "open"), (0.1, "off"), (0.0, "off")],
)
def test_a_conclusion_holds_or_is_off_from_nine_draws_of_ten(monkeypatch, probability, verdict):
    judged = ConclusionProbability(probability, None, None, [], None)
    monkeypatch.setattr(check, "conclusion_probability", lambda *_: judged)
    claim = LEDGER["C001"]._replace(
        formula="chips(gb200-nvl72)", formula_unit="", kind="drawn", note=""
    )
    finding = check_claim(Context(CATALOGUE, {}, LEDGER | {"C001": claim}, claim))
    assert finding.verdict == verdict
    assert finding.conclusion is judged


def test_a_metric_in_draws_is_missed_without_end_or_does_nothing(monkeypatch):
    questions = []
    quick = Draws(
        {COST: np.array([9.0, 9.0, 9.0])}, np.array([True, False, False]), None, [], np.zeros(3)
    )
    slow_metrics = {COST: np.array([2.0, 4.0, 8.0]), TOKENS: np.array([3.0, 5.0, 7.0])}
    slow = quick._replace(
        metrics=slow_metrics, meets=np.array([True, True, False]), by_speed={80.0: quick}
    )

    def draws_of(_, scenario, settings, works):
        questions.append((scenario, settings, works))
        return slow, 20.0

    monkeypatch.setattr(ClaimUnderDraws, "draws_of", draws_of)
    context = Context(CATALOGUE, {"terms.rate": "0.2"}, LEDGER, LEDGER["C001"])
    scope = ClaimUnderDraws(context, (80.0,))
    cost = scope.metric("rack", COST, **{"terms.rate": "0.1", "terms.life": "4 year"})
    # what the user sets goes before what the claim does
    assert questions == [("rack", {"terms.rate": "0.2", "terms.life": "4 year"}, True)]
    assert (cost.value / cost.value[0] * 2).tolist() == [2.0, 4.0, np.inf]
    tokens = scope.metric("rack", TOKENS)
    assert (tokens.value / tokens.value[0] * 3).tolist() == [3.0, 5.0, 0.0]
    scope.speed = 20.0
    assert (scope.metric("rack", COST).value == cost.value).all()
    assert not scope.depends_on_speed
    scope.speed = 80.0
    assert np.isinf(scope.metric("rack", COST).value).tolist() == [False, True, True]
    assert scope.depends_on_speed
    with pytest.raises(Underived, match="rack has no output_tokens"):
        scope.metric("rack", TOKENS)
