"""The first table of a comparison: what the work costs at each speed, how each stands to the baseline there and how sure that is; and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tco.catalog.catalogue import CONFIGURATION, RUN
from tco.catalog.words import short_name
from tco.chain.result import Result
from tco.outputs.premises import premises, title_of, workloads
from tco.outputs.ranges import DRIVER, RATIO, TRAINING_COST, between, percent, percentiles, turn_words
from tco.outputs.record import Maybe, Member, Record
from tco.outputs.table import Table, significant
from tco.outputs.terminal import folded
from tco.performance.deployment import EFFICIENCY, SYSTEM_OWNER
from tco.performance.software import REACH, SERVING, TRAINING
from tco.studies.comparison import AtSpeed, Confidence, Driver, Measurement, Notice, Regime, Sureness, speed_of, why_unrated
from tco.studies.confidence import Elsewhere

WIDTH = 80  # of the first table, in a pipe too
DIGITS = 2
WORK = {"usd_per_million_output_tokens": "a million output tokens", TRAINING_COST: "a trillion training tokens"}
NAMED = 2  # inputs that are said to turn the order
ENDS = ("public", "best")
SOFTWARE_WORDS = {"public": "public software", "best": "the best software"}
AT_END = Record(Member(RATIO, float | None), Member("probability", float | None), Member("share_of_best", float | None))
KEPT = Record(*(Member(name, float) for name in ("mean", "p10", "p50")))  # of the best
CHANCES = ("probability_better_than_baseline", "probability_error", "meets", "ties", "software_share_of_range")
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
    Member("keeps", float | None),
    Member("leader", str | None),
    Member("probability", float | None),
    Member("words", read=lambda one: words(one)),  # noqa: PLW0108 - it stands below
    "kind",
    Member("rival", str | None),
    Member("speeds", [float]),
    Member("by_software", {str: str}),
    Member("drivers", [DRIVER]),
    Member("measurements", [Measurement]),
)


def tidy(context: Callable[[str], Mapping[str, Any]], asked: Sequence[str]) -> Record:
    """Return the record of a row of a CSV, one for each scenario and speed, with what it rests on by the name of its scenario."""
    kept = [Member(f"share_of_best_{at}", float | None, f"share_of_best.{at}") for at in ("mean", "p10", "p50")]
    range_ = [Member(f"{RATIO}_{at}", float | None, f"range.{at}") for at in ("p5", "p10", "p50", "p90", "p95")]
    names = {RATIO: RATIO, "probability_better_than_baseline": "probability"}
    ends = [Member(f"{name}_{end}_software", float | None, f"by_software.{end}.{key}") for end in ENDS for name, key in names.items()]
    return Record(POINT, *kept, *range_, *ends, Record(*asked).within(lambda one: context(one.scenario)))


# ---------------------------------------------------------------- words
def together(drivers: Sequence[Driver]) -> list[Driver]:
    """Return drivers with what is unexplained of a system and of one run of it, two levels of one thing, as one that has the variance of both."""
    found: dict[str, Driver] = {}
    for one in drivers:
        path = one.path if one.path.endswith(EFFICIENCY) else one.path.replace(f".{RUN}-", f".{CONFIGURATION}-")
        if path not in found:
            found[path] = one._replace(path=path)
        elif (swing := found[path].swing) is not None:
            found[path] = found[path]._replace(swing=None if one.swing is None else math.copysign(math.hypot(swing, one.swing), swing))
    return list(found.values())


def span(one: Regime) -> str:
    """Return the speeds of a regime."""
    first, *rest = (f"{speed:g}" for speed in one.speeds)
    return f"{first} to {rest[-1]}" if rest else first


def words(one: Regime) -> str:
    """Return a regime as a sentence."""
    where = f"{span(one)} tokens/s" if one.speeds else "at this workload"
    return f"{where}: {claim(one)}"


def claim(one: Regime) -> str:
    """Return what is said of a regime: what to choose, what that keeps of the best, and when to choose otherwise."""
    if one.kind == "nobody":
        return "no system serves it in half of the draws" if one.probability is not None else "no system serves it"
    if one.probability is None:
        return f"{one.choose} is the cheapest, no range was drawn"
    low, high = (percent(kept).removesuffix(" %") for kept in (one.keeps, one.most))
    worst = f", at worst {percent(one.worst)}" if one.worst is not None else ""
    kept = f"{one.choose} (keeps {low if low == high else f'{low}-{high}'} %{worst})"
    close = f", close to {one.rival}" if one.kind == "close" and one.rival else ""
    others = [
        f"with {SOFTWARE_WORDS[end]} {name} ({percent(one.by_software_keeps.get(end))})"
        for end in ENDS
        if (name := one.by_software.get(end)) not in (None, one.choose)
    ]
    return "; ".join([kept + close, *others])


def verdict_words(found: Confidence, results: Sequence[Result]) -> list[str]:
    """Return the verdict, a sentence for each regime; or why there is none."""
    costs = [(result.scenario, result.metrics[metric], amount) for result in results for metric, amount in WORK.items()]
    if len(results) == 1 and (rated := [one for one in costs if one[1] is not None]):
        ((name, cost, amount),) = rated
        return [f"{name} does this work at ~{significant(cost, DIGITS + 1)} USD {amount}"]
    if found.regimes:
        return [*(words(one) for one in found.regimes), *(f"{name} is not rated: {why}" for name, why in found.unrated.items())]
    return ["No verdict: " + "; ".join(f"{result.scenario} {why_unrated(result)}" for result in results) + "."]


# ---------------------------------------------------------------- the first table
def first_tables(results: Sequence[Result], found: Confidence, deployed: str, elsewhere: Sequence[Elsewhere]) -> list[Table]:
    """Return the table: who is best by regime, what each speed costs, how each stands to the baseline there, and what that rests on."""
    names = [result.scenario for result in results]
    rows = cost_rows(results, found) if found.curve else work_rows(results)
    rows += sure_rows(names, found)
    rows.append(("chip-hour, USD", *(cell(result.metrics["tco_usd_per_chip_hour"]) for result in results)))
    rows.append(("rests on", *(result.standing.short.partition(" +")[0].replace(" rows of ", " of ") for result in results)))
    if any(result.available for result in results):
        rows.append(("in volume from", *(result.available.volume if result.available else "-" for result in results)))
    title = ", ".join(filter(None, (title_of(results, not found.curve), deployed)))
    above = [line for text in (title, *workloads(results), *verdict_words(found, results)) for line in folded(text, WIDTH)]
    more = "More: --full | --why | --evidence | --curve --format csv | tco frontier"
    also = [f"Cheapest of all (tco compare --all): {one.system} ~{cell(one.cost)} ({one.rests_on})" for one in elsewhere[:1]]
    below = [line for text in (*flips(found.sure), *also, *premises(results), more) for line in folded(text, WIDTH)]
    head = "USD/M tokens" if found.curve else ""
    return [Table((head, *names), rows, "", above, below)]


def cell(value: float | None, digits: int = DIGITS) -> str:
    """Return a number in a cell."""
    return significant(value, digits) or "-"


def cost_rows(results: Sequence[Result], found: Confidence, digits: int = DIGITS) -> list[tuple[str, ...]]:
    """Return what a million output tokens cost at each speed, in the middle of the draws where there are any, what to choose marked."""
    own = {speed_of(result) for result in results}
    choices = {speed: one.choose for one in found.regimes for speed in one.speeds}
    rows: list[tuple[str, ...]] = []
    for speed in sorted({one.tokens_per_s_per_user for one in found.curve}):
        here = {one.scenario: middle_of(one, bool(found.sure)) for one in found.curve if one.tokens_per_s_per_user == speed}
        costs = [here.get(result.scenario) for result in results]
        marked = ["*" if result.scenario == choices.get(speed) and len(costs) > 1 else "" for result in results]
        told = ["none" if cost is None else f"{cost:.1f}" if digits == DIGITS and 1 <= cost < 100 else cell(cost, digits) for cost in costs]
        cells = [f"{mark}{cost}" for mark, cost in zip(marked, told, strict=True)]
        rows.append((f"at {speed:g}{' asked' if speed in own else ' tokens/s' if not rows else ''}", *cells))
    return rows


def middle_of(one: AtSpeed, drawn: bool) -> float | None:
    """Return what is printed of a cost: the middle of its draws, or, where none were made, every input at its value."""
    return one.median_usd_per_million_output_tokens if drawn and one.meets is not None else one.usd_per_million_output_tokens


def work_rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Return what the work costs where no speed is asked for."""
    rows: list[tuple[str, ...]] = []
    for metric, name, size in (
        ("usd_per_million_output_tokens", "USD/M tokens", 1.0),
        (TRAINING_COST, "M USD/T tokens", 1e6),
        (RATIO, "perf per cost", 1.0),
    ):
        values = [result.metrics[metric] for result in results]
        if any(value is not None for value in values):
            rows.append((name, *(cell(None if value is None else value / size, 3) for value in values)))
    return rows


def sure_rows(names: Sequence[str], found: Confidence) -> list[tuple[str, ...]]:
    """Return what each choice keeps of the best and its chance to be the cheapest, at every speed, and with the software of today and the best."""
    if not found.sure or len(names) == 1:
        return []
    rows = [("kept of the best on average, and chance to be the cheapest", *("" for _ in names))]
    speeds = sorted({one.tokens_per_s_per_user for one in found.curve})
    at = {(one.scenario, one.tokens_per_s_per_user): one for one in found.curve}
    rows += [(f"at {speed:g}", *(stake(at.get((name, speed))) for name in names)) for speed in speeds]
    if not speeds:
        rows.append(("", *map(stake, found.sure)))
        rows.append(("P10 to P90", *(between(one, RATIO, 1.0) for one in found.sure)))
    return rows


def stake(one: AtSpeed | Sureness | None) -> str:
    """Return what a choice keeps of the best on average, and its chance to be the cheapest."""
    if one is None or one.share_of_best is None:
        return "-"
    return f"{percent(one.share_of_best['mean'])} {percent(one.share_cheapest).replace(' ', '')}"


def is_of_one_run(path: str) -> bool:
    """Say whether an input is what nothing explains, of the model or of one system's deployment: nobody can act on it."""
    return path.rpartition(".")[2] in (SERVING, TRAINING) or path.startswith(f"performance.{SYSTEM_OWNER}-")


def flips(sure: Sequence[Sureness]) -> list[str]:
    """Return what would turn the order at the workload's own speed, in words."""
    levers = (one for of in sure for one in together(of.drivers) if not is_of_one_run(one.path))
    turning = {one.path: one for one in levers if one.flips_at is not None}
    most = sorted(turning.values(), key=lambda one: -abs(one.swing or float("inf")))[:NAMED]
    return [f"What flips it: {'; '.join(f'{short_name(one.path)} {flips_at(one)}' for one in most)}."] if most else []


def flips_at(one: Driver) -> str:
    """Return where an input turns the order; nowhere within its range where it does not."""
    if one.flips_at is None:
        return "nowhere"
    if one.path.rpartition(".")[2] in (SERVING, TRAINING):  # a share of a step's time
        return turn_words(100 * one.flips_at, 100 * one.value, "%", None)
    if one.path == REACH:
        return turn_words(100 * one.flips_at, 100 * one.value, "% of the way to the best", None)
    return turn_words(one.flips_at, one.value, one.unit, one.shown).removesuffix(" ratio")


# ---------------------------------------------------------------- why, and which measurements notice
MEASURED = {
    "kernels": "tco measure -o kernels.csv on a chip of {}",
    "collectives": "tco measure --kind collectives -o collectives.csv on chips of {}",
    "inference": "a serving run of this model on {}, published or your own (--anchor runs.csv)",
    "training": "a training run of this model on {}, published or your own (tco validate, tco calibrate)",
}
NOTICE = Record(
    Member("path", label="input", show=lambda one: short_name(one.path)),
    Member("kind", str | None, label="rows of", show=lambda one: one.kind or "none"),
    Member("rows", int, label="rows that notice", show=lambda one: f"{one.rows:,}" if one.rows else "none"),
    Member("error_low", float | None, "errors.0", "error at P5", "{:.4f}"),
    Member("error", float | None, "errors.1", "at its value", "{:.4f}"),
    Member("error_high", float | None, "errors.2", "at P95", "{:.4f}"),
)


def why_table(one: Regime) -> Table:
    """Return what moves a regime, and the measurements that would narrow its range most."""
    columns = ("what moves it, from its P5 to its P95", "tokens per dollar", "turns the order")
    rows = [
        (short_name(each.path), "decides who meets it" if each.swing is None else f"{each.swing:+.2f}", flips_at(each))
        for each in together(one.drivers)
    ]
    title = f"{span(one)} tokens/s: {claim(one)}" if one.speeds else claim(one)
    below = (
        [] if one.keeps is None else [f"Measuring all that decides is worth {percent(1 - one.keeps)} of the best: what the choice loses on average."]
    )
    below += [f"{worth_words(each)}: {MEASURED[each.kind].format(each.owner)}." for each in one.measurements]
    return Table(columns, rows, title, below=below, align="lrl")


def worth_words(one: Measurement) -> str:
    """Return by how much a measurement narrows a regime's ratio, and what it is worth before choosing."""
    exact, as_rows = (f"{100 * share:.1f} %" for share in (one.worth, one.worth_with_error))
    return f"Would narrow it by {percent(one.narrows)}, worth {exact} of the best if exact, {as_rows} with the error of measured rows"


def evidence_table(some: Sequence[Notice]) -> Table:
    """Return which rows would notice what moves the answer."""
    above = [
        "How far the error of the measured rows moves as each input goes from its P5 to its P95: the root mean square of log(predicted / measured)."
    ]
    below = ["none: no measured row would notice; its range is what is believed of it."]
    return NOTICE.table(some, "Which measurements notice what moves the answer", above, below)
