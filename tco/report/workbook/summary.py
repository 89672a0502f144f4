"""The first sheet: scenarios side by side, their costs by class, and every metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.core.formula import REGISTRY
from tco.report.assumptions import SHOWN, premise_lines, shown_metric, workload_title
from tco.report.cells import GROSS, GROSS_HOUR, HOUR, RATIOS, TOKENS, cost_behind
from tco.report.workbook import excel
from tco.report.workbook.cells import SPLIT
from tco.report.workbook.sheets import Sheet, Workbook, number_format
from tco.sampling.median import DRAWN_COSTS, DRAWS, DrawnMetrics
from tco.scenario.metrics import METRICS, gross_token_cost, perf_per_tco

SHEET = "Summary"
PERCENTILES = {"": "p50", ", P10": "p10", ", P90": "p90"}  # of a cost, by what follows its label
FIXED_MEDIANS = (
    "Medians are fixed: they do not follow the sheet Inputs. P10 to P90: 8 of 10 draws lie between."
)
VALUES = 2  # first column of values, after label and unit
CHART_ROWS = 18
# told apart without red and green
COLOURS = (
    *("#1F2A44", "#2F6DB5", "#5BA3CF", "#9CC9E0", "#E0A458"),
    *("#C8553D", "#6B9080", "#8E7DBE", "#4D4D4D"),
)


class SummaryTable:
    """Where the metrics stand: the name of each and its row."""

    def __init__(self, book: Workbook, top: int) -> None:
        have = [
            metric_name
            for metric_name in METRICS
            if any(
                scenario_result.metrics.get(metric_name) is not None
                for scenario_result in book.results
            )
        ]
        if TOKENS in have:
            have.insert(have.index(TOKENS) + 1, GROSS)
        self.top = top
        self.rows = {
            metric_name: metric_row for metric_row, metric_name in enumerate(have, top + 1)
        }

    def cell(self, metric_name: str, scenario: int) -> str:
        """Return the address of a metric of a scenario."""
        from xlsxwriter.utility import xl_rowcol_to_cell

        address: str = xl_rowcol_to_cell(self.rows[metric_name], VALUES + scenario)
        return address


def write_summary_sheet(book: Workbook, drawn: Sequence[DrawnMetrics]) -> None:
    """Write the comparison on top, the stack of costs with its chart, and all metrics below.

    Args:
        book: Workbook with all other sheets of formulas.
        drawn: Percentiles of the costs of each scenario, over draws; empty without draws.

    """
    scenario_results, sheet = book.results, book.sheets[SHEET]
    columns = book.scenario_columns(VALUES)
    priced = [scenario_result for scenario_result in scenario_results if scenario_result.bill]
    above = [
        workload_title(scenario_results),
        *premise_lines(priced),
        f"Baseline: {book.baseline}. The base case follows the sheet Inputs; plan and choices are "
        "fixed.",
    ]
    sheet.title("Total cost of ownership", *above)
    median_top = len(above) + 1
    top = _write_medians(book, median_top, drawn)
    metric_rows = [
        metric_row
        for metric_row in SHOWN
        if any(
            scenario_result.metrics.get(metric_row[0]) is not None
            for scenario_result in scenario_results
        )
    ]
    stack = _classes_of(book)
    stack_top = top + len(metric_rows) + 3
    table = SummaryTable(book, stack_top + (len(stack) + CHART_ROWS + 4 if stack else 0))
    _write_base_case(book, top, metric_rows, table)
    if stack:
        _write_stack(book, stack_top, stack, table)
    _write_metrics(book, table)
    sheet.widths(50, 18, *(20 for _ in columns), 80)
    last_row, last_column = table.top + len(table.rows), max(columns.stop, VALUES + 3)
    sheet.page(last_row, last_column, median_top + 1, VALUES, upright=True)


def _write_head(book: Workbook, top: int, title: str, *after: str) -> None:
    """Write the head of a table of labels, units and a column for each scenario."""
    heads = (title, "unit", *book.scenario_names, *after)
    book.sheets[SHEET].head(top, heads, book.scenario_columns(VALUES))


def _write_label(
    sheet: Sheet, row_index: int, label: str, unit: str, looks: tuple[str, str] = ("text", "weak")
) -> None:
    sheet.text(row_index, 0, label, looks[0])
    sheet.text(row_index, 1, unit, looks[1])


def _write_base_case(
    book: Workbook,
    top: int,
    metric_rows: Sequence[tuple[str, str, str, float]],
    table: SummaryTable,
) -> None:
    """Write the metrics of the base case, live, in the units that tables show."""
    sheet = book.sheets[SHEET]
    _write_head(book, top, "base case: every input at its value")
    for row_index, (metric, label, unit, size) in enumerate(metric_rows, top + 1):
        label_look, look = ("strong", "strong") if metric in RATIOS else ("text", "number")
        _write_label(sheet, row_index, label, unit, (label_look, "weak"))
        figures = {
            scenario: metric_value / size
            for scenario, scenario_result in enumerate(book.results)
            if (metric_value := scenario_result.metrics[metric]) is not None
        }
        numbers = number_format(unit or METRICS[metric].unit, *figures.values())
        for scenario, figure in figures.items():
            scale = f"/{size!r}".upper() if size != 1 else ""
            formula = f"={table.cell(metric, scenario)}{scale}"
            sheet.number(row_index, VALUES + scenario, figure, look, numbers, formula)


def _write_medians(book: Workbook, top: int, drawn: Sequence[DrawnMetrics]) -> int:
    """Write the median, P10 and P90 of each cost as numbers.

    Returns:
        Row at which the next table begins; `top` without draws.

    """
    metrics = [metric for metric in DRAWN_COSTS if any(metric in costs for costs in drawn)]
    if not metrics:
        return top
    sheet = book.sheets[SHEET]
    _write_head(book, top, f"median of {DRAWS} draws")
    median_row = top
    for metric in metrics:
        label, unit, size = shown_metric(metric)
        for suffix, percentile in PERCENTILES.items():
            median_row += 1
            look = "strong" if percentile == "p50" else "text"
            _write_label(sheet, median_row, label + suffix, unit, (look, "weak"))
            for column, costs in enumerate(drawn, VALUES):
                cost = getattr(costs.get(metric), percentile, None)
                if cost is not None:
                    numbers = number_format(unit, cost / size)
                    sheet.number(median_row, column, cost / size, "fixed", numbers)
    sheet.text(median_row + 1, 0, FIXED_MEDIANS, "weak")
    return median_row + 3


def _classes_of(book: Workbook) -> dict[str, dict[int, list[Any]]]:
    """Return the cost lines per chip-hour of every scenario by class of asset."""
    nodes_by_class: dict[str, dict[int, list[Any]]] = {}
    for scenario, scenario_result in enumerate(book.results):
        for line in scenario_result.lines:
            node = book.content.computed.get((scenario, f"cost/{line.path}/per_chip_hour"))
            if node is not None:
                nodes_by_class.setdefault(line.asset, {}).setdefault(scenario, []).append(node)
    return nodes_by_class


def _write_stack(
    book: Workbook, top: int, stack: dict[str, dict[int, list[Any]]], table: SummaryTable
) -> None:
    """Write what each class of cost adds to the chip-hour, live, and the chart of it."""
    sheet, columns = book.sheets[SHEET], book.scenario_columns(VALUES)
    sheet.text(top - 1, 0, "Where a chip-hour's cost goes", "section")
    _write_head(book, top, "class of cost")
    chart = book.workbook.add_chart({"type": "column", "subtype": "stacked"})
    for index, (asset, lines) in enumerate(stack.items()):
        class_row = top + 1 + index
        _write_label(sheet, class_row, asset, "USD/chip/h")
        for scenario, column in enumerate(columns):
            nodes = lines.get(scenario, [])
            cells = [book.reference(scenario, node.id, SHEET) for node in nodes]
            # a SUM takes at most `SPLIT` cells
            parts = [cells[first : first + SPLIT] for first in range(0, len(cells), SPLIT)]
            formula = "=" + ("+".join(f"SUM({','.join(part)})" for part in parts) or "0")
            class_cost = sum(node.value for node in nodes)
            sheet.number(class_row, column, class_cost, "number", "0.0000", formula)
        chart.add_series(
            {
                "name": [SHEET, class_row, 0],
                "categories": [SHEET, top, VALUES, top, columns[-1]],
                "values": [SHEET, class_row, VALUES, class_row, columns[-1]],
                "fill": {"color": COLOURS[index % len(COLOURS)]},
                "gap": 60,
            }
        )
    bottom = top + 1 + len(stack)
    _write_label(sheet, bottom, "cost per chip-hour, net", "USD/chip/h", ("total", "total"))
    for scenario, scenario_result in enumerate(book.results):
        hourly_cost = scenario_result.metrics[HOUR]
        if hourly_cost is not None:
            letter = table.cell(HOUR, scenario).rstrip("0123456789")
            formula = f"=SUM({letter}{top + 2}:{letter}{bottom})"
            sheet.number(bottom, columns[scenario], hourly_cost, "total", "0.0000", formula)
    _style_stack_chart(chart)
    description = "Stacked columns: cost per chip-hour of each scenario by class of cost"
    sheet.worksheet.insert_chart(bottom + 2, 0, chart, {"description": description})


def _style_stack_chart(chart: Any) -> None:
    gridlines = {"visible": True, "line": {"color": "#DDDDDD"}}
    chart.set_title({"name": "Cost per chip-hour by class", "name_font": {"size": 12}})
    chart.set_y_axis({"name": "USD/chip/h", "num_format": "0.00", "major_gridlines": gridlines})
    chart.set_x_axis({"label_position": "low"})  # rebates lie below the line
    chart.set_legend({"position": "right"})
    chart.set_size({"width": 760, "height": 20 * (CHART_ROWS - 1)})


def _read_metric_values(book: Workbook, table_metric: str) -> list[float | None]:
    """Return a metric of every scenario; None where a scenario lacks the metric."""
    if table_metric != GROSS:
        return [scenario_result.metrics.get(table_metric) for scenario_result in book.results]
    parts = [
        [scenario_result.metrics[cost_metric] for cost_metric in (TOKENS, GROSS_HOUR, HOUR)]
        for scenario_result in book.results
    ]
    return [
        None if None in result_costs else float(gross_token_cost(*result_costs))
        for result_costs in parts
    ]


def _write_metrics(book: Workbook, table: SummaryTable) -> None:
    """Write every metric under its name, in its own unit."""
    sheet, columns = book.sheets[SHEET], book.scenario_columns(VALUES)
    sheet.text(table.top - 1, 0, "Every metric of the base case", "section")
    _write_head(book, table.top, "metric", "meaning")
    base = book.scenario_names.index(book.baseline)
    for table_metric, metric_row in table.rows.items():
        unit, label = METRICS[TOKENS if table_metric == GROSS else table_metric][:2]
        _write_label(sheet, metric_row, table_metric, unit)
        rebates = " before rebates" if table_metric == GROSS else ""
        sheet.text(metric_row, columns.stop, label + rebates, "weak")
        metric_values = _read_metric_values(book, table_metric)
        numbers = number_format(
            unit, *(metric_value for metric_value in metric_values if metric_value is not None)
        )
        for scenario, metric_value in enumerate(metric_values):
            if metric_value is None:
                continue
            formula = _metric_formula(book, table, table_metric, scenario, base)
            look = "number" if formula else "fixed"
            sheet.number(metric_row, columns[scenario], metric_value, look, numbers, formula)


def _metric_formula(
    book: Workbook, table: SummaryTable, table_metric: str, scenario: int, base: int
) -> str:
    """Return the formula of a metric of a scenario; empty for a count of the system."""
    scenario_result = book.results[scenario]
    available_metrics = [
        metric_name
        for metric_name in table.rows
        if scenario_result.metrics.get(TOKENS if metric_name == GROSS else metric_name) is not None
    ]
    if table_metric in RATIOS and (cost := cost_behind(table_metric, available_metrics)):
        return _registered_formula_call(
            perf_per_tco, baseline=table.cell(cost, base), scenario_cost=table.cell(cost, scenario)
        )
    if table_metric == GROSS:
        cells = {"net": TOKENS, "gross_hour": GROSS_HOUR, "net_hour": HOUR}
        addresses = {parameter: table.cell(metric, scenario) for parameter, metric in cells.items()}
        return _registered_formula_call(gross_token_cost, **addresses)
    if table_metric in scenario_result.nodes:
        return f"={book.reference(scenario, scenario_result.nodes[table_metric].id, SHEET)}"
    return ""


def _registered_formula_call(formula: Any, **cells: str) -> str:
    return excel.formula_call(REGISTRY[formula.__name__], cells)
