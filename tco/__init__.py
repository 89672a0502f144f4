"""tco: what a unit of AI work costs on a rack, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tco.catalog import Catalogue, load_catalogue
    from tco.comparison.break_even import solve
    from tco.comparison.frontier import frontier
    from tco.comparison.maps import map_of
    from tco.core.errors import DataError, TcoError, UnavailableError, UsageError
    from tco.evaluation.python_functions import evaluate, evaluate_draws
    from tco.notebook import compare
    from tco.regression.result_difference import diff
    from tco.sampling.sensitivity import sensitivity
    from tco.sampling.uncertainty import uncertainty
    from tco.scenario.result import Result
    from tco.scenario.saved import load_result
    from tco.sweeps.run import sweep

__version__ = "0.1.0"
__all__ = [
    "Catalogue",
    "DataError",
    "Result",
    "TcoError",
    "UnavailableError",
    "UsageError",
    "__version__",
    "compare",
    "diff",
    "evaluate",
    "evaluate_draws",
    "frontier",
    "load_catalogue",
    "load_result",
    "map_of",
    "sensitivity",
    "solve",
    "sweep",
    "uncertainty",
]

_HOMES = {
    "Catalogue": "tco.catalog",
    "DataError": "tco.core.errors",
    "TcoError": "tco.core.errors",
    "UnavailableError": "tco.core.errors",
    "UsageError": "tco.core.errors",
    "load_catalogue": "tco.catalog",
    "Result": "tco.scenario.result",
    "load_result": "tco.scenario.saved",
    "evaluate": "tco.evaluation.python_functions",
    "evaluate_draws": "tco.evaluation.python_functions",
    "compare": "tco.notebook",
    "diff": "tco.regression.result_difference",
    "frontier": "tco.comparison.frontier",
    "map_of": "tco.comparison.maps",
    "sensitivity": "tco.sampling.sensitivity",
    "solve": "tco.comparison.break_even",
    "sweep": "tco.sweeps.run",
    "uncertainty": "tco.sampling.uncertainty",
}


def __getattr__(public_name: str) -> Any:
    """Import a public name on first use and keep it, so that `import tco` stays light."""
    if public_name in _HOMES:
        import importlib

        public_object = globals()[public_name] = getattr(
            importlib.import_module(_HOMES[public_name]), public_name
        )
        return public_object
    raise AttributeError(f"module 'tco' has no attribute {public_name!r}")


def __dir__() -> list[str]:
    """List the public names, those not imported yet among them."""
    return sorted({*globals(), *__all__})
