"""A fleet of several systems: the answer of `tco fleet`."""

from __future__ import annotations

from collections.abc import Callable

from tco.catalog import Catalogue
from tco.comparison.fleet import FleetRollout, Stage
from tco.core.types import JsonMapping, JsonObject
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


def _fleet_sum_text(key: str, size: float) -> Callable[[JsonMapping], str]:
    # every figure but the power is an estimate
    mark = "" if key == "site_power_w" else "~"
    return lambda sums: "-" if sums[key] is None else mark + significant(sums[key] / size)


SUMS = Record(
    *(
        Member(key, float | None, None, label, _fleet_sum_text(key, size))
        for key, (label, size) in COLUMNS.items()
    )
)
ALL = Record(SUMS, Member("it_power_w", float)).only(
    "site_power_w",
    "racks",
    "chips",
    "it_power_w",
    "capex_usd",
    "output_tokens_per_s",
    "cost_usd_per_year",
    "waiting_usd",
)
NAMES = Record(
    Member("scenario", label="scenario"),
    Member("date", label="date"),
    Member("arrives", label="arrives"),
    Member("hall_cooling", str | None, label="hall"),
)
FLEET = Document(
    "fleet",
    Member("power_w", float | None, "power"),
    Member("waves", [Record(NAMES, ALL.read_via("own"), Member("so_far", ALL))], "stages"),
    Member("fleet", ALL, lambda fleet: fleet.stages[-1].so_far),
)
# of a CSV: a wave, with all up to it
ROW = Record(
    NAMES.only("date", "scenario"),
    SUMS.read_via("own"),
    *(
        member._replace(key=f"{member.key}_so_far", label=None)
        for member in SUMS.read_via("so_far").members
    ),
    NAMES.only("arrives", "hall_cooling"),
)


def fleet_answer(catalogue: Catalogue, fleet: FleetRollout) -> Answer:
    """Answer with every wave of a fleet, and the sums.

    Args:
        catalogue: Catalogue of the scenarios.
        fleet: Rollout, as `fleet_of` returns.

    """
    notes = list(fleet.late)
    contexts: dict[tuple[str, str], JsonObject] = {}
    for stage, evaluation in zip(fleet.stages, fleet.asked, strict=True):
        result = evaluation.result
        contexts[stage.scenario, stage.date] = result.context
        notes += [f"{evaluation.name}: {note}" for note in (*result.notes, *result.ages.notes)]

    def context(stage: Stage) -> JsonObject:
        return contexts[stage.scenario, stage.date]

    return FLEET.answer(
        catalogue, fleet, lambda: [_fleet_table(fleet)], (ROW, fleet.stages), notes, of=context
    )


def _fleet_table(fleet: FleetRollout) -> Table:
    """Tabulate a row for each wave, and one for all of them."""
    total = fleet.stages[-1].so_far
    below = []
    if fleet.power is not None:
        power = total["site_power_w"] or 0.0
        below.append(f"{power / 1e6:,.0f} of {fleet.power / 1e6:,.0f} MW are taken.")
    below.append(
        "MW are the grid's at the worst hour, MUSD the IT price, MUSD/year the whole cost; tokens "
        "are those of chips up and used; "
        "waiting is what it costs until a system arrives in numbers."
    )
    results = [evaluation.result for evaluation in fleet.asked]
    above = list(dict.fromkeys(premise_lines(results)))
    last = ("all", "", *(member.text(total) for member in SUMS.members), "", "")
    return ROW.table(fleet.stages, workload_title(results), above, below, [last])
