"""Disaggregated serving: a prefill and a decode pool, and the transfer of caches between them.

Caches go over the scale-out network. `whole_engines` divides a number of chips between the pools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tco.core.elementwise import as_array, elementwise_maximum, elementwise_minimum
from tco.core.formula import formula
from tco.core.types import Quantity
from tco.core.units import (
    Byte,
    BytePerSecond,
    Pure,
    Second,
    TokenPerChip,
    TokenPerSecondPerChip,
)

if TYPE_CHECKING:
    from tco.performance.serving.plan_choice import PlanChoice


@formula("s", source="scaling-book")
def hand_over_time(
    cache: Byte,
    prefill_links: Pure,
    prefill_rate: BytePerSecond,
    decode_links: Pure,
    decode_rate: BytePerSecond,
    latency: Second,
) -> Quantity:
    """Time to send a prompt's cache to the decode pool: t = alpha + C / min(n_p B_p, n_d B_d).

    alpha is the latency of a network step and C the bytes of the cache. All chips of both attention
    groups take part: n are their numbers (`_links`), and B the bandwidths of a chip (`_rate`).
    """
    return latency + cache / elementwise_minimum(
        prefill_links * prefill_rate, decode_links * decode_rate
    )


@formula("token/s/chip", source="scaling-book")
def fed_rate(
    rate: TokenPerSecondPerChip,
    bandwidth: BytePerSecond,
    cache: Byte,
    tokens: Pure,
    one_token: TokenPerChip = 1,
) -> Quantity:
    """Tokens per second and chip that the network keeps up with: min(R, n B / C).

    A cache of C bytes moves for every n tokens (`tokens`) over a chip's bandwidth B. R is the rate
    of the chips.
    """
    return elementwise_minimum(rate, tokens * one_token * (bandwidth / cache))


@formula("s", source="splitwise2024")
def exposed_hand_over(hand_over: Second, prefill_time: Second, streamed: Pure) -> Quantity:
    """Exposed time of a cache's transfer: t = max(t_h - s t_prefill, (1 - s) t_h).

    The first token waits for it. t_h is the time of the whole transfer (`hand_over`). A share s of
    the cache leaves layer by layer during the prefill (`streamed`). Either the network falls behind
    the prefill, or only the last layers are left.
    """
    return elementwise_maximum(hand_over - streamed * prefill_time, (1 - streamed) * hand_over)


@formula("s")
def time_to_first_token_apart(prefill_time: Second, exposed: Second, step_time: Second) -> Quantity:
    """Time to the first token without queueing: prefill_time + exposed + step_time.

    `exposed` is the exposed part of the cache's transfer.
    """
    return prefill_time + exposed + step_time


@formula("")
def chips_per_chip(prefill_share: Pure) -> Quantity:
    """Prefill chips for each decode chip: s / (1 - s), with s the `prefill_share` of all chips."""
    return prefill_share / (1 - prefill_share)


@formula("token/s/chip", source="little1961")
def rate_of_split(
    decode_rate: TokenPerSecondPerChip,
    prefill_rate: TokenPerSecondPerChip,
    decode_share: Pure,
    prefill_share: Pure,
    input_tokens: Pure,
    output_tokens: Pure,
    sharpness: Pure,
) -> Quantity:
    """Output tokens per second and chip of two pools: R = ((x D)^-p + (y P O/I)^-p)^(-1/p).

    Shares x and y of the chips decode and prefill. A decode chip makes D output tokens/s, and a
    prefill chip reads P input tokens/s. A request has I input and O output tokens. p is the
    sharpness with which the slower pool sets the rate.
    """
    decode_limit = decode_share * decode_rate
    prefill_limit = prefill_share * prefill_rate * output_tokens / input_tokens
    lower = elementwise_minimum(decode_limit, prefill_limit)
    upper = elementwise_maximum(decode_limit, prefill_limit)
    return lower * (1 + (lower / upper) ** sharpness) ** (-1 / sharpness)


class PoolBalance(NamedTuple):
    """Request that balances a decode and a prefill pool, and how the pools limit each other."""

    input_tokens: Quantity
    output_tokens: Quantity
    sharpness: Quantity  # of the smooth minimum of both rates


class WholeEngines(NamedTuple):
    """Numbers of engines of both pools on a number of chips, and the rate per chip.

    Chips without an engine count.
    """

    chips: int
    decode_chips: int  # of an engine
    decode_engines: int
    prefill_chips: int  # of an engine
    prefill_engines: int
    output_tokens_per_s_per_chip: float


def whole_engines(
    decode: PlanChoice, prefill: PlanChoice, chips: int, balance: PoolBalance
) -> WholeEngines | None:
    """Return the best numbers of engines of both pools; None where no two engines fit.

    Args:
        decode: Plans of decode engines with their rates.
        prefill: Plans of prefill engines with their rates.
        chips: Number of chips that both pools share.
        balance: Tokens of a request, and the sharpness of the joint rate.

    """
    best_engines: WholeEngines | None = None
    prefill_rates = _best_rate_by_size(prefill, chips)
    for decode_chips, decode_rate in _best_rate_by_size(decode, chips).items():
        for prefill_chips, prefill_rate in prefill_rates.items():
            decode_counts = np.arange(1, chips // decode_chips + 1)
            prefill_counts = (chips - decode_counts * decode_chips) // prefill_chips
            split_rates = rate_of_split(
                decode_rate=decode_rate,
                prefill_rate=prefill_rate,
                decode_share=decode_counts * decode_chips / chips,
                prefill_share=np.maximum(prefill_counts, 1) * prefill_chips / chips,
                input_tokens=balance.input_tokens,
                output_tokens=balance.output_tokens,
                sharpness=balance.sharpness,
            )
            rates = np.where(prefill_counts > 0, as_array(split_rates), 0)
            best_index = int(rates.argmax())
            best_rate = best_engines.output_tokens_per_s_per_chip if best_engines else 0
            if rates[best_index] > best_rate:
                best_engines = WholeEngines(
                    chips=chips,
                    decode_chips=decode_chips,
                    decode_engines=int(decode_counts[best_index]),
                    prefill_chips=prefill_chips,
                    prefill_engines=int(prefill_counts[best_index]),
                    output_tokens_per_s_per_chip=float(rates[best_index]),
                )
    return best_engines


def _best_rate_by_size(choice: PlanChoice, chips: int) -> dict[int, float]:
    """Return the best feasible rate by the chips of an engine, up to `chips`."""
    sizes = np.ravel(choice.axes.chips)
    rates_by_size = {
        int(size): float(choice.best[sizes == size].max())
        for size in sorted({*sizes.tolist()})  # np.unique imports masked arrays, which take long
        if size <= chips
    }
    return {size: rate for size, rate in rates_by_size.items() if rate > 0}
