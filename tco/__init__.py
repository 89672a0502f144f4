"""tco: what a unit of AI work costs on a rack, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tco.catalog import Catalogue, load_catalogue
    from tco.chain.draws import evaluate_draws
    from tco.chain.result import Result
    from tco.chain.saved import load_result
    from tco.chain.scenario import evaluate
    from tco.foundation.errors import DataError, TcoError, UnavailableError, UsageError
    from tco.notebook import compare
    from tco.studies.frontier import frontier
    from tco.studies.maps import map_of
    from tco.studies.sensitivity import sensitivity
    from tco.studies.solve import solve
    from tco.studies.sweep.run import sweep
    from tco.studies.uncertainty import uncertainty
    from tco.studies.waterfall import diff

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
    "DataError": "tco.foundation.errors",
    "TcoError": "tco.foundation.errors",
    "UnavailableError": "tco.foundation.errors",
    "UsageError": "tco.foundation.errors",
    "load_catalogue": "tco.catalog",
    "Result": "tco.chain.result",
    "load_result": "tco.chain.saved",
    "evaluate": "tco.chain.scenario",
    "evaluate_draws": "tco.chain.draws",
    "compare": "tco.notebook",
    "diff": "tco.studies.waterfall",
    "frontier": "tco.studies.frontier",
    "map_of": "tco.studies.maps",
    "sensitivity": "tco.studies.sensitivity",
    "solve": "tco.studies.solve",
    "sweep": "tco.studies.sweep.run",
    "uncertainty": "tco.studies.uncertainty",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import tco` stays light; from then on it stands
    here.
    """
    if name in _HOMES:
        import importlib

        found = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
        return found
    raise AttributeError(f"module 'tco' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, those not imported yet among them."""
    return sorted({*globals(), *__all__})
