"""Claims on the screen: what fails first, by how much, and what the verdicts mean."""

from __future__ import annotations

import re

import pytest

from tco.evidence.check import Finding
from tco.evidence.draws import ConclusionProbability
from tco.evidence.ledger import read_ledger
from tco.report.claims import LISTED, claims_answer
from tests.catalogue import CATALOGUE

LEDGER = read_ledger(CATALOGUE)


def finding(claim_id, computed, verdict=None, conclusion=None):
    claim = LEDGER[claim_id]
    return Finding(claim, computed, verdict or claim.verdict, [], conclusion=conclusion)


def tables_of(findings):
    return claims_answer(CATALOGUE, findings, []).tables()


def every_finding():
    """Return a finding for each claim as the ledger expects it; what is drawn is open."""
    return [
        finding(claim.id, claim.claimed.value, claim.verdict or "open") for claim in LEDGER.values()
    ]


def test_of_many_claims_those_that_fail_or_are_open_are_listed_in_this_order():
    summary, *lists, closing = tables_of(every_finding())
    assert [table.title.partition(" ")[0] for table in lists] == list(LISTED)
    assert [row[0] for row in summary.rows][:3] == list(LISTED)
    assert closing.above[0].endswith("holds, arithmetic, not-shown, not-derivable")


def test_a_verdict_that_the_ledger_does_not_expect_comes_first():
    findings = every_finding()
    position = [finding.claim.id for finding in findings].index("C014")
    findings[position] = finding("C014", 0.65, "holds")
    summary, first, *_ = tables_of(findings)
    assert first.rows[0][:2] == ("C014", "BF16 per Trn3 chip, PFLOP/s")
    assert first.rows[1][0].strip() == "The ledger expects: contradicts."
    assert summary.below[0] == "Verdicts that have changed since the last review: 1. Exit code 1."


@pytest.mark.parametrize(
    ("claim_id", "computed", "claimed_text", "deviation"),
    [
        ("C014", 0.6291456, "0.65", "-3.2 %"),
        ("C184", 10368.0, "144", "+7,100 %"),
        ("C027", 640.0, "640", "0 %"),
        ("C037", 75.0, "40", "+35 points"),  # of a share, in points
        ("P023", 1.44, "at most 0", "+1.4 points"),
        ("C023", None, "225.9", ""),
    ],
)
def test_the_deviation_is_that_of_the_computed_figure_from_the_claimed_one(
    claim_id, computed, claimed_text, deviation
):
    _, claims, _ = tables_of([finding(claim_id, computed, "off")])
    assert (claims.rows[0][2], claims.rows[0][4]) == (claimed_text, deviation)


@pytest.mark.parametrize(
    ("claim_id", "label"),
    [
        ("C031", "8-bit peak of a Trn3 chip over that of a Trn2 chip, times"),  # x
        ("C093", ", KB"),  # KB (upper)
        ("C101", "AEC links of the NL16 2D torus"),  # >0 links
        ("C133", "Campus PUE 1.10-1.15"),  # ratio
        ("C137", "Chips per rack of NL72x2"),  # chips
        ("C190", ", %"),  # % (lower bound)
        ("C172", ", % (20-30)"),
    ],
)
def test_a_row_says_which_number_in_which_unit_is_claimed(claim_id, label):
    _, claims, _ = tables_of([finding(claim_id, 1.0, "off")])
    assert claims.rows[0][1].endswith(label)


def test_a_claim_of_a_ratio_names_both_quantities():
    ratios = [claim.claim for claim in LEDGER.values() if claim.unit.startswith("x ")]
    ratios += [claim.claim for claim in LEDGER.values() if claim.unit == "x"]
    assert len(ratios) > 40
    named = re.compile(r" over |\bratio\b|^Oversubscription ")
    assert [text for text in ratios if not named.search(text)] == []


def test_the_first_sentence_counts_what_the_verdicts_come_to():
    summary, *_ = tables_of(every_finding())
    counts = [int(count) for count in re.findall(r"\d+", summary.above[0])]
    assert sum(counts) == len(LEDGER)
    assert summary.above[0].startswith(f"{counts[0]} agree with the computed figure, ")
    assert tables_of([finding("C051", 1.28)])[0].above == []


def test_every_claim_has_the_number_of_its_source_in_the_list_at_the_end():
    findings = [finding(claim_id, 1.0, "off") for claim_id in ("C014", "C043", "C051")]
    summary, claims, closing = tables_of(findings)
    titles = {line.split()[0]: line.split(maxsplit=1)[1] for line in closing.above[-2:]}
    numbers = {row[0]: row[5] for row in claims.rows if row[5]}
    assert {claim_id: titles[number] for claim_id, number in numbers.items()} == {
        claim_id: CATALOGUE.source_title(LEDGER[claim_id].source) for claim_id in numbers
    }
    assert list(numbers) == ["C014", "C043", "C051"]
    assert "C is a figure, P a conclusion" in summary.below[-1]
    assert closing.above[0].endswith(f"tco sources show {LEDGER['C014'].source}")


def test_few_claims_have_the_contradicted_source_and_the_note():
    _, claims, _ = tables_of([finding("C051", 1.28)])
    remarks = [row[0].strip() for row in claims.rows[1:]]
    assert remarks[0].startswith("Against: SemiAnalysis:")
    assert remarks[1] == LEDGER["C051"].note


def test_an_open_claim_says_in_how_many_draws_it_is_true():
    conclusion = ConclusionProbability(0.54, 0.807, 1.28, [], None)
    _, claims, _ = tables_of([finding("P006", 1.0138, "open", conclusion)])
    label = f"{LEDGER['P006'].claim}, times"
    assert claims.rows[0][1:] == (label, "at least 1", "1.014", "", "1")
    assert claims.rows[1][0].strip() == (
        "True in 54 % of the draws; computed P10 to P90 0.807 to 1.28."
    )
