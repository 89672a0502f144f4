"""The result of a scenario, its file, and why a metric is missing or a comparison is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco import __version__
from tco.catalog.accuracy import Standing
from tco.core.errors import DataError
from tco.core.files import data_directory, write_atomically
from tco.core.notebook_display import html_of
from tco.core.provenance import Input, period
from tco.core.trace import Node
from tco.core.types import JsonMapping, JsonObject
from tco.cost.cash_flows import Flow
from tco.cost.ledger import CIRCULAR
from tco.cost.ownership import Rebate
from tco.cost.price_dates import Ages
from tco.cost.waiting import Available, available_of
from tco.performance.profile import Report
from tco.performance.serving.record import ServingResult
from tco.scenario.metrics import METRICS, PERFORMANCE, RATIOS, MetricValues
from tco.scenario.structure import Structure, plain_plan
from tco.scenario.workload import KINDS, metric_workload_kinds
from tco.system.bill import Bill

if TYPE_CHECKING:
    from tco.performance.serving.axes import PlanAxis
    from tco.performance.training.result import TrainingResult


# Bases of the price of a result.
OWN_COST = "own-cost"
VENDOR_PRICE = "vendor-price"
RENTED = "rent"
SCHEMA = "tco.result/2"
SAVED_TEXTS = ("scenario", "title", "system", "perspective")  # fields that a file has as texts
SAVED_TABLES = ("notes", "bounds", "texts", "order")  # fields that a file has unchanged
# Fields of the structure that a file has under `structure`; it has the others elsewhere.
SAVED_DECISIONS = ("alternatives", "readings", "compared", "choices")
SAVED_AS = {"stated_quantity": "shown"}  # keys of a file by field of a record, where they differ
# Inputs that define the work of a scenario: what is requested, but not the formats, the software or
# the plan.
WORK_INPUTS = (
    "kind",
    "model",
    "input_tokens",
    "output_tokens",
    "cache_hit",
    "interactivity",
    "ttft",
    "offline",
    "global_batch",
    "sequence_length",
)
# Inputs that two results must have in common to be compared.
COMPARABLE_INPUTS = (
    "terms.date",
    "terms.perspective",
    "terms.owner",
    *(f"workload.{work_input}" for work_input in WORK_INPUTS),
)
# Reasons why a chip or a site may lack a metric.
UNSTATED = {
    "usd_per_peak_fp8_pflop_hour": "its chip does not compute FP8 (peak_fp8 is 0)",
    "grid_co2e_g_per_chip_hour": "its site states no gas of its grid (site.grid_carbon)",
    "embodied_co2e_g_per_chip_hour": "nothing states the gas of making its chip (embodied_carbon)",
    "waiting_usd_per_chip": "none of its parts states when it comes in numbers (first_volume)",
    "co2e_g_per_million_output_tokens": "the gas of its grid, or of making its chip, is not stated "
    "(site.grid_carbon, embodied_carbon)",
}
# Shares of sourced, estimated and assumed values, by subject: `hardware` (its price) and `terms`
# (terms and site).
Shares = dict[str, dict[str, float]]


class Origin(NamedTuple):
    """Documents, settings and data from which a result was computed.

    Fields that take time to compute are functions.
    """

    documents: dict[str, str]  # ids of site, terms, workload and cluster
    settings: dict[str, str]  # by input path
    variant: dict[str, str]  # variants of the system, by key
    data_hash: Callable[[], str]
    formulas: Callable[[], dict[str, str]]  # fingerprint of each formula behind the metrics
    version: str = __version__  # version of the program
    used_by: Callable[[str], frozenset[str]] = lambda _: frozenset()  # formulas behind a metric
    ages: Callable[[], Ages] = Ages  # ages of the prices of the bill
    shares: Callable[[], Shares] = dict

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the origin without its formulas, which need the catalogue."""
        return origin_of, (
            self.documents,
            self.settings,
            self.variant,
            self.data_hash(),
            {},
            self.version,
            self.ages(),
            self.shares(),
        )


def origin_of(
    documents: dict[str, str],
    settings: dict[str, str],
    variant: dict[str, str],
    data_hash: str,
    formulas: dict[str, str],
    by: str,
    ages: Ages,
    shares: Shares,
) -> Origin:
    """Return an origin whose fields are all computed."""
    return Origin(
        *(documents, settings, variant, lambda: data_hash, lambda: formulas, by),
        ages=lambda: ages,
        shares=lambda: shares,
    )


@dataclass(slots=True, repr=False)
class Result:
    """Result of a scenario: metrics by name, cost lines, bill and inputs."""

    scenario: str
    title: str
    system: str
    perspective: str
    # by name: a number, an array if inputs are arrays, or None if it cannot be computed
    metrics: dict[str, Any]
    notes: list[str]
    lines: list[Flow]
    bill: Bill | None  # None for a chip alone
    rebates: list[Rebate]
    serving: ServingResult | TrainingResult | None
    bounds: dict[str, dict[str, float]]  # share of the time by bound, of each phase
    inputs: dict[str, Input]
    texts: dict[str, str]
    standing: Standing  # errors of the model on published runs of this kind and chip
    order: str  # how often the model ranks two systems correctly, in words
    report: Report  # how the plan was found, and where the time of its phases goes
    plan: Any = None
    structure: Structure | None = None  # structural choices, which `evaluate` accepts
    # notes on choices and on what was left out; short answers do not show them
    chosen: list[str] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)  # traced metrics; empty without a trace
    # what the result was computed from; None if it was not evaluated
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Turn the metrics into a table whose errors suggest the nearest names."""
        self.metrics = MetricValues(self.metrics)

    def __repr__(self) -> str:
        """Show the scenario, the system, and the main metrics only, as a whole result is long."""
        metric_names = (
            "tco_usd_per_chip_hour",
            "output_tokens_per_s_per_chip",
            "usd_per_million_output_tokens",
            "step_s",
        )
        figures = [
            f"{metric_name}={metric_value:.6g}"
            for metric_name in metric_names
            if isinstance(metric_value := self.metrics.get(metric_name), float)
        ]
        return f"Result({', '.join([repr(self.scenario), repr(self.system), *figures])})"

    def _repr_html_(self) -> str:
        """Show the metrics with their units as a table, in a notebook."""
        return html_of(
            self.to_frame().dropna(subset="value")[["value", "unit"]],
            self.title,
            self.standing.text,
        )

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file that `load_result` reads.

        The file stands for a scenario in `compare`, `diff` and `baseline`.
        """
        result_text = json.dumps(
            saved_document(self), indent=1, ensure_ascii=False, allow_nan=False, default=in_json
        )
        write_atomically(Path(path), result_text + "\n")

    @property
    def ages(self) -> Ages:
        """Ages of the prices of the bill."""
        return self.origin.ages() if self.origin else Ages()

    @property
    def shares(self) -> Shares:
        """Shares of sourced, estimated and assumed values in hardware price and terms."""
        return self.origin.shares() if self.origin else {}

    @property
    def costless(self) -> str:
        """Reason why the result has no cost, in words; empty if it has one."""
        if self.metrics["tco_usd_per_chip_hour"] is not None:
            return ""
        return (
            "does not fit its site"
            if any(note.startswith("does not fit: ") for note in self.notes)
            else "cannot be priced"
        )

    @property
    def rent(self) -> tuple[str, str] | None:
        """Name of the rent input and its publisher; None where the chips are owned."""
        for line in self.lines:
            if line.asset == "rent":
                rent_input = self.inputs[line.inputs[0]]
                return rent_input.path.rpartition(".")[2], rent_input.publisher
        return None

    @property
    def hall_cooling(self) -> str | None:
        """Cooling of the hall of the racks, 'air' or 'liquid'; None for a chip alone."""
        return self.texts.get("site.cooling")

    @property
    def basis(self) -> str | None:
        """Basis of the price; None without a cost.

        Only the builder of a chip pays for its design, so a line for the design means own cost.
        """
        assets = {line.asset for line in self.lines}
        if not assets:
            return None
        if "rent" in assets:
            return RENTED
        return OWN_COST if "design" in assets else VENDOR_PRICE

    @property
    def available(self) -> Available | None:
        """Dates from which the system is available; None where no part states a date."""
        return available_of(self.inputs, self.texts["terms.date"])

    @property
    def axes(self) -> list[PlanAxis]:
        """Axes of the plan, with their place on the fabric."""
        return self.serving.axes if self.serving else []

    @property
    def context(self) -> JsonObject:
        """Identifying fields: scenario, system, date, site and settings.

        They distinguish the result from other results and suffice to compute it again.
        """
        site = self.origin.documents.get("site") if self.origin else None
        context_fields = {
            "scenario": self.scenario,
            "system": self.system,
            "date": self.texts.get("terms.date"),
            "site": site,
        }
        return {**context_fields, "set": in_words(set_of(self))}

    def to_frame(self) -> Any:
        """Return metrics, values and units as a pandas data frame with their context."""
        import pandas as pd

        metric_rows = [
            (metric_name, metric_value, METRICS[metric_name].unit, *self.context.values())
            for metric_name, metric_value in self.metrics.items()
        ]
        return pd.DataFrame(
            metric_rows, columns=["metric", "value", "unit", *self.context]
        ).set_index("metric")


def set_of(scenario_result: Result) -> dict[str, str]:
    """Return the settings of a result, as `--set` takes them.

    Args:
        scenario_result: Result of an evaluation.

    Returns:
        Text or quantity with unit, by input path; empty for a result without an origin.

    """
    settings = {}
    for path in scenario_result.origin.settings if scenario_result.origin else ():
        if path in scenario_result.texts:
            settings[path] = scenario_result.texts[path]
        elif path in scenario_result.inputs and (
            shown_quantity := scenario_result.inputs[path].stated_quantity
        ):
            settings[path] = f"{shown_quantity[0]!r} {shown_quantity[1]}".rstrip()
    return settings


def in_words(values_by_name: JsonMapping) -> str:
    """Return names and values as the text of one table cell.

    Args:
        values_by_name: Values by name, written as `name=value` with semicolons between.

    """
    return ";".join(
        f"{setting_name}={setting_value}" for setting_name, setting_value in values_by_name.items()
    )


def saved_document(scenario_result: Result) -> JsonObject:
    """Return the content of the file of a result, the same for equal results."""
    origin, report = scenario_result.origin, scenario_result.report
    if origin is None:
        raise ValueError("a result that was not evaluated cannot be saved")
    if any(np.ndim(metric_value) for metric_value in scenario_result.metrics.values()):
        raise DataError(
            "a result of many values asked together cannot be saved: save that of one, or the "
            "metrics"
        )
    return {
        "schema": SCHEMA,
        "tco_version": origin.version,
        "data_hash": origin.data_hash(),
        **{field_name: getattr(scenario_result, field_name) for field_name in SAVED_TEXTS},
        "documents": origin.documents,
        "overrides": {"set": origin.settings, "variant": origin.variant},
        "plan": plain_plan(scenario_result.plan),
        "structure": None
        if scenario_result.structure is None
        else {
            decision_name: getattr(scenario_result.structure, decision_name)
            for decision_name in SAVED_DECISIONS
        },
        "metrics": {
            metric_name: scenario_result.metrics.get(metric_name) for metric_name in METRICS
        },
        **{field_name: getattr(scenario_result, field_name) for field_name in SAVED_TABLES},
        "shares": scenario_result.shares,
        "lines": [line._asdict() for line in scenario_result.lines],
        "bill": None
        if scenario_result.bill is None
        else {
            **scenario_result.bill._asdict(),
            "lines": [asdict(line) for line in scenario_result.bill.lines],
        },
        "rebates": [rebate._asdict() for rebate in scenario_result.rebates],
        "inputs": {
            path: {
                SAVED_AS.get(input_field, input_field): input_value
                for input_field, input_value in result_input._asdict().items()
            }
            | {"where": result_input.where.removeprefix(f"{data_directory().parent}/")}
            for path, result_input in sorted(scenario_result.inputs.items())
        },
        "standing": scenario_result.standing._asdict(),
        "ages": scenario_result.ages._asdict(),
        "report": {
            "plan": report.plan,
            "search": {
                search_count: count
                for search_count, count in report.search.items()
                if search_count != "seconds"
            },
            "runner_up": report.runner_up,
            "margin": report.margin,
            "memory": report.memory,
        },
        "formulas": dict(sorted(origin.formulas().items())),
    }


def in_json(numpy_value: Any) -> Any:
    """Return a number or an array of numpy as JSON has it."""
    return numpy_value.tolist()


def why_incomparable(scenario_result: Result, other_result: Result) -> str | None:
    """Return the reason why two results must not be compared.

    Args:
        scenario_result: First result.
        other_result: Second result.

    Returns:
        The reason; None where the results may be compared.

    """
    for path in COMPARABLE_INPUTS:
        if _comparable_value(scenario_result, path) != _comparable_value(other_result, path):
            return (
                f"its {path} is {_input_text(scenario_result, path)}, that of "
                f"{other_result.scenario} {_input_text(other_result, path)}"
            )
    if scenario_result is other_result:
        return None
    for compared_result in (scenario_result, other_result):
        if any(CIRCULAR in line.sources for line in compared_result.lines):
            return f"the rent of {compared_result.scenario} follows from this program's own cost"
    return None


def _comparable_value(scenario_result: Result, path: str) -> Any:
    if path == "terms.date":
        return period(scenario_result.texts[path], path).last
    result_input = scenario_result.inputs.get(path)
    return scenario_result.texts.get(path) if result_input is None else result_input.value


def _input_text(scenario_result: Result, path: str) -> str:
    result_input = scenario_result.inputs.get(path)
    if result_input is None:
        return scenario_result.texts.get(path, "not stated")
    shown_value, unit = result_input.stated_quantity or (result_input.value, result_input.unit)
    return f"{shown_value:g} {unit}".rstrip()


def why_absent(scenario_result: Result, metric: str) -> str:
    """Return the reason why a metric of a result has no value.

    The reason is another kind of work, no plan, no cost, no baseline, or an input that nobody
    states.

    Args:
        scenario_result: Result of an evaluation.
        metric: Name of a metric without a value.

    """
    kind = scenario_result.texts["workload.kind"]
    kinds = metric_workload_kinds(metric)
    if kind not in kinds:
        return (
            "it is of a workload that "
            f"{' or '.join(KINDS[kind_id].does for kind_id in sorted(kinds))}, "
            f"this one {KINDS[kind].does}"
        )
    if (
        metric in PERFORMANCE
        and scenario_result.serving is not None
        and scenario_result.serving.reason
    ):
        return scenario_result.serving.reason
    if scenario_result.costless:
        return next(
            (
                note
                for note in scenario_result.notes
                if note.startswith((scenario_result.costless, "does not fit"))
            ),
            "a chip alone has no cost",
        )
    metric_subject = "performance per TCO" if metric in RATIOS else metric
    for note in scenario_result.notes:
        subject, _, reason = note.partition(": ")
        if metric_subject in subject:
            if reason:
                return reason
            break
    if metric in RATIOS:
        return (
            "it needs the cost of a baseline, and there is none here: `tco uncertainty SCENARIO "
            "--baseline gb200-nvl72` gives it"
        )
    return UNSTATED.get(metric, "the scenario does not state what it rests on")
