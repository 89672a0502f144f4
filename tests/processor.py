"""Print the figures that this processor's instructions give, as JSON.

`test_processors.py` runs it with all instructions that numpy finds, and with none of them.
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
    results_by_row = {}
    for row in ROWS:
        spread = {
            name: np.roll(SPREAD, shift) * value
            for shift, (name, value) in enumerate(row.inputs.items())
        }
        single_results = [
            float(
                row.formula.function(
                    **{
                        name: float(spread_values[spread_index])
                        for name, spread_values in spread.items()
                    }
                )
            )
            for spread_index in range(len(SPREAD))
        ]
        results_by_row[row.id] = {
            "array": row.formula.function(**spread).tolist(),
            "alone": single_results,
        }
    return results_by_row


def metrics() -> dict[str, dict[str, list[float | None]]]:
    """Return metrics of some scenarios with every ranged input drawn, as arrays and one by one."""
    metric_values: dict[str, dict[str, list[float | None]]] = {}
    for name in DRAWN:
        base, generator = tco.evaluate(name), np.random.default_rng(7)
        ranged = {
            path: ranged_input
            for path, ranged_input in base.inputs.items()
            if ranged_input.low is not None and ranged_input.low < ranged_input.high
        }
        ranged.pop("site.rack_kw_max", None)  # a site that a rack does not fit is refused
        draws = {
            path: (generator.uniform(ranged_input.low, ranged_input.high, DRAWS), ranged_input.unit)
            for path, ranged_input in ranged.items()
        }
        array_metrics = tco.evaluate(name, draws, structure=base.structure).metrics
        single_inputs = [
            {path: (float(array[draw_index]), unit) for path, (array, unit) in draws.items()}
            for draw_index in range(DRAWS)
        ]
        single_metrics = [
            tco.evaluate(name, draw_inputs, structure=base.structure).metrics
            for draw_inputs in single_inputs
        ]
        for metric, values in array_metrics.items():
            if values is not None:
                metric_values[f"{name} {metric}"] = {
                    "array": np.broadcast_to(values, DRAWS).tolist(),
                    "alone": [float(draw_metrics[metric]) for draw_metrics in single_metrics],
                }
    return metric_values


if __name__ == "__main__":
    simd: Any = np.show_config(mode="dicts")
    print(
        json.dumps(
            {"found": simd["SIMD Extensions"].get("found", []), "figures": formulas() | metrics()}
        )
    )
