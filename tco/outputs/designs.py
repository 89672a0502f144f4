"""Designs held against each other: the tables, rows and document of `tco frontier --pareto`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.chain.metrics import METRICS, MORE_IS_BETTER
from tco.outputs.comparison import formats_rows, premises, workload_line
from tco.outputs.frontiers import HEADER as POINT
from tco.outputs.frontiers import frontier_header, names, plan_words, point_row, thinned
from tco.outputs.ranges import percent
from tco.outputs.table import Table, significant
from tco.studies.designs import AXES, Design, Held
from tco.studies.frontier import Frontier

PLAN = ("chips", "tp", "cp", "pp", "batch")
BEATEN = tuple(f"beaten_by_{name}" for name in (*POINT[:4], *PLAN))
CHANGES = tuple(f"change_of_{axis}" for axis in AXES)
CHANCE = "share_of_draws_in_which_it_is_beaten"
BEST, WORST = 20, 6  # rows shown of the designs that none beats, and of those of a system that are beaten
FREE = ("design", "per user", "per chip", "per MW", "$/M out", "plan", "")
HELD = ("per user", "$/M out", "beaten by", "its plan", "$/M", "chip", "user", "MW")


def called(frontier: Frontier) -> str:
    """Return the scenario of a frontier, and that of its prefill pool where it is another."""
    decode, _, prefill, _ = names(frontier)
    return decode if decode == prefill else f"{decode} with {prefill}"


def design_header(frontiers: Sequence[Frontier]) -> tuple[str, ...]:
    """Return the CSV columns."""
    return (*frontier_header(frontiers), *BEATEN, *CHANGES, *([CHANCE] if any(one.bands for one in frontiers) else []))


def design_rows(found: Sequence[Held]) -> list[list[Any]]:
    """Return the CSV rows: every design, what beats it, and by which share that has more or less."""
    drawn = any(one.design.frontier.bands for one in found)
    return [
        [
            *point_row(one.design.frontier, one.design.place, drawn),
            *([*names(one.by.frontier), *(getattr(one.by.point, axis) for axis in PLAN)] if one.by else [None] * len(BEATEN)),
            *(one.changes.get(axis) for axis in AXES),
            *([one.chance] if drawn else []),
        ]
        for one in found
    ]


def in_document(design: Design) -> dict[str, Any]:
    """Return which design it is, and its figures."""
    return dict(zip(POINT[:4], names(design.frontier), strict=True)) | {name: getattr(design.point, name) for name in (*PLAN, *AXES)}


def designs_document(found: Sequence[Held]) -> dict[str, Any]:
    """Return what the JSON document has beside the frontiers."""
    axes = [{"metric": axis, "unit": METRICS[axis].unit, "better": "more" if axis in MORE_IS_BETTER else "less"} for axis in AXES]
    designs = [
        {
            **in_document(one.design),
            "chosen": one.design.point.chosen,
            "beaten_by": {**in_document(one.by), "change": one.changes, **({} if one.chance is None else {CHANCE: one.chance})} if one.by else None,
        }
        for one in found
    ]
    return {"pareto": {"axes": axes, "designs": designs}}


def free_table(frontiers: Sequence[Frontier], found: Sequence[Held]) -> Table:
    """Return the designs that none beats, the quickest first."""
    results = list({pool.result.scenario: pool.result for frontier in frontiers for pool in (frontier.decode, frontier.prefill)}.values())
    free = [one.design for one in found if one.by is None]
    shown = thinned(free, lambda design: design.point.chosen, BEST)
    rows = [
        (
            called(design.frontier),
            *(significant(getattr(design.point, axis)) for axis in ("tokens_per_s_per_user", *AXES[1::2], AXES[0])),
            plan_words(design.point),
            "*" if design.point.chosen else "",
        )
        for design in shown
    ]
    above = [workload_line(results), *premises(results), *(f"{result.scenario}: {result.standing.text}" for result in results)]
    above += [f"{words}: {', '.join(dict.fromkeys(forms))}" for words, *forms in formats_rows(results)]
    counts = {called(frontier): sum(one.frontier is frontier for one in free) for frontier in frontiers if frontier.points}
    apart = len({frontier.decode.workload for frontier in frontiers}) > 1
    below = [
        f"{len(free)} of {len(found)} designs (a system on one of its plans): {', '.join(f'{many} of {name}' for name, many in counts.items())}.",
        "None is as good or better in cost, output tokens a chip, a user and a site MW, and better in one.",
        "* the cheapest at this workload's interactivity. plan: chips/tensor parallel/batch of a decode instance. All are estimates.",
        *(["A design is held against those of its own workload, date and owner alone."] if apart else []),
        *(f"{called(frontier)}: {frontier.reason}." for frontier in frontiers if not frontier.points),
    ]
    return Table(FREE, rows, "Designs no other beats", above, below, "lrrrrll")


def held_table(found: Sequence[Held]) -> Table | None:
    """Return designs that are beaten, system by system, each with what beats it and by how much on every axis; none where there are none."""
    rows: list[Sequence[str]] = []
    for name in dict.fromkeys(called(one.design.frontier) for one in found):
        every = [one for one in found if called(one.design.frontier) == name]
        some = [one for one in every if one.by is not None]
        if some:
            rows.append([f"{name}: {len(some)} of {len(every)} designs are beaten", *([""] * (len(HELD) - 1))])
            rows += [held_row(one) for one in thinned(some, lambda one: one.design.point.chosen, WORST)]
    below = [
        "Of those that beat a design the one is named that leads most where it leads least. Changes: from the design to what beats it, in cost, "
        "output tokens a chip, a user and a site MW. Every design is in --format csv and json."
    ]
    columns = HELD
    if any(one.chance is not None for one in found):
        columns = (HELD[0], "draws", *HELD[2:])
        below.append("draws: of those in which both keep their tokens/s a user, the share in which the design is beaten still.")
    return Table(columns, rows, "Designs that are beaten", (), below, "rrllrrrr") if rows else None


def held_row(one: Held) -> list[str]:
    """Return a design that is beaten as a row."""
    by, point = one.by, one.design.point
    if by is None:
        raise ValueError("a design that none beats has no row")
    return [
        f"{'*' if point.chosen else ''}{significant(point.tokens_per_s_per_user)}",
        significant(point.usd_per_million_output_tokens) if one.chance is None else percent(one.chance),
        called(by.frontier),
        plan_words(by.point),
        *(change_words(one.changes[axis]) for axis in AXES),
    ]


def change_words(change: float) -> str:
    """Return a change in per cent, or from twice as much on as a factor; one that is not seen at three digits is none."""
    if change >= 1:
        return f"{significant(1 + change, 3)}x"
    return "=" if abs(change) < 5e-4 else f"{change * 100:+.1f} %" if abs(change) < 0.1 else f"{change * 100:+.0f} %"


def design_tables(frontiers: Sequence[Frontier], found: Sequence[Held]) -> list[Table]:
    """Return the designs that none beats, and those that are beaten."""
    held = held_table(found)
    return [free_table(frontiers, found), *([held] if held else [])]
