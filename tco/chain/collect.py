"""Every metric of a chain by its name: what bill, cost and workload come to, and what only all of them together tell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tco.catalog.systems import System
from tco.chain import metrics as joined
from tco.chain.metrics import METRICS
from tco.economics.cost import Cost, power_per_chip
from tco.economics.site import facility_power
from tco.foundation.formula import somewhere
from tco.foundation.trace import plain, scope
from tco.foundation.values import Values
from tco.performance.serving.answer import ServingResult

if TYPE_CHECKING:
    from tco.performance.training.result import TrainingResult

Name = Callable[[str, Callable[[], Any]], Any]


def collect(values: Values, system: System, cost: Cost | None, workload: ServingResult | TrainingResult) -> dict[str, Any]:
    """Return every metric that can be computed, each named so that a user may set it; without a cost those of the chip and the workload."""
    part = f"parts.{system.chip}"
    found: dict[str, Any] = {"chips": system.chips, "racks": system.racks}

    def name(metric: str, compute: Callable[[], Any]) -> Any:
        with scope("metrics", metric):
            found[metric] = values.derived(f"metrics.{metric}", METRICS[metric].unit, compute)
        return found[metric]

    if cost is not None:
        found["goodput"] = cost.goodput
        cost_metrics(values, system, cost, name)
    for metric, attribute in (
        ("peak_bf16_flop_per_s", "peak_bf16"),
        ("peak_fp8_flop_per_s", "peak_fp8"),
        ("peak_fp4_flop_per_s", "peak_fp4"),
        ("hbm_bytes", "hbm_capacity"),
        ("hbm_byte_per_s", "hbm_bandwidth"),
        ("scale_up_byte_per_s", "scale_up_bandwidth"),
        ("scale_out_byte_per_s", "scale_out_bandwidth"),
    ):
        found[metric] = values[f"{part}.{attribute}"]
    for metric, value in workload.rates.items():
        name(metric, partial(plain_value, value))
    if cost is not None:
        joined_metrics(values, f"{part}.peak_fp8", workload, found, name)
    return found


def cost_metrics(values: Values, system: System, cost: Cost, name: Name) -> None:
    """Name what the bill and the cost of a world come to a chip."""
    name("capex_usd", lambda: cost.capex)
    name("capex_usd_per_chip", lambda: cost.capex_per_chip)
    name("rebate_usd_per_chip", lambda: cost.rebate_per_chip)
    name("network_usd_per_chip", lambda: cost.network_per_chip)
    name("it_power_w_per_chip", lambda: cost.it_power_per_chip)
    name("facility_power_w_per_chip", lambda: power_per_chip(facility_power(cost.it_power, values["site.pue"]), system.chips))
    name("peak_facility_power_w_per_chip", lambda: power_per_chip(facility_power(cost.it_power, values["site.pue_peak"]), system.chips))
    name("energy_usd_per_chip_hour", lambda: cost.energy)
    name("tco_gross_usd_per_chip_hour", lambda: cost.gross_per_chip_hour)
    hour = name("tco_usd_per_chip_hour", lambda: cost.per_chip_hour)
    if somewhere(plain(cost.goodput) > 0):  # else no hour is one in which anything makes progress
        name("tco_usd_per_used_chip_hour", lambda: cost.used(hour))


def joined_metrics(values: Values, peak_fp8: str, workload: ServingResult | TrainingResult, found: dict[str, Any], name: Name) -> None:
    """Name what a peak, a bandwidth and a token cost."""
    hour, used = found["tco_usd_per_chip_hour"], found.get("tco_usd_per_used_chip_hour")
    if values.exists(peak_fp8):
        name("usd_per_peak_fp8_pflop_hour", lambda: joined.usd_per_petaflop_hour(hour, found["peak_fp8_flop_per_s"]))
    name("usd_per_hbm_tb_per_s_hour", lambda: joined.usd_per_bandwidth_hour(hour, found["hbm_byte_per_s"]))
    if used is None:
        return
    if "train_tokens_per_s" in found:
        name("train_usd_per_trillion_tokens", lambda: joined.usd_per_trillion(used, values["cluster.chips"], found["train_tokens_per_s"]))
    elif isinstance(workload, ServingResult) and "output_tokens_per_s_per_chip" in found:
        out, into = found["output_tokens_per_s_per_chip"], found.get("input_tokens_per_s_per_chip")
        name("usd_per_million_output_tokens", lambda: joined.usd_per_million(used, out, 1.0))
        if into is not None:  # a rate that is stated is one of output tokens
            name("usd_per_million_input_tokens", lambda: joined.usd_per_million(used, into, workload.prefill_share))
            name("usd_per_million_tokens", lambda: joined.usd_per_million(used, joined.all_tokens(out, into), 1.0))
        name("tokens_per_s_per_facility_mw", lambda: joined.tokens_per_megawatt(out, found["facility_power_w_per_chip"]))


def plain_value(value: Any) -> Any:
    """Return a value that is already computed."""
    return value
