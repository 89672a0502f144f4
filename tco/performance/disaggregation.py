"""Prefill and decode on pools of their own: a prompt's cache goes from one to the other over the scale-out network."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.formula import formula
from tco.units import Byte, BytePerSecond, Pure, Second, TokenPerChip, TokenPerSecondPerChip


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


@formula(unit="s", source="tco-model")
def time_to_first_token_apart(prefill_time: Second, hand_over: Second, step_time: Second) -> Any:
    """Time to the first token without queueing, the cache handed over whole: t_prefill + t_hand-over + t_step."""
    return prefill_time + hand_over + step_time


@formula(unit="", source="tco-model")
def chips_per_chip(prefill_share: Pure) -> Any:
    """Prefilling chips for each decoding chip: s / (1 - s)."""
    return prefill_share / (1 - prefill_share)
