"""The bandwidth of a chip into the networks beyond its racks: what the NICs of the tree give, shared by the chips.

`[network.scale_out]` and `[network.frontend]` of a system's file name the card (`nic`); where the same card serves other ends too,
`below` names the assembly whose cards count, and `hosts` how many of them in each belong to its host: the front end counts those,
the scale-out network the others. How many there are follows from the tree. A system that names no card has the bandwidth its chip
states. `converged` says that the front end runs over the switches of the racks; `in_racks` names those switches and their cables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.systems import System, is_count
from tco.foundation.errors import DataError, unknown
from tco.foundation.formula import formula
from tco.foundation.units import BytePerSecond, Pure

FRONTEND = "frontend"
NETWORKS = {"scale_out": "scale_out_bandwidth", FRONTEND: "frontend_bandwidth"}
KEYS = ("nic", "below", "hosts", "converged")
Rules = Mapping[str, Callable[[Callable[[str], Any]], Any]]  # by path, how to compute a value from a lookup
IN_RACKS = "in_racks"  # switches and cables of the scale-out network that the tree holds


@formula(unit="byte/s", source="tco-model")
def nic_bandwidth(nics: Pure, ports: Pure, port: BytePerSecond, chips: Pure) -> Any:
    """Bandwidth of a chip into a network, per direction: B = NICs x ports x port rate / chips."""
    return nics * ports * port / chips


class Cards(NamedTuple):
    """The NICs of one network: which part, and how many in one world."""

    part: str
    quantity: float


def cards_of(system: System, network: str) -> Cards | None:
    """Return the NICs that join the chips of a system to a network; None where its file names none."""
    stated, where = system.network.get(network), f"{system.where}: network.{network}"
    if stated is None:
        return None
    if not isinstance(stated, dict) or "nic" not in stated:
        raise DataError(f'{where} is {stated!r}, expected a table such as {{ nic = "connectx-7" }}')
    for key in stated:
        if key not in KEYS:
            raise unknown("key", key, KEYS, where)
    nic, below, hosts = stated["nic"], stated.get("below"), stated.get("hosts", 0)
    if below is not None and below not in system.quantity:
        raise unknown("part of the tree", str(below), system.quantity, f"{where}.below")
    if not is_count(hosts) or (hosts and below is None):
        raise DataError(f"{where}.hosts is {hosts!r}, expected how many of the cards in each assembly that `below` names")
    held = sum(leaf.quantity for leaf in system.leaves if leaf.part == nic and below in (None, leaf.parent.rpartition("/")[2]))
    of_hosts = hosts * system.quantity.get(str(below), 0.0)
    return Cards(str(nic), of_hosts if network == FRONTEND and hosts else held - of_hosts)


def network_parts(system: System) -> frozenset[str]:
    """Return the parts of the tree that belong to the scale-out network and the front end: cards, and the switches and cables of the racks."""

    def parts() -> frozenset[str]:
        cards = [cards.part for network in NETWORKS if (cards := cards_of(system, network)) is not None]
        return frozenset([*cards, *system.network.get(IN_RACKS, ())])

    found: frozenset[str] = system.once("network parts", parts)
    return found


def converged(system: System) -> bool:
    """Say whether the front end runs over the switches of the scale-out network that stand in the racks."""
    return bool(system.network.get(FRONTEND, {}).get("converged", False))


def nic_faults(system: System) -> Iterator[str]:
    """Yield the networks whose cards the tree does not hold; a key nobody reads raises `DataError`."""
    keys = [f"network.{key}" for key in ("first_tier", IN_RACKS, *NETWORKS)]
    for key in system.network:
        if f"network.{key}" not in keys:
            raise unknown("key", f"network.{key}", keys, system.where)
    for network in NETWORKS:
        found = cards_of(system, network)
        if found is not None and found.quantity <= 0:
            yield f"network.{network} names {found.part}, of which the tree holds none for the chips"
    for part in system.network.get(IN_RACKS, ()):
        if not system.quantity.get(part):
            yield f"network.{IN_RACKS} names {part}, of which the tree holds none"


def from_the_tree(system: System, catalogue: Catalogue) -> Rules:
    """Return what follows from the NICs of the tree: the path of each bandwidth of the chip, and how to compute it from a lookup."""

    def rules() -> Rules:
        found = {network: cards_of(system, network) for network in NETWORKS}
        return {
            f"parts.{system.chip}.{NETWORKS[network]}": partial(shared, cards, catalogue.has_part_value(cards.part, "ports"), system.chips)
            for network, cards in found.items()
            if cards is not None
        }

    made: Rules = system.once("rules of cards", rules)
    return made


def shared(cards: Cards, counted: bool, chips: float, look_up: Callable[[str], Any]) -> Any:
    """Return the bandwidth of cards shared by some chips; a card whose ports nobody counts is rated as a whole."""
    ports = look_up(f"parts.{cards.part}.ports") if counted else 1.0
    return nic_bandwidth(cards.quantity, ports, look_up(f"parts.{cards.part}.port_bandwidth"), chips)
