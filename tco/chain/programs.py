"""Scenarios as programs: traced once with all their plans, then run for any number of draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tco.chain.inputs import Inputs
from tco.chain.scenario import run
from tco.chain.structure import Structure
from tco.chain.workloads import WORKLOADS, job_on, server_of, without_plan
from tco.foundation.provenance import Input
from tco.foundation.trace import Node, Trace, Traced, recording, scope
from tco.foundation.values import Reader, as_traced
from tco.graph.kernel import BATCH_PATH, Kernel
from tco.graph.program import Program

METRIC = "metric "  # before the names of metrics among the results of a program


def as_one(trace: Trace) -> Reader:
    """The traced reading of inputs of which some are arrays: leaves hold their first value."""
    read = as_traced(trace)

    def first(given: Input) -> Traced:
        leaf: Traced = read(given._replace(value=float(given.value.flat[0])) if np.ndim(given.value) else given)
        return leaf

    return first


def traced(inputs: Inputs, plan: Any) -> dict[str, Node]:
    """Return the results of a scenario on a plan, or on plans as columns: its metrics, and what tells whether targets are met."""
    with recording() as trace:
        values = inputs.values(as_one(trace))
        beside: dict[str, Any] = {}
        if inputs.kind == "stated":
            workload = WORKLOADS["stated"](inputs, values, plan)
        elif plan is None:
            workload = without_plan(inputs.kind, "the structure holds no plan")
        elif inputs.kind == "serving":
            from tco.performance.serving import draws

            with scope("serving"):
                if plan.engines is None:
                    batch = trace.leaf("batch", 1.0, "", "structure", "derived", BATCH_PATH)
                    batch.node.given = Input(BATCH_PATH, 1.0, "")
                    plan = plan._replace(decode=plan.decode._replace(sequences=batch))
                workload, beside = draws.traced(*server_of(inputs, values), values, plan)
        else:
            from tco.performance.training.result import train

            with scope("training"):
                job, reached, formats = job_on(inputs, values)
                workload = train(job, reached, formats, plan)
                beside = {"held": workload.held, "memory": reached.memory}
        metrics = run(inputs, values, None, workload).metrics
    named = {f"{METRIC}{name}": value for name, value in metrics.items()} | beside
    return {name: value.node if isinstance(value, Traced) else constant(name, value) for name, value in named.items() if value is not None}


def constant(name: str, value: Any) -> Node:
    """Return a result that rests on no input."""
    return Node(name, value, "", "structure")
