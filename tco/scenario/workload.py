"""Workloads of a scenario: serving or training a model on its chips.

The chips work within the limits of their system and its connections. The row of a workload in
`KINDS` holds all differences between kinds of workload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from os.path import basename, dirname  # a path's own are slower than all else that is asked here
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.core.errors import DataError
from tco.core.files import data_directory, read_csv
from tco.core.formula import somewhere
from tco.core.inputs import Readable, Values
from tco.core.provenance import KEPT
from tco.core.types import Quantity
from tco.models.architecture import Architecture, load_model
from tco.performance.chip.families import family_of
from tco.performance.chip.formats import computed_on
from tco.performance.deployment import FLEET, OPERATED_BY, Deployer, PoolShape, efficiency_of
from tco.performance.serving.plans import DEEPEST, DRAFTS, ServingWorkload, request_of
from tco.performance.serving.record import ServingResult
from tco.performance.serving_engines import (
    library_of_engines,
    served_by,
    serving_engine_id,
    untuned_periods,
)
from tco.performance.software_maturity import (
    BEST_LEVEL,
    BY_DATE,
    SOFTWARE,
    SOFTWARE_CHOICES,
    SoftwareMaturity,
    practice_family,
    resolve_software_maturity,
)
from tco.performance.unexplained_time import (
    DEPLOYED,
    UNEXPLAINED_SERVING,
    UNEXPLAINED_TRAINING,
    unexplained_share,
    unexplained_time_paths,
)
from tco.scenario.collective_links import links_of_system
from tco.scenario.metrics import OUTPUT_RATE, PERFORMANCE, RATIOS, SERVED, TRAINING

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.performance.layer.chip_model import Machine, Passes, Stored
    from tco.performance.training.job import TrainingJob
    from tco.performance.training.result import TrainingResult
    from tco.scenario.resolved import ResolvedScenario


STORED = ("attention_format", "precision", "expert_format", "cache_format", "attention_core_format")


def serving_of(inputs: ResolvedScenario, input_values: Values, plan: Any) -> ServingResult:
    """Serve the scenario's workload on engines that lie in a scale-up domain or span several."""
    from tco.performance.serving.result import evaluate_serving
    from tco.scenario.plan_cache import recalled_choices

    workload = serving_workload(inputs, input_values, _has_fixed_axes(plan))
    return evaluate_serving(workload, plan, partial(recalled_choices, inputs, input_values))


def _has_fixed_axes(plan: Any) -> bool:
    return isinstance(plan, Mapping) or bool(getattr(plan, "stated", False))


def server_of(
    inputs: ResolvedScenario, input_values: Values, stated: bool = False
) -> tuple[Machine, Architecture]:
    """Return the machine and the model that serve the scenario's workload.

    The machine is a chip on its links.

    Args:
        inputs: The scenario.
        input_values: Inputs of the scenario by path.
        stated: Whether a user fixed the plan, which then keeps its rate without a deployment.

    """
    model = _served_model(inputs, input_values)
    deployer = (
        None
        if stated or _has_stated_load(input_values)
        else _scenario_deployer(inputs, input_values)
    )
    return machine_of(
        inputs, input_values, inputs.text, _software_of_scenario(inputs, input_values), deployer
    ), model


def serving_workload(
    inputs: ResolvedScenario, input_values: Values, stated: bool = False
) -> ServingWorkload:
    """Return the requests of the scenario's workload, with the machine and model that serve them.

    Args:
        inputs: The scenario.
        input_values: Inputs of the scenario by path.
        stated: Whether a user fixed the plan, as in `server_of`.

    """
    machine, model = server_of(inputs, input_values, stated)
    return ServingWorkload(machine, model, request_of(input_values))


def _scenario_deployer(inputs: ResolvedScenario, input_values: Values) -> Deployer:
    deployer_name = inputs.text(OPERATED_BY)
    if deployer_name == FLEET:
        return Deployer(deployer_name)
    return Deployer(
        deployer_name,
        input_values.structure("workload.server_chips"),
        _pool_shapes(inputs.catalogue),
    )


def _pool_shapes(catalogue: Catalogue) -> tuple[PoolShape, ...]:
    """Return the sizes of pools of published runs."""

    def read() -> tuple[PoolShape, ...]:
        path = data_directory() / "performance" / "pools.csv"
        columns = (*PoolShape._fields, "rows")
        return tuple(
            PoolShape(*(float(pool_row[shape_field]) for shape_field in PoolShape._fields))
            for _, pool_row in read_csv(path, columns)
        )

    return catalogue.once("pool shapes", read)


def _has_stated_load(input_values: Values) -> bool:
    return input_values.exists("workload.offline") or input_values.exists("workload.concurrency")


def _served_model(inputs: ResolvedScenario, input_values: Values) -> Architecture:
    """Return the scenario's model, asked for no more than it can be."""
    model = scenario_model(inputs, input_values)
    _refuse_beyond_context(model, input_values)
    _refuse_no_requests(input_values)
    _refuse_beyond_head(input_values)
    _refuse_unknown_software(inputs)
    return model


def _software_of_scenario(inputs: ResolvedScenario, input_values: Values) -> SoftwareMaturity:
    return resolve_software_maturity(
        inputs.catalogue, inputs.system.chip, inputs.text(SOFTWARE), inputs.date, input_values
    )


def scenario_model(inputs: ResolvedScenario, input_values: Values) -> Architecture:
    """Return the architecture of the scenario's model."""
    return load_model(
        inputs.catalogue,
        inputs.text("workload.model"),
        lambda: input_values.structure("workload.total_parameters"),
    )


def machine_of(
    inputs: ResolvedScenario,
    input_values: Readable,
    text_at_path: Callable[[str], str],
    reach: SoftwareMaturity,
    deployer: Deployer | None = None,
) -> Machine:
    """Return a system's chip on its links, with its software, engine and formats.

    Args:
        inputs: the scenario.
        input_values: its inputs as they are read.
        text_at_path: gives the text at an input path.
        reach: how far the software is on the way to the best.
        deployer: who deploys the plan that the program chooses; None of a run as it is configured.

    """
    from tco.performance.chip.gemm import traits_of
    from tco.performance.layer.chip_model import LAYER, Stored, machine

    system, catalogue = inputs.system, inputs.catalogue
    family = family_of(catalogue, system.chip)
    stored = Stored(*(text_at_path(f"workload.{format_setting}") for format_setting in STORED))
    practice = practice_family(catalogue, system.chip, text_at_path(SOFTWARE))
    engine = serving_engine_id(catalogue, practice, text_at_path("workload.engine"))
    links = links_of_system(inputs, input_values, library_of_engines(catalogue, family))
    reach = reach._replace(
        untuned=untuned_periods(catalogue, family, system.chip, engine, stored.dense)
    )
    production = deployer if deployer is not None and input_values.exists(DEPLOYED) else None
    if catalogue.anchors:
        _add_anchors(
            inputs, engine, text_at_path("workload.model"), stored, production is None, reach.gap
        )
    unexplained_time = deployed = None
    if production is None:
        unexplained_time = _unexplained_time(
            inputs, input_values, UNEXPLAINED_SERVING, engine, text_at_path("workload.model")
        )
    else:
        deployed = efficiency_of(
            input_values, production.name, engine, family, system.chip, system.id, reach.gap
        )
    fused_by = engine if (engine, "elementwise_traffic") in catalogue.calibration_rows else LAYER
    if deployer is not None and deployer.name == FLEET:
        fused_by = FLEET
    serving_machine = machine(
        system.chip,
        links,
        input_values,
        family,
        stored,
        traits_of(catalogue, system.chip),
        engine,
        unexplained_time,
        reach,
        fused_by,
    )
    drafting = engine in served_by(catalogue, practice).get("drafting", ())
    return serving_machine._replace(deployed=deployed, deployer=deployer, drafting=drafting)


def _add_anchors(
    inputs: ResolvedScenario,
    engine: str,
    model_name: str,
    stored: Stored,
    is_stated: bool,
    gap: Quantity | None,
) -> None:
    """Add the inputs of the anchors on published runs to a scenario, and their note once."""
    from tco.scenario.anchors import anchored_inputs

    weights = stored.attention, stored.experts, stored.dense
    anchor_inputs, note = anchored_inputs(inputs, engine, model_name, weights, is_stated, gap)
    inputs.document_inputs |= anchor_inputs
    inputs.notes += [note] if note not in inputs.notes else []


def storage_and_compute_formats(inputs: ResolvedScenario, input_values: Readable) -> dict[str, str]:
    """Return the storage and compute formats as text, keyed by workload setting.

    The text names a compute format only where the chip does not compute the stored format.
    """
    chip, texts = inputs.system.chip, workload_kind(inputs).formats
    number_formats = {
        format_setting: computed_on(
            input_values,
            chip,
            inputs.text(f"workload.{format_setting}"),
            f"workload.{format_setting}",
        )
        for format_setting in texts
    }
    return {
        format_setting: number_format.stored
        if number_format.is_native
        else f"{number_format.stored} computed as {number_format.computed_as}"
        for format_setting, number_format in number_formats.items()
    }


def _refuse_beyond_context(model: Architecture, input_values: Values) -> None:
    """Refuse sequences longer than the model was made for."""
    paths = "workload.input_tokens", "workload.output_tokens"
    length = sum(input_values.number(path) for path in paths)
    if somewhere(length > model.context):
        raise DataError(
            f"{' + '.join(paths)} is {np.max(length):,.0f} tokens, more than the context of "
            f"{model.id}, {model.context:,} tokens"
        )


def _notes_on_length(model: Architecture, input_values: Values) -> list[str]:
    """Say that sequences are longer than what the model was made for, which training may extend."""
    length = np.max(input_values.number("workload.sequence_length"))
    return (
        [
            f"sequences of {length:,.0f} tokens are longer than the context of {model.id}, "
            f"{model.context:,}"
        ]
        if length > model.context
        else []
    )


def _refuse_no_requests(input_values: Values) -> None:
    """Refuse a concurrency of zero that a user sets.

    The default of zero means that every batch is searched.
    """
    concurrency = input_values.input("workload.concurrency")
    if (
        somewhere(concurrency.value == 0)
        and concurrency.where != KEPT
        and basename(dirname(concurrency.where)) != "defaults"
    ):
        raise DataError(
            f"{concurrency.where}: workload.concurrency is 0: no requests in flight serve nothing; "
            "leave it out to search every batch"
        )
    if concurrency.value > 0 and input_values.exists("workload.offline"):
        raise DataError(
            f"{concurrency.where}: workload.concurrency beside workload.offline: offline the batch "
            "is what memory holds; leave one out"
        )


def _refuse_unknown_software(inputs: ResolvedScenario) -> None:
    """Raise `DataError` for unknown training software, which serving does not use otherwise."""
    words = {path: inputs.texts.get(path, BY_DATE) for path in SOFTWARE_CHOICES}
    stated = {path: word for path, word in words.items() if word != BY_DATE}
    if stated:
        from tco.performance.training.job import (
            refuse_unknown_words,
        )  # seldom: serving starts without it

        refuse_unknown_words(inputs.catalogue, stated)


def _refuse_beyond_head(input_values: Values) -> None:
    """Refuse more drafts a step than a head is run for."""
    if input_values.has(DRAFTS) and somewhere(
        (drafts := input_values.number(DRAFTS)) > (most := input_values.number(DEEPEST))
    ):
        drafts_text = f"{input_values.input(DRAFTS).where}: {DRAFTS} is {np.max(drafts):g}"
        raise DataError(
            f"{drafts_text}, a head drafts at most {np.max(most):g} tokens a step ({DEEPEST})"
        )


def job_on(inputs: ResolvedScenario, input_values: Values) -> tuple[TrainingJob, Machine, Passes]:
    """Return the training job of a scenario, its machine and its formats.

    Args:
        inputs: Scenario that trains a model.
        input_values: Inputs by path.

    Returns:
        Job, chip on its links, and number formats of the passes.

    Raises:
        DataError: The catalogue has anchors, which are serving runs.

    """
    from tco.performance.chip.gemm import traits_of
    from tco.performance.layer.chip_model import passes_of, trainer
    from tco.performance.training.job import (
        CHOICES,
        DATED,
        facts_of,
        training_job,
        training_software,
    )

    catalogue, chip = inputs.catalogue, inputs.system.chip
    if catalogue.anchors:
        raise DataError(
            f"{catalogue.anchors[0].where}: a serving run, and the scenario trains a model: "
            "--anchor moves serving alone"
        )
    family, precision = family_of(catalogue, chip), inputs.text("workload.precision")
    model = scenario_model(inputs, input_values)
    choices = {path: inputs.text(path) for path in (*CHOICES, *DATED)}
    software = training_software(catalogue, choices, family, chip, facts_of(model, precision))
    formats = passes_of(input_values, chip, precision, inputs.text("workload.backward_precision"))
    model_id = inputs.text("workload.model")
    unexplained_time = _unexplained_time(
        inputs, input_values, UNEXPLAINED_TRAINING, engine="", model=model_id
    )
    links = links_of_system(inputs, input_values)
    reach = _software_of_scenario(inputs, input_values)
    traits, programs = traits_of(catalogue, chip), software.programs
    machine = trainer(
        chip, family, input_values, formats, links, traits, programs, unexplained_time, reach
    )
    is_deployed = input_values.exists(DEPLOYED) and inputs.text(SOFTWARE) != BEST_LEVEL
    return training_job(model, software, input_values, deployed=is_deployed), machine, formats


def _unexplained_time(
    inputs: ResolvedScenario, input_values: Readable, parameter_name: str, engine: str, model: str
) -> Quantity | None:
    """Return unexplained over modelled time of a scenario; None if it is a plain 0."""
    paths = unexplained_time_paths(
        inputs.catalogue,
        parameter_name,
        family=family_of(inputs.catalogue, inputs.system.chip),
        chip=inputs.system.chip,
        engine=engine,
        model=model,
        system=inputs.system.id,
    )
    return unexplained_share(input_values, paths)


def _training_of(inputs: ResolvedScenario, input_values: Values, plan: Any) -> TrainingResult:
    """Train the scenario's model on all chips of its cluster."""
    from tco.performance.training.job import notes_on_batch
    from tco.performance.training.result import train

    job, reached, formats = job_on(inputs, input_values)
    training_result = train(job, reached, formats, plan)
    training_result.notes += [
        *notes_on_batch(input_values),
        *_notes_on_length(job.model, input_values),
    ]
    return training_result


# Metric of each input that states a rate.
STATED = {"workload.output_rate": OUTPUT_RATE}


def _stated_serving_rates(
    inputs: ResolvedScenario, input_values: Values, plan: Any
) -> ServingResult:
    """Return the rates that a scenario states, or none where only the chips' cost is wanted."""
    if plan is not None:
        raise DataError(
            f"{inputs.scenario.documents['workload']} runs no model, so there is no plan to fix"
        )
    return ServingResult(
        None,
        {metric: input_values[path] for path, metric in STATED.items() if input_values.has(path)},
    )


def _not_served(reason: str) -> ServingResult:
    return ServingResult(None, reason=reason)


def _not_trained(reason: str) -> TrainingResult:
    from tco.performance.training.result import TrainingResult

    return TrainingResult(None, reason=reason)


class WorkloadKind(NamedTuple):
    """A kind of workload: how it is evaluated, its result without a plan, and its metrics."""

    # evaluates the workload on a plan, or on the best plan of a search
    walk: Callable[[ResolvedScenario, Values, Any], Any]
    # raises `DataError` for input values that no workload of the kind can have
    judge: Callable[[ResolvedScenario, Values], Any]
    without_plan: Callable[[str], Any]  # result without a plan, for the reason given
    does: str  # verb of the kind, for texts
    metrics: frozenset[str]  # metrics of the work
    rate: str  # metric that has no value without a plan
    measured: str = ""  # kind of the published runs that test it; empty where no model runs
    axis: str = ""  # field that only plans of this kind have
    formats: tuple[str, ...] = ()  # text inputs with the formats of its matrix products
    defaults: str = ""  # document of the default inputs
    inputs: tuple[str, ...] = ()  # inputs that every saved result has
    restarts: bool = False  # whether a failure takes the whole job back to a checkpoint


KINDS = {
    "serving": WorkloadKind(
        walk=serving_of,
        judge=_served_model,
        without_plan=_not_served,
        does="serves",
        metrics=SERVED,
        rate=OUTPUT_RATE,
        measured="inference",
        axis="decode",
        formats=("attention_format", "precision", "expert_format", "attention_core_format"),
        defaults="workload",
        inputs=("workload.input_tokens", "workload.output_tokens", "workload.interactivity"),
    ),
    "training": WorkloadKind(
        walk=_training_of,
        judge=job_on,
        without_plan=_not_trained,
        does="trains",
        metrics=TRAINING,
        rate="step_s",
        measured="training",
        axis="tensor",
        formats=("precision", "backward_precision"),
        defaults="training",
        inputs=("workload.global_batch", "workload.sequence_length", "cluster.chips"),
        restarts=True,
    ),
    "stated": WorkloadKind(
        _stated_serving_rates, lambda *_: None, _not_served, "states its rates", SERVED, OUTPUT_RATE
    ),  # runs no model: its rates are inputs
}


def workload_kind(inputs: ResolvedScenario) -> WorkloadKind:
    """Return the kind of a scenario's workload.

    Args:
        inputs: The scenario.

    """
    return KINDS[inputs.kind]


def metric_workload_kinds(metric: str) -> frozenset[str]:
    """Return the kinds of workload a metric may have a value for.

    Args:
        metric: Name of the metric.

    Returns:
        Ids of the kinds: all kinds for a ratio and for a metric that does not depend on the work.

    """
    is_general = metric not in PERFORMANCE or metric in RATIOS
    return frozenset(
        kind_name for kind_name, kind in KINDS.items() if is_general or metric in kind.metrics
    )


def kind_of_plan(plan: Any) -> str:
    """Return the kind of workload of a plan or its table, empty for anything else."""
    axes = plan if isinstance(plan, Mapping) else getattr(plan, "_fields", ())
    return next(
        (kind_name for kind_name, kind in KINDS.items() if kind.axis and kind.axis in axes), ""
    )


def without_workload(inputs: ResolvedScenario) -> ServingResult | TrainingResult:
    """Return the empty workload of an answer about cost; an unknown model raises `DataError`."""
    if workload_kind(inputs).measured:
        model = inputs.text("workload.model")
        if model not in inputs.catalogue.models:
            load_model(inputs.catalogue, model)  # reads a file of the user, or raises `DataError`
    workload_result: ServingResult | TrainingResult = workload_kind(inputs).without_plan("")
    return workload_result
