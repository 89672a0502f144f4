"""Pint checks the dimensions of every formula call of every scenario.

The inputs come in other units than the formulas declare (GB for byte, kUSD for USD), so a factor
forgotten between two formulas shows in the metrics.
"""

from __future__ import annotations

import math
import re

import pytest

from tco.scenario.run_chain import run
from tests.core.test_readings import OTHER
from tests.registry import RECORDER, registry
from tests.scenario_helpers import HEADLINE, inputs_of, result


class Quantities:
    """Give plain numbers their declared units and check the dimension of every result."""

    def __init__(self) -> None:
        self.calls: set[str] = set()

    def call(self, formula, arguments, named):
        quantity = registry().Quantity
        argument_values = {
            **formula.defaults,
            **dict(zip(formula.parameters, arguments, strict=False)),
            **named,
        }
        units = {name: unit or "dimensionless" for name, unit in formula.parameters.items()}
        argument_quantities = {
            name: argument_values[name]
            if isinstance(argument_values[name], quantity)
            else quantity(argument_values[name], units[name])
            for name in units
        }
        for name, value in argument_quantities.items():
            assert value.is_compatible_with(units[name]), (
                f"{formula.name}({name}) takes {units[name]}, got {value.units}"
            )
        answer = quantity(formula.function(**argument_quantities))
        assert answer.is_compatible_with(formula.unit or "dimensionless"), (
            f"{formula.name} gives {answer.units}"
        )
        self.calls.add(formula.name)
        return answer

    def gather(self, operation, name, terms):
        quantity = registry().Quantity
        unit = next(
            (term.units for term in terms if isinstance(term, quantity)), registry().dimensionless
        )
        values = [term.to(unit).magnitude if isinstance(term, quantity) else term for term in terms]
        return quantity({"total": sum, "least": min, "greatest": max}[operation](values), unit)


def read(scenario_input):
    """An input as a quantity in another unit than the formulas take."""
    input_quantity = registry().Quantity(
        scenario_input.value, scenario_input.unit or "dimensionless"
    )
    words = set(re.findall(r"[A-Za-z]+", scenario_input.unit))
    return (
        input_quantity.to(
            re.sub(r"[A-Za-z]+", lambda word: OTHER.get(word[0], word[0]), scenario_input.unit)
        )
        if words & OTHER.keys()
        else input_quantity
    )


@pytest.mark.parametrize("name", HEADLINE)
def test_the_chain_holds_its_dimensions(name):
    recorder = Quantities()
    inputs, plan = inputs_of(name), result(name).plan
    token = RECORDER.set(recorder)
    try:
        chain = run(inputs, inputs.values(read), plan)
    finally:
        RECORDER.reset(token)
    assert len(recorder.calls) >= 60
    checked = 0
    for metric, value in chain.metrics.items():
        node = result(name).nodes.get(metric)
        if node is not None:
            assert math.isclose(
                value.to(node.unit or "dimensionless").magnitude, node.value, rel_tol=1e-11
            ), metric
            checked += 1
    assert checked >= 25
