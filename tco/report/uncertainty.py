"""Uncertainty of a scenario's metrics: the answer of `tco uncertainty`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

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
from tco.report.ranges import figures, metric_heading, percentiles, range_end_label, rounded_percent
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, fixed_digits, sentence
from tco.sampling.median import DRAWS
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
COLUMNS = ("p5", "p10", "p50", "p90", "p95")  # as a table orders them
HEADS = ("metric, unit", "P5", "P10", "median", "P90", "P95", "base case")
MISSED = "a target is missed"  # of a bin of the histogram
TAIL = 1  # per cent of the draws on either side of the histogram's bins
BINS, WIDTH, DIGITS = 12, 40, 3


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
        metric_figures = statistics[metric]
        if metric_figures is None or (metric_figures["sd"] == 0 and not is_chosen):
            continue
        size = shown_metric(metric)[2]
        point = scenario_result.metrics[metric]
        cells = [_percentile_text(metric, metric_figures[name], size) for name in COLUMNS]
        cells.append(fixed_digits(None if point is None else point / size, DIGITS) or "-")
        table_rows.append((metric_heading(metric, uncertainty.baseline), *cells))
    title = (
        f"{scenario_result.title}: how far each metric may lie from its median, in "
        f"{len(uncertainty.sample.meets):,} draws"
    )
    above = [
        workload_line([scenario_result]),
        *premise_lines([scenario_result]),
        *_range_sentence(uncertainty, statistics),
        *_chance_sentences(uncertainty),
    ]
    below = [*_legend(uncertainty), *training_gap_words(scenario_result.metrics, statistics)]
    tables = [Table(HEADS, table_rows, title, above, below), *_histograms(uncertainty)]
    tables[-1] = tables[-1]._replace(below=[*tables[-1].below, *_next_commands(uncertainty)])
    return tables


def _percentile_text(metric: str, figure: float | None, size: float) -> str:
    """Print a percentile of a metric, or that it has no end."""
    if figure is None:
        return range_end_label(metric, None)
    return fixed_digits(figure / size, DIGITS)


def _range_sentence(
    uncertainty: Uncertainty, statistics: Mapping[str, JsonObject | None]
) -> list[str]:
    """Return a sentence on median and range of the metric that matters most; or nothing."""
    metric, _, _, size = pictured(uncertainty)
    metric_figures = statistics[metric]
    if metric_figures is None or metric_figures["sd"] == 0:
        return []
    ends = [metric_figures[name] for name in ("p10", "p50", "p90")]
    if None in ends:
        return []
    low, median, high = (fixed_digits(end / size, DIGITS) for end in ends)
    heading = sentence(metric_heading(metric, uncertainty.baseline))
    return [f"{heading}: median {median}. In 8 of 10 draws it lies between {low} and {high}."]


def _legend(uncertainty: Uncertainty) -> list[str]:
    """Return sentences on percentiles, base case and draws."""
    plan = "that of the base case" if uncertainty.hold else "chosen again"
    legend = [
        "P5 to P95: percentiles; 10 % of the draws lie below P10, and 10 % above P90. base case: "
        "every input at its value.",
        f"A draw is one random set of all {len(uncertainty.drawn)} uncertain inputs (seed "
        f"{uncertainty.seed}). An input lies below the low of its range in 5 % of the draws, and "
        f"above the high in 5 %. The plan is {plan} in each draw, its batch solved for the target.",
    ]
    count = len(uncertainty.sample.meets)
    if count != DRAWS:
        legend.append(
            f"Medians and ranges are of {count:,} draws; those of `tco compare` are of {DRAWS}."
        )
    if not uncertainty.sample.meets.all():
        legend.append(
            "A draw that misses the target counts as an infinite cost and as a ratio of zero."
        )
    return legend


def _next_commands(uncertainty: Uncertainty) -> list[str]:
    """Return the commands for drivers, sources and the chance to beat a baseline."""
    name = uncertainty.evaluation.name
    commands = [
        f"Next: tco sensitivity {name} (which inputs move it)",
        f"      tco inputs {name} (ranges and sources of the inputs)",
    ]
    if uncertainty.baseline is None:
        commands.append(
            f"      tco uncertainty {name} --baseline NAME (chance to cost less than NAME)"
        )
    return commands


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
    both = percent_with_error(sample.both)
    if sample.both is not None and not both.startswith("100.0 %"):
        sentences.append(f"{both} meet it here and on {baseline.name}.")
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
    return f"{(share(draws) or 0) * 100:.1f} % (± {(error_of_share(draws) or 0) * 100:.1f} points)"


def pictured(uncertainty: Uncertainty) -> tuple[str, str, str, float]:
    """Return the metric that matters most, its label, the shown unit and its size."""
    names = uncertainty.metric_names
    candidates = [*(name for name in PICTURED if name in names), *names]
    metric = next(name for name in candidates if name in uncertainty.sample.metrics)
    if metric in RATIOS and uncertainty.baseline is uncertainty.evaluation and COST in names:
        metric = COST
    return metric, *shown_metric(metric)


def _histograms(uncertainty: Uncertainty) -> list[Table]:
    """Tabulate a histogram of all draws; none of a metric that does not move."""
    metric, _, _, size = pictured(uncertainty)
    draws = uncertainty.sample.metrics[metric]
    finite_draws = draws[np.isfinite(draws) & (draws > 0)] / size
    if len(finite_draws) < BINS:
        return []
    low, high = np.percentile(finite_draws, [TAIL, 100 - TAIL])
    if not 0 < low < high:
        return []
    edges = np.geomspace(low, high, BINS + 1)
    counts = [*np.histogram(finite_draws, [0.0, *edges, np.inf])[0], len(draws) - len(finite_draws)]
    ends = [fixed_digits(edge, DIGITS) for edge in edges]
    labels = [
        f"below {ends[0]}",
        *(f"{start} to {end}" for start, end in itertools.pairwise(ends)),
        f"above {ends[-1]}",
        MISSED,
    ]
    bin_rows = [
        (label, f"{count / len(draws) * 100:.1f} %", _histogram_bar(count / max(counts)))
        for label, count in zip(labels, counts, strict=True)
        if count or label != MISSED
    ]
    columns = (metric_heading(metric, uncertainty.baseline), "share", "")
    return [Table(columns, bin_rows, "How the draws spread: share of all draws", align="lrl")]


def _histogram_bar(length: float) -> str:
    """Draw a bar of a length between 0 and 1, to an eighth of a character."""
    eighths = round(length * WIDTH * 8)
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
