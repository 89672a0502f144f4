"""The mapping measured rows are read into: what a scenario gives as numbers, rows give as arrays.

`parts.rows.X` and `performance.rows.X` are the attribute and the parameter of practice of every row's own chip and family; an
engine asked for the chip `rows` of the family `rows` answers for all of them at once. Other owners of practice, such as the
serving engine or the library of collectives, have a name of their own for the ids of every row. Parameters under fit are columns,
so that one call answers for many sets of them: arrays are (rows,) or (sets, rows).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tco.foundation.errors import DataError
from tco.studies.validation.specifications import Specifications

CHIP = FAMILY = "rows"


class RowValues(dict[str, Any]):
    """Values by path for some rows: those of their chip and family as arrays, those all share as they are."""

    def __init__(
        self, chips: Specifications, given: Mapping[str, Any] | None = None, owners: Mapping[str, np.ndarray[Any, Any]] | None = None
    ) -> None:
        super().__init__(given or {})
        self.chips = chips
        self.owners = {FAMILY: chips.families, **(owners or {})}  # of practice: name -> the id of every row

    def __missing__(self, path: str) -> Any:
        group, owner, name = [*path.split("."), "", ""][:3]
        value: Any
        if owner == CHIP and group == "parts":
            value = self.chips.part(name)
        elif owner in self.owners and group == "performance":
            value = self.chips.gather(path, self.owners[owner], lambda one: self.chips.values[f"performance.{one}.{name}"])
        else:
            value = self.chips.values[path]
        self[path] = value
        return value

    def structure(self, path: str) -> float:
        """Return an input as a plain number to decide what exists; rows that differ in it raise `DataError`: group them by it."""
        found = np.unique(np.asarray(self[path], dtype=float))
        if len(found) != 1:
            raise DataError(f"{path} differs between rows that are predicted together")
        return float(found[0])
