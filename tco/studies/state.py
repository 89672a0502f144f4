"""The state of a result: its metrics and all they rest on, small enough to keep, plain enough to compare, whole enough to evaluate again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.chain.metrics import AGAINST_BASELINE
from tco.chain.result import Result
from tco.chain.saved import hold, is_number
from tco.chain.structure import plain_plan, plan_from
from tco.foundation.errors import DataError
from tco.foundation.provenance import making

if TYPE_CHECKING:
    from tco.catalog import Catalogue

STATE = {  # what a state is made of
    **dict.fromkeys(("tco_version", "data_hash", "system"), "a text"),
    **dict.fromkeys(("documents", "variant", "alternatives", "texts", "formulas"), "a table of texts"),
    **dict.fromkeys(("metrics", "quantities"), "a table of numbers"),
    "rebates": "a list of texts",
    "plan": "a table or null",
    "inputs": "a table",
}


def rounded(value: float) -> float:
    """Return a number at the 12 significant digits files keep."""
    return float(f"{value:.12g}")


def state_of(result: Result, fingerprints: bool = True) -> dict[str, Any]:
    """Return metrics, what was asked for, and all inputs in the units they are written in, in a stable order.

    What holds a scenario against another is left out: it is found anew wherever some stand side by side. Fingerprints of the formulas take
    a trace, so who may do without them says so.
    """
    origin, own = result.origin, sorted(path for path, given in result.inputs.items() if given.overlay)
    return {
        **({"own": own} if own else {}),  # the inputs that are a person's own
        "tco_version": origin.version if origin else "",
        "data_hash": origin.data_hash() if origin else "",
        "system": result.system,
        "documents": dict(sorted(origin.documents.items())) if origin else {},
        "variant": dict(sorted(origin.variant.items())) if origin else {},
        "rebates": [rebate.path.removeprefix("rebates.") for rebate in result.rebates],
        "plan": plain_plan(result.plan),
        "alternatives": dict(sorted(result.structure.alternatives.items())) if result.structure else {},
        "metrics": {name: rounded(value) for name, value in result.metrics.items() if value is not None and name not in AGAINST_BASELINE},
        "texts": dict(sorted(result.texts.items())),
        "quantities": quantities(result.bill),
        "inputs": {path: list(given.shown or (given.value, given.unit)) for path, given in sorted(result.inputs.items())},
        "formulas": dict(sorted(origin.formulas().items())) if origin and fingerprints else {},
    }


def quantities(bill: Any) -> dict[str, float]:
    """Return how many of each part stand at each place of the tree."""
    return {path: rounded(quantity) for path, quantity in sorted((line.path, line.quantity) for line in (bill.lines if bill else ()))}


def refuse_broken(state: Any, where: str) -> None:
    """Refuse what is no state, or lacks a part of one."""
    if not isinstance(state, dict):
        raise DataError(f"{where}: {str(state)[:60]!r}, expected a table")
    hold(state, STATE, where)
    plan_from(state["plan"], f"{where}: plan")
    if making.get() and state.get("own") and "withheld" not in state:
        raise DataError(f"{where}: was saved with values of your own, and nothing can stand in their place; save it with --redact")
    for path, given in state["inputs"].items():
        if not (isinstance(given, list) and len(given) == 2 and is_number(given[0]) and isinstance(given[1], str)):
            raise DataError(f"{where}: {path} is {str(given)[:60]!r}, expected a number and its unit")


class Again(NamedTuple):
    """A state evaluated anew."""

    metrics: dict[str, float]
    quantities: dict[str, float]
    workload: Any  # what the chips do, which rests on these inputs alone
    rests_on: frozenset[str]


def again(state: Mapping[str, Any], kept: Mapping[str, str], catalogue: Catalogue, found: Again | None = None) -> Again:
    """Evaluate a state with today's program and data: what it was asked for, on texts and quantities as `kept`.

    A workload `found` before is taken as it is: prices do not change it.
    """
    from tco.chain.inputs import Inputs, Scenario
    from tco.chain.scenario import run

    asked = Scenario("kept", "kept", state["system"], dict(state["documents"]), tuple(state["rebates"]), dict(state["variant"]), {}, "kept")
    inputs = Inputs(catalogue, asked, {}, {}, kept=kept)
    if found is None:
        values = inputs.values()
        workload = inputs.workload.walk(inputs, values, None)
        rests_on = frozenset(values.inputs) | inputs.judged
    else:
        workload, rests_on = found.workload, found.rests_on
    chain = run(inputs, inputs.values(), None, workload)
    metrics = {name: float(value) for name, value in chain.metrics.items() if value is not None}
    return Again(metrics, quantities(chain.bill), workload, rests_on)
