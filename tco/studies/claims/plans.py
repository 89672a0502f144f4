"""Claims on what a system reaches: each the best plan of a scenario, or one plan's figure over another's.

Trainium's practice is a prior throughout, since no measurement of it is fitted; the notes of the ledger say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tco.chain.connections import links_of_system
from tco.chain.inputs import Inputs
from tco.chain.scenario import run
from tco.chain.workloads import server_of, serving_of, training_of
from tco.fabric.algorithms import cheapest
from tco.fabric.links import Links
from tco.foundation.values import Values
from tco.performance.chip.formats import computed_on
from tco.performance.chip.memory import cache_bytes
from tco.performance.serving.answer import ServingResult
from tco.performance.serving.phases import cached_numbers, decode, decode_rate
from tco.performance.serving.plans import PrefillPlan, attention_chips, layout_of
from tco.performance.serving.requests import request_of
from tco.performance.serving.search import choose_decode, decode_axes
from tco.performance.training.result import TrainingResult
from tco.studies.claims.context import Context, Underived, computes

LARGE, SMALL, TORUS = "trn3-nl72x2", "trn3-nl32x2", "trn3-nl32x2-3d"
FEW = {"cluster.chips": "576"}  # four worlds: the utilisation of thousands of chips is within a hundredth, their search takes seconds
DECADES = 12  # of message sizes from one byte on, which a bisection halves
HALVINGS = 50
Workload = TypeVar("Workload", ServingResult, TrainingResult)


def priced(inputs: Inputs, values: Values) -> float:
    """Return what a million output tokens cost by the best plans."""
    chain = run(inputs, values)
    if chain.serving.reason:
        raise Underived(chain.serving.reason)
    return float(chain.metrics["usd_per_million_output_tokens"])


def served(inputs: Inputs, values: Values) -> ServingResult:
    """Serve the scenario's workload by the best plans."""
    return feasible(serving_of(inputs, values, None))


def trained(inputs: Inputs, values: Values) -> TrainingResult:
    """Train the scenario's model by the best plan."""
    return feasible(training_of(inputs, values, None))


def feasible(found: Workload) -> Workload:
    """Return what a workload reaches; one without a plan raises `Underived` with the reason."""
    if found.reason:
        raise Underived(found.reason)
    return found


# ---------------------------------------------------------------- training
def utilisation(c: Context, model: str) -> float:
    """Return the utilisation the best plan reaches in training a model on Trainium3, in BF16."""
    return float(c.walked("llama-3.1-405b-training-trn3-nl72x2", {"workload.model": model, **FEW}, trained).rates["mfu"])


@computes("C171", "%")
def compiled_dense(c: Context) -> float:
    """Model FLOP/s over the peak; the compiler is not told from kernels written by hand."""
    return utilisation(c, "llama-3.1-405b")


@computes("C172", "%")
def compiled_sparse(c: Context) -> float:
    """Model FLOP/s over the peak; the compiler is not told from kernels written by hand."""
    return utilisation(c, "deepseek-v3")


@computes("C173", "%")
def hand_written_dense(c: Context) -> float:
    """The same best plan, since the model knows no compiler."""
    return utilisation(c, "llama-3.1-405b")


@computes("C174", "%")
def hand_written_sparse(c: Context) -> float:
    """The same best plan, since the model knows no compiler."""
    return utilisation(c, "deepseek-v3")


# ---------------------------------------------------------------- serving
def gain(c: Context, one: str, other: str, **settings: str) -> float:
    """Return the output tokens a dollar buys on one system over another."""
    found, against = (c.walked(system, {f"workload.{name}": text for name, text in settings.items()}, priced) for system in (one, other))
    return against / found


def sparse(c: Context, one: str, other: str, model: str) -> float:
    """Return the same for a model of which a token passes 8 of 512 experts."""
    found, against = (c.walked(system, {"workload": "sparse-decode", "workload.model": model}, priced) for system in (one, other))
    return against / found


@computes("C186")
def worlds_enough(c: Context) -> float:
    """The lesser of what the larger world gains with 5 T parameters and what it loses with 3 T."""
    return min(sparse(c, LARGE, SMALL, "sparse-5t"), 1 / sparse(c, LARGE, SMALL, "sparse-3t"))


@computes("P006")
def switched_for_experts(c: Context) -> float:
    """Tokens a dollar of the switched world over the torus of as many chips, with 3 T parameters."""
    return sparse(c, SMALL, TORUS, "sparse-3t")


@computes("P007")
def switched_for_dense(c: Context) -> float:
    """The same with a dense model of 405 B, at 20 tokens a second and user."""
    return gain(c, SMALL, TORUS, model="llama-3.1-405b", interactivity="20 token/s")


def at_speed(c: Context) -> str:
    """Return the speed a user gets that the claim is asked at."""
    return f"{c.given('speed'):g} token/s"


def open_model(c: Context, metric: str) -> float:
    """Return a metric of the larger Trainium3 world over Trainium2's, both serving an open mixture of experts."""
    settings = {"workload.model": "gpt-oss-120b", "workload.interactivity": at_speed(c)}
    new, old = (c.walked(system, settings, served_and_rated) for system in (LARGE, "trn2-nl32x2-3d"))
    return new[metric] / old[metric]


def served_and_rated(inputs: Inputs, values: Values) -> dict[str, float]:
    """Return the metrics of a scenario that a plan serves."""
    chain = run(inputs, values)
    if chain.serving.reason:
        raise Underived(chain.serving.reason)
    return {name: float(value) for name, value in chain.metrics.items() if value is not None}


@computes("C032")
def faster_than_trainium2(c: Context) -> float:
    """Output tokens a second and chip."""
    return open_model(c, "output_tokens_per_s_per_chip")


@computes("C036")
def tokens_a_megawatt(c: Context) -> float:
    """Output tokens a second and megawatt of the site."""
    return open_model(c, "tokens_per_s_per_facility_mw")


@computes("C128")
def wide_against_narrow(c: Context) -> float:
    """Cost of a token on servers of eight H100 over that on GB200, DeepSeek-V3."""
    return gain(c, "gb200-nvl72", "h100-hgx8", interactivity=at_speed(c))


def pools(c: Context, system: str, **settings: str) -> tuple[float, float]:
    """Return the rates of the pools that serve the headline's workload: input tokens of one that prefills, output tokens of one that decodes."""
    found = c.walked(system, settings, served)
    read, made = found.rates["input_tokens_per_s_per_chip"], found.rates["output_tokens_per_s_per_chip"]
    return float(read / found.prefill_share), float(made / (1 - found.prefill_share))


@computes("C185", "GB/s")
def cache_transfer(c: Context) -> float:
    """The cache of the prompts a chip reads by its best plan, in the workload of the headline."""
    return pools(c, LARGE)[0] * c.walked(LARGE, {}, cache_of_a_token)


def cache_of_a_token(inputs: Inputs, values: Values) -> float:
    """Return the bytes a sequence of a workload caches for each token."""
    machine, model = server_of(inputs, values)
    return float(cache_bytes(1, 1, *cached_numbers(model, 1), machine.cache_size))


@computes("P001")
def prefill_gain(c: Context) -> float:
    """Prefill rates of the larger world over the smaller."""
    return pools(c, LARGE)[0] / pools(c, SMALL)[0]


@computes("P003")
def four_bit_peak(c: Context) -> float:
    """Peaks the two formats are computed at."""
    inputs, values = c.world(LARGE, {})
    four, eight = (computed_on(values, inputs.system.chip, precision, "workload.precision").peak for precision in ("mxfp4", "mxfp8"))
    return c.chip(LARGE, four) / c.chip(LARGE, eight)


@computes("P004")
def four_bit_decode(c: Context) -> float:
    """Decode rates with weights of four bits over eight, both computed in MXFP8."""
    four, eight = (pools(c, LARGE, **{"workload.precision": precision})[1] for precision in ("w4a8", "mxfp8"))
    return four / eight


# ---------------------------------------------------------------- where experts lie
def best_decode(inputs: Inputs, values: Values, keep: Callable[[PrefillPlan, Links], Any]) -> float:
    """Return the decode rate of the best plan among those to keep."""
    machine, model = server_of(inputs, values)
    request, links = request_of(values), machine.links
    axes = decode_axes(machine, model, request)
    kept = PrefillPlan(*(axis[keep(axes, links)][:, None] for axis in axes))
    if not kept.chips.size:
        raise Underived("no plan lays its experts so")
    choice = choose_decode(machine, model, request, values["workload.interactivity"], kept)
    if choice.plan is None:
        raise Underived(f"no decode plan: {choice.reason}")
    made = decode(machine, model, choice.plan, request)
    return float(decode_rate(choice.plan.sequences, attention_chips(choice.plan), made.per_token))


def expert_chips(plan: PrefillPlan, links: Links) -> Any:
    """Return the chips the experts of a plan are spread over."""
    lies = layout_of(plan, links)
    return lies.stage / (lies.replicas * lies.copies)


def in_a_rack(inputs: Inputs, values: Values) -> float:
    """Decode with the experts in one rack, alone or with tensor or context parallel across."""
    return best_decode(inputs, values, lambda plan, links: (expert_chips(plan, links) <= links.domain) & (plan.chips <= links.world))


def over_both_racks(inputs: Inputs, values: Values) -> float:
    """Decode with the experts flat over both racks."""
    return best_decode(inputs, values, lambda plan, links: (expert_chips(plan, links) > links.domain) & (plan.chips <= links.world))


@computes("P005")
def experts_in_a_rack(c: Context) -> float:
    """Decode rates of the best plans, experts in a rack over experts in both."""
    return c.walked(LARGE, {}, in_a_rack) / c.walked(LARGE, {}, over_both_racks)


# ---------------------------------------------------------------- collectives
@computes("P002", "kB")
def torus_turns(c: Context) -> float:
    """The buffer of a rank whose all-to-all over the torus takes twice its latency: from there most of the time grows with the message."""
    inputs, values = c.world(TORUS, {})
    links, ranks = links_of_system(inputs, values), inputs.system.chips

    def time(size: float) -> float:
        return float(cheapest(links, "all-to-all", ranks, size))

    low, high = 0.0, float(DECADES)  # powers of ten
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if time(10**middle) < 2 * time(0.0) else (low, middle)
    return 10**low
