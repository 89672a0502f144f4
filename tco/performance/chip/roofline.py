"""Formulas that operators share: work, traffic and time on a roofline, messages, clock, memory."""

from __future__ import annotations

from tco.core.elementwise import elementwise_minimum, expm1, log1p, log2, sqrt
from tco.core.formula import ceil_ratio, formula, maximum, minimum, total
from tco.core.types import Quantity
from tco.core.units import (
    FLOP,
    Byte,
    BytePerSecond,
    FLOPPerByte,
    FLOPPerSecond,
    PerSecond,
    Pure,
    Second,
    Watt,
    WattPerFLOPPerSecond,
)
from tco.models.architecture import Architecture, Attention


@formula("FLOP", source="scaling-book")
def attention_flops(
    queries: Pure,
    keys: Pure,
    heads: Pure,
    score_width: Pure,
    value_width: Pure,
    flop_per_mac: FLOP = 2,
) -> Quantity:
    """Work of attention scores and values: F = 2 q k H (d_qk + d_v).

    `keys` is the mean number of keys that a query sees.
    """
    return flop_per_mac * (score_width + value_width) * heads * queries * keys


@formula("byte", source="scaling-book")
def attention_bytes(
    sequences: Pure, cached_tokens: Pure, cached_numbers: Pure, cache_size: Byte
) -> Quantity:
    """Cache read by the attention core: Q = B L_kv x numbers per token x bytes per number."""
    return cached_numbers * cache_size * sequences * cached_tokens


@formula("byte/s")
def achieved_bandwidth(bandwidth: BytePerSecond, memory_efficiency: Pure) -> Quantity:
    """Bandwidth that long streams reach: BW = peak x efficiency."""
    return bandwidth * memory_efficiency


@formula("byte/s", source="aws-nki-dma")
def fed_bandwidth(memory: BytePerSecond, engines: BytePerSecond) -> Quantity:
    """Bandwidth of a memory that DMA engines read for the cores: min(B_HBM, B_DMA).

    It holds for large transfers on all engines.
    """
    return minimum(memory, engines)


@formula("FLOP/s")
def achieved_rate(peak: FLOPPerSecond, gemm_efficiency: Pure) -> Quantity:
    """Rate that large products reach: P = dense peak x efficiency."""
    return peak * gemm_efficiency


@formula("s")
def repeated(time: Second, number: Pure) -> Quantity:
    """Time of equal steps in sequence, such as an operator in all layers: t = n t_1."""
    return time * number


@formula("s")
def with_unexplained(time: Second, unexplained: Pure) -> Quantity:
    """Time with the share x that runs take beyond the model: t (1 + x).

    The most likely x is 0; single runs lie on either side.
    """
    return time * (1 + unexplained)


@formula("FLOP/byte", source="williams2009")
def machine_balance(peak: FLOPPerSecond, bandwidth: BytePerSecond) -> Quantity:
    """Intensity at which computing takes as long as moving: I = P / B."""
    return peak / bandwidth


@formula("byte", source="ocp-mx")
def block_scaled_size(element_size: Byte, scale_size: Byte, block: Pure) -> Quantity:
    """Size of a number whose block shares a scale: b = element + scale / block."""
    return element_size + scale_size / block


@formula("FLOP", source="scaling-book")
def passing_flops(weights: Pure, tokens: Pure, flop_per_mac: FLOP = 2) -> Quantity:
    """Work of passing tokens through some weights: F = 2 w m."""
    return flop_per_mac * weights * tokens


@formula("1/s", source="flashattention3")
def exponential_rate(cores: Pure, per_clock: Pure, clock: PerSecond, sustained: Pure) -> Quantity:
    """Exponentials that a chip computes per second.

    R = cores x exponentials per clock and core x clock x sustained share.
    """
    return cores * per_clock * clock * sustained


@formula("", source="flashattention3")
def attention_scores(queries: Pure, keys: Pure, heads: Pure) -> Quantity:
    """Scores of attention: q k H."""
    return queries * keys * heads


@formula("", source="aws-nki-trn2")
def padded_weights(
    inner: Pure, outer: Pure, rows: Pure, joined_rows: Pure, columns: Pure
) -> Quantity:
    """Weights padded to the arrays, which work joined along the sum or side by side.

    The layout that pads less is taken.

    w = min(ceil(k / r_j) r_j ceil(n / c) c, ceil(k / r) r ceil(n / m) m), m = c r_j / r.
    """
    adjacent_columns = columns * joined_rows / rows
    joined = ceil_ratio(inner, joined_rows) * joined_rows * ceil_ratio(outer, columns) * columns
    adjacent_weights = (
        ceil_ratio(inner, rows) * rows * ceil_ratio(outer, adjacent_columns) * adjacent_columns
    )
    return minimum(joined, adjacent_weights)


@formula("s")
def smooth_maximum(first_time: Second, second_time: Second, sharpness: Pure) -> Quantity:
    """Time of two operations that overlap: (a^p + b^p)^(1/p).

    It is close to the larger where they differ much.
    """
    return (first_time**sharpness + second_time**sharpness) ** (1 / sharpness)


@formula("s")
def added_beside(first_time: Second, second_time: Second, sharpness: Pure) -> Quantity:
    """Time that a second operation adds to an overlapping first: (a^p + b^p)^(1/p) - a.

    It is exact where the second adds next to nothing.
    """
    longer = maximum(first_time, second_time)
    return (
        longer
        - first_time
        + longer
        * expm1(log1p((minimum(first_time, second_time) / longer) ** sharpness) / sharpness)
    )


@formula("s")
def computing_time(flops: FLOP, rate: FLOPPerSecond) -> Quantity:
    """Time of some work on engines of a rate: t = F / P."""
    return flops / rate


@formula("")
def per_rank(tokens: Pure, ranks: Pure) -> Quantity:
    """Tokens of one of some equal parts: T / N."""
    return tokens / ranks


@formula("")
def attended_keys(keys: Pure, reach: Pure) -> Quantity:
    """Keys a query attends to where it reaches r at most: min(k, r)."""
    return minimum(keys, reach)


@formula("byte")
def message_bytes(tokens: Pure, hidden: Pure, element_size: Byte) -> Quantity:
    """Hidden states of a pass: M = T h b."""
    return tokens * hidden * element_size


@formula("s")
def stream_time(bytes_moved: Byte, bandwidth: BytePerSecond) -> Quantity:
    """Time of moving data: t = Q / B."""
    return bytes_moved / bandwidth


@formula("")
def exposed_exchange(computing: Second, exchanging: Second, overlap: Pure) -> Quantity:
    """Share of the exchanges that computing does not hide: 1 - h min(C / X, 1).

    Half of the tokens compute while the other half exchange.
    """
    return 1 - overlap * minimum(computing / maximum(exchanging, 1e-12 * computing), 1)


@formula("s")
def exposed_time(time: Second, count: Pure, share: Pure) -> Quantity:
    """Time some equal collectives add to the step: n t x."""
    return time * count * share


@formula("", source="tco-calibration")
def layer_kernels(kernels: Pure, layers: Pure) -> Quantity:
    """Dependent kernels of a part of all layers that have it: n l."""
    return kernels * layers


@formula("byte", source="tco-calibration")
def elementwise_bytes(tokens: Pure, numbers: Pure, traffic: Pure, element_size: Byte) -> Quantity:
    """Traffic of elementwise kernels that move n numbers a token at least: Q = T n f b."""
    return tokens * numbers * traffic * element_size


@formula("")
def passed_numbers(width: Pure, passes: Pure, layers: Pure) -> Quantity:
    """Numbers a token that some passes of all layers over a width read or write: w p l."""
    return width * passes * layers


@formula("s", source="tco-calibration")
def wait_beyond(time: Second, wait: Second, beyond: Pure) -> Quantity:
    """Time of a collective, with the wait w for the network: t + b w.

    b is 1 where ranks reach beyond their scale-up domain, otherwise 0.
    """
    return time + beyond * wait


@formula("s", source="tco-calibration")
def rank_wait(wait: Second, ranks: Pure) -> Quantity:
    """Time for which a collective's ranks wait for the last of them: w sqrt(log2(n)).

    Two ranks wait w. It grows as the largest of n normal delays does.
    """
    return wait * sqrt(log2(maximum(ranks, 1)))


@formula("s")
def power_limited_time(
    time: Second,
    flops: FLOP,
    bytes_moved: Byte,
    size: Byte,
    wide: Byte,
    flop_energy: WattPerFLOPPerSecond,
    byte_flops: FLOPPerByte,
    power: Watt,
) -> Quantity:
    """Time of work under a chip's power limit: (t^4 + (e_f (b/b_w F + k Q) / W)^4)^(1/4).

    t is the time at the boost clock. e_f is the energy of one operation on wide numbers of b_w
    bytes, of which narrow numbers take a part; a byte from memory takes that of k of them. The
    clock falls with the rate that is reached, not with an unreached peak.
    """
    return (
        time**4 + (flop_energy * (size / wide * flops + byte_flops * bytes_moved) / power) ** 4
    ) ** 0.25


@formula("byte", source="scaling-book")
def weight_bytes(
    shared_parameters: Pure,
    expert_parameters: Pure,
    tensor_parallel: Pure,
    chips: Pure,
    weight_size: Byte,
    expert_size: Byte,
) -> Quantity:
    """Weights of one chip: W = P_shared / tp b_w + P_experts / N b_e."""
    return (
        shared_parameters / tensor_parallel * weight_size + expert_parameters / chips * expert_size
    )


@formula("byte", source="scaling-book")
def cache_bytes(
    sequences: Pure,
    cached_tokens: Pure,
    growing_numbers: Pure,
    kept_numbers: Pure,
    cache_size: Byte,
) -> Quantity:
    """Cache of one chip over all layers: C = B (L g + k) b.

    A sequence has g numbers per token and k numbers of fixed size (windows, states).
    """
    return sequences * (cached_tokens * growing_numbers + kept_numbers) * cache_size


@formula("byte")
def usable_memory(hbm_capacity: Byte, memory_reserve: Pure) -> Quantity:
    """HBM left for weights and cache: usable = capacity (1 - reserve)."""
    return hbm_capacity * (1 - memory_reserve)


@formula("byte")
def memory_in_use(weights: Byte, cache: Byte) -> Quantity:
    """HBM in use: weights + cache."""
    return weights + cache


@formula("byte", source="tensorrt-llm-caches")
def room_for_caches(cache: Byte, share: Pure) -> Quantity:
    """HBM that weights must leave free for caches: C / s.

    An engine gives a share s of the free HBM to caches.
    """
    return cache / share


@formula("")
def causal_keys(input_tokens: Pure) -> Quantity:
    """Keys a query of a prompt sees on average under the causal mask: L = input / 2."""
    return input_tokens / 2


@formula("")
def compressed_entries(tokens: Pure, compression: Pure) -> Quantity:
    """Entries of a cache that pools c tokens into one: n = L / c."""
    return tokens / compression


@formula("")
def reached_keys(entries: Pure, reach: Pure) -> Quantity:
    """Mean keys per query under a causal mask that reaches r of n keys.

    k = m (1 - m / 2n), m = min(n, r).
    """
    return elementwise_minimum(entries, reach) * (
        1 - elementwise_minimum(entries, reach) / (2 * entries)
    )


@formula("")
def chunk_keys(tokens: Pure, chunk: Pure) -> Quantity:
    """Keys a query meets on average inside its own chunk of c tokens: k = min(L, c) / 2."""
    return elementwise_minimum(tokens, chunk) / 2


@formula("FLOP", source="mamba2")
def state_flops(state_numbers: Pure, passes: Pure, flop_per_mac: FLOP = 2) -> Quantity:
    """Work of a token on a recurrent state of n numbers: F = 2 p n.

    Each number is met p times (update, read-out, correction).
    """
    return flop_per_mac * passes * state_numbers


@formula("FLOP", source="scaling-book")
def forward_and_backward(forward: FLOP) -> Quantity:
    """Work of forward and backward pass, the backward being twice the forward: F = 3 F_forward."""
    return 3 * forward


def _keys_met(a: Attention, context: Quantity) -> list[Quantity]:
    """Return the mean keys per query in its chunk, or in its cache entries and its window."""
    if a.chunked:
        return [chunk_keys(context, a.window)]
    key_counts = []
    if a.compression or not a.window:
        entries = entries_of(a, context)
        key_counts.append(reached_keys(entries, a.top_tokens or entries))
    if a.window:
        key_counts.append(reached_keys(context, a.window))
    return key_counts


def entries_of(a: Attention, context: Quantity) -> Quantity:
    """Return the entries of a cache: its tokens, or what pools some of them."""
    return compressed_entries(context, a.compression) if a.compression else context


def _attention_terms(a: Attention, layers: int, context: Quantity) -> list[Quantity]:
    """Return the work of the scores, values and indexer of layers with one kind of attention."""
    terms = [
        attention_flops(1, key_count, layers * a.heads, a.qk_dim, a.v_dim)
        for key_count in _keys_met(a, context)
    ]
    if a.top_tokens:  # the indexer scores every entry to choose the best
        entries = entries_of(a, context)
        terms.append(
            attention_flops(
                1, reached_keys(entries, entries), layers * a.index_heads, a.index_dim, 0
            )
        )
    return terms


def flops_per_token(model: Architecture, context: Quantity, training: bool = True) -> Quantity:
    """Return the work for each token of a sequence, FLOP.

    Args:
        model: Architecture of the model.
        context: Tokens of a sequence.
        training: Whether the backward pass counts beside the forward pass.

    """
    terms = [passing_flops(model.active_parameters, 1)]
    for attention, layers in model.attentions.items():
        terms += _attention_terms(attention, layers, context)
    terms += [
        state_flops(layers * mixer.state_numbers, mixer.passes)
        for mixer, layers in model.mixers.items()
    ]
    forward = total("forward_flops_per_token", terms)
    return forward_and_backward(forward) if training else forward
