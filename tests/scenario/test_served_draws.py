"""The cache of draws changes no number, whichever question came before."""

from __future__ import annotations

import numpy as np
import pytest

import tco
from tests.catalogue import CATALOGUE

SYSTEM = "trn3-nl72x2"
DRAWN = {
    "parts.trn3.hbm_bandwidth": (np.linspace(4.2e12, 5.2e12, 5), "byte/s"),
    "terms.utilisation": (np.linspace(0.6, 0.9, 5), "ratio"),
}
SPEEDS = (20.0, 80.0)


def metrics_under(settings, folder, monkeypatch):
    """Return all metrics of the draws under settings, with the cache in a folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    draws = tco.evaluate_draws(SYSTEM, DRAWN | settings, catalogue=CATALOGUE, speeds=SPEEDS)
    return [
        (name, array)
        for speed_draws in (draws, *draws.by_speed.values())
        for name, array in speed_draws.metrics.items()
        if array is not None
    ]


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("site.electricity_price", "0.05 USD/kWh", "0.11 USD/kWh"),
        ("parts.trn3.price", "5000 USD", "12000 USD"),
        ("parts.trn3.hbm_capacity", "144 GB", "108 GB"),
    ],
)
def test_metrics_are_the_same_whatever_was_asked_before(path, before, after, tmp_path, monkeypatch):
    earlier = metrics_under({path: before}, tmp_path / "asked", monkeypatch)
    again = metrics_under({path: after}, tmp_path / "asked", monkeypatch)
    CATALOGUE.once("programs", dict).clear()
    fresh = metrics_under({path: after}, tmp_path / "empty", monkeypatch)
    assert [name for name, _ in again] == [name for name, _ in fresh]
    for (_, ours), (_, theirs) in zip(again, fresh, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert any(
        not np.array_equal(ours, theirs, equal_nan=True)
        for (_, ours), (_, theirs) in zip(earlier, again, strict=True)
    )


def test_another_price_chooses_no_plan_anew(tmp_path, monkeypatch):
    CATALOGUE.once("programs", dict).clear()
    metrics_under({"site.electricity_price": "0.05 USD/kWh"}, tmp_path, monkeypatch)

    def refuse(*_):
        raise AssertionError("plans are searched again")

    monkeypatch.setattr("tco.performance.serving.plan_choice_compiled.promising", refuse)
    metrics_under({"site.electricity_price": "0.06 USD/kWh"}, tmp_path, monkeypatch)
    with pytest.raises(AssertionError, match="searched again"):
        metrics_under({"parts.trn3.hbm_capacity": "108 GB"}, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("path", "drawn", "text"),
    [
        ("site.electricity_price", (0.08, "USD/kWh"), "0.08 USD/kWh"),
        ("parts.trn3.hbm_capacity", (144e9, "byte"), "144 GB"),
    ],
)
def test_input_that_is_drawn_and_then_set_traces_no_arithmetic_anew(
    path, drawn, text, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    CATALOGUE.once("programs", dict).clear()
    number, unit = drawn
    settings = DRAWN | {path: (np.full(5, number), unit)}
    before = tco.evaluate_draws(SYSTEM, settings, catalogue=CATALOGUE)
    CATALOGUE.once("programs", dict).clear()

    def refuse(*_):
        raise AssertionError("arithmetic is traced again")

    monkeypatch.setattr("tco.scenario.evaluate_samples.metric_arithmetics", refuse)
    after = tco.evaluate_draws(SYSTEM, DRAWN | {path: text}, catalogue=CATALOGUE)
    for name, array in before.metrics.items():
        if array is not None:
            np.testing.assert_array_equal(array, after.metrics[name])


def test_another_price_chooses_no_plan_of_a_pair_of_inputs_anew(tmp_path, monkeypatch):
    CATALOGUE.once("programs", dict).clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def pairs_at(price):
        settings = {"site.electricity_price": price}
        metric = "perf_per_tco_vs_baseline"
        return tco.sensitivity(SYSTEM, metric, set=settings).pairs

    pairs = pairs_at("0.05 USD/kWh")

    def refuse(*_):
        raise AssertionError("plans are searched again")

    monkeypatch.setattr("tco.performance.serving.plan_choice_compiled.promising", refuse)
    assert pairs_at("0.11 USD/kWh") != pairs


def test_draws_in_another_order_are_grouped_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    chips = np.array([1440.0, 14400.0, 144000.0, 14400.0])
    settings = [{"cluster.chips": (order, "count")} for order in (chips, chips[::-1])]
    first = tco.evaluate_draws("gb200-nvl72", settings[0], catalogue=CATALOGUE)

    def refuse(*_):
        raise AssertionError("draws are grouped again")

    monkeypatch.setattr("tco.scenario.draw_groups.groups_by_structure", refuse)
    again = tco.evaluate_draws("gb200-nvl72", settings[1], catalogue=CATALOGUE)
    costs = [draws.metrics["tco_usd_per_chip_hour"] for draws in (first, again)]
    assert len(np.unique(costs[0])) == 3
    np.testing.assert_array_equal(costs[0], costs[1][::-1])


def test_draws_of_a_system_with_one_part_to_choose_are_grouped_from_the_cache(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    drawn = {"cluster.chips": (np.array([1440.0, 14400.0, 144000.0]), "count")}
    prices = [{"site.electricity_price": f"{price} USD/kWh"} for price in (0.0601, 0.0602)]
    tco.evaluate_draws("trn3-nl32x2", drawn | prices[0], catalogue=CATALOGUE)

    def refuse(*_):
        raise AssertionError("draws are grouped again")

    monkeypatch.setattr("tco.scenario.draw_groups.groups_by_structure", refuse)
    draws = tco.evaluate_draws("trn3-nl32x2", drawn | prices[1], catalogue=CATALOGUE)
    assert np.isfinite(draws.metrics["tco_usd_per_chip_hour"]).all()


@pytest.mark.parametrize("system", ["trn3-nl72x2", "gb200-nvl72"])
def test_draws_of_stated_rates_are_the_same_from_the_cache(system, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    utilisation, chips = np.array([0.6, 0.7, 0.9]), np.array([1440.0, 14400.0, 144000.0])
    drawn = {"terms.utilisation": (utilisation, "ratio"), "cluster.chips": (chips, "count")}
    stated = {"workload": "stated", "workload.output_rate": "1000 token/s/chip"}

    def metrics_at(price):
        CATALOGUE.once("programs", dict).clear()
        settings = stated | {"site.electricity_price": f"{price} USD/kWh"}
        return tco.evaluate_draws(system, drawn | settings, catalogue=CATALOGUE).metrics

    expected = metrics_at(0.08)
    metrics_at(0.05)

    def refuse(*_):
        raise AssertionError("programs are traced again")

    monkeypatch.setattr("tco.scenario.scenario_programs.record_scenario", refuse)
    again = metrics_at(0.08)
    for draw in range(3):
        single = tco.evaluate(
            system,
            stated
            | {
                "site.electricity_price": "0.08 USD/kWh",
                "terms.utilisation": f"{utilisation[draw]}",
                "cluster.chips": f"{chips[draw]}",
            },
            catalogue=CATALOGUE,
        ).metrics
        for metric, array in again.items():
            if array is not None:
                assert array[draw] == pytest.approx(single[metric], rel=1e-9)
                assert array[draw] == expected[metric][draw]
    assert again["usd_per_million_output_tokens"] is not None
