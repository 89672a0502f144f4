"""`tco export`: scenarios side by side as a workbook, a table, or a data package."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import isdir  # unlike a path's method it says no to a name that no file can have
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, NamedTuple

from tco.cli import app
from tco.cli.files import FOLDER, refuse_namesakes, write_folder
from tco.cli.options import CommandRequest, command
from tco.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.sampling.median import DrawnMetrics
    from tco.scenario.result import Result

WORKBOOK = ".xlsx"
ENDINGS = (WORKBOOK, ".csv", ".json", ".parquet", FOLDER)


class ExportContents(NamedTuple):
    """Results side by side, with the percentiles of their costs, as an export writes them."""

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
    is_workbook = ending == WORKBOOK
    evaluations = request.evaluate_scenarios(
        scenario_names, priced=False, refuse=False, trace=is_workbook
    )
    refuse_namesakes([evaluation.result for evaluation in evaluations])
    baseline, scenario_results = compare_results(
        [evaluation.result for evaluation in evaluations], baseline
    )
    contents = ExportContents(
        catalogue=catalogue_of(evaluations, request.data),
        results=scenario_results,
        drawn=[drawn_costs(evaluation) for evaluation in evaluations],
        baseline=baseline,
    )
    if is_workbook:
        _write_workbook(request, output, contents, scenario_names)
    else:
        _write_tables(request, output, ending, contents)
    notes = [
        f"{scenario_result.scenario}: {note}"
        for scenario_result in scenario_results
        for note in (*scenario_result.notes, *scenario_result.ages.notes)
    ]
    request.tell([WITHHELD_NOTE] if request.redact else notes)  # a note may tell of own values


def _write_workbook(
    request: CommandRequest, output: str, contents: ExportContents, scenario_names: Sequence[str]
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

        release_answer({})  # no own value is met, so that the workbook may be written
    words = request.words(scenario_names, contents.baseline)
    command_line = join(["tco", "export", *words, "--output", "model.xlsx"])
    content = workbook_of(
        contents.results, contents.catalogue, contents.baseline, command_line, contents.drawn
    )
    write_atomically(Path(output), content)


def _write_tables(
    request: CommandRequest, output: str, ending: str, contents: ExportContents
) -> None:
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
        files = package_files(tables, request_document["data_hash"])
        write_folder(Path(output), files, DESCRIPTION)
        return
    content: str | bytes
    if ending == ".json":
        content = to_json(request_document | export_document(tables, contents.baseline))
    elif ending == ".parquet":
        content = parquet_of(tables["scenarios"])
    else:
        content = to_csv(tables["scenarios"].header, tables["scenarios"].rows)
    write_atomically(Path(output), content)
