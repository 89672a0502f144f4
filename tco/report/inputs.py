"""Input tables of a scenario, for `tco inputs` and `tco scenarios show`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.labels import PLAIN_NUMBERS, count_with_noun, short_name
from tco.catalog.rows import attribute_of_path
from tco.core.inputs import DERIVED
from tco.core.provenance import Input
from tco.core.units import convert
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import (
    NARROW_SCREEN,
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
    if scaled_row.low is None or scaled_row.high is None or scaled_row.low == scaled_row.high:
        return BUILT_UP if input_record.source == DERIVED else ""
    return (
        f"{input_text(input_record.path, scaled_row.low)} to "
        f"{input_text(input_record.path, scaled_row.high)}"
    )


BUILT_UP = "built up"  # in place of the range of a value that follows from other inputs
# inputs up to which kind, date and source are printed beside the words
MOST_DETAILED = 12
# inputs that are changed most
COMMON = (
    *("terms.rate", "terms.life", "terms.utilisation", "terms.perspective", "terms.date"),
    *("site.electricity_price", "site.pue", "site.usd_per_mw"),
    *("workload.model", "workload.precision", "workload.input_tokens", "workload.output_tokens"),
    *("workload.interactivity", "workload.draft_tokens", "workload.software", "cluster.chips"),
)
COMMON_OF_CHIP = ("price", "hbm_capacity", "hbm_bandwidth", "peak_fp8", "tdp")
CHIP_MARK = ".hbm_bandwidth"  # of every chip, and of no other part
# what the groups of inputs are about
GROUPS = {
    "carbon": "embodied greenhouse gas",
    "cluster": "network and size of the cluster",
    "failures": "failures and repairs",
    "money": "payments by month, delays, rents",
    "parts": "parts: prices, power, rates",
    "performance": "speed of kernels and engines",
    "shares": "share prices that rebates rest on",
    "site": "building and electricity",
    "terms": "buyer and terms of payment",
    "workload": "model, requests and target",
}
OF_SCENARIO = Record(
    Member("path", label="input, then its name for --set"),
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
NUMBER = OF_SCENARIO.only("path", "value", "unit", "low")
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


class Matches(NamedTuple):
    """Inputs that words find."""

    named: list[Input]  # by their paths or their other names, exact names first
    mentioned: list[Input]  # by the descriptions alone

    @property
    def inputs(self) -> list[Input]:
        """All inputs found."""
        return [*self.named, *self.mentioned]


def search_inputs(input_records: Sequence[Input], words: Sequence[str], chip: str) -> Matches:
    """Return the inputs that match all words, in any order.

    A word may begin a word of the path, of the other names or of the description. Case does not
    matter. Inputs of the chip of the system match the word `chip` too.

    Args:
        input_records: Inputs to search.
        words: Words to find; without words every input matches.
        chip: Id of the chip of the system.

    """
    searched = [re.compile(rf"(?<![a-z0-9]){re.escape(word)}") for word in _lower_words(words)]
    matches = Matches([], [])
    for input_record in input_records:
        attribute = attribute_of_path(input_record.path)
        part = input_record.path.split(".")[1]
        names = f"{input_record.path} {attribute.also if attribute else ''}".lower()
        names += " chip" if part == chip else ""
        mentions = f"{names} {attribute.description if attribute else ''}".lower()
        if all(pattern.search(names) for pattern in searched):
            matches.named.append(input_record)
        elif all(pattern.search(mentions) for pattern in searched):
            matches.mentioned.append(input_record)
    # `trn3 price` of parts.trn3.price, `wafer price` of parts.trn3.wafer_price
    exact_ends = tuple("." + separator.join(_lower_words(words)) for separator in "._")
    matches.named.sort(key=lambda match: not match.path.endswith(exact_ends))
    return matches


def _lower_words(words: Sequence[str]) -> list[str]:
    return " ".join(words).lower().split()


def input_description(path: str) -> str:
    """Return the label of an input, with its definition where a line holds both.

    Args:
        path: Path of the input.

    """
    label, attribute = short_name(path), attribute_of_path(path)
    clause = re.split(r"; |: | \(", attribute.description)[0] if attribute else ""
    if clause.startswith(label):
        return clause
    definition = f"{label}: {clause}"
    return definition if clause and len(definition) <= NARROW_SCREEN else label


def written_input(number: Input) -> Input:
    """Return an input in the unit it is written in."""
    written_value, unit = number.stated_quantity or (number.value, number.unit)
    low, high = (
        None if end is None else convert(end, number.unit, unit)
        for end in (number.low, number.high)
    )
    return number._replace(value=written_value, unit=unit, low=low, high=high)


def inputs_answer(
    catalogue: Catalogue, scenario_result: Result, matches: Matches, words: Sequence[str]
) -> Answer:
    """Return some inputs of a scenario.

    Args:
        catalogue: Catalogue of the answer.
        scenario_result: Evaluated scenario.
        matches: Inputs to show.
        words: Words that found them; without words tables show an overview.

    """

    def tables() -> list[Table]:
        if not words:
            return _overview_tables(scenario_result, matches.inputs)
        return _match_tables(scenario_result, matches, " ".join(words))

    return INPUTS.answer(
        catalogue,
        (scenario_result, matches.inputs),
        tables,
        (INPUT, matches.inputs),
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
        lambda: _overview_tables(scenario_result, list(map(written_input, input_records))),
        (OF_SCENARIO, input_records),
        of=scenario_result.context,
    )


def _overview_tables(scenario_result: Result, input_records: Sequence[Input]) -> list[Table]:
    """Return the choices, the inputs that are changed most, and the number of each group."""
    scenario = scenario_result.scenario
    paths = {input_record.path for input_record in input_records}
    chips = [path.removesuffix(CHIP_MARK) for path in paths if path.endswith(CHIP_MARK)]
    common_paths = {*COMMON, *(f"{chip}.{name}" for chip in chips for name in COMMON_OF_CHIP)}
    common = [input_record for input_record in input_records if input_record.path in common_paths]
    groups = Counter(input_record.path.partition(".")[0] for input_record in input_records)
    group_rows = [
        (GROUPS.get(group, group), str(number), f"tco inputs {scenario} {group}")
        for group, number in sorted(groups.items())
    ]
    group_table = Table(
        ("inputs of", "number", "list them"),
        group_rows,
        f"All {len(input_records)} inputs, by group",
        below=["By any word: tco inputs " + scenario + " electricity. All at once: --format csv."],
        align="lrl",
    )
    return [
        *_described_tables(common, f"{scenario_result.title}: inputs that are changed most"),
        group_table,
    ]


def _match_tables(scenario_result: Result, matches: Matches, words: str) -> list[Table]:
    matching = matches.named or matches.mentioned
    below = []
    if matches.named and matches.mentioned:
        below = [
            f"{count_with_noun(len(matches.mentioned), 'more input')} only in the description: "
            f"tco inputs {scenario_result.scenario} {words} --format csv."
        ]
    title = f"{scenario_result.title}: {count_with_noun(len(matching), 'input')} of {words!r}"
    return _described_tables(matching, title, below)


def _example_setting(number: Input) -> str:
    readable = _input_in_read_unit(number)
    return f"{number.path}={readable.value:.6g} {_shown_unit(number)}".rstrip()


def _described_tables(
    input_records: Sequence[Input], title: str, below: Sequence[str] = ()
) -> list[Table]:
    """Return the choices and the numbers among some inputs, each with what it is in words."""
    choices = [choice for choice in input_records if isinstance(choice.value, str)]
    numbers = [number for number in input_records if not isinstance(number.value, str)]
    choice_rows = [
        (choice.path, str(choice.value), input_description(choice.path)) for choice in choices
    ]
    number_rows: list[tuple[str, ...]] = []
    for number in numbers:
        kind = f"{number.kind}{' (own)' * number.overlay} {number.as_of}".rstrip()
        origin = f" [{kind}; {number.source}]"
        description = input_description(number.path)
        number_rows.append((description + origin * (len(numbers) <= MOST_DETAILED), "", "", ""))
        texts = [member.text(number) for member in NUMBER.members]
        number_rows.append((f"  {texts[0]}", *texts[1:]))
    examples = [_example_setting(number) for number in numbers if number.value]
    example = examples[0] if examples else "NAME=VALUE UNIT"
    is_built_up = any(_range_text(number) == BUILT_UP for number in numbers)
    legend = [
        "~: an estimate or an assumption. P5 to P95: 9 of 10 draws lie between them; empty: all "
        "draws take the value."
        + f" {BUILT_UP}: the value follows from other inputs and varies with them."
        * is_built_up,
        f"Change an input: tco compare --set '{example}'.",
        *below,
    ]
    tables = []
    if number_rows:
        columns = [member.label or "" for member in NUMBER.members]
        tables.append(Table(columns, number_rows, title, (), legend, "lrll"))
    if choice_rows:
        choice_title = f"{title}, choices"
        tables.append(
            Table(
                ("name for --set", "value", "what it decides"),
                choice_rows,
                choice_title,
                align="lll",
            )
        )
    return tables
