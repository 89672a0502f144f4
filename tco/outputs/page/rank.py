"""What the page ranks scenarios by, in words: the what-if says who is cheapest as inputs move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tco.chain.result import Result

TOKENS, TRAINING, HOUR = "usd_per_million_output_tokens", "train_usd_per_trillion_tokens", "tco_usd_per_chip_hour"


class Cost(NamedTuple):
    """What scenarios are ranked by, in words."""

    metric: str
    words: str
    unit: str
    size: float


COSTS = (
    Cost(TOKENS, "A million output tokens cost", "USD", 1.0),
    Cost(TRAINING, "Training on a trillion tokens costs", "million USD", 1e6),
    Cost(HOUR, "A chip-hour costs", "USD", 1.0),
)


def cost_of(results: Sequence[Result]) -> Cost:
    """Return what scenarios are ranked by: the first cost that any has."""
    return next((cost for cost in COSTS if any(result.metrics[cost.metric] is not None for result in results)), COSTS[-1])
