"""`tco compare | frontier | fleet | gigawatt | rents`: systems side by side, at every speed, in one
site, and as they are let.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import TYPE_CHECKING, Annotated

import typer

from tco.cli import app
from tco.cli.options import (
    DETAIL,
    DRAWS,
    QUESTION,
    WHAT_IF,
    Baseline,
    CommandRequest,
    Named,
    Scenarios,
    command,
    parse_key_values,
)
from tco.core.errors import UsageError

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.comparison.records import Confidence, Notice
    from tco.evaluation.chip_prices import BreakEvenRent
    from tco.evaluation.scenario_function import Evaluation
    from tco.report.first_screen import CostChange
    from tco.report.record import Answer
    from tco.scenario.result import Result


MOST, SHOWN = 24, 40  # speeds of one curve, and characters of a wrong list that are said again


def _speeds_in(speeds_text: str | None) -> list[float]:
    """Return the speeds that `--speeds` names; what is no list of speeds raises `UsageError`."""
    if speeds_text is None:
        return []
    words = speeds_text.split(",")
    shortened_text = speeds_text if len(speeds_text) <= SHOWN else f"{speeds_text[:SHOWN]}..."
    if len(words) > MOST:
        raise UsageError(f"--speeds {shortened_text}: {len(words)} speeds, expected {MOST} at most")
    try:
        user_speeds = [float(word) for word in words]
    except ValueError:
        user_speeds = [0.0]
    if not all(0 < speed < float("inf") for speed in user_speeds):
        raise UsageError(
            f"--speeds {shortened_text}: expected tokens/s per user above zero, such as 20,30,50"
        )
    return user_speeds


def _hall_settings(hall: str | None) -> dict[str, str]:
    if hall is None:
        return {}
    from tco.scenario.pricing import SITE_POWER

    return parse_key_values([f"{SITE_POWER}={hall}"], "--hall")


def _refuse_idle_options(
    request: CommandRequest, curve: bool, ranges: bool, choose: bool, why: bool, evidence: bool
) -> None:
    """Raise `UsageError` for an option that has no effect in this form or without draws."""
    if curve and request.form != "csv":
        raise UsageError("--curve goes with --format csv; JSON has the curve without it")
    drawn = {"--choose": choose, "--why": why, "--evidence": evidence}
    for option, is_used in drawn.items():
        if is_used and not ranges:
            raise UsageError(f"{option} rests on draws, and --no-range asks for none")


@command(app, "set", "anchor", "hold")
def compare(
    given: CommandRequest,
    scenarios: Scenarios = None,
    baseline: Baseline = None,
    speeds: Annotated[
        str | None,
        typer.Option(
            metavar="N,...",
            help="Speeds in tokens/s per user; default: 20,30,50,75,100 and the workload's own.",
            **QUESTION,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Every figure at the workload's own speed, in groups.", **DETAIL
        ),
    ] = False,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="What moves the answer at which speeds, and what to measure to narrow it.",
            **DETAIL,
        ),
    ] = False,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence", help="Which measured rows notice what moves the answer.", **DETAIL
        ),
    ] = False,
    curve: Annotated[
        bool,
        typer.Option(
            "--curve", help="With --format csv: a row for each scenario and speed.", **DETAIL
        ),
    ] = False,
    hall: Annotated[
        str | None,
        typer.Option(
            metavar="POWER",
            help="Fill a site with each system, such as '20 MW' from the grid.",
            **WHAT_IF,
        ),
    ] = None,
    practice: Annotated[
        str | None,
        typer.Option(
            metavar="FAMILY",
            help="Give all chips the software maturity of one family, such as nvidia; default: "
            "each its own.",
            **WHAT_IF,
        ),
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if",
            metavar="PATH=VALUE",
            help="Replace an input as --set does, with plans and all choices fixed. Repeatable.",
            **WHAT_IF,
        ),
    ] = None,
    ranges: Annotated[
        bool,
        typer.Option(
            "--range/--no-range",
            help="Draw the inputs within their ranges: how sure the answer is.",
            **DRAWS,
        ),
    ] = True,
    choose: Annotated[
        str | None,
        typer.Option(
            metavar="A,B:0.5+C:0.5",
            help="Rate choices by their regret, each a scenario or a split of dollars.",
            **DETAIL,
        ),
    ] = None,
    racks: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="How many racks whole instances are placed on; default: a fleet large enough to "
            "split freely.",
            **WHAT_IF,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Start of the random draws.", **DRAWS)] = 0,
    workloads: Annotated[
        bool,
        typer.Option(
            "--workloads", help="Which to choose for each of the shipped workloads.", **QUESTION
        ),
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Rank every system by what the work costs, a line each.", **QUESTION
        ),
    ] = False,
    vendor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --all: the systems of one vendor, such as AMD.", **QUESTION
        ),
    ] = None,
    air: Annotated[
        bool, typer.Option("--air", help="With --all: the systems that air cools.", **QUESTION)
    ] = False,
) -> None:
    """Compare what racks cost at every speed, and say which to buy.

    Without a name the four headline racks are compared.
    """
    options = (hall, practice, what_if, baseline, speeds, choose, racks)
    not_alone = (
        full or why or evidence or curve or any(option not in (None, []) for option in options)
    )
    if every or vendor is not None or air:
        if not every:
            raise UsageError("--vendor and --air go with --all")
        if scenarios or not_alone:
            raise UsageError(
                "--all ranks every system: it takes no scenario, and --vendor, --date, --air and "
                "--set alone"
            )
        _rank_all(given, vendor, air)
        return

    if workloads:
        if not_alone or not ranges:
            raise UsageError(
                "--workloads rates systems by their own draws for each: it takes scenarios and "
                "--set alone"
            )

        def rated() -> Answer:
            from tco.comparison.workloads import matrix
            from tco.evaluation.evaluation import HEADLINE
            from tco.report.workloads import workloads_answer

            return workloads_answer(
                given.catalogue_of(None), matrix(scenarios or HEADLINE, given.settings, given.data)
            )

        given.emit_kept(scenarios or (), rated)
        return

    settings = given.settings | _hall_settings(hall)
    if practice is not None:
        settings = settings | {"workload.software": practice}
    replaced, chosen = parse_key_values(what_if, "--what-if"), _speeds_in(speeds)
    _refuse_idle_options(given, curve, ranges, choose is not None, why, evidence)

    def answer() -> Answer:
        from tco.comparison.base_case import base_cases
        from tco.comparison.confidence import cheaper_elsewhere, confidence_of
        from tco.comparison.records import ConfidenceRequest
        from tco.evaluation.evaluation import HEADLINE, catalogue_of, evaluate_each
        from tco.evaluation.side_by_side import compare_results
        from tco.report.comparison import ComparisonOptions, comparison_answer
        from tco.scenario.pricing import SITE_POWER

        evaluations = evaluate_each(
            scenarios or HEADLINE, given.data, settings, refuse=False, what_if=replaced
        )
        base, scenario_results = compare_results(
            [evaluation.result for evaluation in evaluations], baseline
        )
        _refuse_unserved(scenario_results, bool(chosen), racks is not None)
        hold = given.hold or bool(replaced)
        confidence = confidence_of(
            evaluations,
            base,
            ConfidenceRequest(chosen, hold, ranges, why or evidence, seed, choose, racks),
        )
        catalogue, scenario_names = (
            catalogue_of(evaluations, given.data),
            [evaluation.name for evaluation in evaluations],
        )
        notice_rows = _noticed(catalogue, scenario_results, confidence) if evidence else None
        halls = []
        if any(SITE_POWER in scenario_result.inputs for scenario_result in scenario_results):
            from tco.comparison.fleet import hall_of  # only a site that is filled asks for it

            halls = [hall_of(scenario_result) for scenario_result in scenario_results]
        elsewhere = cheaper_elsewhere(evaluations, confidence) if racks is None else []
        cases = base_cases(evaluations, confidence, hold) if full and ranges else []
        rents = _rents_to_beat(evaluations)
        changes = _changes_by_settings(given, evaluations, scenario_results) if settings else []
        wish = ComparisonOptions(
            scenario_names,
            replaced,
            full,
            why,
            notice_rows,
            curve,
            elsewhere,
            racks,
            cases,
            rents,
            changes,
        )
        return comparison_answer(catalogue, scenario_results, base, halls, confidence, wish)

    named = scenarios or []
    given.emit_kept(named if baseline is None else [*named, baseline], answer)


def _refuse_unserved(scenario_results: Sequence[Result], has_speeds: bool, has_racks: bool) -> None:
    """Raise `UsageError` where speeds or racks are asked of what promises no speed, or runs no
    pools.
    """
    from tco.evaluation.side_by_side import speed_of

    without_speed = [
        scenario_result.scenario
        for scenario_result in scenario_results
        if speed_of(scenario_result) is None
    ]
    if has_speeds and without_speed:
        why_not = (
            f"{', '.join(without_speed)} promises no user a speed (training, offline or "
            "stated rates)"
        )
        raise UsageError(
            f"--speeds: {why_not}; leave --speeds out, or compare workloads that serve"
        )
    without_pools = [
        scenario_result.scenario
        for scenario_result in scenario_results
        if getattr(scenario_result.serving, "standalone_engines", None) is None
    ]
    if has_racks and without_pools:
        raise UsageError(
            f"--racks: {', '.join(without_pools)} has no pools that whole engines are made of "
            "(training, offline or stated rates)"
        )


def _rank_all(request: CommandRequest, vendor: str | None, air: bool) -> None:
    from tco.comparison.ranking import ranking
    from tco.report.ranking import ranking_answer

    request.emit(ranking_answer(ranking(request.settings, request.data, vendor, air)))


def _changes_by_settings(
    request: CommandRequest, evaluations: Sequence[Evaluation], scenario_results: Sequence[Result]
) -> list[CostChange]:
    """Return the cost of each base case without the settings of the command line and with them.

    Where settings leave the cost as it is, notes name the inputs that bind.
    """
    from tco.evaluation.evaluation import metrics_without_settings
    from tco.evaluation.side_by_side import rated_by
    from tco.evaluation.what_if import binding_notes
    from tco.report.first_screen import CostChange

    metric = rated_by(scenario_results)
    if metric is None:
        return []
    unset = metrics_without_settings(evaluations, request.data, metric)
    changes = []
    for before, after, scenario_result in zip(unset, evaluations, scenario_results, strict=True):
        change = CostChange(scenario_result.scenario, before, scenario_result.metrics[metric])
        changes.append(change)
        if change.before and change.after and isclose(change.before, change.after):
            paths = [path for path in request.settings if path in scenario_result.inputs]
            scenario_result.notes += binding_notes(after, paths, metric)
    return changes


def _rents_to_beat(evaluations: Sequence[Evaluation]) -> list[BreakEvenRent]:
    if not any(evaluation.result.costless for evaluation in evaluations):
        return []
    from tco.evaluation.chip_prices import break_even_rents

    return break_even_rents(evaluations)


def _noticed(
    catalogue: Catalogue, scenario_results: Sequence[Result], confidence: Confidence
) -> list[Notice]:
    """Return evidence from measured rows for inputs that drive the answer.

    An input without such evidence has a notice of no rows.
    """
    from tco.comparison.evidence_value import evidence_of
    from tco.comparison.records import Notice

    inputs = {
        path: result_input
        for scenario_result in scenario_results
        for path, result_input in scenario_result.inputs.items()
    }
    driver_groups = [regime.drivers for regime in confidence.regimes] + [
        sureness.drivers for sureness in confidence.sure
    ]
    paths = dict.fromkeys(driver.path for drivers in driver_groups for driver in drivers)
    notices = evidence_of(catalogue, {path: inputs[path] for path in paths})
    return [
        notice
        for path in paths
        for notice in (
            [notice for notice in notices if notice.path == path]
            or [Notice(path, None, 0, (None, None, None))]
        )
    ]


@command(app, "set", "hold")
def frontier(
    given: CommandRequest,
    scenarios: Named,
    prefill: Annotated[
        list[str] | None,
        typer.Option(
            "--prefill",
            metavar="SCENARIO",
            help="Read prompts on a pool of another system; find the best pair. Repeatable.",
            **QUESTION,
        ),
    ] = None,
    pareto: Annotated[
        bool,
        typer.Option(
            "--pareto",
            help="Compare all designs by cost, throughput, speed per user and power; name what "
            "beats what.",
            **DETAIL,
        ),
    ] = False,
    ranges: Annotated[
        bool,
        typer.Option(
            "--range",
            help="Draw the inputs within their ranges at every point: P10 to P90 along it.",
            **DRAWS,
        ),
    ] = False,
) -> None:
    """Show what each speed per user costs, by the best plan for it.

    Each plan is listed that no other beats, with its throughput per chip and its cost.
    """

    def answer() -> Answer:
        from tco.comparison import frontier as study
        from tco.comparison.designs import designs_of
        from tco.report.frontier import frontier_answer

        system_frontiers = study.frontier(
            scenarios, prefill or (), given.settings, given.data, ranges, given.hold
        )
        return frontier_answer(
            given.catalogue_of(scenarios[-1]),
            system_frontiers,
            designs_of(system_frontiers) if pareto else None,
        )

    given.emit_kept([*scenarios, *(prefill or ())], answer)


@command(app, "set")
def fleet(
    given: CommandRequest,
    waves: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO:POWER[:DATE]...",
            help="System, power and date, such as 'trn3-nl72x2:500 MW:2026-06'.",
        ),
    ],
    power: Annotated[
        str | None,
        typer.Option(metavar="POWER", help="What all of them share, such as '2.2 GW'.", **QUESTION),
    ] = None,
) -> None:
    """Fill one power with systems that are bought at their dates.

    The answer has racks, chips, price and tokens of each system and of all.
    """
    from tco.comparison.fleet import fleet_of, wave_of
    from tco.evaluation.evaluation import catalogue_of
    from tco.report.fleet import fleet_answer

    fleet_rollout = fleet_of(
        [wave_of(wave_text) for wave_text in waves], power, given.data, given.settings
    )
    given.emit(fleet_answer(catalogue_of(fleet_rollout.asked, given.data), fleet_rollout))


@command(app, "set")
def gigawatt(
    given: CommandRequest,
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM...", help="What the power is filled with, such as gb200-nvl72."
        ),
    ],
    power: Annotated[
        str,
        typer.Option(
            metavar="POWER", help="Power of the grid at the fence, such as '100 MW'.", **QUESTION
        ),
    ] = "1 GW",
) -> None:
    """Turn power of the grid into racks, and racks into dollars.

    The dollars are split by kind of part, and stand beside published costs per watt.
    """
    from tco.comparison.gigawatt import gigawatts
    from tco.evaluation.evaluation import catalogue_of
    from tco.report.gigawatt import gigawatt_answer

    sites = gigawatts(systems, power, given.data, given.settings)
    given.emit(
        gigawatt_answer(catalogue_of([site.evaluation for site in sites], given.data), sites)
    )


@command(app, "set")
def rents(
    given: CommandRequest,
    chip: Annotated[
        str | None,
        typer.Argument(
            metavar="[CHIP]",
            help="A chip or a system, such as h100-sxm; default: all with a rent.",
        ),
    ] = None,
) -> None:
    """Show rents by month, the cost at that date and the gross margin."""
    from tco.comparison.rents import rents_of
    from tco.report.rents import rents_answer

    given.emit(rents_answer(*rents_of(chip, given.data, given.settings)))
