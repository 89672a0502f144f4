"""Scale-out networks: the table, the rows and the document of `tco network`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.foundation.provenance import SOURCED
from tco.hardware.network import Network, NetworkLine
from tco.outputs.document import number
from tco.outputs.table import Table, significant

HEADER = ("line", "part", "quantity", "price_usd", "power_w", "kind", "source")


def network_cells(line: NetworkLine) -> list[Any]:
    """Return the raw cells of a line."""
    return [line.name, line.part, float(line.quantity), float(line.price), float(line.power), line.kind, ";".join(line.sources)]


def network_table(title: str, network: Network, facts: Sequence[str], chips: float) -> Table:
    """Return the bill of a network with what it reaches above it."""
    rows: list[Sequence[str]] = []
    for line in network.lines:
        mark = "" if line.kind in SOURCED else "~"
        rows.append((line.name, line.part, significant(line.quantity, 7), mark + significant(line.price), significant(line.power), line.kind))
    rows.append(("WHOLE NETWORK", "", "", significant(network.price, 5), significant(network.power, 5), ""))
    below = [f"{significant(float(network.price) / chips)} USD and {significant(float(network.power) / chips)} W a chip. ~ based on an estimate."]
    return Table(("line", "part", "quantity", "USD", "W", "kind"), rows, title, list(facts), below, "llrrrl")


def counted(network: Network, words: Sequence[str]) -> int:
    """Return how many of some kinds of parts a network has."""
    return round(sum(float(line.quantity) for line in network.lines if line.name.startswith(tuple(words))))


def network_document(network: Network, design: dict[str, Any]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    switches = [
        {"tier": int(line.name.rpartition("-")[2]), "part": line.part, "count": number(line.quantity)}
        for line in network.lines
        if line.name.startswith("switches-tier")
    ]
    return {
        **design,
        "tiers": network.tiers,
        "switches": switches,
        "links": counted(network, ("fibres",)),
        "transceivers": counted(network, ("modules",)),
        "cables": counted(network, ("copper", "fibres")),
        "lines": [dict(zip(HEADER, network_cells(line), strict=True)) for line in network.lines],
        "price_usd": number(network.price),
        "power_w": number(network.power),
    }
