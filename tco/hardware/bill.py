"""The bill of materials: every place of the tree with its price and its power.

`price` is what the owner pays for a whole part, so whatever it contains is included. `own_price` is what an assembly adds to
parts that are priced for themselves. A part with neither is built up from its wafer, or its price is missing: an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.systems import Leaf, System
from tco.foundation.errors import DataError
from tco.foundation.formula import formula, total
from tco.foundation.provenance import least_direct, worst
from tco.foundation.trace import scope
from tco.foundation.units import USD, Pure, Watt
from tco.foundation.values import Values
from tco.hardware.silicon import USUAL_YIELD, built_up_price, inputs_of_silicon


@formula(unit="USD", source="tco-model")
def extended_price(unit_price: USD, quantity: Pure) -> Any:
    """Price of all of a part in one world: extended = unit price x quantity."""
    return unit_price * quantity


@formula(unit="W", source="tco-model")
def extended_power(power: Watt, quantity: Pure) -> Any:
    """Power of all of a part in one world: extended = power x quantity."""
    return power * quantity


@formula(unit="USD", source="tco-model")
def assembly_price(assembled: USD, assembly_share: Pure) -> Any:
    """Assembly and test as a share of what is assembled, chips apart: price = share x assembled."""
    return assembled * assembly_share


@formula(unit="W", source="tco-model")
def conversion_loss(load: Watt, efficiency: Pure) -> Any:
    """Heat of the power conversion behind a load: loss = load (1 / efficiency - 1)."""
    return load * (1 - efficiency) / efficiency


@dataclass(slots=True)
class BillLine:
    """One leaf of the bill. `unit_price` is None where the price lies in the line named by `included_in`."""

    path: str
    part: str
    quantity: float
    unit_price: Any
    extended: Any
    power: Any
    kind: str
    sources: tuple[str, ...]
    included_in: str | None = None
    overlay: bool = False
    inputs: tuple[str, ...] = ()  # paths its unit price rests on
    directness: str = ""  # the least direct of them


class Bill(NamedTuple):
    """All lines of one scale-up domain, with their sums."""

    lines: list[BillLine]
    price: Any
    power: Any


class Pricing:
    """Prices parts once each, remembering kind and sources of what the price rests on."""

    def __init__(self, values: Values, catalogue: Catalogue, dies: str = USUAL_YIELD) -> None:
        self.values = values
        self.catalogue = catalogue
        self.dies = dies  # the model of their yield
        self.found: dict[str, tuple[Any, bool, tuple[str, ...]]] = {}

    def of(self, part: str) -> tuple[Any, bool, tuple[str, ...]]:
        """Return (unit price, whether it includes the contents, the input paths it rests on)."""
        if part not in self.found:
            self.found[part] = self._price(part)
        return self.found[part]

    def _price(self, part: str) -> tuple[Any, bool, tuple[str, ...]]:
        values, whole, own = self.values, f"parts.{part}.price", f"parts.{part}.own_price"
        if values.has(whole) or self.catalogue.has_part_value(part, "price"):
            return values[whole], True, (whole,)
        if self.catalogue.has_part_value(part, "own_price"):
            return values[own], False, (own,)
        if self.catalogue.has_part_value(part, "die_area"):
            with scope("parts", part):
                price = values.derived(own, "USD", lambda: built_up_price(values, part, self.dies))
            return price, False, (own,) if values.has(own) else inputs_of_silicon(part, self.dies)
        return values[whole], True, (whole,)  # raises: the price is missing


class Offer(NamedTuple):
    """What may stand in one place of the tree that lists alternatives."""

    part: str
    quantity: float
    price: Any  # of all of them
    rests_on: tuple[str, ...]  # paths of inputs


def offers(system: System, values: Values, catalogue: Catalogue) -> dict[str, list[Offer]]:
    """Return the alternatives of each place of the tree that has some."""
    pricing = Pricing(values, catalogue)
    found = {}
    for place, candidates in system.alternatives.items():
        found[place] = [
            Offer(part, quantity, extended_price(pricing.of(part)[0], quantity), pricing.of(part)[2]) for part, quantity in candidates.items()
        ]
    return found


class Place(NamedTuple):
    """A place of the tree, and how its line is made."""

    leaf: Leaf
    assembles: bool  # priced by a share of what is assembled
    converts: bool  # draws what it loses of the power of the others
    power: str  # path of the power provisioned for one part: `power`, or the `tdp` of a chip


def places_of(system: System, catalogue: Catalogue) -> list[Place]:
    """Return the places of a tree, parents first."""

    def place(leaf: Leaf) -> Place:
        has = partial(catalogue.has_part_value, leaf.part)
        power = "power" if has("power") or not has("tdp") else "tdp"
        return Place(leaf, has("assembly_share"), has("efficiency"), f"parts.{leaf.part}.{power}")

    found: list[Place] = system.once("places", lambda: [place(leaf) for leaf in system.leaves])
    return found


def bill_of_materials(system: System, values: Values, catalogue: Catalogue, dies: str = USUAL_YIELD) -> Bill:
    """Price and power of every place of the tree, with one model of the yield of dies; a missing price or power raises `DataError`."""
    pricing = Pricing(values, catalogue, dies)
    lines: list[BillLine] = []
    included: dict[str, str] = {}  # path -> the path whose price holds it
    assembly: Leaf | None = None
    converter: Leaf | None = None
    for leaf, assembles, converts, drawn in places_of(system, catalogue):
        if assembles:
            assembly = leaf
            continue
        holder = included.get(leaf.parent)
        price, whole, paths = (None, False, ()) if holder is not None else pricing.of(leaf.part)
        if holder is not None or whole:
            included[leaf.path] = holder or leaf.path
        with scope("bill", leaf.path):
            extended = None if holder is not None else extended_price(price, leaf.quantity)
            if converts:
                converter, power = leaf, None
            else:
                power = extended_power(values[drawn], leaf.quantity)
        lines.append(bill_line(values, leaf, price, extended, power, paths, holder))
    if assembly is not None:
        lines.append(assembly_line(values, assembly, lines, system.chip))
    add_conversion_loss(values, converter, lines, system)
    with scope("bill"):
        price_sum = values.derived("system.price", "USD", lambda: total("system_price", [x.extended for x in lines if x.extended is not None]))
        power_sum = values.derived("system.power", "W", lambda: total("system_power", [x.power for x in lines]))
    return Bill(lines, price_sum, power_sum)


def bill_line(values: Values, leaf: Leaf, price: Any, extended: Any, power: Any, paths: tuple[str, ...], holder: str | None) -> BillLine:
    """Return the line of a leaf with the worst kind and all sources of the inputs its price rests on."""
    inputs = [values.input(path) for path in paths]
    kind, sources = worst([one.kind for one in inputs]), tuple(dict.fromkeys(one.source for one in inputs))
    near = least_direct(one.directness for one in inputs) if paths else ""
    overlay = any(one.overlay for one in inputs)
    return BillLine(leaf.path, leaf.part, leaf.quantity, price, extended, power, kind, sources or ("included",), holder, overlay, paths, near)


def assembly_line(values: Values, leaf: Leaf, lines: list[BillLine], chip: str) -> BillLine:
    """Return the line of assembly and test: a share of everything that is assembled, the chips and their HBM apart."""
    share = f"parts.{leaf.part}.assembly_share"
    priced = [line for line in lines if line.extended is not None and chip not in line.path.split("/")]
    with scope("bill", leaf.path):
        assembled = total("assembled_parts", [line.extended for line in priced])
        price = assembly_price(assembled, values[share])
        return bill_line(values, leaf, price, extended_price(price, 1.0), extended_power(0.0, 1.0), (share,), None)


def add_conversion_loss(values: Values, converter: Leaf | None, lines: list[BillLine], system: System) -> None:
    """Give the power shelves, which only convert, the loss behind everything else as their power."""
    if converter is None:
        raise DataError(f"{system.where}: the tree holds no power shelf (a part with an efficiency)")
    with scope("bill", converter.path):
        load = total("converted_load", [line.power for line in lines if line.power is not None])
        for line in lines:
            if line.power is None:
                line.power = conversion_loss(load, values[f"parts.{converter.part}.efficiency"])
