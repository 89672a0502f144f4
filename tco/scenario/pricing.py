"""The site of a system, the cost to its owner, and the owner's agreements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.catalog.halls import halls_of
from tco.catalog.labels import short_name
from tco.core.errors import DataError, UnavailableError
from tco.core.inputs import Values
from tco.core.provenance import period
from tco.core.trace import paused, scope, untraced_value
from tco.core.types import Quantity
from tco.cost.failures import Failing, failing
from tco.cost.goodput import AVAILABILITY, goodput, long_checkpoints
from tco.cost.ledger import (
    HALL_RATES,
    REPAIRS,
    Cost,
    cost_of_world,
    hall_rate,
)
from tco.cost.ownership import (
    Agreement,
    Rebate,
    in_force_for,
    load_agreement,
    rebate_of,
    refuse_misfit,
)
from tco.scenario.memo import stage
from tco.scenario.network_choice import design_network
from tco.scenario.network_tiers import refuse_less_than_a_world
from tco.scenario.rack_holding import SIDECAR, holding_of, needs_sidecar, standing_cost_of
from tco.scenario.workload import workload_kind
from tco.system.bill import Bill, bill_of_materials
from tco.system.scale_out_network import Network

if TYPE_CHECKING:
    from tco.scenario.resolved import ResolvedScenario


SITE_POWER = "site.power"  # grid power of a site that is filled with racks
PUBLISHER = "terms.rent_publisher"  # publisher of the rents in a comparison
POWER_LIMIT_INPUTS = ("site.pue_peak", "site.in_hand")  # they limit the power of the racks


class MisfitError(UnavailableError):
    """A rack that draws more than a position of the site takes."""


def rack_placement_notes(inputs: ResolvedScenario, bill: Bill) -> list[str]:
    """Return notes on how the racks of a bill fit the positions of the site.

    Where several scale-up domains share a rack, as many domains are placed as fit. If the power is
    an array, a note says how many cases do not fit.

    Args:
        inputs: The scenario.
        bill: Bill of a scale-up domain.

    Raises:
        MisfitError: A rack draws more than a position takes, in all cases.

    """
    input_values = inputs.values()
    site, system = inputs.scenario.documents["site"], inputs.system
    domain_power = bill.power
    rack_power = domain_power / system.racks
    position_power = input_values.number("site.rack_kw_max")
    inputs.judged |= set(input_values.inputs)
    notes = _not_ready(inputs)
    is_too_large = rack_power > position_power * (1 + 1e-9)
    if np.ndim(is_too_large):
        if np.any(is_too_large):
            notes.append(
                f"{site}: in {np.mean(is_too_large):.1%} of the cases a rack draws more than a "
                "position takes"
            )
        is_too_large = np.all(is_too_large)
        rack_power = np.mean(rack_power)
        position_power = np.mean(position_power)
        domain_power = np.mean(domain_power)
    if is_too_large:
        domains = worlds_in_a_rack(position_power, domain_power, system.racks)
        if domains < 1:
            raise MisfitError(
                f"{site}: a rack position takes {position_power / 1e3:g} kW (site.rack_kw_max), a "
                f"rack of {system.id} draws {domain_power / 1e3:.1f} kW / {system.racks:g} = "
                f"{rack_power / 1e3:.1f} kW; {_roomiest(inputs)}; or set site.rack_kw_max"
            )
        notes.append(
            f"{site}: a rack position takes {position_power / 1e3:g} kW, so {domains} of "
            f"{system.id} stand in a rack where {1 / system.racks:g} would draw "
            f"{rack_power / 1e3:.1f} kW; what a rack itself holds is priced as if it were "
            f"full{_told_apart(inputs, 1 / domains)}"
        )
        rack_power = domains * domain_power
    if not needs_sidecar(inputs):
        return [*notes, *_needless_hall(inputs, input_values)]
    price = float(np.mean(input_values.number(f"parts.{SIDECAR}.price_per_power")))
    power_share = float(np.mean(input_values.number(f"parts.{SIDECAR}.power_share")))
    hall_share = float(np.mean(input_values.number(f"parts.{SIDECAR}.hall_share")))
    cooler = (
        f"each rack of {system.id} takes a liquid-to-air sidecar, {rack_power / 1e3:.1f} kW at "
        f"{price * 1e3:,.0f} USD/kW, which draws {power_share:.0%} more and leaves "
        f"{hall_share:.0%} of the hall"
    )
    return [*notes, f"{site} is cooled by air: {cooler}"]


def _needless_hall(inputs: ResolvedScenario, input_values: Values) -> list[str]:
    """Return a note on the cost of a liquid-cooled hall for an air-cooled rack."""
    paths = [path for path, _ in HALL_RATES.values()]
    if (
        inputs.system.cooling != "air"
        or inputs.text("site.cooling") != "liquid"
        or inputs.perspective.rents
    ):
        return []
    site = inputs.scenario.documents["site"]
    built_for = f"{site}: {inputs.system.id} is air-cooled and stands in a hall built for liquid"
    if inputs.text("site.tenure") != "own" or not all(
        inputs.states(path, input_values) for path in paths
    ):
        return [built_for]
    market_rate = input_values.number("site.usd_per_mw")
    liquid, air = (
        float(np.mean(hall_rate(input_values, cooling, market_rate)))
        for cooling in ("liquid", "air")
    )
    inputs.judged.add(paths[0])
    return [f"{built_for} at {liquid:.3g} USD per watt; a hall for air costs {air:.3g}"]


def _roomiest(inputs: ResolvedScenario) -> str:
    """Return words on the hall whose positions take the most power.

    They do not name the rack, as its power may be somebody's own.
    """
    catalogue = inputs.catalogue
    halls = []
    for site_name in catalogue.ids("sites"):
        path, document = catalogue.document("sites", site_name, "site")
        for cooling in halls_of(document, path) or [None]:
            limit = catalogue.document_inputs("sites", site_name, "site", "site", cooling).get(
                "site.rack_kw_max"
            )
            if limit is not None:
                halls.append(
                    (limit.value, f"the {cooling} hall of {site_name}" if cooling else site_name)
                )
    most, hall = max(halls)
    return f"{hall} takes the most, {most / 1e3:g} kW"


def _told_apart(inputs: ResolvedScenario, racks: float) -> str:
    """Return which variant of the system prices racks as they stand, if one does."""
    _, document = inputs.catalogue.document("systems", inputs.system.id, "system")
    for variant_key, branches in document.get("variants", {}).items():
        for variant_value, branch in branches.items():
            if isinstance(branch, dict) and math.isclose(branch.get("racks", 0), racks):
                return f"; {variant_key}={variant_value} prices it as it stands"
    return ""


def _not_ready(inputs: ResolvedScenario) -> list[str]:
    """Return a note where a site opens after the date of the prices."""
    ready = inputs.texts.get("site.ready")
    if ready is None or period(ready, "site.ready").first <= period(inputs.date).last:
        return []
    return [
        f"{inputs.scenario.documents['site']} is ready from {ready}, after the date of the prices, "
        f"{inputs.date}"
    ]


def beyond_a_position(input_values: Values, bill: Bill, racks: float) -> Any:
    """Say whether a rack draws more than a rack position takes.

    If scale-up domains share a rack, a single domain must draw more. `rack_placement_notes` judges
    racks by the same rule.

    Args:
        input_values: Values of the inputs by path, numbers or arrays.
        bill: Bill of the system, whose power in W counts.
        racks: Racks of a scale-up domain; below 1 where domains share a rack.

    Returns:
        Truth value, or an array of truth values in the shape of the inputs.

    """
    most = input_values.number("site.rack_kw_max")
    over = bill.power / racks > most * (1 + 1e-9)
    return over & (most / bill.power * (1 + 1e-9) < 1) if racks < 1 else over


def worlds_in_a_rack(most: float, power: float, racks: float) -> int:
    """Return the number of scale-up domains that a rack position takes.

    Only domains that share a rack by design count.

    Args:
        most: Power that a rack position takes, W.
        power: Power of a domain, W.
        racks: Racks of a domain.

    Returns:
        Number of domains; 0 for a domain of a whole rack or more.

    """
    return (
        min(math.floor(most / power * (1 + 1e-9)), math.floor(1 / racks + 1e-9)) if racks < 1 else 0
    )


HOURS_PER_YEAR = 8760
SHARE_PRICES = "shares."  # prefix of the paths of share prices
# Share of the IT price from which a note names a network that the workload does not use.
NOTABLE_NETWORK_SHARE = 0.2


def scenario_cost(
    inputs: ResolvedScenario,
    input_values: Values,
    bill: Bill,
    network: Network,
    rebates: list[Rebate],
) -> Cost:
    """Return the cost of a scenario's world to its owner, or to who rents it."""
    system = inputs.system
    failing_parts, left = stage(
        "failures", inputs, input_values, lambda: _failures_of(inputs, input_values)
    )
    if inputs.perspective.rents:
        from tco.cost.ledger import cost_of_rent  # most scenarios own their racks

        rent = _comparable_rent_path(inputs, input_values)
        return _add_waiting_cost(
            inputs,
            input_values,
            cost_of_rent(input_values, bill, network, rent, system.chips, left, system.chip),
        )
    broken = failing_parts if inputs.states(REPAIRS, input_values) else []
    bought = bill, network, rebates, broken
    standing = stage(
        "standing cost",
        inputs,
        input_values,
        lambda: standing_cost_of(inputs, input_values, *bought),
        *bought,
    )
    cost = cost_of_world(input_values, standing, system.chips, left)
    return _add_waiting_cost(inputs, input_values, cost)


class OwnerCost(NamedTuple):
    """Racks of a scenario, and their cost to the owner."""

    bill: Bill | None
    network: Network | None
    rebates: list[Rebate]
    cost: Cost | None
    unpriced: UnavailableError | None  # reason why there is no cost; None with one


def owner_cost(inputs: ResolvedScenario, input_values: Values) -> OwnerCost:
    """Return bill of materials, network, rebates and cost of a scenario, or why it has no cost."""
    return stage("owner cost", inputs, input_values, lambda: _owner_cost(inputs, input_values))


def _owner_cost(inputs: ResolvedScenario, input_values: Values) -> OwnerCost:
    bill, network = None, None
    try:
        bill = stage(
            "bill",
            inputs,
            input_values,
            lambda: bill_of_materials(
                inputs.system, input_values, inputs.catalogue, inputs.text("terms.yield")
            ),
        )
        refuse_less_than_a_world(inputs, input_values)
        network = stage(
            "network", inputs, input_values, lambda: design_network(inputs, input_values)
        )
        refuse_misfit(inputs.catalogue, inputs.perspective, inputs.system, inputs.owner)
        refuse_strangers(inputs, input_values, bill, network)
        rebates = rebates_on_bill(inputs, input_values, bill)
        cost = scenario_cost(inputs, input_values, bill, network, rebates)
        return OwnerCost(bill, network, rebates, cost, None)
    except UnavailableError as error:
        return OwnerCost(bill, network, [], None, error.with_traceback(None))


def _add_waiting_cost(inputs: ResolvedScenario, input_values: Values, cost: Cost) -> Cost:
    """Return a cost with the cost of waiting for the system, if the terms include it."""
    if inputs.text("terms.waiting") == "no":
        return cost
    if inputs.perspective.rents:
        raise UnavailableError(
            "terms.waiting=yes: a renter owns nothing over whose life waiting could be spread; set "
            "terms.waiting=no"
        )
    from tco.cost.ledger import with_waiting  # few scenarios need it
    from tco.cost.waiting import waiting_cost, waiting_inputs

    states = inputs.catalogue.has_part_value
    with scope("cost"):
        per_chip = waiting_cost(input_values, inputs.system, cost, inputs.date, states)
    if per_chip is None:
        return cost
    return with_waiting(
        input_values,
        cost,
        per_chip,
        inputs.system.chips,
        waiting_inputs(inputs.system, states),
        holding_of(inputs, input_values).own_rates,
    )


def _rent_path(inputs: ResolvedScenario, input_values: Values) -> str:
    """Return the path of a renter's rent: one that is set, or the commitment's first known kind."""
    from tco.cost.ledger import COMMITMENTS

    chip, rent_attributes = inputs.system.chip, COMMITMENTS[inputs.text("terms.commitment")]
    paths = [f"parts.{chip}.{rent_attribute}" for rent_attribute in rent_attributes]
    catalogue_paths = (
        path
        for rent_attribute, path in zip(rent_attributes, paths, strict=True)
        if inputs.catalogue.has_part_value(chip, rent_attribute)
    )
    usual = f"parts.{chip}.rent"
    return next((path for path in paths if input_values.has(path)), None) or next(
        catalogue_paths, usual if usual in paths else paths[0]
    )


def _comparable_rent_path(inputs: ResolvedScenario, input_values: Values) -> str:
    """Return the path of a scenario's rent; another publisher's raises `UnavailableError`.

    The publisher is that of the comparison.
    """
    from tco.cost.ledger import RENTS

    path, publisher = _rent_path(inputs, input_values), inputs.texts.get(PUBLISHER)
    if not publisher or input_values.has(path):
        return path
    _, chip, rent_attribute = path.split(".")
    is_stated = inputs.catalogue.has_part_value(chip, rent_attribute)
    if not is_stated or input_values.input(path).publisher != publisher:
        origin_text = (
            f"stated by {input_values.input(path).publisher} alone" if is_stated else "not public"
        )
        raise UnavailableError(
            f"{path} ({RENTS[rent_attribute]}) is {origin_text}. A comparison takes one kind "
            f"of rent from one publisher, here {publisher}."
        )
    return path


def notes_of_rent(inputs: ResolvedScenario, input_values: Values, bill: Bill) -> list[str]:
    """Return notes on a rent: its range and date, whether it is circular or too high."""
    from tco.cost.ledger import CIRCULAR, RENTS

    rent_input = input_values.input(_rent_path(inputs, input_values))
    if inputs.shape:
        return []
    span = (
        ""
        if rent_input.low is None or rent_input.high is None
        else f", {rent_input.low:g} to {rent_input.high:g}"
    )
    kind = RENTS[rent_input.path.rpartition(".")[2]]
    notes = (
        [
            f"{rent_input.path} is {rent_input.value:g} USD per chip-hour{span}, {kind}, of "
            f"{rent_input.as_of} by "
            f"{rent_input.publisher}"
        ]
        if rent_input.as_of
        else []
    )
    if rent_input.source == CIRCULAR:
        notes.append(
            f"{rent_input.path} follows from this program's own cost: it is circular, and no ratio "
            "rests on it"
        )
    years, price = input_values["terms.life"], bill.price / inputs.system.chips
    if rent_input.value * HOURS_PER_YEAR * years > 2 * price:
        paid = rent_input.value * HOURS_PER_YEAR * years
        notes.append(
            f"{rent_input.where}: {rent_input.path}: {years:g} years of it are {paid:,.0f} USD, "
            f"more than twice the {price:,.0f} of buying"
        )
    return notes


def notes_of_network(inputs: ResolvedScenario, cost: Cost, plan: Any) -> list[str]:
    """Return a note where serving stays in one scale-up domain but much is paid for the network."""
    if inputs.shape or not hasattr(plan, "decode") or not float(cost.capex_per_chip):
        return []
    inside = max(float(plan.decode.chips), float(plan.prefill.chips)) <= inputs.system.chips
    share = float(cost.network_per_chip) / float(cost.capex_per_chip)
    if not inside or share < NOTABLE_NETWORK_SHARE:
        return []
    chosen = "".join(
        f", here with nic={variant_value}"
        for variant_key, variant_value in inputs.system.variant.items()
        if variant_key == "nic"
    )
    bought = f"{cost.network_per_chip:,.0f} USD per chip ({share:.0%})"
    return [
        "serving keeps inside one scale-up domain and uses none of the scale-out network, "
        f"{bought}{chosen}"
    ]


def notes_of_cards(inputs: ResolvedScenario, cost: Cost) -> list[str]:
    """Return a note where the racks have other cards than they usually have."""
    if (
        inputs.shape
        or inputs.perspective.rents
        or (chosen := inputs.system.variant.get("nic")) is None
    ):
        return []
    _, document = inputs.catalogue.document("systems", inputs.system.id, "system")
    usual = document["variants"]["nic"]["default"]
    if chosen == usual:
        return []
    return [
        f"nic={chosen} in place of the usual nic={usual}: the network is "
        f"{cost.network_per_chip:,.0f} USD per chip"
    ]


def _parts_that_fail(inputs: ResolvedScenario, input_values: Values) -> list[Failing]:
    """Return the parts that fail, those among them whose rate somebody states."""

    def states(part: str, attribute: str) -> bool:
        return inputs.catalogue.has_part_value(part, attribute) or input_values.has(
            f"parts.{part}.{attribute}"
        )

    with scope("failures"):
        return failing(input_values, inputs.system, states)


def _failures_of(inputs: ResolvedScenario, input_values: Values) -> tuple[list[Failing], Quantity]:
    """Return the parts that fail, and the goodput.

    A stated availability replaces what failures leave of the hours.
    """
    failing_parts = _parts_that_fail(inputs, input_values)
    trains, stated = workload_kind(inputs).restarts, inputs.states(AVAILABILITY, input_values)
    with scope("failures"):
        return failing_parts, input_values.derived(
            "metrics.goodput",
            "",
            lambda: goodput(input_values, inputs.system, failing_parts, trains, stated),
        )


def notes_of_checkpoints(inputs: ResolvedScenario, input_values: Values) -> list[str]:
    """Return a note where a training job saves for longer than it works."""
    if not workload_kind(inputs).restarts:
        return []
    with paused():
        return long_checkpoints(input_values, inputs.system, _parts_that_fail(inputs, input_values))


def _agreements_of(inputs: ResolvedScenario) -> list[Agreement]:
    return [load_agreement(inputs.catalogue, agreement_name) for agreement_name in inputs.rebates]


def rebates_on_bill(inputs: ResolvedScenario, input_values: Values, bill: Bill) -> list[Rebate]:
    """Return the rebates on a bill from the owner's supplier agreements.

    A warrant may be worth more than the purchases that vest it: its worth follows the share price.
    """
    agreements = in_force_for(_agreements_of(inputs), inputs.owner, inputs.date)
    return [
        rebate_of(agreement, bill.lines, inputs.system.chips, input_values)
        for agreement in agreements
    ]


def excess_notes(
    inputs: ResolvedScenario, input_values: Values, rebates: Sequence[Rebate]
) -> list[str]:
    """Return a note on each agreement that gives back more than is paid."""
    notes = []
    for rebate in rebates if not inputs.shape else ():
        back, paid = untraced_value(rebate.value), untraced_value(rebate.spend)
        if back <= paid * (1 + 1e-9):
            continue
        prices = [path for path in rebate.inputs if path.startswith(SHARE_PRICES)]
        cause = "".join(
            f" at {short_name(path)} {input_values.number(path):,.2f} USD" for path in prices
        )
        share = f", {back / paid * 100:.0f} % of it" if paid else ""
        notes.append(
            f"{rebate.path}: {back:,.0f} USD come back on {paid:,.0f} USD paid for the parts it "
            f"covers{share}{cause}"
        )
    return notes


def refuse_strangers(
    inputs: ResolvedScenario, input_values: Values, bill: Bill, network: Network
) -> None:
    """Raise `DataError` for an agreement that the owner does not hold, with the cost without it."""
    if inputs.scenario.rebates is None:
        return
    for agreement in _agreements_of(inputs):
        if agreement.holder != inputs.owner:
            gross: Quantity = untraced_value(
                scenario_cost(inputs, input_values, bill, network, []).per_chip_hour
            )
            figure = (
                f"the gross cost of {gross:.4g} USD per chip-hour"
                if not inputs.shape
                else "the gross cost"
            )
            raise DataError(
                f"{inputs.scenario.where}: rebates: {agreement.id} is held by {agreement.holder}, "
                f"the owner here is {_owner_in_words(inputs)} "
                f"(terms.owner); leave it out for {figure}, or set terms.owner={agreement.holder}"
            )


def _owner_in_words(inputs: ResolvedScenario) -> str:
    return inputs.owner or f"a {inputs.perspective.id}"


def agreement_notes(inputs: ResolvedScenario) -> list[str]:
    """Return notes on agreements in force that others hold."""
    agreements = [
        agreement for agreement in _agreements_of(inputs) if agreement.in_force(inputs.date)
    ]
    uncounted_agreements = [
        f"{agreement.id}, held by {agreement.holder}"
        for agreement in agreements
        if agreement.gives_back and agreement.holder != inputs.owner
    ]
    notes = (
        [
            f"{', '.join(uncounted_agreements)}: not counted, as the owner is "
            f"{_owner_in_words(inputs)}"
        ]
        if uncounted_agreements
        else []
    )
    stakes = [
        agreement
        for agreement in agreements
        if not agreement.gives_back and agreement.holder == inputs.owner
    ]
    return notes + [
        f"{agreement.id}: {agreement.supplier} invests in {agreement.holder} for shares; no "
        "discount, not counted"
        for agreement in stakes
    ]
