"""Uncertainty of a scenario's metrics: the answer of `tco uncertainty`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tco.compile.execute import fork_map
from tco.core.numeric_environment import mixed_arithmetic_notes
from tco.core.types import JsonObject
from tco.report.assumptions import SHOWN, missing_notes, premise_lines, workload_line
from tco.report.ranges import percentiles, range_end_label
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, headed, significant
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
BINS, WIDTH, DIGITS = 16, 40, 3


def statistics_by_metric(found: Uncertainty) -> dict[str, JsonObject | None]:
    """Return percentiles, mean and standard deviation of every metric, with the reason where one
    has no value; None of those that have none.
    """
    drawn = found.sample.metrics
    names = [name for name in METRICS if name in drawn]
    known = dict(fork_map(lambda name: metric_statistics(name, drawn[name]), names))
    return dict.fromkeys(METRICS) | {name: known[at] for at, name in enumerate(names)}


def metric_statistics(metric: str, many: Any) -> JsonObject | None:
    """Return percentiles, mean and standard deviation of a metric's draws."""
    one = draw_statistics(metric, many)
    return (
        one | {"reason": why_endless(metric, many)}
        if one is not None and None in one.values()
        else one
    )


def notes(found: Uncertainty) -> list[str]:
    """Return notes on missing results, the baseline, held inputs and arithmetic.

    Args:
        found: Uncertainty of a scenario.

    """
    said = list(missing_notes(found.asked.result)) if found.baseline is None else []
    if found.baseline is None:
        said.append("no baseline is named: --baseline gives P(better than baseline)")
    elif found.sample.better is None:
        said.append(
            f"{found.baseline.name} and {found.asked.name} have no draw in which either has a cost "
            "of tokens to hold against the other's"
        )
    if found.held:
        said.append(
            f"{', '.join(found.held)}: not drawn, as the structure they decide is held; without "
            "--hold it is decided in every draw"
        )
    return [*said, *mixed_arithmetic_notes(found.made_with)]


ERRORS = Record(
    Member(
        "probability_better_than_baseline",
        float | None,
        lambda found: error_of_share(found.sample.better),
    ),
    Member(
        "share_of_draws_that_meet_the_target",
        float | None,
        lambda found: error_of_share(found.sample.meets),
    ),
    Member(
        "metrics",
        {str: percentiles(*PERCENTILES, "mean")},
        lambda found: {m: error_of_spread(m, many) for m, many in found.sample.metrics.items()},
    ),
)
DRAWN = Record(
    "path",
    Member("low", float),
    Member("value", float),
    Member("high", float),
    "unit",
    Member("distribution", read="shape"),
    Member("follows", str | None, lambda one: None if one.leader == one.path else one.leader),
)
UNCERTAINTY = Document(
    "uncertainty",
    Member("scenario", read="asked.name"),
    Member("system", read="asked.result.system"),
    Member(
        "baseline",
        str | None,
        lambda found: None if found.baseline is None else found.baseline.name,
    ),
    Member("samples", int, lambda found: len(found.sample.meets)),
    Member("seed", int),
    Member("replan", bool, lambda found: not found.hold),
    Member("metrics", {str: percentiles(*FIGURES)}, statistics_by_metric),
    Member("point", {str: float | None}, "asked.result.metrics"),
    Member(
        "probability_better_than_baseline", float | None, lambda found: share(found.sample.better)
    ),
    Member(
        "share_of_draws_that_meet_the_target", float | None, lambda found: share(found.sample.meets)
    ),
    Member(
        "share_of_draws_in_which_both_meet_it", float | None, lambda found: share(found.sample.both)
    ),
    Member("ties", float | None, lambda found: share(found.sample.ties)),
    Member("monte_carlo_error", ERRORS, lambda found: found),
    Member("drawn", [DRAWN], lambda found: list(found.drawn.values())),
    Member("held", [str]),
    Member("notes", [str], notes),
)
ROW = Record(  # of a CSV: a metric with its unit, then its figures
    Member("metric", read="0"),
    Member("unit", read=lambda one: METRICS[one[0]].unit),
    *(Member(name, float | None, f"1.{name}") for name in FIGURES),
)


def uncertainty_answer(found: Uncertainty) -> Answer:
    """Return the answer with the ranges of every metric.

    Args:
        found: Uncertainty of a scenario.

    Returns:
        Statistics of the draws by metric, tables and notes.

    """
    every, said = (
        statistics_by_metric(found),
        [*notes(found), *(f"{found.asked.name}: {note}" for note in found.asked.result.notes)],
    )
    return UNCERTAINTY.answer(
        found.asked.catalogue,
        found,
        lambda: uncertainty_tables(found, every),
        (ROW, every.items()),
        said,
        of=found.asked.result.context,
    )


def uncertainty_tables(found: Uncertainty, every: Mapping[str, JsonObject | None]) -> list[Table]:
    """Return the percentiles of each metric beside its point, and a histogram of what matters
    most.
    """
    result, rows = found.asked.result, []
    for metric, label, unit, size in SHOWN:
        one = every[metric]
        if one is None or one["sd"] == 0:
            continue
        point = result.metrics[metric]
        cells = [significant(None if point is None else point / size, DIGITS) or "-"]
        cells += [
            range_end_label(metric, None)
            if one[name] is None
            else significant(one[name] / size, DIGITS)
            for name in PERCENTILES
        ]
        rows.append((headed(label, unit), *cells))
    title = (
        f"{result.title}: {len(found.sample.meets):,} draws of {len(found.drawn)} inputs, "
        "seed "
        f"{found.seed}"
    )
    above = [workload_line([result]), *premise_lines([result]), *chances(found)]
    plan = "that of the point, held" if found.hold else "re-optimised in each draw"
    below = [
        "P5 to P95: percentiles of the draws; one that misses the target lies beyond the worse "
        "end, and has a ratio of zero.",
        "A draw moves every input within its low and high (its own P5 and P95), the plan is "
        f"{plan}, its batch solved in each.",
    ]
    percentiles = Table(
        ("", "point", *(name.upper() for name in PERCENTILES)), rows, title, above, below
    )
    return [percentiles, *histograms(found)]


def chances(found: Uncertainty) -> list[str]:
    """Return the shares of draws in words, with their standard errors."""
    sample = found.sample
    said: list[tuple[Any, str]] = [(sample.meets, "of the draws meet the target of the workload")]
    if found.baseline is not None and sample.better is not None:
        said.append((sample.both, f"meet it here and on {found.baseline.name}"))
        said.append((sample.ties, "meet it on neither: a tie, which counts for none of the two"))
        said.append(
            (
                sample.better,
                "of the others cost less a token here: P(better than baseline), a miss counted as "
                "lost",
            )
        )
    return [f"{percent_with_error(which)} {words}." for which, words in said]


def percent_with_error(which: Any) -> str:
    """Return a share in per cent with its standard error."""
    return f"{(share(which) or 0) * 100:.1f} % (± {(error_of_share(which) or 0) * 100:.1f})"


def pictured(found: Uncertainty) -> tuple[str, str, str, float]:
    """Return the metric that matters most of those that were drawn, its label, the unit it is shown
    in, and the size of that.
    """
    metric = next(name for name in PICTURED if name in found.sample.metrics)
    if metric in RATIOS and found.baseline is found.asked:
        metric = COST
    return next(row for row in SHOWN if row[0] == metric)


def histograms(found: Uncertainty) -> list[Table]:
    """Return a histogram of the draws between the first and the last per cent; none of a metric
    that does not move.
    """
    metric, label, unit, size = pictured(found)
    many = found.sample.metrics[metric]
    kept = many[np.isfinite(many) & (many > 0)] / size
    if len(kept) < BINS:
        return []
    low, high = np.percentile(kept, [1, 99])
    if not 0 < low < high:
        return []
    counts, edges = np.histogram(kept, np.geomspace(low, high, BINS + 1))
    rows: Sequence[Sequence[str]] = [
        (
            f"{significant(edges[at], DIGITS)} to {significant(edges[at + 1], DIGITS)}",
            f"{count / len(kept) * 100:.1f} %",
            histogram_bar(count / counts.max()),
        )
        for at, count in enumerate(counts)
    ]
    return [Table((headed(label, unit), "draws", ""), rows, align="lrl")]


def histogram_bar(length: float) -> str:
    """Return a bar of a length between 0 and 1, to an eighth of a character."""
    eighths = round(length * WIDTH * 8)
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
