"""Traced values remember how they were computed, and refuse arithmetic outside a formula."""

from __future__ import annotations

import numpy as np
import pytest

from tco.core.trace import Traced, paused, untraced_value
from tests.registry import FORMULA, RECORDER, greatest, least, total
from tests.scenario_helpers import recording, scope, walk

STRUCTURE = "structure"


@pytest.fixture
def trace():
    with recording() as recorder:
        yield recorder


def leaf(trace, value, unit="USD", path="parts.x.price"):
    return trace.leaf("price", value, unit, "a source", "vendor", path)


USES = {
    "bool": bool,
    "float": float,
    "int": int,
    "index": lambda x: [1, 2][x],
    "if": lambda x: 1 if x else 2,
    "max": lambda x: max(x, 1.0),
    "min": lambda x: min(1.0, x),
    "add": lambda x: x + 1,
    "radd": lambda x: 1 + x,
    "sub": lambda x: x - 1,
    "rsub": lambda x: 1 - x,
    "mul": lambda x: x * 2,
    "rmul": lambda x: 2 * x,
    "div": lambda x: x / 2,
    "rdiv": lambda x: 2 / x,
    "pow": lambda x: x**2,
    "rpow": lambda x: 2**x,
    "neg": lambda x: -x,
    "less": lambda x: x < 1,
    "at least": lambda x: x >= 1,
    "sum": lambda x: sum([x, x]),
    "numpy ufunc": lambda x: np.maximum(x, 1.0),
    "numpy float": lambda x: np.float64(2) * x,
    "numpy array": lambda x: np.ones(3) + x,
    "numpy function": lambda x: np.where(True, x, x),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_traced_value_refuses_arithmetic_outside_a_formula(trace, use):
    with pytest.raises(TypeError):
        use(leaf(trace, 1.0))


def test_one_call_is_one_node_and_a_graph_keeps_references(trace):
    price = leaf(trace, 10.0)
    twice = total("sum", [FORMULA.extended_price(price, 2), FORMULA.extended_price(price, 3)])
    nodes = list(walk(twice.node))
    assert twice.value == 50
    assert nodes.count(price.node) == 1
    assert [node.name for node in nodes if not node.is_leaf] == [
        "sum",
        "extended_price",
        "extended_price",
    ]


@pytest.mark.parametrize(("gather", "value"), [(total, 6.0), (least, 1.0), (greatest, 3.0)])
def test_a_gathering_is_one_node(trace, gather, value):
    terms = [leaf(trace, price, path=f"parts.{price:g}.price") for price in (1.0, 2.0, 3.0)]
    gathered_value = gather("g", terms)
    assert gathered_value.value == value
    assert gathered_value.node.operation == gather.__name__
    assert [node for _, node in gathered_value.node.inputs] == [term.node for term in terms]


def test_a_plain_term_of_a_gathering_is_a_leaf_of_the_structure(trace):
    gathered_value = total("sum", [leaf(trace, 2.0), 3.0])
    assert gathered_value.value == 5
    (_, plain_term) = gathered_value.node.inputs[1]
    assert (plain_term.value, plain_term.unit, plain_term.source) == (3.0, "USD", STRUCTURE)


@pytest.mark.parametrize(("terms", "value"), [([], 0.0), ([2.0, 3.0], 5.0)])
def test_a_gathering_of_plain_numbers_is_a_plain_number(trace, terms, value):
    """A plain total enters a formula as a count of the unit that the formula takes.

    A bill may hold none of the parts that an agreement covers.
    """
    assert total("sum", terms) == value
    assert FORMULA.extended_price(total("sum", terms), leaf(trace, 1.0, "")).node.unit == "USD"


def test_a_parameter_of_another_unit_is_refused(trace):
    with pytest.raises(
        TypeError, match=r"extended_price\(unit_price\) takes 'USD', got 'price' in 'W'"
    ):
        FORMULA.extended_price(leaf(trace, 1.0, unit="W"), 1)


def test_a_parameter_of_another_size_is_refused(trace):
    with pytest.raises(TypeError, match="kUSD"):
        FORMULA.extended_price(leaf(trace, 1.0, unit="kUSD"), 1)


def test_terms_of_two_units_are_refused(trace):
    with pytest.raises(TypeError, match="gathers"):
        total("sum", [leaf(trace, 1.0), leaf(trace, 1.0, unit="W")])


def test_a_default_is_one_leaf_of_its_formula(trace):
    cost = [
        FORMULA.per_chip_hour(
            FORMULA.yearly_capital(leaf(trace, 8760.0), leaf(trace, 1.0, "1/year")), 1
        )
        for _ in range(2)
    ]
    hours = [dict(traced_cost.node.inputs)["hours_per_year"] for traced_cost in cost]
    assert hours[0] is hours[1]
    assert (hours[0].value, hours[0].unit) == (8760, "h/year")
    assert cost[0].value == 1.0


def test_recording_ends_with_its_block():
    with recording():
        assert isinstance(FORMULA.extended_price(1.0, 2), Traced)
    assert RECORDER.get() is None
    assert FORMULA.extended_price(1.0, 2) == 2.0


def test_recording_ends_with_an_error():
    with pytest.raises(RuntimeError), recording():
        raise RuntimeError
    assert RECORDER.get() is None


def test_a_pause_computes_on_plain_values(trace):
    with paused():
        assert FORMULA.extended_price(1.0, 2) == 2.0
    assert isinstance(FORMULA.extended_price(1.0, 2), Traced)


def test_plain_returns_the_number_of_a_traced_value(trace):
    assert untraced_value(leaf(trace, 7.0)) == 7.0
    assert untraced_value(8.0) == 8.0


def test_traced_arrays_keep_their_shape(trace):
    traced_price = FORMULA.extended_price(leaf(trace, np.array([1.0, 2.0])), 3)
    assert traced_price.value.tolist() == [3, 6]


def test_scopes_name_the_nodes_made_in_them(trace):
    price = leaf(trace, 10.0)
    with scope("cost"):
        terms = []
        for part in ("rack", "tray/chip"):
            with scope("servers", part):
                terms.append(FORMULA.extended_price(price, 2))
        total_cost = total("sum", terms)
    assert [term.node.id for term in terms] == [
        "cost/servers/rack/extended_price",
        "cost/servers/tray/chip/extended_price",
    ]
    assert total_cost.node.id == "cost/sum"
    assert [name for name, _ in total_cost.node.inputs] == ["servers/rack", "servers/tray/chip"]
    assert price.node.id == "parts.x.price"


def test_a_name_given_twice_in_a_place_is_numbered(trace):
    with scope("here"):
        price_nodes = [
            FORMULA.extended_price(leaf(trace, price, path=f"parts.{price:g}.price"), 2).node
            for price in (1.0, 2.0)
        ]
    assert [node.id for node in price_nodes] == ["here/extended_price", "here/extended_price-2"]


def test_counts_are_shared_within_a_place(trace):
    def counts(scope_name):
        with scope(scope_name):
            return [
                dict(FORMULA.extended_price(leaf(trace, 1.0), number).node.inputs)["quantity"]
                for number in (2, 2.0, np.float64(2), 3)
            ]

    here, there = counts("here"), counts("there")
    assert here[0] is here[1] is here[2]
    assert [here[0].id, here[3].id, there[0].id] == [
        "here/quantity",
        "here/quantity-2",
        "there/quantity",
    ]


def test_a_place_closes_with_an_error(trace):
    with pytest.raises(RuntimeError), scope("here"):
        raise RuntimeError
    assert FORMULA.extended_price(leaf(trace, 1.0), 1).node.id == "extended_price"


def test_without_a_recording_no_place_opens():
    assert scope("one") is scope("another", "place")
