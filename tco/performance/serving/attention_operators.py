"""The operators of attention and of recurrent layers: projections, core, indexer, and the exchanges where sequences are split."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.fabric.links import Group
from tco.foundation.formula import maximum, minimum, select, somewhere, total
from tco.foundation.trace import scope
from tco.models.attention import Attention
from tco.models.layers import StateMixer
from tco.models.products import keys_and_values, projections
from tco.performance.chip import kernels_attention as kernel
from tco.performance.chip.flops import entries_of
from tco.performance.chip.machine import share_of_rate
from tco.performance.chip.messages import attended_keys, message_bytes, per_rank, stream_time
from tco.performance.chip.roofline import attention_bytes, attention_flops, attention_scores, computing_time, passing_flops, smooth_maximum
from tco.performance.serving.operators import ATTENTION, Pass, Shape

SUM_BYTES = 8  # largest score and sum of exponentials of a query and head, each in FP32
INDEX_BYTES = 4  # one FP32 scale beside an indexer key
STATE_BYTES = 2 * 4  # a recurrent state is read and written in FP32
ROTARY_PASSES = 2  # queries, keys and values are read and written
OVERLAP = 4  # sharpness of the smooth maximum, as the kernel file has it


def attention(made: Pass, layers: int, a: Attention) -> None:
    """Add projections, core and, for sparse attention, the indexer."""
    shape = made.shape
    kind = "sparse" if a.top_tokens else "latent" if a.latent or a.compression else "grouped"
    sides = projections(a, made.model.hidden, shape.tensor_parallel)
    made.products("attention projections", layers, sides.values(), shape.tokens, ATTENTION, kind)
    whole = a.latent or a.shared_key_value
    width = a.heads / shape.tensor_parallel * a.qk_dim + (a.cached if whole else keys_and_values(a, shape.tensor_parallel))
    made.elementwise(layers * width * ROTARY_PASSES)
    kinds = made.kinds
    keys = keys_attended(a, kinds.keys)
    if splits_context(made):
        keys = per_rank(keys, kinds.context_parallel)
    read = scanned = keys
    if not kinds.decode:
        prompt = per_rank(kinds.tokens, kinds.sequences) if kinds.read is None else kinds.read
        read, scanned = keys_held(a, prompt), entries_of(a, prompt)
    attention_core(made, kinds, layers, a, keys, read)
    if a.top_tokens:
        index_keys(made, kinds._replace(keys=entries_of(a, kinds.keys)), layers, a, scanned)
    if splits_context(made):
        join_context(made, layers, a)


def keys_attended(a: Attention, keys: Any) -> Any:
    """Return the keys a query attends to among some: those in its window, the best of an indexer, or entries that stand for several each."""
    if a.compression:
        entries = entries_of(a, keys)
        return total("keys", [attended_keys(entries, a.top_tokens) if a.top_tokens else entries, attended_keys(keys, a.window)])
    reach = min(filter(None, (a.window, a.top_tokens)), default=0)
    return attended_keys(keys, reach) if reach else keys


def keys_held(a: Attention, prompt: Any) -> Any:
    """Return the keys of a prompt that its queries read: of its tokens, and of the entries that stand for several."""
    return total("read", [entries_of(a, prompt), prompt]) if a.compression else prompt


def index_keys(made: Pass, shape: Shape, layers: int, a: Attention, read: Any) -> None:
    """Add the indexer of sparse attention, which scores every key to choose those attended to."""
    machine = made.machine
    with scope("indexer"):
        scanned = per_rank(shape.keys, shape.context_parallel) if splits_context(made) else shape.keys
        every = scanned if shape.decode else read
        scored = attention_flops(shape.tokens, scanned, a.index_heads, a.index_dim, 0)
        index = attention_bytes(shape.sequences, every, a.index_dim + INDEX_BYTES, 1.0)
        peak = "peak_fp8" if machine.values.exists(f"{machine.kernels.parts}.peak_fp8") else "peak_bf16"
        rate = machine.kernels.rate(peak, f"flash_efficiency_{peak.removeprefix('peak_')}")
        time = smooth_maximum(
            kernel.score_product_time(attention_scores(shape.tokens, scanned, a.index_heads), a.index_dim, 0, rate),
            stream_time(index, machine.bandwidth),
            OVERLAP,
        )
        for_all = made.alike.for_all
        made.core("indexer", layers, for_all(time), for_all(scored), for_all(index), rate)


def attention_core(made: Pass, shape: Shape, layers: int, a: Attention, keys: Any, read: Any) -> None:
    """Add the core: fused attention over prompts, or the query of each sequence against its cache; `shape` has a plan of each kind."""
    machine, chip = made.machine, made.machine.kernels
    with scope("attention core"):
        wide, cached = core_widths(shape, a)
        heads = np.ceil(a.heads / shape.tensor_parallel)
        scores = attention_scores(shape.tokens, keys, heads)
        rate = chip.rate(machine.core.peak, f"flash_efficiency_{machine.core.efficiency}")
        moved = attention_bytes(shape.sequences, read, cached, machine.cache_size)
        flops = attention_flops(shape.tokens, keys, heads, wide, 0)
        softmax = kernel.softmax_time(scores, chip.practice("softmax_cost"), machine.exponentials)
        computing = kernel.flash_core_time(kernel.score_product_time(scores, wide, 0, rate), softmax, chip.part("asynchronous_matrix"))
        streaming = stream_time(moved, machine.bandwidth)
        if not shape.decode:
            time = total("attention", (computing, streaming))
        else:
            time = smooth_maximum(computing, streaming, OVERLAP)
            if chip.tiled:
                groups = 1 if a.latent else maximum(a.kv_heads / shape.tensor_parallel, 1)
                blocks = kernel.decode_blocks(shape.sequences, groups, keys, machine.shared("decode_chunk"), chip.practice("decode_splits"))
                on_cores = kernel.decode_core_time(blocks, chip.part("cores"), chip.practice("decode_block_time"), moved, chip.load("core_load"))
                time = smooth_maximum(time, on_cores, OVERLAP)
        for_all = made.alike.for_all
        made.core("attention core", layers, for_all(time), for_all(flops), for_all(moved), rate)


def splits_context(made: Pass) -> bool:
    """Say whether any plan splits sequences."""
    return somewhere(made.shape.context_parallel > 1)


def join_context(made: Pass, layers: int, a: Attention) -> None:
    """Add the exchange of softmax sums among the chips that split a sequence; what they attended to joins the all-reduce."""
    shape, ranks = made.shape, made.shape.context_parallel
    with scope("context sums"):
        sums = message_bytes(shape.tokens, np.ceil(a.heads / shape.tensor_parallel) * ranks, float(SUM_BYTES))
        made.gather("context sums", layers, context_group(made, ranks, shape.crossing), sums)


def context_group(made: Pass, ranks: Any, crossing: Any) -> Group:
    """Return where the chips lie that split a sequence, a tensor-parallel group apart from each other."""
    shape = made.shape
    within = minimum(np.ceil(shape.tensor_parallel * ranks / made.machine.links.domain - 1e-9), ranks)
    domains = select(crossing > 0, shape.domains, within)
    return Group(ranks, domains, ranks / domains)


def gather_keys(made: Pass, ranks: Any, crossing: Any, prompt: Any) -> None:
    """Add the gathering of a prompt's keys and values on the chips that split it."""
    group = context_group(made, ranks, crossing)
    for a, layers in made.model.attentions.items():
        with scope("context gather"):
            tokens = attended_keys(prompt, a.window) if a.window else prompt
            if a.compression:
                tokens = total("keys", [entries_of(a, prompt), tokens])
            made.gather("context gather", layers, group, message_bytes(tokens, core_widths(made.shape, a)[1], made.machine.cache_size))


def core_widths(shape: Shape, a: Attention) -> tuple[int, Any]:
    """Return numbers per query-key pair and head, and cached numbers per token of one chip: the latent is whole on every rank."""
    if not a.latent:
        return a.qk_dim + a.v_dim, a.cached / minimum(shape.tensor_parallel, a.kv_heads)
    absorbed = shape.decode or bool(a.top_tokens)
    return (2 * a.latent + a.rope_dim if absorbed else a.qk_dim + a.v_dim), a.cached


def recurrence(made: Pass, layers: int, mixer: StateMixer) -> None:
    """Add a state-space or linear-attention layer: projections, and the state read, changed and written."""
    machine, shape = made.machine, made.shape
    hidden, parallel = made.model.hidden, shape.tensor_parallel
    sides = ((hidden, mixer.projected / parallel), (mixer.inner / parallel, hidden))
    made.products("recurrent projections", layers, sides, shape.tokens, ATTENTION, "recurrent")
    made.elementwise(layers * mixer.projected / parallel * ROTARY_PASSES)  # convolution and gates
    with scope("recurrence"):
        state = mixer.state_numbers / parallel
        flops = passing_flops(mixer.passes * state, shape.tokens)
        moved = attention_bytes(shape.sequences, 1, state, float(STATE_BYTES))
        rate = share_of_rate(machine.kernels.rate("peak_bf16", "flash_efficiency_bf16"), machine.shared("recurrent_share"))
        time = smooth_maximum(stream_time(moved, machine.bandwidth), computing_time(flops, rate), OVERLAP)
        made.core("recurrence", layers, time, flops, moved, rate)
