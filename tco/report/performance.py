"""Performance of a scenario: plan, figures with their bounds, time by operator, search."""

from __future__ import annotations

from typing import NamedTuple

from tco.catalog import Catalogue
from tco.comparison.operations import performance_bound_rows
from tco.core.provenance import making
from tco.core.types import JsonObject
from tco.performance.profile import OperatorProfile
from tco.performance.serving.disaggregation import WholeEngines
from tco.performance.serving.record import ServingResult
from tco.report.assumptions import VALIDATED, WAITING, available_words, plan_option_text
from tco.report.explanation import structure_document, structure_text
from tco.report.ranges import figures
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
    "Model FLOPs: 6 a weight and token, attention causal, nothing computed again; over the dense "
    "peak of the format the forward pass computes in."
)


class Pools(NamedTuple):
    """Division of a serving workload's chips between prefill and decode pools.

    `prefill_share` holds in a fleet, `alone` in a single domain by itself.
    """

    prefill_share: float | None = None
    alone: WholeEngines | None = None


def _pools_of(result: Result) -> Pools:
    # nothing of an answer that has none
    serving = result.serving
    if not isinstance(serving, ServingResult) or serving.meeting is None:
        return Pools()
    return Pools(float(serving.prefill_share), serving.standalone_engines)


def _pool_sentences(result: Result) -> list[str]:
    """Say which share of the chips reads prompts, and what one domain makes by itself."""
    share, engines = _pools_of(result)
    if share is None:
        return []
    plan, rate = result.report.plan, result.metrics["output_tokens_per_s_per_chip"]
    sentences = [
        f"Of a fleet {share * 100:.0f} % of the chips read prompts, in engines of "
        f"{plan['prefill']['chips']:g}; the others decode, in engines of "
        f"{plan['decode']['chips']:g}."
    ]
    if engines is not None and rate:
        own_rate = engines.output_tokens_per_s_per_chip
        sentences.append(
            f"One domain of {engines.chips} chips by itself, in whole engines "
            f"({engines.decode_engines} of {engines.decode_chips} and {engines.prefill_engines} "
            f"of {engines.prefill_chips} for prompts): {significant(own_rate)} token/s/chip, "
            f"{own_rate / rate * 100:.0f} %."
        )
    return sentences


class OperatorShare(NamedTuple):
    """A line of a phase, with its share of it."""

    phase: str
    line: OperatorProfile
    share: float


def operators_of(result: Result) -> list[OperatorShare]:
    """Return the operators of every phase with their share of it, the longest first."""
    return [
        OperatorShare(name, line, line.time / float(phase.time))
        for name, phase in result.report.phases.items()
        for line in sorted(phase.lines, key=lambda line: -line.time)
    ]


OPERATOR = Record(
    Member("phase", label="phase"),
    Member("name", read="line.name", label="operator"),
    Member(
        "time_us",
        float,
        lambda operator: operator.line.time * 1e6,
        "ms",
        lambda operator: significant(operator.line.time * 1e6 / 1e3),
    ),
    Member("share", float, label="share", show=lambda operator: f"{operator.share * 100:.1f} %"),
    Member("bound", read="line.bound", label="bound"),
    Member(
        "bound_time_us",
        float | None,
        lambda operator: None if operator.line.ideal is None else operator.line.ideal * 1e6,
    ),
    Member(
        "of_bound",
        float | None,
        "line.of_bound",
        "of the bound",
        lambda operator: (
            "-" if operator.line.of_bound is None else f"{operator.line.of_bound * 100:.0f} %"
        ),
    ),
    figures("flops", "bytes", "launches").read_via("line"),
)
BARS = Member("bar", label="", show=lambda operator: "#" * round(operator.share * BAR))
FIGURE = Record(
    Member("metric", label="figure", show=lambda figure: METRICS[figure["metric"]].label),
    Member("value", float, label="value", show=lambda figure: f"~{significant(figure['value'])}"),
    Member("unit", label="unit", read=lambda figure: METRICS[figure["metric"]].unit),
    "phase",
    Member(
        "bound",
        label="bound by",
        show=lambda figure: f"{figure['bound']} {figure['bound_share'] * 100:.0f} %",
    ),
    Member("bound_share", float),
    Member(
        "at_bound",
        float | None,
        label="at that bound",
        show=lambda figure: significant(figure["at_bound"]) or "-",
    ),
    Member(
        "gap",
        float | None,
        label="gap",
        show=lambda figure: "-" if figure["gap"] is None else f"{significant(figure['gap'], 3)} x",
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
    "perf",
    "scenario",
    "system",
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
    Record(Pools).read_via(_pools_of),
    Member("runner_up", dict | None, "report.runner_up"),
    Member("margin", float | None, "report.margin"),
    Member("structure", dict | None, lambda result: structure_document(result.structure)),
    Member("notes", [str]),
)
ROW = Record(  # of a CSV, where each row says of which answer it is
    OPERATOR.read_via("0"),
    Record("scenario", "system").read_via("1"),
    Member("plan", read=lambda row: plan_option_text(row[1].report.plan)),
    figures(*REACHED).read_via("1.metrics"),
)


def performance_answer(catalogue: Catalogue, result: Result) -> Answer:
    """Answer with the best plan, its rates, and its time by operator.

    Args:
        catalogue: Catalogue that the result rests on.
        result: Result of an evaluation.

    """
    return PERF.answer(
        catalogue,
        result,
        lambda: _performance_tables(result),
        (ROW, [(operator, result) for operator in operators_of(result)]),
        result.notes,
        of=result.context,
    )


def plan_text(plan: JsonObject) -> str:
    """Print a plan in one line."""
    texts = []
    for name, value in plan.items():
        if isinstance(value, bool):
            texts.append(f"{name} {'yes' if value else 'no'}")
        elif not isinstance(value, dict):
            texts.append(f"{name} {value:.1f}" if isinstance(value, float) else f"{name} {value}")
    return ", ".join(texts)


def _performance_tables(result: Result) -> list[Table]:
    """Tabulate the figures, the axes of the plan, and the operators of each phase."""
    report = result.report
    above = [f"Plan: {plan_text(report.plan)}"] if report.plan else []
    above += [sentence(result.standing.text), *available_words(result)]
    tables = [
        FIGURE.table(
            performance_bound_rows(result), result.title, above, _sentences_below(result)
        )._replace(align="lrllrr")
    ]
    if result.axes:
        tables.append(AXIS.table(result.axes, "Axes of the plan on the fabric", (), [HOPS]))
    row = Record(OPERATOR.only("name", "time_us", "share", "bound", "of_bound"), BARS)
    operators = operators_of(result)
    for name, phase in report.phases.items():
        time = significant(float(phase.time) * 1e3)
        of_phase = [operator for operator in operators if operator.phase == name]
        tables.append(row.table(of_phase, f"{name}: {time} ms by operator"))
    return tables


def _sentences_below(result: Result) -> list[str]:
    """Return sentences below the figures: search, runner-up, pools, cuts, memory and structure."""
    report, search = result.report, result.report.search
    # no two makings of an answer take the same
    seconds = "" if making.get() else f", in {search['seconds']:.2f} s"
    below = [
        f"Chosen among {search['plans']:,} plans, {search['feasible']:,} of which fit{seconds}."
    ]
    if report.runner_up:
        differences = {
            name: value
            for name, value in report.runner_up.items()
            if report.plan.get(name) != value
        }
        margin = (report.margin or 0.0) * 100
        below.append(f"Runner-up, {margin:.3g} % behind: {plan_text(differences)}")
    below += _pool_sentences(result)
    if result.serving and result.serving.cuts:
        rates = ", ".join(
            f"{CUTS[name]} {significant(rate) if rate else 'none fits'}"
            for name, rate in result.serving.cuts.items()
        )
        below.append(f"Decode tokens/s/chip by what crosses the racks: {rates}.")
    if report.memory:
        used = ", ".join(f"{name} {size / 1e9:.1f}" for name, size in report.memory.items() if size)
        total = sum(report.memory.values()) / 1e9
        below.append(f"Memory of the fullest chip, GB: {used}; {total:.1f} in all.")
    if result.metrics["mfu"] is not None:
        below.append(MFU)
    return [*below, *structure_text(result.structure)]
