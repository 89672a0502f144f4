"""Measured curves with their cost on a system: the answer of `tco curve`."""

from __future__ import annotations

from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.comparison.measured_curve import CurvePoint
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import to_csv

POINT = Record(CurvePoint)
CURVE = Document("curve", Member("points", [POINT]))
# Columns of a measurement point of MLPerf Endpoints.
ENDPOINTS = ("concurrency", "system_tps", "tps_per_user", "tpot_p90_ms", "ttft_p90_ms")


def curve_answer(
    catalogue: Catalogue, points: Sequence[CurvePoint], notes: Sequence[str]
) -> Answer:
    """Return the answer on measured points with their cost, also as `endpoints`.

    Args:
        catalogue: Catalogue of the system.
        points: Priced points, in the order of their files.
        notes: Lines for the error stream.

    """
    title = f"{len(points)} measured points, priced; medians of the draws with P10 and P90"
    below = [
        "USD/M output: the whole cost over a million output tokens; USD/M all: over all tokens. "
        "W per chip: of the facility.",
        "Share: least cost at this speed or above, of all curves of the same model and "
        "lengths, over own.",
    ]
    if all(point.rate_card_input_usd_per_million is None for point in points):
        below.append(
            "A card of input and output prices needs pools that are measured apart, or "
            "--prefill-share."
        )
    return CURVE.answer(
        catalogue,
        {"points": points},
        lambda: [POINT.table(points, title, (), below)],
        (POINT, points),
        notes,
        texts={"endpoints": lambda: _to_endpoints(points)},
    )


def _to_endpoints(points: Sequence[CurvePoint]) -> str:
    """Return points in the columns of MLPerf Endpoints, whose speed is that of the P90 token."""
    endpoint_rows = [
        [
            point.concurrency,
            point.output_tokens_per_s,
            1e3 / point.tpot_p90_ms if point.tpot_p90_ms else None,
            point.tpot_p90_ms,
            point.ttft_p90_ms,
        ]
        for point in points
    ]
    return to_csv(ENDPOINTS, endpoint_rows)
