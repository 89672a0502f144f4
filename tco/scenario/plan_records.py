"""Plans as records: read from tables of numbers and texts, and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tco.core.errors import DataError
from tco.performance.serving.plans import DecodePlan, PrefillPlan, ServingPlan
from tco.scenario.workload import kind_of_plan

MAY_BE_ZERO = frozenset(
    (
        "cut",
        "expert_parallel",
        "order",
        "zero",
        "sequence_parallel",
        "overlap",
        "offload",
        "hybrid",
        "share",
        "drafts",
        "chosen",
    )
)


def plan_from(plan_table: Any, where: str = "plan") -> Any:
    """Return the record of a plan that `plain_plan` wrote.

    Args:
        plan_table: Table of the plan, or None.
        where: Place of the table, which opens an error.

    Returns:
        Plan of serving or training; None for None.

    Raises:
        DataError: `plan_table` is no plan.

    """
    if plan_table is None:
        return None
    kind = kind_of_plan(plan_table)
    if kind == "serving":
        phases = {
            phase_name: _parse_plan_record(
                kind, plan_table.get(phase_name), f"{where}: {phase_name}", {}
            )
            for phase_name, kind in (("decode", DecodePlan), ("prefill", PrefillPlan))
        }
        rest = {"stated": False, "flight": None} | {
            field_name: field_value
            for field_name, field_value in plan_table.items()
            if field_name not in phases
        }
        free: dict[str, tuple[Any, ...] | None] = {
            "engines": None,
            "readers": None,
            "flight": None,
            "stated": (True, False),
        }
        return _parse_plan_record(ServingPlan, phases | rest, where, free)
    if kind == "training":
        from tco.performance.training.plans import RECOMPUTE, SCHEDULES, TrainingPlan

        return _parse_plan_record(
            TrainingPlan,
            {"chosen": 0} | dict(plan_table),
            where,
            {"schedule": SCHEDULES, "recompute": RECOMPUTE, "share": None},
        )
    raise DataError(
        f"{where} is no plan: it is neither of serving nor of training; `Result.save` writes one"
    )


def plan_for(kind: str, plan: Any) -> Any:
    """Return the plan that an evaluation of a kind of workload takes.

    Args:
        kind: Kind of the workload, `serving` or `training`.
        plan: Plan as a record or table, fixed axes by name, or None.

    Returns:
        Plan as a record; fixed axes and None are returned as they are.

    Raises:
        DataError: The plan is of the other kind, or its table is no plan.

    """
    # the axes that --plan names are texts
    is_typed = isinstance(plan, Mapping) and all(isinstance(axis, str) for axis in plan.values())
    plan_kind = None if is_typed else kind_of_plan(plan)
    plan_record = plan_from(plan) if plan_kind and isinstance(plan, Mapping) else plan
    if plan_kind and plan_kind != kind:
        raise DataError(f"a plan of {plan_kind} is given, the workload is {kind}")
    return plan_record


def _parse_plan_record(
    kind: type, plan_table: Any, where: str, worded_fields: Mapping[str, tuple[Any, ...] | None]
) -> Any:
    """Return a record of numbers; `worded_fields` fields take one of some words, or may be null."""
    field_names = kind._fields  # type: ignore[attr-defined]
    if not isinstance(plan_table, Mapping) or set(plan_table) != set(field_names):
        raise DataError(
            f"{where} is no plan: expected a table of {', '.join(field_names)}; `Result.save` "
            "writes one"
        )
    for field_name, field_value in plan_table.items():
        words = worded_fields.get(field_name, ())
        if words:
            if field_value not in words:
                raise DataError(
                    f"{where}: {field_name} is {field_value!r}, expected one of "
                    f"{', '.join(map(str, words))}"
                )
        elif (
            not isinstance(field_value, tuple)
            and not (field_value is None and words is None)
            and not _is_number_at_least(field_value, 0 if field_name in MAY_BE_ZERO else 1)
        ):
            raise DataError(
                f"{where}: {field_name} is {str(field_value)[:60]!r}, expected a number from "
                f"{0 if field_name in MAY_BE_ZERO else 1} on"
            )
    return kind(**plan_table)


def _is_number_at_least(field_value: Any, least: float) -> bool:
    """Say whether a value is a finite number that is not below the least."""
    return (
        isinstance(field_value, (int, float))
        and not isinstance(field_value, bool)
        and math.isfinite(field_value)
        and field_value >= least
    )
