"""Sensitivity of a metric to its inputs: the answer of `tco sensitivity`."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Annotated, NamedTuple

import numpy as np

from tco.catalog.catalogue import CONFIGURATION, RUN
from tco.catalog.labels import short_name
from tco.core.columns import Column
from tco.core.provenance import Input
from tco.core.units import convert
from tco.report.ranges import turn_words
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, fixed_digits, headed, input_unit, significant, weak
from tco.sampling.sensitivity import Sensitivity, Swing
from tco.scenario.metrics import METRICS

SHOWN = 15  # inputs of the table; all are in CSV and JSON
NAMED = 3  # pairs that flip the order
GROUPED = 6  # parts, kinds and sources of the table of shares
HALF = 5  # marks of a bar on either side of the middle
MISSED = "!"  # at an end where the target is not met
DEPLOYED = ".deployment_efficiency"
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

HEADS = {"part": "by subject", "kind": "and by kind of source"}  # of the table of shares
# subjects that the first part of a path does not say
SUBJECTS = {
    "terms": "the buyer's terms",
    "workload": "the workload",
    "site": "the site",
    "fleet": "software of fleets",
    "owner": "the owner's software",
    "trainium": "Trainium's software",
    "nvidia": "Nvidia's software",
    "amd": "AMD's software",
    "estimate": "estimated",
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
        lambda: [
            sensitivity_table(study),
            *_share_table(study),
            *_worth_table(study),
            *_flip_tables(study),
        ],
        (ROW, _input_swings(study, study.swings)),
        [*evaluation.result.notes, *_missed_notes(study)],
        of=evaluation.result.context | {"metric": study.metric},
    )


def sensitivity_table(study: Sensitivity) -> Table:
    """Tabulate the tornado."""
    moving = [swing for swing in study.swings if swing.swing != 0]
    centre = np.nan if study.centre is None else study.centre
    ends = [end for swing in moving for end in (swing.at_low, swing.at_high) if end is not None]
    farthest = max((abs(end - centre) for end in ends), default=0.0)
    columns = ["input", "low", "high", "at low", "at high", "low ░ high █"]
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
            tornado_end_label(swing.at_low, swing.meets_low),
            tornado_end_label(swing.at_high, swing.meets_high),
            _tornado_bar(swing, centre, farthest),
        ]
        if study.drivers:
            indices = study.drivers.get(swing.input_record.path)
            swing_cells += (
                [_percent(indices.first), _percent(indices.total)] if indices else ["", ""]
            )
        table_rows.append(swing_cells)
    metric = METRICS[study.metric]
    title = f"{study.sides[0].result.title}: what drives {metric.label}"
    unit = f" {metric.unit}" if metric.unit else ""
    label = headed(metric.label, metric.unit)
    base_text = "The base case misses the workload's target"
    if study.centre is not None:
        base_text = f"Base case: {fixed_digits(study.centre)}{unit}"
    above = [
        f"{base_text}. A row moves one input alone from its low to its high (P5 and P95 of its "
        f"range). at low, at high: the {label}, that follows.",
        f"The plan is {plan_treatment(study)} at each end, its batch solved for the target.",
    ]
    return Table(columns, table_rows, title, above, _remarks(study, moving), align="lrrrrlrr")


def _remarks(study: Sensitivity, moving: list[Swing]) -> list[str]:
    """Return lines below the table, on its marks and on the inputs that it leaves out."""
    lines = []
    if any(weak(swing.input_record.kind) for swing in moving[:SHOWN]):
        lines.append("~ range that is our estimate or assumption, not a published one.")
    if not all(swing.meets_low and swing.meets_high for swing in moving):
        lines.append(f"{MISSED} no plan meets the workload's target there.")
    if any(swing.input_record.path.endswith(DEPLOYED) for swing in moving[:SHOWN]):
        lines.append(
            "production speed: what a deployment reaches over the model's best plan. It is the "
            "product of those of all fleets, the chip's family, the chip and this rack."
        )
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


def _share_table(study: Sensitivity) -> list[Table]:
    """Tabulate the shares of the squared swings by part and by kind."""
    groups = [
        [
            (group_name, share)
            for group_name, share in study.groups(group_of).items()
            if share >= LEAST
        ][:GROUPED]
        for group_of in (GROUPS[grouping_name] for grouping_name in HEADS)
    ]
    if not any(groups):
        return []
    share_rows = [
        [
            cell
            for group_name, share in pairs
            for cell in (
                SUBJECTS.get(group_name, group_name),
                _percent(share) if group_name else "",
            )
        ]
        for pairs in zip_longest(*groups, fillvalue=("", 0.0))
    ]
    columns = [cell for heading in HEADS.values() for cell in (heading, "share")]
    title = "Where the variation comes from: share of the squared changes above"
    return [Table(columns, share_rows, title, align="lrlr")]


def _worth_table(study: Sensitivity) -> list[Table]:
    """Tabulate the estimates with the highest value of information."""
    worth_rows = []
    for swing in study.worth:
        share = study.narrows(swing)
        words = "decides whether any plan meets the target" if share is None else _percent(share)
        worth_rows.append([short_name(swing.input_record.path), words])
    columns = ["estimate worth a measurement first", "the answer's range would narrow by"]
    return [Table(columns, worth_rows, align="lr")] if worth_rows else []


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
    return [Table(columns, flip_rows, below=below, align="lrlr")]


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
