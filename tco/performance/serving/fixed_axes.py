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
KEYS = (*AXES, "batch", "workers", *(PREFIX + name for name in (*AXES, "workers")))
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
    """Return the plans that fit the given axes; an unknown key, a bad value or axes that fit no
    plan raise `DataError`.
    """
    links, given = machine.links, {key: _parse_plan_axis(key, text) for key, text in plan.items()}
    for prefix in ("", PREFIX):
        if given.get(f"{prefix}tp") == 1 and not given.get(f"{prefix}ep"):
            _check_device(machine, model, given.get(f"{prefix}pp", 1), f"--plan {prefix}tp=1")
    stated, beyond = _deployment(given)
    given |= stated
    own = {key: value for key, value in given.items() if key in AXES}
    other = {
        key.removeprefix(PREFIX): value for key, value in given.items() if key.startswith(PREFIX)
    }
    readers = float(other.pop("workers", 1)) if other else None
    decode = _plans_with(model, links, own, "") if own else None
    prefill = _plans_with(model, links, other, PREFIX) if other else decode
    sequences = None
    if "batch" in given:
        if decode is None:
            raise DataError(
                "--plan: batch is given without the chips it is spread over; give tp or chips too"
            )
        sequences = given["batch"] * attention_chips(decode) / decode.chips
    engines = given.get("workers", 1 if readers or "chips" in given else None)
    return AxesGiven(
        decode, prefill, sequences, None if engines is None else float(engines), readers, beyond
    )


def _check_device(machine: Machine, model: Architecture, stages: float, where: str) -> None:
    """Refuse a model that no tensor parallelism splits where it does not fit the memory of a
    logical device, which is a part of its chip.
    """
    if machine.kernels.share is None or model.expert_parameters:
        return
    cores, device = (
        float(untraced_value(machine.kernels.part(name))) for name in ("cores", "cores_per_device")
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


def _deployment(given: Mapping[str, float]) -> tuple[dict[str, float], str]:
    """Return the chips that stated tensor and expert parallelism are a deployment of, and what was
    taken beyond them.

    One engine on these chips, without a pipeline and with as many attention groups as its experts'
    ranks hold, unless more is given.
    """
    if not {"tp", "ep"} <= set(given) or {"chips", "dp"} & set(given):
        return {}, ""
    depth = given.get("pp", 1)
    chips = max(given["tp"] * given.get("cp", 1), given["ep"]) * depth
    return (
        {
            "chips": chips,
            "pp": depth,
        },
        f"--plan is taken as one engine of {chips:g} "
        f"chips{'' if 'pp' in given else ', without a pipeline'}; chips, pp and workers say "
        "otherwise",
    )


def _parse_plan_axis(key: str, text: str) -> float:
    """Return the number of one axis, whole but for a batch, which may be a mean over time."""
    if key not in KEYS:
        axes = KEYS if nearest_name(key, KEYS) else (*AXES, "batch", "workers")
        raise unknown("axis of a serving plan", key, axes, "--plan")
    try:
        value = read_number(str(text))
    except ValueError:
        value = 0.0
    if not 1 <= value <= LARGEST or (key != "batch" and value != int(value)):
        raise DataError(
            f"--plan {key}={text}: expected a {'' if key == 'batch' else 'whole '}number from 1 to "
            f"{LARGEST:,}"
        )
    return value if key == "batch" else int(value)


def _plans_with(
    model: Architecture, links: Links, given: Mapping[str, float], prefix: str
) -> PrefillPlan:
    """Return the plans with some axes given, each axis a column."""
    if "chips" not in given and {"tp", "dp"} <= set(given):
        given = {
            **given,
            "chips": given["tp"] * given["dp"] * given.get("cp", 1) * given.get("pp", 1),
        }
    found = _built(model, given) if "chips" in given else _searchable_plan_axes(model, links, given)
    groups = found.chips / found.pipeline_parallel / attention_chips(found)
    wanted = {
        "tp": found.tensor_parallel,
        "pp": found.pipeline_parallel,
        "dp": groups,
        "cp": found.context_parallel,
    }
    kept = np.ones(found.chips.shape, dtype=bool)
    for key, axis in wanted.items():
        if key in given:
            kept &= axis == given[key]
    if "ep" in given:
        stage = layout_of(found, links).stage
        kept &= (given["ep"] <= stage) & (stage % given["ep"] == 0) & (found.expert_parallel == 0)
    if not kept.any():
        text = ",".join(f"{prefix}{key}={value}" for key, value in given.items())
        raise DataError(
            f"--plan {text}: no plan of {model.id} has these axes: tp x cp x pp divides chips, ep "
            "the chips of a stage, tp the heads"
        )
    table = PrefillPlan(*(np.broadcast_to(axis, kept.shape)[kept[:, 0]] for axis in found))
    return (
        table._replace(expert_parallel=np.full(table.chips.shape, float(given["ep"])))
        if "ep" in given
        else table
    )


def _searchable_plan_axes(
    model: Architecture, links: Links, given: Mapping[str, float]
) -> PrefillPlan:
    return plan_axes(model, links, np.inf if "cp" in given else 0)


def _built(model: Architecture, given: Mapping[str, float]) -> PrefillPlan:
    """Return the plans of so many chips, which need not be a part of the world."""
    heads = max((block.attention.heads for block in model.blocks), default=1) or 1
    sparse = any(block.feed_forward.experts for block in model.blocks)
    chips, rows = given["chips"], []
    for depth in (given["pp"],) if "pp" in given else (1, *STAGES):
        for context in (given.get("cp", 1),):
            each = chips / depth / context
            tensors = (
                (given["tp"],)
                if "tp" in given
                else (*TENSOR_PARALLEL, *(() if each in TENSOR_PARALLEL else (each,)))
            )
            for tensor in tensors:
                whole_groups = each >= 1 and each % tensor == 0
                if (
                    whole_groups
                    and heads % tensor == 0
                    and (sparse or "tp" in given or tensor == each)
                ):
                    rows.append((chips, tensor, context, depth))
    table = np.array(rows, dtype=float).reshape(-1, 4)
    zeros = np.zeros((len(table), 1))
    return PrefillPlan(*(table[:, at : at + 1] for at in range(4)))._replace(
        cut=zeros, expert_parallel=zeros
    )
