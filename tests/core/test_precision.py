"""Formulas keep their digits: they agree with arithmetic of hundreds of digits (mpmath).

Where a formula subtracts, the difference may be next to nothing.
"""

from __future__ import annotations

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco.core.equation import expression
from tco.core.formula import normal_form
from tests.registry import REGISTRY, ROWS, Symbol, over

EXACT = mpmath.mp.clone()
EXACT.dps = 400  # of numbers next to each other the first hundreds are alike
EXACTLY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "neg": lambda a: -a,
    "max": max,
    "min": min,
    "select": lambda condition, yes, no: yes if condition else no,
    "log2": lambda a: EXACT.log(a, 2),
    "normal_cdf": lambda a: exactly(normal_form(Symbol("name", "x")), {"x": a}),
    **{
        name: getattr(EXACT, name)
        for name in ("sqrt", "exp", "expm1", "log", "log1p", "ceil", "floor")
    },
}


def exactly(value, inputs):
    """Return a symbol as computed exactly."""
    if not isinstance(value, Symbol):
        return EXACT.mpf(float(value))
    if value.operation == "name":
        return inputs[value.arguments[0]]
    return EXACTLY[value.operation](*(exactly(argument, inputs) for argument in value.arguments))


@over({row.id: row for row in ROWS})
def test_no_golden_row_loses_digits(row):
    """A formula gives the value that its body gives in exact arithmetic, to 1e-12."""
    for factor in (1.0, 0.93, 1.04):
        inputs = {
            name: value * (1 if input_index % 2 else factor)
            for input_index, (name, value) in enumerate(row.inputs.items())
        }
        exact = exactly(
            expression(row.formula), {name: EXACT.mpf(value) for name, value in inputs.items()}
        )
        assert float(row.formula.function(**inputs)) == pytest.approx(
            float(exact), rel=1e-12, abs=0
        ), factor


def between(least, most):
    """Numbers of all magnitudes between two."""
    exponents = st.floats(float(EXACT.log10(least)), float(EXACT.log10(most)))
    return exponents.map(lambda exponent: min(max(10.0**exponent, least), most))


TIMES = between(1e-9, 1e5)
SHARES = st.one_of(
    between(1e-15, 1), between(1e-15, 1).map(lambda rest: 1 - rest), st.sampled_from([0.0, 1.0])
)
RATES = st.one_of(between(1e-12, 1), st.just(0.0))
COUNTS = st.integers(1, 10**5)

# formula -> the ranges of its inputs, and its equation as textbooks have it
PLAIN = {
    "smooth_maximum": (
        {"first_time": TIMES, "second_time": TIMES, "sharpness": st.floats(1, 20)},
        lambda first_time, second_time, p: (first_time**p + second_time**p) ** (1 / p),
    ),
    "added_beside": (
        {"first_time": TIMES, "second_time": TIMES, "sharpness": st.floats(1, 20)},
        lambda first_time, second_time, p: (first_time**p + second_time**p) ** (1 / p) - first_time,
    ),
    "capital_recovery_factor": (
        {"rate": RATES, "life": st.floats(0.5, 40), "period": between(1 / 12, 1)},
        lambda r, life, period: (
            (r / (1 - (1 + r) ** (-life / period)) if r else period / life) / period
        ),
    ),
    "recoverable_share": (
        {
            "residual": SHARES,
            "rate": between(1e-9, 1),
            "life": st.floats(0.5, 40),
            "period": between(1 / 12, 1),
        },
        lambda residual, rate, life, period: 1 - residual / (1 + rate) ** (life / period),
    ),
    "conversion_loss": (
        {"load": between(1, 1e9), "efficiency": st.floats(0.5, 1)},
        lambda load, efficiency: load * (1 / efficiency - 1),
    ),
    "murphy_yield": (
        {"area": between(1e-3, 1e3), "defect_density": between(1e-7, 1e-1)},
        lambda area, density: ((1 - EXACT.exp(-area * density)) / (area * density)) ** 2,
    ),
    "distinct_places": (
        {"units": COUNTS, "active": st.integers(1, 64)},
        lambda place_count, active: place_count * (1 - (1 - 1 / place_count) ** active),
    ),
    "limited_places": (
        {
            "units": COUNTS,
            "missed": SHARES,
            "groups": st.integers(1, 64),
            "drawn": st.integers(1, 8),
            "active": st.integers(8, 64),
        },
        lambda units, missed, groups, drawn, active: (
            drawn * (units / groups) * (1 - (1 - groups / units) ** (active / drawn))
            if units > groups
            else units * (1 - missed)
        ),
    ),
    "distinct_experts": (
        {
            "experts": st.integers(65, 10**5),
            "active": st.integers(1, 64),
            "tokens": between(1e-3, 1e6),
            "local_experts": COUNTS,
        },
        lambda experts, active, tokens, local: local * (1 - (1 - active / experts) ** tokens),
    ),
    "accepted_tokens": (
        {"draft_tokens": st.integers(0, 64), "acceptance": SHARES},
        lambda k, a: sum(a**n for n in range(int(k) + 1)),
    ),
    "partly_recomputed": (
        {"kept_step": TIMES, "recomputed_step": TIMES, "share": SHARES},
        lambda kept_time, recomputed, share: kept_time + share * (recomputed - kept_time),
    ),
    "fed_request_rate": (
        {
            "rate": between(1e-6, 1e6),
            "interval": between(1e-6, 1e6),
            "sharpness": st.floats(1, 100),
        },
        lambda rate, pool, p: rate / (1 + (rate * pool) ** p) ** (1 / p),
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_formula_is_its_textbook_form_computed_exactly(name):
    ranges, plain = PLAIN[name]
    function = REGISTRY[name].function

    @settings(max_examples=100)
    @given(st.fixed_dictionaries(ranges))
    def same(inputs):
        exact = float(plain(*(EXACT.mpf(inputs[name]) for name in ranges)))
        assert float(function(**inputs)) == pytest.approx(exact, rel=1e-12, abs=1e-280)

    same()
