"""Measured runs of one's own: what they tell of the time that no parameter explains, for a system that shares some of its levels with them.

Of rows y = ln(t / t_model), each the sum of the effects of its owners and of the scatter of single runs, all normal,

    y = H u + e,  u ~ N(0, W),  e ~ N(0, v),  K = W H'(H W H' + v)^-1,  E[u | y] = K y,  Var[u | y] = W - K H W

so that a configuration that was run oneself is moved most of the way, another one on its chip less, another chip with its model least. What a
run has alone stays as wide as it was.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tco.catalog.catalogue import CONFIGURATION, RUN, Catalogue
from tco.foundation.errors import DataError
from tco.foundation.provenance import P95, Input
from tco.models.architecture import load_model
from tco.performance.software import SERVING

Array = np.ndarray[Any, Any]
Owner = tuple[Any, ...]  # of an effect: its level, and who it is
NARROWEST = 1e-6  # variance of what rows settle
MOVED = "moved by anchors"  # of a catalogue: how far the rates of each system are


class Anchor(NamedTuple):
    """A measured run: where it stands, the owners of what it may share with others, and how much longer than predicted it took, as a logarithm."""

    where: str
    family: str
    chip: str
    engine: str
    model: str
    formats: tuple[str, ...]
    beyond: float

    @property
    def owners(self) -> dict[str, Owner]:
        """The owner of each of its effects, by level."""
        return owners_of(self.family, self.chip, self.engine, self.model, self.formats)


def owners_of(family: str, chip: str, engine: str, model: str, formats: tuple[str, ...]) -> dict[str, Owner]:
    """Return the owners of the effects of a run by level."""
    named = {"family": (family,), "chip": (chip,), "engine": (engine,), "model": (model,)}
    return {level: (level, *own) for level, own in {**named, CONFIGURATION: (chip, engine, model, *formats)}.items()}


class Moved(NamedTuple):
    """What rows tell of the effects of a run: mean and variance of each by level, and of their sum."""

    means: dict[str, float]
    variances: dict[str, float]

    @property
    def shift(self) -> float:
        """The time of a run over that without the rows, as a logarithm."""
        return sum(self.means.values())


def posterior(own: Mapping[str, Owner], width: Callable[[Owner], float], anchors: Sequence[Anchor]) -> Moved:
    """Return what some rows tell of the effects of a run; `width` gives the standard deviation of an owner's effect, and of the run's.

    Effects of one run are told apart by their variances alone, and go against each other. Each has the variance it has by itself, but for that
    of the configuration, so that their sum is as sure as the rows make it.
    """
    rows = [one.owners for one in anchors]
    effects = list(dict.fromkeys([*own.values(), *(owner for row in rows for owner in row.values())]))
    has = np.array([[float(effect in row.values()) for effect in effects] for row in rows])
    before = np.diag([width(effect) ** 2 for effect in effects])
    gain = before @ has.T @ np.linalg.inv(has @ before @ has.T + width((RUN, RUN)) ** 2 * np.eye(len(rows)))
    mean, after = gain @ np.array([one.beyond for one in anchors]), before - gain @ has @ before
    places = [effects.index(owner) for owner in own.values()]
    variances = dict(zip(own, np.diag(after)[places].tolist(), strict=True))
    whole = float(after[np.ix_(places, places)].sum())
    variances[CONFIGURATION] = max(whole - sum(one for level, one in variances.items() if level != CONFIGURATION), NARROWEST)
    return Moved(dict(zip(own, mean[places].tolist(), strict=True)), variances)


def widths_of(catalogue: Catalogue) -> Callable[[Owner], float]:
    """Return what gives the standard deviation of an owner's effect, as the catalogue has its range: of ln (1 + x)."""

    def width(owner: Owner) -> float:
        level, name = owner[:2]
        alone = level in (CONFIGURATION, RUN) or (level == "model" and name not in catalogue.models)
        high = catalogue.practice(level if alone else name, SERVING).high
        return 0.0 if high is None else math.log1p(high) / P95

    return width


def anchored(catalogue: Catalogue, paths: Mapping[str, str], own: Mapping[str, Owner]) -> tuple[dict[str, Input], str]:
    """Return the inputs of a system's unexplained time as the catalogue's anchors move them, median, P5 and P95, and a note on it."""
    model, first = own["model"][1], catalogue.anchors[0]
    shape = shape_of(catalogue, model)
    rows = [one._replace(model=model) for one in catalogue.anchors if shape_of(catalogue, one.model) == shape]
    if not rows:
        raise DataError(f"{first.where}: measured on {first.model}, and {model} is asked for: expected runs of the same model")
    moved, file = posterior(own, widths_of(catalogue), rows), rows[0].where.rpartition(":")[0]
    found = {}
    for level, mean in moved.means.items():
        half, path = P95 * math.sqrt(moved.variances[level]), paths[level]
        low, value, high = (math.expm1(mean + end) for end in (-half, 0.0, half))
        given = catalogue.practice(path.removeprefix("performance.").rpartition(".")[0], SERVING)
        found[path] = given._replace(
            path=path, value=value, low=low, high=high, kind="measured", source=f"runs in {file}", note="", shown=None, where=file, overlay=True
        )
    system = paths[CONFIGURATION].removeprefix(f"performance.{CONFIGURATION}-").removesuffix(f".{SERVING}")
    catalogue.once((MOVED, system), lambda: math.expm1(-moved.shift))  # as it was asked for first
    others = len(catalogue.anchors) - len(rows)
    runs = "1 run" if len(rows) == 1 else f"{len(rows)} runs"
    note = f"anchored on {runs} of {file}: what nothing else explains is {math.expm1(moved.shift) * 100:+.1f} % of a pass"
    return found, note + (f"; {others} of another model are not used" if others else "")


def shape_of(catalogue: Catalogue, model: str) -> Any:
    """Return what a model computes, whatever it is called."""
    found = load_model(catalogue, model)
    return found.hidden, found.blocks, found.vocabulary


def account_of(catalogue: Catalogue) -> dict[str, Any]:
    """Return what answers are anchored on: rows by configuration, and how far each system's rates were moved, that which was asked for first."""
    found = Counter(one._replace(where="", beyond=0.0) for one in catalogue.anchors)
    rests = [
        {"chip": one.chip, "engine": one.engine, "model": one.model, "formats": list(one.formats), "rows": count} for one, count in found.items()
    ]
    systems = {key[1]: shift for key, shift in catalogue.cache.items() if isinstance(key, tuple) and key[0] == MOVED}
    return {"rows": len(catalogue.anchors), "moved": next(iter(systems.values()), None), "systems": systems, "rests_on": rests}
