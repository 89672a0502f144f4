"""The sheets about the workbook: its sources, and how it is read and made again."""

from __future__ import annotations

from collections.abc import Iterator

from tco.outputs.workbook.sheets import Workbook, page

SOURCES, READ_ME = "Sources", "Read me"


def used(book: Workbook) -> Iterator[str]:
    """Yield the id of every source that an input or an equation of the workbook rests on."""
    for leaf in book.content.inputs:
        yield leaf.given.source
    for row in book.content.derived:
        yield row.node.source
    for result in book.results:
        for line in result.bill.lines if result.bill else ():
            yield from line.sources


def write_sources(book: Workbook) -> None:
    """Write the sources that are used, by id."""
    book.text(SOURCES, 0, 0, "Sources", "title")
    for column, (head, width) in enumerate((("id", 34), ("title", 80), ("address", 80), ("date", 12))):
        book.text(SOURCES, 2, column, head, "head-text")
        book.sheets[SOURCES].set_column(column, column, width)
    ids = sorted({source for source in used(book) if source in book.catalogue.sources})
    for row, name in enumerate(ids, 3):
        source = book.catalogue.sources[name]
        for column, text in enumerate((name, source.title, source.url, source.date)):
            if text:
                book.text(SOURCES, row, column, text, "text" if column < 2 else "weak")
    page(book.sheets[SOURCES], 2 + len(ids), 3, 3, 1, book.footer)


def write_read_me(book: Workbook) -> None:
    """Write what the workbook is, how it is used, and what made it."""
    lines: list[tuple[str, str]] = [
        ("made by", f"tco {book.version}"),
        ("data", f"hash {book.catalogue.hash()}"),
        ("command", book.command),
        ("", ""),
        ("Summary", "Scenarios side by side, the stack of costs, and every metric under its name."),
        (
            "Inputs",
            "Every number a figure depends on: change a coloured cell. Yellow is shipped, orange your own. Formulas use the name of its base value.",
        ),
        ("BOM", "The parts of one scale-up domain: quantity, unit price, price, power."),
        ("Cost", "Every step from parts to dollars a chip-hour. One row is one equation; a column is a scenario."),
        ("Performance", "Every step from operators to tokens a second, on the plan that is held."),
        (
            "Structure",
            "What is decided before anything is computed: plan, choices, counts. Locked, since changing it needs the program, which searches again.",
        ),
        ("Sources", "Where the numbers come from."),
        ("", ""),
        (
            "held",
            "A change of inputs keeps the plan and all choices, as evaluating on a fixed structure does. Another plan may then be better.",
        ),
        ("decides", "Inputs marked 'decides structure' also decided what exists; changing them here moves what is computed, not what was decided."),
        ("no value", "An empty cell cannot be computed for that scenario; it is never zero."),
    ]
    notes = [(result.scenario, note) for result in book.results for note in (*result.notes, *result.ages.notes, result.standing.text) if note]
    book.text(READ_ME, 0, 0, "Read me", "title")
    sheet = book.sheets[READ_ME]
    sheet.set_column(0, 0, 22)
    sheet.set_column(1, 1, 120)
    for row, (name, text) in enumerate([*lines, ("", ""), *notes], 2):
        if name:
            book.text(READ_ME, row, 0, name, "strong")
            book.text(READ_ME, row, 1, text, "wrapped")
    page(sheet, 2 + len(lines) + len(notes), 1, 0, 0, book.footer)
