"""Confidence ranges at a workload's speed: rows, lines and records of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tco.catalog.labels import short_name
from tco.report.record import LEFT_OUT, Maybe, Member, Record, read_from
from tco.report.table import significant
from tco.scenario.metrics import METRICS, MORE_IS_BETTER, RATIOS

if TYPE_CHECKING:
    from tco.comparison.records import Sureness

RATIO, TRAINING_COST = "perf_per_tco_vs_baseline", "train_usd_per_trillion_tokens"
MILLION = 1e6
DIGITS = 2  # of a range


def percentiles(*names: str) -> Maybe:
    """Return the shape of some figures of a metric's draws, with the reason where one has no
    end.
    """
    return Maybe(
        Record(*(Member(name, float | None) for name in names), Member("reason", optional=True))
    )


def uncertainty_member(key: str, shape: Any, read: Any) -> Member:
    """Return a member of how sure a result is; it is left out where nobody wanted to know."""
    return Member(
        key,
        shape,
        lambda one: LEFT_OUT if one.sure is None else read_from(one.sure, read),
        optional=True,
    )


def range_end_label(metric: str, value: float | None, size: float = 1.0) -> str:
    """Return an end of a range; one among draws that miss the target is none of a rate, and of a
    cost or of a ratio without end.
    """
    if value is not None:
        return significant(value / size, DIGITS)
    return "none" if metric in MORE_IS_BETTER - RATIOS else "no end"


def rounded_percent(share: float | None) -> str:
    """Return a share in whole per cent; some hundred draws cannot tell it from none or all."""
    if share is None:
        return "-"
    return "<1 %" if share < 0.005 else ">99 %" if share > 0.995 else f"{share * 100:.0f} %"


RANGE = percentiles("p10", "p50", "p90")
DRIVER = Record("path", Member("swing", float | None), Member("flips_at", float | None), "unit")
SURE = Record(  # what a row of a comparison says of its ranges
    uncertainty_member(
        "range", {str: RANGE}, lambda sure: {metric: sure.range(metric) for metric in METRICS}
    ),
    uncertainty_member("probability_better_than_baseline", float | None, "probability"),
    uncertainty_member("probability_error", float | None, "error"),
    uncertainty_member("ties", float | None, "ties"),
    uncertainty_member("share_of_draws_that_meet_the_target", float | None, "meets"),
    uncertainty_member("share_cheapest", float | None, "share_cheapest"),
    uncertainty_member("share_of_best", Maybe({str: float}), "share_of_best"),
    uncertainty_member("drivers", [DRIVER], "drivers"),
)


def range_rows(found: Sequence[Sureness]) -> list[tuple[str, ...]]:
    """Return the rows of the table under the answer: its range, and the chance to beat the
    baseline; of training the range of its cost.
    """
    rows: list[tuple[str, ...]] = []
    for metric, label, size in (
        (RATIO, "P10 to P90", 1.0),
        (TRAINING_COST, "P10 to P90 of a trillion training tokens, million USD", MILLION),
    ):
        cells = [percentile_range_text(one, metric, size) for one in found]
        if any(cell != "-" for cell in cells):
            rows.append((label, *cells))
    if any(one.error is not None for one in found):
        rows.append(("P(better than baseline)", *(chance_with_error(one) for one in found)))
    if any(one.ties for one in found):
        rows.append(("ties: both miss the target", *(rounded_percent(one.ties) for one in found)))
    if any(one.meets is not None for one in found):
        rows.append(
            ("meets the target, share of draws", *(rounded_percent(one.meets) for one in found))
        )
    return rows


def percentile_range_text(one: Sureness, metric: str, size: float) -> str:
    """Return the range of a metric in words; the baseline's ratio to itself has none."""
    some = one.range(metric)
    if some is None or some["p10"] == some["p90"]:
        return "-"
    return f"{range_end_label(metric, some['p10'], size)} to {range_end_label(metric, some['p90'], size)}"


def chance_with_error(one: Sureness) -> str:
    """Return the chance to be better with its standard error, both in per cent; none of the
    baseline itself.
    """
    if one.error is None:
        return "-"
    return f"{rounded_percent(one.probability)} ± {one.error * 100:.1f}"


def range_lines(names: Sequence[str], found: Sequence[Sureness]) -> list[str]:
    """Return lines on the drivers of each answer and on the sampling.

    The value of a driver that flips the ranking is in the unit of its catalogue entry.
    """
    lines = []
    for name, of in zip(names, found, strict=bool(found)):
        told = []
        for one in of.drivers:
            swing = "decides who meets the target" if one.swing is None else f"{one.swing:+.2f}"
            flips = (
                "no flip in range"
                if one.flips_at is None
                else f"flips {turn_words(one.flips_at, one.value, one.unit, one.shown)}"
            )
            told.append(f"{short_name(one.path)} ({swing}, {flips})")
        lines += [f"Top drivers of {name}: {'; '.join(told)}."] if told else []
    return [*lines, *drawn_words(found)]


def drawn_words(found: Sequence[Sureness]) -> list[str]:
    """Return the lines on the sampling of ranges; empty without draws."""
    drawn = [of for of in found if of.draws]
    if not drawn:
        return []
    plan = "the plan of the point held" if drawn[0].hold else "the plan re-optimised in each"
    lost = (
        "a missed target counts as zero, as a win where only the baseline misses; where both "
        "do "
        "it is a tie, and no win"
    )
    return [
        f"Ranges: {drawn[0].draws} draws of every input within its low and high, {plan}; {lost}. "
        "±: of sampling."
    ]


def turn_words(at: float, value: float, unit: str, shown: tuple[float, str] | None) -> str:
    """Say on which side of about which value of an input the order turns, in the unit the catalogue
    writes it in.
    """
    number, unit = shown if shown and shown[0] else (value, unit)
    scale = number / value if value else 1.0
    return f"{'below' if at < value else 'above'} about {significant(at * scale, DIGITS)} {unit}".rstrip()
