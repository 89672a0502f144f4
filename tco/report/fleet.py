"""A fleet of several systems: the answer of `tco fleet`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog import Catalogue
from tco.comparison.filled_site import hourly_income
from tco.comparison.fleet import FleetRollout, Stage, purchase_notes
from tco.core.mappings import lists_by_key
from tco.core.types import JsonObject
from tco.evaluation.scenario_function import Evaluation
from tco.report.assumptions import premise_lines, workload_title
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant
from tco.scenario.result import OWN_COST, RENTED, VENDOR_PRICE

if TYPE_CHECKING:
    from tco.scenario.result import Result

# units of an amount, the largest first, and their sizes
USD_UNITS = (("billion USD", 1e9), ("million USD", 1e6))
WATT_UNITS = (("MW", 1e6), ("kW", 1e3))
TOKEN_UNITS = (("million", 1e6), ("thousand", 1e3))
WHOLE = (("", 1.0),)
# keys that have values only where something is rented out or sold
REVENUE_COLUMNS = {
    "revenue_usd_per_year": ("revenue per year", USD_UNITS),
    "margin_usd_per_year": ("gross margin per year", USD_UNITS),
}
# key -> (heading, with a place for a unit that differs from the table's money, units)
COLUMNS = {
    "site_power_w": ("grid power, {}", WATT_UNITS),
    "racks": ("racks", WHOLE),
    "chips": ("chips", WHOLE),
    "capex_usd": ("capex of IT", USD_UNITS),
    "capex_with_hall_usd": ("capex with hall", USD_UNITS),
    "cost_usd_per_year": ("cost per year", USD_UNITS),
    **REVENUE_COLUMNS,
    "output_tokens_per_s": ("{} output tokens/s", TOKEN_UNITS),
    "waiting_usd": ("cost of waiting", USD_UNITS),
}
SIGNIFICANT = 4  # digits of the largest amount of a column
PRICED_AT = {OWN_COST: "own cost", VENDOR_PRICE: "vendor's price", RENTED: "rent"}
BASIS_WORDS = (
    "Vendor's price: what any buyer pays for the chips. Own cost: what a builder pays for the "
    "parts and the design of a chip that it does not sell."
)


class Scale(NamedTuple):
    """Unit and decimals in which the amounts of a column are printed."""

    unit_name: str
    size: float
    decimals: int

    def text(self, amount: float | None) -> str:
        """Return an amount in this unit; a dash where it is unknown."""
        return "-" if amount is None else f"{amount / self.size:,.{self.decimals}f}"


def scale_for(largest: float | None, units: Sequence[tuple[str, float]]) -> Scale:
    """Return the largest of the units that an amount fills, with decimals for four digits.

    Args:
        largest: Largest amount of the column; None where all are unknown.
        units: Names and sizes of units, the largest first; the last stands for smaller amounts.

    """
    amount = abs(largest or 0.0)
    unit_name, size = next((unit for unit in units if amount >= unit[1]), units[-1])
    if units is WHOLE or not amount:
        return Scale(unit_name, size, 0)
    digits_before_point = math.floor(math.log10(amount / size)) + 1
    return Scale(unit_name, size, max(SIGNIFICANT - digits_before_point, 0))


SUMS = Record(*(Member(sum_key, float | None) for sum_key in COLUMNS))
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
OUTPUT_WORDS = "Output tokens/s: mean of all hours of a year, used or not."
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
    money = money_scale(total["capex_with_hall_usd"], total["cost_usd_per_year"])
    scales = {
        sum_key: money if units is USD_UNITS else scale_for(total[sum_key], units)
        for sum_key, (_, units) in COLUMNS.items()
    }
    scenario_results = [evaluation.result for evaluation in fleet.evaluations]
    below = []
    if fleet.power is not None:
        power = scales["site_power_w"]
        taken, most = (
            significant(watts / power.size) for watts in (total["site_power_w"] or 0.0, fleet.power)
        )
        below.append(f"The purchases take {taken} of {most} {power.unit_name}.")
    below += [
        f"{CAPEX_WORDS} {COST_WORDS}",
        *price_basis_words(scenario_results),
        "Grid power: in the hottest hour.",
        "All but the power are estimates of the base case.",
    ]
    if total["output_tokens_per_s"] is not None:
        below.append(OUTPUT_WORDS)
    if total["waiting_usd"]:
        below.append(
            "In service: the month from which a system ships in volume. Cost of waiting: what "
            "empty power costs until then."
        )
    below.append(revenue_words(fleet.evaluations))
    above = [workload_title(scenario_results), *dict.fromkeys(premise_lines(scenario_results))]
    above += [_basis_line(scenario_results), f"Money is in {money.unit_name}."]
    has_value = {
        "waiting_usd": bool(total["waiting_usd"]),
        "output_tokens_per_s": total["output_tokens_per_s"] is not None,
        "arrives": any(stage.arrives != stage.date for stage in fleet.stages),
    }
    has_value |= dict.fromkeys(REVENUE_COLUMNS, any_sale(fleet.evaluations))
    column_keys = [column_key for column_key in TABLE_KEYS if has_value.get(column_key, True)]
    amounts = Record(
        *(_amount_member(sum_key, scales[sum_key]) for sum_key in column_keys if sum_key in COLUMNS)
    )
    names = ["all", *("" for name in NAMES.members[1:] if name.key in column_keys)]
    last = (*names, *(member.text(total) for member in amounts.members))
    stage_record = Record(NAMES, amounts.read_via("wave_totals")).only(*column_keys)
    return stage_record.table(fleet.stages, FLEET_TITLE, above, below, [last])


def _amount_member(sum_key: str, scale: Scale) -> Member:
    """Return the column of a sum, printed in one unit."""
    heading = COLUMNS[sum_key][0].format(scale.unit_name)
    return Member(sum_key, float | None, label=heading, show=lambda sums: scale.text(sums[sum_key]))


def _basis_line(scenario_results: Sequence[Result]) -> str:
    """Say at which price the racks of each scenario count."""
    names_by_basis = lists_by_key(
        (priced_at(scenario_result), scenario_result.scenario)
        for scenario_result in scenario_results
    )
    parts = (
        f"{basis} ({', '.join(dict.fromkeys(names))})" for basis, names in names_by_basis.items()
    )
    return f"Priced at: {'; '.join(parts)}"


def priced_at(scenario_result: Result) -> str:
    """Return the kind of price that counts for the racks of a result."""
    return PRICED_AT.get(scenario_result.basis or "", "-")


def money_scale(*amounts: float | None) -> Scale:
    """Return the unit that each of some amounts fills, with decimals for the largest of them."""
    filled_amounts = [amount for amount in amounts if amount] or [0.0]
    unit_name, size, _ = scale_for(min(filled_amounts), USD_UNITS)
    return scale_for(max(filled_amounts), [(unit_name, size)])


def price_basis_words(scenario_results: Sequence[Result]) -> list[str]:
    """Return the sentences on the kinds of price, if one of the racks counts at own cost."""
    any_own_cost = any(scenario_result.basis == OWN_COST for scenario_result in scenario_results)
    return [BASIS_WORDS] if any_own_cost else []
