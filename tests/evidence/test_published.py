"""Computed figures agree with published ones on the terms that their sources state."""

from __future__ import annotations

import pytest

from tco import DataError
from tco.evidence.guarding import failing_changes, measure_guards, write_guards
from tco.evidence.published import (
    PublishedRow,
    evaluate_published_figure,
    publication,
    read_published,
)
from tests.catalogue import CATALOGUE, checks
from tests.cli import document, tco
from tests.scenario_helpers import load_scenario

ALTERNATIVE = "alternative"

FOUND = {name: publication(CATALOGUE, name) for name in CATALOGUE.published}
FIGURES = [
    figure for checked_publication in FOUND.values() for figure in checked_publication.figures
]
MUST = [figure for figure in FIGURES if figure.kind not in ("independent", "same-publisher")]
INDEPENDENT = [figure for figure in FIGURES if figure.kind == "independent"]
DASHBOARDS = ("inferencex-2026-08", "neocloud-2026-08")
CHIPS = {  # the chip of each headline rack, and the parts whose prices make up what is paid for it
    "trn3-nl32x2": ("trn3", "hbm3e-12hi-36gb"),
    "trn3-nl72x2": ("trn3", "hbm3e-12hi-36gb"),
    "gb200-nvl72": ("gb200-gpu",),
    "mi450x-ualoe72": ("mi450x",),
}


@pytest.mark.parametrize("name", FOUND)
def test_published_figure_is_computed_within_its_tolerance(name):
    assert list(FOUND[name].findings()) == []


@pytest.mark.parametrize("name", FOUND)
def test_a_file_is_in_order(name):
    path = CATALOGUE.published[name]
    assert checks.check_scenario(path, CATALOGUE.toml(path), CATALOGUE.sources) == []


@pytest.mark.parametrize(
    "change",
    [
        {"tolerance": 0.11},
        {"tolerance": None},
        {"value": None},
        {"reason": "prices moved"},
        {"kind": "hearsay"},
        {"tolerance": 0.0},
    ],
    ids=str,
)
def test_figure_that_must_agree_states_its_tolerance(change):
    path = CATALOGUE.published["b300-2026-06"]
    document = CATALOGUE.toml(path)
    row = next(row for row in document["published"] if row["kind"] != "independent")
    (finding,) = checks.check_scenario(
        path, document | {"published": [row | change]}, CATALOGUE.sources
    )
    assert finding.startswith(f"{path}: published.0")
    assert checks.check_scenario(path, document | {"published": [row]}, CATALOGUE.sources) == []


def test_the_worked_examples_are_among_them():
    have = [figure.published for figure in MUST]
    for want in (
        1.81,
        0.36,
        2.37,
        2.49,
        135,
        1.525,
        49_248,
        1.856,
        2.218,
        1.514,
        49_860,
        20.7e6,
        32.83e6,
    ):
        assert want in have
    assert len(MUST) >= 40
    assert max(figure.tolerance for figure in MUST) <= 0.10
    assert all(figure.low < figure.published < figure.high for figure in MUST)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_seven_of_nine_gpus_on_one_set_of_terms_agree(name):
    """At least seven of nine within 15 %, and no row sets a price for its GPU."""
    source = "inferencex-costs-2026-08"
    rows = [
        row
        for row in CATALOGUE.toml(CATALOGUE.published[name])["published"]
        if row["source"] == source
    ]
    assert not any(
        "variant" in row or set(row.get("set", ())) - {"site.rack_kw_max"} for row in rows
    )
    hours = [
        figure
        for figure in FOUND[name].figures
        if figure.metric == "tco_usd_per_chip_hour" and figure.source == source
    ]
    assert len(hours) == 9
    assert {figure.tolerance for figure in hours} == {0.15}
    assert sum(figure.ok for figure in hours) >= 7


def test_figure_agrees_if_it_lies_within_its_range():
    assert all(figure.ok == (figure.low <= figure.computed <= figure.high) for figure in FIGURES)
    assert {figure.ok for figure in FIGURES} == {True, False}


def test_figure_that_disagrees_is_a_finding_unless_it_has_a_reason():
    wrong = FOUND["b300-2026-06"]
    failing_publication = wrong._replace(
        figures=[
            figure._replace(computed=figure.high * 1.001, ok=False) for figure in wrong.figures
        ]
    )
    assert len(list(failing_publication.findings())) == len(wrong.figures)
    failing_figure = next(figure for figure in FOUND["gigawatt"].figures if not figure.ok)
    assert list(FOUND["gigawatt"]._replace(figures=[failing_figure]).findings()) == []
    (finding,) = FOUND["gigawatt"]._replace(figures=[failing_figure._replace(reason="")]).findings()
    assert finding.endswith("and no reason is given")


# ---------------------------------------------------------------- figures that prices can fail
def agreements_at(own_data, factor: float, parts: tuple[str, ...] | None = None) -> list[bool]:
    """Tell for every independent figure whether it agrees when prices are multiplied.

    The prices are those of the catalogue, or of some parts.
    """
    rows = ["part,attribute,value,unit,low,high,as_of,kind,source,note,use,solved_from"]
    for (part, name), series in CATALOGUE.part_rows.items():
        if not ("price" in name or name == "labour_rate") or (parts and part not in parts):
            continue
        for cells in (row.cells for row in series if row.cells["use"] != ALTERNATIVE):
            ends = [
                repr(float(cells[key]) * factor) if cells[key] else ""
                for key in ("value", "low", "high")
            ]
            rows.append(
                ",".join(
                    [
                        part,
                        name,
                        ends[0],
                        cells["unit"],
                        *ends[1:],
                        cells["as_of"],
                        cells["kind"],
                        cells["source"],
                        "",
                        "",
                        cells.get("solved_from", ""),
                    ]
                )
            )
    own_data.write("parts/dearer.csv", "\n".join(rows) + "\n")
    catalogue = own_data.catalogue()
    return [
        figure.ok
        for name in FOUND
        for figure in publication(catalogue, name, "independent").figures
    ]


def test_most_independent_figures_fail_where_all_prices_rise_by_half(own_data):
    now, then = [figure.ok for figure in INDEPENDENT], agreements_at(own_data, 1.5)
    assert len(now) >= 40
    assert sum(now) >= 30
    assert {figure.system for figure in INDEPENDENT if figure.ok} >= set(CHIPS)
    lost = sum(a and not b for a, b in zip(now, then, strict=True))
    assert lost >= 0.8 * sum(now)


@pytest.mark.parametrize("system", CHIPS)
def test_a_figure_of_each_headline_rack_fails_where_its_chip_costs_twice(own_data, system):
    then = agreements_at(own_data, 2.0, CHIPS[system])
    assert any(
        figure.ok and not holds
        for figure, holds in zip(INDEPENDENT, then, strict=True)
        if figure.system == system
    )


def test_figure_that_shares_a_publisher_with_a_price_is_not_independent(own_data):
    """A figure is of the same publisher if one of its prices is, or was solved from one of his."""
    for figure in FIGURES:
        if figure.kind in ("independent", "same-publisher"):
            assert (figure.publisher in figure.rests_on_publishers) == (
                figure.kind == "same-publisher"
            ), figure
            assert figure.publisher
    dashboard = {
        figure.system: figure.kind
        for figure in FOUND["neocloud-2026-08"].figures
        if figure.source == "inferencex-costs-2026-08"
    }
    # at the prices of a bank
    assert dashboard["gb200-nvl72"] == dashboard["gb300-nvl72"] == "independent"
    assert {dashboard[name] for name in ("h100-hgx8", "b200-hgx8", "mi355x-8")} == {
        "same-publisher"
    }
    header = "part,attribute,value,unit,low,high,as_of,kind,source,note,use,solved_from\n"
    own_data.write(
        "parts/mine.csv",
        header + "gb200-gpu,price,30000,USD,26000,35000,2026-05,derived,tco-estimate-2026,,,"
        "inferencex-costs-2026-08\n",
    )
    now = {
        figure.system: figure.kind
        for figure in publication(own_data.catalogue(), "neocloud-2026-08").figures
    }
    assert now["gb200-nvl72"] == "same-publisher"


def test_figures_can_be_limited_to_a_kind():
    figure_rows = document("scenarios", "check", "--kind", "independent")["published"]
    assert [figure_row["metric"] for figure_row in figure_rows] == [
        figure.metric for figure in INDEPENDENT
    ]
    assert {figure_row["kind"] for figure_row in figure_rows} == {"independent"}
    assert all(figure_row["ok"] or figure_row["reason"] for figure_row in figure_rows)
    wrong = tco("scenarios", "check", "--kind", "independant")
    assert wrong.exit_code == 2
    assert "expected one of arithmetic, own-source, independent" in wrong.stderr


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"metric": "tco_usd_per_chip_our"},
            "unknown metric 'tco_usd_per_chip_our'; did you mean 'tco_usd_per_chip_hour'",
        ),
        ({"metric": "usd", "lines": ["server"]}, "unknown cost line 'server'"),
        ({"metric": "bill_usd", "parts": ["b300"]}, "unknown part of the bill 'b300'"),
        ({"metric": "capex_usd"}, "expected value and tolerance, or low and high"),
        ({"metric": "capex_usd", "unit": "W", "low": 0, "high": 1}, "expected 'USD'"),
    ],
)
def test_bad_row_is_refused(row, message):
    with pytest.raises(DataError, match=message):
        evaluate_published_figure(
            PublishedRow(
                CATALOGUE,
                load_scenario(CATALOGUE, "gb200-nvl72"),
                "here",
                {"kind": "arithmetic", "source": "x", "system": "gb200-nvl72", **row},
            )
        )


def test_a_figure_may_be_asked_for_by_name():
    done = tco("price", "published/b300-2026-06", "--format", "csv")
    assert done.exit_code == 0
    assert "servers/system" in done.stdout


# ---------------------------------------------------------------- guards of the prices in force
GUARDS = measure_guards(CATALOGUE)
OF_TODAY = ("ddr5-dimm", "nvme-8tb", "gb200-memory", "gb200-gpu", "mi450x", "hbm3e-12hi-36gb")


def test_table_of_guards_is_the_measured_one(tmp_path):
    """`python -m tco.evidence.guarding` writes it anew."""
    write_guards(GUARDS, tmp_path / "guards.csv")
    assert (tmp_path / "guards.csv").read_text(encoding="utf-8") == (
        CATALOGUE.folders[0] / "guards.csv"
    ).read_text(encoding="utf-8")


def test_the_newest_row_alone_fails_a_figure_of_another_for_all_but_one_price_of_today():
    failing = {guard.price.path: guard.figures for guard in GUARDS}
    assert [part for part in OF_TODAY if not failing[f"parts.{part}.price"]] == ["nvme-8tb"]


def test_a_guard_is_no_older_than_the_evidence_of_its_price():
    """SemiAnalysis' chip-hour of July 2026 guards the price of GB200 of May.

    It guards no price of memory of November.
    """
    figures = {guard.price.path: " ".join(guard.figures) for guard in GUARDS}
    assert "semianalysis-2026-07" in figures["parts.gb200-gpu.price"]
    # a bank's price of 2025 holds too, and is no guard of today
    assert "2025" not in figures["parts.gb200-gpu.price"]
    assert "semianalysis" not in figures["parts.gb200-memory.price"]


def test_figure_dated_before_its_price_is_no_guard(own_data):
    """A figure with a date before that of the row it checks fails for no price."""
    row = next(
        row
        for row in read_published(CATALOGUE, "trainium-cross-checks")
        if row.cells["source"] == "citi-rdimm-2026"
    )
    price = next(guard.price for guard in GUARDS if guard.price.path == "parts.ddr5-dimm.price")
    failures = [
        set(failing_changes(row._replace(cells=row.cells | {"as_of": date}), {price.path: price}))
        for date in ("2026-Q4", "2026-08")
    ]
    assert failures == [{(price.path, 1.5), (price.path, 0.67)}, set()]


@pytest.mark.parametrize(
    ("system", "value"), [("gb200-nvl72", 1.84), ("gb300-nvl72", 2.36), ("vr-nvl144", 3.57)]
)
def test_semianalysis_chip_hours_of_july_2026_are_independent_checks(system, value):
    (chip_figure,) = [
        figure for figure in FOUND["semianalysis-2026-07"].figures if figure.system == system
    ]
    assert (chip_figure.kind, chip_figure.published, chip_figure.source) == (
        "independent",
        value,
        "semianalysis-vr-nvl72-2026-07",
    )
    assert chip_figure.ok == (system != "vr-nvl144")
