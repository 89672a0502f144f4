"""The sheet of inputs: every number somebody may change, in its own unit, and beside it in the unit the formulas take, under its name."""

from __future__ import annotations

from tco.foundation.units import convert
from tco.outputs.cells import decides, own_unit, place_of
from tco.outputs.workbook.cells import InputCell
from tco.outputs.workbook.sheets import Workbook, number_format, page

SHEET = "Inputs"
HEADS = (
    *(("input", 44), ("value", 14), ("unit", 12), ("in base units", 16), ("base unit", 12), ("low", 12), ("high", 12), ("kind", 11)),
    *(("as of", 11), ("source", 46), ("own", 7), ("decides structure", 11), ("read by", 30), ("note", 60)),
)
TOP = 2  # rows above the head
NUMBERS = {"value", "in base units", "low", "high"}
VALUE, BASE = 1, 3  # columns


def write(book: Workbook) -> None:
    """Write the inputs, those of the site and the terms first."""
    sheet = book.sheets[SHEET]
    book.text(SHEET, 0, 0, "Inputs", "title")
    book.text(
        SHEET,
        1,
        0,
        "Change a coloured value: everything else follows. Orange values are your own. low and high are the P5 and P95 of belief.",
        "subtitle",
    )
    for column, (head, width) in enumerate(HEADS):
        book.text(SHEET, TOP, column, head, "head" if head in NUMBERS else "head-text")
        sheet.set_column(column, column, width)
    leaves = sorted(book.content.inputs, key=lambda leaf: place_of(leaf.node.id))
    for row, leaf in enumerate(leaves, TOP + 1):
        write_row(book, row, leaf)
    last = TOP + len(leaves)
    sheet.autofilter(TOP, 0, last, len(HEADS) - 1)
    sheet.set_row(TOP, 30)
    page(sheet, last, len(HEADS) - 2, TOP + 1, 1, book.footer)


def write_row(book: Workbook, row: int, leaf: InputCell) -> None:
    """Write one input."""
    node, given = leaf.node, leaf.given
    value, name, factor = own_unit(node)
    book.text(SHEET, row, 0, node.id)
    book.number(SHEET, row, VALUE, value, "own" if given.overlay else "input", number_format(name, value) if value else "0")
    book.text(SHEET, row, 2, name, "weak")
    cell = f"B{row + 1}"
    book.live(
        SHEET, row, BASE, f"={cell}" if factor == 1 else f"={cell}*{factor!r}".upper(), node.value, "number", number_format(node.unit, node.value)
    )
    book.workbook.define_name(leaf.name, f"={SHEET}!$D${row + 1}")
    book.text(SHEET, row, 4, node.unit, "weak")
    for column, bound in ((5, given.low), (6, given.high)):
        if bound is not None:
            own = convert(bound, node.unit, name)
            book.number(SHEET, row, column, own, "weak-number", number_format(name, own))
    read_by = [book.results[at].scenario for at in leaf.scenarios]
    held = any(decides(book.results[at], node.id) for at in leaf.scenarios)
    texts = (given.kind, given.as_of, book.catalogue.source_title(given.source), "own" if given.overlay else "", "yes" if held else "")
    everybody = len(read_by) == len(book.results)
    for column, text in enumerate((*texts, "all" if everybody else ", ".join(read_by), given.note), 7):
        if text:
            book.text(SHEET, row, column, text, "weak")
