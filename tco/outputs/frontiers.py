"""Throughput and cost against interactivity: the answer of `tco frontier`, and with `--pareto` designs held against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from tco.catalog import Catalogue
from tco.chain.metrics import METRICS, MORE_IS_BETTER
from tco.outputs.premises import VALIDATED, formats_rows, premise, premises, workload_line, workload_words
from tco.outputs.ranges import RANGE, end_words, percent
from tco.outputs.record import Answer, Document, Maybe, Member, Record, record_of
from tco.outputs.table import Table, significant
from tco.studies.designs import AXES, Design
from tco.studies.frontier import Frontier, Point

if TYPE_CHECKING:
    from tco.studies.designs import Band

One = TypeVar("One")
SHOWN = 16  # points of one table; every point is in CSV and JSON
BANDED = ("usd_per_million_output_tokens", "usd_per_million_tokens", "output_tokens_per_s_per_chip", "tokens_per_s_per_facility_mw")
ENDS = ("p10", "p50", "p90")
MEETS = "share_of_draws_that_meet_the_target"
COLUMNS = ("per user", "per chip", "$/M out", "$/M all", "TTFT s", "plan", "bound by")
WITH_BANDS = ("per user", "per chip", "$/M out", "P10 to P90", "draws", "plan", "bound by")
DRAWN = (
    "P10 to P90 of $/M out: every input drawn within its low and high, the plan {plan}, the batch solved for the point's tokens/s a user;",
    "draws: the share that reaches them. The others lie beyond P90 as costs without end.",
)
PAIRS = ("prefill", "decode", "ratio", "TTFT s", "KV ms", "$/M out", "vs own")


def names(frontier: Frontier) -> tuple[str, str, str, str]:
    """Return the scenarios and systems of both pools, decode first."""
    decode, prefill = frontier.decode.result, frontier.prefill.result
    return decode.scenario, decode.system, prefill.scenario, prefill.system


Place = tuple[Frontier, int]  # a point of a frontier, and where it stands
POOLS = Record(
    Member("scenario", read="decode.result.scenario"),
    Member("system", read="decode.result.system"),
    Member("prefill_scenario", read="prefill.result.scenario"),
    Member("prefill_system", read="prefill.result.system"),
)
OF_POINT = Record(*record_of(Point).within(lambda one: one[0].points[one[1]]))


def band_of(one: Place) -> Band | None:
    """Return the draws of a point, if there are any."""
    return one[0].bands[one[1]] if one[0].bands else None


def share_met(band: Band) -> float:
    """Return the share of the draws that reach the interactivity of a point."""
    return float(band.meets.mean())


MET = Member(MEETS, float, share_met, optional=True)
POINT = Record(*OF_POINT.members, *Record(Member("range", {str: RANGE}, "ranges", optional=True), MET).within(band_of))
BANDS = Record(*(Member(f"{metric}_{end}", float | None, f"ranges.{metric}.{end}") for metric in BANDED for end in ENDS), MET)
FRONTIER = Record(
    *POOLS.within("0"),
    Member("tco_usd_per_used_chip_hour", float | None, "0.decode.result.metrics.tco_usd_per_used_chip_hour"),
    Member("prefill_tco_usd_per_used_chip_hour", float | None, "0.prefill.result.metrics.tco_usd_per_used_chip_hour"),
    Member("interactivity_tokens_per_s", float, lambda found: found[0].decode.values["workload.interactivity"]),
    Member("plans", int, "0.plans"),
    Member("feasible", int, "0.feasible"),
    Member("points", [POINT], lambda found: places_of([found[0]])),
    Member("cost_against_own", float | None, lambda found: against_own(*found) if found[0].separate else None),
    Member("validated", VALIDATED, "0.decode.result"),
    Member("prefill_validated", VALIDATED, "0.prefill.result"),
    Member("notes", [str], lambda found: [*filter(None, [found[0].reason, unsure_words(found[0])]), *found[0].decode.result.notes]),
)
PLAN = ("chips", "tp", "cp", "pp", "batch")
CHANCE = "share_of_draws_in_which_it_is_beaten"
BEST, WORST = 20, 6  # rows shown of the designs that none beats, and of those of a system that are beaten
FREE = ("design", "per user", "per chip", "per MW", "$/M out", "plan", "")
HELD = ("per user", "$/M out", "beaten by", "its plan", "$/M", "chip", "user", "MW")
CONTEST = Record(
    *POOLS.within("frontier"),
    *(Member(name, int, f"point.{name}") for name in PLAN),
    *(Member(axis, float, f"point.{axis}") for axis in AXES),
)
BEATER = Record(
    *CONTEST.within("by"),
    Member("change", {str: float}, "changes"),
    Member(CHANCE, float, "chance", optional=True),
)
AXIS = Record(
    Member("metric", read=str),
    Member("unit", read=lambda axis: METRICS[axis].unit),
    Member("better", read=lambda axis: "more" if axis in MORE_IS_BETTER else "less"),
)
PARETO = Record(
    Member("axes", [AXIS], lambda _: AXES),
    Member(
        "designs",
        [
            Record(
                *CONTEST.within("design"),
                Member("chosen", bool, "design.point.chosen"),
                Member("beaten_by", Maybe(BEATER), lambda one: one if one.by else None),
            )
        ],
        lambda designs: designs,
    ),
)
DOCUMENT = Document(
    "frontier",
    Member("frontiers", [FRONTIER], lambda found: [(one, found[0]) for one in found[0]]),
    Member("best", Maybe(POOLS), lambda found: next(iter(ranked(found[0])), None)),
    Member("pareto", PARETO, lambda found: found[1] or None, optional=True),
)


def frontier_answer(catalogue: Catalogue, frontiers: Sequence[Frontier], designs: Sequence[Design] | None = None) -> Answer:
    """Return every frontier, or where designs are held against each other those that none beats and those that are beaten."""
    notes = [f"{one.decode.result.scenario}: {note}" for one in frontiers for note in (*filter(None, [unsure_words(one)]), *one.decode.result.notes)]
    drawn = any(frontier.bands for frontier in frontiers)
    if designs is not None:
        return DOCUMENT.answer(
            catalogue,
            (frontiers, designs),
            lambda: design_tables(frontiers, designs),
            (design_row(drawn), designs),
            notes,
            of=lambda one: one.frontier.decode.result.context,
        )
    return DOCUMENT.answer(
        catalogue,
        (frontiers, None),
        lambda: frontier_tables(frontiers),
        (point_row(drawn), places_of(frontiers)),
        notes,
        of=lambda one: one[0].decode.result.context,  # of two pools it is that which decodes
    )


def places_of(frontiers: Sequence[Frontier]) -> list[Place]:
    """Return every point."""
    return [(frontier, place) for frontier in frontiers for place in range(len(frontier.points))]


def point_row(drawn: bool) -> Record:
    """Return the record of a row of a CSV: a point with both pools, and its bands where some are drawn."""
    return Record(*POOLS.within("0"), *OF_POINT.members, *(BANDS.within(band_of) if drawn else ()))


def own_pair(frontier: Frontier, frontiers: Sequence[Frontier]) -> Frontier | None:
    """Return the frontier on which the decode pool's system also prefills."""
    decode = frontier.decode.result.scenario
    return next((other for other in frontiers if other.decode.result.scenario == other.prefill.result.scenario == decode), None)


def against_own(frontier: Frontier, frontiers: Sequence[Frontier]) -> float | None:
    """Return the cost at the workload's interactivity over that of the decode system with a prefill pool of its own kind."""
    own = own_pair(frontier, frontiers)
    if own is None or own.chosen is None or frontier.chosen is None:
        return None
    return frontier.chosen.usd_per_million_output_tokens / own.chosen.usd_per_million_output_tokens


def ranked(frontiers: Sequence[Frontier]) -> list[Frontier]:
    """Return the pairs of pools with a plan at the workload's interactivity, the cheapest first."""
    found = [frontier for frontier in frontiers if frontier.chosen is not None]
    return sorted(found, key=lambda frontier: frontier.chosen.usd_per_million_output_tokens if frontier.chosen else 0.0)


def unsure_words(frontier: Frontier) -> str:
    """Say why nothing was drawn that was to be."""
    return f"no range: {frontier.unsure}" if frontier.unsure else ""


def thinned(many: Sequence[One], is_chosen: Callable[[One], bool], most: int = SHOWN) -> list[One]:
    """Return some of many spread over all, with both ends and those that are chosen."""
    if len(many) <= most:
        return list(many)
    steps = {round(position * (len(many) - 1) / (most - 2)) for position in range(most - 1)}
    return [one for position, one in enumerate(many) if position in steps or is_chosen(one)]


def plan_words(point: Point) -> str:
    """Return chips, tensor parallel and batch of a decode instance."""
    return f"{point.chips}/{point.tp}/{point.batch}"


def title_of(frontier: Frontier) -> str:
    """Return the systems of a frontier in words."""
    decode, prefill = frontier.decode.result, frontier.prefill.result
    return f"{decode.title}, its prompts read by {prefill.title}" if frontier.separate else decode.title


def standings(frontier: Frontier) -> list[str]:
    """Return how the performance of each pool's chip stands against measurements."""
    texts = dict.fromkeys(pool.result.standing.text for pool in (frontier.decode, frontier.prefill))
    return [text[0].upper() + text[1:] for text in texts]


def frontier_table(frontier: Frontier) -> Table:
    """Return one frontier as a table."""
    above = [workload_words(frontier.decode.result), premise(frontier.decode.result), *standings(frontier)]
    if not frontier.points:
        return Table((), [], title_of(frontier), above, [f"No point: {frontier.reason}."])
    places = thinned(range(len(frontier.points)), lambda place: frontier.points[place].chosen)
    points = [frontier.points[place] for place in places]
    rows = [
        (
            significant(point.tokens_per_s_per_user),
            significant(point.output_tokens_per_s_per_chip),
            significant(point.usd_per_million_output_tokens),
            *(
                (band_words(frontier.bands[place]), percent(share_met(frontier.bands[place])))
                if frontier.bands
                else (significant(point.usd_per_million_tokens, 3), significant(point.ttft_s, 3))
            ),
            plan_words(point),
            f"{point.bound} {point.bound_share * 100:.0f} % {'*' if point.chosen else ''}{'+' if point.cheapest else ''}".rstrip(),
        )
        for place, point in zip(places, points, strict=True)
    ]
    below = [
        f"{len(frontier.points)} points that no other of {frontier.plans:,} pairs of plans beats, {len(points)} shown; {frontier.feasible:,} fit.",
        "* the cheapest at this workload's interactivity; + no other system of the call is cheaper.",
        "Output tokens/s for each user and each chip, those that prefill among them. All are estimates.",
        f"plan: chips/tensor parallel/batch of a decode instance; a prefill instance has {points[0].prefill_chips} chips.",
    ]
    if not frontier.bands:
        return Table(COLUMNS, rows, title_of(frontier), above, below, "rrrrrll")
    below.append(" ".join(DRAWN).format(plan="of the point held" if frontier.hold else "re-optimised in each"))
    return Table(WITH_BANDS, rows, title_of(frontier), above, below, "rrrrrll")


def band_words(band: Band) -> str:
    """Return P10 and P90 of the cost of a point."""
    found = band.ranges[BANDED[0]]
    return "-" if found is None else " to ".join(end_words(BANDED[0], found[end]) for end in ("p10", "p90"))


def pair_table(frontiers: Sequence[Frontier]) -> Table:
    """Return the pairs of pools at the workload's interactivity, the cheapest first."""
    rows = []
    for frontier in ranked(frontiers):
        point = frontier.chosen
        if point is None:
            continue
        change = against_own(frontier, frontiers)
        decode, _, prefill, _ = names(frontier)
        rows.append(
            (
                prefill,
                decode,
                significant(point.prefill_chips_per_decode_chip, 3),
                significant(point.ttft_s, 3),
                significant((point.hand_over_s or 0.0) * 1e3, 3),
                significant(point.usd_per_million_output_tokens),
                "" if change is None else f"{(change - 1) * 100:+.1f} %",
            )
        )
    results = {pool.result.scenario: pool.result for frontier in frontiers for pool in (frontier.decode, frontier.prefill)}
    above = [workload_words(frontiers[0].decode.result), *premises(list(results.values()))]
    below = [f"{names(frontier)[2]} for {names(frontier)[0]}: {without_point(frontier)}." for frontier in frontiers if frontier.chosen is None]
    below += [
        "ratio: prefilling chips for each decoding one. KV ms: a prompt's cache over the scale-out network, after the prompt.",
        "vs own: against a prefill pool of the decode system. Each pool costs what its own scenario says. All are estimates.",
    ]
    return Table(PAIRS, rows, "Pairs of pools, the cheapest first", above, below, "llrrrrr")


def without_point(frontier: Frontier) -> str:
    """Say why a pair has no plan at the workload's interactivity."""
    return frontier.reason or f"no plan gives {frontier.decode.values['workload.interactivity']:g} tokens/s a user"


def frontier_tables(frontiers: Sequence[Frontier]) -> list[Table]:
    """Return the tables: every frontier, or with separate pools the pairs and the frontier of the best."""
    if not any(frontier.separate for frontier in frontiers):
        return [frontier_table(frontier) for frontier in frontiers]
    best = ranked(frontiers)
    return [pair_table(frontiers), *([frontier_table(best[0])] if best else [])]


# ---------------------------------------------------------------- designs held against each other
def called(frontier: Frontier) -> str:
    """Return the scenario of a frontier, and that of its prefill pool where it is another."""
    decode, _, prefill, _ = names(frontier)
    return decode if decode == prefill else f"{decode} with {prefill}"


def design_row(drawn: bool) -> Record:
    """Return the record of a row of a CSV: a design, what beats it, and by which share that has more or less."""
    by = [field for field in CONTEST.within("by", "beaten_by_") if field.key.removeprefix("beaten_by_") not in AXES]
    return Record(
        *point_row(drawn).within(lambda one: (one.frontier, one.place)),
        *by,
        *(Member(f"change_of_{axis}", float | None, f"changes.{axis}") for axis in AXES),
        *([Member(CHANCE, float | None, "chance")] if drawn else []),
    )


def free_table(frontiers: Sequence[Frontier], found: Sequence[Design]) -> Table:
    """Return the designs that none beats, the quickest first."""
    results = list({pool.result.scenario: pool.result for frontier in frontiers for pool in (frontier.decode, frontier.prefill)}.values())
    free = [one for one in found if one.by is None]
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


def held_table(found: Sequence[Design]) -> Table | None:
    """Return designs that are beaten, system by system, each with what beats it and by how much on every axis; none where there are none."""
    rows: list[Sequence[str]] = []
    for name in dict.fromkeys(called(one.frontier) for one in found):
        every = [one for one in found if called(one.frontier) == name]
        some = [one for one in every if one.by is not None]
        if some:
            rows.append([f"{name}: {len(some)} of {len(every)} designs are beaten", *([""] * (len(HELD) - 1))])
            rows += [held_row(one) for one in thinned(some, lambda one: one.point.chosen, WORST)]
    below = [
        "Of those that beat a design the one is named that leads most where it leads least. Changes: from the design to what beats it, in cost, "
        "output tokens a chip, a user and a site MW. Every design is in --format csv and json."
    ]
    columns = HELD
    if any(one.chance is not None for one in found):
        columns = (HELD[0], "draws", *HELD[2:])
        below.append("draws: of those in which both keep their tokens/s a user, the share in which the design is beaten still.")
    return Table(columns, rows, "Designs that are beaten", (), below, "rrllrrrr") if rows else None


def held_row(one: Design) -> list[str]:
    """Return a design that is beaten as a row."""
    by, point = one.by, one.point
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


def design_tables(frontiers: Sequence[Frontier], found: Sequence[Design]) -> list[Table]:
    """Return the designs that none beats, and those that are beaten."""
    held = held_table(found)
    return [free_table(frontiers, found), *([held] if held else [])]
