"""Axes of a training plan that somebody fixes: their names, the values they take, and what they leave of a choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tco.foundation.errors import DataError, unknown

SCHEDULES = ("1f1b", "interleaved", "zero-bubble", "dual-pipe")
RECOMPUTE = ("none", "selective", "full", "partial")  # the last: as many layers in full as memory asks for, nothing of the others
ORDERS = ("tp-cp-dp-pp", "tp-cp-pp-dp")  # innermost on the fabric first; expert groups lie on the ranks of tp, cp and dp
COUNTS = {
    "tp": "tensor",
    "cp": "context",
    "pp": "pipeline",
    "dp": "data",
    "ep": "expert",
    "micro_batch": "micro_batch",
    "interleave": "interleave",
    "vp": "interleave",
    "zero": "zero",
}
FLAGS = {"sequence_parallel": "sequence_parallel", "tp_overlap": "overlap", "optimizer_offload": "offload", "hybrid_sharding": "hybrid"}
WORDS = {"schedule": SCHEDULES, "recompute": RECOMPUTE, "order": ORDERS}
ANSWERS = {"yes": 1, "no": 0, "true": 1, "false": 0, "1": 1, "0": 0}
LEVELS = (0, 1, 2, 3)  # of sharding


class Fixed(NamedTuple):
    """The values that axes of a plan may take, by the field of a plan; an axis that is not named is free."""

    axes: Mapping[str, tuple[Any, ...]]

    def has(self, axis: str) -> bool:
        """Say whether an axis is fixed."""
        return axis in self.axes

    def allows(self, axis: str, value: Any) -> bool:
        """Say whether an axis may take a value."""
        return axis not in self.axes or value in self.axes[axis]

    def among(self, axis: str, choices: Iterable[Any]) -> tuple[Any, ...]:
        """Return what is left of some choices; a choice that only a fixed axis has is taken as it is."""
        if axis in ("offload", "hybrid", "zero", "sequence_parallel", "overlap", "recompute") and axis in self.axes:
            return self.axes[axis]
        return tuple(value for value in choices if self.allows(axis, value))


ALL_FREE = Fixed({})


def fixed_axes(plan: Mapping[str, str]) -> Fixed:
    """Return the axes that `--plan` fixes; an unknown name or value raises `DataError`. Several values of one axis are joined by `|`."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, text in plan.items():
        field = COUNTS.get(name) or FLAGS.get(name) or (name if name in WORDS else None)
        if field is None:
            raise unknown("axis of a training plan", name, [*COUNTS, *FLAGS, *WORDS], "--plan")
        if field in found:
            raise DataError(f"--plan {name}={text}: interleave is given twice")
        found[field] = tuple(value_of(name, part.strip()) for part in str(text).split("|"))
    return Fixed(found)


def value_of(name: str, text: str) -> Any:
    """Return the value of an axis; one that it cannot take raises `DataError`."""
    where = f"--plan {name}={text}"
    if name in WORDS:
        if text == "1f1b-interleaved":
            text = "interleaved"
        if text not in WORDS[name]:
            raise unknown(name, text, WORDS[name], "--plan")
        return ORDERS.index(text) if name == "order" else text
    if name in FLAGS:
        if text.lower() not in ANSWERS:
            raise DataError(f"{where}: expected yes or no")
        return ANSWERS[text.lower()]
    if not text.isdigit() or (name != "zero" and int(text) < 1) or (name == "zero" and int(text) not in LEVELS):
        raise DataError(f"{where}: expected {'0, 1, 2 or 3' if name == 'zero' else 'a whole number from 1 on'}")
    return int(text)
