"""Deployments: the plan class of an operator, and its rate relative to the best plan.

A plan that the program chose is the best of a search. Whoever runs a fleet, a server or pools of a
few servers reaches some share of its rate, by class, family of chips and system:

    R = R_c e,   e = (e_class e_engine e_family e_chip e_system)^g

with R_c the best rate within the class and g the share of the way to the best software that is
left. The speed that users get stays that of the plan. A plan or a load that somebody states has
none of it: the model answers what such a run reaches as it is configured.
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
    """Pools of published runs: engines that decode, and those that read prompts for them."""

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
    gap: Quantity,
) -> Quantity:
    """Return the deployment efficiency of plans that were chosen for an operator.

    Args:
        input_values: the inputs.
        operator: class of plans, one of `OPERATORS`.
        engine: serving engine, read where no fleet runs it with kernels of its own.
        family: family of the chip.
        chip: part that computes.
        system: rack that is asked for.
        gap: share of the way to the best software that is left; None is all of it, public software.

    """
    with scope("deployment"):
        owners = (operator, family, chip)
        of_class, of_family, of_chip = (input_values[efficiency_path(owner)] for owner in owners)
        of_system, left = input_values[system_path(system)], 1.0 if gap is None else gap
        if operator == FLEET:
            return deployment_efficiency(of_class, of_family, of_chip, of_system, left)
        of_engine = input_values[efficiency_path(engine)]
        return deployment_efficiency(of_class, of_family, of_chip, of_system, left, of_engine)
