"""Claims on campuses: power, cooling, how many chips fit."""

from __future__ import annotations

from tco.chain.inputs import Inputs
from tco.foundation.values import Values
from tco.studies.claims.context import Context, computes

ULTRA = "trn2-nl32x2-3d"


def campus(c: Context) -> float:
    """Return the IT power of the buildings the claim counts."""
    return c.given("buildings") * c.part("rainier-building", "site_power")


def ultraserver(c: Context) -> float:
    """Return the published power of a Trainium2-Ultra."""
    return c.racks(ULTRA) * c.part("trn2", "rack_power")


@computes("C129", "kW")
def ultraserver_power(c: Context) -> float:
    """Racks times their published power."""
    return ultraserver(c)


@computes("C131", "MW")
def phase_1(c: Context) -> float:
    """Buildings times their IT power."""
    return campus(c)


@computes("C132", "MW")
def both_phases(c: Context) -> float:
    """Buildings times their IT power."""
    return campus(c)


@computes("C133")
def campus_pue(c: Context) -> float:
    """What the headline's site takes over a year."""
    return c.walked("trn3-nl72x2", {}, pue_of)


def pue_of(_: Inputs, values: Values) -> float:
    """Return the PUE of a scenario's site."""
    return float(values["site.pue"])


@computes("C134", "%")
def lost_power(c: Context) -> float:
    """IT power given up where the same supply feeds chillers."""
    return 1 - c.part("aws-air-hall", "peak_pue") / c.part("chilled-hall", "peak_pue")


@computes("C135")
def chips_that_fit(c: Context) -> float:
    """IT power of the first phase over the power of a chip, all in."""
    return campus(c) / (ultraserver(c) / c.chips(ULTRA))


@computes("C136", "EFLOP/s")
def gb200_cluster(c: Context) -> float:
    """Dense BF16 peak of the GPUs the claim counts."""
    return c.given("gpus") * c.chip("gb200-nvl72", "peak_bf16")


@computes("C194")
def rainier_chips(c: Context) -> float:
    """The number another source states."""
    return c.claimed("C135")
