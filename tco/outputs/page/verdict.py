"""The verdict: who does the most for a dollar, by how much, and how sure that is, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tco.chain.result import Result
from tco.outputs.comparison import is_one_workload
from tco.outputs.figures.words import distinct
from tco.outputs.ranges import between, percent
from tco.outputs.table import significant
from tco.studies.sureness import Sureness

TOKENS, TRAINING, HOUR = "usd_per_million_output_tokens", "train_usd_per_trillion_tokens", "tco_usd_per_chip_hour"
RATIO = "perf_per_tco_vs_baseline"
DIGITS = 3


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


def verdict_of(results: Sequence[Result], baseline: str, sure: Sequence[Sureness]) -> str:
    """Return the sentence."""
    cost, names = cost_of(results), [result.scenario for result in results]
    called = dict(zip(names, distinct([result.title for result in results], names), strict=True))
    found = [(result, one) for result, one in zip(results, sure, strict=True) if result.metrics[cost.metric] is not None]
    if not found:
        return "No scenario has a price here: the notes say why."
    if not is_one_workload([result for result, _ in found]):
        return "Several workloads stand side by side here: what they cost is not held against each other."
    ranked = sorted(found, key=lambda pair: float(pair[0].metrics[cost.metric]))
    (best, its), *others = ranked
    base = next((result for result, _ in found if result.scenario == baseline), None)
    if not others or base is None or cost.metric != TOKENS:
        return alone(called[best.scenario], best, its, cost, bool(others))
    lead = f"{called[best.scenario]} does the most for a dollar"
    if best is not base:
        return f"{lead}: about {times(best)} times the output tokens of {called[baseline]}{spread(its)}{chance(its)}."
    near, its = others[0]
    return f"{lead}; next is {called[near.scenario]} with about {times(near)} times its output tokens{spread(its)}{chance(its)}."


def times(result: Result) -> str:
    """Return the performance per cost of a result against the baseline."""
    return significant(result.metrics[RATIO], DIGITS)


def spread(one: Sureness) -> str:
    """Return the range of the performance per cost, if it has one."""
    text = between(one, RATIO, 1.0)
    return "" if text == "-" else f" (P10 to P90: {text})"


def chance(one: Sureness) -> str:
    """Return how likely a scenario is better than the baseline, if it is known."""
    return "" if one.probability is None else f"; it comes out ahead in {percent(one.probability)} of the draws that both meet"


def alone(name: str, result: Result, one: Sureness, cost: Cost, others: bool) -> str:
    """Return what the best of scenarios without a common measure, or the only one, comes to."""
    value = significant(result.metrics[cost.metric] / cost.size, DIGITS)
    text = between(one, cost.metric, cost.size)
    some = "" if text == "-" else f" (P10 to P90: {text})"
    met = f"; the target is met in {percent(one.meets)} of the draws" if one.meets is not None and cost.metric == TOKENS else ""
    where = f"least on {name}: about {value} {cost.unit}" if others else f"about {value} {cost.unit} on {name}"
    return f"{cost.words} {where}{some}{met}."
