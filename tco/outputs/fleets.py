"""A fleet of several systems: the table, the rows and the document of `tco fleet`."""

from __future__ import annotations

from typing import Any

from tco.outputs.comparison import premises, title_of
from tco.outputs.table import Table, significant
from tco.studies.fleet import Fleet

# key -> (heading, size of the unit shown)
COLUMNS = {
    "site_power_w": ("MW", 1e6),
    "racks": ("racks", 1),
    "chips": ("chips", 1),
    "capex_usd": ("MUSD", 1e6),
    "cost_usd_per_year": ("MUSD/year", 1e6),
    "output_tokens_per_s": ("tokens/s", 1),
}
HEADER = ("date", "scenario", *COLUMNS, *(f"{name}_so_far" for name in COLUMNS))


def cells(found: dict[str, float | None]) -> list[str]:
    """Return the figures of a wave as the table shows them: all but the power rest on estimates."""
    shown = []
    for name, (_, size) in COLUMNS.items():
        value = found[name]
        shown.append("-" if value is None else ("" if name == "site_power_w" else "~") + significant(value / size))
    return shown


def fleet_table(fleet: Fleet) -> Table:
    """Return a row for each wave, and one for all of them."""
    rows: list[tuple[str, ...]] = [(stage.date, stage.scenario, *cells(stage.own)) for stage in fleet.stages]
    rows.append(("all", "", *cells(fleet.stages[-1].so_far)))
    taken = fleet.stages[-1].so_far["site_power_w"] or 0.0
    below = [] if fleet.power is None else [f"{taken / 1e6:,.0f} of {fleet.power / 1e6:,.0f} MW are taken."]
    below.append("MW are the grid's at the worst hour, MUSD the IT price, MUSD/year the whole cost; tokens are those of chips up and used.")
    results = [one.result for one in fleet.asked]
    return Table(
        ("date", "scenario", *(name for name, _ in COLUMNS.values())),
        rows,
        title_of(results),
        list(dict.fromkeys(premises(results))),
        below,
        "ll" + "r" * len(COLUMNS),
    )


def fleet_rows(fleet: Fleet) -> list[list[Any]]:
    """Return the CSV rows: a wave each, with all up to it."""
    return [[stage.date, stage.scenario, *(stage.own[name] for name in COLUMNS), *(stage.so_far[name] for name in COLUMNS)] for stage in fleet.stages]


def fleet_document(fleet: Fleet) -> dict[str, Any]:
    """Return the content of the JSON document."""
    waves = [{"scenario": stage.scenario, "date": stage.date, **stage.own, "so_far": stage.so_far} for stage in fleet.stages]
    return {"power_w": fleet.power, "waves": waves, "fleet": fleet.stages[-1].so_far}
