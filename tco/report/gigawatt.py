"""Capex of racks for a grid power: answer of `tco gigawatt`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tco.catalog import Catalogue
from tco.comparison.gigawatt import KINDS, Gigawatt
from tco.report.assumptions import premise_lines, workload_title
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant

BILLION = 1e9


def capex_of_kind(kind: str, one: Gigawatt) -> float:
    """Return the capex of a kind of part, USD.

    The capex is nought where `one` has no such part.
    """
    return dict(one.lines).get(kind, 0.0)


LINE = Record("kind", Member("usd", float)).read_via(lambda one: {"kind": one[0], "usd": one[1]})
SAID = Record(*("publisher", "source"), Member("low", float), Member("high", float), "note")
TOTALS = Record(
    Member("system", read="asked.result.system"),
    Member("date", read=lambda one: one.asked.result.texts["terms.date"]),
    Member("hall_cooling", str | None, "asked.result.hall_cooling"),
    *(Member(key, float, f"hall.{key}") for key in ("racks", "chips")),
    Member("grid_w", float, "hall.site_power_w"),
    Member("it_w", float, "hall.it_power_w"),
    *(Member(key, float) for key in ("usd", "usd_per_grid_w", "usd_per_it_w")),
    Member("output_tokens_per_s", float | None, "hall.output_tokens_per_s"),
)
ROW = Record(
    TOTALS, Member("lines", [LINE]), Member("range", {str: float}), Member("published", [SAID])
)
GIGAWATT = Document("gigawatt", Member("rows", [ROW], lambda found: found))
CELLS = Record(  # of a CSV: a column for each kind of part
    TOTALS,
    *(Member(f"usd_per_grid_w_{end}", float, f"range.{end}") for end in ("p10", "p50", "p90")),
    *(
        Member(
            "usd_of_" + kind.lower().replace(",", "").replace(" ", "_"),
            float,
            partial(capex_of_kind, kind),
        )
        for kind in KINDS
    ),
)


def gigawatt_answer(catalogue: Catalogue, found: Sequence[Gigawatt]) -> Answer:
    """Return every system's racks, capex by kind of part, and published figures.

    Args:
        catalogue: The catalogue that the figures rest on.
        found: Systems that fill a power, each with its capex in USD.

    """
    notes = [
        f"{one.asked.name}: {note}"
        for one in found
        for note in (*one.asked.result.notes, *one.asked.result.ages.notes)
    ]
    return GIGAWATT.answer(
        catalogue,
        found,
        lambda: [gigawatt_table(found)],
        (CELLS, found),
        notes,
        of=lambda one: one.asked.result.context,
    )


def gigawatt_table(found: Sequence[Gigawatt]) -> Table:
    """Return a column for each system: from the grid to racks, from racks to dollars."""
    halls = [one.hall for one in found]
    rows = [
        (
            "MW of the grid, at the fence",
            *(significant(hall["site_power_w"] / 1e6) for hall in halls),
        ),
        ("hall", *(one.asked.result.hall_cooling or "-" for one in found)),
        (
            "over peak PUE",
            *(significant(one.asked.result.inputs["site.pue_peak"].value) for one in found),
        ),
        (
            "kept in hand",
            *(f"{one.asked.result.inputs['site.in_hand'].value:.0%}" for one in found),
        ),
        ("MW of IT", *(significant(hall["it_power_w"] / 1e6) for hall in halls)),
        *((key, *("~" + significant(hall[key]) for hall in halls)) for key in ("racks", "chips")),
        ("billion USD", *(f"~{one.usd / BILLION:.2f}" for one in found)),
        *(
            (f"  {kind}", *(f"~{capex_of_kind(kind, one) / BILLION:.2f}" for one in found))
            for kind in KINDS
            if any(capex_of_kind(kind, one) for one in found)
        ),
        ("USD a watt of the grid", *(f"~{one.usd_per_grid_w:.1f}" for one in found)),
        ("  P10 to P90", *(f"{one.range['p10']:.1f} to {one.range['p90']:.1f}" for one in found)),
        ("USD a watt of IT", *(f"~{one.usd_per_it_w:.1f}" for one in found)),
        (
            "million tokens/s",
            *(
                "-"
                if (rate := hall["output_tokens_per_s"]) is None
                else "~" + significant(rate / 1e6)
                for hall in halls
            ),
        ),
    ]
    below = [
        f"{one.asked.result.system}: {said.publisher} says {format_figure_range(said.low, said.high)} USD a watt"
        for one in found
        for said in one.published
    ]
    results = [one.asked.result for one in found]
    return Table(
        ["", *(one.asked.name for one in found)],
        rows,
        workload_title(results),
        list(dict.fromkeys(premise_lines(results))),
        below,
    )


def format_figure_range(low: float, high: float) -> str:
    """Return a figure, or the two ends of one."""
    return significant(low) if low == high else f"{significant(low)} to {significant(high)}"
