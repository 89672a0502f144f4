"""Operators of a forward pass: attention, recurrence, feed-forward parts, experts, collectives.

Prefill, decode and the forward pass of a training step add the same operators. Gradients of
training run some of them again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tco.core.elementwise import expm1, log, log1p, sqrt
from tco.core.formula import formula, maximum, minimum, select, somewhere, total
from tco.core.trace import scope
from tco.core.types import Quantity
from tco.core.units import Pure, Second
from tco.fabric.collective_costs import only_if_shared, scattered_bytes, token_bytes
from tco.fabric.expert_exchange import Tokens
from tco.fabric.libraries import EXCHANGES
from tco.fabric.links import RankGroup, rank_group
from tco.models.architecture import LayerBlock
from tco.models.layers import (
    Attention,
    FeedForward,
    StateMixer,
    input_sides,
    keys_and_values,
    projections,
    up_and_down,
)
from tco.performance.chip import kernels as kernel
from tco.performance.chip.roofline import (
    achieved_rate,
    attended_keys,
    attention_bytes,
    attention_flops,
    attention_scores,
    computing_time,
    elementwise_bytes,
    entries_of,
    message_bytes,
    passed_numbers,
    passing_flops,
    per_rank,
    smooth_maximum,
    stream_time,
)
from tco.performance.layer.operators import (
    ATTENTION,
    DENSE,
    EXPERTS,
    HEAD,
    Operator,
    Pass,
    PassShape,
)

# collectives that may replace dispatch and combine, in this order
GATHERED = ("all-gather", "reduce-scatter")
ATTENTION_CORE = "attention core"  # operator in which tokens meet the keys of others
SUM_BYTES = 8  # largest score and sum of exponentials of a query and head, each in FP32
INDEX_BYTES = 4  # one FP32 scale beside an indexer key
STATE_BYTES = 2 * 4  # a recurrent state is read and written in FP32
ROTARY_PASSES = 2  # queries, keys and values are read and written
OVERLAP = 4  # sharpness of the smooth maximum, as the kernel file has it


@formula("")
def instance_tokens(tokens: Pure, groups: Pure) -> Quantity:
    """Tokens of all attention groups of an instance: T x groups."""
    return tokens * groups


@formula("")
def distinct_experts(experts: Pure, active: Pure, tokens: Pure, local_experts: Pure) -> Quantity:
    """Experts of a group that at least one token reaches: E_local (1 - (1 - k/E)^T).

    Tokens choose their experts evenly.
    """
    return -local_experts * expm1(tokens * log1p(-minimum(active / experts, 0.999)))


@formula("", source="raab-steger1998")
def busiest_reached(reached: Pure, groups: Pure, imbalance: Pure, local_experts: Pure) -> Quantity:
    """Experts reached in the busiest of some groups: min(x + c sqrt(2 x ln G), E_local)."""
    return minimum(reached + imbalance * sqrt(2 * reached * log(groups)), local_experts)


@formula("", source="raab-steger1998")
def busiest_load(load: Pure, groups: Pure, imbalance: Pure) -> Quantity:
    """Expert tokens of the busiest of some groups: x + c sqrt(2 x ln G)."""
    return load + imbalance * sqrt(2 * load * log(groups))


def attention(layer_pass: Pass, layers: int, a: Attention) -> None:
    """Add projections, core and, for sparse attention, the indexer."""
    shape = layer_pass.shape
    kind = "sparse" if a.top_tokens else "latent" if a.latent or a.compression else "grouped"
    sides = projections(a, layer_pass.model.hidden, shape.tensor_parallel)
    layer_pass.products(
        "attention projections", layers, sides.values(), shape.tokens, ATTENTION, kind
    )
    has_shared_cache = a.latent or a.shared_key_value
    width = a.heads / shape.tensor_parallel * a.qk_dim + (
        a.cached if has_shared_cache else keys_and_values(a, shape.tensor_parallel)
    )
    layer_pass.elementwise(layers * width * ROTARY_PASSES)
    distinct = layer_pass.distinct_shape
    query_keys = keys_attended(a, distinct.keys)
    if _splits_context(layer_pass):
        query_keys = per_rank(query_keys, distinct.context_parallel)
    read = scanned = query_keys
    if not distinct.decode:
        prompt = distinct.read
        if prompt is None:
            prompt = per_rank(distinct.tokens, distinct.sequences)
        read, scanned = keys_held(a, prompt), entries_of(a, prompt)
    _attention_core(layer_pass, distinct, layers, a, query_keys, read)
    if a.index_heads:
        entries = distinct._replace(keys=entries_of(a, distinct.keys))
        _index_keys(layer_pass, entries, layers, a, scanned)
    if _splits_context(layer_pass):
        _join_context(layer_pass, layers, a)


def keys_attended(a: Attention, context_keys: Quantity) -> Quantity:
    """Return the keys of a context that a query attends to.

    They are those in its window, the best of an indexer, or compressed entries that each replace
    several keys.
    """
    if a.compression:
        entries = entries_of(a, context_keys)
        return total(
            "keys",
            [
                attended_keys(entries, a.top_tokens) if a.top_tokens else entries,
                attended_keys(context_keys, a.window),
            ],
        )
    reach = min(filter(None, (a.window, a.top_tokens)), default=0)
    return attended_keys(context_keys, reach) if reach else context_keys


def keys_held(a: Attention, prompt: Quantity) -> Quantity:
    """Return the keys of a prompt that its queries read, with its compressed entries."""
    return total("read", [entries_of(a, prompt), prompt]) if a.compression else prompt


def _index_keys(
    layer_pass: Pass, shape: PassShape, layers: int, a: Attention, read: Quantity
) -> None:
    """Add the indexer of sparse attention, which scores every key to choose those attended to."""
    machine = layer_pass.machine
    with scope("indexer"):
        scanned = (
            per_rank(shape.keys, shape.context_parallel)
            if _splits_context(layer_pass)
            else shape.keys
        )
        loaded_keys = scanned if shape.decode else read
        scored = attention_flops(shape.tokens, scanned, a.index_heads, a.index_dim, 0)
        index = attention_bytes(shape.sequences, loaded_keys, a.index_dim + INDEX_BYTES, 1.0)
        peak = (
            "peak_fp8"
            if machine.values.exists(f"{machine.kernels.parts}.peak_fp8")
            else "peak_bf16"
        )
        rate = machine.kernels.rate(peak, f"flash_efficiency_{peak.removeprefix('peak_')}")
        time = smooth_maximum(
            kernel.score_product_time(
                attention_scores(shape.tokens, scanned, a.index_heads), a.index_dim, 0, rate
            ),
            stream_time(index, machine.bandwidth),
            OVERLAP,
        )
        expand = layer_pass.distinct.expand
        layer_pass.core("indexer", layers, expand(time), expand(scored), expand(index), rate)


def _attention_core(
    layer_pass: Pass, shape: PassShape, layers: int, a: Attention, query_keys: Any, read: Quantity
) -> None:
    """Add the attention core: fused over prompts, or each sequence's query against its cache.

    `shape` has a plan of each kind.
    """
    machine, chip = layer_pass.machine, layer_pass.machine.kernels
    with scope(ATTENTION_CORE):
        wide, cached = _core_widths(shape, a)
        heads = np.ceil(a.heads / shape.tensor_parallel)
        scores = attention_scores(shape.tokens, query_keys, heads)
        rate = chip.rate(machine.core.peak, f"flash_efficiency_{machine.core.efficiency}")
        bytes_moved = attention_bytes(shape.sequences, read, cached, machine.cache_size)
        flops = attention_flops(shape.tokens, query_keys, heads, wide, 0)
        softmax = kernel.softmax_time(scores, chip.practice("softmax_cost"), machine.exponentials)
        computing = kernel.flash_core_time(
            kernel.score_product_time(scores, wide, 0, rate),
            softmax,
            chip.part("asynchronous_matrix"),
        )
        streaming = stream_time(bytes_moved, machine.bandwidth)
        if not shape.decode:
            time = total("attention", (computing, streaming))
        else:
            time = smooth_maximum(computing, streaming, OVERLAP)
            if chip.tiled:
                groups = 1 if a.latent else maximum(a.kv_heads / shape.tensor_parallel, 1)
                blocks = kernel.decode_blocks(
                    shape.sequences,
                    groups,
                    query_keys,
                    machine.counted("decode_chunk"),
                    chip.practice("decode_splits"),
                )
                on_cores = kernel.decode_core_time(
                    blocks,
                    chip.part("cores"),
                    chip.practice("decode_block_time"),
                    bytes_moved,
                    chip.load("core_load"),
                )
                time = smooth_maximum(time, on_cores, OVERLAP)
        expand = layer_pass.distinct.expand
        layer_pass.core(
            ATTENTION_CORE, layers, expand(time), expand(flops), expand(bytes_moved), rate
        )


def _splits_context(layer_pass: Pass) -> bool:
    return somewhere(layer_pass.shape.context_parallel > 1)


def _join_context(layer_pass: Pass, layers: int, a: Attention) -> None:
    """Add the exchange of softmax sums among the chips that split a sequence.

    The attention outputs of these chips are joined in the layer's all-reduce.
    """
    shape, ranks = layer_pass.shape, layer_pass.shape.context_parallel
    with scope("context sums"):
        sums = message_bytes(
            shape.tokens, np.ceil(a.heads / shape.tensor_parallel) * ranks, float(SUM_BYTES)
        )
        layer_pass.gather(
            "context sums", layers, _context_group(layer_pass, ranks, shape.crossing), sums
        )


def _context_group(layer_pass: Pass, ranks: Any, crossing: Quantity) -> RankGroup:
    """Return the rank group of the chips that split a sequence.

    Neighbours in the group lie a tensor-parallel group apart.
    """
    shape = layer_pass.shape
    spanned_domains = minimum(
        np.ceil(shape.tensor_parallel * ranks / layer_pass.machine.links.domain - 1e-9), ranks
    )
    domains = select(crossing > 0, shape.domains, spanned_domains)
    return RankGroup(ranks, domains, ranks / domains)


def gather_keys(layer_pass: Pass, ranks: Quantity, crossing: Quantity, prompt: Quantity) -> None:
    """Add the gathering of a prompt's keys and values on the chips that split it."""
    group = _context_group(layer_pass, ranks, crossing)
    for a, layers in layer_pass.model.attentions.items():
        with scope("context gather"):
            tokens = attended_keys(prompt, a.window) if a.window else prompt
            if a.compression:
                tokens = total("keys", [entries_of(a, prompt), tokens])
            layer_pass.gather(
                "context gather",
                layers,
                group,
                message_bytes(
                    tokens, _core_widths(layer_pass.shape, a)[1], layer_pass.machine.cache_size
                ),
            )


def _core_widths(shape: PassShape, a: Attention) -> tuple[int, Quantity]:
    if not a.latent:
        return a.qk_dim + a.v_dim, a.cached / minimum(shape.tensor_parallel, a.kv_heads)
    absorbed = shape.decode or bool(a.top_tokens)
    return (2 * a.latent + a.rope_dim if absorbed else a.qk_dim + a.v_dim), a.cached


def recurrence(layer_pass: Pass, layers: int, mixer: StateMixer) -> None:
    """Add a state-space or linear-attention layer: its projections and its state's update."""
    machine, shape = layer_pass.machine, layer_pass.shape
    hidden, parallel = layer_pass.model.hidden, shape.tensor_parallel
    sides = [(hidden, mixer.projected / parallel), (mixer.inner / parallel, hidden)]
    if mixer.decay_rank:
        sides += [
            (hidden, mixer.decay_rank),
            (mixer.decay_rank, mixer.groups * mixer.state / parallel),
        ]
    if mixer.gate_rank:
        sides.append((mixer.gate_rank, mixer.inner / parallel))
    layer_pass.products(
        "recurrent projections", layers, sides, shape.tokens, ATTENTION, "recurrent"
    )
    layer_pass.elementwise(
        layers * mixer.projected / parallel * ROTARY_PASSES
    )  # convolution and gates
    with scope("recurrence"):
        state = mixer.state_numbers / parallel
        flops = passing_flops(mixer.passes * state, shape.tokens)
        bytes_moved = attention_bytes(shape.sequences, 1, state, float(STATE_BYTES))
        rate = achieved_rate(
            machine.kernels.rate("peak_bf16", "flash_efficiency_bf16"),
            machine.counted("recurrent_share"),
        )
        time = smooth_maximum(
            stream_time(bytes_moved, machine.bandwidth), computing_time(flops, rate), OVERLAP
        )
        layer_pass.core("recurrence", layers, time, flops, bytes_moved, rate)


def feed_forward(layer_pass: Pass, layers: int, f: FeedForward) -> None:
    """Add a dense feed-forward, or router, shared and routed experts."""
    shape, hidden = layer_pass.shape, layer_pass.model.hidden
    if not f.experts:
        width = f.width / shape.attention_chips
        layer_pass.products(
            "feed-forward", layers, up_and_down(f, hidden, width), shape.tokens, DENSE, "dense"
        )
        # both halves are read, their product is written
        layer_pass.elementwise(layers * width * f.matrices)
        return
    if f.shared_width:
        width = f.shared_width / shape.attention_chips
        layer_pass.products(
            "shared expert", layers, up_and_down(f, hidden, width), shape.tokens, DENSE, "shared"
        )
        layer_pass.elementwise(layers * width * f.matrices)
    experts(layer_pass, layers, f)


def experts(layer_pass: Pass, layers: int, f: FeedForward) -> None:
    """Add the router and the routed experts of the busiest group.

    The pass reads the weights of the experts that tokens reach, and computes the tokens they get.
    """
    machine, shape = layer_pass.machine, layer_pass.shape
    layer_pass.products(
        "router", layers, ((layer_pass.model.hidden, f.experts),), shape.tokens, HEAD
    )
    if f.latent:
        latent = f.latent / shape.attention_chips
        layer_pass.products(
            "expert latent",
            layers,
            ((layer_pass.model.hidden, latent), (latent, layer_pass.model.hidden)),
            shape.tokens,
            DENSE,
        )
    with scope("experts"):
        tokens = instance_tokens(shape.tokens, layer_pass.groups / shape.replicas)
        local = np.ceil(f.experts / shape.expert_parallel)
        reached = busiest_reached(
            distinct_experts(f.experts, f.active, tokens, f.experts / shape.expert_parallel),
            shape.expert_parallel,
            machine.imbalance,
            local,
        )
        load = kernel.group_tokens(tokens, f.active, shape.expert_parallel)
        if shape.decode:
            load = busiest_load(load, shape.expert_parallel, machine.imbalance)
        width = f.width * shape.expert_parallel / shape.expert_chips
        sides = up_and_down(f, f.latent or layer_pass.model.hidden, width)
        layer_pass.grouped("experts", layers, sides, per_rank(load, reached), reached, "experts")
    with scope("permute and gate"):
        traffic_terms = [
            elementwise_bytes(
                load, f.latent or layer_pass.model.hidden, machine.permutes, machine.activation_size
            ),
            elementwise_bytes(
                load, width * f.matrices, machine.expert_gates, machine.activation_size
            ),
        ]
        if layer_pass.casts(EXPERTS):
            traffic_terms += [
                layer_pass.cast_bytes(EXPERTS, shape.tokens, f.latent or layer_pass.model.hidden),
                layer_pass.cast_bytes(EXPERTS, load, width),
            ]
        layer_pass.stream("permute and gate", layers, total("permute and gate", traffic_terms))
    if layer_pass.exchanges:
        _add_expert_exchange(layer_pass, layers, f)


@formula("s", source="tensorrt-llm-exchange")
def exchanged_time(
    sent: Second, gathered: Second, all_sent: Second, all_gathered: Second
) -> Quantity:
    """Time of a dispatch or combine by the method that is faster for both together.

    t = t_gathered where T_gathered < T_sent, otherwise t_sent.
    """
    return select(all_gathered < all_sent, gathered, sent)


def _add_expert_exchange(layer_pass: Pass, layers: int, f: FeedForward) -> None:
    """Add dispatch and combine where attention groups hold different tokens.

    Engines send tokens to their experts, or gather the tokens of all ranks and scatter the sums;
    the quicker of the two is taken. Among few ranks both move the same bytes.
    """
    machine, shape = layer_pass.machine, layer_pass.shape
    rank_tokens = per_rank(shape.tokens, shape.attention_chips / shape.copies)
    ranks = shape.expert_chips / shape.copies
    group = rank_group(machine.links, ranks)
    tokens = [
        token_bytes(f.latent or layer_pass.model.hidden, size, 0.0, 1)
        for size in (machine.dispatch_size, machine.activation_size)
    ]
    times = [
        layer_pass.collective_time(exchange_name, group, rank_tokens, Tokens(1.0, token, f.active))
        for exchange_name, token in zip(EXCHANGES, tokens, strict=True)
    ]
    gather_times = [
        layer_pass.collective_time(
            gather_name, group, scattered_bytes(rank_tokens, ranks, token, 1.0)
        )
        for gather_name, token in zip(GATHERED, tokens, strict=True)
    ]
    all_times = [
        total(direction_name, [time for time, _ in exchange_times])
        for direction_name, exchange_times in (("sent", times), ("gathered", gather_times))
    ]
    for exchange_name, token, (time, links), (gathered, _) in zip(
        EXCHANGES, tokens, times, gather_times, strict=True
    ):
        with scope(exchange_name):
            waiting = only_if_shared(
                layer_pass.waited(
                    exchanged_time(time, gathered, *all_times), "exchange_wait", ranks
                ),
                layer_pass.groups,
            )
            layer_pass.collective(
                exchange_name,
                layers,
                waiting,
                scattered_bytes(rank_tokens, f.active, token, 1.0),
                links.spread,
            )
    if somewhere(shape.copies > 1):  # both halves of every expert's sum meet between paired chips
        with scope("expert all-reduce"):
            size = message_bytes(rank_tokens, layer_pass.model.hidden, machine.activation_size)
            pair = RankGroup(shape.copies, shape.copies, 1)
            waited = layer_pass.waited(
                layer_pass.collective_time("all-reduce", pair, size)[0],
                "collective_wait",
                shape.copies,
            )
            layer_pass.collective(
                "expert all-reduce",
                layers,
                only_if_shared(waited, shape.copies),
                size,
                machine.links.crossing,
            )


def reduce(layer_pass: Pass, layers: int) -> None:
    """Add the all-reduces of a layer within an attention group.

    They follow attention and the feed-forward part, or attention alone where experts are spread
    over several groups.
    """
    machine, shape, ranks = layer_pass.machine, layer_pass.shape, layer_pass.shape.attention_chips
    with scope("all-reduce"):
        size = message_bytes(shape.tokens, layer_pass.model.hidden, machine.activation_size)
        near = rank_group(machine.links, ranks)
        domains = select(shape.crossing > 0, shape.domains, near.domains)
        group = RankGroup(ranks, domains, ranks / domains)
        time, links = layer_pass.collective_time("all-reduce", group, size)
        waited = layer_pass.waited(time, "collective_wait", ranks)
        layer_pass.collective(
            "all-reduce",
            layers * (1.0 + (layer_pass.groups <= 1.001)),
            only_if_shared(waited, ranks),
            size,
            links.inside,
        )


def hidden_state_part_count(blocks: Iterable[LayerBlock]) -> int:
    """Count the layer parts that read and write the hidden state.

    These are attention or mixer, and the feed-forward part.
    """
    return sum(
        block.layers * (bool(block.attention.heads or block.mixer) + bool(block.feed_forward.width))
        for block in blocks
    )


def layers_of(layer_pass: Pass) -> None:
    """Add the operators of all layers; what passes between chips is the phase's own."""
    machine, model = layer_pass.machine, layer_pass.model
    layer_pass.elementwise(
        passed_numbers(layer_pass.hidden, machine.counted("embedding_passes"), 1)
    )
    layer_pass.elementwise(
        passed_numbers(
            layer_pass.hidden,
            machine.counted("residual_passes"),
            hidden_state_part_count(model.blocks) / 2,
        )
    )
    for kind, layers in model.attentions.items():
        attention(layer_pass, layers, kind)
    for mixer, layers in model.mixers.items():
        recurrence(layer_pass, layers, mixer)
    for part, layers in model.feed_forwards.items():
        feed_forward(layer_pass, layers, part)
    for block in model.blocks:
        own_embedding(layer_pass, block)


def own_embedding(layer_pass: Pass, block: LayerBlock) -> None:
    """Add the rows that layers read from their own embeddings, and their projection."""
    if not block.input_width:
        return
    layer_pass.elementwise(2 * block.layers * block.input_width)
    sides = input_sides(layer_pass.model.hidden, block.input_width)
    layer_pass.products("layer embedding", block.layers, sides, layer_pass.shape.tokens, DENSE)


def forward_pass(layer_pass: Pass, logits_tokens: Quantity) -> list[Operator]:
    """Return all operators of a pass of an engine, the output head computed for `logits_tokens`."""
    layers_of(layer_pass)
    reduce(layer_pass, layer_pass.model.layers)
    head(layer_pass, logits_tokens)
    layer_pass.finish()
    return layer_pass.operators


def head(layer_pass: Pass, tokens: Quantity, times: int = 1) -> None:
    """Add the output head."""
    layer_pass.products(
        "output head",
        times,
        (
            (
                layer_pass.model.hidden,
                layer_pass.model.vocabulary / layer_pass.shape.attention_chips,
            ),
        ),
        tokens,
        HEAD,
        "head",
    )
