"""Input tables of a scenario, for `tco inputs` and `tco scenarios show`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tco.catalog import Catalogue
from tco.catalog.labels import PLAIN_NUMBERS
from tco.catalog.rows import input_attributes
from tco.core.provenance import Input
from tco.core.units import convert
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import (
    Table,
    input_text,
    input_unit,
    scaled_unit,
    weak,
)

if TYPE_CHECKING:
    from tco.scenario.result import Result


def _value_text(input_record: Input) -> str:
    if isinstance(input_record.value, str):
        return input_record.value
    return weak(input_record.kind) + input_text(input_record.path, input_record.value)


def _input_in_read_unit(input_record: Input) -> Input:
    """Return an input in the unit whose number is read most easily, such as GB/s of byte/s."""
    if isinstance(input_record.value, str):
        return input_record
    unit, size = scaled_unit(input_record.unit, input_record.value)
    low, high = (
        None if end is None else end / size for end in (input_record.low, input_record.high)
    )
    return input_record._replace(value=input_record.value / size, unit=unit, low=low, high=high)


def _shown_unit(input_record: Input) -> str:
    unit = input_unit(input_record.path, _input_in_read_unit(input_record).unit)
    return "" if unit in PLAIN_NUMBERS else unit


def _range_text(input_record: Input) -> str:
    scaled_row = _input_in_read_unit(input_record)
    if scaled_row.low is None or scaled_row.high is None:
        return ""
    return (
        f"{input_text(input_record.path, scaled_row.low)} to "
        f"{input_text(input_record.path, scaled_row.high)}"
    )


# inputs up to which date, kind and source are printed beside the values
MOST_DETAILED = 12
OF_SCENARIO = Record(
    Member("path", label="path"),
    Member(
        "value",
        float | str,
        label="value",
        show=lambda input_record: _value_text(_input_in_read_unit(input_record)),
    ),
    Member("unit", label="unit", show=_shown_unit),
    Member("low", float | None, label="P5 to P95", show=_range_text),
    Member("high", float | None),
    Member("as_of", label="date"),
    Member(
        "kind",
        label="kind",
        show=lambda input_record: input_record.kind + " (own)" * input_record.overlay,
    ),
    Member("source", label="source"),
)
INPUT = Record(OF_SCENARIO, Member("own", int, lambda input_record: int(input_record.overlay)))
INPUTS = Document("inputs", Member("scenario", read="0.scenario"), Member("inputs", [INPUT], "1"))
SCENARIO = Document(
    "scenarios-show",
    Member("scenario", read="0.scenario"),
    Member("title", read="0.title"),
    Member("inputs", [OF_SCENARIO], "1"),
)


def _result_inputs(scenario_result: Result) -> list[Input]:
    texts = [
        Input(path, choice_text, "", kind="")
        for path, choice_text in sorted(scenario_result.texts.items())
    ]
    return texts + [number for _, number in sorted(scenario_result.inputs.items())]


def result_and_money_inputs(catalogue: Catalogue, scenario_result: Result) -> list[Input]:
    """Return the inputs of a result and of its monthly cash flow.

    The inputs of the cash flow include those of delays and swaps.

    Args:
        catalogue: Holds the default inputs of the cash flow.
        scenario_result: Evaluated scenario.

    Returns:
        Inputs in the units that `--set` takes: texts, then numbers of the result, then the
        remaining inputs of the cash flow.

    """
    money = catalogue.document_inputs("defaults", "money", "money", "money")
    input_records = _result_inputs(scenario_result)
    input_records += [
        number for path, number in sorted(money.items()) if path not in scenario_result.inputs
    ]
    return list(map(written_input, input_records))


def search_inputs(input_records: Sequence[Input], words: Sequence[str], chip: str) -> list[Input]:
    """Return the inputs that match all words, in any order.

    A word may be anywhere in the path, or begin a word of the attribute's description or other
    names. Case does not matter. Inputs of the chip of the system match the word `chip` too.

    Args:
        input_records: Inputs to search.
        words: Words to find; without words every input matches.
        chip: Id of the chip of the system.

    Returns:
        Matching inputs, first the inputs with all words in the path.

    """
    searched = " ".join(words).lower().split()

    def search_text(path: str) -> str:
        group, _, rest = path.partition(".")
        part, _, attribute_name = rest.rpartition(".")
        texts = ["chip" if part == chip else ""]
        if attribute := input_attributes().get((group, attribute_name)):
            texts += [attribute.description, attribute.also]
        return " ".join(texts).lower()

    def has_words(path: str) -> bool:
        path_text = search_text(path)
        return all(word in path.lower() or f" {word}" in f" {path_text}" for word in searched)

    matches = [input_record for input_record in input_records if has_words(input_record.path)]
    return sorted(
        matches,
        key=lambda input_record: not all(word in input_record.path.lower() for word in searched),
    )


def written_input(number: Input) -> Input:
    """Return an input in the unit it is written in."""
    written_value, unit = number.stated_quantity or (number.value, number.unit)
    low, high = (
        None if end is None else convert(end, number.unit, unit)
        for end in (number.low, number.high)
    )
    return number._replace(value=written_value, unit=unit, low=low, high=high)


def inputs_answer(
    catalogue: Catalogue, scenario_result: Result, input_records: Sequence[Input]
) -> Answer:
    """Return some inputs of a scenario.

    Args:
        catalogue: Catalogue of the answer.
        scenario_result: Evaluated scenario.
        input_records: Inputs to show.

    """
    return INPUTS.answer(
        catalogue,
        (scenario_result, input_records),
        lambda: _inputs_tables(scenario_result, input_records),
        (INPUT, input_records),
        scenario_result.notes,
        of=scenario_result.context,
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

    scenario_result = evaluate(scenario, catalogue=catalogue)
    input_records = _result_inputs(scenario_result)
    return SCENARIO.answer(
        catalogue,
        (scenario_result, input_records),
        lambda: _inputs_tables(scenario_result, list(map(written_input, input_records))),
        (OF_SCENARIO, input_records),
        of=scenario_result.context,
    )


def _inputs_tables(scenario_result: Result, input_records: Sequence[Input]) -> list[Table]:
    noun = "input" if len(input_records) == 1 else "inputs"
    below = [
        f"{len(input_records)} {noun}. ~: an estimate or an assumption. P5 to P95: 9 of 10 draws "
        "lie between them.",
        "Replace one: tco compare --set 'PATH=VALUE UNIT'.",
    ]
    if len(input_records) <= MOST_DETAILED:
        return [
            INPUT.table(input_records, scenario_result.title, (), below)._replace(align="lrlllll")
        ]
    below.append(
        f"Date, kind and source: tco inputs {scenario_result.scenario} WORD for some, --format csv "
        "for all."
    )
    texts = [input_record for input_record in input_records if isinstance(input_record.value, str)]
    numbers = [
        input_record for input_record in input_records if not isinstance(input_record.value, str)
    ]
    choices = INPUT.only("path", "value").table(texts, f"{scenario_result.title}: choices")
    values_table = INPUT.only("path", "value", "unit", "low").table(
        numbers, f"{scenario_result.title}: numbers", (), below
    )
    values_table = values_table._replace(align="lrll")
    return [choices._replace(align="ll"), values_table] if texts else [values_table]
