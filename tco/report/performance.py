"""Performance of a scenario: the plan, each figure with its bound, time by operator, and what the
search saw.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.comparison.operations import performance_bound_rows
from tco.core.provenance import making
from tco.core.types import JsonObject
from tco.performance.profile import OperatorProfile
from tco.performance.serving.disaggregation import WholeEngines
from tco.performance.serving.record import ServingResult
from tco.report.assumptions import VALIDATED, WAITING, available_words, plan_option_text
from tco.report.explanation import structure_document, structure_text
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, sentence, significant
from tco.scenario.metrics import METRICS
from tco.scenario.result import Result

REACHED = (
    "output_tokens_per_s_per_chip",
    "input_tokens_per_s_per_chip",
    "tokens_per_s_per_user",
    "ttft_s",
    "tpot_s",
    "step_s",
    "mfu",
)
BAR = 24
CUTS = {
    "nothing": "each rack apart",
    "experts": "experts flat over all",
    "tensor": "tensor parallel",
    "context": "context parallel",
}
HOPS = (
    "hops: devices on the way, on average. GB: what a chip hands to the axis' collectives in a "
    "step, over all layers. "
    "waits: of the ms, until the last rank has come; `tco collective` has all start together."
)
MFU = (
    "Model FLOPs: 6 a weight and token, attention causal, nothing computed again; over the "
    "dense "
    "peak of the format the forward pass computes in."
)


class Pools(NamedTuple):
    """Division of a serving workload's chips between prefill and decode pools.

    `prefill_share` holds in a fleet, `alone` in a single domain by itself.
    """

    prefill_share: float | None = None
    alone: WholeEngines | None = None


def pools_of(result: Result) -> Pools:
    """Return the pools of an answer; nothing of one that has none."""
    serving = result.serving
    if not isinstance(serving, ServingResult) or serving.meeting is None:
        return Pools()
    return Pools(float(serving.prefill_share), serving.standalone_engines)


def pool_words(result: Result) -> list[str]:
    """Say which share of the chips reads prompts, and what one domain by itself makes of whole
    engines.
    """
    share, alone = pools_of(result)
    if share is None:
        return []
    plan, rate = result.report.plan, result.metrics["output_tokens_per_s_per_chip"]
    reads, makes = plan["prefill"]["chips"], plan["decode"]["chips"]
    said = (
        f"Of a fleet {share * 100:.0f} % of the chips read prompts, in engines of {reads:g}; "
        f"the others decode, in engines of {makes:g}."
    )
    if alone is None or not rate:
        return [said]
    made = alone.output_tokens_per_s_per_chip
    engines = (
        f"{alone.decode_engines} of {alone.decode_chips} and {alone.prefill_engines} of "
        f"{alone.prefill_chips} for prompts"
    )
    return [
        said,
        f"One domain of {alone.chips} chips by itself, in whole engines ({engines}): "
        f"{significant(made)} token/s/chip, {made / rate * 100:.0f} %.",
    ]


class OperatorShare(NamedTuple):
    """A line of a phase, with its share of it."""

    phase: str
    line: OperatorProfile
    share: float


def operators_of(result: Result) -> list[OperatorShare]:
    """Return the lines of every phase, the longest first."""
    phases = result.report.phases
    lines = (
        (phase, line)
        for phase, made in phases.items()
        for line in sorted(made.lines, key=lambda line: -line.time)
    )
    return [
        OperatorShare(phase, line, line.time / float(phases[phase].time)) for phase, line in lines
    ]


OPERATOR = Record(
    Member("phase", label="phase"),
    Member("name", read="line.name", label="operator"),
    Member(
        "time_us",
        float,
        lambda one: one.line.time * 1e6,
        "ms",
        lambda one: significant(one.line.time * 1e6 / 1e3),
    ),
    Member("share", float, label="share", show=lambda one: f"{one.share * 100:.1f} %"),
    Member("bound", read="line.bound", label="bound"),
    Member(
        "bound_time_us",
        float | None,
        lambda one: None if one.line.ideal is None else one.line.ideal * 1e6,
    ),
    Member(
        *("of_bound", float | None, "line.of_bound", "of the bound"),
        lambda one: "-" if one.line.of_bound is None else f"{one.line.of_bound * 100:.0f} %",
    ),
    Member("flops", float | None, "line.flops"),
    Member("bytes", float | None, "line.bytes"),
    Member("launches", float | None, "line.launches"),
)
BARS = Member("bar", label="", show=lambda one: "#" * round(one.share * BAR))
FIGURE = Record(
    Member("metric", label="figure", show=lambda one: METRICS[one["metric"]].label),
    Member("value", float, label="value", show=lambda one: f"~{significant(one['value'])}"),
    Member("unit", label="unit", read=lambda one: METRICS[one["metric"]].unit),
    "phase",
    Member(
        "bound",
        label="bound by",
        show=lambda one: f"{one['bound']} {one['bound_share'] * 100:.0f} %",
    ),
    Member("bound_share", float),
    Member(
        "at_bound",
        float | None,
        label="at that bound",
        show=lambda one: significant(one["at_bound"]) or "-",
    ),
    Member(
        "gap",
        float | None,
        label="gap",
        show=lambda one: "-" if one["gap"] is None else f"{significant(one['gap'], 3)} x",
    ),
)
AXIS = Record(
    Member("phase", label="phase"),
    Member("name", label="axis"),
    Member("ranks", int, label="ranks", show=lambda axis: str(axis.ranks)),
    Member("domains", int, label="domains", show=lambda axis: str(axis.domains)),
    Member(
        "hops",
        float | None,
        label="hops",
        show=lambda axis: "network" if axis.hops is None else significant(axis.hops, 3),
    ),
    Member("bytes", float, label="GB", show=lambda axis: significant(axis.bytes / 1e9, 3)),
    Member("time_s", float, label="ms", show=lambda axis: significant(axis.time_s * 1e3)),
    Member(
        "wait_s", float, label="waits, ms", show=lambda axis: significant(axis.wait_s * 1e3) or "-"
    ),
)
PERF = Document(
    *("perf", "scenario", "system"),
    Member("kind", read=lambda result: result.texts["workload.kind"]),
    Member("plan", dict, "report.plan"),
    Member("metrics", {str: float | None}),
    Member(
        "figures",
        [FIGURE.only("metric", "value", "phase", "bound", "bound_share", "at_bound", "gap")],
        performance_bound_rows,
    ),
    Member("operators", [OPERATOR], operators_of),
    Member("bounds", {str: {str: float}}),
    Member("validated", VALIDATED, lambda result: result),
    WAITING,
    Member("memory_bytes", {str: float}, "report.memory"),
    Member("search", {str: float}, "report.search"),
    Member("axes", [AXIS]),
    Member(
        "across_domains",
        Maybe({str: float}),
        lambda result: (result.serving.cuts if result.serving else {}) or None,
    ),
    Member("prefill_share", float | None, lambda result: pools_of(result).prefill_share),
    Member("alone", Maybe(WholeEngines), lambda result: pools_of(result).alone),
    Member("runner_up", dict | None, "report.runner_up"),
    Member("margin", float | None, "report.margin"),
    Member("structure", dict | None, lambda result: structure_document(result.structure)),
    Member("notes", [str]),
)
ROW = Record(  # of a CSV, where each row says of which answer it is
    OPERATOR.read_via("0"),
    Record("scenario", "system").read_via("1"),
    Member("plan", read=lambda one: plan_option_text(one[1].report.plan)),
    *(Member(name, float | None, f"1.metrics.{name}") for name in REACHED),
)


def performance_answer(catalogue: Catalogue, result: Result) -> Answer:
    """Return the best plan, its rates, and its time by operator.

    Args:
        catalogue: Catalogue that the result rests on.
        result: Result of an evaluation.

    """
    rows = [(one, result) for one in operators_of(result)]
    return PERF.answer(
        catalogue,
        result,
        lambda: performance_tables(result),
        (ROW, rows),
        result.notes,
        of=result.context,
    )


def plan_text(plan: JsonObject) -> str:
    """Return a plan in one line."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return f"{value:.1f}" if isinstance(value, float) else str(value)

    return ", ".join(
        f"{name} {text(value)}" for name, value in plan.items() if not isinstance(value, dict)
    )


def performance_tables(result: Result) -> list[Table]:
    """Return the figures, then a table of operators for each phase."""
    above = [f"Plan: {plan_text(result.report.plan)}"] if result.report.plan else []
    above.append(sentence(result.standing.text))
    above += available_words(result)
    search = result.report.search
    # no two makings of an answer take the same
    took = "" if making.get() else f", in {search['seconds']:.2f} s"
    below = [f"Chosen among {search['plans']:,} plans, {search['feasible']:,} of which fit{took}."]
    if result.report.runner_up:
        differs = {
            name: value
            for name, value in result.report.runner_up.items()
            if result.report.plan.get(name) != value
        }
        below.append(
            f"Runner-up, {(result.report.margin or 0.0) * 100:.3g} % behind: {plan_text(differs)}"
        )
    below += pool_words(result)
    if result.serving and result.serving.cuts:
        reached = ", ".join(
            f"{CUTS[name]} {significant(rate) if rate else 'none fits'}"
            for name, rate in result.serving.cuts.items()
        )
        below.append(f"Decode tokens/s/chip by what crosses the racks: {reached}.")
    if result.report.memory:
        used = ", ".join(
            f"{name} {size / 1e9:.1f}" for name, size in result.report.memory.items() if size
        )
        below.append(
            f"Memory of the fullest chip, GB: {used}; "
            f"{sum(result.report.memory.values()) / 1e9:.1f} in all."
        )
    if result.metrics["mfu"] is not None:
        below.append(MFU)
    below += structure_text(result.structure)
    tables = [
        FIGURE.table(performance_bound_rows(result), result.title, above, below)._replace(
            align="lrllrr"
        )
    ]
    if result.axes:
        tables.append(AXIS.table(result.axes, "Axes of the plan on the fabric", (), [HOPS]))
    operators, shown = (
        operators_of(result),
        Record(OPERATOR.only("name", "time_us", "share", "bound", "of_bound"), BARS),
    )
    for phase, made in result.report.phases.items():
        lines = [one for one in operators if one.phase == phase]
        tables.append(
            shown.table(lines, f"{phase}: {significant(float(made.time) * 1e3)} ms by operator")
        )
    return tables
