"""Counterfactual walk: the cost of one system becomes that of another, group by group of causes.

First what is asked for becomes the other's, where that differs. Then costs: the lines of one group
after another become the other's, at the rate that the first system works at. Then speed: figures of
its chip, latencies and software become the other's, and the chain is walked anew, the plan chosen
again. What no input says, such as how many chips a scale-up domain has and how they are joined, is
left: the residual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog.rows import attribute
from tco.evaluation.chip_prices import chip_of
from tco.performance.chip.formats import family_of
from tco.performance.software_maturity import parameters_of_family, served_by
from tco.regression.attribution import Waypoint, attribute_change, evaluate_in_turn
from tco.regression.difference import ChangeCause, ChangeContribution, Side
from tco.regression.state import setting_text
from tco.scenario.choices import DOCUMENTS
from tco.scenario.metrics import PRICED

if TYPE_CHECKING:
    from tco.cost.cash_flows import Flow
    from tco.evaluation.scenario_function import Evaluation
    from tco.scenario.result import Result

HOUR, USED = "tco_usd_per_chip_hour", "tco_usd_per_used_chip_hour"
# metrics whose change has steps; the first that both systems have is the default
STEPPED_METRICS = (*PRICED, HOUR, USED)
# groups of cost lines, in the order of the steps
GROUPS = ("chip", "rack", "network", "site", "energy", "upkeep", "rebates", "other")
ASSET_GROUPS = {
    "network": "network",
    "storage": "network",
    "design": "chip",
    "building": "site",
    "staff": "site",
    "energy": "energy",
    "upkeep": "upkeep",
    "rebate": "rebates",
}


class SpeedFigures(NamedTuple):
    """Attributes of a chip that one step replaces, and the figure that stands for them."""

    metric: str
    size: float  # of the unit, in the unit of the metric
    unit: str
    attributes: Mapping[str, str]  # attribute -> metric with its value


FIGURES = {
    "arithmetic": SpeedFigures(
        "peak_fp8_flop_per_s",
        1e15,
        "PFLOP/s",
        {
            "peak_bf16": "peak_bf16_flop_per_s",
            "peak_fp8": "peak_fp8_flop_per_s",
            "peak_fp4": "peak_fp4_flop_per_s",
        },
    ),
    # engines that read memory keep up with it
    "memory": SpeedFigures(
        "hbm_byte_per_s",
        1e12,
        "TB/s",
        {
            "hbm_bandwidth": "hbm_byte_per_s",
            "hbm_capacity": "hbm_bytes",
            "dma_bandwidth": "hbm_byte_per_s",
        },
    ),
    "links": SpeedFigures(
        "scale_up_byte_per_s",
        1e9,
        "GB/s",
        {
            "scale_up_bandwidth": "scale_up_byte_per_s",
            "scale_out_bandwidth": "scale_out_byte_per_s",
        },
    ),
}
# names of parameters that take their time however little there is to do
LATENCY = re.compile(r"_(time|latency|step|start|wait|unit)$")


class Counterfactual(NamedTuple):
    """Walk from one system to another."""

    metric: str
    source: Result
    target: Result
    steps: tuple[ChangeContribution, ...]
    residual: float  # change that no step explains, in the unit of the metric

    @property
    def ends(self) -> tuple[float, float]:
        """The metric of both systems."""
        return self.source.metrics[self.metric], self.target.metrics[self.metric]

    @property
    def rows(self) -> list[tuple[str, str, Side, Side, float, float, float]]:
        """Cause, group, both sides, start, end and change of each step, the residual last."""
        rows = [
            (
                step.name,
                step.last_cause.kind,
                step.last_cause.old,
                step.last_cause.new,
                step.start,
                step.end,
                step.difference,
            )
            for step in self.steps
        ]
        end = self.ends[1]
        return [*rows, ("residual", "", None, None, end - self.residual, end, self.residual)]


def between_systems(
    source: Evaluation, target: Evaluation, metric: str | None = None
) -> Counterfactual | None:
    """Return the walk from one system to another; None where no cost of both is known.

    Args:
        source: Evaluation of the first system.
        target: Evaluation of the other system.
        metric: Cost to explain; None, or a metric that is no cost, takes the first of both.

    """
    sides = source.result.metrics, target.result.metrics
    names = (metric,) if metric in STEPPED_METRICS else STEPPED_METRICS
    cost = next((name for name in names if None not in [side[name] for side in sides]), None)
    if cost is None:
        return None
    start, end = (side[cost] for side in sides)
    waypoints = list(_system_waypoints(source, target, cost))
    steps = attribute_change(waypoints, cost, start, tolerance=None)
    reached = steps[-1].end if steps else start
    return Counterfactual(cost, source.result, target.result, steps, end - reached)


def _system_waypoints(source: Evaluation, target: Evaluation, metric: str) -> Iterator[Waypoint]:
    """Yield the changes from one system to another, with the cost after each."""
    settings: dict[str, str] = {}
    evaluate = source.function(refuse=False).result
    base = source.result
    requests = _request_changes(source.result, target.result)
    for waypoint, result in evaluate_in_turn(requests, settings, evaluate):
        if result is not None and result.metrics[metric] is not None:
            base = result
            yield waypoint
    value = base_value = base.metrics[metric]
    hour = base_hour = base.metrics[HOUR]
    base_costs = _cost_by_group(base, chip_of(source.catalogue, source.result))
    target_costs = _cost_by_group(target.result, chip_of(target.catalogue, target.result))
    for group in GROUPS:
        old, new = base_costs.get(group, 0.0), target_costs.get(group, 0.0)
        if old or new:
            hour = hour + new - old
            value = base_value * hour / base_hour
            yield Waypoint((ChangeCause("cost", group, old, new),), metrics={metric: value})
    if metric == HOUR:
        return
    # hours that are paid for each hour used
    paid, target_paid = (
        result.metrics[USED] / result.metrics[HOUR] for result in (base, target.result)
    )
    value = value * target_paid / paid
    cause = ChangeCause("cost", "hours lost", paid, target_paid)
    yield Waypoint((cause,), metrics={metric: value})
    if metric == USED:
        return
    used_hours = base_value / base.metrics[USED]
    speeds = _speed_changes(source, target)
    for waypoint, result in evaluate_in_turn(speeds, settings, evaluate):
        metrics: dict[str, float] = {}
        if result is not None and result.metrics[metric] is not None:
            new_hours = result.metrics[metric] / result.metrics[USED]
            value = value * new_hours / used_hours
            used_hours = new_hours
            metrics = {metric: value}
        yield waypoint._replace(metrics=metrics)


def _request_changes(source: Result, target: Result) -> Iterator[Waypoint]:
    """Yield the documents and settings in which the request of `target` differs."""
    if source.origin is None or target.origin is None:
        return
    old, new = source.origin, target.origin
    changes = {name: {name: new.documents[name]} for name in DOCUMENTS}
    changes["settings"] = {
        path: text
        for path, text in new.settings.items()
        if not path.startswith("parts.") and path not in DOCUMENTS
    }
    existing = {**old.settings, **old.documents}
    for name, settings in changes.items():
        changed = {path: text for path, text in settings.items() if existing.get(path) != text}
        if changed:
            texts = [
                ", ".join(_document_or_input_text(result, path) for path in changed)
                for result in (source, target)
            ]
            yield Waypoint((ChangeCause("asked", name, *texts),), changed)


def _document_or_input_text(result: Result, path: str) -> str:
    """Return the text of a document or input; a dash where there is none."""
    if result.origin is not None and path in result.origin.documents:
        return result.origin.documents[path]
    value = result.inputs.get(path)
    return f"{value.value:g} {value.unit}".rstrip() if value else result.texts.get(path, "-")


def _cost_by_group(result: Result, chip: str) -> dict[str, float]:
    """Return the cost per chip-hour in USD, by group of lines."""
    costs: dict[str, float] = {}
    for line in result.lines:
        group = _cost_group(line, chip)
        costs[group] = costs.get(group, 0.0) + float(line.usd_per_chip_hour)
    return costs


def _cost_group(line: Flow, chip: str) -> str:
    if line.asset == "servers":
        # memory inside a chip is of the chip
        return "chip" if chip in line.path.split("/") else "rack"
    if line.asset == "upkeep" and line.path.startswith("site/"):
        return "site"
    return ASSET_GROUPS.get(line.asset, "other")


def _speed_changes(source: Evaluation, target: Evaluation) -> Iterator[Waypoint]:
    """Yield the changes of inputs that decide the speed of a system."""
    chips = [chip_of(side.catalogue, side.result) for side in (source, target)]
    for name, figures in FIGURES.items() if chips[0] != chips[1] else ():
        settings: dict[str, str] = {}
        for key, metric in figures.attributes.items():
            path = f"parts.{chips[0]}.{key}"
            value = _chip_figure(target.result, metric)
            if value and (key != "dma_bandwidth" or path in source.result.inputs):
                settings[path] = setting_text(value, attribute("parts", key, path).unit)
        texts = [_figure_text(side.result, figures) for side in (source, target)]
        yield Waypoint((ChangeCause("performance", name, *texts),), settings)
    families = [family_of(source.catalogue, chip) for chip in chips]
    if families[0] == families[1]:
        return
    parameters = _software_settings(source, target, chips[0], families)
    latencies = {path: text for path, text in parameters.items() if LATENCY.search(path)}
    texts = [
        _launch_time(side.result, family)
        for side, family in zip((source, target), families, strict=True)
    ]
    yield Waypoint((ChangeCause("performance", "latency", *texts),), latencies)
    software = {path: text for path, text in parameters.items() if path not in latencies}
    names = families
    if source.result.texts["workload.kind"] == "serving":
        names = [str(served_by(source.catalogue, family)["engine"]) for family in families]
        software["workload.engine"] = names[1]
    yield Waypoint((ChangeCause("performance", "software", *names),), software)


def _chip_figure(result: Result, metric: str) -> float | None:
    """Return a figure of a chip; a format without a peak of its own takes that of BF16."""
    stand_in = result.metrics["peak_bf16_flop_per_s"] if metric.startswith("peak") else None
    figure: float | None = result.metrics[metric] or stand_in
    return figure


def _figure_text(result: Result, figures: SpeedFigures) -> str:
    value = _chip_figure(result, figures.metric)
    return "-" if value is None else f"{value / figures.size:,.4g} {figures.unit}"


def _launch_time(result: Result, family: str) -> str:
    value = result.inputs.get(f"performance.{family}.launch_time")
    return f"{value.value * 1e6:.3g} us" if value else "-"


def _software_settings(
    source: Evaluation, target: Evaluation, chip: str, families: list[str]
) -> dict[str, str]:
    """Return software parameters of `target`, or of the catalogue, as settings of `source`."""
    settings = {}
    for path, default in parameters_of_family(source.catalogue, chip, families[1]).items():
        target_path = path.replace(f".{families[0]}.", f".{families[1]}.")
        value = target.result.inputs.get(target_path, default)
        settings[path] = setting_text(value.value, value.unit)
    return settings
