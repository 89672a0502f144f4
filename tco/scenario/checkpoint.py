"""Number formats of a chosen model's checkpoint, taken into a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tco.core.provenance import Given
from tco.models.architecture import Architecture, is_stated_model, load_model, unread_text
from tco.scenario.choices import NATIVE, checkpoint_of

if TYPE_CHECKING:
    from tco.scenario.resolved import ResolvedScenario

PRECISION = "workload.precision"
OWN_SOURCE = "tco-model"  # of models that nobody published
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
    if inputs.kind != "serving" or PRECISION in stated:
        return
    if model.stored is None:
        _note_other_format(inputs, model)
        return
    formats = {path: getattr(model.stored, part) for path, part in FORMAT_PATHS.items()}
    taken = {path: form for path, form in formats.items() if form and path not in stated}
    inputs.texts |= taken
    inputs.notes.append(
        f"model {model.id}: {model.stored.text}, as its checkpoint is stored; "
        f"--set {PRECISION}=fp8 prices another format"
    )


def _note_other_format(inputs: ResolvedScenario, model: Architecture) -> None:
    """Note that a model whose config states no format is priced in the workload's."""
    weights = inputs.text(PRECISION)
    stored = checkpoint_of(inputs.catalogue, model.id, "").dense
    is_native = inputs.texts.get("workload.formats") == NATIVE
    if is_native or stored == weights or is_stated_model(inputs.text("workload.model")):
        return
    is_published = model.source not in ("", OWN_SOURCE)
    reason = (
        f"its checkpoint is {stored.upper()}" if is_published else "its config states no format"
    )
    inputs.cautions.append(
        f"model {model.id}: weights {weights.upper()}, as the workload is stated; {reason}: "
        f"--set {PRECISION}={stored} prices a checkpoint in {stored.upper()}"
    )
