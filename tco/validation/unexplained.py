"""Unexplained error of validation runs, split into effects shared between runs.

It is the error that remains once all parameters are fitted. The ranges of the parameters say how
sure their values are, as groups of rows are left out. Besides, a run has causes of its own: a
driver, an engine's release, a kernel that nobody wrote for a shape. All runs of a family of chips,
a chip, an engine or a model have causes in common:

    y = ln(t / t_model) = u_family + u_chip + u_engine + u_model + u_configuration + u_run,   u_k ~ N(0, v_k)

The base case stays where the formulas put it. Moved by the effects of measured owners, it lies
farther off on chips and models that were left out. So the width of an owner is the distance its
effect may lie from zero, by the rows there are. An owner without rows has the width of its level.
Effects and variances follow from one another, and are iterated until they stand still at the
likeliest variances (expectation and maximisation, Dempster, Laird and Rubin 1977). The data are the
means y of configurations of n rows each, whose scatter is that of runs:

    E[u^2 | y] = m^2 + s^2,  S = (G^-1 + Z'D^-1 Z)^-1,  m = S Z'D^-1 y,  s^2 = diag S,  D = v_configuration + v_run / n,  v_k = mean of E[u^2 | y]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.catalogue import CONFIGURATION, RUN
from tco.catalog.rows import attribute
from tco.core.provenance import P95
from tco.core.types import JsonObject
from tco.performance.chip.formats import families_of
from tco.performance.software_maturity import OWNERS, SERVING, TRAINING, serving_engines
from tco.validation.measured import TIMES, texts
from tco.validation.score import Prediction
from tco.validation.specifications import Specifications

PARAMETERS = {"inference": SERVING, "training": TRAINING}  # kinds whose answers have ranges
SHARED = OWNERS[:-2]
# standard deviations of the middle, beyond which a residual counts as one there: tails do not set
# the width of the middle
FAR = 2.5
P90 = 1.2815515655446004  # standard normal deviate
FIRST = 0.01  # variance of a level, to begin with
ROUNDS, STILL = 5000, 1e-5  # and the relative change by which the variances stand still
ALIKE = 0.1  # of a width: an owner whose own is no farther from that of its kind has no row


class Split(NamedTuple):
    """Variances of the logarithm of time by level, and the mean square of the effect of every
    measured owner of a level.
    """

    levels: dict[str, float]
    owners: dict[str, dict[str, float]]

    def width(self, level: str, owner: str) -> float:
        """Return the standard deviation of an owner's effect; a family nobody measured is as far
        off as a chip nobody measured.
        """
        unmeasured = self.levels["chip"] if level == "family" else 0.0
        return math.sqrt(self.owners.get(level, {}).get(owner, max(self.levels[level], unmeasured)))


def level_of(catalogue: Catalogue, path: str) -> str:
    """Return the level of an input of unexplained time, by its owner."""
    owner = path.removeprefix("performance.").rpartition(".")[0]
    return catalogue.kind_of(owner) or (
        "engine" if owner in serving_engines(catalogue) else owner if owner in OWNERS else "family"
    )


def lognormal_interval(width: float) -> tuple[float, float]:
    """Return P5 and P95 of a share of time whose logarithm is as wide."""
    return math.expm1(-P95 * width), math.expm1(P95 * width)


def residuals(
    kind: str, table: pd.DataFrame, chips: Specifications, made: Prediction
) -> pd.DataFrame:
    """Return the scored rows of a file: the owners of each by level, and how much longer than
    predicted it took, as a logarithm.
    """
    if kind == "inference":
        points = chips.kept["asked"]
        models, engine = points.models, points.engine
        alike = [points.engine, points.date, *points.formats.T, points.apart, points.speculative]
    else:
        models, engine, alike = chips.kept["training"][1], "", [texts(table, "source_id")]
    found = pd.DataFrame(
        {"family": chips.families, "chip": chips.parts, "engine": engine, "model": models}
    )
    key = found.assign(**{str(place): part for place, part in enumerate(alike)})
    sign = np.where(np.isin(made.target_name, TIMES), 1.0, -1.0)  # of rates less is slower
    with np.errstate(divide="ignore", invalid="ignore"):
        found = found.assign(
            configuration=key.groupby([*key], dropna=False).ngroup(),
            residual=sign * np.log(made.target / made.predicted),
        )
    return found[made.skip == ""]


def fit_variance_components(found: pd.DataFrame) -> Split:
    """Return the variances of levels and owners that the residuals of some rows tell of."""
    low, high = np.quantile(found.residual, (0.1, 0.9))
    most = FAR * (high - low) / (2 * P90)
    alike = found.assign(residual=found.residual.clip(-most, most)).groupby(CONFIGURATION)
    mean, count = alike.residual.mean().to_numpy(), alike.size().to_numpy()
    scatter = float((alike.residual.var(ddof=0) * count).sum() / max((count - 1).sum(), 1))
    labels = alike[list(SHARED)].first()
    owners = [(level, owner) for level in SHARED for owner in sorted(set(labels[level]))]
    # Z: configurations by owners
    has = np.array([labels[level] == owner for level, owner in owners], dtype=float).T
    of = np.array([SHARED.index(level) for level, _ in owners])
    variances = np.full(len(SHARED) + 1, FIRST)
    for _ in range(ROUNDS):
        noise = variances[-1] + scatter / count
        weighed = has / noise[:, None]
        covariance = np.linalg.inv(np.diag(1 / variances[of]) + has.T @ weighed)
        effects = covariance @ (weighed.T @ mean)
        squares = effects**2 + np.diag(covariance)
        # share of what is left of a configuration that is its own, and not the scatter of its runs
        own = variances[-1] / noise
        left = (
            (own * (mean - has @ effects)) ** 2
            + variances[-1] * (1 - own)
            + own**2 * ((has @ covariance) * has).sum(axis=1)
        )
        before, variances = (
            variances,
            np.append(np.bincount(of, squares) / np.bincount(of), left.mean()),
        )
        if np.allclose(before, variances, rtol=STILL, atol=0):
            break
    by = {
        level: {
            owner: float(one)
            for (kind, owner), one in zip(owners, squares, strict=True)
            if kind == level
        }
        for level in SHARED
    }
    return Split(dict(zip(OWNERS, [*variances.tolist(), scatter], strict=True)), by)


def unexplained_rows(
    kind: str, found: pd.DataFrame, catalogue: Catalogue, date: str
) -> Iterator[JsonObject]:
    """Yield the catalogue rows of what a fit leaves unexplained: P5 and P95 of the effect of every
    owner, and of one without rows.
    """
    made, name = fit_variance_components(found), PARAMETERS[kind]
    known = {
        "family": sorted(set(families_of(catalogue).values())),
        "chip": ["chip", *sorted(made.owners["chip"])],
        "engine": serving_engines(catalogue) if kind == "inference" else [],
        "model": ["model", *sorted(set(made.owners["model"]) & set(catalogue.models))],
        CONFIGURATION: [CONFIGURATION],
        RUN: [RUN],
    }
    for level, owners in known.items():
        for owner in owners:
            own, width = (
                found[found[level] == owner] if level in SHARED else found,
                made.width(level, owner),
            )
            if (
                owner in made.owners.get(level, ())
                and level in owners
                and abs(width / made.width(level, level) - 1) < ALIKE
            ):
                continue
            low, high = (float(f"{end:.4g}") for end in lognormal_interval(width))
            counted = f"{len(own):,} rows in {own.configuration.nunique():,} configurations"
            note = f"what {counted} have in common" if len(own) else f"no rows of this {level}"
            if level not in SHARED:
                note = (
                    f"the scatter of {counted}: "
                    f"{'among' if level == CONFIGURATION else 'within'} them"
                )
            yield {
                **{
                    "family": owner,
                    "attribute": name,
                    "value": 0,
                    "unit": attribute("performance", name, kind).unit,
                    "low": low,
                    "high": high,
                },
                **{
                    "as_of": date,
                    "kind": "derived",
                    "source": "tco-calibration",
                    "note": note,
                    "use": "",
                    "residual": "",
                },
            }
