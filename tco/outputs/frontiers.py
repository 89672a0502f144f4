"""Throughput and cost against interactivity: the tables, rows and document of `tco frontier`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tco.outputs.comparison import premise, premises, validation, workload_words
from tco.outputs.document import number
from tco.outputs.ranges import end_words, percent
from tco.outputs.table import Table, significant
from tco.studies.frontier import Frontier, Point

if TYPE_CHECKING:
    from tco.studies.bands import Band

One = TypeVar("One")
HEADER = ("scenario", "system", "prefill_scenario", "prefill_system", *Point._fields)
SHOWN = 16  # points of one table; every point is in CSV and JSON
BANDED = ("usd_per_million_output_tokens", "usd_per_million_tokens", "output_tokens_per_s_per_chip", "tokens_per_s_per_facility_mw")
ENDS = ("p10", "p50", "p90")
MEETS = "share_of_draws_that_meet_the_target"
BANDS = (*(f"{metric}_{end}" for metric in BANDED for end in ENDS), MEETS)
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


def frontier_header(frontiers: Sequence[Frontier]) -> tuple[str, ...]:
    """Return the CSV columns: those of bands only where there are some."""
    return (*HEADER, *(BANDS if any(frontier.bands for frontier in frontiers) else ()))


def frontier_rows(frontiers: Sequence[Frontier]) -> list[list[Any]]:
    """Return the CSV rows: every point."""
    drawn = any(frontier.bands for frontier in frontiers)
    return [point_row(frontier, place, drawn) for frontier in frontiers for place in range(len(frontier.points))]


def point_row(frontier: Frontier, place: int, drawn: bool) -> list[Any]:
    """Return one point as a CSV row, a flag as 1 or 0; empty cells for what was not drawn."""
    row = [*names(frontier), *(int(cell) if isinstance(cell, bool) else cell for cell in frontier.points[place])]
    if not drawn:
        return row
    band = band_keys(frontier, place)
    found = band.get("range", {})
    ends = [(found.get(metric) or {}).get(end) for metric in BANDED for end in ENDS]
    return [*row, *ends, band.get(MEETS)]


def band_keys(frontier: Frontier, place: int) -> dict[str, Any]:
    """Return what the draws say of a point, as its document has it; nothing where nothing was drawn."""
    if not frontier.bands:
        return {}
    band = frontier.bands[place]
    return {"range": band.ranges, MEETS: float(band.meets.mean())}


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


def frontier_document(frontiers: Sequence[Frontier]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    rows = []
    for frontier in frontiers:
        decode, prefill = frontier.decode, frontier.prefill
        rows.append(
            {
                **dict(zip(HEADER[:4], names(frontier), strict=True)),
                "tco_usd_per_used_chip_hour": decode.result.metrics["tco_usd_per_used_chip_hour"],
                "prefill_tco_usd_per_used_chip_hour": prefill.result.metrics["tco_usd_per_used_chip_hour"],
                "interactivity_tokens_per_s": number(decode.values["workload.interactivity"]),
                "plans": frontier.plans,
                "feasible": frontier.feasible,
                "points": [point._asdict() | band_keys(frontier, place) for place, point in enumerate(frontier.points)],
                "cost_against_own": against_own(frontier, frontiers) if frontier.separate else None,
                "validated": validation(decode.result),
                "prefill_validated": validation(prefill.result),
                "notes": [*filter(None, [frontier.reason, unsure_words(frontier)]), *decode.result.notes],
            }
        )
    best = ranked(frontiers)
    return {"frontiers": rows, "best": dict(zip(HEADER[:4], names(best[0]), strict=True)) if best else None}


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
                (band_words(frontier.bands[place]), percent(float(frontier.bands[place].meets.mean())))
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
