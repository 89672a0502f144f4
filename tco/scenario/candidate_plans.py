"""All serving plans that a draw of a scenario may choose among, as arrays along axes of plans."""

from __future__ import annotations

from typing import Any

from tco.core.errors import DataError
from tco.performance.deployment import APART, BENCHMARK, FLEET, OPERATED_BY, SERVER
from tco.performance.serving.plans import ServingPlan, ServingWorkload
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.workload import serving_workload

# A program holds one number per plan at every step. Beyond this many plans the numbers fill the
# memory, so only plans near the frontier of rate and speed are kept.
MAX_LOADED_PLANS = 2**13


def every_plan(inputs: ResolvedScenario, plans_of_operators: dict[Any, ServingPlan]) -> ServingPlan:
    """Return all plans of a serving workload.

    A stated load and an offline workload have no prefill pool: each engine reads its own prompts,
    so both phases have the same plans.

    Args:
        inputs: The resolved scenario.
        plans_of_operators: Plans found earlier for operators under the same scenario and settings;
            the plans of a new operator are added.

    Returns:
        Plans of both phases: decode of shape (plans, 1), prefill of shape (1, plans). An operator
        other than a fleet has only the plans of its class, in rows for both phases.

    Raises:
        DataError: No pools of a published size divide the chips of the system.

    """
    from tco.performance.serving import plan_choice, plans

    input_values = inputs.values()
    workload = serving_workload(inputs, input_values)
    machine, model, request = workload
    draft_depths = plans.depths_of(workload)
    if machine.deployer is not None and machine.deployer.name != FLEET:
        return _plans_of_operator(inputs, workload, plans_of_operators)
    if request.offline or input_values.exists("workload.concurrency"):
        axes = plans.filling(plan_choice.offered_axes(machine, model, 0), machine.links)
        decode_plans = plans.decoding_at(axes, 1.0, draft_depths)
        return ServingPlan(
            decode=decode_plans,
            prefill=plans.as_prefill_plan(decode_plans),
            engines=plans.engines_of_world(machine.links, decode_plans.chips),
        )
    prefill_axes = plan_choice.offered_axes(machine, model, request.prompt)
    return ServingPlan(
        decode=plans.decoding_at(plan_choice.decode_axes(workload), 1.0, draft_depths),
        prefill=plans.PrefillPlan(*(axis.reshape(1, -1) for axis in prefill_axes)),
    )


def _plans_of_operator(
    inputs: ResolvedScenario,
    workload: ServingWorkload,
    plans_of_operators: dict[Any, ServingPlan],
) -> ServingPlan:
    """Return all plans of an operator's class; a benchmark has the class of its best plan.

    Structures on the same links and parts have the same plans, so they share an entry of
    `plans_of_operators`.
    """
    from tco.performance.serving.classes import plans_of_class
    from tco.performance.serving.loaded_plans import near_frontier_of_base_case

    machine = workload.machine
    class_name = machine.deployer.name if machine.deployer is not None else FLEET
    structure_plan = None if inputs.structure is None else inputs.structure.plan
    if class_name == BENCHMARK:
        has_prefill_pool = structure_plan is not None and structure_plan.readers is not None
        class_name = APART if has_prefill_pool else SERVER
    parts = {} if inputs.structure is None else inputs.structure.alternatives
    links = machine.links._asdict() | {"library": machine.links.library.id}
    plans_key = tuple(links.values()), class_name, tuple(sorted(parts.items()))
    if plans_key in plans_of_operators:
        return plans_of_operators[plans_key]
    class_plans = plans_of_class(workload, class_name)
    if class_plans is None:
        raise DataError(
            f"{OPERATED_BY}={class_name}: no pools of a published size divide the chips of "
            f"{inputs.system.id}"
        )
    if len(class_plans.flight) > MAX_LOADED_PLANS:
        class_plans = near_frontier_of_base_case(workload, class_plans)
    plans_of_operators[plans_key] = class_plans
    return class_plans
