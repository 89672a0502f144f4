"""The figures in a study's answer, checked against today's cases as rounded in the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tco.core.errors import DataError, refuse_unknown
from tco.core.types import JsonMapping, is_finite_number

FIGURE_KEYS = ("says", "metric", "at", "over", "quantile")
MEDIAN = 0.5
FIGURE_PATTERN = re.compile(r"([+-]?\d[\d,]*(?:\.\d+)?)( %| million)?")


class ExpectedFigure(NamedTuple):
    """A figure of the answer: its words, and the case that has it."""

    # words of the answer: "+5 %" is a change against another case, and words without a digit mean
    # that the metric has no value
    says: str
    metric: str
    figure_case: JsonMapping  # scenario, and value of each path of the grid
    # what differs in the case that the figure is divided by; None where it is not divided
    over: JsonMapping | None
    quantile: float  # quantile of the draws of the case that have a value

    def reads(self, today: float | None) -> bool:
        """Return whether today's value, rounded to the digits of the answer, is the answer's."""
        figure_match = FIGURE_PATTERN.fullmatch(self.says)
        if figure_match is None or today is None:
            return figure_match is None and today is None
        digits, unit = figure_match[1].replace(",", ""), figure_match[2]
        if unit == " %":
            today = (today - 1) * 100
        elif unit == " million":
            today = today / 1e6
        integer_digits, _, decimals = digits.partition(".")
        exponent_of_last_digit = -len(decimals)
        if not decimals:
            significant_digits = integer_digits.rstrip("0") or "0"
            exponent_of_last_digit = len(integer_digits) - len(significant_digits)
        return abs(today - float(digits)) <= 10.0**exponent_of_last_digit / 2

    @property
    def where(self) -> str:
        """Return metric and case in words."""
        above, below = (
            ", ".join(str(case_value) for case_value in case.values())
            for case in (self.figure_case, self.over or {})
        )
        return (
            f"{self.metric} of {above}"
            + (f" over {below}" if below else "")
            + (f", P{self.quantile * 100:g}" if self.quantile != MEDIAN else "")
        )


def parse_expected_figures(document: JsonMapping, where: str) -> tuple[ExpectedFigure, ...]:
    """Return the figures that a study expects; what is wrong with them raises `DataError`."""
    figure_tables = document.get("expect", [])
    if not isinstance(figure_tables, list) or not all(
        isinstance(figure_table, Mapping) for figure_table in figure_tables
    ):
        raise DataError(
            f"{where}: expect is no list of tables, expected {{ says, metric, at }} for each "
            "figure of the answer"
        )
    return tuple(
        _figure_of(figure_table, document, f"{where}: expect[{figure_index}]")
        for figure_index, figure_table in enumerate(figure_tables)
    )


def _figure_of(figure_table: JsonMapping, document: JsonMapping, where: str) -> ExpectedFigure:
    """Return a figure: its words in the answer, a reported metric, and a case of the grid."""
    refuse_unknown("key", figure_table, FIGURE_KEYS, where)
    says = str(figure_table.get("says", ""))
    metric = str(figure_table.get("metric", ""))
    quantile = figure_table.get("quantile", MEDIAN)
    if not says or not re.search(
        rf"(?<![\d.,]){re.escape(says)}(?!\d|[.,]\d)", str(document.get("answer", ""))
    ):
        raise DataError(f"{where}: says is {says!r}, expected words of the answer")
    refuse_unknown("metric", [metric], document["report"], where)
    if not is_finite_number(quantile) or not 0 <= quantile <= 1:
        raise DataError(f"{where}: quantile is {quantile!r}, expected a share from 0 to 1")
    figure_case, over = (
        _case_of(figure_table.get(case_key), document, f"{where}: {case_key}")
        for case_key in ("at", "over")
    )
    if missing := [
        path for path in ("scenario", *document.get("grid", {})) if path not in (figure_case or {})
    ]:
        raise DataError(
            f"{where}: at lacks {missing[0]}, expected a scenario and a value of every path of the "
            "grid"
        )
    if over and "constraints" in document:
        raise DataError(
            f"{where}: over is a case, and [constraints] may leave out some of its draws and not "
            "those of the other"
        )
    return ExpectedFigure(says, metric, figure_case or {}, over, float(quantile))


def _case_of(case_table: Any, document: JsonMapping, where: str) -> JsonMapping | None:
    """Return the case in the table `case_table`, checked against the study.

    Values must be written as in the study. Other values raise `DataError`. The result is None
    without a table.
    """
    if case_table is None:
        return None
    if not isinstance(case_table, Mapping):
        raise DataError(
            f"{where} is {case_table!r}, expected {{ scenario, and paths of the grid }}"
        )
    listed_values = {"scenario": document["scenarios"], **document.get("grid", {})}
    for path, case_value in case_table.items():
        refuse_unknown("path", [path], listed_values, where)
        if not isinstance(listed_values[path], list) or case_value not in listed_values[path]:
            raise DataError(
                f"{where}: {path} is {case_value!r}, expected a value that the study lists"
            )
    return case_table
