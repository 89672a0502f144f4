"""What no parameter explains of a time, split by what runs have in common.

A run takes t = t_model (1 + f)(1 + c)(1 + e)(1 + m)(1 + k)(1 + r): what runs of a family of chips share, those of a chip, an engine, a model,
a configuration of all of these with its formats and its release, and what one run has alone. Each share is an input of its owner, nought in
itself, and as wide as measured runs lie off (`tco.studies.validation.unexplained`). Two systems share the draws of the owners they have in
common and no others, so that those cancel in their ratio and the rest does not. An owner nobody has measured has the width of its level.
"""

from __future__ import annotations

from typing import Any

from tco.catalog.catalogue import CONFIGURATION, RUN, Catalogue
from tco.foundation.formula import formula
from tco.foundation.units import Pure
from tco.foundation.values import Readable

LEVELS = ("family", "chip", "engine", "model", CONFIGURATION, RUN)  # from what many runs share to what one has alone
SERVING, TRAINING = "unexplained_serving", "unexplained_training"


@formula(unit="", source="tco-calibration")
def time_beyond(family: Pure, chip: Pure, engine: Pure, model: Pure, configuration: Pure, run: Pure) -> Any:
    """Time that no parameter explains over what they do: x = (1 + f)(1 + c)(1 + e)(1 + m)(1 + k)(1 + r) - 1."""
    return (1 + family) * (1 + chip) * (1 + engine) * (1 + model) * (1 + configuration) * (1 + run) - 1


def paths_of(catalogue: Catalogue, name: str, family: str, chip: str, engine: str, model: str, system: str) -> dict[str, str]:
    """Return the inputs of a scenario's unexplained time by level; a model built from its shape has that of one without rows."""
    own = (f"{level}-{system}" for level in (CONFIGURATION, RUN))
    owners = (family, chip, engine, model if model in catalogue.models else "model", *own)
    return {level: f"performance.{owner}.{name}" for level, owner in zip(LEVELS, owners, strict=True) if owner}


def unexplained(values: Readable, paths: dict[str, str]) -> Any:
    """Return the unexplained time of a pass as a share of it; None where every level is a plain nought."""
    shares = {level: share for level, path in paths.items() if (share := values.unless_zero(path)) is not None}
    return time_beyond(*(shares.get(level, 0.0) for level in LEVELS)) if shares else None
