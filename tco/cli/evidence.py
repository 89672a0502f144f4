"""`tco claims | validate | calibrate | measure`: published and measured figures, beside results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tco.cli import app
from tco.cli.options import FACTS, CommandRequest, command
from tco.core.errors import UsageError
from tco.core.streams import tell
from tco.evidence.verdicts import Verdict

if TYPE_CHECKING:
    from pandas import DataFrame

    from tco.catalog import Catalogue
    from tco.core.inputs import Values
    from tco.validation.run import Validation


@command(app, "set")
def claims(
    request: CommandRequest,
    verdict: Verdict | None = None,
    conclusions: bool = False,
    forecasts: bool = False,
) -> None:
    """Check published claims against parts and formulas.

    It exits with 1 if a verdict is not the one that the ledger expects.

    What is asked:
        verdict: Only claims of this verdict.
        conclusions: Only what they conclude, each with the command that shows it.
        forecasts: What was predicted before it was measured instead, and what came.

    """
    catalogue = request.catalogue
    if forecasts:
        from tco.evidence.forecasts import read_forecasts
        from tco.report.forecasts import forecasts_answer

        request.emit(forecasts_answer(catalogue, read_forecasts(catalogue)))
        return
    from tco.evidence.check import check_claims
    from tco.report.claims import claims_answer

    findings, notes = check_claims(catalogue, request.settings, conclusions)
    selected = [finding for finding in findings if verdict in (None, finding.verdict)]
    unexpected = [finding for finding in findings if not finding.as_expected]
    request.emit(claims_answer(catalogue, selected, notes), unexpected)


@command(app, "set", *FACTS)
def validate(
    request: CommandRequest,
    file: Path,
    kind: str | None = None,
    against: str | None = None,
    max_error: Annotated[float | None, typer.Option(min=0)] = None,
    alias: Path | None = None,
    rows: bool = False,
    envelopes: bool = False,
    back_test: bool = False,
    ratios: bool = False,
    report: Path | None = None,
) -> None:
    """Compare predictions with measurements, row by row.

    Each row is predicted from the configuration that it states.

    Arguments:
        file (FILE): Measured kernels, collectives, training or serving: CSV, or as nccl-tests,
            vllm, sglang, aiperf, GuideLLM, InferenceX or trtllm-bench write it. A shipped
            table goes by its name, such as inference.

    What is asked:
        kind: kernels, collectives, training, inference, open-loop or deployments; default:
            guessed from the header.
        against (COLUMN): Score only the rows predicted as this column.
        alias (FILE.csv): What names in the rows mean: name,part or name,model.

    What is shown:
        max_error: Exit 1 if the median error (a fraction) is larger.
        rows: Also give every row: in JSON as rows, in CSV instead of the scores.
        envelopes: Compare the best plan with the published runs of each chip, model, formats
            and lengths instead.
        back_test: Compare the rows with the P10 to P90 each chip would have been given had
            nobody measured it.
        ratios: Compare pairs of chips at one model and speed: their measured ratio with the
            predicted one and its range.
        report (FOLDER): Also write KIND.csv, KIND.md and a scatter KIND.png there.

    """
    from tco.report import validation
    from tco.scenario.resolve import plain_inputs
    from tco.validation.run import score_measurements as score

    _refuse_unusable_options(request, max_error, report)
    catalogue = request.catalogue
    inputs = plain_inputs(catalogue, request.settings)
    input_values = inputs.values()
    if back_test or ratios:
        ask = validation.back_test_answer if back_test else validation.ratios_answer
        request.emit(ask(catalogue, file, request.settings))
        return
    if envelopes:
        request.emit(validation.envelopes_answer(catalogue, file, input_values, request.settings))
        return
    scored_validation = score(file, catalogue, input_values, kind, against, alias, request.settings)
    input_values.check_given(inputs.is_known)
    if report is not None:
        validation.write_report(scored_validation, file.name, report)
    answer = validation.validation_answer(catalogue, file, scored_validation, rows)
    request.emit(answer, _too_large_errors(scored_validation, max_error))


def _refuse_unusable_options(
    request: CommandRequest, max_error: float | None, report: Path | None
) -> None:
    """Raise `UsageError` for a limit that is no number, or a report of withheld values."""
    if max_error is not None and not max_error >= 0:
        raise UsageError(f"--max-error {max_error}: expected a fraction such as 0.1")
    if report is not None and request.redact:
        raise UsageError(
            "--redact: a report holds every row and cannot withhold your own values; leave out "
            "--report"
        )


def _too_large_errors(
    scored_validation: Validation, max_error: float | None
) -> list[tuple[str, float | None]]:
    """Return the median error with its name where it lies over the limit or is unknown."""
    error = scored_validation.card["median_ape"]
    is_too_large = max_error is not None and (error is None or error > max_error)
    return [("median_ape", error)] if is_too_large else []


def _sayer(request: CommandRequest) -> Callable[[str], None]:
    return lambda message_text: None if request.quiet else tell(message_text)


@command(app, *FACTS, usual=("data", "quiet"))
def calibrate(
    request: CommandRequest,
    files: list[Path],
    output: Path,
    accuracy: Path | None = None,
    fit_name: str | None = None,
    date: str = "2026-11",
) -> None:
    """Fit shared parameters to measurements, and cross-check the fit.

    Leave-one-out refits give the errors.

    Arguments:
        files (FILE...): Measured kernels, collectives, training or serving.

    Options:
        output (--output -o FILE): Where the fitted rows go, such as
            data/calibration/serving.csv.
        accuracy (FOLDER): Also write the errors of the fit and of leave-one-out refits, as
            data/accuracy holds them.
        fit_name (--fit NAME): What may move: that of fits/NAME.csv, or 'deployed' (deployment
            efficiency), 'long-runs' or 'engine-kernels'; else of each kind.
        date: Date the rows carry: year and month.

    """
    from tco.core.files import write_atomically
    from tco.core.inputs import as_number
    from tco.report.table import to_csv
    from tco.report.validation import write_accuracy
    from tco.scenario.resolve import plain_inputs
    from tco.validation.calibrate import KINDS
    from tco.validation.calibrate import fit_shared_parameters as fit
    from tco.validation.fitted_rows import FittedRow
    from tco.validation.measured import read_measured

    catalogue = request.catalogue
    input_values = plain_inputs(catalogue, {}).values(as_number)
    tables = sorted(
        (read_measured(path) for path in files),
        key=lambda kind_and_table: KINDS.index(kind_and_table[0]),
    )
    named_fit = _named_fit_csv(fit_name, tables, catalogue, input_values, date)
    if named_fit is not None:
        write_atomically(output, named_fit)
        return
    say = _sayer(request)
    calibrations = {}
    for kind, table in tables:
        calibration = fit(kind, table, catalogue, input_values, date, say, fit_name or "")
        calibrations[calibration.kind] = calibration
        for what, scores in calibration.accuracy.items():
            say(
                f"{kind} without {what}: median {scores['median_ape']:.3f}, P90 "
                f"{scores['p90_ape']:.3f}"
            )
    fitted_rows = [
        fitted_row for calibration in calibrations.values() for fitted_row in calibration.rows
    ]
    write_atomically(output, to_csv(FittedRow._fields, fitted_rows))
    if accuracy is not None:
        write_accuracy(accuracy, calibrations, date)


def _named_fit_csv(
    fit_name: str | None,
    tables: list[tuple[str, DataFrame]],
    catalogue: Catalogue,
    input_values: Values,
    date: str,
) -> str | None:
    """Return the rows that a fit of its own gives, as CSV; None where the fit is of a kind."""
    import pandas as pd

    from tco.performance.chip.engine_corrections import COLUMNS as KERNELS
    from tco.report.table import to_csv
    from tco.validation import engine_kernels, long_runs
    from tco.validation.deployed import NAME, deployed_rows, gaps, residuals_by_source
    from tco.validation.fitted_rows import FittedRow

    if fit_name == NAME:
        found_gaps, configured = (
            pd.concat(
                [read(table, catalogue, input_values) for _, table in tables], ignore_index=True
            )
            for read in (gaps, residuals_by_source)
        )
        return to_csv(FittedRow._fields, list(deployed_rows(found_gaps, configured, date)))
    if fit_name == long_runs.NAME:
        runs = [
            run
            for _, table in tables
            for run in long_runs.long_runs(table, catalogue, input_values)
        ]
        return to_csv(FittedRow._fields, list(long_runs.long_run_rows(runs, date)))
    if fit_name == engine_kernels.NAME:
        engine_rows = [
            list(engine_row.values())
            for kind, table in tables
            for engine_row in engine_kernels.fit_engine_kernel_rows(
                kind, table, catalogue, input_values, date
            )
        ]
        return to_csv(KERNELS, engine_rows)
    return None


@command(app, usual=("data", "quiet"))
def measure(
    request: CommandRequest,
    output: Path,
    kind: Literal["kernels", "collectives"] = "kernels",
    device: Literal["cpu", "cuda"] | None = None,
    quick: bool = False,
    name: str | None = None,
) -> None:
    """Measure kernels or collectives on this machine with PyTorch.

    The rows suit `tco validate` and `tco calibrate`.

    Options:
        output (--output -o FILE.csv): Where the rows go.
        kind: Products, attention and memory of one device, or collectives among several.
        device: cpu or cuda; default: the GPU if there is one.
        quick: A few small shapes, in seconds: shows that it works, not what the machine can do.
        name (NAME): Accelerator the rows name; default: what its driver calls it.

    """
    from datetime import datetime

    from tco.core.files import write_atomically
    from tco.measure.pytorch import choose_device, device_name, load_torch
    from tco.measure.session import Session, collective_session, kernel_session
    from tco.report.table import to_csv
    from tco.validation.naming import accelerators

    say = _sayer(request)
    accelerator_names = accelerators(request.catalogue)
    torch = load_torch()
    target = choose_device(torch, device)
    accelerator = name or device_name(torch, target)
    date = datetime.now().astimezone().date().isoformat()
    measure_session = Session(torch, target, quick, accelerator, date, not request.quiet, say)
    columns, measured_rows = (kernel_session if kind == "kernels" else collective_session)(
        measure_session
    )
    if not measured_rows:
        return
    write_atomically(output, to_csv(columns, measured_rows))
    if not accelerator_names.part(accelerator):
        say(
            f"note: the catalogue has no accelerator {accelerator!r}, so nothing "
            "is predicted for these rows; describe it in --data, or give --name"
        )
