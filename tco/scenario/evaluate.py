"""One scenario in, one result out: the whole chain on one page.

parts -> bill -> fabric and network -> site -> money, and roofline, collectives, plans -> tokens per
second; the two meet in dollars per million tokens. The same chain is read as numbers to answer and
as a trace to explain.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from tco.catalog import Catalogue, load_catalogue
from tco.catalog.accuracy import order_of, standing
from tco.catalog.system_tree import System, load_system
from tco.core.errors import DataError, UnavailableError
from tco.core.formula import finite, total
from tco.core.inputs import Values, as_traced
from tco.core.provenance import Input
from tco.core.trace import Node, recording, scope, walk
from tco.core.types import JsonMapping, JsonObject, Quantity, Settings
from tco.cost.cash_flows import LIVES, OPERATION
from tco.cost.guards import PartPrice, unguarded_notes
from tco.cost.ledger import Cost, shares_by_directness, shares_by_kind
from tco.cost.ownership import Rebate, refuse_misfit
from tco.cost.price_dates import (
    ages_of,
    is_dated_price,
    not_there,
    refuse_unpriced_date,
    waiting_cost,
)
from tco.cost.site import (
    carbon_of_chip,
    carbon_of_tokens,
    carbon_per_power,
    embodied_carbon,
    grid_carbon,
    logic_area,
)
from tco.performance.chip.families import chips_of_family, family_of
from tco.performance.serving.record import ServingResult
from tco.scenario import metrics as joined
from tco.scenario.chain import Chain
from tco.scenario.document import HEADLINE_SYSTEM, Scenario, load_scenario
from tco.scenario.memo import stage
from tco.scenario.metrics import METRICS, TOKENS, collect, is_possible
from tco.scenario.network_choice import clos_parts
from tco.scenario.plan_records import plan_for
from tco.scenario.pricing import (
    SITE_POWER,
    MisfitError,
    agreement_notes,
    excess_notes,
    notes_of_cards,
    notes_of_checkpoints,
    notes_of_network,
    notes_of_rent,
    owner_cost,
    rack_placement_notes,
    rebates_on_bill,
)
from tco.scenario.resolve import resolve_scenario, system_inputs
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Origin, Result, why_incomparable
from tco.scenario.structural_choices import structure_of
from tco.scenario.structure import Structure, variants_under
from tco.scenario.workload import unasked, workload_kind
from tco.system.bill import Bill, BillLine, bill_of_materials

if TYPE_CHECKING:
    from tco.performance.training.result import TrainingResult


T = TypeVar("T")
OF_THE_SITE = ("usd", "tco", "facility")  # words of metrics that a system has nowhere but on a site


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
            `evaluate_draws` takes arrays without it.
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
    began = time.perf_counter()
    chain = (
        chain_of(inputs, input_values, plan_for(inputs.kind, plan))
        if workload
        else run(inputs, input_values, None, unasked(inputs))
    )
    return assemble_result(inputs, input_values, chain, time.perf_counter() - began, trace, refuse)


def chain_of(inputs: ResolvedScenario, input_values: Values, plan: Any) -> Chain:
    """Run the chain on a plan, on the structure's plan, or on the best plan of a search.

    Arrays of values allow no search.
    """
    structure = inputs.structure
    kind = workload_kind(inputs)
    if plan is None and structure is not None and kind.axis:
        if structure.plan is None:
            return run(inputs, input_values, None, kind.without_plan("the structure holds no plan"))
        plan = structure.plan
    if inputs.shape and kind.axis and (plan is None or isinstance(plan, Mapping)):
        raise DataError(
            "a plan is searched for one value of every input; for arrays call "
            f"tco.evaluate_draws({inputs.scenario.name!r}, {{path: (array, unit)}}), or keep the "
            "plan of a result with structure=result.structure"
        )
    return run(inputs, input_values, plan)


def assemble_result(
    inputs: ResolvedScenario,
    input_values: Values,
    chain: Chain,
    seconds: float,
    trace: bool,
    refuse: bool,
) -> Result:
    """Return the result of an evaluated chain: metrics, notes and reports.

    Shares, bounds and ages are found for plain numbers only, not for arrays.

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
    scenario = inputs.scenario
    has_arrays = bool(inputs.shape)  # shares, bounds and ages are told of one number
    _keep_for_studies(inputs, input_values)
    walked = chain
    standing_notes, chain = _fit_to_site(inputs, input_values, walked, refuse)
    chosen = [*inputs.notes, *agreement_notes(inputs)]
    notes = [*chosen, *_notes_of_chain(inputs, input_values, chain, standing_notes)]
    perspective = inputs.text("terms.perspective")
    structure = structure_of(inputs, input_values, walked)
    report = chain.serving.report(seconds, has_arrays)
    scenario_result = Result(
        scenario=scenario.name,
        title=scenario.title,
        system=chain.system.id,
        perspective=perspective,
        metrics={
            metric_name: _plain_metric(chain.metrics.get(metric_name)) for metric_name in METRICS
        },
        notes=[*notes, *chain.serving.notes],
        chosen=chosen,
        lines=chain.cost.lines if chain.cost else [],
        bill=chain.bill,
        rebates=list(chain.rebates),
        serving=chain.serving,
        **_evidence_of(inputs, chain),
        bounds={phase: phase_report.shares for phase, phase_report in report.phases.items()},
        inputs=input_values.inputs,
        texts=inputs.texts_used,
        report=report,
        plan=chain.serving.plan,
        structure=structure,
    )
    _add_origin(scenario_result, inputs, input_values, chain, trace)
    return scenario_result


def _notes_of_chain(
    inputs: ResolvedScenario, input_values: Values, chain: Chain, standing_notes: Sequence[str]
) -> list[str]:
    """Return the notes on a chain, on what it rests on and on its numbers."""
    notes = [*inputs.cautions]
    if chain.cost:
        notes += notes_of_cards(inputs, chain.cost)
        notes += notes_of_network(inputs, chain.cost, chain.serving.plan)
        notes += notes_of_checkpoints(inputs, input_values)
    if chain.bill and chain.cost and inputs.perspective.rents:
        notes += notes_of_rent(inputs, input_values, chain.bill)
    notes += [*excess_notes(inputs, input_values, chain.rebates), *standing_notes]
    if not inputs.shape:
        notes += not_there(input_values.inputs, inputs.date)
    notes += map(unread_note, inputs.unused(input_values))
    if len(inputs.catalogue.folders) > 1:
        from tco.catalog.overlay import own_note

        notes += own_note(inputs.catalogue, input_values.inputs)
    notes += _range_notes(inputs.catalogue, input_values)
    if chain.serving.reason:
        notes.append(f"{workload_kind(inputs).rate}: {chain.serving.reason}")
    return notes if inputs.shape else [*notes, *_notes_on_numbers(chain.metrics)]


def unread_note(path: str) -> str:
    """Return the note on a setting that no formula of the scenario reads."""
    return f"{path} is set, but nothing in this scenario rests on it"


def _notes_on_numbers(metrics: JsonMapping) -> list[str]:
    """Return notes on metrics that are no finite number, or that cannot be."""
    single = {
        metric_name: metric_value
        for metric_name in METRICS
        if (metric_value := metrics.get(metric_name)) is not None
    }
    notes = []
    endless = [
        metric_name
        for metric_name, metric_value in single.items()
        if not math.isfinite(metric_value)
    ]
    if endless:
        notes.append(
            f"{', '.join(endless)}: left out, as no finite number comes out of these inputs"
        )
    impossible = [
        f"{metric_name} {metric_value:g}"
        for metric_name, metric_value in single.items()
        if math.isfinite(metric_value) and not is_possible(metric_name, metric_value)
    ]
    if impossible:
        notes.append(
            f"{', '.join(impossible)}: outside what can be, so one of these inputs is wrong"
        )
    if single.get("goodput") == 0:
        notes.append(
            "tco_usd_per_used_chip_hour and what rests on it: goodput is 0, failures leave no hour "
            "in which anything makes progress"
        )
    return notes


def _evidence_of(inputs: ResolvedScenario, chain: Chain) -> JsonObject:
    """Return the evidence of rates and their order."""
    catalogue, chip = inputs.catalogue, chain.system.chip
    measured, path = workload_kind(inputs).measured, chain.serving.path

    def read_standing() -> Any:
        family_chips = chips_of_family(catalogue, family_of(catalogue, chip))
        return standing(catalogue, measured, chip, family_chips, path)

    return {
        "standing": catalogue.once(("standing", measured, chip, path), read_standing),
        "order": catalogue.once(("order", measured), lambda: order_of(catalogue, measured)),
    }


def _add_origin(
    scenario_result: Result,
    inputs: ResolvedScenario,
    input_values: Values,
    chain: Chain,
    trace: bool,
) -> None:
    """Add to a result where it comes from, and its traced metrics."""
    nodes = cache(partial(nodes_of, inputs, chain))
    catalogue = inputs.catalogue
    cost_functions: JsonObject = {}
    if chain.cost and not inputs.shape:
        cost_functions |= _cost_functions(inputs, chain.cost, dict(input_values.inputs))
    scenario_result.origin = Origin(
        inputs.scenario.documents,
        inputs.settings,
        chain.system.variant,
        lambda: catalogue.once("hash", catalogue.hash),
        lambda: _formulas_of(nodes()),
        used_by=lambda metric: frozenset(
            _formulas_of({metric: nodes()[metric]} if metric in nodes() else {})
        ),
        **cost_functions,
    )
    if trace:
        scenario_result.nodes = nodes()


def _keep_for_studies(inputs: ResolvedScenario, input_values: Values) -> None:
    """Keep inputs that no metric uses with the result: monthly money, and a site's power."""
    for path in input_values.given:
        if path.startswith("money."):
            input_values.input(path)
    if SITE_POWER in input_values.given or SITE_POWER in inputs.document_inputs:
        for path in (SITE_POWER, "site.rack_kw_max"):
            input_values.input(path)


def _fit_to_site(
    inputs: ResolvedScenario, input_values: Values, chain: Chain, refuse: bool
) -> tuple[list[str], Chain]:
    """Return notes on the racks in the site, and the chain.

    The chain has no cost if the racks do not fit or have no price.
    """
    if chain.system.bare:
        return (
            [f"{chain.system.id} is a chip alone: nothing in dollars or watts is computed"],
            chain,
        )
    try:
        if chain.unpriced or chain.cost is None or chain.bill is None:
            raise chain.unpriced or UnavailableError(f"{chain.system.id} has no cost")
        if not inputs.shape:
            refuse_unpriced_date(
                inputs.catalogue, chain.cost.lines, input_values.inputs, inputs.date
            )
        return rack_placement_notes(inputs, chain.bill), chain
    except UnavailableError as error:
        if refuse:
            raise
        left = {
            metric_name: metric_value
            for metric_name, metric_value in chain.metrics.items()
            if not any(word in metric_name for word in OF_THE_SITE)
        }
        why = "does not fit" if isinstance(error, MisfitError) else "cannot be priced"
        return [f"{why}: {error}"], chain._replace(cost=None, metrics=left)


def _cost_functions(
    inputs: ResolvedScenario, cost: Cost, cost_inputs: Mapping[str, Input]
) -> Mapping[str, Callable[[], Any]]:
    """Return functions that give the ages and the shares of a cost, computed on first use.

    A cost that a stage has kept is therefore described once.
    """
    system_cache = inputs.system.cached_results
    cached_pair = system_cache.get("cost functions")
    if cached_pair is None or cached_pair[0] is not cost:
        ages = partial(ages_of, inputs.catalogue, cost.lines, cost_inputs, inputs.date)
        cached_pair = system_cache["cost functions"] = (
            cost,
            {"ages": cache(ages), "shares": cache(partial(_shares_of_cost, cost, cost_inputs))},
        )
    cost_functions: Mapping[str, Callable[[], Any]] = cached_pair[1]
    return cost_functions


def _shares_of_cost(cost: Cost, cost_inputs: Mapping[str, Input]) -> dict[str, dict[str, float]]:
    return shares_by_kind(cost.lines) | {
        "directness": shares_by_directness(cost.lines, cost_inputs)
    }


def _plain_metric(metric_value: Any) -> Any:
    if type(metric_value) is float:  # most are
        return metric_value if math.isfinite(metric_value) else None
    if metric_value is None or (isinstance(metric_value, np.ndarray) and metric_value.ndim):
        return metric_value
    return float(metric_value) if math.isfinite(metric_value) else None


def _formulas_of(nodes: Mapping[str, Node]) -> dict[str, str]:
    from tco.core.equation import (
        fingerprints,
    )  # a saved result asks for them, an answer does not

    return fingerprints(node.formula for node in walk(*nodes.values()) if node.formula)


def nodes_of(inputs: ResolvedScenario, chain: Chain) -> dict[str, Node]:
    """Return the trace node of every metric, with the plan fixed.

    Without a plan only the metrics that need none have a node.
    """
    # else there is nothing to trace: a trace never searches
    searched = chain.serving.plan is not None or not workload_kind(inputs).axis
    with recording() as recorder:
        traced = run(
            inputs,
            inputs.values(as_traced(recorder)),
            chain.serving.plan,
            None if searched else chain.serving,
        )
    return {
        metric_name: metric_value.node
        for metric_name, metric_value in traced.metrics.items()
        if hasattr(metric_value, "node")
    }


def run(
    inputs: ResolvedScenario,
    input_values: Values,
    plan: Any = None,
    rated_workload: ServingResult | TrainingResult | None = None,
) -> Chain:
    """Return the whole chain of a scenario, computed once.

    `input_values` decide the reading: numbers, arrays or traced values.

    Args:
        inputs: Resolved scenario.
        input_values: Values of the inputs by path.
        plan: Plan or fixed axes; None searches the plan.
        rated_workload: Performance of a workload that needs no search; None rates the workload.

    Returns:
        Chain; a chip alone has no bill and no cost. `unpriced` says why a system has no cost.

    Raises:
        DataError: No module that is named or listed fits the network.

    """
    system = inputs.system
    if system.bare:
        workload = rated_workload or rate_workload(inputs, input_values, plan)
        return Chain(system, workload, collect(input_values, system, None, workload))
    clos_parts(inputs)  # before any stage: each rests on which they are
    racks = owner_cost(inputs, input_values)
    workload = rated_workload or rate_workload(inputs, input_values, plan)
    metrics = collect(input_values, system, racks.cost, workload)
    if racks.cost is not None:
        _add_carbon(inputs, input_values, racks.cost, metrics)
        _add_waiting(inputs, input_values, racks.cost, metrics)
    return Chain(system, workload, metrics, *racks)


def rate_workload(
    inputs: ResolvedScenario, input_values: Values, plan: Any
) -> ServingResult | TrainingResult:
    """Return serving or training performance on a plan, searched or given.

    Every call returns a copy of the cached result, so that each answer has its own report.
    """

    def walk() -> ServingResult | TrainingResult:
        with scope(inputs.kind):
            workload_result: ServingResult | TrainingResult = workload_kind(inputs).walk(
                inputs, input_values, plan
            )
        return workload_result

    return copy(stage("worked", inputs, input_values, walk, plan))


def usual_baseline(scenario_names: Sequence[str]) -> str:
    """Return the default baseline among scenarios.

    Args:
        scenario_names: Names of the scenarios, at least one.

    Returns:
        The headline system if among `scenario_names`, else the first name.

    """
    return HEADLINE_SYSTEM if HEADLINE_SYSTEM in scenario_names else scenario_names[0]


def fill_ratio_to_baseline(scenario_results: list[Result], baseline: str | None = None) -> str:
    """Fill in `perf_per_tco_vs_baseline` of comparable results, and return the baseline's name."""
    scenario_names = [scenario_result.scenario for scenario_result in scenario_results]
    rated = [
        scenario_result.scenario
        for scenario_result in scenario_results
        if joined.priced_by(scenario_result.metrics)
    ]
    chosen = baseline or usual_baseline(rated or scenario_names)
    if chosen not in scenario_names:
        raise DataError(
            f"--baseline {chosen}: not among the compared scenarios ({', '.join(scenario_names)})"
        )
    baseline_result = next(
        scenario_result
        for scenario_result in scenario_results
        if scenario_result.scenario == chosen
    )
    base = costs_of_work(baseline_result.metrics)
    for scenario_result in scenario_results:
        if (why := why_incomparable(scenario_result, baseline_result)) is not None:
            if not scenario_result.costless:  # which its notes explain
                scenario_result.notes.append(f"performance per TCO says nothing here: {why}")
            continue
        for metric, reference, token_cost in zip(
            ("perf_per_tco_vs_baseline", "perf_per_tco_gross_vs_baseline"),
            base,
            costs_of_work(scenario_result.metrics),
            strict=True,
        ):
            if reference is not None and token_cost is not None:
                scenario_result.metrics[metric] = float(joined.perf_per_tco(reference, token_cost))
    return chosen


def costs_of_work(metrics: JsonMapping) -> tuple[Any, Any]:
    """Return token cost net of rebates and before rebates.

    Args:
        metrics: Numbers or arrays by metric name.

    Returns:
        Both costs in USD per million output tokens, or USD per trillion trained tokens; both are
        None where there are no tokens.

    """
    cost = joined.priced_by(metrics)
    if cost is None:
        return None, None
    net, gross, hour = (
        metrics[metric_name]
        for metric_name in (cost, "tco_gross_usd_per_chip_hour", "tco_usd_per_chip_hour")
    )
    return net, joined.gross_token_cost(net, gross, hour)


GRID = "site.grid_carbon"
WAITING = "waiting_usd_per_chip"


def _add_carbon(
    inputs: ResolvedScenario, input_values: Values, cost: Cost, metrics: JsonObject
) -> None:
    """Add the carbon metrics for which the grid's intensity or the area of the dies is known."""
    hours = []
    if inputs.states(GRID, input_values):
        with scope("metrics", "grid_co2e_g_per_chip_hour"):
            hours.append(
                grid_carbon(
                    cost.it_power_per_chip, cost.draw, input_values["site.pue"], input_values[GRID]
                )
            )
        metrics["grid_co2e_g_per_chip_hour"] = hours[-1]
    with scope("metrics", "embodied_co2e_g_per_chip_hour"):
        area = _area_of(inputs, input_values)
        if area is not None:
            hours.append(_embodied(inputs, input_values, cost, area))
            metrics["embodied_co2e_g_per_chip_hour"] = hours[-1]
    if len(hours) == 2 and TOKENS in metrics:
        carbon_metric = "co2e_g_per_million_output_tokens"
        with scope("metrics", carbon_metric):
            used = cost.goodput, input_values["terms.utilisation"]
            metrics[carbon_metric] = carbon_of_tokens(
                total("carbon", hours), *used, metrics[TOKENS]
            )


def _add_waiting(
    inputs: ResolvedScenario, input_values: Values, cost: Cost, metrics: JsonObject
) -> None:
    """Add the cost of waiting for a system that is not available at the date.

    A system without a dated part has no such cost.
    """
    with scope("metrics", WAITING):
        # of a cost that holds it, which no other waiting follows from
        waits = cost.waiting_per_chip
        if waits is None:
            waits = waiting_cost(
                input_values, inputs.system, cost, inputs.date, inputs.catalogue.has_part_value
            )
        if waits is not None:
            metrics[WAITING] = input_values.derived(
                f"metrics.{WAITING}", METRICS[WAITING].unit, lambda: waits
            )


def _area_of(inputs: ResolvedScenario, input_values: Values) -> Any:
    """Return the area of a chip's logic dies, stated or summed; None where it is unknown."""
    part, has = f"parts.{inputs.system.chip}", inputs.catalogue.has_part_value
    stated = f"{part}.logic_area"
    if has(inputs.system.chip, "logic_area") or input_values.has(stated):
        return input_values[stated]
    return (
        logic_area(input_values[f"{part}.die_area"], input_values[f"{part}.dies"])
        if has(inputs.system.chip, "die_area")
        else None
    )


def _embodied(
    inputs: ResolvedScenario, input_values: Values, cost: Cost, area: Quantity
) -> Quantity:
    """Return the embodied carbon of chip, rack and building per chip-hour.

    A renter's contract sets neither of their lives.
    """
    chip = (
        input_values["carbon.logic"],
        input_values[f"parts.{inputs.system.chip}.hbm_capacity"],
        input_values["carbon.memory"],
        input_values["carbon.board"],
    )
    lives = (
        ("carbon.life", "carbon.life_building")
        if inputs.perspective.rents
        else (OPERATION, LIVES["building"])
    )
    with scope("rack"):
        rack = carbon_per_power(cost.it_power_per_chip, input_values["carbon.rack"])
    with scope("building"):
        building = carbon_per_power(cost.it_power_per_chip, input_values["carbon.building"])
    return embodied_carbon(
        carbon_of_chip(area, *chip), rack, input_values[lives[0]], building, input_values[lives[1]]
    )


class SystemBill(NamedTuple):
    """The bill of a system without a workload."""

    system: System
    bill: Bill
    rebates: list[Rebate]
    date: str
    notes: list[str]
    inputs: ResolvedScenario
    unguarded: list[str]  # a note on the parts that no published figure checks


def bill_of_system(
    catalogue: Catalogue,
    system_id: str,
    set: Mapping[str, str],  # noqa: A002 - the name of the option
    variant: Mapping[str, str],
) -> SystemBill:
    """Return the bill of a system on the headline's site and terms.

    Args:
        catalogue: Holds the documents, parts and rows.
        system_id: Id of the system; `ID@key=value,...` names variants.
        set: Values of inputs by path.
        variant: Variants by key; they win over the variants in `system_id`.

    Returns:
        Bill with its rebates, date and notes; prices in USD.

    Raises:
        DataError: The id, a variant or an input is unknown, a part has no price or power, or the id
            is of a chip alone.
        UnavailableError: The owner cannot have the system.

    """
    inputs = system_inputs(catalogue, system_id, set, variant)
    if inputs.system.bare:
        raise without_bill(catalogue, system_id)
    refuse_misfit(catalogue, inputs.perspective, inputs.system, inputs.owner)
    input_values = inputs.values()
    bill = bill_of_materials(inputs.system, input_values, catalogue, inputs.text("terms.yield"))
    rebates = rebates_on_bill(inputs, input_values, bill)
    part_prices = [
        PartPrice(line.part, float(line.extended or 0.0), _dated_prices(input_values, line))
        for line in bill.lines
    ]
    notes = [
        *inputs.notes,
        *excess_notes(inputs, input_values, rebates),
        *inputs.unused_notes(input_values, "this bill"),
        *_range_notes(catalogue, input_values),
    ]
    return SystemBill(
        inputs.system, bill, rebates, inputs.date, notes, inputs, unguarded_notes(part_prices)
    )


def _range_notes(catalogue: Catalogue, input_values: Values) -> list[str]:
    own_inputs = {
        path: used_input for path, used_input in input_values.inputs.items() if used_input.overlay
    }
    if not own_inputs:
        return []
    from tco.catalog.overlay import range_notes  # few answers have values of one's own

    return range_notes(catalogue, own_inputs)


def _dated_prices(input_values: Values, line: BillLine) -> tuple[Input, ...]:
    """Return the catalogue prices of a line of a bill that move with the date."""
    return tuple(price for path in line.inputs if is_dated_price(price := input_values.input(path)))


def without_bill(catalogue: Catalogue, chip: str) -> DataError:
    """Return the error for a bill of a chip alone.

    The message names the systems that have the chip and a bill.

    Args:
        catalogue: Holds the systems.
        chip: Id of the chip.

    """
    systems = [
        system_id
        for system_id in catalogue.ids("systems")
        if load_system(catalogue, system_id).chip == chip
    ]
    return DataError(
        f"{chip} is a chip alone and has no bill; "
        f"{'systems with it: ' + ', '.join(systems) if systems else 'no system has it'}"
    )
