"""Capex of racks for a grid power: answer of `tco gigawatt`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tco.catalog import Catalogue
from tco.comparison.gigawatt import KINDS, Gigawatt
from tco.report.assumptions import premise_lines, workload_title
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant

BILLION = 1e9


def _capex_of_kind(kind: str, site: Gigawatt) -> float:
    return dict(site.lines).get(kind, 0.0)


GIGAWATT = Document("gigawatt", Member("rows", [Gigawatt], lambda sites: sites))
# of a CSV: a column for each kind of part
CSV_ROW = Record(
    Gigawatt,
    *(Member(f"usd_per_grid_w_{end}", float, f"range.{end}") for end in ("p10", "p50", "p90")),
    *(
        Member(
            "usd_of_" + kind.lower().replace(",", "").replace(" ", "_"),
            float,
            partial(_capex_of_kind, kind),
        )
        for kind in KINDS
    ),
)


def gigawatt_answer(catalogue: Catalogue, sites: Sequence[Gigawatt]) -> Answer:
    """Return every system's racks, capex by kind of part, and published figures.

    Args:
        catalogue: The catalogue that the figures rest on.
        sites: Systems that fill a power, each with its capex in USD.

    """
    notes = [
        f"{site.evaluation.name}: {note}"
        for site in sites
        for note in (*site.evaluation.result.notes, *site.evaluation.result.ages.notes)
    ]
    return GIGAWATT.answer(
        catalogue,
        sites,
        lambda: [_gigawatt_table(sites)],
        (CSV_ROW, sites),
        notes,
        of=lambda site: site.evaluation.result.context,
    )


def _gigawatt_table(sites: Sequence[Gigawatt]) -> Table:
    """Return a column for each system: from the grid to racks, from racks to dollars."""
    rows: list[Sequence[str]] = []

    def add(label: str, text: Callable[[Gigawatt], str]) -> None:
        rows.append((label, *map(text, sites)))

    def input_of(site: Gigawatt, name: str) -> float:
        return float(site.evaluation.result.inputs[f"site.{name}"].value)

    add("MW of the grid, at the fence", lambda site: significant(site.grid_w / 1e6))
    add("hall", lambda site: site.hall_cooling or "-")
    add("over peak PUE", lambda site: significant(input_of(site, "pue_peak")))
    add("kept in hand", lambda site: f"{input_of(site, 'in_hand'):.0%}")
    add("MW of IT", lambda site: significant(site.it_w / 1e6))
    add("racks", lambda site: "~" + significant(site.racks))
    add("chips", lambda site: "~" + significant(site.chips))
    add("billion USD", lambda site: f"~{site.usd / BILLION:.2f}")
    for kind in KINDS:
        capex = partial(_capex_of_kind, kind)
        if any(map(capex, sites)):
            rows.append((f"  {kind}", *(f"~{capex(site) / BILLION:.2f}" for site in sites)))
    add("USD a watt of the grid", lambda site: f"~{site.usd_per_grid_w:.1f}")
    add("  P10 to P90", lambda site: f"{site.range['p10']:.1f} to {site.range['p90']:.1f}")
    add("USD a watt of IT", lambda site: f"~{site.usd_per_it_w:.1f}")
    add("million tokens/s", _token_rate_text)
    below = [
        f"{site.system}: {cost.publisher} says {_range_text(cost.low, cost.high)} USD a watt"
        for site in sites
        for cost in site.published
    ]
    results = [site.evaluation.result for site in sites]
    return Table(
        ["", *(site.evaluation.name for site in sites)],
        rows,
        workload_title(results),
        list(dict.fromkeys(premise_lines(results))),
        below,
    )


def _token_rate_text(site: Gigawatt) -> str:
    rate = site.output_tokens_per_s
    return "-" if rate is None else "~" + significant(rate / 1e6)


def _range_text(low: float, high: float) -> str:
    return significant(low) if low == high else f"{significant(low)} to {significant(high)}"
