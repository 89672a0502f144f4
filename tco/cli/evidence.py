"""`tco claims | validate | calibrate | measure`: what others publish and measure, beside what comes out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tco.cli import app
from tco.cli.options import Request, command

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.foundation.values import Values


class ClaimVerdict(StrEnum):
    """What a claim comes to."""

    holds = "holds"
    arithmetic = "arithmetic"
    not_shown = "not-shown"
    off = "off"
    contradicts = "contradicts"
    not_derivable = "not-derivable"


@command(app, "set")
def claims(
    given: Request,
    verdict: Annotated[ClaimVerdict | None, typer.Option(help="Only claims of this verdict.")] = None,
    conclusions: Annotated[bool, typer.Option("--conclusions", help="Only what they conclude, each with the command that shows it.")] = False,
) -> None:
    """Check what published sources claim against parts and formulas; exit 1 if a verdict is not the one the ledger expects."""
    from tco.cli.load import catalogue_for
    from tco.outputs.claims import claims_answer
    from tco.studies.claims import check_claims

    catalogue = catalogue_for(None, given.data)
    found, notes = check_claims(catalogue, given.settings, conclusions)
    given.emit(claims_answer(catalogue, [one for one in found if verdict in (None, one.verdict)], notes))
    if not all(one.as_expected for one in found):
        raise typer.Exit(1)


@command(app, "set")
def validate(
    given: Request,
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Measured kernels, collectives, training or serving.")],
    kind: Annotated[str | None, typer.Option(help="kernels, collectives, training or inference; left out: guessed from the header.")] = None,
    against: Annotated[str | None, typer.Option(metavar="COLUMN", help="Score only the rows predicted as this column.")] = None,
    max_error: Annotated[float | None, typer.Option(min=0, help="Exit 1 if the median error (a fraction) is larger.")] = None,
    alias: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="What names in the rows mean: name,part or name,model.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Also give every row: in JSON as rows, in CSV instead of the scores.")] = False,
    envelopes: Annotated[
        bool, typer.Option("--envelopes", help="Compare the best plan with the published runs of each chip, model, formats and lengths instead.")
    ] = False,
    back_test: Annotated[
        bool, typer.Option("--back-test", help="Compare the rows with the P10 to P90 each chip would have been given had nobody measured it.")
    ] = False,
    ratios: Annotated[
        bool,
        typer.Option("--ratios", help="Compare pairs of chips at one model and speed: their measured ratio with the predicted one and its range."),
    ] = False,
    report: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Also write KIND.csv, KIND.md and a scatter KIND.png there.")] = None,
) -> None:
    """Compare predictions with measurements, each row predicted from its own stated configuration."""
    from tco.chain.inputs import plain_inputs
    from tco.cli.load import catalogue_for
    from tco.foundation.errors import UsageError
    from tco.foundation.values import as_number
    from tco.outputs.validations import validation_answer, write_report
    from tco.studies.validation.run import validate as score

    if max_error is not None and not max_error >= 0:
        raise UsageError(f"--max-error {max_error}: expected a fraction such as 0.1")
    catalogue = catalogue_for(None, given.data)
    inputs = plain_inputs(catalogue, given.settings)
    values = inputs.values(as_number)
    if back_test:
        held_against_ranges(file, catalogue, given)
        return
    if ratios:
        held_against_ratios(file, catalogue, given)
        return
    if envelopes:
        held_against_runs(file, catalogue, values, given)
        return
    found = score(file, catalogue, values, kind, against, alias)
    values.check_given(inputs.is_known)
    if report is not None:
        write_report(found, file.name, report)
    given.emit(validation_answer(catalogue, file, found, rows))
    error = found.card["median_ape"]
    if max_error is not None and (error is None or error > max_error):
        raise typer.Exit(1)


def held_against_runs(file: Path, catalogue: Catalogue, values: Values, given: Request) -> None:
    """Print how the best plans stand against the published runs of a file."""
    from tco.foundation.errors import UsageError
    from tco.outputs.validations import envelopes_answer
    from tco.studies.validation.envelopes import against_runs
    from tco.studies.validation.measured import read_measured

    kind, table = read_measured(file)
    if kind != "inference":
        raise UsageError(f"--envelopes: {file} holds {kind}, expected serving runs")
    found, whole = against_runs(table, catalogue, values)
    given.emit(envelopes_answer(catalogue, file, found, whole))


def held_against_ranges(file: Path, catalogue: Catalogue, given: Request) -> None:
    """Print what share of a file's rows lies inside the ranges that other chips would have given them."""
    from tco.outputs.validations import back_test_answer
    from tco.studies.validation.back_test import DRAWS, back_test

    given.emit(back_test_answer(catalogue, file, back_test(file, catalogue, given.settings), DRAWS))


def held_against_ratios(file: Path, catalogue: Catalogue, given: Request) -> None:
    """Print how the predicted ratios of two chips, and their ranges, lie to the measured ones."""
    from tco.outputs.validations import ratios_answer
    from tco.studies.validation.back_test import PAIR_DRAWS, compared

    given.emit(ratios_answer(catalogue, file, compared(file, catalogue, given.settings), PAIR_DRAWS))


@command(app, usual=("data", "quiet"))
def calibrate(
    given: Request,
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


class MeasuredKind(StrEnum):
    """What is measured."""

    kernels = "kernels"
    collectives = "collectives"


class Device(StrEnum):
    """What it is measured on."""

    cpu = "cpu"
    cuda = "cuda"


@command(app, usual=("data", "quiet"))
def measure(
    given: Request,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.csv", help="Where the rows go.")],
    kind: Annotated[
        MeasuredKind, typer.Option(help="Products, attention and memory of one device, or collectives among several.")
    ] = MeasuredKind.kernels,
    device: Annotated[Device | None, typer.Option(help="cpu or cuda; left out: the GPU if there is one.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few small shapes, in seconds: shows that it works, not what the machine can do.")] = False,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Accelerator the rows name; left out: what its driver calls it.")] = None,
) -> None:
    """Measure kernels or collectives on this machine with PyTorch, as rows for `tco validate` and `tco calibrate`."""
    from datetime import datetime

    from tco.cli.load import catalogue_for
    from tco.foundation.files import write_atomically
    from tco.foundation.streams import tell
    from tco.outputs.table import to_csv
    from tco.studies.measure.pytorch import choose_device, device_name, load_torch
    from tco.studies.measure.session import Session, collective_session, kernel_session
    from tco.studies.validation.naming import accelerators

    def say(text: str) -> None:
        if not given.quiet:
            tell(text)

    known = accelerators(catalogue_for(None, given.data))
    torch = load_torch()
    target = choose_device(torch, device)
    accelerator = name or device_name(torch, target)
    asked = Session(torch, target, quick, accelerator, datetime.now().astimezone().date().isoformat(), not given.quiet, say)
    columns, rows = (kernel_session if kind is MeasuredKind.kernels else collective_session)(asked)
    if not rows:
        return
    write_atomically(output, to_csv(columns, rows))
    if not known.part(accelerator):
        say(f"note: the catalogue has no accelerator {accelerator!r}, so nothing is predicted for these rows; describe it in --data, or give --name")
