"""`tco uncertainty | sensitivity | solve | sweep`: ranges, drivers, turning points, many cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tco.cli import app
from tco.cli.options import (
    CommandRequest,
    command,
    name_argument,
)
from tco.core.errors import UsageError
from tco.core.streams import tell

if TYPE_CHECKING:
    from tco.comparison.maps import Map
    from tco.sampling.uncertainty import Uncertainty


@command(app, "set", "anchor", "hold")
def uncertainty(
    request: CommandRequest,
    scenario: str,
    metrics: list[str] | None = None,
    baseline: str | None = None,
    samples: int = 10_000,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
) -> None:
    """Give the uncertainty of the metrics, from draws of every input.

    Each input is drawn within its range. The answer counts how often the baseline is beaten.
    """
    from tco.report.progress import Bar
    from tco.report.uncertainty import uncertainty_answer
    from tco.sampling import uncertainty as study
    from tco.scenario.metrics import refuse_unknown_metrics

    refuse_unknown_metrics(metrics or ())
    bar = Bar(request.quiet or samples <= study.BLOCK)
    drawn_uncertainty = study.uncertainty(
        scenario,
        baseline,
        samples,
        seed,
        request.hold,
        request.settings,
        request.data,
        workers=workers,
        cluster=cluster,
        tell=bar.tell,
    )
    if metrics:
        _refuse_undrawn_metrics(metrics, drawn_uncertainty)
        drawn_uncertainty.metric_names = metrics
    request.emit(uncertainty_answer(drawn_uncertainty))


def _refuse_undrawn_metrics(metrics: Sequence[str], drawn_uncertainty: Uncertainty) -> None:
    """Raise `UsageError` for a metric that the draws of a scenario do not have."""
    from tco.scenario.metrics import RATIOS

    for metric in metrics:
        if metric not in drawn_uncertainty.sample.metrics:
            name = drawn_uncertainty.evaluation.name
            step = (
                "a ratio needs --baseline NAME, such as --baseline gb200-nvl72"
                if metric in RATIOS
                else f"`tco uncertainty {name}` shows those that it has"
            )
            raise UsageError(f"--metric {metric}: {name} has no draws of it; {step}")


@command(app, "set", "hold", "variant")
def sensitivity(
    request: CommandRequest,
    scenario: str,
    metric: str = "usd_per_million_output_tokens",
    ratio_to: str | None = None,
    sobol: bool = False,
    samples: int | None = None,
    seed: int = 0,
) -> None:
    """Show which inputs drive a metric, each at its P5 and P95.

    The answer names the three estimates that are most worth finding out.

    Draws and workers:
        sobol: Add Sobol indices: shares of the variance with all inputs drawn together, the
            plan fixed (--hold).
        samples (N): Rows of a Sobol sample, a power of two; default: 1024.

    """
    from tco.report.sensitivity import sensitivity_answer
    from tco.sampling.sensitivity import sensitivity as asked

    if samples is not None and not sobol:
        raise UsageError("--samples is the size of a Sobol sample: add --sobol")
    what_if = (request.data, request.settings, request.variant)
    drawn = SOBOL_ROWS if samples is None else samples
    request.emit(
        sensitivity_answer(
            asked(
                scenario,
                metric,
                *what_if,
                baseline=ratio_to,
                hold=request.hold,
                sobol=drawn if sobol else None,
                seed=seed,
            )
        )
    )


@command(app, "set", "hold", "variant")
def solve(
    request: CommandRequest,
    scenario: str,
    vary: list[str],
    until: str,
    start: list[str] | None = None,
    end: list[str] | None = None,
    ratio_to: str | None = None,
) -> None:
    """Find the value of an input at which a metric reaches a target.

    With two inputs the answer is a map of the cheapest scenario.

    What is asked:
        vary (PATH): The input to move, or terms.date; of two, a map says who wins where.
        until (METRIC=VALUE): The target: METRIC=VALUE, METRIC=+10%, or METRIC=SCENARIO for that
            scenario's; of a map METRIC=SCENARIO,...
        start (--from X): Where to begin to look, such as '96 GB', for each --vary; unless given
            a thirtieth of today's value, of two inputs a third, of a date its own.
        end (--to Y): Where to end, for each; unless given thirty times today's, of two inputs
            three times, of a date two years on.

    """
    from tco.comparison.break_even import solve as asked
    from tco.report.break_even import map_answer, solution_answer

    ranges = _pair_interval_bounds(vary, start, end)
    catalogue = request.catalogue_of(scenario)
    if len(vary) == 1:
        solution = asked(
            scenario,
            vary[0],
            until,
            ranges[0],
            request.data,
            request.settings,
            request.variant,
            baseline=ratio_to,
            hold=request.hold,
        )
        request.emit(solution_answer(catalogue, solution))
        return
    if ratio_to or request.hold:
        raise UsageError(
            "--baseline and --hold go with one --vary: a map compares scenarios, each with its own "
            "best plan"
        )
    request.emit(map_answer(catalogue, _map_of_winners(request, scenario, vary, until, ranges)))


def _map_of_winners(
    request: CommandRequest,
    scenario: str,
    vary: list[str],
    until: str,
    ranges: list[tuple[str | None, str | None]],
) -> Map:
    """Return which scenario wins over two inputs."""
    from tco.comparison.break_even import is_number_text, target_of
    from tco.comparison.maps import map_of

    if len(vary) > 2:
        raise UsageError(f"--vary is given {len(vary)} times, expected one input or two")
    metric, words = target_of(until)
    if is_number_text(words):
        raise UsageError(
            f"--until {until}: of two inputs a map says which scenario wins: expected "
            "METRIC=SCENARIO,..."
        )
    scenario_names = list(
        dict.fromkeys([scenario, *(scenario_name.strip() for scenario_name in words.split(","))])
    )
    return map_of(
        scenario_names, vary, metric, ranges, request.settings, request.data, request.variant
    )


def _pair_interval_bounds(
    vary: list[str], start: list[str] | None, end: list[str] | None
) -> list[tuple[str | None, str | None]]:
    """Return start and end of each varied input; None where the user states none.

    Raises `UsageError` where only part of the inputs have a start or an end.
    """
    for option, bounds in (("--from", start), ("--to", end)):
        if bounds and len(bounds) != len(vary):
            raise UsageError(
                f"{option} is given {len(bounds)} times and --vary {len(vary)}, expected one for "
                "each or none"
            )
    nothing = [None] * len(vary)
    return list(zip(start or nothing, end or nothing, strict=True))


SOBOL_ROWS = 1024
STOPPED = 130  # the exit code of what Ctrl-C ends


@command(app, "set", usual=("data", "form", "quiet", "redact"))
def sweep(
    request: CommandRequest,
    study: Annotated[str, name_argument("studies")],
    output: str,
    workers: int | None = None,
    cluster: str | None = None,
    max_cases: int = 100_000_000,
) -> None:
    """Run a study over many cases, and write them as Parquet.

    A study has grids, ranges and draws. A run that was stopped resumes.

    The figures that its answer states are compared with the cases. It exits with 1 and names those
    that are no longer today's. With --set, or data of your own, none is compared.

    Arguments:
        study (STUDY): A TOML file, or the name of a shipped study.

    Options:
        output (--output -o DIR): The folder of the cases, or a URL such as s3://...

    Draws and workers:
        max_cases (N): Refuse a study of more cases.

    """
    from tco.report.progress import Bar
    from tco.report.sweeps import sweep_answer
    from tco.sweeps.answer_checks import checks
    from tco.sweeps.run import summarise_sweep
    from tco.sweeps.run import sweep as run

    _keep_own(request, study)
    try:
        finished_sweep = run(
            study,
            output,
            workers=workers,
            cluster=cluster,
            max_cases=max_cases,
            set=request.settings,
            data=request.data,
            tell=Bar(request.quiet).tell,
        )
    except KeyboardInterrupt:
        tell("stopped; what is finished is kept, and the same command goes on from there")
        raise SystemExit(STOPPED) from None
    answer = checks(finished_sweep)
    catalogue = finished_sweep.job.scenarios[0].function.catalogue
    outdated = [check for check in answer if not check.holds]
    request.emit(
        sweep_answer(catalogue, finished_sweep, summarise_sweep(finished_sweep), answer), outdated
    )


def _keep_own(request: CommandRequest, study: str) -> None:
    """Refuse to write cases that hold own values to withhold; shipped studies hold none."""
    if not request.redact:
        return
    from tco.cli.redaction import release_answer
    from tco.sweeps.study import shipped_studies

    if study not in shipped_studies() or request.data or request.settings or Path("data").is_dir():
        raise UsageError(
            "--redact: the cases of a sweep are made of your own values and cannot withhold them; "
            "run a shipped study without any"
        )
    release_answer({})
    request.redact = False  # nothing is left to keep back
