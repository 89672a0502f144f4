"""What the catalogue knows of the accelerators of a file: specifications and parameters of practice as arrays, a value a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tco.catalog import Catalogue
from tco.foundation.values import Values
from tco.performance.chip.formats import family_of
from tco.studies.validation.naming import part_ids


@dataclass
class Specifications:
    """Values by row for the rows whose accelerator the catalogue knows."""

    catalogue: Catalogue
    values: Values
    names: np.ndarray[Any, Any]  # accelerator of each row, as the file writes it
    found: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)  # cleared when values are set
    kept: dict[str, Any] = field(default_factory=dict)  # what rests on the rows alone

    @cached_property
    def parts(self) -> np.ndarray[Any, Any]:
        """Part id of each row; empty where the accelerator is unknown."""
        return part_ids(self.catalogue, self.names)

    @cached_property
    def families(self) -> np.ndarray[Any, Any]:
        """Family of each row's chip; empty where it is unknown."""
        families = {part: family_of(self.catalogue, part) if part else "" for part in set(self.parts)}
        return np.array([families[part] for part in self.parts], dtype=object)

    def part(self, name: str) -> np.ndarray[Any, Any]:
        """Return an attribute of every row's chip."""
        return self.gather(f"parts.{name}", self.parts, lambda part: self.values[f"parts.{part}.{name}"])

    def practice(self, name: str) -> np.ndarray[Any, Any]:
        """Return a parameter of practice of every row's family."""
        return self.gather(f"performance.{name}", self.families, lambda family: self.values[f"performance.{family}.{name}"])

    def gather(self, key: str, ids: np.ndarray[Any, Any], read: Any) -> np.ndarray[Any, Any]:
        """Return one value for each row, read once for each id; a value that is a column of sets gives an array of (sets, rows)."""
        if key not in self.found:
            known = sorted(set(ids))
            table = [np.asarray(read(one), dtype=float) if one else np.array(np.nan) for one in known]
            most = max(one.size for one in table)
            spread = np.concatenate([np.broadcast_to(one.reshape(-1, 1), (most, 1)) for one in table], axis=1)
            gathered = spread[:, np.searchsorted(known, ids.astype(str))]
            self.found[key] = gathered if len(gathered) > 1 else gathered[0]
        return self.found[key]

    @property
    def sets(self) -> tuple[int, ...]:
        """Shape in front of the rows of what is predicted: how many sets of parameters are asked for at once; empty for one."""
        most = max((np.size(value) for value in self.values.values() if isinstance(value, np.ndarray)), default=1)
        return (most,) if most > 1 else ()

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """Return what rests on the rows and on no value that is fitted, made on first use."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def rows(self, chosen: np.ndarray[Any, Any]) -> Specifications:
        """Return the specifications of some rows."""
        made = Specifications(self.catalogue, self.values, self.names[chosen])
        made.__dict__ |= {"parts": self.parts[chosen], "families": self.families[chosen]}  # found once for all
        return made
