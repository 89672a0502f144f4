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
from tco.evaluation.chip_prices import BOUND
from tco.evaluation.side_by_side import Driver, speed_of
from tco.performance.deployment import EFFICIENCY
from tco.performance.software_maturity import REACH, SERVING, TRAINING
from tco.report.ranges import (
    RATIO,
    figures,
    percentile_range_text,
    percentiles,
    rounded_percent,
    turn_words,
)
from tco.report.record import Maybe, Member, Record
from tco.report.table import Table, fixed_digits
from tco.report.verdict import (
    ENDS,
    format_regime,
    format_speed_range,
    regime_sentence,
)
from tco.scenario.result import Result

WIDTH = 80  # of the first table, in a pipe too
TOO_SLOW = 0.2  # share of draws that miss a speed, above which a cost there is no price
LINES = 30  # of the first table, and of what stands around it
HEAD = 2  # lines of a table above its rows
NAMED = 2  # inputs that are said to turn the order
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
    return "<" if scenario_result.rent is not None and scenario_result.rent[0] == BOUND else ""


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


def _flip_words(driver: Driver) -> str:
    """Return the value of an input that turns the order, or `nowhere`."""
    flips_at, driver_value = driver.flips_at, driver.value
    if flips_at is None:
        return "nowhere"
    # a share of a step's time
    if driver.path.rpartition(".")[2] in (SERVING, TRAINING):
        return turn_words(100 * flips_at, 100 * driver_value, "%", None)
    if driver.path == REACH:
        return turn_words(100 * flips_at, 100 * driver_value, "% of the way to the best", None)
    return turn_words(flips_at, driver_value, driver.unit, driver.catalogue_value)


# ---------------------------------------------------------------- why, and which measurements
# notice
MEASURED = {
    "kernels": "tco measure -o kernels.csv on a chip of {}",
    "collectives": "tco measure --kind collectives -o collectives.csv on chips of {}",
    "inference": "a serving run of this model on {}, published or your own (--anchor runs.csv)",
    "training": "a training run of this model on {}, published or your own (tco validate, tco "
    "calibrate)",
}
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


def why_table(regime: Regime) -> Table:
    """Tabulate the inputs that drive a regime, and the value at which each changes the order."""
    columns = (
        "what moves it, from its P5 to its P95",
        "change of performance per TCO over the rival's",
        "the pick changes",
    )
    driver_rows = [
        (
            short_name(driver.path),
            "decides who meets it" if driver.swing is None else f"{driver.swing:+.2f}",
            _flip_words(driver),
        )
        for driver in _merge_unexplained_drivers(regime.drivers)
    ]
    speeds = f"{format_speed_range(regime)} tokens/s: " if regime.speeds else ""
    below = []
    if regime.keeps is not None:
        below.append(
            "If every input were known, the mean regret would be saved: "
            f"{rounded_percent(1 - regime.keeps)} of the cost."
        )
    return Table(columns, driver_rows, speeds + regime_sentence(regime), below=below, align="lrl")


def measurement_table(regime: Regime) -> Table:
    """Tabulate by how much each measurement would narrow a regime's ratio, and what it saves."""
    columns = (
        "worth measuring",
        "narrows the range of that ratio by",
        "regret saved, if exact",
        "with the error of published runs",
    )
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
    return Table(columns, measurement_rows, align="lrrr")


def evidence_table(notices: Sequence[Notice]) -> Table:
    """Tabulate which rows would notice what moves the answer."""
    above = [
        "How far the error of the measured rows moves as each input goes from its P5 to its P95: "
        "the root mean square of log(predicted / measured)."
    ]
    below = ["none: no measured row would notice; its range is what is believed of it."]
    return NOTICE.table(notices, "Which measurements notice what moves the answer", above, below)
