"""Scale-out network of a scenario, and the links of its collectives.

`design_network` returns the network that the scenario buys. `links_of_system` returns the links
that its collectives use.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from tco.catalog.system_tree import System
from tco.core.errors import DataError, refuse_unknown
from tco.core.inputs import Readable, Readings, Values
from tco.core.own_values import question_quantity
from tco.core.provenance import period
from tco.core.trace import paused, untraced_value
from tco.core.types import AnyArray
from tco.cost.ledger import cost_of_world
from tco.fabric.libraries import CollectiveLibrary, family_library
from tco.fabric.links import PROTOCOLS, Links, Route, chip_links
from tco.fabric.topology import fabric_scopes, port_bandwidth
from tco.performance.chip.families import family_of
from tco.scenario.choices import CHEAPEST
from tco.scenario.memo import stage
from tco.scenario.rack_holding import standing_cost_of
from tco.system.bill import Bill
from tco.system.scale_out_network import (
    CABLE_LENGTH,
    IN_RACKS,
    ClosSize,
    LongLinks,
    Network,
    NetworkDesign,
    NetworkLine,
    ReachError,
    cards_of,
    clos_size,
    converged,
    network_totals,
    optic_part,
    optics_covering,
    scale_out_network,
    switch_part,
    switch_radix,
    tiers_needed,
)

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.scenario.resolved import ResolvedScenario

Key = TypeVar("Key")

SWITCH, OPTIC = "cluster.switch", "cluster.optic"
LANE = "lane_bandwidth"


class ClosParts(NamedTuple):
    """Switch and optic part ids of the tiers of a scale-out network."""

    switch: str  # part id
    optic: str  # part id of the modules of its links


def clos_parts(inputs: ResolvedScenario) -> ClosParts:
    """Return switch and module of the cluster; of lists the cheapest pair.

    Raises:
        DataError: No module that is named or listed fits.

    """
    if not inputs.choosable:
        inputs.choosable = {path: inputs.text(path) for path in (SWITCH, OPTIC)}
        lists = [
            path for path, part_text in inputs.choosable.items() if part_text.startswith(CHEAPEST)
        ]
        decided_texts = inputs.structure.texts if inputs.structure is not None else {}
        if not set(lists) <= decided_texts.keys():
            decided_texts = dict(zip((SWITCH, OPTIC), _cheapest_clos_parts(inputs), strict=True))
        elif not lists and inputs.structure is None:
            _cheapest_clos_parts(inputs)  # refuses a module that does not fit
        inputs.texts = inputs.texts | {path: decided_texts[path] for path in lists}
    return ClosParts(
        switch_part(inputs.text(SWITCH), inputs.catalogue.parts),
        optic_part(inputs.text(OPTIC), inputs.catalogue.parts),
    )


def switch_of(inputs: ResolvedScenario) -> str:
    """Return the part id of the cluster's switch.

    Args:
        inputs: Of the scenario; of a list of switches the cheapest fitting switch is taken.

    Raises:
        DataError: The switch is unknown, or no module fits a listed switch.

    """
    if inputs.text(SWITCH).startswith(CHEAPEST):
        return clos_parts(inputs).switch
    return switch_part(inputs.text(SWITCH), inputs.catalogue.parts)


def _cheapest_clos_parts(inputs: ResolvedScenario) -> ClosParts:
    """Return the parts whose network adds least to a chip-hour.

    Where hours are rented the price of the network decides. Of many values asked together their
    mean does. A chip alone has no network to price and takes the last of each list.
    """
    if inputs.system.bare:
        return ClosParts(_parts_for_sale(inputs, SWITCH)[-1], _parts_for_sale(inputs, OPTIC)[-1])
    # of those that are not bought nothing is decided
    readings, inputs.readings = (
        inputs.readings,
        Readings(),
    )
    input_values = inputs.values()
    longest = float(np.max(input_values.number(CABLE_LENGTH)))  # of many values asked together

    def networks() -> tuple[ClosParts, dict[ClosParts, tuple[float, float]]]:
        pairs, priced = _clos_candidates(inputs, input_values, longest), {}
        for parts in pairs if len(pairs) > 1 else ():
            network = _reachable_network(inputs, input_values, parts)
            if network is not None:
                priced[parts] = float(np.mean(network.price)), float(np.mean(network.power))
        return pairs[0], priced

    def cheapest() -> ClosParts:
        first, priced = stage("networks", inputs, input_values, networks, texts)
        return _cheapest_network(inputs, input_values, priced) or first

    texts = inputs.text(SWITCH), inputs.text(OPTIC)
    try:
        with paused():  # what is not bought leaves no trace
            chosen = stage("clos parts", inputs, input_values, cheapest, texts)
    finally:
        inputs.readings = readings
    for path in (SWITCH, OPTIC):
        if inputs.text(path).startswith(CHEAPEST):
            inputs.compared += [f"parts.{part}.price" for part in _parts_for_sale(inputs, path)]
    inputs.judged |= set(input_values.inputs)
    return chosen


def _cheapest_network(
    inputs: ResolvedScenario, input_values: Values, priced: Mapping[Key, tuple[float, float]]
) -> Key | None:
    """Return the key of the network that adds least to a chip-hour.

    Args:
        inputs: Of the scenario whose owner, site and terms count.
        input_values: The same inputs by path.
        priced: Price in USD and power in W of each network.

    """
    by_price = sorted(priced, key=lambda network_key: priced[network_key][0])
    thrifty: list[Key] = []  # each draws less than all that are cheaper to buy
    for network_key in by_price:
        if all(priced[network_key][1] < priced[thrifty_key][1] for thrifty_key in thrifty):
            thrifty.append(network_key)
    if len(thrifty) > 1 and not inputs.perspective.rents:
        prices, powers = np.array([priced[network_key] for network_key in thrifty]).T
        if inputs.shape:
            column = (-1, *[1] * len(inputs.shape))
            hours = _hours_of(inputs, input_values, prices.reshape(column), powers.reshape(column))
            hours = hours.reshape(len(thrifty), -1).mean(axis=1)
        else:
            hours = _hours_of(inputs, input_values, prices, powers)
        return thrifty[int(hours.argmin())]
    return thrifty[0] if thrifty else None


def _parts_for_sale(inputs: ResolvedScenario, path: str) -> list[str]:
    """Return the parts a text lists that are for sale at the scenario's date.

    Where none is for sale yet, all are returned; a text that names one part gives that part.
    """
    part_text = inputs.choosable.get(path, "") or inputs.text(path)
    parts: list[str] = inputs.catalogue.once(
        ("parts for sale", path, part_text, inputs.date),
        lambda: _listed_for_sale(inputs.catalogue, path, part_text, inputs.date),
    )
    return parts


def _listed_for_sale(catalogue: Catalogue, path: str, part_text: str, date: str) -> list[str]:
    last_day = period(date).last
    part_named = {SWITCH: switch_part, OPTIC: optic_part}[path]
    listed = [
        part_named(part_name.strip(), catalogue.parts)
        for part_name in part_text.removeprefix(CHEAPEST).split(",")
    ]
    return [
        part
        for part in listed
        if min(price_row.begins for price_row in catalogue.part_rows[part, "price"]) <= last_day
    ] or listed


def _clos_candidates(
    inputs: ResolvedScenario, input_values: Values, length: float
) -> list[ClosParts]:
    """Return the pairs of switch and optic that fit together at a link length in metres."""
    joined = lane_neighbours(inputs.system)
    pairs = []
    refusals = []
    for switch in _parts_for_sale(inputs, SWITCH):
        try:
            fitting = _fitting_optics(inputs, input_values, [switch, *joined], length)
        except DataError as error:
            refusals.append(error)
            continue
        pairs += [ClosParts(switch, optic) for optic in fitting]
    if not pairs:
        raise refusals[0]
    return pairs


def lane_neighbours(system: System) -> list[str]:
    """Return the part ids at the rack end of the cluster's optics.

    With leaves outside the racks the part is the network card of the chips. Otherwise the parts are
    the switches in the racks. The switches of the cluster are left out. A system without cards
    gives an empty list.
    """
    if network_design(system) == "tor":
        return [str(part) for part in system.network.get(IN_RACKS, ())]
    cards = cards_of(system, "scale_out")
    return [cards.part] if cards is not None else []


def _fitting_optics(
    inputs: ResolvedScenario, input_values: Values, joined: Sequence[str], length: float
) -> list[str]:
    """Return the modules that cover a length and run on the lanes of what they join.

    Args:
        inputs: Of the scenario, whose date says what is for sale.
        input_values: The same inputs by path.
        joined: Part ids of switches and cards; one without a lane rate limits nothing.
        length: Metres of the links.

    Raises:
        DataError: No module fits.

    """

    def lane_rate(part: str) -> float | None:
        path = f"parts.{part}.{LANE}"
        stated = inputs.catalogue.has_part_value(part, LANE) or input_values.has(path)
        return input_values.structure(path) if stated else None

    optics = _parts_for_sale(inputs, OPTIC)
    limits = {part: rate for part in joined if (rate := lane_rate(part)) is not None}
    if limits:
        slowest = min(limits, key=lambda part: limits[part])
        rates = {optic: rate for optic in optics if (rate := lane_rate(optic)) is not None}
        too_fast = {
            optic: rate for optic, rate in rates.items() if rate > limits[slowest] * (1 + 1e-9)
        }
        if len(too_fast) == len(optics):
            lanes = ", ".join(f"{optic} {_gigabits(rate)}" for optic, rate in too_fast.items())
            raise DataError(
                f"{OPTIC}: {slowest} has lanes of {_gigabits(limits[slowest])}, every module "
                f"faster ones ({lanes}); add a slower module"
            )
        optics = [optic for optic in optics if optic not in too_fast]
    return optics_covering(input_values, optics, length)


def _gigabits(rate: float) -> str:
    return f"{rate * 8 / 1e9:g}G"


def cheapest_clos_parts_by_draw(
    inputs: ResolvedScenario, input_values: Values
) -> tuple[list[dict[str, str]], Any] | None:
    """Return the texts of possible switches and optics, and the cheapest fit's index by draw.

    Where there is nothing to choose among, nothing is returned.
    """
    clos_parts(inputs)
    if inputs.system.bare:
        return None
    lengths = np.broadcast_to(input_values.number(CABLE_LENGTH), inputs.shape)
    covered = _draws_of_pairs(inputs, input_values, lengths)
    pairs = list(covered)
    if len(pairs) == 1:
        return None
    networks = [_reachable_network(inputs, input_values, parts) for parts in pairs]
    lists = [path for path, part_text in inputs.choosable.items() if part_text.startswith(CHEAPEST)]
    choices = [
        {path: part for path, part in zip((SWITCH, OPTIC), parts, strict=True) if path in lists}
        for parts in pairs
    ]
    never = np.full(inputs.shape, np.inf)
    prices = np.stack(
        [
            never if network is None else np.where(covers, network.price, np.inf)
            for network, covers in zip(networks, covered.values(), strict=True)
        ]
    )
    if inputs.perspective.rents:
        return choices, prices.argmin(axis=0)
    powers = np.stack(
        [
            never if network is None else np.broadcast_to(network.power, inputs.shape)
            for network in networks
        ]
    )
    return choices, _hours_of(inputs, input_values, prices, powers).argmin(axis=0)


def _draws_of_pairs(
    inputs: ResolvedScenario, input_values: Values, lengths: AnyArray
) -> dict[ClosParts, AnyArray]:
    """Return the draws in which each pair may be built, as one draw by itself tells.

    Draws whose links the same modules reach have the same pairs.
    """
    reaches = sorted(
        input_values.structure(f"parts.{optic}.reach") for optic in _parts_for_sale(inputs, OPTIC)
    )
    shortest_reach = np.searchsorted(reaches, lengths)
    covered: dict[ClosParts, AnyArray] = {}
    for reach_index in np.flatnonzero(np.bincount(shortest_reach)):
        draws = shortest_reach == reach_index
        for pair in _clos_candidates(inputs, input_values, float(lengths[draws].max())):
            covered[pair] = covered.get(pair, False) | draws
    return covered


def _reachable_network(
    inputs: ResolvedScenario, input_values: Values, parts: ClosParts
) -> Network | None:
    try:
        return design_network(inputs, input_values, parts)
    except ReachError:
        return None


def _hours_of(inputs: ResolvedScenario, input_values: Values, prices: Any, powers: Any) -> Any:
    """Return the cost of a network in USD per chip-hour.

    It is the cost of a world for which only the network is bought. Arrays of `prices` and `powers`
    describe many networks.
    """
    lines = [NetworkLine("whole", "", 1, prices, powers, "derived", (), ())]
    network = Network(1, lines, prices, powers)
    standing = stage(
        "standing cost of a network",
        inputs,
        input_values,
        lambda: standing_cost_of(inputs, input_values, Bill([], 0.0, 0.0), network),
        prices,
        powers,
    )
    return cost_of_world(input_values, standing, inputs.system.chips, 1.0).per_chip_hour


def design_network(
    inputs: ResolvedScenario, input_values: Values, parts: ClosParts | None = None
) -> Network:
    """Return the scale-out network of the scenario's cluster with its front end.

    It has as many tiers as the cluster needs, and is built of the parts of the cluster unless
    others are given.
    """
    parts = parts or clos_parts(inputs)
    chip, port = f"parts.{inputs.system.chip}", _port_of(inputs)
    chips, design = input_values["cluster.chips"], network_design(inputs.system)
    tiers = tiers_of(inputs, input_values, parts.switch, design)
    back = NetworkDesign(
        chips,
        input_values[f"{chip}.scale_out_bandwidth"],
        *parts,
        tiers,
        port,
        design,
        design == "tor",
    )
    network = scale_out_network(input_values, back)
    frontend = input_values.unless_zero(f"{chip}.frontend_bandwidth")
    if frontend is not None:
        shared = converged(inputs.system)
        levels = tiers if shared else tiers_of(inputs, input_values, parts.switch, "leaf")
        front = NetworkDesign(
            chips, frontend, *parts, levels, port, "tor", shared, prefix="frontend-"
        )
        network = network_totals(
            tiers, [*network.lines, *scale_out_network(input_values, front).lines]
        )
    return network


class ClosRequest(NamedTuple):
    """A Clos somebody asks for by itself."""

    switch: str  # part id
    chips: int | None  # None: as many as the tiers reach
    nic: float  # byte/s of a chip
    port: float  # byte/s of a logical port
    tiers: int | None = None  # None: as many as the chips need
    design: str = "tor"
    span: float | None = None  # metres of the links between sites; None: one site
    between_sites: float = 0.5  # share of the links of the top tiers that run between sites


def requested_clos(
    inputs: ResolvedScenario, input_values: Values, request: ClosRequest
) -> tuple[ClosSize, Network]:
    """Return size and network of a Clos, with the modules that cost least over their life.

    Raises:
        DataError: It cannot be built, or has one tier and so no links between sites.

    """
    size = clos_size(input_values, request.switch, request.chips, request.port, request.tiers)
    if request.span is not None and size.tiers < 2:
        raise DataError(
            "--span: a network of one tier has no links between switches, so none runs between "
            "sites; ask for --tiers 2"
        )
    optics = _fitting_optics(
        inputs, input_values, [request.switch], input_values.structure(CABLE_LENGTH)
    )
    long_links: list[LongLinks | None] = [None]
    if request.span is not None and request.between_sites > 0:
        reaching = _fitting_optics(inputs, input_values, [request.switch], request.span)
        long_links = [LongLinks(optic, request.between_sites, request.span) for optic in reaching]
    networks: dict[tuple[str, LongLinks | None], Network] = {}
    for optic, long in product(optics, long_links):
        plan = NetworkDesign(
            size.chips,
            request.nic,
            request.switch,
            optic,
            size.tiers,
            request.port,
            request.design,
            long_links=long,
        )
        networks[optic, long] = scale_out_network(input_values, plan)
    priced = {
        network_key: (float(network.price), float(network.power))
        for network_key, network in networks.items()
    }
    cheapest = _cheapest_network(inputs, input_values, priced)
    return size, networks[cheapest] if cheapest is not None else next(iter(networks.values()))


def refuse_less_than_a_world(inputs: ResolvedScenario, input_values: Values) -> None:
    """Refuse a cluster of fewer chips than its smallest unit.

    The unit is a scale-up domain, or a block where optical switches join blocks.
    """
    system = inputs.system
    block = system.fabric.get("block")
    least, what = (
        (math.prod(block), "one block") if block else (system.chips, "one scale-up domain")
    )
    if input_values.decided(operator.lt, "cluster.chips", rest=(least * (1 - 1e-9),)):
        where = input_values.input("cluster.chips").where
        chips = input_values.structure("cluster.chips")
        raise DataError(
            f"{where}: cluster.chips is {chips:g}, but {what} of {system.id} has {least:g} chips; "
            "expected as many or more"
        )


def tiers_of(
    inputs: ResolvedScenario,
    input_values: Readable,
    switch: str,
    design: str,
    domain: float = 1,
    chips: float | None = None,
) -> int:
    """Return the tiers of switches up to the meeting point of traffic.

    Args:
        inputs: Of the scenario, whose system and port count.
        input_values: The same inputs by path.
        switch: Part id of the switch.
        design: Design of the network; in the design `tor` the first tier stands in the racks.
        domain: Chips of a domain; a single chip of each domain takes part in the traffic.
        chips: Chips whose traffic meets; None takes all chips of the cluster.

    Raises:
        DataError: The port of the cluster is no rate.

    """
    racks = (inputs.system.racks, inputs.system.chips) if design == "tor" else None
    tapering = "cluster.oversubscription"
    capacity = f"parts.{switch}.switch_capacity"
    rest = (_port_of(inputs), racks, domain)
    if chips is not None:
        return _tiers_for(
            chips, input_values.structure(tapering), input_values.structure(capacity), *rest
        )
    return input_values.decided(_tiers_for, "cluster.chips", tapering, capacity, rest=rest)


def _tiers_for(
    chips: float,
    oversubscription: float,
    capacity: float,
    port: float,
    racks: tuple[float, float] | None,
    domain: float,
) -> int:
    """Return the number of tiers for some chips.

    A first tier in the racks ends there, and other tiers join the racks.
    """
    radix = untraced_value(switch_radix(capacity, port))
    ends = max(math.ceil(chips / domain), 1) if domain > 1 else chips
    if racks is not None:
        ends = math.ceil(ends * racks[0] / racks[1] - 1e-9)
        return 1 if ends <= 1 else 1 + tiers_needed(ends, radix, oversubscription)
    return tiers_needed(ends, radix, oversubscription)


def _port_of(inputs: ResolvedScenario) -> float:
    return port_rate(inputs.text("cluster.port"), "cluster.port")


def network_design(system: System) -> str:
    """Return the place of a system's first network switches, `tor` or `leaf`.

    `tor` puts them in the racks. `leaf` has a leaf switch for the chips of every rank.
    """
    return str(system.network.get("first_tier", "leaf"))


def route_of(inputs: ResolvedScenario, input_values: Readable) -> Route:
    """Return the route between scale-up domains.

    With a leaf per rank, only the chips of that rank share its tiers.
    """
    design = network_design(inputs.system)
    tiers = tiers_of(
        inputs,
        input_values,
        switch_of(inputs),
        design,
        inputs.system.chips if design == "leaf" else 1,
    )
    return Route(design, tiers, protocol(inputs.text("cluster.network")))


def protocol(network: str) -> str:
    """Return the practice parameter for a step of a network's protocol.

    Args:
        network: Name of the network, a key of `PROTOCOLS`.

    Raises:
        DataError: The network is unknown.

    """
    refuse_unknown("network", [network], PROTOCOLS, "cluster.network")
    return PROTOCOLS[network]


def links_of_system(
    inputs: ResolvedScenario, input_values: Readable, library: CollectiveLibrary | None = None
) -> Links:
    """Return the links between the chips of the scenario's system.

    Args:
        inputs: Of the scenario.
        input_values: The same inputs by path.
        library: The collective library; None takes the library of the chip family.

    """
    chosen = library or family_library(
        inputs.catalogue, family_of(inputs.catalogue, inputs.system.chip)
    )
    if not isinstance(input_values, Values):  # of measured rows, which are asked once
        return _links_met(inputs, input_values, chosen)
    return stage(
        "links", inputs, input_values, lambda: _links_met(inputs, input_values, chosen), chosen
    )


def _links_met(
    inputs: ResolvedScenario, input_values: Readable, library: CollectiveLibrary
) -> Links:
    """Return the links between the chips of a system under `library`."""
    system = inputs.system
    scopes = fabric_scopes(system, input_values)
    if scopes[-1].torus or scopes[0].chips == scopes[-1].chips:
        scopes = scopes[-1:]  # a rack of a torus is one slice among others
    family, route = family_of(inputs.catalogue, system.chip), route_of(inputs, input_values)
    switches = "in_network_reduction"
    reduces = inputs.catalogue.has_part_value(system.chip, switches) and input_values.exists(
        f"parts.{system.chip}.{switches}"
    )
    signalled = inputs.catalogue.has_part_value(system.chip, "dma_signal")
    return chip_links(
        input_values,
        system.chip,
        family,
        scopes,
        route,
        reduces,
        library,
        signalled=signalled,
        port=port_bandwidth(system, input_values),
    )


def port_rate(rate_text: str, input_path: str) -> float:
    """Return a port rate in byte/s.

    Args:
        rate_text: The rate, such as 100G (100 Gb/s) or 50 GB/s.
        input_path: Input path that stands before the text of an error.

    Raises:
        DataError: The text is no rate above zero.

    """
    try:
        number = (
            rate_text[:-1]
            if rate_text[-1:] in "Gg" and rate_text[:-1].replace(".", "").isdigit()
            else ""
        )
        rate = question_quantity(f"{number} Gb/s" if number else rate_text, "byte/s")
    except DataError as error:
        raise DataError(f"{input_path}={rate_text}: {error}") from None
    if not rate > 0:
        raise DataError(f"{input_path}={rate_text}: expected a rate above zero")
    return rate
