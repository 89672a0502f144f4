"""What the README states is what the program says: the headline, and the accuracy of the last calibration."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cli import tco

ROOT = Path(__file__).parents[1]
KINDS = {"kernels": "kernels", "collectives": "collectives", "training": "training steps", "inference": "serving points"}


def stated(name):
    text = (ROOT / "README.md").read_text()
    line = next(line for line in text[text.index("## How accurate it is") :].splitlines() if line.startswith(f"| {name} | "))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_errors_is_that_of_the_last_calibration(kind):
    found = {row["left_out"]: row for row in csv.DictReader((ROOT / "data/accuracy/kinds.csv").read_text().splitlines()) if row["kind"] == kind}
    whole = found["nothing"]
    medians = [f"{float(found[name]['median_ape']) * 100:.1f} %" if name in found else "-" for name in ("nothing", "accelerator", "model", "source")]
    rows, tail, rank = f"{int(whole['n']):,}", f"{float(whole['p90_ape']) * 100:.0f} %", f"{float(whole['spearman']):.3f}"
    assert stated(KINDS[kind]) == [rows, medians[0], tail, rank, *medians[1:]]


def test_the_headline_is_what_the_program_prints():
    printed = "".join(f"    {line}".rstrip() + "\n" for line in tco("compare").stdout.splitlines())
    assert printed in (ROOT / "README.md").read_text()
