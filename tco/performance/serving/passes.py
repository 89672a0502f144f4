"""Decode and prefill passes over arrays of plans, their memory, and the serving rates.

Prefill and decode run on pools of the same system, in the proportion the workload asks for; every
chip counts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tco.core.formula import formula, greatest, maximum, minimum, select, somewhere, total
from tco.core.trace import scope
from tco.core.types import Quantity
from tco.core.units import (
    Byte,
    BytePerSecond,
    Pure,
    Second,
    Token,
    TokenPerChip,
    TokenPerSecondPerChip,
)
from tco.fabric.collective_costs import direct_time
from tco.fabric.links import RankGroup, links_for
from tco.models.architecture import Architecture
from tco.models.layers import numbers_of, projections
from tco.performance.chip.roofline import (
    cache_bytes,
    causal_keys,
    computing_time,
    exposed_exchange,
    exposed_time,
    memory_in_use,
    message_bytes,
    per_rank,
    repeated,
    room_for_caches,
    stream_time,
    weight_bytes,
    with_unexplained,
)
from tco.performance.layer.chip_model import Machine, times_as_long
from tco.performance.layer.layers import ATTENTION_CORE, forward_pass, gather_keys
from tco.performance.layer.operators import Operator, Pass, PassShape, waiting_operator
from tco.performance.profile import OperatorProfile, profile_lines, time_by_bound
from tco.performance.serving import plans as asked
from tco.performance.serving.plans import (
    CUTS,
    DecodePlan,
    DomainLayout,
    PrefillPlan,
    ServingWorkload,
    layout_of,
)

STAGE_TRANSFER = "stage transfer"


@formula("")
def mean_context(input_tokens: Pure, output_tokens: Pure) -> Quantity:
    """Cached tokens a decode step meets on average: L = input + output / 2."""
    return input_tokens + output_tokens / 2


@formula("", source="tensorrt-llm-scheduling")
def reserved_context(input_tokens: Pure, output_tokens: Pure, reserved: Pure) -> Quantity:
    """Cached tokens that an engine reserves per sequence: L = input + r output.

    r is a half where caches grow as needed.
    """
    return input_tokens + reserved * output_tokens


@formula("")
def full_context(input_tokens: Pure, output_tokens: Pure) -> Quantity:
    """Cached tokens of a sequence at its end: L = input + output."""
    return input_tokens + output_tokens


@formula("token/s/chip", source="scaling-book")
def decode_rate(
    sequences: Pure, chips: Pure, step_time: Second, one_token: TokenPerChip = 1
) -> Quantity:
    """Output tokens per second and decoding chip: D = B / (n t_step).

    The n chips of an attention group share B sequences.
    """
    return sequences / chips * one_token / step_time


@formula("token/s/chip", source="scaling-book")
def prefill_rate(
    input_tokens: Pure, chips: Pure, prefill_time: Second, one_token: TokenPerChip = 1
) -> Quantity:
    """Input tokens per second and prefilling chip: P = L / (n t_prefill).

    The n chips of an attention group share a prompt.
    """
    return input_tokens / chips * one_token / prefill_time


@formula("token/s", source="scaling-book")
def tokens_per_user(step_time: Second, one_token: Token = 1) -> Quantity:
    """Tokens per second one user gets: 1 / t_step."""
    return one_token / step_time


@formula("token/s/chip", source="little1961")
def output_rate(
    decode: TokenPerSecondPerChip,
    prefill: TokenPerSecondPerChip,
    input_tokens: Pure,
    output_tokens: Pure,
    sharpness: Pure = 1e300,
) -> Quantity:
    """Output tokens per second and chip at the best pool ratio: R = (D^-q + (P O/I)^-q)^(-1/q).

    q = 1 / (1 + 1/p). Shares x and 1 - x of the chips decode and prefill, which gives ((x D)^-p +
    ((1 - x) P O/I)^-p)^(-1/p): neither pool is always busy where the other feeds it. R is the most
    of it over x, and 1 / (1/D + (I/O)/P) where neither pool ever waits.
    """
    return decode / (
        1 + (input_tokens / output_tokens * (decode / prefill)) ** (1 / (1 + 1 / sharpness))
    ) ** (1 + 1 / sharpness)


@formula("token/s/chip", source="scaling-book")
def input_rate(output: TokenPerSecondPerChip, input_tokens: Pure, output_tokens: Pure) -> Quantity:
    """Input tokens per second and chip of both pools: R I/O."""
    return output * input_tokens / output_tokens


@formula("", source="little1961")
def prefill_share(
    decode: TokenPerSecondPerChip,
    prefill: TokenPerSecondPerChip,
    input_tokens: Pure,
    output_tokens: Pure,
    sharpness: Pure = 1e300,
) -> Quantity:
    """Share of the chips that prefill at the best pool ratio: s = x / (1 + x).

    x = ((I/O) D/P)^q, q = 1 / (1 + 1/p).
    """
    pool_ratio = (input_tokens / output_tokens * (decode / prefill)) ** (1 / (1 + 1 / sharpness))
    return pool_ratio / (1 + pool_ratio)


@formula("s")
def time_to_first_token(prefill_time: Second, step_time: Second) -> Quantity:
    """Time to the first token of a single prompt without queueing: t_prefill + t_step."""
    return prefill_time + step_time


@formula("s")
def reading_time(time: Second, per_prompt: Second) -> Quantity:
    """Time until a prompt is read: its pass, or all passes over its parts: max(t, t / n)."""
    return maximum(time, per_prompt)


@formula("")
def prompts_of_a_pass(budget: Pure, tokens: Pure) -> Quantity:
    """Prompts of an attention group per pass of a token budget: n = b / T.

    n is below 1 where a pass holds part of a prompt.
    """
    return budget / tokens


@formula("")
def alone_in_a_pass(bundle: Pure) -> Quantity:
    """Prompts of a group in a pass without waiting prompts: min(n, 1).

    It is the whole prompt, or the part that the pass holds.
    """
    return minimum(bundle, 1)


# what stands between a token and its routed experts
ROUTED = (
    "router",
    "dispatch",
    "experts",
    "permute and gate",
    "combine",
)


@formula("")
def share_of_pass(time: Second, pass_time: Second) -> Quantity:
    """Share of the time of a pass that some of its operators take: min(t / T, 1)."""
    return minimum(time / pass_time, 1)


class PassResult(NamedTuple):
    """One pass: its time, what it holds in HBM, and its operators."""

    time: Any
    memory: Any
    operators: list[Operator]
    per_token: Any = None  # time of one token of a sequence, in decode
    per_prompt: Any = None  # time of one prompt of an attention group, in prefill
    # the same of a prompt that comes alone, of a pool that prefills
    single_prompt: PassResult | None = None

    @property
    def until_read(self) -> Any:
        """Time until a prompt is read: of a pool the one that comes alone."""
        prompt_pass = self.single_prompt or self
        return reading_time(prompt_pass.time, prompt_pass.per_prompt)

    @property
    def attention_share(self) -> Quantity:
        """Share of its time in which tokens meet the keys of others."""
        times = [operator.time for operator in self.operators if operator.name == ATTENTION_CORE]
        return share_of_pass(total(ATTENTION_CORE, times), self.time) if times else 0.0

    @property
    def lines(self) -> list[OperatorProfile]:
        """A line for each operator."""
        return profile_lines(self)

    @property
    def shares(self) -> dict[str, float]:
        """The share of its time by bound."""
        return time_by_bound(self)


def cached_numbers(
    model: Architecture, tensor_parallel: Quantity, context_parallel: Quantity = 1
) -> tuple[Quantity, Quantity]:
    """Return the numbers that one chip caches over all layers.

    Args:
        model: Architecture of the model.
        tensor_parallel: Tensor-parallel ranks, which split key-value heads but no latent cache.
        context_parallel: Context-parallel ranks, which split the tokens.

    Returns:
        Numbers per token of the context, and numbers per sequence (windows, states); a number has
        no size in bytes yet.

    """
    growing: Quantity = 0
    fixed_numbers: Quantity = 0
    for attention, layers in model.attentions.items():
        if attention.shares_cache:
            continue
        # the latent cache is held whole by every tensor-parallel rank; key-value heads are split
        split = context_parallel * (
            1 if attention.latent else minimum(tensor_parallel, attention.kv_heads)
        )
        numbers = layers * (attention.cached + attention.index_dim) / split
        # an entry stands for several tokens; the last ones are kept beside them
        if attention.compression:
            growing = growing + numbers / attention.compression
            fixed_numbers = fixed_numbers + layers * attention.cached / split * attention.window
        elif attention.window:
            fixed_numbers = fixed_numbers + numbers * attention.window
        else:
            growing = growing + numbers
    return growing, fixed_numbers + sum(
        layers * mixer.fixed_numbers_per_sequence for mixer, layers in model.mixers.items()
    ) / tensor_parallel


def _caches_of(
    machine: Machine, model: Architecture, shape: PassShape, context: Quantity
) -> Quantity:
    growing, fixed_numbers = cached_numbers(model, shape.tensor_parallel, shape.context_parallel)
    return cache_bytes(shape.sequences, context, growing, fixed_numbers, machine.cache_size)


@lru_cache(maxsize=256)
def projection_weights(model: Architecture) -> Any:
    """Return the weights of all projections of attention."""
    return sum(
        layers * numbers_of(projections(a, model.hidden, 1).values())
        for a, layers in model.attentions.items()
    )


def _held_in_memory(
    machine: Machine,
    model: Architecture,
    shape: PassShape,
    context: Quantity,
    offload: Any = None,
    stages: Quantity = 1,
) -> Quantity:
    """Return the HBM that a chip needs for its weights and caches.

    Experts come in whole numbers per group: 256 over 144 are two each.

    Engines pad the width of experts to a multiple of their own. The share `offload` of the caches
    is kept in host memory. Ranks that split sequences hold all projections of attention. A stage
    holds its part of the layers for the sequences of all stages, so that its caches are those of
    all layers and its own sequences. The longest stage decides.
    """
    cache, layers_apart = _caches_of(machine, model, shape, context), stages
    if somewhere(stages > 1):
        excess = asked.stage_excess(float(model.layers), stages)
        cache, layers_apart = caches_of_longest(cache, excess), stages / excess
    total_experts = spread = 0.0
    multiple = machine.values.structure(f"performance.{machine.engine}.expert_multiple")
    for block in model.blocks:
        if block.feed_forward.experts:
            width = block.feed_forward.width
            padding = np.ceil(width / multiple) * multiple / width
            total_experts += block.layers * block.feed_forward.experts
            experts_per_rank = np.ceil(block.feed_forward.experts / shape.expert_parallel)
            spread = spread + block.layers * experts_per_rank * shape.expert_parallel * padding
    share = spread / total_experts if total_experts else 1.0
    experts = model.expert_parameters
    whole_on_each = projection_weights(model)
    shared = whole_on_each + (model.parameters - experts - whole_on_each) / shape.context_parallel
    weights = weight_bytes(
        shared,
        experts * share,
        shape.tensor_parallel * layers_apart,
        shape.expert_chips * layers_apart,
        machine.attention_size,
        machine.expert_size,
    )
    return memory_in_use(weights, _kv_cache_reservation(machine, cache, offload))


@formula("byte", source="narayanan2021")
def caches_of_longest(cache: Byte, excess: Pure) -> Quantity:
    """Caches of a chip of the longest pipeline stage, for the sequences of all stages: C e."""
    return cache * excess


def _kv_cache_reservation(machine: Machine, cache: Quantity, offload: Quantity) -> Quantity:
    return room_for_caches(
        cache if offload is None else asked.cache_in_hbm(cache, offload),
        machine.habit("cache_share"),
    )


def _layout_on(machine: Machine, plan: DecodePlan | PrefillPlan) -> DomainLayout:
    axes = (plan.chips, plan.pipeline_parallel, plan.cut, plan.expert_parallel)
    cached_layout: DomainLayout | None = machine.wait_times.of(
        ("layout",), axes, lambda: layout_of(plan, machine.links)
    )
    return layout_of(plan, machine.links) if cached_layout is None else cached_layout


def _decode_shape(workload: ServingWorkload, plan: DecodePlan) -> PassShape:
    """Return the work and placement of a decode step, as `PassShape`."""
    request = workload.request
    lies, drafts = _layout_on(workload.machine, plan), asked.draft_tokens_or_none(plan, request)
    return PassShape(
        lies.stage,
        plan.tensor_parallel,
        lies.experts,
        plan.sequences if drafts is None else asked.verified_tokens(plan.sequences, drafts),
        mean_context(request.prompt, request.answer),
        plan.sequences,
        decode=True,
        context_parallel=plan.context_parallel,
        domains=lies.domains,
        replicas=lies.replicas,
        copies=lies.copies,
        crossing=lies.crossing,
    )


def decode_memory(workload: ServingWorkload, plan: DecodePlan) -> Quantity:
    """Return the HBM a decoding chip needs at the end of its sequences."""
    machine, model, request = workload
    context = full_context(request.prompt, request.answer)
    return _held_in_memory(
        machine,
        model,
        _decode_shape(workload, plan),
        context,
        request.offload,
        plan.pipeline_parallel,
    )


def sequence_memory(workload: ServingWorkload, plan: DecodePlan) -> Quantity:
    """Return the HBM per decoding chip for one sequence of its group, as its engine admits it."""
    machine, request = workload.machine, workload.request
    shape = _decode_shape(workload, plan._replace(sequences=1.0))
    cache = _caches_of(
        machine,
        workload.model,
        shape,
        reserved_context(request.prompt, request.answer, machine.habit("answer_reserved")),
    )
    return _kv_cache_reservation(machine, cache, request.offload)


def decode_pass(workload: ServingWorkload, plan: DecodePlan) -> PassResult:
    """One decode step of every plan."""
    with scope("decode"):
        return decode_step(workload, plan)


def decode_step(workload: ServingWorkload, plan: DecodePlan) -> PassResult:
    """Return a decode step, its cells named in the place that is open."""
    machine, model, request = workload
    shape, drafts = _decode_shape(workload, plan), asked.draft_tokens_or_none(plan, request)
    tokens = shape.tokens
    computed = _beside_routed(forward_pass(Pass(machine, model, shape), tokens))
    operators = _with_uneven_stages(
        machine, model, plan, _with_stage_transfers(machine, model, plan, tokens, computed)
    )
    time = per_token = _whole_pass(machine, "decode_step_time", operators)
    if drafts is not None:
        with scope("drafting"):
            drafting = asked.drafting_time(time, drafts, machine.values["workload.draft_cost"])
        operators.append(waiting_operator(machine, "drafting", drafting))
        time = per_token = total("drafted_step_time", [time, drafting])
    if request.offload is not None:
        host_cache = asked.cache_with_host(
            _caches_of(machine, model, shape, shape.keys), request.offload
        )
        exposed = asked.exposed_host_transfer(host_cache, request.host_link, time)
        operators.append(
            Operator(
                "cache from host", exposed, 1, None, host_cache, None, request.host_link, 0.0, True
            )
        )
        time = per_token = total("offloaded_step_time", [time, exposed])
    if drafts is not None:
        per_token = asked.time_per_token(time, asked.tokens_of_drafts(machine.values, drafts))
    context = full_context(request.prompt, request.answer)
    memory = _held_in_memory(
        machine, model, shape, context, request.offload, plan.pipeline_parallel
    )
    return PassResult(time, memory, operators, per_token)


@formula("s", source="tensorrt-llm-min-latency")
def exposed_beside(time: Second, work: Second, routed: Second, busy: Second) -> Quantity:
    """Exposed time of a shared expert beside the routed ones: max(t - max(T - Q / B, 0), t_work).

    The shared expert runs while the routed ones leave the memory idle.
    """
    return maximum(time - maximum(routed - busy, 0), work)


def _beside_routed(operators: list[Operator]) -> list[Operator]:
    """Return the operators of a decode step with the shared expert overlapped.

    It runs on a stream of its own beside the exchange and the routed experts.

    What it computes and reads takes as long as ever; its waits and the ends of its tiles are
    hidden.
    """
    routed = [operator for operator in operators if operator.name in ROUTED]
    shared_index = next(
        (index for index, operator in enumerate(operators) if operator.name == "shared expert"),
        None,
    )
    if not routed or shared_index is None:
        return operators
    shared = operators[shared_index]
    with scope("beside routed experts"):
        taken = total("routed", [operator.time for operator in routed])
        busy = total(
            "memory",
            [
                repeated(stream_time(operator.bytes, operator.bandwidth), operator.layers)
                for operator in routed
                if not operator.link
            ],
        )
        bounds = [
            computing_time(shared.flops, shared.compute_rate),
            stream_time(shared.bytes, shared.bandwidth),
        ]
        work = repeated(greatest("work", bounds), shared.layers)
        operators[shared_index] = shared._replace(
            time=exposed_beside(shared.time, work, taken, busy)
        )
    return operators


def _whole_pass(machine: Machine, pass_name: str, operators: list[Operator]) -> Quantity:
    time = total(pass_name, [*(operator.time for operator in operators), machine.overhead])
    if machine.release is not None:
        time = times_as_long(time, machine.release)
    return time if machine.unexplained is None else with_unexplained(time, machine.unexplained)


def _prompts_of_a_bundle(workload: ServingWorkload, plan: PrefillPlan) -> Quantity:
    """Return the prompts per pass of the engine's token budget, below 1 for part of a prompt."""
    prompt_tokens = (
        per_rank(workload.request.prompt, plan.context_parallel)
        if somewhere(plan.context_parallel > 1)
        else workload.request.prompt
    )
    return prompts_of_a_pass(workload.machine.habit("token_budget"), prompt_tokens)


def _prefill_shape(workload: ServingWorkload, plan: PrefillPlan, prompts: Any) -> PassShape:
    """Return the work and placement of a prefill pass over `prompts`.

    `prompts` counts the prompts of every group. Tokens in a prefix cache are read, not computed.
    """
    machine, request = workload.machine, workload.request
    fresh, query_keys = request.prompt, causal_keys(request.prompt)
    if request.cache_hit is not None:
        fresh = asked.fresh_tokens(request.prompt, request.cache_hit)
        query_keys = asked.keys_behind_prefix(request.prompt, fresh)
    if machine.bucket is not None:
        fresh = asked.padded_prompt(fresh, machine.bucket)
    if somewhere(plan.context_parallel > 1):
        fresh = per_rank(fresh, plan.context_parallel)
    if prompts is None:
        prompts = _prompts_of_a_bundle(workload, plan)
    lies = _layout_on(machine, plan)
    return PassShape(
        lies.stage,
        plan.tensor_parallel,
        lies.experts,
        asked.tokens_of_a_pass(fresh, prompts),
        query_keys,
        prompts,
        decode=False,
        read=request.prompt,
        domains=lies.domains,
        replicas=lies.replicas,
        copies=lies.copies,
        crossing=lies.crossing * (plan.cut == CUTS.index("tensor")),
        parts=plan.context_parallel,
    )


def prefill_memory(
    workload: ServingWorkload,
    plan: PrefillPlan,
) -> Quantity:
    """Return the HBM a chip needs that reads one prompt a group."""
    shape = _prefill_shape(workload, plan, 1.0)
    return _prompts_in_memory(workload, plan, shape)


def _prompts_in_memory(
    workload: ServingWorkload,
    plan: PrefillPlan,
    shape: PassShape,
) -> Quantity:
    """Return the HBM a chip needs for the prompts of a pass."""
    memory_shape = shape._replace(sequences=asked.prompts_held(shape.sequences))
    return _held_in_memory(
        workload.machine,
        workload.model,
        memory_shape,
        workload.request.prompt,
        stages=plan.pipeline_parallel,
    )


def evaluate_prefill(
    workload: ServingWorkload,
    plan: PrefillPlan,
    prompts: Any = None,
) -> PassResult:
    """One pass over prompts of every attention group of a plan.

    A pass takes `prompts` of them: unless said, as many as its budget of tokens holds, or a part of
    a longer one. Ranks that split a prompt work as groups of their own, each on a part of equal
    work, and gather the keys and values of all parts.
    """
    with scope("prefill"):
        return _prefill_pass(workload, plan, prompts)


def _prefill_pass(workload: ServingWorkload, plan: PrefillPlan, prompts: Any) -> PassResult:
    """Return a pass over prompts, its cells named in the place that is open."""
    machine, model, request = workload
    shape = _prefill_shape(workload, plan, prompts)
    prompts, prefill_pass = shape.sequences, Pass(machine, model, shape)
    if somewhere(plan.context_parallel > 1):
        gather_keys(
            prefill_pass, plan.context_parallel, _layout_on(machine, plan).crossing, request.prompt
        )
    computed = _with_stage_transfers(
        machine, model, plan, shape.tokens, forward_pass(prefill_pass, prompts)
    )
    operators = _with_uneven_stages(machine, model, plan, _beside_compute(machine, computed))
    time = _whole_pass(machine, "prefill_time", operators)
    memory = _prompts_in_memory(workload, plan, shape)
    return PassResult(time, memory, operators, per_prompt=asked.prompt_time(time, prompts))


def prefill_pool(workload: ServingWorkload, plan: PrefillPlan) -> PassResult:
    """Return a busy pool's pass over a full bundle of prompts, and a pass over a single prompt."""
    busy = evaluate_prefill(workload, plan)
    with scope("prompt alone"):
        single_prompt_pass = _prefill_pass(
            workload,
            plan,
            alone_in_a_pass(_prompts_of_a_bundle(workload, plan)),
        )
    return busy._replace(single_prompt=single_prompt_pass)


def _beside_compute(machine: Machine, operators: list[Operator]) -> list[Operator]:
    """Return a prompt's operators with only the exposed part of its exchanges.

    Cores of their own for collectives hide the rest.
    """
    if machine.exchange_overlap is None:
        return operators
    computing = total("computing", [operator.time for operator in operators if not operator.link])
    exchanging = total("exchanging", [operator.time for operator in operators if operator.link])
    share = exposed_exchange(computing, exchanging, machine.exchange_overlap)
    return [
        operator._replace(time=exposed_time(operator.time, 1, share)) if operator.link else operator
        for operator in operators
    ]


def _with_stage_transfers(
    machine: Machine,
    model: Architecture,
    plan: DecodePlan | PrefillPlan,
    tokens: Any,
    operators: list[Operator],
) -> list[Operator]:
    """Return the operators of a pass with the transfers between its pipeline stages."""
    if not somewhere(plan.pipeline_parallel > 1):
        return operators
    links = machine.links
    # each rank sends its part
    size = message_bytes(
        per_rank(tokens, plan.tensor_parallel), model.hidden, machine.activation_size
    )
    pair = links if links.tray[0] else links_for(links, RankGroup(2.0, 1.0, 2.0))
    latencies, sizes = pair.latencies, (plan.chips, float(links.domain), float(links.world))
    rate = stage_rate(*sizes, pair.inside, links.crossing, links.network)
    latency = stage_step(*sizes, latencies.step, latencies.crossing_step, latencies.network_step)
    times = repeated(direct_time(latency, stream_time(size, rate)), plan.pipeline_parallel - 1)
    return [
        *operators,
        Operator(
            STAGE_TRANSFER, times, plan.pipeline_parallel - 1, None, size, None, rate, latency, True
        ),
    ]


def _with_uneven_stages(
    machine: Machine, model: Architecture, plan: DecodePlan | PrefillPlan, operators: list[Operator]
) -> list[Operator]:
    """Return a pass's operators with the time that pipeline stages wait for the longest."""
    if not somewhere(plan.pipeline_parallel > 1):
        return operators
    with scope("pipeline"):
        work = total(
            "work", [operator.time for operator in operators if operator.name != STAGE_TRANSFER]
        )
        uneven = waiting_for_longest(
            work, asked.stage_excess(float(model.layers), plan.pipeline_parallel)
        )
    return [*operators, waiting_operator(machine, "uneven stages", uneven)]


@formula("s", source="narayanan2021")
def waiting_for_longest(work: Second, excess: Pure) -> Quantity:
    """Time of a pass in which shorter pipeline stages wait for the longest: t (e - 1)."""
    return work * (excess - 1)


@formula("byte/s")
def stage_rate(
    chips: Pure,
    domain: Pure,
    world: Pure,
    inside: BytePerSecond,
    crossing: BytePerSecond,
    network: BytePerSecond,
) -> Quantity:
    """Rate between pipeline stages: B_in if n <= domain, B_cross if n <= world, otherwise B_net.

    It is that inside a domain where the stages fit one, across domains of a scale-up domain, or of
    the network.
    """
    return select(chips <= domain, inside, select(chips <= world, crossing, network))


@formula("s")
def stage_step(
    chips: Pure, domain: Pure, world: Pure, inside: Second, crossing: Second, network: Second
) -> Quantity:
    """Latency between pipeline stages: a_in if n <= domain, a_cross if n <= world, otherwise a_net.

    It is that inside a domain where the stages fit one, across domains of a scale-up domain, or of
    the network.
    """
    return select(chips <= domain, inside, select(chips <= world, crossing, network))
