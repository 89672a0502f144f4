"""Accelerator specifications of measured rows as arrays.

The module also holds the mapping that rows are read into, and the command that evaluates a row
again.

`parts.rows.X` and `performance.rows.X` are the attribute and the parameter of practice of every
row's own chip and family; an engine asked for the chip `rows` of the family `rows` answers for all
of them at once. Other owners of practice, such as the serving engine or the library of collectives,
have a name of their own for the ids of every row. Parameters under fit are columns, so that one
call answers for many sets of them: arrays are (rows,) or (sets, rows).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tco.catalog import Catalogue
from tco.core.errors import DataError
from tco.core.inputs import Readable, Values
from tco.core.types import AnyArray, JsonMapping, JsonObject, Settings
from tco.performance.chip.formats import family_of
from tco.validation.measured import mapped
from tco.validation.naming import part_ids


@dataclass
class Specifications:
    """Values by row for the rows whose accelerator the catalogue knows."""

    catalogue: Catalogue
    values: Values
    names: AnyArray  # accelerator of each row, as the file writes it
    found: dict[str, AnyArray] = field(default_factory=dict)  # cleared when values are set
    kept: JsonObject = field(default_factory=dict)  # what rests on the rows alone
    settings: Mapping[str, str] = field(default_factory=dict)  # what the user sets, as texts

    @cached_property
    def parts(self) -> AnyArray:
        """Part id of each row; empty where the accelerator is unknown."""
        return part_ids(self.catalogue, self.names)

    @cached_property
    def families(self) -> AnyArray:
        """Family of each row's chip; empty where it is unknown."""
        return mapped(self.parts, lambda part: family_of(self.catalogue, part) if part else "")

    def part(self, name: str) -> AnyArray:
        """Return an attribute of every row's chip."""
        return self.gather(
            f"parts.{name}", self.parts, lambda part: self.values[f"parts.{part}.{name}"]
        )

    def gather(self, key: str, ids: AnyArray, read: Any) -> AnyArray:
        """Return one value for each row, read once for each id; a value that is a column of sets
        gives an array of (sets, rows).
        """
        if key not in self.found:
            known = sorted(set(ids))
            table = [
                np.asarray(read(one), dtype=float) if one else np.array(np.nan) for one in known
            ]
            most = max(one.size for one in table)
            spread = np.concatenate(
                [np.broadcast_to(one.reshape(-1, 1), (most, 1)) for one in table], axis=1
            )
            gathered = spread[:, np.searchsorted(known, ids.astype(str))]
            self.found[key] = gathered if len(gathered) > 1 else gathered[0]
        return self.found[key]

    def say(self, values: Settings) -> None:
        """Set parameters: each a number, or a column of them."""
        self.values.update(values)
        self.found.clear()

    @property
    def sets(self) -> tuple[int, ...]:
        """Shape in front of the rows of what is predicted: how many sets of parameters are asked
        for at once; empty for one.
        """
        most = max(
            (np.size(value) for value in self.values.values() if isinstance(value, np.ndarray)),
            default=1,
        )
        return (most,) if most > 1 else ()

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the cached value of `key`; the first use calls `make`.

        The value depends on the rows and on no fitted value.
        """
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def rows(self, chosen: AnyArray) -> Specifications:
        """Return the specifications of some rows."""
        made = Specifications(
            self.catalogue, self.values, self.names[chosen], settings=self.settings
        )
        # found once for all
        made.__dict__ |= {
            "parts": self.parts[chosen],
            "families": self.families[chosen],
        }
        return made


CHIP = FAMILY = "rows"


class RowValues(Readable):
    """Values by path for some rows: those of their chip and family as arrays, those all share as
    they are.
    """

    def __init__(
        self,
        chips: Specifications,
        given: Settings | None = None,
        owners: Mapping[str, AnyArray] | None = None,
    ) -> None:
        super().__init__(given or {})
        self.chips = chips
        # of practice: name -> the id of every row
        self.owners = {
            FAMILY: chips.families,
            **(owners or {}),
        }

    def __missing__(self, path: str) -> Any:
        group, owner, name = [*path.split("."), "", ""][:3]
        value: Any
        if owner == CHIP and group == "parts":
            value = self.chips.part(name)
        elif owner in self.owners and group == "performance":
            value = self.chips.gather(
                path, self.owners[owner], lambda one: self.chips.values[f"performance.{one}.{name}"]
            )
        else:
            value = self.chips.values[path]
        self[path] = value
        return value

    def structure(self, path: str) -> float:
        """Return an input as a plain number to decide what exists; rows that differ in it raise
        `DataError`: group them by it.
        """
        found = np.unique(np.asarray(self[path], dtype=float))
        if len(found) != 1:
            raise DataError(f"{path} differs between rows that are predicted together")
        return float(found[0])


def command_line_text(value: Any) -> str:
    """Return a value as the command line reads it: a text, a number at full precision, or a number
    with its unit.
    """
    if isinstance(value, tuple):
        number, unit = value
        return f"{command_line_text(number)} {unit}".strip()
    if isinstance(value, str):
        return value
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def plan_axes_text(axes: JsonMapping) -> str:
    """Return the axes of a plan as `--plan` takes them: tp=8,ep=1."""
    return ",".join(f"{name}={command_line_text(value)}" for name, value in axes.items())


def command_line(words: Sequence[str], options: JsonMapping, settings: Settings) -> str:
    """Return a whole command line: `tco`, its words, its options, and the inputs that are set. An
    option that is None is left out.
    """
    line = ["tco", *words]
    for name, value in options.items():
        if value is not None:
            line += [f"--{name}"] if value is True else [f"--{name}", command_line_text(value)]
    for path, value in settings.items():
        line += ["--set", f"{path}={command_line_text(value)}"]
    return shlex.join(line)
