"""The first table of a comparison: what the work costs at each speed, how each stands to the
baseline there and how sure that is; and why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tco.catalog.catalogue import CONFIGURATION, RUN
from tco.catalog.labels import short_name
from tco.comparison.confidence import Elsewhere
from tco.comparison.records import (
    AtSpeed,
    Confidence,
    Driver,
    Measurement,
    Notice,
    Regime,
    Sureness,
    speed_of,
)
from tco.core.types import JsonMapping
from tco.evaluation.renters import BOUND, BreakEvenRent
from tco.performance.deployment import EFFICIENCY, SYSTEM_OWNER
from tco.performance.software_maturity import REACH, SERVING, TRAINING
from tco.report.assumptions import premise_lines, workload_title, workloads
from tco.report.ranges import (
    DRIVER,
    RATIO,
    TRAINING_COST,
    percentile_range_text,
    percentiles,
    rounded_percent,
    turn_words,
)
from tco.report.record import Maybe, Member, Record
from tco.report.table import Table, significant
from tco.report.terminal import folded
from tco.report.verdict import (
    ENDS,
    basis_words,
    format_regime,
    format_speed_range,
    late_words,
    later_words,
    price_words,
    regime_sentence,
    rent_words,
    software_bound_picks,
    speed_lines,
    target_speed,
    unrated_words,
    verdict_words,
)
from tco.scenario.result import Result

WIDTH = 80  # of the first table, in a pipe too
DIGITS = 2
LINES = 30  # of the first table, and of what stands around it
NAMED = 2  # inputs that are said to turn the order
AT_END = Record(
    Member(RATIO, float | None),
    Member("probability", float | None),
    Member("share_of_best", float | None),
)
KEPT = Record(*(Member(name, float) for name in ("mean", "p10", "p50")))  # of the best
CHANCES = (
    "probability_better_than_baseline",
    "probability_error",
    "meets",
    "ties",
    "software_share_of_range",
)
POINT = Record(
    "scenario",
    Member("tokens_per_s_per_user", float),
    Member("usd_per_million_output_tokens", float | None),
    Member("median_usd_per_million_output_tokens", float | None),
    Member("share_cheapest", float | None),
    Member("share_nobody", float | None),
    Member("share_of_best", Maybe(KEPT), csv=False),
    Member(RATIO, float | None),
    Member("range", percentiles("p5", "p10", "p50", "p90", "p95"), csv=False),
    *(Member(name, float | None) for name in CHANCES),
    Member("by_software", Maybe({str: AT_END}), csv=False),
    Member("note", str | None),
)
REGIME = Record(
    Member("from", float | None, "start"),
    Member("to", float | None, "end"),
    Member("choose", str | None),
    Member("picks", [str]),
    Member("keeps", float | None),
    Member("leader", str | None),
    Member("probability", float | None),
    Member("words", read=format_regime),
    "kind",
    Member("rival", str | None),
    Member("speeds", [float]),
    Member("by_software", {str: [str]}),
    Member("late", {str: str}),
    Member("available", [str]),
    Member("drivers", [DRIVER]),
    Member("measurements", [Measurement]),
)
LATER = Record(
    "date",
    Member("draws", int),
    Member("differs", bool),
    Member(
        "verdict",
        [REGIME.only("from", "to", "picks", "choose", "keeps", "probability", "speeds")],
        "regimes",
    ),
)
TURN = Record(
    *("path", "pick", "to", "unit"),
    *(Member(name, float) for name in ("value", "turns_at", "sigmas")),
    *(Member(name, float | None) for name in ("low", "high", "break_even")),
)


def tidy(context: Callable[[str], JsonMapping], asked: Sequence[str]) -> Record:
    """Return the record of a row of a CSV, one for each scenario and speed, with what it rests on
    by the name of its scenario.
    """
    kept = [
        Member(f"share_of_best_{at}", float | None, f"share_of_best.{at}")
        for at in ("mean", "p10", "p50")
    ]
    range_ = [
        Member(f"{RATIO}_{at}", float | None, f"range.{at}")
        for at in ("p5", "p10", "p50", "p90", "p95")
    ]
    names = {RATIO: RATIO, "probability_better_than_baseline": "probability"}
    ends = [
        Member(f"{name}_{end}_software", float | None, f"by_software.{end}.{key}")
        for end in ENDS
        for name, key in names.items()
    ]
    return Record(
        POINT, *kept, *range_, *ends, Record(*asked).read_via(lambda one: context(one.scenario))
    )


# ---------------------------------------------------------------- words
def merge_unexplained_drivers(drivers: Sequence[Driver]) -> list[Driver]:
    """Return drivers with what is unexplained of a system and of one run of it, two levels of one
    thing, as one that has the variance of both.
    """
    found: dict[str, Driver] = {}
    for one in drivers:
        path = (
            one.path
            if one.path.endswith(EFFICIENCY)
            else one.path.replace(f".{RUN}-", f".{CONFIGURATION}-")
        )
        if path not in found:
            found[path] = one._replace(path=path)
        elif (swing := found[path].swing) is not None:
            found[path] = found[path]._replace(
                swing=None
                if one.swing is None
                else math.copysign(math.hypot(swing, one.swing), swing)
            )
    return list(found.values())


# ---------------------------------------------------------------- the first table
def first_tables(
    results: Sequence[Result],
    found: Confidence,
    deployed: str,
    elsewhere: Sequence[Elsewhere],
    rents: Sequence[BreakEvenRent] = (),
) -> list[Table]:
    """Return the first screen: picks by speed, costs, and what they rest on."""
    names = [result.scenario for result in results]
    speed = target_speed(results)
    rows = cost_rows(results, found) if found.curve else work_rows(results)
    rows += sure_rows(names, found, [speed] if found.curve else [None])
    rows.append(
        (
            "chip-hour, USD",
            *(
                bound_mark(result) + number_cell(result.metrics["tco_usd_per_chip_hour"])
                for result in results
            ),
        )
    )
    rows.append(
        (
            "rests on",
            *(
                result.standing.short.partition(" +")[0].replace(" rows of ", " of ")
                for result in results
            ),
        )
    )
    if any(result.available for result in results):
        rows.append(
            (
                "in volume from",
                *(result.available.volume if result.available else "-" for result in results),
            )
        )
    title = ", ".join(filter(None, (workload_title(results, not found.curve), deployed)))
    picks = speed_lines(found) if found.sure else []
    verdict = [*picks, *unrated_words(found, results)] if picks else verdict_words(found, results)
    above = [
        title,
        *workloads(results),
        *verdict,
        *late_words(found.regimes),
        *later_words(found.later),
    ]
    below = [
        *rent_words(rents),
        *price_words(found.turns, found, speed),
        *basis_words(results),
        *premise_lines(results),
    ]
    below.append("More: --full | --why | --evidence | --curve --format csv | tco frontier")
    more = [
        f"Cheapest of all (tco compare --all): {one.system} ~{number_cell(one.cost)} ({one.rests_on})"
        for one in elsewhere[:1]
    ]
    more += [*software_bound_picks(found.regimes), *flips(found.sure)]
    head = "USD/M tokens" if found.curve else ""
    above, below = wrap_lines(above), wrap_lines(below)
    room = LINES - len(above) - len(rows) - HEAD - len(below)
    return [Table((head, *names), rows, "", above, [*lines_within(more, room), *below])]


HEAD = 2  # lines of a table above its rows


def wrap_lines(texts: Sequence[str]) -> list[str]:
    """Return texts as lines of the first screen's width."""
    return [line for text in texts for line in folded(text, WIDTH)]


def lines_within(texts: Sequence[str], room: int) -> list[str]:
    """Return the lines of those texts for which there is room, the first first."""
    lines: list[str] = []
    for text in texts:
        folded_lines = folded(text, WIDTH)
        if len(lines) + len(folded_lines) <= room:
            lines += folded_lines
    return lines


def bound_mark(result: Result) -> str:
    """Return the mark of a cost that rests on an upper bound of rent."""
    return "<" if result.rent is not None and result.rent[0] == BOUND else ""


def number_cell(value: float | None, digits: int = DIGITS) -> str:
    """Return a number in a cell."""
    return significant(value, digits) or "-"


def cost_rows(
    results: Sequence[Result], found: Confidence, digits: int = DIGITS
) -> list[tuple[str, ...]]:
    """Return table rows of cost per million output tokens at each speed.

    A cost is the median of the draws, or the base case without draws. An asterisk marks the picks.
    """
    own = {speed_of(result) for result in results}
    picks = {speed: regime.picks for regime in found.regimes for speed in regime.speeds}
    rows: list[tuple[str, ...]] = []
    for speed in sorted({one.tokens_per_s_per_user for one in found.curve}):
        here = {
            one.scenario: displayed_cost(one, bool(found.sure))
            for one in found.curve
            if one.tokens_per_s_per_user == speed
        }
        costs = [here.get(result.scenario) for result in results]
        marked = [
            ("*" if result.scenario in picks.get(speed, ()) else "") + bound_mark(result)
            for result in results
        ]
        told = [
            "none"
            if cost is None
            else f"{cost:.1f}"
            if digits == DIGITS and 1 <= cost < 100
            else number_cell(cost, digits)
            for cost in costs
        ]
        cells = [
            cost if cost == "none" else f"{mark}{cost}"
            for mark, cost in zip(marked, told, strict=True)
        ]
        rows.append(
            (f"at {speed:g}{' asked' if speed in own else ' tokens/s' if not rows else ''}", *cells)
        )
    return rows


def displayed_cost(one: AtSpeed, drawn: bool) -> float | None:
    """Return the displayed cost in USD per million output tokens.

    It is the median of the draws. Without draws it is the base case.
    """
    return (
        one.median_usd_per_million_output_tokens
        if drawn and one.meets is not None
        else one.usd_per_million_output_tokens
    )


def work_rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Return table rows of cost and performance per cost without target speeds."""
    rows: list[tuple[str, ...]] = []
    for metric, name, size in (
        ("usd_per_million_output_tokens", "USD/M tokens", 1.0),
        (TRAINING_COST, "M USD/T tokens", 1e6),
        (RATIO, "perf per cost", 1.0),
    ):
        values = [result.metrics[metric] for result in results]
        if any(value is not None for value in values):
            rows.append(
                (
                    name,
                    *(number_cell(None if value is None else value / size, 3) for value in values),
                )
            )
    return rows


def sure_rows(
    names: Sequence[str], found: Confidence, speeds: Sequence[float | None] | None = None
) -> list[tuple[str, ...]]:
    """Return each rack's mean regret and chance of being cheapest, at some speeds or at all."""
    if not found.sure or len(names) == 1 or not found.regimes:
        return []
    if not found.curve:
        ranges = ("P10 to P90", *(percentile_range_text(one, RATIO, 1.0) for one in found.sure))
        return [
            ("mean regret", *map(regret_cell, found.sure)),
            ("chance cheapest", *map(chance_cell, found.sure)),
            ranges,
        ]
    points = {(point.scenario, point.tokens_per_s_per_user): point for point in found.curve}
    looked = sorted({point.tokens_per_s_per_user for point in found.curve})
    rows = []
    for label, cell_of in (("regret", regret_cell), ("cheapest", chance_cell)):
        rows += [
            (f"{label} at {speed:g}", *(cell_of(points.get((name, speed))) for name in names))
            for speed in looked
            if speeds is None or speed in speeds
        ]
    return rows


def regret_cell(point: AtSpeed | Sureness | None) -> str:
    """Return the mean regret of a rack."""
    return (
        "-"
        if point is None or point.share_of_best is None
        else rounded_percent(1 - point.share_of_best["mean"])
    )


def chance_cell(point: AtSpeed | Sureness | None) -> str:
    """Return a rack's chance of being the cheapest."""
    return (
        "-"
        if point is None or point.share_of_best is None
        else rounded_percent(point.share_cheapest)
    )


def is_of_one_run(path: str) -> bool:
    """Say whether an input is what nothing explains, of the model or of one system's deployment:
    nobody can act on it.
    """
    return path.rpartition(".")[2] in (SERVING, TRAINING) or path.startswith(
        f"performance.{SYSTEM_OWNER}-"
    )


def flips(sure: Sequence[Sureness]) -> list[str]:
    """Return the line on inputs that would reverse the ranking.

    The ranking is the ranking at the workload's own speed. The list is empty where no input
    reverses it.
    """
    levers = (
        one
        for of in sure
        for one in merge_unexplained_drivers(of.drivers)
        if not is_of_one_run(one.path)
    )
    turning = {one.path: one for one in levers if one.flips_at is not None}
    most = sorted(turning.values(), key=lambda one: -abs(one.swing or float("inf")))[:NAMED]
    return (
        [f"What flips it: {'; '.join(f'{short_name(one.path)} {flips_at(one)}' for one in most)}."]
        if most
        else []
    )


def flips_at(one: Driver) -> str:
    """Return the break-even value of an input, in words.

    The text is `nowhere` where no value within the range reverses the ranking.
    """
    if one.flips_at is None:
        return "nowhere"
    if one.path.rpartition(".")[2] in (SERVING, TRAINING):  # a share of a step's time
        return turn_words(100 * one.flips_at, 100 * one.value, "%", None)
    if one.path == REACH:
        return turn_words(100 * one.flips_at, 100 * one.value, "% of the way to the best", None)
    return turn_words(one.flips_at, one.value, one.unit, one.shown).removesuffix(" ratio")


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
    Member("path", label="input", show=lambda one: short_name(one.path)),
    Member("kind", str | None, label="rows of", show=lambda one: one.kind or "none"),
    Member(
        "rows",
        int,
        label="rows that notice",
        show=lambda one: f"{one.rows:,}" if one.rows else "none",
    ),
    Member("error_low", float | None, "errors.0", "error at P5", "{:.4f}"),
    Member("error", float | None, "errors.1", "at its value", "{:.4f}"),
    Member("error_high", float | None, "errors.2", "at P95", "{:.4f}"),
)


def why_table(one: Regime) -> Table:
    """Return the table of inputs that drive a regime.

    Lines below the table name the measurements that would narrow the range of the regime most.
    """
    columns = ("what moves it, from its P5 to its P95", "tokens per dollar", "turns the order")
    rows = [
        (
            short_name(each.path),
            "decides who meets it" if each.swing is None else f"{each.swing:+.2f}",
            flips_at(each),
        )
        for each in merge_unexplained_drivers(one.drivers)
    ]
    title = (
        f"{format_speed_range(one)} tokens/s: {regime_sentence(one)}"
        if one.speeds
        else regime_sentence(one)
    )
    below = (
        []
        if one.keeps is None
        else [
            f"Measuring all that decides is worth {rounded_percent(1 - one.keeps)} of the best: what the "
            "choice loses on average."
        ]
    )
    below += [
        f"{worth_words(each)}: {MEASURED[each.kind].format(each.owner)}."
        for each in one.measurements
    ]
    return Table(columns, rows, title, below=below, align="lrl")


def worth_words(one: Measurement) -> str:
    """Return by how much a measurement narrows a regime's ratio, and what it is worth before
    choosing.
    """
    exact, as_rows = (f"{100 * share:.1f} %" for share in (one.worth, one.worth_with_error))
    return (
        f"Would narrow it by {rounded_percent(one.narrows)}, worth {exact} of the best if exact, "
        f"{as_rows} with the error of measured rows"
    )


def evidence_table(some: Sequence[Notice]) -> Table:
    """Return which rows would notice what moves the answer."""
    above = [
        "How far the error of the measured rows moves as each input goes from its P5 to its P95: "
        "the root mean square of log(predicted / measured)."
    ]
    below = ["none: no measured row would notice; its range is what is believed of it."]
    return NOTICE.table(some, "Which measurements notice what moves the answer", above, below)
