"""The workbook has labels before figures, heads over columns, and charts that cover no cell."""

from __future__ import annotations

import io
import re
import zipfile
from functools import cache
from xml.etree import ElementTree

import pytest

from tco.report.workbook.summary import SHOWN
from tests.catalogue import CATALOGUE
from tests.report.helpers import workbook_of
from tests.report.spreadsheet import MAIN, by_rows, cells, looks, row_and_column, sheet_files, table
from tests.scenario_helpers import result
from tests.study_helpers import compare_results

NAMES = ["trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72"]
SUMMARY, BILL = "Summary", "BOM"
CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"


@cache
def book():
    base, results = compare_results([result(name) for name in NAMES])
    return workbook_of(results, CATALOGUE, base, "tco export")


def row_of(sheet, text, column="A"):
    """The row in which a text stands."""
    return next(row for row, values in by_rows(book(), sheet).items() if values.get(column) == text)


def part(pattern):
    """The one part of the file whose name matches."""
    archive = zipfile.ZipFile(io.BytesIO(book()))
    (name,) = [name for name in archive.namelist() if re.search(pattern, name)]
    return ElementTree.fromstring(archive.read(name))


def test_the_summary_puts_a_label_and_a_unit_before_a_figure_for_each_scenario():
    rows = by_rows(book(), SUMMARY)
    top = next(
        row for row, values in rows.items() if [values.get(column) for column in "CDE"] == NAMES
    )
    _, results = compare_results([result(name) for name in NAMES])
    summary_metrics = [
        summary_metric
        for summary_metric in SHOWN
        if any(
            scenario_result.metrics[summary_metric[0]] is not None for scenario_result in results
        )
    ]
    for row, (metric, label, unit, size) in enumerate(summary_metrics, top + 1):
        assert (rows[row]["A"], rows[row].get("B") or "") == (label, unit)
        for column, scenario_result in zip("CDE", results, strict=True):
            value = scenario_result.metrics[metric]
            assert rows[row].get(column) == (
                None if value is None else pytest.approx(value / size, rel=1e-12)
            )


@pytest.mark.parametrize("sheet", [SUMMARY, BILL, "Cost", "Performance"])
def test_the_head_of_a_column_stands_over_its_figures(sheet):
    """Figures are set to the right and words to the left, and so are their heads."""
    rows, styles = by_rows(book(), sheet), looks(book(), sheet)
    heads = [
        row
        for row, values in rows.items()
        if all(styles[f"{column}{row}"][1] is not None for column in values) and len(values) > 2
    ]
    assert heads
    for top, end in zip(heads, [*heads[1:], max(rows) + 1], strict=True):
        for column in rows[top]:
            below = [
                rows[row][column]
                for row in range(top + 1, end)
                if column in rows.get(row, {}) and rows[row][column] is not None
            ]
            figures = any(isinstance(value, float) for value in below)
            assert styles[f"{column}{top}"] == (True, "right" if figures else "left"), (
                sheet,
                column,
                top,
            )


def test_the_chart_shows_every_class_of_every_scenario_and_covers_no_cell():
    rows = by_rows(book(), SUMMARY)
    top = row_of(SUMMARY, "class of cost")
    total = row_of(SUMMARY, "cost per chip-hour, net")
    series = list(part(r"charts/chart\d+\.xml$").iter(f"{CHART}ser"))
    assert [bar_series.find(f"{CHART}tx").findtext(f".//{CHART}f") for bar_series in series] == [
        f"Summary!$A${row}" for row in range(top + 1, total)
    ]
    for row, bar_series in enumerate(series, top + 1):
        assert (
            bar_series.find(f"{CHART}cat").findtext(f".//{CHART}f") == f"Summary!$C${top}:$E${top}"
        )
        assert (
            bar_series.find(f"{CHART}val").findtext(f".//{CHART}f") == f"Summary!$C${row}:$E${row}"
        )
    drawing = part(r"drawings/drawing\d+\.xml$")
    first, last = (
        int(drawing.findtext(f".//{DRAWING}{end}/{DRAWING}row")) + 1 for end in ("from", "to")
    )
    assert total < first
    assert last < row_of(SUMMARY, "Every metric of the base case")
    assert not [row for row in rows if first <= row <= last]
    assert row_of(SUMMARY, "Every metric of the base case") - last <= 4, (
        "and no gap is left below it"
    )


def test_classes_of_cost_sum_to_the_chip_hour():
    rows = by_rows(book(), SUMMARY)
    top, total = row_of(SUMMARY, "class of cost"), row_of(SUMMARY, "cost per chip-hour, net")
    for column, name in zip("CDE", NAMES, strict=True):
        hour = result(name).metrics["tco_usd_per_chip_hour"]
        assert rows[total][column] == pytest.approx(hour, rel=1e-12)
        assert sum(rows[row].get(column) or 0 for row in range(top + 1, total)) == pytest.approx(
            hour, rel=1e-9
        )
        summed = re.fullmatch(
            r"SUM\((\w)(\d+):(\w)(\d+)\)", cells(book(), SUMMARY)[f"{column}{total}"][0]
        ).groups()
        assert summed == (column, str(top + 1), column, str(total - 1))


@pytest.mark.parametrize("sheet", ["Cost", "Performance"])
def test_a_place_is_named_in_bold_where_it_begins(sheet):
    rows, styles = by_rows(book(), sheet), looks(book(), sheet)
    top = row_of(sheet, "place")
    before = None
    for row in sorted(row for row in rows if row > top):
        place_name = rows[row].get("A")
        assert styles[f"A{row}"][0] is (place_name != before), (sheet, row)
        before = place_name
    assert before is not None


def test_the_bill_sums_each_system_to_the_price_and_power_of_its_world():
    content = cells(book(), BILL)
    totals = [
        row
        for row, values in by_rows(book(), BILL).items()
        if values.get("A") == "whole scale-up domain"
    ]
    assert len(totals) == len(NAMES)
    for row, name in zip(totals, NAMES, strict=True):
        title = next(
            title_row
            for title_row in range(row, 0, -1)
            if str(by_rows(book(), BILL).get(title_row, {}).get("A", "")).startswith(f"{name}: ")
        )
        for column, value in (("E", result(name).bill.price), ("F", result(name).bill.power)):
            formula, cell_value = content[f"{column}{row}"]
            assert cell_value == pytest.approx(value, rel=1e-12)
            assert formula == f"SUM({column}{title + 1}:{column}{row - 1})"
            lines = [
                content[f"{column}{line_row}"][1]
                for line_row in range(title + 1, row)
                if f"{column}{line_row}" in content
            ]
            assert sum(
                line_amount for line_amount in lines if line_amount is not None
            ) == pytest.approx(value, rel=1e-9)
    assert all(row_and_column(address)[1] <= "I" for address in content)


def test_every_metric_stands_under_its_scenario():
    rows = table(book(), SUMMARY, "metric")
    for scenario_result in compare_results([result(name) for name in NAMES])[1]:
        for metric, value in scenario_result.metrics.items():
            if value is not None:
                assert rows[metric][scenario_result.scenario] == pytest.approx(value, rel=1e-12), (
                    metric
                )


@pytest.mark.parametrize("sheet", ["Cost", "Performance"])
def test_the_filter_of_a_grid_spans_all_of_it(sheet):
    archive = zipfile.ZipFile(io.BytesIO(book()))
    rows = by_rows(book(), sheet)
    top = row_of(sheet, "place")
    filter_range = (
        ElementTree.fromstring(archive.read(sheet_files(archive)[sheet]))
        .find(f"{MAIN}autoFilter")
        .get("ref")
    )
    assert filter_range == f"A{top}:{max(rows[top])}{max(rows)}"


def test_what_is_printed_of_a_sheet_is_all_of_it_but_long_notes():
    archive = zipfile.ZipFile(io.BytesIO(book()))
    areas = {}
    for defined_name in part(r"xl/workbook\.xml").iter(f"{MAIN}definedName"):
        if defined_name.get("name") == "_xlnm.Print_Area":
            sheet, column, row = re.fullmatch(
                r"'?([^'!]+)'?!\$A\$1:\$([A-Z]+)\$(\d+)", defined_name.text
            ).groups()
            areas[sheet] = column, int(row)
    assert areas.keys() == sheet_files(archive).keys()
    pane = ElementTree.fromstring(archive.read(sheet_files(archive)[SUMMARY])).find(
        f".//{MAIN}pane"
    )
    # the heads stay where figures are rolled
    assert [
        by_rows(book(), SUMMARY)[int(pane.get("ySplit"))].get(column) for column in "CDE"
    ] == NAMES
    # without the notes of inputs; as far as the chart reaches
    beyond = {
        "Inputs": "N",
        "Summary": "F",
    }
    for sheet, area in areas.items():
        rows = by_rows(book(), sheet)
        assert area == (
            beyond.get(sheet) or max(column for values in rows.values() for column in values),
            max(rows),
        ), sheet
