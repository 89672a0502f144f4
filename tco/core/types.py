"""Types that the whole program shares: quantities, arrays, JSON documents, settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# As texts: numpy is not loaded by commands that need no arrays.
FloatArray: TypeAlias = "npt.NDArray[np.float64]"
BoolArray: TypeAlias = "npt.NDArray[np.bool_]"
# An array of any element type: texts, objects, or numbers of several kinds.
AnyArray: TypeAlias = "npt.NDArray[Any]"
JsonObject: TypeAlias = dict[str, Any]
JsonMapping: TypeAlias = Mapping[str, Any]
# Texts by name: settings by input path, options by variant.
TextMapping: TypeAlias = Mapping[str, str]
# Values by input path, as a user sets them: texts, numbers, or arrays of many values.
Settings: TypeAlias = Mapping[str, Any]

LONGEST_COUNT = 18  # digits


def is_finite_number(document_value: object) -> TypeGuard[float]:
    """Return whether a value of a document is a number, and no boolean, infinity or NaN."""
    return (
        isinstance(document_value, int | float)
        and not isinstance(document_value, bool)
        and abs(document_value) <= sys.float_info.max
    )


def is_whole_number(number_text: str) -> bool:
    """Return whether a text has only the digits 0 to 9, few enough for a count or an index."""
    return number_text.isascii() and number_text.isdigit() and len(number_text) <= LONGEST_COUNT


class Quantity(Protocol):
    """A number, an array of numbers, a traced value or a quantity with a unit.

    Every formula takes and gives quantities, in whichever reading it is called.
    """

    def __add__(self, operand: Any, /) -> Quantity: ...
    def __radd__(self, operand: Any, /) -> Quantity: ...
    def __sub__(self, operand: Any, /) -> Quantity: ...
    def __rsub__(self, operand: Any, /) -> Quantity: ...
    def __mul__(self, operand: Any, /) -> Quantity: ...
    def __rmul__(self, operand: Any, /) -> Quantity: ...
    def __truediv__(self, operand: Any, /) -> Quantity: ...
    def __rtruediv__(self, operand: Any, /) -> Quantity: ...
    def __floordiv__(self, operand: Any, /) -> Quantity: ...
    def __mod__(self, operand: Any, /) -> Quantity: ...
    def __pow__(self, operand: Any, /) -> Quantity: ...
    def __rpow__(self, operand: Any, /) -> Quantity: ...
    def __neg__(self) -> Quantity: ...
    def __abs__(self) -> Quantity: ...
    def __float__(self) -> float: ...
    def __lt__(self, operand: Any, /) -> Any: ...
    def __le__(self, operand: Any, /) -> Any: ...
    def __gt__(self, operand: Any, /) -> Any: ...
    def __ge__(self, operand: Any, /) -> Any: ...
