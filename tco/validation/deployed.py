"""Production overhead: shortfall of published runs against the best plan.

Published runs that no other run beats are compared with the best plan of their class, by class
and by engine.

A run that makes R tokens per second and chip at a speed reaches a share of the best rate R_c of its
class there: whole engines of one server, or pools apart of published sizes, under public software
of the run's month.

    ln(R / R_c) = m_class + b_engine + s_envelope + e,   b ~ N(0, v_b), s ~ N(0, v_s)

An envelope is the runs of one chip, model, set of formats and lengths. Weak runs are outliers and
not points of a cloud: e is Student's t of three degrees of freedom. Chips, generations, speeds,
lengths, ages and drafts have no level: left out, they bring nothing.

What families of chips lie apart is read from runs as they were configured, slow ones among them:
the residuals of `tco.validation.unexplained`, of which each publisher has an error of its
own.

    ln(R / R_model) = u_family + w_publisher + e,   u ~ N(0, U^2), w ~ N(0, W^2)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.inputs import Values
from tco.core.provenance import P95
from tco.performance.deployment import APART, BENCHMARK, EFFICIENCY, SERVER
from tco.validation import inference
from tco.validation.envelopes import (
    KEYS,
    LEAST,
    EnvelopeCandidates,
    best_at,
    pareto_front,
)
from tco.validation.fitted_rows import FittedRow, fitted_row
from tco.validation.measured_rows import MeasuredRows
from tco.validation.score import predict_by_accelerator
from tco.validation.unexplained import residuals
from tco.validation.variance_components import Effects, Noise, fit_effects, student_noise

NAME = "deployed"  # as a fit is asked for
CLASS, ENGINE, ENVELOPE = "class", "engine", "envelope"
FIRST = 0.02  # variance before the first round
VARIANCES = {CLASS: 10.0, ENGINE: FIRST, ENVELOPE: FIRST}  # classes are free
TOLERANCE = 1e-6  # relative change by which variances stand still
NO_PLAN = -2.0  # logarithm that stands for a run whose class has no plan at its speed
FAMILY_SPREAD = 0.35  # standard deviation between families, in logarithm
PUBLISHER_SPREAD = 0.25  # between publishers of one family


def gaps(table: pd.DataFrame, catalogue: Catalogue, input_values: Values) -> pd.DataFrame:
    """Return the undominated runs with their share of the class's best rate.

    An envelope of fewer than `LEAST` configurations is left out.

    Args:
        table: Published serving runs, a row each.
        catalogue: Holds the chips and models.
        input_values: Inputs by path.

    Returns:
        Row per run: class, engine, envelope, chip, speed (tokens/s per user) and share, as a
        logarithm.
        The share is `NO_PLAN` where the class has no plan at that speed.

    """
    gap_rows = []
    sweep = EnvelopeCandidates(table, catalogue, input_values)
    for envelope_key, runs in sweep.configurations(ahead=True).groupby(list(KEYS), sort=True):
        if len(runs) < LEAST:
            continue
        named = sweep.kind(envelope_key)
        for run in runs[
            pareto_front(runs["speed"].to_numpy(float), runs["rate"].to_numpy(float))
        ].itertuples():
            operator = APART if run.apart else SERVER
            settings = {"workload.operated_by": operator, "workload.engine": run.engine}
            best = best_at(catalogue, named, run.speed, run.date, run.ahead, settings)
            share = NO_PLAN if not best else math.log(run.rate / best)
            gap_rows.append(
                (
                    operator,
                    run.engine,
                    "/".join(map(str, envelope_key)),
                    named["chip"],
                    float(run.speed),
                    share,
                )
            )
    return pd.DataFrame(gap_rows, columns=[CLASS, ENGINE, ENVELOPE, "chip", "speed", "share"])


def fit_mixed_model(runs: pd.DataFrame) -> Effects:
    """Return class, engine and envelope effects on the reached share.

    The share is that of the best rate of the class, as a logarithm.
    """
    noise = Noise(FIRST, np.full(len(runs), FIRST))
    shares = runs["share"].to_numpy(float)
    return fit_effects(
        runs, shares, VARIANCES, noise, student_noise, TOLERANCE, fixed_levels=(CLASS,)
    )


def family_effects(residuals: pd.DataFrame) -> dict[str, tuple[float, float, int]]:
    """Return mean, deviation and count of runs by family of chips.

    The mean is the logarithm of the rate over the model's, weighed by publisher.

    Args:
        residuals: Runs as configured with `family`, `source` and `residual`, a logarithm of time
            over the model's.

    """
    effects = {}
    for family, runs in residuals.groupby("family"):
        medians = -runs.groupby("source")["residual"].median()
        weight = len(medians) / PUBLISHER_SPREAD**2
        variance = 1 / (weight + 1 / FAMILY_SPREAD**2)
        mean = variance * weight * float(medians.mean())
        effects[str(family)] = mean, math.sqrt(variance), len(runs)
    return effects


def residuals_by_source(
    table: pd.DataFrame, catalogue: Catalogue, input_values: Values
) -> pd.DataFrame:
    """Return the residuals of the scored runs of a file, with their sources.

    Args:
        table: Published serving runs, a row each.
        catalogue: Holds the chips and models.
        input_values: Inputs by path.

    Returns:
        Row per scored run: owners by level, source, and the logarithm of the time over the time
        predicted for the run as configured.

    """
    measurements = MeasuredRows(table, catalogue, input_values)
    prediction = predict_by_accelerator(inference.predict_serving_runs, measurements)
    scored = residuals("inference", measurements, prediction)
    return scored.assign(source=measurements["source_id"][prediction.skip == ""])


def deployed_rows(runs: pd.DataFrame, configured: pd.DataFrame, date: str) -> Iterator[FittedRow]:
    """Yield the catalogue rows of classes, engines, families and single systems.

    Args:
        runs: Unbeaten runs over the best plan of their class, as `gaps` gives them.
        configured: Runs as they were configured, as `residuals_by_source` gives them.
        date: Year and month that the rows carry.

    """
    effects = fit_mixed_model(runs)

    def row(owner: str, effect: tuple[float, float], note: str) -> FittedRow:
        mean, deviation = effect
        ends = (math.exp(mean + side * P95 * deviation) for side in (0, -1, 1))
        return fitted_row(owner, EFFICIENCY, ends, note, date)

    def level_row(level: str, owner: str) -> FittedRow:
        count = int((runs[level] == owner).sum())
        note = f"{count} published runs that no other run beats"
        return row(owner, effects.of(level, owner), note)

    classes = SERVER, APART
    for operator in classes:
        yield level_row(CLASS, operator)
    mean, deviation = np.mean([effects.of(CLASS, operator) for operator in classes], axis=0)
    yield row(BENCHMARK, (mean, deviation), "the mean of one server and of pools apart")
    for engine in sorted(set(runs[ENGINE])):
        yield level_row(ENGINE, engine)
    for family, (mean, deviation, count) in sorted(family_effects(configured).items()):
        note = f"{count} runs as they were configured, weighed by publisher"
        yield row(family, (mean, deviation), note)
    spread = math.sqrt(effects.variances[ENVELOPE])
    yield row("run", (0.0, spread), f"the scatter of {runs[ENVELOPE].nunique()} envelopes")
