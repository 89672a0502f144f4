"""`tco export`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tco.cli import app
from tco.cli.options import Request, command

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.chain.result import Result
    from tco.outputs.export import ExportTable

WORKBOOK = ".xlsx"
FOLDER = "/"
ENDINGS = (WORKBOOK, ".csv", ".json", ".parquet", FOLDER)


def ending_of(output: str) -> str:
    """Return which of the forms an output's name asks for; a name that asks for none raises `UsageError`."""
    from tco.foundation.errors import UsageError

    found = FOLDER if output.endswith(FOLDER) else Path(output).suffix.lower()
    if found not in ENDINGS:
        hint = " (a folder's name ends in /)" if Path(output).is_dir() else ""
        raise UsageError(f"--output {output}: unknown ending {found!r}, expected one of {', '.join(ENDINGS)}{hint}")
    return found


@command(app, "set", "variant", usual=("data", "quiet", "redact"))
def export(
    given: Request,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="Where to: FILE.xlsx, .csv, .json or .parquet, or FOLDER/ for a data package."),
    ],
    scenarios: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO]...", help="Names or files; left out: the four headline racks.")] = None,
    baseline: Annotated[str | None, typer.Option(metavar="NAME", help="The scenario the others are compared with.")] = None,
) -> None:
    """Write scenarios side by side to a workbook whose formulas recalculate, or as tables for other programs."""
    from tco.cli.load import HEADLINE, evaluate_all
    from tco.foundation.streams import tell
    from tco.outputs.redaction import NOTE
    from tco.studies.comparison import compared

    ending = ending_of(output)
    names = list(dict.fromkeys(scenarios or HEADLINE))
    trace = ending == WORKBOOK
    catalogue, results = evaluate_all(names, given.data, given.settings, given.variant, priced=False, refuse=False, trace=trace)
    refuse_namesakes(results)
    base, results = compared(results, baseline)
    write_workbook(given, output, catalogue, results, base, names) if trace else write_tables(given, output, ending, catalogue, results, base)
    if not given.quiet:
        notes = [f"{result.scenario}: {note}" for result in results for note in (*result.notes, *result.ages.notes)]
        if given.texts["redact"]:  # a note may tell of own values
            notes = [NOTE]
        for note in dict.fromkeys(notes):
            tell(f"note: {note}")


def refuse_namesakes(results: Sequence[Result]) -> None:
    """Raise `UsageError` where two scenarios have one name, by which their rows could not be told apart."""
    from tco.foundation.errors import UsageError

    found = [result.scenario for result in results]
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two scenarios are called {twice}, expected names that tell them apart")


def write_workbook(given: Request, output: str, catalogue: Catalogue, results: Sequence[Result], baseline: str, names: Sequence[str]) -> None:
    """Write the workbook; one that is to keep own values back cannot, since it recalculates from them."""
    from tco.foundation.errors import DataError, UsageError
    from tco.foundation.files import write_atomically
    from tco.outputs.workbook.book import workbook_of

    for name, result in zip(names, results, strict=True):
        if not result.nodes:
            raise DataError(f"{name}: a saved result holds no formulas, a workbook needs its scenario; tables of it can be exported")
    if given.texts["redact"]:
        if any(one.overlay for result in results for one in result.inputs.values()):
            raise UsageError("--redact: a workbook recalculates from its inputs and cannot withhold your own; export tables, or without own values")
        from tco.cli.keeping import shown

        shown({})
    write_atomically(Path(output), workbook_of(results, catalogue, baseline, command_line(given, names, baseline)))


def command_line(given: Request, names: Sequence[str], baseline: str) -> str:
    """Return the command that makes the workbook again."""
    from shlex import join

    settings = [word for path, value in given.settings.items() for word in ("--set", f"{path}={value}")]
    variants = [word for key, value in given.variant.items() for word in ("--variant", f"{key}={value}")]
    data = ["--data", str(given.data)] if given.data else []
    return join(["tco", "export", *names, *settings, *variants, "--baseline", baseline, *data, "--output", "model.xlsx"])


def write_tables(given: Request, output: str, ending: str, catalogue: Catalogue, results: Sequence[Result], baseline: str) -> None:
    """Write what the scenarios come to as tables, in the form an ending asks for."""
    from tco.foundation.files import write_atomically
    from tco.outputs.export import DESCRIPTION, export_document, package_files, parquet_of, tables_of
    from tco.outputs.premises import inputs_of
    from tco.outputs.record import document, to_json
    from tco.outputs.table import to_csv

    tables = tables_of(results, catalogue)
    asked = document("export", catalogue, {"inputs": inputs_of(results), "set": given.settings, "variant": given.variant})
    if given.texts["redact"]:
        tables, asked = redacted(tables, asked | {"set": dict.fromkeys(given.settings)})
    if ending == FOLDER:
        write_folder(Path(output), package_files(tables, asked["data_hash"]), DESCRIPTION)
        return
    makers: dict[str, Callable[[], str | bytes]] = {
        ".csv": lambda: to_csv(tables["scenarios"].header, tables["scenarios"].rows),
        ".json": lambda: to_json(asked | export_document(tables, baseline)),
        ".parquet": lambda: parquet_of(tables["scenarios"]),
    }
    write_atomically(Path(output), makers[ending]())


def redacted(tables: dict[str, ExportTable], asked: dict[str, Any]) -> tuple[dict[str, ExportTable], dict[str, Any]]:
    """Return tables, and what was asked for, without what tells of own values."""
    from tco.cli.keeping import shown
    from tco.outputs.redaction import alike, alike_rows

    def alike_export(one: Any, other: Any) -> Any:
        return {name: alike_rows(rows, other[0].get(name, [])) for name, rows in one[0].items()}, alike(one[1], other[1])

    rows, asked = shown(({name: list(table.rows) for name, table in tables.items()}, asked), alike_export)
    return {name: table._replace(rows=rows[name]) for name, table in tables.items()}, asked


def write_folder(folder: Path, files: Mapping[str, str], mark: str) -> None:
    """Write files to a folder that is new, empty or holds such already, by the file that marks it; nothing in it is ever deleted.

    A new one that cannot be finished is taken away again.
    """
    import shutil

    from tco.foundation.errors import UsageError
    from tco.foundation.files import write_atomically

    new = not folder.exists()
    if not new and folder.is_dir() and any(folder.iterdir()) and not (folder / mark).is_file():
        raise UsageError(f"{folder}/: holds other files, expected a new or empty folder, or one that holds {mark}, to write anew")
    try:
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            write_atomically(folder / name, text)
    except BaseException as error:
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise UsageError(f"{folder}/: cannot be written ({error.strerror or error})") from None
        raise
