"""The best plan against published runs: a search at the speed of every run that no other run beats must not make less than that run.

Runs of one chip, model, set of formats and lengths form an envelope: at each speed a user gets, the most that any run at that speed
or a higher one makes. A configuration that was run several times counts once, by the median of its rates. The search is that of
`tco perf CHIP`: pools in balance, software that has grown up, no tokens predicted ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.chain.scenario import evaluate
from tco.foundation.values import Values
from tco.studies.validation.inference import Asked
from tco.studies.validation.measured import column, texts
from tco.studies.validation.specifications import Specifications

LEAST = 5  # distinct configurations of an envelope
KEYS = ("chip", "model", "attention", "experts", "dense", "prompt", "answer")
NEAR, FAR = 0.9, 0.75  # shares of a published run that a best plan should reach
Array = np.ndarray[Any, Any]


class Run(NamedTuple):
    """A run on an envelope: the speed a user gets, what it makes a chip, and what the best plan makes at that speed (None: no plan has it)."""

    speed: float
    measured: float
    best: float | None

    @property
    def ratio(self) -> float:
        """The best plan over the run; zero where no plan has the speed."""
        return (self.best or 0.0) / self.measured


class Envelope(NamedTuple):
    """The runs of one chip, model, set of formats and lengths that no other run beats."""

    chip: str
    model: str
    formats: str
    prompt: float
    answer: float
    configurations: int
    runs: list[Run]


def configurations(table: pd.DataFrame, catalogue: Catalogue, values: Values) -> pd.DataFrame:
    """Return the distinct configurations of a file's runs: what each serves, the speed a user gets and the output tokens a chip makes."""
    asked = Asked(table, Specifications(catalogue, values, texts(table, "accelerator")))
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
    made = made.assign(**pools, engine=points.engine, flight=points.concurrency, speed=speed, rate=asked.target * part)
    used = made[(asked.skip == "") & ~points.speculative & np.isfinite(speed) & np.isfinite(made["rate"])]
    same = [*KEYS, *pools, "engine", "flight"]
    return used.groupby(same, dropna=False, sort=True)[["speed", "rate"]].median().reset_index()


def unbeaten(speed: Array, rate: Array) -> Array:
    """Return which runs no other run beats in both."""
    order = np.lexsort((-rate, -speed))
    best = np.maximum.accumulate(rate[order])
    found = np.zeros(len(rate), dtype=bool)
    found[order] = (rate[order] >= best) & np.concatenate([[True], rate[order][1:] > best[:-1]])
    return found


def envelopes_of(table: pd.DataFrame, catalogue: Catalogue, values: Values, chips: frozenset[str] | None = None) -> Iterator[Envelope]:
    """Yield the envelopes of a file of serving runs with enough configurations, of all chips or some, each against the best plans."""
    for key, some in configurations(table, catalogue, values).groupby(list(KEYS), sort=True):
        named = dict(zip(KEYS, key, strict=True))
        if len(some) < LEAST or (chips is not None and named["chip"] not in chips):
            continue
        top = some[unbeaten(some["speed"].to_numpy(float), some["rate"].to_numpy(float))].sort_values("speed")
        runs = [Run(float(row.speed), float(row.rate), best_at(catalogue, named, float(row.speed))) for row in top.itertuples()]
        formats = "/".join(str(named[name]) for name in ("dense", "experts", "attention"))
        yield Envelope(named["chip"], named["model"], formats, float(named["prompt"]), float(named["answer"]), len(some), runs)


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


def summary(runs: list[Run]) -> dict[str, float | int | None]:
    """Return the median of the best plan over the run, the share of runs that it lies well below, and the least."""
    ratios = np.array([run.ratio for run in runs])
    if not len(ratios):
        return {"n": 0, "median": None, "below_0.9": None, "below_0.75": None, "least": None}
    below = {f"below_{limit:g}": float(np.mean(ratios < limit)) for limit in (NEAR, FAR)}
    return {"n": len(ratios), "median": float(np.median(ratios)), **below, "least": float(ratios.min())}
