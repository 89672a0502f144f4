"""The claims ledger gives every verdict and value from the catalogue alone."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import shlex
import zlib
from pathlib import Path

import pytest

from tco import DataError, evaluate
from tco.evidence.check import SPEEDS, check_claim, check_claims
from tco.evidence.ledger import read_ledger
from tco.evidence.questions import Context
from tests.catalogue import data_directory
from tests.cli import document, tco
from tests.fabric_helpers import cheapest
from tests.registry import read_rows
from tests.scenario_helpers import links_of_system, plain_inputs, system_inputs

GOLDEN = {row["id"]: float(row["computed"]) for row in read_rows("claims.csv")}
# rest on hundreds of parts: held against published rack powers instead
BY_BILL = {
    "C035",
    "C130",
    "C150",
}
# Rest on the best plan of a whole evaluation, or on priors of collectives: figures that move with
# the engine. Their verdicts are held.
# costs of scenarios, whatever their chips do
BOUGHT = {
    "P010",
    "P011",
    "P012",
    "P013",
    "P018",
    "P020",
    "P021",
    "P023",
    "P030",
}
SERVED = {
    "C032",
    "C036",
    "C128",
    "C185",
    *(f"P{number:03d}" for number in (1, 2, 4, 5, 6, 7, 8, 14, 17, 19, 22, 28, 29)),
}
BY_PLAN = {"C093", "C171", "C172", "C173", "C174", "P009", "P015", "P016"} | SERVED | BOUGHT


@pytest.fixture(scope="module")
def findings(catalogue):
    return {finding.claim.id: finding for finding in check_claims(catalogue, {})[0]}


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out the draws that judge conclusions: what is computed of a claim rests on none."""
    monkeypatch.setattr("tco.evidence.check.conclusion_probability", lambda *_: None)


@pytest.fixture
def check_row(own_data):
    """Return a function that checks a row in place of the ledger's first one."""
    header, *_ = (
        (data_directory() / "claims" / "ledger.csv").read_text(encoding="utf-8").splitlines()
    )
    usual = {
        "id": "C001",
        "claimed": "1",
        "tolerance": "0",
        "relation": "equal",
        "kind": "computed",
        "verdict": "holds",
    }

    def check(formula, **cells):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(
            (usual | {"formula": formula} | cells).get(name, "") for name in header.split(",")
        )
        own_data.write("claims/ledger.csv", f"{header}\n{text.getvalue()}")
        catalogue = own_data.catalogue()
        ledger = read_ledger(catalogue)
        return check_claim(Context(catalogue, {}, ledger, ledger["C001"]))

    return check


def computed_values(findings_by_claim):
    return {claim: finding.computed for claim, finding in findings_by_claim.items()}


def test_ledger_lists_every_claim_in_order(findings):
    assert list(findings) == [
        *(f"C{number:03d}" for number in range(1, 198)),
        *(f"P{number:03d}" for number in range(1, 31)),
    ]
    assert {
        claim for claim, finding in findings.items() if finding.claim.formula
    } == GOLDEN.keys() | BY_BILL | BY_PLAN


def test_every_verdict_is_the_expected_one(findings):
    assert {
        claim: finding.verdict for claim, finding in findings.items() if not finding.as_expected
    } == {}


@pytest.mark.parametrize("claim", GOLDEN)
def test_computed_value_of_a_claim_is_the_golden_one(findings, claim):
    assert findings[claim].computed == pytest.approx(GOLDEN[claim], rel=0.005)


def test_peak_per_watt_agrees_with_published_rack_powers(findings):
    """24 kW a rack of the Trainium2 UltraServer, 104 kW a rack of NL72x2."""
    assert findings["C035"].computed == pytest.approx(
        144 * 2517 / (64 * 1299) * (2 * 24) / (2 * 104), rel=0.06
    )
    assert findings["C130"].computed == pytest.approx(27, rel=0.02)
    assert findings["C150"].computed == pytest.approx(1, abs=0.03)


def test_claim_that_is_not_derivable_has_a_note(findings):
    assert [
        claim
        for claim, finding in findings.items()
        if finding.verdict == "not-derivable" and not finding.claim.note
    ] == []
    assert [
        claim
        for claim, finding in findings.items()
        if finding.verdict == "contradicts" and not (finding.claim.note and finding.claim.against)
    ] == []


def test_sources_are_known(catalogue, findings):
    named = {finding.claim.source for finding in findings.values()} | {
        finding.claim.against for finding in findings.values()
    } - {""}
    assert named <= catalogue.sources.keys()


# ---------------------------------------------------------------- on what a claim rests
@pytest.mark.thorough
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("setting", "moved_claims"),
    [
        (
            {"parts.trn3.hbm_bandwidth": "4.0 TB/s"},
            {"C008", "C034", "C040", "C045", "C154", "C197"}
            | BY_PLAN - {"C093", "C128", "P009", "P010"} - BOUGHT,
        ),
        (
            {"parts.trn2.lane_bandwidth": "4.4 GB/s"},
            {
                "C051",
                "C052",
                "C063",
                "C105",
                "C106",
                "C107",
                "C108",
                "C109",
                "C032",
                "C036",
                "P019",
                "P028",
            },
        ),
        (
            {
                "parts.backplane-cable.pairs": "1 count",
                "shares.credo.price": "171.13 USD/share",
                "parts.mi355x.tdp": "1 kW",
            },
            {"C062", "C098", "C190"},
        ),
    ],
)
def test_setting_changes_only_dependent_claims_and_is_named_if_there_are_none(
    catalogue, findings, setting, moved_claims
):
    again, notes = check_claims(catalogue, setting)
    assert {
        finding.claim.id
        for finding in again
        if finding.computed != findings[finding.claim.id].computed
    } == moved_claims
    assert notes == [
        f"{path} is set, but no claim rests on it" for path in setting if path == "parts.mi355x.tdp"
    ]


@pytest.mark.thorough
@pytest.mark.usefixtures("undrawn")
def test_a_divisor_of_zero_leaves_a_claim_underived(catalogue):
    again = {
        finding.claim.id: finding
        for finding in check_claims(catalogue, {"parts.trn2.peak_fp8": "0 FLOP/s"})[0]
    }
    assert {
        claim
        for claim, finding in again.items()
        if finding.claim.verdict != "not-derivable" and finding.computed is None
    } == {
        "C017",
        "C031",
        "C033",
        "C035",
        "C049",
    }
    assert again["C017"].verdict == "not-derivable"
    assert again["C046"].computed == 0


# ---------------------------------------------------------------- claims on plans
def test_claim_on_a_plan_equals_the_evaluation_of_its_scenario(catalogue, findings):
    name = "llama-3.1-405b-training-trn3-nl72x2"
    dense, sparse = "llama-3.1-405b", "deepseek-v3"
    planned_claims = [("C171", dense, "public"), ("C174", sparse, "best")]
    for claim, model, software in planned_claims:
        settings = {
            "cluster.chips": "576",
            "workload.model": model,
            "workload.software": software,
            "workload.as_deployed": "0",
        }
        result = evaluate(name, settings, catalogue=catalogue)
        assert findings[claim].computed == pytest.approx(100 * result.metrics["mfu"])
        assert "parts.trn3.peak_bf16" in findings[claim].rests_on
        assert "site.pue" not in findings[claim].rests_on


def test_utilisation_of_training_on_few_domains_is_that_on_many(catalogue, findings):
    """The claims train on 576 chips, since the search for thousands takes long."""
    training_settings = {
        "workload.software": "public",
        "workload.as_deployed": "0",
        "cluster.chips": "4608",
    }
    cluster_result = evaluate(
        "llama-3.1-405b-training-trn3-nl72x2", training_settings, catalogue=catalogue
    )
    assert findings["C171"].computed == pytest.approx(100 * cluster_result.metrics["mfu"], rel=0.02)


def test_experts_in_a_rack_and_in_both_are_all_plans_of_the_larger_world(check_row, catalogue):
    """Plans with experts in a rack and in both racks are all plans of the larger domain.

    A pool that waits at times for another makes (1 - s)^(1/p) of what it could, with s of the
    chips prefilling and sharpness p.
    """
    both = (
        "max(decode_with_experts(trn3-nl72x2, one-domain), decode_with_experts(trn3-nl72x2, "
        "whole-world))"
    )
    pool = "pool(trn3-nl72x2, decode, workload.as_deployed=0)"
    decoding = check_row(
        f"metric(trn3-nl72x2, output_tokens_per_s_per_chip, workload.as_deployed=0) / {pool}"
    ).computed
    waits = decoding ** (1 / catalogue.practice("serving", "pool_sharpness").value)
    assert check_row(f"{both} / {pool}").computed * waits == pytest.approx(1)


def test_a_collective_takes_twice_its_latency_at_the_size_a_claim_asks_for(catalogue, findings):
    inputs = system_inputs(catalogue, "trn3-nl32x2-3d", {}, {})
    links = links_of_system(inputs, inputs.values())
    times = [
        float(cheapest(links, "all-to-all", inputs.system.chips, size))
        for size in (0.0, 1e3 * findings["C093"].computed)
    ]
    assert times[1] == pytest.approx(2 * times[0], rel=1e-9)


@pytest.mark.thorough
@pytest.mark.usefixtures("undrawn")
def test_claim_without_a_feasible_plan_has_a_reason(catalogue, findings):
    again = {
        finding.claim.id: finding
        for finding in check_claims(catalogue, {"workload.interactivity": "1e5 token/s"})[0]
    }
    assert {
        claim
        for claim, finding in again.items()
        if finding.computed is None and findings[claim].computed is not None
    } == SERVED | BOUGHT
    assert again["P001"].verdict == "not-derivable"
    assert findings["P001"].note.startswith(
        "No number in the source; we read little as at most a tenth less."
    )
    assert "100000 are asked for" in again["P001"].note


def test_scenario_is_traced_once_and_settings_of_the_user_precede_those_of_a_claim(
    catalogue, findings
):
    walked_inputs = []

    def walk(inputs, values):
        walked_inputs.append((inputs.text("workload.precision"), values["workload.input_tokens"]))

    def ask(settings):
        context = Context(catalogue, settings, {}, findings["P001"].claim)
        context.walked(
            "trn3-nl72x2", {"workload.precision": "mxfp8", "workload.input_tokens": "4096"}, walk
        )
        return context.rests_on

    assert ask({}) == ask({}) == ["workload.input_tokens"]
    assert walked_inputs == [("mxfp8", 4096)]
    ask({"workload.precision": "bf16", "workload.input_tokens": "100"})
    assert walked_inputs[1:] == [("bf16", 100)]


# ---------------------------------------------------------------- every value moves what rests on
# it
# No value of the catalogue moves these: counts of trees and lanes, paths of a graph, a model's
# experts ...
STRUCTURE = {
    *(
        "C053",
        "C055",
        "C056",
        "C057",
        "C058",
        "C059",
        "C060",
        "C065",
        "C068",
        "C069",
        "C070",
        "C071",
        "C072",
        "C073",
        "C075",
        "C079",
        "C081",
        "C082",
    ),
    *(
        "C083",
        "C084",
        "C085",
        "C086",
        "C087",
        "C088",
        "C089",
        "C090",
        "C091",
        "C094",
        "C095",
        "C096",
        "C097",
        "C099",
        "C100",
        "C101",
        "C102",
        "C103",
    ),
    *(
        "C104",
        "C112",
        "C113",
        "C114",
        "C116",
        "C123",
        "C124",
        "C137",
        "C138",
        "C139",
        "C140",
        "C141",
        "C148",
        "C149",
        "C170",
        "C175",
        "P024",
    ),
}
CANCELS = {"C092", "C111", "C163", "C164"}  # ... ratios in which the one value there is cancels ...
# ... and claims held against other claims, or against their own terms
BY_CLAIM = {
    "C037",
    "C194",
    "C195",
}


@pytest.mark.thorough
@pytest.mark.usefixtures("undrawn")
def test_every_input_of_a_claim_changes_it(catalogue, findings):
    """All values at once, each by a factor of its own.

    Only values of the other claims: a whole evaluation reads many that do not bind its plan, and
    shares that must sum to less than one.
    """
    unplanned_findings = [finding for claim, finding in findings.items() if claim not in BY_PLAN]
    # which 1 bounds
    paths = sorted(
        {
            path
            for finding in unplanned_findings
            for path in finding.rests_on
            if not path.endswith((".efficiency", ".takes_mx"))
        }
    )
    values = plain_inputs(catalogue, {}).values()
    factor = {path: 1.05 + zlib.crc32(path.encode()) % 1000 / 2000 for path in paths}
    settings = {
        path: f"{values.input(path).value * factor[path]} {values.input(path).unit}"
        for path in paths
    }
    settings |= {"site.rack_kw_max": "1000 kW"}  # racks that draw more want more cooling
    again = computed_values(
        {finding.claim.id: finding for finding in check_claims(catalogue, settings)[0]}
    )
    still = {
        claim
        for claim, finding in findings.items()
        if finding.claim.formula
        and again[claim] == pytest.approx(findings[claim].computed, rel=1e-9)
    }
    assert still == STRUCTURE | CANCELS | BY_CLAIM


def test_no_claim_is_a_constant(findings):
    """Each names an input, a system, a model, another claim or a premise of its own."""
    ids = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+|[a-z]+\.[a-z0-9-]+|[CP]\d{3}")
    for claim, finding in findings.items():
        assert (
            not finding.claim.formula
            or ids.search(finding.claim.formula)
            or any(name in finding.claim.formula for name in finding.claim.premises)
        ), claim


def test_smaller_rack_changes_its_counts_and_an_own_row_replaces_a_claim(own_data, findings):
    """Sixteen trays in a rack of NL72x2 in place of eighteen, and a claim on it of one's own."""
    header, *lines = (
        (data_directory() / "claims" / "ledger.csv").read_text(encoding="utf-8").splitlines()
    )
    changed_row = next(line for line in lines if line.startswith("C095,")).replace(
        ",11520,", ",11000,"
    )
    own_data.write("claims/ledger.csv", f"{header}\n{changed_row}\n")
    text = (data_directory() / "systems" / "trn3-nl72x2.toml").read_text(encoding="utf-8")
    own_data.write(
        "systems/trn3-nl72x2.toml", text.replace("compute-tray = 18", "compute-tray = 16")
    )
    catalogue = own_data.catalogue()
    ledger = read_ledger(catalogue)
    moved_claims = ("C055", "C071", "C074", "C095", "C098", "C137", "C138", "C139", "C170")
    still = ("C053", "C094", "C107", "C160")
    again = {
        claim: check_claim(Context(catalogue, {}, ledger, ledger[claim]))
        for claim in (*moved_claims, *still)
    }
    assert {claim: again[claim].computed for claim in moved_claims} == {
        "C055": 32,
        "C071": 128,
        "C074": 4,
        "C095": 10240,
        "C098": 20480,
        "C137": 64,
        "C138": 128,
        "C139": 32,
        "C170": 128,
    }
    assert len(ledger) == len(findings)
    assert again["C137"].verdict == "holds"
    assert (again["C095"].verdict, again["C095"].as_expected) == ("off", False)
    assert all(again[claim].computed == findings[claim].computed for claim in still)


# ---------------------------------------------------------------- verdicts and the ledger's file
@pytest.mark.parametrize(
    ("relation", "computed", "expected"),
    [
        ("equal", 101, "holds"),
        ("equal", 99, "holds"),
        ("equal", 101.1, "off"),
        ("equal", 98.9, "off"),
        ("at-most", 50, "holds"),
        ("at-most", 101.1, "off"),
        ("at-least", 500, "holds"),
        ("at-least", 98.9, "off"),
    ],
)
def test_verdict_follows_from_relation_and_tolerance(check_row, relation, computed, expected):
    assert (
        check_row(str(computed), claimed="100", tolerance="0.01", relation=relation).verdict
        == expected
    )


@pytest.mark.parametrize(
    ("kind", "computed", "expected"),
    [("arithmetic", 100, "arithmetic"), ("arithmetic", 90, "off"), ("unstated", 100, "not-shown")],
)
def test_verdict_of_a_kind(check_row, kind, computed, expected):
    assert check_row(str(computed), claimed="100", kind=kind).verdict == expected
    assert check_row(
        str(computed), claimed="100", kind=kind, against="semianalysis-trn2"
    ).verdict == expected.replace("off", "contradicts")


# ---------------------------------------------------------------- conclusions in draws
def test_a_conclusion_is_judged_by_the_draws_of_a_comparison(catalogue):
    """The verdict of P019 is the chance that `tco uncertainty` counts with as many draws.

    It is the chance that NL32x2 costs less per token than Trainium2.
    """
    ledger = read_ledger(catalogue)
    claim = ledger["P019"]
    judged = check_claim(Context(catalogue, {}, ledger, claim), SPEEDS).conclusion
    words = shlex.split(claim.command)[1:]
    draws_document = document(*words)
    assert judged.probability == draws_document["probability_better_than_baseline"]
    percentiles = draws_document["metrics"]["perf_per_tco_vs_baseline"]
    assert (judged.low, judged.high) == pytest.approx((percentiles["p10"], percentiles["p90"]))
    chances = dict(judged.by_speed)
    assert list(chances) == [20, 30, 50, 75, 100]
    assert chances[20] == judged.probability
    likely = [chance >= 0.5 for chance in chances.values()]
    turns = [
        (slow, quick)
        for (slow, is_slow_likely), (quick, is_quick_likely) in itertools.pairwise(
            zip(chances, likely, strict=True)
        )
        if is_slow_likely != is_quick_likely
    ]
    assert len(turns) == (judged.turns_at_tokens_per_s_per_user is not None)
    assert all(slow < judged.turns_at_tokens_per_s_per_user < quick for slow, quick in turns)


def test_a_verdict_follows_its_chance(findings):
    judged = [finding for finding in findings.values() if finding.conclusion is not None]
    assert len(judged) >= 12
    for finding in judged:
        chance = finding.conclusion.probability
        assert finding.verdict == ("holds" if chance >= 0.9 else "off" if chance <= 0.1 else "open")
        assert (
            not finding.conclusion.by_speed
        )  # of all claims together the own speed alone is asked
    assert {finding.claim.id for finding in judged} == {
        finding.claim.id for finding in findings.values() if finding.claim.kind == "drawn"
    }


def test_conclusion_that_holds_in_no_draw_is_off(check_row):
    assert (
        check_row(
            "metric(gb200-nvl72, tco_usd_per_chip_hour)",
            formula_unit="USD/chip/h",
            kind="drawn",
            verdict="",
            claimed="0.5",
        ).verdict
        == "off"
    )


# ---------------------------------------------------------------- where an article says it
def words_of(text):
    return re.sub(r"\W+", " ", text).lower().strip()


def test_most_claims_quote_their_article(findings):
    quoted = [finding.claim for finding in findings.values() if finding.claim.words]
    assert len(quoted) >= 150
    assert all(
        len(claim.words.split()) <= 25 and claim.article.endswith(".txt") for claim in quoted
    )
    assert {finding.claim.id for finding in findings.values() if not finding.claim.words} == {
        finding.claim.id for finding in findings.values() if finding.claim.source == "own"
    }


@pytest.mark.skipif(
    "TCO_ARTICLES" not in os.environ, reason="TCO_ARTICLES names no folder of the articles"
)
def test_the_words_of_a_claim_are_in_its_article(findings):
    texts = {
        path.name: words_of(path.read_text(encoding="utf-8"))
        for path in Path(os.environ["TCO_ARTICLES"]).glob("*.txt")
    }
    assert [
        claim
        for claim, finding in findings.items()
        if finding.claim.words and words_of(finding.claim.words) not in texts[finding.claim.article]
    ] == []


def test_claim_whose_premises_are_its_own_is_arithmetic(findings):
    typed = {claim for claim, finding in findings.items() if finding.verdict == "arithmetic"}
    assert {
        "C020",
        "C029",
        "C099",
        "C114",
        "C120",
        "C121",
        "C122",
        "C124",
        "C129",
        "C131",
        "C132",
        "C134",
        "C154",
        "C195",
    } <= typed
    assert all(
        finding.claim.note
        for finding in findings.values()
        if finding.verdict in ("arithmetic", "not-shown")
    )


@pytest.mark.thorough
def test_every_conclusion_has_a_command_of_its_own(catalogue, findings):
    concluded = check_claims(catalogue, {}, conclusions=True)[0]
    assert len(concluded) >= 25
    assert all(
        finding.claim.command.startswith("tco ") and "--no-range" not in finding.claim.command
        for finding in concluded
    )
    assert {finding.claim.id: finding.verdict for finding in concluded} == {
        claim: finding.verdict for claim, finding in findings.items() if finding.claim.command
    }
    assert len({finding.claim.claim for finding in findings.values()}) == len(findings)


@pytest.mark.thorough
def test_a_conclusion_is_what_its_command_shows(findings):
    """The figure of each conclusion stands among the numbers that its command prints.

    It may stand there in percent.
    """
    gone = []
    for finding in findings.values():
        if finding.claim.command:
            printed_numbers = [
                float(number.replace(",", ""))
                for number in re.findall(
                    r"\d[\d,]*(?:\.\d+)?", tco(*shlex.split(finding.claim.command)[1:]).stdout
                )
            ]
            if not any(
                number == pytest.approx(abs(finding.computed) * scale, rel=0.06)
                for number in printed_numbers
                for scale in (1, 100)
            ):
                gone.append(finding.claim.id)
    assert gone == []


@pytest.mark.parametrize(
    ("formula", "column", "message"),
    [
        (
            "2 * parts.trn3.peak_fp9",
            5,
            "unknown attribute of parts 'peak_fp9'; did you mean 'peak_fp8'?",
        ),
        ("parts.trn9.peak_fp8", 1, "trn9"),
        ("chips(trn3-nl72)", 7, "unknown system 'trn3-nl72'; did you mean 'trn3-nl72x2'?"),
        ("chips(trn3-nl32x2@switch=gen9)", 1, "'gen9'; did you mean 'gen3'?"),
        (
            "1 + count(trn3-nl72x2, backplane-cabel)",
            24,
            "unknown part 'backplane-cabel'; did you mean 'backplane-cable'?",
        ),
        (
            "chip(trn3-nl72x2, peak_fp9)",
            19,
            "unknown attribute 'peak_fp9'; did you mean 'peak_fp8'?",
        ),
        (
            "scope(trn3-nl72x2, rack, hop_worst)",
            26,
            "unknown figure 'hop_worst'; did you mean 'hops_worst'?",
        ),
        ("metric(trn3-nl72, mfu)", 8, "unknown scenario 'trn3-nl72'"),
        ("metric(trn3-nl72x2, mfo)", 21, "unknown metric 'mfo'; did you mean 'mfu'?"),
        ("metric(trn3-nl72x2, mfu)", 1, "trn3-nl72x2 has no mfu"),
        (
            "rate(trn3-nl72x2, mfu, workload.modl=x)",
            1,
            "unknown input path 'workload.modl'; did you mean 'workload.model'?",
        ),
        ("pool(trn3-nl72x2, decoding)", 19, "unknown phase 'decoding'; did you mean 'decode'?"),
        ("hops(trn3-nl72x2, 0, 99, 0)", 1, "no chip at rack 0, tray 99, position 0"),
        ("torus(trn3-nl72x2, longest)", 1, "the fabric is no torus"),
        ("chips(trn3-nl72x2, 3)", 1, "expected chips(system)"),
        ("price(trn3-nl72x2)", 1, "expected price(system, *part)"),
        ("poll(trn3-nl72x2)", 1, "unknown function 'poll'; did you mean 'pool'?"),
        ("port / ports", 8, "unknown name 'ports'; did you mean 'port'?"),
        ("1 + C001", 5, "C001 rests on itself"),
        ("1 + C022", 5, "C022 has no formula"),
        (
            "parts.trn3.peak_fp8 + parts.trn3.tdp",
            1,
            "[energy] / [time], expected [operation] / [time]",
        ),
        (
            "machine_balance(parts.trn3.peak_fp8, parts.trn3.tdp)",
            38,
            "[energy] / [time], expected [information] / [time]",
        ),
        (
            "parts.trn3.peak_fp8",
            1,
            "the formula gives [operation] / [time], shown in '1' (dimensionless)",
        ),
    ],
)
def test_fault_in_a_formula_is_reported_with_its_place(
    check_row, own_data, formula, column, message
):
    before = (
        f'C001,,"a ""claim"" of\ntwo lines",1,,0,equal,port=400 Gb/s,{chr(34) * ("," in formula)}'
    )
    with pytest.raises(DataError) as caught:
        check_row(formula, claim='a "claim" of\ntwo lines', given="port=400 Gb/s")
    last = before.rpartition("\n")[2]
    assert f"{own_data.folder / 'claims' / 'ledger.csv'}:3:{len(last) + column}: " in str(
        caught.value
    )
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("relation", "equals", "did you mean 'equal'"),
        ("kind", "arithmetics", "did you mean 'arithmetic'"),
        ("verdict", "contradict", "did you mean 'contradicts'"),
        ("tolerance", "-0.1", "expected zero or more"),
        ("article", "some.txt", "article and words go together"),
        ("claimed", "many", "claimed is 'many', expected a number"),
        ("given", "ports", "expected NAME=QUANTITY"),
        ("given", "port=100 Gbit", "ledger.csv:2: 'Gbit' is not a unit"),
        ("formula_unit", "Gbit", "ledger.csv:2: 'Gbit' is not a unit"),
    ],
)
def test_a_broken_row_is_named(check_row, column, cell, message):
    with pytest.raises(DataError, match=message):
        check_row("1", **{column: cell})


# ---------------------------------------------------------------- notes
@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("{parts.trn3.peak_fp8 / parts.trn2.peak_fp8 | | 3} times", "1.94 times"),
        ("{1 / 8 | % | 2} %, {1 / 8 | | 1}", "12 %, 0.1"),
        ("{1234567 | | 3} of {1234567|| 9}", "1,230,000 of 1,234,567.00"),
        ("{port | Gb/s | 2}", "400"),
        ("{999.6 | | 3}", "1,000"),
        ("{1 / 0 | | 3}", "none"),
    ],
)
def test_a_figure_of_a_note_is_computed(check_row, note, expected):
    assert check_row("1", note=note, given="port=400 Gb/s").note == expected


@pytest.mark.parametrize(
    ("note", "message"),
    [
        ("{port | GB | 3}", "C001,,,,,1,,0,equal,port=400 Gb/s,1,,computed,,holds,{"),
        ("{1 | 3}", "note: '{1 | 3}' is no figure, expected {FORMULA | UNIT | DIGITS}"),
    ],
)
def test_a_broken_figure_is_named(check_row, note, message):
    expected_location = f"ledger.csv:2:{len(message) + 1}: " if "C001" in message else message
    with pytest.raises(DataError, match=re.escape(expected_location)):
        check_row("1", note=note, given="port=400 Gb/s")


# ---------------------------------------------------------------- the command
@pytest.mark.thorough
def test_the_command_prints_one_verdict_and_a_changed_one_is_exit_1():
    done = tco(
        "claims",
        "--set",
        "parts.trn3.hbm_bandwidth=5.4 TB/s",
        "--format",
        "json",
        "--verdict",
        "off",
    )
    document = json.loads(done.stdout)
    assert (done.exit_code, document["schema"]) == (1, "tco.claims/1")
    assert {claim["verdict"] for claim in document["claims"]} == {"off"}
    assert document["claims"][0].keys() >= {
        "id",
        "claim",
        "source",
        "claimed",
        "unit",
        "computed",
        "verdict",
        "note",
    }
    assert "C008" in [
        claim["id"] for claim in document["claims"] if claim["verdict"] != claim["expected"]
    ]


def test_an_unknown_path_is_exit_3():
    done = tco("claims", "--set", "parts.trn9.tdp=1 W")
    assert (done.exit_code, done.stdout) == (3, "")
