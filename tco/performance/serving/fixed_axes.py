"""A plan as a user gives it: some of its axes fixed by name, the rest left to the search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tco.core.errors import DataError, nearest_name, unknown
from tco.core.trace import untraced_value
from tco.core.types import Quantity
from tco.core.units import read_number
from tco.fabric.links import Links
from tco.models.architecture import Architecture
from tco.performance.chip.roofline import weight_bytes
from tco.performance.layer.chip_model import Machine
from tco.performance.serving.plans import (
    STAGES,
    TENSOR_PARALLEL,
    PrefillPlan,
    attention_chips,
    layout_of,
    plan_axes,
)
from tco.system.bill import device_capacity

AXES = ("chips", "tp", "pp", "dp", "ep", "cp")
PREFIX = "prefill_"  # of the axes of a pool of its own that reads prompts
KEYS = (*AXES, "batch", "workers", *(PREFIX + axis_name for axis_name in (*AXES, "workers")))
LARGEST = 2**20  # of any axis


class AxesGiven(NamedTuple):
    """The plans that the given axes leave, and the numbers given beside them."""

    decode: PrefillPlan | None
    prefill: PrefillPlan | None
    sequences: Quantity | None = None  # of an attention group, for each plan
    engines: float | None = None
    readers: float | None = None  # a pool of its own reads prompts
    beyond: str = ""  # what was taken beyond the given axes


def axes_given(machine: Machine, model: Architecture, plan: Mapping[str, str]) -> AxesGiven:
    """Return the plans that fit the given axes.

    An unknown key, a bad value or axes that fit no plan raise `DataError`.
    """
    links = machine.links
    axis_values = {
        axis_key: _parse_plan_axis(axis_key, axis_text) for axis_key, axis_text in plan.items()
    }
    for prefix in ("", PREFIX):
        if axis_values.get(f"{prefix}tp") == 1 and not axis_values.get(f"{prefix}ep"):
            _check_device(machine, model, axis_values.get(f"{prefix}pp", 1), f"--plan {prefix}tp=1")
    stated, beyond = _deployment(axis_values)
    axis_values |= stated
    decode_values = {
        axis_key: axis_value for axis_key, axis_value in axis_values.items() if axis_key in AXES
    }
    prefill_values = {
        axis_key.removeprefix(PREFIX): axis_value
        for axis_key, axis_value in axis_values.items()
        if axis_key.startswith(PREFIX)
    }
    readers = float(prefill_values.pop("workers", 1)) if prefill_values else None
    decode = _plans_with(model, links, decode_values, "") if decode_values else None
    prefill = _plans_with(model, links, prefill_values, PREFIX) if prefill_values else decode
    sequences = None
    if "batch" in axis_values:
        if decode is None:
            raise DataError(
                "--plan: batch is given without the chips it is spread over; give tp or chips too"
            )
        sequences = axis_values["batch"] * attention_chips(decode) / decode.chips
    engines = axis_values.get("workers", 1 if readers or "chips" in axis_values else None)
    return AxesGiven(
        decode, prefill, sequences, None if engines is None else float(engines), readers, beyond
    )


def _check_device(machine: Machine, model: Architecture, stages: float, where: str) -> None:
    """Refuse an unsplit model that does not fit the memory of a logical device.

    A logical device is a part of its chip.
    """
    if machine.kernels.share is None or model.expert_parameters:
        return
    cores, device = (
        float(untraced_value(machine.kernels.part(core_attribute)))
        for core_attribute in ("cores", "cores_per_device")
    )
    have = float(untraced_value(device_capacity(machine.memory, device, cores)))
    need = float(
        untraced_value(
            weight_bytes(
                model.parameters, 0, stages, 1, machine.attention_size, machine.expert_size
            )
        )
    )
    if need > have:
        raise DataError(
            f"{where}: {model.id} does not fit the memory of a logical device of {device:g} cores "
            f"unsplit: {need / 1e9:.1f} GB of weights, "
            f"{have / 1e9:.1f} GB usable of it; expected tp=2 or more, which splits it over "
            f"{2 * cores / device:g} devices of two chips, or pp"
        )


def _deployment(axis_values: Mapping[str, float]) -> tuple[dict[str, float], str]:
    """Return the chips that tensor and expert parallelism imply, and a note on what is assumed.

    One engine on these chips, without a pipeline and with as many attention groups as its experts'
    ranks hold, unless more is given.
    """
    if not {"tp", "ep"} <= set(axis_values) or {"chips", "dp"} & set(axis_values):
        return {}, ""
    depth = axis_values.get("pp", 1)
    chips = max(axis_values["tp"] * axis_values.get("cp", 1), axis_values["ep"]) * depth
    return (
        {
            "chips": chips,
            "pp": depth,
        },
        f"--plan is taken as one engine of {chips:g} "
        f"chips{'' if 'pp' in axis_values else ', without a pipeline'}; chips, pp and workers say "
        "otherwise",
    )


def _parse_plan_axis(axis_key: str, axis_text: str) -> float:
    """Return the number of one axis, whole but for a batch, which may be a mean over time."""
    if axis_key not in KEYS:
        axes = KEYS if nearest_name(axis_key, KEYS) else (*AXES, "batch", "workers")
        raise unknown("axis of a serving plan", axis_key, axes, "--plan")
    try:
        axis_value = read_number(str(axis_text))
    except ValueError:
        axis_value = 0.0
    if not 1 <= axis_value <= LARGEST or (axis_key != "batch" and axis_value != int(axis_value)):
        raise DataError(
            f"--plan {axis_key}={axis_text}: expected a "
            f"{'' if axis_key == 'batch' else 'whole '}number from 1 to {LARGEST:,}"
        )
    return axis_value if axis_key == "batch" else int(axis_value)


def _plans_with(
    model: Architecture, links: Links, axis_values: Mapping[str, float], prefix: str
) -> PrefillPlan:
    """Return the plans with some axes given, each axis a column."""
    if "chips" not in axis_values and {"tp", "dp"} <= set(axis_values):
        axis_values = {
            **axis_values,
            "chips": axis_values["tp"]
            * axis_values["dp"]
            * axis_values.get("cp", 1)
            * axis_values.get("pp", 1),
        }
    candidate_plans = (
        _built(model, axis_values)
        if "chips" in axis_values
        else plan_axes(model, links, np.inf if "cp" in axis_values else 0)
    )
    groups = (
        candidate_plans.chips / candidate_plans.pipeline_parallel / attention_chips(candidate_plans)
    )
    axes_by_key = {
        "tp": candidate_plans.tensor_parallel,
        "pp": candidate_plans.pipeline_parallel,
        "dp": groups,
        "cp": candidate_plans.context_parallel,
    }
    row_mask = np.ones(candidate_plans.chips.shape, dtype=bool)
    for axis_key, axis in axes_by_key.items():
        if axis_key in axis_values:
            row_mask &= axis == axis_values[axis_key]
    if "ep" in axis_values:
        stage = layout_of(candidate_plans, links).stage
        row_mask &= (
            (axis_values["ep"] <= stage)
            & (stage % axis_values["ep"] == 0)
            & (candidate_plans.expert_parallel == 0)
        )
    if not row_mask.any():
        axes_text = ",".join(
            f"{prefix}{axis_key}={axis_value}" for axis_key, axis_value in axis_values.items()
        )
        raise DataError(
            f"--plan {axes_text}: no plan of {model.id} has these axes: tp x cp x pp divides "
            "chips, ep the chips of a stage, tp the heads"
        )
    table = PrefillPlan(
        *(np.broadcast_to(axis, row_mask.shape)[row_mask[:, 0]] for axis in candidate_plans)
    )
    return (
        table._replace(expert_parallel=np.full(table.chips.shape, float(axis_values["ep"])))
        if "ep" in axis_values
        else table
    )


def _built(model: Architecture, axis_values: Mapping[str, float]) -> PrefillPlan:
    """Return the plans of so many chips, which need not be a part of the world."""
    heads = max((block.attention.heads for block in model.blocks), default=1) or 1
    chips, plan_rows = axis_values["chips"], []
    for depth in (axis_values["pp"],) if "pp" in axis_values else (1, *STAGES):
        for context in (axis_values.get("cp", 1),):
            context_rank_chips = chips / depth / context
            tensors = (
                (axis_values["tp"],)
                if "tp" in axis_values
                else (
                    *TENSOR_PARALLEL,
                    *(() if context_rank_chips in TENSOR_PARALLEL else (context_rank_chips,)),
                )
            )
            for tensor in tensors:
                whole_groups = context_rank_chips >= 1 and context_rank_chips % tensor == 0
                if (
                    whole_groups
                    and heads % tensor == 0
                    and (model.has_experts or "tp" in axis_values or tensor == context_rank_chips)
                ):
                    plan_rows.append((chips, tensor, context, depth))
    table = np.array(plan_rows, dtype=float).reshape(-1, 4)
    zeros = np.zeros((len(table), 1))
    return PrefillPlan(
        *(table[:, column_index : column_index + 1] for column_index in range(4))
    )._replace(cut=zeros, expert_parallel=zeros)
