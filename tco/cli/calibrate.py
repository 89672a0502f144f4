"""`tco calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, usual=("data", "quiet"))
def calibrate(
    given: Given,
    files: Annotated[list[Path], typer.Argument(metavar="FILE.csv...", help="Measured kernels, collectives, training or serving.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the fitted rows go, such as data/calibration/serving.csv.")],
    accuracy: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write the errors of the fit and of leave-one-out refits, as data/accuracy holds them.")
    ] = None,
    fit_name: Annotated[
        str | None, typer.Option("--fit", metavar="NAME", help="Take what may move from fits/NAME.csv; left out: from that of each kind.")
    ] = None,
    date: Annotated[str, typer.Option(help="Date the rows carry: year and month.")] = "2026-11",
) -> None:
    """Fit the shared parameters of practice to measurements, and judge them by leave-one-out."""
    from tco.chain.inputs import plain_inputs
    from tco.cli.load import catalogue_for
    from tco.foundation.files import write_atomically
    from tco.foundation.streams import tell
    from tco.foundation.values import as_number
    from tco.outputs.accuracy import write_accuracy
    from tco.outputs.table import to_csv
    from tco.studies.validation.calibrate import COLUMNS, KINDS
    from tco.studies.validation.calibrate import calibrate as fit
    from tco.studies.validation.measured import read_measured

    catalogue = catalogue_for(None, given.data)
    values = plain_inputs(catalogue, {}).values(as_number)
    tables = sorted((read_measured(path) for path in files), key=lambda found: KINDS.index(found[0]))
    found = {}
    for kind, table in tables:
        made = fit(kind, table, catalogue, values, date, lambda text: None if given.quiet else tell(text), fit_name or "")
        found[made.kind] = made
        for what, scores in made.accuracy.items():
            if not given.quiet:
                tell(f"{kind}, {what} left out: median {scores['median_ape']:.3f}, P90 {scores['p90_ape']:.3f}")
    write_atomically(output, to_csv(COLUMNS, [[row[name] for name in COLUMNS] for made in found.values() for row in made.rows]))
    if accuracy is not None:
        write_accuracy(accuracy, found, date)
