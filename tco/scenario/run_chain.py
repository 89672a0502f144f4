"""Run the chain of a scenario: cost of the racks and rate of the workload, joined in metrics.

    parts -> bill -> scale-out network -> site -> cost per chip-hour
    kernels -> collectives -> plan -> tokens per second
    both -> cost per million tokens

The inputs decide the reading: the same chain gives numbers, arrays of draws, or traced values.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

from tco.core.errors import DataError
from tco.core.inputs import Values, as_traced
from tco.core.trace import Node, Traced, recording, scope
from tco.performance.serving.record import ServingResult
from tco.scenario.carbon_and_waiting import add_carbon, add_waiting
from tco.scenario.chain import Chain
from tco.scenario.memo import stage
from tco.scenario.metrics import collect
from tco.scenario.network_choice import clos_parts
from tco.scenario.pricing import owner_cost
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.workload import workload_kind

if TYPE_CHECKING:
    from tco.performance.training.result import TrainingResult


def chain_of(inputs: ResolvedScenario, input_values: Values, plan: Any) -> Chain:
    """Return the chain on a plan, on the structure's plan, or on the best plan of a search.

    Args:
        inputs: Resolved scenario.
        input_values: Values of the inputs by path.
        plan: Plan, or plan axes by name; None takes the plan of the structure, else searches.

    Raises:
        DataError: A search is needed, and the inputs are arrays of many values.

    """
    structure = inputs.structure
    kind = workload_kind(inputs)
    if plan is None and structure is not None and kind.axis:
        if structure.plan is None:
            return run(inputs, input_values, None, kind.without_plan("the structure holds no plan"))
        plan = structure.plan
    if inputs.shape and kind.axis and (plan is None or isinstance(plan, Mapping)):
        raise DataError(
            "a plan is searched for one value of every input; for arrays call "
            f"tco.evaluate_draws({inputs.scenario.name!r}, {{path: (array, unit)}}), or keep the "
            "plan of a result with structure=result.structure"
        )
    return run(inputs, input_values, plan)


def run(
    inputs: ResolvedScenario,
    input_values: Values,
    plan: Any = None,
    rated_workload: ServingResult | TrainingResult | None = None,
) -> Chain:
    """Return the whole chain of a scenario.

    Args:
        inputs: Resolved scenario.
        input_values: Values of the inputs by path: numbers, arrays or traced values.
        plan: Plan or fixed axes; None searches the plan.
        rated_workload: Performance of a workload that needs no search; None rates the workload.

    Returns:
        Chain; a chip alone has no bill and no cost. `unpriced` says why a system has no cost.

    Raises:
        DataError: No module that is named or listed fits the network.

    """
    system = inputs.system
    if system.bare:
        workload = rated_workload or rate_workload(inputs, input_values, plan)
        return Chain(system, workload, collect(input_values, system, None, workload))
    clos_parts(inputs)  # chooses the parts of the network, which every stage depends on
    racks = owner_cost(inputs, input_values)
    workload = rated_workload or rate_workload(inputs, input_values, plan)
    metrics = collect(input_values, system, racks.cost, workload)
    if racks.cost is not None:
        add_carbon(inputs, input_values, racks.cost, metrics)
        add_waiting(inputs, input_values, racks.cost, metrics)
    return Chain(
        system=system,
        serving=workload,
        metrics=metrics,
        bill=racks.bill,
        network=racks.network,
        rebates=racks.rebates,
        cost=racks.cost,
        unpriced=racks.unpriced,
    )


def rate_workload(
    inputs: ResolvedScenario, input_values: Values, plan: Any
) -> ServingResult | TrainingResult:
    """Return serving or training performance on a plan, searched or given.

    Every call returns a copy of the cached result, so that each answer has its own report.
    """

    def rate() -> ServingResult | TrainingResult:
        with scope(inputs.kind):
            workload_result: ServingResult | TrainingResult = workload_kind(inputs).walk(
                inputs, input_values, plan
            )
        return workload_result

    return copy(stage("worked", inputs, input_values, rate, plan))


def nodes_of(inputs: ResolvedScenario, chain: Chain) -> dict[str, Node]:
    """Return the trace node of every metric, with the plan fixed.

    Without a plan only the metrics that need none have a node.
    """
    has_plan = chain.serving.plan is not None or not workload_kind(inputs).axis
    # a trace cannot search, so without a plan it keeps the workload as it was rated
    rated_workload = None if has_plan else chain.serving
    with recording() as recorder:
        traced = run(inputs, inputs.values(as_traced(recorder)), chain.serving.plan, rated_workload)
    return {
        metric_name: metric_value.node
        for metric_name, metric_value in traced.metrics.items()
        if isinstance(metric_value, Traced)
    }
