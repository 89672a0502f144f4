"""What this processor's instructions give, as JSON: run by `test_processors.py` with all that numpy
finds, and with none of it.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import tco
from tests.registry import ROWS

# more than a register holds
SPREAD = np.array([1.0, 0.93, 1.04, 0.99, 1.01, 0.97, 1.02, 0.96, 1.03])
DRAWN = ("trn3-nl72x2", "llama-3.1-405b-training-gb200-nvl72", "train-gpt3-175b-a100x64")
DRAWS = 9


def formulas() -> dict[str, dict[str, list[float]]]:
    """Return each golden row, its inputs spread, as an array and one by one."""
    found = {}
    for row in ROWS:
        spread = {
            name: np.roll(SPREAD, place) * value
            for place, (name, value) in enumerate(row.inputs.items())
        }
        alone = [
            float(row.formula.function(**{name: float(many[at]) for name, many in spread.items()}))
            for at in range(len(SPREAD))
        ]
        found[row.id] = {"array": row.formula.function(**spread).tolist(), "alone": alone}
    return found


def metrics() -> dict[str, dict[str, list[float | None]]]:
    """Return the metrics of some scenarios with all inputs that have a range drawn, as arrays and
    one by one.
    """
    found: dict[str, dict[str, list[float | None]]] = {}
    for name in DRAWN:
        base, generator = tco.evaluate(name), np.random.default_rng(7)
        ranged = {
            path: given
            for path, given in base.inputs.items()
            if given.low is not None and given.low < given.high
        }
        ranged.pop("site.rack_kw_max", None)  # a site that a rack does not fit is refused
        draws = {
            path: (generator.uniform(given.low, given.high, DRAWS), given.unit)
            for path, given in ranged.items()
        }
        many = tco.evaluate(name, draws, structure=base.structure).metrics
        each = [
            {path: (float(array[place]), unit) for path, (array, unit) in draws.items()}
            for place in range(DRAWS)
        ]
        ones = [tco.evaluate(name, one, structure=base.structure).metrics for one in each]
        for metric, values in many.items():
            if values is not None:
                found[f"{name} {metric}"] = {
                    "array": np.broadcast_to(values, DRAWS).tolist(),
                    "alone": [float(one[metric]) for one in ones],
                }
    return found


if __name__ == "__main__":
    simd: Any = np.show_config(mode="dicts")
    print(
        json.dumps(
            {"found": simd["SIMD Extensions"].get("found", []), "figures": formulas() | metrics()}
        )
    )
