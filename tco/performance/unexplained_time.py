"""Unexplained time: how much longer measured runs take than the model says, as six inputs.

    t = t_model (1 + f)(1 + c)(1 + e)(1 + m)(1 + k)(1 + r)

The model gives t_model. Each share is an input at one level: f of the chip family, c of the chip,
e of the engine, m of the model, k of the configuration (system, engine, model and formats) and r of
the single run. Its value is 0, and its range is as wide as the residuals of measured runs at this
level (`tco.validation.unexplained`). A family, chip or model that nobody measured has the width
that is usual at its level.

Two systems share the draws at the levels that they have in common. These draws cancel in the ratio
of their costs, and the other draws do not.

The product applies to a run as it is configured, to a plan as the model has it
(`workload.as_deployed=0`) and to a training step.
"""

from __future__ import annotations

from tco.catalog.catalogue import CONFIGURATION, RUN, Catalogue
from tco.core.formula import formula
from tco.core.inputs import Readable
from tco.core.types import Quantity
from tco.core.units import Pure

DEPLOYED = "workload.as_deployed"  # 0 takes a plan as the model has it
UNEXPLAINED_SERVING = "unexplained_serving"  # name of the parameter for serving
UNEXPLAINED_TRAINING = "unexplained_training"  # name of the parameter for training
# from what most runs share to what a single run has; each is a parameter of `time_beyond`
UNEXPLAINED_LEVELS = ("family", "chip", "engine", "model", CONFIGURATION, RUN)
UNKNOWN_MODEL = "model"  # its inputs stand for every model that has no calibration rows


@formula("", source="tco-calibration")
def time_beyond(
    family: Pure, chip: Pure, engine: Pure, model: Pure, configuration: Pure, run: Pure
) -> Quantity:
    """Unexplained time over modelled time: x = (1 + f)(1 + c)(1 + e)(1 + m)(1 + k)(1 + r) - 1.

    The letters are the first letters of the arguments, but k is `configuration`.
    """
    return (1 + family) * (1 + chip) * (1 + engine) * (1 + model) * (1 + configuration) * (
        1 + run
    ) - 1


def unexplained_time_paths(
    catalogue: Catalogue,
    parameter_name: str,
    *,
    family: str,
    chip: str,
    engine: str,
    model: str,
    system: str,
) -> dict[str, str]:
    """Return the input paths of a scenario's unexplained time by level.

    Args:
        catalogue: Holds the models.
        parameter_name: `UNEXPLAINED_SERVING` or `UNEXPLAINED_TRAINING`.
        family: Chip family.
        chip: Id of the chip.
        engine: Id of the serving engine; empty leaves the level out.
        model: Id of the model; a model that is built from its shape has no id in the catalogue.
        system: Id of the system.

    """
    level_ids = {
        "family": family,
        "chip": chip,
        "engine": engine,
        "model": model if model in catalogue.models else UNKNOWN_MODEL,
        CONFIGURATION: f"{CONFIGURATION}-{system}",
        RUN: f"{RUN}-{system}",
    }
    return {
        level: f"performance.{level_id}.{parameter_name}"
        for level, level_id in level_ids.items()
        if level_id
    }


def unexplained_share(input_values: Readable, paths: dict[str, str]) -> Quantity | None:
    """Return unexplained over modelled time; None if every level is a plain 0.

    Args:
        input_values: Values of the inputs by path.
        paths: Input paths by level, as `unexplained_time_paths` returns.

    """
    shares = {}
    for level, path in paths.items():
        share = input_values.unless_zero(path)
        if share is not None:
            shares[level] = share
    if not shares:
        return None
    return time_beyond(**{level: shares.get(level, 0.0) for level in UNEXPLAINED_LEVELS})
