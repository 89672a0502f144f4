"""The operators of attention and of recurrent layers: projections, core, indexer, and the exchanges where sequences are split."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.fabric.links import Group
from tco.models.attention import Attention
from tco.models.layers import StateMixer
from tco.models.products import projections
from tco.performance.chip.messages import attended_keys, message_bytes, per_rank
from tco.performance.chip.roofline import attention_bytes, attention_flops, attention_scores, passing_flops, softmax_engine_time
from tco.performance.serving.operators import KERNELS, Pass

SUM_BYTES = 8  # largest score and sum of exponentials of a query and head, each in FP32
INDEX_BYTES = 4  # one FP32 scale beside an indexer key
STATE_BYTES = 2 * 4  # a recurrent state is read and written in FP32


def attention(made: Pass, layers: int, a: Attention) -> None:
    """Add projections, core and, for sparse attention, the indexer."""
    machine, shape = made.machine, made.shape
    kind = KERNELS["latent" if a.latent else "grouped"]
    sides = projections(a, made.model.hidden, shape.tensor_parallel).values()
    made.weights("attention projections", layers, sides, shape.tokens, machine.attention_size, machine.attention_gemm, kind, made.forms[0])
    reach = min(filter(None, (a.window, a.top_tokens)), default=0)
    keys = attended_keys(shape.keys, reach) if reach else shape.keys
    if splits_context(made):
        keys = per_rank(keys, shape.context_parallel)
    pair, cached = core_widths(made, a)
    heads = np.ceil(a.heads / shape.tensor_parallel)
    flops = attention_flops(shape.tokens, keys, heads, pair, 0)
    scores = attention_scores(shape.tokens, keys, heads)
    softmax = softmax_engine_time(scores, machine.exponentials, machine.softmax_operations, machine.vector)
    read = keys
    if not shape.decode:
        read = per_rank(shape.tokens, shape.sequences) if shape.read is None else shape.read
    moved = attention_bytes(shape.sequences, read, cached, machine.cache_size)
    made.add("attention core", layers, flops, moved, machine.core, machine.cache_bandwidth, beside=softmax)
    if a.top_tokens:
        scanned = per_rank(shape.keys, shape.context_parallel) if splits_context(made) else shape.keys
        every = scanned if shape.decode else read
        scored = attention_flops(shape.tokens, scanned, a.index_heads, a.index_dim, 0)
        index = attention_bytes(shape.sequences, every, a.index_dim + INDEX_BYTES, 1.0)
        made.add("indexer", layers, scored, index, machine.index, machine.cache_bandwidth, KERNELS["sparse"])
    if splits_context(made):
        join_context(made, layers, a)


def splits_context(made: Pass) -> bool:
    """Say whether any plan splits sequences."""
    return bool(np.any(np.asarray(made.shape.context_parallel) > 1))


def join_context(made: Pass, layers: int, a: Attention) -> None:
    """Add the exchange of softmax sums among the chips that split a sequence; what they attended to joins the all-reduce."""
    shape, ranks = made.shape, made.shape.context_parallel
    sums = message_bytes(shape.tokens, np.ceil(a.heads / shape.tensor_parallel) * ranks, float(SUM_BYTES))
    made.gather("context sums", layers, context_group(made, ranks, shape.crossing), sums)


def context_group(made: Pass, ranks: Any, crossing: Any) -> Group:
    """Return where the chips lie that split a sequence, a tensor-parallel group apart from each other."""
    shape = made.shape
    within = np.minimum(np.ceil(shape.tensor_parallel * ranks / made.machine.links.domain - 1e-9), ranks)
    domains = np.where(crossing, shape.domains, within)
    return Group(ranks, domains, ranks / domains)


def gather_keys(made: Pass, ranks: Any, crossing: Any, prompt: Any) -> None:
    """Add the gathering of a prompt's keys and values on the chips that split it."""
    group = context_group(made, ranks, crossing)
    for a, layers in made.model.attentions.items():
        tokens = attended_keys(prompt, a.window) if a.window else prompt
        made.gather("context gather", layers, group, message_bytes(tokens, core_widths(made, a)[1], made.machine.cache_size))


def core_widths(made: Pass, a: Attention) -> tuple[int, Any]:
    """Return numbers per query-key pair and head, and cached numbers per token of one chip: the latent is whole on every rank."""
    if not a.latent:
        return a.qk_dim + a.v_dim, a.cached / np.minimum(made.shape.tensor_parallel, a.kv_heads)
    absorbed = made.shape.decode or bool(a.top_tokens)
    return (2 * a.latent + a.rope_dim if absorbed else a.qk_dim + a.v_dim), a.cached


def recurrence(made: Pass, layers: int, mixer: StateMixer) -> None:
    """Add a state-space or linear-attention layer: projections, and the state read, changed and written."""
    machine, shape = made.machine, made.shape
    hidden, form = made.model.hidden, made.forms[0]
    sides = ((hidden, mixer.projected / shape.tensor_parallel), (mixer.inner / shape.tensor_parallel, hidden))
    kernels = KERNELS["recurrent"]
    made.weights("recurrent projections", layers, sides, shape.tokens, machine.attention_size, machine.attention_gemm, kernels, form)
    state = mixer.state_numbers / shape.tensor_parallel
    flops = passing_flops(mixer.passes * state, shape.tokens)
    moved = attention_bytes(shape.sequences, 1, state, float(STATE_BYTES))
    made.add("recurrence", layers, flops, moved, machine.recurrent, machine.cache_bandwidth)
