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
from tco.core.mappings import sums_by_key
from tco.evaluation.chip_prices import chip_of
from tco.performance.chip.families import family_of
from tco.performance.serving_engines import served_by
from tco.performance.software_maturity import parameters_of_family
from tco.regression.attribution import AppliedChange, attribute_change, evaluate_in_turn
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
        step_rows = [
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
        return [*step_rows, ("residual", "", None, None, end - self.residual, end, self.residual)]


def between_systems(
    source: Evaluation, target: Evaluation, metric: str | None
) -> Counterfactual | None:
    """Return the walk from one system to another; None where no cost of both is known.

    Args:
        source: Evaluation of the first system.
        target: Evaluation of the other system.
        metric: Cost to explain; None, or a metric that is no cost, takes the first of both.

    """
    sides = source.result.metrics, target.result.metrics
    metric_names = (metric,) if metric in STEPPED_METRICS else STEPPED_METRICS
    cost = next(
        (
            metric_name
            for metric_name in metric_names
            if None not in [side[metric_name] for side in sides]
        ),
        None,
    )
    if cost is None:
        return None
    start, end = (side[cost] for side in sides)
    changes = list(_system_changes(source, target, cost))
    steps = attribute_change(changes, cost, start, tolerance=None)
    reached = steps[-1].end if steps else start
    return Counterfactual(cost, source.result, target.result, steps, end - reached)


def _system_changes(source: Evaluation, target: Evaluation, metric: str) -> Iterator[AppliedChange]:
    """Yield the changes from one system to another, with the cost after each."""
    evaluate = source.function(refuse=False).result
    base = source.result
    request_changes = list(_request_changes(source.result, target.result))
    for change, step_result in evaluate_in_turn(request_changes, {}, evaluate):
        if step_result is not None and step_result.metrics[metric] is not None:
            base = step_result
            yield change
    metric_value = base_value = base.metrics[metric]
    hour = base_hour = base.metrics[HOUR]
    base_costs = _cost_by_group(base, chip_of(source.catalogue, source.result))
    target_costs = _cost_by_group(target.result, chip_of(target.catalogue, target.result))
    for group in GROUPS:
        old, new = base_costs.get(group, 0.0), target_costs.get(group, 0.0)
        if old or new:
            hour = hour + new - old
            metric_value = base_value * hour / base_hour
            yield AppliedChange(
                (ChangeCause("cost", group, old, new),), metrics={metric: metric_value}
            )
    if metric == HOUR:
        return
    # hours that are paid for each hour used
    paid, target_paid = (
        system_result.metrics[USED] / system_result.metrics[HOUR]
        for system_result in (base, target.result)
    )
    metric_value = metric_value * target_paid / paid
    cause = ChangeCause("cost", "hours lost", paid, target_paid)
    yield AppliedChange((cause,), metrics={metric: metric_value})
    if metric == USED:
        return
    used_hours = base_value / base.metrics[USED]
    settings: dict[str, str] = {}
    for change in request_changes:
        settings |= change.settings
    speed_changes = _speed_changes(source, target)
    for change, step_result in evaluate_in_turn(speed_changes, settings, evaluate):
        metrics: dict[str, float] = {}
        if step_result is not None and step_result.metrics[metric] is not None:
            new_hours = step_result.metrics[metric] / step_result.metrics[USED]
            metric_value = metric_value * new_hours / used_hours
            used_hours = new_hours
            metrics = {metric: metric_value}
        yield change._replace(metrics=metrics)


def _request_changes(source: Result, target: Result) -> Iterator[AppliedChange]:
    """Yield the documents and settings in which the request of `target` differs."""
    if source.origin is None or target.origin is None:
        return
    old, new = source.origin, target.origin
    changes = {
        document_name: {document_name: new.documents[document_name]} for document_name in DOCUMENTS
    }
    changes["settings"] = {
        path: setting_value
        for path, setting_value in new.settings.items()
        if not path.startswith("parts.") and path not in DOCUMENTS
    }
    existing = {**old.settings, **old.documents}
    for change_name, settings in changes.items():
        changed = {
            path: setting_value
            for path, setting_value in settings.items()
            if existing.get(path) != setting_value
        }
        if changed:
            texts = [
                ", ".join(_document_or_input_text(system_result, path) for path in changed)
                for system_result in (source, target)
            ]
            yield AppliedChange((ChangeCause("asked", change_name, *texts),), changed)


def _document_or_input_text(system_result: Result, path: str) -> str:
    """Return the text of a document or input; a dash where there is none."""
    if system_result.origin is not None and path in system_result.origin.documents:
        return system_result.origin.documents[path]
    input_value = system_result.inputs.get(path)
    return (
        f"{input_value.value:g} {input_value.unit}".rstrip()
        if input_value
        else system_result.texts.get(path, "-")
    )


def _cost_by_group(system_result: Result, chip: str) -> dict[str, float]:
    """Return the cost per chip-hour in USD, by group of lines."""
    return sums_by_key(
        (_cost_group(line, chip), float(line.usd_per_chip_hour)) for line in system_result.lines
    )


def _cost_group(line: Flow, chip: str) -> str:
    if line.asset == "servers":
        # memory inside a chip is of the chip
        return "chip" if chip in line.path.split("/") else "rack"
    if line.asset == "upkeep" and line.path.startswith("site/"):
        return "site"
    return ASSET_GROUPS.get(line.asset, "other")


def _speed_changes(source: Evaluation, target: Evaluation) -> Iterator[AppliedChange]:
    """Yield the changes of inputs that decide the speed of a system."""
    chips = [chip_of(side.catalogue, side.result) for side in (source, target)]
    for figure_name, figures in FIGURES.items() if chips[0] != chips[1] else ():
        settings: dict[str, str] = {}
        for attribute_key, metric in figures.attributes.items():
            path = f"parts.{chips[0]}.{attribute_key}"
            chip_figure = _chip_figure(target.result, metric)
            if chip_figure and (attribute_key != "dma_bandwidth" or path in source.result.inputs):
                settings[path] = setting_text(
                    chip_figure, attribute("parts", attribute_key, path).unit
                )
        texts = [_figure_text(side.result, figures) for side in (source, target)]
        yield AppliedChange((ChangeCause("performance", figure_name, *texts),), settings)
    families = [family_of(source.catalogue, chip) for chip in chips]
    if families[0] == families[1]:
        return
    parameters = _software_settings(source, target, chips[0], families)
    latencies = {
        path: parameter_text for path, parameter_text in parameters.items() if LATENCY.search(path)
    }
    texts = [
        _launch_time(side.result, family)
        for side, family in zip((source, target), families, strict=True)
    ]
    yield AppliedChange((ChangeCause("performance", "latency", *texts),), latencies)
    software = {
        path: parameter_text for path, parameter_text in parameters.items() if path not in latencies
    }
    software_names = families
    if source.result.texts["workload.kind"] == "serving":
        software_names = [str(served_by(source.catalogue, family)["engine"]) for family in families]
        software["workload.engine"] = software_names[1]
    yield AppliedChange((ChangeCause("performance", "software", *software_names),), software)


def _chip_figure(system_result: Result, metric: str) -> float | None:
    """Return a figure of a chip; a format without a peak of its own takes that of BF16."""
    stand_in = system_result.metrics["peak_bf16_flop_per_s"] if metric.startswith("peak") else None
    figure: float | None = system_result.metrics[metric] or stand_in
    return figure


def _figure_text(system_result: Result, figures: SpeedFigures) -> str:
    chip_figure = _chip_figure(system_result, figures.metric)
    return "-" if chip_figure is None else f"{chip_figure / figures.size:,.4g} {figures.unit}"


def _launch_time(system_result: Result, family: str) -> str:
    launch_input = system_result.inputs.get(f"performance.{family}.launch_time")
    return f"{launch_input.value * 1e6:.3g} us" if launch_input else "-"


def _software_settings(
    source: Evaluation, target: Evaluation, chip: str, families: list[str]
) -> dict[str, str]:
    """Return software parameters of `target`, or of the catalogue, as settings of `source`."""
    settings = {}
    for path, default in parameters_of_family(source.catalogue, chip, families[1]).items():
        target_path = path.replace(f".{families[0]}.", f".{families[1]}.")
        parameter_input = target.result.inputs.get(target_path, default)
        settings[path] = setting_text(parameter_input.value, parameter_input.unit)
    return settings
