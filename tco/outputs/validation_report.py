"""The committed account of one validation: scores by group as CSV, the same as text to read, and predicted against measured as a picture."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from tco.foundation.errors import DataError, UsageError
from tco.foundation.files import write_atomically
from tco.outputs.table import to_csv, to_markdown
from tco.outputs.validations import SCORE_COLUMNS, score_rows, validation_tables
from tco.studies.validation.run import Validation

SIZE, DPI = (5.2, 5.2), 110


def scatter(found: Validation) -> bytes:
    """Return predicted against measured of every scored row as a PNG, with the line of equality and a factor of two to both sides."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError("the picture of a report needs matplotlib: pip install 'tco[report]'") from None

    rows = found.rows[found.rows.skipped == ""]
    figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, part in rows.groupby("target"):
        axes.scatter(part.measured, part.predicted, s=6, alpha=0.35, linewidths=0, label=f"{name} ({len(part):,})", rasterized=True)
    values = np.concatenate([rows.measured, rows.predicted])
    low, high = float(values.min()), float(values.max())
    axes.plot([low, high], [low, high], color="black", linewidth=0.8)
    for factor in (0.5, 2.0):
        axes.plot([low, high], [low * factor, high * factor], color="grey", linewidth=0.6, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="measured", ylabel="predicted", title=f"{found.kind}: {len(rows):,} rows")
    axes.legend(fontsize=7, loc="upper left", markerscale=2)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def write_report(found: Validation, name: str, folder: Path) -> None:
    """Write `KIND.csv`, `KIND.md` and `KIND.png` into a folder."""
    picture = scatter(found)
    page = "\n".join(to_markdown(table) for table in validation_tables(name, found.kind, found.card))
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder to write the report to")
    write_atomically(folder / f"{found.kind}.csv", to_csv(SCORE_COLUMNS, score_rows(found.card)))
    write_atomically(folder / f"{found.kind}.md", f"{page.rstrip()}\n\n![Predicted against measured]({found.kind}.png)\n")
    write_atomically(folder / f"{found.kind}.png", picture)
