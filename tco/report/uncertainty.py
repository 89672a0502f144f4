"""Uncertainty of a scenario's metrics: the answer of `tco uncertainty`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tco.compile.execute import fork_map
from tco.core.numeric_environment import mixed_arithmetic_notes
from tco.core.types import AnyArray, JsonMapping, JsonObject
from tco.report.assumptions import (
    SHOWN,
    missing_notes,
    premise_lines,
    shown_metric,
    workload_line,
)
from tco.report.ranges import figures, percentiles, range_end_label, rounded_percent
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, fixed_digits, headed
from tco.sampling.uncertainty import (
    COST,
    PERCENTILES,
    Uncertainty,
    draw_statistics,
    error_of_share,
    error_of_spread,
    share,
    why_endless,
)
from tco.scenario.metrics import METRICS, RATIOS

FIGURES = (*PERCENTILES, "mean", "sd")
# the first there is
PICTURED = (
    "perf_per_tco_vs_baseline",
    COST,
    "train_usd_per_trillion_tokens",
    "tco_usd_per_chip_hour",
)
# whose medians say why the cost of training has a median above its base case
GAP_METRICS = (
    *("train_usd_per_trillion_tokens", "step_s", "tco_usd_per_used_chip_hour", "goodput"),
)
COLUMNS = ("p50", "p10", "p90", "p5", "p95")  # as a table orders them
BINS, WIDTH, DIGITS = 16, 40, 3


def statistics_by_metric(uncertainty: Uncertainty) -> dict[str, JsonObject | None]:
    """Return percentiles, mean and standard deviation of every metric that is shown.

    A metric without draws has None, and one that has a figure without a value has the reason.
    """
    draws = uncertainty.sample.metrics
    shown_names = uncertainty.metric_names
    metric_names = [metric_name for metric_name in shown_names if metric_name in draws]
    statistics = dict(
        fork_map(
            lambda metric_name: _metric_statistics(metric_name, draws[metric_name]), metric_names
        )
    )
    return dict.fromkeys(shown_names) | {
        metric_name: statistics[position] for position, metric_name in enumerate(metric_names)
    }


def _metric_statistics(metric: str, draws: AnyArray) -> JsonObject | None:
    statistics = draw_statistics(metric, draws)
    if statistics is None or None not in statistics.values():
        return statistics
    return statistics | {"reason": why_endless(metric, draws)}


def notes(uncertainty: Uncertainty) -> list[str]:
    """Return notes on missing results, the baseline, held inputs and arithmetic."""
    if uncertainty.baseline is not None:
        return _draw_notes(uncertainty)
    return [
        *missing_notes(uncertainty.evaluation.result),
        "no baseline is named: --baseline gives the chance to beat it",
        *_draw_notes(uncertainty),
    ]


def _draw_notes(uncertainty: Uncertainty) -> list[str]:
    """Return notes on what the draws leave out, and on their arithmetic."""
    evaluation, baseline = uncertainty.evaluation, uncertainty.baseline
    lines = []
    if baseline is not None and uncertainty.sample.better is None:
        lines.append(
            f"{baseline.name} and {evaluation.name} have no draw in which either has a cost of "
            "tokens to compare with the other's"
        )
    if uncertainty.undrawn_inputs:
        lines.append(
            f"{', '.join(uncertainty.undrawn_inputs)}: not drawn, as the structure they decide is "
            "held; without --hold it is decided in every draw"
        )
    return [*lines, *mixed_arithmetic_notes(uncertainty.made_with)]


def _metric_errors(uncertainty: Uncertainty) -> dict[str, JsonObject | None]:
    draws = uncertainty.sample.metrics
    return {
        metric: error_of_spread(metric, metric_draws)
        for metric, metric_draws in draws.items()
        if metric in uncertainty.metric_names
    }


ERRORS = Record(
    Member(
        "probability_better_than_baseline",
        float | None,
        lambda uncertainty: error_of_share(uncertainty.sample.better),
    ),
    Member(
        "share_of_draws_that_meet_the_target",
        float | None,
        lambda uncertainty: error_of_share(uncertainty.sample.meets),
    ),
    Member("metrics", {str: percentiles(*PERCENTILES, "mean")}, _metric_errors),
)
DRAWN = Record(
    "path",
    *(Member(bound_name, float) for bound_name in ("low", "value", "high")),
    "unit",
    Member("distribution", read="shape"),
    Member(
        "follows",
        str | None,
        lambda drawn: None if drawn.leader == drawn.path else drawn.leader,
    ),
)
# shares of the draws: key -> draws of the sample
SHARES = {
    "probability_better_than_baseline": "better",
    "share_of_draws_that_meet_the_target": "meets",
    "share_of_draws_in_which_both_meet_it": "both",
    "ties": "ties",
}
UNCERTAINTY = Document(
    "uncertainty",
    Member("scenario", read="evaluation.name"),
    Member("system", read="evaluation.result.system"),
    Member("baseline", str | None, "baseline.name"),
    Member("samples", int, lambda uncertainty: len(uncertainty.sample.meets)),
    Member("seed", int),
    Member("replan", bool, lambda uncertainty: not uncertainty.hold),
    Member("metrics", {str: percentiles(*FIGURES)}, statistics_by_metric),
    Member("point", {str: float | None}, "evaluation.result.metrics"),
    figures(*SHARES).read_via(
        lambda uncertainty: {
            share_key: share(getattr(uncertainty.sample, sample_field))
            for share_key, sample_field in SHARES.items()
        }
    ),
    Member("monte_carlo_error", ERRORS, lambda uncertainty: uncertainty),
    Member("drawn", [DRAWN], lambda uncertainty: list(uncertainty.drawn.values())),
    Member("held", [str], "undrawn_inputs"),
    Member("notes", [str], notes),
)
# of a CSV: a metric with its unit, then its figures
ROW = Record(
    Member("metric", read="0"),
    Member("unit", read=lambda metric_row: METRICS[metric_row[0]].unit),
    figures(*FIGURES).read_via("1"),
)


def uncertainty_answer(uncertainty: Uncertainty) -> Answer:
    """Answer with the ranges of every metric.

    Args:
        uncertainty: Uncertainty of a scenario.

    Returns:
        Statistics of the draws by metric, tables and notes.

    """
    evaluation, statistics = uncertainty.evaluation, statistics_by_metric(uncertainty)
    lines = [
        *_draw_notes(uncertainty),
        *(f"{evaluation.name}: {note}" for note in evaluation.result.notes),
    ]
    return UNCERTAINTY.answer(
        evaluation.catalogue,
        uncertainty,
        lambda: _uncertainty_tables(uncertainty, statistics),
        (ROW, statistics.items()),
        lines,
        of=evaluation.result.context,
    )


def _uncertainty_tables(
    uncertainty: Uncertainty, statistics: Mapping[str, JsonObject | None]
) -> list[Table]:
    """Tabulate the percentiles of each metric, and a histogram of what matters most."""
    scenario_result, table_rows = uncertainty.evaluation.result, []
    is_chosen = tuple(uncertainty.metric_names) != tuple(METRICS)
    for metric in uncertainty.metric_names if is_chosen else [metric for metric, *_ in SHOWN]:
        label, unit, size = shown_metric(metric)
        metric_figures = statistics[metric]
        if metric_figures is None or (metric_figures["sd"] == 0 and not is_chosen):
            continue
        point = scenario_result.metrics[metric]
        cells = [
            range_end_label(metric, None)
            if metric_figures[figure_name] is None
            else fixed_digits(metric_figures[figure_name] / size, DIGITS)
            for figure_name in COLUMNS
        ]
        cells.append(fixed_digits(None if point is None else point / size, DIGITS) or "-")
        table_rows.append((headed(label, unit), *cells))
    title = (
        f"{scenario_result.title}: {len(uncertainty.sample.meets):,} draws of "
        f"{len(uncertainty.drawn)} inputs, seed {uncertainty.seed}"
    )
    above = [
        workload_line([scenario_result]),
        *premise_lines([scenario_result]),
        *_chance_sentences(uncertainty),
    ]
    plan = "that of the base case" if uncertainty.hold else "chosen again"
    below = [
        "P5 to P95: percentiles of the draws. base case: every input at its value.",
        "A draw takes every input at random from its range (low and high are its P5 and P95). The "
        f"plan is {plan} in each draw, its batch solved for the target.",
        *training_gap_words(scenario_result.metrics, statistics),
    ]
    if not uncertainty.sample.meets.all():
        below.append(
            "A draw that misses the target counts as an infinite cost and as a ratio of zero."
        )
    if uncertainty.baseline is None:
        below.append("For the chance to beat another rack, add --baseline NAME.")
    columns = ("", "median", *(figure_name.upper() for figure_name in COLUMNS[1:]), "base case")
    return [Table(columns, table_rows, title, above, below), *_histograms(uncertainty)]


def training_gap_words(
    base_case: JsonMapping, statistics: Mapping[str, JsonObject | None]
) -> list[str]:
    """Return a sentence on why the base case of a training cost lies under its median; or nothing.

    Args:
        base_case: Metrics of the base case.
        statistics: Figures of the draws by metric.

    """
    ratios: dict[str, float] = {}
    medians: dict[str, float] = {}
    for metric in GAP_METRICS:
        median, value = (statistics.get(metric) or {}).get("p50"), base_case.get(metric)
        if not median or not value:
            return []
        medians[metric], ratios[metric] = median, median / value
    cost, step, hour, goodput = (ratios[metric] for metric in GAP_METRICS)
    if min(cost, step, hour) <= 1 or goodput >= 1:
        return []
    return [
        f"The base case of the training cost lies {rounded_percent(1 - 1 / cost)} under the "
        f"median. In the medians a step takes {rounded_percent(step - 1)} longer, and a used "
        f"chip-hour costs {rounded_percent(hour - 1)} more: failures leave "
        f"{rounded_percent(medians['goodput'])} of the hours, in the base case "
        f"{rounded_percent(base_case['goodput'])}."
    ]


def _chance_sentences(uncertainty: Uncertainty) -> list[str]:
    """Print the shares of draws with their standard errors."""
    sample, baseline = uncertainty.sample, uncertainty.baseline
    meets = f"{percent_with_error(sample.meets)} of the draws meet the workload's target"
    sentences = ["All draws meet the workload's target." if sample.meets.all() else f"{meets}."]
    if baseline is None or sample.better is None:
        return sentences
    if sample.both is not None and not sample.both.all():
        sentences.append(f"{percent_with_error(sample.both)} meet it here and on {baseline.name}.")
    if sample.ties is not None and sample.ties.any():
        sentences.append(
            f"{percent_with_error(sample.ties)} meet it on neither, and count for none of the two."
        )
    sentences.append(
        f"Chance that a token costs less here than on {baseline.name}: "
        f"{percent_with_error(sample.better)}. A missed target counts as lost."
    )
    return sentences


def percent_with_error(draws: AnyArray | None) -> str:
    """Print the share of draws that hold, in per cent with its standard error."""
    return f"{(share(draws) or 0) * 100:.1f} % (± {(error_of_share(draws) or 0) * 100:.1f})"


def pictured(uncertainty: Uncertainty) -> tuple[str, str, str, float]:
    """Return the metric that matters most, its label, the shown unit and its size."""
    names = uncertainty.metric_names
    candidates = [*(name for name in PICTURED if name in names), *names]
    metric = next(name for name in candidates if name in uncertainty.sample.metrics)
    if metric in RATIOS and uncertainty.baseline is uncertainty.evaluation and COST in names:
        metric = COST
    return metric, *shown_metric(metric)


def _histograms(uncertainty: Uncertainty) -> list[Table]:
    """Tabulate a histogram of the draws between P1 and P99; none of a metric that does not move."""
    metric, label, unit, size = pictured(uncertainty)
    draws = uncertainty.sample.metrics[metric]
    shown_draws = draws[np.isfinite(draws) & (draws > 0)] / size
    if len(shown_draws) < BINS:
        return []
    low, high = np.percentile(shown_draws, [1, 99])
    if not 0 < low < high:
        return []
    counts, edges = np.histogram(shown_draws, np.geomspace(low, high, BINS + 1))
    ends = [fixed_digits(edge, DIGITS) for edge in edges]
    bin_rows: Sequence[Sequence[str]] = [
        (
            f"{start} to {end}",
            f"{count / len(shown_draws) * 100:.1f} %",
            _histogram_bar(count / counts.max()),
        )
        for start, end, count in zip(ends[:-1], ends[1:], counts, strict=True)
    ]
    return [Table((headed(label, unit), "of draws", ""), bin_rows, align="lrl")]


def _histogram_bar(length: float) -> str:
    """Draw a bar of a length between 0 and 1, to an eighth of a character."""
    eighths = round(length * WIDTH * 8)
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
