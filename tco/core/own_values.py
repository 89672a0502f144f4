"""The only reader of a user's own values, from the command line and from the user's files.

While an answer withholds own values, this module returns stand-ins for them, and its errors name
places and no values. No other module may import the parser of quantities; the linter checks this.
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
    """Return a user's own input, or its stand-in where the answer withholds it.

    Args:
        typed: Input as the user states it.
        usual: Returns the shipped value of the input in the unit of `typed`, or None.
        minimum: Smallest value that the input may have, in the unit of `typed`.
        maximum: Largest value that the input may have, in the unit of `typed`.

    """
    return placeholder_value(typed, usual(), minimum, maximum) if making.get() else typed


@contextmanager
def untold_errors(what: str) -> Iterator[None]:
    """Replace the text of an error of the block where the answer withholds own values.

    Args:
        what: Text that replaces the error: the place of the value and the kind of fault.

    Raises:
        DataError: The block raised `DataError`.

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
    """Return the input of a setting, or its stand-in where the answer withholds it.

    Args:
        path: Input path.
        setting: Setting with a text such as `5 GB`.
        unit: Unit of the input.
        bounds: Smallest and largest value, in `unit`.
        usual: Returns the value without the setting, in `unit`, or None.

    Raises:
        DataError: The text is not a quantity of the unit, or is out of bounds.

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
        path=path,
        value=parsed_value,
        unit=unit,
        low=parsed_value,
        high=parsed_value,
        kind=setting.kind,
        source=setting.source,
        stated_quantity=(number, unit_text) if unit_text != "%" else (parsed_value, unit),
        where=setting.where,
        overlay=setting.is_own,
    )
    return check_bounds(typed, *bounds)


def question_quantity(quantity_text: str, unit: str) -> float:
    """Return a quantity of the question itself, which is never withheld, in `unit`.

    Args:
        quantity_text: Text of an option such as `--power`, or of a study.
        unit: Unit of the result; empty for a pure number.

    Raises:
        DataError: The text is not a quantity of the unit.

    """
    return parse_quantity(quantity_text, unit)


def question_number_and_unit(quantity_text: str) -> tuple[float, str] | None:
    """Return the number and the unit of a question's text; None for a text without a number."""
    return number_and_unit(quantity_text)
