"""The cost of one scale-up world as a list of lines, down to dollars per chip-hour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tco.economics.finance import yearly_upkeep
from tco.economics.flows import Flow, Terms, chip_hour
from tco.economics.rebates import Rebate
from tco.economics.site import building_price, sidecar_price, yearly_energy, yearly_rent, yearly_staff
from tco.foundation.formula import formula, total
from tco.foundation.provenance import SOURCED
from tco.foundation.trace import scope
from tco.foundation.units import USD, Chip, Pure, USDPerChipHour, Watt
from tco.foundation.values import Values
from tco.hardware.bill import Bill
from tco.hardware.network import Network


@formula(unit="USD", source="tco-model")
def world_share(price: USD, world_chips: Pure, cluster_chips: Pure) -> Any:
    """Share of one world in what the whole cluster has in common: C x world chips / cluster chips."""
    return price * world_chips / cluster_chips


@formula(unit="W", source="tco-model")
def world_power_share(power: Watt, world_chips: Pure, cluster_chips: Pure) -> Any:
    """Share of one world in the power of what the whole cluster has in common: P x world chips / cluster chips."""
    return power * world_chips / cluster_chips


@formula(unit="USD", source="tco-model")
def storage_price(servers: USD, storage_share: Pure) -> Any:
    """Storage as a share of the price of the servers: C = servers x share."""
    return servers * storage_share


@formula(unit="USD", source="tco-model")
def negative(rebate: USD) -> Any:
    """A rebate as it enters a sum of prices: -R."""
    return -rebate


@formula(unit="USD/chip", source="tco-model")
def price_per_chip(price: USD, chips: Chip) -> Any:
    """A price of the world per chip: c = C / chips."""
    return price / chips


@formula(unit="W/chip", source="tco-model")
def power_per_chip(power: Watt, chips: Chip) -> Any:
    """A power of the world per chip: p = P / chips."""
    return power / chips


@formula(unit="USD/chip/h", source="tco-model")
def used_chip_hour(calendar: USDPerChipHour, availability: Pure, utilisation: Pure) -> Any:
    """Cost of a chip-hour that is available and used: calendar cost / (availability x utilisation)."""
    return calendar / (availability * utilisation)


class CostLine(NamedTuple):
    """One leaf of the cost: the flow of money it is, and what it adds to the chip-hour."""

    flow: Flow
    usd_per_chip_hour: Any

    @property
    def path(self) -> str:
        """The name of the line."""
        return self.flow.path

    @property
    def asset(self) -> str:
        """Its class of asset."""
        return self.flow.asset

    @property
    def usd(self) -> Any:
        """Capital of one world; None for a yearly cost."""
        return None if self.flow.recurs else self.flow.amount

    @property
    def kind(self) -> str:
        """The worst kind it rests on."""
        return self.flow.kind

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources it rests on."""
        return self.flow.sources

    @property
    def overlay(self) -> bool:
        """Say whether it rests on a person's own number."""
        return self.flow.overlay


class Cost(NamedTuple):
    """All lines and the sums the metrics are made of."""

    lines: list[CostLine]
    capex: Any
    capex_per_chip: Any
    network_per_chip: Any
    rebate_per_chip: Any
    it_power: Any
    it_power_per_chip: Any
    energy: Any  # per chip-hour
    per_chip_hour: Any
    gross_per_chip_hour: Any
    availability: Any
    utilisation: Any

    def used(self, per_chip_hour: Any) -> Any:
        """Return the cost of a used chip-hour for a cost per calendar hour."""
        return used_chip_hour(per_chip_hour, self.availability, self.utilisation)


class Ledger:
    """Collects the cost lines of one world."""

    def __init__(self, values: Values, chips: float, annuity: str) -> None:
        self.terms = Terms(values, annuity)
        self.chips = chips
        self.lines: list[CostLine] = []

    def capital(self, path: str, asset: str, price: Any, kind: str, sources: tuple[str, ...], inputs: tuple[str, ...], overlay: bool = False) -> None:
        """Add something bought, recovered over the life of its class of asset."""
        self.terms.charge(asset)  # found here, so that it is not named by the first line of its class
        with scope(path):
            self.add(self.terms.purchase(path, asset, price, kind, sources, inputs, overlay))

    def yearly(self, path: str, asset: str, bill: Callable[..., Any], base: Any, *inputs: str) -> Any:
        """Add a yearly line: the bill of a base, a power or a price, at some inputs."""
        with scope(path):
            cost = bill(base, *(self.terms.values[name] for name in inputs))
            return self.add(self.terms.recurring(path, asset, cost, inputs))

    def add(self, flow: Flow) -> Any:
        """Add a flow and return what it costs a chip-hour."""
        hourly = chip_hour(flow, self.terms, self.chips)
        self.lines.append(CostLine(flow, hourly))
        return hourly


def cost_of_world(
    values: Values,
    bill: Bill,
    network: Network,
    rebates: list[Rebate],
    chips: float,
    tenure: str,
    sidecar: str | None = None,
    annuity: str = "yearly",
) -> Cost:
    """Return every cost line of a world of `chips` and their sums.

    `tenure` is 'own' or 'colocation'; `sidecar` is the part that cools liquid-cooled racks where the site cannot; `annuity` says
    how often what repays a purchase is paid.
    """
    with scope("cost"):
        return lines_and_sums(values, bill, network, rebates, Ledger(values, chips, annuity), tenure, sidecar)


def lines_and_sums(values: Values, bill: Bill, network: Network, rebates: list[Rebate], ledger: Ledger, tenure: str, sidecar: str | None) -> Cost:
    """Return the cost of a world, its cells named in the place that is open."""
    chips = ledger.chips
    add_servers(ledger, values, bill)
    in_common = []
    for part in network.lines:
        with scope("network", part.name):
            in_common.append(world_share(part.price, chips, values["cluster.chips"]))
        ledger.capital(f"network/{part.name}", "network", in_common[-1], part.kind, part.sources, part.inputs)
    network_price = total("network_share", in_common)
    storage = storage_price(bill.price, values["cluster.storage_share"])
    given = values.input("cluster.storage_share")
    ledger.capital("storage", "storage", storage, given.kind, (given.source,), (given.path,))
    capex = total("capex", [bill.price, network_price, storage])
    network_power = world_power_share(network.power, chips, values["cluster.chips"])
    it_power = total("it_power", [bill.power, network_power])

    energy = add_site(ledger, values, it_power, tenure)
    if sidecar is not None:
        given = values.input(f"parts.{sidecar}.price_per_power")
        cooler = sidecar_price(bill.power, values[f"parts.{sidecar}.price_per_power"])
        ledger.capital("site/sidecar", "cooling", cooler, given.kind, (given.source,), (given.path,), given.overlay)
        ledger.yearly("upkeep/sidecar", "upkeep", yearly_upkeep, cooler, "terms.maintenance")
    ledger.yearly("upkeep/equipment", "upkeep", yearly_upkeep, capex, "terms.maintenance")
    gross = total("gross_cost_per_chip_hour", [line.usd_per_chip_hour for line in ledger.lines])
    for rebate in rebates:
        path = rebate.path.replace(".", "/")
        with scope(path):
            price = negative(rebate.value)
        ledger.capital(path, "rebate", price, rebate.kind, rebate.sources, rebate.inputs)
    given_back = total("rebates", [rebate.value for rebate in rebates]) if rebates else 0.0
    calendar = total("cost_per_chip_hour", [line.usd_per_chip_hour for line in ledger.lines])
    return Cost(
        ledger.lines,
        capex,
        per_chip(price_per_chip, "capex", capex, chips),
        per_chip(price_per_chip, "network", network_price, chips),
        per_chip(price_per_chip, "rebates", given_back, chips),
        it_power,
        per_chip(power_per_chip, "it_power", it_power, chips),
        energy,
        calendar,
        gross,
        values["terms.availability"],
        values["terms.utilisation"],
    )


def add_servers(ledger: Ledger, values: Values, bill: Bill) -> None:
    """Add what is bought of the system's tree, part by part; as one line where somebody states its whole price."""
    if values.has("system.price"):
        given = values.input("system.price")
        ledger.capital("servers/system", "servers", bill.price, given.kind, (given.source,), (given.path,), given.overlay)
        return
    for line in bill.lines:
        if line.extended is not None:
            ledger.capital(f"servers/{line.path}", "servers", line.extended, line.kind, line.sources, line.inputs, line.overlay)


def per_chip(share: Callable[..., Any], name: str, whole: Any, chips: float) -> Any:
    """Return a price or a power of the world per chip, in a place of its own."""
    with scope(name):
        return share(whole, chips)


def add_site(ledger: Ledger, values: Values, it_power: Any, tenure: str) -> Any:
    """Add building or rent, energy and staff; return the energy per chip-hour."""
    if tenure == "own":
        building = building_price(it_power, values["site.usd_per_mw"])
        given = values.input("site.usd_per_mw")
        ledger.capital("site/building", "building", building, given.kind, (given.source,), (given.path,))
        ledger.yearly("site/building-upkeep", "upkeep", yearly_upkeep, building, "site.maintenance")
        ledger.yearly("site/staff", "staff", yearly_staff, it_power, "site.staff")
    else:
        ledger.yearly("site/colocation", "building", yearly_rent, it_power, "site.colo_usd_per_kw_month")
    return ledger.yearly("site/energy", "energy", yearly_energy, it_power, "site.load_factor", "site.pue", "site.electricity_price")


def shares_by_kind(lines: list[CostLine]) -> dict[str, float]:
    """Return the share of the cost (numbers, rebates apart) that is sourced, estimated and assumed."""
    sums = {"sourced": 0.0, "estimate": 0.0, "assumed": 0.0}
    for line in lines:
        if line.asset != "rebate":
            sums["sourced" if line.kind in SOURCED else line.kind] += float(line.usd_per_chip_hour)
    whole = sum(sums.values())
    return {name: value / whole for name, value in sums.items()} if whole else sums
