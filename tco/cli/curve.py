"""`tco curve`: a measured curve, priced."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import SERVING_FACTS, CommandRequest, command
from tco.core.errors import UsageError


@command(app, "set", *SERVING_FACTS, forms=("endpoints",))
def curve(
    request: CommandRequest,
    files: list[Path],
    systems: list[str],
    prefill_share: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    cached_price: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    cache_hit: Annotated[float, typer.Option(min=0, max=1)] = 0.0,
    samples: int = 512,
    seed: int = 0,
) -> None:
    """Price a measured curve of throughput against speed per user.

    Nothing is predicted.

    Arguments:
        files (FILE...): Throughput against speed per user, as benchmarks write it or in CSV
            columns of data/measured.

    What is asked:
        systems (--system ID): The system it ran on, one for all files or one each.
        prefill_share: Share of the chips' time that reads prompts, for a rate card.
        cached_price: Price of a cached input token over another's, such as 0.1.
        cache_hit: Share of input tokens that a cache held.

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
