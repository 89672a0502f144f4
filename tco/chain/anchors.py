"""Measured runs of one's own: what they tell of how much longer deployments take than best plans, in the regimes of speed that they are of.

A row took y = ln(t / t_model) where its chip's deployments take g ln f, with f their time over that of the best plan and g the share of the way
to the best software that is left. Of rows at speeds with shares h of each regime and w of each class of lengths,

    y - g ln f = g (sum_k h_k (d_chip,k + c_k) + sum_l w_l d_use,l) + e,  d, c ~ N(0, W),  e ~ N(0, v),  ln f = sum_k h_k ln f_k + sum_l w_l ln f_l

(g is one where deployments are quicker than the plan) with d as wide as the catalogue's ranges, in part with those of other chips, and c of an
engine, a model and formats on a chip, which is a part of what single runs lie off. With u all of these, normal,

    K = W H'(H W H' + v)^-1,  E[u | y] = K y,  Var[u | y] = W - K H W

so that a configuration that was run oneself is moved most of the way at that speed, another one on its chip less, another speed or another chip
least. Where plans are asked for as the model has them, f is one: rows move the model by what they show beyond it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.catalog.catalogue import Catalogue
from tco.foundation.errors import DataError
from tco.foundation.provenance import P95, Input
from tco.models.architecture import load_model
from tco.performance.chip.formats import width_of
from tco.performance.software import ALONE, LENGTHS, REACH, SPEEDS, SYSTEM, deployed_paths, shares_of

if TYPE_CHECKING:
    from tco.chain.inputs import Inputs

Array = np.ndarray[Any, Any]
NARROWEST = 1e-6  # variance of what rows settle
ALIKE = 0.36  # share of the variance of a chip's deployments that other chips have too: 0.6 of each lies in their common cause
OWN = 0.5  # share of the variance of single runs that runs of one configuration have in common
MOVED = "moved by anchors"  # of a catalogue: how far the rates of each system are


class Anchor(NamedTuple):
    """A measured run: where it stands, what was run at which speed, and how much longer than predicted it took, as a logarithm."""

    where: str
    chip: str
    engine: str
    model: str
    formats: tuple[str, ...]  # of attention, experts and dense parts
    lengths: tuple[float, float]  # of a prompt and an answer
    speed: float  # tokens/s that a user gets
    beyond: float

    @property
    def configuration(self) -> tuple[Any, ...]:
        """What runs of one configuration have in common."""
        return self.chip, self.engine, self.model, self.formats


class Known(NamedTuple):
    """What the catalogue says of a run's deployment: its inputs by regime of speed and by lengths, and the standard deviation of single runs."""

    by_speed: list[Input]
    by_lengths: list[Input]
    scatter: float


def known_of(catalogue: Catalogue, chip: str, formats: tuple[str, ...], tuned: bool) -> Known:
    """Return what the catalogue says of deployments of a chip with weights in some formats; of tuned runs how far they spread around the model."""

    def practice(paths: Mapping[str, str]) -> list[Input]:
        found = [catalogue.practice(chip, path.rpartition(".")[2])._replace(path=path) for path in paths.values()]
        return [given._replace(value=1.0, low=given.low / given.value, high=given.high / given.value) for given in found] if tuned else found

    by_speed, by_lengths, _ = deployed_paths(chip, "", width_of(formats[1]))
    return Known(practice(by_speed), practice(by_lengths), width(catalogue.practice(SYSTEM, ALONE)))


def width(given: Input) -> float:
    """Return the standard deviation of the logarithm of an input."""
    return 0.0 if given.high is None else math.log(given.high / given.value) / P95


def effects_of(run: Anchor, known: Known, speeds: Array, lengths: Array) -> dict[tuple[Any, ...], float]:
    """Return what effects of unit variance do to a run with shares of the regimes of speed and of lengths."""
    found: dict[tuple[Any, ...], float] = {}
    for name, share, given in zip(SPEEDS, speeds, known.by_speed, strict=True):
        found[("all chips", name)] = share * width(given) * math.sqrt(ALIKE)
        found[(run.chip, name)] = share * width(given) * math.sqrt(1 - ALIKE)
        found[(*run.configuration, name)] = share * known.scatter * math.sqrt(OWN)
    return found | {(given.path,): share * width(given) for share, given in zip(lengths, known.by_lengths, strict=True)}


class Moved(NamedTuple):
    """What rows tell of some sums of effects: their means and their covariance."""

    means: Array
    covariance: Array


def posterior(asked: Sequence[Mapping[Any, float]], rows: Sequence[Mapping[Any, float]], beyond: Array, scatter: float) -> Moved:
    """Return what rows of effects of unit variance, each off by the scatter of single runs, tell of the sums of effects that are asked for."""
    effects = list(dict.fromkeys(effect for row in (*asked, *rows) for effect in row))
    wanted, has = (np.array([[row.get(effect, 0.0) for effect in effects] for row in some]) for some in (asked, rows))
    gain = has.T @ np.linalg.inv(has @ has.T + scatter**2 * np.eye(len(rows)))
    after = np.eye(len(effects)) - gain @ has
    return Moved(wanted @ gain @ beyond, wanted @ after @ wanted.T)


def anchored(inputs: Inputs, engine: str, model: str, formats: tuple[str, ...], tuned: bool) -> tuple[dict[str, Input], str]:
    """Return the inputs of a system's deployment as the catalogue's anchors move them, median, P5 and P95, and a note on it."""
    catalogue, system, values = inputs.catalogue, inputs.system, inputs.values()
    first, shape = catalogue.anchors[0], shape_of(catalogue, model)
    rows = [one._replace(model=model) for one in catalogue.anchors if shape_of(catalogue, one.model) == shape]
    if not rows:
        raise DataError(f"{first.where}: measured on {first.model}, and {model} is asked for: expected runs of the same model")

    def asked(path: str) -> float:
        return float(np.ravel(values.input(path).value)[0])

    left = 1 - asked(REACH)
    prompt, answer, flight, least = (asked(f"workload.{name}") for name in ("input_tokens", "output_tokens", "concurrency", "interactivity"))
    speed = float(np.mean([row.speed for row in rows])) if flight or not least else least  # what a load gives is near what rows of it gave
    run = Anchor("", system.chip, engine, model, formats, (prompt, answer), speed, 0.0)
    known, lengths = known_of(catalogue, run.chip, formats, tuned), shares_of(prompt / answer, LENGTHS)
    sums = [effects_of(run, known, each, lengths) for each in (*np.eye(len(SPEEDS)), shares_of(run.speed, SPEEDS))]
    sums += [{(given.path,): width(given)} for given in known.by_lengths]
    has, beyond = [], []
    for row in rows:
        its = known_of(catalogue, row.chip, row.formats, tuned)
        shares = shares_of(row.speed, SPEEDS), shares_of(row.lengths[0] / row.lengths[1], LENGTHS)
        deployed = sum(share @ np.log([given.value for given in some]) for share, some in zip(shares, (its.by_speed, its.by_lengths), strict=True))
        share = left if deployed > 0 else 1.0
        has.append({effect: share * each for effect, each in effects_of(row, its, *shares).items()})
        beyond.append(row.beyond - share * deployed)
    moved = posterior(sums, has, np.array(beyond), known.scatter * math.sqrt(1 - OWN))
    count = len(SPEEDS)
    by_lengths = moved.means[count + 1 :], np.diag(moved.covariance)[count + 1 :]
    of_use = lengths @ by_lengths[0], lengths**2 @ by_lengths[1]
    means = np.append(moved.means[:count] - of_use[0], by_lengths[0])
    variances = np.append(np.maximum(np.diag(moved.covariance)[:count] - of_use[1], NARROWEST), np.maximum(by_lengths[1], NARROWEST))
    file = rows[0].where.rpartition(":")[0]
    found = {
        given.path: moved_input(given, mean, variance, file)
        for given, mean, variance in zip([*known.by_speed, *known.by_lengths], means, variances, strict=True)
    }
    alone = deployed_paths(run.chip, system.id, width_of(formats[1]))[2]
    given = catalogue.practice(SYSTEM, ALONE)._replace(path=alone)
    found[alone] = moved_input(given, 0.0, known.scatter**2 * (1 - OWN), file)
    shift = left * float(moved.means[count])
    catalogue.once((MOVED, system.id), lambda: math.expm1(-shift))  # as it was asked for first
    others = len(catalogue.anchors) - len(rows)
    runs = "1 run" if len(rows) == 1 else f"{len(rows)} runs"
    note = f"anchored on {runs} of {file}: at {run.speed:.3g} tokens/s a pass as deployed takes {math.expm1(shift) * 100:+.1f} %"
    return found, note + (f"; {others} of another model are not used" if others else "")


def moved_input(given: Input, mean: float, variance: float, file: str) -> Input:
    """Return an input whose logarithm rows have moved."""
    low, value, high = (given.value * math.exp(mean + side * P95 * math.sqrt(variance)) for side in (-1, 0, 1))
    return given._replace(value=value, low=low, high=high, kind="measured", source=f"runs in {file}", note="", shown=None, where=file, overlay=True)


def shape_of(catalogue: Catalogue, model: str) -> Any:
    """Return what a model computes, whatever it is called."""
    found = load_model(catalogue, model)
    return found.hidden, found.blocks, found.vocabulary


def account_of(catalogue: Catalogue) -> dict[str, Any]:
    """Return what answers are anchored on: rows by configuration, and how far each system's rates were moved, that which was asked for first."""
    found = Counter(one.configuration for one in catalogue.anchors)
    named = ("chip", "engine", "model", "formats")
    rests = [dict(zip(named, (*one[:3], list(one[3])), strict=True)) | {"rows": count} for one, count in found.items()]
    systems = {key[1]: shift for key, shift in catalogue.cache.items() if isinstance(key, tuple) and key[0] == MOVED}
    return {"rows": len(catalogue.anchors), "moved": next(iter(systems.values()), None), "systems": systems, "rests_on": rests}
