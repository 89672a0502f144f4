"""Formulas of rows: Python's arithmetic, pint's units, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco import DataError
from tco.core.expression import amount, evaluate_formula
from tests.registry import registry, unit

NAMES = {"a": (3.0, "GB"), "parts.some-part.rate": (2.0, "GB/s"), "t": (5.0, "s"), "n": (4.0, "")}


class Scope:
    def __init__(self):
        self.functions = {"twice": self.twice, "spelt": self.spelt}

    def twice(self, number: float):
        return amount(2 * number, "")

    def spelt(self, name: str, **settings: str):
        return amount(len(name) + sum(len(path) + len(text) for path, text in settings.items()), "")

    def named(self, name):
        if name not in NAMES:
            raise DataError(f"name {name!r}")
        value, text = NAMES[name]
        return amount(value * unit(text).factor, text)

    def text(self, name):
        return {"n": "four"}.get(name, name)

    def check(self, parameter, name):
        if name == "unknown":
            raise DataError(f"{parameter} {name!r}")


def value(text):
    return evaluate_formula(text, Scope(), lambda offset: str(offset + 1))


def spelt(inner):
    """Formulas that take formulas."""
    return st.one_of(
        st.tuples(inner, st.sampled_from([" + ", " - ", " * ", " / ", " // ", " % "]), inner).map(
            "".join
        ),
        inner.map("({})".format),
        inner.map("-{}".format),
        st.tuples(inner, inner).map(lambda two: f"min({two[0]}, max({two[1]}, 7))"),
        inner.map("round({})".format),
    )


@given(st.recursive(st.sampled_from(["1.", "2.5", "40.", "1e3", "0.125"]), spelt, max_leaves=12))
def test_arithmetic_is_that_of_python(text):
    try:
        expected = float(eval(text))
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            value(text)
    else:
        assert value(text) == (expected, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a / parts.some-part.rate", "3 GB / (2 GB/s)"),
        ("a - parts.some-part.rate * t", "3 GB - 2 GB/s * 5 s"),
        ("(a / t) ** 2", "(3 GB / (5 s)) ** 2"),
        ("a ** (1 / 2)", "(3 GB) ** 0.5"),
        ("twice(n) * t", "2 * 4 * 5 s"),
        ("min(a, 2 * a)", "3 GB"),
        ("a % (parts.some-part.rate * t)", "3 GB"),
    ],
)
def test_units_are_those_of_pint(text, expected):
    ours = registry()
    pint_quantity, computed_amount = (
        ours.Quantity(ours.parse_expression(expected)).to_base_units(),
        value(text),
    )
    assert computed_amount.value == pytest.approx(pint_quantity.magnitude, rel=1e-12)
    assert computed_amount.powers == {
        name: float(str(power)) for name, power in pint_quantity.dimensionality.items()
    }


def test_names_hold_dots_hyphens_and_variants():
    assert value("spelt(trn3-nl32x2@switch=gen2)").value == len("trn3-nl32x2@switch=gen2")
    words = (
        "a b*",
        "workload.model",
        "llama-3.1-405b",
        "cluster.chips",
        "576",
        "x",
        "20 token/s",
        "y",
        "four",
    )
    assert value(
        "spelt('a b*', workload.model=llama-3.1-405b, cluster.chips=576, x='20 token/s', y=n)"
    ).value == sum(map(len, words))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a + t", "1: 'a + t': [time], expected [information]"),
        ("n * (t - n)", "6: 't - n': dimensionless, expected [time]"),
        ("2 ** t", "1: '2 ** t': [time], expected dimensionless"),
        ("min(n, t)", "8: 't': [time], expected dimensionless"),
        ("twice(t)", "7: 't': [time], expected dimensionless"),
        ("1 + spelt(unknown)", "11: name 'unknown'"),
        ("1 + m", "5: name 'm'"),
        ("twice()", "1: expected twice(number)"),
        ("round(1, 2)", "1: expected round(number)"),
        ("twic(n)", "1: unknown function 'twic'; did you mean 'twice'?"),
        ("2 + )", "5: broken formula"),
        ("", "1: broken formula"),
        ("(-1) ** 0.5", "1: a root of a number below zero"),
        ("9 ** 9 ** 9 ** 9", "1: a formula nested too deeply, or a number beyond 1e308"),
        ("-" * 1900 + "1", "1: a formula nested too deeply"),
        ("1" * 1900, "1: a formula nested too deeply, or a number beyond 1e308"),
        ("1 + " * 600 + "1", "1: expected a formula of at most 2,000 ASCII characters"),
        ("\u00b5", "1: expected a formula of at most 2,000 ASCII characters"),
    ],
)
def test_a_fault_is_told_with_its_place(text, message):
    with pytest.raises(DataError) as caught:
        value(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "__import__('os').system('true')",
            "().__class__",
            "a.__class__",
            "[n for n in (1, 2)]",
            "lambda: 1",
            "n if n else 1",
            "n < 1",
            "True",
        ),
        *(
            "'n'",
            "1j",
            "(n := 3)",
            "{n}",
            "n[0]",
            "twice(*[n])",
            "spelt(**{})",
            "f'{n}'",
            "twice.__globals__",
            "not n",
            "~n",
            "n @ n",
        ),
    ],
)
def test_nothing_else_is_carried_out(text):
    with pytest.raises(DataError):
        value(text)
