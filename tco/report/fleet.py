"""A fleet of several systems: the answer of `tco fleet`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tco.catalog import Catalogue
from tco.comparison.filled_site import hourly_income
from tco.comparison.fleet import FleetRollout, Stage, purchase_notes
from tco.core.types import JsonMapping, JsonObject
from tco.evaluation.scenario_function import Evaluation
from tco.report.assumptions import premise_lines, workload_title
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table

# keys that have values only where something is rented out or sold
REVENUE_COLUMNS = {
    "revenue_usd_per_year": ("revenue per year", 1e6),
    "margin_usd_per_year": ("gross margin per year", 1e6),
}
# key -> (heading, size of the unit shown)
COLUMNS = {
    "site_power_w": ("MW", 1e6),
    "racks": ("racks", 1),
    "chips": ("chips", 1),
    "capex_usd": ("capex of IT", 1e6),
    "capex_with_hall_usd": ("capex with hall", 1e6),
    "cost_usd_per_year": ("cost per year", 1e6),
    **REVENUE_COLUMNS,
    "output_tokens_per_s": ("million output tokens/s", 1e6),
    "waiting_usd": ("cost of waiting", 1e6),
}


def _fleet_sum_text(sum_key: str, size: float) -> Callable[[JsonMapping], str]:
    form = "{:,.0f}" if size == 1 else "{:,.1f}"
    return lambda sums: "-" if sums[sum_key] is None else form.format(sums[sum_key] / size)


SUMS = Record(
    *(
        Member(sum_key, float | None, None, label, _fleet_sum_text(sum_key, size))
        for sum_key, (label, size) in COLUMNS.items()
    )
)
ALL = Record(SUMS, Member("it_power_w", float)).only(
    "site_power_w",
    "racks",
    "chips",
    "it_power_w",
    "capex_usd",
    "output_tokens_per_s",
    "capex_with_hall_usd",
    "cost_usd_per_year",
    *REVENUE_COLUMNS,
    "waiting_usd",
)
NAMES = Record(
    Member("scenario", label="scenario"),
    Member("date", label="prices of"),
    Member("arrives", label="in service"),
    Member("hall_cooling", str | None, label="hall"),
)
FLEET = Document(
    "fleet",
    Member("power_w", float | None, "power"),
    Member("waves", [Record(NAMES, ALL.read_via("wave_totals"), Member("so_far", ALL))], "stages"),
    Member("fleet", ALL, lambda fleet: fleet.stages[-1].so_far),
)
# of a CSV: a wave, with all up to it
ROW = Record(
    NAMES.only("date", "scenario"),
    SUMS.read_via("wave_totals"),
    *(
        member._replace(key=f"{member.key}_so_far", label=None)
        for member in SUMS.read_via("so_far").members
    ),
    NAMES.only("arrives", "hall_cooling"),
)

COST_WORDS = "Cost per year: all that the owner pays, in which the capex is paid off over its life."
CAPEX_WORDS = (
    "Capex of IT: racks, network and storage, before rebates. Capex with hall: all that is bought, "
    "with the hall that is built and less rebates."
)
NO_REVENUE = "--set money.token_price='2 USD/Mtoken' adds the revenue and gross margin per year."
REVENUE_WORDS = (
    "Revenue: of output tokens or of chip-hours at the stated price; tco price SYSTEM "
    "--cash-flow has the ramp and the fall of prices."
)
# of a table: names first; a revenue and the cost of waiting only where there is one
FLEET_TITLE = "Racks, capex and yearly cost of systems bought at their dates"
TABLE_KEYS = ("scenario", "date", "arrives", *COLUMNS)


def fleet_answer(catalogue: Catalogue, fleet: FleetRollout) -> Answer:
    """Answer with every wave of a fleet, and the sums.

    Args:
        catalogue: Catalogue of the scenarios.
        fleet: Rollout, as `fleet_of` returns.

    """
    notes = list(fleet.late)
    contexts: dict[tuple[str, str], JsonObject] = {}
    for stage, evaluation in zip(fleet.stages, fleet.evaluations, strict=True):
        scenario_result = evaluation.result
        contexts[stage.scenario, stage.date] = scenario_result.context
        notes += purchase_notes(evaluation)

    def context(stage: Stage) -> JsonObject:
        return contexts[stage.scenario, stage.date]

    return FLEET.answer(
        catalogue, fleet, lambda: [_fleet_table(fleet)], (ROW, fleet.stages), notes, of=context
    )


def any_sale(evaluations: Iterable[Evaluation]) -> bool:
    """Say whether hours are rented out or tokens sold in any evaluation."""
    return any(hourly_income(evaluation.result) is not None for evaluation in evaluations)


def revenue_words(evaluations: Iterable[Evaluation]) -> str:
    """Return the sentence on what a revenue is of, or on the setting that adds one."""
    return REVENUE_WORDS if any_sale(evaluations) else NO_REVENUE


def _fleet_table(fleet: FleetRollout) -> Table:
    """Tabulate a row for each wave, and one for all of them."""
    total = fleet.stages[-1].so_far
    below = []
    if fleet.power is not None:
        power = total["site_power_w"] or 0.0
        below.append(f"The purchases take {power / 1e6:,.0f} of {fleet.power / 1e6:,.0f} MW.")
    below += [
        f"Money is in million USD. {CAPEX_WORDS} {COST_WORDS}",
        "MW: from the grid, in the hottest hour. Output tokens: in the hours that chips are up "
        "and used. All but the power are estimates of the base case.",
    ]
    below.append(revenue_words(fleet.evaluations))
    if total["waiting_usd"]:
        below.append("Waiting: what empty power costs until a system ships in volume.")
    scenario_results = [evaluation.result for evaluation in fleet.evaluations]
    above = [workload_title(scenario_results), *dict.fromkeys(premise_lines(scenario_results))]
    has_value = {"waiting_usd": bool(total["waiting_usd"])}
    has_value |= dict.fromkeys(REVENUE_COLUMNS, any_sale(fleet.evaluations))
    column_keys = [column_key for column_key in TABLE_KEYS if has_value.get(column_key, True)]
    sums = SUMS.only(*(column_key for column_key in column_keys if column_key in COLUMNS))
    last = ("all", "", "", *(member.text(total) for member in sums.members))
    return ROW.only(*column_keys).table(fleet.stages, FLEET_TITLE, above, below, [last])
