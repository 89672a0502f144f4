"""`tco export | report`: scenarios side by side as files, a workbook, tables or a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os.path import isdir  # unlike a path's method it says no to a name that no file can have
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, NamedTuple

from tco.cli import app
from tco.cli.options import CommandRequest, command
from tco.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.report.page.page import ReportPage
    from tco.sampling.median import DrawnMetrics
    from tco.scenario.result import Result

WORKBOOK = ".xlsx"
FOLDER = "/"  # the end of a folder's name
ENDINGS = (WORKBOOK, ".csv", ".json", ".parquet", FOLDER)


class Exported(NamedTuple):
    """Results side by side as an export writes them, with the percentiles of their costs."""

    catalogue: Catalogue
    results: Sequence[Result]
    drawn: Sequence[DrawnMetrics]
    baseline: str


def _ending_of(output: str) -> str:
    """Return the form that an output's name asks for; an unknown ending raises `UsageError`."""
    output_ending = FOLDER if output.endswith(FOLDER) else Path(output).suffix.lower()
    if output_ending not in ENDINGS:
        hint = " (a folder's name ends in /)" if isdir(output) else ""
        raise UsageError(
            f"--output {output}: unknown ending {output_ending!r}, expected one of "
            f"{', '.join(ENDINGS)}{hint}"
        )
    return output_ending


@command(app, "set", "variant", usual=("data", "quiet", "redact"))
def export(
    request: CommandRequest,
    output: str,
    scenarios: list[str] | None = None,
    baseline: str | None = None,
) -> None:
    """Write a workbook whose formulas recalculate, or tables.

    Scenarios stand side by side.

    Options:
        output (--output -o FILE): Where to: FILE.xlsx, .csv, .json or .parquet, or FOLDER/ for
            a data package.

    """
    from tco.evaluation.evaluation import HEADLINE, catalogue_of
    from tco.evaluation.side_by_side import compare_results
    from tco.report.redaction import WITHHELD_NOTE
    from tco.sampling.median import drawn_costs

    ending = _ending_of(output)
    scenario_names = list(dict.fromkeys(scenarios or HEADLINE))
    trace = ending == WORKBOOK
    evaluations = request.evaluate_scenarios(
        scenario_names, priced=False, refuse=False, trace=trace
    )
    _refuse_namesakes([evaluation.result for evaluation in evaluations])
    base, scenario_results = compare_results(
        [evaluation.result for evaluation in evaluations], baseline
    )
    contents = Exported(
        catalogue_of(evaluations, request.data),
        scenario_results,
        [drawn_costs(evaluation) for evaluation in evaluations],
        base,
    )
    if trace:
        _write_workbook(request, output, contents, scenario_names)
    else:
        _write_tables(request, output, ending, contents)
    notes = [
        f"{scenario_result.scenario}: {note}"
        for scenario_result in scenario_results
        for note in (*scenario_result.notes, *scenario_result.ages.notes)
    ]
    request.tell([WITHHELD_NOTE] if request.redact else notes)  # a note may tell of own values


def _refuse_namesakes(scenario_results: Sequence[Result]) -> None:
    scenario_names = [scenario_result.scenario for scenario_result in scenario_results]
    twice = next(
        (
            scenario_name
            for scenario_name in scenario_names
            if scenario_names.count(scenario_name) > 1
        ),
        None,
    )
    if twice is not None:
        raise UsageError(f"two scenarios are called {twice}, expected names that tell them apart")


def _write_workbook(
    request: CommandRequest, output: str, contents: Exported, scenario_names: Sequence[str]
) -> None:
    """Write the workbook; one with own values to withhold is refused, as it recalculates."""
    from tco.core.files import write_atomically
    from tco.report.workbook.book import workbook_of

    for scenario_name, scenario_result in zip(scenario_names, contents.results, strict=True):
        if not scenario_result.nodes:
            raise DataError(
                f"{scenario_name}: a saved result holds no formulas, a workbook needs its "
                "scenario; tables of it can be exported"
            )
    if request.redact:
        if any(
            result_input.overlay
            for scenario_result in contents.results
            for result_input in scenario_result.inputs.values()
        ):
            raise UsageError(
                "--redact: a workbook recalculates from its inputs and cannot withhold your own; "
                "export tables, or without own values"
            )
        from tco.cli.redaction import release_answer

        release_answer({})
    words = request.words(scenario_names, contents.baseline)
    made_by = join(["tco", "export", *words, "--output", "model.xlsx"])
    content = workbook_of(
        contents.results, contents.catalogue, contents.baseline, made_by, contents.drawn
    )
    write_atomically(Path(output), content)


def _write_tables(request: CommandRequest, output: str, ending: str, contents: Exported) -> None:
    """Write what the scenarios come to as tables, in the form an ending asks for."""
    from tco.core.files import write_atomically
    from tco.report.assumptions import values_by_scenario
    from tco.report.export import (
        DESCRIPTION,
        export_document,
        package_files,
        parquet_of,
        tables_of,
    )
    from tco.report.record import document, to_json
    from tco.report.table import to_csv

    tables = tables_of(contents.results, contents.catalogue, contents.drawn)
    request_document = document(
        "export",
        contents.catalogue,
        {
            "inputs": values_by_scenario(contents.results),
            "set": request.settings,
            "variant": request.variant,
        },
    )
    if request.redact:
        from tco.cli.redaction import release_answer

        tables, request_document = release_answer(
            (tables, request_document | {"set": dict.fromkeys(request.settings)})
        )
    if ending == FOLDER:
        write_folder(
            Path(output), package_files(tables, request_document["data_hash"]), DESCRIPTION
        )
        return
    makers: dict[str, Callable[[], str | bytes]] = {
        ".csv": lambda: to_csv(tables["scenarios"].header, tables["scenarios"].rows),
        ".json": lambda: to_json(request_document | export_document(tables, contents.baseline)),
        ".parquet": lambda: parquet_of(tables["scenarios"]),
    }
    write_atomically(Path(output), makers[ending]())


def write_folder(folder: Path, files: Mapping[str, str], mark: str) -> None:
    """Write files to a new or empty folder, or to one with the file that marks such folders.

    No existing file is deleted.
    """
    from tco.core.files import write_all

    _refuse_foreign_folder(folder, mark)
    write_all(folder, files)


def _refuse_foreign_folder(folder: Path, mark: str) -> None:
    if isdir(folder) and any(folder.iterdir()) and not (folder / mark).is_file():
        raise UsageError(
            f"{folder}/: holds other files, expected a new or empty folder, or one that holds "
            f"{mark}, to overwrite"
        )
    if not isdir(folder.absolute().parent):
        raise UsageError(f"{folder}/: cannot be written (No such file or directory)")


# ---------------------------------------------------------------- a page, or a folder of pages
PAGES = (".html", ".htm")
MARK = "tco-report.json"  # the file by which a folder of pages is known


@command(app, "set", usual=("data", "quiet", "redact"))
def report(
    request: CommandRequest,
    output: str,
    scenarios: list[str] | None = None,
    baseline: str | None = None,
) -> None:
    """Write one page that stands alone, with figures and a what-if.

    The page has the pick, the sources, and a what-if that recalculates as inputs move.

    Options:
        output (--output -o FILE): Where to: FILE.html, or FOLDER/ for pages that a site may
            publish.

    """
    from tco.comparison.report_data import material_of
    from tco.evaluation.evaluation import HEADLINE
    from tco.report.page.report import report_page

    folder = output.endswith(FOLDER)
    if not folder and Path(output).suffix.lower() not in PAGES:
        raise UsageError(
            f"--output {output}: unknown ending {Path(output).suffix!r}, expected "
            f"{', '.join(PAGES)} or a folder/"
        )
    if folder:
        _refuse_foreign_folder(Path(output), MARK)  # before minutes of work
    scenario_names = list(dict.fromkeys(scenarios or HEADLINE))
    material = material_of(scenario_names, baseline, request.data, request.settings)
    _refuse_namesakes([evaluation.result for evaluation in material.evaluations])
    made_by = [
        "tco",
        "report",
        *request.words(scenario_names, baseline),
        "--output",
        Path(output).name + FOLDER * folder,
    ]
    page = report_page(
        material,
        made_by,
        ["tco", "compare", *request.words(scenario_names, baseline), "--no-range"],
    )
    pages = {output: page}
    if folder:
        from tco.comparison.ranking import ranking
        from tco.report.page.report import gallery_of

        pages = gallery_of(page, material, ranking(request.settings, request.data))
    if request.redact:
        from tco.cli.redaction import pages_without_own_values

        pages = pages_without_own_values(pages)
        page = next(iter(pages.values()))
    _write_pages(output, page, pages)
    request.tell(page.notes)


def _write_pages(output: str, page: ReportPage, pages: Mapping[str, ReportPage]) -> None:
    """Write a report's page to a file, or its pages to a folder with their mark."""
    from tco.core.files import write_atomically
    from tco.report.page.write import render_page
    from tco.report.record import to_json

    if not output.endswith(FOLDER):
        write_atomically(Path(output), render_page(page))
        return
    rendered_pages = {
        page_name: render_page(gallery_page) for page_name, gallery_page in pages.items()
    }
    write_folder(
        Path(output),
        rendered_pages | {MARK: to_json(dict(page.provenance) | {"pages": sorted(rendered_pages)})},
        MARK,
    )
