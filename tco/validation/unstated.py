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

from tco.core.types import JsonMapping, JsonObject
from tco.models.architecture import Architecture, load_model
from tco.performance.software_maturity import parse_calendar_month, served_by
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

    def text(self, name: str) -> str:
        """Return a cell as text; empty where the file lacks the column."""
        value = self.cells.get(name, "")
        return "" if pd.isna(value) else str(value).strip()

    def blank(self, *names: str) -> bool:
        """Say whether some cells are all blank."""
        return not any(self.text(name) for name in names)

    def chip_has(self, name: str) -> bool:
        """Say whether an attribute of the row's chip is known and above zero."""
        return (
            self.measurements.catalogue.has_part_value(self.part, name)
            and self.measurements.values.structure(f"parts.{self.part}.{name}") > 0
        )

    @property
    def sparse(self) -> bool:
        """Say whether the model has experts."""
        return any(block.feed_forward.experts for block in self.model.blocks)


def _formats_and_date(row: FilledRow, dated: bool) -> Iterator[tuple[str, list[Cells]]]:
    """Yield the candidate number formats and software dates of a row.

    The candidate formats are the formats that the chip computes. The candidate dates are the first
    and last day of a year's software. Rows of any kind may leave both open.
    """
    if row.blank("precision"):
        yield (
            "precision",
            [{"precision": name} for name, peak in FORMATS.items() if row.chip_has(peak)],
        )
    if not dated and (
        days := row_days(
            row.measurements.catalogue,
            row.text("date"),
            row.text("source_id"),
            row.text("source_url"),
        )
    ):
        yield "date", [{"date": day.isoformat()} for day in days]


def serving(row: FilledRow) -> Iterator[tuple[str, list[Cells]]]:
    """Yield the candidate values of a serving row's blank columns.

    The columns are the groups of attention and experts, engine, software, formats and tokens
    predicted ahead.
    """
    catalogue = row.measurements.catalogue
    if row.sparse and interpret_note(catalogue, "answer", row.text("disaggregated")) == "yes":
        for side in ("prefill", "decode"):
            chips, workers = row.cells.get(f"{side}_gpus"), row.cells.get(f"{side}_workers")
            for name in (f"{side}_dp", f"{side}_ep"):
                if row.blank(name) and chips and workers:
                    yield name, [{name: 1.0}, {name: chips / workers}]
    elif row.sparse and row.blank("division") and (chips := row.cells.get("n_gpus")) and chips > 1:
        if row.blank("dp_attention", "tp"):
            yield "tp", [{"dp_attention": text, "pp": 1.0} for text in ("1", f"{chips:g}")]
        if row.blank("ep"):
            yield "ep", [{"ep": 1.0}, {"ep": chips}]
    engine, date = parse_framework(
        catalogue,
        row.text("framework"),
        row.text("date") if parse_calendar_month(row.text("date")) is not None else "",
    )
    if engine == "family":
        yield (
            "framework",
            [{"framework": name} for name in served_by(catalogue, row.family).get("engines", ())],
        )
    yield from _formats_and_date(row, dated=bool(date))
    if row.blank("spec_decoding") and row.model.prediction_layers:
        yield "spec_decoding", [{"spec_decoding": text} for text in ("none", "mtp")]


def training(row: FilledRow) -> Iterator[tuple[str, list[Cells]]]:
    """Yield the candidate values of a training row's blank columns.

    The columns are lengths, engine, software, formats and vocabulary, without the plan.
    """
    catalogue, chips = row.measurements.catalogue, row.cells["n_accelerators"]
    if row.blank("global_batch_seqs"):
        length = row.cells["seq_len"] if not row.blank("seq_len") else SEQUENCES[1]
        yield (
            "global_batch_seqs",
            [
                {"global_batch_seqs": max(round(tokens / length / chips), 1) * chips}
                for tokens in STEPS
            ],
        )
    if row.blank("seq_len"):
        yield "seq_len", [{"seq_len": length} for length in SEQUENCES]
    words = " ".join(
        row.text(name).lower() for name in ("framework", "source_title", "sharding", "notes")
    )
    if not any(word in words for word, _ in engine_words(catalogue)):
        yield (
            "framework",
            [{"framework": name} for name in served_by(catalogue, row.family).get("training", ())],
        )
    yield from _formats_and_date(row, dated=parse_calendar_month(row.text("date")) is not None)
    shape = {name: float(row.cells[name]) for name in SHAPE if not row.blank(name)}
    if not named_model(catalogue, row.text("model")) and vocabulary_alone(shape):
        yield "vocab", [{"vocab": size} for size in VOCABULARIES]


OPEN: dict[str, Callable[[FilledRow], Iterator[tuple[str, list[Cells]]]]] = {
    "inference": serving,
    "training": training,
}


def ranged(
    kind: str, predictor: Predictor, measurements: MeasuredRows, prediction: Prediction
) -> Prediction:
    """Return predictions with their ranges over what rows leave unstated, and its names."""
    if kind not in OPEN:
        return prediction
    scored = np.isin(prediction.skip, PREDICTED)
    # with their blanks filled in, and the place of the row each came from
    rows, origins = (
        list[Cells](),
        list[int](),
    )
    unstated: list[list[str]] = [[] for _ in range(len(measurements))]
    table, catalogue = measurements.table, measurements.catalogue
    cells = table.to_dict("records")
    for row_index in np.flatnonzero(scored).tolist():
        row_cells = {str(name): cell for name, cell in cells[row_index].items()}
        row = FilledRow(
            row_cells,
            measurements,
            str(measurements.parts[row_index]),
            str(measurements.families[row_index]),
            load_model(catalogue, measurements.models[row_index]),
        )
        choices = [(name, values) for name, values in OPEN[kind](row) if values]
        unstated[row_index] += [name for name, _ in choices]
        for combination in product(*(values for _, values in choices)) if choices else ():
            rows.append(
                {**row_cells, **{name: cell for part in combination for name, cell in part.items()}}
            )
            origins.append(row_index)
    low, high = (
        prediction.predicted if edge is None else edge for edge in (prediction.low, prediction.high)
    )
    low, high = low.copy(), high.copy()
    if rows:
        # the file's own rows stand beside: what single columns mean may follow from others of their
        # kind
        variant_table = pd.concat(
            [table.assign(value_kind=READ_ONLY), pd.DataFrame(rows)], ignore_index=True
        )
        variant_table = variant_table.assign(
            **{name: variant_table[name].fillna("") for name in filter(of_text, variant_table)}
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
    names = [
        [
            *row_names,
            *(prediction.unstated[row_index] if prediction.unstated is not None else "").split(),
        ]
        for row_index, row_names in enumerate(unstated)
    ]
    unstated_texts = np.array(
        [" ".join(dict.fromkeys(row_names)) for row_names in names], dtype=object
    )
    return replace(
        prediction,
        low=np.where(scored, low, np.nan),
        high=np.where(scored, high, np.nan),
        unstated=np.where(scored, unstated_texts, ""),
    )
