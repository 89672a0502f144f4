"""Pilot draws: all plans are compared in them, to find the few that can be the best."""

from __future__ import annotations

from collections.abc import Container
from zlib import crc32

import numpy as np

from tco.core.array_cache import cached_arrays
from tco.core.types import AnyArray
from tco.scenario.beliefs import has_range
from tco.scenario.draw_case import Case
from tco.scenario.result import Result
from tco.scenario.scenario_programs import structure_in

PILOTS = 256  # pilot draws
LOW, CENTRE, HIGH = 0, 1, 2  # columns of an input's low end, value and high end


def pilot_draws(case: Case, centre: Result, read_paths: Container[str]) -> dict[str, AnyArray]:
    """Return pilot draws of the inputs, at centres first and then at ends of the ranges.

    The path of an input alone decides which end it takes in each draw, so the promising plans do
    not depend on the other drawn inputs. An input without a range takes the least and greatest of
    its drawn values. An input that decides a count stays at its value.

    Args:
        case: The draws.
        centre: Result with every input at its value.
        read_paths: Inputs that the workload reads. Only these vary, unless none of them is drawn.

    Returns:
        Arrays of shape (pilots,) by path, or of shape (1,) where no input varies.

    """
    readings = structure_in(centre).readings
    drawn = {path: array for path, (array, _) in case.drawn.items()}
    drawn = {path: array for path, array in drawn.items() if path in read_paths} or drawn
    low_centre_high = []
    has_belief: dict[str, bool] = {}
    for path, array in drawn.items():
        base_input = centre.inputs.get(path)
        has_belief[path] = base_input is not None and has_range(base_input)
        if base_input is not None and has_belief[path]:
            low, middle, high = base_input.low, base_input.value, base_input.high
        else:
            low, middle, high = array.min(), float(np.median(array)), array.max()
        decides_count = path in readings and not isinstance(readings[path], bool)
        if decides_count:
            low = high = middle
        low_centre_high.append((low, middle, high))
    key_parts = [f"pilots {PILOTS} {has_belief}".encode()]
    (columns,) = cached_arrays(
        key_parts,
        lambda: [np.stack([_pilot_columns(path, ranged) for path, ranged in has_belief.items()])],
    )
    pilots = np.take_along_axis(np.array(low_centre_high, dtype=float), columns, axis=1)
    is_constant = (pilots == pilots[:, :1]).all()
    return dict(zip(drawn, pilots[:, :1] if is_constant else pilots, strict=True))


def _pilot_columns(path: str, has_belief: bool) -> AnyArray:
    """Return which of low, centre and high an input takes in each pilot draw."""
    generator = np.random.default_rng(crc32(path.encode()))
    quarters = generator.integers(0, 4, max(PILOTS, 3))
    columns = np.array([LOW, CENTRE, CENTRE, HIGH], dtype=np.int8)[quarters]
    columns[:3] = (CENTRE, CENTRE, CENTRE) if has_belief else (CENTRE, LOW, HIGH)
    return columns[:PILOTS]
