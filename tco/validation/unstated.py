"""Ranges of predictions over the values that measured rows leave unstated.

A row is predicted again with every value that its blank columns may have had. These variants are
read and predicted by the same code as the measured rows. The range of a row covers its own
prediction and its variants with a plan that fits. Where plans are searched, the range also covers
the plans that the row leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from tco.core.calendar_months import parse_calendar_month
from tco.core.types import AnyArray, JsonMapping, JsonObject
from tco.models.architecture import Architecture, load_model
from tco.performance.serving_engines import served_by
from tco.performance.training.job import engine_words
from tco.validation.inference import parse_framework
from tco.validation.measured import of_text
from tco.validation.measured_rows import MeasuredRows
from tco.validation.naming import (
    SHAPE,
    VOCABULARIES,
    named_model,
    vocabulary_alone,
)
from tco.validation.row_dates import row_days
from tco.validation.score import OFFLINE, Prediction, Predictor, predict_by_accelerator
from tco.validation.wording import interpret_note

Cells = JsonObject  # column -> what stands in it
SEQUENCES = (2048.0, 4096.0, 8192.0)  # tokens of a training sequence, as publications have them
STEPS = (1e6, 16e6)  # tokens of a training step, as publications have them
# and the peak a chip needs for it
FORMATS = {
    "bf16": "peak_bf16",
    "fp8": "peak_fp8",
    "fp4": "peak_fp4",
}
PREDICTED = ("", OFFLINE)  # why rows that are predicted are not scored
READ_ONLY = "SUSPECT: stands beside variants, and is not asked again"


class FilledRow(NamedTuple):
    """A row whose blanks are filled in."""

    cells: JsonMapping
    measurements: MeasuredRows
    part: str
    family: str
    model: Architecture

    def text(self, column_name: str) -> str:
        """Return a cell as text; empty where the file lacks the column."""
        cell_value = self.cells.get(column_name, "")
        return "" if pd.isna(cell_value) else str(cell_value).strip()

    def blank(self, *column_names: str) -> bool:
        """Say whether some cells are all blank."""
        return not any(self.text(column_name) for column_name in column_names)

    def chip_has(self, attribute_name: str) -> bool:
        """Say whether an attribute of the row's chip is known and above zero."""
        return (
            self.measurements.catalogue.has_part_value(self.part, attribute_name)
            and self.measurements.values.structure(f"parts.{self.part}.{attribute_name}") > 0
        )


def _formats_and_date(filled_row: FilledRow, dated: bool) -> Iterator[tuple[str, list[Cells]]]:
    """Yield the candidate number formats and software dates of a row.

    The candidate formats are the formats that the chip computes. The candidate dates are the first
    and last day of a year's software. Rows of any kind may leave both open.
    """
    if filled_row.blank("precision"):
        yield (
            "precision",
            [
                {"precision": format_name}
                for format_name, peak in FORMATS.items()
                if filled_row.chip_has(peak)
            ],
        )
    if not dated and (
        days := row_days(
            filled_row.measurements.catalogue,
            filled_row.text("date"),
            filled_row.text("source_id"),
            filled_row.text("source_url"),
        )
    ):
        yield "date", [{"date": day.isoformat()} for day in days]


def serving(filled_row: FilledRow) -> Iterator[tuple[str, list[Cells]]]:
    """Yield the candidate values of a serving row's blank columns.

    The columns are the groups of attention and experts, engine, software, formats and tokens
    predicted ahead.
    """
    catalogue = filled_row.measurements.catalogue
    if (
        filled_row.model.has_experts
        and interpret_note(catalogue, "answer", filled_row.text("disaggregated")) == "yes"
    ):
        for side in ("prefill", "decode"):
            chips = filled_row.cells.get(f"{side}_gpus")
            workers = filled_row.cells.get(f"{side}_workers")
            for degree_column in (f"{side}_dp", f"{side}_ep"):
                if filled_row.blank(degree_column) and chips and workers:
                    yield degree_column, [{degree_column: 1.0}, {degree_column: chips / workers}]
    elif (
        filled_row.model.has_experts
        and filled_row.blank("division")
        and (chips := filled_row.cells.get("n_gpus"))
        and chips > 1
    ):
        if filled_row.blank("dp_attention", "tp"):
            yield (
                "tp",
                [{"dp_attention": degree_text, "pp": 1.0} for degree_text in ("1", f"{chips:g}")],
            )
        if filled_row.blank("ep"):
            yield "ep", [{"ep": 1.0}, {"ep": chips}]
    engine, date = parse_framework(
        catalogue,
        filled_row.text("framework"),
        filled_row.text("date")
        if parse_calendar_month(filled_row.text("date")) is not None
        else "",
    )
    if engine == "family":
        yield (
            "framework",
            [
                {"framework": engine_name}
                for engine_name in served_by(catalogue, filled_row.family).get("engines", ())
            ],
        )
    yield from _formats_and_date(filled_row, dated=bool(date))
    if filled_row.blank("spec_decoding") and filled_row.model.prediction_layers:
        yield (
            "spec_decoding",
            [{"spec_decoding": drafting_mode} for drafting_mode in ("none", "mtp")],
        )


def training(filled_row: FilledRow) -> Iterator[tuple[str, list[Cells]]]:
    """Yield the candidate values of a training row's blank columns.

    The columns are lengths, engine, software, formats and vocabulary, without the plan.
    """
    catalogue, chips = filled_row.measurements.catalogue, filled_row.cells["n_accelerators"]
    if filled_row.blank("global_batch_seqs"):
        length = filled_row.cells["seq_len"] if not filled_row.blank("seq_len") else SEQUENCES[1]
        yield (
            "global_batch_seqs",
            [
                {"global_batch_seqs": max(round(tokens / length / chips), 1) * chips}
                for tokens in STEPS
            ],
        )
    if filled_row.blank("seq_len"):
        yield "seq_len", [{"seq_len": length} for length in SEQUENCES]
    words = " ".join(
        filled_row.text(word_column).lower()
        for word_column in ("framework", "source_title", "sharding", "notes")
    )
    if not any(word in words for word, _ in engine_words(catalogue)):
        yield (
            "framework",
            [
                {"framework": engine_name}
                for engine_name in served_by(catalogue, filled_row.family).get("training", ())
            ],
        )
    yield from _formats_and_date(
        filled_row, dated=parse_calendar_month(filled_row.text("date")) is not None
    )
    shape = {
        shape_column: float(filled_row.cells[shape_column])
        for shape_column in SHAPE
        if not filled_row.blank(shape_column)
    }
    if not named_model(catalogue, filled_row.text("model")) and vocabulary_alone(shape):
        yield "vocab", [{"vocab": size} for size in VOCABULARIES]


OPEN: dict[str, Callable[[FilledRow], Iterator[tuple[str, list[Cells]]]]] = {
    "inference": serving,
    "training": training,
}


def _fill_blanks(
    kind: str, measurements: MeasuredRows, scored: AnyArray
) -> tuple[list[Cells], list[int], list[list[str]]]:
    """Return variants of the scored rows, their row indices, and unstated columns by row."""
    variant_cells = list[Cells]()
    origins = list[int]()
    unstated: list[list[str]] = [[] for _ in range(len(measurements))]
    cells = measurements.table.to_dict("records")
    for row_index in np.flatnonzero(scored).tolist():
        row_cells = {str(column_name): cell for column_name, cell in cells[row_index].items()}
        filled_row = FilledRow(
            row_cells,
            measurements,
            str(measurements.parts[row_index]),
            str(measurements.families[row_index]),
            load_model(measurements.catalogue, measurements.models[row_index]),
        )
        choices = [
            (column_name, candidate_cells)
            for column_name, candidate_cells in OPEN[kind](filled_row)
            if candidate_cells
        ]
        unstated[row_index] += [column_name for column_name, _ in choices]
        for combination in (
            product(*(candidate_cells for _, candidate_cells in choices)) if choices else ()
        ):
            variant_cells.append(
                {
                    **row_cells,
                    **{
                        column_name: cell
                        for part in combination
                        for column_name, cell in part.items()
                    },
                }
            )
            origins.append(row_index)
    return variant_cells, origins, unstated


def ranged(
    kind: str, predictor: Predictor, measurements: MeasuredRows, prediction: Prediction
) -> Prediction:
    """Return predictions with their ranges over what rows leave unstated, and its names."""
    if kind not in OPEN:
        return prediction
    scored = np.isin(prediction.skip, PREDICTED)
    variant_cells, origins, unstated = _fill_blanks(kind, measurements, scored)
    table, catalogue = measurements.table, measurements.catalogue
    low, high = (
        prediction.predicted if edge is None else edge for edge in (prediction.low, prediction.high)
    )
    low, high = low.copy(), high.copy()
    if variant_cells:
        # the file's own rows stand beside: what single columns mean may follow from others of their
        # kind
        variant_table = pd.concat(
            [table.assign(value_kind=READ_ONLY), pd.DataFrame(variant_cells)], ignore_index=True
        )
        variant_table = variant_table.assign(
            **{
                column_name: variant_table[column_name].fillna("")
                for column_name in filter(of_text, variant_table)
            }
        )
        again = predict_by_accelerator(
            predictor, MeasuredRows(variant_table, catalogue, measurements.values)
        )
        fits = np.flatnonzero(np.isin(again.skip, PREDICTED))
        of = np.array(origins)[fits - len(table)]
        alike = again.target_name[fits] == prediction.target_name[of]
        fits, of = fits[alike], of[alike]
        np.fmin.at(low, of, (again.predicted if again.low is None else again.low)[fits])
        np.fmax.at(high, of, (again.predicted if again.high is None else again.high)[fits])
    unstated_names = [
        [
            *row_names,
            *(prediction.unstated[row_index] if prediction.unstated is not None else "").split(),
        ]
        for row_index, row_names in enumerate(unstated)
    ]
    unstated_texts = np.array(
        [" ".join(dict.fromkeys(row_names)) for row_names in unstated_names], dtype=object
    )
    return replace(
        prediction,
        low=np.where(scored, low, np.nan),
        high=np.where(scored, high, np.nan),
        unstated=np.where(scored, unstated_texts, ""),
    )
