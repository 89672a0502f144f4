"""Typeset equations: read back as mathematics they give what the formulas give."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from xml.etree import ElementTree

import mpmath
import pytest

from tests.registry import FORMULAS, Symbol, each_row

SITE = Path(__file__).parents[2] / "reports" / "site" / "mathematics.py"
spec = spec_from_file_location("mathematics", SITE)
assert spec is not None
assert spec.loader is not None
mathematics = module_from_spec(spec)
spec.loader.exec_module(mathematics)

OPERATORS = {
    "+": "+",
    "−": "-",
    "⋅": "*",
    "<": "<",
    ">": ">",
    "≤": "<=",
    "≥": ">=",
    "(": "(",
    ")": ")",
    ",": ",",
    "⌈": "ceil(",
    "⌉": ")",
    "⌊": "floor(",
    "⌋": ")",
}
FUNCTIONS = {"ln": "log", "max": "max", "min": "min", "Φ": "phi"}


def spelled(element):
    """Return an element as an expression of Python, reading nothing but what a reader sees."""
    inside = [spelled(child) for child in element]
    match element.tag:
        case "mfrac":
            return f"(({inside[0]})/({inside[1]}))"
        case "msup":
            base = element[0]
            while base.tag == "mrow" and len(base) == 1:
                (base,) = base
            assert base.tag != "mfrac", "a fraction under a power reads as a power of its numerator"
            return f"{inside[0]}**({inside[1]})"
        case "msqrt":
            return f"sqrt({''.join(inside)})"
        case "msub":
            return "log2"
        case "mtable":
            (yes, condition), (no, _) = ([spelled(cell) for cell in row] for row in element)
            return f"(({yes}) if ({condition}) else ({no}))"
        case "mn":
            return element.text
        case "mo":
            return "" if element.text == "{" else OPERATORS[element.text]
        case "mtext":
            return ""
        case "mi":
            return FUNCTIONS.get(element.text) or (
                "e" if element.text == "e" else "v_" + element.text.replace(" ", "_")
            )
        case _:
            return "".join(inside)


EXACT = mpmath.mp.clone()
EXACT.dps = 400  # as a difference of numbers next to each other is read from the page
KNOWN = {name: getattr(EXACT, name) for name in ("sqrt", "log", "ceil", "floor", "e")}
KNOWN |= {
    "log2": lambda x: EXACT.log(x, 2),
    "phi": EXACT.ncdf,
    **{
        extremum.__name__: lambda *values, extremum=extremum: extremum(map(EXACT.mpf, values))
        for extremum in (max, min)
    },
}


@each_row
def test_an_equation_reads_back_as_its_formula(row):
    left, right = spelled(
        ElementTree.fromstring(
            mathematics.mathml(row.formula).replace("<mo>=</mo>", "<mo>,</mo>", 1)
        )
    ).split(",", 1)
    assert left == f"v_{row.formula.name}"
    names = {f"v_{name}": EXACT.mpf(value) for name, value in row.inputs.items()}
    equation_value = eval(right, {**KNOWN, **names})
    assert float(equation_value) == pytest.approx(
        row.formula.function(**row.inputs), rel=1e-9, abs=1e-300
    )


def test_every_formula_is_an_element():
    assert all(
        ElementTree.fromstring(mathematics.mathml(formula)).tag == "math" for formula in FORMULAS
    )


A, B, C = (Symbol("name", name) for name in "abc")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (A - (B - C), "v_a-(v_b-v_c)"),
        ((A + B) * C, "(v_a+v_b)*v_c"),
        ((A**B) ** C, "(v_a**(v_b))**(v_c)"),
        (-(A + B), "-(v_a+v_b)"),
        ((A / B) ** C, "(((v_a)/(v_b)))**(v_c)"),
        (A * 1e-9, "v_a*10**(-9)"),
        (A * 2.5e12, "v_a*2.5*10**(12)"),
    ],
)
def test_brackets_stand_where_they_are_needed(expression, text):
    assert spelled(ElementTree.fromstring(mathematics._row(expression))) == text
