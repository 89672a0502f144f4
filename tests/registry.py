"""Every formula of the program, and the golden rows they are held against."""

from __future__ import annotations

import csv
import importlib
import json
import pkgutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import tco
from tco.core.equation import Symbol, equation
from tco.core.formula import (
    RECORDER,
    REGISTRY,
    Formula,
    Known,
    ceil_ratio,
    greatest,
    least,
    select,
    total,
)
from tco.core.units import convert, parse_quantity, registry, same_unit, unit, unit_table

# what tests of several files ask for
__all__ = [
    "RECORDER",
    "Known",
    "Symbol",
    "ceil_ratio",
    "convert",
    "equation",
    "greatest",
    "least",
    "registry",
    "same_unit",
    "select",
    "total",
    "unit",
    "unit_table",
]

GOLDEN = Path(__file__).parent / "golden"
Case = TypeVar("Case")


def import_all() -> list[str]:
    """Import every module of the program, so that every formula registers."""
    names = [
        module_info.name
        for module_info in pkgutil.walk_packages(tco.__path__, "tco.")
        if module_info.name != "tco.__main__"
    ]
    for name in names:
        importlib.import_module(name)
    return names


MODULES = import_all()
FORMULAS = sorted(REGISTRY.values(), key=lambda formula: formula.name)
# each by its name
FORMULA = SimpleNamespace(
    **{
        formula.name: getattr(sys.modules[formula.function.__module__], formula.name)
        for formula in FORMULAS
    }
)


class Golden(NamedTuple):
    """One call of a formula and what it must give."""

    id: str
    formula: Formula
    inputs: dict[str, float]  # in the declared units, defaults filled in
    expected: float
    unit: str
    tolerance: float


def complete_inputs(formula: Formula, stated_inputs: dict[str, Any]) -> dict[str, float]:
    """Return every parameter of a formula as a number in its declared unit.

    A text is read as a quantity.
    """
    merged = {**formula.defaults, **stated_inputs}
    return {
        name: parse_quantity(merged[name], unit) if isinstance(merged[name], str) else merged[name]
        for name, unit in formula.parameters.items()
    }


def read_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a golden table."""
    with (GOLDEN / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def golden_rows() -> tuple[list[Golden], list[str]]:
    """Return the golden rows of the formulas, and what is wrong with the others."""
    valid_rows, wrong = [], []
    for position, row in enumerate(read_rows("formulas.csv"), start=2):
        formula, inputs = REGISTRY.get(row["formula"]), json.loads(row["inputs"])
        if formula is None:
            wrong.append(f"line {position}: no formula is called {row['formula']}")
        elif inputs.keys() | formula.defaults.keys() != formula.parameters.keys():
            wrong.append(
                f"line {position}: {formula.name} takes {', '.join(formula.parameters)}, not "
                f"{', '.join(inputs)}"
            )
        else:
            formula_inputs = complete_inputs(formula, inputs)
            valid_rows.append(
                Golden(
                    f"{formula.name}-{position}",
                    formula,
                    formula_inputs,
                    float(row["expected"]),
                    row["unit"],
                    float(row["tolerance"]),
                )
            )
    return valid_rows, wrong


ROWS, WRONG = golden_rows()


def over(cases: Mapping[str, Case]) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """Make one test of a check that holds for each of many cases; it names all that fail.

    A test for each case would take longer than what it checks.
    """

    def test_of(check: Callable[[Case], None]) -> Callable[[], None]:
        def test() -> None:
            wrong = []
            for name, case in cases.items():
                try:
                    check(case)
                except Exception as error:
                    wrong.append(f"{name}: {type(error).__name__}: {error}")
            assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)} fail", *wrong])

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return test_of


each_row = over({row.id: row for row in ROWS})
each_formula = over({formula.name: formula for formula in FORMULAS})
