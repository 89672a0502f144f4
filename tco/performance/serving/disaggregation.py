"""Disaggregated serving: prefill and decode pools, and the caches sent between them.

Caches go over the scale-out network.
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
    step: Second,
) -> Quantity:
    """Time to send a prompt's cache to the decode pool: t = alpha + C / min(n_p B_p, n_d B_d).

    All chips of both groups take part.
    """
    return step + cache / elementwise_minimum(
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

    A cache C moves for every n tokens.
    """
    return elementwise_minimum(rate, tokens * one_token * (bandwidth / cache))


@formula("s", source="splitwise2024")
def exposed_hand_over(hand_over: Second, prefill_time: Second, streamed: Pure) -> Quantity:
    """Exposed time of a cache's transfer: t = max(t_h - s t_prefill, (1 - s) t_h).

    It delays the first token. A share s of the cache leaves layer by layer during the prompt.
    Either the network falls behind the prompt, or only the last layers are left.
    """
    return elementwise_maximum(hand_over - streamed * prefill_time, (1 - streamed) * hand_over)


@formula("s")
def time_to_first_token_apart(prefill_time: Second, exposed: Second, step_time: Second) -> Quantity:
    """Time to the first token without queueing: t_prefill + t_exposed + t_step.

    t_exposed is the exposed part of the hand-over.
    """
    return prefill_time + exposed + step_time


@formula("")
def chips_per_chip(prefill_share: Pure) -> Quantity:
    """Prefilling chips for each decoding chip: s / (1 - s)."""
    return prefill_share / (1 - prefill_share)


# ---------------------------------------------------------------- whole engines
@formula("token/s/chip", source="little1961")
def rate_of_split(
    decode: TokenPerSecondPerChip,
    prefill: TokenPerSecondPerChip,
    decoding: Pure,
    reading: Pure,
    input_tokens: Pure,
    output_tokens: Pure,
    sharpness: Pure,
) -> Quantity:
    """Output tokens per second and chip of two pools: R = ((x D)^-p + (y P O/I)^-p)^(-1/p).

    Shares x and y of the chips decode and read prompts.
    """
    decoding_rate = decoding * decode
    fed = reading * prefill * output_tokens / input_tokens
    least = elementwise_minimum(decoding_rate, fed)
    return least * (1 + (least / elementwise_maximum(decoding_rate, fed)) ** sharpness) ** (
        -1 / sharpness
    )


class WholeEngines(NamedTuple):
    """Numbers of engines of both pools on a number of chips, and the rate per chip.

    Idle chips count.
    """

    chips: int
    decode_chips: int  # of an engine
    decode_engines: int
    prefill_chips: int
    prefill_engines: int
    output_tokens_per_s_per_chip: float


def whole_engines(
    decode: PlanChoice,
    prefill: PlanChoice,
    chips: int,
    prompt: float,
    answer: float,
    sharpness: float,
) -> WholeEngines | None:
    """Return the best numbers of engines of both pools on `chips`; None where no two fit.

    The plans are those of `decode` and `prefill`.
    """
    best_engines: WholeEngines | None = None
    making, reading = (_best_by_size(choice, chips) for choice in (decode, prefill))
    for size, decode_rate in making.items():
        engines = np.arange(1, chips // size + 1)
        for part, read in reading.items():
            readers = (chips - engines * size) // part
            rates = np.where(
                readers > 0,
                as_array(
                    rate_of_split(
                        decode_rate,
                        read,
                        engines * size / chips,
                        np.maximum(readers, 1) * part / chips,
                        prompt,
                        answer,
                        sharpness,
                    )
                ),
                0,
            )
            best_index = int(rates.argmax())
            if rates[best_index] > (
                best_engines.output_tokens_per_s_per_chip if best_engines else 0
            ):
                best_engines = WholeEngines(
                    chips,
                    size,
                    int(engines[best_index]),
                    part,
                    int(readers[best_index]),
                    float(rates[best_index]),
                )
    return best_engines


def _best_by_size(choice: PlanChoice, chips: int) -> dict[int, float]:
    """Return the best feasible rate by the chips of an engine, up to `chips`."""
    sizes = np.ravel(choice.axes.chips)
    rates_by_size = {
        int(size): float(choice.best[sizes == size].max())
        for size in sorted({*sizes.tolist()})  # unique of numpy imports masked arrays
        if size <= chips
    }
    return {size: rate for size, rate in rates_by_size.items() if rate > 0}
