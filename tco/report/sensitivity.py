"""Sensitivity of a metric to its inputs: the answer of `tco sensitivity`."""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

import numpy as np

from tco.catalog.catalogue import CONFIGURATION, RUN
from tco.catalog.labels import short_name
from tco.core.columns import Column
from tco.core.provenance import Input
from tco.core.units import convert
from tco.report.assumptions import premise_lines, shown_metric, workload_line
from tco.report.ranges import metric_heading, production_speed_words, turn_words
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, fixed_digits, headed, input_unit, sentence, significant, weak
from tco.sampling.sensitivity import Sensitivity, Swing
from tco.scenario.metrics import METRICS, PERFORMANCE

SHOWN = 15  # inputs of the table; all are in CSV and JSON
NAMED = 3  # pairs that flip the order
GROUPED = 6  # parts, kinds and sources of the table of shares
HALF = 5  # marks of a bar on either side of the middle
MISSED = "!"  # at an end where the target is not met
BAR_HEAD = "less │ more"  # of the result, with the mark of the base case in the middle
LEAST = 0.01  # share of a group that is named
# before what an input belongs to
OWNED = re.compile(rf"^(parts|performance)\.(({CONFIGURATION}|{RUN})-)?")
# by what an input belongs to (a part, a family's practice, the terms), by its kind and by its
# source
GROUPS = {
    "part": lambda input_record: OWNED.sub("", input_record.path.rpartition(".")[0]),
    "kind": lambda input_record: input_record.kind,
    "source": lambda input_record: input_record.source,
}

# titles of the tables of shares, and what their rows are
HEADS = {
    "part": ("Where the variation comes from, by subject", "subject"),
    "kind": ("Where the variation comes from, by kind of source", "kind of source"),
}
# subjects and kinds of source in words
SUBJECTS = {
    "terms": "the buyer's terms",
    "workload": "the workload",
    "site": "the site",
    "fleet": "software of fleets",
    "owner": "the owner's software",
    "trainium": "Trainium's software",
    "nvidia": "Nvidia's software",
    "amd": "AMD's software",
    "public": "public software",
    "serving": "serving on any chip",
    "training": "training on any chip",
    "trtllm": "TensorRT-LLM",
    "sglang": "SGLang",
    "vllm": "vLLM",
    "atom": "ATOM",
    "measured": "measurements",
    "vendor": "figures of vendors",
    "filing": "filings and statistics",
    "analyst": "figures of analysts",
    "derived": "derived from other inputs",
    "estimate": "our estimates",
    "assumed": "our assumptions",
}


class ShownInput(NamedTuple):
    """Value and range of an input in the unit that the catalogue writes it in."""

    value: float
    low: float
    high: float
    unit: str


class InputSwing(NamedTuple):
    """A swing of a study."""

    study: Sensitivity
    swing: Swing

    @property
    def narrows_by(self) -> float | None:
        """Share by which the metric's range narrows once the input is known."""
        return self.study.narrows(self.swing)

    @property
    def partners(self) -> str:
        """Inputs with which this one flips the order, though neither does alone."""
        path = self.swing.input_record.path
        pairs = [pair.paths for pair in self.study.pairs or () if path in pair.paths]
        return " ".join(second if path == first else first for first, second in pairs)


class PairEnd(NamedTuple):
    """An input of a pair that flips the order, and its value there."""

    path: str
    value: Annotated[float, Column(key="at")]
    unit: str


class FlippingPair(NamedTuple):
    """Two inputs that flip the order together, and the metric there."""

    inputs: list[PairEnd]
    metric: float


def _shown_input(input_record: Input) -> ShownInput:
    shown_value, unit = input_record.stated_quantity or (input_record.value, input_record.unit)
    low, high = (
        convert(end or 0.0, input_record.unit, unit)
        for end in (input_record.low, input_record.high)
    )
    return ShownInput(shown_value, low, high, unit)


def _in_shown_unit(input_record: Input, input_value: float) -> float:
    return convert(input_value, input_record.unit, _shown_input(input_record).unit)


def _flipping_pairs(study: Sensitivity) -> list[FlippingPair] | None:
    if study.pairs is None:
        return None
    inputs = {swing.input_record.path: swing.input_record for swing in study.swings}
    pairs = []
    for pair in study.pairs:
        ends = [
            PairEnd(
                path, _in_shown_unit(inputs[path], input_value), _shown_input(inputs[path]).unit
            )
            for path, input_value in zip(pair.paths, pair.values, strict=True)
        ]
        pairs.append(FlippingPair(ends, pair.ratio))
    return pairs


def plan_treatment(study: Sensitivity) -> str:
    """Return the treatment of plans: `fixed` or `re-optimised`."""
    return "fixed" if study.hold else "re-optimised"


def _missed_notes(study: Sensitivity) -> list[str]:
    """Note the input ends that miss the workload's targets."""
    ends = [
        f"{short_name(swing.input_record.path)} at its {end}"
        for swing in study.swings
        if swing.swing != 0
        for end, meets in (("low", swing.meets_low), ("high", swing.meets_high))
        if not meets
    ]
    if not ends:
        return []
    plan = "batch of the plan" if study.hold else "plan"
    return [f"no {plan} meets the workload's targets with {', '.join(ends)}"]


def _input_swings(study: Sensitivity, swings: list[Swing]) -> list[InputSwing]:
    return [InputSwing(study, swing) for swing in swings]


PATH = Member("path", read="swing.input_record.path")
KIND = Member("kind", read="swing.input_record.kind")
NARROWS = Member("narrows_by", float | None)
INPUT = Record(
    PATH,
    Record(ShownInput).read_via(lambda swing_row: _shown_input(swing_row.swing.input_record)),
    Record(Swing).read_via("swing"),
    KIND,
    Member("source", read="swing.input_record.source"),
    Member(
        "flips_at",
        float | None,
        lambda swing_row: (
            None
            if swing_row.swing.flips_at is None
            else _in_shown_unit(swing_row.swing.input_record, swing_row.swing.flips_at)
        ),
    ),
    NARROWS,
)
INDICES = Record(
    Member("first_order", float, "first", optional=True),
    Member("total", float, optional=True),
    Member("first_order_error", float, "first_error", optional=True),
    Member("total_error", float, optional=True),
).read_via(lambda swing_row: swing_row.study.drivers.get(swing_row.swing.input_record.path))
ROW = Record(INPUT, Member("flips_with", read="partners"), INDICES)
WORTH = Record(
    PATH,
    KIND,
    Member("swing", float | None, "swing.swing"),
    Member("share", float | None, lambda swing_row: swing_row.study.share(swing_row.swing)),
    NARROWS,
)
SENSITIVITY = Document(
    "sensitivity",
    Member("scenario", read="sides.0.scenario.name"),
    "metric",
    Member("metric_value", float | None, "centre"),
    Member("metric_unit", read=lambda study: METRICS[study.metric].unit),
    Member(
        "baseline",
        str | None,
        lambda study: study.sides[1].scenario.name if study.sides[1:] else None,
    ),
    Member("plan", read=plan_treatment),
    Member("inputs", [Record(INPUT, INDICES)], lambda study: _input_swings(study, study.swings)),
    Member("worth_finding_out", [WORTH], lambda study: _input_swings(study, study.worth)),
    Member("pairs_that_flip", Maybe([FlippingPair]), _flipping_pairs),
    Member(
        "groups",
        {str: [Record(Member("name", read="0"), Member("share", float, "1"))]},
        lambda study: {group: study.groups(group_of).items() for group, group_of in GROUPS.items()},
    ),
    Member("notes", [str], _missed_notes),
)


def sensitivity_answer(study: Sensitivity) -> Answer:
    """Answer with the inputs that drive the metric.

    Args:
        study: Sensitivity of the metric to every input.

    """
    evaluation = study.sides[0]
    return SENSITIVITY.answer(
        evaluation.catalogue,
        study,
        lambda: _sensitivity_tables(study),
        (ROW, _input_swings(study, study.swings)),
        [*evaluation.result.notes, *_missed_notes(study)],
        of=evaluation.result.context | {"metric": study.metric},
    )


def _sensitivity_tables(study: Sensitivity) -> list[Table]:
    """Return the tornado, where the variation comes from, and what is worth measuring."""
    evaluation = study.sides[0]
    scenario_results = [evaluation.result]
    premises = premise_lines(scenario_results)
    if study.metric in PERFORMANCE:
        premises = [workload_line(scenario_results), *premises]
    tornado = sensitivity_table(study)
    tables = [
        tornado._replace(above=[*premises, *tornado.above]),
        *_share_tables(study),
        *_worth_table(study),
        *_flip_tables(study),
    ]
    following = [
        f"Next: tco inputs {evaluation.name} WORD (values and sources of inputs)",
        f"      tco sensitivity {evaluation.name} --metric METRIC (tco metrics list)",
    ]
    tables[-1] = tables[-1]._replace(below=[*tables[-1].below, *following])
    return tables


def sensitivity_table(study: Sensitivity) -> Table:
    """Tabulate the tornado."""
    moving = [swing for swing in study.swings if swing.swing != 0]
    size = shown_metric(study.metric)[2]
    centre = np.nan if study.centre is None else study.centre
    ends = [end for swing in moving for end in (swing.at_low, swing.at_high) if end is not None]
    farthest = max((abs(end - centre) for end in ends), default=0.0)
    columns = ["input, unit", "low", "high", "result at low", "result at high", BAR_HEAD]
    columns += ["alone", "in all"] if study.drivers else []
    table_rows = []
    for swing in moving[:SHOWN]:
        shown_input = _shown_input(swing.input_record)
        input_name = short_name(swing.input_record.path)
        swing_cells = [
            weak(swing.input_record.kind)
            + headed(input_name, input_unit(swing.input_record.path, shown_input.unit)),
            fixed_digits(shown_input.low),
            fixed_digits(shown_input.high),
            *_end_labels(swing, size),
            _tornado_bar(swing, centre, farthest),
        ]
        if study.drivers:
            indices = study.drivers.get(swing.input_record.path)
            swing_cells += (
                [_percent(indices.first), _percent(indices.total)] if indices else ["", ""]
            )
        table_rows.append(swing_cells)
    title = f"{study.sides[0].result.title}: what drives {shown_metric(study.metric)[0]}"
    above = _tornado_words(study, moving, size)
    return Table(columns, table_rows, title, above, _remarks(study, moving), align="lrrrrlrr")


def _end_labels(swing: Swing, size: float) -> tuple[str, str]:
    """Print the metric at both ends of an input, in units of `size`."""
    low, high = (None if end is None else end / size for end in (swing.at_low, swing.at_high))
    return tornado_end_label(low, swing.meets_low), tornado_end_label(high, swing.meets_high)


def _tornado_words(study: Sensitivity, moving: list[Swing], size: float) -> list[str]:
    """Return sentences on the base case, on what moves it most, and on how to read a row."""
    baseline = study.sides[1] if study.sides[1:] else None
    heading = sentence(metric_heading(study.metric, baseline))
    base_text = "the base case misses the workload's target"
    if study.centre is not None:
        base_text = f"{fixed_digits(study.centre / size)} in the base case"
    words = [f"{heading}: {base_text}."]
    if moving:
        low, high = _end_labels(moving[0], size)
        name = short_name(moving[0].input_record.path)
        words[0] += f" The strongest input is {name}: {low} at its low, {high} at its high."
    return [
        *words,
        "A row moves one input alone to its low and to its high, the P5 and P95 of its range. The "
        f"plan is {plan_treatment(study)} at each end, its batch solved for the target.",
        "Bar: │ base case, ░ result at the input's low, █ result at its high.",
    ]


def _remarks(study: Sensitivity, moving: list[Swing]) -> list[str]:
    """Return lines below the table, on its marks and on the inputs that it leaves out."""
    lines = []
    if any(weak(swing.input_record.kind) for swing in moving[:SHOWN]):
        lines.append("~ range that is our estimate or assumption, not a published one.")
    if not all(swing.meets_low and swing.meets_high for swing in moving):
        lines.append(f"{MISSED} no plan meets the workload's target there.")
    lines += production_speed_words(swing.input_record.path for swing in moving[:SHOWN])
    if study.drivers:
        lines.append(
            "alone, in all: share of the variance from the input by itself, and with its "
            "interactions (Sobol indices)."
        )
    still = len(study.swings) - len(moving)
    if len(moving) > SHOWN or still:
        lines.append(
            f"Not shown: {max(len(moving) - SHOWN, 0)} inputs that move it less (--format csv) "
            f"and {still} that do not move it."
        )
    return lines


def _share_tables(study: Sensitivity) -> list[Table]:
    """Tabulate the shares of the squared swings by subject, and by kind of source."""
    tables = []
    for grouping_name, (title, head) in HEADS.items():
        shares = study.groups(GROUPS[grouping_name])
        largest = [
            (SUBJECTS.get(group_name, group_name), share)
            for group_name, share in shares.items()
            if share >= LEAST
        ][:GROUPED]
        rest = 1 - sum(share for _, share in largest)
        if len(shares) > len(largest):
            largest.append(("all others", rest))
        share_rows = [(group_words, _percent(share)) for group_words, share in largest]
        if share_rows:
            tables.append(Table((head, "share"), share_rows, title, align="lr"))
    if tables:
        tables[0] = tables[0]._replace(
            below=["share: squared change from low to high, of the sum over all inputs."]
        )
    return tables


def _worth_table(study: Sensitivity) -> list[Table]:
    """Tabulate the estimates with the highest value of information."""
    worth_rows = []
    for swing in study.worth:
        share = study.narrows(swing)
        words = "decides whether any plan meets the target" if share is None else _percent(share)
        worth_rows.append([short_name(swing.input_record.path), words])
    title = "Estimates that a measurement should replace first"
    columns = ["estimate", "narrows the range by"]
    below = ["narrows the range by: how much the spread of the result falls once it is known."]
    return [Table(columns, worth_rows, title, below=below, align="lr")] if worth_rows else []


def _flip_tables(study: Sensitivity) -> list[Table]:
    """Tabulate the inputs that turn the order of both systems, alone or in pairs."""
    pairs = _flipping_pairs(study)
    if pairs is None:
        return []
    flip_rows = []
    for swing in study.flips:
        source = swing.input_record
        turn = turn_words(swing.flips_at or 0.0, source.value, source.unit, source.stated_quantity)
        flip_rows.append([short_name(source.path), turn, "", ""])
    for pair in pairs[:NAMED]:
        cells = [(short_name(end.path), _pair_end_text(end)) for end in pair.inputs]
        flip_rows.append([cell for end in cells for cell in end])
    if not flip_rows:
        sentence = "No input turns the order of the two systems within its range, alone or in a"
        return [Table((), [], above=[f"{sentence} pair."])]
    below = ["One input a row turns the order alone, two turn it together."]
    if len(pairs) > NAMED:
        below.append(f"Not shown: {len(pairs) - NAMED} more pairs (--format csv).")
    columns = ["turns the order", "from", "together with", "from"]
    title = "Inputs that turn which of the two systems costs less"
    return [Table(columns, flip_rows, title, below=below, align="lrlr")]


def _pair_end_text(end: PairEnd) -> str:
    return f"{fixed_digits(end.value)} {input_unit(end.path, end.unit)}".rstrip()


def input_range_text(input_record: Input) -> str:
    """Print the range of an input, marked where nobody states it."""
    shown_input = _shown_input(input_record)
    unit = input_unit(input_record.path, shown_input.unit)
    ends = f"{significant(shown_input.low)} to {significant(shown_input.high)} {unit}"
    return f"{weak(input_record.kind)}{ends}".rstrip()


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if abs(share) >= 0.1 else f"{share * 100:.1f} %"


def tornado_end_label(end_value: float | None, meets: bool) -> str:
    """Print the metric at an end, marked where the target is not met."""
    return ("-" if end_value is None else fixed_digits(end_value)) + ("" if meets else f" {MISSED}")


def _tornado_bar(swing: Swing, centre: float, farthest: float) -> str:
    """Draw how far either end of an input lies from the middle, to the left if below."""
    marks = [" "] * HALF + ["│"] + [" "] * HALF
    ends = [
        (end - centre, mark)
        for end, mark in ((swing.at_low, "░"), (swing.at_high, "█"))
        if end is not None and not np.isnan(centre)
    ]
    for distance, mark in sorted(ends, key=lambda end: -abs(end[0])):
        for step in range(1, round(abs(distance) / (farthest or 1.0) * HALF) + 1):
            marks[HALF + (step if distance > 0 else -step)] = mark
    return "".join(marks)
