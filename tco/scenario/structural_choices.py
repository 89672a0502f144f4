"""Structural choices of a scenario: network, formats, operators and collectives.

`structure_of` returns the structure of an evaluated chain. `structural_choices` lists the choices
for output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tco.core.inputs import Readable, Readings
from tco.core.types import JsonObject
from tco.scenario.network_tiers import network_design
from tco.scenario.structure import Structure
from tco.scenario.workload import storage_and_compute_formats

if TYPE_CHECKING:
    from tco.scenario.chain import Chain
    from tco.scenario.resolved import ResolvedScenario


def structure_of(inputs: ResolvedScenario, input_values: Readable, chain: Chain) -> Structure:
    """Return the structure of a chain: the given one, or the decisions made on the way."""
    plan, readings = chain.serving.plan, Readings(inputs.readings, inputs.readings.decisions)
    if inputs.structure is not None:
        return inputs.structure._replace(plan=plan, readings=readings)
    return Structure(
        inputs.system.id,
        inputs.system.variant,
        dict(inputs.texts_used),
        inputs.alternatives,
        plan,
        readings,
        tuple(inputs.compared),
        _structural_choices(inputs, input_values, chain),
    )


def _structural_choices(
    inputs: ResolvedScenario, input_values: Readable, chain: Chain
) -> JsonObject:
    """Return network, formats, operators per phase and collectives of a chain.

    An entry is absent where the chain makes no such choice.
    """
    choices: JsonObject = (
        {"formats": formats}
        if (formats := storage_and_compute_formats(inputs, input_values))
        else {}
    )
    if chain.network is not None:
        parts = dict.fromkeys(line.part for line in chain.network.lines)
        choices["network"] = {
            "design": network_design(inputs.system),
            "tiers": chain.network.tiers,
            "parts": list(parts),
        }
    choices["operators"] = chain.serving.operators
    if (links := chain.serving.links) is not None:
        choices["collectives"] = {
            "library": links.library.name,
            "in_network_reduction": bool(links.reduces),
        }
    return choices
