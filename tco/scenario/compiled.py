"""Compiled scenarios: a structure is traced once, and run for any number of draws.

A trace holds all plans of the structure. The structures of one scenario share a program, so that
a step they have in common is computed once for all draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.compile.execute import (
    best_rows,
    evaluate_partitions,
    keep_memory,
    kernel_outputs,
)
from tco.compile.lower import BATCH_PATH, ArithmeticKernel
from tco.compile.program import Program
from tco.core.errors import DataError
from tco.core.provenance import Input
from tco.core.trace import recorded_by, scope
from tco.core.types import AnyArray, FloatArray, JsonMapping, JsonObject, Settings
from tco.performance.deployment import APART, BENCHMARK, FLEET, OPERATED_BY, SERVER
from tco.performance.serving.plans import ServingPlan, ServingWorkload
from tco.scenario.document import Scenario
from tco.scenario.evaluate import evaluate
from tco.scenario.memo import exactly
from tco.scenario.network_choice import SWITCH
from tco.scenario.resolve import resolve_scenario
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Result
from tco.scenario.run_chain import run
from tco.scenario.structure import Structure
from tco.scenario.workload import job_on, serving_workload, workload_kind

ALL = "all"  # plans of serving to choose among
# of a plan and a draw that are looked at together: what is known of them fills the memory
PAIRS = 2**17
LOADED_PLANS = 2**13  # plans with their requests in flight whose numbers fill the memory
FRONTIER_DRAWS = 8  # pilot draws in which those near the best are looked for
MOST = 2**10  # structures under settings of their own that are kept
METRIC = "metric "  # before the names of metrics among the results of a program
RATE = "output_tokens_per_s_per_chip"  # that is asked for at other speeds than the workload's own


def recorded(
    program: Program, inputs: ResolvedScenario, plan: Any
) -> tuple[dict[str, int], set[str]]:
    """Record a scenario on a plan, or on plans as columns.

    Args:
        program: Takes the steps of the evaluation.
        inputs: The resolved scenario.
        plan: Plan of the workload; None where the structure holds no plan.

    Returns:
        Places in the program by name, of the metrics and of the values that targets are judged by;
        and paths without a value now that would make the record wrong if a user set the paths.

    """
    with recorded_by(program):
        input_values = inputs.values(program.read)
        target_values: JsonObject = {}
        begin = len(program.steps)
        if not workload_kind(inputs).axis:  # runs no model
            workload = workload_kind(inputs).walk(inputs, input_values, plan)
        elif plan is None:
            workload = workload_kind(inputs).without_plan("the structure holds no plan")
            target_values = {"no plan": 1.0}
        elif inputs.kind == "serving":
            from tco.performance.serving import draw_results

            with scope("serving"):
                if plan.engines is None:
                    batch = program.read(Input(BATCH_PATH, 1.0, ""))
                    plan = plan._replace(decode=plan.decode._replace(sequences=batch))
                workload, target_values = draw_results.trace_serving(
                    serving_workload(inputs, input_values, plan.stated), plan
                )
        else:
            from tco.performance.training.result import train

            with scope("training"):
                job, reached, formats = job_on(inputs, input_values)
                workload = train(job, reached, formats, plan)
                target_values = {
                    "step": workload.rates["step_s"],
                    "held": workload.hbm_bytes_used,
                    "memory": reached.memory,
                }
        program.workload_steps.update(range(begin, len(program.steps)))
        with program.on_first_plan():
            metrics = run(inputs, input_values, None, workload).metrics
    named = {
        f"{METRIC}{metric_name}": metric_value for metric_name, metric_value in metrics.items()
    } | target_values
    step_indices = {
        output_name: program.step_index(output_value)
        for output_name, output_value in named.items()
        if output_value is not None
    }
    return step_indices, (
        input_values.looked | input_values.derived_units.keys()
    ) - input_values.inputs.keys()


def every_plan(inputs: ResolvedScenario, known_plans: dict[Any, ServingPlan]) -> ServingPlan:
    """Return all plans of a serving workload.

    Decode plans stand in rows, and prefill plans in columns. Under a stated load, or offline, each
    engine reads its own prompts, so that both phases have the same plans.

    Args:
        inputs: The resolved scenario.
        known_plans: Plans of operators that were found for the same scenario and settings.

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
    depths = plans.depths_of(workload)
    if machine.deployer is not None and machine.deployer.name != FLEET:
        return _plans_of_operator(inputs, workload, known_plans)
    if request.offline or input_values.exists("workload.concurrency"):
        axes = plans.filling(plan_choice.offered_axes(machine, model, 0), machine.links)
        decode_plans = plans.decoding_at(axes, 1.0, depths)
        return ServingPlan(
            decode_plans,
            plans.as_prefill_plan(decode_plans),
            plans.engines_of_world(machine.links, decode_plans.chips),
        )
    reading = plan_choice.offered_axes(machine, model, request.prompt)
    prefill_plans = plans.PrefillPlan(*(axis.reshape(1, -1) for axis in reading))
    return ServingPlan(
        plans.decoding_at(plan_choice.decode_axes(workload), 1.0, depths),
        prefill_plans,
    )


def _plans_of_operator(
    inputs: ResolvedScenario,
    workload: ServingWorkload,
    known_plans: dict[Any, ServingPlan],
) -> ServingPlan:
    """Return all plans of the class that an operator runs.

    A benchmark runs the class of its best plan. Structures on the same links and parts have the
    same plans, which `known_plans` keeps.
    """
    from tco.performance.serving.classes import plans_of_class
    from tco.performance.serving.loaded_plans import near_frontier_of_base_case

    machine = workload.machine
    class_name = machine.deployer.name if machine.deployer is not None else FLEET
    structure_plan = None if inputs.structure is None else inputs.structure.plan
    if class_name == BENCHMARK:
        class_name = SERVER if structure_plan is None or structure_plan.readers is None else APART
    parts = {} if inputs.structure is None else inputs.structure.alternatives
    links = machine.links._asdict() | {"library": machine.links.library.id}
    plans_key = tuple(links.values()), class_name, tuple(sorted(parts.items()))
    if plans_key in known_plans:
        return known_plans[plans_key]
    class_plans = plans_of_class(workload, class_name)
    if class_plans is None:
        raise DataError(
            f"{OPERATED_BY}={class_name}: no pools of a published size divide the chips of "
            f"{inputs.system.id}"
        )
    if len(class_plans.flight) > LOADED_PLANS:
        class_plans = near_frontier_of_base_case(workload, class_plans)
    known_plans[plans_key] = class_plans
    return class_plans


class DrawGroup(NamedTuple):
    """Draws of one structure, and the positions of its results in a program."""

    draws: AnyArray  # indices of the draws
    names: list[dict[str, int]]  # position of each result by name; of training, for each plan
    plan: Any  # plan that the structure holds


class DrawResults(NamedTuple):
    """Results of draws: metrics by name, targets met, sequences per attention group.

    `meets` says whether the draws meet the targets. `batch` is the number of sequences.
    """

    metrics: dict[str, FloatArray]
    meets: Any
    batch: Any


class Lot:
    """Program of structures with the same plans: the fixed one, or all that a draw may choose."""

    def __init__(self, plans: ServingPlan | None) -> None:
        self.plans = plans  # of serving
        self.program = Program()
        self.kernels: dict[Any, ArithmeticKernel] = {}
        # of the plans that are chosen among, and what is known of them, by what is drawn
        self.rows: dict[Any, tuple[dict[int, FloatArray], Any]] = {}
        self.begin: dict[Any, Any] = {}

    def kernel(
        self, drawn: frozenset[str], plan_rows: Mapping[int, FloatArray]
    ) -> ArithmeticKernel:
        """Return the kernel of drawn inputs and rows of plans, with all steps recorded so far."""
        kernel_key = drawn, *((axis, axis_rows.tobytes()) for axis, axis_rows in plan_rows.items())
        if kernel_key not in self.kernels:
            self.kernels[kernel_key] = (
                self.kernel(drawn, {}).of_rows(plan_rows)
                if plan_rows and (drawn,) in self.kernels
                else ArithmeticKernel(self.program, (*drawn, BATCH_PATH), plan_rows)
            )
        self.kernels[kernel_key].grow()
        return self.kernels[kernel_key]

    def promising(
        self,
        paths: frozenset[str],
        step_indices: Mapping[str, int],
        pilots: Mapping[str, FloatArray],
        speeds: Sequence[float],
    ) -> tuple[dict[int, FloatArray], Any]:
        """Return the rows of plans to choose among by axis, and hints for them, found once.

        Of many plans with their requests in flight those near the frontier are looked at.
        """
        from tco.performance.serving.plan_choice_compiled import DECODE, of_rows, promising

        drawn = hash(b"".join([pilot_values.tobytes() for pilot_values in pilots.values()]))
        targets = tuple(
            step_index
            for output_name, step_index in step_indices.items()
            if not output_name.startswith(METRIC)
        )
        choice_key = paths, drawn, tuple(speeds), targets
        if choice_key not in self.rows:
            plans: ServingPlan = self.plans  # type: ignore[assignment]
            near: dict[int, AnyArray] = {}
            if plans.flight is not None and len(plans.flight) > LOADED_PLANS:
                near = {DECODE: self._near_frontier(len(plans.flight), paths, step_indices, pilots)}
            kernel = self.kernel(paths, near)
            result_positions = kernel_indices(kernel, step_indices)
            rows, hints = promising(kernel, result_positions, pilots, of_rows(plans, near), speeds)
            self.rows[choice_key] = (
                ({axis: near[axis][rows[axis]] for axis in rows} if near else rows),
                hints,
            )
        return self.rows[choice_key]

    def _near_frontier(
        self,
        count: int,
        paths: frozenset[str],
        step_indices: Mapping[str, int],
        pilots: Mapping[str, FloatArray],
    ) -> AnyArray:
        """Return the rows of loaded plans near the frontier in some of the pilot draws."""
        from tco.performance.serving.loaded_plans import FRONTIER, loaded_plans, near_frontier
        from tco.performance.serving.plan_choice_compiled import DECODE

        length = len(next(iter(pilots.values())))
        spaced = slice(0, None, max(length // FRONTIER_DRAWS, 1))
        drawn = {path: pilot_values[spaced] for path, pilot_values in pilots.items()}
        targets = {
            output_name: step_index
            for output_name, step_index in step_indices.items()
            if not output_name.startswith(METRIC)
        }
        blocks = []
        for rows in np.array_split(np.arange(count), -(-count // LOADED_PLANS)):
            kernel = ArithmeticKernel(
                self.program, (*paths, BATCH_PATH), {DECODE: rows}, (), targets.values()
            )
            blocks.append(loaded_plans(kernel, kernel_indices(kernel, targets), drawn, len(rows)))
        return near_frontier(blocks, FRONTIER)

    def hints(
        self,
        kernel: ArithmeticKernel,
        step_indices: Mapping[str, int],
        plans: ServingPlan,
        speeds: tuple[float | None, ...],
    ) -> Any:
        """Return cached hints for the plan choice at the base case.

        Every input has its traced value there.
        """
        from tco.performance.serving.plan_choice_compiled import batch_hints

        hint_key = id(kernel), step_indices.get("token"), speeds
        if hint_key not in self.begin:
            centre = {
                path: np.array([self.program.leaves[self.program.inputs[path][0]]])
                for path in kernel.inputs
                if path != BATCH_PATH
            }
            self.begin[hint_key] = batch_hints(kernel, step_indices, centre, plans, speeds)
        return self.begin[hint_key]

    def run(
        self,
        drawn: Mapping[str, FloatArray],
        parts: list[DrawGroup],
        count: int,
    ) -> list[DrawResults]:
        """Return the results of all draws of a workload that is no serving, at their own speed."""
        keep_memory()
        first = parts[0].names[0]
        kernel = self.kernel(frozenset(drawn), {})
        step_values = kernel.values(drawn)
        if "step" not in first:  # rates that are stated have no target they could miss
            meets: Any = "no plan" not in first
            return [
                DrawResults(
                    self.metrics(
                        kernel, [(part.names[0], part.draws) for part in parts], step_values, count
                    ),
                    meets,
                    np.nan,
                )
            ]
        meets, partitions = np.zeros(count, dtype=bool), []
        for part in parts:
            part_values = {
                position: step_value[part.draws] if np.ndim(step_value) else step_value
                for position, step_value in step_values.items()
            }
            output_positions = [
                kernel.made[step_indices[output_name]]
                for output_name in ("step", "held", "memory")
                for step_indices in part.names
            ]
            plan_outputs = np.stack(
                [
                    np.broadcast_to(output, len(part.draws))
                    for output in kernel_outputs(
                        kernel, output_positions, part_values, len(part.draws)
                    )
                ]
            )
            step, used_bytes, memory = plan_outputs.reshape(3, len(part.names), -1)
            plan, meets[part.draws] = best_rows(
                1 / step, -used_bytes, used_bytes <= memory, len(part.draws)
            )
            partitions += [
                (part.names[plan_row], part.draws[plan == plan_row]) for plan_row in np.unique(plan)
            ]
        return [DrawResults(self.metrics(kernel, partitions, step_values, count), meets, np.nan)]

    def metrics(
        self,
        kernel: ArithmeticKernel,
        partitions: list[tuple[dict[str, int], FloatArray]],
        step_values: Mapping[int, Any],
        count: int,
    ) -> dict[str, FloatArray]:
        """Return the metrics of some draws each, nan in others, from what is known of all."""
        metric_positions = [
            {
                output_name.removeprefix(METRIC): kernel.made[step_index]
                for output_name, step_index in step_indices.items()
                if output_name.startswith(METRIC)
            }
            for step_indices, _ in partitions
        ]
        draws_by_partition = [draws for _, draws in partitions]
        return metrics_of_partitions(
            kernel, metric_positions, draws_by_partition, step_values, count
        )


def metrics_of_partitions(
    kernel: ArithmeticKernel,
    metric_positions: Sequence[Mapping[str, int]],
    draws_by_partition: Sequence[AnyArray],
    step_values: Mapping[int, Any],
    count: int,
) -> dict[str, FloatArray]:
    """Return the metrics of partitions of the draws, shape (count,), nan in other draws.

    Args:
        kernel: Arithmetic of the metrics.
        metric_positions: Places in the kernel by metric, of each partition.
        draws_by_partition: Indices of the draws, of each partition.
        step_values: What is known of all draws, by place.
        count: Number of all draws.

    """
    # where failures leave no hour in which anything makes progress, nothing has a price
    with np.errstate(divide="ignore"):
        partition_outputs = evaluate_partitions(
            kernel,
            [
                ([*positions.values()], draws)
                for positions, draws in zip(metric_positions, draws_by_partition, strict=True)
            ],
            step_values,
            count,
        )
    metric_arrays: dict[str, FloatArray] = {}
    for positions, draws, outputs in zip(
        metric_positions, draws_by_partition, partition_outputs, strict=True
    ):
        scatter_into(metric_arrays, dict(zip(positions, outputs, strict=True)), draws, count)
    return {
        metric_name: np.where(endless, np.nan, array)
        if (endless := np.isinf(array)).any()
        else array
        for metric_name, array in metric_arrays.items()
    }


def scatter_into(
    arrays_by_name: dict[str, FloatArray], part: JsonMapping, draws: AnyArray, count: int
) -> None:
    """Write the numbers of chosen draws into arrays of all draws.

    A new array is nan elsewhere.

    Args:
        arrays_by_name: Arrays of shape (count,) by name, changed in place.
        part: Numbers of the chosen draws by name, an array or a number for all.
        draws: Indices of the chosen draws.
        count: Number of all draws.

    """
    for metric_name, draw_numbers in part.items():
        if len(draws) == count:
            arrays_by_name[metric_name] = (
                draw_numbers if np.shape(draw_numbers) == (count,) else np.full(count, draw_numbers)
            )
        else:
            if metric_name not in arrays_by_name:
                arrays_by_name[metric_name] = np.full(count, np.nan)
            arrays_by_name[metric_name][draws] = draw_numbers


def structure_in(answer: Result) -> Structure:
    """Return the structure of an evaluation."""
    if answer.structure is None:
        raise ValueError("a result that was not evaluated has no structure")
    return answer.structure


def kernel_indices(kernel: ArithmeticKernel, step_indices: Mapping[str, int]) -> dict[str, int]:
    """Return the places of a program's results in a kernel, by name."""
    return {
        output_name: kernel.made[step_index] for output_name, step_index in step_indices.items()
    }


class ScenarioPrograms:
    """Programs of one scenario, and its results with settings of a single value each."""

    def __init__(
        self,
        catalogue: Catalogue,
        scenario: Scenario,
        fixed: JsonMapping,
        variant: Mapping[str, str],
    ) -> None:
        self.catalogue = catalogue
        self.scenario = scenario
        self.fixed = fixed
        self.variant = variant
        self.lock = Lock()  # a program grows by what is asked of it
        self.lots: dict[Any, Lot] = {}  # by plans
        self.arithmetics: dict[Any, Any] = {}  # of metrics beyond the workload, by question
        self.operator_plans: dict[Any, ServingPlan] = {}  # by links, class and parts
        self.known: dict[Any, tuple[Lot, list[dict[str, int]], set[str]]] = {}  # by structure
        self.own_inputs = self.inputs(None, {})  # with the settings of one value alone
        self.is_shipped = self.own_inputs.is_shipped
        self.unit_of = cache(self.own_inputs.unit_of)
        self.structure_under = lru_cache(MOST)(
            lambda settings, plan: structure_in(self.evaluate(dict(settings), plan))
        )

    def inputs(self, structure: Structure | None, settings: Settings) -> ResolvedScenario:
        """Return the inputs with more settings, on a structure if one is held."""
        return resolve_scenario(
            self.catalogue, self.scenario, {**self.fixed, **settings}, dict(self.variant), structure
        )

    def evaluate(self, settings: Settings, plan: Any = None) -> Result:
        """Evaluate one value of every input."""
        return evaluate(
            self.scenario,
            {**self.fixed, **settings},
            plan,
            catalogue=self.catalogue,
            variant=self.variant,
        )

    @cached_property
    def centre(self) -> Result:
        """The answer with every input at its value."""
        return self.evaluate({})

    def names(
        self,
        inputs: Callable[[Structure, Iterable[str]], ResolvedScenario],
        structure: Structure,
        drawn: frozenset[str],
        plans: Any,
    ) -> tuple[Lot, list[dict[str, int]]]:
        """Return the program of a structure, with the positions of its results.

        Args:
            inputs: Resolves the scenario on a structure, with some drawn inputs at one value.
            structure: Discrete choices of some draws.
            drawn: Paths of the inputs that vary between draws.
            plans: All plans of serving, or the plan of the structure.

        """
        program_key: tuple[Any, ...] = structure_key(structure, plans)
        if program_key not in self.known:
            self.known[program_key] = self.trace(inputs(structure, ()), structure, plans)
        if unset_paths := drawn & self.known[program_key][2]:
            program_key = *program_key, unset_paths
            if program_key not in self.known:
                self.known[program_key] = self.trace(
                    inputs(structure, unset_paths), structure, plans
                )
        return self.known[program_key][:2]

    def trace(
        self, inputs: ResolvedScenario, structure: Structure, plans: Any
    ) -> tuple[Lot, list[dict[str, int]], set[str]]:
        """Trace a structure on the plan it holds, or on those to choose among."""
        candidate_plans: list[Any] = (
            [_without_batch(structure.plan)]
            if plans is None
            else [every_plan(inputs, self.operator_plans)]
            if plans is ALL
            else plans
        )
        lot = self.lots.setdefault(
            exactly(tuple(candidate_plans)),
            Lot(candidate_plans[0] if isinstance(candidate_plans[0], ServingPlan) else None),
        )
        recordings = [recorded(lot.program, inputs, plan) for plan in candidate_plans]
        return (
            lot,
            [step_indices for step_indices, _ in recordings],
            set().union(*(cut for _, cut in recordings)),
        )


def structure_key(structure: Structure, plans: Any) -> tuple[Any, ...]:
    """Return a hashable key of a structure and its candidate plans.

    The key tells the structure from other structures of its scenario.
    """
    plan = (
        _without_batch(structure.plan) if plans is None else plans if plans is ALL else tuple(plans)
    )
    return (
        structure.texts.get(SWITCH),
        tuple(sorted(structure.alternatives.items())),
        tuple(sorted(structure.readings.items())),
        exactly(plan),
    )


def _without_batch(plan: Any) -> Any:
    if isinstance(plan, ServingPlan) and plan.engines is None:
        return plan._replace(decode=plan.decode._replace(sequences=1.0))
    return plan
