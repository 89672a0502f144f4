"""`tco curve`: a measured curve, priced."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import QUESTION, SERVING_FACTS, CommandRequest, Samples, Seed, command
from tco.core.errors import UsageError

CurveFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="Throughput against speed per user, as benchmarks write it or in CSV columns of "
        "data/measured.",
    ),
]
MeasuredSystems = Annotated[
    list[str],
    typer.Option(
        "--system",
        metavar="ID",
        help="The system it ran on, one for all files or one each.",
        **QUESTION,
    ),
]
PrefillShare = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Share of the chips' time that reads prompts, for a rate card.",
        **QUESTION,
    ),
]
CachedPrice = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Price of a cached input token over another's, such as 0.1.",
        **QUESTION,
    ),
]
CacheHit = Annotated[
    float,
    typer.Option(min=0, max=1, help="Share of input tokens that a cache held.", **QUESTION),
]


@command(app, "set", *SERVING_FACTS, forms=("endpoints",))
def curve(
    request: CommandRequest,
    files: CurveFiles,
    systems: MeasuredSystems,
    prefill_share: PrefillShare = None,
    cached_price: CachedPrice = None,
    cache_hit: CacheHit = 0.0,
    samples: Samples = 512,
    seed: Seed = 0,
) -> None:
    """Price a measured curve of throughput against speed per user.

    Nothing is predicted.
    """
    from tco.comparison.measured_curve import CardTerms, priced_curves
    from tco.report.measured_curve import curve_answer

    if cache_hit and cached_price is None:
        raise UsageError("--cache-hit is of cached input; add --cached-price, such as 0.1")
    terms = CardTerms(prefill_share, cached_price, cache_hit)
    points, notes, catalogue = priced_curves(
        files, systems, request.settings, request.data, terms, samples, seed
    )
    unstated = sum(point.tpot_p90_ms is None for point in points)
    if request.form == "endpoints" and unstated:
        notes.append(
            f"{unstated} of {len(points)} points state no P90 of the time per token, from which "
            "MLPerf Endpoints takes tps_per_user: it is left empty"
        )
    request.emit(curve_answer(catalogue, points, notes))
