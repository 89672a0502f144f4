"""Scale-out network that a scenario buys, with the cheapest switches and optics that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from tco.catalog.system_tree import System
from tco.core.errors import DataError
from tco.core.inputs import Readings, Values
from tco.core.provenance import period
from tco.core.trace import paused
from tco.core.types import AnyArray
from tco.cost.ledger import cost_of_world
from tco.scenario.choices import CHEAPEST
from tco.scenario.memo import stage
from tco.scenario.network_tiers import cluster_port_rate, network_design, tiers_of
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
    network_totals,
    optic_part,
    optics_covering,
    scale_out_network,
    shares_scale_out_switches,
    switch_part,
)

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.scenario.resolved import ResolvedScenario

NetworkKey = TypeVar("NetworkKey")

SWITCH = "cluster.switch"
OPTIC = "cluster.optic"
LANE = "lane_bandwidth"  # attribute of parts, byte/s


class ClosParts(NamedTuple):
    """Parts of the tiers of a scale-out network."""

    switch: str  # part id of the switches
    optic: str  # part id of the modules at both ends of a link


class NetworkTotals(NamedTuple):
    """Price and power of a network, which decide its cost."""

    price: float  # USD
    power: float  # W


def clos_parts(inputs: ResolvedScenario) -> ClosParts:
    """Return switch and optic of the cluster: those that the scenario names, or the cheapest pair.

    The cheapest pair is chosen where the scenario lists alternatives. It replaces the lists in the
    texts of the scenario.

    Raises:
        DataError: No optic that is named or listed fits.

    """
    if not inputs.choosable:
        inputs.choosable = {path: inputs.text(path) for path in (SWITCH, OPTIC)}
        lists = _listed_paths(inputs)
        decided_texts = inputs.structure.texts if inputs.structure is not None else {}
        if not set(lists) <= decided_texts.keys():
            decided_texts = dict(zip((SWITCH, OPTIC), _cheapest_clos_parts(inputs), strict=True))
        elif not lists and inputs.structure is None:
            _cheapest_clos_parts(inputs)  # raises `DataError` if the optic does not fit
        inputs.texts = inputs.texts | {path: decided_texts[path] for path in lists}
    return ClosParts(
        switch_part(inputs.text(SWITCH), inputs.catalogue.parts),
        optic_part(inputs.text(OPTIC), inputs.catalogue.parts),
    )


def switch_of(inputs: ResolvedScenario) -> str:
    """Return the part id of the cluster's switch.

    Args:
        inputs: The scenario; from a list of switches the cheapest that fits is chosen.

    Raises:
        DataError: The switch is unknown, or no optic fits a listed switch.

    """
    if inputs.text(SWITCH).startswith(CHEAPEST):
        return clos_parts(inputs).switch
    return switch_part(inputs.text(SWITCH), inputs.catalogue.parts)


def _cheapest_clos_parts(inputs: ResolvedScenario) -> ClosParts:
    """Return the parts whose network adds least to the cost of a chip-hour.

    The price of the network decides where chip-hours are rented. Means decide where inputs are
    arrays. A chip alone has no network to price and takes the last part of each list.
    """
    if inputs.system.bare:
        return ClosParts(_parts_for_sale(inputs, SWITCH)[-1], _parts_for_sale(inputs, OPTIC)[-1])
    readings = inputs.readings
    inputs.readings = Readings()  # networks that are not bought decide no structure
    input_values = inputs.values()
    longest_cable = float(np.max(input_values.number(CABLE_LENGTH)))

    def networks() -> tuple[ClosParts, dict[ClosParts, NetworkTotals]]:
        pairs = _clos_candidates(inputs, input_values, longest_cable)
        totals_by_parts = {}
        if len(pairs) > 1:
            for parts in pairs:
                network = _reachable_network(inputs, input_values, parts)
                if network is not None:
                    price, power = float(np.mean(network.price)), float(np.mean(network.power))
                    totals_by_parts[parts] = NetworkTotals(price, power)
        return pairs[0], totals_by_parts

    def cheapest_parts() -> ClosParts:
        first_pair, totals_by_parts = stage("networks", inputs, input_values, networks, texts)
        return _cheapest_network(inputs, input_values, totals_by_parts) or first_pair

    texts = inputs.text(SWITCH), inputs.text(OPTIC)
    try:
        with paused():  # networks that are not bought leave no trace
            chosen = stage("clos parts", inputs, input_values, cheapest_parts, texts)
    finally:
        inputs.readings = readings
    for path in (SWITCH, OPTIC):
        if inputs.text(path).startswith(CHEAPEST):
            inputs.compared += [f"parts.{part}.price" for part in _parts_for_sale(inputs, path)]
    inputs.judged |= set(input_values.inputs)
    return chosen


def _cheapest_network(
    inputs: ResolvedScenario,
    input_values: Values,
    totals_by_key: Mapping[NetworkKey, NetworkTotals],
) -> NetworkKey | None:
    """Return the key of the network that adds least to the cost of a chip-hour.

    Args:
        inputs: The scenario, with the owner, site and terms that the cost depends on.
        input_values: Inputs of the scenario by path.
        totals_by_key: Price and power of each network.

    Returns:
        The key of the cheapest network; None without networks.

    """
    keys_by_price = sorted(totals_by_key, key=lambda network_key: totals_by_key[network_key].price)
    # Only a network that needs less power than every cheaper one can cost less per chip-hour.
    efficient_keys: list[NetworkKey] = []
    for network_key in keys_by_price:
        power = totals_by_key[network_key].power
        if all(power < totals_by_key[cheaper_key].power for cheaper_key in efficient_keys):
            efficient_keys.append(network_key)
    if not efficient_keys:
        return None
    if len(efficient_keys) == 1 or inputs.perspective.rents:
        return efficient_keys[0]
    prices, powers = np.array([totals_by_key[network_key] for network_key in efficient_keys]).T
    if not inputs.shape:
        hour_costs = _hour_costs(inputs, input_values, prices, powers)
        return efficient_keys[int(hour_costs.argmin())]
    column = (-1, *[1] * len(inputs.shape))
    hour_costs = _hour_costs(inputs, input_values, prices.reshape(column), powers.reshape(column))
    mean_costs = hour_costs.reshape(len(efficient_keys), -1).mean(axis=1)
    return efficient_keys[int(mean_costs.argmin())]


def _parts_for_sale(inputs: ResolvedScenario, path: str) -> list[str]:
    """Return the parts that a text names, without those not yet for sale at the scenario's date.

    All parts are returned if none is for sale yet.
    """
    part_text = inputs.choosable.get(path, "") or inputs.text(path)
    parts: list[str] = inputs.catalogue.once(
        ("parts for sale", path, part_text, inputs.date),
        lambda: _listed_for_sale(inputs.catalogue, path, part_text, inputs.date),
    )
    return parts


def _listed_for_sale(catalogue: Catalogue, path: str, part_text: str, date: str) -> list[str]:
    last_day = period(date).last
    find_part = {SWITCH: switch_part, OPTIC: optic_part}[path]
    part_names = part_text.removeprefix(CHEAPEST).split(",")
    listed_parts = [find_part(part_name.strip(), catalogue.parts) for part_name in part_names]
    parts_for_sale = []
    for part in listed_parts:
        first_price_date = min(row.begins for row in catalogue.part_rows[part, "price"])
        if first_price_date <= last_day:
            parts_for_sale.append(part)
    return parts_for_sale or listed_parts


def _listed_paths(inputs: ResolvedScenario) -> list[str]:
    """Return the paths, of switch and optic, that list alternatives."""
    return [path for path, text in inputs.choosable.items() if text.startswith(CHEAPEST)]


def _clos_candidates(
    inputs: ResolvedScenario, input_values: Values, length: float
) -> list[ClosParts]:
    """Return the pairs of switch and optic that fit together at a link length in metres."""
    rack_parts = lane_neighbours(inputs.system)
    pairs = []
    errors = []
    for switch in _parts_for_sale(inputs, SWITCH):
        try:
            optics = _fitting_optics(inputs, input_values, [switch, *rack_parts], length)
        except DataError as error:
            errors.append(error)
        else:
            pairs += [ClosParts(switch, optic) for optic in optics]
    if not pairs:
        raise errors[0]
    return pairs


def lane_neighbours(system: System) -> list[str]:
    """Return the part ids at the rack end of the cluster's optics.

    With leaf switches outside the racks the part is the network card of the chips. Otherwise the
    parts are the switches in the racks, without the switches of the cluster. A system without
    network cards has no such part.
    """
    if network_design(system) == "tor":
        return [str(part) for part in system.network.get(IN_RACKS, ())]
    cards = cards_of(system, "scale_out")
    return [cards.part] if cards is not None else []


def _fitting_optics(
    inputs: ResolvedScenario, input_values: Values, end_parts: Sequence[str], length: float
) -> list[str]:
    """Return the optics that cover a length and are not faster than the lanes at their ends.

    Args:
        inputs: The scenario, with the date that decides which optics are for sale.
        input_values: Inputs of the scenario by path.
        end_parts: Part ids of switches and cards; a part without a lane rate sets no limit.
        length: Length of the links, m.

    Raises:
        DataError: No optic fits.

    """

    def lane_rate(part: str) -> float | None:
        path = f"parts.{part}.{LANE}"
        is_stated = inputs.catalogue.has_part_value(part, LANE) or input_values.has(path)
        return input_values.structure(path) if is_stated else None

    def lane_rates(parts: Sequence[str]) -> dict[str, float]:
        rates = {part: lane_rate(part) for part in parts}
        return {part: rate for part, rate in rates.items() if rate is not None}

    optics = _parts_for_sale(inputs, OPTIC)
    limits = lane_rates(end_parts)
    if limits:
        slowest = min(limits, key=lambda part: limits[part])
        highest_rate = limits[slowest] * (1 + 1e-9)
        too_fast = {
            optic: rate for optic, rate in lane_rates(optics).items() if rate > highest_rate
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
    """Return the possible pairs of switch and optic, and the index of the cheapest in each draw.

    A pair has the text of each path that lists alternatives. Returns None without a choice.
    """
    clos_parts(inputs)
    if inputs.system.bare:
        return None
    lengths = np.broadcast_to(input_values.number(CABLE_LENGTH), inputs.shape)
    is_covered_by_pair = _draws_covered_by_pair(inputs, input_values, lengths)
    if len(is_covered_by_pair) == 1:
        return None
    lists = _listed_paths(inputs)
    choices = []
    prices_or_inf, powers_or_inf = [], []
    for parts, is_covered in is_covered_by_pair.items():
        parts_by_path = {SWITCH: parts.switch, OPTIC: parts.optic}
        choices.append({path: part for path, part in parts_by_path.items() if path in lists})
        network = _reachable_network(inputs, input_values, parts)
        price, power = (np.inf, np.inf) if network is None else (network.price, network.power)
        prices_or_inf.append(np.where(is_covered, price, np.inf))
        powers_or_inf.append(np.broadcast_to(power, inputs.shape))
    prices, powers = np.stack(prices_or_inf), np.stack(powers_or_inf)
    if inputs.perspective.rents:
        return choices, prices.argmin(axis=0)
    return choices, _hour_costs(inputs, input_values, prices, powers).argmin(axis=0)


def _draws_covered_by_pair(
    inputs: ResolvedScenario, input_values: Values, lengths: AnyArray
) -> dict[ClosParts, AnyArray]:
    """Return whether each pair of parts can be built in each draw.

    Draws whose links the same optics reach have the same pairs.
    """
    reaches = sorted(
        input_values.structure(f"parts.{optic}.reach") for optic in _parts_for_sale(inputs, OPTIC)
    )
    shortest_reach = np.searchsorted(reaches, lengths)
    is_covered_by_pair: dict[ClosParts, AnyArray] = {}
    for reach_index in np.flatnonzero(np.bincount(shortest_reach)):
        has_reach = shortest_reach == reach_index
        for pair in _clos_candidates(inputs, input_values, float(lengths[has_reach].max())):
            is_covered_by_pair[pair] = is_covered_by_pair.get(pair, False) | has_reach
    return is_covered_by_pair


def _reachable_network(
    inputs: ResolvedScenario, input_values: Values, parts: ClosParts
) -> Network | None:
    try:
        return design_network(inputs, input_values, parts)
    except ReachError:
        return None


def _hour_costs(inputs: ResolvedScenario, input_values: Values, prices: Any, powers: Any) -> Any:
    """Return the cost of networks in USD per chip-hour.

    It is the cost of a scale-up domain for which only the network is bought.
    """
    lines = [NetworkLine("whole", "", 1, prices, powers, "derived", (), ())]
    network = Network(1, lines, prices, powers)
    standing_cost = stage(
        "standing cost of a network",
        inputs,
        input_values,
        lambda: standing_cost_of(inputs, input_values, Bill([], 0.0, 0.0), network),
        prices,
        powers,
    )
    return cost_of_world(input_values, standing_cost, inputs.system.chips, 1.0).per_chip_hour


def design_network(
    inputs: ResolvedScenario, input_values: Values, parts: ClosParts | None = None
) -> Network:
    """Return the scale-out network of the scenario's cluster, with its front end.

    Args:
        inputs: The scenario.
        input_values: Inputs of the scenario by path.
        parts: Switch and optic to build with; None for those of the cluster.

    """
    parts = parts or clos_parts(inputs)
    chip_path = f"parts.{inputs.system.chip}"
    port = cluster_port_rate(inputs)
    chips = input_values["cluster.chips"]
    design = network_design(inputs.system)
    tiers = tiers_of(inputs, input_values, parts.switch, design)
    back_end = NetworkDesign(
        chips=chips,
        nic=input_values[f"{chip_path}.scale_out_bandwidth"],
        switch=parts.switch,
        optic=parts.optic,
        tiers=tiers,
        port=port,
        design=design,
        in_rack=design == "tor",
    )
    network = scale_out_network(input_values, back_end)
    front_end_bandwidth = input_values.unless_zero(f"{chip_path}.frontend_bandwidth")
    if front_end_bandwidth is None:
        return network
    is_shared = shares_scale_out_switches(inputs.system)
    front_end = NetworkDesign(
        chips=chips,
        nic=front_end_bandwidth,
        switch=parts.switch,
        optic=parts.optic,
        tiers=tiers if is_shared else tiers_of(inputs, input_values, parts.switch, "leaf"),
        port=port,
        design="tor",
        in_rack=is_shared,
        prefix="frontend-",
    )
    front_end_lines = scale_out_network(input_values, front_end).lines
    return network_totals(tiers, [*network.lines, *front_end_lines])


class ClosRequest(NamedTuple):
    """A Clos network to size and price apart from any scenario."""

    switch: str  # part id
    chips: int | None  # None for as many as the tiers reach
    nic: float  # bandwidth of a chip, byte/s
    port: float  # rate of a logical port, byte/s
    tiers: int | None = None  # None for as many as the chips need
    design: str = "tor"
    span: float | None = None  # length of the links between sites, m; None for a single site
    between_sites: float = 0.5  # share of the links of the top tiers that run between sites


def requested_clos(
    inputs: ResolvedScenario, input_values: Values, request: ClosRequest
) -> tuple[ClosSize, Network]:
    """Return size and network of a Clos, with the optics that cost least over their life.

    Args:
        inputs: A scenario, with the owner, site and terms that the cost depends on.
        input_values: Inputs of the scenario by path.
        request: The Clos to build.

    Raises:
        DataError: The Clos cannot be built, or links between sites are requested of one tier.

    """
    size = clos_size(input_values, request.switch, request.chips, request.port, request.tiers)
    if request.span is not None and size.tiers < 2:
        raise DataError(
            "--span: a network of one tier has no links between switches, so none runs between "
            "sites; ask for --tiers 2"
        )
    cable_length = input_values.structure(CABLE_LENGTH)
    optics = _fitting_optics(inputs, input_values, [request.switch], cable_length)
    long_links: list[LongLinks | None] = [None]
    if request.span is not None and request.between_sites > 0:
        long_optics = _fitting_optics(inputs, input_values, [request.switch], request.span)
        long_links = [
            LongLinks(optic, request.between_sites, request.span) for optic in long_optics
        ]
    networks: dict[tuple[str, LongLinks | None], Network] = {}
    for optic, links_between_sites in product(optics, long_links):
        design = NetworkDesign(
            chips=size.chips,
            nic=request.nic,
            switch=request.switch,
            optic=optic,
            tiers=size.tiers,
            port=request.port,
            design=request.design,
            long_links=links_between_sites,
        )
        networks[optic, links_between_sites] = scale_out_network(input_values, design)
    totals_by_key = {
        network_key: NetworkTotals(float(network.price), float(network.power))
        for network_key, network in networks.items()
    }
    cheapest = _cheapest_network(inputs, input_values, totals_by_key)
    return size, networks[cheapest] if cheapest is not None else next(iter(networks.values()))
