"""The sheet of inputs: every number to change, in its own unit and in the formulas' unit."""

from __future__ import annotations

from tco.catalog.labels import short_name
from tco.core.units import convert
from tco.report.cells import input_sort_key, own_unit
from tco.report.workbook.cells import InputCell
from tco.report.workbook.sheets import Workbook, number_format

SHEET = "Inputs"
HEADS = (
    *("input", "value", "unit", "in base units", "base unit", "low", "high", "kind"),
    *("as of", "source", "own", "decides structure", "in words", "read by", "note"),
)
WIDTHS = (44, 14, 12, 16, 12, 12, 12, 11, 11, 72, 7, 11, 44, 30, 60)
TOP = 2  # rows above the head
VALUE, BASE, LOW, HIGH = 1, 3, 5, 6  # columns


def write_inputs_sheet(book: Workbook) -> None:
    """Write the inputs, those of the site and the terms first."""
    sheet = book.sheets[SHEET]
    sheet_note = (
        "Change a coloured value: everything else follows. Orange values are your own. low, high: "
        "5 % of the draws lie below, and 5 % above."
    )
    sheet.title("Inputs", sheet_note)
    sheet.head(TOP, HEADS, (VALUE, BASE, LOW, HIGH))
    sheet.widths(*WIDTHS)
    leaves = sorted(book.content.inputs, key=lambda leaf: input_sort_key(leaf.node.id))
    for input_row, leaf in enumerate(leaves, TOP + 1):
        _write_row(book, input_row, leaf)
    last = TOP + len(leaves)
    sheet.worksheet.autofilter(TOP, 0, last, len(HEADS) - 1)
    sheet.worksheet.set_row(TOP, 30)
    sheet.page(last, len(HEADS) - 2, TOP + 1, 1)


def _write_row(book: Workbook, input_row: int, leaf: InputCell) -> None:
    """Write one input."""
    sheet, node, input_record = book.sheets[SHEET], leaf.node, leaf.input_record
    shown_value, shown_unit, factor = own_unit(node)
    sheet.text(input_row, 0, node.id)
    look = "own" if input_record.overlay else "input"
    numbers = number_format(shown_unit, shown_value) if shown_value else "0"
    sheet.number(input_row, VALUE, shown_value, look, numbers)
    sheet.text(input_row, 2, shown_unit, "weak")
    formula = f"=B{input_row + 1}" + ("" if factor == 1 else f"*{factor!r}".upper())
    base_numbers = number_format(node.unit, node.value)
    sheet.number(input_row, BASE, node.value, "number", base_numbers, formula)
    book.workbook.define_name(leaf.name, f"={SHEET}!$D${input_row + 1}")
    sheet.text(input_row, 4, node.unit, "weak")
    for column, bound in ((LOW, input_record.low), (HIGH, input_record.high)):
        if bound is not None:
            converted_bound = convert(bound, node.unit, shown_unit)
            bound_numbers = number_format(shown_unit, converted_bound)
            sheet.number(input_row, column, converted_bound, "weak-number", bound_numbers)
    read_by = [book.scenario_names[scenario_index] for scenario_index in leaf.scenarios]
    # decided what exists, too
    is_structure_input = any(
        node.id in structure.readings
        for scenario_index in leaf.scenarios
        if (structure := book.results[scenario_index].structure)
    )
    texts = (
        input_record.kind,
        input_record.as_of,
        book.catalogue.source_title(input_record.source),
        "own" if input_record.overlay else "",
        "yes" if is_structure_input else "",
        short_name(node.id),
        "all" if len(read_by) == len(book.results) else ", ".join(read_by),
        input_record.note,
    )
    sheet.texts(input_row, HIGH + 1, texts, "weak")
