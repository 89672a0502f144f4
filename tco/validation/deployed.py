"""Production overhead: shortfall of published runs against the best plan.

Published runs that no other run beats are compared with the best plan of their class, by class
and by engine.

A run that makes R tokens per second and chip at a speed reaches a share of the best rate R_c of its
class there: whole engines of one server, or pools apart of published sizes, under public software
of the run's month.

    ln(R / R_c) = m_class + b_engine + s_envelope + e,   b ~ N(0, v_b), s ~ N(0, v_s)

An envelope is the runs of one chip, model, set of formats and lengths. Weak runs are outliers and
not points of a cloud: e is Student's t of three degrees of freedom, whose weights and the variances
follow from one another until they stand still (expectation and maximisation; Lange, Little and
Taylor 1989). Chips, generations, speeds, lengths, ages and drafts have no level: left out, they
bring nothing.

What families of chips lie apart is read from runs as they were configured, slow ones among them:
the residuals of `tco.validation.unexplained`, of which each publisher has an error of its
own.

    ln(R / R_model) = u_family + w_publisher + e,   u ~ N(0, U^2), w ~ N(0, W^2)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.inputs import Values
from tco.core.provenance import P95
from tco.core.types import AnyArray, JsonObject
from tco.performance.deployment import APART, BENCHMARK, EFFICIENCY, SERVER
from tco.validation import inference
from tco.validation.envelopes import (
    KEYS,
    LEAST,
    EnvelopeCandidates,
    best_at,
    pareto_front,
)
from tco.validation.measured import texts
from tco.validation.score import predict_by_accelerator
from tco.validation.specifications import Specifications
from tco.validation.unexplained import residuals

NAME = "deployed"  # as a fit is asked for
CLASS, ENGINE, ENVELOPE = LEVELS = ("class", "engine", "envelope")
# variance of classes, which are free, and of all else before the first round
WIDE, FIRST = (
    10.0,
    0.02,
)
FREEDOM = 3.0  # degrees of freedom of Student's t
STILL, ROUNDS = 1e-6, 2000
NO_PLAN = -2.0  # logarithm that stands for a run whose class has no plan at its speed
# standard deviations between families, and between publishers of one
FAMILY_SPREAD, PUBLISHER_SPREAD = (
    0.35,
    0.25,
)


class Effects(NamedTuple):
    """Effects with their covariance, the variance of each level, and how far single runs lie
    off.
    """

    owners: list[tuple[str, str]]  # level and owner of each effect
    means: AnyArray
    covariance: AnyArray
    variances: dict[str, float]
    scatter: float

    def of(self, level: str, owner: str) -> tuple[float, float]:
        """Return mean and standard deviation of an effect; of an owner without runs that of its
        level.
        """
        if (level, owner) not in self.owners:
            return 0.0, math.sqrt(self.variances[level])
        place = self.owners.index((level, owner))
        return float(self.means[place]), math.sqrt(float(self.covariance[place, place]))


def gaps(table: pd.DataFrame, catalogue: Catalogue, values: Values) -> pd.DataFrame:
    """Return the undominated runs with their share of the class's best rate.

    An envelope of fewer than `LEAST` configurations is left out.

    Args:
        table: Published serving runs, a row each.
        catalogue: Holds the chips and models.
        values: Inputs by path.

    Returns:
        Row per run: class, engine, envelope, chip, speed (tokens/s per user) and share, as a
        logarithm.
        The share is `NO_PLAN` where the class has no plan at that speed.

    """
    rows = []
    sweep = EnvelopeCandidates(table, catalogue, values)
    for key, runs in sweep.configurations(ahead=True).groupby(list(KEYS), sort=True):
        if len(runs) < LEAST:
            continue
        named = dict(zip(KEYS, key, strict=True))
        for run in runs[
            pareto_front(runs["speed"].to_numpy(float), runs["rate"].to_numpy(float))
        ].itertuples():
            operator = APART if run.apart else SERVER
            settings = {"workload.operated_by": operator, "workload.engine": run.engine}
            best = best_at(catalogue, named, run.speed, run.date, run.ahead, settings)
            share = NO_PLAN if not best else math.log(run.rate / best)
            rows.append(
                (
                    operator,
                    run.engine,
                    "/".join(map(str, key)),
                    named["chip"],
                    float(run.speed),
                    share,
                )
            )
    return pd.DataFrame(rows, columns=[CLASS, ENGINE, ENVELOPE, "chip", "speed", "share"])


def fit_mixed_model(found: pd.DataFrame) -> Effects:
    """Return class, engine and envelope effects on the reached share.

    The share is that of the best rate of the class, as a logarithm.
    """
    shares = found["share"].to_numpy(float)
    owners = [(level, owner) for level in LEVELS for owner in sorted(set(found[level]))]
    has = np.array([(found[level] == owner).to_numpy(float) for level, owner in owners]).T
    place = np.array([LEVELS.index(level) for level, _ in owners])
    variances, scatter, weights = np.array([WIDE, FIRST, FIRST]), FIRST, np.ones(len(shares))
    for _ in range(ROUNDS):
        weighed = has * (weights / scatter)[:, None]
        covariance = np.linalg.inv(np.diag(1 / variances[place]) + has.T @ weighed)
        means = covariance @ (weighed.T @ shares)
        squares = means**2 + np.diag(covariance)
        left = (shares - has @ means) ** 2 + ((has @ covariance) * has).sum(axis=1)
        before, now = (
            np.append(variances, scatter),
            np.bincount(place, squares) / np.bincount(place),
        )
        variances, scatter = np.array([WIDE, *now[1:]]), float(np.mean(weights * left))
        weights = (FREEDOM + 1) / (FREEDOM + left / scatter)
        if np.allclose(before, np.append(variances, scatter), rtol=STILL, atol=0):
            break
    return Effects(
        owners, means, covariance, dict(zip(LEVELS, variances.tolist(), strict=True)), scatter
    )


def family_effects(residuals: pd.DataFrame) -> dict[str, tuple[float, float, int]]:
    """Return mean, standard deviation and count of runs of each family's rate over the model's, by
    publisher.

    Args:
        residuals: runs as configured with `family`, `source` and `residual`, a logarithm of time
            over the model's.

    """
    effects = {}
    for family, runs in residuals.groupby("family"):
        medians = -runs.groupby("source")["residual"].median()
        weight = len(medians) / PUBLISHER_SPREAD**2
        variance = 1 / (weight + 1 / FAMILY_SPREAD**2)
        effects[str(family)] = (
            variance * weight * float(medians.mean()),
            math.sqrt(variance),
            len(runs),
        )
    return effects


def residuals_by_source(table: pd.DataFrame, catalogue: Catalogue, values: Values) -> pd.DataFrame:
    """Return the residuals of the scored runs of a file, with their sources.

    Args:
        table: Published serving runs, a row each.
        catalogue: Holds the chips and models.
        values: Inputs by path.

    Returns:
        Row per scored run: owners by level, source, and the logarithm of the time over the time
        predicted for the run as configured.

    """
    chips = Specifications(catalogue, values, texts(table, "accelerator"))
    made = predict_by_accelerator(inference.predict_serving_runs, table, chips)
    scored = residuals("inference", table, chips, made)
    return scored.assign(source=texts(table, "source_id").astype(str)[made.skip == ""])


def deployed_rows(found: pd.DataFrame, configured: pd.DataFrame, date: str) -> Iterator[JsonObject]:
    """Yield the catalogue rows of a fit: classes, engines, families, and what one system has by
    itself.

    Args:
        found: unbeaten runs over the best plan of their class, as `gaps` gives them.
        configured: runs as they were configured, as `residuals_by_source` gives them.
        date: year and month that the rows carry.

    """
    effects = fit_mixed_model(found)
    for operator in (SERVER, APART):
        runs = int((found[CLASS] == operator).sum())
        yield row_of(
            operator,
            *effects.of(CLASS, operator),
            f"{runs} published runs that no other run beats",
            date,
        )
    both = [effects.of(CLASS, operator) for operator in (SERVER, APART)]
    mean, deviation = (float(np.mean(column)) for column in zip(*both, strict=True))
    yield row_of(BENCHMARK, mean, deviation, "the mean of one server and of pools apart", date)
    for engine in sorted(set(found[ENGINE])):
        runs = int((found[ENGINE] == engine).sum())
        yield row_of(
            engine,
            *effects.of(ENGINE, engine),
            f"{runs} published runs that no other run beats",
            date,
        )
    for family, (mean, deviation, count) in sorted(family_effects(configured).items()):
        yield row_of(
            family,
            mean,
            deviation,
            f"{count} runs as they were configured, weighed by publisher",
            date,
        )
    spread = math.sqrt(effects.variances[ENVELOPE])
    yield row_of("run", 0.0, spread, f"the scatter of {found[ENVELOPE].nunique()} envelopes", date)


def row_of(owner: str, mean: float, deviation: float, note: str, date: str) -> JsonObject:
    """Return the catalogue row of an efficiency, whose logarithm is normal."""
    value, low, high = (
        float(f"{math.exp(mean + side * P95 * deviation):.4g}") for side in (0, -1, 1)
    )
    return {
        **{
            "family": owner,
            "attribute": EFFICIENCY,
            "value": value,
            "unit": "ratio",
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
