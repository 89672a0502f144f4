"""Measured kernels as questions to `tco kernel`: each row's chip, shape, format and library, many
rows of one structure at a time.

What rows say of operation, shape, number format, library and result is read in the words that
publishers use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.types import AnyArray, JsonMapping, JsonObject
from tco.performance.chip.engine_corrections import Correction, correction_of_rows
from tco.performance.chip.formats import Computed, computed_on
from tco.performance.chip.gemm import Traits, kernels_on, traits_of
from tco.performance.chip.kernel_times import (
    BARE,
    SHAPES,
    KernelTime,
    kernel_timing,
    skew_of_power_law,
)
from tco.validation.measured import first_stated, mapped, numeric_column, refused, texts
from tco.validation.naming import read_pattern_table
from tco.validation.score import OfEngine, Prediction
from tco.validation.specifications import (
    CHIP,
    FAMILY,
    RowValues,
    Specifications,
    command_line,
)
from tco.validation.wording import interpret_note

# of the model an elementwise row comes from
WIDTHS = re.compile(r"hidden (\d+), ffn (\d+), (\d+)/(\d+) heads")
HEAD = 128  # width of the heads of those models
# times an element is read or written
PASSES = {
    "copy": 2,
    "add": 3,
    "input_layernorm": 3,
    "mlp_act": 3,
    "attn_rope": 2,
}
# shapes that share a time to its printed digits: the table repeats it, and nobody measured it on
# all of them
COPIED = 4
MOST = 0.5  # of the rows of a table
DIGITS = 6  # of a time that two shapes share by chance at most
POWER_LAW = re.compile(r"power_law_([\d.]+)")
FLAT = ("copy", "add")  # elementwise kernels that know no rows
# where a column has another name than the side of the kernel
COLUMNS = {
    "heads": "heads_q",
    "kv_heads": "heads_kv",
}
STATED = ("causal", "passes", "by_row", "skew", "even")  # sides that are words of a row


class KernelKind(NamedTuple):
    """Properties shared by kernel rows that are predicted together."""

    kernel: str  # of SHAPES; empty for an unknown operation
    elementwise: str  # which elementwise kernel
    number_format: str  # empty for an unknown one
    library: str
    form: Computed | None  # how the chip computes the format
    traits: Traits
    part_of_chip: bool = False  # on some of its cores
    engine: str = ""  # the kernel of an engine whose table the rows are of

    @property
    def of_engine(self) -> tuple[str, str, str]:
        """Key of a correction: operation, engine kernel and number format."""
        return self.kernel, self.engine, self.number_format


def format_of(catalogue: Catalogue, kernel: str, dtype: str) -> str:
    """Return the number format of a row: of the cache that decoding reads; an FP8 cache makes
    prompts compute in FP8 too.
    """
    own, _, cache = dtype.partition("/kv ")
    if kernel in ("decode", "latent"):
        return interpret_note(catalogue, "kernel format", cache or own)
    found = interpret_note(catalogue, "kernel format", own)
    if kernel == "prefill" and (found.startswith("fp8") or cache == "fp8"):
        return "fp8"
    return found


def elementwise_width(operation: str, notes: str, split: float) -> float:
    """Return the width of an elementwise row from the model its notes describe; NaN where they do
    not.
    """
    found = WIDTHS.search(notes)
    if not found:
        return np.nan
    hidden, inner, heads, kv_heads = (float(text) for text in found.groups())
    return {"mlp_act": inner / split, "attn_rope": (heads + kv_heads) * HEAD / split}.get(
        operation, hidden
    )


def cores_of(catalogue: Catalogue, source: str) -> float:
    """Return the cores that a kernel's source says it had; NaN where it had the whole chip."""
    rows = read_pattern_table(catalogue, "kernel_cores.csv", ("pattern", "cores"))
    return next(
        (
            float(found[1]) * float(row["cores"])
            for row in rows
            if (found := row["pattern"].search(source))
        ),
        np.nan,
    )


def kernel_library_name(catalogue: Catalogue, source: str, part: str) -> str:
    """Return the library whose rows of practice a kernel follows, by how its name begins and on
    which chips, or why it is not scored.

    A bare kernel follows none.
    """
    rows = read_pattern_table(catalogue, "kernel_libraries.csv", ("name", "parts", "library"))
    return next(
        (
            row["library"]
            for row in rows
            if source.startswith(row["name"]) and (not row["parts"] or part in row["parts"].split())
        ),
        BARE,
    )


def kernel_kinds(table: pd.DataFrame, chips: Specifications) -> list[KernelKind]:
    """Return the kind of every row."""
    operations, types, sources, engines = (
        texts(table, name).astype(str) for name in ("op", "dtype", "kernel_source", "engine_kernel")
    )

    @cache
    def kind(operation: str, dtype: str, source: str, engine: str, part: str) -> KernelKind:
        found = interpret_note(chips.catalogue, "kernel", operation)
        form = format_of(chips.catalogue, found, dtype)
        computed = computed_on(chips.values, part, form, "dtype") if form and part else None
        traits = traits_of(chips.catalogue, part) if part else Traits(tiled=True, logical=False)
        apart = (
            found in ("gemm", "grouped")
            and traits.logical
            and not np.isnan(cores_of(chips.catalogue, source))
        )
        library = BARE if engine else kernel_library_name(chips.catalogue, source, part)
        return KernelKind(
            found,
            operation.removeprefix("elementwise:"),
            form,
            library,
            computed,
            traits,
            apart,
            engine,
        )

    made = [
        kind(*row) for row in zip(operations, types, sources, engines, chips.parts, strict=True)
    ]
    return [one if one.kernel == "elementwise" else one._replace(elementwise="") for one in made]


def widths(table: pd.DataFrame) -> AnyArray:
    """Return the width that rows state, as n those of elementwise kernels, else that of their
    model.
    """
    operations = [text.removeprefix("elementwise:") for text in texts(table, "op").astype(str)]
    read = [
        elementwise_width(*row)
        for row in zip(
            operations,
            texts(table, "notes").astype(str),
            numeric_column(table, "tp", 1.0),
            strict=True,
        )
    ]
    stated = numeric_column(table, "n")
    own = numeric_column(table, "width")
    return np.where(np.isnan(own), np.where(np.isnan(stated), read, stated), own)


def kernel_skip_reasons(
    table: pd.DataFrame,
    chips: Specifications,
    kinds: list[KernelKind],
    target: AnyArray,
    names: AnyArray,
) -> AnyArray:
    """Return the reason to skip a row, by row of `table`.

    The reason is empty for a scored row.
    """
    operations, own = (
        texts(table, "op").astype(str),
        np.array([kind.kernel for kind in kinds], dtype=object),
    )
    library = np.array([kind.library for kind in kinds], dtype=object)
    unstated = [
        (
            np.any([~(sided(table, name) > 0) for name in sides if name not in STATED], axis=0)
            & (own == operation),
            "unstated shape",
        )
        for operation, sides in SHAPES.items()
    ]
    return refused(
        table,
        (chips.parts == "", "unknown-accelerator"),
        (np.char.startswith(operations, "sparse"), "unsupported sparse attention"),
        (own == "", "unsupported operation"),
        (np.char.find(library.astype(str), ":") >= 0, library),
        (copied_expert_times(table, kinds), "suspect: the same time stands for other shapes"),
        ([not kind.number_format for kind in kinds], "unsupported number format"),
        *unstated,
        (np.isnan(target), "unstated result"),
        (target == 0, "suspect: zero result"),
        (
            (names == "tflops") & (own == "elementwise"),
            "unsupported target: TFLOP/s of an elementwise kernel",
        ),
    )


def sided(table: pd.DataFrame, name: str) -> AnyArray:
    """Return a side of the rows; values of attention are as wide as its keys where nothing else is
    said.
    """
    found = numeric_column(table, COLUMNS.get(name, name))
    return (
        np.where(np.isnan(found), numeric_column(table, "head_dim"), found)
        if name == "value_dim"
        else found
    )


def routing(table: pd.DataFrame, sides: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return skew and evenness of the tokens' choice of experts, by row.

    Tokens choose in turn if the routing is balanced, and by a power law of popularity if the row
    states its exponent. Where the row says nothing, tokens choose at random.
    """
    said = texts(table, "routing").astype(str)
    laws = [POWER_LAW.fullmatch(text) for text in said]
    exponent = np.array([float(law[1]) if law else np.nan for law in laws])
    skew = skew_of_power_law(exponent, sides["tokens"], sides["topk"], sides["experts"])
    return {
        "skew": np.where(np.isnan(exponent), 0.0, skew),
        "even": np.array([1.0 if text == "balanced" else 0.0 for text in said]),
    }


def copied_expert_times(table: pd.DataFrame, kinds: Sequence[KernelKind]) -> AnyArray:
    """Say which expert layers have a time that, to its last digit, other shapes have too; where
    most of a table has, all of it.
    """
    rows = np.array([kind.kernel == "experts" for kind in kinds], dtype=bool)
    shape = [name for name in (*SHAPES["experts"], "dtype") if name in table]
    if not rows.any() or "time_us" not in table:
        return np.zeros_like(rows)
    times = table["time_us"].map(lambda value: f"{value:.{DIGITS}g}")
    own = table.assign(printed=times)[rows].drop_duplicates(["accelerator", "printed", *shape])
    shared = own.groupby(["accelerator", "printed"]).size()
    keys = pd.MultiIndex.from_arrays([table["accelerator"], times])
    found = rows & (shared.reindex(keys).fillna(0).to_numpy() >= COPIED)
    of_table = pd.Series(found[rows]).groupby(texts(table, "source_url")[rows]).mean()
    mostly = rows & (of_table.reindex(texts(table, "source_url")).to_numpy() > MOST)
    return np.asarray(found | mostly, dtype=bool)


def kernel_arguments(kind: KernelKind, table: pd.DataFrame, catalogue: Catalogue) -> JsonObject:
    """Return the sides of the rows of one kind by the names a kernel takes them under."""
    found: JsonObject = {
        name: sided(table, name) for name in SHAPES[kind.kernel] if name not in STATED
    }
    if kind.kernel == "experts":
        found |= routing(table, found)
    if kind.kernel == "prefill":
        found["causal"] = mapped(
            texts(table, "causal").astype(str),
            lambda text: float(interpret_note(catalogue, "answer", text) != "no"),
            float,
        )
    if "window" in table and kind.kernel in ("prefill", "decode"):
        found["seq_kv"] = in_window(
            found["seq_kv"], numeric_column(table, "window"), found.get("causal", 0.0)
        )
    if kind.kernel == "elementwise":
        found |= {"passes": PASSES[kind.elementwise], "by_row": kind.elementwise not in FLAT}
    return found


def in_window(keys: AnyArray, window: AnyArray, causal: Any) -> AnyArray:
    """Return the keys without a window that are as many to attend to: of a prompt w (2 - w / k)
    under a mask, else the window.
    """
    seen = np.where(causal > 0, window * (2 - window / keys), window)
    return np.where((window > 0) & (window < keys), seen, keys)


# what a row states -> key of `tco kernel`'s answer
ANSWERS = {
    "time_us": "time_us",
    "tflops": "tflops",
    "gb_s": "gb_per_s",
}


def stated_kernel_figures(made: KernelTime) -> JsonObject:
    """Return a kernel's time (us), compute rate (TFLOP/s) and memory rate (GB/s)."""
    return {
        "time_us": made.time * 1e6,
        "tflops": made.flops / made.time / 1e12,
        "gb_s": made.bytes / made.time / 1e9,
    }


def commands(kind: KernelKind, sides: JsonMapping, parts: AnyArray) -> list[str]:
    """Return the command line that asks for the kernel of every row again."""
    attention = kind.kernel in ("prefill", "decode", "latent")
    options: JsonObject = {"op": "attention" if attention else kind.kernel}
    options |= {"phase": kind.kernel if attention else None, "precision": kind.number_format}
    options["library"] = kind.engine or (None if kind.library == BARE else kind.library)
    named = {
        name.replace("_", "-"): side
        for name, side in sides.items()
        if name not in ("causal", "by_row", "even")
    }
    full = sides["causal"] == 0 if "causal" in sides else np.zeros(len(parts), dtype=bool)
    even = sides.get("even", np.zeros(len(parts)))
    flat = True if sides.get("by_row") is False else None
    found = []
    for row, part in enumerate(parts):
        own = {name: side[row] if np.ndim(side) else side for name, side in named.items()}
        found.append(
            command_line(
                ["kernel", part],
                {
                    **options,
                    **own,
                    "full": bool(full[row]) or None,
                    "even": bool(even[row]) or None,
                    "flat": flat,
                },
                {},
            )
        )
    return found


class KernelRows(NamedTuple):
    """Measured kernel rows of a file, grouped by kind with their arguments."""

    target: AnyArray
    names: AnyArray
    skip: AnyArray
    questions: list[tuple[KernelKind, list[int], JsonObject]]
    commands: AnyArray


def parse_kernel_rows(table: pd.DataFrame, chips: Specifications) -> KernelRows:
    """Return the targets, skip reasons and kernel arguments of `table`'s rows.

    Callers keep the result, because a fit asks for it many times.
    """
    whole = table.assign(width=widths(table))
    # its time, else its rate of computing, else of moving
    target, names = first_stated(whole, *ANSWERS)
    kinds = kernel_kinds(whole, chips)
    skip = kernel_skip_reasons(whole, chips, kinds, target, names)
    members: dict[KernelKind, list[int]] = {}
    for row in np.flatnonzero(skip == "").tolist():
        members.setdefault(kinds[row], []).append(row)
    questions, lines = [], np.full(len(table), "", dtype=object)
    for kind, rows in members.items():
        some = whole.iloc[rows]
        sides = kernel_arguments(kind, some, chips.catalogue)
        if kind.part_of_chip:
            sides["cores"] = np.array(
                [cores_of(chips.catalogue, text) for text in texts(some, "kernel_source")]
            )
        questions.append((kind, rows, sides))
        lines[rows] = commands(kind, sides, chips.parts[rows])
    return KernelRows(target, names, skip, questions, lines)


def predicted_kernel(
    kind: KernelKind,
    rows: list[int],
    sides: JsonMapping,
    chips: Specifications,
    learnt: Correction | None = None,
) -> KernelTime:
    """Return the kernels of rows of one kind, by physics and the practice of their library or by
    what a table of their engine says.
    """
    assert kind.form is not None
    chip = kernels_on(RowValues(chips.rows(np.array(rows))), CHIP, FAMILY, kind.traits)
    return kernel_timing(
        chip, kind.kernel, kind.form, sides, kind.library, sides.get("cores"), learnt
    )


def engine_kernel_rows(
    table: pd.DataFrame, chips: Specifications
) -> tuple[AnyArray, list[OfEngine]]:
    """Return the measured times of rows of engines' tables, in seconds, and the rows of every
    kernel with the times that physics gives them.
    """
    file: KernelRows = chips.once("kernels", lambda: parse_kernel_rows(table, chips))
    asked = [(kind, rows, sides) for kind, rows, sides in file.questions if kind.engine]
    return file.target / 1e6, [
        OfEngine(*kind.of_engine, rows, predicted_kernel(kind, rows, sides, chips).time, sides)
        for kind, rows, sides in asked
    ]


def predict_kernels(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of kernels."""
    file: KernelRows = chips.once("kernels", lambda: parse_kernel_rows(table, chips))
    predicted = np.full((*chips.sets, len(table)), np.nan)
    for kind, rows, sides in file.questions:
        learnt = (
            correction_of_rows(chips.catalogue, *kind.of_engine, chips.parts[rows])
            if kind.engine
            else None
        )
        found = stated_kernel_figures(predicted_kernel(kind, rows, sides, chips, learnt))
        predicted[..., rows] = np.select(
            [file.names[rows] == name for name in found], list(found.values())
        )
    keys = np.array([ANSWERS.get(name, "") for name in file.names], dtype=object)
    return Prediction(
        file.target,
        predicted,
        file.names,
        file.skip.copy(),
        file.commands,
        keys,
        np.ones(len(table)),
    )
