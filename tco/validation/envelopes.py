"""The best plan against published runs: a search must not be slower than any undominated run.

Runs of one chip, model, set of formats and lengths form an envelope: at each speed a user gets, the
most that any run at that speed or a higher one makes. A configuration (an engine, its pools and how
their chips divide) that was run several times under a load counts once, by its newest run. Two
predictions are held against it: the envelope of the same runs, each predicted as it was configured
and loaded with the parameters of the refit that never saw the chip, so that like is held against
like; and the search of `tco perf CHIP` among all plans: pools in the best proportion, public
software of the run's month unless another is asked for (`--set workload.software=best`), no tokens
predicted ahead, measured over a run as a benchmark does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.accuracy import accuracy_rows
from tco.core.inputs import Values
from tco.core.types import AnyArray, JsonObject, TextMapping
from tco.scenario.evaluate import evaluate
from tco.validation.inference import MILLI, ServingRows, predict_group
from tco.validation.measured_rows import MeasuredRows

NOBODY_WAITS = 0.001  # tokens/s per user, of a run whose requests are all there at once
POOLS = ("size", "workers", "groups", "experts")
CONFIGURATION = (
    "engine",
    "apart",
    *(f"{side}_{pool_field}" for side in ("decode", "prefill") for pool_field in POOLS),
)


class ParetoEnvelope(NamedTuple):
    """Undominated runs by rising speed per user and falling rate per chip, with log-log lines."""

    speed: AnyArray
    rate: AnyArray

    @classmethod
    def of(cls, speed: AnyArray, rate: AnyArray) -> Self:
        """Return the envelope of some runs."""
        best = pareto_front(speed, rate)
        order = np.argsort(speed[best])
        return cls(speed[best][order], rate[best][order])

    def rate_at(self, speed: float) -> float:
        """Return the highest rate per chip at a speed or above; zero beyond the fastest run."""
        if not len(self.speed) or speed > self.speed[-1]:
            return 0.0
        return float(np.exp(np.interp(np.log(speed), np.log(self.speed), np.log(self.rate))))

    def speed_at(self, rate: float) -> float:
        """Return the highest speed at a rate per chip or above; zero beyond the highest rate."""
        if not len(self.speed) or rate > self.rate[0]:
            return 0.0
        return float(np.exp(np.interp(-np.log(rate), -np.log(self.rate), np.log(self.speed))))


def pareto_front(speed: AnyArray, rate: AnyArray) -> AnyArray:
    """Return which runs no other run beats in both."""
    order = np.lexsort((-rate, -speed))
    best = np.maximum.accumulate(rate[order])
    is_unbeaten = np.zeros(len(rate), dtype=bool)
    is_unbeaten[order] = (rate[order] >= best) & np.concatenate(
        [np.ones(1, bool), rate[order][1:] > best[:-1]]
    )[: len(rate)]
    return is_unbeaten


def left_out(catalogue: Catalogue, chip: str) -> dict[str, float]:
    """Return the parameters of the refit without a chip's serving runs, empty with too few runs."""
    refit_rows = accuracy_rows(catalogue, "left_out")
    return {
        refit_row["path"]: float(refit_row["value"])
        for refit_row in refit_rows
        if (refit_row["kind"], refit_row["left_out"], refit_row["member"])
        == ("inference", "accelerator", chip)
    }


@contextmanager
def never_seen(measurements: MeasuredRows, chip: str) -> Iterator[None]:
    """Let the values be those of the refit that never saw a chip, but for what the user sets."""
    input_values = measurements.values
    refit = {
        path: refit_value
        for path, refit_value in left_out(measurements.catalogue, chip).items()
        if path not in input_values.given
    }
    before = {path: input_values[path] for path in refit}
    measurements.say(refit)
    try:
        yield
    finally:
        measurements.say(before)


def _predicted_envelope(
    serving_rows: ServingRows, kind: JsonObject, runs: pd.DataFrame
) -> ParetoEnvelope:
    """Return the predicted envelope of runs of one chip, model, formats and lengths."""
    speeds, rates = list[AnyArray](), list[AnyArray]()
    for (engine, is_disaggregated, searched, offline), group_runs in runs.groupby(
        ["engine", "apart", "searched", "offline"], sort=True
    ):
        asks = kind | {
            "engine": engine,
            "apart": is_disaggregated,
            "searched": searched,
            "ahead": False,
            "offline": offline,
            "equal": False,
        }
        group_predictions, fits = predict_group(serving_rows, asks, group_runs["row"].to_numpy())
        rate, time = (
            np.broadcast_to(group_predictions[metric_name], fits.shape)[fits]
            for metric_name in ("output_tput_tok_s_per_gpu", "tpot_ms_mean")
        )
        speeds.append(np.where(offline, NOBODY_WAITS, MILLI / time))
        rates.append(rate)
    return ParetoEnvelope.of(np.concatenate(speeds), np.concatenate(rates))


LEAST = 5  # distinct configurations of an envelope
TRIALS, ERRORS = 20, (0.05, 0.1, 0.15)  # of runs that are off at random, in logarithms
KEYS = ("chip", "model", "attention", "experts", "dense", "prompt", "answer")
# of a published run: how far off a prediction is close, and shares that a best plan should reach
CLOSE, NEAR, FAR = (
    0.15,
    0.9,
    0.75,
)


class EnvelopeRun(NamedTuple):
    """A run on an envelope, with the predictions for the same runs and for the best plan."""

    speed: float
    measured: float
    alike: float  # the same runs are predicted to make at that speed; zero where none has it
    speed_alike: float  # at which the same runs are predicted to make as much; zero where none does
    best: float | None  # the best plan of all makes at that speed; None: no plan has it

    @property
    def ratio(self) -> float:
        """The best plan over the run; zero where no plan has the speed."""
        return (self.best or 0.0) / self.measured

    @property
    def ratio_alike(self) -> float:
        """Predicted rate of identical configurations over the measured rate.

        The ratio is zero where the prediction does not reach the speed.
        """
        return self.alike / self.measured

    @property
    def speed_ratio(self) -> float:
        """The speed of the same runs as predicted over that of the run."""
        return self.speed_alike / self.speed


class Envelope(NamedTuple):
    """The runs of one chip, model, set of formats and lengths that no other run beats."""

    chip: str
    model: str
    formats: str
    prompt: float
    answer: float
    speed: AnyArray  # of each configuration
    rate: AnyArray
    runs: list[EnvelopeRun]
    alike: ParetoEnvelope  # of the same runs, by a refit that never saw the chip

    @property
    def measured(self) -> ParetoEnvelope:
        """The runs that no other run beats."""
        return ParetoEnvelope(*np.array([(run.speed, run.measured) for run in self.runs]).T)


class EnvelopeCandidates:
    """Runs that may be on an envelope: what each serves, its speed per user and rate per chip."""

    def __init__(self, table: pd.DataFrame, catalogue: Catalogue, input_values: Values) -> None:
        self.measurements = measurements = MeasuredRows(table, catalogue, input_values)
        self.asked = serving_rows = points = ServingRows(measurements)
        speed = measurements["interactivity_tok_s_per_user"]
        speed = np.where(np.isnan(speed), 1e3 / measurements["tpot_ms_mean"], speed)
        speed = np.where(serving_rows.offline & serving_rows.at_once, NOBODY_WAITS, speed)
        part = np.select(
            [
                serving_rows.names == "total_tput_tok_s_per_gpu",
                serving_rows.names == "output_tput_tok_s_per_gpu",
            ],
            [points.answer / (points.prompt + points.answer), 1.0],
            np.nan,
        )
        prompt, answer = points.nominal.T
        candidate_runs = pd.DataFrame(
            {
                "chip": measurements.parts,
                "model": points.models,
                "prompt": prompt,
                "answer": answer,
            }
        )
        candidate_runs = candidate_runs.assign(
            **{
                format_role: points.formats[:, format_index]
                for format_index, format_role in enumerate(("attention", "experts", "dense"))
            }
        )
        pools = {
            f"{side}_{pool_field}": pool[pool_field]
            for side, pool in (("decode", points.decode), ("prefill", points.prefill))
            for pool_field in pool
        }
        candidate_runs = candidate_runs.assign(
            **pools,
            engine=points.engine,
            apart=points.apart,
            flight=points.concurrency,
            speed=speed,
            rate=serving_rows.target * part,
        )
        candidate_runs = candidate_runs.assign(
            ahead=points.speculative,
            date=points.date,
            searched=points.searched,
            offline=points.offline,
        )
        candidate_runs = candidate_runs.assign(
            row=np.arange(len(candidate_runs)), month=serving_rows.months
        ).sort_values("month", kind="stable", na_position="first")
        self.runs = candidate_runs[
            (
                (serving_rows.skip == "")
                & np.isfinite(speed)
                & np.isfinite(serving_rows.target * part)
            )[candidate_runs["row"]]
        ]

    def kind(self, envelope_key: Sequence[str | float]) -> JsonObject:
        """Return the keys of an envelope with the cache format of its runs."""
        shared = dict(zip(KEYS, envelope_key, strict=True))
        return shared | {"cache": self.asked.cache_format(shared)}

    def configurations(self, ahead: bool) -> pd.DataFrame:
        """Return the newest run per configuration and load; speculative ones only if `ahead`."""
        runs = self.runs if ahead else self.runs[~self.runs["ahead"]]
        return runs.drop_duplicates([*KEYS, *CONFIGURATION, "flight", "ahead"], keep="last")


def envelopes_of(
    table: pd.DataFrame,
    catalogue: Catalogue,
    input_values: Values,
    settings: TextMapping | None = None,
) -> Iterator[Envelope]:
    """Yield the envelopes of a file with enough configurations, each against both predictions."""
    sweep = EnvelopeCandidates(table, catalogue, input_values)
    user_settings = {path: setting.text for path, setting in input_values.given.items()} | dict(
        settings or {}
    )
    for envelope_key, runs in sweep.configurations(ahead=False).groupby(list(KEYS), sort=True):
        named = sweep.kind(envelope_key)
        if len(runs) < LEAST:
            continue
        speed_and_rate = runs["speed"].to_numpy(float), runs["rate"].to_numpy(float)
        with never_seen(sweep.measurements, named["chip"]):
            alike = _predicted_envelope(
                sweep.asked,
                {
                    key_field: named[key_field]
                    for key_field in ("chip", "model", "attention", "experts", "dense")
                },
                runs,
            )
        envelope = runs[pareto_front(*speed_and_rate)].sort_values("speed", kind="stable")
        envelope_runs = [
            _against_best(catalogue, named, run, alike, user_settings)
            for run in envelope.itertuples()
        ]
        formats = "/".join(
            str(named[format_role]) for format_role in ("dense", "experts", "attention")
        )
        yield Envelope(
            named["chip"],
            named["model"],
            formats,
            float(named["prompt"]),
            float(named["answer"]),
            *speed_and_rate,
            envelope_runs,
            alike,
        )


def _against_best(
    catalogue: Catalogue,
    named: JsonObject,
    run: Any,
    alike: ParetoEnvelope,
    user_settings: TextMapping,
) -> EnvelopeRun:
    """Return an envelope's run with the best plan at its speed, under software of its month.

    A setting of the user may name other software.
    """
    speed, rate = float(run.speed), float(run.rate)
    best = best_at(catalogue, named, speed, run.date, user_settings=user_settings)
    return EnvelopeRun(speed, rate, alike.rate_at(speed), alike.speed_at(rate), best)


def best_at(
    catalogue: Catalogue,
    named: JsonObject,
    speed: float,
    software: str,
    ahead: bool = False,
    user_settings: TextMapping | None = None,
) -> float | None:
    """Return the output tokens per chip of the best plan at a speed; None where no plan reaches it.

    `user_settings` are the user's own settings, which win over those of the runs.
    """
    settings = {
        "workload.model": named["model"],
        "workload.precision": named["dense"],
        "workload.expert_format": named["experts"],
        "workload.attention_format": named["attention"],
        "workload.cache_format": named["cache"],
        "workload.input_tokens": f"{named['prompt']:.12g}",
        "workload.output_tokens": f"{named['answer']:.12g}",
        "workload.interactivity": f"{speed:.12g} token/s",
        "workload.software": software,
        "workload.as_deployed": "0",
        "workload.operated_by": "benchmark",
    } | ({} if ahead else {"workload.draft_tokens": "0"})
    settings |= user_settings or {}
    scenario_result = evaluate(named["chip"], settings, catalogue=catalogue, refuse=False)
    rate = scenario_result.metrics["output_tokens_per_s_per_chip"]
    if rate is None:
        return None
    # a closed loop begins and ends
    over_a_run = scenario_result.plan is not None and scenario_result.plan.engines is not None
    return (
        float(rate)
        if over_a_run
        else float(rate * catalogue.practice("serving", "steady_share").value)
    )


def envelope_statistics(runs: Sequence[EnvelopeRun]) -> JsonObject:
    """Return prediction statistics for `runs`: best plans and identical configurations.

    The best plans are compared in rate. Identical configurations are compared in rate (`alike`) and
    in speed (`alike_speed`).
    """
    free = _stands([run.ratio for run in runs])
    alike = {
        "alike": _stands([run.ratio_alike for run in runs]),
        "alike_speed": _stands([run.speed_ratio for run in runs]),
    }
    return {"n": len(runs), **free, **alike}


def _stands(ratios: Sequence[float]) -> dict[str, float | None]:
    """Return the median ratio of predicted to measured, its error, and shares close and below.

    The least ratio is the last entry.
    """
    statistic_names = (
        "median",
        "median_error",
        "close",
        f"below_{NEAR:g}",
        f"below_{FAR:g}",
        "least",
    )
    if not ratios:
        return dict.fromkeys(statistic_names)
    ratio_array = np.array(ratios)
    error = np.abs(ratio_array - 1)
    ratio_statistics = (
        np.median(ratio_array),
        np.median(error),
        np.mean(error <= CLOSE),
        np.mean(ratio_array < NEAR),
        np.mean(ratio_array < FAR),
        ratio_array.min(),
    )
    return dict(zip(statistic_names, map(float, ratio_statistics), strict=True))


def envelope_order_accuracy(
    envelopes: Sequence[Envelope], predicted: Sequence[ParetoEnvelope]
) -> JsonObject:
    """Return order accuracy and ratio error of chip pairs at equal speed.

    The result holds the number of pairs, the share in the right order and the median error of the
    ratio of two chips. The share and the error are None without pairs.

    The measured and the predicted ratio compare envelopes of one model, set of formats and lengths.
    The speeds are those of the runs, within the range that both measured envelopes span. A chip
    that is predicted not to reach the speed comes second, and the ratio then counts as all wrong.
    """
    truths, guesses, order = list[float](), list[float](), list[bool]()
    for (first_envelope, first_predicted), (second_envelope, second_predicted) in combinations(
        zip(envelopes, predicted, strict=True), 2
    ):
        if _served_work(first_envelope) != _served_work(second_envelope):
            continue
        low, high = (
            pick(
                end(run.speed for run in envelope.runs)
                for envelope in (first_envelope, second_envelope)
            )
            for pick, end in ((max, min), (min, max))
        )
        for speed in sorted(
            {
                run.speed
                for envelope in (first_envelope, second_envelope)
                for run in envelope.runs
                if low <= run.speed <= high
            }
        ):
            measured, predicted_rates = (
                [curve.rate_at(speed) for curve in both]
                for both in (
                    (first_envelope.measured, second_envelope.measured),
                    (first_predicted, second_predicted),
                )
            )
            truths.append(measured[0] / measured[1])
            guesses.append(predicted_rates[0] / predicted_rates[1] if all(predicted_rates) else 0.0)
            order.append(
                predicted_rates[0] != predicted_rates[1]
                and (measured[0] > measured[1]) == (predicted_rates[0] > predicted_rates[1])
            )
    if not truths:
        return {"pairs": 0, "right": None, "ratio_error": None}
    error = np.abs(np.array(guesses) / np.array(truths) - 1)
    return {
        "pairs": len(truths),
        "right": float(np.mean(order)),
        "ratio_error": float(np.median(error)),
    }


def _served_work(envelope: Envelope) -> tuple[Any, ...]:
    return envelope.model, envelope.formats, envelope.prompt, envelope.answer


def off_at_random(envelopes: Sequence[Envelope], error: float) -> JsonObject:
    """Return the mean order accuracy of chip pairs under random errors.

    Rate and speed of a run share a log-normal error factor of standard deviation `error`. The
    values are None without pairs.
    """
    random = np.random.default_rng(0)
    trial_scores = []
    for _ in range(TRIALS):
        factors = (np.exp(random.normal(0, error, len(envelope.speed))) for envelope in envelopes)
        trial_scores.append(
            envelope_order_accuracy(
                envelopes,
                [
                    ParetoEnvelope.of(envelope.speed * run_factors, envelope.rate * run_factors)
                    for envelope, run_factors in zip(envelopes, factors, strict=True)
                ],
            )
        )
    if not trial_scores[0]["pairs"]:
        return {"error": error, "right": None, "ratio_error": None}
    return {"error": error} | {
        score_name: float(np.mean([trial_score[score_name] for trial_score in trial_scores]))
        for score_name in ("right", "ratio_error")
    }


def against_runs(
    table: pd.DataFrame,
    catalogue: Catalogue,
    input_values: Values,
    settings: TextMapping | None,
) -> tuple[list[tuple[Envelope, JsonObject]], JsonObject]:
    """Return the envelopes of a file of serving runs with summaries.

    Args:
        table: Rows of the file of serving runs.
        catalogue: Holds the documents, parts and rows.
        input_values: Inputs by path, with the user's settings.
        settings: Further settings by path, which win over the settings in `input_values`.

    Returns:
        Each envelope with the statistics of its runs, and the statistics of all runs. The latter
        also hold the accuracy of the order of chip pairs, under `ratio_of_two`.

    """
    envelopes = list(envelopes_of(table, catalogue, input_values, settings))
    two = envelope_order_accuracy(envelopes, [envelope.alike for envelope in envelopes]) | {
        "off_at_random": [off_at_random(envelopes, error) for error in ERRORS]
    }
    return [
        (envelope, envelope_statistics(envelope.runs)) for envelope in envelopes
    ], envelope_statistics([run for envelope in envelopes for run in envelope.runs]) | {
        "ratio_of_two": two
    }
