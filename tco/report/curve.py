"""First table of a comparison: cost at each speed, regret and chance of being cheapest; and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tco.catalog.catalogue import CONFIGURATION, RUN
from tco.catalog.labels import short_name
from tco.comparison.records import (
    AtSpeed,
    Confidence,
    Later,
    Notice,
    Regime,
    Sureness,
)
from tco.core.types import JsonMapping
from tco.evaluation.rent_statistics import RENT_BOUND
from tco.evaluation.side_by_side import Driver, rated_by, speed_of
from tco.performance.deployment import EFFICIENCY
from tco.performance.software_maturity import REACH
from tco.performance.unexplained_time import UNEXPLAINED_SERVING, UNEXPLAINED_TRAINING
from tco.report.ranges import (
    RATIO,
    figures,
    in_catalogue_unit,
    percentile_range_text,
    percentiles,
    production_speed_words,
    rounded_percent,
)
from tco.report.record import Maybe, Member, Record
from tco.report.table import Table, fixed_digits
from tco.report.verdict import (
    ENDS,
    WORK,
    format_regime,
    format_speed_range,
    regime_sentence,
)
from tco.scenario.result import Result

WIDTH = 80  # of the first table, in a pipe too
TOO_SLOW = 0.2  # share of draws that miss a speed, above which a cost there is no price
LINES = 30  # of the first table, and of what stands around it
HEAD = 2  # lines of a table above its rows
LEAST_WORTH = 0.0005  # share of the spend that rounds to 0.0 %
PERCENTILES = ("p5", "p10", "p50", "p90", "p95")
SHARE_OF_BEST = Record(*(Member(figure_name, float) for figure_name in ("mean", "p10", "p50")))
POINT = Record(
    AtSpeed,
    Member("share_of_best", Maybe(SHARE_OF_BEST), csv=False),
    Member("range", percentiles(*PERCENTILES), csv=False),
    Member(
        "by_software",
        Maybe({str: figures(RATIO, "probability", "share_of_best")}),
        csv=False,
    ),
)
REGIME = Record(
    Regime,
    Member("choose", str | None),
    Member("leader", str | None, "choose"),
    Member("words", read=format_regime),
).only(
    "from",
    "to",
    "choose",
    "picks",
    "keeps",
    "leader",
    "probability",
    "words",
    "kind",
    "rival",
    "speeds",
    "by_software",
    "late",
    "available",
    "drivers",
    "measurements",
)
LATER = Record(
    Later,
    Member(
        "verdict",
        [REGIME.only("from", "to", "picks", "choose", "keeps", "probability", "speeds")],
        "regimes",
    ),
)


def curve_row(settings: Callable[[str], JsonMapping], setting_names: Sequence[str]) -> Record:
    """Return the record of a CSV row: a scenario at a speed, with the settings that it rests on.

    Args:
        settings: Function from the name of a scenario to its settings.
        setting_names: Names of the settings that are columns.

    """
    by_software = [
        Member(f"{figure_name}_{end}_software", float | None, f"by_software.{end}.{figure_key}")
        for end in ENDS
        for figure_name, figure_key in (
            (RATIO, RATIO),
            ("probability_better_than_baseline", "probability"),
        )
    ]
    return Record(
        POINT,
        SHARE_OF_BEST.read_via("share_of_best", "share_of_best_"),
        figures(*PERCENTILES).read_via("range", f"{RATIO}_"),
        *by_software,
        Record(*setting_names).read_via(lambda point: settings(point.scenario)),
    )


# ---------------------------------------------------------------- words
def _merge_unexplained_drivers(drivers: Sequence[Driver]) -> list[Driver]:
    """Merge what is unexplained of a system and of one run of it, two levels of one thing.

    The merged driver has the variance of both.
    """
    merged: dict[str, Driver] = {}
    for driver in drivers:
        path = driver.path
        if not path.endswith(EFFICIENCY):
            path = path.replace(f".{RUN}-", f".{CONFIGURATION}-")
        if path not in merged:
            merged[path] = driver._replace(path=path)
            continue
        swing = merged[path].swing
        if swing is not None and driver.swing is not None:
            swing = math.copysign(math.hypot(swing, driver.swing), swing)
        else:
            swing = None
        merged[path] = merged[path]._replace(swing=swing)
    return list(merged.values())


# ---------------------------------------------------------------- costs by speed
def bound_mark(scenario_result: Result) -> str:
    """Return the mark of a cost that rests on an upper bound of rent; empty for any other."""
    return "<" if scenario_result.rent is not None and scenario_result.rent[0] == RENT_BOUND else ""


def cost_text(cost: float | None) -> str:
    """Print a cost in dollars with three significant digits."""
    return "none" if cost is None else fixed_digits(cost)


def is_too_slow(point: AtSpeed) -> bool:
    """Say whether so many draws miss a speed that a cost at it is no price."""
    return point.meets is not None and point.meets < 1 - TOO_SLOW


def point_cost_text(point: AtSpeed | None, is_drawn: bool) -> str:
    """Print the median cost of a rack at a speed, or the base case without draws."""
    if point is None:
        return "-"
    if is_drawn and point.meets is not None:
        if is_too_slow(point):
            return "too slow"
        return cost_text(point.median_usd_per_million_output_tokens)
    return cost_text(point.usd_per_million_output_tokens)


def cost_rows(scenario_results: Sequence[Result], confidence: Confidence) -> list[tuple[str, ...]]:
    """Return table rows of cost per million output tokens at each speed.

    A cost is the median of the draws, or the base case without draws. An asterisk marks a pick.
    """
    target_speeds = {speed_of(scenario_result) for scenario_result in scenario_results}
    picks = {speed: regime.picks for regime in confidence.regimes for speed in regime.speeds}
    points = {(point.tokens_per_s_per_user, point.scenario): point for point in confidence.curve}
    speed_rows: list[tuple[str, ...]] = []
    for speed in sorted({speed for speed, _ in points}):
        cells = []
        for scenario_result in scenario_results:
            point = points.get((speed, scenario_result.scenario))
            cost = point_cost_text(point, bool(confidence.sure))
            star = " *" if scenario_result.scenario in picks.get(speed, ()) else ""
            mark = bound_mark(scenario_result) if cost[:1].isdigit() else ""
            cells.append(mark + cost + star)
        target = " (target)" if speed in target_speeds else ""
        speed_rows.append((f"at {speed:g} tokens/s{target}", *cells))
    return speed_rows


def sureness_groups(
    scenario_names: Sequence[str], confidence: Confidence
) -> dict[str, list[tuple[str, ...]]]:
    """Return rows of each rack's mean regret and chance of being cheapest, by speed.

    Returns:
        Heading of a group to its rows; the heading is empty where there is no curve.

    """
    sureness = confidence.sure
    if not sureness or len(scenario_names) == 1 or not confidence.regimes:
        return {}
    if not confidence.curve:
        rows = [
            ("mean regret", *map(regret_text, sureness)),
            ("chance of being cheapest", *map(chance_text, sureness)),
            ("P10 to P90", *(percentile_range_text(sure, RATIO, 1.0) for sure in sureness)),
        ]
        return {"": rows}
    points = {(point.scenario, point.tokens_per_s_per_user): point for point in confidence.curve}
    speeds = sorted({speed for _, speed in points})
    return {
        heading: [
            (
                f"at {speed:g} tokens/s",
                *(cell_of(points.get((scenario_name, speed))) for scenario_name in scenario_names),
            )
            for speed in speeds
        ]
        for heading, cell_of in (
            ("Mean regret", regret_text),
            ("Chance of being cheapest", chance_text),
        )
    }


def regret_text(point: AtSpeed | Sureness | None) -> str:
    """Print the mean regret of a rack, a share of the spend; a dash where it is not rated."""
    if point is None or point.share_of_best is None:
        return "-"
    return rounded_percent(1 - point.share_of_best["mean"])


def chance_text(point: AtSpeed | Sureness | None) -> str:
    """Print the share of draws in which a rack costs least; a dash where it is not rated."""
    if point is None or point.share_of_best is None:
        return "-"
    return rounded_percent(point.share_cheapest)


# ---------------------------------------------------------------- why, and which measurements
# notice
MEASURED = {
    "kernels": "tco measure -o kernels.csv on a chip of {}",
    "collectives": "tco measure --kind collectives -o collectives.csv on chips of {}",
    "inference": "a serving run of this model on {}",
    "training": "a training run of this model on {}",
}
# what to do with a measurement, by its kind
USES = {
    "inference": "Give a serving run, published or your own, with --anchor FILE.",
    "training": "Compare a training run, published or your own, with tco validate, and fit the "
    "model to it with tco calibrate.",
}
DRIVER_COLUMNS = (
    *("input, alone from low to high", "base case", "ratio moves"),
    *("high favours", "equal cost at"),
)
DRIVER_LEGEND = (
    "low, high: P5 and P95 of the input's range. ratio: performance per TCO of the first rack over "
    "the second; above 1 the first costs less.",
    "regret: share of the spend that the cheapest rack of a draw would save, a draw being one "
    "random set of inputs.",
    "equal cost at: value at which both racks cost the same, all else at the base case. nowhere: "
    "at no value within the range.",
)
MEASUREMENT_COLUMNS = (
    *("measurement", "narrows the range by"),
    *("saves, if exact", "saves, with usual error"),
)
MEASUREMENT_LEGEND = (
    "narrows: how much the standard deviation of the ratio over the draws falls.",
    "saves: regret that choosing after the measurement saves on average, a share of the spend. "
    "usual error: median error of the model on published runs.",
)
NOTICE = Record(
    Member("path", label="input", show=lambda notice: short_name(notice.path)),
    Member("kind", str | None, label="runs of", show=lambda notice: notice.kind or "none"),
    Member(
        "rows",
        int,
        label="runs that depend on it",
        show=lambda notice: f"{notice.rows:,}" if notice.rows else "none",
    ),
    Member("error_low", float | None, "errors.0", "error at P5", "{:.4f}"),
    Member("error", float | None, "errors.1", "base case", "{:.4f}"),
    Member("error_high", float | None, "errors.2", "at P95", "{:.4f}"),
)


def why_tables(confidence: Confidence, scenario_results: Sequence[Result]) -> list[Table]:
    """Return for each regime the inputs that drive it, and what is worth measuring.

    Args:
        confidence: Regimes with their drivers and measurements, and costs by speed.
        scenario_results: Results of the scenarios.

    """
    tables: list[Table] = []
    for regime in confidence.regimes:
        tables.append(_driver_table(regime, confidence, scenario_results))
        if regime.measurements:
            tables.append(measurement_table(regime))
    paths = [driver.path for regime in confidence.regimes for driver in regime.drivers]
    legends = {
        DRIVER_COLUMNS: [*DRIVER_LEGEND, *production_speed_words(paths)],
        MEASUREMENT_COLUMNS: MEASUREMENT_LEGEND,
    }
    for index, table in enumerate(tables):  # each legend stands once
        below = [*table.below, *legends.pop(tuple(table.columns), ())]
        tables[index] = table._replace(below=below)
    return tables


def _driver_table(
    regime: Regime, confidence: Confidence, scenario_results: Sequence[Result]
) -> Table:
    """Tabulate the inputs that drive a regime, and the value at which both racks cost the same."""
    speeds = f"{format_speed_range(regime)} tokens/s per user: " if regime.speeds else ""
    if not regime.drivers:
        return Table((), (), speeds + regime_sentence(regime))
    first, second = regime.contenders
    drivers = _merge_unexplained_drivers(regime.drivers)
    driver_rows = [
        (
            short_name(driver.path),
            _driver_value_text(driver, driver.value),
            "-" if driver.swing is None else f"{driver.swing:+.2f}",
            _favoured_rack(driver, first, second),
            _driver_value_text(driver, driver.flips_at),
        )
        for driver in drivers
    ]
    above = [
        f"Pick: {regime_sentence(regime)}.",
        *_base_case_ratio_words(regime, confidence, scenario_results),
        _turning_words(drivers),
    ]
    below = []
    if regime.keeps is not None:
        below.append(
            "If every input were known, the mean regret would be saved: "
            f"{rounded_percent(1 - regime.keeps)} of the spend."
        )
    below.append(f"All inputs: tco sensitivity {first} --metric {RATIO} --baseline {second}")
    title = f"{speeds}{first} against {second}"
    return Table(DRIVER_COLUMNS, driver_rows, title, above, below, align="lrrlr")


def _turning_words(drivers: Sequence[Driver]) -> str:
    """Return a sentence on the number of inputs that alone reverse the order of two racks."""
    turning = sum(driver.flips_at is not None for driver in drivers)
    turned = "alone can turn within its range which of the two costs less."
    subject = f"Each of {turning} inputs" if turning > 1 else f"{turning or 'No'} input"
    return f"{subject} {turned}"


def _favoured_rack(driver: Driver, first: str, second: str) -> str:
    """Return the rack that a high value of an input favours."""
    if driver.swing is None:
        return "decides who meets the target"
    return first if driver.swing > 0 else second


def _driver_value_text(driver: Driver, number: float | None) -> str:
    """Print a value of an input with its unit; none where the racks never cost the same."""
    if number is None:
        return "nowhere"
    attribute = driver.path.rpartition(".")[2]
    if driver.path == REACH or attribute in (UNEXPLAINED_SERVING, UNEXPLAINED_TRAINING):
        return f"{fixed_digits(100 * number)} %"  # a share of a step's time, or of the way
    shown_value, unit = in_catalogue_unit(number, driver.value, driver.unit, driver.catalogue_value)
    return f"{fixed_digits(shown_value)} {unit}".rstrip()


def _base_case_ratio_words(
    regime: Regime, confidence: Confidence, scenario_results: Sequence[Result]
) -> list[str]:
    """Return a sentence on the base-case costs of both racks and their ratio; or nothing."""
    first, second = regime.contenders
    speed, metric = regime.middle_speed, rated_by(scenario_results)
    if speed is None:
        costs = {result.scenario: result.metrics[metric] for result in scenario_results if metric}
    else:
        costs = {
            point.scenario: point.usd_per_million_output_tokens
            for point in confidence.curve
            if point.tokens_per_s_per_user == speed
        }
    first_cost, second_cost = costs.get(first), costs.get(second)
    if first_cost is None or second_cost is None or metric is None:
        return []
    where = "" if speed is None else f" at {speed:g} tokens/s per user"
    ratio = second_cost / first_cost
    sentences = [
        f"Base case{where}: {fixed_digits(first_cost)} USD per {WORK[metric]} on {first}, "
        f"{fixed_digits(second_cost)} USD on {second}. Ratio of performance per TCO: {ratio:.2f}."
    ]
    if ratio < 1 and first in regime.picks and second not in regime.picks:
        sentences.append(
            f"{first} costs more in the base case; over all draws its mean regret is less."
        )
    return sentences


def measurement_table(regime: Regime) -> Table:
    """Tabulate by how much each measurement would narrow a regime's ratio, and what it saves."""
    measurement_rows = [
        (
            MEASURED[measurement.kind].format(measurement.owner),
            rounded_percent(measurement.narrows),
            *(
                f"{100 * share:.1f} %"
                for share in (measurement.worth, measurement.worth_with_error)
            ),
        )
        for measurement in regime.measurements
    ]
    uses = [USES[kind] for kind in USES if kind in {run.kind for run in regime.measurements}]
    if all(measurement.worth < LEAST_WORTH for measurement in regime.measurements):
        uses.insert(0, "No measurement alone saves regret: the pick stays.")
    title = "What to measure to be surer"
    return Table(MEASUREMENT_COLUMNS, measurement_rows, title, below=uses, align="lrrr")


def evidence_table(notices: Sequence[Notice]) -> Table:
    """Tabulate which rows would notice what moves the answer."""
    above = [
        "How far the error of the measured rows moves as each input goes from its P5 to its P95: "
        "the root mean square of log(predicted / measured)."
    ]
    below = ["none: no measured row would notice; its range is what is believed of it."]
    return NOTICE.table(notices, "Which measurements notice what moves the answer", above, below)
