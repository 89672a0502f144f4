"""Requests of a serving workload, and plans of an engine: groups, stages and crossings.

An attention group of tensor x context parallel chips holds some sequences; groups stand side by
side in a pipeline stage, whose experts are spread over all of its chips. Where a stage spans
several domains of a scale-up domain, one axis lies across their border.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from tco.core.elementwise import expm1, log1p
from tco.core.formula import ceil_ratio, formula, maximum, minimum, select
from tco.core.inputs import Readable
from tco.core.trace import untraced_value
from tco.core.types import FloatArray, JsonObject, Quantity
from tco.core.units import Byte, BytePerSecond, Pure, Second
from tco.fabric.links import Links
from tco.models.architecture import Architecture

if TYPE_CHECKING:
    from tco.performance.layer.chip_model import Machine


class ServingRequest(NamedTuple):
    """The workload's inputs; None where it does without."""

    prompt: Any
    answer: Any
    cache_hit: Quantity | None = None
    drafts: Quantity | None = None  # that are stated, whatever a plan drafts
    offload: Any = None
    host_link: Any = None
    offline: bool = False  # more requests wait than memory holds
    equal_lengths: bool = False  # all requests are as long, so that they may start and end together


class ServingWorkload(NamedTuple):
    """Requests to a model, and the machine that serves them."""

    machine: Machine
    model: Architecture
    request: ServingRequest

    @property
    def values(self) -> Readable:
        """Inputs by path, as the machine reads them."""
        return self.machine.values


def workload_on(machine: Machine, model: Architecture) -> ServingWorkload:
    """Return the workload that the inputs of a machine state, of a model on the machine."""
    return ServingWorkload(machine, model, request_of(machine.values))


def request_of(input_values: Readable) -> ServingRequest:
    """Return the serving request that a scenario's workload states.

    Args:
        input_values: Inputs of the scenario.

    Returns:
        Request with lengths in tokens; a cache hit or an offload of zero is None.

    """
    serving_request = ServingRequest(
        input_values["workload.input_tokens"], input_values["workload.output_tokens"]
    )
    serving_request = serving_request._replace(
        cache_hit=input_values.unless_zero("workload.cache_hit")
    )
    if input_values.has(DRAFTS):
        serving_request = serving_request._replace(drafts=input_values[DRAFTS])
    if (offload := input_values.unless_zero("workload.kv_offload")) is not None:
        serving_request = serving_request._replace(
            offload=offload, host_link=input_values["performance.training.host_link_bandwidth"]
        )
    return serving_request._replace(
        offline=input_values.exists("workload.offline"),
        equal_lengths=input_values.exists("workload.equal_lengths"),
    )


def draft_tokens_or_none(plan: DecodePlan, request: ServingRequest) -> Any:
    """Return the draft tokens per step, as stated or of the plan.

    None where the number is a plain zero: nothing of speculative decoding is then computed.
    """
    drafts = plan.drafts if request.drafts is None else request.drafts
    return None if isinstance(drafts, float | int) and not drafts else drafts


def depths_of(workload: ServingWorkload) -> tuple[float, ...]:
    """Return the depths of drafts that plans are chosen among.

    A stated depth is the only depth. Without a stated depth, a model with a prediction head has
    every depth up to a limit, where deployments of the chip's family and engine draft.

    Args:
        workload: Requests, and the model and the machine that serve them.

    Returns:
        Draft tokens per step, in rising order.

    """
    if workload.request.drafts is not None:
        return (float(np.ravel(untraced_value(workload.request.drafts))[0]),)
    if not workload.machine.drafting:
        return (0.0,)
    return (
        tuple(range(int(workload.values.structure(DEEPEST)) + 1))
        if workload.model.prediction_layers
        else (0.0,)
    )


def notes_on_request(request: ServingRequest) -> list[str]:
    """Return notes on costs that the workload inputs leave out."""
    return (
        []
        if not np.any(untraced_value(request.cache_hit))
        else ["workload.cache_hit: the memory that keeps the prefixes is not charged"]
    )


@formula(unit="", source="tco-model")
def fresh_tokens(input_tokens: Pure, cache_hit: Pure) -> Quantity:
    """Prompt tokens that no prefix cache holds: I (1 - h), at least the last one."""
    return maximum(input_tokens * (1 - cache_hit), 1)


@formula(unit="", source="tco-model")
def cached_share(input_tokens: Pure, cache_hit: Pure) -> Quantity:
    """Share of a prompt that a prefix cache holds, its last token never: min(h, 1 - 1 / I)."""
    return minimum(cache_hit, 1 - 1 / input_tokens)


@formula(unit="", source="aws-neuron-buckets")
def padded_prompt(tokens: Pure, bucket: Pure) -> Quantity:
    """Tokens that a program compiled for buckets of lengths computes: ceil(T / b) b."""
    return ceil_ratio(tokens, bucket) * bucket


@formula(unit="", source="tco-model")
def keys_behind_prefix(input_tokens: Pure, fresh: Pure) -> Quantity:
    """Mean keys that a fresh token sees behind its prefix: L = I - fresh / 2.

    The attention mask is causal.
    """
    return input_tokens - fresh / 2


@formula(unit="", source="tco-model")
def tokens_of_a_pass(fresh: Pure, prompts: Pure) -> Quantity:
    """Tokens of an attention group in a pass over n prompts, or a part of one: T n."""
    return fresh * prompts


@formula(unit="", source="tco-model")
def prompts_held(prompts: Pure) -> Quantity:
    """Prompts whose caches a group holds while it reads n of them, or a part of one: max(n, 1)."""
    return maximum(prompts, 1)


@formula(unit="s", source="tco-model")
def prompt_time(time: Second, prompts: Pure) -> Quantity:
    """Time for one prompt where a pass takes n of them: t / n."""
    return time / prompts


@formula(unit="", source="leviathan2023")
def accepted_tokens(draft_tokens: Pure, acceptance: Pure, decline: Pure = 1) -> Quantity:
    """Tokens per step of speculative decoding: 1 + a (1 - b^k) / (1 - b).

    The first draft is accepted with a chance a, further ones with b = a d. Later drafts rest on
    drafts, which the draft model was not trained to read; at d = 1 the tokens are (1 - a^(k + 1)) /
    (1 - a).
    """
    refused = minimum(maximum(1 - acceptance * decline, 1e-300), 1 - 1e-16)
    return 1 - acceptance * expm1(draft_tokens * log1p(-refused)) / refused


def tokens_of_drafts(input_values: Readable, drafts: Any) -> Any:
    """Return the tokens per decode step for a number of drafts.

    Args:
        input_values: Inputs of the scenario, with the workload's chances of acceptance.
        drafts: Draft tokens per step, a number or an array.

    Returns:
        Tokens per step, in the shape of `drafts`.

    """
    return accepted_tokens(
        drafts, input_values["workload.spec_acceptance"], input_values["workload.spec_decline"]
    )


@formula(unit="", source="leviathan2023")
def verified_tokens(sequences: Pure, draft_tokens: Pure) -> Quantity:
    """Tokens a step computes: the drafts of every sequence and one more, B (k + 1)."""
    return sequences * (draft_tokens + 1)


@formula(unit="s", source="leviathan2023")
def drafting_time(step: Second, draft_tokens: Pure, draft_cost: Pure) -> Quantity:
    """Time to draft before each step, one token after another: k c t_step."""
    return draft_tokens * draft_cost * step


@formula(unit="s", source="leviathan2023")
def time_per_token(step: Second, accepted: Pure) -> Quantity:
    """Time per token where a step yields several: t_step / accepted."""
    return step / accepted


@formula(unit="byte", source="tco-model")
def cache_with_host(cache: Byte, offload: Pure) -> Quantity:
    """Cache of one chip that host memory holds, and that every step brings in: C f."""
    return cache * offload


@formula(unit="byte", source="tco-model")
def cache_in_hbm(cache: Byte, offload: Pure) -> Quantity:
    """Cache of one chip that stays in its HBM: C (1 - f)."""
    return cache * (1 - offload)


@formula(unit="s", source="tco-model")
def exposed_host_transfer(cache_traffic: Byte, host_link: BytePerSecond, step: Second) -> Quantity:
    """Time for which a step waits for the cache from host memory: max(Q / B - t_step, 0).

    The step itself hides the rest of the transfer.
    """
    return maximum(cache_traffic / host_link - step, 0)


# per attention group: steps of a quarter or less
SEQUENCES = (
    *range(1, 9),
    *(part << step for step in range(1, 8) for part in range(5, 9)),
)
TENSOR_PARALLEL = (1, 2, 4, 8, 16)
CONTEXT_PARALLEL = (2, 4, 8)
# tokens a rank holds at least: below, splitting a sequence is not worth its collectives
LEAST_CONTEXT = 16384
STAGES = (2, 4, 8)
# chips of an engine that need not divide a world: other engines read prompts on what is left
POWERS = (
    8,
    16,
    32,
    64,
    128,
)
LARGEST = 144  # chips of an engine that spans worlds: the widest published decode unit
DRAFTS, DEEPEST = "workload.draft_tokens", "workload.draft_limit"
# what lies across the domains: experts flat over all, or a set (or part) of them in each
CUTS = (
    "experts",
    "tensor",
    "context",
)


class PrefillPlan(NamedTuple):
    """Chips of an engine and how they divide, as numbers or arrays.

    Each attention group works on one prompt.
    """

    chips: Any
    tensor_parallel: Any
    context_parallel: Any = 1
    pipeline_parallel: Any = 1
    cut: Any = 0  # place in CUTS
    # groups of chips that hold whole experts, each chip of a group a part of every one; 0: a group
    # a chip
    expert_parallel: Any = 0


class DecodePlan(NamedTuple):
    """Chips of an engine, how they divide, and sequences per attention group, numbers or arrays."""

    chips: Any
    tensor_parallel: Any
    context_parallel: Any
    pipeline_parallel: Any
    cut: Any
    sequences: Any
    expert_parallel: Any = 0
    # tokens that are drafted a step, on which the next one works with the step's own
    drafts: Any = 0


PlanIndex = tuple[Any, ...]  # along the axes of a search
PlanT = TypeVar("PlanT", DecodePlan, PrefillPlan)


class ServingPlan(NamedTuple):
    """The plans of both phases, with their numbers of engines where requests in flight are set."""

    decode: DecodePlan
    prefill: PrefillPlan
    engines: Any = None  # that decode; none where pools are as large as they need
    # that read prompts on a pool of their own; none where each engine reads its own
    readers: Any = None
    stated: bool = False  # whether a user fixed axes of it
    flight: Any = None  # requests in flight of an engine, where they are chosen with the plan

    def in_rows(self, plan_rows: Any) -> ServingPlan:
        """Return some of the plans, a row each; what all plans share stays."""

        def selected(column: Any) -> Any:
            return np.take(column, plan_rows, axis=0) if np.size(column) > 1 else column

        return self._replace(
            decode=DecodePlan(*map(selected, self.decode)),
            prefill=PrefillPlan(*map(selected, self.prefill)),
            engines=selected(self.engines),
            readers=selected(self.readers),
            flight=selected(self.flight),
        )


class DomainLayout(NamedTuple):
    """Layout of a plan on the domains of a fabric.

    The operators of a pass rest on this structure. Fields are numbers or arrays.
    """

    stage: Any  # chips of a pipeline stage
    domains: Any  # that a stage stands in
    replicas: Any  # sets of experts in a stage
    copies: Any  # domains that work on all tokens, each with its part of every expert
    crossing: Any  # 1 where attention groups lie across the domains
    experts: Any  # groups the experts of a set are spread over


def attention_chips(plan: PrefillPlan | DecodePlan) -> Any:
    """Return the chips that share a sequence's attention.

    Args:
        plan: Plan of a prefill or a decode engine.

    Returns:
        Number of chips, or an array of numbers in the shape of the plan's axes.

    """
    return plan.tensor_parallel * plan.context_parallel


def quantity_at_plan(quantity: Any, index: PlanIndex) -> Any:
    """Return the value of a quantity for one plan of a search.

    Args:
        quantity: Values of shape (plans, ...), of length 1 along an axis that it does not rest on;
            a number is one for all plans.
        index: Index of the plan along each axis.

    """
    if not isinstance(quantity, np.ndarray) or not quantity.ndim:
        return quantity
    axes = zip(index, quantity.shape, strict=True)
    return quantity[tuple(position if size > 1 else 0 for position, size in axes)]


def plan_at(plan: PlanT, index: PlanIndex) -> PlanT:
    """Return a single plan of serving out of many."""
    return type(plan)(*(float(quantity_at_plan(axis, index)) for axis in plan))


def layout_of(plan: PrefillPlan | DecodePlan, links: Links) -> DomainLayout:
    """Return the layout of a plan on the domains of the fabric."""
    stage = plan.chips / plan.pipeline_parallel
    domains = np.ceil(stage / links.domain - 1e-9)
    tensor, context = plan.cut == CUTS.index("tensor"), plan.cut == CUTS.index("context")
    replicas, copies = 1 + (domains - 1) * context, 1 + (domains - 1) * tensor
    experts = select(plan.expert_parallel > 0, plan.expert_parallel, stage / (replicas * copies))
    return DomainLayout(stage, domains, replicas, copies, 1 * (tensor | context), experts)


def decode_plan_from_axes(axes: PrefillPlan, sequences: Any, drafts: Any = 0.0) -> DecodePlan:
    """Return decode plans with the given sequences per attention group and drafts per step."""
    engine_axes = (
        axes.chips,
        axes.tensor_parallel,
        axes.context_parallel,
        axes.pipeline_parallel,
        axes.cut,
    )
    return DecodePlan(*engine_axes, sequences, axes.expert_parallel, drafts)


def decoding_at(axes: PrefillPlan, sequences: Any, depths: tuple[float, ...]) -> DecodePlan:
    """Return decode plans of given axes at each depth of drafts.

    Args:
        axes: Chips of the engines and how the chips divide, columns of shape (plans, 1).
        sequences: Sequences per attention group: a number, a row for all plans, or a row per plan.
        depths: Draft tokens per step.

    Returns:
        Plans of the first depth, then of each further depth: (plans x depths) rows.

    """
    if len(depths) == 1:
        return decode_plan_from_axes(axes, sequences, depths[0])
    repeated_axes = (
        np.concatenate([axis] * len(depths)) if np.ndim(axis) else axis for axis in axes
    )
    row_count = len(axes.chips)
    repeated_sequences = (
        np.concatenate([sequences] * len(depths))
        if np.ndim(sequences) and len(sequences) > 1
        else sequences
    )
    return decode_plan_from_axes(
        PrefillPlan(*repeated_axes),
        repeated_sequences,
        np.repeat(np.array(depths, dtype=float), row_count)[:, None],
    )


def engines_of_world(links: Links, chips: Any) -> Any:
    """Return the number of whole engines that fit a world of chips.

    A world holds `links.world` chips. An engine that spans several worlds counts as one engine.
    """
    return np.maximum(np.floor(links.world / chips + 1e-9), 1)


def filling(axes: PrefillPlan, links: Links) -> PrefillPlan:
    """Return those plans whose engines leave no chip of a world unused."""
    row_mask = np.ravel((links.world % axes.chips == 0) | (axes.chips > links.world))
    return PrefillPlan(*(axis[row_mask] for axis in axes))


def as_prefill_plan(plan: DecodePlan) -> PrefillPlan:
    """Return the same engine reading prompts.

    Args:
        plan: Plan of an engine that decodes.

    Returns:
        Plan with the same chips and the same division.

    """
    return PrefillPlan(
        plan.chips,
        plan.tensor_parallel,
        plan.context_parallel,
        plan.pipeline_parallel,
        plan.cut,
        plan.expert_parallel,
    )


def divisors(number: int) -> list[int]:
    """Whole divisors, the smallest first."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return small + [number // d for d in reversed(small) if d * d != number]


def stages_of(world: int) -> list[int]:
    """Return the chips that a pipeline stage may have.

    They are divisors of a scale-up domain, powers of two in it, or two, four and more scale-up
    domains joined by the network.
    """
    sizes, wider = divisors(world), 2 * world
    sizes += [size for size in POWERS if size < world and size not in sizes]
    while wider <= LARGEST:
        sizes.append(wider)
        wider *= 2
    return sorted(sizes)


def stage_excess(layers: float, stages: Quantity) -> Quantity:
    """Return the layers of the longest pipeline stage over the mean: e = p ceil(L / p) / L.

    The number is structure, as plans are.
    """
    return stages * ceil_ratio(layers, stages) / layers


@lru_cache(maxsize=256)
def parallelism_table(
    world: int, domain: int, heads: int, sparse: bool, parts: tuple[int, ...]
) -> FloatArray:
    """Return the axes of every plan, a row per plan.

    The columns are chips, tensor, context and pipeline parallel, cut and expert parallel. `parts`
    may share a sequence.

    A dense model has no experts to spread, so a stage is one attention group. Several stages stand
    in one world, or each of them fills a world. Where a stage spans domains, splitting sequences is
    one way to cross their border, even if they are short. A stage of one attention group may split
    every expert over its chips instead of spreading them.
    """
    plan_rows = []
    for stage in stages_of(world):
        most_chips = LARGEST if stage == world else world
        domains = -(-stage // domain) if stage <= world and sparse else 1
        for ranks in sorted({*parts, domains}):
            for tensor in TENSOR_PARALLEL if sparse else (stage // ranks,):
                group = tensor * ranks
                if not group or stage % group or heads % tensor:
                    continue
                cuts = [0] * (ranks in parts)
                if domains > 1 and group < stage:
                    cuts += [CUTS.index("tensor")] * (tensor % domains == 0 and ranks in parts)
                    cuts += [CUTS.index("context")] * (ranks % domains == 0)
                for cut in cuts:
                    depths = [
                        depth
                        for depth in (1, *STAGES)
                        if depth == 1 or (not cut and stage * depth <= most_chips)
                    ]
                    spreads = (0, 1) if sparse and 1 < group == stage <= domain else (0,)
                    plan_rows += [
                        (stage * depth, tensor, ranks, depth, cut, spread)
                        for depth in depths
                        for spread in spreads
                    ]
    return np.array(plan_rows, dtype=float)


def plan_axes(model: Architecture, links: Links, context: Quantity) -> PrefillPlan:
    """Return every plan of an engine for sequences of `context` tokens, each axis a column.

    At zero, sequences stay whole.
    """
    heads = max(block.attention.heads for block in model.blocks)
    parts = (1, *(ranks for ranks in CONTEXT_PARALLEL if context >= ranks * LEAST_CONTEXT))
    table = parallelism_table(int(links.world), int(links.domain), heads, model.has_experts, parts)
    if not context:
        table = table[table[:, PrefillPlan._fields.index("context_parallel")] == 1]
    return PrefillPlan(
        *(table[:, column_index : column_index + 1] for column_index in range(table.shape[1]))
    )


def borders_crossed(plan: DecodePlan, links: Links) -> FloatArray:
    """Return the split that crosses the domains of a fabric, per plan.

    Args:
        plan: Decode plans.
        links: Links of the system, with the chips of a domain and of a world.

    Returns:
        Array of texts of shape (plans,): "nothing", a member of `CUTS`, or "network" for a stage
        larger than `links.world`.

    """
    stage = (plan.chips / plan.pipeline_parallel).ravel()
    cut = np.take(CUTS, np.asarray(plan.cut, dtype=int).ravel())
    return np.select([stage <= links.domain, stage <= links.world], ["nothing", cut], "network")


def _whole_or_mean(number: Quantity) -> float | int:
    number_value = float(number)
    return int(number_value) if number_value.is_integer() else number_value


def decode_plan_document(plan: DecodePlan, links: Links) -> JsonObject:
    """Return a decode plan in the names reports use.

    Args:
        plan: A single decode plan.
        links: Links of the system, which decide the layout of the plan.

    Returns:
        Degrees of parallelism (`tp`, `pp`, `dp`, `ep`, `cp`), draft tokens per step, and sequences
        per engine as `batch`.

    """
    lies = layout_of(plan, links)
    return {
        "tp": int(plan.tensor_parallel),
        "pp": int(plan.pipeline_parallel),
        "dp": int(lies.stage / attention_chips(plan)),
        "ep": int(lies.experts),
        "cp": int(plan.context_parallel),
        "drafts": _whole_or_mean(plan.drafts),
        "batch": _whole_or_mean(plan.sequences * plan.chips / attention_chips(plan)),
    }
