"""The result of a training workload: the chosen plan, its metrics, and the lines of its step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tco.core.formula import total
from tco.core.trace import untraced_value
from tco.core.types import JsonObject, Quantity
from tco.fabric.links import Links, RankGroup, strided_group
from tco.models.architecture import Architecture
from tco.performance.chip.roofline import message_bytes, per_rank, repeated
from tco.performance.layer.chip_model import WIDE_FORM, Machine, Passes
from tco.performance.layer.operators import DENSE, LAUNCHES, Operator, OperatorWork
from tco.performance.profile import BOUNDS, OperatorProfile, Report, joined_lines
from tco.performance.serving.axes import PlanAxis
from tco.performance.training import schedule
from tco.performance.training.deployment import deployed_time
from tco.performance.training.job import TrainingJob
from tco.performance.training.micro_batch import Work, expert_group
from tco.performance.training.micro_batch_levels import (
    RELAUNCHED_SHARES,
    MicroBatch,
    ScheduleVariant,
    data_stride,
    micro_batch_shape,
    pipeline_stride,
)
from tco.performance.training.plans import ORDERS, TrainingPlan, fixed_axes
from tco.performance.training.schedule import Pipe, layers_per_stage, micro_batch_times
from tco.performance.training.search import TrainingSearchResult, search_training_plans
from tco.performance.training.step import (
    PARTIAL,
    TrainingStep,
    chosen_share,
    evaluate_plan,
    kept_level,
    model_flops,
    sharded_bytes,
    shards,
)


@dataclass(slots=True)
class StepLines:
    """The step as a phase: its time and the lines that sum to it."""

    time: float
    lines: list[OperatorProfile]

    @property
    def shares(self) -> dict[str, float]:
        """The share of its time by bound."""
        bound_shares = dict.fromkeys(BOUNDS, 0.0)
        for line in self.lines:
            bound_shares[line.bound] += line.time / self.time
        return bound_shares


class Details(NamedTuple):
    """Records from which the report of a training step is made."""

    job: TrainingJob
    machine: Machine
    plan: TrainingPlan
    step: TrainingStep
    pipe: Pipe
    micro: MicroBatch
    work: Work

    def stage_time(self, micro_batch_time: Quantity) -> Quantity:
        """Return the time of a stage over all micro-batches, in s.

        `micro_batch_time` is the time of all layers for a micro-batch.
        """
        model = self.job.model
        time = schedule.stage_time(
            micro_batch_time, layers_per_stage(self.plan, model), model.layers
        )
        return schedule.pipeline_time(self.pipe.micro_batches, time, 0.0, 0.0)

    @property
    def times(self) -> ScheduleVariant:
        """Times of a micro-batch in the schedule of the plan."""
        return micro_batch_times(self.plan, self.micro)

    def forward_runs(self, operator: Operator) -> Any:
        """Return the number of times that the forward part of an operator runs.

        Operators up to the plan's level are computed again in all layers. Under partial
        recomputation those beyond are computed again in `plan.share` of the layers.
        """
        partial = self.plan.recompute == PARTIAL
        level = list(RELAUNCHED_SHARES).index(
            kept_level(self.job) if partial else self.plan.recompute
        )
        if 0 < operator.recompute_level <= level:
            return 2
        return 1 + self.plan.share if partial and operator.recompute_level else 1

    @property
    def host_floor(self) -> Quantity:
        """Time of a step in which the chip waits for the host's launches."""
        return self.stage_time(self.times.launches)

    @property
    def exposed_communication(self) -> Quantity:
        """Time of a step in which compute waits for links."""
        times: list[Quantity] = []
        for operator in self.work.operators:
            if operator.link:
                runs = self.forward_runs(operator)
                times += [repeated(operator.time, runs), operator.backward]
        inside = total("links_of_a_micro_batch", [*times, self.times.exchange])
        parts = self.step.parts
        terms = [
            self.stage_time(inside),
            schedule.pipeline_time(self.pipe.micro_batches, self.pipe.transfer, 0.0, 0.0),
            *(parts[part_name] for part_name in ("gathers", "gradients") if part_name in parts),
        ]
        return total("exposed_communication", terms)


@dataclass(slots=True)
class TrainingResult:
    """Training result: plan, rates by metric name, memory and notes."""

    plan: TrainingPlan | None
    rates: JsonObject = field(default_factory=dict)
    chips: int = 0
    lines: StepLines | None = None
    # where the axes of the plan lie on the fabric
    axes: list[PlanAxis] = field(default_factory=list)
    # only engines are compared by what lies across domains
    cuts: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    described: JsonObject = field(default_factory=dict)
    runner_up: JsonObject | None = None
    search_result: TrainingSearchResult | None = None
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    details: Details | None = None  # until the report is made

    @property
    def path(self) -> str:
        """Which way through the engine the answer took: the one measured runs go through."""
        return "the step of a plan"

    @property
    def hbm_bytes_used(self) -> Any:
        """Memory of the fullest chip, until the report is made."""
        return None if self.details is None else self.details.step.memory_in_use

    @property
    def operators(self) -> dict[str, list[str]]:
        """The operators of a micro-batch; none are known any more once the report is made."""
        if self.details is None:
            return {}
        work = self.details.work
        operators = (*work.operators, *work.across, *work.head)
        return {"micro-batch": list(dict.fromkeys(operator.name for operator in operators))}

    @property
    def links(self) -> Links | None:
        """Links of the chips; None once the report is made."""
        return None if self.details is None else self.details.machine.links

    def report(self, _: float, is_vectorised: bool) -> Report:
        """Return the report of the plan search and of the step's time.

        The step's time is left out where many steps are evaluated together (`is_vectorised`).
        """
        if self.details is not None:
            self.describe(self.details, is_vectorised)
            self.details = None
        search_result = self.search_result or TrainingSearchResult(plans=1, feasible=1)
        search = {
            "plans": search_result.plans,
            "feasible": search_result.feasible,
            "seconds": search_result.seconds,
        }
        return Report(
            self.described, search, self.runner_up, search_result.margin, self.memory, self.phases()
        )

    def describe(self, details: Details, is_vectorised: bool) -> None:
        """Fill in the readable plan, and the lines, axes and memory of one step."""
        job = details.job
        self.described = training_plan_document(details.plan, job.model, job.batch)
        if self.search_result is not None and self.search_result.runner_up is not None:
            self.runner_up = training_plan_document(
                self.search_result.runner_up, job.model, job.batch
            )
        if is_vectorised:
            return
        time, best_time = float(self.rates["step_s"]), float(details.step.time)
        lines = _step_lines(details)
        if time > best_time:
            lines.append(OperatorProfile("below the best plan", time - best_time, "latency"))
        self.lines = StepLines(time, lines)
        self.axes = _training_communication_axes(details, lines)
        self.memory = {
            memory_part: float(used) for memory_part, used in details.step.memory.items()
        }

    def phases(self) -> dict[str, StepLines]:
        """Return the phases that were evaluated."""
        return {} if self.lines is None else {"step": self.lines}


def training_plan_document(plan: TrainingPlan, model: Architecture, batch: int) -> JsonObject:
    """Return a plan in the names reports use.

    Args:
        plan: The training plan.
        model: Architecture of the model, for the layers of a stage.
        batch: Sequences of a step.

    """
    layers = int(layers_per_stage(plan, model))
    return {
        "tp": int(plan.tensor),
        "cp": int(plan.context),
        "pp": int(plan.pipeline),
        "dp": int(plan.data),
        "ep": int(plan.expert),
        "batch": batch,
        "micro_batch": int(plan.micro_batch),
        "micro_batches": batch // int(plan.data) // int(plan.micro_batch),
        "schedule": plan.schedule,
        "interleave": int(plan.interleave),
        "layers_per_stage": layers,
        "zero": plan.zero,
        "hybrid_sharding": bool(plan.hybrid),
        "recompute": plan.recompute,
        **({} if plan.share is None else {"layers_recomputed": round(float(plan.share) * layers)}),
        "sequence_parallel": bool(plan.sequence_parallel),
        "tp_overlap": bool(plan.overlap),
        "optimizer_offload": bool(plan.offload),
        "order": ORDERS[int(plan.order)],
    }


def _pass_format_notes(formats: Passes) -> list[str]:
    """Return notes on passes computed in another format than the workload's."""
    differ = [
        (pass_name, pass_format)
        for pass_name, pass_format in formats._asdict().items()
        if pass_format.form.stored != pass_format.stated_format
    ]
    if len(differ) == 2 and differ[0][1] == differ[1][1]:
        differ = [("", differ[0][1])]
    return [
        f"{pass_name}{': ' if pass_name else ''}the chip does not compute "
        f"{pass_format.stated_format}: computed as {pass_format.form.stored}"
        + (" after a conversion by software" if pass_format.form != WIDE_FORM else "")
        for pass_name, pass_format in differ
    ]


def train(
    job: TrainingJob,
    machine: Machine,
    formats: Passes,
    plan: TrainingPlan | Mapping[str, str] | None,
) -> TrainingResult:
    """Evaluate a training workload with a fixed plan or the quickest plan.

    The quickest plan comes from a search among the plans that the fixed axes leave.

    Args:
        job: Model, software and sizes of the workload.
        machine: Chips and links that the job runs on.
        formats: Formats of the passes on the chip.
        plan: A plan, or fixed axes of the search by name; None leaves all axes free.

    Returns:
        Plan, rates by metric name and notes; without a feasible plan, the reason.

    Raises:
        DataError: An axis or its value is unknown.

    """
    notes = _pass_format_notes(formats)
    search_result = None
    if not isinstance(plan, TrainingPlan):
        search_result = search_training_plans(job, machine, fixed_axes(plan or {}))
        if search_result.best is None:
            reason = _no_training_plan_reason(job, machine, search_result)
            return TrainingResult(None, search_result=search_result, reason=reason, notes=notes)
        plan = search_result.best
    job, cluster = (
        replace(job, chips=plan.tensor * plan.context * plan.pipeline * plan.data),
        job.chips,
    )
    if np.any(cluster > job.chips):
        notes.append(
            f"{job.chips:,.0f} of {cluster:,.0f} chips work, in whole domains of "
            f"{machine.links.domain}; the others stand idle at their cost"
        )
    plan = chosen_share(job, machine, plan)
    details = Details(job, machine, plan, *evaluate_plan(job, machine, plan))
    time = deployed_time(job, plan, details.step.time)
    at_peak = schedule.step_at_peak(
        model_flops(job), job.values["cluster.chips"], machine.peak(DENSE)
    )
    rates = {
        "step_s": time,
        "mfu": schedule.model_flops_utilisation(at_peak, time),
        "train_tokens_per_s": schedule.training_rate(
            job.sequences, job.sequence, time, job.values["workload.evaluation_share"]
        ),
        "exposed_communication": schedule.share_of_step(details.exposed_communication, time),
        "pipeline_bubble": schedule.share_of_step(details.pipe.bubble, time),
        "host_floor": schedule.share_of_step(details.host_floor, time),
    }
    return TrainingResult(
        plan, rates, job.chips, search_result=search_result, notes=notes, details=details
    )


def _no_training_plan_reason(
    job: TrainingJob, machine: Machine, search_result: TrainingSearchResult
) -> str:
    """Return the reason that no plan fits, with the shortage in GB.

    Where chips and sequences divide into no plan at all, the text says so.
    """
    if search_result.leanest is None:
        return (
            f"{job.chips} chips and {job.batch} sequences do not divide into any plan of "
            f"{job.model.id}"
        )
    used = evaluate_plan(job, machine, search_result.leanest)[0].memory
    most = sorted(((float(size), memory_part) for memory_part, size in used.items()), reverse=True)[
        :3
    ]
    have = float(untraced_value(machine.memory))
    parts = ", ".join(f"{memory_part} {size / 1e9:.1f} GB" for size, memory_part in most)
    return (
        f"no plan fits: the leanest of {search_result.plans:,} needs "
        f"{search_result.need / 1e9:.1f} GB per chip "
        f"({parts}), "
        f"{have / 1e9:.1f} GB are usable, {(search_result.need - have) / 1e9:.1f} GB are short"
    )


def _step_lines(details: Details) -> list[OperatorProfile]:
    """Return the lines of a step on the stage with the output head; they sum to its time."""
    pipe, step, model = details.pipe, details.step, details.job.model
    count = float(pipe.micro_batches)
    scale = count * float(layers_per_stage(details.plan, model)) / model.layers
    lines = []
    for operator in details.work.operators:
        runs = details.forward_runs(operator)
        bound, ideal = _step_bound(operator, runs, details.machine)
        forward = float(operator.time) + (runs - 1) * float(operator.repeated_time)
        flops, traffic = _step_counts(operator, runs)
        lines.append(
            OperatorProfile(
                operator.name,
                scale * (forward + float(operator.backward)),
                bound,
                None if ideal is None else scale * operator.layers * ideal,
                scale * flops,
                scale * traffic,
            )
        )
    parts = {part_name: float(part) for part_name, part in step.parts.items()}
    head_time = count * (float(pipe.longest) - float(pipe.stage))
    updating = "host" if details.plan.offload else "memory"
    time, explained_time = float(step.time), float(step.explained_time)
    lines = [
        *joined_lines(lines),
        OperatorProfile(
            "expert exchange across domains", scale * float(details.times.exchange), "link"
        ),
        OperatorProfile("host launches", float(details.host_floor), "host"),
        _head_line(details.machine, details.work, head_time),
        OperatorProfile("pipeline transfers", count * float(pipe.transfer), "link"),
        OperatorProfile("pipeline bubble", float(pipe.bubble), "bubble"),
        OperatorProfile("sharded weights and gradients", parts.get("gathers", 0.0), "link"),
        OperatorProfile("gradients and weights at the end", parts.get("gradients", 0.0), "link"),
        OperatorProfile("optimizer", parts.get("optimizer", 0.0), updating),
        OperatorProfile(
            "stragglers among domains", explained_time - sum(parts.values()), "latency"
        ),
        OperatorProfile("unexplained", time - explained_time, "latency"),
    ]
    return [line for line in lines if abs(line.time) > 1e-9 * time]


def _step_counts(operator: Operator, runs: float) -> tuple[float, float]:
    """Return an operator's work and traffic in a micro-batch, through memory or collectives."""
    if operator.link:
        forward, backward = operator.runs
        return 0.0, float(operator.bytes) * (runs * forward + backward)
    if operator.name == LAUNCHES:
        return 0.0, 0.0
    if not operator.backward_work:
        return 0.0, _streaming_time(operator, runs) * float(operator.bandwidth)
    works = _works_with_runs(operator, runs)
    flops = sum(count * float(work.flops) for count, work in works)
    return operator.layers * flops, operator.layers * sum(
        count * float(work.traffic) for count, work in works
    )


def _streaming_time(operator: Operator, runs: float) -> float:
    return runs * float(operator.time) + float(operator.backward)


def _works_with_runs(operator: Operator, runs: float) -> list[tuple[float, OperatorWork]]:
    forward = OperatorWork(operator.flops, operator.bytes, operator.compute_rate)
    return [(runs, forward), *((1.0, work) for work in operator.backward_work)]


def _step_bound(operator: Operator, runs: float, machine: Machine) -> tuple[str, float | None]:
    """Return the bound of an operator in a step, and its layer time at that peak (s).

    The time is None where the operator waits for a link or a launch.
    """
    if operator.link:
        return "link", None
    if operator.name == LAUNCHES:
        return "latency", None
    bandwidth = float(machine.kernels.part("hbm_bandwidth"))
    if not operator.backward_work:
        return "memory", _streaming_time(operator, runs) * float(operator.bandwidth) / bandwidth
    works = _works_with_runs(operator, runs)
    computing = sum(count * float(work.flops) / float(work.peak) for count, work in works)
    moving = sum(count * float(work.traffic) for count, work in works) / bandwidth
    return ("compute", computing) if computing >= moving else ("memory", moving)


def _head_line(machine: Machine, work: Work, time: float) -> OperatorProfile:
    """Return the line of the output head and the loss, of which the last stage may spare a part."""
    total_time = sum(_streaming_time(operator, 1) for operator in work.head)
    ideal = flops = traffic = 0.0
    for operator in work.head:
        bound, least = _step_bound(operator, 1, machine)
        if bound == "compute" and least is not None:
            ideal += least
        own_flops, own_bytes = _step_counts(operator, 1)
        flops, traffic = flops + own_flops, traffic + own_bytes
    ideal, flops, traffic = (count * time / total_time for count in (ideal, flops, traffic))
    return OperatorProfile("output head and loss", time, "compute", ideal, flops, traffic)


# lines of a step by axis, and the operators whose bytes an axis moves in every micro-batch
LINES = {
    "tensor": ("tensor-parallel collectives",),
    "context": ("context-parallel ring",),
    "experts": ("expert exchange in a domain", "expert exchange across domains"),
    "pipeline": ("pipeline transfers",),
    "data": ("sharded weights and gradients", "gradients and weights at the end"),
}


def _training_axis_groups(links: Links, plan: TrainingPlan) -> dict[str, RankGroup]:
    """Return the rank group of each parallelism axis, by axis name."""
    return {
        "tensor": strided_group(links, 1, plan.tensor),
        "context": strided_group(links, plan.tensor, plan.context),
        "experts": expert_group(links, micro_batch_shape(plan)),
        "pipeline": strided_group(links, pipeline_stride(plan), plan.pipeline),
        "data": strided_group(links, data_stride(plan), plan.data),
    }


def _training_communication_axes(details: Details, lines: list[OperatorProfile]) -> list[PlanAxis]:
    """Return the axes of a plan along which chips communicate.

    Hops are those inside a domain, None beyond it.
    """
    job, plan, work = details.job, details.plan, details.work
    links, layers = details.machine.links, float(layers_per_stage(plan, job.model))
    count = float(details.pipe.micro_batches)
    parameters = sum(
        float(sharded_bytes(shard.parameters, job.wide_size, 1, 1))
        for shard in shards(job, links, plan)
    )
    states = message_bytes(per_rank(work.tokens, plan.tensor), job.model.hidden, job.wide_size)
    layer_gathers = (2 if job.software.adapters else 3) * count
    bytes_by_axis = {
        "pipeline": float(states) * 2 * plan.interleave * count,
        "data": parameters * {3: layer_gathers, 2: count + 1}.get(plan.zero, 2),
    }
    axes = []
    for axis_name, group in _training_axis_groups(links, plan).items():
        time = sum(line.time for line in lines if line.name in LINES[axis_name])
        if not time:
            continue
        sizes = [
            float(operator.bytes) * sum(operator.runs)
            for operator in (*work.operators, *work.across)
            if operator.name in LINES[axis_name]
        ]
        handed = bytes_by_axis.get(axis_name, sum(sizes) * count * layers / job.model.layers)
        hops = float(links.hops) if group.domains == 1 else None
        axes.append(
            PlanAxis("step", axis_name, int(group.ranks), int(group.domains), hops, handed, time)
        )
    return axes
