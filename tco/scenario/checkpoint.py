"""Number formats of a chosen model's checkpoint, taken into a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tco.core.provenance import Given
from tco.models.architecture import load_model, unread_text

if TYPE_CHECKING:
    from tco.scenario.resolved import ResolvedScenario

PRECISION = "workload.precision"
FORMAT_PATHS = {
    PRECISION: "dense",
    "workload.attention_format": "attention",
    "workload.expert_format": "experts",
    "workload.cache_format": "cache",
}


def take_checkpoint(inputs: ResolvedScenario, stated: Mapping[str, Given]) -> None:
    """Take the formats of a chosen model's checkpoint, and note how its config was read.

    A precision that the scenario or the user states holds instead.

    Args:
        inputs: Scenario, whose texts and notes are extended.
        stated: Settings of the scenario and of the user by path.

    """
    if inputs.kind == "stated":
        return
    model_name = inputs.text("workload.model")
    model = load_model(inputs.catalogue, model_name)
    if model.reading:
        inputs.notes.append(f"model {model.id}: {model.reading}")
    if model.unread:
        inputs.cautions.append(f"model {model.id}: {unread_text(model)}")
    if model.stored is None or inputs.kind != "serving" or PRECISION in stated:
        return
    formats = {path: getattr(model.stored, part) for path, part in FORMAT_PATHS.items()}
    taken = {path: form for path, form in formats.items() if form and path not in stated}
    inputs.texts |= taken
    inputs.notes.append(
        f"model {model.id}: {model.stored.text}, as its checkpoint is stored; "
        f"--set {PRECISION}=fp8 prices another format"
    )
