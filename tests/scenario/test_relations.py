"""Relations that hold of any system at any inputs: each system, four seeds, inputs drawn by lot."""

from __future__ import annotations

import numpy as np
import pytest

import tco
from tco.core.units import unit_table
from tests.catalogue import CATALOGUE, load_system

SYSTEMS = CATALOGUE.ids("systems")
SEEDS = (50_771, 90_233, 27_803, 64_019)
TRIES = 8  # inputs of a system and seed
GROSS, USED = "tco_gross_usd_per_chip_hour", "tco_usd_per_used_chip_hour"
RATE = "output_tokens_per_s_per_chip"
PRICES = (".price", ".own_price", ".electricity_price", ".usd_per_mw", ".labour_rate")
SPEEDS = ("hbm_bandwidth", "peak_fp8", "peak_bf16", "scale_up_bandwidth")
on_every_system = pytest.mark.parametrize("name", SYSTEMS)
with_each_seed = pytest.mark.parametrize("seed", SEEDS)
pytestmark = pytest.mark.thorough


def answer(name, path=None, value=0.0, unit="", structure=None):
    """Return the result of a system, with one input set or none."""
    settings = {} if path is None else {path: (value, unit)}
    return tco.evaluate(name, settings, structure=structure, catalogue=CATALOGUE, refuse=False)


def draws_of(name, seed):
    """Return random numbers of a system, so that systems may run in any order."""
    return np.random.default_rng([seed, SYSTEMS.index(name)])


def chosen_inputs(name, base, seed, is_wanted):
    """Return inputs of a result that are above zero, drawn by lot among those that are wanted."""
    paths = [path for path in base.inputs if base.inputs[path].value > 0 and is_wanted(path)]
    draws = draws_of(name, seed)
    assert paths
    picked = draws.choice(paths, min(TRIES, len(paths)), replace=False).tolist()
    return [(path, base.inputs[path], float(draws.uniform(1.01, 3))) for path in picked]


def differing(metrics, reference, tolerance):
    """Return the metrics that differ; one without a value equals only another without."""
    return [
        name
        for name, value in metrics.items()
        if (value is None) != (reference[name] is None)
        or (value is not None and value != pytest.approx(reference[name], rel=tolerance))
    ]


@on_every_system
@with_each_seed
def test_a_dearer_part_never_makes_an_answer_cheaper(name, seed):
    """A part among alternatives is chosen by its used hour, which then counts."""
    base = answer(name)
    for path, usual, factor in chosen_inputs(name, base, seed, lambda path: path.endswith(PRICES)):
        dearer = answer(name, path, usual.value * factor, usual.unit)
        metrics = (USED,) if path in base.structure.compared else (GROSS, "capex_usd")
        for metric in metrics:
            least = base.metrics[metric] * (1 - 1e-12)
            assert dearer.metrics[metric] >= least, (path, factor, metric)
        assert dearer.metrics[RATE] == base.metrics[RATE], path


@on_every_system
@with_each_seed
def test_a_faster_chip_is_never_slower(name, seed):
    base = answer(name)
    if base.metrics[RATE] is None:
        pytest.skip("no plan reaches the speed")
    chip = load_system(CATALOGUE, name).chip
    speeds = [f"parts.{chip}.{speed}" for speed in SPEEDS]
    for path, usual, factor in chosen_inputs(name, base, seed, speeds.__contains__):
        faster = answer(name, path, usual.value * factor, usual.unit)
        assert faster.metrics[RATE] >= base.metrics[RATE] * (1 - 1e-9), (path, factor)


@on_every_system
@with_each_seed
def test_another_unit_is_the_same_answer(name, seed):
    base, table = answer(name), unit_table()
    for path, usual, _ in chosen_inputs(name, base, seed, lambda path: True):
        size, dimension = table[usual.unit]
        texts = [text for text, unit in table.items() if unit.dimension == dimension]
        unit_text = str(draws_of(name, seed).choice(texts))
        again = answer(name, path, usual.value * size / table[unit_text].factor, unit_text).metrics
        assert differing(again, base.metrics, 1e-9) == [], (path, unit_text)


@on_every_system
@with_each_seed
def test_a_default_that_is_set_changes_nothing(name, seed):
    base = answer(name)
    for path, usual, _ in chosen_inputs(name, base, seed, lambda path: True):
        again = answer(name, path, usual.value, usual.unit).metrics
        assert differing(again, base.metrics, 1e-12) == [], path


@on_every_system
@with_each_seed
def test_an_hour_costs_less_where_more_of_it_is_used(name, seed):
    shares = np.sort(draws_of(name, seed).uniform(0.05, 1, TRIES))
    costs = [answer(name, "terms.utilisation", share, "").metrics[USED] for share in shares]
    assert (np.diff(costs) < 0).all()
