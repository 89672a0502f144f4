"""Training jobs for the tests: a scenario's, with settings, in the number reading."""

from __future__ import annotations

from collections.abc import Iterator

from tco.catalog import Catalogue, load_catalogue
from tco.chain.inputs import Inputs, load_scenario
from tco.fabric.scopes import fabric_scopes
from tco.foundation.values import as_number
from tco.models.architecture import load_model
from tco.performance.chip.machine import family_of
from tco.performance.training.job import CHOICES, Job, Practice, Precision, job_of, practice
from tco.performance.training.plans import RECOMPUTE, Block, Plan, whole_plan

CATALOGUE: Catalogue = load_catalogue()
A100 = "train-gpt3-175b-a100x64"
MEGATRON = Plan(8, 1, 8, 1, 1, 0, 1, 3, "interleaved")  # tensor 8, pipeline 8, three model parts a stage, micro-batches of one


def job(name: str = A100, **settings: str) -> tuple[Job, Practice]:
    """Return a scenario's job and machine; a setting's dots are written as double underscores."""
    given = {path.replace("__", "."): text for path, text in settings.items()}
    inputs = Inputs(CATALOGUE, load_scenario(CATALOGUE, name), given, {})
    values = inputs.values(as_number)
    texts = {path: inputs.text(path) for path in CHOICES}
    made = job_of(load_model(CATALOGUE, inputs.text("workload.model")), texts, values)
    chip = inputs.system.chip
    scopes = fabric_scopes(inputs.system, values)
    precision = Precision(inputs.text("workload.precision"), inputs.text("workload.backward_precision"))
    return made, practice(chip, scopes, values, family_of(CATALOGUE, chip), precision)


def small(model: str, chips: int, batch: int, **settings: str) -> tuple[Job, Practice]:
    """Return a job of a few chips."""
    return job(workload__model=model, cluster__chips=str(chips), workload__global_batch=str(batch), **settings)


def every_plan(blocks: list[Block]) -> Iterator[Plan]:
    """Yield the plans one by one, as plain numbers."""
    for block in blocks:
        for row in block.rows.tolist():
            base = whole_plan(row, block.schedule)
            for recompute in RECOMPUTE:
                for zero in block.zero_levels:
                    for parallel in block.binary:
                        for overlap in block.binary:
                            for offload in (0, 1):
                                yield base._replace(recompute=recompute, zero=zero, sequence_parallel=parallel, overlap=overlap, offload=offload)
