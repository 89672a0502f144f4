"""Deployments: the plan class of an operator, and its rate relative to the best plan.

A search chooses the best plan. A fleet, a server or a pool of a few servers reaches a share of the
plan's rate in production, which depends on its class, its family of chips and its system:

    R = R_c e,   e = (e_class e_engine e_family e_chip e_system)^g

R_c is the best rate within the class. g is the share of the way to the best software that is left.
Users get the speed of the plan. A stated plan or load keeps its full rate.
"""

from __future__ import annotations

from typing import NamedTuple

from tco.core.formula import formula
from tco.core.inputs import Readable
from tco.core.trace import scope
from tco.core.types import Quantity
from tco.core.units import Pure, TokenPerSecondPerChip

OPERATED_BY = "workload.operated_by"
OPERATORS = FLEET, SERVER, APART, BENCHMARK = ("fleet", "server", "apart", "benchmark")
EFFICIENCY = "deployment_efficiency"
SYSTEM_OWNER = "run"  # owner of what one system's deployment has by itself


class PoolShape(NamedTuple):
    """Pools of published runs: decode engines, and the prefill engines that serve them."""

    decode_chips: float  # of an engine
    decode_engines: float
    prefill_chips: float  # of an engine
    prefill_engines: float


class Deployer(NamedTuple):
    """Who deploys the plans that the program chooses."""

    name: str  # one of OPERATORS
    server_chips: float = 0.0  # of the largest whole engine on one server
    pools: tuple[PoolShape, ...] = ()


@formula("", source="tco-calibration")
def deployment_efficiency(
    operator: Pure, family: Pure, chip: Pure, system: Pure, gap: Pure, engine: Pure = 1
) -> Quantity:
    """Rate of a deployment over that of the best plan of its class: e = (c f k s b)^g."""
    return (operator * family * chip * system * engine) ** gap


@formula("token/s/chip", source="tco-calibration")
def deployed_rate(rate: TokenPerSecondPerChip, efficiency: Pure) -> Quantity:
    """Tokens per second and chip of a deployment, at the speed of the best plan: R = R_c e."""
    return rate * efficiency


def efficiency_path(owner: str) -> str:
    """Return the input path of a deployment efficiency.

    Args:
        owner: Id of a class of plans, an engine, a family, a chip or a system.

    """
    return f"performance.{owner}.{EFFICIENCY}"


def system_path(system: str) -> str:
    """Return the input path of a system's own deployment efficiency.

    Args:
        system: Id of the system.

    """
    return efficiency_path(f"{SYSTEM_OWNER}-{system}")


def efficiency_of(
    input_values: Readable,
    operator: str,
    engine: str,
    family: str,
    chip: str,
    system: str,
    gap: Quantity | None,
) -> Quantity:
    """Return the deployment efficiency of plans that were chosen for an operator.

    Args:
        input_values: Inputs by path.
        operator: Class of plans, one of `OPERATORS`.
        engine: Serving engine; a fleet has kernels of its own and no efficiency of an engine.
        family: Family of the chip.
        chip: Part that computes.
        system: Id of the rack.
        gap: Share of the way to the best software that is left; None for public software, 1.

    """
    with scope("deployment"):
        efficiencies = [input_values[efficiency_path(owner)] for owner in (operator, family, chip)]
        efficiencies += [input_values[system_path(system)], 1.0 if gap is None else gap]
        if operator != FLEET:
            efficiencies.append(input_values[efficiency_path(engine)])
        return deployment_efficiency(*efficiencies)
