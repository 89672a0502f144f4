"""Confidence ranges at a workload's speed: rows, lines and records of comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tco.catalog.labels import PLAIN_NUMBERS, short_name
from tco.comparison.records import Sureness
from tco.evaluation.side_by_side import Driver
from tco.performance.deployment import EFFICIENCY
from tco.report.assumptions import shown_metric
from tco.report.record import Maybe, Member, Record, record_of
from tco.report.table import Table, fixed_digits, headed, sentence, significant
from tco.scenario.metrics import METRICS, MORE_IS_BETTER, RATIOS
from tco.scenario.result import Result

if TYPE_CHECKING:
    from tco.evaluation.scenario_function import Evaluation
    from tco.sampling.median import DrawnMetric

RATIO, TRAINING_COST = "perf_per_tco_vs_baseline", "train_usd_per_trillion_tokens"
DIGITS = 3  # of the value of an input at which the order changes


def base_case_words(
    scenario_result: Result,
    metric: str | None,
    drawn: DrawnMetric | None,
    speed: float | None = None,
) -> str:
    """Return the sentence that names the base case, with the median of a metric beside it.

    Without draws the sentence names the command for the median.

    Args:
        scenario_result: Result of the base case.
        metric: Metric that was drawn; None where none was.
        drawn: Percentiles of the metric; None where it was not drawn.
        speed: Speed that the metric is of, tokens/s per user; None where there is only one.

    """
    if metric is None or drawn is None:
        command = f"tco uncertainty {scenario_result.scenario}"
        return f"Base case: every input at its value. Median and P10 to P90: {command}"
    label, unit, size = shown_metric(metric)
    median, low, high = (
        "no end" if percentile is None else fixed_digits(percentile / size)
        for percentile in (drawn.p50, drawn.p10, drawn.p90)
    )
    at_speed = "" if speed is None else f", at {speed:g} tokens/s per user"
    heading = sentence(headed(f"{label} of {scenario_result.scenario}", unit)) + at_speed
    return (
        f"{heading}: median of {drawn.draws} draws {median}, P10 to P90 {low} to {high}. "
        "Figures here are of the base case: every input at its value."
    )


def metric_heading(metric: str, baseline: Evaluation | None) -> str:
    """Return a metric with its unit, or a ratio with the scenario whose ratio is 1.

    Args:
        metric: Metric of the figures below or behind the heading.
        baseline: Baseline of a ratio; None without one.

    """
    label, unit, _ = shown_metric(metric)
    if metric in RATIOS and baseline is not None:
        return f"{label} ({baseline.name} = 1)"
    return headed(label, unit)


def figures(*member_names: str) -> Record:
    """Return a record of numbers, each of which may be missing."""
    return Record(*(Member(member_name, float | None) for member_name in member_names))


def percentiles(*percentile_names: str) -> Maybe:
    """Return the shape of figures of a metric's draws, with the reason where one has no end."""
    return Maybe(Record(figures(*percentile_names), Member("reason", optional=True)))


RANGE = percentiles("p10", "p50", "p90")
SURENESS = Record(
    Member("range", {str: RANGE}, lambda sure: {metric: sure.range(metric) for metric in METRICS}),
    record_of(Sureness).only(
        "probability_better_than_baseline",
        "probability_error",
        "ties",
        "share_of_draws_that_meet_the_target",
        "share_cheapest",
        "share_of_best",
        "drivers",
    ),
)


def range_end_label(metric: str, end_value: float | None, size: float = 1.0) -> str:
    """Return the text of an end of a range, in units of `size`.

    An end among draws that miss the target has no value: a rate is then "none", and a cost or a
    ratio has "no end".
    """
    if end_value is not None:
        return fixed_digits(end_value / size)
    return "none" if metric in MORE_IS_BETTER - RATIOS else "no end"


def rounded_percent(share: float | None) -> str:
    """Return a share in whole per cent, never 0 % or 100 %, which no number of draws can show."""
    if share is None:
        return "-"
    if share < 0.005:
        return "<1 %"
    if share > 0.995:
        return ">99 %"
    return f"{share * 100:.0f} %"


def metric_range_rows(
    metric: str, size: float, sureness: Sequence[Sureness]
) -> list[tuple[str, ...]]:
    """Return rows of the median and of P10 to P90 of a metric; none where nothing was drawn.

    Args:
        metric: Metric of the row above.
        size: Size of its shown unit in the metric's own.
        sureness: Uncertainty of each scenario.

    """
    spans = [percentile_range_text(sure, metric, size) for sure in sureness]
    if all(span == "-" for span in spans):
        return []
    medians = []
    for sure, span in zip(sureness, spans, strict=True):
        percentile_values = sure.range(metric)
        if span == "-" or percentile_values is None:
            medians.append("-")
        else:
            medians.append(range_end_label(metric, percentile_values["p50"], size))
    return [("median of the draws", *medians), ("P10 to P90", *spans)]


def chance_rows(sureness: Sequence[Sureness]) -> list[tuple[str, ...]]:
    """Return rows of the chances to beat the baseline and to meet the target."""
    table_rows: list[tuple[str, ...]] = []
    if any(sure.probability_error is not None for sure in sureness):
        table_rows.append(("chance to beat the baseline", *map(_chance_with_error, sureness)))
    ties = [sure.ties for sure in sureness]
    if any(ties):
        table_rows.append(("ties: both miss the target", *map(rounded_percent, ties)))
    shares = [sure.share_of_draws_that_meet_the_target for sure in sureness]
    if any(share is not None for share in shares):
        table_rows.append(("meets the target, share of draws", *map(rounded_percent, shares)))
    return table_rows


def percentile_range_text(sure: Sureness, metric: str, size: float) -> str:
    """Return the text of P10 and P90 of a metric; the baseline's ratio to itself has no range."""
    percentile_values = sure.range(metric)
    if percentile_values is None or percentile_values["p10"] == percentile_values["p90"]:
        return "-"
    low, high = (range_end_label(metric, percentile_values[end], size) for end in ("p10", "p90"))
    return f"{low} to {high}"


def _chance_with_error(sure: Sureness) -> str:
    if sure.probability_error is None:
        return "-"
    chance = rounded_percent(sure.probability_better_than_baseline)
    return f"{chance} ± {sure.probability_error * 100:.1f}"


def driver_table(scenario_names: Sequence[str], sureness: Sequence[Sureness]) -> Table:
    """Tabulate the inputs that move the performance per TCO of each scenario most."""
    driver_rows = [
        ("" if index else scenario_name, *_driver_cells(driver))
        for scenario_name, sure in zip(scenario_names, sureness, strict=bool(sureness))
        for index, driver in enumerate(sure.drivers)
    ]
    return Table(
        ("", "input", "change", "order with the baseline changes"),
        driver_rows,
        "Inputs that move performance per TCO most",
        ["change: from the P5 of the input to its P95."],
        align="llrl",
    )


def _driver_cells(driver: Driver) -> tuple[str, str, str]:
    change = "misses the target" if driver.swing is None else f"{driver.swing:+.2f}"
    turn = "no"
    if driver.flips_at is not None:
        turn = turn_words(driver.flips_at, driver.value, driver.unit, driver.catalogue_value)
    return short_name(driver.path), change, turn


def drawn_words(sureness: Sequence[Sureness]) -> list[str]:
    """Return lines on the sampling of ranges; empty without draws."""
    drawn = next((sure for sure in sureness if sure.draws), None)
    if drawn is None:
        return []
    plan = "the plan of the base case fixed" if drawn.hold else "the plan re-optimised in each"
    return [
        f"Ranges: {drawn.draws} draws of every input within its low and high, {plan}. "
        "A scenario that misses its target loses; where both miss it, the draw is a tie. "
        "±: sampling error."
    ]


def turn_words(
    turns_at: float, input_value: float, unit: str, catalogue_value: tuple[float, str] | None
) -> str:
    """Say on which side of which value of an input the order changes, in the catalogue's unit.

    Args:
        turns_at: Value at which the order changes, in `unit`.
        input_value: Value of the input, in `unit`.
        unit: Unit of the input in the program.
        catalogue_value: The same value and its unit in the catalogue; None without a row.

    """
    side = "below" if turns_at < input_value else "above"
    shown_value, shown_unit = in_catalogue_unit(turns_at, input_value, unit, catalogue_value)
    return f"{side} about {significant(shown_value, DIGITS)} {shown_unit}".rstrip()


def in_catalogue_unit(
    number: float, input_value: float, unit: str, catalogue_value: tuple[float, str] | None
) -> tuple[float, str]:
    """Return a value of an input in the catalogue's unit, and that unit; a plain number has none.

    Args:
        number: Value of the input, in `unit`.
        input_value: Value of the input in the base case, in `unit`.
        unit: Unit of the input in the program.
        catalogue_value: The base case and its unit in the catalogue; None without a row.

    """
    scale = 1.0
    if catalogue_value is not None and catalogue_value[0]:
        catalogue_number, unit = catalogue_value
        scale = catalogue_number / input_value if input_value else 1.0
    return number * scale, "" if unit in PLAIN_NUMBERS else unit


def production_speed_words(paths: Iterable[str]) -> list[str]:
    """Return the meaning of production speed for a table that holds such an input.

    Args:
        paths: Paths of the inputs.

    """
    if not any(path.endswith(EFFICIENCY) for path in paths):
        return []
    return [
        "production speed: speed of a deployment over that of the model's best plan; 1.00 is just "
        "as fast. Those of all fleets, of a family, of a chip and of a rack alone multiply."
    ]
