"""Numbers that stay finite: a division by zero, an overflow or a result that is none is an error, wherever the caller's numpy would go on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from tco.foundation.errors import DataError

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


def finite(function: Callable[Arguments, Found]) -> Callable[Arguments, Found]:
    """Return a function that raises `DataError` where arithmetic of arrays has no finite result; the caller's own settings stay as they are."""

    @wraps(function)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Found:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            try:
                return function(*arguments, **named)
            except FloatingPointError as error:
                raise DataError(f"no finite number comes out of these inputs: {error}") from error

    return call
