"""Why two systems differ: from one to the other by putting the other's things in the place of its own, group by group, earlier ones kept.

First what is asked for becomes the other's, where that differs. Then costs: the lines of one group after another become the other's, at the
rate that the first system works at. Then speed: figures of its chip, latencies and software become the other's, and the chain is walked anew,
the plan chosen again. What no input says, such as how many chips a scale-up domain has and how they are joined, is left: the residual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tco.chain.metrics import PRICED
from tco.chain.texts import DOCUMENTS
from tco.foundation.errors import TcoError
from tco.performance.chip.formats import family_of
from tco.performance.software import practised, served_by

if TYPE_CHECKING:
    from tco.chain.result import Result
    from tco.economics.cost import CostLine
    from tco.foundation.provenance import Input
    from tco.studies.evaluation import Evaluation

HOUR, USED = "tco_usd_per_chip_hour", "tco_usd_per_used_chip_hour"
METRICS = (*PRICED, HOUR, USED)  # whose change is told in steps: the first that both systems have
CHIP, RACK, NETWORK, SITE, ENERGY, UPKEEP, REBATES, OTHER, LOST = (
    "chip",
    "rack",
    "network",
    "site",
    "energy",
    "upkeep",
    "rebates",
    "other",
    "hours lost",
)
GROUPS = (CHIP, RACK, NETWORK, SITE, ENERGY, UPKEEP, REBATES, OTHER)  # of lines of the cost, in their order
ASSETS = {  # class of asset -> group of lines
    **{"network": NETWORK, "storage": NETWORK, "design": CHIP, "building": SITE, "staff": SITE},
    **{"energy": ENERGY, "upkeep": UPKEEP, "rebate": REBATES},
}
# What a step of speed replaces on the chip, and what stands for it: attribute -> metric
FIGURES = {
    "arithmetic": {"peak_bf16": "peak_bf16_flop_per_s", "peak_fp8": "peak_fp8_flop_per_s", "peak_fp4": "peak_fp4_flop_per_s"},
    "memory": {"hbm_bandwidth": "hbm_byte_per_s", "hbm_capacity": "hbm_bytes", "dma_bandwidth": "hbm_byte_per_s"},  # what reads it keeps up
    "links": {"scale_up_bandwidth": "scale_up_byte_per_s", "scale_out_bandwidth": "scale_out_byte_per_s"},
}
SHOWN = {
    "arithmetic": ("peak_fp8_flop_per_s", 1e15, "PFLOP/s"),
    "memory": ("hbm_byte_per_s", 1e12, "TB/s"),
    "links": ("scale_up_byte_per_s", 1e9, "GB/s"),
}
UNITS = {"peak": "FLOP/s", "hbm_capacity": "byte"}
LATENCY = re.compile(r"_(time|latency|step|start|wait|unit)$")  # names of what takes its time however little there is to do


class Stride(NamedTuple):
    """One group of things made the other system's."""

    cause: str
    of: str  # what it belongs to: asked, cost or performance
    here: str | float | None  # what it was, in USD a chip-hour or in words
    there: str | float | None
    start: float  # the metric before
    end: float
    settings: Mapping[str, str] = {}  # what was put in place, as `--set` takes it

    @property
    def change(self) -> float:
        """What it adds to the metric."""
        return self.end - self.start


class Counterfactual(NamedTuple):
    """The way from one system to another."""

    metric: str
    own: Result
    other: Result
    steps: list[Stride]
    residual: float  # what no step tells: all of them and it sum to the change

    @property
    def ends(self) -> tuple[float, float]:
        """The metric of one and of the other."""
        return float(self.own.metrics[self.metric]), float(self.other.metrics[self.metric])


def between_systems(own: Evaluation, other: Evaluation, metric: str | None = None) -> Counterfactual | None:
    """Return the way from one system to the other; none where no cost is known of both."""
    mine, its = own.result.metrics, other.result.metrics
    known = (name for name in ((metric,) if metric else METRICS) if mine[name] is not None and its[name] is not None)
    found = next(known, None)
    if found is None:
        return None
    steps = list(walked(own, other, found))
    at = steps[-1].end if steps else float(mine[found])
    return Counterfactual(found, own.result, other.result, steps, float(its[found]) - at)


def walked(own: Evaluation, other: Evaluation, metric: str) -> Iterator[Stride]:
    """Yield the steps."""
    settings: dict[str, str] = {}
    base, at = own.result, float(own.result.metrics[metric])
    for cause, asked in asked_apart(own.result, other.result):
        settings |= asked
        result = tried(own, settings)
        if result is not None and result.metrics[metric] is not None:
            said = [", ".join(words(one, path) for path in asked) for one in (own.result, other.result)]
            yield Stride(cause, "asked", said[0], said[1], at, at := float(result.metrics[metric]), asked)
            base = result
    before = hour = float(base.metrics[HOUR])
    sums, its = cost_groups(base, chip_of(own)), cost_groups(other.result, chip_of(other))
    for group in GROUPS:
        here, there = sums.get(group, 0.0), its.get(group, 0.0)
        if here or there:
            hour, start = hour + there - here, at
            yield Stride(group, "cost", here, there, start, at := float(base.metrics[metric]) * hour / before)
    if metric == HOUR:
        return
    used = hours_paid(other.result)
    yield Stride(LOST, "cost", hours_paid(base), used, at, at := at * used / hours_paid(base))
    if metric == USED:
        return
    rate = float(base.metrics[metric]) / float(base.metrics[USED])  # utilised chip-hours that the work takes
    waiting: dict[str, dict[str, str]] = {}  # causes that give no plan on their own, and what they put in place
    for swap in speeds(own, other):
        settings |= swap.settings
        waiting[swap.cause] = swap.settings
        result = tried(own, settings)
        if result is not None and result.metrics[metric] is not None:
            took = float(result.metrics[metric]) / float(result.metrics[USED])
            all_put = {path: text for some in waiting.values() for path, text in some.items()}
            yield Stride(" and ".join(waiting), "performance", swap.here, swap.there, at, at := at * took / rate, all_put)
            rate, waiting = took, {}


def tried(one: Evaluation, settings: Mapping[str, str]) -> Result | None:
    """Return an evaluation with some things replaced; none where they do not go together, and count with what follows."""
    try:
        return one.again(settings, refuse=False)
    except TcoError:
        return None


def asked_apart(own: Result, other: Result) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield what two systems are asked for that differs: documents, and what was set on the other."""
    if own.origin is None or other.origin is None:
        return
    for group in DOCUMENTS:
        name = other.origin.documents[group]
        if name != own.origin.documents[group]:
            yield group, {group: name}
    kept = {path: text for path, text in other.origin.settings.items() if not path.startswith("parts.") and path not in DOCUMENTS}
    put = {path: text for path, text in kept.items() if own.origin.settings.get(path) != text}
    if put:
        yield "settings", put


def words(result: Result, path: str) -> str:
    """Return what a result has of a document or an input."""
    origin = result.origin
    given = result.inputs.get(path)
    if origin is not None and path in origin.documents:
        return origin.documents[path]
    return f"{given.value:g} {given.unit}".rstrip() if given else result.texts.get(path, "-")


def cost_groups(result: Result, chip: str) -> dict[str, float]:
    """Return what a chip-hour costs by group of lines."""
    found: dict[str, float] = {}
    for line in result.lines:
        group = group_of(line, chip)
        found[group] = found.get(group, 0.0) + float(line.usd_per_chip_hour)
    return found


def group_of(line: CostLine, chip: str) -> str:
    """Return the group of a line; the memory inside a chip is of the chip."""
    if line.asset == "servers":
        return CHIP if chip in line.path.split("/") else RACK
    return SITE if line.path.startswith("site/") and line.asset == "upkeep" else ASSETS.get(line.asset, OTHER)


def chip_of(one: Evaluation) -> str:
    """Return the chip of a system."""
    _, document = one.catalogue.document("systems", one.result.system, "system")
    return str(document["chip"])


def hours_paid(result: Result) -> float:
    """Return the hours that are paid for each that is used."""
    return float(result.metrics[USED]) / float(result.metrics[HOUR])


class Swap(NamedTuple):
    """Inputs of one system with the values of the other, as settings, and what both have in words."""

    cause: str
    settings: dict[str, str]
    here: str
    there: str


def speeds(own: Evaluation, other: Evaluation) -> Iterator[Swap]:
    """Yield the groups of inputs that decide how fast a system is."""
    mine, its = chip_of(own), chip_of(other)
    for cause, figures in FIGURES.items() if mine != its else ():
        put = {}
        for attribute, metric in figures.items():
            value, path = figure(other.result, metric), f"parts.{mine}.{attribute}"
            if value and (attribute != "dma_bandwidth" or path in own.result.inputs):
                put[path] = f"{value!r} {unit_of(attribute)}"
        metric, size, unit = SHOWN[cause]
        figures_of = (figure(one.result, metric) for one in (own, other))
        yield Swap(cause, put, *("-" if value is None else f"{value / size:,.4g} {unit}" for value in figures_of))
    family, its_family = family_of(own.catalogue, mine), family_of(own.catalogue, its)
    if family == its_family:
        return
    taken = practice_of(own, other, family, its_family)
    quick = {path: text for path, text in taken.items() if LATENCY.search(path)}
    launches = (own.result.inputs.get(f"performance.{family}.launch_time"), other.result.inputs.get(f"performance.{its_family}.launch_time"))
    yield Swap("latency", quick, *(f"{one.value * 1e6:.3g} us" if one else "-" for one in launches))
    engines = [str(served_by(own.catalogue, name)["engine"]) for name in (family, its_family)]
    put = {path: text for path, text in taken.items() if path not in quick}
    if own.result.texts["workload.kind"] == "serving":
        yield Swap("software", put | {"workload.engine": engines[1]}, engines[0], engines[1])
    else:
        yield Swap("software", put, family, its_family)


def figure(result: Result, metric: str) -> float | None:
    """Return a figure of a chip; a format that it does not compute in it computes as BF16."""
    value: float | None = result.metrics[metric] or (result.metrics["peak_bf16_flop_per_s"] if metric.startswith("peak") else None)
    return value


def practice_of(own: Evaluation, other: Evaluation, family: str, its: str) -> dict[str, str]:
    """Return what the other's family reaches, as settings of one's own: as the other's answer has it, or else as the catalogue does."""
    chip = chip_of(own)
    found = {
        path: other.result.inputs.get(path.replace(f".{family}.", f".{its}."), known) for path, known in practised(own.catalogue, chip, its).items()
    }
    return {path: text_of(given) for path, given in found.items()}


def text_of(given: Input) -> str:
    """Return an input as `--set` takes it."""
    return f"{given.value!r} {given.unit}".rstrip()


def unit_of(attribute: str) -> str:
    """Return the unit of a figure of a chip."""
    return next((unit for name, unit in UNITS.items() if attribute.startswith(name)), "byte/s")
