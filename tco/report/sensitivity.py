"""Sensitivity of a metric to its inputs: the answer of `tco sensitivity`."""

from __future__ import annotations

import re

import numpy as np

from tco.catalog.catalogue import CONFIGURATION, RUN
from tco.catalog.labels import short_name
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


def in_shown_unit(given: Input) -> tuple[float, float, float, str]:
    """Return value, low and high of an input and their unit, as the catalogue writes it."""
    value, unit = given.shown or (given.value, given.unit)
    return (
        value,
        convert(given.low or 0.0, given.unit, unit),
        convert(given.high or 0.0, given.unit, unit),
        unit,
    )


def in_its_unit(given: Input, at: float) -> float:
    """Return a value of an input in the unit that the catalogue writes it in."""
    return convert(at, given.unit, in_shown_unit(given)[3])


def partners(one: tuple[Sensitivity, Swing]) -> str:
    """Return the inputs with which one flips the order, though neither does alone."""
    found, path = one[0], one[1].given.path
    both = [pair.paths for pair in found.pairs or () if path in pair.paths]
    return " ".join(other if path == first else first for first, other in both)


def plan_treatment(found: Sensitivity) -> str:
    """Return the treatment of plans: `held` or `re-optimised`."""
    return "held" if found.hold else "re-optimised"


def sensitivity_notes(found: Sensitivity) -> list[str]:
    """Return the note on input ends that miss the workload's targets.

    The list is empty where every end that moves the metric meets the targets.
    """
    ends = [
        f"{short_name(one.given.path)} at its {end}"
        for one in found.swings
        if one.swing != 0
        for end, met in (("low", one.meets_low), ("high", one.meets_high))
        if not met
    ]
    if not ends:
        return []
    return [
        f"no {'batch of the plan' if found.hold else 'plan'} meets the workload's targets with "
        f"{', '.join(ends)}"
    ]


GIVEN = Record(
    Member("value", float, "0"),
    Member("low", float, "1"),
    Member("high", float, "2"),
    Member("unit", read="3"),
)
SWING = Record(
    Member("metric_low", float | None, "at_low"),
    Member("metric_high", float | None, "at_high"),
    Member("swing", float | None),
    Member("meets_low", bool),
    Member("meets_high", bool),
    Member("kind", read="given.kind"),
    Member("source", read="given.source"),
    Member(
        "flips_at",
        float | None,
        lambda one: None if one.flips_at is None else in_its_unit(one.given, one.flips_at),
    ),
)
NARROWS = Member("narrows_by", float | None, lambda one: one[0].narrows(one[1]))
INDICES = Record(
    Member("first_order", float, "first", optional=True),
    Member("total", float, optional=True),
    Member("first_order_error", float, "first_error", optional=True),
    Member("total_error", float, optional=True),
).read_via(lambda one: one[0].drivers.get(one[1].given.path))
PATH = Member("path", read="1.given.path")
# of a study, and a swing of it
INPUT = Record(
    PATH, GIVEN.read_via(lambda one: in_shown_unit(one[1].given)), SWING.read_via("1"), NARROWS
)
ROW = Record(INPUT, Member("flips_with", read=partners), INDICES)
WORTH = Record(
    PATH,
    Member("kind", read="1.given.kind"),
    Member("swing", float | None, "1.swing"),
    Member("share", float | None, lambda one: one[0].share(one[1])),
    NARROWS,
)
END = Record(Member("path", read="0"), Member("at", float, "1"), Member("unit", read="2"))
PAIR = Record(  # of a study, and two inputs that flip the order together
    Member(
        "inputs",
        [END],
        lambda one: [
            pair_end(one[0], *end) for end in zip(one[1].paths, one[1].values, strict=True)
        ],
    ),
    Member("metric", float, "1.ratio"),
)
SHARE = Record(Member("name", read="0"), Member("share", float, "1"))
SENSITIVITY = Document(
    "sensitivity",
    Member("scenario", read="sides.0.scenario.name"),
    "metric",
    Member("metric_value", float | None, "centre"),
    Member("metric_unit", read=lambda found: METRICS[found.metric].unit),
    Member(
        "baseline",
        str | None,
        lambda found: found.sides[1].scenario.name if found.sides[1:] else None,
    ),
    Member("plan", read=plan_treatment),
    Member(
        "inputs", [Record(INPUT, INDICES)], lambda found: [(found, one) for one in found.swings]
    ),
    Member("worth_finding_out", [WORTH], lambda found: [(found, one) for one in found.worth]),
    Member(
        "pairs_that_flip",
        Maybe([PAIR]),
        lambda found: None if found.pairs is None else [(found, pair) for pair in found.pairs],
    ),
    Member(
        "groups",
        {str: [SHARE]},
        lambda found: {group: found.groups(name).items() for group, name in GROUPS.items()},
    ),
    Member("notes", [str], sensitivity_notes),
)


def sensitivity_answer(found: Sensitivity) -> Answer:
    """Return the answer on the inputs that drive the metric.

    Args:
        found: Sensitivity of the metric to every input.

    """
    own, notes = found.sides[0], sensitivity_notes(found)
    rows, said = (ROW, [(found, one) for one in found.swings]), [*own.result.notes, *notes]
    return SENSITIVITY.answer(
        own.catalogue,
        found,
        lambda: [sensitivity_table(found)],
        rows,
        said,
        of=own.result.context | {"metric": found.metric},
    )


def pair_end(found: Sensitivity, path: str, at: float) -> tuple[str, float, str]:
    """Return an input of a pair with its value there, and its unit as the catalogue writes it."""
    given = next(one.given for one in found.swings if one.given.path == path)
    return path, in_its_unit(given, at), in_shown_unit(given)[3]


def sensitivity_table(found: Sensitivity) -> Table:
    """Return the tornado as a table."""
    moving = [one for one in found.swings if one.swing != 0]
    centre = np.nan if found.centre is None else found.centre
    farthest = max(
        (
            abs(end - centre)
            for one in moving
            for end in (one.at_low, one.at_high)
            if end is not None
        ),
        default=0.0,
    )
    columns = [
        "input",
        "from P5 to P95",
        "at low",
        "at high",
        "low ░ high █",
        *(["first", "total"] if found.drivers else []),
    ]
    rows = []
    for one in moving[:SHOWN]:
        ends = [
            tornado_end_label(one.at_low, one.meets_low),
            tornado_end_label(one.at_high, one.meets_high),
        ]
        row = [
            short_name(one.given.path),
            input_range_text(one.given),
            *ends,
            tornado_bar(one, centre, farthest),
        ]
        if found.drivers:
            driver = found.drivers.get(one.given.path)
            row += [share_words(driver.first), share_words(driver.total)] if driver else ["", ""]
        rows.append(row)
    unit = METRICS[found.metric].unit
    title = f"{found.sides[0].result.title}: what drives {METRICS[found.metric].label}"
    now = (
        f"{found.metric} = {significant(found.centre, 6)} {unit}".rstrip()
        if found.centre is not None
        else f"{found.metric} misses the target"
    )
    above = [
        f"{now}; each input alone at its P5 and P95, the plan {plan_treatment(found)}, its batch "
        "solved for the target"
    ]
    return Table(columns, rows, title, above, remarks(found, len(moving)), align="lrrrlrr")


def remarks(found: Sensitivity, moving: int) -> list[str]:
    """Return the lines below the table."""
    lines = (
        [f"{moving - SHOWN} more inputs move it less: --format csv lists all."]
        if moving > SHOWN
        else []
    )
    lines += (
        [f"{len(found.swings) - moving} of {len(found.swings)} inputs with a range do not move it."]
        if moving < len(found.swings)
        else []
    )
    for group, name in GROUPS.items():
        shares = [
            f"{key} {share_words(share)}"
            for key, share in found.groups(name).items()
            if share >= LEAST
        ]
        lines += [f"Squares of the swings by {group}: {', '.join(shares)}."] if shares else []
    if found.worth:
        known = [(short_name(one.given.path), found.narrows(one)) for one in found.worth]
        decides = "decides whether any plan meets the target"
        named = [
            f"{path} ({decides if share is None else f'narrows the range by {share_words(share)}'})"
            for path, share in known
        ]
        lines.append(
            f"Highest value of information, of estimates and assumptions (~): {', '.join(named)}."
        )
    lines += flip_lines(found)
    if not all(one.meets_low and one.meets_high for one in found.swings if one.swing != 0):
        lines.append(f"{MISSED} the workload's targets are not met there.")
    return lines


def flip_lines(found: Sensitivity) -> list[str]:
    """Return lines on inputs that reverse the ranking, alone or in pairs."""
    if found.pairs is None:
        return []
    alone = [
        f"{short_name(one.given.path)} "
        f"{turn_words(one.flips_at or 0.0, one.given.value, one.given.unit, one.given.shown)}"
        for one in found.flips
    ]
    lines = [
        f"Flips the order alone: {', '.join(alone)}."
        if alone
        else "No input flips the order alone."
    ]
    pairs = []
    for pair in found.pairs[:NAMED]:
        ends = [
            f"{short_name(path)} at {significant(at)} {unit}".rstrip()
            for path, at, unit in (pair_end(found, *one) for one in zip(*pair[:2], strict=True))
        ]
        pairs.append(f"{' with '.join(ends)} ({significant(pair.ratio)})")
    more = f"; {len(found.pairs) - NAMED} more pairs do" if len(found.pairs) > NAMED else ""
    return [
        *lines,
        f"Two that do not alone flip it together: {', '.join(pairs)}{more}."
        if pairs
        else "No two that do not alone flip it together.",
    ]


def input_range_text(given: Input) -> str:
    """Return the range of an input, marked where nobody states it."""
    _, low, high, unit = in_shown_unit(given)
    return f"{weak(given.kind)}{significant(low)} to {significant(high)} {unit}".rstrip()


def share_words(share: float) -> str:
    """Return a share in percent."""
    return f"{share * 100:.0f} %" if abs(share) >= 0.1 else f"{share * 100:.1f} %"


def tornado_end_label(value: float | None, meets: bool) -> str:
    """Return the metric at an end, marked where the target is not met."""
    return ("-" if value is None else significant(value)) + ("" if meets else f" {MISSED}")


def tornado_bar(one: Swing, centre: float, farthest: float) -> str:
    """Return the bar of an input: how far either end lies from the middle, to the left if below."""
    marks = [" "] * HALF + ["│"] + [" "] * HALF
    ends = [
        (end - centre, mark)
        for end, mark in ((one.at_low, "░"), (one.at_high, "█"))
        if end is not None and not np.isnan(centre)
    ]
    for away, mark in sorted(ends, key=lambda end: -abs(end[0])):
        for step in range(1, round(abs(away) / (farthest or 1.0) * HALF) + 1):
            marks[HALF + (step if away > 0 else -step)] = mark
    return "".join(marks)
