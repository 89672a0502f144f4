"""Numeric environment: numpy version and CPU instructions, and agreement of results.

Results of another environment differ in the last digits and agree to a relative 1e-9.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

RELATIVE_TOLERANCE = 1e-9  # largest difference of figures from different machines


@cache
def arithmetic() -> str:
    """Return numpy's version and the CPU instructions that numpy uses here.

    Returns:
        Text such as 'numpy 2.4.6 (X86_V2 X86_V3)'; results with equal texts have equal rounding.

    """
    config: Any = np.show_config(mode="dicts")
    simd = config["SIMD Extensions"]
    return (
        f"numpy {np.__version__} ({' '.join([*simd.get('baseline', []), *simd.get('found', [])])})"
    )


def agree(figures: Iterable[float | None], other_figures: Iterable[float | None]) -> bool:
    """Return whether two lists of figures are equal to a relative 1e-9.

    Args:
        figures: First figures; None and nan equal only None and nan.
        other_figures: Second figures, in the same order and of the same number.

    """
    first_array, second_array = (
        np.array([np.nan if figure is None else figure for figure in figures_of], dtype=float)
        for figures_of in (figures, other_figures)
    )
    return first_array.shape == second_array.shape and np.allclose(
        first_array, second_array, rtol=RELATIVE_TOLERANCE, atol=0.0, equal_nan=True
    )


def mixed_arithmetic_notes(kinds: Iterable[str]) -> list[str]:
    """Return a note on figures from more than one arithmetic.

    Args:
        kinds: Texts of `arithmetic` from every machine that made figures.

    Returns:
        A list with the note; empty for a single arithmetic.

    """
    distinct_kinds = sorted(set(kinds))
    return (
        []
        if len(distinct_kinds) < 2
        else [
            f"made with {' and with '.join(distinct_kinds)}: figures agree to "
            f"{RELATIVE_TOLERANCE:.0e}, not to the byte"
        ]
    )
