"""Small formulas that several operators share: messages, passes over the hidden state, launches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula, maximum, minimum
from tco.foundation.units import Byte, BytePerSecond, Pure, Second


@formula(unit="", source="tco-model")
def per_rank(tokens: Pure, ranks: Pure) -> Any:
    """Tokens of one of some equal parts: T / N."""
    return tokens / ranks


@formula(unit="", source="tco-model")
def attended_keys(keys: Pure, reach: Pure) -> Any:
    """Keys a query attends to where it reaches r at most: min(k, r)."""
    return minimum(keys, reach)


@formula(unit="byte", source="tco-model")
def message_bytes(tokens: Pure, hidden: Pure, element_size: Byte) -> Any:
    """Hidden states of a pass: M = T h b."""
    return tokens * hidden * element_size


@formula(unit="byte", source="tco-calibration")
def hidden_pass_bytes(tokens: Pure, hidden: Pure, passes: Pure, element_size: Byte) -> Any:
    """Traffic of elementwise passes over the hidden state of some tokens: Q = T h p b."""
    return hidden * passes * element_size * tokens


@formula(unit="s", source="tco-model")
def stream_time(bytes_moved: Byte, bandwidth: BytePerSecond) -> Any:
    """Time of moving data: t = Q / B."""
    return bytes_moved / bandwidth


@formula(unit="s", source="tco-calibration")
def kernel_time(kernels: Pure, launch_time: Second) -> Any:
    """Start, tail and drain of dependent kernels: t = n t_1."""
    return kernels * launch_time


@formula(unit="s", source="tco-calibration")
def added_latency(time: Second, wait: Second) -> Any:
    """A collective inside an engine's step, where ranks also wait for each other: t + wait."""
    return time + wait


@formula(unit="", source="tco-model")
def exposed_exchange(computing: Second, exchanging: Second, overlap: Pure) -> Any:
    """Share of some exchanges that compute does not hide, half of the tokens computing while the other half exchanges: 1 - h min(C / X, 1)."""
    return 1 - overlap * minimum(computing / maximum(exchanging, 1e-12 * computing), 1)


@formula(unit="s", source="tco-model")
def exposed_time(time: Second, count: Pure, share: Pure) -> Any:
    """Time some equal collectives add to the step: n t x."""
    return time * count * share


@formula(unit="s", source="tco-model")
def only_if_shared(time: Second, ranks: Pure) -> Any:
    """Time of a collective, zero for a group of one: t min(N-1, 1)."""
    return time * minimum(ranks - 1, 1)


@formula(unit="", source="tco-calibration")
def layer_kernels(kernels: Pure, layers: Pure) -> Any:
    """Dependent kernels of a part of all layers that have it: n l."""
    return kernels * layers


@formula(unit="byte", source="tco-calibration")
def elementwise_bytes(tokens: Pure, numbers: Pure, traffic: Pure, element_size: Byte) -> Any:
    """Traffic of elementwise kernels that move n numbers a token at least: Q = T n f b."""
    return tokens * numbers * traffic * element_size


@formula(unit="", source="tco-model")
def passed_numbers(width: Pure, passes: Pure, layers: Pure) -> Any:
    """Numbers a token that some passes of all layers over a width read or write: w p l."""
    return width * passes * layers


@formula(unit="s", source="tco-calibration")
def wait_beyond(time: Second, wait: Second, beyond: Pure) -> Any:
    """A collective whose ranks reach beyond their scale-up domain (1, else 0), where they also wait for the network: t + b w."""
    return time + beyond * wait


@formula(unit="s", source="tco-calibration")
def rank_wait(wait: Second, ranks: Pure) -> Any:
    """Time the ranks of a collective wait for the last of them, whose delays are independent: w log2(n)."""
    return wait * np.log2(maximum(ranks, 1))
