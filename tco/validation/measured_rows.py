"""Rows of a file of measurements: their columns as arrays, and the inputs of their chips.

`data/measured/columns.toml` says which columns there are, which of them hold texts, and in which
unit the others hold numbers. `parts.rows.X` and `performance.rows.X` are the attribute and the
parameter of practice of every row's own chip and family; an engine asked for the chip `rows` of the
family `rows` answers for all of them at once. Other owners of practice, such as the serving engine
or the library of collectives, have a name of their own for the ids of every row. Parameters under
fit are columns, so that one call answers for many sets of them: arrays are (rows,) or (sets, rows).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.errors import DataError
from tco.core.inputs import Readable, Values
from tco.core.memory import value_once
from tco.core.types import AnyArray, JsonObject, Settings
from tco.performance.chip.families import family_of
from tco.validation.measured import columns_known, map_values, of_text
from tco.validation.naming import part_ids, read_models
from tco.validation.row_dates import row_date
from tco.validation.wording import interpret_note

CHIP = FAMILY = "rows"


T = TypeVar("T")


@dataclass
class MeasuredRows:
    """Rows of a file, whose columns are read by name: `rows["n_gpus"]`."""

    source: pd.DataFrame
    catalogue: Catalogue
    values: Values
    settings: dict[str, str] = field(default_factory=dict)  # what the user sets, as texts
    indices: AnyArray | None = None  # rows of the source; None: all of them
    # values by row, cleared when values are set
    gathered: dict[str, AnyArray] = field(default_factory=dict, init=False)
    cached: JsonObject = field(default_factory=dict, init=False)  # what rests on the rows alone

    @cached_property
    def table(self) -> pd.DataFrame:
        """The rows as a table."""
        if self.indices is None:
            return self.source
        return self.source.iloc[self.indices].reset_index(drop=True)

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, column_name: str) -> AnyArray:
        """Return a column of texts or numbers; a cell that is blank is empty or nan."""
        if not of_text(column_name):
            return self.filled(column_name, np.nan)
        if column_name not in self.table:
            return np.full(len(self), "", dtype=object)
        return np.asarray(self.table[column_name].fillna(""), dtype=object)

    def filled(self, column_name: str, default: float) -> AnyArray:
        """Return a column of numbers with a default where a cell is blank."""
        assert column_name in columns_known()["numbers"], column_name
        if column_name not in self.table:
            return np.full(len(self), default)
        return np.asarray(self.table[column_name].fillna(default), dtype=float)

    def meanings(self, subject: str, column_name: str) -> AnyArray:
        """Return the meanings of the words in a column for a subject, empty where unknown."""
        return map_values(
            self[column_name], lambda cell_text: interpret_note(self.catalogue, subject, cell_text)
        )

    def first_stated(self, *column_names: str) -> tuple[AnyArray, AnyArray]:
        """Return the first of some columns that each row states, and its name.

        They are nan and empty where a row states none.
        """
        columns = [self[column_name] for column_name in column_names]
        stated = [~np.isnan(column) for column in columns]
        return np.select(stated, columns, np.nan), np.select(stated, column_names, "").astype(
            object
        )

    def refused(self, *marks: tuple[Any, Any]) -> AnyArray:
        """Return the reason for leaving out each row, empty if it is scored.

        Reasons are a suspect value, a claim, a value that no measurement can have, and `marks`. The
        first reason of a row counts.

        Args:
            marks: Masks of rows, each with one reason for all rows or an array of reasons.

        """
        kinds = pd.Series(self["value_kind"]).str.upper()
        negative = [
            (
                np.asarray(self.table[column_name], dtype=float) < 0,
                f"suspect: negative {column_name}",
            )
            for column_name in self.table.columns
            if not of_text(column_name) and column_name != "date"
        ]
        reasons = np.full(len(self), "", dtype=object)
        for row_mask, reason in (
            (kinds.str.startswith("SUSPECT"), "suspect"),
            (kinds.str.startswith("CLAIM"), "claim"),
            *negative,
            *marks,
        ):
            refused = (reasons == "") & np.asarray(row_mask, dtype=bool)
            reasons[refused] = reason if isinstance(reason, str) else reason[refused]
        return reasons

    @cached_property
    def parts(self) -> AnyArray:
        """Part id of each row; empty where the accelerator is unknown."""
        return part_ids(self.catalogue, self["accelerator"])

    @cached_property
    def families(self) -> AnyArray:
        """Family of each row's chip; empty where it is unknown."""
        return map_values(self.parts, lambda part: family_of(self.catalogue, part) if part else "")

    @cached_property
    def read_models(self) -> tuple[AnyArray, AnyArray]:
        """Model of each row, and the reason where it is unknown."""
        return read_models(self.catalogue, self.table)

    @property
    def models(self) -> AnyArray:
        """Model of each row; empty where it is unknown."""
        return self.read_models[0]

    @cached_property
    def dates(self) -> AnyArray:
        """Date of each row's software, as a text; empty where nothing tells it."""
        columns = (self[column_name] for column_name in ("date", "source_id", "source_url"))
        cells = zip(*columns, strict=True)
        return map_values(cells, lambda texts: row_date(self.catalogue, *texts))

    def part(self, attribute_name: str) -> AnyArray:
        """Return an attribute of every row's chip."""
        return self.gather(
            f"parts.{attribute_name}",
            self.parts,
            lambda part: self.values[f"parts.{part}.{attribute_name}"],
        )

    def gather(self, cache_key: str, ids: AnyArray, read: Callable[[str], Any]) -> AnyArray:
        """Return one value for each row, read once for each id.

        A value that is a column of sets gives an array of (sets, rows).
        """
        if cache_key not in self.gathered:
            distinct = sorted(set(ids))
            columns = [
                np.asarray(read(owner), dtype=float) if owner else np.array(np.nan)
                for owner in distinct
            ]
            sets = max(column.size for column in columns)
            spread = np.concatenate(
                [np.broadcast_to(column.reshape(-1, 1), (sets, 1)) for column in columns], axis=1
            )
            row_values = spread[:, np.searchsorted(distinct, ids.astype(str))]
            self.gathered[cache_key] = row_values if len(row_values) > 1 else row_values[0]
        return self.gathered[cache_key]

    def say(self, parameter_values: Settings) -> None:
        """Set parameters: each a number, or a column of them."""
        self.values.update(parameter_values)
        self.gathered.clear()

    @property
    def sets(self) -> tuple[int, ...]:
        """Shape of predictions before their rows: sets of parameters, empty for one set."""
        most = max(
            (
                np.size(input_value)
                for input_value in self.values.values()
                if isinstance(input_value, np.ndarray)
            ),
            default=1,
        )
        return (most,) if most > 1 else ()

    def once(self, cache_key: Any, make: Callable[[], T]) -> T:
        """Return the cached value of `cache_key`; the first use calls `make`.

        The value depends on the rows and on no fitted value.
        """
        return value_once(self.cached, cache_key, make)

    def assign(self, **columns: AnyArray) -> MeasuredRows:
        """Return the rows with some columns replaced or added."""
        assigned = replace(self, source=self.table.assign(**columns), indices=None)
        # of the same chips: cleared with those of the file, whenever values are set
        assigned.gathered = self.gathered
        return assigned

    def chosen(self, indices: AnyArray) -> MeasuredRows:
        """Return some of the rows, by mask or by index."""
        part = replace(self, source=self.table, indices=indices)
        part.__dict__ |= {"parts": self.parts[indices], "families": self.families[indices]}
        return part


class RowValues(Readable):
    """Values by path for some rows: those of their chip and family as arrays, others as they are.

    Args:
        measurements: Rows whose values are read.
        settings: Values by path that stand for those of the rows.
        owners: Ids of every row, by the name of an owner of practice.

    """

    def __init__(
        self,
        measurements: MeasuredRows,
        settings: Settings | None = None,
        owners: Mapping[str, AnyArray] | None = None,
    ) -> None:
        super().__init__(settings or {})
        self.measurements = measurements
        self.owners = {FAMILY: measurements.families, **(owners or {})}

    def __missing__(self, path: str) -> Any:
        group, owner, attribute_name = [*path.split("."), "", ""][:3]
        input_values = self.measurements.values
        row_value: Any
        if owner == CHIP and group == "parts":
            row_value = self.measurements.part(attribute_name)
        elif owner in self.owners and group == "performance":
            row_value = self.measurements.gather(
                path,
                self.owners[owner],
                lambda owner_id: input_values[f"performance.{owner_id}.{attribute_name}"],
            )
        else:
            row_value = input_values[path]
        self[path] = row_value
        return row_value

    def structure(self, path: str) -> float:
        """Return an input as a plain number to decide what exists.

        Raises:
            DataError: The rows differ in the input; rows that do are predicted apart.

        """
        numbers = np.unique(np.asarray(self[path], dtype=float))
        if len(numbers) != 1:
            raise DataError(f"{path} differs between rows that are predicted together")
        return float(numbers[0])
