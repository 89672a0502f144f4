"""Claims on cables: how many there are, counted as lanes or as pairs, and how long they last."""

from __future__ import annotations

from tco.studies.claims.context import Context, computes

LANE = "backplane-cable"  # one lane, both directions
PAIR = "backplane-pair-pcie5"  # one direction


@computes("C062")
def connector_pairs(c: Context) -> float:
    """Backplane lanes of a chip, two pairs each."""
    return c.count("trn3-nl72x2", LANE) / c.chips("trn3-nl72x2") * c.part(LANE, "pairs")


@computes("C094")
def nl32_cables(c: Context) -> float:
    """Backplane lanes of the world."""
    return c.count("trn3-nl32x2", LANE)


@computes("C095")
def nl72_cables(c: Context) -> float:
    """Backplane lanes of the world."""
    return c.count("trn3-nl72x2", LANE)


@computes("C096")
def server_cables(c: Context) -> float:
    """Pairs of one server's backplane."""
    return c.count("trn2-nl16", PAIR)


@computes("C097")
def ultraserver_cables(c: Context) -> float:
    """Pairs of the backplanes of four servers."""
    return c.count("trn2-nl32x2-3d", PAIR)


@computes("C098")
def nl72_pairs(c: Context) -> float:
    """Backplane lanes of the world in the unit of the torus' count."""
    return c.count("trn3-nl72x2", LANE) * c.part(LANE, "pairs")


@computes("C101")
def server_active_cables(c: Context) -> float:
    """Active cables of any kind in the tree of one server."""
    return sum(number for part, number in c.system("trn2-nl16").quantity.items() if part.startswith("aec-"))


@computes("C102")
def ultraserver_pairs_per_chip(c: Context) -> float:
    """Pairs over chips."""
    return c.count("trn2-nl32x2-3d", PAIR) / c.chips("trn2-nl32x2-3d")


@computes("C103")
def nl32_cables_per_chip(c: Context) -> float:
    """Lanes over chips."""
    return c.count("trn3-nl32x2", LANE) / c.chips("trn3-nl32x2")


@computes("C104")
def nl72_cables_per_chip(c: Context) -> float:
    """Lanes over chips."""
    return c.count("trn3-nl72x2", LANE) / c.chips("trn3-nl72x2")


CABLES = ("aec-pcie5-x16", "dac-pcie5-x16", "y-dac-400g", "cpu-dac-200g")  # beside the backplane


def cables_per_chip(c: Context, system: str) -> float:
    """Return what a chip's share of connectors and cables costs by the bill."""
    return sum(c.count(system, part) * c.part(part, "price") for part in (PAIR, *CABLES)) / c.chips(system)


@computes("C120", "USD")
def ultraserver_cables_price(c: Context) -> float:
    """Backplanes, active cables and those of cards and CPUs, a chip."""
    return cables_per_chip(c, "trn2-nl32x2-3d")


@computes("C121", "USD")
def server_cables_price(c: Context) -> float:
    """Backplane and cables of cards and CPUs, a chip."""
    return cables_per_chip(c, "trn2-nl16")


@computes("C125")
def optics_over_copper(c: Context) -> float:
    """Two modules and their fibre over passive copper, each by its bandwidth."""
    optics = (2 * c.part("optic-800g-dr8", "price") + c.part("fibre-link", "price")) / c.part("optic-800g-dr8", "port_bandwidth")
    lanes = c.part("dac-pcie6-x16", "lanes") * c.part("dac-pcie6-x16", "lane_bandwidth")
    return optics / (c.part("dac-pcie6-x16", "price") / lanes)


@computes("C122")
def link_lives(c: Context) -> float:
    """Copper against the shortest-lived optics."""
    return c.part("copper-link", "mttf") / c.part("optical-link", "mttf")
