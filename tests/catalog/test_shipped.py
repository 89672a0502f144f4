"""Shipped data passes its checks: schemas, units, bounds, sources, systems, models, scenarios."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.catalogue import DATA, checks, input_attributes, load_model, load_system, read_csv
from tests.registry import unit_table

DOCUMENTS = [
    "sites",
    "terms",
    "perspectives",
    "workloads",
    "clusters",
    "rebates",
    "performance",
]


def test_shipped_parts_and_shares_pass_the_checks(catalogue):
    assert checks.check_parts(catalogue) == []


@pytest.mark.parametrize("folder", DOCUMENTS)
def test_shipped_documents_pass_the_checks(catalogue, folder):
    assert catalogue.ids(folder)
    assert checks.check_documents(catalogue, folder) == []


def test_shipped_systems_pass_the_checks(catalogue):
    assert len(catalogue.ids("systems")) >= 4
    assert checks.check_systems(catalogue) == []


def test_shipped_scenarios_pass_the_checks(catalogue):
    assert len(catalogue.scenarios) >= 4
    assert [
        finding
        for path in catalogue.scenarios.values()
        for finding in checks.check_scenario(path, catalogue.toml(path))
    ] == []


def test_shipped_sources_pass_the_checks(catalogue):
    assert all(source.title for source in catalogue.sources.values())
    assert [
        source.id
        for source in catalogue.sources.values()
        if not re.fullmatch(r"|\d{4}(-\d{2}(-\d{2})?)?", source.date)
    ] == []


def test_a_source_is_listed_once():
    rows = [
        row["id"]
        for _, row in read_csv(DATA / "sources.csv", ("id", "title", "url", "date", "publisher"))
    ]
    assert [name for name, times in Counter(rows).items() if times > 1] == []


def test_shipped_models_load(catalogue):
    for name in catalogue.models:
        assert load_model(catalogue, name).parameters > 0.9e9


def test_units_of_attributes_are_in_the_table():
    assert [
        attribute.unit
        for attribute in input_attributes().values()
        if attribute.unit not in unit_table()
    ] == []


def test_bounds_of_attributes_are_in_order():
    assert [
        key
        for key, attribute in input_attributes().items()
        if not attribute.minimum < attribute.maximum
    ] == []
    below = {name for (_, name), attribute in input_attributes().items() if attribute.minimum < 0}
    # what may be off, or go, either way
    assert below == {
        "unexplained_serving",
        "unexplained_training",
        "correlation",
    }


def test_units_of_rows_need_no_pint(catalogue):
    """A unit text outside the table would import pint into every light command."""
    known_units = unit_table()
    rows = [
        row
        for table in (catalogue.part_rows, catalogue.rows("shares"))
        for rows in table.values()
        for row in rows
    ]
    assert [row.where for row in rows if row.cells["unit"] not in known_units] == []
    for folder in DOCUMENTS:
        for name in catalogue.ids(folder):
            path, document = catalogue.document(folder, name, folder)
            used = {
                cells["unit"]
                for cells in document.values()
                if isinstance(cells, dict) and "unit" in cells
            }
            assert used <= known_units.keys(), path


def test_every_estimate_has_a_range_that_holds_it(catalogue):
    for rows in catalogue.part_rows.values():
        for row in rows:
            cells = row.cells
            if cells["kind"] in ("estimate", "assumed"):
                assert float(cells["low"]) <= float(cells["value"]) <= float(cells["high"]), (
                    row.where
                )


def test_every_part_of_every_system_has_a_price_and_a_power(catalogue):
    """Each place of each tree, in every variant, is priced or stands in something that is."""
    for name in catalogue.ids("systems"):
        for part in load_system(catalogue, name).quantity:
            part_attributes = set(catalogue.parts[part])
            assert part_attributes & {"price", "own_price", "die_area", "labour_rate"}, part
            assert part_attributes & {"power", "tdp", "efficiency", "labour_rate"}, part


def test_memory_stacks_of_trainium3_are_gibibytes(catalogue):
    assert catalogue.part_input("trn3", "hbm_capacity", "2025-12").value == 144 * 2**30


AGE_ALONE = re.compile(
    r"headline|later than|too new|after the date|not yet in force", re.IGNORECASE
)


def alternatives_newer_than_their_row(rows):
    """Yield the alternatives of a series that begin after every row that may be in force."""
    newest = max(row.begins for row in rows if row.cells.get("use") != "alternative")
    for row in rows:
        if row.cells.get("use") == "alternative" and row.begins > newest:
            yield row


def test_alternative_newer_than_its_row_has_a_reason_beyond_the_date(catalogue):
    """The note of a newer alternative says what is wrong with its value.

    An earlier date of some comparison is no fault of a value.
    """
    newer = []
    for group in ("parts", "shares", "site"):
        for rows in catalogue.rows(group).values():
            newer += alternatives_newer_than_their_row(rows)
            assert not [
                row.where
                for row in rows
                if "headline date" in str(row.cells.get("note", "")).lower()
            ]
    assert len(newer) >= 5  # the rule is tried on rows there are
    unexplained = [
        row.where for row in newer if not row.cells["note"] or AGE_ALONE.search(row.cells["note"])
    ]
    assert unexplained == []


def test_rule_on_alternatives_matches_notes_on_headline_dates(own_data):
    own_data.parts(
        "mi450x,clock,2.6,GHz,,,2026-12,vendor,tco-model,later than the headline date,alternative",
        "mi450x,clock,2.4,GHz,,,2026-01,vendor,tco-model,,",
    )
    (row,) = alternatives_newer_than_their_row(
        own_data.catalogue().rows("parts")["mi450x", "clock"]
    )
    assert AGE_ALONE.search(row.cells["note"])
