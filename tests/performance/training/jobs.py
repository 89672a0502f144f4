"""Training jobs for the tests: a scenario's, with settings, in the number reading."""

from __future__ import annotations

from collections.abc import Iterator

from tco.performance.layer.chip_model import Passes
from tco.performance.training import schedule
from tco.performance.training.job import TrainingJob
from tco.performance.training.plans import PlanBlock, TrainingPlan, chips_in_use, space, whole_plan
from tco.performance.training.search import search_training_plans
from tco.performance.training.step import evaluate_plan
from tco.scenario.workload import job_on
from tests.performance.servers import Machine
from tests.scenario_helpers import by_path, inputs_of

# what tests of several files ask for
__all__ = [
    "chips_in_use",
    "evaluate_plan",
    "schedule",
    "search_training_plans",
    "space",
]

A100 = "train-gpt3-175b-a100x64"
# tensor 8, pipeline 8, three model parts a stage, micro-batches of one
MEGATRON = TrainingPlan(8, 1, 8, 1, 1, 0, 1, 3, "interleaved")


def job_of_scenario(name: str = A100, **settings: str) -> tuple[TrainingJob, Machine, Passes]:
    """Return a scenario's job, machine and formats.

    A setting's dots are written as double underscores.
    """
    inputs = inputs_of(name, by_path(settings))
    return job_on(inputs, inputs.values())


def job(name: str = A100, **settings: str) -> tuple[TrainingJob, Machine]:
    """Return a scenario's job and machine."""
    return job_of_scenario(name, **settings)[:2]


def small(model: str, chips: int, batch: int, **settings: str) -> tuple[TrainingJob, Machine]:
    """Return a job of a few chips."""
    return job(
        workload__model=model,
        cluster__chips=str(chips),
        workload__global_batch=str(batch),
        **settings,
    )


def every_plan(blocks: list[PlanBlock]) -> Iterator[TrainingPlan]:
    """Yield the plans one by one, as plain numbers."""
    for block in blocks:
        for row in block.rows.tolist():
            base = whole_plan(row, block.schedule)
            for recompute in block.recompute:
                for zero, hybrid in block.sharding:
                    for parallel in block.sequence_parallel:
                        for overlap in block.overlap:
                            for offload in block.offload:
                                choices = {
                                    "sequence_parallel": parallel,
                                    "overlap": overlap,
                                    "offload": offload,
                                }
                                yield base._replace(
                                    recompute=recompute, zero=zero, hybrid=hybrid, **choices
                                )
