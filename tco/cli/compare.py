"""`tco compare | frontier | fleet | gigawatt | rents`: systems side by side, in many ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tco.cli import app
from tco.cli.options import (
    CommandRequest,
    command,
    parse_key_values,
)
from tco.core.errors import UsageError

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.comparison.records import Confidence, ConfidenceRequest, Notice
    from tco.evaluation.break_even_rents import BreakEvenRent
    from tco.evaluation.cost_changes import CostChange
    from tco.evaluation.scenario_function import Evaluation
    from tco.report.comparison import ComparisonOptions, Hall
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
    request: CommandRequest, drawn: ConfidenceRequest, options: ComparisonOptions
) -> None:
    """Raise `UsageError` for an option that has no effect in this form or without draws."""
    if options.curve and request.form != "csv":
        raise UsageError("--curve goes with --format csv; JSON has the curve without it")
    is_used = {
        "--choose": drawn.choose is not None,
        "--why": options.why,
        "--evidence": options.evidence is not None,
    }
    for option in filter(is_used.get, is_used):
        if not drawn.ranges:
            raise UsageError(f"{option} rests on draws, and --no-range asks for none")
        request.require_form(option, "table", "md", "json")
    if drawn.seed and not drawn.ranges:
        raise UsageError("--seed starts the draws, and --no-range asks for none")
    if drawn.racks is not None and not options.curve and request.form == "csv":
        raise UsageError("--racks acts on the draws at each speed; in a CSV add --curve")


@command(app, "set", "anchor", "hold")
def compare(
    request: CommandRequest,
    scenarios: list[str] | None = None,
    baseline: str | None = None,
    speeds: str | None = None,
    full: bool = False,
    why: bool = False,
    evidence: bool = False,
    curve: bool = False,
    hall: str | None = None,
    practice: str | None = None,
    what_if: list[str] | None = None,
    ranges: bool = True,
    choose: str | None = None,
    racks: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    workloads: bool = False,
    all_systems: bool = False,
    vendor: str | None = None,
    air: bool = False,
) -> None:
    """Compare what racks cost at every speed, and say which to buy.

    Without a name the four headline racks are compared.

    Other work: --set workload=agent. Also chat, reasoning, long-context and training; `tco
    workloads list` shows all.

    A buyer other than Amazon: --set terms.perspective=neocloud. Also on-premises and renter. The
    answer then says below which rent it is cheaper to rent a rack than to own another.

    What is asked:
        speeds (N,...): Speeds in tokens/s per user; default: 20,30,50,75,100 and the workload's
            own.
        workloads: Which to choose for each of the shipped workloads.
        all_systems (--all): Rank every system by what the work costs, a line each.
        vendor (NAME): With --all: the systems of one vendor, such as AMD.
        air: With --all: the systems that air cools.

    What is shown:
        full: Every figure at the workload's own speed, in groups.
        why: What moves the answer at which speeds, and what to measure to narrow it.
        evidence: Which measured rows notice what moves the answer.
        curve: With --format csv: a row for each scenario and speed.
        choose (A,B:0.5+C:0.5): Rate choices by their regret, each a scenario or a split of
            dollars.

    What if:
        hall (POWER): Fill a site with each system, such as '20 MW' from the grid.
        practice (FAMILY): Give all chips the software maturity of one family, such as nvidia;
            default: each its own.
        what_if (PATH=VALUE): Replace an input as --set does, with fixed plans and choices.
            Repeatable.
        racks (N): How many racks whole instances are placed on; default: a fleet large enough
            to split freely.

    Draws and workers:
        ranges (--range/--no-range): Draw the inputs within their ranges: how sure the answer
            is.
        seed: Start of the random draws.

    """
    stated = (hall, practice, what_if, baseline, speeds, choose, racks)
    flags = (full, why, evidence, curve, not ranges, bool(seed), request.hold)
    not_alone = any(flags) or any(option not in (None, []) for option in stated)
    if all_systems or vendor is not None or air:
        _rank_all(request, all_systems, bool(scenarios) or not_alone, vendor, air)
        return
    if workloads:
        if not_alone:
            raise UsageError(
                "--workloads rates systems by their own draws for each: it takes scenarios and "
                "--set alone"
            )
        _rate_workloads(request, scenarios)
        return
    settings = request.settings | _hall_settings(hall)
    if practice is not None:
        settings = settings | {"workload.software": practice}
    replaced, user_speeds = parse_key_values(what_if, "--what-if"), _speeds_in(speeds)
    from tco.comparison.records import ConfidenceRequest
    from tco.report.comparison import ComparisonOptions

    hold = request.hold or bool(replaced)
    drawn = ConfidenceRequest(user_speeds, hold, ranges, why or evidence, seed, choose, racks)
    options = ComparisonOptions((), replaced, full, why, [] if evidence else None, curve)
    _refuse_idle_options(request, drawn, options)
    request.emit(_comparison(request, scenarios, baseline, settings, drawn, options))


def _comparison(
    request: CommandRequest,
    scenarios: Sequence[str] | None,
    baseline: str | None,
    settings: Mapping[str, str],
    drawn: ConfidenceRequest,
    options: ComparisonOptions,
) -> Answer:
    """Answer with scenarios side by side, at every speed and with their draws."""
    from tco.comparison.base_case import base_cases
    from tco.comparison.confidence import cheaper_elsewhere, confidence_of, with_medians
    from tco.evaluation.evaluation import HEADLINE, catalogue_of, evaluate_each
    from tco.evaluation.side_by_side import compare_results
    from tco.report.comparison import comparison_answer

    what_if, racks = options.fixed_settings, drawn.racks
    evaluations = evaluate_each(
        scenarios or HEADLINE, request.data, settings, refuse=False, what_if=what_if
    )
    base, scenario_results = compare_results(
        [evaluation.result for evaluation in evaluations], baseline
    )
    _refuse_unserved(scenario_results, bool(drawn.speeds), racks is not None)
    halls = _halls_of(scenario_results)
    if baseline and not halls and not (options.full or options.why):
        _refuse_idle_baseline(request, baseline, scenario_results)
    confidence = confidence_of(evaluations, base, drawn)
    catalogue = catalogue_of(evaluations, request.data)
    is_detailed = options.full and drawn.ranges
    wants_evidence = options.evidence is not None
    changes: list[CostChange] = []
    if settings:
        from tco.evaluation.cost_changes import cost_changes

        changes = cost_changes(evaluations, scenario_results, request.data)
        changes = with_medians(changes, evaluations, confidence, drawn, request.data)
    options = options._replace(
        names=[evaluation.name for evaluation in evaluations],
        evidence=_noticed(catalogue, scenario_results, confidence) if wants_evidence else None,
        elsewhere=cheaper_elsewhere(evaluations, confidence) if racks is None else [],
        racks=racks,
        base_cases=base_cases(evaluations, confidence, drawn.hold) if is_detailed else [],
        rents=_rents_to_beat(evaluations),
        changes=changes,
    )
    return comparison_answer(catalogue, scenario_results, base, halls, confidence, options)


def _refuse_idle_baseline(
    request: CommandRequest, baseline: str, scenario_results: Sequence[Result]
) -> None:
    """Raise `UsageError` for a baseline on a screen that shows costs by speed and no ratio."""
    from tco.evaluation.side_by_side import speed_of

    if request.form not in ("csv", "json") and any(map(speed_of, scenario_results)):
        raise UsageError(
            f"--baseline {baseline}: the first screen shows no ratio to a baseline; add "
            "--full, or --format json or csv"
        )


def _halls_of(scenario_results: Sequence[Result]) -> list[Hall]:
    from tco.scenario.pricing import SITE_POWER

    if not any(SITE_POWER in scenario_result.inputs for scenario_result in scenario_results):
        return []
    from tco.comparison.filled_site import hall_of  # only a site that is filled asks for it

    return [hall_of(scenario_result) for scenario_result in scenario_results]


def _rate_workloads(request: CommandRequest, scenarios: list[str] | None) -> None:
    """Print the pick of each shipped workload."""
    from tco.comparison.workloads import matrix
    from tco.evaluation.evaluation import HEADLINE
    from tco.report.workloads import workloads_answer

    picks = matrix(scenarios or HEADLINE, request.settings, request.data)
    request.emit(workloads_answer(request.catalogue, picks))


def _refuse_unserved(scenario_results: Sequence[Result], has_speeds: bool, has_racks: bool) -> None:
    """Raise `UsageError` for speeds or racks where workloads have no speed or no pools."""
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
        for scenario_result in (scenario_results if has_racks else ())
        if getattr(scenario_result.serving, "standalone_engines", None) is None
    ]
    if without_pools:
        raise UsageError(
            f"--racks: {', '.join(without_pools)} has no pools that whole engines are made of "
            "(training, offline or stated rates)"
        )


def _rank_all(
    request: CommandRequest, is_asked: bool, is_narrowed: bool, vendor: str | None, air: bool
) -> None:
    """Print every system, ranked by what the work costs on it."""
    if not is_asked:
        raise UsageError("--vendor and --air go with --all")
    if is_narrowed:
        raise UsageError(
            "--all ranks every system: it takes no scenario, and --vendor, --date, --air and --set "
            "alone; another speed is --set 'workload.interactivity=30 token/s'"
        )
    from tco.comparison.ranking import ranking
    from tco.report.ranking import ranking_answer

    request.emit(ranking_answer(ranking(request.settings, request.data, vendor, air)))


def _rents_to_beat(evaluations: Sequence[Evaluation]) -> list[BreakEvenRent]:
    if not any(evaluation.result.costless for evaluation in evaluations):
        return []
    from tco.evaluation.break_even_rents import break_even_rents

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
    paths = list(dict.fromkeys(driver.path for drivers in driver_groups for driver in drivers))
    notices = evidence_of(catalogue, {path: inputs[path] for path in paths})
    noticed = {notice.path for notice in notices}
    unnoticed = [Notice(path, None, 0, (None,) * 3) for path in paths if path not in noticed]
    return sorted([*notices, *unnoticed], key=lambda notice: paths.index(notice.path))


@command(app, "set", "hold")
def frontier(
    request: CommandRequest,
    scenarios: list[str] | None = None,
    prefill: list[str] | None = None,
    pareto: bool = False,
    ranges: bool = False,
) -> None:
    """Show what each speed per user costs, by the best plan for it.

    Each plan is listed that no other beats, with its throughput per chip and its cost.

    What is asked:
        prefill (SCENARIO): Read prompts on a pool of another system; find the best pair.
            Repeatable.

    What is shown:
        pareto: Compare all designs by cost, throughput, speed per user and power; name what
            beats what.

    Draws and workers:
        ranges (--range): Draw the inputs within their ranges at every point: P10 to P90 along
            it.

    """
    from tco.comparison import frontier as study
    from tco.comparison.designs import designs_of
    from tco.evaluation.evaluation import HEADLINE
    from tco.report.frontier import frontier_answer

    if request.hold and not ranges:
        raise UsageError("--hold fixes the plan of the draws: add --range")
    named_scenarios = scenarios or HEADLINE
    system_frontiers = study.frontier(
        named_scenarios, prefill or (), request.settings, request.data, ranges, request.hold
    )
    designs = designs_of(system_frontiers) if pareto else None
    request.emit(
        frontier_answer(request.catalogue_of(named_scenarios[-1]), system_frontiers, designs)
    )


@command(app, "set")
def fleet(
    request: CommandRequest,
    waves: list[str],
    power: str | None = None,
) -> None:
    """Fill one power with systems that are bought at their dates.

    The answer has racks, chips, price and tokens of each system and of all.

    Arguments:
        waves (SCENARIO:POWER[:DATE]...): System, power and date, such as 'trn3-nl72x2:500
            MW:2026-06'.

    What is asked:
        power (POWER): What all of them share, such as '2.2 GW'.

    """
    from tco.comparison.fleet import fleet_of, wave_of
    from tco.evaluation.evaluation import catalogue_of
    from tco.report.fleet import fleet_answer

    fleet_rollout = fleet_of(
        [wave_of(wave_text) for wave_text in waves], power, request.data, request.settings
    )
    request.emit(fleet_answer(catalogue_of(fleet_rollout.evaluations, request.data), fleet_rollout))


@command(app, "set")
def gigawatt(
    request: CommandRequest,
    systems: list[str],
    power: str = "1 GW",
) -> None:
    """Turn power of the grid into racks, and racks into dollars.

    The dollars are split by kind of part, and stand beside published costs per watt.

    Arguments:
        systems (SYSTEM...): What the power is filled with, such as gb200-nvl72.

    What is asked:
        power (POWER): Power of the grid at the fence, such as '100 MW'.

    """
    from tco.comparison.gigawatt import gigawatts
    from tco.evaluation.evaluation import catalogue_of
    from tco.report.gigawatt import gigawatt_answer

    sites = gigawatts(systems, power, request.data, request.settings)
    request.emit(
        gigawatt_answer(catalogue_of([site.evaluation for site in sites], request.data), sites)
    )


@command(app, "set")
def rents(
    request: CommandRequest,
    chip: str | None = None,
) -> None:
    """Show rents by month, the cost at that date and the gross margin.

    Arguments:
        chip ([CHIP]): A chip or a system, such as h100; default: all with a rent.

    """
    from tco.comparison.rents import rents_of
    from tco.report.rents import rents_answer

    catalogue, chip_rents = rents_of(chip, request.data, request.settings)
    request.emit(rents_answer(catalogue, chip_rents, request.settings))
