"""One input against a metric: the numbers of `tco plot line`, as tables, CSV and JSON."""

from __future__ import annotations

from tco.catalog import Catalogue
from tco.catalog.labels import short_name
from tco.comparison.input_lines import InputLines
from tco.evaluation.varied_input import VariedInput
from tco.report.assumptions import premise_lines, workload_line
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, fixed_digits, headed, sentence, significant
from tco.scenario.metrics import METRICS

LINE = Record(
    Member("scenario", read="result.scenario"),
    Member("system", read="result.system"),
    Member("values", [float | None], lambda line: [point.metric for point in line.points]),
)
LINES = Document(
    "plot-line",
    "metric",
    Member("metric_unit", read=lambda lines: METRICS[lines.metric].unit),
    Member("input", read="path"),
    Member("unit", read="today.unit"),
    Member(
        "today",
        float | str | None,
        lambda lines: None if lines.today.value is None else lines.today.plain(lines.today.value),
    ),
    Member("values", [float | str], lambda lines: list(map(lines.today.plain, lines.input_values))),
    Member("lines", [LINE]),
    Member("notes", [str]),
)


def lines_answer(catalogue: Catalogue, input_lines: InputLines) -> Answer:
    """Answer with a metric of scenarios over one input.

    Args:
        catalogue: Catalogue that the metric rests on.
        input_lines: Metric of each scenario at each value of the input.

    Returns:
        The numbers of the figure in all formats; CSV has a row for each scenario and value.

    """
    today = input_lines.today
    row_record = Record(
        "scenario",
        Member("value", float | str, lambda point: today.plain(point.value)),
        Member("unit", read=lambda _: today.unit),
        Member("metric", float | None),
        Member("base_case", bool),
    )
    contexts = {
        line.result.scenario: line.result.context
        | {"input": input_lines.path, "metric_name": input_lines.metric}
        for line in input_lines.lines
    }
    return LINES.answer(
        catalogue,
        input_lines,
        lambda: [_lines_table(input_lines)],
        (row_record, input_lines.points),
        input_lines.notes,
        of=lambda point: contexts[point.scenario],
    )


def _lines_table(input_lines: InputLines) -> Table:
    """Tabulate the values of the input, with a column for each scenario."""
    today, metric = input_lines.today, METRICS[input_lines.metric]
    value_rows = [
        (
            _varied_value_text(today, points[0].value),
            *("-" if point.metric is None else fixed_digits(point.metric) for point in points),
            "base case" if points[0].base_case else "",
        )
        for points in zip(*(line.points for line in input_lines.lines), strict=True)
    ]
    shown_twice = [value_row[:-1] for value_row in value_rows if value_row[-1]]
    # a value beside that of the base case may print as the same row
    value_rows = [
        value_row for value_row in value_rows if value_row[-1] or value_row[:-1] not in shown_twice
    ]
    scenario_results = [line.result for line in input_lines.lines]
    title = sentence(f"{headed(metric.label, metric.unit)}, by {short_name(input_lines.path)}")
    above = [
        workload_line(scenario_results),
        *premise_lines(scenario_results),
        lines_caption(input_lines),
    ]
    below = [] if all(not line.missing for line in input_lines.lines) else ["-: no answer there."]
    columns = (input_lines.words, *(line.result.scenario for line in input_lines.lines), "")
    return Table(columns, value_rows, title, above, below, "r" * (len(columns) - 1) + "l")


def lines_caption(input_lines: InputLines) -> str:
    """Return the sentences on what is held beside the input, on the plan and on the base case."""
    plan = "is that of the base case" if input_lines.hold else "is chosen again at every value"
    words = f"All other inputs are those of the base case. The plan {plan}."
    today = input_lines.today
    if today.value is None or today.value in input_lines.input_values:
        return words
    base_case = " ".join(
        filter(None, (_varied_value_text(today, today.value), input_lines.value_unit))
    )
    return f"{words} The base case, {base_case}, lies outside this range."


def _varied_value_text(today: VariedInput, input_value: float) -> str:
    return today.text(input_value) if today.stepwise else significant(input_value, 4)
