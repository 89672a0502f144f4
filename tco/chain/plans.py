"""A plan in a file: the record that an evaluation chose, as tables of numbers and texts, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tco.foundation.errors import DataError
from tco.performance.serving.plans import DecodePlan, PrefillPlan, ServingPlan

MAY_BE_ZERO = frozenset(("cut", "expert_parallel", "order", "zero", "sequence_parallel", "overlap", "offload", "hybrid", "share"))


def plain_plan(plan: Any) -> Any:
    """Return a plan as tables of numbers and texts, phase by phase where it has some."""
    if hasattr(plan, "_asdict"):
        return {name: plain_plan(value) for name, value in plan._asdict().items()}
    return plan


def plan_from(found: Any, where: str = "plan") -> Any:
    """Return the record of a plan that `plain_plan` wrote, none of none; anything else raises `DataError`."""
    if found is None:
        return None
    if is_serving(found):
        phases = {name: filled(kind, found.get(name), f"{where}: {name}", {}) for name, kind in (("decode", DecodePlan), ("prefill", PrefillPlan))}
        rest = {name: value for name, value in found.items() if name not in phases}
        return filled(ServingPlan, phases | rest, where, {"engines": None, "readers": None})
    if is_training(found):
        from tco.performance.training.plans import RECOMPUTE, SCHEDULES, Plan

        return filled(Plan, found, where, {"schedule": SCHEDULES, "recompute": RECOMPUTE, "share": None})
    raise DataError(f"{where} is no plan: it is neither of serving nor of training; `Result.save` writes one")


def is_serving(found: Any) -> bool:
    """Say whether a table is a plan of serving."""
    return isinstance(found, Mapping) and "decode" in found


def is_training(found: Any) -> bool:
    """Say whether a table is a plan of training."""
    return isinstance(found, Mapping) and "tensor" in found


def plan_for(kind: str, plan: Any) -> Any:
    """Return the plan an evaluation of one kind of workload takes, axes that somebody fixes among them; that of the other kind raises `DataError`."""
    found = plan_from(plan) if is_serving(plan) or is_training(plan) else plan
    if hasattr(found, "_asdict") and isinstance(found, ServingPlan) != (kind == "serving"):
        raise DataError(f"a plan of {'serving' if isinstance(found, ServingPlan) else 'training'} is given, the workload is {kind}")
    return found


def filled(kind: type, found: Any, where: str, other: Mapping[str, tuple[str, ...] | None]) -> Any:
    """Return a record of numbers; `other` fields take one of some words, or may be null."""
    names = kind._fields  # type: ignore[attr-defined]
    if not isinstance(found, Mapping) or set(found) != set(names):
        raise DataError(f"{where} is no plan: expected a table of {', '.join(names)}; `Result.save` writes one")
    for name, value in found.items():
        words = other.get(name, ())
        if words:
            if value not in words:
                raise DataError(f"{where}: {name} is {value!r}, expected one of {', '.join(words)}")
        elif not isinstance(value, tuple) and not (value is None and words is None) and not is_count(value, 0 if name in MAY_BE_ZERO else 1):
            raise DataError(f"{where}: {name} is {str(value)[:60]!r}, expected a number from {0 if name in MAY_BE_ZERO else 1} on")
    return kind(**found)


def is_count(value: Any, least: float) -> bool:
    """Say whether a value is a finite number that is not below the least."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= least
