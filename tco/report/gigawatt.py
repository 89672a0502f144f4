"""Capex and yearly money of racks for a grid power: answer of `tco gigawatt`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tco.catalog import Catalogue
from tco.comparison.fleet import purchase_notes
from tco.comparison.gigawatt import KINDS, Gigawatt, PublishedCost
from tco.report.assumptions import premise_lines, workload_title
from tco.report.fleet import (
    CAPEX_WORDS,
    COST_WORDS,
    any_sale,
    revenue_words,
)
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
    notes = [note for site in sites for note in purchase_notes(site.evaluation)]
    return GIGAWATT.answer(
        catalogue,
        sites,
        lambda: [_gigawatt_table(sites), *_published_capex_tables(sites)],
        (CSV_ROW, sites),
        notes,
        of=lambda site: site.evaluation.result.context,
    )


def _site_input(site: Gigawatt, input_name: str) -> float:
    return float(site.evaluation.result.inputs[f"site.{input_name}"].value)


def _billion_usd_text(usd: float | None) -> str:
    return "-" if usd is None else f"{usd / BILLION:.2f}"


# label -> text of a site: from the grid to racks and dollars, and what they come to
SITE_ROWS: dict[str, Callable[[Gigawatt], str]] = {
    "MW from the grid": lambda site: significant(site.grid_w / 1e6),
    "cooling of the hall": lambda site: site.hall_cooling or "-",
    "divided by peak PUE": lambda site: significant(_site_input(site, "pue_peak")),
    "spare power, %": lambda site: f"{_site_input(site, 'in_hand') * 100:.0f}",
    "MW for the racks": lambda site: f"{site.it_w / 1e6:,.1f}",
    "racks": lambda site: f"{site.racks:,.0f}",
    "chips": lambda site: f"{site.chips:,.0f}",
    "capex of IT, billion USD": lambda site: _billion_usd_text(site.capex_usd),
    "capex with hall, billion USD": lambda site: _billion_usd_text(site.usd),
}
COST_ROWS: dict[str, Callable[[Gigawatt], str]] = {
    "USD per watt of the grid (base case)": lambda site: f"{site.usd_per_grid_w:.1f}",
    "  median": lambda site: f"{site.range['p50']:.1f}",
    "  P10": lambda site: f"{site.range['p10']:.1f}",
    "  P90": lambda site: f"{site.range['p90']:.1f}",
    "USD per watt for the racks (base case)": lambda site: f"{site.usd_per_it_w:.1f}",
    "million output tokens/s": lambda site: (
        "-" if site.output_tokens_per_s is None else f"{site.output_tokens_per_s / 1e6:,.1f}"
    ),
    "cost per year, billion USD": lambda site: _billion_usd_text(site.cost_usd_per_year),
}
REVENUE_ROWS: dict[str, Callable[[Gigawatt], str]] = {
    "revenue per year, billion USD": lambda site: _billion_usd_text(site.revenue_usd_per_year),
    "gross margin per year, billion USD": lambda site: _billion_usd_text(site.margin_usd_per_year),
}


def _gigawatt_table(sites: Sequence[Gigawatt]) -> Table:
    """Return a column for each system: from the grid to racks, from racks to dollars."""
    capex_by_kind = {kind: [_capex_of_kind(kind, site) for site in sites] for kind in KINDS}
    evaluations = [site.evaluation for site in sites]
    last_rows = COST_ROWS | (REVENUE_ROWS if any_sale(evaluations) else {})
    table_rows = [
        *((label, *map(cell_text, sites)) for label, cell_text in SITE_ROWS.items()),
        *(
            (f"  {kind}", *map(_billion_usd_text, amounts))
            for kind, amounts in capex_by_kind.items()
            if any(amounts)
        ),
        *((label, *map(cell_text, sites)) for label, cell_text in last_rows.items()),
    ]
    below = [
        "Every figure is an estimate. Racks are added until the hottest hour takes all the power.",
        f"{CAPEX_WORDS} Its parts and USD per watt are of the capex with hall.",
        f"{COST_WORDS} {revenue_words(evaluations)}",
        "P10 to P90: 8 of 10 draws of all prices and powers lie between them.",
    ]
    if not all(site.output_tokens_per_s is None for site in sites):
        below.append("Output tokens/s: mean of all hours of a year, used or not.")
    scenario_results = [evaluation.result for evaluation in evaluations]
    return Table(
        ["", *(evaluation.name for evaluation in evaluations)],
        table_rows,
        "Capex and yearly cost of a site that is filled with racks of one system",
        list(dict.fromkeys([workload_title(scenario_results), *premise_lines(scenario_results)])),
        below,
    )


def _published_capex_tables(sites: Sequence[Gigawatt]) -> list[Table]:
    """Return a table of published costs beside the computed ones, if there are any."""

    def row(site: Gigawatt, cost: PublishedCost) -> tuple[str, ...]:
        ours = (f"{site.range[percentile_name]:.1f}" for percentile_name in ("p10", "p90"))
        return site.system, cost.publisher, f"{cost.low:.1f}", f"{cost.high:.1f}", *ours, cost.note

    cost_rows = [row(site, cost) for site in sites for cost in site.published]
    columns = ("system", "publisher", "from", "to", "P10 here", "P90 here", "what it counts")
    title = "Published capex, USD per watt of the grid"
    return [Table(columns, cost_rows, title, align="llrrrrl")] if cost_rows else []
