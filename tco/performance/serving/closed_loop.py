"""A serving engine in a closed loop: some requests in flight, each new one sent when one ends.

Decoding sequences wait for the prompts of the others; the batch that runs, the time per token and the rate settle together. Prompts
run on the engine's own chips, between the steps, or on a pool of their own, whose rate is a second limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula, maximum, minimum
from tco.foundation.units import Byte, PerSecond, Pure, Second, TokenPerChip


@formula(unit="", source="little1961")
def requests_of_engine(concurrency: Pure, engines: Pure) -> Any:
    """Requests in flight of one of some equal engines: C / n."""
    return concurrency / engines


@formula(unit="", source="tco-model")
def sequences_held(memory: Byte, empty: Byte, one: Byte) -> Any:
    """Sequences whose caches a chip's memory holds beside the weights: max(M - M_0, 0) / m."""
    return maximum(memory - empty, 0) / one


@formula(unit="", source="tco-model")
def engine_room(held: Pure, groups: Pure) -> Any:
    """Sequences an engine's memory holds, at least one a group: g max(n, 1)."""
    return groups * maximum(held, 1)


@formula(unit="", source="little1961")
def requests_of_room(room: Pure, engines: Pure) -> Any:
    """Requests in flight that fill some equal engines: g n."""
    return room * engines


@formula(unit="", source="tco-model")
def running_sequences(flight: Pure, room: Pure) -> Any:
    """Sequences an engine runs at a time, those beyond what its memory holds waiting before it: min(C, R)."""
    return minimum(flight, room)


@formula(unit="", source="tco-model")
def group_sequences(running: Pure, groups: Pure) -> Any:
    """Sequences of an attention group in use: max(B / g, 1)."""
    return maximum(running / groups, 1)


@formula(unit="", source="tco-calibration")
def prompts_together(budget: Pure, tokens: Pure, flight: Pure, groups: Pure, bunching: Pure) -> Any:
    """Prompts of a group in one pass: what its budget of tokens holds, no more than wait: min(b / T, 1 + x (max(C / g, 1) - 1))."""
    return minimum(budget / tokens, 1 + bunching * (maximum(flight / groups, 1) - 1))


@formula(unit="", source="tco-model")
def groups_in_use(groups: Pure, flight: Pure) -> Any:
    """Attention groups that have a prompt to read: min(g, max(C, 1))."""
    return minimum(groups, maximum(flight, 1))


@formula(unit="s", source="tco-calibration")
def engine_prompt_time(batch_time: Second, filled: Pure) -> Any:
    """Engine time of one prompt where each attention group reads one and some groups stand idle: t = t_batch / filled."""
    return batch_time / filled


@formula(unit="s", source="tco-calibration")
def first_prompt_time(batch_time: Second, busy: Pure, groups: Pure, start: Second) -> Any:
    """Time of a request's own prompt and what lies outside the engine: t_batch x share of groups with a prompt + start."""
    return batch_time * busy / groups + start


@formula(unit="s", source="tco-calibration")
def waiting_for_prompts(running: Pure, prefill_time: Second) -> Any:
    """Prefill work of the other requests that one request meets: (B - 1) t_prefill."""
    return maximum(running - 1, 0) * prefill_time


@formula(unit="s", source="tco-calibration")
def time_per_output_token(step: Second, waiting: Second, interference: Pure, output_tokens: Pure) -> Any:
    """Time per output token: step + kappa waiting / output."""
    return step + interference * waiting / output_tokens


@formula(unit="s", source="tco-calibration")
def first_token_time(first: Second, step: Second, waiting: Second, interference: Pure) -> Any:
    """Time to first token: first prefill + step / 2 + (1 - kappa) waiting."""
    return first + step / 2 + (1 - interference) * waiting


@formula(unit="1/s", source="little1961")
def request_rate(running: Pure, first: Second, output_tokens: Pure, per_token: Second) -> Any:
    """Requests per second of an engine: B / (TTFT + (O - 1) TPOT)."""
    return running / (first + (output_tokens - 1) * per_token)


@formula(unit="s", source="tco-model")
def pool_time(prompt_time: Second, engines: Pure, readers: Pure) -> Any:
    """Time between the prompts that a pool of readers hands to each engine: t n / n_p."""
    return prompt_time * engines / readers


@formula(unit="1/s", source="little1961")
def fed_request_rate(rate: PerSecond, pool: Second, sharpness: Pure) -> Any:
    """Rate of an engine that a pool feeds, both limits joined smoothly: (r^-p + t^p)^(-1/p)."""
    fed = rate * pool
    return rate / (maximum(fed, 1) * (1 + (minimum(fed, 1) / maximum(fed, 1)) ** sharpness) ** (1 / sharpness))


@formula(unit="", source="little1961")
def decoding_sequences(rate: PerSecond, output_tokens: Pure, per_token: Second) -> Any:
    """Sequences that decode at a time: rate (O - 1) TPOT."""
    return rate * (output_tokens - 1) * per_token


@formula(unit="", source="tco-calibration")
def settled_batch(batch: Pure, target: Pure, most: Pure) -> Any:
    """Next guess of the running batch, half way in logarithm: sqrt(B min(max(target, 1), most))."""
    return np.sqrt(batch * minimum(maximum(target, 1), most))


@formula(unit="s", source="little1961")
def wait_before_engine(flight: Pure, running: Pure, rate: PerSecond) -> Any:
    """Time a request waits for a place in an engine: max(C - B, 0) / r."""
    return maximum(flight - running, 0) / rate


@formula(unit="token/s/chip", source="little1961")
def closed_loop_rate(rate: PerSecond, output_tokens: Pure, chips: Pure, steady: Pure, one_token: TokenPerChip = 1) -> Any:
    """Output tokens per second and chip of a closed loop as measured over its run: s r O / N."""
    return steady * rate * output_tokens * one_token / chips


@formula(unit="", source="tco-model")
def time_reading(rate: PerSecond, prompt_time: Second) -> Any:
    """Share of its time an engine reads prompts: r t, at most one."""
    return minimum(rate * prompt_time, 1)


@formula(unit="", source="tco-model")
def chips_apart(chips: Pure, engines: Pure, reading: Pure, readers: Pure) -> Any:
    """Chips for each engine that decodes, those that read for it among them: N + N_p n_p / n."""
    return chips + reading * readers / engines


@formula(unit="", source="tco-model")
def share_reading(reading: Pure, readers: Pure, engines: Pure, chips: Pure) -> Any:
    """Share of the chips that read prompts: N_p n_p / (n N_all)."""
    return reading * readers / engines / chips
