"""How much longer deployments take than best plans: published runs that no other run beats, held against the search of plans by chip and speed.

A run at v tokens per second a user that makes R tokens per second a chip takes t times as long as the best plan that, were all of it t times as
slow, would give the same: R = R*(t v) / t, with R* what the best plan makes at a speed under public software of the run's month, with drafts of
the model's head where the run has them. Of the runs of one chip, model, set of formats and lengths those count that no other run beats:

    ln t = sum_k h_k(v) (a_k + u_chip,k) + b (y - 1) + u_use + e,   u_chip,k ~ N(0, v_chip), u_use ~ N(0, v_use)

with h_k the shares of 20, 50 and 100 tokens/s in v, y the years from the chip's release to the run, and a use the lengths and the width of the
weights that some runs of a chip have in common: whoever tunes software tunes it for the chips that are on sale. A vendor's chips have no more in
common than any others: the variance of such a level comes out as nought.

Weak runs are outliers and not points of a cloud: e is Student's t of three degrees of freedom, whose weights and the variances follow from one
another until they stand still (expectation and maximisation; Lange, Little and Taylor 1989). Runs of a model's first half year, and of fewer than
five configurations, say what software does at least: they count where they are quicker than the others say. A chip without runs has the variance
of chips; how far single runs lie off is a range of its own, of each system.
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
from tco.performance.chip.formats import WIDTHS, width_of
from tco.performance.software import ALONE, LENGTHS, SPEEDS, SYSTEM, shares_of
from tco.studies.validation.envelopes import KEYS, LEAST, Array, Sweep, best_at, unbeaten

NAME = "deployed"  # as a fit is asked for
COMMON, CHIP, USE = "common", "chip", "use"
LEVELS = (COMMON, CHIP, USE)
AGE = (COMMON, "a year more")
ON_SALE = 1.0  # years: the age of a chip without runs
WIDE, FIRST = 10.0, 0.02  # variance of what is common to all, which is free, and of all else before the first round
FREEDOM = 3.0  # degrees of freedom of Student's t
STILL, ROUNDS = 1e-6, 2000
NOTHING = 1e-9  # weight of a bound that holds
SLOWEST, STEPS = 16.0, 12  # a run takes no longer over its best plan, and no less than one over it; halvings of that range
SETTLED = 6  # months from the first run of a model to the last, from which on its runs are no bound any more


class Fitted(NamedTuple):
    """Effects with their covariance, the variance of each level, and how far single runs lie off."""

    owners: list[tuple[str, str]]  # level and owner of each effect
    effects: Array
    covariance: Array
    variances: dict[str, float]
    scatter: float

    def of(self, *wanted: tuple[str, str], years: float = 0.0) -> tuple[float, float]:
        """Return mean and width of a sum of effects and some years; an effect of an owner without runs adds its level's variance alone."""
        has = np.array([years if owner == AGE else float(owner in wanted) for owner in self.owners])
        unknown = [level for level, owner in wanted if (level, owner) not in self.owners]
        variance = float(has @ self.covariance @ has) + sum(self.variances[level] for level in unknown)
        return float(has @ self.effects), math.sqrt(variance)


def gaps(table: pd.DataFrame, catalogue: Catalogue, values: Values) -> pd.DataFrame:
    """Return the runs that no other run beats: chip, use, speed, times as long as the best plan, and whether that is a bound."""
    found, every = [], Sweep(table, catalogue, values)
    months = every.runs.groupby("model")["month"]
    young = set((months.max() - months.min()).loc[lambda span: ~(span >= SETTLED)].index)
    for key, runs in every.configurations(ahead=True).groupby(list(KEYS), sort=True):
        named = dict(zip(KEYS, key, strict=True))
        lengths = max(LENGTHS, key=lambda name: shares_of(named["prompt"] / named["answer"], LENGTHS)[list(LENGTHS).index(name)])
        use = f"{lengths}_{width_of(named['experts'])}"
        bound = named["model"] in young or len(runs) < LEAST
        released = float(values[f"parts.{named['chip']}.released"])
        for run in runs[unbeaten(runs["speed"].to_numpy(float), runs["rate"].to_numpy(float))].itertuples():
            low, high = -math.log(SLOWEST), math.log(SLOWEST)
            for _ in range(STEPS):
                middle = (low + high) / 2
                best = best_at(catalogue, named, run.speed * math.exp(middle), run.date, run.ahead) or 0.0
                low, high = (middle, high) if best > run.rate * math.exp(middle) else (low, middle)
            found.append((named["chip"], use, float(run.speed), run.month / 12 - released, math.exp((low + high) / 2), bound))
    made = pd.DataFrame(found, columns=["chip", "use", "speed", "age", "times", "bound"])
    return made.assign(age=made["age"].fillna(made.groupby("chip")["age"].transform("mean")).fillna(ON_SALE))  # of runs without a date


def fitted(found: pd.DataFrame) -> Fitted:
    """Return what speeds, chips and uses do to the time of runs over that of best plans."""
    times, chips, uses = np.log(found["times"].to_numpy(float)), found["chip"], found["chip"] + " " + found["use"]
    shares = np.array([shares_of(speed, SPEEDS) for speed in found["speed"]])
    columns = [((COMMON, name), share) for name, share in zip(SPEEDS, shares.T, strict=True)]
    columns.append((AGE, found["age"].to_numpy(float) - ON_SALE))
    for chip in sorted(set(chips)):
        columns += [((CHIP, f"{chip} {name}"), (chips == chip).to_numpy() * share) for name, share in zip(SPEEDS, shares.T, strict=True)]
    columns += [((USE, use), (uses == use).to_numpy(float)) for use in sorted(set(uses))]
    owners, has = [owner for owner, _ in columns], np.array([column for _, column in columns]).T
    of = np.array([LEVELS.index(level) for level, _ in owners])
    variances, scatter, weights = np.array([WIDE, FIRST, FIRST]), FIRST, np.where(found["bound"], NOTHING, 1.0)
    for _ in range(ROUNDS):
        weighed = has * (weights / scatter)[:, None]
        covariance = np.linalg.inv(np.diag(1 / variances[of]) + has.T @ weighed)
        effects = covariance @ (weighed.T @ times)
        squares = effects**2 + np.diag(covariance)
        left = (times - has @ effects) ** 2 + ((has @ covariance) * has).sum(axis=1)
        before, now = np.append(variances, scatter), np.bincount(of, squares) / np.bincount(of)
        variances, scatter = np.array([WIDE, *now[1:]]), float(np.sum(weights * left) / np.sum(weights > NOTHING))
        weights = np.where(found["bound"] & (times > has @ effects), NOTHING, (FREEDOM + 1) / (FREEDOM + left / scatter))
        if np.allclose(before, np.append(variances, scatter), rtol=STILL, atol=0):
            break
    return Fitted(owners, effects, covariance, dict(zip(LEVELS, variances.tolist(), strict=True)), scatter)


def deployed_rows(found: pd.DataFrame, date: str) -> Iterator[dict[str, Any]]:
    """Yield the catalogue rows of a fit: times of every chip with runs by speed and by use, those of a chip without, and how far a run lies off."""
    made = fitted(found)
    uses = [f"{lengths}_{width}" for lengths in LENGTHS for width in sorted(WIDTHS.values())]
    for chip in (CHIP, *sorted(set(found["chip"]))):
        own = found[found["chip"] == chip]
        bounds = int(own["bound"].sum())
        note = f"no runs of this chip: {len(found)} of others"
        if len(own):
            note = f"{len(own)} runs" + (f", of which {bounds} say what its software does at least" if bounds else "")
        years = float(own["age"].mean()) - ON_SALE if len(own) else 0.0
        for name in SPEEDS:
            yield row_of(chip, f"deployed_{name}", *made.of((COMMON, name), (CHIP, f"{chip} {name}"), years=years), note, date)
        for use in uses if chip == CHIP else sorted(set(own["use"])):
            runs = own[own["use"] == use]
            yield row_of(chip, f"deployed_{use}", *made.of((USE, f"{chip} {use}")), f"{len(runs)} runs" if len(runs) else note, date)
    yield row_of(SYSTEM, ALONE, 0.0, math.sqrt(made.scatter), f"the scatter of {int((~found['bound']).sum())} runs", date)


def row_of(owner: str, name: str, mean: float, width: float, note: str, date: str) -> dict[str, Any]:
    """Return the catalogue row of a time over another one, whose logarithm is normal."""
    value, low, high = (float(f"{math.exp(mean + side * P95 * width):.4g}") for side in (0, -1, 1))
    return {
        **{"family": owner, "attribute": name, "value": value, "unit": "ratio", "low": low, "high": high},
        **{"as_of": date, "kind": "derived", "source": "tco-calibration", "note": note, "use": "", "residual": ""},
    }
