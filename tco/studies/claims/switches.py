"""Claims on switches: their ports, how many a rack holds, and what that leaves unused."""

from __future__ import annotations

from tco.studies.claims.context import Context, computes

BIG, SMALL = "scorpio-x-160", "scorpio-p-32"


def in_rack(c: Context, system: str, part: str, **variant: str) -> float:
    """Return how many of a part stand in one rack."""
    return c.count(system, part, **variant) / c.racks(system)


def ports(c: Context, switch: str) -> float:
    """Return the ports of a switch, as wide as the fabric uses them."""
    return c.part(switch, "lanes") / c.part(switch, "port_lanes")


@computes("C066")
def board_lanes(c: Context) -> float:
    """Lanes of a tray's small switches."""
    return c.count("trn3-nl72x2", SMALL) / c.count("trn3-nl72x2", "compute-tray") * c.part(SMALL, "lanes")


@computes("C067")
def big_switch_ports(c: Context) -> float:
    """Lanes over lanes a port."""
    return ports(c, BIG)


@computes("C068")
def nl32_switches(c: Context) -> float:
    """Trays of a rack times switches of a tray."""
    return in_rack(c, "trn3-nl32x2", BIG)


@computes("C069")
def nl32_trays(c: Context) -> float:
    """Trays of a rack with the spare one."""
    return in_rack(c, "trn3-nl32x2", "switch-tray", spare_switch_tray="yes")


@computes("C070")
def nl72_big_switches(c: Context) -> float:
    """Trays of a rack times switches of a tray."""
    return in_rack(c, "trn3-nl72x2", BIG)


@computes("C071")
def nl72_small_switches(c: Context) -> float:
    """Trays of a rack times switches of a tray."""
    return in_rack(c, "trn3-nl72x2", SMALL)


@computes("C072")
def nl72_switches(c: Context) -> float:
    """Both kinds in a rack."""
    return nl72_big_switches(c) + nl72_small_switches(c)


@computes("C073")
def nl72_world_switches(c: Context) -> float:
    """Both kinds in both racks."""
    return c.count("trn3-nl72x2", BIG) + c.count("trn3-nl72x2", SMALL)


@computes("C074")
def unused_ports(c: Context) -> float:
    """Ports of a switch less the trays it reaches, one chip in each."""
    return ports(c, BIG) - in_rack(c, "trn3-nl72x2", "compute-tray")


@computes("C075")
def nl72_trays(c: Context) -> float:
    """Switch trays of a rack."""
    return in_rack(c, "trn3-nl72x2", "switch-tray")


@computes("C076")
def backplane_lanes(c: Context) -> float:
    """Lanes of the big switches that trays take, for each chip."""
    trays = in_rack(c, "trn3-nl72x2", "compute-tray")
    return nl72_big_switches(c) * trays * c.part(BIG, "port_lanes") / (c.chips("trn3-nl72x2") / c.racks("trn3-nl72x2"))


@computes("C077")
def pex_lanes(c: Context) -> float:
    """The ports the claim counts, as wide as the fabric uses them."""
    return c.given("ports") * c.part("pex90144", "port_lanes")


@computes("C078")
def pex_ports(c: Context) -> float:
    """Lanes over the narrowest port."""
    return c.part("pex90144", "lanes") / c.given("lanes")


@computes("C079")
def nl32_gen2_switches(c: Context) -> float:
    """Trays of a rack times switches of a tray, with the larger switch."""
    return in_rack(c, "trn3-nl32x2", "scorpio-x-320", switch="gen2")


@computes("C080")
def gen2_ports(c: Context) -> float:
    """Lanes over lanes a port."""
    return ports(c, "scorpio-x-320")


@computes("C081")
def gen2_planes(c: Context) -> float:
    """Planes of the fabric with the larger switch."""
    return float(c.system("trn3-nl72x2", switch="gen2").fabric["planes"])


@computes("C082")
def gen3_ports(c: Context) -> float:
    """One port for each chip of a rack."""
    return c.chips("trn3-nl72x2") / c.racks("trn3-nl72x2")
