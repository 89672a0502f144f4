"""Accuracy of the model on published measurements, from the last calibration.

Every answer shows these figures.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tco.catalog.catalogue import Catalogue
from tco.catalog.labels import count_with_noun
from tco.core.files import read_csv

# Columns of the files in `data/accuracy/`, by name of the file.
FILES = {
    "kinds": ("kind", "left_out", "n", "median_ape", "p90_ape", "spearman", "date"),
    "chips": ("kind", "part", "n", "median_ape", "p90_ape", "left_out", "date"),
    "orders": ("kind", "pairs", "right", "ratio_error", "date"),
    "left_out": ("kind", "left_out", "member", "path", "value"),
}
ENOUGH_RUNS = 20  # runs of a chip from which the runs of its relatives do not count
REFUTING_ERROR = 0.5  # median error from which runs do not support a figure
WORDS = {
    "inference": "serving runs",
    "training": "training runs",
    "collectives": "collectives",
    "kernels": "kernels",
}
# Words for kinds that measure a part of the kinds in `WORDS`.
FAMILY_WORDS = {
    "mlperf": "audited submissions",
    "amd_gemm": "matrix products on AMD",
    "moe": "experts",
    "amd_moe": "experts on AMD",
    "mla": "latent attention",
    "trainium": "Trainium",
}


class Standing(NamedTuple):
    """Validation of an answer by published runs of its kind."""

    validated_rows: int  # runs of the chip
    median: float | None  # median error on these runs; None without runs
    left_out: float | None  # median error of a fit without these runs; None for too few runs
    text: str
    path: str = ""  # path of the answer through the engine
    unmeasured: str = "prior"  # basis of an answer without runs
    # Chips of the same family whose runs stand in where the chip has no runs or few.
    anchors: tuple[str, ...] = ()
    anchored_rows: int = 0  # runs of the anchors

    @property
    def short(self) -> str:
        """Number of published runs of the chip with their error, for a table cell."""
        if self.median is not None:
            return f"{count_with_noun(self.validated_rows, 'run')}, {self.median * 100:.0f} % error"
        if self.anchors:
            return f"none; {self.anchored_rows} {self.anchors[0]} runs"
        return "none" if self.unmeasured == "prior" else self.unmeasured

    @property
    def reason(self) -> str:
        """Reason that no published run checks the answer, such as that its chip has none."""
        return self.text.partition(": ")[2].partition(". ")[0]

    @property
    def evidence(self) -> str:
        """Published runs of the chip, or of the chip that stands in for it."""
        if self.anchors and self.median is None:
            return f"{self.anchored_rows} runs of {self.anchors[0]}"
        return self.short


STATED = Standing(
    validated_rows=0,
    median=None,
    left_out=None,
    text="not computed: no model is run, rates are stated",
    unmeasured="stated",
)


def accuracy_rows(catalogue: Catalogue, file_name: str) -> list[dict[str, str]]:
    """Return the rows of a file of accuracies, shipped and from overlays.

    Args:
        catalogue: Names the data folders.
        file_name: Name of the file without its extension, a key of `FILES`.

    Returns:
        Rows in the order of the folders, each with its texts by column. A folder without the file
        adds no rows.

    Raises:
        DataError: A file is not a CSV file with the columns of `FILES`.

    """
    return [
        table_row
        for path in catalogue.folder_files(f"accuracy/{file_name}.csv")
        for _, table_row in read_csv(path, FILES[file_name])
    ]


def errors_of(catalogue: Catalogue, kind: str) -> dict[str, dict[str, float]]:
    """Return the errors of a kind by the data that the fit left out.

    The fit leaves out nothing, an accelerator, a model or a source.

    Args:
        catalogue: Names the data folders.
        kind: Kind of measurements, such as `inference`.

    Returns:
        Count, median and P90 of the absolute error (shares) and Spearman correlation, by column
        name. The keys of the outer table are the texts of column `left_out`.

    """
    kind_rows = accuracy_rows(catalogue, "kinds")
    error_columns = ("n", "median_ape", "p90_ape", "spearman")
    return {
        kind_row["left_out"]: {
            error_column: float(kind_row[error_column]) for error_column in error_columns
        }
        for kind_row in kind_rows
        if kind_row["kind"] == kind
    }


def standing(
    catalogue: Catalogue, kind: str, chip: str, relatives: Collection[str], path: str
) -> Standing:
    """Return the validation of an answer on a chip against measurements.

    The measurements are of `chip`, or of `relatives` with the same practice.

    Args:
        catalogue: Names the data folders.
        kind: Kind of measurements; an empty text for an answer that runs no model.
        chip: Part id of the chip.
        relatives: Part ids of chips with the same practice.
        path: Path of the answer through the engine.

    """
    if not kind:
        return STATED
    chip_standing = _chip_standing(catalogue, kind, chip, relatives)
    return chip_standing._replace(path=path, text=f"{chip_standing.text}. This answer: {path}")


def _chip_standing(
    catalogue: Catalogue, kind: str, chip: str, relatives: Collection[str]
) -> Standing:
    """Return the validation of answers of a kind on a chip, on any path through the engine."""
    chip_rows = (
        chip_row
        for chip_row in accuracy_rows(catalogue, "chips")
        if chip_row["kind"] == kind or chip_row["kind"].endswith(f"_{kind}")
    )
    # Of several rows of a chip the last one counts, which is the row with the most runs.
    rows_by_chip = {
        chip_row["part"]: chip_row
        for chip_row in sorted(chip_rows, key=lambda chip_row: int(chip_row["n"]))
    }
    measured_chip = rows_by_chip.get(chip)
    unmeasured = Standing(validated_rows=0, median=None, left_out=None, text="")
    if measured_chip is None and catalogue.is_own(chip):
        return unmeasured._replace(
            text=f"not checked: {chip} is a sketch of your own, without measured runs",
            unmeasured="a sketch",
        )
    run_count = int(measured_chip["n"]) if measured_chip else 0
    anchors: list[str] = []
    if run_count < ENOUGH_RUNS:
        anchors = sorted(
            (part for part in rows_by_chip if part in relatives and part != chip),
            key=lambda part: (-int(rows_by_chip[part]["n"]), part),
        )
    anchored = sum(int(rows_by_chip[part]["n"]) for part in anchors)
    runs = f"{anchored:,} run{'s' * (anchored != 1)} of {', '.join(anchors)}"
    anchor_text = f"; {runs} stand in" if anchors else ""
    if measured_chip is None:
        prior = "" if anchors else " (prior)"
        return unmeasured._replace(
            text=f"not checked{prior}: no published {WORDS[kind]} of {chip}{anchor_text}",
            anchors=tuple(anchors),
            anchored_rows=anchored,
        )
    median = float(measured_chip["median_ape"])
    left_out_error = None
    left_out_text = ""
    if measured_chip["left_out"]:  # empty for too few runs
        left_out_error = float(measured_chip["left_out"])
        left_out_text = (
            f". A fit without these runs has a median error of {left_out_error * 100:.0f} %"
        )
    doubt = "" if median < REFUTING_ERROR else ", too far off to prove a figure"
    return Standing(
        validated_rows=run_count,
        median=median,
        left_out=left_out_error,
        text=(
            f"checked on {run_count:,} published {WORDS[kind]} of {chip}, median error "
            f"{median * 100:.0f} %{doubt}{anchor_text}{left_out_text}"
        ),
        anchors=tuple(anchors),
        anchored_rows=anchored,
    )


def order_of(catalogue: Catalogue, kind: str) -> str:
    """Return a sentence on the share of system pairs ranked correctly.

    Args:
        catalogue: Names the data folders.
        kind: Kind of measurements, such as `inference`.

    Returns:
        The sentence; an empty text for a kind without a measured order.

    """
    for order_row in accuracy_rows(catalogue, "orders"):
        if order_row["kind"] == kind:
            share = float(order_row["right"]) * 100
            error = float(order_row["ratio_error"]) * 100
            return (
                "Measured systems were ranked at one speed per user without the runs of their own "
                f"chip. The order was right in {share:.0f} % of {int(order_row['pairs']):,} pairs; "
                f"the median error of their ratio is {error:.0f} %."
            )
    return ""
