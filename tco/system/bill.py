"""The bill of materials: the price and power of every part, including chips from silicon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.catalog.system_tree import Leaf, System
from tco.core.elementwise import exp, expm1, sqrt
from tco.core.errors import DataError
from tco.core.formula import formula, total
from tco.core.inputs import Values
from tco.core.provenance import least_direct
from tco.core.trace import scope
from tco.core.types import Quantity
from tco.core.units import (
    FLOP,
    USD,
    Byte,
    BytePerSecond,
    FLOPPerSecond,
    Hour,
    Millimetre,
    PerSecond,
    PerSquareMillimetre,
    Pure,
    SquareMillimetre,
    USDPerHour,
    Watt,
)

ASSEMBLY_TIME = "assembly_time"  # attribute of trays and racks
LABOUR_RATE = "labour_rate"  # attribute of the part that prices the hours of assembly
# Attributes of a chip whose price is built up from its wafer.
SILICON_ATTRIBUTES = (
    "die_area",
    "dies",
    "wafer_price",
    "wafer_diameter",
    "defect_density",
    "defect_clustering",
    "repairable_area_share",
    "packaging_cost",
    "substrate_cost",
    "test_cost",
    "assembly_loss",
    "partner_margin",
    "wafers_through_partner",
)


@formula("", source="devries2005")
def gross_dies_per_wafer(
    die_area: SquareMillimetre, wafer_diameter: Millimetre, pi: Pure = np.pi
) -> Quantity:
    """Whole dies on a round wafer: n = pi (d/2)^2 / S - pi d / sqrt(2 S)."""
    return pi * (wafer_diameter / 2) ** 2 / die_area - pi * wafer_diameter / sqrt(2 * die_area)


@formula("", source="stapper1983")
def negative_binomial_yield(
    area: SquareMillimetre, defect_density: PerSquareMillimetre, defect_clustering: Pure
) -> Quantity:
    """Share of dies of area S without a defect: y = (1 + D0 S / alpha)^-alpha.

    Defects come in clusters.
    """
    return (1 + defect_density * area / defect_clustering) ** -defect_clustering


@formula("", source="stapper1983")
def poisson_yield(area: SquareMillimetre, defect_density: PerSquareMillimetre) -> Quantity:
    """Share of dies of area S without a defect, with independent defects: y = exp(-D0 S).

    It is the least of the three yields.
    """
    return exp(-defect_density * area)


@formula("", source="murphy1964")
def murphy_yield(area: SquareMillimetre, defect_density: PerSquareMillimetre) -> Quantity:
    """Share of dies of area S without a defect: y = ((1 - exp(-D0 S)) / (D0 S))^2.

    Defect densities vary as a triangle.
    """
    return (expm1(-defect_density * area) / (defect_density * area)) ** 2


@formula("mm^2", source="stapper1983")
def critical_area(die_area: SquareMillimetre, repairable_area_share: Pure) -> Quantity:
    """Area of a die in which one defect makes it unusable: A = S (1 - r).

    A defect falls with chance r into a part that a spare replaces or that may be switched off.
    A die with k defects is usable if all k fall there, with chance r^k. Summed over the number
    of defects, P(usable) = sum of P(k) r^k is the yield of the area S (1 - r), for all three
    models: exp(-D0 S (1 - r)) for Poisson's. What it exceeds the yield of S by is P(recovered),
    exp(-D0 S (1 - r)) - exp(-D0 S). The number of spares is not limited: r is what spares cover
    at the defects of volume production, and at many more defects fewer dies are usable.
    """
    return die_area * (1 - repairable_area_share)


@formula("USD")
def die_cost(wafer_price: USD, gross_dies: Pure, usable_share: Pure) -> Quantity:
    """Cost of one usable die: c = wafer price / (gross dies x usable share)."""
    return wafer_price / (gross_dies * usable_share)


@formula("USD")
def chip_cost(
    die: USD,
    dies: Pure,
    packaging_cost: USD,
    substrate_cost: USD,
    test_cost: USD,
    assembly_loss: USD,
    partner_margin: Pure,
    wafers_through_partner: Pure,
) -> Quantity:
    """Cost of a packaged chip without HBM.

    c = dies x die (1 + margin t) + (packaging + substrate + test + loss) (1 + margin).

    t is the share of the wafers that the design partner buys: the owner who buys them himself pays
    its margin on the rest alone.
    """
    package_cost = packaging_cost + substrate_cost + test_cost + assembly_loss
    return dies * die * (1 + partner_margin * wafers_through_partner) + package_cost * (
        1 + partner_margin
    )


class YieldModel(NamedTuple):
    """Model of the yield of dies."""

    formula: Callable[..., Quantity]  # takes the critical area, then the attributes
    attributes: tuple[str, ...]  # attributes of the chip that the formula reads


YIELDS = {
    "negative-binomial": YieldModel(
        negative_binomial_yield, ("defect_density", "defect_clustering")
    ),
    "murphy": YieldModel(murphy_yield, ("defect_density",)),
    "poisson": YieldModel(poisson_yield, ("defect_density",)),
}
USUAL_YIELD = "negative-binomial"


def _built_up_price(input_values: Values, part: str, model: str) -> Quantity:
    """Return the price of a chip without its HBM, built up from its wafer, USD.

    Args:
        input_values: Inputs by path.
        part: Part id of the chip.
        model: Yield model, a key of `YIELDS`.

    """
    area = input_values[f"parts.{part}.die_area"]
    gross_dies = gross_dies_per_wafer(area, input_values[f"parts.{part}.wafer_diameter"])
    yield_model = YIELDS[model]
    defect_area = critical_area(area, input_values[f"parts.{part}.repairable_area_share"])
    usable_share = yield_model.formula(
        defect_area,
        *(input_values[f"parts.{part}.{attribute}"] for attribute in yield_model.attributes),
    )
    die = input_values.derived(
        f"parts.{part}.die_cost",
        "USD",
        lambda: die_cost(input_values[f"parts.{part}.wafer_price"], gross_dies, usable_share),
    )
    package_attributes = SILICON_ATTRIBUTES[SILICON_ATTRIBUTES.index("packaging_cost") :]
    return chip_cost(
        die,
        input_values[f"parts.{part}.dies"],
        *(input_values[f"parts.{part}.{attribute}"] for attribute in package_attributes),
    )


def _silicon_inputs(part: str, model: str) -> tuple[str, ...]:
    yield_attributes = {
        attribute for yield_model in YIELDS.values() for attribute in yield_model.attributes
    }
    unused_attributes = yield_attributes.difference(YIELDS[model].attributes)
    return tuple(
        f"parts.{part}.{attribute}"
        for attribute in SILICON_ATTRIBUTES
        if attribute not in unused_attributes
    )


@formula("byte/s")
def pin_bandwidth(stacks: Pure, pins: Pure, pin_rate: BytePerSecond) -> Quantity:
    """Bandwidth of the memory stacks of a chip: B = stacks x data pins x pin rate."""
    return stacks * pins * pin_rate


@formula("FLOP/s")
def systolic_peak(
    rows: Pure, columns: Pure, clock: PerSecond, cores: Pure, flop_per_mac: FLOP = 2
) -> Quantity:
    """Dense peak of systolic arrays, each element a multiply-accumulate a cycle: P = 2 R C f N."""
    return flop_per_mac * rows * columns * clock * cores


@formula("byte", source="semianalysis-trn3")
def device_capacity(capacity: Byte, cores_per_device: Pure, cores: Pure) -> Quantity:
    """Memory of one of the logical devices that a chip's cores form: C n / N."""
    return capacity * cores_per_device / cores


@formula("FLOP/s")
def domain_peak(chips: Pure, peak: FLOPPerSecond) -> Quantity:
    """Peak of all chips of a scale-up domain: P = N p."""
    return chips * peak


@formula("byte")
def joint_capacity(number: Pure, capacity: Byte) -> Quantity:
    """Memory of n dies, chips or a share of a cluster together: C = n c."""
    return number * capacity


@formula("USD")
def extended_price(unit_price: USD, quantity: Pure) -> Quantity:
    """Price of all of a part in the racks that are priced: extended = unit price x quantity."""
    return unit_price * quantity


@formula("W")
def extended_power(power: Watt, quantity: Pure) -> Quantity:
    """Power of all of a part in the racks that are priced: extended = power x quantity."""
    return power * quantity


@formula("USD")
def share_of_price(price: USD, share: Pure) -> Quantity:
    """A share of a price, as storage, a margin, a tax or a rebate are stated: x C."""
    return price * share


@formula("USD")
def labour_cost(labour_rate: USDPerHour, assembly_time: Hour, quantity: Pure) -> Quantity:
    """Cost of the labour that assembles and tests all of a part in the racks: C = w t n."""
    return labour_rate * assembly_time * quantity


@formula("W")
def conversion_loss(load: Watt, efficiency: Pure) -> Quantity:
    """Heat of the power conversion behind a load: loss = load (1 / efficiency - 1)."""
    return load * (1 - efficiency) / efficiency


@dataclass(slots=True)
class BillLine:
    """Line of the bill: all of a part at one place of the tree."""

    path: str  # place in the tree
    part: str  # part id
    quantity: float
    unit_price: Quantity  # USD; None where the line `included_in` contains the price
    extended: Any  # unit price times quantity, USD
    power: Any  # W
    kind: str  # weakest kind of evidence among the inputs of the unit price
    sources: tuple[str, ...]
    included_in: str | None = None  # path of the line whose price contains this part
    overlay: bool = False  # whether an input is the user's own
    inputs: tuple[str, ...] = ()  # paths of the inputs of the unit price
    directness: str = ""  # directness of the least direct input


class Bill(NamedTuple):
    """All lines of one scale-up domain, with their sums."""

    lines: list[BillLine]
    price: Any  # USD
    power: Any  # W


class UnitPrice(NamedTuple):
    """Price of one part."""

    usd: Any
    includes_contents: bool  # whether the price covers the parts inside
    inputs: tuple[str, ...]  # paths of the inputs that set the price


class Pricing:
    """Unit prices of parts, each computed once.

    Args:
        input_values: Inputs by path.
        catalogue: Holds the parts.
        dies: Model of the yield of dies, a key of `YIELDS`.

    """

    def __init__(self, input_values: Values, catalogue: Catalogue, dies: str = USUAL_YIELD) -> None:
        self.values = input_values
        self.catalogue = catalogue
        self.dies = dies
        self.unit_prices: dict[str, UnitPrice] = {}

    def of(self, part: str) -> UnitPrice:
        """Return the unit price of a part."""
        if part not in self.unit_prices:
            self.unit_prices[part] = self._unit_price(part)
        return self.unit_prices[part]

    def _unit_price(self, part: str) -> UnitPrice:
        input_values = self.values
        whole_price = f"parts.{part}.price"
        own_price = f"parts.{part}.own_price"
        if input_values.has(whole_price) or self.catalogue.has_part_value(part, "price"):
            return UnitPrice(input_values[whole_price], True, (whole_price,))
        if self.catalogue.has_part_value(part, "own_price"):
            return UnitPrice(input_values[own_price], False, (own_price,))
        if self.catalogue.has_part_value(part, "die_area"):
            with scope("parts", part):
                price = input_values.derived(
                    own_price, "USD", lambda: _built_up_price(input_values, part, self.dies)
                )
            is_set = input_values.has(own_price)
            inputs = (own_price,) if is_set else _silicon_inputs(part, self.dies)
            return UnitPrice(price, False, inputs)
        # No price is stated: reading it raises the error that says so.
        return UnitPrice(input_values[whole_price], True, (whole_price,))


class Offer(NamedTuple):
    """Alternative part at one place of the tree, with its price."""

    part: str
    quantity: float
    price: Any  # USD for the whole quantity
    inputs: tuple[str, ...]  # paths of the inputs that set the price


def offers(system: System, input_values: Values, catalogue: Catalogue) -> dict[str, list[Offer]]:
    """Return the alternatives of each place of the tree, with their prices.

    Args:
        system: System with its tree.
        input_values: Inputs by path.
        catalogue: Holds the parts.

    Returns:
        Offers by place, for the places that have alternatives.

    Raises:
        DataError: The price of a part is missing.

    """
    pricing = Pricing(input_values, catalogue)
    offers_by_place: dict[str, list[Offer]] = {}
    for tree_place, candidates in system.alternatives.items():
        offers_by_place[tree_place] = []
        for part, quantity in candidates.items():
            unit_price = pricing.of(part)
            price = extended_price(unit_price.usd, quantity)
            offers_by_place[tree_place].append(Offer(part, quantity, price, unit_price.inputs))
    return offers_by_place


class Labour(NamedTuple):
    """A place of the tree that takes labour to assemble and test."""

    leaf: Leaf
    path: str  # input path of the hours


class Place(NamedTuple):
    """A place of the tree, with the attributes that decide how its line is computed."""

    leaf: Leaf
    assembles: bool  # its price is the labour of assembly and test of the whole tree
    converts: bool  # its power is the conversion loss of the power of all other places
    power: str  # path of the power provisioned for one part: `power`, or the `tdp` of a chip
    labour: str | None  # path of the hours that assemble and test one part without its contents
    contains: bool  # contains other places of the tree


def _places(system: System, catalogue: Catalogue) -> list[Place]:
    """Return the places of a tree, parents first."""

    def list_places() -> list[Place]:
        holders = {leaf.parent for leaf in system.leaves}
        return [_place_of(leaf, leaf.path in holders, catalogue) for leaf in system.leaves]

    return system.once("places", list_places)


def _place_of(leaf: Leaf, contains: bool, catalogue: Catalogue) -> Place:
    """Return the place of a leaf, from the attributes of its part.

    An assembly with an `own_price` takes labour, so the bill raises an error if it states no hours.
    """
    has = partial(catalogue.has_part_value, leaf.part)
    power = "power" if has("power") or not has("tdp") else "tdp"
    takes_labour = has(ASSEMBLY_TIME) or (contains and has("own_price"))
    return Place(
        leaf=leaf,
        assembles=has(LABOUR_RATE),
        converts=has("efficiency"),
        power=f"parts.{leaf.part}.{power}",
        labour=f"parts.{leaf.part}.{ASSEMBLY_TIME}" if takes_labour else None,
        contains=contains,
    )


def bill_of_materials(
    system: System, input_values: Values, catalogue: Catalogue, dies: str = USUAL_YIELD
) -> Bill:
    """Return price and power of every place of the tree, USD and W.

    Args:
        system: System with its tree.
        input_values: Inputs by path.
        catalogue: Holds the parts.
        dies: Model of the yield of dies.

    Raises:
        DataError: A price or power is missing.

    """
    pricing = Pricing(input_values, catalogue, dies)
    lines: list[BillLine] = []
    including_paths: dict[str, str] = {}  # path of the part whose price includes a place, by path
    labour: list[Labour] = []
    assembly: Leaf | None = None
    converter: Leaf | None = None
    for tree_place in _places(system, catalogue):
        leaf = tree_place.leaf
        if tree_place.assembles:
            assembly = leaf
            continue
        included_in = including_paths.get(leaf.parent)
        if included_in is None:
            unit_price = pricing.of(leaf.part)
        else:
            unit_price = UnitPrice(usd=None, includes_contents=True, inputs=())
        if unit_price.includes_contents:
            including_paths[leaf.path] = included_in or leaf.path
        is_assembled = not (unit_price.includes_contents and tree_place.contains)
        if tree_place.labour is not None and included_in is None and is_assembled:
            labour.append(Labour(leaf, tree_place.labour))
        with scope("bill", leaf.path):
            extended = None
            if unit_price.usd is not None:
                extended = extended_price(unit_price.usd, leaf.quantity)
            power = None  # stays None for a converter until the power of all others is known
            if tree_place.converts:
                converter = leaf
            else:
                power = extended_power(input_values[tree_place.power], leaf.quantity)
        lines.append(_bill_line(input_values, leaf, unit_price, extended, power, included_in))
    if assembly is not None:
        lines.append(_assembly_line(input_values, assembly, labour, system))
    _add_conversion_loss(input_values, converter, lines, system)
    with scope("bill"):
        price_sum = input_values.derived(
            "system.price",
            "USD",
            lambda: total(
                "system_price", [line.extended for line in lines if line.extended is not None]
            ),
        )
        power_sum = input_values.derived(
            "system.power", "W", lambda: total("system_power", [line.power for line in lines])
        )
    return Bill(lines, price_sum, power_sum)


def _bill_line(
    input_values: Values,
    leaf: Leaf,
    unit_price: UnitPrice,
    extended: Any,
    power: Any,
    included_in: str | None,
) -> BillLine:
    """Return the line of a leaf, with the evidence for its unit price."""
    paths = unit_price.inputs
    kind, sources, overlay = input_values.grounds(paths)
    directness = ""
    if paths:
        directness = least_direct(input_values.input(path).directness for path in paths)
    return BillLine(
        path=leaf.path,
        part=leaf.part,
        quantity=leaf.quantity,
        unit_price=unit_price.usd,
        extended=extended,
        power=power,
        kind=kind,
        sources=sources or ("included",),
        included_in=included_in,
        overlay=overlay,
        inputs=paths,
        directness=directness,
    )


def _assembly_line(
    input_values: Values, leaf: Leaf, labour: list[Labour], system: System
) -> BillLine:
    """Return the line of assembly and test, with the hours of every tray and rack at one rate."""
    if not labour:
        raise DataError(
            f"{system.where}: {leaf.part} prices hours of assembly, but nothing in the tree takes "
            "any;"
            f" give trays and racks an {ASSEMBLY_TIME}, or leave {leaf.part} out where the price "
            "is of finished racks"
        )
    rate = f"parts.{leaf.part}.{LABOUR_RATE}"
    costs = []
    for task in labour:
        with scope("bill", leaf.path, task.leaf.path):
            costs.append(
                labour_cost(input_values[rate], input_values[task.path], task.leaf.quantity)
            )
    with scope("bill", leaf.path):
        price = total("assembly_and_test", costs)
        paths = (rate, *dict.fromkeys(task.path for task in labour))
        return _bill_line(
            input_values,
            leaf,
            UnitPrice(usd=price, includes_contents=False, inputs=paths),
            extended=extended_price(price, 1.0),
            power=extended_power(0.0, 1.0),
            included_in=None,
        )


def _add_conversion_loss(
    input_values: Values, converter: Leaf | None, lines: list[BillLine], system: System
) -> None:
    """Set the power of the power shelves to their conversion loss for all other parts."""
    if converter is None:
        raise DataError(
            f"{system.where}: the tree holds no power shelf (a part with an efficiency)"
        )
    with scope("bill", converter.path):
        load = total("converted_load", [line.power for line in lines if line.power is not None])
        for line in lines:
            if line.power is None:
                line.power = conversion_loss(
                    load, input_values[f"parts.{converter.part}.efficiency"]
                )
