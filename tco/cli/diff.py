"""`tco diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tco.cli import app
from tco.cli.options import Data, Form, Format, Output, Quiet, Settings, pairs


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A scenario, or the JSON of `tco price`.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 if they differ.")] = False,
    settings: Settings = None,
    data: Data = None,
    form: Format = Form.table,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Show what changed between two scenarios or results, and why. --set applies to B only."""
    from tco.cli.emit import Answer, emit
    from tco.cli.load import catalogue_for
    from tco.outputs.document import document
    from tco.outputs.drift import DIFF_HEADER, diff_document, diff_rows, diff_table
    from tco.studies.difference import causes, moves

    before, after = state(a, data, {}), state(b, data, pairs(settings, "--set"))
    moved, why = moves(before, after), causes(before, after)
    emit(
        Answer(
            lambda: document("diff", catalogue_for(None, data), diff_document(a, b, moved, why)),
            lambda: [diff_table(a, b, moved, why)],
            DIFF_HEADER,
            diff_rows(moved, why),
        ),
        form.value,
        output,
        quiet,
    )
    if exit_code and (moved or why):
        raise typer.Exit(1)


def state(name: str, data: Path | None, settings: dict[str, str]) -> dict[str, Any]:
    """Return the state of a scenario, of a saved result, or the one that the JSON of `tco price` carries."""
    import json

    from tco.foundation.errors import DataError
    from tco.foundation.files import read_text

    if not name.endswith(".json"):
        return evaluated(name, data, settings)
    try:
        document = json.loads(read_text(Path(name)))
        if "state" not in document:
            return evaluated(name, data, settings)
        kept: dict[str, Any] = document["state"]
        return {section: kept[section] for section in ("system", "metrics", "texts", "quantities", "inputs")} | {"formulas": kept.get("formulas")}
    except (json.JSONDecodeError, KeyError, TypeError):
        raise DataError(f"{name}: is no saved result; `tco price SCENARIO --format json --output FILE` writes one") from None


def evaluated(name: str, data: Path | None, settings: dict[str, str]) -> dict[str, Any]:
    """Return the state of a scenario or of a saved result."""
    from tco.cli.load import evaluate_all
    from tco.studies.state import state_of

    _, (result,) = evaluate_all([name], data, settings)
    return state_of(result)
