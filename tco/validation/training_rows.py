"""Read training rows: the job, software and plan of each, in the program's own names.

What a row states fixes axes of the plan and inputs; what it leaves unstated stays free, as in any
question to the program. Words are read as publishers write them: `selective + sequence parallel`,
`FULL_SHARD`, `ZeRO-1`, `amp_fp8`. One rule for all rows.
"""

from __future__ import annotations

import math
import re

import numpy as np

from tco.core.types import AnyArray, JsonObject, TextMapping, is_whole_number
from tco.performance.training.job import engine_words
from tco.validation.measured import columns_known
from tco.validation.measured_rows import MeasuredRows
from tco.validation.naming import read_pattern_table
from tco.validation.wording import interpret_note, precisions

SEQUENCE = 4096  # tokens, where unstated
STEP_TOKENS = 4.0e6  # of a step, where the batch is unstated
# sequences a rank takes at once, tried where neither batch nor micro-batch are stated
SIZES = (
    1,
    2,
    4,
    8,
    16,
)
# axis of a plan -> the column that states it
OPEN = {
    "zero": "sharding",
    "micro_batch": "micro_batch_seqs",
    "recompute": "activation_recompute",
}
# tensor groups tried where a row says nothing of its groups and its batch is too small for as many
# ranks as chips
WIDEST = 16
RECIPE_KEYS = ("model", "accelerator", "precision")  # of a publication's recipe


def training_targets(measurements: MeasuredRows) -> tuple[AnyArray, AnyArray]:
    """Return the measured value of every row and its name.

    It is the time of a step, else tokens per second and chip, else TFLOP/s. Where the batch is
    unstated a step says nothing: its rate is held against the measured one.
    """
    targets = columns_known()["kinds"]["training"]["targets"]
    rate, rate_name = measurements.first_stated(*targets[1:])
    measured_values, target_names = measurements.first_stated(*targets)
    batchless = np.isnan(measurements["global_batch_seqs"]) & ~np.isnan(rate)
    return np.where(batchless, rate, measured_values), np.where(batchless, rate_name, target_names)


def usable_domain(domain: int, chips: int) -> int:
    """Return the chips of a scale-up domain that a job uses: all that divide, or a power of two."""
    if domain % chips == 0 or chips % domain == 0:
        return domain
    return chips if chips < domain else 1 << (domain.bit_length() - 1)


TEXTS = (
    "source_id",
    "source_title",
    "system",
    "model",
    "precision",
    "sharding",
    "activation_recompute",
    "notes",
    "framework",
    "sequence_parallel",
    "attention",
    "attention_kernel",
    "schedule",
)
COUNTS = (
    "tp",
    "pp",
    "vp",
    "cp",
    "ep",
    "global_batch_seqs",
    "micro_batch_seqs",
    "seq_len",
    "n_accelerators",
)


def stated_group_size(fixed: TextMapping) -> int:
    """Return the chips of a model replica, by the axes that a row fixes.

    Args:
        fixed: Texts of plan axes by name; an axis that is no number is open and counts as 1.

    """
    return math.prod(
        int(fixed[axis_name])
        for axis_name in ("tp", "pp", "cp")
        if is_whole_number(fixed[axis_name])
    )


class Reader:
    """Reader of a training file's words and numbers, row by row."""

    def __init__(self, measurements: MeasuredRows) -> None:
        self.measurements, self.catalogue = measurements, measurements.catalogue
        self.sequence = SEQUENCE
        self.cells = {column_name: measurements[column_name] for column_name in (*TEXTS, *COUNTS)}
        # publications that print the interleave of their plans
        self.prints = set(self.cells["source_id"][~np.isnan(self.cells["vp"])])
        self.engines = engine_words(self.catalogue)
        self.evaluations = self._table(
            "evaluations.csv", ("benchmark", "model", "evaluated", "every")
        )
        self.recipes = self._table("recipes.csv", ("publication", *RECIPE_KEYS, "recompute"))

    def _table(self, name: str, columns: tuple[str, ...]) -> list[JsonObject]:
        return read_pattern_table(self.catalogue, f"training/{name}", (*columns, "source", "note"))

    def count(self, column_name: str, row_index: int) -> int | None:
        """Return a whole number a row states."""
        cell_value = self.cells[column_name][row_index]
        return None if np.isnan(cell_value) else int(cell_value)

    def means(self, subject: str, column: str, row_index: int) -> str:
        """Return the meaning of a cell for `subject`.

        The text is empty where the cell says nothing of `subject`.
        """
        return interpret_note(self.catalogue, subject, self.cells[column][row_index])

    def engine(self, row_index: int) -> str:
        """Return the training engine that the words of a row name."""
        for cell in ("framework", "source_title", "sharding", "notes"):
            cell_text = self.cells[cell][row_index].lower()
            if engine_name := next(
                (engine for word_of, engine in self.engines if word_of in cell_text), ""
            ):
                return engine_name
        return ""

    def texts(self, row_index: int) -> dict[str, str]:
        """Return the inputs of a row that are texts."""
        named = precisions(self.catalogue, self.cells["precision"][row_index]) or ("bf16",)
        forward, backward = named[0], named[min(1, len(named) - 1)]
        text_inputs = {"workload.precision": forward}
        if backward != forward:
            text_inputs["workload.backward_precision"] = backward
        text_inputs["workload.software"] = str(self.measurements.dates[row_index])
        if engine := self.engine(row_index):
            text_inputs["workload.engine"] = engine
        kernel = "attention_kernel" if self.cells["attention_kernel"][row_index] else "attention"
        for path, subject, cell in (
            ("attention", "attention kernel", kernel),
            ("trained", "trained", "model"),
            ("loss", "loss", "notes"),
        ):
            if meaning := self.means(subject, cell, row_index):
                text_inputs[f"workload.{path}"] = meaning
        return text_inputs

    def cores(self, row_index: int, cores: float) -> int:
        """Return the cores of a chip where the row's groups count cores, else one."""
        return (
            int(cores)
            if re.search(r"count (neuron)?cores", self.cells["notes"][row_index].lower())
            else 1
        )

    def domain(self, row_index: int, chips: int, domain: int) -> int:
        """Return the chips of a scale-up domain, or of a slice where the system has several."""
        slice_match = re.search(r"^(\d+)x\s+v\d", self.cells["system"][row_index])
        return max(chips // int(slice_match[1]), 1) if slice_match else domain

    def fixed(self, row_index: int, cores: int, devices: int) -> dict[str, str]:
        """Return the plan axes that a row states, with groups in chips where rows count cores."""
        stated = {
            axis_name: self.count(axis_name, row_index) for axis_name in ("tp", "pp", "cp", "ep")
        }
        silent = not any(stated[axis_name] for axis_name in ("tp", "pp", "cp"))
        groups = {axis_name: stated[axis_name] or 1 for axis_name in stated}
        if cores > 1 and groups["tp"] % cores == 0:
            groups["tp"] //= cores
        fixed_axes = {axis_name: str(group_size) for axis_name, group_size in groups.items()}
        slice_match = re.search(r"^(\d+)x\s", self.cells["system"][row_index])
        level, _, hybrid = self.means("sharding", "sharding", row_index).partition(" ")
        batch = self.count("global_batch_seqs", row_index)
        # fewer sequences than ranks: something else divides the model
        if silent and batch and batch < devices:
            fixed_axes["tp"] = "|".join(str(2**n) for n in range(WIDEST.bit_length()))
        if level:
            fixed_axes["zero"] = level
        if hybrid or (level == "3" and slice_match and int(slice_match[1]) > 1):
            fixed_axes["hybrid_sharding"] = "yes"
        fixed_axes["optimizer_offload"] = self.means("offload", "sharding", row_index) or "no"
        fixed_axes |= self.schedule(row_index, groups["pp"])
        if (size := self.count("micro_batch_seqs", row_index)) is not None:
            fixed_axes["micro_batch"] = str(size)
        if recomputed := self.recomputation(row_index):
            fixed_axes["recompute"] = recomputed
        if split := self.means("answer", "sequence_parallel", row_index) or self.means(
            "sequence parallel", "activation_recompute", row_index
        ):
            fixed_axes["sequence_parallel"] = split
        return fixed_axes

    def unstated(self, row_index: int, fixed: TextMapping) -> list[str]:
        """Return the columns of a row's plan that are blank and leave a choice."""
        stated = {column: "|" not in fixed.get(axis, "|") for axis, column in OPEN.items()}
        stated["tp"] = "|" not in fixed["tp"]
        stated["sequence_parallel"] = "sequence_parallel" in fixed or fixed["tp"] == "1"
        stated["vp"] = "|" not in fixed["schedule"]
        stated["global_batch_seqs"] = self.count("global_batch_seqs", row_index) is not None
        return [column for column, is_stated in stated.items() if not is_stated]

    def recomputation(self, row_index: int) -> str:
        """Return the recomputation that a row states, or else that of its publication's recipe.

        The text is empty where neither says so.
        """
        stated = self.means("recomputation", "activation_recompute", row_index)
        if stated:
            return stated
        title = self.cells["source_title"][row_index].lower()
        keys = [
            str(self.measurements.models[row_index]),
            str(self.measurements.parts[row_index]),
            self.texts(row_index)["workload.precision"],
        ]
        return next(
            (
                str(recipe["recompute"])
                for recipe in self.recipes
                if recipe["publication"] in title and [recipe[key] for key in RECIPE_KEYS] == keys
            ),
            "",
        )

    def schedule(self, row_index: int, stages: int) -> dict[str, str]:
        """Return a row's schedule and interleave.

        It is one part per stage where the publication prints interleaves, but not for this row.
        """
        interleave = self.count("vp", row_index)
        if interleave is None and stages > 1 and self.cells["source_id"][row_index] in self.prints:
            interleave = 1
        if interleave is not None and stages > 1:
            return {
                "interleave": str(interleave),
                "schedule": "interleaved" if interleave > 1 else "1f1b",
            }
        printed = re.search(r"pipeline schedule ([\w-]+)", self.cells["notes"][row_index])
        dual = (
            "dualpipe" if re.search(r"dual.?pipe", self.cells["notes"][row_index].lower()) else ""
        )
        stated_schedule = interpret_note(
            self.catalogue,
            "schedule",
            self.cells["schedule"][row_index] or (printed[1] if printed else dual),
        )
        return {"schedule": stated_schedule or ("1f1b|interleaved" if stages > 1 else "1f1b")}

    def batches(
        self,
        row_index: int,
        fixed: TextMapping,
        devices: int,
        sequence: int,
        whole_batches: bool,
    ) -> tuple[int, ...]:
        """Return the sequences a step may have: those stated, else about what steps take."""
        ranks = max(devices // stated_group_size(fixed), 1)
        stated = self.count("global_batch_seqs", row_index)
        size = self.count("micro_batch_seqs", row_index)
        if stated is not None:
            return (stated,)
        sizes = SIZES if size is None else (size,)
        if whole_batches:
            return tuple(ranks * micro_batch for micro_batch in sizes)
        most = ranks * max(sizes)
        return (max(round(STEP_TOKENS / sequence / most), 1) * most,)

    def evaluated(self, row_index: int, model: str) -> float:
        """Return the evaluated sequences per trained one, if the row's rate includes their time."""
        if "eval included" not in self.cells["notes"][row_index].lower():
            return 0.0
        title = (
            f"{self.cells['source_title'][row_index]} {self.cells['source_id'][row_index]}".lower()
        )
        row_evaluations = (
            evaluation
            for evaluation in self.evaluations
            if evaluation["benchmark"] in title and evaluation["model"] == model
        )
        return next(
            (
                float(evaluation["evaluated"]) / float(evaluation["every"])
                for evaluation in row_evaluations
            ),
            0.0,
        )

    def full_attention(self, row_index: int) -> bool:
        """Say whether the publisher's FLOPs count attention without its causal half."""
        return bool(
            re.search(
                r"not causally halved|without the causal half",
                self.cells["notes"][row_index].lower(),
            )
        )
