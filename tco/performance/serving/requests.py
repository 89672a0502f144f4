"""What a serving workload asks of the engine: lengths, prompts found in a prefix cache, drafted tokens, caches kept with the host.

What a workload leaves at a plain zero changes nothing, so its formulas are not called; in a trace, and among many values, they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.foundation.formula import ceil_ratio, formula, maximum, minimum
from tco.foundation.trace import plain
from tco.foundation.units import Byte, BytePerSecond, Pure, Second
from tco.foundation.values import Readable


class Request(NamedTuple):
    """The workload's inputs; None where it does without."""

    prompt: Any
    answer: Any
    cache_hit: Any = None
    drafts: Any = None
    acceptance: Any = None
    decline: Any = None
    draft_cost: Any = None
    offload: Any = None
    host_link: Any = None
    offline: bool = False  # more requests wait than memory holds


def request_of(values: Readable) -> Request:
    """Return what the workload of a scenario asks for."""
    made = Request(values["workload.input_tokens"], values["workload.output_tokens"])
    made = made._replace(cache_hit=values.unless_zero("workload.cache_hit"))
    if (drafts := values.unless_zero("workload.draft_tokens")) is not None:
        chances = (values[f"workload.{name}"] for name in ("spec_acceptance", "spec_decline", "draft_cost"))
        made = made._replace(drafts=drafts, **dict(zip(("acceptance", "decline", "draft_cost"), chances, strict=True)))
    if (offload := values.unless_zero("workload.kv_offload")) is not None:
        made = made._replace(offload=offload, host_link=values["performance.training.host_link_bandwidth"])
    return made._replace(offline=values.exists("workload.offline"))


def notes_on_request(request: Request) -> list[str]:
    """Say what a workload's inputs leave out."""
    return [] if not np.any(plain(request.cache_hit)) else ["workload.cache_hit: the memory that keeps the prefixes is not charged"]


@formula(unit="", source="tco-model")
def fresh_tokens(input_tokens: Pure, cache_hit: Pure) -> Any:
    """Prompt tokens that no prefix cache holds: I (1 - h), at least the last one."""
    return maximum(input_tokens * (1 - cache_hit), 1)


@formula(unit="", source="aws-neuron-buckets")
def padded_prompt(tokens: Pure, bucket: Pure) -> Any:
    """Tokens that a program compiled for buckets of lengths computes: ceil(T / b) b."""
    return ceil_ratio(tokens, bucket) * bucket


@formula(unit="", source="tco-model")
def keys_behind_prefix(input_tokens: Pure, fresh: Pure) -> Any:
    """Keys a fresh token sees on average under the causal mask, the prefix before it: L = I - fresh / 2."""
    return input_tokens - fresh / 2


@formula(unit="", source="tco-model")
def tokens_of_a_pass(fresh: Pure, prompts: Pure) -> Any:
    """Tokens of an attention group in a pass over n prompts, or a part of one: T n."""
    return fresh * prompts


@formula(unit="", source="tco-model")
def prompts_held(prompts: Pure) -> Any:
    """Prompts whose caches a group holds while it reads n of them, or a part of one: max(n, 1)."""
    return maximum(prompts, 1)


@formula(unit="s", source="tco-model")
def prompt_time(time: Second, prompts: Pure) -> Any:
    """Time for one prompt where a pass takes n of them: t / n."""
    return time / prompts


@formula(unit="", source="leviathan2023")
def accepted_tokens(draft_tokens: Pure, acceptance: Pure, decline: Pure = 1) -> Any:
    """Tokens a step of speculative decoding yields: 1 + a (1 - b^k) / (1 - b), its first draft accepted with a chance a, further ones with b = a d.

    Later drafts rest on drafts, which the model that makes them was not trained to read; at d = 1 it is (1 - a^(k + 1)) / (1 - a).
    """
    refused = minimum(maximum(1 - acceptance * decline, 1e-300), 1 - 1e-16)
    return 1 - acceptance * np.expm1(draft_tokens * np.log1p(-refused)) / refused


def tokens_of_drafts(values: Readable, drafts: Any) -> Any:
    """Return the tokens a step yields with so many drafts, at the chances that a workload states."""
    return accepted_tokens(drafts, values["workload.spec_acceptance"], values["workload.spec_decline"])


@formula(unit="", source="leviathan2023")
def verified_tokens(sequences: Pure, draft_tokens: Pure) -> Any:
    """Tokens a step computes: the drafts of every sequence and one more, B (k + 1)."""
    return sequences * (draft_tokens + 1)


@formula(unit="s", source="leviathan2023")
def drafting_time(step: Second, draft_tokens: Pure, draft_cost: Pure) -> Any:
    """Time to draft before each step, one token after another: k c t_step."""
    return draft_tokens * draft_cost * step


@formula(unit="s", source="leviathan2023")
def time_per_token(step: Second, accepted: Pure) -> Any:
    """Time per token where a step yields several: t_step / accepted."""
    return step / accepted


@formula(unit="byte", source="tco-model")
def cache_with_host(cache: Byte, offload: Pure) -> Any:
    """Cache of one chip that host memory holds, and that every step brings in: C f."""
    return cache * offload


@formula(unit="byte", source="tco-model")
def cache_in_hbm(cache: Byte, offload: Pure) -> Any:
    """Cache of one chip that stays in its HBM: C (1 - f)."""
    return cache * (1 - offload)


@formula(unit="s", source="tco-model")
def exposed_host_transfer(moved: Byte, host_link: BytePerSecond, step: Second) -> Any:
    """Time by which a step waits for the cache from host memory, all of it but the step itself hidden: max(Q / B - t_step, 0)."""
    return maximum(moved / host_link - step, 0)
