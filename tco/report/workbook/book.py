"""The whole workbook: its sheets in order, its sources, and how to read and remake it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from datetime import datetime

from tco import __version__
from tco.catalog import Catalogue
from tco.report.workbook import bill, grids, inputs, summary
from tco.report.workbook.cells import content_of
from tco.report.workbook.sheets import Workbook
from tco.sampling.median import DrawnMetrics
from tco.scenario.result import Result

MADE = datetime(2000, 1, 1)  # of every workbook, so that equal inputs give equal bytes


def workbook_of(
    scenario_results: Sequence[Result],
    catalogue: Catalogue,
    baseline: str,
    command: str,
    drawn: Sequence[DrawnMetrics] = (),
) -> bytes:
    """Return the workbook of traced results, side by side.

    Args:
        scenario_results: Results of scenarios, evaluated with a trace.
        catalogue: Catalogue of the results.
        baseline: Name of the baseline scenario.
        command: Command that makes the workbook, for its comments.
        drawn: Percentiles of the costs of each scenario, over draws; empty without draws.

    Returns:
        Content of an XLSX file.

    """
    import xlsxwriter

    stream = io.BytesIO()
    workbook = xlsxwriter.Workbook(
        stream, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    )
    workbook.set_properties(
        {"title": "Total cost of ownership", "comments": command, "created": MADE}
    )
    workbook.set_calc_mode("auto")
    book = Workbook(workbook, content_of(scenario_results), catalogue, baseline, command)
    below = grids.write_choices(book)
    grids.assign_grid_cells(book, "Structure", below, book.content.fixed)
    bill.assign_bill_cells(book)
    grids.place_derived(book)
    inputs.write_inputs_sheet(book)
    bill.write_bill_sheet(book)
    grids.write_grid_sheets(book)
    # without a password: against slips, not against anybody
    book.sheets["Structure"].worksheet.protect(
        "", {"format_columns": True, "format_rows": True, "select_locked_cells": True}
    )
    summary.write_summary_sheet(book, drawn)
    _write_sources(book)
    _write_read_me(book)
    book.sheets["Summary"].worksheet.activate()
    workbook.close()
    return stream.getvalue()


SOURCES, READ_ME = "Sources", "Read me"


def used(book: Workbook) -> Iterator[str]:
    """Yield the id of every source that an input or an equation of the workbook rests on."""
    for leaf in book.content.inputs:
        yield leaf.input_record.source
    for derived_row in book.content.derived:
        yield derived_row.node.source
    for scenario_result in book.results:
        for line in scenario_result.bill.lines if scenario_result.bill else ():
            yield from line.sources


def _write_sources(book: Workbook) -> None:
    """Write the sources that are used, by id."""
    sheet = book.sheets[SOURCES]
    sheet.title(SOURCES)
    sheet.head(2, ("id", "title", "address", "date"))
    sheet.widths(34, 90, 110, 12)
    ids = sorted({source for source in used(book) if source in book.catalogue.sources})
    for source_row, source_id in enumerate(ids, 3):
        source = book.catalogue.sources[source_id]
        sheet.texts(source_row, 0, (source_id, source.title))
        sheet.texts(source_row, 2, (source.url, source.date), "weak")
    sheet.page(2 + len(ids), 3, 3, 1)


READ_ME_WIDTH = 120
HELD_BY = {  # sheet -> what it holds
    "Summary": "Median costs, the base case side by side, where the cost goes, and every metric.",
    "Inputs": "Every number a figure depends on: change a coloured cell. Yellow is shipped, orange "
    "your own. Formulas use the name of its base value.",
    "BOM": "The parts of one scale-up domain: quantity, unit price, price, power.",
    "Cost": "Every step from parts to dollars per chip-hour: a row for each equation, a column for "
    "each scenario.",
    "Performance": "Every step from operators to tokens per second, on the fixed plan.",
    "Structure": "What is decided before anything is computed: plan, choices, counts. "
    "Locked, since changing it needs the program, which searches again.",
    "Sources": "Where the numbers come from.",
}
MEANT = {  # what is written in sheets -> what it means
    "fixed plan": "A change of inputs keeps the plan and all choices. Another plan may then be "
    "better; the program searches it.",
    "decides structure": "Inputs with this mark decided the plan, the parts and the counts before "
    "anything was computed. A change here leaves these as they are.",
    "base case": "Every input is at its value. The cells of the base case recalculate.",
    "median": "It is the median of the costs over draws of all inputs. It is fixed.",
    "empty cell": "It cannot be computed for that scenario; it is never zero.",
}


def _write_read_me(book: Workbook) -> None:
    """Write what the workbook is, how it is used, and what made it."""
    provenance = {
        "made by": f"tco {__version__}",
        "data": f"hash {book.catalogue.hash()}",
        "command": book.command,
    }
    lines = [*provenance.items(), ("", ""), *HELD_BY.items(), ("", ""), *MEANT.items()]
    notes = [
        (scenario_result.scenario, note)
        for scenario_result in book.results
        for note in (
            *scenario_result.notes,
            *scenario_result.ages.notes,
            scenario_result.standing.text,
        )
        if note
    ]
    sheet = book.sheets[READ_ME]
    sheet.title(READ_ME)
    sheet.widths(22, READ_ME_WIDTH)
    for line_row, (line_label, line_text) in enumerate([*lines, ("", ""), *notes], 2):
        if line_label:
            sheet.text(line_row, 0, line_label, "strong")
            sheet.text(line_row, 1, line_text, "wrapped")
            sheet.fit_row(line_row, [line_text], READ_ME_WIDTH)
    sheet.page(2 + len(lines) + len(notes), 1, 0, 0)
