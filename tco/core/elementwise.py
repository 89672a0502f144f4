"""Elementwise functions of numpy, typed for quantities: numbers, arrays, symbols of equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from tco.core.types import FloatArray, Quantity

Unary: TypeAlias = Callable[[Quantity], Quantity]
Binary: TypeAlias = Callable[[Quantity, Quantity], Quantity]

ceil = cast(Unary, np.ceil)
floor = cast(Unary, np.floor)
sqrt = cast(Unary, np.sqrt)
exp = cast(Unary, np.exp)
expm1 = cast(Unary, np.expm1)
log = cast(Unary, np.log)
log1p = cast(Unary, np.log1p)
log2 = cast(Unary, np.log2)
elementwise_maximum = cast(Binary, np.maximum)
elementwise_minimum = cast(Binary, np.minimum)
where = cast(Callable[[Any, Quantity, Quantity], Quantity], np.where)
as_array = cast(Callable[[Quantity], FloatArray], np.asarray)
