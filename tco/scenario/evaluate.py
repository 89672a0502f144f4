"""Evaluate a scenario: one scenario in, one result out.

`evaluate` resolves the scenario, runs its chain and assembles the result: metrics, notes, cost
lines, evidence, and where the result comes from.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue, load_catalogue
from tco.catalog.accuracy import Standing, order_of, standing
from tco.core.errors import UnavailableError
from tco.core.formula import finite
from tco.core.inputs import Values
from tco.core.provenance import Input
from tco.core.trace import Node, walk
from tco.core.types import Settings
from tco.cost.ledger import Cost, shares_by_directness, shares_by_kind
from tco.cost.price_dates import Ages, ages_of, refuse_unpriced_date
from tco.performance.chip.families import chips_of_family, family_of
from tco.scenario.chain import Chain
from tco.scenario.document import Scenario, load_scenario
from tco.scenario.metrics import METRICS, needs_site
from tco.scenario.plan_records import plan_for
from tco.scenario.pricing import SITE_POWER, MisfitError, agreement_notes, rack_placement_notes
from tco.scenario.resolve import resolve_scenario
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Origin, Result, Shares
from tco.scenario.result_notes import notes_of_chain
from tco.scenario.run_chain import chain_of, nodes_of, run
from tco.scenario.structural_choices import structure_of
from tco.scenario.structure import Structure, variants_under
from tco.scenario.workload import without_workload, workload_kind


@finite
def evaluate(
    scenario: str | Path | Scenario,
    set: Settings | None = None,  # noqa: A002 - the name users know from the command line
    plan: Mapping[str, str] | Any = None,
    *,
    structure: Structure | None = None,
    catalogue: Catalogue | None = None,
    variant: Mapping[str, str] | None = None,
    trace: bool = False,
    refuse: bool = True,
    workload: bool = True,
) -> Result:
    """Return the result of a scenario, with a given or searched plan.

    Args:
        scenario: Name, path or document of the scenario.
        set: Replaces inputs by path: a text, or a number or array with its unit. A pure number
            needs no unit; arrays need `structure` and give metrics that are arrays;
            `evaluate_draws` takes arrays without it. `tco.evaluate` also takes changes such as
            "+20%".
        plan: Plan of a result, saved or not, or axes by name, such as `{"tp": "8"}`; all other axes
            are searched.
        structure: Decisions of an earlier result, the plan among them; None decides anew.
        catalogue: Holds the documents, parts and rows; None takes the shipped data.
        variant: Variants of the system by key.
        trace: True adds the traced metrics to the result.
        refuse: False allows racks that have no price or do not fit their site. Their cost is left
            out, and a note says why.
        workload: False asks for the cost of the chips only, and searches no plan.

    Raises:
        DataError: Something in the data is wrong, or the inputs give no finite number.
        UnavailableError: The racks have no price or do not fit their site, and `refuse` is True.

    """
    catalogue = catalogue or load_catalogue()
    document = load_scenario(catalogue, scenario)
    variants = variants_under(structure, document.system, variant)
    inputs = resolve_scenario(catalogue, document, dict(set or {}), variants, structure)
    input_values = inputs.values()
    start_time = time.perf_counter()
    if workload:
        chain = chain_of(inputs, input_values, plan_for(inputs.kind, plan))
    else:
        chain = run(inputs, input_values, None, without_workload(inputs))
    seconds = time.perf_counter() - start_time
    return assemble_result(inputs, input_values, chain, seconds, trace, refuse)


def assemble_result(
    inputs: ResolvedScenario,
    input_values: Values,
    chain: Chain,
    seconds: float,
    trace: bool,
    refuse: bool,
) -> Result:
    """Return the result of an evaluated chain: metrics, notes and reports.

    Shares, bounds and ages are computed for plain numbers only, not for arrays.

    Args:
        inputs: Resolved scenario of the chain.
        input_values: Values of the inputs by path, as the chain read them.
        chain: Evaluated chain.
        seconds: Time that the evaluation took, s.
        trace: True adds the traced metrics to the result.
        refuse: False allows racks that have no price or do not fit their site, without their cost.

    Raises:
        UnavailableError: The racks have no price or do not fit their site, and `refuse` is True.

    """
    scenario, has_arrays = inputs.scenario, bool(inputs.shape)
    _read_inputs_of_studies(inputs, input_values)
    placement = _place_racks(inputs, input_values, chain, refuse)
    choice_notes = [*inputs.notes, *agreement_notes(inputs)]
    chain_notes = notes_of_chain(inputs, input_values, placement.chain, placement.notes)
    perspective = inputs.text("terms.perspective")
    structure = structure_of(inputs, input_values, chain)
    chain = placement.chain
    report = chain.serving.report(seconds, has_arrays)
    scenario_result = Result(
        scenario=scenario.name,
        title=scenario.title,
        system=chain.system.id,
        perspective=perspective,
        metrics={
            metric_name: _plain_metric(chain.metrics.get(metric_name)) for metric_name in METRICS
        },
        notes=[*choice_notes, *chain_notes, *chain.serving.notes],
        chosen=choice_notes,
        lines=chain.cost.lines if chain.cost else [],
        bill=chain.bill,
        rebates=list(chain.rebates),
        serving=chain.serving,
        standing=_standing_of(inputs, chain),
        order=_order_of(inputs),
        bounds={phase: phase_report.shares for phase, phase_report in report.phases.items()},
        inputs=input_values.inputs,
        texts=inputs.texts_used,
        report=report,
        plan=chain.serving.plan,
        structure=structure,
    )
    _add_origin(scenario_result, inputs, input_values, chain, trace)
    return scenario_result


def _read_inputs_of_studies(inputs: ResolvedScenario, input_values: Values) -> None:
    """Read the inputs that no metric uses but studies of the result do.

    They are the financing by month (`money.`) and the power of a site. A result holds only inputs
    that were read.
    """
    for path in input_values.given:
        if path.startswith("money."):
            input_values.input(path)
    if SITE_POWER in input_values.given or SITE_POWER in inputs.document_inputs:
        for path in (SITE_POWER, "site.rack_kw_max"):
            input_values.input(path)


class _Placement(NamedTuple):
    """Racks in their site."""

    notes: list[str]
    chain: Chain  # without its cost if the racks do not fit or have no price


def _place_racks(
    inputs: ResolvedScenario, input_values: Values, chain: Chain, refuse: bool
) -> _Placement:
    system_id = chain.system.id
    if chain.system.bare:
        note = f"{system_id} is a chip alone: nothing in dollars or watts is computed"
        return _Placement([note], chain)
    try:
        if chain.unpriced or chain.cost is None or chain.bill is None:
            raise chain.unpriced or UnavailableError(f"{system_id} has no cost")
        if not inputs.shape:
            refuse_unpriced_date(
                inputs.catalogue, chain.cost.lines, input_values.inputs, inputs.date
            )
        return _Placement(rack_placement_notes(inputs, chain.bill), chain)
    except UnavailableError as error:
        if refuse:
            raise
        metrics = {
            metric_name: metric_value
            for metric_name, metric_value in chain.metrics.items()
            if not needs_site(metric_name)
        }
        fault = "does not fit" if isinstance(error, MisfitError) else "cannot be priced"
        return _Placement([f"{fault}: {error}"], chain._replace(cost=None, metrics=metrics))


def _plain_metric(metric_value: Any) -> Any:
    """Return a metric as an array, a finite float, or None."""
    if type(metric_value) is float:  # tested first, as most metrics are floats
        return metric_value if math.isfinite(metric_value) else None
    if metric_value is None or (isinstance(metric_value, np.ndarray) and metric_value.ndim):
        return metric_value
    return float(metric_value) if math.isfinite(metric_value) else None


def _standing_of(inputs: ResolvedScenario, chain: Chain) -> Standing:
    """Return the accuracy of the model on measurements of this workload and chip."""
    catalogue, chip = inputs.catalogue, chain.system.chip
    measured_kind, path = workload_kind(inputs).measured, chain.serving.path

    def read_standing() -> Standing:
        family_chips = chips_of_family(catalogue, family_of(catalogue, chip))
        return standing(catalogue, measured_kind, chip, family_chips, path)

    return catalogue.once(("standing", measured_kind, chip, path), read_standing)


def _order_of(inputs: ResolvedScenario) -> str:
    """Return a sentence on the share of system pairs that the model ranks correctly."""
    catalogue, measured_kind = inputs.catalogue, workload_kind(inputs).measured
    return catalogue.once(("order", measured_kind), lambda: order_of(catalogue, measured_kind))


def _add_origin(
    scenario_result: Result,
    inputs: ResolvedScenario,
    input_values: Values,
    chain: Chain,
    trace: bool,
) -> None:
    """Add to a result where it comes from, and its traced metrics if a trace is asked for."""
    nodes = cache(partial(nodes_of, inputs, chain))
    catalogue = inputs.catalogue

    def formulas_of_metric(metric: str) -> frozenset[str]:
        metric_nodes = {metric: nodes()[metric]} if metric in nodes() else {}
        return frozenset(_formulas_of(metric_nodes))

    origin = Origin(
        documents=inputs.scenario.documents,
        settings=inputs.settings,
        variant=chain.system.variant,
        data_hash=lambda: catalogue.once("hash", catalogue.hash),
        formulas=lambda: _formulas_of(nodes()),
        used_by=formulas_of_metric,
    )
    if chain.cost and not inputs.shape:
        description = _cost_description(inputs, chain.cost, dict(input_values.inputs))
        origin = origin._replace(ages=description.ages, shares=description.shares)
    scenario_result.origin = origin
    if trace:
        scenario_result.nodes = nodes()


class _CostDescription(NamedTuple):
    """Ages of the prices and shares of a cost; each is computed on first use."""

    cost: Cost
    ages: Callable[[], Ages]
    shares: Callable[[], Shares]


def _cost_description(
    inputs: ResolvedScenario, cost: Cost, cost_inputs: Mapping[str, Input]
) -> _CostDescription:
    """Return the description of a cost, the earlier one if the cost is the same object.

    A stage of the chain returns the same cost for many results.
    """
    system_cache = inputs.system.cached_results
    description: _CostDescription | None = system_cache.get("cost description")
    if description is None or description.cost is not cost:
        ages = partial(ages_of, inputs.catalogue, cost.lines, cost_inputs, inputs.date)
        shares = partial(_shares_of_cost, cost, cost_inputs)
        description = _CostDescription(cost, cache(ages), cache(shares))
        system_cache["cost description"] = description
    return description


def _shares_of_cost(cost: Cost, cost_inputs: Mapping[str, Input]) -> Shares:
    return shares_by_kind(cost.lines) | {
        "directness": shares_by_directness(cost.lines, cost_inputs)
    }


def _formulas_of(nodes: Mapping[str, Node]) -> dict[str, str]:
    from tco.core.equation import fingerprints  # only a saved result needs them

    return fingerprints(node.formula for node in walk(*nodes.values()) if node.formula)
