"""Notes on settings without effect, and what-if checks of fixed plans.

A setting may have no effect because the answer does not read its input. The input may also be read
to check or to choose, and the choice stays. Or it enters a formula in which another side binds. A
fixed plan may no longer fit memory, meet its target, or follow the input that decided it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import isclose
from typing import TYPE_CHECKING

from tco.core.errors import DataError
from tco.core.inputs import Values
from tco.core.trace import walk
from tco.core.types import JsonMapping, Settings
from tco.performance.serving.record import ServingResult
from tco.scenario.choices import DOCUMENTS, TEXTS
from tco.scenario.metrics import PERFORMANCE
from tco.scenario.result import Result
from tco.scenario.workload import job_on, server_of, workload_kind

if TYPE_CHECKING:
    from tco.scenario.resolved import ResolvedScenario

GB = 1e9
Ask = Callable[..., Result]  # takes settings, and the structure to hold if any
BY_MONTH = "money."  # inputs of the money by month, and of what a hall earns


def unmoved(result: Result, paths: Iterable[str], settings: Settings, ask: Ask) -> list[str]:
    """Return a note on each of some settings that the answer reads, and without which all metrics
    are what they are with it.
    """
    reasons = {
        path: why_unmoved(path, result, settings, ask) for path in paths if path not in DOCUMENTS
    }
    return [
        f"{path} is set, but moves no metric here: {why}" for path, why in reasons.items() if why
    ]


def why_unmoved(path: str, result: Result, settings: Settings, ask: Ask) -> str:
    """Return the reason that a setting changes no metric, or empty text.

    The text is empty where the setting changes a metric, equals the value without it, or already
    has a note. It is also empty where there is no answer without the setting.
    """
    if path in TEXTS and path not in result.texts:
        return "nothing in this answer reads it"
    if any(note.startswith(f"{path} is set") for note in result.notes):
        return ""
    others = {other: setting for other, setting in settings.items() if other != path}
    try:
        if path not in TEXTS and metrics_differ(result, ask(others, structure=result.structure)):
            return ""
        without = ask(others)
    except DataError:  # there is no answer without it
        return ""
    if metrics_differ(result, without):
        return ""
    if path in TEXTS and result.texts[path] == without.texts.get(path):
        return ""  # it is what it is without being set
    if (
        path not in TEXTS
        and path in without.inputs
        and same(result.inputs[path].value, without.inputs[path].value)
    ):
        return ""
    if path.startswith(BY_MONTH):
        return "the money by month and the margin of a site rest on it, no metric does"
    return (
        "it is read to choose, and the choice stays"
        if path in TEXTS
        else where_it_ends(path, result, settings, others, ask)
    )


def metrics_differ(one: Result, other: Result) -> bool:
    """Say whether two answers differ in a metric."""
    return any(not same(value, other.metrics[name]) for name, value in one.metrics.items())


def same(one: float | None, other: float | None) -> bool:
    """Say whether two values of a metric are one but for rounding."""
    return one == other if one is None or other is None else isclose(one, other, rel_tol=1e-12)


def where_it_ends(
    path: str, result: Result, settings: Settings, others: JsonMapping, ask: Ask
) -> str:
    """Return at which cell of the trace the way of an input to the metrics ends, or that it is in
    none.
    """
    now, before = (
        {
            node.id: node
            for root in ask(some, structure=result.structure, trace=True).nodes.values()
            for node in walk(root)
        }
        for some in (settings, others)
    )
    moved = {
        name
        for name, node in now.items()
        if node.path == path or (name in before and not same(node.value, before[name].value))
    }
    ends = [
        node
        for name, node in now.items()
        if name not in moved and any(inner.id in moved for _, inner in node.inputs)
    ]
    if not ends:
        return "it is read to check or to choose, and all that is chosen stays"
    more = f", as do {len(ends) - 1} more" if len(ends) > 1 else ""
    return (
        f"it is read but does not bind: {ends[0].id} stays {ends[0].value:.4g} {ends[0].unit}".rstrip()
        + more
    )


# ---------------------------------------------------------------- with all that was decided held
def holding(
    result: Result,
    settings: Mapping[str, str],
    what_if: Mapping[str, str],
    inputs: ResolvedScenario,
    ask: Ask,
) -> Result:
    """Return an answer with some inputs replaced, `inputs` being read with them, and its structure
    held.

    A plan that memory no longer holds gives nothing. Where an input only decides what is held, or a
    target is missed, a note says so.
    """
    asked, same = {**settings, **what_if}, partial(ask, structure=result.structure)
    held, values = same(asked), inputs.values()
    if held.plan is not None and held.structure is not None:
        need, have = needed_and_usable_memory(inputs, values, held)
        if need > have:
            reason = (
                f"the plan that is held needs {need / GB:.1f} GB a chip, {have / GB:.1f} GB "
                "are usable: --set chooses another"
            )
            metrics = {
                name: None if name in PERFORMANCE else value for name, value in held.metrics.items()
            }
            none, nothing = (
                held.structure._replace(plan=None),
                workload_kind(inputs).without_plan(reason),
            )
            return replace(
                held,
                metrics=metrics,
                notes=[*held.notes, reason],
                serving=nothing,
                bounds={},
                plan=None,
                structure=none,
            )
    decided = [
        path
        for path in what_if
        if not metrics_differ(
            held, same({**settings, **{one: text for one, text in what_if.items() if one != path}})
        )
        and metrics_differ(result, ask({**settings, path: what_if[path]}))
    ]
    held.notes = [
        note
        for note in held.notes
        if not note.startswith(tuple(f"{path} is set" for path in decided))
    ]
    held.notes += [
        f"{path} moves nothing here: it decides the plan and the choices that are held; --set "
        f"{path} chooses anew"
        for path in decided
    ]
    held.notes += [
        *unmoved(held, [path for path in what_if if path not in decided], asked, same),
        *missed(values, held),
    ]
    return held


def needed_and_usable_memory(
    inputs: ResolvedScenario, values: Values, held: Result
) -> tuple[float, float]:
    """Return needed and usable memory of the plan, in bytes per chip."""
    if isinstance(held.serving, ServingResult):
        machine, _ = server_of(inputs, values)
        passes = held.serving.phases().values()
        return max((float(one.memory) for one in passes), default=0.0), float(machine.memory)
    from tco.performance.training.result import train  # most scenarios serve

    job, reached, formats = job_on(inputs, values)
    return float(train(job, reached, formats, held.plan).hbm_bytes_used), float(reached.memory)


def missed(values: Values, held: Result) -> Iterator[str]:
    """Yield the targets that a plan which is held no longer meets."""
    for metric, path, more, unit in (
        ("tokens_per_s_per_user", "workload.interactivity", 1, "tokens/s a user"),
        ("ttft_s", "workload.ttft", -1, "s"),
    ):
        got = held.metrics[metric]
        asked = 0.0 if got is None else float(values[path])
        if got is not None and asked and more * got < more * asked * (1 - more * 1e-6):
            yield (
                f"the plan that is held gives {got:.4g} {unit} where {path} asks for "
                f"{asked:.4g}: --set chooses another"
            )
