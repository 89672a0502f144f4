"""Recording of a scenario: its evaluation on some plans, as steps of a program."""

from __future__ import annotations

from typing import Any, NamedTuple

from tco.compile.lower import BATCH_PATH
from tco.compile.program import Program
from tco.core.inputs import Values
from tco.core.provenance import Input
from tco.core.trace import recorded_by, scope
from tco.core.types import JsonObject
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.run_chain import run
from tco.scenario.workload import job_on, serving_workload, workload_kind

METRIC = "metric "  # prefix that tells metrics from targets among the results of a program


class RecordedScenario(NamedTuple):
    """Where a program holds the results of a scenario."""

    # index of the step that computes each metric (with the prefix `METRIC`) and each value that
    # the targets are judged by
    step_indices: dict[str, int]
    # inputs that have no value now; the recording is wrong once a user sets one of them
    unset_paths: set[str]


def record_scenario(program: Program, inputs: ResolvedScenario, plan: Any) -> RecordedScenario:
    """Record a scenario on a plan, or on many plans as arrays.

    Args:
        program: Program that the steps of the evaluation are added to.
        inputs: The resolved scenario.
        plan: Plan of the workload; None where the structure holds no plan.

    """
    with recorded_by(program):
        input_values = inputs.values(program.read)
        first_step = len(program.steps)
        workload, target_values = _record_workload(program, inputs, input_values, plan)
        program.workload_steps.update(range(first_step, len(program.steps)))
        with program.on_first_plan():
            metrics = run(inputs, input_values, None, workload).metrics
    results = {f"{METRIC}{metric}": metric_value for metric, metric_value in metrics.items()}
    step_indices = {
        result_name: program.step_index(recorded_value)
        for result_name, recorded_value in (results | target_values).items()
        if recorded_value is not None
    }
    paths_asked_for = input_values.looked | input_values.derived_units.keys()
    return RecordedScenario(step_indices, paths_asked_for - input_values.inputs.keys())


def _record_workload(
    program: Program, inputs: ResolvedScenario, input_values: Values, plan: Any
) -> tuple[Any, JsonObject]:
    """Return the result of the workload, and the values that its targets are judged by."""
    kind = workload_kind(inputs)
    if not kind.axis:  # the workload runs no model
        return kind.walk(inputs, input_values, plan), {}
    if plan is None:
        return kind.without_plan("the structure holds no plan"), {"no plan": 1.0}
    if inputs.kind == "serving":
        from tco.performance.serving import draw_results

        with scope("serving"):
            if plan.engines is None:
                batch = program.read(Input(BATCH_PATH, 1.0, ""))
                plan = plan._replace(decode=plan.decode._replace(sequences=batch))
            served_workload = serving_workload(inputs, input_values, plan.stated)
            return draw_results.trace_serving(served_workload, plan)
    from tco.performance.training.result import train

    with scope("training"):
        job, machine, formats = job_on(inputs, input_values)
        training = train(job, machine, formats, plan)
    return training, {
        "step": training.rates["step_s"],
        "held": training.hbm_bytes_used,
        "memory": machine.memory,
    }
