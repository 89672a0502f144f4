"""README and guide state what the program answers: headline, picture, accuracy, both cost views."""

from __future__ import annotations

import csv
import re
import textwrap
from functools import cache
from pathlib import Path

import pytest

from tco import evaluate
from tests.catalogue import CATALOGUE
from tests.cli import document, tco
from tests.scenario_helpers import HEADLINE, again, fill_ratio_to_baseline, result

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "reports/site/pages/guide"
KINDS = {
    "kernels": "kernels",
    "collectives": "collectives",
    "training": "training steps",
    "inference": "serving points",
}


def cells(path, name, after=""):
    """The cells of a table's row that begins with a name."""
    text = path.read_text()
    line = next(
        line for line in text[text.index(after) :].splitlines() if line.startswith(f"| {name} |")
    )
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_errors_is_that_of_the_last_calibration(kind):
    accuracy_rows = {
        row["left_out"]: row
        for row in csv.DictReader((ROOT / "data/accuracy/kinds.csv").read_text().splitlines())
        if row["kind"] == kind
    }
    full_fit = accuracy_rows["nothing"]
    medians = [
        f"{float(accuracy_rows[name]['median_ape']) * 100:.1f} %" if name in accuracy_rows else "-"
        for name in ("nothing", "accelerator", "model", "source")
    ]
    rows, tail, rank = (
        f"{int(full_fit['n']):,}",
        f"{float(full_fit['p90_ape']) * 100:.0f} %",
        f"{float(full_fit['spearman']):.3f}",
    )
    assert cells(GUIDE / "accuracy.md", KINDS[kind]) == [rows, medians[0], tail, rank, *medians[1:]]
    assert cells(ROOT / "README.md", KINDS[kind], "## How accurate") == [rows, *medians[1:]]


def test_the_headline_is_what_the_program_prints():
    printed = "".join(f"    {line}".rstrip() + "\n" for line in tco("compare").stdout.splitlines())
    assert printed in (ROOT / "README.md").read_text()


def test_the_guide_states_the_errors_of_today():
    """Order and ratio of pairs, matrix products of MI450X, and rows whose batch memory fills."""
    (orders,) = csv.DictReader((ROOT / "data/accuracy/orders.csv").read_text().splitlines())
    accuracy = GUIDE / "accuracy.md"
    right = f"{float(orders['right']) * 100:.0f} %"
    assert cells(accuracy, "order right, where the two differ by a tenth or more") == [right]
    ratio = f"{float(orders['ratio_error']) * 100:.0f} %"
    assert cells(accuracy, "median error of the ratio") == [ratio]
    chips = csv.DictReader((ROOT / "data/accuracy/chips.csv").read_text().splitlines())
    products = next(
        row for row in chips if row["kind"] == "amd_gemm_kernels" and row["part"] == "mi450x"
    )
    statement = (
        f"the times of {products['n']} single matrix products, and the model's median error on them"
    )
    assert f"{statement} is {float(products['median_ape']) * 100:.0f} %" in accuracy.read_text()
    rows, median, *_ = cells(ROOT / "reports/validation/inference.md", "offline")
    tables = f"The {rows} rows of TensorRT-LLM's tables, never fitted"
    assert f"{tables}, have a median error of {float(median):.0f} %" in accuracy.read_text()


def numbers(path):
    return [float(number) for number in re.findall(r"(?<![\w#])-?\d+(?:\.\d+)?", path.read_text())]


def words(path):
    texts = re.findall(r">([^<>]+)<", path.read_text())
    return [re.sub(r"-?\d[\d.,]*", "#", text) for text in texts if text.strip()]


def test_the_picture_shows_the_current_headline(tmp_path):
    tco("plot", "frontier", *HEADLINE, "-o", tmp_path / "today.svg")
    assert numbers(ROOT / "reports/frontier.svg") == pytest.approx(
        numbers(tmp_path / "today.svg"), abs=0.011
    )
    assert words(ROOT / "reports/frontier.svg") == words(tmp_path / "today.svg")


def test_links_between_documents_lead_to_files_of_a_clone():
    paths = [
        *ROOT.glob("*.md"),
        *(ROOT / "reports").rglob("*.md"),
        *(ROOT / "data").rglob("*.md"),
    ]
    links = [
        (path.relative_to(ROOT), link)
        for path in paths
        for link in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", path.read_text(encoding="utf-8"))
        if not link.startswith(("http", "mailto"))
    ]
    assert len(links) > 40
    assert [(path, link) for path, link in links if not (ROOT / path.parent / link).exists()] == []


# ---------------------------------------------------------------- whose cost it is
BASE = "gb200-nvl72"
RATIOS = ("perf_per_tco_gross_vs_baseline", "perf_per_tco_vs_baseline")


def row(label):
    return dict(zip(HEADLINE, cells(GUIDE / "cost.md", label), strict=True))


@cache
def views():
    """Return the four racks at their owner's cost and rented: at the rent, its low and its high.

    The baseline's rent is a published one.
    """
    view_metrics = {}
    for view in ("own", "value", "low", "high"):
        rows = {}
        for name in HEADLINE:
            if view == "own":
                rows[name] = again(name)
                continue
            rows[name] = again(name, terms__perspective="renter")
            rent = next(
                rent_input
                for path, rent_input in rows[name].inputs.items()
                if path.rpartition(".")[2].startswith("rent")
            )
            if view != "value" and name != BASE:
                rows[name] = again(
                    name,
                    terms__perspective="renter",
                    **{rent.path.replace(".", "__"): f"{getattr(rent, view)!r} {rent.unit}"},
                )
        fill_ratio_to_baseline(list(rows.values()), BASE)
        view_metrics[view] = {name: evaluation.metrics for name, evaluation in rows.items()}
    return view_metrics


@pytest.mark.parametrize("name", HEADLINE)
def test_both_cost_views_are_those_the_program_computes(name):
    owner_metrics, rent, low, high = (
        views()[view][name] for view in ("own", "value", "low", "high")
    )
    hour = "tco_usd_per_chip_hour"
    assert row("AWS's own cost per chip-hour, USD")[name] == f"~{owner_metrics[hour]:.2f}"
    ranged = name != BASE
    assert row("rent per chip-hour, USD")[name] == (
        f"~{rent[hour]:.2f} ({low[hour]:.2f} to {high[hour]:.2f})"
        if ranged
        else f"{rent[hour]:.2f}"
    )
    assert row("performance per TCO, gross / net")[name] == (
        " / ".join(f"~{owner_metrics[ratio_name]:.2f}" for ratio_name in RATIOS) if ranged else "1"
    )


@pytest.mark.parametrize("name", HEADLINE)
def test_first_hand_shares_in_the_docs_are_those_the_program_computes(name):
    shares = result(name).shares["directness"]
    assert (
        f"of which {shares['first-hand'] * 100:.0f} % is first-hand"
        in (ROOT / "README.md").read_text()
    )
    assert cells(GUIDE / "prices.md", f"`{name}`", "## Shares") == [
        f"{share * 100:.0f} %" for share in shares.values()
    ]


# ---------------------------------------------------------------- what software moves
SOFTWARE = {
    "drawn": {},
    "public": {"workload.software": "public"},
    "best": {"workload.software": "best"},
    "drawn, best plans": {"workload.as_deployed": "0"},
    "NVIDIA's": {"workload.software": "nvidia"},
    "drawn, native formats": {"workload.formats": "native"},
    "drawn, no speculative decoding": {"workload.draft_tokens": "0"},
}


def test_what_software_moves_is_what_the_program_finds():
    rows = re.findall(r"(?m)^\| (\d+) \| ([^|]+) \| (.*) \|$", (GUIDE / "software.md").read_text())
    assert len(rows) == 16
    for speed, software, ratios in rows:
        settings = {"workload.interactivity": f"{speed} token/s", **SOFTWARE[software]}
        results = [evaluate(name, settings, catalogue=CATALOGUE) for name in HEADLINE]
        fill_ratio_to_baseline(results, BASE)
        racks = [result for result in results if result.scenario != BASE]
        expected = [f"{result.metrics[RATIOS[1]]:.2f}" for result in racks]
        assert ratios.split(" | ") == expected, (speed, software)


def test_python_and_json_of_the_readme_give_the_median():
    text = (ROOT / "README.md").read_text()
    assert "`jq .range.p50` prints" in text
    block = text.partition("    import tco\n")[2].partition("\n## ")[0]
    names = {}
    exec(textwrap.dedent("    import tco\n" + block), names)
    price = document("price", "trn3-nl72x2", "--set", "terms.utilisation=60%")
    medians = names["uncertainty"].table()["p50"]
    assert medians["tco_usd_per_chip_hour"] == pytest.approx(price["range"]["p50"], rel=1e-9)
    base_case = names["result"].metrics["tco_usd_per_chip_hour"]
    assert base_case == pytest.approx(price["metrics"]["tco_usd_per_chip_hour"], rel=1e-9)
