"""Inputs replaced with all that was decided held, and what a plan then no longer does: fit memory, meet its target, follow what decided it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from tco.chain.inputs import Inputs
from tco.chain.metrics import PERFORMANCE
from tco.chain.result import Result
from tco.chain.workloads import job_on, server_of, without_plan
from tco.foundation.values import Values, as_number
from tco.performance.serving.answer import ServingResult
from tco.studies.unmoved import Ask, moves, unmoved

GB = 1e9


def holding(result: Result, settings: Mapping[str, str], what_if: Mapping[str, str], inputs: Inputs, ask: Ask) -> Result:
    """Return an answer with some inputs replaced, `inputs` being read with them, and its structure held.

    A plan that memory no longer holds gives nothing. Where an input only decides what is held, or a target is missed, a note says so.
    """
    asked, same = {**settings, **what_if}, partial(ask, structure=result.structure)
    held, values = same(asked), inputs.values(as_number)
    if held.plan is not None and held.structure is not None:
        need, have = memory_of(inputs, values, held)
        if need > have:
            reason = f"the plan that is held needs {need / GB:.1f} GB a chip, {have / GB:.1f} GB are usable: --set chooses another"
            metrics = {name: None if name in PERFORMANCE else value for name, value in held.metrics.items()}
            none, nothing = held.structure._replace(plan=None), without_plan(inputs.kind, reason)
            return replace(held, metrics=metrics, notes=[*held.notes, reason], serving=nothing, bounds={}, plan=None, structure=none)
    decided = [
        path
        for path in what_if
        if not moves(held, same({**settings, **{one: text for one, text in what_if.items() if one != path}}))
        and moves(result, ask({**settings, path: what_if[path]}))
    ]
    held.notes = [note for note in held.notes if not note.startswith(tuple(f"{path} is set" for path in decided))]
    held.notes += [f"{path} moves nothing here: it decides the plan and the choices that are held; --set {path} chooses anew" for path in decided]
    held.notes += [*unmoved(held, [path for path in what_if if path not in decided], asked, same), *missed(values, held)]
    return held


def memory_of(inputs: Inputs, values: Values, held: Result) -> tuple[float, float]:
    """Return what the plan of an answer needs of a chip's memory, and what is usable."""
    if isinstance(held.serving, ServingResult):
        machine, _ = server_of(inputs, values)
        passes = held.serving.phases().values()
        return max((float(one.memory) for one in passes), default=0.0), float(machine.memory)
    from tco.performance.training.result import train  # most scenarios serve

    job, reached, formats = job_on(inputs, values)
    return float(train(job, reached, formats, held.plan).held), float(reached.memory)


def missed(values: Values, held: Result) -> Iterator[str]:
    """Yield the targets that a plan which is held no longer meets."""
    for metric, path, more, unit in (("tokens_per_s_per_user", "workload.interactivity", 1, "tokens/s a user"), ("ttft_s", "workload.ttft", -1, "s")):
        got = held.metrics[metric]
        asked = 0.0 if got is None else float(values[path])
        if got is not None and asked and more * got < more * asked * (1 - more * 1e-6):
            yield f"the plan that is held gives {got:.4g} {unit} where {path} asks for {asked:.4g}: --set chooses another"
