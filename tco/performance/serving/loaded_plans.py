"""Choice among plans with stated requests in flight, in draws of the inputs.

The load gives the batch of such a plan, so that its figures need no search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tco.compile.execute import best_rows
from tco.compile.lower import ArithmeticKernel
from tco.core.types import AnyArray
from tco.performance.serving.draw_results import (
    ROUNDING,
    DrawBlock,
    Positions,
    draw_target_speed,
    quickest_first,
    trace_serving,
    wait_or_inf,
)
from tco.performance.serving.plans import ServingPlan, ServingWorkload

NEAR = 0.1  # share by which a plan may miss a promise and still be looked at
# shares by which a plan may lie below the best that is as quick for a user: in the base case, from
# which draws lie far off, and in one of several draws
BASE_FRONTIER, FRONTIER = 0.6, 0.2
# shares of the memory and of the longest wait of the base case: a draw may have more or less
MEMORY_SHARES, WAIT_SHARES = (1.1, 1.0, 0.9), (2.0, 1.0, 0.5, 0.25)
LOADED_FIGURES = (
    "output_tokens_per_s_per_chip",
    "tokens_per_s_per_user",
    "ttft_s",
    "needed",
    "memory",
)


class LoadedPlans(NamedTuple):
    """Figures of plans with their requests in flight, of shape (plans, draws)."""

    rate: AnyArray  # tokens/s per chip
    user: AnyArray  # tokens/s per user
    first: AnyArray  # seconds until the first token
    needed: AnyArray  # bytes of memory per chip
    memory: AnyArray  # bytes that a chip has
    wait: AnyArray  # longest time until the first token, s


def loaded_plans(
    kernel: ArithmeticKernel, positions: Positions, drawn: Mapping[str, AnyArray], plans: int
) -> LoadedPlans:
    """Return the figures of the plans of a kernel in draws of its inputs."""
    count = len(next(iter(drawn.values())))
    block = DrawBlock(kernel, positions, drawn, count)
    *figures, wait = block[(*LOADED_FIGURES, "longest wait")]
    return _figures_of_plans([*figures, wait_or_inf(wait)], (plans, count))


def _figures_of_plans(columns: Sequence[Any], shape: tuple[int, int]) -> LoadedPlans:
    return LoadedPlans(*(np.broadcast_to(column, shape) for column in columns))


def near_frontier_of_base_case(workload: ServingWorkload, plans: ServingPlan) -> ServingPlan:
    """Return the plans near the frontier in the base case.

    A program holds a number of every plan at each step, and those of all plans fill the memory.
    """
    _, targets = trace_serving(workload, plans)
    wait = wait_or_inf(targets["longest wait"])
    columns = [*(targets[figure] for figure in LOADED_FIGURES), wait]
    figures = _figures_of_plans(
        [np.reshape(column, (-1, 1)) for column in columns], (len(plans.flight), 1)
    )
    return plans.in_rows(near_frontier([figures], BASE_FRONTIER))


def near_frontier(blocks: Sequence[LoadedPlans], share: float) -> AnyArray:
    """Return the rows of plans near the best rate of those as quick for a user.

    Other draws slow all plans down or leave less memory. So the best plans of those that read
    sooner and need less memory count as well.

    Args:
        blocks: Figures of consecutive plans.
        share: Part by which a rate may lie below the best.

    """
    plans = LoadedPlans(*map(np.concatenate, zip(*blocks, strict=True)))
    quickest = np.argsort(-plans.user, axis=0, kind="stable")
    is_near = np.zeros(len(quickest), dtype=bool)
    for memory_share in MEMORY_SHARES:
        fits = plans.needed <= memory_share * plans.memory
        for wait_share in WAIT_SHARES:
            reads_in_time = plans.first <= wait_share * plans.wait
            rates = np.where(fits & reads_in_time, plans.rate, 0.0)
            rates = np.take_along_axis(rates, quickest, axis=0)
            best = np.maximum.accumulate(rates, axis=0)
            is_near[quickest[(rates > 0) & (rates >= (1 - share) * best)]] = True
    return np.flatnonzero(is_near)


def best_loaded_plans(block: DrawBlock, speed: float | None) -> tuple[AnyArray, AnyArray]:
    """Return the best plan of each draw at a speed, and whether it keeps all promises.

    Args:
        block: Draws of the inputs.
        speed: Tokens/s per user; None for the workload's own in each draw.

    """
    rate, time_per_token, user_speed, first_token, needed = block[
        "output_tokens_per_s_per_chip", "tpot_s", "tokens_per_s_per_user", "ttft_s", "needed"
    ]
    memory, wait, offline = block["memory", "longest wait", "offline"]
    is_quick = user_speed * (1 + ROUNDING) >= draw_target_speed(block, speed)
    meets = is_quick & (first_token <= wait_or_inf(wait))
    meets = (offline > 0) | meets  # nobody waits for offline work
    fits = needed <= memory
    return best_rows(rate, quickest_first(time_per_token, fits), fits & meets, block.count)


def rates_under_load(
    block: DrawBlock, plans: ServingPlan, speeds: Sequence[float | None]
) -> AnyArray:
    """Return the rate of each plan in the first draw, of shape (speeds, plans).

    The rate is zero for a plan that does not fit. Plans that differ in their requests in flight
    count where they keep the promises, or nearly do.
    """
    needed, memory, rate = block["needed", "memory", "output_tokens_per_s_per_chip"]
    fitting = np.where(needed <= memory, rate, 0.0)
    if plans.flight is None:
        return np.reshape(fitting, (1, -1))
    user_speed, first_token, wait = block["tokens_per_s_per_user", "ttft_s", "longest wait"]
    is_soon = first_token <= wait_or_inf(wait) * (1 + NEAR)
    rates = []
    for speed in speeds:
        is_quick = user_speed * (1 + NEAR) >= draw_target_speed(block, speed)
        rates.append(np.reshape(np.where(is_soon & is_quick, fitting, 0.0), (1, -1)))
    return np.concatenate(rates)
