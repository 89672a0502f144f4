"""Bills, fabrics and prices of the headline racks print the kept tables.

Bills rest on the catalogue alone, so a change of data shows here.
"""

from __future__ import annotations

import re

import pytest

from tests.cli import HEADLINE, tco


def printed_text(done):
    assert done.exit_code == 0, done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


@pytest.mark.parametrize("name", HEADLINE)
def test_bill_prints_the_kept_table(name, file_regression):
    file_regression.check(printed_text(tco("bom", name)), basename=f"bom-{name}")


@pytest.mark.parametrize("name", HEADLINE)
def test_fabric_prints_the_kept_table(name, file_regression):
    file_regression.check(printed_text(tco("fabric", name)), basename=f"fabric-{name}")


def test_a_bill_as_markdown(file_regression):
    file_regression.check(
        printed_text(tco("bom", "gb200-nvl72", "--format", "md")),
        basename="bom-gb200-nvl72",
        extension=".md",
    )


def test_network_of_a_clos_prints_the_kept_table(file_regression):
    file_regression.check(
        printed_text(tco("network", "--switch", "12.8T", "--port", "100G", "--tiers", "3")),
        basename="network-12t8-3",
    )


def test_full_comparison_begins_with_verdict_and_premises_and_labels_every_row():
    text = printed_text(tco("compare", "--full")).splitlines()
    verdict, lines = text[: text.index("")], text[text.index("") + 1 :]
    assert verdict[0].startswith("20 ")
    assert all(
        re.match(r"\d+( to \d+)? tokens/s: .*, regret \d+(-\d+)? %", line) for line in verdict
    )
    assert lines[0].startswith("deepseek-v3, 8,192 tokens in, 1,024 out, FP8")
    assert all(
        word in lines[1]
        for word in (
            "Buyer Amazon (hyperscaler)",
            "prices of 2026-11",
            "life",
            "cost of capital",
            "utilisation",
            "us-hyperscale at 0.0861 USD/kWh",
        )
    )
    assert [name for name in HEADLINE if name not in lines[2]] == []
    labels = [line[:34].strip() for line in lines[4:]]
    order = [
        "PERFORMANCE PER TCO, MORE IS BETTER",
        "~ performance per TCO",
        "COST, LESS IS BETTER",
        "~ million output tokens, USD",
        "~ chip-hour, USD",
    ]
    order += [
        "SPEED",
        "~ output tokens/s per chip",
        "HARDWARE AND ASSUMPTIONS",
        "dense FP8 peak, PFLOP/s",
    ]
    row_positions = [
        next(row_index for row_index, text in enumerate(labels) if text.startswith(label[:34]))
        for label in order
    ]
    assert row_positions == sorted(row_positions)
    (anchored,) = (line for line in lines if line.startswith("published runs"))
    assert "8 runs, 54 % error" in anchored
    assert "159 runs, 6 % error" in anchored
    assert any(
        line.startswith("Performance: software between what is public and the best")
        for line in lines
    )


@pytest.mark.parametrize("name", HEADLINE)
def test_price_shows_its_premises_and_a_total(name):
    lines = printed_text(tco("price", name)).splitlines()
    assert all(word in lines[1] for word in ("life", "cost of capital", "utilisation"))
    (total,) = (line for line in lines if line.startswith("COST PER CHIP-HOUR"))
    subtotals = [
        subtotal_match
        for line in lines
        if (
            subtotal_match := re.fullmatch(
                r"[A-Z]+(?: {2,}-?[\d,.]+)? +~?(-?[\d.]+) +(-?[\d.]+)", line
            )
        )
    ]
    assert len(subtotals) >= 5
    hourly, share = total.removeprefix("COST PER CHIP-HOUR").replace("~", "").split()
    assert sum(float(subtotal_match[1]) for subtotal_match in subtotals) == pytest.approx(
        float(hourly), abs=0.002
    )
    assert share == "100.0"
    assert sum(float(subtotal_match[2]) for subtotal_match in subtotals) == pytest.approx(
        100, abs=0.5
    )


def test_an_estimate_is_marked():
    """A tilde marks every number that rests on an estimate or an assumption, and no other."""
    for line in printed_text(tco("price", "gb200-nvl72")).splitlines():
        if line.startswith("  ") and line.strip():
            weak = any(f" {kind} " in f"{line} " for kind in ("estimate", "assumed"))
            assert ("~" in line) is weak, line
