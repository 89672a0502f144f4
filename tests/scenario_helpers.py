"""The headline scenarios, evaluated once, for the tests that look at whole results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from tco import Result, evaluate
from tco.core.inputs import Values, as_traced
from tco.core.provenance import Input, period
from tco.core.trace import Node, recording, scope, walk
from tco.cost.ownership import load_agreement
from tco.fabric.libraries import combined_library
from tco.scenario import evaluate_samples, metrics
from tco.scenario.baseline_ratio import fill_ratio_to_baseline
from tco.scenario.chip_figures import chip_figures
from tco.scenario.collective_links import links_of_system
from tco.scenario.document import load_scenario
from tco.scenario.evaluate_samples import DRAWS_PER_CALL
from tco.scenario.metrics import METRICS, MORE_IS_BETTER
from tco.scenario.resolve import plain_inputs, resolve_scenario, system_inputs
from tco.scenario.resolved import ResolvedScenario, bounds
from tco.scenario.system_bill import SystemBill, bill_of_system
from tco.scenario.workload import server_of, serving_workload
from tests.catalogue import CATALOGUE
from tests.fabric_helpers import FabricScope, Links, Tokens, cheapest, fabric_scopes

# what tests of several files ask for
__all__ = [
    "DRAWS_PER_CALL",
    "KINDS",
    "METRICS",
    "MORE_IS_BETTER",
    "Input",
    "as_traced",
    "bounds",
    "chip_figures",
    "evaluate_samples",
    "fill_ratio_to_baseline",
    "load_agreement",
    "metrics",
    "period",
    "recording",
    "scope",
    "server_of",
    "serving_workload",
]

KINDS = ("measured", "vendor", "filing", "analyst", "press", "derived", "estimate", "assumed")

HEADLINE = ("trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72")
FUSED = ("elementwise_traffic", "expert_passes")  # what a fleet has kernels of its own for
# stated plans and chosen ones are on one footing: the model's own rates, on the kernels of a fleet
ALIKE = {
    "workload.as_deployed": "0",
    **{
        f"performance.layer.{name}": repr(CATALOGUE.practice("fleet", name).value) for name in FUSED
    },
}
DECEMBER = {"terms.date": "2025-12"}  # of which the prices are that others counted up


@cache
def result(name: str) -> Result:
    """Return a headline result with its trace. Do not change it."""
    return evaluate(name, catalogue=CATALOGUE, trace=True)


@cache
def in_december(name: str, **variant: str) -> Result:
    """Return a headline result at the prices of December 2025. Do not change it."""
    return evaluate(name, DECEMBER, catalogue=CATALOGUE, variant=variant)


def again(name: str, plan=None, **settings: str) -> Result:
    """Evaluate with settings on the headline's plan, unless another is given.

    `__` stands for the dot of a path.
    """
    return evaluate(name, by_path(settings), plan or result(name).plan, catalogue=CATALOGUE)


def same(first_metrics: Mapping[str, Any], second_metrics: Mapping[str, Any]) -> bool:
    """Say whether metrics are the same: arrays round as numbers do but for the last bit."""
    pairs = zip(first_metrics.values(), second_metrics.values(), strict=True)
    return first_metrics.keys() == second_metrics.keys() and all(
        a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=1e-12))
        for a, b in pairs
    )


def by_path(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings by path, `__` standing for the dot of a path."""
    return {path.replace("__", "."): value for path, value in settings.items()}


def nodes_below(*roots: Node) -> list[Node]:
    """Return the cells that some traced metrics rest on, each once."""
    return list(walk(*roots))


def inputs_of(
    name: str,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `evaluate`
    catalogue=CATALOGUE,
) -> ResolvedScenario:
    """Return the resolved inputs of a scenario."""
    return resolve_scenario(catalogue, load_scenario(catalogue, name), dict(set or {}), {})


def system_of(
    name: str, variant: Mapping[str, str] | None = None, catalogue=CATALOGUE, **settings: str
) -> ResolvedScenario:
    """Return the resolved inputs of a system on the headline's site and terms."""
    return system_inputs(catalogue, name, by_path(settings), variant or {})


def bill_of(
    name: str,
    set: Mapping[str, str] | None = None,  # noqa: A002 - as in `evaluate`
    variant: Mapping[str, str] | None = None,
    catalogue=CATALOGUE,
) -> SystemBill:
    """Return the bill of a system, as `tco bom` gives it."""
    return bill_of_system(catalogue, name, dict(set or {}), dict(variant or {}))


def plain_values(**settings: str) -> Values:
    """Return the values that questions about no system rest on."""
    return plain_inputs(CATALOGUE, by_path(settings)).values()


def links_of(
    name: str, library: str | None = None, variant: Mapping[str, str] | None = None, **settings: str
) -> Links:
    """Return the links of a system's chips, by the library of their family or another one."""
    inputs = system_of(name, variant, **settings)
    return links_of_system(
        inputs, inputs.values(), combined_library(CATALOGUE, [library]) if library else None
    )


def fabric_of(inputs: ResolvedScenario) -> list[FabricScope]:
    """Return the scopes of a system's fabric."""
    return fabric_scopes(inputs.system, inputs.values())


def dispatched(links: Links, ranks: Any, tokens: Any, active: Any, token: Any) -> Any:
    """Return the time of an expert dispatch of consecutive ranks."""
    return cheapest(links, "dispatch", ranks, Tokens(tokens, token, active))
