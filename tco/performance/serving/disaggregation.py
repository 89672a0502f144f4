"""Prefill and decode on pools of their own: a prompt's cache goes from one to the other over the scale-out network."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula
from tco.foundation.units import Byte, BytePerSecond, Pure, Second, TokenPerChip, TokenPerSecondPerChip


@formula(unit="s", source="scaling-book")
def hand_over_time(
    cache: Byte, prefill_links: Pure, prefill_rate: BytePerSecond, decode_links: Pure, decode_rate: BytePerSecond, step: Second
) -> Any:
    """Time a prompt's cache takes to the decode pool, every chip of both groups sharing in it: t = alpha + C / min(n_p B_p, n_d B_d)."""
    return step + cache / np.minimum(prefill_links * prefill_rate, decode_links * decode_rate)


@formula(unit="token/s/chip", source="scaling-book")
def fed_rate(rate: TokenPerSecondPerChip, bandwidth: BytePerSecond, cache: Byte, tokens: Pure, one_token: TokenPerChip = 1) -> Any:
    """Tokens a second and chip that its network keeps up with, a cache moving for each so many tokens: min(R, n B / C)."""
    return np.minimum(rate, tokens * one_token * (bandwidth / cache))


@formula(unit="s", source="splitwise2024")
def exposed_hand_over(hand_over: Second, prefill_time: Second, streamed: Pure) -> Any:
    """Time a prompt's cache keeps the first token waiting when a share s of it leaves layer by layer behind the prompt.

    t = max(t_h - s t_prefill, (1 - s) t_h): the network falls behind the prompt, or the last layers are all that is left.
    """
    return np.maximum(hand_over - streamed * prefill_time, (1 - streamed) * hand_over)


@formula(unit="s", source="tco-model")
def time_to_first_token_apart(prefill_time: Second, exposed: Second, step_time: Second) -> Any:
    """Time to the first token without queueing: t_prefill + what is left of the hand-over + t_step."""
    return prefill_time + exposed + step_time


@formula(unit="", source="tco-model")
def chips_per_chip(prefill_share: Pure) -> Any:
    """Prefilling chips for each decoding chip: s / (1 - s)."""
    return prefill_share / (1 - prefill_share)
