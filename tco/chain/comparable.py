"""Whether a performance per cost of two results says anything: it does where one owner pays, at one date, for the same work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tco.economics.rent import CIRCULAR
from tco.foundation.dates import period

if TYPE_CHECKING:
    from tco.chain.result import Result

# What the same work is, whoever does it and however: what is asked for, not the formats, the software or the plan that answer it.
WORK = ("kind", "model", "input_tokens", "output_tokens", "cache_hit", "interactivity", "ttft", "offline", "global_batch", "sequence_length")
SAME = ("terms.date", "terms.perspective", "terms.owner", *(f"workload.{name}" for name in WORK))


def apart(result: Result, other: Result) -> str | None:
    """Say what keeps two results from being held against each other, if anything does."""
    for path in SAME:
        if meaning(result, path) != meaning(other, path):
            return f"its {path} is {words(result, path)}, that of {other.scenario} {words(other, path)}"
    circular = next((one for one in (result, other) if result is not other and any(CIRCULAR in line.sources for line in one.lines)), None)
    return None if circular is None else f"the rent of {circular.scenario} follows from this program's own cost"


def meaning(result: Result, path: str) -> Any:
    """Return a value as it counts: two ways to write one day are one."""
    if path == "terms.date":
        return period(result.texts[path], path).last
    given = result.inputs.get(path)
    return result.texts.get(path) if given is None else given.value


def words(result: Result, path: str) -> str:
    """Return a value as a person reads it."""
    given = result.inputs.get(path)
    if given is None:
        return result.texts.get(path, "not stated")
    value, unit = given.shown or (given.value, given.unit)
    return f"{value:g} {unit}".rstrip()
