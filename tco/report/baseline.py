"""Answers of `tco baseline save`, `list` and `show`: scenarios and metrics of baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.labels import count_with_noun
from tco.core.columns import Column
from tco.core.mappings import lists_by_key
from tco.core.types import JsonMapping
from tco.regression.baseline import baseline_path
from tco.regression.drift import metrics_with_ratios
from tco.regression.state import holds_own_values
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, scaled_unit, significant
from tco.scenario.metrics import METRICS


class SavedScenario(NamedTuple):
    """Row of a scenario that was saved."""

    scenario: Annotated[str, Column("scenario")]
    path: Annotated[str, Column("kept in")]


class StateInput(NamedTuple):
    """Input of a state."""

    path: str
    value: float  # in `unit`
    unit: str


class StateMetric(NamedTuple):
    """CSV row of a metric of a state."""

    scenario: str
    metric: str
    unit: str
    value: float  # in `unit`


SAVE = Document(
    *("baseline-save", "name", "path"), Member("scenarios", [str]), Member("stayed", [str])
)
LISTED = Record(
    *("id", "path"), Member("scenarios", [str], optional=True), Member("error", optional=True)
)
LIST = Document("baseline-list", Member("items", [LISTED]))
LIST_ROW = Record(
    Member("id", label="baseline"),
    Member("path", label="file"),
    Member(
        "scenarios",
        label="scenarios",
        read=lambda item: item.get("error") or ", ".join(item["scenarios"]),
    ),
)
STATE = Record(
    "scenario",
    *(
        Member(member_name, str | None)
        for member_name in ("system", "tco_version", "data_hash", "data_date")
    ),
    Member("metrics", {str: float | None}),
    Member("inputs", [StateInput]),
    Member("formulas", {str: str}),
)
SHOW = Document("baseline-show", "name", Member("scenarios", [STATE]))


def saved_answer(
    catalogue: Catalogue,
    baseline_name: str,
    states: Mapping[str, JsonMapping],
    stayed: Sequence[str],
    has_draws: bool,
) -> Answer:
    """Return the answer on scenarios saved to a baseline.

    Args:
        catalogue: Catalogue of the evaluated scenarios.
        baseline_name: Name of the baseline.
        states: Saved states by scenario.
        stayed: Names of the scenarios that stay as they were.
        has_draws: Whether figures of the draws are saved too.

    """
    path, scenarios = str(baseline_path(baseline_name)), list(states)
    content = {"name": baseline_name, "path": path, "scenarios": scenarios, "stayed": stayed}
    saved_scenarios = [SavedScenario(scenario, path) for scenario in scenarios]
    scenario_record = Record(SavedScenario)
    below = []
    if stayed:
        names = ", ".join(stayed)
        below = [f"Not saved again: {names}. Ratios to the scenarios above may have moved."]
    if any(map(holds_own_values, states.values())):
        metrics = {metric for state in states.values() for metric in state["metrics"]}
        draws = " and figures of the draws" if has_draws else ""
        below += [
            f"{path} keeps {count_with_noun(len(metrics), 'metric')}{draws}.",
            "It holds your own values in plain text; --redact leaves them out.",
        ]
    return SAVE.answer(
        catalogue,
        content,
        lambda: [scenario_record.table(saved_scenarios, below=below)],
        (scenario_record, saved_scenarios),
    )


def baseline_list_answer(
    catalogue: Catalogue, baselines: Mapping[str, Sequence[str] | str]
) -> Answer:
    """Return the answer that lists the baselines of a folder.

    Args:
        catalogue: Catalogue that the answer names as its data.
        baselines: Scenarios by baseline name; a text in place of the scenarios says what is wrong
            with the file.

    """
    items = [
        {
            "id": baseline_name,
            "path": str(baseline_path(baseline_name)),
            "error" if isinstance(scenarios, str) else "scenarios": scenarios,
        }
        for baseline_name, scenarios in baselines.items()
    ]
    title = "1 baseline" if len(items) == 1 else f"{len(items)} baselines"
    return LIST.answer(
        catalogue, {"items": items}, lambda: [LIST_ROW.table(items, title)], (LIST_ROW, items)
    )


def kept_answer(
    catalogue: Catalogue,
    baseline_name: str,
    states: Mapping[str, JsonMapping],
    metrics: Sequence[str],
) -> Answer:
    """Return the answer on the metrics that a baseline keeps.

    Args:
        catalogue: Catalogue that the answer names as its data.
        baseline_name: Name of the baseline.
        states: Saved states by scenario.
        metrics: Metrics to show, in this order.

    """
    metric_values = metrics_with_ratios(states)
    metric_rows = [
        StateMetric(scenario, metric, METRICS[metric].unit, metric_values[scenario][metric])
        for scenario in states
        for metric in metrics
        if metric in metric_values[scenario]
    ]
    content = [
        {
            **state,
            "scenario": scenario,
            "metrics": {
                metric_row.metric: metric_row.value
                for metric_row in metric_rows
                if metric_row.scenario == scenario
            },
            "inputs": [StateInput(path, *quantity) for path, quantity in state["inputs"].items()],
        }
        for scenario, state in states.items()
    ]

    def table() -> Table:
        return _metric_table(baseline_name, states, metrics, metric_values)

    return SHOW.answer(
        catalogue,
        {"name": baseline_name, "scenarios": content},
        lambda: [table()],
        (Record(StateMetric), metric_rows),
    )


def _metric_table(
    baseline_name: str,
    states: Mapping[str, JsonMapping],
    metrics: Sequence[str],
    metric_values: Mapping[str, JsonMapping],
) -> Table:
    """Return the table of a baseline's metrics, a column for each scenario."""
    lines = []
    for metric in metrics:
        numbers = [
            metric_values[scenario][metric]
            for scenario in states
            if metric in metric_values[scenario]
        ]
        if numbers:
            largest = max(abs(number) for number in numbers if number is not None)
            unit, size = scaled_unit(METRICS[metric].unit, largest)
            values_or_none = (metric_values[scenario].get(metric) for scenario in states)
            cells = (
                "-" if metric_value is None else significant(metric_value / size, 6)
                for metric_value in values_or_none
            )
            lines.append((metric, unit, *cells))
    origins = lists_by_key((_provenance(state), scenario) for scenario, state in states.items())
    above = [
        f"{', '.join(scenario_names)}: {origin}." for origin, scenario_names in origins.items()
    ]
    below = ["Base case: every input at its value. tco metrics list says what each one means."]
    columns = ("metric", "unit", *states)
    return Table(columns, lines, f"Baseline {baseline_name}", above, below, align="ll")


def _provenance(state: JsonMapping) -> str:
    """Return the program, the data and the date of prices that made a state."""
    parts = [f"made by tco {state['tco_version']} on data {state['data_hash']}"]
    price_date = state["texts"].get("terms.date")
    if price_date:
        parts.append(f"at the prices of {price_date}")
    if state.get("data_date"):
        parts.append(f"the latest price in the data is of {state['data_date']}")
    return "; ".join(parts)
