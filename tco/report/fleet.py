"""A fleet of several systems: the answer of `tco fleet`."""

from __future__ import annotations

from typing import Any

from tco.catalog import Catalogue
from tco.comparison.fleet import FleetRollout
from tco.report.assumptions import premise_lines, workload_title
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant

# key -> (heading, size of the unit shown)
COLUMNS = {
    "site_power_w": ("MW", 1e6),
    "racks": ("racks", 1),
    "chips": ("chips", 1),
    "capex_usd": ("MUSD", 1e6),
    "cost_usd_per_year": ("MUSD/year", 1e6),
    "output_tokens_per_s": ("tokens/s", 1),
    "waiting_usd": ("waiting, MUSD", 1e6),
}


def figure_formatter(key: str, size: float) -> Any:
    """Return a function that formats figure `key` in units of `size`.

    Every figure but the power is marked as an estimate. A missing figure becomes `-`.
    """
    mark = "" if key == "site_power_w" else "~"
    return lambda found: "-" if found[key] is None else mark + significant(found[key] / size)


SUMS = Record(
    *(
        Member(key, float | None, None, label, figure_formatter(key, size))
        for key, (label, size) in COLUMNS.items()
    )
)
ALL = Record(SUMS, Member("it_power_w", float)).only(
    *(
        "site_power_w",
        "racks",
        "chips",
        "it_power_w",
        "capex_usd",
        "output_tokens_per_s",
        "cost_usd_per_year",
        "waiting_usd",
    )
)
NAMES = Record(
    Member("scenario", label="scenario"),
    Member("date", label="date"),
    Member("arrives", label="arrives"),
    Member("hall_cooling", str | None, label="hall"),
)
WAVE = Record(NAMES, ALL.read_via("own"), Member("so_far", ALL))
FLEET = Document(
    "fleet",
    Member("power_w", float | None, "power"),
    Member("waves", [WAVE], "stages"),
    Member("fleet", ALL, lambda fleet: fleet.stages[-1].so_far),
)
ROW = Record(  # of a CSV: a wave, with all up to it
    NAMES.only("date", "scenario"),
    SUMS.read_via("own"),
    *(
        field._replace(key=f"{field.key}_so_far", label=None)
        for field in SUMS.read_via("so_far").members
    ),
    Member("arrives", label="arrives"),
    Member("hall_cooling", str | None, label="hall"),
)


def fleet_answer(catalogue: Catalogue, fleet: FleetRollout) -> Answer:
    """Return the answer on every wave of a fleet, with the sums.

    Args:
        catalogue: Catalogue of the scenarios.
        fleet: Rollout, as `fleet_of` returns.

    """
    notes = [
        *fleet.late,
        *(
            f"{one.name}: {note}"
            for one in fleet.asked
            for note in (*one.result.notes, *one.result.ages.notes)
        ),
    ]
    contexts = {
        (stage.scenario, stage.date): one.result.context
        for stage, one in zip(fleet.stages, fleet.asked, strict=True)
    }
    return FLEET.answer(
        catalogue,
        fleet,
        lambda: [fleet_table(fleet)],
        (ROW, fleet.stages),
        notes,
        of=lambda one: contexts[one.scenario, one.date],
    )


def fleet_table(fleet: FleetRollout) -> Table:
    """Return a row for each wave, and one for all of them."""
    every = fleet.stages[-1].so_far
    taken = every["site_power_w"] or 0.0
    below = (
        []
        if fleet.power is None
        else [f"{taken / 1e6:,.0f} of {fleet.power / 1e6:,.0f} MW are taken."]
    )
    below.append(
        "MW are the grid's at the worst hour, MUSD the IT price, MUSD/year the whole cost; tokens "
        "are those of chips up and used; "
        "waiting is what it costs until a system arrives in numbers."
    )
    results = [one.result for one in fleet.asked]
    last = ("all", "", *(field.text(every) for field in SUMS.members), "", "")
    return ROW.table(
        fleet.stages,
        workload_title(results),
        list(dict.fromkeys(premise_lines(results))),
        below,
        [last],
    )
