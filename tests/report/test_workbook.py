"""A recalculated workbook gives the values of the engine, before and after its inputs change."""

from __future__ import annotations

import io
import re
import shutil
import zipfile
from dataclasses import replace
from functools import cache
from itertools import accumulate
from xml.etree import ElementTree

import pytest

from tco import evaluate
from tco.report.cells import GROSS
from tco.report.workbook.cells import SPLIT, excel_name, split_long_formulas
from tco.report.workbook.sheets import LINE_HEIGHT
from tests.catalogue import CATALOGUE
from tests.registry import total
from tests.report.helpers import DEEPEST, LONGEST, workbook_of
from tests.report.spreadsheet import (
    MAIN,
    by_formulas,
    by_python,
    calculated,
    cells,
    changed,
    defined_names,
    libreoffice,
    table,
)
from tests.scenario_helpers import HEADLINE, METRICS, nodes_below, recording, result, scope
from tests.study_helpers import compare_results

MOST = 255

SERVING = ("trn3-nl72x2", "gb200-nvl72")
TRAINING = "train-gpt3-175b-a100x64"
MOVED = {  # ten inputs and more, in the units of their files
    **{
        "site.electricity_price": (0.12, "USD/kWh"),
        "site.pue": (1.3, ""),
        "site.usd_per_mw": (14.0, "USD/W"),
        "site.load_factor": (0.7, ""),
    },
    **{
        "terms.rate": (0.07, ""),
        "terms.life": (4.0, "year"),
        "terms.utilisation": (0.65, ""),
        "cluster.storage_share": (0.02, ""),
    },
    **{
        "parts.trn3.hbm_bandwidth": (4.1, "TB/s"),
        "parts.ddr5-dimm.price": (1400.0, "USD"),
        "parts.trn3.defect_density": (0.15, "1/cm^2"),
    },
    **{
        "parts.gb200-gpu.price": (26000.0, "USD"),
        "parts.gb200-gpu.peak_fp8": (4000.0, "TFLOP/s"),
        "parts.a100-sxm-80gb.price": (9000.0, "USD"),
    },
    **{
        "parts.a100-sxm-80gb.hbm_bandwidth": (1.5, "TB/s"),
        "workload.input_tokens": (6000.0, ""),
        "parts.trn3.tdp": (900.0, "W"),
    },
}


@cache
def traced_result(name):
    return result(name) if name in HEADLINE else evaluate(name, catalogue=CATALOGUE, trace=True)


@cache
def book(*names):
    base, results = compare_results([traced_result(name) for name in names])
    return workbook_of(results, CATALOGUE, base, f"tco export {' '.join(names)}")


def moved_for(*names):
    """Return the inputs to move that some scenarios have."""
    return {
        path: value
        for path, value in MOVED.items()
        if any(path in traced_result(name).inputs for name in names)
    }


def engine_metrics(*names):
    """Return the engine's metrics for the moved inputs, with the structure held."""
    moved_results = []
    for name in names:
        settings = {
            path: f"{value} {unit}".strip() for path, (value, unit) in moved_for(name).items()
        }
        moved_results.append(
            evaluate(name, settings, structure=traced_result(name).structure, catalogue=CATALOGUE)
        )
    return compare_results(moved_results)[1]


def refuse_difference(metrics, results):
    """Hold the table of metrics of a calculated book against results."""
    for scenario_result in results:
        for name, value in scenario_result.metrics.items():
            if value is None:
                assert metrics.get(name, {}).get(scenario_result.scenario) is None
            else:
                assert metrics[name][scenario_result.scenario] == pytest.approx(
                    value, rel=1e-9, abs=1e-300
                ), (
                    scenario_result.scenario,
                    name,
                )


def recalculated(content, by):
    """Return the table of metrics as a walk of our own calculates it."""
    calculated_values = calculated(content, by)
    metrics = table(content, "Summary", "metric")
    addresses = {
        value: address
        for address, (_, value) in cells(content, "Summary").items()
        if address.startswith("A")
    }
    columns = {
        str(value): address[0]
        for address, (_, value) in cells(content, "Summary").items()
        if address[0] > "B"
    }
    for name, row in metrics.items():
        for scenario, column in columns.items():
            if (cell := ("Summary", f"{column}{addresses[name][1:]}")) in calculated_values:
                row[scenario] = calculated_values[cell]
    return metrics


@pytest.mark.parametrize("names", [SERVING, (TRAINING,)], ids=["serving", "training"])
def test_workbook_calculates_the_values_of_the_engine(names):
    content = book(*names)
    for (sheet, address), value in calculated(content, by_python).items():
        assert value == pytest.approx(cells_of(content, sheet)[address][1], rel=1e-9, abs=1e-300), (
            sheet,
            address,
        )
    moved_inputs = moved_for(*names)
    assert len(moved_inputs) >= 10
    after = recalculated(
        changed(content, {path: value for path, (value, _) in moved_inputs.items()}), by_python
    )
    results = engine_metrics(*names)
    refuse_difference(after, results)
    # a book that stands still would show no difference
    for scenario_result, before in zip(results, map(traced_result, names), strict=True):
        assert scenario_result.metrics["tco_usd_per_chip_hour"] != pytest.approx(
            before.metrics["tco_usd_per_chip_hour"], rel=1e-3
        )


@cache
def cells_of(content, sheet):
    return cells(content, sheet)


def test_the_formulas_package_calculates_the_cost():
    """The cost alone: that package takes its time over each formula."""
    metric = "tco_usd_per_chip_hour"
    cost_result = replace(
        traced_result("gb200-nvl72"),
        nodes={metric: traced_result("gb200-nvl72").nodes[metric]},
        bill=None,
    )
    content = changed(
        workbook_of([cost_result], CATALOGUE, cost_result.scenario, ""),
        {"site.electricity_price": 0.12, "terms.rate": 0.07},
    )
    settings = {"site.electricity_price": "0.12 USD/kWh", "terms.rate": "0.07"}
    expected = evaluate(
        "gb200-nvl72", settings, structure=cost_result.structure, catalogue=CATALOGUE
    ).metrics[metric]
    assert expected != pytest.approx(cost_result.metrics[metric], rel=1e-3)
    assert recalculated(content, by_formulas)[metric]["gb200-nvl72"] == pytest.approx(
        expected, rel=1e-9
    )


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_libreoffice_calculates_the_values_of_the_engine(tmp_path):
    kinds = (SERVING, (TRAINING,))
    untouched = [changed(book(*names), {}) for names in kinds]
    moved_books = [
        changed(book(*names), {path: value for path, (value, _) in moved_for(*names).items()})
        for names in kinds
    ]
    books = [
        table(content, "Summary", "metric")
        for content in libreoffice([*untouched, *moved_books], tmp_path)
    ]
    for names, before, after in zip(kinds, books[:2], books[2:], strict=True):
        refuse_difference(before, compare_results([traced_result(name) for name in names])[1])
        refuse_difference(after, engine_metrics(*names))


def test_one_call_is_one_cell():
    """Every call and every gathering of the trace is one cell.

    Of the bill these are prices and powers, of the other sheets all.
    """
    scenario_result = traced_result("trn3-nl72x2")
    content = book(scenario_result.scenario)
    computed_ids = {
        node.id for node in nodes_below(*scenario_result.nodes.values()) if not node.is_leaf
    }
    of_lines = {
        f"bill/{line.path}/{what}"
        for line in scenario_result.bill.lines
        for what in ("extended_price", "extended_power")
    } & computed_ids
    elsewhere = [
        formula
        for sheet in ("Cost", "Performance")
        for formula, _ in cells(content, sheet).values()
        if formula is not None
    ]
    assert len(of_lines) > 50
    assert len(elsewhere) == len(computed_ids) - len(of_lines)


def test_every_formula_has_its_value_and_stays_within_the_limits():
    content = book(*HEADLINE)
    count = 0
    for sheet in ("Summary", "Inputs", "BOM", "Cost", "Performance"):
        for address, (formula, value) in cells(content, sheet).items():
            if formula is None:
                continue
            count += 1
            assert isinstance(value, float), (sheet, address)
            assert len(formula) < LONGEST
            assert max(accumulate({"(": 1, ")": -1}.get(mark, 0) for mark in formula)) < DEEPEST
            assert formula.count(",") < MOST
            assert "_xlfn" not in formula
    assert count > 4000
    assert not any("vba" in name for name in zipfile.ZipFile(io.BytesIO(content)).namelist())


def test_the_same_inputs_give_the_same_bytes():
    base, results = compare_results([traced_result(name) for name in SERVING])
    assert workbook_of(results, CATALOGUE, base, f"tco export {' '.join(SERVING)}") == book(
        *SERVING
    )


def test_an_input_has_its_name_its_range_and_its_source():
    content = book(*SERVING)
    inputs, names = table(content, "Inputs", "input"), defined_names(content)
    for name in SERVING:
        for node in [
            node
            for node in nodes_below(*traced_result(name).nodes.values())
            if node.given is not None
        ]:
            row = inputs[node.id]
            assert row["in base units"] == pytest.approx(node.value, rel=1e-12, abs=1e-300)
            assert row["kind"] == node.given.kind
            assert row["source"] == CATALOGUE.source_title(node.given.source)
            assert (row.get("low") is None) == (node.given.low is None)
    row = inputs["site.electricity_price"]
    assert (row["unit"], row["base unit"], row["read by"]) == ("USD/kWh", "USD/Wh", "all")
    assert inputs["parts.trn3.hbm_bandwidth"]["read by"] == "trn3-nl72x2"
    assert inputs["cluster.chips"]["decides structure"] == "yes"
    formula = cells(content, "Inputs")[
        names["site_electricity_price"].replace("$", "").partition("!")[2]
    ][0]
    assert formula.endswith("*0.001")


def test_scenarios_that_read_other_values_of_an_input_have_a_cell_each():
    content = book("gb200-nvl72", TRAINING)
    names = {name for name in defined_names(content) if name.startswith("cluster_chips")}
    assert names == {"cluster_chips", "cluster_chips_2"}
    metrics = recalculated(content, by_python)
    refuse_difference(
        metrics, compare_results([traced_result("gb200-nvl72"), traced_result(TRAINING)])[1]
    )


def test_the_structure_is_locked_and_inputs_are_not():
    content = book(*SERVING)
    archive = zipfile.ZipFile(io.BytesIO(content))
    locked = [
        name
        for name in archive.namelist()
        if name.startswith("xl/worksheets/sheet") and b"<sheetProtection" in archive.read(name)
    ]
    assert len(locked) == 1
    decided = table(content, "Structure", "decided")
    assert (
        decided["plan/decode/chips"]["trn3-nl72x2"]
        == traced_result("trn3-nl72x2").plan.decode.chips
    )
    assert any(
        "needs the program" in str(value) for _, value in cells(content, "Structure").values()
    )


def test_rows_of_folded_texts_are_as_high_as_their_lines():
    """A row that keeps its height would print its texts over the rows below."""
    archive = zipfile.ZipFile(io.BytesIO(book(*SERVING)))
    decoded = archive.read("xl/worksheets/sheet6.xml").decode()
    row = next(
        number
        for number, (_, value) in cells(book(*SERVING), "Structure").items()
        if value == "choices/operators/decode"
    )
    (height,) = re.findall(rf'<row r="{row[1:]}"[^>]* ht="(\d+)"', decoded)
    assert int(height) >= 4 * LINE_HEIGHT


def test_workbook_states_its_data_and_command():
    read_me = {value for _, value in cells(book(*SERVING), "Read me").values()}
    assert {f"hash {CATALOGUE.hash()}", f"tco export {' '.join(SERVING)}"} <= read_me


@pytest.mark.parametrize("count", [SPLIT, SPLIT + 1, SPLIT * SPLIT + 5])
def test_a_long_sum_is_split(count):
    with recording() as trace, scope("here"):
        sum_node = total(
            "sum",
            [
                trace.leaf(f"x.{leaf_number}", float(leaf_number), "USD", "s", "press")
                for leaf_number in range(count)
            ],
        ).node
    parts = list(split_long_formulas([sum_node]))
    assert all(len(part.inputs) <= SPLIT for part in parts)
    assert parts[-1].id == "here/sum"
    assert parts[-1].value == pytest.approx(sum_node.value, rel=1e-12)
    assert {node.id for node in nodes_below(*parts) if node.is_leaf} == {
        node.id for node in nodes_below(sum_node) if node.is_leaf
    }
    assert len({part.id for part in parts}) == len(parts)


def test_a_name_is_no_address_and_no_other_name():
    taken: set[str] = set()
    assert [excel_name(text, taken) for text in ("a.b-c", "a.b.c", "A.B.C", "tdp1", "3d.x")] == [
        "a_b_c",
        "a_b_c_2",
        "A_B_C_3",
        "input_tdp1",
        "input_3d_x",
    ]


def test_text_is_never_a_formula():
    titled = replace(traced_result("gb200-nvl72"), title="=1+1", notes=["=2+2"])
    content = workbook_of([titled], CATALOGUE, "gb200-nvl72", "=3+3")
    cell_formulas = {
        formula
        for sheet in ("Read me", "BOM", "Summary")
        for formula, _ in cells(content, sheet).values()
    }
    assert cell_formulas.isdisjoint({"1+1", "2+2", "3+3"})
    assert any(value == "=3+3" for _, value in cells(content, "Read me").values())


def last_cell(addresses):
    """Return the last column and the last row of some cells."""
    columns, rows = zip(
        *(re.match(r"([A-Z]+)(\d+)", address).groups() for address in addresses), strict=True
    )
    return max(columns, key=lambda column: (len(column), column)), max(map(int, rows))


def test_a_printed_page_holds_every_cell_but_the_notes_of_inputs():
    """The summary has one more column, in which the chart ends."""
    content = book(*SERVING)
    root = ElementTree.fromstring(zipfile.ZipFile(io.BytesIO(content)).read("xl/workbook.xml"))
    ranges = {}
    for defined_name in root.iter(f"{MAIN}definedName"):
        sheet, _, area = defined_name.text.replace("$", "").replace("'", "").partition("!")
        ranges[defined_name.get("name").removeprefix("_xlnm."), sheet] = area
    for sheet in ("Summary", "Inputs", "BOM", "Cost", "Performance", "Structure", "Sources"):
        filled = [address for address, cell in cells_of(content, sheet).items() if any(cell)]
        column, row = last_cell(filled)
        printed = {"Inputs": "N", "Summary": "F"}.get(sheet, column)
        assert ranges["Print_Area", sheet] == f"A1:{printed}{row}", sheet
        if ("_FilterDatabase", sheet) in ranges:
            assert ranges["_FilterDatabase", sheet] == f"A3:{column}{row}"


def test_metrics_of_the_summary_stand_below_their_head_row_by_row():
    content = book(*SERVING)
    first_column = {
        int(address[1:]): cell[1]
        for address, cell in cells_of(content, "Summary").items()
        if address[0] == "A"
    }
    (head,) = [row for row, text in first_column.items() if text == "metric"]
    names = [first_column[row] for row in range(head + 1, max(first_column) + 1)]
    assert set(names) <= {*METRICS, GROSS}
    assert len(set(names)) == len(names) > 20
