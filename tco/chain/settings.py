"""What may be given in place of an input: a text, numbers with the unit they are in, or numbers alone where the input is a pure one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tco.foundation.errors import DataError
from tco.foundation.provenance import Given
from tco.foundation.units import convert, is_pure


def given_of(path: str, setting: Any, unit_of: Callable[[str], str]) -> Given:
    """Return a setting as the inputs take it: one number as its text, many as an array in the input's unit; anything else raises `DataError`."""
    if isinstance(setting, str):
        return Given(setting)
    number, unit = setting if isinstance(setting, tuple) and len(setting) == 2 else (setting, "")
    try:
        found = np.asarray(number, dtype=float)
    except (TypeError, ValueError):
        found = None
    if found is None or not found.size or not isinstance(unit, str):
        raise DataError(f"{path}: {setting!r} is no setting; expected a text such as '5 GB', (numbers, unit), or a pure number")
    wanted = unit_of(path)
    if not unit and not is_pure(wanted):
        one = "numbers" if found.ndim else repr(float(found))
        raise DataError(f"{path}: {one} without a unit, expected {wanted!r} or another of its kind, such as ({one}, {wanted!r})")
    if not found.ndim:
        return Given(f"{float(found)!r} {unit}".strip())
    try:
        many = convert(found, unit, wanted)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return Given(f"{found.size} values", many=many)


def shape_of(given: Mapping[str, Given]) -> tuple[int, ...]:
    """Return the shape of what is asked together: empty where every input is one number; shapes that do not fit raise `DataError`."""
    shapes = {path: one.many.shape for path, one in given.items() if one.many is not None}
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        said = ", ".join(f"{path} has {'x'.join(map(str, shape))}" for path, shape in shapes.items())
        raise DataError(f"inputs that are asked together need one number of values each: {said}") from None
