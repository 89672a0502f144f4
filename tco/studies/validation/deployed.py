"""How much longer deployments take than best plans: published runs that no other run beats, held against the search of plans by chip and speed.

A run at v tokens per second a user that makes R tokens per second a chip takes t times as long as the best plan that, were all of it t times as
slow, would give the same: R = R*(t v) / t, with R* what the best plan makes at a speed under public software of the run's month, drafts of the
model's head included where runs have them. Of the runs of one
chip, model, set of formats and lengths those count that no other run beats:

    ln t = a + b z + u_chip + s_chip z + u_envelope + e,   z = ln(v / 50),   u ~ N(0, v_chip), N(0, v_envelope), s ~ N(0, v_slope)

Weak runs are outliers and not points of a cloud: e is Student's t of three degrees of freedom, whose weights and the variances follow from one
another until they stand still (expectation and maximisation; Lange, Little and Taylor 1989). Runs of a model's first half year say what its
software does at least: they count where they are quicker than the others say. A chip's range is of one run of a model nobody has run on it: the
variance of envelopes and of runs counts beside that of its effect. A chip without runs has that of chips too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.foundation.provenance import P95
from tco.foundation.values import Values
from tco.studies.validation.envelopes import KEYS, LEAST, Array, Sweep, best_at, unbeaten
from tco.studies.validation.inference import GROWN_UP

NAME = "deployed"  # as a fit is asked for
LEVELS = ("common", "slope", "chip", "chip slope", "envelope")
WIDE, FIRST = 10.0, 0.02  # variance of what is common to all, which is free, and of all else before the first round
FREEDOM = 3.0  # degrees of freedom of Student's t
STILL, ROUNDS = 1e-6, 2000
NOTHING = 1e-9  # weight of a bound that holds
SLOWEST, STEPS = 16.0, 12  # a run takes no longer over its best plan, and no less than one over it; halvings of that range
MIDDLE = 50.0  # tokens per second a user
SETTLED = 6  # months from the first run of a model to the last, from which on its runs are no bound any more


class Fitted(NamedTuple):
    """Effects with their covariance, the variance of each level, and how far single runs lie off."""

    owners: list[tuple[str, str]]  # level and owner of each effect
    effects: Array
    covariance: Array
    variances: dict[str, float]
    scatter: float

    def of(self, wanted: tuple[tuple[str, str], ...], more: float = 0.0) -> tuple[float, float]:
        """Return mean and width of a sum of effects and of more variance; an effect of an owner without runs adds its level's variance alone."""
        has = np.array([float(one in wanted) for one in self.owners])
        unknown = [level for level, owner in wanted if (level, owner) not in self.owners]
        variance = float(has @ self.covariance @ has) + sum(self.variances[level] for level in unknown) + more
        return float(has @ self.effects), math.sqrt(variance)


def gaps(table: pd.DataFrame, catalogue: Catalogue, values: Values) -> pd.DataFrame:
    """Return the runs that no other run beats: chip, envelope, speed, times as long as the best plan, and whether that is a bound."""
    found, every = [], Sweep(table, catalogue, values)
    months = every.runs.groupby("model")["month"]
    young = set((months.max() - months.min()).loc[lambda span: ~(span >= SETTLED)].index)
    for key, runs in every.configurations(ahead=True).groupby(list(KEYS), sort=True):
        if len(runs) < LEAST:
            continue
        named, ahead = dict(zip(KEYS, key, strict=True)), bool(runs["ahead"].any())
        for run in runs[unbeaten(runs["speed"].to_numpy(float), runs["rate"].to_numpy(float))].itertuples():
            low, high = -math.log(SLOWEST), math.log(SLOWEST)
            for _ in range(STEPS):
                middle = (low + high) / 2
                best = best_at(catalogue, named, run.speed * math.exp(middle), run.date or GROWN_UP, ahead) or 0.0
                low, high = (middle, high) if best > run.rate * math.exp(middle) else (low, middle)
            found.append((named["chip"], " ".join(map(str, key)), float(run.speed), math.exp((low + high) / 2), named["model"] in young))
    return pd.DataFrame(found, columns=["chip", "envelope", "speed", "times", "bound"])


def fitted(found: pd.DataFrame) -> Fitted:
    """Return what chips and envelopes do to the time of runs over that of best plans."""
    times, place = np.log(found["times"].to_numpy(float)), np.log(found["speed"].to_numpy(float) / MIDDLE)
    columns = [(("common", ""), np.ones(len(found))), (("slope", ""), place)]
    for level, name, weight in (("chip", "chip", np.ones(len(found))), ("chip slope", "chip", place), ("envelope", "envelope", np.ones(len(found)))):
        columns += [((level, owner), (found[name] == owner).to_numpy() * weight) for owner in sorted(set(found[name]))]
    owners, has = [owner for owner, _ in columns], np.array([column for _, column in columns]).T
    of = np.array([LEVELS.index(level) for level, _ in owners])
    variances, scatter, weights = np.array([WIDE, WIDE, FIRST, FIRST, FIRST]), FIRST, np.where(found["bound"], NOTHING, 1.0)
    for _ in range(ROUNDS):
        weighed = has * (weights / scatter)[:, None]
        covariance = np.linalg.inv(np.diag(1 / variances[of]) + has.T @ weighed)
        effects = covariance @ (weighed.T @ times)
        squares = effects**2 + np.diag(covariance)
        left = (times - has @ effects) ** 2 + ((has @ covariance) * has).sum(axis=1)
        before, now = np.append(variances, scatter), np.bincount(of, squares) / np.bincount(of)
        variances, scatter = np.where(np.arange(len(LEVELS)) < 2, WIDE, now), float(np.sum(weights * left) / np.sum(weights > NOTHING))
        weights = np.where(found["bound"] & (times > has @ effects), NOTHING, (FREEDOM + 1) / (FREEDOM + left / scatter))
        if np.allclose(before, np.append(variances, scatter), rtol=STILL, atol=0):
            break
    return Fitted(owners, effects, covariance, dict(zip(LEVELS, variances.tolist(), strict=True)), scatter)


def deployed_rows(found: pd.DataFrame, date: str) -> Iterator[dict[str, Any]]:
    """Yield the catalogue rows of a fit: time and slope of every chip with runs, and of a chip without."""
    made = fitted(found)
    single = made.variances["envelope"] + made.scatter  # of a run of a model and lengths that nobody has run
    for chip in ("chip", *sorted(set(found["chip"]))):
        own = found[found["chip"] == chip]
        note = f"{len(own)} runs in {own['envelope'].nunique()} envelopes" if len(own) else f"no runs of this chip: {len(found)} of others"
        (level, wide), (slope, spread) = made.of((("common", ""), ("chip", chip)), single), made.of((("slope", ""), ("chip slope", chip)))
        ranged = {
            "deployed_time": [math.exp(level + side * P95 * wide) for side in (0, -1, 1)],
            "deployed_slope": [slope + side * P95 * spread for side in (0, -1, 1)],
        }
        for name, cells in ranged.items():
            value, low, high = (float(f"{cell:.4g}") for cell in cells)
            yield {
                **{"family": chip, "attribute": name, "value": value, "unit": "ratio", "low": low, "high": high},
                **{"as_of": date, "kind": "derived", "source": "tco-calibration", "note": note, "use": "", "residual": ""},
            }
