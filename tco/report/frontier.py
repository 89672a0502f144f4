"""Throughput and cost against interactivity: the answer of `tco frontier`, and with `--pareto`
designs held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tco.catalog import Catalogue
from tco.comparison.designs import AXES, Design
from tco.comparison.frontier_records import Frontier, Point
from tco.core.types import JsonObject
from tco.report.assumptions import (
    VALIDATED,
    formats_rows,
    premise,
    premise_lines,
    workload_line,
    workload_words,
)
from tco.report.ranges import RANGE, range_end_label, rounded_percent
from tco.report.record import Answer, Document, Maybe, Member, Record, record_of
from tco.report.table import Table, sentence, significant
from tco.scenario.metrics import METRICS, MORE_IS_BETTER

if TYPE_CHECKING:
    from tco.comparison.frontier_records import Band
    from tco.scenario.result import Result

One = TypeVar("One")
SHOWN = 16  # points of one table; every point is in CSV and JSON
BANDED = (
    "usd_per_million_output_tokens",
    "usd_per_million_tokens",
    "output_tokens_per_s_per_chip",
    "tokens_per_s_per_facility_mw",
)
ENDS = ("p10", "p50", "p90")
MEETS = "share_of_draws_that_meet_the_target"


def pool_scenario_names(frontier: Frontier) -> tuple[str, str]:
    """Return the scenarios of both pools, decode first."""
    return frontier.decode.result.scenario, frontier.prefill.result.scenario


Place = tuple[Frontier, int]  # a point of a frontier, and where it stands
POOL = Record("scenario", "system")
POOLS = Record(POOL.read_via("decode.result"), POOL.read_via("prefill.result", "prefill_"))
OF_POINT = record_of(Point).read_via(lambda one: one[0].points[one[1]])


def band_of(one: Place) -> Band | None:
    """Return the draws of a point, if there are any."""
    return one[0].bands[one[1]] if one[0].bands else None


# the share of the draws that reach the point's interactivity
MET = Member(MEETS, float, lambda band: float(band.meets.mean()), optional=True)
POINT = Record(
    OF_POINT, Record(Member("range", {str: RANGE}, "ranges", optional=True), MET).read_via(band_of)
)
BANDS = Record(
    *(
        Member(f"{metric}_{end}", float | None, f"ranges.{metric}.{end}")
        for metric in BANDED
        for end in ENDS
    ),
    MET,
)
USED_HOUR = Record(Member("tco_usd_per_used_chip_hour", float | None))
FRONTIER = Record(
    POOLS.read_via("0"),
    USED_HOUR.read_via("0.decode.result.metrics"),
    USED_HOUR.read_via("0.prefill.result.metrics", "prefill_"),
    Member(
        "interactivity_tokens_per_s",
        float,
        lambda found: found[0].decode.values["workload.interactivity"],
    ),
    Member("plans", int, "0.plans"),
    Member("feasible", int, "0.feasible"),
    Member("points", [POINT], lambda found: indexed_frontier_points([found[0]])),
    Member(
        "cost_against_own",
        float | None,
        lambda found: against_own(*found) if found[0].separate else None,
    ),
    Member("validated", VALIDATED, "0.decode.result"),
    Member("prefill_validated", VALIDATED, "0.prefill.result"),
    Member(
        "notes",
        [str],
        lambda found: [
            *filter(None, [found[0].reason, unsure_words(found[0])]),
            *found[0].decode.result.notes,
        ],
    ),
)
PLAN = ("chips", "tp", "cp", "pp", "batch")
CHANCE = "share_of_draws_in_which_it_is_beaten"
# rows shown of the designs that none beats, and of those of a system that are beaten
BEST, WORST = (
    20,
    6,
)
CONTEST = Record(
    POOLS.read_via("frontier"),
    *(Member(name, int, f"point.{name}") for name in PLAN),
    *(Member(axis, float, f"point.{axis}") for axis in AXES),
)
BEATER = Record(
    CONTEST.read_via("by"),
    Member("change", {str: float}, "changes"),
    Member(CHANCE, float, "chance", optional=True),
)
AXIS = Record(
    Member("metric", read=str),
    Member("unit", read=lambda axis: METRICS[axis].unit),
    Member("better", read=lambda axis: "more" if axis in MORE_IS_BETTER else "less"),
)
DESIGN = Record(
    CONTEST,
    Member("chosen", bool, "point.chosen"),
    Member("beaten_by", Maybe(BEATER), lambda one: one if one.by else None),
)
PARETO = Record(
    Member("axes", [AXIS], lambda _: AXES), Member("designs", [DESIGN], lambda designs: designs)
)
DOCUMENT = Document(
    "frontier",
    Member("frontiers", [FRONTIER], lambda found: [(one, found[0]) for one in found[0]]),
    Member("best", Maybe(POOLS), lambda found: next(iter(ranked(found[0])), None)),
    Member("pareto", PARETO, lambda found: found[1] or None, optional=True),
)


def frontier_answer(
    catalogue: Catalogue, frontiers: Sequence[Frontier], designs: Sequence[Design] | None = None
) -> Answer:
    """Return every frontier, or designs compared with each other.

    Args:
        catalogue: The catalogue that the frontiers rest on.
        frontiers: Frontiers of the scenarios.
        designs: Designs of all frontiers, beaten and unbeaten; None shows the frontiers alone.

    Returns:
        The answer of `tco frontier` in all formats; CSV has a row for each point or design.

    """
    notes = [
        f"{one.decode.result.scenario}: {note}"
        for one in frontiers
        for note in (*filter(None, [unsure_words(one)]), *one.decode.result.notes)
    ]
    drawn = any(frontier.bands for frontier in frontiers)

    def tables() -> list[Table]:
        if designs is not None:
            return [
                free_table(frontiers, designs),
                *([held_table(designs)] if any(one.by for one in designs) else []),
            ]
        if not any(frontier.separate for frontier in frontiers):
            return [frontier_table(frontier) for frontier in frontiers]
        return [pair_table(frontiers), *map(frontier_table, ranked(frontiers)[:1])]

    rows: tuple[Record, Sequence[Any]] = (
        (point_row(drawn), indexed_frontier_points(frontiers))
        if designs is None
        else (design_row(drawn), designs)
    )

    def context(one: Any) -> JsonObject:
        frontier: Frontier = one[0] if designs is None else one.frontier
        return frontier.decode.result.context  # of two pools it is that which decodes

    return DOCUMENT.answer(catalogue, (frontiers, designs), tables, rows, notes, of=context)


def indexed_frontier_points(frontiers: Sequence[Frontier]) -> list[Place]:
    """Return every point."""
    return [(frontier, place) for frontier in frontiers for place in range(len(frontier.points))]


def point_row(drawn: bool) -> Record:
    """Return the record of a row of a CSV: a point with both pools, and its bands where some are
    drawn.
    """
    return Record(POOLS.read_via("0"), OF_POINT, *([BANDS.read_via(band_of)] if drawn else []))


def against_own(frontier: Frontier, frontiers: Sequence[Frontier]) -> float | None:
    """Return the cost at the workload's interactivity over that of the decode system with a prefill
    pool of its own kind.
    """
    decode, _ = pool_scenario_names(frontier)
    own = next(
        (other for other in frontiers if pool_scenario_names(other) == (decode, decode)), None
    )
    if own is None or own.chosen is None or frontier.chosen is None:
        return None
    return frontier.chosen.usd_per_million_output_tokens / own.chosen.usd_per_million_output_tokens


def ranked(frontiers: Sequence[Frontier]) -> list[Frontier]:
    """Return the pairs of pools with a plan at the workload's interactivity, the cheapest first."""
    found = [frontier for frontier in frontiers if frontier.chosen is not None]
    return sorted(
        found,
        key=lambda frontier: (
            frontier.chosen.usd_per_million_output_tokens if frontier.chosen else 0.0
        ),
    )


def unsure_words(frontier: Frontier) -> str:
    """Return the reason for a missing range of a frontier.

    The text is empty where no range is missing.
    """
    return f"no range: {frontier.unsure}" if frontier.unsure else ""


def thinned(many: Sequence[One], is_chosen: Callable[[One], bool], most: int = SHOWN) -> list[One]:
    """Return some of many spread over all, with both ends and those that are chosen."""
    if len(many) <= most:
        return list(many)
    steps = {round(position * (len(many) - 1) / (most - 2)) for position in range(most - 1)}
    return [one for position, one in enumerate(many) if position in steps or is_chosen(one)]


def decode_instance_text(point: Point) -> str:
    """Return chips, tensor parallel and batch of a decode instance."""
    return f"{point.chips}/{point.tp}/{point.batch}"


def frontier_title(frontier: Frontier) -> str:
    """Return the systems of a frontier in words."""
    decode, prefill = frontier.decode.result, frontier.prefill.result
    return (
        f"{decode.title}, its prompts read by {prefill.title}"
        if frontier.separate
        else decode.title
    )


def frontier_table(frontier: Frontier) -> Table:
    """Return one frontier as a table."""
    pools = (frontier.decode.result, frontier.prefill.result)
    standings = dict.fromkeys(sentence(one.standing.text) for one in pools)
    above = [workload_words(pools[0]), premise(pools[0]), *standings]
    if not frontier.points:
        return Table((), [], frontier_title(frontier), above, [f"No point: {frontier.reason}."])
    places = thinned(range(len(frontier.points)), lambda place: frontier.points[place].chosen)
    rows = []
    for place in places:
        point = frontier.points[place]
        beside = (significant(point.usd_per_million_tokens, 3), significant(point.ttft_s, 3))
        if frontier.bands:
            beside = (
                band_words(frontier.bands[place]),
                rounded_percent(MET.of(frontier.bands[place])),
            )
        marks = "*" * point.chosen + "+" * point.cheapest
        rows.append(
            (
                *map(
                    significant,
                    (
                        point.tokens_per_s_per_user,
                        point.output_tokens_per_s_per_chip,
                        point.usd_per_million_output_tokens,
                    ),
                ),
                *(
                    *beside,
                    decode_instance_text(point),
                    f"{point.bound} {point.bound_share * 100:.0f} % {marks}".rstrip(),
                ),
            )
        )
    below = [
        f"{len(frontier.points)} points that no other of {frontier.plans:,} pairs of plans beats, "
        f"{len(places)} shown; {frontier.feasible:,} fit.",
        "* the cheapest at this workload's interactivity; + no other system of the call is "
        "cheaper.",
        "Output tokens/s for each user and each chip, those that prefill among them. All are "
        "estimates.",
        "plan: chips/tensor parallel/batch of a decode instance; a prefill instance has "
        f"{frontier.points[places[0]].prefill_chips} chips.",
    ]
    if frontier.bands:
        plan = "of the point held" if frontier.hold else "re-optimised in each"
        below.append(
            f"P10 to P90 of $/M out: every input drawn within its low and high, the plan {plan}, "
            "the batch solved for the point's tokens/s a user; "
            "draws: the share that reaches them. The others lie beyond P90 as costs without end."
        )
    columns = (
        "per user",
        "per chip",
        "$/M out",
        *(("P10 to P90", "draws") if frontier.bands else ("$/M all", "TTFT s")),
        "plan",
        "bound by",
    )
    return Table(columns, rows, frontier_title(frontier), above, below, "rrrrrll")


def band_words(band: Band) -> str:
    """Return P10 and P90 of the cost of a point."""
    found = band.ranges[BANDED[0]]
    return (
        "-"
        if found is None
        else " to ".join(range_end_label(BANDED[0], found[end]) for end in ("p10", "p90"))
    )


def pair_table(frontiers: Sequence[Frontier]) -> Table:
    """Return the pairs of pools at the workload's interactivity, the cheapest first."""
    rows = []
    for frontier, point in ((one, one.chosen) for one in ranked(frontiers)):
        change, (decode, prefill) = against_own(frontier, frontiers), pool_scenario_names(frontier)
        if point is not None:
            figures = (
                point.prefill_chips_per_decode_chip,
                point.ttft_s,
                (point.hand_over_s or 0.0) * 1e3,
            )
            cost = significant(point.usd_per_million_output_tokens)
            rows.append(
                (
                    prefill,
                    decode,
                    *(significant(one, 3) for one in figures),
                    cost,
                    "" if change is None else f"{(change - 1) * 100:+.1f} %",
                )
            )
    above = [workload_words(frontiers[0].decode.result), *premise_lines(results_of(frontiers))]
    below = []
    for frontier in (one for one in frontiers if one.chosen is None):
        why = (
            frontier.reason
            or f"no plan gives {frontier.decode.values['workload.interactivity']:g} tokens/s a user"
        )
        below.append(
            f"{pool_scenario_names(frontier)[1]} for {pool_scenario_names(frontier)[0]}: {why}."
        )
    below += [
        "ratio: prefilling chips for each decoding one. KV ms: a prompt's cache over the scale-out "
        "network, after the prompt.",
        "vs own: against a prefill pool of the decode system. Each pool costs what its own "
        "scenario says. All are estimates.",
    ]
    columns = ("prefill", "decode", "ratio", "TTFT s", "KV ms", "$/M out", "vs own")
    return Table(columns, rows, "Pairs of pools, the cheapest first", above, below, "llrrrrr")


def results_of(frontiers: Sequence[Frontier]) -> list[Result]:
    """Return the results of all pools, each once."""
    return list(
        {
            pool.result.scenario: pool.result
            for frontier in frontiers
            for pool in (frontier.decode, frontier.prefill)
        }.values()
    )


# ---------------------------------------------------------------- designs held against each other
def frontier_scenario_label(frontier: Frontier) -> str:
    """Return the scenario of a frontier, and that of its prefill pool where it is another."""
    decode, prefill = pool_scenario_names(frontier)
    return decode if decode == prefill else f"{decode} with {prefill}"


def design_row(drawn: bool) -> Record:
    """Return the record of a row of a CSV: a design, what beats it, and by which share that has
    more or less.
    """
    by = [
        field
        for field in CONTEST.read_via("by", "beaten_by_").members
        if field.key.removeprefix("beaten_by_") not in AXES
    ]
    return Record(
        point_row(drawn).read_via(lambda one: (one.frontier, one.place)),
        *by,
        *(Member(f"change_of_{axis}", float | None, f"changes.{axis}") for axis in AXES),
        *([Member(CHANCE, float | None, "chance")] if drawn else []),
    )


def free_table(frontiers: Sequence[Frontier], found: Sequence[Design]) -> Table:
    """Return the designs that none beats, the quickest first."""
    results = results_of(frontiers)
    free = [one for one in found if one.by is None]
    shown = thinned(free, lambda design: design.point.chosen, BEST)
    rows = []
    for design in shown:
        figures = (
            significant(getattr(design.point, axis))
            for axis in ("tokens_per_s_per_user", *AXES[1::2], AXES[0])
        )
        rows.append(
            (
                frontier_scenario_label(design.frontier),
                *figures,
                decode_instance_text(design.point),
                "*" * design.point.chosen,
            )
        )
    above = [
        workload_line(results),
        *premise_lines(results),
        *(f"{result.scenario}: {result.standing.text}" for result in results),
    ]
    above += [
        f"{words}: {', '.join(dict.fromkeys(forms))}" for words, *forms in formats_rows(results)
    ]
    counts = {
        frontier_scenario_label(frontier): sum(one.frontier is frontier for one in free)
        for frontier in frontiers
        if frontier.points
    }
    apart = len({frontier.decode.workload for frontier in frontiers}) > 1
    below = [
        f"{len(free)} of {len(found)} designs (a system on one of its plans): "
        f"{', '.join(f'{many} of {name}' for name, many in counts.items())}.",
        "None is as good or better in cost, output tokens a chip, a user and a site MW, and better "
        "in one.",
        "* the cheapest at this workload's interactivity. plan: chips/tensor parallel/batch of a "
        "decode instance. All are estimates.",
        *(
            ["A design is held against those of its own workload, date and owner alone."]
            if apart
            else []
        ),
        *(
            f"{frontier_scenario_label(frontier)}: {frontier.reason}."
            for frontier in frontiers
            if not frontier.points
        ),
    ]
    return Table(
        ("design", "per user", "per chip", "per MW", "$/M out", "plan", ""),
        rows,
        "Designs no other beats",
        above,
        below,
        "lrrrrll",
    )


def held_table(found: Sequence[Design]) -> Table:
    """Return designs that are beaten, system by system, each with what beats it and by how much on
    every axis.
    """
    rows: list[Sequence[str]] = []
    for name in dict.fromkeys(frontier_scenario_label(one.frontier) for one in found):
        every = [one for one in found if frontier_scenario_label(one.frontier) == name]
        some = [one for one in every if one.by is not None]
        if some:
            rows.append([f"{name}: {len(some)} of {len(every)} designs are beaten", *([""] * 7)])
        for one in thinned(some, lambda one: one.point.chosen, WORST):
            if one.by is not None:
                point, changes = one.point, (change_words(one.changes[axis]) for axis in AXES)
                beside = (
                    significant(point.usd_per_million_output_tokens)
                    if one.chance is None
                    else rounded_percent(one.chance)
                )
                speed = "*" * point.chosen + significant(point.tokens_per_s_per_user)
                rows.append(
                    [
                        speed,
                        beside,
                        frontier_scenario_label(one.by.frontier),
                        decode_instance_text(one.by.point),
                        *changes,
                    ]
                )
    below = [
        "Of those that beat a design the one is named that leads most where it leads least. "
        "Changes: from the design to what beats it, in cost, "
        "output tokens a chip, a user and a site MW. Every design is in --format csv and json."
    ]
    drawn = any(one.chance is not None for one in found)
    below += (
        [
            "draws: of those in which both keep their tokens/s a user, the share in which the "
            "design is beaten still."
        ]
        if drawn
        else []
    )
    columns = (
        "per user",
        "draws" if drawn else "$/M out",
        "beaten by",
        "its plan",
        "$/M",
        "chip",
        "user",
        "MW",
    )
    return Table(columns, rows, "Designs that are beaten", (), below, "rrllrrrr")


def change_words(change: float) -> str:
    """Return a change in per cent, or from twice as much on as a factor; one that is not seen at
    three digits is none.
    """
    if change >= 1:
        return f"{significant(1 + change, 3)}x"
    return (
        "="
        if abs(change) < 5e-4
        else f"{change * 100:+.1f} %"
        if abs(change) < 0.1
        else f"{change * 100:+.0f} %"
    )
