"""Input tables of a scenario, for `tco inputs` and `tco scenarios show`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tco.catalog import Catalogue
from tco.catalog.rows import input_attributes
from tco.core.provenance import Input
from tco.core.units import convert
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import (
    PLAIN_NUMBERS,
    Table,
    input_text,
    input_unit,
    scaled_unit,
    weak,
)

if TYPE_CHECKING:
    from tco.scenario.result import Result


def _value_text(row: Input) -> str:
    if isinstance(row.value, str):
        return row.value
    return weak(row.kind) + input_text(row.path, row.value)


def _input_in_read_unit(row: Input) -> Input:
    """Return an input in the unit whose number is read most easily, such as GB/s of byte/s."""
    if isinstance(row.value, str):
        return row
    unit, size = scaled_unit(row.unit, row.value)
    low, high = (None if end is None else end / size for end in (row.low, row.high))
    return row._replace(value=row.value / size, unit=unit, low=low, high=high)


def _shown_unit(row: Input) -> str:
    unit = input_unit(row.path, _input_in_read_unit(row).unit)
    return "" if unit in PLAIN_NUMBERS else unit


def _range_text(row: Input) -> str:
    scaled_row = _input_in_read_unit(row)
    if scaled_row.low is None or scaled_row.high is None:
        return ""
    return f"{input_text(row.path, scaled_row.low)} to {input_text(row.path, scaled_row.high)}"


# inputs up to which date, kind and source are printed beside the values
MOST_DETAILED = 40
OF_SCENARIO = Record(
    Member("path", label="path"),
    Member(
        "value", float | str, label="value", show=lambda row: _value_text(_input_in_read_unit(row))
    ),
    Member("unit", label="unit", show=_shown_unit),
    Member("low", float | None, label="P5 to P95", show=_range_text),
    Member("high", float | None),
    Member("as_of", label="date"),
    Member("kind", label="kind", show=lambda row: row.kind + " (own)" * row.overlay),
    Member("source", label="source"),
)
INPUT = Record(OF_SCENARIO, Member("own", int, lambda row: int(row.overlay)))
INPUTS = Document("inputs", Member("scenario", read="0.scenario"), Member("inputs", [INPUT], "1"))
SCENARIO = Document(
    "scenarios-show",
    Member("scenario", read="0.scenario"),
    Member("title", read="0.title"),
    Member("inputs", [OF_SCENARIO], "1"),
)


def _result_inputs(result: Result) -> list[Input]:
    texts = [Input(path, text, "", kind="") for path, text in sorted(result.texts.items())]
    return texts + [number for _, number in sorted(result.inputs.items())]


def result_and_money_inputs(catalogue: Catalogue, result: Result) -> list[Input]:
    """Return the inputs of a result and of its monthly cash flow.

    The inputs of the cash flow include those of delays and swaps.

    Args:
        catalogue: Holds the default inputs of the cash flow.
        result: Evaluated scenario.

    Returns:
        Inputs in the units that `--set` takes: texts, then numbers of the result, then the
        remaining inputs of the cash flow.

    """
    money = catalogue.document_inputs("defaults", "money", "money", "money")
    rows = _result_inputs(result)
    rows += [number for path, number in sorted(money.items()) if path not in result.inputs]
    return list(map(written_input, rows))


def search_inputs(rows: Sequence[Input], words: Sequence[str], chip: str) -> list[Input]:
    """Return the inputs that match all words, in any order.

    A word may be anywhere in the path, or begin a word of the attribute's description or other
    names. Case does not matter. Inputs of the chip of the system match the word `chip` too.

    Args:
        rows: Inputs to search.
        words: Words to find; without words every input matches.
        chip: Id of the chip of the system.

    Returns:
        Matching inputs, first the inputs with all words in the path.

    """
    searched = " ".join(words).lower().split()

    def search_text(path: str) -> str:
        group, _, rest = path.partition(".")
        part, _, name = rest.rpartition(".")
        texts = ["chip" if part == chip else ""]
        if attribute := input_attributes().get((group, name)):
            texts += [attribute.description, attribute.also]
        return " ".join(texts).lower()

    def has_words(path: str) -> bool:
        text = search_text(path)
        return all(word in path.lower() or f" {word}" in f" {text}" for word in searched)

    matches = [row for row in rows if has_words(row.path)]
    return sorted(matches, key=lambda row: not all(word in row.path.lower() for word in searched))


def written_input(number: Input) -> Input:
    """Return an input in the unit it is written in."""
    value, unit = number.shown or (number.value, number.unit)
    low, high = (
        None if end is None else convert(end, number.unit, unit)
        for end in (number.low, number.high)
    )
    return number._replace(value=value, unit=unit, low=low, high=high)


def inputs_answer(catalogue: Catalogue, result: Result, rows: Sequence[Input]) -> Answer:
    """Return some inputs of a scenario.

    Args:
        catalogue: Catalogue of the answer.
        result: Evaluated scenario.
        rows: Inputs to show.

    """
    return INPUTS.answer(
        catalogue,
        (result, rows),
        lambda: _inputs_tables(result, rows),
        (INPUT, rows),
        result.notes,
        of=result.context,
    )


def scenario_answer(catalogue: Catalogue, scenario: str) -> Answer:
    """Return every input of a scenario.

    Args:
        catalogue: Catalogue that the scenario sees.
        scenario: Id or file of the scenario.

    Returns:
        Answer with tables in the units that `--set` takes; the JSON and CSV forms have the units of
        the formulas.

    """
    from tco.scenario.evaluate import evaluate

    result = evaluate(scenario, catalogue=catalogue)
    rows = _result_inputs(result)
    return SCENARIO.answer(
        catalogue,
        (result, rows),
        lambda: _inputs_tables(result, list(map(written_input, rows))),
        (OF_SCENARIO, rows),
        of=result.context,
    )


def _inputs_tables(result: Result, rows: Sequence[Input]) -> list[Table]:
    noun = "input" if len(rows) == 1 else "inputs"
    below = [
        f"{len(rows)} {noun}. ~: an estimate or an assumption. P5 to P95: 9 of 10 draws lie "
        "between them.",
        "Replace one: tco compare --set 'PATH=VALUE UNIT'.",
    ]
    if len(rows) <= MOST_DETAILED:
        return [INPUT.table(rows, result.title, (), below)._replace(align="lrlllll")]
    below.append(
        f"Date, kind and source: tco inputs {result.scenario} WORD for some, --format csv for all."
    )
    texts = [row for row in rows if isinstance(row.value, str)]
    numbers = [row for row in rows if not isinstance(row.value, str)]
    choices = INPUT.only("path", "value").table(texts, f"{result.title}: choices")
    values = INPUT.only("path", "value", "unit", "low").table(
        numbers, f"{result.title}: numbers", (), below
    )
    return [choices._replace(align="ll"), values._replace(align="lrll")]
