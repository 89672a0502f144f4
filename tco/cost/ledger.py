"""The cost of one scale-up domain as a list of lines, down to dollars per chip-hour."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tco.core.formula import formula, total
from tco.core.inputs import Values
from tco.core.provenance import DIRECTNESS, SOURCED, Input, least_direct, worst
from tco.core.trace import scope
from tco.core.types import Quantity
from tco.core.units import USD, Chip, Pure, USDPerChip, USDPerChipHour, Watt
from tco.cost.cash_flows import Flow, Terms, chip_hour, chips_cost, yearly_upkeep
from tco.cost.failures import Failing, yearly_repairs
from tco.cost.ownership import Holding, Rebate, StorageTiers, design_share
from tco.cost.site import (
    air_building_rate,
    average_draw,
    building_price,
    crowded_rate,
    crowded_rent,
    idle_draw,
    liquid_building_rate,
    rate_without_backup,
    rented_power,
    sidecar_power,
    sidecar_price,
    stored_price,
    yearly_demand,
    yearly_energy,
    yearly_rent,
    yearly_staff,
    yearly_stored,
)
from tco.system.bill import Bill, extended_power, joint_capacity, share_of_price
from tco.system.scale_out_network import Network


@formula("")
def world_share(world_chips: Pure, cluster_chips: Pure) -> Quantity:
    """Share of a scale-up domain in the cluster's common cost: s = world chips / cluster chips.

    The common cost is that of price, power and storage.
    """
    return world_chips / cluster_chips


@formula("USD")
def negative(rebate: USD) -> Quantity:
    """A rebate as it enters a sum of prices: -R."""
    return -rebate


@formula("USD/chip")
def price_per_chip(price: USD, chips: Chip) -> Quantity:
    """A price of the world per chip: c = C / chips."""
    return price / chips


@formula("W/chip")
def power_per_chip(power: Watt, chips: Chip) -> Quantity:
    """A power of the world per chip: p = P / chips."""
    return power / chips


@formula("USD")
def price_of_each(price: USD, count: Pure) -> Quantity:
    """Price of one of some equal parts, or its share in the price of what holds them: c = C / n."""
    return price / count


@formula("USD/chip/h")
def used_chip_hour(calendar: USDPerChipHour, goodput: Pure, utilisation: Pure) -> Quantity:
    """Cost per used chip-hour: calendar cost / (goodput x utilisation)."""
    return calendar / (goodput * utilisation)


@formula("USD")
def price_of_chips(per_chip: USDPerChip, chips: Chip) -> Quantity:
    """Price of the world from a price per chip: C = c n."""
    return per_chip * chips


WAITING = "waiting"  # path and asset class of the line for waiting for a system
REPAIRS = "terms.repairs"  # share of the failed parts that the owner buys again
FLASH_PRICE = "parts.flash-storage.price_per_byte"
FLASH_CAPACITY = "cluster.flash_capacity"
OBJECT_RENT = "parts.object-storage.rent_per_byte"
OBJECT_CAPACITY = "cluster.object_capacity"
HARDWARE = ("servers", "network", "storage", "rent")  # asset classes priced by their hardware
# Asset classes whose kind of evidence is that of their price. For the others it also depends on
# the rate and the life of the class.
KIND_OF_PRICE = frozenset((*HARDWARE, "rebate"))
# Input with the premium or discount of a hall against the market's average, and the formula of
# the hall's construction cost, by the cooling of the hall.
HALL_RATES = {
    "air": ("site.air_discount", air_building_rate),
    "liquid": ("site.liquid_premium", liquid_building_rate),
}
# Descriptions of the statistics of a chip's rent, in descending order of closeness to paid prices.
RENTS = {
    "rent_one_year": "contracts of one year",
    "rent": "contracts of three years",
    "rent_reserved": "list prices, reserved",
    "rent_list": "list price of a block of days",
    "rent_on_demand": "list prices, on demand",
    "rent_spot": "list prices, spot",
    "rent_bound": "upper bound",
}
COMMITTED = "committed"
# Statistics of rent by the commitment of a renter. The first one that is known of a chip applies.
COMMITMENTS = {
    COMMITTED: ("rent_one_year", "rent", "rent_reserved", "rent_list", "rent_bound"),
    "one-year": ("rent_one_year",),
    "three-years": ("rent",),
    "reserved": ("rent_reserved",),
    "on-demand": ("rent_on_demand",),
    "spot": ("rent_spot",),
    "list": ("rent_list",),
    "bound": ("rent_bound",),
}
# Source of a rent that follows from the program's own cost, so that no comparison may use it.
CIRCULAR = "tco-circular"


class Cost(NamedTuple):
    """Cost lines of a world and the sums that metrics need."""

    lines: list[Flow]
    capex: Quantity  # USD
    capex_per_chip: Quantity  # USD
    network_per_chip: Quantity  # USD
    rebate_per_chip: Quantity  # USD
    it_power: Quantity  # W
    it_power_per_chip: Quantity  # W
    energy: Quantity  # USD per chip-hour
    per_chip_hour: Quantity  # USD per installed chip-hour, net of rebates
    gross_per_chip_hour: Quantity  # USD per installed chip-hour before rebates
    goodput: Quantity  # share of the hours in which chips make progress
    utilisation: Quantity
    draw: Quantity  # average draw over the provisioned power
    waiting_per_chip: Any = None  # USD, set where waiting is one of the lines

    def used(self, per_chip_hour: Quantity) -> Quantity:
        """Return the cost per used chip-hour of a cost per calendar chip-hour.

        Elements of an array are nan where the goodput is zero.
        """
        goodput = self.goodput
        if isinstance(goodput, np.ndarray):
            goodput = np.where(goodput > 0, goodput, np.nan)
        return used_chip_hour(per_chip_hour, goodput, self.utilisation)


class StandingCost(NamedTuple):
    """Cost of a world without its energy: purchases, site, staff, upkeep and rebates."""

    lines: list[Flow]  # lines before the line of energy
    later_lines: list[Flow]  # lines after the line of energy
    rebate_lines: list[Flow]
    capex: Quantity  # USD
    capex_per_chip: Quantity  # USD
    network_per_chip: Quantity  # USD
    rebate_per_chip: Quantity  # USD
    it_power: Quantity  # W
    it_power_per_chip: Quantity  # W
    draw: Quantity  # average draw over the provisioned power


class Ledger:
    """Collects the cost lines of one world."""

    def __init__(self, input_values: Values, chips: float, own_rates: Container[str] = ()) -> None:
        self.values = input_values
        self.terms = Terms(input_values, own_rates)
        self.chips = chips
        self.lines: list[Flow] = []

    def capital(
        self,
        path: str,
        asset: str,
        price: Quantity,
        kind: str,
        sources: tuple[str, ...],
        inputs: tuple[str, ...],
        overlay: bool = False,
    ) -> None:
        """Add a purchase, recovered over the life of its asset class."""
        # Lines of a class share the charge, so it is computed outside the scope of the first line.
        self.terms.charge(asset)
        if asset not in KIND_OF_PRICE:
            paths = self.terms.paths(asset)
            kind = worst([kind, *(self.values.input(term_path).kind for term_path in paths)])
        with scope(path):
            self.add(self.terms.purchase(path, asset, price, kind, sources, inputs, overlay))

    def priced(
        self, path: str, asset: str, price: Quantity, *inputs: str, kinds: Iterable[str] = ()
    ) -> None:
        """Add a purchase whose price depends on `inputs`, and on values of other `kinds`."""
        kind, sources, overlay = self.values.grounds(inputs)
        self.capital(path, asset, price, worst([kind, *kinds]), sources, inputs, overlay)

    def yearly(
        self, path: str, asset: str, bill: Callable[..., Quantity], base: Quantity, *inputs: str
    ) -> Quantity:
        """Add a yearly line and return its cost per chip-hour, USD.

        Args:
            path: Path of the line.
            asset: Asset class of the line.
            bill: Formula of the yearly cost, from the base and the values of the inputs.
            base: Base of the yearly cost, such as a power or a price.
            *inputs: Paths of the inputs.

        """
        with scope(path):
            cost = bill(base, *(self.values[input_path] for input_path in inputs))
            return self.add(self.terms.recurring(path, asset, cost, inputs))

    def add(self, flow: Flow) -> Quantity:
        """Add a flow and return its cost per chip-hour, USD."""
        hourly = chip_hour(flow, self.terms, self.chips)
        self.lines.append(flow._replace(usd_per_chip_hour=hourly))
        return hourly

    def take_lines(self) -> list[Flow]:
        """Remove and return all lines of the ledger."""
        lines = self.lines
        self.lines = []
        return lines


def cost_of_world(
    input_values: Values, standing: StandingCost, chips: float, goodput: Quantity
) -> Cost:
    """Return every cost line of a world of `chips` and their sums.

    Args:
        input_values: Values of the inputs.
        standing: Cost of the world without energy.
        chips: Chips of the world.
        goodput: Share of the hours in which chips make progress.

    Returns:
        Lines in USD, with sums in USD per chip and USD per chip-hour, and power in W.

    """
    with scope("cost"):
        ledger = Ledger(input_values, chips)
        energy = _add_energy(ledger, standing)
        lines = [*standing.lines, *ledger.lines, *standing.later_lines]
        gross = total("gross_cost_per_chip_hour", [line.usd_per_chip_hour for line in lines])
        lines += standing.rebate_lines
        calendar = total("cost_per_chip_hour", [line.usd_per_chip_hour for line in lines])
        return Cost(
            lines=lines,
            capex=standing.capex,
            capex_per_chip=standing.capex_per_chip,
            network_per_chip=standing.network_per_chip,
            rebate_per_chip=standing.rebate_per_chip,
            it_power=standing.it_power,
            it_power_per_chip=standing.it_power_per_chip,
            energy=energy,
            per_chip_hour=calendar,
            gross_per_chip_hour=gross,
            goodput=goodput,
            utilisation=input_values["terms.utilisation"],
            draw=standing.draw,
        )


def standing_cost(
    input_values: Values,
    bill: Bill,
    network: Network,
    rebates: Sequence[Rebate],
    chips: float,
    tenure: str,
    sidecar: str | None,
    holding: Holding,
    broken: Sequence[Failing],
) -> StandingCost:
    """Return the cost of a world of `chips` without its energy.

    Args:
        input_values: Values of the inputs.
        bill: Bill of the world.
        network: Scale-out network of the cluster; the world bears its share.
        rebates: Rebates of agreements on the world.
        chips: Chips of the world.
        tenure: 'own' or 'colocation'.
        sidecar: Part that cools liquid-cooled racks where the site cannot; None without.
        holding: Further facts about owner, racks and site that select cost lines.
        broken: Places of the tree whose parts fail and are bought again by the owner.

    """
    with scope("cost"):
        ledger = Ledger(input_values, chips, holding.own_rates)
        share = world_share(chips, input_values["cluster.chips"])
        all_network, capex = _add_purchases(ledger, bill, network, share, holding)
        it_power = _it_power(input_values, bill, extended_power(network.power, share), sidecar)
        if holding.design is not None:
            _add_design(ledger, holding.design)
        draw = _average_power_share(input_values, bill, holding.chip, it_power)
        _add_site(ledger, it_power, tenure, holding, sidecar)
        lines = ledger.take_lines()
        if sidecar is not None:
            _add_sidecar(ledger, bill, sidecar)
        ledger.yearly("upkeep/equipment", "upkeep", yearly_upkeep, capex, "terms.maintenance")
        add_repairs(ledger, bill, broken)
        later_lines = ledger.take_lines()
        rebate_sum = _add_rebates(ledger, rebates)
        return StandingCost(
            lines=lines,
            later_lines=later_lines,
            rebate_lines=ledger.lines,
            capex=capex,
            capex_per_chip=_per_chip(price_per_chip, "capex", capex, chips),
            network_per_chip=_per_chip(price_per_chip, "network", all_network, chips),
            rebate_per_chip=_per_chip(price_per_chip, "rebates", rebate_sum, chips),
            it_power=it_power,
            it_power_per_chip=_per_chip(power_per_chip, "it_power", it_power, chips),
            draw=draw,
        )


def _add_sidecar(ledger: Ledger, bill: Bill, sidecar: str) -> None:
    path = f"parts.{sidecar}.price_per_power"
    cooler = sidecar_price(bill.power, ledger.values[path])
    ledger.priced("site/sidecar", "cooling", cooler, path)
    ledger.yearly("upkeep/sidecar", "upkeep", yearly_upkeep, cooler, "terms.maintenance")


def _add_purchases(
    ledger: Ledger,
    bill: Bill,
    network: Network,
    share: Quantity,
    holding: Holding,
) -> tuple[Quantity, Quantity]:
    """Add servers, network, storage and surcharges; return the sums of the network and of all."""
    rack_network_prices = _add_servers(ledger, bill, holding.network)
    shared_prices = []
    for part in network.lines:
        with scope("network", part.name):
            price = share_of_price(part.price, share)
        shared_prices.append(price)
        ledger.capital(
            f"network/{part.name}", "network", price, part.kind, part.sources, part.inputs
        )
    network_price = total("network_share", shared_prices)
    all_network = network_price
    if rack_network_prices:
        all_network = total("scale_out_network", [*rack_network_prices, network_price])
    storage = _add_storage(ledger, bill, share, holding.tiers)
    surcharges = _add_surcharges(ledger, bill, network_price, storage)
    return all_network, total("capex", [bill.price, network_price, storage, *surcharges])


def _it_power(
    input_values: Values, bill: Bill, network_power: Quantity, sidecar: str | None
) -> Quantity:
    powers = [bill.power, network_power]
    if sidecar is not None:
        powers.append(sidecar_power(bill.power, input_values[f"parts.{sidecar}.power_share"]))
    return total("it_power", powers)


def _add_design(ledger: Ledger, design: str) -> None:
    paths = [
        f"parts.{design}.{attribute}"
        for attribute in ("design_cost", "software_cost", "design_volume")
    ]
    price = design_share(ledger.chips, *(ledger.values[path] for path in paths))
    ledger.priced("design", "design", price, *paths)


def _add_rebates(ledger: Ledger, rebates: Sequence[Rebate]) -> Quantity:
    """Add rebates as negative purchases; return their sum in USD."""
    for rebate in rebates:
        path = rebate.path.replace(".", "/")
        with scope(path):
            price = negative(rebate.value)
        ledger.capital(path, "rebate", price, rebate.kind, rebate.sources, rebate.inputs)
    return total("rebates", [rebate.value for rebate in rebates]) if rebates else 0.0


def with_waiting(
    input_values: Values,
    cost: Cost,
    per_chip: Quantity,
    chips: float,
    inputs: Sequence[str],
    own_rates: Container[str],
) -> Cost:
    """Return a cost with a line for waiting until the system is available.

    Args:
        input_values: Values of the inputs.
        cost: Cost without waiting.
        per_chip: Cost of waiting, USD per chip.
        chips: Chips of the world.
        inputs: Paths of the inputs that set `per_chip`.
        own_rates: Asset classes with a separate cost of capital.

    """
    with scope("cost", WAITING):
        ledger = Ledger(input_values, chips, own_rates)
        ledger.priced(WAITING, WAITING, price_of_chips(per_chip, chips), *inputs)
        hour = ledger.lines[0].usd_per_chip_hour
        net = total("cost_per_chip_hour", [cost.per_chip_hour, hour])
        gross = total("gross_cost_per_chip_hour", [cost.gross_per_chip_hour, hour])
    lines = [*cost.lines, *ledger.lines]
    return cost._replace(
        lines=lines, per_chip_hour=net, gross_per_chip_hour=gross, waiting_per_chip=per_chip
    )


def _average_power_share(
    input_values: Values, bill: Bill, chip: str, it_power: Quantity
) -> Quantity:
    """Return the racks' average draw as a share of their provisioned power.

    Chips that wait for work draw less. Most other parts draw the same power all the time.
    """
    with scope("site", "draw"):
        chip_powers = [line.power for line in bill.lines if line.part == chip]
        idle = idle_draw(
            total("chip_power", chip_powers) if chip_powers else 0.0,
            it_power,
            input_values["site.idle_chips"],
            input_values["site.idle_rest"],
        )
        return average_draw(
            input_values["site.load_factor"],
            input_values["terms.utilisation"],
            input_values["site.load_utilisation"],
            idle,
        )


def _add_storage(ledger: Ledger, bill: Bill, share: Quantity, tiers: StorageTiers) -> Quantity:
    """Add the stated tiers of storage, or a share of the servers, and return the purchase price.

    Flash is bought, and object storage is rented.
    """
    if not tiers.flash and not tiers.objects:
        kinds = [line.kind for line in bill.lines if line.extended is not None]
        storage = share_of_price(bill.price, ledger.values["cluster.storage_share"])
        ledger.priced("storage", "storage", storage, "cluster.storage_share", kinds=kinds)
        return storage
    bought: Quantity = 0.0
    if tiers.flash:
        with scope("storage", "flash"):
            bought = stored_price(
                joint_capacity(share, ledger.values[FLASH_CAPACITY]), ledger.values[FLASH_PRICE]
            )
        ledger.priced("storage/flash", "storage", bought, FLASH_PRICE, FLASH_CAPACITY)
    if tiers.objects:
        with scope("storage", "objects"):
            object_capacity = joint_capacity(share, ledger.values[OBJECT_CAPACITY])
        ledger.yearly("storage/objects", "upkeep", yearly_stored, object_capacity, OBJECT_RENT)
    return bought


def _add_servers(ledger: Ledger, bill: Bill, network: frozenset[str]) -> list[Quantity]:
    """Add the purchases of the system's tree, and return the prices of its scale-out network.

    A stated price of the whole system is one line.
    """
    if bill.lines and ledger.values.has("system.price"):
        # The unit of this price comes from the bill, since no attribute states it.
        price = ledger.values.derived("system.price", "USD", lambda: bill.price)
        ledger.priced("servers/system", "servers", price, "system.price")
        return []
    network_prices = []
    for line in bill.lines:
        if line.extended is None:
            continue
        asset = "network" if line.part in network else "servers"
        ledger.capital(
            f"{asset}/{line.path}",
            asset,
            line.extended,
            line.kind,
            line.sources,
            line.inputs,
            line.overlay,
        )
        if asset == "network":
            network_prices.append(line.extended)
    return network_prices


def _add_surcharges(
    ledger: Ledger, bill: Bill, network: Quantity, storage: Quantity
) -> list[Quantity]:
    """Add the seller's margin and the purchase tax where the terms have them."""
    surcharges = []
    margin = ledger.values.unless_zero("terms.margin")
    tax = ledger.values.unless_zero("terms.purchase_tax")
    if margin is not None:
        surcharges.append(share_of_price(bill.price, margin))
        ledger.priced("servers/seller-margin", "servers", surcharges[-1], "terms.margin")
    if tax is not None:
        taxed = total("taxed_purchases", [bill.price, network, storage, *surcharges])
        surcharges.append(share_of_price(taxed, tax))
        ledger.priced("servers/tax", "servers", surcharges[-1], "terms.purchase_tax")
    return surcharges


def add_repairs(ledger: Ledger, bill: Bill, broken: Sequence[Failing]) -> None:
    """Add the yearly cost of replacement parts for the share of failures that the owner pays.

    Resets and the vendor cover the other failures. The price of a part includes its contents. A
    part that is sold within an assembly has an equal share of the assembly's price.
    """
    if not broken:
        return
    priced_lines = [line for line in bill.lines if line.extended is not None]
    repair_costs = []
    paths = [REPAIRS]
    for failing_part in broken:
        leaf_path = failing_part.leaf.path
        part_lines = [
            line for line in priced_lines if f"{line.path}/".startswith(f"{leaf_path}/")
        ] or [line for line in priced_lines if leaf_path.startswith(f"{line.path}/")]
        with scope("upkeep/repairs", leaf_path):
            part_price = price_of_each(
                total("price", [line.extended for line in part_lines]), failing_part.leaf.quantity
            )
            repair_costs.append(
                yearly_repairs(part_price, failing_part.failures, ledger.values[REPAIRS])
            )
        paths.append(failing_part.path)
    with scope("upkeep/repairs"):
        total_repairs = total("all_repairs", repair_costs)
        ledger.add(
            ledger.terms.recurring(
                "upkeep/repairs", "upkeep", total_repairs, tuple(dict.fromkeys(paths))
            )
        )


def _per_chip(
    share: Callable[..., Quantity], scope_name: str, total_amount: Quantity, chips: float
) -> Quantity:
    with scope(scope_name):
        return share(total_amount, chips)


def hall_rate(input_values: Values, cooling: str, market_rate: Any) -> Any:
    """Return the construction cost of a hall, USD per watt of IT power.

    Args:
        input_values: Values of the inputs.
        cooling: 'air' or 'liquid'.
        market_rate: Average construction cost on the market, USD per watt.

    """
    path, formula_of_hall = HALL_RATES[cooling]
    return formula_of_hall(market_rate, input_values[path])


def _add_site(
    ledger: Ledger,
    it_power: Quantity,
    tenure: str,
    holding: Holding,
    sidecar: str | None,
) -> None:
    """Add the building and its staff, or the rent, and the demand charge."""
    if tenure == "own":
        _add_building(ledger, it_power, holding, sidecar)
    else:
        _add_colocation(ledger, it_power, holding, sidecar)
    if holding.demand_charge:
        ledger.yearly(
            "site/demand", "energy", yearly_demand, it_power, "site.pue_peak", "site.demand_charge"
        )


def _add_building(
    ledger: Ledger,
    it_power: Quantity,
    holding: Holding,
    sidecar: str | None,
) -> None:
    """Add the building with its upkeep and staff."""
    paths = ["site.usd_per_mw"]
    rate = ledger.values["site.usd_per_mw"]
    if holding.hall is not None:
        paths.append(HALL_RATES[holding.hall][0])
        rate = hall_rate(ledger.values, holding.hall, rate)
    if holding.backup_in_racks:
        paths.append("site.backup_usd_per_mw")
        rate = rate_without_backup(rate, ledger.values["site.backup_usd_per_mw"])
    if sidecar is not None:
        paths.append(f"parts.{sidecar}.hall_share")
        rate = crowded_rate(rate, ledger.values[f"parts.{sidecar}.hall_share"])
    building = building_price(it_power, rate)
    ledger.priced("site/building", "building", building, *paths)
    ledger.yearly("site/building-upkeep", "upkeep", yearly_upkeep, building, "site.maintenance")
    ledger.yearly("site/staff", "staff", yearly_staff, it_power, "site.staff")


def _add_colocation(
    ledger: Ledger,
    it_power: Quantity,
    holding: Holding,
    sidecar: str | None,
) -> None:
    """Add the rent of a hall for the power of the racks."""
    paths = ["site.colo_usd_per_kw_month"]
    with scope("site/colocation"):
        power = it_power
        if holding.quoted_peak is not None:
            power = rented_power(it_power, ledger.values["site.pue_peak"], holding.quoted_peak)
        rent = ledger.values["site.colo_usd_per_kw_month"]
        if sidecar is not None:
            paths.append(f"parts.{sidecar}.hall_share")
            rent = crowded_rent(rent, ledger.values[f"parts.{sidecar}.hall_share"])
    ledger.yearly(
        "site/colocation",
        "building",
        lambda rented, *_: yearly_rent(rented, rent),
        power,
        *paths,
    )


def _add_energy(ledger: Ledger, standing: StandingCost) -> Quantity:
    """Add the energy of the average draw, and return its cost per chip-hour."""
    return ledger.yearly(
        "site/energy",
        "energy",
        lambda power, _, *rest: yearly_energy(power, standing.draw, *rest),
        standing.it_power,
        "site.load_factor",
        "site.pue",
        "site.electricity_price",
    )


def shares_by_kind(lines: list[Flow]) -> dict[str, dict[str, float]]:
    """Return the shares of the cost that are sourced, estimated and assumed.

    Rebates do not count. A line with inputs of several kinds counts as the weakest kind.

    Args:
        lines: Cost lines of a scenario.

    Returns:
        Two tables of shares from 0 to 1 by kind. `hardware` holds shares of the hardware's price.
        `terms` holds shares of the cost per chip-hour that terms and site add.

    """
    hardware, terms = [], []
    for line in lines:
        if line.asset in HARDWARE:
            hardware.append((line.kind, line.amount))
        elif line.asset != "rebate":
            terms.append((line.kind, line.usd_per_chip_hour))
    return {"hardware": _shares_of_amounts(hardware), "terms": _shares_of_amounts(terms)}


def shares_by_directness(lines: list[Flow], inputs: Mapping[str, Input]) -> dict[str, float]:
    """Return shares of the hardware's price by directness of its sources.

    A line is as direct as the least direct input of its price.

    Args:
        lines: Cost lines of a scenario.
        inputs: Inputs of the lines by path.

    Returns:
        Shares from 0 to 1 by directness; empty where the hardware costs nothing.

    """
    sums = dict.fromkeys(DIRECTNESS, 0.0)
    for line in lines:
        if line.asset in HARDWARE:
            sums[directness_of(line, inputs)] += float(line.amount)
    return _shares_of_total(sums)


def directness_of(line: Flow, inputs: Mapping[str, Input]) -> str:
    """Return the directness of a line's least direct input.

    Args:
        line: A cost line.
        inputs: Inputs of the line by path.

    Returns:
        A member of `DIRECTNESS`; "estimate" for a line without inputs.

    """
    return least_direct(inputs[path].directness for path in line.inputs)


def _shares_of_total(sums: Mapping[str, float]) -> dict[str, float]:
    total_amount = sum(sums.values())
    if not total_amount:
        return {}
    return {evidence_kind: amount / total_amount for evidence_kind, amount in sums.items()}


def _shares_of_amounts(amounts: list[tuple[str, Quantity]]) -> dict[str, float]:
    sums = {"sourced": 0.0, "estimate": 0.0, "assumed": 0.0}
    for kind, amount in amounts:
        sums["sourced" if kind in SOURCED else kind] += float(amount)
    return _shares_of_total(sums)


def cost_of_rent(
    input_values: Values,
    bill: Bill,
    network: Network,
    rent: str,
    chips: float,
    goodput: Quantity,
    chip: str,
) -> Cost:
    """Return the cost of a rented world at a chip's rent.

    The result states the power of racks and network, which the rent pays for.

    Args:
        input_values: Values of the inputs.
        bill: Bill of the world, read for its power.
        network: Scale-out network of the cluster; the world bears its share of the power.
        rent: Path of the rent per chip-hour.
        chips: Chips of the world.
        goodput: Share of the hours in which chips make progress.
        chip: Part that computes.

    Returns:
        Cost with the rent as its only line; purchases and energy are zero.

    """
    with scope("cost"):
        ledger = Ledger(input_values, chips)
        hour = ledger.yearly("rent", "rent", chips_cost, chips, rent)
        network_power = extended_power(
            network.power, world_share(chips, input_values["cluster.chips"])
        )
        it_power = _it_power(input_values, bill, network_power, None)
        power = _per_chip(power_per_chip, "it_power", it_power, chips)
        draw = _average_power_share(input_values, bill, chip, it_power)
        return Cost(
            lines=ledger.lines,
            capex=0.0,
            capex_per_chip=0.0,
            network_per_chip=0.0,
            rebate_per_chip=0.0,
            it_power=it_power,
            it_power_per_chip=power,
            energy=0.0,
            per_chip_hour=hour,
            gross_per_chip_hour=hour,
            goodput=goodput,
            utilisation=input_values["terms.utilisation"],
            draw=draw,
        )
