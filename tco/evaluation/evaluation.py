"""Scenarios as they were asked for, each evaluated and ready to be asked again with other inputs.

Wherever a scenario is named it may be a name, a file, a system, a result, or the file of a saved
result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from os.path import isfile  # unlike a path's method it says no to a name that no file can have
from pathlib import Path
from typing import TYPE_CHECKING

from tco.catalog import Catalogue, load_catalogue
from tco.core.errors import DataError, UsageError
from tco.core.files import data_directory, read_toml
from tco.core.progress import with_progress
from tco.core.provenance import ANCHOR, anchoring, refuse_own
from tco.core.types import AnyArray, Settings
from tco.evaluation.relative_settings import with_absolute_settings
from tco.evaluation.scenario_function import Evaluation, ScenarioFunction

if TYPE_CHECKING:
    from tco.scenario.result import Result

HEADLINE = ("trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72")
SAVED = ".json"  # the ending of a saved result


def catalogue_for(
    scenario: str | None, data_folder: Path | None, checked: bool = True
) -> Catalogue:
    """Return the catalogue for a scenario, with the user's own data.

    The catalogue joins the shipped data, `data/` of the working folder, `data/` beside the
    scenario's file, and the folder `data_folder`, in this order. A file of anchors adds measured
    runs.

    Args:
        scenario: Id or file of a scenario; None for no scenario.
        data_folder: Folder of the option `--data`; None without.
        checked: Whether the user's own rows are checked first.

    Raises:
        DataError: A row or an anchor of the user is wrong.

    """
    folders = _own_folders(scenario, data_folder)
    catalogue = Catalogue(folders) if folders else load_catalogue()
    if checked and len(catalogue.folders) > 1:
        from tco.catalog.overlay import check_own_rows

        check_own_rows(catalogue)
    anchors_file = anchoring.get() or _anchors_file(scenario)
    if anchors_file is not None:
        refuse_own(f"{anchors_file}: measured runs of your own")
        from tco.validation.anchors import read_anchors

        catalogue = Catalogue(folders)  # shared with no other scenario: its answers use the runs
        catalogue.anchors = read_anchors(catalogue, anchors_file)
    return catalogue


def _own_folders(scenario: str | None, data_folder: Path | None) -> list[Path]:
    candidates = [Path("data")]
    if scenario is not None and isfile(scenario):
        candidates.append(Path(scenario).resolve().parent / "data")
    folders = {
        path.resolve(): path
        for path in candidates
        if path.is_dir() and path.resolve() != data_directory()
    }
    return [*folders.values(), *([data_folder] if data_folder is not None else [])]


def _anchors_file(scenario: str | None) -> Path | None:
    if scenario is None or not isfile(scenario) or not scenario.endswith(".toml"):
        return None
    file_name = read_toml(Path(scenario)).get(ANCHOR)
    return None if file_name is None else Path(scenario).parent / str(file_name)


def evaluate_each(
    scenario_sources: Sequence[str | Path | Result],
    data_folder: Path | None,
    settings: Mapping[str, str],
    variant: Mapping[str, str] | None = None,
    plan: Mapping[str, str] | None = None,
    priced: bool = True,
    refuse: bool = True,
    workload: bool = True,
    trace: bool = False,
    what_if: Mapping[str, str] | None = None,
    implied: Mapping[str, str] | None = None,
) -> list[Evaluation]:
    """Evaluate scenarios; scenarios without own data share one catalogue.

    Args:
        scenario_sources: Ids and files of scenarios, files of saved results, and results.
        data_folder: Folder of the option `--data`; None without.
        settings: Values by input path.
        variant: Variants of the system by key.
        plan: Axes of the plan by name, as the user sets the axes.
        priced: Whether the answer needs a bill, so that a chip alone is refused.
        refuse: Whether racks that do not fit their site are refused.
        workload: Whether a plan is searched; False asks only for the cost of the chips.
        trace: Whether each result keeps its formulas.
        what_if: Values by input path that replace inputs while all decisions stay.
        implied: Values by input path that follow from the command, on which no note is made.

    Returns:
        An evaluation per name, in order, with the rents of all renters under one statistic.

    Raises:
        UsageError: A saved result is to be changed.
        DataError: A scenario, path or value is unknown, or a chip alone has no bill.

    """
    from tco.scenario.document import load_scenario
    from tco.scenario.result import Result

    implied, what_if = implied or {}, what_if or {}
    noted = settings.keys() - implied.keys()
    is_changed = bool(settings or variant or plan or what_if or implied)
    shared = catalogue_for(None, data_folder)
    merged, variants = {**settings, **implied}, dict(variant or {})
    evaluations: list[Evaluation] = []
    for scenario_source in with_progress(scenario_sources, _evaluation_step):
        if isinstance(scenario_source, Result) or str(scenario_source).endswith(SAVED):
            evaluation = _saved_evaluation(scenario_source, shared, is_changed)
        else:
            is_own = isfile(scenario_source)
            catalogue = catalogue_for(str(scenario_source), data_folder) if is_own else shared
            document = load_scenario(catalogue, scenario_source)
            function = ScenarioFunction(
                document, catalogue, merged, variants, plan=plan, refuse=refuse, workload=workload
            )
            evaluation = _evaluate_function(str(scenario_source), function, what_if, trace, noted)
        if priced:
            _refuse_bare_chip(evaluation)
        evaluations.append(evaluation)
    return _with_one_rent(evaluations, refuse, workload)


def _with_one_rent(evaluations: list[Evaluation], refuse: bool, workload: bool) -> list[Evaluation]:
    if len({evaluation.result.rent for evaluation in evaluations} - {None}) < 2:
        return evaluations
    from tco.evaluation.rent_statistics import with_one_rent_statistic  # few rent

    return with_one_rent_statistic(evaluations, refuse, workload)


def _evaluation_step(scenario_source: str | Path | Result) -> str:
    return f"evaluating {getattr(scenario_source, 'scenario', scenario_source)}"


def _refuse_bare_chip(evaluation: Evaluation) -> None:
    """Refuse a chip that stands alone, which has no bill, with the systems that hold it."""
    from tco.catalog.system_tree import is_bare_chip
    from tco.scenario.system_bill import no_bill_error

    scenario_result = evaluation.result
    if scenario_result.bill is None and is_bare_chip(evaluation.catalogue, scenario_result.system):
        raise no_bill_error(evaluation.catalogue, scenario_result.system)


def figures_without_settings(
    evaluations: Sequence[Evaluation],
    data_folder: Path | None,
    figure_name: str,
    figure_of: Callable[[Evaluation], float | None],
) -> list[float | None]:
    """Return a figure of scenarios without the settings of the command line.

    What rests on shipped scenarios and data alone is taken from the disk cache.

    Args:
        evaluations: Evaluations of scenarios with the settings.
        data_folder: Folder of the option `--data`; None without.
        figure_name: Name of the figure in the cache.
        figure_of: Function that returns the figure of an evaluation.

    Returns:
        Figure by scenario, in order; None where it has no value.

    """
    import numpy as np  # numbers of the cache; most commands start without it

    from tco.core.array_cache import cached_arrays

    def make_arrays() -> list[AnyArray]:
        names = [evaluation.name for evaluation in evaluations]
        unset = evaluate_each(names, data_folder, {}, refuse=False)
        return [np.array([figure_of(evaluation) for evaluation in unset], dtype=float)]

    unset_inputs = [
        evaluation._replace(settings={}).function().inputs({}) for evaluation in evaluations
    ]
    if all(inputs.is_shipped for inputs in unset_inputs):
        cache_key = repr((figure_name, [inputs.scenario for inputs in unset_inputs]))
        (figures,) = cached_arrays([b"without settings", cache_key.encode()], make_arrays)
    else:
        (figures,) = make_arrays()
    return [None if math.isnan(number) else number for number in figures.tolist()]


def _evaluate_function(
    scenario_name: str,
    function: ScenarioFunction,
    what_if: Settings,
    trace: bool,
    noted: Container[str],
) -> Evaluation:
    """Evaluate a scenario with its settings, then with inputs replaced while decisions stay.

    Only a setting that is `noted` has a note where it moves nothing.
    """
    from tco.evaluation.what_if import (
        binding_notes,
        notes_on_idle_settings,
        result_on_fixed_structure,
    )
    from tco.scenario.result_notes import unread_note

    stated_paths = function.settings.keys()
    function = with_absolute_settings(scenario_name, function)
    scenario_result = function.result({}, trace)
    paths = [path for path in function.settings if path in noted]
    scenario_result.notes += notes_on_idle_settings(scenario_result, paths, function)
    scenario_result.notes += binding_notes(scenario_result, paths, function)
    scenario_result.notes += map(unread_note, stated_paths - function.settings.keys())
    if what_if:
        scenario_result = result_on_fixed_structure(scenario_result, function, what_if, trace)
    settings = {**function.settings, **what_if}
    return Evaluation(
        scenario_name, settings, function.catalogue, scenario_result, variant=function.variant
    )


def _saved_evaluation(
    source: str | Path | Result, catalogue: Catalogue, changes: bool
) -> Evaluation:
    """Read a saved result; one that is to be changed raises `UsageError`."""
    from tco.scenario.result import Result

    if changes:
        source_name = source.scenario if isinstance(source, Result) else source
        raise UsageError(f"{source_name}: a saved result cannot be changed; name its scenario")
    saved_result = (
        source if isinstance(source, Result) else _load_saved_result(Path(source), catalogue)
    )
    origin = saved_result.origin
    settings = {} if origin is None else {**origin.documents, **origin.settings}
    # a result of another scenario, or of other data, cannot be evaluated again
    saved = (
        origin is None
        or saved_result.scenario not in catalogue.scenarios
        or origin.data_hash() != catalogue.once("hash", catalogue.hash)
    )
    return Evaluation(saved_result.scenario, settings, catalogue, saved_result, saved)


def catalogue_of(evaluations: Sequence[Evaluation], data_folder: Path | None) -> Catalogue:
    """Return the catalogue of the last evaluation, or the shared catalogue.

    Args:
        evaluations: Evaluations of scenarios; empty takes the shared catalogue.
        data_folder: Folder of the option `--data` for the shared catalogue; None without.

    """
    return evaluations[-1].catalogue if evaluations else catalogue_for(None, data_folder)


def _load_saved_result(path: Path, catalogue: Catalogue) -> Result:
    """Return a saved result, with a note where it rests on other data than today's."""
    from tco.scenario.saved import load_result

    saved_result = load_result(path)
    origin, today = saved_result.origin, catalogue.once("hash", catalogue.hash)
    if origin and origin.data_hash() != today:
        saved_result.notes.append(
            f"{path} was saved by tco {origin.version} on data {origin.data_hash()}, today's data "
            f"is {today}"
        )
    return saved_result


def own_and_baseline(
    scenario_name: str,
    metric: str,
    data_folder: Path | None,
    settings: Mapping[str, str],
    variant: Mapping[str, str],
    baseline: str | None,
    trace: bool = False,
) -> tuple[str, list[Evaluation]]:
    """Return the metric to read and the evaluations for the metric.

    A ratio needs the scenario and the baseline, any other metric the scenario alone.

    Args:
        scenario_name: Id or file of the scenario.
        metric: Name of the metric that the user asks for.
        data_folder: Folder of the option `--data`; None without.
        settings: Values by input path.
        variant: Variants of the scenario's system by key.
        baseline: Scenario to hold a ratio against; None takes the headline system.
        trace: Whether each result keeps its formulas.

    Returns:
        Name of the metric, which for a ratio is the cost behind the ratio; and the evaluation of
        the scenario, followed by the baseline's for a ratio.

    Raises:
        DataError: The metric is unknown or has no baseline, or the two results are incomparable.

    """
    from tco.scenario.document import HEADLINE_SYSTEM
    from tco.scenario.metrics import (
        AGAINST_BASELINE,
        PRICED,
        priced_by,
        refuse_unknown_metrics,
    )
    from tco.scenario.result import why_incomparable

    refuse_unknown_metrics([metric])
    (own_evaluation,) = evaluate_each(
        [scenario_name], data_folder, settings, variant, priced=False, trace=trace
    )
    if metric not in AGAINST_BASELINE:
        if baseline is not None:
            raise DataError(
                f"--baseline {baseline}: {metric} is compared with no baseline; "
                f"{', '.join(AGAINST_BASELINE)} is"
            )
        return metric, [own_evaluation]
    (baseline_evaluation,) = evaluate_each(
        [baseline or HEADLINE_SYSTEM], data_folder, settings, priced=False, trace=trace
    )
    if (why := why_incomparable(own_evaluation.result, baseline_evaluation.result)) is not None:
        raise DataError(
            f"{metric} of {scenario_name} says nothing: {why}; --baseline names another"
        )
    evaluations = [own_evaluation, baseline_evaluation]
    costs = [priced_by(evaluation.result.metrics) for evaluation in evaluations]
    return costs[0] or costs[1] or PRICED[0], evaluations
