"""A serving engine in a closed loop: some requests in flight, each new one sent when one ends.

Decoding sequences wait for the prompts of the others; the batch that runs, the time per token and the rate settle together in a few
rounds. In disaggregated serving prompts run on a pool of their own, whose rate is a second limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula
from tco.foundation.units import PerSecond, Pure, Second


@formula(unit="s", source="tco-calibration")
def engine_step(forward: Second, draft_share: Pure, host: Second, accepted: Pure) -> Any:
    """Time per token of an engine's step: (t_forward (1 + draft) + t_host) / accepted."""
    return (forward * (1 + draft_share) + host) / accepted


@formula(unit="s", source="tco-calibration")
def waiting_for_prompts(running: Pure, prefill_time: Second, aggregated: Pure) -> Any:
    """Prefill work of the other requests that one request meets: (B - 1) t_prefill, nothing where prompts have their own pool."""
    return aggregated * np.maximum(running - 1, 0) * prefill_time


@formula(unit="s", source="tco-calibration")
def time_per_output_token(step: Second, waiting: Second, interference: Pure, output_tokens: Pure) -> Any:
    """Time per output token: step + kappa waiting / output."""
    return step + interference * waiting / output_tokens


@formula(unit="s", source="tco-calibration")
def first_token_time(first: Second, step: Second, waiting: Second, interference: Pure) -> Any:
    """Time to first token: first prefill + step / 2 + (1 - kappa) waiting."""
    return first + step / 2 + (1 - interference) * waiting


@formula(unit="1/s", source="little1961")
def request_rate(running: Pure, first: Second, output_tokens: Pure, per_token: Second, pool: Second) -> Any:
    """Requests per second of an engine: 1 / max(cycle / B, pool), cycle = TTFT + (O - 1) TPOT, the two limits joined by a 4-norm."""
    cycle = (first + (output_tokens - 1) * per_token) / running
    return 1 / (cycle**4 + pool**4) ** 0.25


@formula(unit="", source="little1961")
def decoding_sequences(rate: PerSecond, output_tokens: Pure, per_token: Second) -> Any:
    """Sequences that decode at a time: rate (O - 1) TPOT."""
    return rate * (output_tokens - 1) * per_token


@formula(unit="", source="tco-calibration")
def settled_batch(batch: Pure, target: Pure, most: Pure) -> Any:
    """Next guess of the running batch, half way in logarithm: sqrt(B min(max(target, 1), most))."""
    return np.sqrt(batch * np.minimum(np.maximum(target, 1), most))


@formula(unit="", source="tco-calibration")
def maturity(overhead: Pure, decline: Pure, months: Pure) -> Any:
    """Overhead of a young port: 1 + y exp(-r m), m months since November 2025, at most ten."""
    return 1 + overhead * np.exp(-decline * np.maximum(np.minimum(months, 10), 0))
