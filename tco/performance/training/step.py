"""One training step of plans: pipeline, gradient and weight exchange, optimizer, memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tco.core.elementwise import elementwise_maximum, elementwise_minimum, floor
from tco.core.formula import ceil_ratio, formula, greatest, select, total
from tco.core.trace import scope, untraced_value
from tco.core.types import JsonObject, Quantity
from tco.core.units import Byte, BytePerSecond, Pure, Second
from tco.fabric.links import Links, RankGroup, among, group_product, strided_group
from tco.performance.chip.roofline import (
    added_beside,
    exposed_time,
    flops_per_token,
    message_bytes,
    with_unexplained,
)
from tco.performance.layer.chip_model import Machine
from tco.performance.layer.operators import DENSE
from tco.performance.training import schedule
from tco.performance.training.activations import held_activations
from tco.performance.training.job import TrainingJob
from tco.performance.training.micro_batch import TIERS, Exchange, Work, all_gather, work_of
from tco.performance.training.micro_batch_levels import (
    MicroBatch,
    RecomputationLevel,
    data_stride,
    micro_batch,
    micro_batch_shape,
)
from tco.performance.training.plans import TrainingPlan
from tco.performance.training.schedule import (
    Common,
    Pipe,
    hidden_traffic,
    layers_per_stage,
    pipeline,
)

WHOLE, PARTIAL = "full", "partial"  # recomputation of all layers, and of as many as memory asks for


@formula("byte", source="rajbhandari2020")
def sharded_bytes(parameters: Pure, size: Byte, shards: Pure, copies: Pure) -> Quantity:
    """One of weights, gradients or optimizer state, split over shards: c P b / N."""
    return copies * parameters * size / shards


@formula("byte", source="ren2021")
def resident_bytes(state: Byte, offload: Pure) -> Quantity:
    """State that stays in HBM: M (1 - offload)."""
    return state * (1 - offload)


@formula("", source="korthikanti2022")
def in_flight(stages: Pure, extra: Pure, micro_batches: Pure) -> Quantity:
    """Micro-batches that the first stage holds: min(p + extra, m).

    extra is 1 for a pipeline that is fed from both ends, otherwise 0.
    """
    return elementwise_minimum(stages + extra, micro_batches)


@formula("", source="llama3")
def interleaved_in_flight(stages: Pure, interleave: Pure, micro_batches: Pure) -> Quantity:
    """Micro-batches that the first interleaved stage holds: min(g + (2p - 1 - g) / v, m).

    Model parts take turns over g = ceil(m / floor(m / p)) micro-batches.

    g is p where the micro-batches are a multiple of the stages: p (1 + (p - 1) / (p v)), as
    Korthikanti 2022 has it.
    """
    group = ceil_ratio(micro_batches, elementwise_maximum(floor(micro_batches / stages + 1e-9), 1))
    return elementwise_minimum(group + (2 * stages - 1 - group) / interleave, micro_batches)


@formula("", source="korthikanti2022")
def recomputed_share(kept_memory: Byte, recomputed_memory: Byte, usable: Byte) -> Quantity:
    """Least share of layers to recompute so that a plan fits.

    x = min(max((M_0 - M) / (M_0 - M_1), 0), 1).
    """
    return elementwise_minimum(
        elementwise_maximum(
            (kept_memory - usable)
            / elementwise_maximum(kept_memory - recomputed_memory, 1e-9 * kept_memory),
            0,
        ),
        1,
    )


@formula("", source="narayanan2021")
def whole_layers(share: Pure, layers: Pure) -> Quantity:
    """Share of the layers of a stage that is whole layers: ceil(x n) / n."""
    return ceil_ratio(share * layers, 1) / layers


@formula("byte", source="korthikanti2022")
def partly_kept(kept_activations: Byte, recomputed_activations: Byte, share: Pure) -> Quantity:
    """Activations where a share of the layers is computed again: M = M_0 + x (M_1 - M_0)."""
    return kept_activations + share * (recomputed_activations - kept_activations)


@formula("byte")
def overlap_buffers(hidden_states: Byte, overlapped: Pure, tensor_parallel: Pure) -> Quantity:
    """Buffers of a collective that runs in pieces beside a product: 2 M o.

    There is one per direction, and none for a single chip.
    """
    return 2 * hidden_states * overlapped * elementwise_minimum(tensor_parallel - 1, 1)


@formula("byte", source="rajbhandari2020")
def gathered_bytes(size: Byte, micro_batches: Pure, times: Pure) -> Quantity:
    """Bytes of the collectives that run beside the compute of a step: M m n."""
    return size * micro_batches * times


@formula("s")
def waiting_time(exposed: Second, background: Second, step: Second, classes: Pure) -> Quantity:
    """Delay of exposed collectives while others use their links: x min(G/t, 1) (1 - c).

    Each gets half of the rate. c is 1 where the links know classes of traffic and let those that
    the chip waits for go first.
    """
    return exposed * elementwise_minimum(background / step, 1) * (1 - classes)


@formula("s")
def crowding(
    step: Second, background: Second, cores: Pure, background_bytes: Byte, bandwidth: BytePerSecond
) -> Quantity:
    """Slow-down of compute by overlapped collectives: x min(G, t) + 2 M / B.

    They take a share x of the cores, and each byte goes in and out of memory.
    """
    return cores * elementwise_minimum(background, step) + 2 * background_bytes / bandwidth


class TrainingStep(NamedTuple):
    """One step: its time, what it is made of, and the memory of the fullest chip by use."""

    time: Any
    parts: JsonObject
    memory: JsonObject
    memory_in_use: Any
    explained_time: Quantity  # of its time, all but what nothing explains


class Shard(NamedTuple):
    """Parameters of a chip that are spread alike: the dense ones, or those of experts."""

    parameters: Any
    ranks: Any
    group: RankGroup


def shards(job: TrainingJob, links: Links, plan: TrainingPlan) -> list[Shard]:
    """Return the parameters of the fullest chip, and the groups that hold the same ones."""
    model, part = job.model, layers_per_stage(plan, job.model) / job.model.layers
    embedding = model.embedding_parameters
    one_end = model.hidden * model.vocabulary + model.lookups
    embeddings = select(plan.pipeline == 1, embedding, one_end)
    dense = (model.parameters - embedding - model.expert_parameters) * part + embeddings
    stride = data_stride(plan)
    group = group_product(
        strided_group(links, plan.tensor, plan.context), strided_group(links, stride, plan.data)
    )
    parameter_shards = [Shard(dense / plan.tensor, plan.data * plan.context, group)]
    if model.expert_parameters:
        inner = plan.tensor * plan.context
        inside = np.minimum(plan.expert, inner)
        outside = plan.expert // inside
        spread = group_product(
            strided_group(links, inside, inner // inside),
            strided_group(links, stride * outside, plan.data // outside),
        )
        parameter_shards.append(
            Shard(
                model.expert_parameters * part / plan.expert,
                inner * plan.data // plan.expert,
                spread,
            )
        )
    return parameter_shards


def _averaged_across(job: TrainingJob, links: Links, groups: list[Shard]) -> Quantity:
    """Return the time to average sharded gradients across domains at the end of a step."""
    gradient_size = job.values["workload.gradient_size"]
    times = []
    for group in groups:
        size = sharded_bytes(group.parameters, gradient_size, group.group.per_domain, 1)
        times.append(all_gather(links, size, among(group.group)).time)
    once = total("average_across_domains", times)
    return exposed_time(once, 2, job.value("data_exposed"))


class Gathers(NamedTuple):
    """Gathers of parameters: their sizes, and the times of each."""

    sizes: list[Quantity]
    exchanges: list[Exchange]


def _gathers_of(job: TrainingJob, links: Links, groups: list[Shard]) -> Gathers:
    """Return the gathers of what groups of more than one share."""
    gathers = Gathers([], [])
    for group in groups:
        shared_parameters = group.parameters * np.minimum(group.ranks - 1, 1)
        size = sharded_bytes(shared_parameters, job.wide_size, 1, 1)
        gathers.sizes.append(size)
        gathers.exchanges.append(all_gather(links, size, group.group))
    return gathers


def _beside_pipeline(
    job: TrainingJob,
    machine: Machine,
    pipe: Pipe,
    groups: list[Shard],
    times: Any,
    find: Callable[[], Gathers],
) -> JsonObject:
    """Return time that parameter gathers add to the pipeline, seconds.

    `times` counts the gathers per micro-batch. Gathers and pipeline both use links, cores and
    memory. The record is empty where every group has a single rank.
    """
    if all(np.all(np.asarray(g.ranks) == 1) for g in groups):
        return {}
    sizes, gather_exchanges = find()

    def gather_traffic(gather_times: list[Quantity]) -> Quantity:
        return hidden_traffic(total("gathers", gather_times), pipe.micro_batches, times)

    gathers = gather_traffic([exchange.time for exchange in gather_exchanges])
    shared = np.minimum(sum(g.ranks - 1 for g in groups), 1)
    in_use, waits = [gathers], []
    for tier in TIERS:
        tier_traffic = gather_traffic([exchange.holds[tier] for exchange in gather_exchanges])
        in_use.append(
            total("links_in_use", [tier_traffic, exposed_time(pipe.links[tier], 1, shared)])
        )
        waits.append(
            waiting_time(
                pipe.waits[tier], tier_traffic, pipe.time, machine.kernels.part("traffic_classes")
            )
        )
    traffic_bytes = gathered_bytes(total("gathered_parameters", sizes), pipe.micro_batches, times)
    slower = [
        crowding(
            pipe.time,
            gathers,
            machine.kernels.practice("communication_cores"),
            traffic_bytes,
            machine.bandwidth,
        ),
        *waits,
    ]
    computing = total("pipeline_beside_gathers", [pipe.time, *slower])
    on_links = added_beside(computing, greatest("links", in_use), job.value("overlap_sharpness"))
    return {"gathers": total("added_by_gathers", [*slower, on_links])}


def step(
    job: TrainingJob,
    machine: Machine,
    plan: TrainingPlan,
    micro: MicroBatch,
    pipe: Pipe,
    common: Common,
) -> TrainingStep:
    """Return a plan's whole step, from its pipeline and the results that plans share."""
    links, zero, hybrid = machine.links, plan.zero, plan.hybrid
    parts = {"pipeline": pipe.time}
    groups = all_shards = common.of("shards", lambda: shards(job, links, plan))
    if hybrid:
        parts["gradients"] = common.of("across", lambda: _averaged_across(job, links, all_shards))
        groups = [
            Shard(
                g.parameters,
                g.group.per_domain,
                RankGroup(g.group.per_domain, 1, g.group.per_domain, 1),
            )
            for g in groups
        ]
    if zero == 3:  # layer by layer: weights before both passes, gradients after
        stage_slots = layers_per_stage(plan, job.model)
        layer = [g._replace(parameters=g.parameters / stage_slots) for g in groups]
        gathers = partial(
            common.of, ("gathers of layers", hybrid), lambda: _gathers_of(job, links, layer)
        )
        parts |= _beside_pipeline(
            job, machine, pipe, layer, (2 if job.software.adapters else 3) * stage_slots, gathers
        )
    elif not job.software.adapters:
        once = common.of(("gathers once", hybrid), lambda: _gathered_once(job, links, groups))
        if zero == 2:  # gradients are scattered after every micro-batch
            gathers = partial(
                common.of, ("gathers", hybrid), lambda: _gathers_of(job, links, groups)
            )
            parts |= _beside_pipeline(job, machine, pipe, groups, 1, gathers)
        parts["gradients"] = exposed_time(once, 2, job.value("data_exposed"))
    if not job.software.adapters:
        parts["optimizer"] = common.of(
            ("optimizer", zero > 0, hybrid),
            lambda: _optimizer_step_time(job, machine, plan, groups),
        )
    summed = total("step_without_loss", list(parts.values()))
    explained_time = schedule.scaled_step(
        summed, np.maximum(job.chips / links.domain, 1.0), job.value("scale_loss")
    )
    time = _add_unexplained_time(job, machine, explained_time, common)
    used = _fullest_chip_memory(job, plan, micro, pipe, groups, common)
    return TrainingStep(
        time, parts, used, total("memory_in_use", list(used.values())), explained_time
    )


def _add_unexplained_time(
    job: TrainingJob, machine: Machine, explained_time: Quantity, common: Common
) -> Quantity:
    """Return the time of a step with its unexplained part, no less than at the chips' peak."""
    if machine.unexplained is None:
        return explained_time
    time = with_unexplained(explained_time, machine.unexplained)
    if job.software.adapters:  # which leave the gradients of weights out
        return time
    peak_time = common.of(
        "at the peak",
        lambda: schedule.step_at_peak(model_flops(job), job.chips, machine.peak(DENSE)),
    )
    return greatest("step", [time, peak_time])


def model_flops(job: TrainingJob) -> Quantity:
    """Return the model FLOPs of a step of the whole job."""
    return schedule.step_flops(
        flops_per_token(job.model, job.sequence), job.sequences, job.sequence
    )


def _gathered_once(job: TrainingJob, links: Links, groups: list[Shard]) -> Quantity:
    """Return the time to gather all parameters once a step."""
    return total(
        "gather_of_all_parameters",
        [
            all_gather(links, sharded_bytes(g.parameters, job.wide_size, 1, 1), g.group).time
            for g in groups
        ],
    )


def _optimizer_step_time(
    job: TrainingJob, machine: Machine, plan: TrainingPlan, groups: list[Shard]
) -> Quantity:
    """Return the time of the optimizer's step, on the chip or on its host."""
    rates = job.value("host_update_rate"), job.value("host_link_bandwidth")
    updates, hosts = [], []
    for group in groups:
        parameters, ranks = group.parameters, group.ranks if plan.zero else 1
        updates.append(schedule.optimizer_time(parameters, ranks, machine.bandwidth, plan.offload))
        hosts.append(schedule.host_update_time(parameters, ranks, plan.offload, *rates))
    return total("optimizer", [*updates, *hosts])


def _fullest_chip_memory(
    job: TrainingJob,
    plan: TrainingPlan,
    micro: MicroBatch,
    pipe: Pipe,
    groups: list[Shard],
    common: Common,
) -> JsonObject:
    """Return the memory of the fullest chip by use."""
    model_memory = common.of(
        ("memory", plan.zero, plan.hybrid), lambda: _memory_of_model(job, plan, groups)
    )
    flight = common.of("in flight", lambda: _in_flight_of(plan, pipe))
    activations = held_activations(
        micro.levels[plan.recompute].activations,
        layers_per_stage(plan, job.model),
        job.model.layers,
        flight,
    )
    return {
        **model_memory,
        "activations": activations,
        **common.of("buffers", lambda: _buffers_of(job, plan, micro)),
    }


def _in_flight_of(plan: TrainingPlan, pipe: Pipe) -> Quantity:
    if plan.schedule == "interleaved":
        return interleaved_in_flight(plan.pipeline, plan.interleave, pipe.micro_batches)
    return in_flight(plan.pipeline, int(plan.schedule == "dual-pipe"), pipe.micro_batches)


def _buffers_of(job: TrainingJob, plan: TrainingPlan, micro: MicroBatch) -> JsonObject:
    """Return the memory of the output head's logits, and of what is sent beside computing."""
    used: JsonObject = {}
    if not job.software.chunks_loss:
        used["logits"] = held_activations(micro.logits, select(plan.pipeline == 1, 1, 0), 1, 1)
    states = message_bytes(micro.tokens, job.model.hidden, job.wide_size)
    used["buffers"] = overlap_buffers(states, plan.overlap, plan.tensor)
    return used


def _memory_of_model(job: TrainingJob, plan: TrainingPlan, groups: list[Shard]) -> JsonObject:
    """Return the memory of weights, gradients and the optimizer's state on the fullest chip."""
    # both ends of the model on every chip
    zero = plan.zero
    copies = 2 if plan.schedule == "dual-pipe" else 1
    # one micro-batch leaves nothing to sum
    summed = job.wide_size if job.software.whole_batches else job.values["workload.gradient_size"]
    sizes = {
        "weights": job.wide_size,
        "gradients": summed,
        "optimizer": job.values["workload.optimizer_size"],
    }
    used: JsonObject = {}
    for (memory_part, size), level in zip(sizes.items(), (3, 2, 1), strict=True):
        if job.software.adapters and memory_part != "weights":
            continue
        terms = [
            sharded_bytes(
                g.parameters,
                size,
                g.ranks if zero >= level else 1,
                1 if memory_part == "optimizer" else copies,
            )
            for g in groups
        ]
        used[memory_part] = total(memory_part, terms)
    if not job.software.adapters:
        used["optimizer"] = resident_bytes(used["optimizer"], plan.offload)
    if zero == 3:  # the layer at work and the next one are gathered
        gathered_weights = [
            sharded_bytes(g.parameters, job.wide_size, layers_per_stage(plan, job.model), 2)
            for g in groups
        ]
        used["gathered weights"] = total("gathered_weights", gathered_weights)
    return used


def _layers_again(
    job: TrainingJob,
    machine: Machine,
    plan: TrainingPlan,
    kept_step: TrainingStep,
    recomputed: TrainingStep,
) -> Quantity:
    """Return the share of a stage's layers, in whole layers, to recompute so that a plan fits."""
    share = recomputed_share(kept_step.memory_in_use, recomputed.memory_in_use, machine.memory)
    return whole_layers(share, layers_per_stage(plan, job.model))


def kept_level(job: TrainingJob) -> str:
    """Return the recomputation level of layers that partial recomputation leaves.

    The level is "selective" where the software keeps scores in memory, else "none".
    """
    return "none" if job.software.fused else "selective"


def _with_partial_recomputation(micro: MicroBatch, less: str, share: Any) -> MicroBatch:
    """Return a micro-batch that also knows itself with a share of its layers computed again."""

    def between(kept_value: Any, recomputed_value: Any) -> Any:
        if isinstance(kept_value, dict):
            return {
                level_field: between(kept_value[level_field], recomputed_value[level_field])
                for level_field in kept_value
            }
        if isinstance(kept_value, tuple):
            return type(kept_value)(*map(between, kept_value, recomputed_value))
        return schedule.partly_recomputed(kept_value, recomputed_value, share)

    kept_values, again = micro.levels[less], micro.levels[WHOLE]
    times = {
        level_field: between(kept_value, recomputed_value)
        for level_field, kept_value, recomputed_value in zip(
            RecomputationLevel._fields, kept_values, again, strict=True
        )
        if level_field != "activations"
    }
    return micro._replace(
        levels=micro.levels
        | {
            PARTIAL: RecomputationLevel(
                **times, activations=partly_kept(kept_values.activations, again.activations, share)
            )
        }
    )


def partial_step(
    job: TrainingJob,
    machine: Machine,
    plan: TrainingPlan,
    micro: MicroBatch,
    extreme_steps: tuple[TrainingStep, TrainingStep],
    common: Common,
) -> tuple[TrainingStep, TrainingPlan]:
    """Return a step, and its plan, that recomputes just enough layers to fit.

    `extreme_steps` recompute no layer and every layer.
    """
    plan = plan._replace(recompute=PARTIAL, share=_layers_again(job, machine, plan, *extreme_steps))
    mixed = _with_partial_recomputation(micro, kept_level(job), plan.share)
    return step(
        job, machine, plan, mixed, pipeline(job, machine, plan, mixed, common), common
    ), plan


class EvaluatedPlan(NamedTuple):
    """The step of one plan, or of an array of plans, with everything it is made of."""

    step: TrainingStep
    pipe: Pipe
    micro: MicroBatch
    work: Work


def evaluate_plan(job: TrainingJob, machine: Machine, plan: TrainingPlan) -> EvaluatedPlan:
    """Return the step of a plan, or of plans that differ in numbers only, with all its parts."""
    plan = chosen_share(job, machine, plan)
    with scope("micro-batch"):
        work = work_of(job, machine, micro_batch_shape(plan))
        micro = micro_batch(job, machine, micro_batch_shape(plan), work)
    if plan.recompute == PARTIAL:
        micro = _with_partial_recomputation(micro, kept_level(job), plan.share)
    with scope("pipeline"):
        pipe = pipeline(job, machine, plan, micro, Common())
    with scope("step"):
        return EvaluatedPlan(step(job, machine, plan, micro, pipe, Common()), pipe, micro, work)


def chosen_share(job: TrainingJob, machine: Machine, plan: TrainingPlan) -> TrainingPlan:
    """Return a plan with its share of recomputed layers fixed."""
    if plan.recompute != PARTIAL or plan.share is not None:
        return plan
    kept_step, recomputed = (
        evaluate_plan(job, machine, plan._replace(recompute=level))[0]
        for level in (kept_level(job), WHOLE)
    )
    return plan._replace(
        share=float(untraced_value(_layers_again(job, machine, plan, kept_step, recomputed)))
    )
