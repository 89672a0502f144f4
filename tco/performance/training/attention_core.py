"""Scores, softmax and values of attention in training: the fused kernel of prompts, over the keys that queries meet on average."""

from __future__ import annotations

from typing import Any, NamedTuple

from tco.foundation.formula import total
from tco.performance.chip import kernels_attention as attention
from tco.performance.chip.kernel_times import QUERY_TILE
from tco.performance.chip.products import Chip
from tco.performance.chip.roofline import attention_flops, attention_scores, exponential_rate
from tco.performance.training.compute import keys_of_tiles


class Core(NamedTuple):
    """One forward pass of the core: its time by today's kernel, and its work."""

    time: Any
    flops: Any


def core(chip: Chip, tokens: Any, keys: Any, heads: Any, score_width: Any, value_width: Any) -> Core:
    """Return the core over some keys a query; long sequences leave its traffic and its start far behind."""
    scores = attention_scores(tokens, keys_of_tiles(keys, QUERY_TILE), heads)
    products = attention.score_product_time(scores, score_width, value_width, chip.rate("peak_bf16", "flash_efficiency_bf16"))
    exponentials = exponential_rate(chip.part("cores"), chip.part("exponentials_per_clock"), chip.part("clock"), 1.0)
    softmax = attention.softmax_time(scores, chip.practice("softmax_cost"), exponentials)
    time = attention.flash_core_time(products, softmax, chip.part("asynchronous_matrix"))
    flops = attention_flops(tokens, keys, heads, score_width, value_width)
    return Core(total("core", [time, chip.practice("kernel_launch")]), flops)
