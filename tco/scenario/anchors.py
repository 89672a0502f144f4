"""Your own measured runs, and how they move the model's predictions for a system.

A run of measured time t has the log error y = ln(t / t_model). The error is the sum of random
effects u_k, one for each level, and of an error e of the single run. The levels are the family of
chips, the chip, the engine, the model and the configuration. Runs share the effects of the levels
that they have in common.

    y = sum_k u_k + e,   u_k ~ N(0, v_k),   e ~ N(0, v)

The vector u has all effects, the matrix H says which effects each run has, and the diagonal matrix
W has the variances of the effects. The posterior is

    K = W H' (H W H' + v)^-1,   E[u | y] = K y,   Var[u | y] = W - K H W

A run moves the prediction of its own configuration most, another configuration on its chip less,
and other chips least. A stated plan, or a plan under a stated load, moves by its unexplained time.
A plan that the program chose moves by its deployment efficiency, with the levels family, chip and
system.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.catalog.catalogue import CONFIGURATION, RUN, Catalogue
from tco.catalog.labels import count_with_noun
from tco.core.errors import DataError
from tco.core.provenance import P95, Input
from tco.core.trace import untraced_value
from tco.core.types import FloatArray, JsonObject, Quantity
from tco.models.architecture import load_model
from tco.performance.chip.families import family_of
from tco.performance.deployment import EFFICIENCY, SYSTEM_OWNER, efficiency_path, system_path
from tco.performance.unexplained_time import UNEXPLAINED_SERVING, unexplained_time_paths

if TYPE_CHECKING:
    from tco.scenario.resolved import ResolvedScenario

Effect = tuple[Any, ...]  # key of a random effect that runs share: its level, and its owner
# Share of the variance between deployments that runs of one configuration have in common.
CONFIGURATION_SHARE = 0.5
MOVED = "moved by anchors"  # key in the cache of a catalogue for the rate shift of each system


class Anchor(NamedTuple):
    """A measured run with its configuration."""

    where: str  # file and row
    chip: str
    engine: str
    model: str
    formats: tuple[str, ...]  # number formats of attention, experts and dense parts
    beyond: float  # logarithm of measured over predicted time

    @property
    def configuration(self) -> Effect:
        """Key of a run's configuration: chip, engine, model and formats."""
        return self.chip, self.engine, self.model, self.formats


class RandomEffect(NamedTuple):
    """A random effect on the log time of a run."""

    effect: Effect
    deviation: float  # standard deviation
    practice_input: Input | None = None  # input that the effect moves; None without one


class Moved(NamedTuple):
    """Posterior of the random effects of a system."""

    means: FloatArray  # shape (effects,)
    variances: FloatArray  # shape (effects,)
    variance_of_sum: float  # variance of the sum of all effects


def _half_width(practice_input: Input) -> float:
    if practice_input.low is None or practice_input.high is None:
        return 0.0
    if practice_input.path.endswith(EFFICIENCY):
        return math.log(practice_input.high / practice_input.low) / (2 * P95)
    return math.log((1 + practice_input.high) / (1 + practice_input.low)) / (2 * P95)


def _practice_at(catalogue: Catalogue, path: str) -> Input:
    owner, _, practice_name = path.removeprefix("performance.").rpartition(".")
    return catalogue.practice(owner, practice_name)._replace(path=path)


def _stated_levels(
    catalogue: Catalogue, run: Anchor, system: str
) -> tuple[list[RandomEffect], float]:
    """Return a configured run's levels of unexplained time, and the deviation of single runs."""
    paths = unexplained_time_paths(
        catalogue,
        UNEXPLAINED_SERVING,
        family=family_of(catalogue, run.chip),
        chip=run.chip,
        engine=run.engine,
        model=run.model,
        system=system,
    )
    levels = []
    for level, path in paths.items():
        practice_input = _practice_at(catalogue, path)
        owner: Effect = run.configuration if level == CONFIGURATION else (path,)
        if level != RUN:
            levels.append(
                RandomEffect((level, *owner), _half_width(practice_input), practice_input)
            )
    return levels, _half_width(_practice_at(catalogue, paths[RUN]))


def _deployed_levels(
    catalogue: Catalogue, run: Anchor, system: str
) -> tuple[list[RandomEffect], float]:
    """Return a chosen plan's levels of deployment efficiency, and the deviation of single runs."""
    owners = {"family": family_of(catalogue, run.chip), "chip": run.chip}
    levels = []
    for level, owner in owners.items():
        practice_input = _practice_at(catalogue, efficiency_path(owner))
        levels.append(RandomEffect((level, owner), _half_width(practice_input), practice_input))
    system_practice = _practice_at(
        catalogue, system_path(system) if system else efficiency_path(SYSTEM_OWNER)
    )
    deviation = _half_width(system_practice)
    levels.append(
        RandomEffect(
            ("configuration", *run.configuration),
            deviation * math.sqrt(CONFIGURATION_SHARE),
            system_practice,
        )
    )
    return levels, deviation * math.sqrt(1 - CONFIGURATION_SHARE)


def _posterior(
    levels: Sequence[RandomEffect],
    levels_by_run: Sequence[Sequence[RandomEffect]],
    beyond: FloatArray,
    scatter: float,
) -> Moved:
    """Return the posterior of a system's random effects, given measured runs.

    Args:
        levels: Random effects of the system.
        levels_by_run: Random effects of each run.
        beyond: Log of measured over predicted time of each run, shape (runs,).
        scatter: Standard deviation of single runs.

    """
    all_levels = [level for run_levels in (levels, *levels_by_run) for level in run_levels]
    effects = list(dict.fromkeys(level.effect for level in all_levels))
    # Effects are scaled to a variance of 1, so the loadings have their standard deviations.
    run_loadings = np.zeros((len(levels_by_run), len(effects)))
    for run_index, run_levels in enumerate(levels_by_run):
        for level in run_levels:
            run_loadings[run_index, effects.index(level.effect)] = level.deviation
    run_covariance = run_loadings @ run_loadings.T + scatter**2 * np.eye(len(levels_by_run))
    gain = run_loadings.T @ np.linalg.inv(run_covariance)
    mean = gain @ beyond
    covariance = np.eye(len(effects)) - gain @ run_loadings
    level_loadings = np.zeros((len(levels), len(effects)))
    for level_index, level in enumerate(levels):
        level_loadings[level_index, effects.index(level.effect)] = level.deviation
    level_covariance = level_loadings @ covariance @ level_loadings.T
    return Moved(
        means=level_loadings @ mean,
        variances=np.maximum(np.diag(level_covariance), 0.0),
        variance_of_sum=float(max(level_covariance.sum(), 0.0)),
    )


def anchored_inputs(
    inputs: ResolvedScenario,
    engine: str,
    model: str,
    formats: tuple[str, ...],
    stated: bool,
    gap: Quantity | None,
) -> tuple[dict[str, Input], str]:
    """Return the inputs that the catalogue's anchors move, with P5 and P95, and a note on them.

    Args:
        inputs: The scenario, with the catalogue that holds the anchors.
        engine: Serving engine of the system.
        model: Model that the system serves.
        formats: Number formats of attention, experts and dense parts.
        stated: Whether the plan or its load is stated rather than chosen.
        gap: Share left of the way to the best software, which scales the shift of chosen plans.
            None for the whole way.

    Raises:
        DataError: No anchor has the model of the scenario.

    """
    catalogue, system = inputs.catalogue, inputs.system
    first = catalogue.anchors[0]
    dimensions = _model_dimensions(catalogue, model)
    runs = [
        run._replace(model=model)
        for run in catalogue.anchors
        if _model_dimensions(catalogue, run.model) == dimensions
    ]
    if not runs:
        raise DataError(
            f"{first.where}: measured on {first.model}, and {model} is asked for: expected runs of "
            "the same model"
        )
    levels_of = _stated_levels if stated else _deployed_levels
    target_run = Anchor("", system.chip, engine, model, formats, 0.0)
    levels, scatter = levels_of(catalogue, target_run, system.id)
    levels_by_run = [levels_of(catalogue, run, "")[0] for run in runs]
    posterior = _posterior(levels, levels_by_run, np.array([run.beyond for run in runs]), scatter)
    sum_of_variances = sum(posterior.variances)
    # Runs determine the sum of the effects better than each effect. So the inputs are drawn with
    # smaller deviations, whose squares add up to the variance of the sum.
    deviation_factor = 0.0
    if sum_of_variances:
        deviation_factor = math.sqrt(posterior.variance_of_sum / sum_of_variances)
    file = runs[0].where.rpartition(":")[0]
    inputs_moved = {
        level.practice_input.path: _moved_input(
            level.practice_input, float(mean), deviation_factor * math.sqrt(variance), file
        )
        for level, mean, variance in zip(levels, posterior.means, posterior.variances, strict=True)
        if level.practice_input is not None
    }
    gap_share = 1.0 if stated or gap is None else float(np.ravel(untraced_value(gap))[0])
    log_time_shift = gap_share * float(sum(posterior.means))
    catalogue.once((MOVED, system.id), lambda: math.expm1(-log_time_shift))
    unused_count = len(catalogue.anchors) - len(runs)
    return inputs_moved, _anchoring_note(file, len(runs), unused_count, log_time_shift)


def _anchoring_note(file: str, run_count: int, unused_count: int, log_time_shift: float) -> str:
    note = (
        f"anchored on {count_with_noun(run_count, 'run')} of {file}: the rate changes by "
        f"{math.expm1(-log_time_shift) * 100:+.1f} %"
    )
    return note + (f"; {unused_count} of another model are not used" if unused_count else "")


def _moved_input(practice_input: Input, mean: float, deviation: float, file: str) -> Input:
    """Return an input after a shift of the log time, as a share of time or as an efficiency."""
    if practice_input.path.endswith(EFFICIENCY):
        low, input_value, high = (
            practice_input.value * math.exp(-mean + side * P95 * deviation) for side in (-1, 0, 1)
        )
    else:
        low, input_value, high = (math.expm1(mean + side * P95 * deviation) for side in (-1, 0, 1))
    return practice_input._replace(
        value=input_value,
        low=low,
        high=high,
        kind="measured",
        source=f"runs in {file}",
        note="",
        stated_quantity=None,
        where=file,
        overlay=True,
    )


def _model_dimensions(catalogue: Catalogue, model: str) -> Any:
    architecture = load_model(catalogue, model)
    return architecture.hidden, architecture.blocks, architecture.vocabulary


def account_of(catalogue: Catalogue) -> JsonObject:
    """Return anchor counts by configuration, and each system's rate shift.

    Args:
        catalogue: Catalogue with the anchors, and with the shifts of the evaluations so far.

    Returns:
        `rows`: number of anchors. `systems`: relative change of the rate by system. `moved`: the
        first of the changes, or None. `rests_on`: chip, engine, model, formats and rows of each
        configuration.

    """
    counts: Mapping[Effect, int] = Counter(anchor.configuration for anchor in catalogue.anchors)
    rests_on = []
    for (chip, engine, model, formats), count in counts.items():
        rests_on.append(
            {
                "chip": chip,
                "engine": engine,
                "model": model,
                "formats": list(formats),
                "rows": count,
            }
        )
    systems = {
        cache_key[1]: shift
        for cache_key, shift in catalogue.cache.items()
        if isinstance(cache_key, tuple) and cache_key[0] == MOVED
    }
    return {
        "rows": len(catalogue.anchors),
        "moved": next(iter(systems.values()), None),
        "systems": systems,
        "rests_on": rests_on,
    }
