"""Uncertainty of a scenario's metrics: Monte Carlo over all inputs with ranges.

All inputs with a range are drawn together, and each draw chooses its plan again. Scenarios share
the draws of their common inputs, so that common effects cancel in their ratio.

A draw in which no plan meets the target has no value of any metric of the work. It ranks behind
all draws with a value, so a percentile among such draws has no value either. The performance per
TCO of such a draw is zero, and it is infinite where only the baseline misses the target. A draw in
which both scenarios miss the target is a tie, which is counted separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.compile.execute import fork_map, release_memory
from tco.core.errors import DataError
from tco.core.formula import finite
from tco.core.notebook_display import Shown
from tco.core.numeric_environment import arithmetic
from tco.core.progress import named_step
from tco.core.types import AnyArray
from tco.evaluation.evaluation import evaluate_each
from tco.evaluation.scenario_function import Evaluation, ScenarioFunction
from tco.evaluation.side_by_side import compare_results
from tco.sampling.scenario_quantity import finite_or_none, ratios
from tco.scenario.baseline_ratio import costs_of_work
from tco.scenario.beliefs import Dice, Range, beliefs_of
from tco.scenario.evaluate_samples import DRAWS_PER_CALL, Draws
from tco.scenario.metrics import METRICS, MORE_IS_BETTER, PERFORMANCE, RATIOS, priced_by
from tco.scenario.result import why_incomparable

if TYPE_CHECKING:
    from tco.evaluation.workers import Figures, Piece, Progress

PERCENTILES = {"p5": 5.0, "p10": 10.0, "p50": 50.0, "p90": 90.0, "p95": 95.0}
COST = "usd_per_million_output_tokens"
SAMPLES = 10_000  # draws unless the user asks for another number
MOST_SAMPLES = 10_000_000
FINGERPRINT_DRAWS = 4  # draws that show whether two machines compute alike
BLOCK = DRAWS_PER_CALL  # draws of a block, whichever worker evaluates it


class Sample(NamedTuple):
    """Draws of a scenario, compared with a baseline; arrays of shape (draws,)."""

    # metrics that the scenario has, by name: nan where a draw misses the target, and for a ratio
    # where both scenarios miss it
    metrics: dict[str, AnyArray]
    meets: AnyArray  # whether the scenario meets the target
    # whether both scenarios meet the target; None without a comparable baseline
    both: AnyArray | None = None
    ties: AnyArray | None = None  # whether both miss it; None without a comparable baseline

    @property
    def better(self) -> AnyArray | None:
        """Whether each draw costs less per token than the baseline; false for a tie.

        None without a comparable baseline.
        """
        return None if self.ties is None else self.metrics["perf_per_tco_vs_baseline"] > 1


@dataclass(repr=False)
class Uncertainty(Shown):
    """Uncertainty of a scenario's metrics: sampled inputs, draws and their results."""

    evaluation: Evaluation
    baseline: Evaluation | None
    seed: int
    drawn: dict[str, Range]  # drawn inputs of both scenarios, by path
    sample: Sample
    made_with: frozenset[str]  # numeric environments of the machines that computed the draws
    hold: bool  # whether all draws have the structure of the base case
    # inputs with a range that are not drawn, since they decided the held structure
    undrawn_inputs: list[str]
    metric_names: Sequence[str] = tuple(METRICS)  # metrics that the answer shows

    @property
    def line(self) -> str:
        """The scenario, the number of draws, and the chance to beat the baseline."""
        better = self.sample.better
        chance = ""
        if better is not None and self.baseline is not None:
            chance = f", {better.mean():.0%} beat {self.baseline.name}"
        return (
            f"{self.evaluation.name}: {len(self.sample.meets):,} draws of {len(self.drawn)} "
            f"inputs{chance}"
        )

    def table(self) -> Any:
        """Return the percentiles of each metric."""
        import pandas as pd

        return (
            pd.DataFrame(self.sample.metrics)
            .quantile([0.05, 0.1, 0.5, 0.9, 0.95])
            .T.rename(columns=lambda share: f"p{share * 100:g}")
        )

    def to_frame(self) -> Any:
        """Return every draw of every metric as a pandas data frame, with its context."""
        import pandas as pd

        return pd.DataFrame(self.sample.metrics | {"meets_the_target": self.sample.meets}).assign(
            **self.evaluation.result.context
        )


def _refuse_sampling(samples: int, seed: int) -> None:
    if samples < 2:
        raise DataError(f"{samples} draws tell nothing of a range, expected 2 or more")
    if samples > MOST_SAMPLES:
        raise DataError(
            f"{samples:,} draws are more than the {MOST_SAMPLES:,} that are kept at once; "
            "a study with [draw] writes them to files: tco sweep"
        )
    if not 0 <= seed < 2**64:
        raise DataError(f"seed {seed} is none, expected a whole number from 0 to 2^64 - 1")


def _evaluate_beside(
    scenario: str | Path, baseline: str | Path | None, data: Path | None, settings: dict[str, str]
) -> list[Evaluation]:
    """Evaluate a scenario and a baseline, and add the ratios to their results."""
    scenario_names = [scenario] if baseline in (None, scenario) else [scenario, str(baseline)]
    evaluations = evaluate_each(scenario_names, data, settings)
    if baseline is None:
        return evaluations
    scenario_results = [evaluation.result for evaluation in evaluations]
    compared = compare_results(scenario_results, scenario_results[-1].scenario).results
    return [
        evaluation._replace(result=scenario_result)
        for evaluation, scenario_result in zip(evaluations, compared, strict=True)
    ]


def _drawable_function(evaluation: Evaluation, hold: bool) -> ScenarioFunction:
    reason = evaluation.why_undrawable(hold)
    if reason is not None:
        raise DataError(f"{evaluation.name}: {reason}")
    return evaluation.drawn_function(hold)


@finite
def uncertainty(
    scenario: str | Path,
    baseline: str | Path | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    hold: bool = False,
    set: Mapping[str, str] | None = None,  # noqa: A002
    data: Path | None = None,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    tell: Callable[[Progress], None] | None = None,
) -> Uncertainty:
    """Draw all inputs with ranges, and return the metrics of each draw.

    A draw depends on the seed, its number and its block alone. Draws from any number of workers are
    the same to the byte where numpy and its CPU instructions are the same, else to 1e-9.

    Args:
        scenario: Name or file of the scenario.
        baseline: Name or file of the baseline; None for no baseline.
        samples: Number of draws, from 2 to 10 million.
        seed: Seed of the draws, from 0 to 2^64 - 1.
        hold: Whether all draws keep the structure of the base case, such as its plan. If False each
            draw chooses its best plan.
        set: Inputs by path, as `--set` takes them, for the scenario and the baseline.
        data: Folder of further user data; None without a further folder.
        workers: Number of worker processes on this machine; None without worker processes.
        cluster: Address of a Dask cluster, such as `tcp://host:8786`; None without a cluster.
        tell: Function that takes the progress after each block of draws.

    Raises:
        DataError: `samples` or `seed` is out of range, or a scenario has nothing to draw.

    >>> metric = "tco_usd_per_chip_hour"
    >>> sample = uncertainty("gb200-nvl72", samples=200).sample
    >>> hour = draw_statistics(metric, sample.metrics[metric])
    >>> hour["p10"] < hour["p50"] < hour["p90"]
    True
    """
    _refuse_sampling(samples, seed)
    evaluations = _evaluate_beside(scenario, baseline, data, dict(set or {}))
    functions = [_drawable_function(evaluation, hold) for evaluation in evaluations]
    reference = None if baseline is None else evaluations[-1]
    experiment = Experiment(functions[0], None, seed, samples)
    if reference and not why_incomparable(evaluations[0].result, reference.result):
        experiment = experiment._replace(baseline=functions[-1])
    sample, kinds = _sample_in_blocks(experiment, workers, cluster, tell)
    ranges = {path: belief for side in functions for path, belief in side.ranges.items()}
    ranged = {path for evaluation in evaluations for path in beliefs_of(evaluation.result)}
    return Uncertainty(
        evaluation=evaluations[0],
        baseline=reference,
        seed=seed,
        drawn=dict(sorted(ranges.items())),
        sample=sample,
        made_with=kinds,
        hold=hold,
        undrawn_inputs=sorted(ranged - ranges.keys()),
    )


# ---------------------------------------------------------------- blocks of draws
class Experiment(NamedTuple):
    """All that decides the draws of a study, which are evaluated in blocks."""

    function: ScenarioFunction
    baseline: ScenarioFunction | None
    seed: int
    samples: int

    def figures(self) -> Figures:
        """Return the metrics of the first few draws."""
        first_sample = self._replace(samples=FINGERPRINT_DRAWS).block(0)
        return tuple(
            float(draw_value)
            for metric_draws in first_sample.metrics.values()
            for draw_value in np.broadcast_to(metric_draws, FINGERPRINT_DRAWS)
        )

    def block(self, number: int) -> Sample:
        """Return the block `number` of the scenario and its baseline, with common draws."""
        start = number * BLOCK
        dice = Dice(self.function.catalogue, self.seed, start, min(start + BLOCK, self.samples))
        sides = [self.function]
        if self.baseline is not None and self.baseline is not self.function:
            sides.append(self.baseline)
        with named_step("drawing inputs"):
            draws = dict(fork_map(lambda side: side.sample(dice), sides))
        sample = sample_of(draws[0], None if self.baseline is None else draws[len(sides) - 1])
        if self.samples > BLOCK:
            del draws, dice  # frees their memory for the next block
            release_memory()
        return sample


def _sample_in_blocks(
    experiment: Experiment,
    workers: int | None,
    cluster: str | None,
    tell: Callable[[Progress], None] | None,
) -> tuple[Sample, frozenset[str]]:
    """Return the draws of a study, and the numeric environments that computed them."""
    from tco.evaluation.workers import Piece, Progress, environment_of, folders_of, run_pieces

    count = -(-experiment.samples // BLOCK)
    catalogues = [
        side.catalogue for side in (experiment.function, experiment.baseline) if side is not None
    ]
    folders = tuple(map(folders_of, catalogues))
    joint_sample, kinds = JointSample(experiment.samples), set[str]()
    progress = Progress(experiment.samples, 0, 0, count, 0)
    pieces: Iterator[Piece]
    if workers is None and cluster is None:
        blocks = fork_map(experiment.block, range(count))
        pieces = (Piece(number, sample, arithmetic()) for number, sample in blocks)
    else:
        pieces = run_pieces(
            workers,
            cluster,
            lambda: environment_of(folders),
            experiment.figures,
            experiment.block,
            range(count),
        )
    for number, sample, made_with in pieces:
        joint_sample.add(number * BLOCK, sample)
        kinds.add(made_with)
        progress = progress._replace(
            cases_made=progress.cases_made + len(sample.meets), finished=progress.finished + 1
        )
        if tell is not None:
            tell(progress)
    return joint_sample.sample(), frozenset(kinds)


def sample_of(scenario_draws: Draws, baseline: Draws | None) -> Sample:
    """Return the draws of a scenario, compared with a baseline's draws.

    Args:
        scenario_draws: Draws of the scenario.
        baseline: The same draws of the baseline; None without a baseline.

    Returns:
        Metrics by name, arrays of shape (draws). A metric of performance is nan in draws that miss
        the target. The ratios to the baseline are left out where either scenario has no token cost.

    """
    sample_metrics = {
        metric_name: np.where(scenario_draws.meets, metric_draws, np.nan)
        if metric_name in PERFORMANCE
        else metric_draws
        for metric_name in METRICS
        if (metric_draws := scenario_draws.metrics[metric_name]) is not None
        and metric_name not in RATIOS
    }
    if (
        baseline is None
        or priced_by(scenario_draws.metrics) is None
        or priced_by(baseline.metrics) is None
    ):
        return Sample(sample_metrics, scenario_draws.meets)
    own_costs, theirs = (
        [np.where(side_draws.meets, cost, np.nan) for cost in costs_of_work(side_draws.metrics)]
        for side_draws in (scenario_draws, baseline)
    )
    for ratio_name, reference, cost in zip(
        ("perf_per_tco_vs_baseline", "perf_per_tco_gross_vs_baseline"),
        theirs,
        own_costs,
        strict=True,
    ):
        sample_metrics[ratio_name] = ratios(reference, cost)
    ties = np.isnan(sample_metrics["perf_per_tco_vs_baseline"])
    return Sample(sample_metrics, scenario_draws.meets, scenario_draws.meets & baseline.meets, ties)


class JointSample:
    """The draws of a study, collected from blocks in any order.

    Args:
        count: Number of draws.

    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.columns: dict[str, AnyArray] = {}  # metrics and conditions by name, shape (draws,)

    def add(self, start: int, block: Sample) -> None:
        """Add a block of draws, of which `start` is the first.

        A metric that the block lacks is nan in its draws, and a condition is false.
        """
        conditions = {"meets": block.meets, "both": block.both}
        block_columns = block.metrics | {
            name: draw_flags for name, draw_flags in conditions.items() if draw_flags is not None
        }
        is_first = not self.columns
        for name, values in block_columns.items():
            if name not in self.columns:
                # The system provides no memory until something is written to an empty array.
                column = np.empty(self.count, dtype=values.dtype)
                self.columns[name] = column if is_first else np.full_like(column, _blank(column))
        draws = slice(start, start + len(block.meets))
        for name, column in self.columns.items():
            column[draws] = block_columns.get(name, _blank(column))

    def sample(self) -> Sample:
        """Return the draws of all blocks."""
        metrics = dict(self.columns)
        meets, both = metrics.pop("meets"), metrics.pop("both", None)
        ratio = metrics.get("perf_per_tco_vs_baseline")
        return Sample(metrics, meets, both, None if ratio is None else np.isnan(ratio))


def _blank(column: AnyArray) -> float:
    return False if column.dtype == bool else np.nan


# ---------------------------------------------------------------- figures of draws
def rankable_draws(metric: str, metric_draws: AnyArray) -> AnyArray:
    """Return a metric's draws for ranking: ratios without ties, missing others as worst."""
    if metric in RATIOS:
        return metric_draws[~np.isnan(metric_draws)]
    has_value = np.isfinite(metric_draws)
    if has_value.all():
        return metric_draws
    worst = -np.inf if metric in MORE_IS_BETTER else np.inf
    return np.where(has_value, metric_draws, worst)


def draw_statistics(metric: str, metric_draws: AnyArray) -> dict[str, float | None] | None:
    """Return percentiles, mean and standard deviation of a metric's draws.

    Args:
        metric: Name of the metric.
        metric_draws: Draws of the metric, shape (draws); nan or inf where a draw has no value.

    Returns:
        Figures by name in the unit of the metric: `p5`, `p10`, `p50`, `p90`, `p95`, `mean` and
        `sd`. A figure that is not finite is None. The whole result is None where fewer than two
        draws are finite.

    """
    ranked_draws = rankable_draws(metric, metric_draws)
    if np.count_nonzero(np.isfinite(ranked_draws)) < 2:
        return None
    percentile_values = quantiles(ranked_draws, np.array(list(PERCENTILES.values())) / 100)
    statistics: dict[str, float | None] = {
        name: finite_or_none(percentile)
        for name, percentile in zip(PERCENTILES, percentile_values.tolist(), strict=True)
    }
    is_all_finite = bool(np.isfinite(ranked_draws).all())
    statistics["mean"] = finite_or_none(ranked_draws.mean()) if is_all_finite else None
    statistics["sd"] = finite_or_none(ranked_draws.std(ddof=1)) if is_all_finite else None
    return statistics


def why_endless(metric: str, metric_draws: AnyArray) -> str:
    """Return the reason why a percentile or mean has no value.

    Args:
        metric: Name of the metric.
        metric_draws: Draws of the metric, shape (draws); nan or inf where a draw has no value.

    """
    ranked_draws = rankable_draws(metric, metric_draws)
    missed = f"{float((~np.isfinite(ranked_draws)).mean()) * 100:.2g} %"
    if metric in RATIOS:
        return (
            f"only the baseline misses the target in {missed} of the draws, where the ratio "
            "has "
            "no end"
        )
    return f"in {missed} of the draws it has no value, and they lie beyond its worse end" + (
        ": no plan meets the target" if metric in PERFORMANCE else ""
    )


def quantiles(draws: AnyArray, probabilities: AnyArray) -> AnyArray:
    """Return quantiles of draws, interpolated linearly between neighbouring ranks.

    A quantile between a finite and an infinite draw is infinite. `numpy.quantile` is not used,
    since numpy imports a further library for its quantiles.

    Args:
        draws: Draws, shape (draws); not empty and without nan.
        probabilities: Probabilities from 0 to 1, of any shape.

    Returns:
        Quantiles in the shape of `probabilities`.

    """
    ranked = np.sort(draws)
    rank_positions = probabilities * (len(draws) - 1)
    low = ranked[np.floor(rank_positions).astype(int)]
    high = ranked[np.ceil(rank_positions).astype(int)]
    with np.errstate(invalid="ignore"):
        between = low + (high - low) * (rank_positions - np.floor(rank_positions))
    quantile_values: AnyArray = np.where(
        np.isfinite(low) & np.isfinite(high), between, np.where(np.isfinite(low), high, low)
    )
    return quantile_values


def share(which: AnyArray | None) -> float | None:
    """Return the share of draws for which a condition is true.

    Args:
        which: Whether the condition is true, shape (draws); None where it does not apply.

    Returns:
        Share from 0 to 1; None where the condition does not apply.

    """
    return None if which is None else float(which.mean())


def error_of_share(which: AnyArray | None) -> float | None:
    """Return the standard error of a share of draws.

    The error is sqrt(p (1 - p) / n) with p = (k + 1/2) / (n + 1) for k of n draws, so that the
    error is never zero.

    Args:
        which: Whether the condition is true, shape (draws); None where it does not apply.

    Returns:
        Standard error, from 0 to 1; None where the condition does not apply.

    """
    if which is None:
        return None
    count = len(which)
    chance = (float(which.sum()) + 0.5) / (count + 1)
    return float(np.sqrt(chance * (1 - chance) / count))


def error_of_spread(metric: str, metric_draws: AnyArray) -> dict[str, float | None] | None:
    """Return the standard errors of percentiles and mean of a metric's draws.

    The error of a percentile is half the distance between two quantiles. Their probabilities lie
    sqrt(q (1 - q) / n) below and above q, which is one standard deviation of the rank.

    Args:
        metric: Name of the metric.
        metric_draws: Draws of the metric, shape (draws); nan or inf where a draw has no value.

    Returns:
        Errors in the unit of the metric: `p5`, `p10`, `p50`, `p90`, `p95` and `mean`. An error that
        is not finite is None. The whole result is None where fewer than two draws are finite.

    """
    ranked_draws = rankable_draws(metric, metric_draws)
    if np.count_nonzero(np.isfinite(ranked_draws)) < 2:
        return None
    probabilities = np.array(list(PERCENTILES.values())) / 100
    rank_errors = np.sqrt(probabilities * (1 - probabilities) / len(ranked_draws))
    low, high = quantiles(
        ranked_draws,
        np.array([probabilities - rank_errors, probabilities + rank_errors]).clip(0, 1),
    )
    is_finite = np.isfinite(low) & np.isfinite(high)
    distances = np.where(is_finite, high, 0.0) - np.where(is_finite, low, 0.0)
    percentile_errors = np.where(is_finite, distances, np.nan) / 2
    mean_error = (
        float(ranked_draws.std(ddof=1) / np.sqrt(len(ranked_draws)))
        if np.isfinite(ranked_draws).all()
        else np.nan
    )
    return {
        statistic_name: finite_or_none(statistic_value)
        for statistic_name, statistic_value in zip(
            (*PERCENTILES, "mean"), [*percentile_errors.tolist(), mean_error], strict=True
        )
    }
