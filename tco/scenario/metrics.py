"""The metrics of a result in the order of tables, and the formulas that join cost and rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.catalog.system_tree import System
from tco.core.errors import DataError, nearest
from tco.core.formula import formula, somewhere, total
from tco.core.inputs import Values
from tco.core.trace import scope, untraced_value
from tco.core.types import JsonMapping, JsonObject, Quantity
from tco.core.units import (
    BytePerSecond,
    BytePerTerabyte,
    Chip,
    FLOPPerPetaflop,
    FLOPPerSecond,
    Pure,
    Second,
    SecondPerHour,
    Token,
    TokenPerMillion,
    TokenPerSecond,
    TokenPerSecondPerChip,
    TokenPerTrillion,
    USDPerChipHour,
    USDPerMillionTokens,
    USDPerTrillionTokens,
    WattPerChip,
    WattPerMegawatt,
)
from tco.cost.ledger import Cost, power_per_chip
from tco.cost.site import facility_power, grid_power, price_per_grid_power, sellable_share
from tco.performance.serving.plans import cached_share
from tco.performance.serving.record import ServingResult
from tco.scenario.workload_sizing import TRAIN_TOKENS, time_to_train

if TYPE_CHECKING:
    from tco.performance.training.result import TrainingResult


class Metric(NamedTuple):
    """A metric: its unit (the suffix of its name says the same) and what it is."""

    unit: str
    label: str


SITE_WORDS = ("usd", "tco", "facility")  # in the names of metrics in dollars or in site power
METRICS: dict[str, Metric] = {
    "chips": Metric("chip", "chips in one scale-up domain"),
    "racks": Metric("rack", "racks of one scale-up domain"),
    "capex_usd": Metric("USD", "capex of one scale-up domain before rebates"),
    "capex_usd_per_chip": Metric("USD/chip", "capex per chip before rebates"),
    "rebate_usd_per_chip": Metric("USD/chip", "supplier rebates per chip"),
    "network_usd_per_chip": Metric(
        "USD/chip",
        "network beyond the rack per chip: cards, ToR switches, cables, front end and what the "
        "cluster shares",
    ),
    "it_power_w_per_chip": Metric("W/chip", "provisioned IT power per chip"),
    "facility_power_w_per_chip": Metric("W/chip", "power of the site per chip"),
    "peak_facility_power_w_per_chip": Metric(
        "W/chip", "power of the site per chip at the worst hour"
    ),
    "usd_per_facility_w": Metric(
        "USD/W",
        "capex per watt of the grid at the worst hour: racks, network and hall, less rebates",
    ),
    "energy_usd_per_chip_hour": Metric("USD/chip/h", "energy per chip-hour"),
    "tco_gross_usd_per_chip_hour": Metric("USD/chip/h", "cost per chip-hour before rebates"),
    "tco_usd_per_chip_hour": Metric("USD/chip/h", "cost per installed chip and calendar hour"),
    "tco_usd_per_used_chip_hour": Metric("USD/chip/h", "cost per used chip-hour"),
    "peak_bf16_flop_per_s": Metric("FLOP/s", "dense BF16 peak per chip"),
    "peak_fp8_flop_per_s": Metric("FLOP/s", "dense FP8 peak per chip"),
    "peak_fp4_flop_per_s": Metric("FLOP/s", "dense FP4 peak per chip"),
    "hbm_bytes": Metric("byte", "HBM per chip"),
    "hbm_byte_per_s": Metric("byte/s", "HBM bandwidth per chip"),
    "scale_up_byte_per_s": Metric("byte/s", "scale-up bandwidth per chip and direction"),
    "scale_out_byte_per_s": Metric("byte/s", "scale-out bandwidth per chip and direction"),
    "usd_per_peak_fp8_pflop_hour": Metric(
        "USD/chip/h/(PFLOP/s)", "cost of a dense FP8 PFLOP/s for an hour"
    ),
    "usd_per_hbm_tb_per_s_hour": Metric("USD/chip/h/(TB/s)", "cost of a TB/s of HBM for an hour"),
    "output_tokens_per_s_per_chip": Metric("token/s/chip", "output tokens/s per chip"),
    "input_tokens_per_s_per_chip": Metric("token/s/chip", "input tokens/s per chip"),
    "tokens_per_s_per_user": Metric("token/s", "tokens per second each user gets"),
    "ttft_s": Metric("s", "time to first token, without queueing"),
    "tpot_s": Metric("s", "time per output token"),
    "step_s": Metric("s", "time of a training step"),
    "mfu": Metric("", "model FLOPs utilisation"),
    "train_tokens_per_s": Metric("token/s", "tokens per second of the training job"),
    "exposed_communication": Metric("", "share of a training step that waits for links"),
    "pipeline_bubble": Metric("", "pipeline bubble, share of a training step"),
    "host_floor": Metric("", "share of a training step that waits for the host's launches"),
    "usd_per_million_output_tokens": Metric("USD/Mtoken", "cost per million output tokens"),
    "usd_per_million_input_tokens": Metric("USD/Mtoken", "prefill's cost per million input tokens"),
    "usd_per_million_tokens": Metric("USD/Mtoken", "cost per million tokens, in and out"),
    "rate_card_input_usd_per_million": Metric(
        "USD/Mtoken", "price of a million input tokens that no cache holds, of a rate card at cost"
    ),
    "rate_card_cached_input_usd_per_million": Metric(
        "USD/Mtoken", "price of a million input tokens from a prefix cache, of the same rate card"
    ),
    "rate_card_output_usd_per_million": Metric(
        "USD/Mtoken", "price of a million output tokens, of the same rate card"
    ),
    "tokens_per_s_per_facility_mw": Metric(
        "token/s/MW", "output tokens per second and MW of site power"
    ),
    "train_usd_per_trillion_tokens": Metric("USD/Ttoken", "cost of training on a trillion tokens"),
    "train_time_s": Metric("s", "time of training on all tokens of the job, with stops"),
    "train_usd": Metric("USD", "cost of training on all tokens of the job"),
    "grid_co2e_g_per_chip_hour": Metric("g/chip/h", "greenhouse gas of the grid per chip-hour"),
    "embodied_co2e_g_per_chip_hour": Metric(
        "g/chip/h",
        "greenhouse gas of making a chip with its share of the rack, per hour of its life",
    ),
    "co2e_g_per_million_output_tokens": Metric(
        "g/Mtoken", "greenhouse gas of both per million output tokens"
    ),
    "goodput": Metric("", "share of the hours paid for that failures leave to make progress"),
    "waiting_usd_per_chip": Metric(
        "USD/chip",
        "cost of waiting for it from the date on: empty hall, rented chips, lost margin",
    ),
    "perf_per_tco_vs_baseline": Metric("", "performance per TCO over the baseline's"),
    "perf_per_tco_gross_vs_baseline": Metric(
        "", "performance per TCO over the baseline's, before rebates"
    ),
}

NEAR_METRICS = 6  # that the error on an unknown name lists


def unknown_metric(metric_name: str, other_names: Iterable[str] = ()) -> DataError:
    """Return the error for an unknown metric, with the metrics whose label has the word.

    Args:
        metric_name: The unknown name.
        other_names: Further names that the command takes beside those of metrics.

    """
    cells = list(other_names)
    words = metric_name.lower().replace("_", " ")
    labelled = [metric_id for metric_id, metric in METRICS.items() if words in metric.label.lower()]
    hint = f"; metrics of that word: {', '.join(labelled[:NEAR_METRICS])}" if labelled else ""
    kind = "metric or cell" if cells else "metric"
    candidates = METRICS if labelled else [*METRICS, *cells]  # a label is nearer than a cell
    return DataError(
        f"unknown {kind} {metric_name!r}{nearest(metric_name, candidates)}{hint}; `tco metrics "
        "list` shows all metrics"
    )


class UnknownMetricError(DataError, KeyError):
    """Error of a mapping of metrics that is asked for an unknown name."""

    __str__ = Exception.__str__  # a KeyError prints its message in quotes


class MetricValues(dict[str, Any]):
    """Metrics by name, which refuse an unknown name with the nearest ones."""

    def __missing__(self, metric_name: str) -> Any:
        """Raise `UnknownMetricError` for a name that no metric has, `KeyError` for any other."""
        if metric_name in METRICS:
            raise KeyError(metric_name)
        raise UnknownMetricError(*unknown_metric(str(metric_name)).args)


def refuse_unknown_metrics(metric_names: Iterable[str]) -> None:
    """Refuse the first name that is no metric's.

    Raises:
        DataError: A name is unknown.

    """
    for metric_name in metric_names:
        if metric_name not in METRICS:
            raise unknown_metric(metric_name)


# Metrics of which more is better, and those that are neither better nor worse; of all others,
# costs, watts and times, less is.
MORE_IS_BETTER = frozenset(
    (
        *(
            "rebate_usd_per_chip",
            "peak_bf16_flop_per_s",
            "peak_fp8_flop_per_s",
            "peak_fp4_flop_per_s",
            "hbm_bytes",
            "hbm_byte_per_s",
        ),
        *(
            "scale_up_byte_per_s",
            "scale_out_byte_per_s",
            "output_tokens_per_s_per_chip",
            "input_tokens_per_s_per_chip",
            "tokens_per_s_per_user",
        ),
        *(
            "mfu",
            "train_tokens_per_s",
            "tokens_per_s_per_facility_mw",
            "goodput",
            "perf_per_tco_vs_baseline",
            "perf_per_tco_gross_vs_baseline",
        ),
    )
)
NEITHER = frozenset(("chips", "racks"))
RATIOS = frozenset(("perf_per_tco_vs_baseline", "perf_per_tco_gross_vs_baseline"))
TRAINING = frozenset(
    (
        "step_s",
        "mfu",
        "train_tokens_per_s",
        "exposed_communication",
        "pipeline_bubble",
        "host_floor",
        "train_usd_per_trillion_tokens",
        "train_time_s",
        "train_usd",
    )
)
SERVED = (
    frozenset(
        metric_name
        for metric_name in METRICS
        if "token" in metric_name or metric_name in ("ttft_s", "tpot_s")
    )
    - TRAINING
)
PERFORMANCE = SERVED | TRAINING | RATIOS  # metrics that depend on the workload
OUTPUT_RATE = "output_tokens_per_s_per_chip"
CHIP_HOUR = "tco_usd_per_chip_hour"
# costs of the work; a scenario has at most one of them
PRICED = (
    "usd_per_million_output_tokens",
    "train_usd_per_trillion_tokens",
)
# ratios of the costs of the work of two scenarios
AGAINST_BASELINE = ("perf_per_tco_vs_baseline",)


def priced_by(metrics: JsonMapping) -> str | None:
    """Return the name of the metric that prices a scenario's work.

    Args:
        metrics: Values by metric.

    Returns:
        Name of the metric; None where `metrics` has no such cost.

    """
    return next(
        (metric_name for metric_name in PRICED if metrics.get(metric_name) is not None), None
    )


# metrics between zero and one
SHARES = frozenset(("mfu", "exposed_communication", "pipeline_bubble", "host_floor", "goodput"))
MAY_BE_NONE = SHARES | frozenset(
    (
        *(
            "capex_usd",
            "capex_usd_per_chip",
            "rebate_usd_per_chip",
            "network_usd_per_chip",
            "energy_usd_per_chip_hour",
        ),  # zero for rented chips
        *("scale_up_byte_per_s", "scale_out_byte_per_s", "waiting_usd_per_chip"),
        # zero for a model without attention, and for engines that read prompts all the time
        *("rate_card_cached_input_usd_per_million", "rate_card_output_usd_per_million"),
        *(
            "peak_bf16_flop_per_s",
            "peak_fp8_flop_per_s",
            "peak_fp4_flop_per_s",
        ),  # zero for a format that the chip does not compute in
        *(
            "grid_co2e_g_per_chip_hour",
            "embodied_co2e_g_per_chip_hour",
            "co2e_g_per_million_output_tokens",
            *RATIOS,
        ),
    )
)


def needs_site(metric_name: str) -> bool:
    """Say whether a metric needs racks that have a price and fit their site.

    Args:
        metric_name: Name of a metric.

    """
    return any(word in metric_name for word in SITE_WORDS)


def is_possible(metric: str, metric_value: float) -> bool:
    """Return whether a metric may have a value: positive, or zero for some metrics."""
    return (metric_value > 0 or (metric_value == 0 and metric in MAY_BE_NONE)) and not (
        metric in SHARES and metric_value > 1
    )


def is_worse(metric: str, change: float) -> bool | None:
    """Say whether a change of a metric is for the worse.

    Args:
        metric: Name of the metric.
        change: Change of the metric, above or below zero.

    Returns:
        Whether the change is for the worse; None for a metric without a better direction.

    """
    return None if metric in NEITHER else (change < 0) is (metric in MORE_IS_BETTER)


@formula(unit="USD/Mtoken", source="tco-contract")
def usd_per_million(
    used_hour: USDPerChipHour,
    rate: TokenPerSecondPerChip,
    share: Pure,
    seconds_per_hour: SecondPerHour = 3600,
    tokens_per_million: TokenPerMillion = 1e6,
) -> Quantity:
    """Cost per million tokens: c = share x used_hour / (3,600 x rate) x 1e6.

    used_hour is the cost per used chip-hour, rate the tokens per second and chip.
    """
    return share * used_hour / (rate * seconds_per_hour) * tokens_per_million


@formula(unit="USD/Mtoken", source="tco-contract")
def output_price(all_in: USDPerMillionTokens, prefill_share: Pure) -> Quantity:
    """Price of a million output tokens beside priced prompts, that of decoding: (1 - s) c."""
    return (1 - prefill_share) * all_in


@formula(unit="USD/Mtoken", source="tco-model")
def cached_input_price(
    prefill: USDPerMillionTokens, attention_share: Pure, cache_hit: Pure
) -> Quantity:
    """Price of a million input tokens from a prefix cache: c a / (1 + h).

    A token that is computed meets (1 + h) I / 2 keys of a prompt of I tokens on average. Half the
    cost of each meeting, a share a of prefill, is charged to the token whose key is met. A cached
    token causes no other cost: the memory that keeps it is not charged.
    """
    return prefill * attention_share / (1 + cache_hit)


@formula(unit="USD/Mtoken", source="tco-contract")
def uncached_input_price(
    prefill: USDPerMillionTokens, cached: USDPerMillionTokens, cache_hit: Pure
) -> Quantity:
    """Price of a million input tokens that no cache holds: (c - h c_cached) / (1 - h)."""
    return (prefill - cache_hit * cached) / (1 - cache_hit)


@formula(unit="USD/Ttoken", source="tco-contract")
def usd_per_trillion(
    used_hour: USDPerChipHour,
    chips: Pure,
    rate: TokenPerSecond,
    one_chip: Chip = 1,
    seconds_per_hour: SecondPerHour = 3600,
    tokens_per_trillion: TokenPerTrillion = 1e12,
) -> Quantity:
    """Cost of training on a trillion tokens: c = used_hour x chips / (3,600 x rate) x 1e12.

    used_hour is the cost per used chip-hour, rate the tokens per second of all chips.
    """
    return used_hour * chips * one_chip / (rate * seconds_per_hour) * tokens_per_trillion


@formula(unit="s", source="tco-model")
def time_with_stops(time: Second, goodput: Pure) -> Quantity:
    """Time of a job with the stops that failures cause: t / g."""
    return time / goodput


@formula(unit="USD", source="tco-contract")
def training_job_cost(
    cost: USDPerTrillionTokens,
    tokens: Pure,
    one_token: Token = 1,
    tokens_per_trillion: TokenPerTrillion = 1e12,
) -> Quantity:
    """Cost of training on all tokens of a job: C = c T / 1e12."""
    return cost * tokens * one_token / tokens_per_trillion


@formula(unit="token/s/MW", source="tco-contract")
def tokens_per_megawatt(
    rate: TokenPerSecondPerChip, facility: WattPerChip, watt_per_megawatt: WattPerMegawatt = 1e6
) -> Quantity:
    """Output tokens per second and megawatt of site power: R / P_facility."""
    return rate / facility * watt_per_megawatt


@formula(unit="USD/chip/h/(PFLOP/s)", source="tco-contract")
def usd_per_petaflop_hour(
    cost: USDPerChipHour, peak: FLOPPerSecond, flop_per_petaflop: FLOPPerPetaflop = 1e15
) -> Quantity:
    """Cost of a dense PFLOP/s for an hour: c / peak."""
    return cost / peak * flop_per_petaflop


@formula(unit="USD/chip/h/(TB/s)", source="tco-contract")
def usd_per_bandwidth_hour(
    cost: USDPerChipHour, bandwidth: BytePerSecond, byte_per_terabyte: BytePerTerabyte = 1e12
) -> Quantity:
    """Cost of a TB/s of HBM for an hour: c / bandwidth."""
    return cost / bandwidth * byte_per_terabyte


@formula(unit="USD/Mtoken", source="tco-contract")
def gross_token_cost(
    net: USDPerMillionTokens, gross_hour: USDPerChipHour, net_hour: USDPerChipHour
) -> Quantity:
    """Cost of a million tokens before rebates: net cost x gross chip-hour / net chip-hour."""
    return net * gross_hour / net_hour


@formula(unit="", source="tco-contract")
def perf_per_tco(baseline: USDPerMillionTokens, scenario_cost: USDPerMillionTokens) -> Quantity:
    """Performance per TCO against a baseline: c_baseline / c, by cost per output token."""
    return baseline / scenario_cost


@formula(unit="", source="tco-contract")
def training_perf_per_tco(
    baseline: USDPerTrillionTokens, scenario_cost: USDPerTrillionTokens
) -> Quantity:
    """Training performance per TCO against a baseline: c_baseline / c.

    c is the cost per token that is trained on.
    """
    return baseline / scenario_cost


@formula(unit="USD/chip/h", source="tco-contract")
def hour_of_both_pools(
    decode: USDPerChipHour, prefill: USDPerChipHour, prefill_share: Pure
) -> Quantity:
    """Cost per used chip-hour of two pools: c = (1 - s) c_decode + s c_prefill.

    The pools may be different systems.
    """
    return (1 - prefill_share) * decode + prefill_share * prefill


@formula(unit="W/chip", source="tco-contract")
def power_of_both_pools(decode: WattPerChip, prefill: WattPerChip, prefill_share: Pure) -> Quantity:
    """Site power per chip of two pools: P = (1 - s) P_decode + s P_prefill.

    The pools may be different systems.
    """
    return (1 - prefill_share) * decode + prefill_share * prefill


Name = Callable[[str, Callable[[], Quantity]], Quantity]


def collect(
    input_values: Values,
    system: System,
    cost: Cost | None,
    workload: ServingResult | TrainingResult,
) -> JsonObject:
    """Return every metric that can be computed, each by a name that a user may set.

    Without a cost they are those of the chip and of the workload.
    """
    part = f"parts.{system.chip}"
    metrics: JsonObject = {"chips": system.chips, "racks": system.racks}

    def name(metric: str, compute: Callable[[], Quantity]) -> Any:
        with scope("metrics", metric):
            metrics[metric] = input_values.derived(
                f"metrics.{metric}", METRICS[metric].unit, compute
            )
        return metrics[metric]

    if cost is not None:
        metrics["goodput"] = cost.goodput
        _cost_metrics(input_values, system, cost, name)
    for metric, attribute in (
        ("peak_bf16_flop_per_s", "peak_bf16"),
        ("peak_fp8_flop_per_s", "peak_fp8"),
        ("peak_fp4_flop_per_s", "peak_fp4"),
        ("hbm_bytes", "hbm_capacity"),
        ("hbm_byte_per_s", "hbm_bandwidth"),
        ("scale_up_byte_per_s", "scale_up_bandwidth"),
        ("scale_out_byte_per_s", "scale_out_bandwidth"),
    ):
        metrics[metric] = input_values[f"{part}.{attribute}"]
    for metric, rate_value in workload.rates.items():
        name(metric, partial(_computed_value, rate_value))
    if cost is not None:
        joined_metrics(input_values, f"{part}.peak_fp8", workload, metrics, name)
    return metrics


def _cost_metrics(input_values: Values, system: System, cost: Cost, name_metric: Name) -> None:
    """Name what the bill and the cost of a world come to a chip."""
    name_metric("capex_usd", lambda: cost.capex)
    name_metric("capex_usd_per_chip", lambda: cost.capex_per_chip)
    name_metric("rebate_usd_per_chip", lambda: cost.rebate_per_chip)
    name_metric("network_usd_per_chip", lambda: cost.network_per_chip)
    name_metric("it_power_w_per_chip", lambda: cost.it_power_per_chip)
    name_metric(
        "facility_power_w_per_chip",
        lambda: power_per_chip(
            facility_power(cost.it_power, input_values["site.pue"]), system.chips
        ),
    )
    with scope("metrics", "grid_power"):
        grid = grid_power(
            cost.it_power,
            sellable_share(input_values["site.pue_peak"], input_values["site.in_hand"]),
        )
    name_metric("peak_facility_power_w_per_chip", lambda: power_per_chip(grid, system.chips))
    if bought := [line.amount for line in cost.lines if not line.recurs]:  # who rents buys nothing
        name_metric(
            "usd_per_facility_w", lambda: price_per_grid_power(total("bought", bought), grid)
        )
    name_metric("energy_usd_per_chip_hour", lambda: cost.energy)
    name_metric("tco_gross_usd_per_chip_hour", lambda: cost.gross_per_chip_hour)
    hour = name_metric("tco_usd_per_chip_hour", lambda: cost.per_chip_hour)
    # else no hour is one in which anything makes progress
    if somewhere(untraced_value(cost.goodput) > 0):
        name_metric("tco_usd_per_used_chip_hour", lambda: cost.used(hour))


def joined_metrics(
    input_values: Values,
    peak_fp8: str,
    workload: ServingResult | TrainingResult,
    metrics: JsonObject,
    name_metric: Name,
) -> None:
    """Name the costs of peak compute, of memory bandwidth and of tokens."""
    hour = metrics["tco_usd_per_chip_hour"]
    used = metrics.get("tco_usd_per_used_chip_hour")
    if input_values.exists(peak_fp8):
        name_metric(
            "usd_per_peak_fp8_pflop_hour",
            lambda: usd_per_petaflop_hour(hour, metrics["peak_fp8_flop_per_s"]),
        )
    name_metric(
        "usd_per_hbm_tb_per_s_hour", lambda: usd_per_bandwidth_hour(hour, metrics["hbm_byte_per_s"])
    )
    if used is None:
        return
    if "train_tokens_per_s" in metrics:
        cost = name_metric(
            "train_usd_per_trillion_tokens",
            lambda: usd_per_trillion(
                used, input_values["cluster.chips"], metrics["train_tokens_per_s"]
            ),
        )
        if input_values.exists(TRAIN_TOKENS):
            tokens = input_values[TRAIN_TOKENS]
            name_metric(
                "train_time_s",
                lambda: time_with_stops(
                    time_to_train(tokens, metrics["train_tokens_per_s"]), metrics["goodput"]
                ),
            )
            name_metric("train_usd", lambda: training_job_cost(cost, tokens))
    elif isinstance(workload, ServingResult) and OUTPUT_RATE in metrics:
        output_rate = metrics[OUTPUT_RATE]
        input_rate = metrics.get("input_tokens_per_s_per_chip")
        name_metric(
            "usd_per_million_output_tokens", lambda: usd_per_million(used, output_rate, 1.0)
        )
        if input_rate is not None:  # stated rates have output tokens alone
            name_metric(
                "usd_per_million_input_tokens",
                lambda: usd_per_million(used, input_rate, workload.prefill_share),
            )
            name_metric(
                "usd_per_million_tokens",
                lambda: usd_per_million(used, total("all_tokens", [output_rate, input_rate]), 1.0),
            )
            _rate_card(input_values, workload, metrics, name_metric)
        name_metric(
            "tokens_per_s_per_facility_mw",
            lambda: tokens_per_megawatt(output_rate, metrics["facility_power_w_per_chip"]),
        )


def _rate_card(
    input_values: Values, workload: ServingResult, metrics: JsonObject, name_metric: Name
) -> None:
    """Name the prices of input, cached input and output whose sum over a request is its cost."""
    if workload.prefill is None:
        return
    with scope("metrics", "rate_card"):
        attention = workload.prefill.attention_share
        hit = cached_share(
            input_values["workload.input_tokens"], input_values["workload.cache_hit"]
        )
    prefill, all_in = (metrics[f"usd_per_million_{side}_tokens"] for side in ("input", "output"))
    cached = name_metric(
        "rate_card_cached_input_usd_per_million",
        lambda: cached_input_price(prefill, attention, hit),
    )
    name_metric(
        "rate_card_input_usd_per_million", lambda: uncached_input_price(prefill, cached, hit)
    )
    name_metric(
        "rate_card_output_usd_per_million", lambda: output_price(all_in, workload.prefill_share)
    )


def _computed_value(computed_value: Quantity) -> Quantity:
    return computed_value
