"""Capex and yearly money of racks for a grid power: answer of `tco gigawatt`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.comparison.fleet import late_notes, purchase_notes
from tco.comparison.gigawatt import KINDS, Gigawatt, PublishedCost
from tco.report.assumptions import premise_lines, workload_title
from tco.report.fleet import (
    CAPEX_WORDS,
    COST_WORDS,
    OUTPUT_WORDS,
    TOKEN_UNITS,
    WATT_UNITS,
    Scale,
    any_sale,
    money_scale,
    price_basis_words,
    priced_at,
    revenue_words,
    scale_for,
)
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant


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
        note
        for site in sites
        for note in (
            *late_notes(site.evaluation.name, site.evaluation.result),
            *purchase_notes(site.evaluation),
        )
    ]
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


class SiteScales(NamedTuple):
    """Units in which the sites of a table are printed."""

    power: Scale
    money: Scale
    tokens: Scale


def _scales_for(sites: Sequence[Gigawatt]) -> SiteScales:
    money = [usd for site in sites for usd in (site.usd, site.cost_usd_per_year)]
    return SiteScales(
        scale_for(max(site.grid_w for site in sites), WATT_UNITS),
        money_scale(*money),
        scale_for(max(site.output_tokens_per_s or 0.0 for site in sites), TOKEN_UNITS),
    )


def _site_rows(sites: Sequence[Gigawatt], scales: SiteScales) -> list[tuple[str, ...]]:
    """Return the rows from the grid to racks and their capex."""
    power, money = scales.power, scales.money
    texts: dict[str, Callable[[Gigawatt], str]] = {
        "racks are priced at": lambda site: priced_at(site.evaluation.result),
        f"{power.unit_name} from the grid": lambda site: power.text(site.grid_w),
        "cooling of the hall": lambda site: site.hall_cooling or "-",
        "divided by peak PUE": lambda site: significant(_site_input(site, "pue_peak")),
        "spare power, %": lambda site: f"{_site_input(site, 'in_hand') * 100:.0f}",
        f"{power.unit_name} for the racks": lambda site: power.text(site.it_w),
        "number of racks": lambda site: f"{site.racks:,.0f}",
        "number of chips": lambda site: f"{site.chips:,.0f}",
        f"capex of IT, {money.unit_name}": lambda site: money.text(site.capex_usd),
        f"capex with hall, {money.unit_name}": lambda site: money.text(site.usd),
    }
    if any(late_notes(site.evaluation.name, site.evaluation.result) for site in sites):
        texts = {"in volume from": _volume_month} | texts
    return [(label, *map(cell_text, sites)) for label, cell_text in texts.items()]


def _volume_month(site: Gigawatt) -> str:
    availability = site.evaluation.result.available
    return availability.volume if availability else "-"


def _yearly_rows(sites: Sequence[Gigawatt], scales: SiteScales) -> list[tuple[str, ...]]:
    """Return the rows of the cost per watt, the output and the money of a year."""
    money, tokens = scales.money, scales.tokens
    output = f"{tokens.unit_name} output tokens/s"
    texts: dict[str, Callable[[Gigawatt], str]] = {
        "USD per watt of the grid (base case)": lambda site: f"{site.usd_per_grid_w:.1f}",
        "  median": lambda site: f"{site.range['p50']:.1f}",
        "  P10": lambda site: f"{site.range['p10']:.1f}",
        "  P90": lambda site: f"{site.range['p90']:.1f}",
        "USD per watt for the racks (base case)": lambda site: f"{site.usd_per_it_w:.1f}",
        output: lambda site: tokens.text(site.output_tokens_per_s),
        f"cost per year, {money.unit_name}": lambda site: money.text(site.cost_usd_per_year),
    }
    if all(site.output_tokens_per_s is None for site in sites):
        del texts[output]
    if any_sale(site.evaluation for site in sites):
        texts |= {
            f"revenue per year, {money.unit_name}": lambda site: money.text(
                site.revenue_usd_per_year
            ),
            f"gross margin per year, {money.unit_name}": lambda site: money.text(
                site.margin_usd_per_year
            ),
        }
    return [(label, *map(cell_text, sites)) for label, cell_text in texts.items()]


def _gigawatt_table(sites: Sequence[Gigawatt]) -> Table:
    """Return a column for each system: from the grid to racks, from racks to dollars."""
    capex_by_kind = {kind: [_capex_of_kind(kind, site) for site in sites] for kind in KINDS}
    evaluations = [site.evaluation for site in sites]
    scales = _scales_for(sites)
    table_rows = [
        *_site_rows(sites, scales),
        *(
            (f"  {kind}", *map(scales.money.text, amounts))
            for kind, amounts in capex_by_kind.items()
            if any(amounts)
        ),
        *_yearly_rows(sites, scales),
    ]
    scenario_results = [evaluation.result for evaluation in evaluations]
    below = [
        "Every figure is an estimate. Racks are added until the hottest hour takes all the power.",
        *price_basis_words(scenario_results),
        f"{CAPEX_WORDS} Its parts and USD per watt are of the capex with hall.",
        f"{COST_WORDS} {revenue_words(evaluations)}",
        "P10 to P90: 8 of 10 draws of all prices and powers lie between them.",
    ]
    if not all(site.output_tokens_per_s is None for site in sites):
        below.append(OUTPUT_WORDS)
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
    columns = (
        "system",
        "publisher",
        "published low",
        "published high",
        "computed P10",
        "computed P90",
        "remark",
    )
    title = "Published capex, USD per watt of the grid"
    return [Table(columns, cost_rows, title, align="llrrrrl")] if cost_rows else []
