"""`tco calibrate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Data, Quiet


@app.command()
def calibrate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE.csv...", help="Measured kernels, collectives, training or serving.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the fitted rows go, such as data/calibration/serving.csv.")],
    accuracy: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the errors of the fit and of what was left out.")] = None,
    date: Annotated[str, typer.Option(help="Date the rows carry: year and month.")] = "2026-11",
    data: Data = None,
    quiet: Quiet = False,
) -> None:
    """Fit the shared parameters of practice to measurements, and judge them on what was left out."""
    from tco.chain.inputs import plain_inputs
    from tco.cli.load import catalogue_for
    from tco.foundation.errors import DataError
    from tco.foundation.files import write_atomically
    from tco.foundation.values import as_number
    from tco.outputs.table import to_csv
    from tco.studies.validation.calibrate import COLUMNS, FREE
    from tco.studies.validation.calibrate import calibrate as fit
    from tco.studies.validation.measured import read_measured

    catalogue = catalogue_for(None, data)
    values = plain_inputs(catalogue, {}).values(as_number)
    tables = sorted((read_measured(path) for path in files), key=lambda found: list(FREE).index(found[0]) if found[0] in FREE else 99)
    rows, scored = [], []
    for kind, table in tables:
        if kind not in FREE:
            raise DataError(f"{kind} have no free parameters; there are {', '.join(FREE)}")
        made = fit(kind, table, catalogue, values, date, lambda text: None if quiet else print(text, file=sys.stderr))
        rows += [[row[name] for name in COLUMNS] for row in made.rows]
        for what, found in made.accuracy.items():
            scored.append([kind, what, found["n"], *(round(found[name], 4) for name in ("median_ape", "p90_ape", "spearman")), date])
            if not quiet:
                print(f"{kind}, {what} left out: median {found['median_ape']:.3f}, P90 {found['p90_ape']:.3f}", file=sys.stderr)
    write_atomically(output, to_csv(COLUMNS, rows))
    if accuracy is not None:
        write_atomically(accuracy, to_csv(("kind", "left_out", "n", "median_ape", "p90_ape", "spearman", "date"), scored))
