"""States: the metrics of a result with all that they depend on, as tables that a file can keep.

A state is small enough to keep, plain enough to compare, and complete enough to evaluate again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tco.core.errors import DataError, KeptBackError
from tco.core.provenance import making
from tco.core.types import JsonMapping, JsonObject
from tco.scenario.document import Scenario
from tco.scenario.metrics import AGAINST_BASELINE
from tco.scenario.plan_records import plan_from
from tco.scenario.resolve import resolve_scenario
from tco.scenario.result import Origin
from tco.scenario.run_chain import run
from tco.scenario.saved import HOLDS, SHOWN, hold
from tco.scenario.structure import plain_plan

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.scenario.chain import Chain
    from tco.scenario.result import Result
    from tco.system.bill import Bill

STATE_KINDS = {  # key of a state -> kind of its value, as `hold` knows it
    **dict.fromkeys(("tco_version", "data_hash", "system"), "a text"),
    **dict.fromkeys(
        ("documents", "variant", "alternatives", "texts", "formulas"), "a table of texts"
    ),
    **dict.fromkeys(("metrics", "quantities"), "a table of numbers"),
    **dict.fromkeys(("rebates", "own", "withheld"), "a list of texts"),
    "plan": "a table or null",
    "inputs": "a table",
}


def state_of(scenario_result: Result, fingerprints: bool = True) -> JsonObject:
    """Return metrics, request and inputs of a result in stable order.

    Metrics against a baseline are left out, because each comparison computes these metrics anew.

    Args:
        scenario_result: Result of a scenario.
        fingerprints: Whether to add fingerprints of the formulas, which take a trace.

    Returns:
        State as tables, texts and numbers, with the keys of `STATE_KINDS`; inputs stand in the
        units of their rows or settings. The key `own` lists inputs of the user, where the user has
        any.

    """
    origin = scenario_result.origin or Origin({}, {}, {}, str, dict, "")
    user_paths = sorted(
        path for path, input_value in scenario_result.inputs.items() if input_value.overlay
    )
    alternatives = scenario_result.structure.alternatives if scenario_result.structure else {}
    return {
        **({"own": user_paths} if user_paths else {}),
        "tco_version": origin.version,
        "data_hash": origin.data_hash(),
        "system": scenario_result.system,
        "documents": _sorted_table(origin.documents),
        "variant": _sorted_table(origin.variant),
        "rebates": [rebate.path.removeprefix("rebates.") for rebate in scenario_result.rebates],
        "plan": plain_plan(scenario_result.plan),
        "alternatives": _sorted_table(alternatives),
        "metrics": {
            metric_name: _round_saved_number(metric_value)
            for metric_name, metric_value in scenario_result.metrics.items()
            if metric_value is not None and metric_name not in AGAINST_BASELINE
        },
        "texts": _sorted_table(scenario_result.texts),
        "quantities": quantities_by_path(scenario_result.bill),
        "inputs": {
            path: list(input_value.stated_quantity or (input_value.value, input_value.unit))
            for path, input_value in sorted(scenario_result.inputs.items())
        },
        "formulas": _sorted_table(origin.formulas()) if fingerprints else {},
    }


def _sorted_table(table: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(table.items()))


def _round_saved_number(saved_number: float) -> float:
    return float(f"{saved_number:.12g}")


def quantities_by_path(bill: Bill | None) -> dict[str, float]:
    """Return the quantities of a bill's parts, by path in the system tree."""
    lines = bill.lines if bill else ()
    quantities = sorted((line.path, line.quantity) for line in lines)
    return {path: _round_saved_number(quantity) for path, quantity in quantities}


def check_state(state: JsonMapping, where: str) -> None:
    """Refuse a broken state.

    Args:
        state: Content of a file.
        where: Place of the state, for the text of an error.

    Raises:
        DataError: The content is no table, or a part of a state is missing or of another kind.

    """
    if not isinstance(state, dict):
        raise DataError(f"{where}: {str(state)[:60]!r}, expected a table")
    hold({"own": [], "withheld": [], **state}, STATE_KINDS, where)
    plan_from(state["plan"], f"{where}: plan")
    for path, quantity in state["inputs"].items():
        if quantity is None or not HOLDS[SHOWN](quantity):
            raise DataError(
                f"{where}: {path} is {str(quantity)[:60]!r}, expected a number and its unit"
            )


def holds_own_values(state: JsonMapping) -> bool:
    """Return whether a state holds own values of the user, which `--redact` would leave out."""
    return bool(state.get("own")) and "withheld" not in state


def refuse_own_values(state: JsonMapping, where: str, remedy: str) -> None:
    """Refuse a state with own values where a run withholds them.

    Args:
        state: Checked state of a file.
        where: Place of the state, for the text of an error.
        remedy: What to do instead.

    Raises:
        KeptBackError: The run withholds own values, and the state holds some.

    """
    if making.get() and holds_own_values(state):
        raise KeptBackError(
            f"{where}: was saved with values of your own, and nothing can replace them; {remedy}"
        )


def setting_text(quantity_value: float, unit: str) -> str:
    """Return a quantity as a setting."""
    return f"{quantity_value!r} {unit}".strip()


def reevaluate_state(
    state: JsonMapping, settings: Mapping[str, str], catalogue: Catalogue
) -> Chain:
    """Evaluate the request of a state with today's program and data.

    Args:
        state: State that names the system, its documents, rebates and variant.
        settings: Value of every input and text by path.
        catalogue: Catalogue of today.

    Raises:
        TcoError: The values do not go together, or the catalogue lacks what the state names.

    """
    request = Scenario(
        "kept",
        "kept",
        state["system"],
        dict(state["documents"]),
        tuple(state["rebates"]),
        dict(state["variant"]),
        {},
        "kept",
    )
    inputs = resolve_scenario(catalogue, request, {}, {}, earlier_values=settings)
    return run(inputs, inputs.values())
