"""tco: what a unit of AI work costs on a rack, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tco.catalog import Catalogue, load_catalogue
    from tco.chain.scenario import Result, evaluate

__version__ = "0.1.0"
__all__ = ["Catalogue", "Result", "__version__", "evaluate", "load_catalogue"]

_HOMES = {"Catalogue": "tco.catalog", "load_catalogue": "tco.catalog", "Result": "tco.chain.scenario", "evaluate": "tco.chain.scenario"}


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that `import tco` stays light."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tco' has no attribute {name!r}")
