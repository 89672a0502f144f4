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
from tco.report.ranges import turn_words
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, significant, weak
from tco.sampling.sensitivity import Sensitivity, Swing
from tco.scenario.metrics import METRICS

SHOWN = 15  # inputs of the table; all are in CSV and JSON
NAMED = 3  # flips below it
HALF = 5  # marks of a bar on either side of the middle
MISSED = "!"  # at an end where the target is not met
LEAST = 0.01  # share of a group that is named
# before what an input belongs to
OWNED = re.compile(rf"^(parts|performance)\.(({CONFIGURATION}|{RUN})-)?")
# by what an input belongs to (a part, a family's practice, the terms), by its kind and by its
# source
GROUPS = {
    "part": lambda given: OWNED.sub("", given.path.rpartition(".")[0]),
    "kind": lambda given: given.kind,
    "source": lambda given: given.source,
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
        path = self.swing.given.path
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


def _shown_input(given: Input) -> ShownInput:
    value, unit = given.shown or (given.value, given.unit)
    low, high = (convert(end or 0.0, given.unit, unit) for end in (given.low, given.high))
    return ShownInput(value, low, high, unit)


def _in_shown_unit(given: Input, value: float) -> float:
    return convert(value, given.unit, _shown_input(given).unit)


def _flipping_pairs(study: Sensitivity) -> list[FlippingPair] | None:
    if study.pairs is None:
        return None
    inputs = {swing.given.path: swing.given for swing in study.swings}
    pairs = []
    for pair in study.pairs:
        ends = [
            PairEnd(path, _in_shown_unit(inputs[path], value), _shown_input(inputs[path]).unit)
            for path, value in zip(pair.paths, pair.values, strict=True)
        ]
        pairs.append(FlippingPair(ends, pair.ratio))
    return pairs


def plan_treatment(study: Sensitivity) -> str:
    """Return the treatment of plans: `held` or `re-optimised`."""
    return "held" if study.hold else "re-optimised"


def _missed_notes(study: Sensitivity) -> list[str]:
    """Note the input ends that miss the workload's targets."""
    ends = [
        f"{short_name(swing.given.path)} at its {end}"
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


PATH = Member("path", read="swing.given.path")
KIND = Member("kind", read="swing.given.kind")
NARROWS = Member("narrows_by", float | None)
INPUT = Record(
    PATH,
    Record(ShownInput).read_via(lambda row: _shown_input(row.swing.given)),
    Record(Swing).read_via("swing"),
    KIND,
    Member("source", read="swing.given.source"),
    Member(
        "flips_at",
        float | None,
        lambda row: (
            None
            if row.swing.flips_at is None
            else _in_shown_unit(row.swing.given, row.swing.flips_at)
        ),
    ),
    NARROWS,
)
INDICES = Record(
    Member("first_order", float, "first", optional=True),
    Member("total", float, optional=True),
    Member("first_order_error", float, "first_error", optional=True),
    Member("total_error", float, optional=True),
).read_via(lambda row: row.study.drivers.get(row.swing.given.path))
ROW = Record(INPUT, Member("flips_with", read="partners"), INDICES)
WORTH = Record(
    PATH,
    KIND,
    Member("swing", float | None, "swing.swing"),
    Member("share", float | None, lambda row: row.study.share(row.swing)),
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
        lambda study: {group: study.groups(name).items() for group, name in GROUPS.items()},
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
        lambda: [sensitivity_table(study)],
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
    columns = ["input", "from P5 to P95", "at low", "at high", "low ░ high █"]
    columns += ["first", "total"] if study.drivers else []
    rows = []
    for swing in moving[:SHOWN]:
        row = [
            short_name(swing.given.path),
            input_range_text(swing.given),
            tornado_end_label(swing.at_low, swing.meets_low),
            tornado_end_label(swing.at_high, swing.meets_high),
            _tornado_bar(swing, centre, farthest),
        ]
        if study.drivers:
            indices = study.drivers.get(swing.given.path)
            row += [_percent(indices.first), _percent(indices.total)] if indices else ["", ""]
        rows.append(row)
    title = f"{study.sides[0].result.title}: what drives {METRICS[study.metric].label}"
    value = f"{study.metric} misses the target"
    if study.centre is not None:
        unit = METRICS[study.metric].unit
        value = f"{study.metric} = {significant(study.centre, 6)} {unit}".rstrip()
    above = [
        f"{value}; each input alone at its P5 and P95, the plan {plan_treatment(study)}, its batch "
        "solved for the target"
    ]
    return Table(columns, rows, title, above, _remarks(study, moving), align="lrrrlrr")


def _remarks(study: Sensitivity, moving: list[Swing]) -> list[str]:
    """Return lines below the table, on the inputs that move the metric."""
    lines = []
    if len(moving) > SHOWN:
        lines.append(f"{len(moving) - SHOWN} more inputs move it less: --format csv lists all.")
    still = len(study.swings) - len(moving)
    if still:
        lines.append(f"{still} of {len(study.swings)} inputs with a range do not move it.")
    for group, name in GROUPS.items():
        shares = [
            f"{key} {_percent(share)}"
            for key, share in study.groups(name).items()
            if share >= LEAST
        ]
        if shares:
            lines.append(f"Squares of the swings by {group}: {', '.join(shares)}.")
    if study.worth:
        named = ", ".join(_worth_words(study, swing) for swing in study.worth)
        lines.append(f"Highest value of information, of estimates and assumptions (~): {named}.")
    lines += _flip_sentences(study)
    if not all(swing.meets_low and swing.meets_high for swing in moving):
        lines.append(f"{MISSED} the workload's targets are not met there.")
    return lines


def _worth_words(study: Sensitivity, swing: Swing) -> str:
    share = study.narrows(swing)
    words = "decides whether any plan meets the target"
    if share is not None:
        words = f"narrows the range by {_percent(share)}"
    return f"{short_name(swing.given.path)} ({words})"


def _flip_sentences(study: Sensitivity) -> list[str]:
    """Return sentences on the inputs that reverse the ranking, alone or in pairs."""
    pairs = _flipping_pairs(study)
    if pairs is None:
        return []
    flips = []
    for swing in study.flips:
        given = swing.given
        turn = turn_words(swing.flips_at or 0.0, given.value, given.unit, given.shown)
        flips.append(f"{short_name(given.path)} {turn}")
    words = []
    for pair in pairs[:NAMED]:
        ends = (
            f"{short_name(end.path)} at {significant(end.value)} {end.unit}".rstrip()
            for end in pair.inputs
        )
        words.append(f"{' with '.join(ends)} ({significant(pair.metric)})")
    more = f"; {len(pairs) - NAMED} more pairs do" if len(pairs) > NAMED else ""
    return [
        f"Flips the order alone: {', '.join(flips)}."
        if flips
        else "No input flips the order alone.",
        f"Two that do not alone flip it together: {', '.join(words)}{more}."
        if words
        else "No two that do not alone flip it together.",
    ]


def input_range_text(given: Input) -> str:
    """Print the range of an input, marked where nobody states it."""
    shown = _shown_input(given)
    ends = f"{significant(shown.low)} to {significant(shown.high)} {shown.unit}"
    return f"{weak(given.kind)}{ends}".rstrip()


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if abs(share) >= 0.1 else f"{share * 100:.1f} %"


def tornado_end_label(value: float | None, meets: bool) -> str:
    """Print the metric at an end, marked where the target is not met."""
    return ("-" if value is None else significant(value)) + ("" if meets else f" {MISSED}")


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
