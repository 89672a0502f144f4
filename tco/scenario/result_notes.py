"""Notes of a result: on its parts and prices, its settings, its workload and its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.core.inputs import Values
from tco.core.types import JsonMapping
from tco.cost.waiting import not_there
from tco.scenario.chain import Chain
from tco.scenario.metrics import METRICS, is_possible
from tco.scenario.pricing import (
    excess_notes,
    notes_of_cards,
    notes_of_checkpoints,
    notes_of_network,
    notes_of_rent,
)
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.workload import workload_kind


def notes_of_chain(
    inputs: ResolvedScenario, input_values: Values, chain: Chain, placement_notes: Sequence[str]
) -> list[str]:
    """Return the notes on a chain: on its inputs, its cost, its workload and its numbers.

    Args:
        inputs: Resolved scenario.
        input_values: Values of the inputs by path, as the chain read them.
        chain: Evaluated chain.
        placement_notes: Notes on the racks in their site.

    """
    notes = [*inputs.cautions]
    if chain.cost:
        notes += notes_of_cards(inputs, chain.cost)
        notes += notes_of_network(inputs, chain.cost, chain.serving.plan)
        notes += notes_of_checkpoints(inputs, input_values)
    if chain.bill and chain.cost and inputs.perspective.rents:
        notes += notes_of_rent(inputs, input_values, chain.bill)
    notes += [*excess_notes(inputs, input_values, chain.rebates), *placement_notes]
    if not inputs.shape:
        notes += not_there(input_values.inputs, inputs.date)
    notes += map(unread_note, inputs.unused(input_values))
    if len(inputs.catalogue.folders) > 1:
        from tco.catalog.overlay import own_note  # few answers have a folder of one's own

        notes += own_note(inputs.catalogue, input_values.inputs)
    notes += range_notes_of_inputs(inputs.catalogue, input_values)
    if chain.serving.reason:
        notes.append(f"{workload_kind(inputs).rate}: {chain.serving.reason}")
    return notes if inputs.shape else [*notes, *notes_on_numbers(chain.metrics)]


def unread_note(path: str) -> str:
    """Return the note on a setting that no formula of the scenario reads."""
    return f"{path} is set, but nothing in this scenario rests on it"


def notes_on_numbers(metrics: JsonMapping) -> list[str]:
    """Return notes on metrics that are no finite number, or that cannot be.

    Args:
        metrics: Numbers by metric name.

    """
    numbers = {
        metric_name: metrics[metric_name]
        for metric_name in METRICS
        if metrics.get(metric_name) is not None
    }
    finite_numbers = {
        metric_name: number for metric_name, number in numbers.items() if math.isfinite(number)
    }
    notes = []
    not_finite = [metric_name for metric_name in numbers if metric_name not in finite_numbers]
    if not_finite:
        notes.append(
            f"{', '.join(not_finite)}: left out, as no finite number comes out of these inputs"
        )
    impossible = [
        f"{metric_name} {number:g}"
        for metric_name, number in finite_numbers.items()
        if not is_possible(metric_name, number)
    ]
    if impossible:
        notes.append(
            f"{', '.join(impossible)}: outside what can be, so one of these inputs is wrong"
        )
    if numbers.get("goodput") == 0:
        notes.append(
            "tco_usd_per_used_chip_hour and what rests on it: goodput is 0, failures leave no hour "
            "in which anything makes progress"
        )
    return notes


def range_notes_of_inputs(catalogue: Catalogue, input_values: Values) -> list[str]:
    """Return notes on the ranges of the inputs that come from a folder of the user's own.

    Args:
        catalogue: Holds the rows of all folders.
        input_values: Inputs that were read.

    """
    overlay_inputs = {
        path: used_input for path, used_input in input_values.inputs.items() if used_input.overlay
    }
    if not overlay_inputs:
        return []
    from tco.catalog.overlay import range_notes  # few answers have a folder of one's own

    return range_notes(catalogue, overlay_inputs)
