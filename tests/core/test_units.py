"""The committed table of units is pint's reading of our unit file, and conversions are exact."""

from __future__ import annotations

import math
import subprocess
import sys
import time

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco import DataError
from tco.core import units
from tests.registry import convert, over, parse_quantity, registry, same_unit, unit, unit_table

TEXTS = sorted(unit_table())


def by_dimension():
    texts_by_dimension: dict[str, list[str]] = {}
    for text, table_unit in unit_table().items():
        texts_by_dimension.setdefault(table_unit.dimension, []).append(text)
    return texts_by_dimension


@over({text: text for text in TEXTS})
def test_the_table_is_what_pint_reads(text):
    table_unit, base = unit_table()[text], registry().Quantity(1, text).to_base_units()
    assert math.isclose(table_unit.factor, base.magnitude, rel_tol=1e-15)
    assert (
        registry().get_dimensionality(table_unit.dimension.replace("dimensionless", ""))
        == base.dimensionality
    )


def test_the_committed_table_is_the_generated_one():
    lines = [
        "unit,factor,dimension",
        *(f"{text},{factor!r},{dimension}" for text, factor, dimension in units.table_rows()),
    ]
    assert (units.data_directory() / "units.csv").read_text(encoding="utf-8").splitlines() == lines


def test_a_dimension_has_one_spelling():
    """Units of one dimension compare equal, whatever pint has read before."""
    for text in ("token/chip/s", "USD/h/chip", "W/chip", "GB/chip/s", "mm^-2", "chip*s*USD"):
        registry().Quantity(1, text).to_base_units()
    assert unit("1/chip*USD/h") == unit("USD/h/chip") == unit("USD/chip/h")
    assert unit("USD*s*chip").dimension == "[chip] * [currency] * [time]"
    assert unit("1/chip/s^2").dimension == "1 / [chip] / [time] ** 2"


def test_every_unit_name_of_the_annotations_is_in_the_table():
    names = [
        value.__metadata__[0]
        for name, value in vars(units).items()
        if hasattr(value, "__metadata__") and name[0].isupper()
    ]
    assert len(names) >= 40
    assert [text for text in names if text not in unit_table()] == []


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (1, "year", "h", 8760),
        (1, "year", "month", 12),
        (1, "month", "h", 730),
        (1, "day", "h", 24),
        (1, "GB", "byte", 1e9),
        (1, "GiB", "byte", 2**30),
        (144, "GiB", "byte", 154_618_822_656),
        (1, "TiB", "GiB", 1024),
        (1, "MiB", "KiB", 1024),
        (1, "kB", "byte", 1000),
        (8, "bit", "byte", 1),
        (400, "Gb/s", "byte/s", 50e9),
        (400, "Gbps", "GB/s", 50),
        (12.8, "Tb/s", "byte/s", 1.6e12),
        (1, "PFLOP/s", "TFLOP/s", 1000),
        (1, "kWh", "J", 3.6e6),
        (1, "W", "J/s", 1),
        (83, "USD/MWh", "USD/kWh", 0.083),
        (0.09, "USD/kWh", "USD/Wh", 0.09 / 1000),
        (11.5, "MUSD/MW", "USD/W", 11.5),
        (150, "USD/kW/month", "USD/W/month", 0.15),
        (0.09, "1/cm^2", "1/mm^2", 0.0009),
        (85, "%", "", 0.85),
        (1, "BUSD", "USD", 1e9),
        (2.4, "GHz", "1/s", 2.4e9),
    ],
)
def test_well_known_conversions_are_exact(value, source, target, expected):
    assert convert(value, source, target) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (0.09, "USD/kWh", "USD/Wh", 0.09 / 1000),
        (83, "USD/MWh", "USD/kWh", 83 / 1000),
        (4.9, "TB/s", "byte/s", 4.9e12),
    ],
)
def test_round_numbers_stay_exact(value, source, target, expected):
    assert convert(value, source, target) == expected


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("TB", "TB/s"),
        ("GB", "GFLOP"),
        ("USD/chip", "USD"),
        ("token/s", "token/s/chip"),
        ("W", "Wh"),
        ("USD/kWh", "USD/kW"),
        ("1/year", ""),
        ("chip", ""),
        ("", "s"),
        ("rack", "chip"),
    ],
)
def test_another_dimension_is_refused(source, target):
    with pytest.raises(DataError) as caught:
        convert(1, source, target)
    assert unit(target).dimension in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "year^50",
        "year^-50",
        "year^9999999",
        "year**9999999",
        "year^9e9",
        "year^9^9^9",
        "year^(9^9)",
        "(((((((((year^9)^9)^9)^9)^9)^9)^9)^9)^9)",
        "year\u2079\u2079\u2079\u2079\u2079\u2079\u2079",
        "year^9 squared cubed squared",
        "year" + "*year" * 100_000,
    ],
)
def test_a_unit_of_a_large_power_is_refused_at_once(text):
    begun = time.perf_counter()
    with pytest.raises(DataError, match=r"is not a unit: expected .* exponents of one digit"):
        unit(text)
    assert time.perf_counter() - begun < 1


@pytest.mark.parametrize("text", ["-1*year", "0*year", "1e200*1e200*year"])
def test_a_unit_has_a_finite_size_above_zero(text):
    with pytest.raises(DataError, match="is not a unit"):
        unit(text)


@pytest.mark.parametrize("text", ["mm\u00b2", "mm ^ 2", "mm**(2)", "mm*mm"])
def test_small_powers_are_read_as_people_write_them(text):
    assert same_unit(text, "mm^2")


@pytest.mark.parametrize(
    "text",
    ["furlong", "gigabyte", "mb", "1/", "$", "GB/", "kWhr", "(", "1 +", "TFLOPS", "\x00", "m" * 300]
    + [f"GB{mark}s" for mark in ";#,?@$!&|~:"],
)
def test_a_text_that_is_no_unit_is_refused(text):
    with pytest.raises(DataError, match="is not a unit"):
        unit(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("TFLOPS", "TFLOP"), ("USD/kwh", "USD/kWh"), ("Gib", "GiB"), ("USD/chp", "USD/chip")],
)
def test_a_mistyped_unit_gets_the_nearest_one(text, hint):
    with pytest.raises(DataError, match=f"did you mean '{hint}"):
        unit(text)


def test_a_unit_beyond_the_table_is_read_by_pint():
    assert "USD/kW/day" not in unit_table()
    assert convert(24, "USD/kW/day", "USD/kW/h") == pytest.approx(1, rel=1e-15)


def test_gbps_is_bits():
    """pint's own definitions read Gbps as gigabaud and a byte as a dimensionless count."""
    assert convert(8, "Gbps", "byte/s") == 1e9
    with pytest.raises(pint.DimensionalityError):
        registry().Quantity(1, "byte") + registry().Quantity(0.5, "percent")


def test_a_year_is_8760_hours():
    assert registry().Quantity(1, "year").to("hour").magnitude == pytest.approx(8760, rel=1e-15)
    assert pint.UnitRegistry().Quantity(1, "year").to("hour").magnitude == pytest.approx(
        8766, rel=1e-12
    )


PAIRS = [(a, b) for texts in by_dimension().values() for a in texts for b in texts]


@given(st.sampled_from(PAIRS), st.floats(1e-12, 1e15) | st.floats(-1e15, -1e-12))
def test_conversion_there_and_back_returns_the_value(pair, value):
    from_unit, to_unit = pair
    assert convert(convert(value, from_unit, to_unit), to_unit, from_unit) == pytest.approx(
        value, rel=4e-16, abs=0
    )


@given(st.sampled_from(PAIRS), st.floats(1e-6, 1e6))
def test_conversion_agrees_with_pint(pair, value):
    from_unit, to_unit = pair
    there = registry().Quantity(value, from_unit).to(to_unit or "dimensionless").magnitude
    assert convert(value, from_unit, to_unit) == pytest.approx(there, rel=1e-14)


@pytest.mark.parametrize(
    ("left_unit", "right_unit", "expected"),
    [
        ("byte/s", "B/s", True),
        ("W", "J/s", True),
        ("GB", "GiB", False),
        ("USD", "kUSD", False),
        ("year", "month", False),
        ("chip", "rack", False),
        ("", "count", True),
    ],
)
def test_same_unit(left_unit, right_unit, expected):
    assert same_unit(left_unit, right_unit) is expected
    assert same_unit(right_unit, left_unit) is expected


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("0.083 USD/kWh", "USD/Wh", 0.083 / 1000),
        ("9000 USD", "USD", 9000),
        ("5 year", "year", 5),
        ("60 month", "year", 5),
        ("1.2", "", 1.2),
        ("85%", "", 0.85),
        ("85 %", "", 0.85),
        ("1e3 W", "W", 1000),
        ("  4.9 TB/s ", "byte/s", 4.9e12),
        ("9,000 USD", "USD", 9000),
        ("1,234,567.5 USD", "USD", 1234567.5),
        ("9k USD", "USD", 9000),
        ("9kUSD", "USD", 9000),
        ("1.5 M USD", "USD", 1.5e6),
        ("2 bn USD", "USD", 2e9),
        ("9000USD", "USD", 9000),
        ("$9000", "USD", 9000),
        ("$9,000", "USD", 9000),
        ("$ 9k", "USD", 9000),
        ("$0.09/kWh", "USD/Wh", 0.09 / 1000),
        ("$2M/MW", "USD/W", 2),
        ("20MW", "W", 20e6),
        ("0.02GW", "W", 20e6),
        ("1e3W", "W", 1000),
        ("64KiB", "byte", 65536),
        ("64 B", "byte", 64),
        ("100k", "", 1e5),
    ],
)
def test_a_quantity_as_users_write_it(text, target, expected):
    assert parse_quantity(text, target) == pytest.approx(expected, rel=1e-15)


UNREADABLE = (
    "USD|many USD|nan USD|inf USD|-inf|1e999 USD|9000|9000 W|1,00 USD|1,0000 USD|$9 USD|9 m USD|"
    "%|0x10 USD|1 2 USD|,5 USD|$|9000 €|£9000"
)


@pytest.mark.parametrize("text", ["", *UNREADABLE.split("|")])
def test_unreadable_quantity_is_refused(text):
    with pytest.raises(DataError):
        parse_quantity(text, "USD")


def test_the_table_needs_no_pint():
    code = (
        "import sys; from tco.core.units import convert; convert(1, 'GB', 'byte'); "
        "sys.exit('pint' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
