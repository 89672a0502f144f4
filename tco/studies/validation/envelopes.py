"""The best plan against published runs: a search at the speed of every run that no other run beats must not make less than that run.

Runs of one chip, model, set of formats and lengths form an envelope: at each speed a user gets, the most that any run at that speed
or a higher one makes. A configuration that was run several times counts once, by the median of its rates. Two predictions are held
against it: the best of the same configurations (`sweeps`), and the search of `tco perf CHIP` among all plans: pools in balance,
software that has grown up, no tokens predicted ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.chain.scenario import evaluate
from tco.foundation.values import Values
from tco.studies.validation.inference import Asked
from tco.studies.validation.measured import column, texts
from tco.studies.validation.specifications import Specifications
from tco.studies.validation.sweeps import CONFIGURATION, Curve, curves_of, made_at, never_seen, speed_at

LEAST = 5  # distinct configurations of an envelope
KEYS = ("chip", "model", "attention", "experts", "dense", "prompt", "answer")
CLOSE, NEAR, FAR = 0.15, 0.9, 0.75  # of a published run: how far off a prediction is close, and shares that a best plan should reach
Array = np.ndarray[Any, Any]


class Run(NamedTuple):
    """A run on an envelope: the speed a user gets and what it makes a chip; what is predicted of the same and of the best configurations."""

    speed: float
    measured: float
    alike: float  # the same configurations make at that speed; zero where none has it
    speed_alike: float  # at which the same configurations make as much; zero where none does
    best: float | None  # the best plan of all makes at that speed; None: no plan has it

    @property
    def ratio(self) -> float:
        """The best plan over the run; zero where no plan has the speed."""
        return (self.best or 0.0) / self.measured

    @property
    def ratio_alike(self) -> float:
        """The same configurations over the run."""
        return self.alike / self.measured

    @property
    def speed_ratio(self) -> float:
        """The speed of the same configurations over that of the run."""
        return self.speed_alike / self.speed


class Envelope(NamedTuple):
    """The runs of one chip, model, set of formats and lengths that no other run beats."""

    chip: str
    model: str
    formats: str
    prompt: float
    answer: float
    configurations: int
    runs: list[Run]
    curves: list[Curve]  # of the same configurations, by a refit that never saw the chip


class Sweep:
    """The runs of a file that an envelope may hold: what each serves, the speed a user gets and the output tokens a chip makes."""

    def __init__(self, table: pd.DataFrame, catalogue: Catalogue, values: Values) -> None:
        self.chips = Specifications(catalogue, values, texts(table, "accelerator"))
        self.asked = asked = Asked(table, self.chips)
        points, speed = asked.points, column(table, "interactivity_tok_s_per_user")
        speed = np.where(np.isnan(speed), 1e3 / column(table, "tpot_ms_mean"), speed)
        part = np.select(
            [asked.names == "total_tput_tok_s_per_gpu", asked.names == "output_tput_tok_s_per_gpu"],
            [points.answer / (points.prompt + points.answer), 1.0],
            np.nan,
        )
        made = pd.DataFrame({"chip": asked.chips.parts, "model": points.models, "prompt": points.prompt, "answer": points.answer})
        made = made.assign(**{name: points.formats[:, place] for place, name in enumerate(("attention", "experts", "dense"))})
        pools = {f"{side}_{name}": pool[name] for side, pool in (("decode", points.decode), ("prefill", points.prefill)) for name in pool}
        made = made.assign(**pools, engine=points.engine, apart=points.apart, flight=points.concurrency, speed=speed, rate=asked.target * part)
        made = made.assign(row=np.arange(len(made)), month=asked.months).sort_values("month", kind="stable", na_position="first")
        self.runs = made[((asked.skip == "") & ~points.speculative & np.isfinite(speed) & np.isfinite(asked.target * part))[made["row"]]]

    def configurations(self, runs: pd.DataFrame | None = None) -> pd.DataFrame:
        """Return the distinct configurations of some runs, or of all, under their distinct loads."""
        same = [*KEYS, *CONFIGURATION, "flight"]
        every = self.runs if runs is None else runs
        return every.groupby(same, dropna=False, sort=True)[["speed", "rate"]].median().reset_index()


def unbeaten(speed: Array, rate: Array) -> Array:
    """Return which runs no other run beats in both."""
    order = np.lexsort((-rate, -speed))
    best = np.maximum.accumulate(rate[order])
    found = np.zeros(len(rate), dtype=bool)
    found[order] = (rate[order] >= best) & np.concatenate([[True], rate[order][1:] > best[:-1]])
    return found


def envelopes_of(table: pd.DataFrame, catalogue: Catalogue, values: Values, chips: frozenset[str] | None = None) -> Iterator[Envelope]:
    """Yield the envelopes of a file of serving runs with enough configurations, of all chips or some, each against both predictions."""
    sweep = Sweep(table, catalogue, values)
    for key, runs in sweep.runs.groupby(list(KEYS), sort=True):
        named, some = dict(zip(KEYS, key, strict=True)), sweep.configurations(runs)
        if len(some) < LEAST or (chips is not None and named["chip"] not in chips):
            continue
        top = some[unbeaten(some["speed"].to_numpy(float), some["rate"].to_numpy(float))].sort_values("speed")
        with never_seen(sweep.chips, named["chip"]):
            curves = curves_of(sweep.asked, {name: named[name] for name in ("chip", "model", "attention", "experts", "dense")}, runs)
        points = [(float(row.speed), float(row.rate)) for row in top.itertuples()]
        held = [Run(s, r, made_at(curves, s), speed_at(curves, r), best_at(catalogue, named, s)) for s, r in points]
        formats = "/".join(str(named[name]) for name in ("dense", "experts", "attention"))
        yield Envelope(named["chip"], named["model"], formats, float(named["prompt"]), float(named["answer"]), len(some), held, curves)


def best_at(catalogue: Catalogue, named: dict[str, Any], speed: float) -> float | None:
    """Return the output tokens a chip makes in the best plan that gives users some speed; None where no plan does."""
    settings = {
        "workload.model": named["model"],
        "workload.precision": named["dense"],
        "workload.expert_format": named["experts"],
        "workload.attention_format": named["attention"],
        "workload.input_tokens": f"{named['prompt']:.12g}",
        "workload.output_tokens": f"{named['answer']:.12g}",
        "workload.interactivity": f"{speed:.12g} token/s",
    }
    found: float | None = evaluate(named["chip"], settings, catalogue=catalogue).metrics["output_tokens_per_s_per_chip"]
    return found


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    """Return how the best plans stand to some runs, and how what is predicted of the same configurations does, in rate and in speed."""
    free = stands([run.ratio for run in runs])
    alike = {"alike": stands([run.ratio_alike for run in runs]), "alike_speed": stands([run.speed_ratio for run in runs])}
    return {"n": len(runs), **free, **alike}


def stands(ratios: Sequence[float]) -> dict[str, float | None]:
    """Return the median of predicted over measured, its median error, the shares that are close and that lie well below, and the least."""
    names = ("median", "median_error", "close", f"below_{NEAR:g}", f"below_{FAR:g}", "least")
    if not ratios:
        return dict.fromkeys(names)
    many = np.array(ratios)
    error = np.abs(many - 1)
    found = (np.median(many), np.median(error), np.mean(error <= CLOSE), np.mean(many < NEAR), np.mean(many < FAR), many.min())
    return dict(zip(names, map(float, found), strict=True))


def pairs(envelopes: Sequence[Envelope]) -> dict[str, float | int | None]:
    """Return how two chips stand to each other at one speed: pairs, the share in the right order, and the median error of their ratio.

    Both the measured and the predicted ratio are of envelopes of one model, set of formats and lengths, at the speeds of their runs that
    both of them span; between two runs an envelope is a straight line in logarithms.
    """
    truths, guesses = list[float](), list[float]()
    for one, other in combinations(envelopes, 2):
        if (one.model, one.formats, one.prompt, one.answer) != (other.model, other.formats, other.prompt, other.answer):
            continue
        low, high = (pick(end(run.speed for run in each.runs) for each in (one, other)) for pick, end in ((max, min), (min, max)))
        for speed in sorted({run.speed for each in (one, other) for run in each.runs if low <= run.speed <= high}):
            made = [made_at(each.curves, speed) for each in (one, other)]
            truths.append(measured_at(one, speed) / measured_at(other, speed))
            guesses.append(made[0] / made[1] if all(made) else np.nan)
    if not truths:
        return {"pairs": 0, "right": None, "ratio_error": None}
    truth, guess = np.array(truths), np.array(guesses)
    right = np.where(np.isnan(guess), False, (truth > 1) == (guess > 1))
    return {
        "pairs": len(truth),
        "right": float(np.mean(right)),
        "ratio_error": float(np.median(np.nan_to_num(np.abs(guess / truth - 1), nan=1.0))),
    }


def measured_at(envelope: Envelope, speed: float) -> float:
    """Return what an envelope makes at a speed between those of its runs."""
    speeds, rates = np.log([[run.speed for run in envelope.runs], [run.measured for run in envelope.runs]])
    return float(np.exp(np.interp(np.log(speed), speeds, rates)))
