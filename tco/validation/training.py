"""Predictions of measured training runs: model, chips, software and stated plan of each row.

Rows of one structure are evaluated together, as arrays. Plan axes that a row leaves unstated are
searched as the program searches them. The prediction is that of the fastest plan that fits. The
command line of a row gives the same number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tco.catalog.catalogue import CONFIGURATION, RUN, Catalogue
from tco.core.errors import DataError
from tco.core.inputs import Values
from tco.core.mappings import lists_by_key
from tco.core.types import AnyArray, JsonObject, Quantity
from tco.fabric.libraries import family_library
from tco.fabric.links import Route, links_of_chips
from tco.models.architecture import load_model
from tco.performance.chip.gemm import Traits, traits_of
from tco.performance.chip.roofline import flops_per_token
from tco.performance.layer.chip_model import Passes, passes_of, trainer
from tco.performance.training.job import (
    Software,
    TrainingJob,
    facts_of,
    setting_or_software_default,
    training_software,
)
from tco.performance.training.plans import PlanBlock, TrainingPlan, fixed_axes, space
from tco.performance.training.result import training_plan_document
from tco.performance.training.search import TimedPlans, job_token_rates, time_blocks
from tco.performance.unexplained_time import (
    UNEXPLAINED_TRAINING,
    unexplained_share,
    unexplained_time_paths,
)
from tco.scenario.collective_links import protocol
from tco.scenario.network_choice import switch_of
from tco.scenario.network_tiers import tiers_of
from tco.scenario.resolve import plain_inputs
from tco.scenario.resolved import ResolvedScenario
from tco.validation.command_lines import command_line, plan_axes_text
from tco.validation.measured_rows import CHIP, FAMILY, MeasuredRows, RowValues
from tco.validation.naming import unread_accelerators
from tco.validation.score import Prediction
from tco.validation.training_rows import Reader, stated_group_size, training_targets, usable_domain

WORKLOAD = "training"  # the workload of all commands
SIZES = {"workload.optimizer_size": 12.0, "workload.accumulator_size": 4.0}
AXES = (
    "tp",
    "pp",
    "dp",
    "ep",
    "cp",
    "micro_batch",
    "schedule",
    "interleave",
    "zero",
    "hybrid_sharding",
    "recompute",
    "sequence_parallel",
    "tp_overlap",
    "optimizer_offload",
    "order",
)
CHIP_OWNER = "chips"  # owner of unexplained time that all rows of a chip share
STEP_TIME, HARDWARE_FLOPS = "step_time_s", "hw_tflops_per_accelerator"  # names of targets
UNTRAINED = "unsupported accelerator"  # of a family without parameters of training


class TrainingRow(NamedTuple):
    """Measured training row: model, chip, software, passes, chip count and sequence length."""

    row: int
    model: str
    part: str
    family: str
    software: Software
    passes: Passes
    traits: Traits
    chips: int
    sequence: int
    domain: int
    texts: dict[str, str]
    gradient_size: float  # bytes
    evaluated: float
    full_attention: bool
    unstated: str  # what of its plan the row leaves open

    @property
    def structure(self) -> tuple[Any, ...]:
        """Key that is shared by rows evaluated together."""
        return self.model, self.family, self.software, self.passes, self.traits


class TrainingQuery(NamedTuple):
    """A row with one batch, and the plans it leaves open."""

    training_row: TrainingRow
    batch: int
    blocks: list[PlanBlock]


def _training_skip_reasons(measurements: MeasuredRows, target: AnyArray) -> AnyArray:
    """Return the skip reasons by row, empty for evaluated rows."""
    catalogue, unknown_models = measurements.catalogue, measurements.read_models[1]
    unknown_parts = unread_accelerators(catalogue, measurements["accelerator"])
    untrained = [
        bool(family) and (family, "gradient_efficiency") not in catalogue.calibration_rows
        for family in measurements.families
    ]
    return measurements.refused(
        (unknown_models != "", unknown_models),
        (measurements.parts == "", unknown_parts),
        (untrained, UNTRAINED),
        (np.isnan(target), "unstated result"),
        (measurements.dates == "", "unstated date"),
        (~(measurements["n_accelerators"] > 0), "unstated accelerators"),
    )


def training_queries(measurements: MeasuredRows, skip: AnyArray) -> list[TrainingQuery]:
    """Return a training query per row and batch that leaves a plan.

    `skip` receives the reason of each row that is unsupported or leaves no plan.
    """
    reader, queries = Reader(measurements), list[TrainingQuery]()
    for row_index in np.flatnonzero(skip == "").tolist():
        try:
            training_row, fixed, batches = _read_training_row(
                reader, measurements.models[row_index], row_index
            )
        except DataError as error:
            skip[row_index] = f"unsupported: {error}"
            continue
        before = len(queries)
        for batch in batches:
            job = TrainingJob(
                load_model(measurements.catalogue, training_row.model),
                training_row.software,
                measurements.values,
                training_row.chips,
                batch,
                training_row.sequence,
            )
            if blocks := space(job, training_row.domain, fixed_axes(fixed)):
                queries.append(TrainingQuery(training_row, batch, blocks))
        if len(queries) == before:
            skip[row_index] = _no_plan(fixed, training_row.chips, max(batches))
    return queries


def _read_training_row(
    reader: Reader, model_name: str, row_index: int
) -> tuple[TrainingRow, dict[str, str], tuple[int, ...]]:
    """Return a row's training setup, fixed plan axes and open batch sizes."""
    measurements, catalogue = reader.measurements, reader.catalogue
    input_values = measurements.values
    part, family = str(measurements.parts[row_index]), str(measurements.families[row_index])
    row_texts, model = reader.texts(row_index), load_model(catalogue, model_name)
    facts = facts_of(model, row_texts["workload.precision"])
    software = training_software(catalogue, row_texts, family, part, facts)
    passes = passes_of(
        input_values,
        part,
        row_texts["workload.precision"],
        row_texts.get("workload.backward_precision", row_texts["workload.precision"]),
    )
    devices = int(reader.count("n_accelerators", row_index) or 0)
    sequence = reader.count("seq_len", row_index) or reader.sequence
    domain = usable_domain(
        reader.domain(
            row_index, devices, int(input_values.structure(f"parts.{part}.scale_up_domain"))
        ),
        devices,
    )
    fixed = reader.fixed(
        row_index, reader.cores(row_index, input_values.structure(f"parts.{part}.cores")), devices
    )
    training_row = TrainingRow(
        row_index,
        model_name,
        part,
        family,
        software,
        passes,
        traits_of(catalogue, part),
        devices,
        sequence,
        domain,
        row_texts,
        gradient_size=float(
            setting_or_software_default(
                catalogue, "workload.gradient_size", row_texts, family, facts
            )
        ),
        evaluated=reader.evaluated(row_index, model_name),
        full_attention=reader.full_attention(row_index),
        unstated=" ".join(reader.unstated(row_index, fixed)),
    )
    return (
        training_row,
        fixed,
        reader.batches(row_index, fixed, devices, sequence, software.whole_batches),
    )


def _no_plan(fixed: Mapping[str, str], devices: int, batch: int) -> str:
    """Return the reason for which a row leaves no plan."""
    group_size = stated_group_size(fixed)
    if devices % group_size:
        return "unsupported: groups do not divide the accelerators"
    if batch < devices // group_size:
        return "unsupported: fewer sequences than ranks"
    return "unsupported: no plan that the row allows"


class FastestPlans(NamedTuple):
    """The fastest plan that fits of every row, by row and set of parameters."""

    seconds: AnyArray  # time of a sequence, inf where no plan fits (sets by rows)
    batch: AnyArray  # sequences of a step
    slowest: AnyArray  # time of a sequence of the slowest plan that fits
    plan: list[TrainingPlan | None]  # None under several sets of parameters
    need: AnyArray  # least bytes of any plan on the fullest chip, by row


def _fastest_plan_per_row(queries: list[TrainingQuery], measurements: MeasuredRows) -> FastestPlans:
    """Return the fastest plan that fits of every row."""
    count = len(measurements)
    shape = (*measurements.sets, count)
    fastest = FastestPlans(
        np.full(shape, np.inf),
        np.zeros(shape),
        np.zeros(shape),
        [None] * count,
        np.full(count, np.inf),
    )
    groups = lists_by_key(
        ((*query.training_row.structure, block.schedule), (query, block))
        for query in queries
        for block in query.blocks
    )
    inputs = plain_inputs(measurements.catalogue, {})
    for members in groups.values():
        _keep_best_of_group(members, measurements, inputs, fastest)
    return fastest


def _keep_best_of_group(
    members: list[tuple[TrainingQuery, PlanBlock]],
    measurements: MeasuredRows,
    inputs: ResolvedScenario,
    fastest: FastestPlans,
) -> None:
    """Evaluate rows of one structure and schedule, and keep the best plan of each."""
    catalogue = measurements.catalogue
    training_row, blocks = members[0][0].training_row, [block for _, block in members]
    lengths = [block.grid_size for block in blocks]

    def column_of(member_values: list[Any]) -> AnyArray:
        return np.repeat(np.array(member_values, dtype=float), lengths)

    training_runs = [query.training_row for query, _ in members]
    row_indices = np.repeat([run.row for run in training_runs], lengths)
    batch = column_of([query.batch for query, _ in members])
    switch = switch_of(inputs)
    tiers = [
        tiers_of(inputs, measurements.values, switch, "leaf", run.domain, run.chips)
        for run in training_runs
    ]
    row_settings = {
        **SIZES,
        "workload.gradient_size": column_of([run.gradient_size for run in training_runs]),
        "workload.global_batch": batch,
        "workload.sequence_length": column_of([run.sequence for run in training_runs]),
        "workload.evaluation_share": 0.0,
        "cluster.oversubscription": measurements.values["cluster.oversubscription"],
        f"parts.{CHIP}.scale_up_domain": np.repeat([run.domain for run in training_runs], lengths),
    }
    row_values = _values_of_rows(measurements.chosen(row_indices), row_settings)
    route = Route("leaf", np.repeat(tiers, lengths), protocol("rdma"))  # type: ignore[arg-type]
    library, traits = family_library(catalogue, training_row.family), training_row.traits
    links = links_of_chips(row_values, CHIP, FAMILY, route, library, signalled=traits.fed)
    machine = trainer(
        CHIP,
        FAMILY,
        row_values,
        training_row.passes,
        links,
        traits,
        training_row.software.programs,
        _unexplained_share_of_rows(catalogue, row_values, training_row.model),
    )
    job = TrainingJob(
        load_model(catalogue, training_row.model),
        training_row.software,
        row_values,
        column_of([run.chips for run in training_runs]),
    )
    _keep_best_plans(
        time_blocks(job, machine, blocks), batch, row_indices, fastest, measurements.sets
    )


def _unexplained_share_of_rows(
    catalogue: Catalogue, row_values: RowValues, model: str
) -> Quantity | None:
    time_paths = unexplained_time_paths(
        catalogue,
        UNEXPLAINED_TRAINING,
        family=FAMILY,
        chip=CHIP_OWNER,
        engine="",
        model=model,
        system=CHIP,
    )
    return unexplained_share(row_values, time_paths)


def _values_of_rows(chosen_rows: MeasuredRows, row_settings: JsonObject) -> RowValues:
    """Return the inputs of measured rows, with the names under which their chips stand."""
    part_names = {CHIP_OWNER: chosen_rows.parts} | {
        f"{level}-{CHIP}": np.char.add(f"{level}-", chosen_rows.parts.astype(str))
        for level in (CONFIGURATION, RUN)
    }
    return RowValues(chosen_rows, row_settings, part_names)


def _keep_best_plans(
    timed_plans: TimedPlans,
    batch: AnyArray,
    row_indices: AnyArray,
    fastest: FastestPlans,
    parameter_sets: tuple[int, ...],
) -> None:
    """Keep the fastest plan that fits of each row where it beats the plans of earlier groups."""
    sequence_times = np.where(timed_plans.fits, timed_plans.times, np.inf) / batch
    best, choice = sequence_times.min(axis=0), sequence_times.argmin(axis=0)
    worst = np.where(np.isfinite(sequence_times), sequence_times, 0.0).max(axis=0)
    need = timed_plans.memory.min(axis=tuple(range(timed_plans.memory.ndim - 1)))
    for row_index in np.unique(row_indices):
        row_plans = np.flatnonzero(row_indices == row_index)
        best_position = best[..., row_plans].argmin(axis=-1)
        seconds = best[..., row_plans].min(axis=-1)
        fastest.need[row_index] = min(fastest.need[row_index], need[row_plans].min())
        fastest.slowest[..., row_index] = np.maximum(
            fastest.slowest[..., row_index], worst[..., row_plans].max(axis=-1)
        )
        better = seconds < fastest.seconds[..., row_index]
        if not np.any(better):
            continue
        best_plans = row_plans[best_position]
        for row_values, better_values in (
            (fastest.batch, batch[best_plans]),
            (fastest.seconds, seconds),
        ):
            row_values[..., row_index] = np.where(better, better_values, row_values[..., row_index])
        if not parameter_sets:
            plan_index = int(best_plans)
            fastest.plan[row_index] = timed_plans.plan_with_choice(
                plan_index, int(choice[plan_index])
            )


def predict_training_runs(measurements: MeasuredRows) -> Prediction:
    """Predict every row of a file of training runs."""
    target, target_names = training_targets(measurements)

    def read() -> tuple[list[TrainingQuery], AnyArray]:
        skip = _training_skip_reasons(measurements, target)
        return training_queries(measurements, skip), skip

    queries, skip = measurements.once("training", read)
    skip, count = skip.copy(), len(measurements)
    fastest = _fastest_plan_per_row(queries, measurements)
    _skip_rows_that_fit_no_plan(skip, fastest)
    training_rows = {query.training_row.row: query.training_row for query in queries}
    predicted, slowest = (np.full((*measurements.sets, count), np.nan) for _ in range(2))
    command, answer_keys, unstated = (np.full(count, "", dtype=object) for _ in range(3))
    scale = np.ones(count)
    for row_index in np.flatnonzero(skip == ""):
        training_row, target_name = training_rows[int(row_index)], target_names[row_index]
        batch, plan = fastest.batch[..., row_index], fastest.plan[row_index]
        is_step = target_name == STEP_TIME
        if not is_step:
            work = _published_work_per_token(training_row, measurements, target_name, plan)
            scale[row_index] = work / training_row.chips
        for answer, seconds in (
            (predicted, fastest.seconds),
            (slowest, fastest.slowest if training_row.unstated else fastest.seconds),
        ):
            step = seconds[..., row_index] * batch
            rates = job_token_rates(batch, training_row.sequence, step, training_row.evaluated)
            answer[..., row_index] = step if is_step else rates * scale[row_index]
        if not measurements.sets:
            answer_keys[row_index] = "metrics/step_s" if is_step else "metrics/train_tokens_per_s"
            command[row_index] = _command_of_row(training_row, int(batch), plan, measurements)
            unstated[row_index] = training_row.unstated
    low, high = np.fmin(predicted, slowest), np.fmax(predicted, slowest)
    return Prediction(
        target, predicted, target_names, skip, command, answer_keys, scale, low, high, unstated
    )


def _skip_rows_that_fit_no_plan(skip: AnyArray, fastest: FastestPlans) -> None:
    fits = np.isfinite(fastest.seconds).reshape(-1, len(skip)).all(axis=0)
    for row_index in np.flatnonzero((skip == "") & ~fits):
        skip[row_index] = (
            "unsupported: no plan fits, the leanest needs "
            f"{fastest.need[row_index] / 1e9:.0f} GB per chip"
        )


def _published_work_per_token(
    training_row: TrainingRow,
    measurements: MeasuredRows,
    target_name: str,
    plan: TrainingPlan | None,
) -> float:
    """Return published work per token in TFLOP, or 1 for token rates.

    The work follows the convention of the publisher.
    """
    if target_name == "tokens_s_per_accelerator":
        return 1.0
    attention_share = 2.0 if training_row.full_attention else 1.0
    model = load_model(measurements.catalogue, training_row.model)
    flops = float(flops_per_token(model, training_row.sequence * attention_share))
    if target_name == HARDWARE_FLOPS and plan is not None and plan.recompute == "full":
        flops = flops * (4 / 3)  # a forward pass more
    return flops / 1e12


def job_settings(training_row: TrainingRow, batch: int, input_values: Values) -> JsonObject:
    """Return the settings that state a row's job, but for its plan.

    Args:
        training_row: Row of a measured run.
        batch: Sequences of a step.
        input_values: Inputs, with the scale-up domain of the row's chip.

    """
    settings: JsonObject = {
        "workload": WORKLOAD,
        "workload.model": training_row.model,
        "cluster.chips": training_row.chips,
        "workload.global_batch": batch,
        "workload.sequence_length": training_row.sequence,
        **training_row.texts,
        "workload.gradient_size": (training_row.gradient_size, "byte"),
    }
    if training_row.evaluated:
        settings["workload.evaluation_share"] = training_row.evaluated
    domain_path = f"parts.{training_row.part}.scale_up_domain"
    if training_row.domain != int(input_values.structure(domain_path)):
        settings[domain_path] = training_row.domain
    return settings


def _command_of_row(
    training_row: TrainingRow, batch: int, plan: TrainingPlan | None, measurements: MeasuredRows
) -> str:
    """Return the command line that gives a row's answer again."""
    assert plan is not None
    plan_document = training_plan_document(
        plan, load_model(measurements.catalogue, training_row.model), batch
    )
    axes = {axis_name: plan_document[axis_name] for axis_name in AXES}
    words = {
        axis_name: ("yes" if axis_value else "no") if isinstance(axis_value, bool) else axis_value
        for axis_name, axis_value in axes.items()
    }
    return command_line(
        ["perf", training_row.part],
        {"plan": plan_axes_text(words)},
        job_settings(training_row, batch, measurements.values),
    )


class ConfiguredRun(NamedTuple):
    """A measured run as it was configured: its job, and the time of a step as predicted."""

    training_row: TrainingRow
    batch: int
    step: float  # seconds


def configured_runs(measurements: MeasuredRows) -> list[ConfiguredRun]:
    """Return the runs of a file that fit, on the fastest plan that each row leaves.

    Args:
        measurements: Measured training runs under one set of parameters.

    """
    skip = _training_skip_reasons(measurements, training_targets(measurements)[0])
    queries = training_queries(measurements, skip)
    fastest = _fastest_plan_per_row(queries, measurements)
    training_rows = {query.training_row.row: query.training_row for query in queries}
    runs = []
    for row_index, training_row in training_rows.items():
        seconds, batch = fastest.seconds[row_index], fastest.batch[row_index]
        if skip[row_index] == "" and np.isfinite(seconds):
            step = float(seconds * batch)
            runs.append(ConfiguredRun(training_row, int(batch), step))
    return runs
