"""Results of a compiled serving program in draws of its inputs, and the targets they must meet.

The program holds all plans at once: those that decode on its first axis, those that read prompts
on its second. The batch of a decode instance is an input of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tco.compile.execute import ScheduleRunner, kernel_outputs, select_values
from tco.compile.lower import BATCH, BATCH_PATH, ArithmeticKernel
from tco.core.types import AnyArray, JsonObject
from tco.performance.serving import passes
from tco.performance.serving import result as served
from tco.performance.serving.batches import SLOWEST
from tco.performance.serving.plans import ServingPlan, ServingWorkload, attention_chips
from tco.performance.serving.record import ServingResult

Positions = Mapping[str, int]  # of results in a kernel, by their names
ROUNDING = 1e-9  # share of a target by which rounding may miss it
LOADED_RATES = ("output_tokens_per_s_per_chip", "tokens_per_s_per_user", "ttft_s", "tpot_s")


def trace_serving(
    workload: ServingWorkload, plans: ServingPlan
) -> tuple[ServingResult, JsonObject]:
    """Return a serving workload on plans, and the figures that a choice among them needs."""
    serving_result = served.evaluate_serving_plan(workload, plans)
    targets = {
        "interactivity": workload.values["workload.interactivity"],
        "longest wait": workload.values["workload.ttft"],
        "memory": workload.machine.memory,
    }
    if plans.engines is not None:
        targets["offline"] = workload.values["workload.offline"]
        targets["needed"] = serving_result.needed
        return serving_result, targets | {
            rate_name: serving_result.rates[rate_name] for rate_name in LOADED_RATES
        }
    decode: Any = serving_result.decode
    prefill: Any = serving_result.prefill
    tokens = passes.decode_rate(
        plans.decode.sequences, attention_chips(plans.decode), decode.per_token
    )
    prompts = passes.prefill_rate(
        workload.request.prompt, attention_chips(plans.prefill), prefill.per_prompt
    )
    return serving_result, targets | {
        "token": decode.per_token,
        "step": decode.time,
        "tokens": tokens,
        "held": decode.memory,
        "prompt": prefill.until_read,
        "prompts": prompts,
        "prompts held": prefill.memory,
    }


class DrawBlock:
    """Results of a kernel in a block of draws, each computed when it is first read.

    Args:
        kernel: Compiled formulas.
        positions: Positions of the kernel's results by name.
        drawn: Inputs by path, of shape (draws,).
        count: Number of draws.

    """

    def __init__(
        self,
        kernel: ArithmeticKernel,
        positions: Positions,
        drawn: Mapping[str, AnyArray],
        count: int,
    ) -> None:
        self.kernel, self.positions, self.count = kernel, positions, count
        self.values = kernel.values(drawn)

    def compute(self, *positions: int) -> None:
        """Compute the results at some positions in every draw, and keep them."""
        missing = [position for position in dict.fromkeys(positions) if position not in self.values]
        outputs = kernel_outputs(self.kernel, missing, self.values, self.count)
        self.values.update(zip(missing, outputs, strict=True))

    def __getitem__(self, result_names: tuple[str, ...]) -> list[Any]:
        """Return results that do not depend on the batch, by name."""
        positions = [self.positions[result_name] for result_name in result_names]
        self.compute(*positions)
        return [self.values[position] for position in positions]


class BatchResponse:
    """A result as a function of the batch.

    Args:
        block: Draws of the inputs.
        result_name: Name of the result.
        plan_rows: A slice of the plans, in all draws; or the plan of each pair of a plan and a
            draw.
        draws: Draw of each pair; None pairs the plans with the draws in turn.

    """

    def __init__(
        self, block: DrawBlock, result_name: str, plan_rows: Any, draws: AnyArray | None = None
    ) -> None:
        kernel = block.kernel
        position, self.batch_position = block.positions[result_name], kernel.inputs[BATCH_PATH]
        before_batch = kernel.before(BATCH, [position])
        block.compute(*(border for border in before_batch if border != self.batch_position))
        schedule = kernel.schedule([position], [*block.values, self.batch_position])
        leaves = [leaf for leaf in schedule.leaves if leaf != self.batch_position]
        self.run = ScheduleRunner(
            schedule,
            select_values(kernel, block.values, leaves, plan_rows, draws),
            block.count if draws is None else len(draws),
        )

    def __call__(self, batch: AnyArray, pair_indices: AnyArray | None = None) -> AnyArray:
        """Return the result at a batch.

        Args:
            batch: Batch of each pair; of several rows, the result is computed row by row.
            pair_indices: Pairs that are computed; None for all.

        """
        (batch_result,) = self.run(pair_indices, {self.batch_position: batch})
        return np.broadcast_to(batch_result, batch.shape)


# ---------------------------------------------------------------- targets
def draw_target_speed(block: DrawBlock, speed: float | None) -> Any:
    """Return a speed in tokens/s per user; None stands for the workload's own in each draw."""
    return block[("interactivity",)][0] if speed is None else speed


def allowed_token_time(block: DrawBlock, speed: float | None) -> AnyArray:
    """Return the longest time of a token at a speed, s, of shape (draws,)."""
    slowest_speed = np.maximum(draw_target_speed(block, speed), SLOWEST)
    allowed: AnyArray = np.broadcast_to(1 / slowest_speed * (1 + ROUNDING), block.count)
    return allowed


def wait_or_inf(wait: Any) -> Any:
    """Return the longest wait for the first token, s; a wait of zero sets no limit."""
    return np.where(wait > 0, wait, np.inf)


def quickest_first(time: AnyArray, fits: AnyArray) -> AnyArray:
    """Return a score that is greatest for the quickest plan that fits in memory."""
    return np.where(fits, -time, -np.inf)
