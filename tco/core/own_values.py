"""The gate for a person's own values: what is typed or laid over the shipped data is read here.

While an answer keeps own values back, a stand-in comes out of the gate, and an error that names a
place and no value. No other module parses a quantity: the linter refuses the import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tco.core.errors import DataError
from tco.core.provenance import UNTOLD, Given, Input, check_bounds, making
from tco.core.redaction_values import placeholder_value
from tco.core.units import number_and_unit, parse_quantity


def own_input(
    typed: Input, usual: Callable[[], float | None], minimum: float, maximum: float
) -> Input:
    """Return a person's own input, or its stand-in where an answer keeps it back.

    Args:
        typed: Input as it was read.
        usual: Gives the shipped value in its place, in the unit of `typed`, or None.
        minimum: Least value that the input may have, in the unit of `typed`.
        maximum: Greatest value that the input may have, in the unit of `typed`.

    """
    return placeholder_value(typed, usual(), minimum, maximum) if making.get() else typed


@contextmanager
def untold_errors(what: str) -> Iterator[None]:
    """Withhold the text of an error raised inside the block, where an answer keeps values back.

    Args:
        what: Place of the value and what is wrong in general, which is told in any case.

    Raises:
        DataError: The block raised `DataError`; its text names values only where it may.

    """
    try:
        yield
    except DataError:
        if making.get():
            raise DataError(f"{what}; {UNTOLD}") from None
        raise


def setting_input(
    path: str,
    setting: Given,
    unit: str,
    bounds: tuple[float, float],
    usual: Callable[[], float | None],
) -> Input:
    """Return the input of a setting, or its stand-in where an answer keeps it back.

    Args:
        path: Input path.
        setting: Setting with a text such as `5 GB`.
        unit: Unit of the input.
        bounds: Least and greatest value, in `unit`.
        usual: Gives the value without the setting, in `unit`, or None.

    Raises:
        DataError: The text is no quantity of the unit, or lies out of bounds.

    """
    if not setting.keeps_back(path):
        return _read_setting(path, setting, unit, bounds)
    expected = f"is no quantity in {unit or 'pure numbers'} within its bounds"
    with untold_errors(f"{setting.where}: {path}: {expected}"):
        typed = _read_setting(path, setting, unit, bounds)
    return own_input(typed, usual, *bounds)


def _read_setting(path: str, setting: Given, unit: str, bounds: tuple[float, float]) -> Input:
    try:
        parsed_value = parse_quantity(setting.text, unit)
    except DataError as error:
        raise DataError(f"{path}={setting.text}: {error}") from None
    number, unit_text = number_and_unit(setting.text) or (parsed_value, unit)
    typed = Input(
        path,
        parsed_value,
        unit,
        parsed_value,
        parsed_value,
        kind=setting.kind,
        source=setting.source,
        stated_quantity=(number, unit_text) if unit_text != "%" else (parsed_value, unit),
        where=setting.where,
        overlay=setting.is_own,
    )
    return check_bounds(typed, *bounds)


def question_quantity(quantity_text: str, unit: str) -> float:
    """Return a quantity that a question itself names, in `unit`; its answer shows it.

    Args:
        quantity_text: Text of an option such as `--power`, or of a study.
        unit: Unit of the result; a pure number needs none.

    Raises:
        DataError: The text is no quantity of the unit.

    """
    return parse_quantity(quantity_text, unit)


def question_number_and_unit(quantity_text: str) -> tuple[float, str] | None:
    """Return the number and the unit that a question's text states; None where it states none."""
    return number_and_unit(quantity_text)
