"""The state of a result: its metrics and all they rest on, the formulas too, small enough to keep, plain enough to compare."""

from __future__ import annotations

from typing import Any

from tco.chain.result import Result


def rounded(value: float) -> float:
    """Return a number at the 12 significant digits files keep."""
    return float(f"{value:.12g}")


def state_of(result: Result) -> dict[str, Any]:
    """Return metrics, inputs, texts, quantities and fingerprints of the formulas of a result, in a stable order."""
    return {
        "system": result.system,
        "metrics": {name: rounded(value) for name, value in result.metrics.items() if value is not None},
        "texts": dict(sorted(result.texts.items())),
        "quantities": {
            path: rounded(quantity) for path, quantity in sorted((line.path, line.quantity) for line in (result.bill.lines if result.bill else ()))
        },
        "inputs": {path: [rounded(given.value), given.unit] for path, given in sorted(result.inputs.items())},
        "formulas": dict(sorted(result.origin.formulas().items())) if result.origin else {},
    }
