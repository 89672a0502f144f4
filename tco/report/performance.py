"""Performance of a scenario: plan, figures with their bounds, time by operator, search."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from tco.catalog import Catalogue
from tco.comparison.operations import performance_bound_rows
from tco.core.columns import Column
from tco.core.provenance import making
from tco.core.types import JsonObject
from tco.performance.profile import OperatorProfile
from tco.performance.serving import passes
from tco.performance.serving.disaggregation import WholeEngines
from tco.performance.serving.plans import attention_chips
from tco.performance.serving.record import ServingResult
from tco.report.assumptions import (
    VALIDATED,
    WAITING,
    available_words,
    plan_option_text,
    shown_metric,
    training_job_words,
    workload_words,
)
from tco.report.explanation import structure_document
from tco.report.ranges import figures, rounded_percent
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, fixed_digits, sentence
from tco.scenario.metrics import METRICS, OUTPUT_RATE
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
TOKEN_TIMES = ("ttft_s", "tpot_s")
BAR = 24
WHOLE = 100  # from which a mean of a plan is printed without decimals
CUTS = {
    "nothing": "none: each rack works by itself",
    "experts": "expert parallel",
    "tensor": "tensor parallel",
    "context": "context parallel",
}
HOPS = (
    "chips: how many exchange data with each other. domains: scale-up domains that they span. "
    "hops: devices on the way, on average; network: through the scale-out network. GB, ms: data "
    "and time of a chip per step, over all layers. waiting: part of the ms, until the last chip is "
    "ready; `tco collective` leaves it out."
)
LIMITS = (
    "limited by: the resource that takes the largest share of the time. at peak: the figure if "
    "it worked at its peak and nothing else took time. -: only compute and memory have a peak."
)
PARALLEL = (
    "An instance is one copy of the model. parallel: over how many chips it is split. batch: "
    "sequences that it works on at once."
)
SMALLEST = 0.01  # share of a phase from which an operator has a line of its own
OPERATOR_LEGEND = (
    "limited by: the resource that sets the operator's time. of peak: the share of its peak "
    "rate that the operator reaches. -: only compute and memory have a peak."
)
AXES = ("tp", "pp", "dp", "ep", "cp")
PLAN_WORDS = {
    "tp": "tensor parallel",
    "pp": "pipeline parallel",
    "dp": "data parallel",
    "ep": "expert parallel",
    "cp": "context parallel",
    "drafts": "draft tokens per step",
}
MFU = (
    "Model FLOPs: 6 a weight and token, attention causal, nothing computed again; over the dense "
    "peak of the format the forward pass computes in."
)


class Pools(NamedTuple):
    """Division of a serving workload's chips between prefill and decode pools.

    `prefill_share` holds in a fleet, `single_domain` in a single domain by itself.
    """

    prefill_share: float | None = None
    single_domain: Annotated[WholeEngines | None, Column(key="alone")] = None


def _pools_of(scenario_result: Result) -> Pools:
    serving = scenario_result.serving
    if not isinstance(serving, ServingResult) or serving.balance is None:
        return Pools()
    return Pools(float(serving.prefill_share), serving.standalone_engines)


def _pool_tables(scenario_result: Result) -> list[Table]:
    """Tabulate the chips of both pools, in a large installation and in one domain."""
    share, engines = _pools_of(scenario_result)
    if share is None:
        return []
    plan = scenario_result.report.plan
    rate = scenario_result.metrics[OUTPUT_RATE]
    pool_rows = [
        ["In a large installation", "", "", ""],
        ["  prefill", rounded_percent(share), f"{plan['prefill']['chips']:g}", "any number"],
        ["  decode", rounded_percent(1 - share), f"{plan['decode']['chips']:g}", "any number"],
    ]
    below = _rate_factor_words(scenario_result) if rate else []
    if engines is not None and rate:
        pool_rows += [
            [f"In one scale-up domain of {engines.chips} chips", "", "", ""],
            _pool_row("  prefill", engines.prefill_engines, engines.prefill_chips, engines.chips),
            _pool_row("  decode", engines.decode_engines, engines.decode_chips, engines.chips),
        ]
        own_rate = engines.output_tokens_per_s_per_chip
        below.append(
            f"One scale-up domain reaches {fixed_digits(own_rate)} output tokens/s per chip, "
            f"{rounded_percent(own_rate / rate)} of a large installation's {fixed_digits(rate)}."
        )
    title = "How chips are divided between prefill and decode"
    columns = ["", "share of chips", "chips per instance", "instances"]
    return [Table(columns, pool_rows, title, below=below)]


def _rate_factor_words(scenario_result: Result) -> list[str]:
    """Return the factors from the rate of a decode chip to the rate per chip, as a product."""
    serving, rate = scenario_result.serving, scenario_result.metrics[OUTPUT_RATE]
    if not isinstance(serving, ServingResult) or serving.plan is None or serving.decode is None:
        return []
    decode_plan = serving.plan.decode
    sequences, chips = decode_plan.sequences, attention_chips(decode_plan)
    decode_rate = float(passes.decode_rate(sequences, chips, serving.decode.per_token))
    decode_share = 1 - float(serving.prefill_share)
    production = 1.0 if serving.deployed is None else float(serving.deployed)
    pools = rate / (decode_rate * decode_share * production)
    factors = [
        f"{fixed_digits(decode_rate)} output tokens/s per decode chip",
        f"{fixed_digits(decode_share)} of the chips decode",
        f"{fixed_digits(pools)} as both pools limit each other",
    ]
    if serving.deployed is not None:
        factors.append(f"{fixed_digits(production)} for production overhead")
    return [f"{' x '.join(factors)} = {fixed_digits(rate)} output tokens/s per chip."]


def _pool_row(phase: str, instances: int, instance_chips: int, chips: int) -> list[str]:
    share = instances * instance_chips / chips
    return [phase, rounded_percent(share), f"{instance_chips}", f"{instances}"]


def _cut_tables(scenario_result: Result) -> list[Table]:
    """Tabulate the decode rate by what crosses the racks of a scale-up domain."""
    if not scenario_result.serving or not scenario_result.serving.cuts:
        return []
    cut_rows = [
        [CUTS[cut_name], fixed_digits(rate) if rate else "none fits"]
        for cut_name, rate in scenario_result.serving.cuts.items()
    ]
    columns = ["parallelism across the racks", "decode tokens/s per chip"]
    title = "Decode with the model split across the racks of a scale-up domain, or not"
    return [Table(columns, cut_rows, title)]


def _figure_label(metric: str) -> str:
    """Return the label of a figure with its unit, times of a token in ms."""
    label, unit, _ = shown_metric(metric)
    unit = "ms" if metric in TOKEN_TIMES else unit
    return label if not unit or unit.startswith("token/") else f"{label}, {unit}"


def _bound_figure_text(figure: JsonObject, figure_key: str) -> str:
    value = figure[figure_key]
    size = 1e-3 if figure["metric"] in TOKEN_TIMES else shown_metric(figure["metric"])[2]
    return fixed_digits(None if value is None else value / size)


class OperatorShare(NamedTuple):
    """A line of a phase, with its share of it."""

    phase: str
    line: OperatorProfile
    share: float

    @property
    def milliseconds(self) -> str:
        """Time in ms, with the decimals that its phase has to four digits."""
        longest = self.line.time / self.share * 1e3 if self.share else 1.0
        decimals = max(3 - math.floor(math.log10(longest)), 0)
        return f"{self.line.time * 1e3:,.{decimals}f}"


def operators_of(scenario_result: Result) -> list[OperatorShare]:
    """Return the operators of every phase with their share of it, the longest first."""
    return [
        OperatorShare(phase_name, line, line.time / float(phase.time))
        for phase_name, phase in scenario_result.report.phases.items()
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
        lambda operator: operator.milliseconds,
    ),
    Member("share", float, label="share", show=lambda operator: f"{operator.share * 100:.1f} %"),
    Member("bound", read="line.bound", label="limited by"),
    Member(
        "bound_time_us",
        float | None,
        lambda operator: None if operator.line.ideal is None else operator.line.ideal * 1e6,
    ),
    Member(
        "of_bound",
        float | None,
        "line.of_bound",
        "of peak",
        lambda operator: (
            "-" if operator.line.of_bound is None else f"{operator.line.of_bound * 100:.0f} %"
        ),
    ),
    figures("flops", "bytes", "launches").read_via("line"),
)
BARS = Member("bar", label="", show=lambda operator: "#" * round(operator.share * BAR))
FIGURE = Record(
    Member("metric", label="base case", show=lambda figure: _figure_label(figure["metric"])),
    Member("value", float, label="value", show=lambda figure: _bound_figure_text(figure, "value")),
    Member("unit", read=lambda figure: METRICS[figure["metric"]].unit),
    "phase",
    Member(
        "bound",
        label="limited by",
    ),
    Member(
        "bound_share",
        float,
        label="share of time",
        show=lambda figure: f"{figure['bound_share'] * 100:.0f} %",
    ),
    Member(
        "at_bound",
        float | None,
        label="at peak",
        show=lambda figure: _bound_figure_text(figure, "at_bound") or "-",
    ),
    Member("gap", float | None),
)
AXIS = Record(
    Member("phase", label="phase"),
    Member("name", label="axis"),
    Member("ranks", int, label="chips", show=lambda axis: str(axis.ranks)),
    Member("domains", int, label="domains", show=lambda axis: str(axis.domains)),
    Member(
        "hops",
        float | None,
        label="hops",
        show=lambda axis: "network" if axis.hops is None else fixed_digits(axis.hops),
    ),
    Member("bytes", float, label="GB", show=lambda axis: fixed_digits(axis.bytes / 1e9)),
    Member("time_s", float, label="ms", show=lambda axis: fixed_digits(axis.time_s * 1e3)),
    Member(
        "wait_s",
        float,
        label="waiting, ms",
        show=lambda axis: fixed_digits(axis.wait_s * 1e3) or "-",
    ),
)
PERF = Document(
    "perf",
    "scenario",
    "system",
    Member("kind", read=lambda scenario_result: scenario_result.texts["workload.kind"]),
    Member("plan", dict, "report.plan"),
    Member("metrics", {str: float | None}),
    Member(
        "figures",
        [FIGURE.only("metric", "value", "phase", "bound", "bound_share", "at_bound", "gap")],
        performance_bound_rows,
    ),
    Member("operators", [OPERATOR], operators_of),
    Member("bounds", {str: {str: float}}),
    Member("validated", VALIDATED, lambda scenario_result: scenario_result),
    WAITING,
    Member("memory_bytes", {str: float}, "report.memory"),
    Member("search", {str: float}, "report.search"),
    Member("axes", [AXIS]),
    Member(
        "across_domains",
        Maybe({str: float}),
        lambda scenario_result: (
            (scenario_result.serving.cuts if scenario_result.serving else {}) or None
        ),
    ),
    Record(Pools).read_via(_pools_of),
    Member("runner_up", dict | None, "report.runner_up"),
    Member("margin", float | None, "report.margin"),
    Member(
        "structure",
        dict | None,
        lambda scenario_result: structure_document(scenario_result.structure),
    ),
    Member("notes", [str]),
)
ROW = Record(  # of a CSV, where each row says of which answer it is
    OPERATOR.read_via("0"),
    Record("scenario", "system").read_via("1"),
    Member("plan", read=lambda operator_row: plan_option_text(operator_row[1].report.plan)),
    figures(*REACHED).read_via("1.metrics"),
)


def performance_answer(catalogue: Catalogue, scenario_result: Result) -> Answer:
    """Answer with the best plan, its rates, and its time by operator.

    Args:
        catalogue: Catalogue that the result rests on.
        scenario_result: Result of an evaluation.

    """
    return PERF.answer(
        catalogue,
        scenario_result,
        lambda: _performance_tables(scenario_result),
        (ROW, [(operator, scenario_result) for operator in operators_of(scenario_result)]),
        scenario_result.notes,
        of=scenario_result.context,
    )


def plan_text(plan: JsonObject) -> str:
    """Print a plan in one line."""
    texts = []
    for plan_field, plan_value in plan.items():
        words = PLAN_WORDS.get(plan_field, plan_field.replace("_", " "))
        if isinstance(plan_value, bool):
            texts.append(f"{words} {'yes' if plan_value else 'no'}")
        elif isinstance(plan_value, float):
            texts.append(
                f"{words} {plan_value:,.0f}" if plan_value >= WHOLE else f"{words} {plan_value:.1f}"
            )
        elif not isinstance(plan_value, dict):
            texts.append(
                f"{words} {plan_value:,}"
                if isinstance(plan_value, int)
                else f"{words} {plan_value}"
            )
    return ", ".join(texts)


def _performance_tables(scenario_result: Result) -> list[Table]:
    """Tabulate the figures, the axes of the plan, and the operators of each phase."""
    plan = {
        plan_field: plan_value
        for plan_field, plan_value in scenario_result.report.plan.items()
        if plan_field not in AXES or plan_value != 1
    }
    above = [workload_words(scenario_result)]
    if plan:
        of_decode = " of decode" if "decode" in plan else ""
        above += [f"Plan{of_decode}: {plan_text(plan)}.", PARALLEL]
    evidence = sentence(scenario_result.standing.text)
    above += [f"All figures are predictions of the base case. {evidence}."]
    above += available_words(scenario_result)
    tables = [
        FIGURE.table(
            performance_bound_rows(scenario_result),
            f"{scenario_result.title}: speed of its best plan",
            above,
            _sentences_below(scenario_result),
        )._replace(align="lrlrr"),
        *_pool_tables(scenario_result),
        *_cut_tables(scenario_result),
    ]
    if scenario_result.axes:
        tables.append(
            AXIS.table(
                scenario_result.axes, "Data exchanged between the chips of an instance", (), [HOPS]
            )
        )
    return [*tables, *_operator_tables(scenario_result)]


def _operator_tables(scenario_result: Result) -> list[Table]:
    """Tabulate the operators of each phase, those of little time in one line."""
    operator_record = Record(OPERATOR.only("name", "time_us", "share", "bound", "of_bound"), BARS)
    operators = operators_of(scenario_result)
    tables: list[Table] = []
    for phase_name, phase in scenario_result.report.phases.items():
        of_phase = [operator for operator in operators if operator.phase == phase_name]
        small = [operator for operator in of_phase if operator.share < SMALLEST]
        long = [operator for operator in of_phase if operator.share >= SMALLEST or len(small) == 1]
        rest = []
        if len(long) < len(of_phase):
            share = sum(operator.share for operator in small)
            label = f"{len(small)} below 1 % each"
            rest = [(label, "", f"{share * 100:.1f} %", "", "", "")]
        time = fixed_digits(float(phase.time) * 1e3)
        title = f"{sentence(phase_name)}: {time} ms, by operator"
        title += _step_words(phase_name, scenario_result)
        legend = [] if tables else [OPERATOR_LEGEND]
        tables.append(operator_record.table(long, title, (), legend, rest))
    return tables


def _step_words(phase_name: str, scenario_result: Result) -> str:
    """Return the tokens of a decode step, where speculative decoding gives several."""
    phase = scenario_result.report.phases[phase_name]
    if phase_name != "decode" or phase.per_token is None:
        return ""
    step, per_token = float(phase.time), float(phase.per_token)
    if step <= per_token * (1 + SMALLEST):
        return ""
    is_read_between = scenario_result.metrics["tpot_s"] > per_token * (1 + SMALLEST)
    waits = ", before waits for prompts" if is_read_between else ""
    return (
        f". By speculative decoding a step gives each user {fixed_digits(step / per_token)} "
        f"tokens: {fixed_digits(per_token * 1e3)} ms per token{waits}"
    )


def _sentences_below(scenario_result: Result) -> list[str]:
    """Return sentences below the figures: steps, search, runner-up and memory."""
    report, search = scenario_result.report, scenario_result.report.search
    # no two makings of an answer take the same
    seconds = "" if making.get() else f" in {search['seconds']:.2f} s"
    below = [
        LIMITS,
        f"{search['plans']:,} plans were tried{seconds}; {search['feasible']:,} of them fit into "
        "memory.",
    ]
    if report.runner_up:
        differences = {
            plan_field: plan_value
            for plan_field, plan_value in report.runner_up.items()
            if report.plan.get(plan_field) != plan_value
        }
        margin = (report.margin or 0.0) * 100
        below.append(f"Runner-up, {margin:.3g} % behind: {plan_text(differences)}")
    if report.memory:
        used = ", ".join(
            f"{memory_use} {size / 1e9:.1f}" for memory_use, size in report.memory.items() if size
        )
        total = sum(report.memory.values()) / 1e9
        below.append(f"Memory of the fullest chip, GB: {used}; {total:.1f} in all.")
    if scenario_result.metrics["mfu"] is not None:
        below.append(MFU)
    return [*training_job_words([scenario_result]), *below]
