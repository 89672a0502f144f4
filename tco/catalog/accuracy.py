"""Accuracy of the model on published measurements, from the last calibration.

Every answer shows these figures.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tco.catalog.catalogue import Catalogue
from tco.catalog.labels import count_with_noun
from tco.core.files import read_csv

ERRORS = ("kind", "left_out", "n", "median_ape", "p90_ape", "spearman", "date")
CHIPS = ("kind", "part", "n", "median_ape", "p90_ape", "left_out", "date")
ORDERS = ("kind", "pairs", "right", "ratio_error", "date")
LEFT_OUT = ("kind", "left_out", "member", "path", "value")
FILES = {"kinds": ERRORS, "chips": CHIPS, "orders": ORDERS, "left_out": LEFT_OUT}
FEW = 20  # rows of a chip, below which it is anchored on its relatives as well
FAR = 0.5  # median error from which rows refute rather than validate
WORDS = {
    "inference": "serving runs",
    "training": "training runs",
    "collectives": "collectives",
    "kernels": "kernels",
}
FAMILY_WORDS = {  # of kinds that measure a part of the above
    "mlperf": "audited submissions",
    "amd_gemm": "matrix products on AMD",
    "moe": "experts",
    "amd_moe": "experts on AMD",
    "mla": "latent attention",
    "trainium": "Trainium",
}


class Standing(NamedTuple):
    """Validation of an answer: measured rows of its chip and its relatives.

    The rows are of the kind of the answer. Relatives are the chips that anchor the answer. Both may
    be without rows.
    """

    validated_rows: int  # of this very chip
    median: float | None
    left_out: float | None
    text: str
    path: str = ""  # of the engine that the answer took
    unmeasured: str = "prior"  # what an answer without rows rests on
    # chips of the same family that were measured where this one was not, or hardly
    anchors: tuple[str, ...] = ()
    anchored_rows: int = 0  # of these

    @property
    def short(self) -> str:
        """The count of published runs of the chip, and their error, in a table cell."""
        if self.median is not None:
            return f"{count_with_noun(self.validated_rows, 'run')}, {self.median * 100:.0f} % error"
        if self.anchors:
            return f"none; {self.anchored_rows} {self.anchors[0]} runs"
        return "none" if self.unmeasured == "prior" else self.unmeasured

    @property
    def evidence(self) -> str:
        """The published runs of the chip, or of the chip that stands in for it."""
        if self.anchors and self.median is None:
            return f"{self.anchored_rows} runs of {self.anchors[0]}"
        return self.short


STATED = Standing(
    0, None, None, "not computed: no model is run, rates are stated", unmeasured="stated"
)


def accuracy_rows(catalogue: Catalogue, file_name: str) -> list[dict[str, str]]:
    """Return the rows of a file of accuracies, shipped and from overlays.

    Args:
        catalogue: Names the data folders.
        file_name: Name of the file without its ending, a key of `FILES`.

    Returns:
        Rows in the order of the folders, each with its texts by column. A folder without the file
        adds no rows.

    Raises:
        DataError: A file is no CSV file with the columns of `FILES`.

    """
    return [
        table_row
        for path in catalogue.folder_files(f"accuracy/{file_name}.csv")
        for _, table_row in read_csv(path, FILES[file_name])
    ]


def errors_of(catalogue: Catalogue, kind: str) -> dict[str, dict[str, float]]:
    """Return the errors of a kind by the data left out.

    The data are left out of the fit: nothing, accelerator, model or source.

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
    """Return the validation of answers of a kind on a chip.

    The result holds for every path through the engine.
    """
    chip_rows = (
        chip_row
        for chip_row in accuracy_rows(catalogue, "chips")
        if chip_row["kind"] == kind or chip_row["kind"].endswith(f"_{kind}")
    )
    # of several kinds the one with most rows
    measured = {
        chip_row["part"]: chip_row
        for chip_row in sorted(chip_rows, key=lambda chip_row: int(chip_row["n"]))
    }
    measured_chip = measured.get(chip)
    if measured_chip is None and catalogue.is_own(chip):
        standing_text = f"not checked: {chip} is a sketch of your own, without measured runs"
        return Standing(0, None, None, standing_text, unmeasured="a sketch")
    own_rows = int(measured_chip["n"]) if measured_chip else 0
    related_kinds = (
        sorted(
            (-int(chip_row["n"]), part)
            for part, chip_row in measured.items()
            if part in relatives and part != chip
        )
        if own_rows < FEW
        else []
    )
    anchors = tuple(part for _, part in related_kinds)
    anchored = -sum(count for count, _ in related_kinds)
    runs = f"{anchored:,} run{'s' * (anchored != 1)} of {', '.join(anchors)}"
    rest = f"; {runs} stand in" if anchors else ""
    if measured_chip is None:
        prior = "" if anchors else " (prior)"
        standing_text = f"not checked{prior}: no published {WORDS[kind]} of {chip}{rest}"
        return Standing(0, None, None, standing_text, anchors=anchors, anchored_rows=anchored)
    median = float(measured_chip["median_ape"])
    left_out_error = (
        float(measured_chip["left_out"]) if measured_chip["left_out"] else None
    )  # too few rows to say
    unseen = (
        ""
        if left_out_error is None
        else f". A fit without these runs has a median error of {left_out_error * 100:.0f} %"
    )
    error = f"median error {median * 100:.0f} %"
    doubt = "" if median < FAR else ", too far off to prove a figure"
    standing_text = (
        f"checked on {own_rows:,} published {WORDS[kind]} of {chip}, {error}{doubt}{rest}{unseen}"
    )
    return Standing(
        own_rows, median, left_out_error, standing_text, anchors=anchors, anchored_rows=anchored
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
            share, error = float(order_row["right"]) * 100, float(order_row["ratio_error"]) * 100
            return (
                "Measured systems were ranked at one speed per user without the runs of their own "
                f"chip. The order was right in {share:.0f} % of {int(order_row['pairs']):,} pairs; "
                f"the median error of their ratio is {error:.0f} %."
            )
    return ""
