"""Settings such as `+20%` change an input by a share of its value, in Python as in `--set`."""

from __future__ import annotations

import pickle

import pytest

import tco
from tests.cli import document

TRN3, GB200 = "trn3-nl72x2", "gb200-nvl72"
HOUR = "tco_usd_per_chip_hour"
PRICE = "site.electricity_price"


def test_relative_setting_of_an_input_is_its_value_changed():
    base = tco.evaluate(GB200).inputs[PRICE]
    relative = tco.evaluate(GB200, set={PRICE: "+20%"})
    absolute = tco.evaluate(GB200, {PRICE: f"{base.value * 1.2!r} {base.unit}"})
    assert relative.metrics[HOUR] == pytest.approx(absolute.metrics[HOUR], rel=1e-12)
    assert relative.metrics[HOUR] > tco.evaluate(GB200).metrics[HOUR]
    command = document("price", GB200, "--set", f"{PRICE}=+20%")
    assert command["metrics"][HOUR] == pytest.approx(relative.metrics[HOUR], rel=1e-12)


def test_relative_setting_of_a_price_built_from_parts_is_that_of_the_command():
    path = "parts.trn3.price"
    relative = tco.evaluate(TRN3, {path: "-10%"}).metrics[HOUR]
    assert relative < tco.evaluate(TRN3).metrics[HOUR]
    command = document("price", TRN3, "--set", f"{path}=-10%")
    assert command["metrics"][HOUR] == pytest.approx(relative, rel=1e-12)


def test_draws_take_relative_settings_beside_arrays():
    draws = tco.evaluate_draws(GB200, {"terms.rate": ([0.08, 0.12], ""), PRICE: "+20%"})
    for index, rate in enumerate((0.08, 0.12)):
        single = tco.evaluate(GB200, {"terms.rate": rate, PRICE: "+20%"}).metrics[HOUR]
        assert draws.metrics[HOUR][index] == pytest.approx(single, rel=1e-9)


def test_relative_setting_of_a_text_is_refused():
    with pytest.raises(tco.DataError, match="no number; set it as a whole"):
        tco.evaluate(GB200, {"workload.model": "+20%"})


def test_functions_of_python_can_be_sent_to_other_processes():
    assert pickle.loads(pickle.dumps(tco.evaluate)) is tco.evaluate
