"""Servers of a workload for tests: a system's chip and links, the model and the request.

There is no search.
"""

from __future__ import annotations

from functools import cache

from tco.performance.chip.formats import FORMATS, computed_on
from tco.performance.chip.gemm import operands, product
from tco.performance.chip.kernel_times import chip_on
from tco.performance.chip.roofline import flops_per_token
from tco.performance.layer.chip_model import Machine
from tco.performance.layer.operators import Operator
from tco.performance.serving import passes as serving
from tco.performance.serving.passes import PassResult, cached_numbers, decode_pass
from tco.performance.serving.plan_choice import decode_axes
from tco.performance.serving.plans import (
    DecodePlan,
    PrefillPlan,
    ServingWorkload,
    attention_chips,
    decode_plan_from_axes,
    plan_axes,
)
from tco.scenario.document import load_scenario
from tco.scenario.resolve import resolve_scenario
from tests.catalogue import CATALOGUE
from tests.scenario_helpers import ResolvedScenario, by_path, serving_workload

# what tests of several files ask for
__all__ = [
    "FORMATS",
    "Machine",
    "attention_chips",
    "cached_numbers",
    "chip_on",
    "computed_on",
    "decode_axes",
    "decode_pass",
    "decode_plan_from_axes",
    "flops_per_token",
    "operands",
    "plan_axes",
    "product",
]


class Server(ServingWorkload):
    """A chip on its links, and what it is asked for, with the passes of its plans."""

    def decode(self, plan: DecodePlan) -> PassResult:
        return serving.decode_pass(self, plan)

    def prefill(self, plan: PrefillPlan) -> PassResult:
        """One prompt of every attention group."""
        return serving.evaluate_prefill(self, plan, 1.0)


# a port and an engine grown up, as tests put down by hand
PLAIN = {
    "workload__software": "10000 months",
    "workload__draft_tokens": "0",
    "workload__as_deployed": "0",
}


def inputs_of(name: str, **settings: str) -> ResolvedScenario:
    """Return the inputs of a scenario or system.

    A setting's dots are written as double underscores, its hyphens as they are.
    """
    return resolve_scenario(
        CATALOGUE, load_scenario(CATALOGUE, name), by_path(PLAIN | settings), {}
    )


def serving_of(inputs: ResolvedScenario) -> Server:
    """Return the server of a scenario's resolved inputs."""
    return Server(*serving_workload(inputs, inputs.values()))


def bare(pass_result: PassResult) -> list[Operator]:
    """Return the operators of a pass by their times and counts.

    They come without the products that they are sums of.
    """
    return [operator._replace(products=None) for operator in pass_result.operators]


@cache
def server(name: str, **settings: str) -> Server:
    """Return the server of a scenario or system by its name."""
    return serving_of(inputs_of(name, **settings))


def changed(name: str, factors: dict[str, float], **settings: str) -> Server:
    """Return the server of a scenario with attributes and parameters multiplied.

    An attribute of the chip is given by its name, another value by its path.
    """
    inputs = inputs_of(name, **settings)
    values, chip = inputs.values(), inputs.system.chip
    paths = {
        path if "." in path else f"parts.{chip}.{path}": factor for path, factor in factors.items()
    }
    texts = {
        path: f"{values[path] * factor!r} {values.input(path).unit}".strip()
        for path, factor in paths.items()
    }
    return serving_of(inputs_of(name, **by_path(settings), **texts))


def named(pass_result: PassResult, name: str) -> Operator:
    """Return the one operator of a name."""
    (named_operator,) = [operator for operator in pass_result.operators if operator.name == name]
    return named_operator


def over_layers(pass_result: PassResult, name: str, field: str) -> float:
    """Return a field of all operators of a name, summed over their layers."""
    return sum(
        float(getattr(operator, field)) * float(operator.layers)
        for operator in pass_result.operators
        if operator.name == name
    )
