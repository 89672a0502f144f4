"""Unexplained error of validation runs, split into effects shared between runs.

It is the error that remains once all parameters are fitted. The ranges of the parameters say how
sure their values are, as groups of rows are left out. Besides, a run has causes of its own: a
driver, an engine's release, a kernel that nobody wrote for a shape. All runs of a family of chips,
a chip, an engine or a model have causes in common:

    y = ln(t / t_model) = u_family + u_chip + u_engine + u_model + u_configuration + u_run
    u_k ~ N(0, v_k)

The base case stays where the formulas put it. Moved by the effects of measured owners, it lies
farther off on chips and models that were left out. So the width of an owner is the distance its
effect may lie from zero, by the rows there are. An owner without rows has the width of its level.
The variances are those of `tco.validation.variance_components`. Its data are the means y of
configurations of n rows each, whose scatter is that of runs:

    y ~ N(Z u, v_configuration + v_run / n)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.catalogue import CONFIGURATION, RUN
from tco.core.provenance import P95
from tco.core.types import AnyArray
from tco.performance.chip.families import families_of
from tco.performance.serving_engines import serving_engines
from tco.performance.unexplained_time import (
    UNEXPLAINED_LEVELS,
    UNEXPLAINED_SERVING,
    UNEXPLAINED_TRAINING,
)
from tco.validation.fitted_rows import FittedRow, fitted_row
from tco.validation.inference import serving_rows_of
from tco.validation.measured import TIMES
from tco.validation.measured_rows import MeasuredRows
from tco.validation.score import Prediction
from tco.validation.variance_components import (
    Effects,
    Noise,
    configuration_noise,
    fit_effects,
)

# by the kind of measured rows, for the kinds whose answers have ranges
PARAMETERS = {"inference": UNEXPLAINED_SERVING, "training": UNEXPLAINED_TRAINING}
SHARED = UNEXPLAINED_LEVELS[:-2]
# standard deviations of the middle, beyond which a residual counts as one there: tails do not set
# the width of the middle
FAR = 2.5
P90 = 1.2815515655446004  # standard normal deviate
FIRST = 0.01  # variance of a level, before the first round
TOLERANCE = 1e-5  # relative change by which variances stand still
ALIKE = 0.1  # of a width: an owner whose own is no farther from that of its kind has no row


def level_of(catalogue: Catalogue, path: str) -> str:
    """Return the level of an input of unexplained time, by its owner."""
    owner = path.removeprefix("performance.").rpartition(".")[0]
    if kind := catalogue.kind_of(owner):
        return kind
    if owner in serving_engines(catalogue):
        return "engine"
    return owner if owner in UNEXPLAINED_LEVELS else "family"


def lognormal_interval(width: float) -> tuple[float, float]:
    """Return P5 and P95 of a share of time whose logarithm is as wide."""
    return math.expm1(-P95 * width), math.expm1(P95 * width)


def residuals(kind: str, measurements: MeasuredRows, prediction: Prediction) -> pd.DataFrame:
    """Return the scored rows with their owners by level, and the log of measured over predicted."""
    engine: AnyArray | str = ""
    if kind == "inference":
        points = serving_rows_of(measurements)
        models, engine = points.models, points.engine
        alike = [points.engine, points.date, *points.formats.T, points.apart, points.speculative]
    else:
        models = measurements.models
        alike = [measurements["source_id"]]
    residual_rows = pd.DataFrame(
        {
            "family": measurements.families,
            "chip": measurements.parts,
            "engine": engine,
            "model": models,
        }
    )
    configuration_key = residual_rows.assign(
        **{str(label_index): part for label_index, part in enumerate(alike)}
    )
    sign = np.where(np.isin(prediction.target_name, TIMES), 1.0, -1.0)  # of rates less is slower
    with np.errstate(divide="ignore", invalid="ignore"):
        residual_rows = residual_rows.assign(
            configuration=configuration_key.groupby([*configuration_key], dropna=False).ngroup(),
            residual=sign * np.log(prediction.target / prediction.predicted),
        )
    return residual_rows[prediction.skip == ""]


def fit_variance_components(residual_rows: pd.DataFrame) -> Effects:
    """Return the effects of owners on the residuals of rows.

    The variances are those of all levels, of configurations and of runs.
    """
    low, high = np.quantile(residual_rows.residual, (0.1, 0.9))
    most = FAR * (high - low) / (2 * P90)
    clipped = residual_rows.assign(residual=residual_rows.residual.clip(-most, most))
    configurations = clipped.groupby(CONFIGURATION)
    means, counts = configurations.residual.mean().to_numpy(), configurations.size().to_numpy()
    squares = (configurations.residual.var(ddof=0) * counts).sum()
    scatter = float(squares / max((counts - 1).sum(), 1))
    noise = Noise(FIRST, FIRST + scatter / counts)
    labels, variances = configurations[list(SHARED)].first(), dict.fromkeys(SHARED, FIRST)
    effects = fit_effects(labels, means, variances, noise, configuration_noise, TOLERANCE)
    unshared = {CONFIGURATION: effects.noise.variance, RUN: scatter}
    return effects._replace(variances=effects.variances | unshared)


def effect_width(effects: Effects, level: str, owner: str) -> float:
    """Return the root mean square of an owner's effect, in logarithm.

    A family that nobody measured is as far off as a chip that nobody measured.
    """
    if (level, owner) in effects.by_owner:
        return math.hypot(*effects.by_owner[level, owner])
    unmeasured = effects.variances["chip"] if level == "family" else 0.0
    return math.sqrt(max(effects.variances[level], unmeasured))


def unexplained_rows(
    kind: str, residual_rows: pd.DataFrame, catalogue: Catalogue, date: str
) -> Iterator[FittedRow]:
    """Yield the catalogue rows of the time that a fit leaves unexplained.

    The range of an owner is P5 and P95 of its effect. An owner whose width is close to that of its
    level has no row.
    """
    effects = fit_variance_components(residual_rows)
    chips, models = (
        sorted(owner for level, owner in effects.by_owner if level == level_name)
        for level_name in ("chip", "model")
    )
    owners_by_level = {
        "family": sorted(set(families_of(catalogue).values())),
        "chip": ["chip", *chips],
        "engine": serving_engines(catalogue) if kind == "inference" else [],
        "model": ["model", *(model for model in models if model in catalogue.models)],
        CONFIGURATION: [CONFIGURATION],
        RUN: [RUN],
    }
    for level, owners in owners_by_level.items():
        for owner in owners:
            width = effect_width(effects, level, owner)
            measured = level in owners and (level, owner) in effects.by_owner
            if measured and abs(width / effect_width(effects, level, level) - 1) < ALIKE:
                continue
            ends = 0.0, *lognormal_interval(width)
            note = _note(
                level,
                residual_rows[residual_rows[level] == owner] if level in SHARED else residual_rows,
            )
            yield fitted_row(owner, PARAMETERS[kind], ends, note, date)


def _note(level: str, residual_rows: pd.DataFrame) -> str:
    counted = (
        f"{len(residual_rows):,} rows in {residual_rows.configuration.nunique():,} configurations"
    )
    if level not in SHARED:
        return f"the scatter of {counted}: {'among' if level == CONFIGURATION else 'within'} them"
    return f"what {counted} have in common" if len(residual_rows) else f"no rows of this {level}"
