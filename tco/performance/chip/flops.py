"""Work a model does for one token: the products with its weights, attention over what a query reaches, recurrent states.

The count of weights leaves out the input embedding, which is a lookup. Recomputed work is not counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula, total
from tco.foundation.units import FLOP, Pure
from tco.models.architecture import Architecture, Attention
from tco.performance.chip.roofline import attention_flops


@formula(unit="FLOP", source="scaling-book")
def weight_flops(active_parameters: Pure, flop_per_mac: FLOP = 2) -> Any:
    """Work of the products with the weights a token passes: F = 2 N."""
    return flop_per_mac * active_parameters


@formula(unit="", source="tco-model")
def compressed_entries(tokens: Pure, compression: Pure) -> Any:
    """Entries of a cache that pools c tokens into one: n = L / c."""
    return tokens / compression


@formula(unit="", source="tco-model")
def reached_keys(entries: Pure, reach: Pure) -> Any:
    """Keys a query meets on average under the causal mask where it reaches r of n at most: k = m (1 - m / 2n), m = min(n, r)."""
    return np.minimum(entries, reach) * (1 - np.minimum(entries, reach) / (2 * entries))


@formula(unit="", source="tco-model")
def chunk_keys(tokens: Pure, chunk: Pure) -> Any:
    """Keys a query meets on average inside its own chunk of c tokens: k = min(L, c) / 2."""
    return np.minimum(tokens, chunk) / 2


@formula(unit="FLOP", source="mamba2")
def state_flops(state_numbers: Pure, passes: Pure, flop_per_mac: FLOP = 2) -> Any:
    """Work of a token on a recurrent state of n numbers, each met p times (update, read-out, correction): F = 2 p n."""
    return flop_per_mac * passes * state_numbers


@formula(unit="FLOP", source="scaling-book")
def forward_and_backward(forward: FLOP) -> Any:
    """Work of forward and backward pass, the backward being twice the forward: F = 3 F_forward."""
    return 3 * forward


def keys_met(a: Attention, context: Any) -> list[Any]:
    """Return the keys a query meets on average in each place it looks: its chunk, the entries of its cache, its window."""
    if a.chunked:
        return [chunk_keys(context, a.window)]
    found = []
    if a.compression or not a.window:
        entries = entries_of(a, context)
        found.append(reached_keys(entries, a.top_tokens or entries))
    if a.window:
        found.append(reached_keys(context, a.window))
    return found


def entries_of(a: Attention, context: Any) -> Any:
    """Return the entries of a cache: its tokens, or what pools some of them."""
    return compressed_entries(context, a.compression) if a.compression else context


def attention_terms(a: Attention, layers: int, context: Any) -> list[Any]:
    """Return the work of scores and values of all layers with one kind of attention, and of their indexer."""
    terms = [attention_flops(1, keys, layers * a.heads, a.qk_dim, a.v_dim) for keys in keys_met(a, context)]
    if a.top_tokens:  # the indexer scores every entry to choose the best
        entries = entries_of(a, context)
        terms.append(attention_flops(1, reached_keys(entries, entries), layers * a.index_heads, a.index_dim, 0))
    return terms


def flops_per_token(model: Architecture, context: Any, training: bool = True) -> Any:
    """Return the work for each token of sequences of `context` tokens: one forward pass, in training the backward pass too."""
    terms = [weight_flops(model.active_parameters)]
    for attention, layers in model.attentions.items():
        terms += attention_terms(attention, layers, context)
    terms += [state_flops(layers * mixer.state_numbers, mixer.passes) for mixer, layers in model.mixers.items()]
    forward = total("forward_flops_per_token", terms)
    return forward_and_backward(forward) if training else forward
