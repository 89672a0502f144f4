"""`tco uncertainty | sensitivity | solve | sweep`: how sure an answer is, what drives it, where it turns, and many cases at once."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Request, command


@command(app, "set", "anchor", "hold")
def uncertainty(
    given: Request,
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Name or file of a scenario, or a system on the headline's terms.")],
    baseline: Annotated[str | None, typer.Option(metavar="NAME", help="The scenario it is compared with, on common draws.")] = None,
    samples: Annotated[int, typer.Option(metavar="N", help="How many draws.")] = 10_000,
    seed: Annotated[int, typer.Option(metavar="S", help="Other seeds give other draws, the same seed the same.")] = 0,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Worker processes on this machine, each with blocks of 32,768 draws; none: this process alone.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="The workers of a Dask scheduler, tcp://HOST:8786.")] = None,
) -> None:
    """Say how sure the metrics are: draw every input within its range, and count how often the baseline is beaten."""
    from tco.outputs.progress import Bar
    from tco.outputs.uncertainties import uncertainty_answer
    from tco.studies import uncertainty as study

    with Bar(given.quiet or samples <= study.BLOCK) as bar:
        asked = partial(study.uncertainty, scenario, baseline, samples, seed, given.texts["hold"], given.settings, given.data)
        found = asked(workers=workers, cluster=cluster, tell=bar.tell)
    given.emit(uncertainty_answer(found))


@command(app, "set", "hold", "variant")
def sensitivity(
    given: Request,
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file.")],
    metric: Annotated[str, typer.Option("--metric", metavar="METRIC", help="The metric whose drivers are asked for.")] = (
        "usd_per_million_output_tokens"
    ),
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="SCENARIO", help="What a ratio is relative to, gb200-nvl72 unless named.")
    ] = None,
    sobol: Annotated[
        bool, typer.Option("--sobol", help="Add Sobol indices: shares of the variance with all inputs drawn together, the plan held (--hold).")
    ] = False,
    samples: Annotated[int, typer.Option("--samples", metavar="N", help="Rows of a Sobol sample, a power of two.")] = 1024,
    seed: Annotated[int, typer.Option("--seed", metavar="S", min=0, help="Of the sample.")] = 0,
) -> None:
    """Show what drives a metric: every input at its P5 and P95, and the three estimates most worth finding out."""
    from tco.outputs.sensitivities import sensitivity_answer
    from tco.studies.sensitivity import sensitivity as asked

    found = asked(
        scenario,
        metric,
        given.data,
        given.settings,
        given.variant,
        baseline=baseline,
        hold=given.texts["hold"],
        sobol=samples if sobol else None,
        seed=seed,
    )
    given.emit(sensitivity_answer(found))


@command(app, "set", "hold", "variant")
def solve(
    given: Request,
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file.")],
    vary: Annotated[list[str], typer.Option("--vary", metavar="PATH", help="The input to move, or terms.date; of two, a map says who wins where.")],
    until: Annotated[
        str,
        typer.Option(
            "--until",
            metavar="METRIC=VALUE",
            help="The target: METRIC=VALUE, METRIC=+10%, or METRIC=SCENARIO for that scenario's; of a map METRIC=SCENARIO,...",
        ),
    ],
    start: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="X",
            help="Where to begin to look, such as '96 GB', for each; unless given a thirtieth of today's, of two inputs a third, of a date its own.",
        ),
    ] = None,
    end: Annotated[
        list[str] | None,
        typer.Option(
            "--to", metavar="Y", help="Where to end, for each; unless given thirty times today's, of two inputs three times, of a date two years on."
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="SCENARIO", help="What a ratio is relative to, gb200-nvl72 unless named.")
    ] = None,
) -> None:
    """Find the value of an input at which a metric reaches a target: the break-even. Of two inputs, map who wins where."""
    from tco.foundation.errors import UsageError

    for option, some in (("--from", start), ("--to", end)):
        if some and len(some) != len(vary):
            raise UsageError(f"{option} is given {len(some)} times and --vary {len(vary)}, expected one for each or none")
    ends = [(start[at] if start else None, end[at] if end else None) for at in range(len(vary))]
    if len(vary) > 1:
        if baseline or given.texts["hold"]:
            raise UsageError("--baseline and --hold go with one --vary: a map compares scenarios, each with its own best plan")
        mapped(scenario, vary, until, ends, given)
        return
    from tco.cli.load import catalogue_for
    from tco.outputs.solutions import solution_answer
    from tco.studies.solve import solve as asked

    found = asked(scenario, vary[0], until, ends[0], given.data, given.settings, given.variant, baseline=baseline, hold=given.texts["hold"])
    given.emit(solution_answer(catalogue_for(scenario, given.data), found))


def mapped(scenario: str, vary: list[str], until: str, ends: list[tuple[str | None, str | None]], given: Request) -> None:
    """Print who wins where over two inputs."""
    from tco.cli.load import catalogue_for
    from tco.foundation.errors import UsageError
    from tco.outputs.solutions import map_answer
    from tco.studies.maps import map_of
    from tco.studies.solve import is_number, target_of

    if len(vary) > 2:
        raise UsageError(f"--vary is given {len(vary)} times, expected one input or two")
    metric, words = target_of(until)
    if is_number(words):
        raise UsageError(f"--until {until}: of two inputs a map says which scenario wins: expected METRIC=SCENARIO,...")
    names = list(dict.fromkeys([scenario, *(one.strip() for one in words.split(","))]))
    found = map_of(names, vary, metric, ends, given.settings, given.data, given.variant)
    given.emit(map_answer(catalogue_for(scenario, given.data), found))


STOPPED = 130  # the exit code of what Ctrl-C ends


@command(app, "set", usual=("data", "form", "quiet", "redact"))
def sweep(
    given: Request,
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A TOML file, or the name of a shipped study.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="The folder of the cases, or a URL such as s3://...")],
    workers: Annotated[int | None, typer.Option(metavar="N", help="Worker processes on this machine; none: this process alone.")] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="The workers of a Dask scheduler, tcp://HOST:8786.")] = None,
    max_cases: Annotated[int, typer.Option(metavar="N", help="Refuse a study of more cases.")] = 100_000_000,
) -> None:
    """Run a study over many cases, grids, ranges and draws, and write them as Parquet; resumes after interruption.

    The figures that its answer states are held against the cases: exit 1 names those that are no longer today's. With --set, or data of your
    own, the question is another, and none is held.
    """
    from tco.foundation.streams import tell
    from tco.outputs.progress import Bar
    from tco.outputs.sweeps import sweep_answer
    from tco.studies.sweep.answer import checks
    from tco.studies.sweep.run import summary
    from tco.studies.sweep.run import sweep as run
    from tco.studies.sweep.work import catalogue_on

    keep_own(given, study)
    try:
        with Bar(given.quiet) as bar:
            asked = partial(run, study, output, workers=workers, cluster=cluster, max_cases=max_cases)
            found = asked(set=given.settings, data=given.data, tell=bar.tell)
    except KeyboardInterrupt:
        tell("stopped; what is finished is kept, and the same command goes on from there")
        raise SystemExit(STOPPED) from None
    answer = checks(found)
    given.emit(sweep_answer(catalogue_on(found.job.sources[0].folders), found, summary(found), answer))
    if not all(one.holds for one in answer):
        raise typer.Exit(1)


def keep_own(given: Request, study: str) -> None:
    """Refuse to write cases that are to keep own values back: they are made of them. Nothing of one's own is in a shipped study."""
    if not given.texts["redact"]:
        return
    from pathlib import Path

    from tco.cli.keeping import shown
    from tco.foundation.errors import UsageError
    from tco.studies.sweep.study import shipped_studies

    if study not in shipped_studies() or given.data or given.settings or Path("data").is_dir():
        raise UsageError("--redact: the cases of a sweep are made of your own values and cannot withhold them; run a shipped study without any")
    shown({})
    given.texts["redact"] = False  # nothing is left to keep back
