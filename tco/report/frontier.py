"""Throughput and cost against interactivity: the answer of `tco frontier`.

With `--pareto` it compares designs with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tco.catalog import Catalogue
from tco.comparison.designs import AXES, Design
from tco.comparison.frontier_records import BANDED, Frontier, Point
from tco.core.mappings import lists_by_key
from tco.core.types import JsonObject
from tco.evaluation.side_by_side import speed_of
from tco.report.assumptions import (
    VALIDATED,
    formats_rows,
    premise,
    premise_lines,
    workload_line,
    workload_words,
)
from tco.report.ranges import RANGE, base_case_words, figures, range_end_label, rounded_percent
from tco.report.record import Answer, Document, Maybe, Member, Record, record_of
from tco.report.table import Table, fixed_digits, sentence
from tco.sampling.uncertainty import COST
from tco.scenario.metrics import METRICS, MORE_IS_BETTER

if TYPE_CHECKING:
    from tco.comparison.frontier_records import Band
    from tco.sampling.median import DrawnMetric
    from tco.scenario.result import Result

Item = TypeVar("Item")
SHOWN = 16  # points of one table; every point is in CSV and JSON
# rows shown of the designs that none beats, and of those of a system that are beaten
BEST, WORST = 20, 6
ENDS = ("p10", "p50", "p90")
CHANCE = "share_of_draws_in_which_it_is_beaten"


class RankedFrontier(NamedTuple):
    """A frontier among all of the call."""

    frontier: Frontier
    frontiers: Sequence[Frontier]

    @property
    def cost_against_own(self) -> float | None:
        """Cost at the workload's interactivity over that with a prefill pool of the own kind."""
        if not self.frontier.separate:
            return None
        decode, _ = _pool_names(self.frontier)
        same_kind = (
            frontier for frontier in self.frontiers if _pool_names(frontier) == (decode, decode)
        )
        reference = next(same_kind, None)
        if reference is None or reference.chosen is None or self.frontier.chosen is None:
            return None
        cost = self.frontier.chosen.usd_per_million_output_tokens
        return cost / reference.chosen.usd_per_million_output_tokens


def _pool_names(frontier: Frontier) -> tuple[str, str]:
    # decode first
    return frontier.decode.result.scenario, frontier.prefill.result.scenario


def _points_of(frontier: Frontier) -> list[Design]:
    return [Design(frontier, point_index) for point_index in range(len(frontier.points))]


def _missing_words(frontier: Frontier) -> list[str]:
    # why its range is missing
    return [f"no range: {frontier.unsure}"] if frontier.unsure else []


POINT = record_of(Point)
POOL = Record("scenario", "system")
POOLS = Record(POOL.read_via("decode.result"), POOL.read_via("prefill.result", "prefill_"))
# the share of the draws that reach the point's interactivity
MEETS = Member("share_of_draws_that_meet_the_target", float, optional=True)
USED_HOUR = figures("tco_usd_per_used_chip_hour")
FRONTIER = Record(
    Record(
        POOLS,
        USED_HOUR.read_via("decode.result.metrics"),
        USED_HOUR.read_via("prefill.result.metrics", "prefill_"),
        Member(
            "interactivity_tokens_per_s",
            float,
            lambda frontier: frontier.decode.values["workload.interactivity"],
        ),
        Member("range", Maybe(figures("p10", "p50", "p90")), "drawn"),
        Member("plans", int),
        Member("feasible", int),
        Member(
            "points",
            [
                Record(
                    POINT.read_via("point"),
                    Record(Member("range", {str: RANGE}, "ranges", optional=True), MEETS).read_via(
                        "band"
                    ),
                )
            ],
            _points_of,
        ),
    ).read_via("frontier"),
    Member("cost_against_own", float | None),
    Record(
        Member("validated", VALIDATED, "decode.result"),
        Member("prefill_validated", VALIDATED, "prefill.result"),
        Member(
            "notes",
            [str],
            lambda frontier: [
                *filter(None, [frontier.reason]),
                *_missing_words(frontier),
                *frontier.decode.result.notes,
            ],
        ),
    ).read_via("frontier"),
)
PLAN = Record(
    POOLS.read_via("frontier"),
    POINT.only("chips", "tp", "cp", "pp", "batch").read_via("point"),
)
CONTEST = Record(PLAN, POINT.only(*AXES).read_via("point"))
PARETO = Record(
    Member(
        "axes",
        [
            Record(
                Member("metric", read=str),
                Member("unit", read=lambda axis: METRICS[axis].unit),
                Member("better", read=lambda axis: "more" if axis in MORE_IS_BETTER else "less"),
            )
        ],
        lambda _: AXES,
    ),
    Member(
        "designs",
        [
            Record(
                CONTEST,
                Member("chosen", bool, "point.chosen"),
                Member(
                    "beaten_by",
                    Maybe(
                        Record(
                            CONTEST.read_via("by"),
                            Member("change", {str: float}, "changes"),
                            Member(CHANCE, float, "chance", optional=True),
                        )
                    ),
                    lambda design: design if design.by else None,
                ),
            )
        ],
        list,
    ),
)
DOCUMENT = Document(
    "frontier",
    Member("frontiers", [FRONTIER]),
    Member("best", Maybe(POOLS)),
    Member("pareto", PARETO, optional=True),
)


def frontier_answer(
    catalogue: Catalogue, frontiers: Sequence[Frontier], designs: Sequence[Design] | None
) -> Answer:
    """Answer with every frontier, or with designs compared with each other.

    Args:
        catalogue: The catalogue that the frontiers rest on.
        frontiers: Frontiers of the scenarios.
        designs: Designs of all frontiers, beaten and unbeaten; None shows the frontiers alone.

    Returns:
        The answer of `tco frontier` in all formats; CSV has a row for each point or design.

    """
    notes = [
        f"{frontier.decode.result.scenario}: {note}"
        for frontier in frontiers
        for note in (*_missing_words(frontier), *frontier.decode.result.notes)
    ]
    content = {
        "frontiers": [RankedFrontier(frontier, frontiers) for frontier in frontiers],
        "best": next(iter(_ranked(frontiers)), None),
        "pareto": designs or None,
    }
    points = [point for frontier in frontiers for point in _points_of(frontier)]
    drawn = any(frontier.bands for frontier in frontiers)
    point_record, points = (
        (_point_row(drawn), points) if designs is None else (_design_row(drawn), list(designs))
    )

    def tables() -> list[Table]:
        if designs is not None:
            beaten = [_beaten_table(designs)] if any(design.by for design in designs) else []
            return [_free_table(frontiers, designs), *beaten]
        if not any(frontier.separate for frontier in frontiers):
            several = len(frontiers) > 1
            return _lines_once(
                [frontier_table(frontier, frontier.drawn, several) for frontier in frontiers]
            )
        return [_pair_table(frontiers), *map(frontier_table, _ranked(frontiers)[:1])]

    def context(point: Design) -> JsonObject:
        # of two pools that of the pool which decodes
        return point.frontier.decode.result.context

    return DOCUMENT.answer(catalogue, content, tables, (point_record, points), notes, of=context)


def _point_row(drawn: bool) -> Record:
    """Return the record of a CSV row: a point with both pools, and its bands if drawn."""
    bands = [
        figures(*ENDS).read_via(f"ranges.{metric}", f"{metric}_").read_via("band")
        for metric in BANDED
    ]
    return Record(
        POOLS.read_via("frontier"),
        POINT.read_via("point"),
        *([*bands, Record(MEETS).read_via("band")] if drawn else []),
    )


def _design_row(drawn: bool) -> Record:
    """Return the record of a CSV row: a design, and what beats it by which share."""
    return Record(
        _point_row(drawn),
        PLAN.read_via("by", "beaten_by_"),
        figures(*AXES).read_via("changes", "change_of_"),
        *([Member(CHANCE, float | None, "chance")] if drawn else []),
    )


def _ranked(frontiers: Sequence[Frontier]) -> list[Frontier]:
    """Sort the pools with a plan at the workload's interactivity, the cheapest first."""
    costs = [
        (frontier.chosen.usd_per_million_output_tokens, position)
        for position, frontier in enumerate(frontiers)
        if frontier.chosen is not None
    ]
    return [frontiers[position] for _, position in sorted(costs)]


def _thinned(
    items: Sequence[Item], is_chosen: Callable[[Item], bool], most: int = SHOWN
) -> list[Item]:
    """Thin items evenly, with both ends and those that are chosen."""
    if len(items) <= most:
        return list(items)
    steps = {round(position * (len(items) - 1) / (most - 2)) for position in range(most - 1)}
    return [item for position, item in enumerate(items) if position in steps or is_chosen(item)]


def _instance_text(point: Point) -> str:
    # chips, tensor parallel and batch of a decode instance
    return f"{point.chips}/{point.tp}/{point.batch}"


def frontier_title(frontier: Frontier) -> str:
    """Name the systems of a frontier in words."""
    decode, prefill = frontier.decode.result, frontier.prefill.result
    if not frontier.separate:
        return decode.title
    return f"{decode.title}, its prompts read by {prefill.title}"


def frontier_table(
    frontier: Frontier, drawn: DrawnMetric | None = None, is_one_of_several: bool = True
) -> Table:
    """Tabulate the points of a frontier, the quickest first.

    Args:
        frontier: Points of a system, or of a pair of pools.
        drawn: Percentiles of the cost at the workload's speed; None where they are not shown.
        is_one_of_several: Whether points say that no other frontier is cheaper.

    """
    pools = (frontier.decode.result, frontier.prefill.result)
    standings = dict.fromkeys(sentence(pool_result.standing.text) for pool_result in pools)
    above = [
        "A row is the best plan at one speed. The faster each user is served, the less a chip does "
        "and the more a token costs.",
        workload_words(pools[0], target=False),
        premise(pools[0]),
        *(f"{words}." for words in standings),
        base_case_words(pools[0], COST, drawn, speed_of(pools[0])),
    ]
    title = f"What each speed per user costs on {frontier_title(frontier)}"
    if not frontier.points:
        return Table((), [], title, above, [f"No point: {frontier.reason}."])
    designs = _thinned(_points_of(frontier), lambda design: design.point.chosen)
    below = [
        f"{len(designs)} of {len(frontier.points)} rows are shown; --format csv has all. They are "
        f"the best of {frontier.plans:,} pairs of plans, of which {frontier.feasible:,} fit. A "
        f"prefill instance has {designs[0].point.prefill_chips} chips.",
        *_frontier_legend(frontier, is_one_of_several),
    ]
    columns = (
        "tok/s per user",
        "tok/s per chip",
        "USD/M out",
        *(("P10 to P90", "draws") if frontier.bands else ("USD/M in+out", "TTFT, s")),
        "chips",
        "TP",
        "batch",
        "limited by",
        "share",
        "",
    )
    point_rows = [_point_cells(design, is_one_of_several) for design in designs]
    return Table(columns, point_rows, title, above, below, "rrrrrrrrlrl")


def _frontier_legend(frontier: Frontier, is_one_of_several: bool) -> list[str]:
    """Return the sentences on the marks and columns of a frontier's table."""
    target = speed_of(frontier.decode.result)
    at_target = "" if target is None else f": {target:g} tokens/s per user"
    in_and_out = "" if frontier.bands else ", or input and output tokens (in+out)"
    first_token = "" if frontier.bands else " TTFT: time to the first token, without queueing."
    lines = [
        f"* the cheapest plan at the target speed of the workload{at_target}."
        + " + no other system of this call is cheaper at this speed." * is_one_of_several,
        "tok/s: output tokens/s; per chip: of all chips, those that prefill among them. USD/M: "
        f"USD per million output tokens (out){in_and_out}. All are estimates of the base case."
        f"{first_token}",
        "chips, TP (over how many of them a tensor is split) and batch (sequences at once) are of "
        "a decode instance. limited by: what takes most of a decode step, and its share of it.",
    ]
    if frontier.bands:
        plan = "of the base case fixed" if frontier.hold else "re-optimised in each"
        lines.append(
            f"P10 to P90 of USD/M out: every input drawn within its low and high, the plan {plan}, "
            "the batch solved for the tokens/s per user of the row. draws: the share of them that "
            "reaches this speed; the cost of the others has no end."
        )
    return lines


def _lines_once(tables: Sequence[Table]) -> list[Table]:
    """Print the lines common to all tables once: above the first, and below the last with rows."""
    with_rows = [index for index, table in enumerate(tables) if table.rows]
    if not with_rows:
        return list(tables)
    above = set.intersection(*(set(table.above) for table in tables))
    below = set.intersection(*(set(tables[index].below) for index in with_rows))
    return [
        table._replace(
            above=[line for line in table.above if index == 0 or line not in above],
            below=[line for line in table.below if index == with_rows[-1] or line not in below],
        )
        for index, table in enumerate(tables)
    ]


def _point_cells(design: Design, is_one_of_several: bool) -> tuple[str, ...]:
    point, band = design.point, design.band
    detail_cells = (fixed_digits(point.usd_per_million_tokens), f"{point.ttft_s:.2f}")
    if band is not None:
        detail_cells = (
            _band_words(band),
            rounded_percent(band.share_of_draws_that_meet_the_target),
        )
    return (
        fixed_digits(point.tokens_per_s_per_user),
        fixed_digits(point.output_tokens_per_s_per_chip),
        fixed_digits(point.usd_per_million_output_tokens),
        *detail_cells,
        f"{point.chips}",
        f"{point.tp}",
        f"{point.batch:,.0f}",
        point.bound,
        f"{point.bound_share * 100:.0f} %",
        "*" * point.chosen + "+" * (point.cheapest and is_one_of_several),
    )


def _band_words(band: Band) -> str:
    # P10 and P90 of the cost of a point
    cost, *_ = BANDED
    percentiles = band.ranges[cost]
    if percentiles is None:
        return "-"
    return " to ".join(range_end_label(cost, percentiles[end]) for end in ("p10", "p90"))


def _pair_table(frontiers: Sequence[Frontier]) -> Table:
    """Tabulate the pairs of pools at the workload's interactivity, the cheapest first."""
    pair_rows = []
    for frontier in _ranked(frontiers):
        point = frontier.chosen
        change = RankedFrontier(frontier, frontiers).cost_against_own
        decode, prefill = _pool_names(frontier)
        if point is not None:
            pair_rows.append(
                (
                    prefill,
                    decode,
                    fixed_digits(point.prefill_chips_per_decode_chip),
                    f"{point.ttft_s:.2f}",
                    fixed_digits((point.hand_over_s or 0.0) * 1e3),
                    fixed_digits(point.usd_per_million_output_tokens),
                    "" if change is None else f"{(change - 1) * 100:+.1f} %",
                )
            )
    first_result = frontiers[0].decode.result
    above = [workload_words(first_result), *premise_lines(_results_of(frontiers))]
    below = []
    for frontier in frontiers:
        if frontier.chosen is None:
            decode, prefill = _pool_names(frontier)
            speed = frontier.decode.values["workload.interactivity"]
            reason = frontier.reason or f"no plan gives {speed:g} tokens/s per user"
            below.append(f"{prefill} for {decode}: {reason}.")
    below += [
        "prefill and decode: the systems whose chips read prompts and write answers. Prefill chips "
        "are counted for each chip that decodes.",
        "TTFT: time to the first token, without queueing. KV, ms: time that a prompt's cache takes "
        "over the scale-out network.",
        "vs own: change of the cost from a pair with prefill on the decode system itself. Each "
        "pool costs what its own scenario says. USD/M out: USD per million output tokens, an "
        "estimate of the base case.",
    ]
    columns = ("prefill", "decode", "prefill chips", "TTFT, s", "KV, ms", "USD/M out", "vs own")
    return Table(columns, pair_rows, "Pairs of pools, the cheapest first", above, below, "llrrrrr")


def _results_of(frontiers: Sequence[Frontier]) -> list[Result]:
    # of all pools, each once
    pools = (pool for frontier in frontiers for pool in (frontier.decode, frontier.prefill))
    return list({pool.result.scenario: pool.result for pool in pools}.values())


# ---------------------------------------------------------------- designs compared with each other
def frontier_scenario_label(frontier: Frontier) -> str:
    """Name the scenario of a frontier, and that of its prefill pool where it differs."""
    decode, prefill = _pool_names(frontier)
    return decode if decode == prefill else f"{decode} with {prefill}"


def _free_table(frontiers: Sequence[Frontier], designs: Sequence[Design]) -> Table:
    """Tabulate the designs that none beats, the quickest first."""
    scenario_results = _results_of(frontiers)
    free = [design for design in designs if design.by is None]
    axes = ("tokens_per_s_per_user", *AXES[1::2], AXES[0])
    design_rows = [
        (
            frontier_scenario_label(design.frontier),
            *(fixed_digits(getattr(design.point, axis)) for axis in axes),
            _instance_text(design.point),
            "*" * design.point.chosen,
        )
        for design in _thinned(free, lambda design: design.point.chosen, BEST)
    ]
    above = [
        workload_line(scenario_results, target=False),
        *premise_lines(scenario_results),
        *(
            f"{scenario_result.scenario}: {scenario_result.standing.text}"
            for scenario_result in scenario_results
        ),
        *(
            f"{words}: {', '.join(dict.fromkeys(forms))}"
            for words, *forms in formats_rows(scenario_results)
        ),
    ]
    counts = []
    for frontier in frontiers:
        if frontier.points:
            count = sum(design.frontier is frontier for design in free)
            counts.append(f"{count} of {frontier_scenario_label(frontier)}")
    below = [
        f"A design is a system on one of its plans. No other beats {len(free)} of {len(designs)} "
        f"designs: {', '.join(counts)}.",
        "A design beats another if it is better in one of four figures and as good in the others: "
        "cost, and tok/s per chip, per user and per MW of site.",
        "* the cheapest plan of its system at the target speed of the workload. A plan is the "
        "chips, tensor parallel degree (TP) and batch of a decode instance. tok/s: output "
        "tokens/s. USD/M out: USD per million output tokens. All are estimates of the base case.",
    ]
    if len({frontier.decode.workload for frontier in frontiers}) > 1:
        below.append("A design is compared with those of its own workload, date and owner alone.")
    below += [
        f"{frontier_scenario_label(frontier)}: {frontier.reason}."
        for frontier in frontiers
        if not frontier.points
    ]
    columns = (
        "design",
        "tok/s per user",
        "tok/s per chip",
        "tok/s per MW",
        "USD/M out",
        "chips/TP/batch",
        "",
    )
    return Table(
        columns, design_rows, "Designs that no other design beats", above, below, "lrrrrll"
    )


def _beaten_table(designs: Sequence[Design]) -> Table:
    """Tabulate the designs that are beaten, system by system, and what beats each."""
    by_system = lists_by_key(
        (frontier_scenario_label(design.frontier), design) for design in designs
    )
    design_rows: list[Sequence[str]] = []
    for scenario_label, of_system in by_system.items():
        beaten = [design for design in of_system if design.by is not None]
        if beaten:
            heading = f"{scenario_label}: {len(beaten)} of {len(of_system)} designs are beaten"
            design_rows.append([heading, *([""] * 7)])
        design_rows += map(
            _beaten_cells, _thinned(beaten, lambda design: design.point.chosen, WORST)
        )
    below = [
        "Right of its plan: the change from the design to the one that beats it, in cost and in "
        "tok/s per chip, per user and per MW of site. 3.00x is three times as much.",
        "If several beat a design, the one is named whose smallest lead is the largest. --format "
        "csv has every design.",
    ]
    drawn = any(design.chance is not None for design in designs)
    if drawn:
        below.append(
            "beaten in draws: the share of the draws in which it is beaten, of those in which both "
            "keep their tokens/s per user."
        )
    columns = (
        "tok/s per user",
        "beaten in draws" if drawn else "USD/M out",
        "beaten by",
        "its plan",
        "cost",
        "per chip",
        "per user",
        "per MW",
    )
    return Table(columns, design_rows, "Designs that another design beats", (), below, "rrllrrrr")


def _beaten_cells(design: Design) -> Sequence[str]:
    point, winner = design.point, design.by or design
    cost_or_chance = fixed_digits(point.usd_per_million_output_tokens)
    if design.chance is not None:
        cost_or_chance = rounded_percent(design.chance)
    return (
        "*" * point.chosen + fixed_digits(point.tokens_per_s_per_user),
        cost_or_chance,
        frontier_scenario_label(winner.frontier),
        _instance_text(winner.point),
        *(_change_words(design.changes[axis]) for axis in AXES),
    )


def _change_words(change: float) -> str:
    """Print a change in per cent, or from twice as much on as a factor.

    A change that is not seen at three digits is none.
    """
    if change >= 1:
        return f"{fixed_digits(1 + change)}x"
    if abs(change) < 5e-4:
        return "="
    return f"{change * 100:+.1f} %" if abs(change) < 0.1 else f"{change * 100:+.0f} %"
