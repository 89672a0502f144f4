"""With a given structure arrays of values, single values and a recomputed trace agree."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import tco
from tco import DataError
from tco.scenario.resolve import resolve_scenario
from tco.scenario.run_chain import chain_of
from tests.catalogue import CATALOGUE
from tests.independent_recomputation import recomputed
from tests.scenario_helpers import bounds, load_scenario, nodes_below

SCENARIOS = sorted(CATALOGUE.scenarios)
ROOM = {"site.rack_kw_max": "900 kW"}  # no rack is refused
SWITCH, MEMORY = "parts.scorpio-p-32.price", "parts.trn3.hbm_bandwidth"
NAME = "trn3-nl72x2"
# every input by itself, too
WHOLE = (
    NAME,
    "gb200-nvl72",
    "train-gpt3-175b-a100x64",
    "llama-3.1-405b-training-trn3-nl72x2",
)
HOUR, TOKEN = "tco_usd_per_chip_hour", "usd_per_million_output_tokens"

each_scenario = pytest.mark.parametrize("name", SCENARIOS)


@cache
def answer(name):
    """A scenario with its trace. Do not change it."""
    return tco.evaluate(name, catalogue=CATALOGUE, trace=True)


def ask(name, settings, structure=None):
    return tco.evaluate(
        name, ROOM | settings, structure=structure or answer(name).structure, catalogue=CATALOGUE
    )


def metrics_with(name, settings):
    """The metrics of one value of every input, without what people read beside them."""
    inputs = resolve_scenario(
        CATALOGUE, load_scenario(CATALOGUE, name), ROOM | settings, {}, answer(name).structure
    )
    return chain_of(inputs, inputs.values(), None).metrics


def another(input_value):
    """Another value of an input, within its bounds: a fifth more, or above zero what is none."""
    low, high = bounds(input_value.path)
    if input_value.path.endswith((".released", ".grown_up")):  # a year with its part
        return input_value.value + 0.5
    value = input_value.value * 1.2 if input_value.value else 0.3
    return min(max(value, low), high) if value <= high else max(input_value.value * 0.8, low)


def same(actual, expected, tolerance):
    return abs(actual - expected) <= tolerance * abs(expected)


@each_scenario
def test_moved_inputs_agree_in_arrays_single_values_and_trace(name):
    """Place 0 of each array is the scenario as it is, and place i moves the i-th input.

    Arrays and trace agree in all places, single values in every eighth where they are slow.
    """
    base = answer(name)
    # no requests, more given back than is paid, no flag
    refused = (
        "workload.concurrency",
        "rebates.credo-2021.vested",
        "workload.as_deployed",
    )
    moved_values = {
        path: another(input_value)
        for path, input_value in base.inputs.items()
        if path not in refused
    }
    arrays = {
        path: np.full(len(moved_values) + 1, base.inputs[path].value, dtype=float)
        for path in moved_values
    }
    for input_index, path in enumerate(moved_values, 1):
        arrays[path][input_index] = moved_values[path]
    batch_metrics = ask(
        name, {path: (array, base.inputs[path].unit) for path, array in arrays.items()}
    ).metrics
    traced = recomputed(base.nodes, arrays)
    effects = 0
    for input_index, path in enumerate([None, *moved_values]):
        if input_index % (1 if name in WHOLE else 8):
            continue
        single_metrics = (
            base.metrics
            if path is None
            else metrics_with(name, {path: (moved_values[path], base.inputs[path].unit)})
        )
        effects += any(single_metrics.get(metric) != base.metrics[metric] for metric in base.nodes)
        for metric, expected in single_metrics.items():
            if expected is not None:
                # what two times leave over, as a share of the step: digits of the step, not of what
                # is left
                step_offset = metric == "host_floor"
                assert same(
                    step_offset
                    + np.broadcast_to(batch_metrics[metric], len(moved_values) + 1)[input_index],
                    step_offset + expected,
                    1e-12,
                ), (path, metric)
    assert effects >= (0.7 * len(arrays) if name in WHOLE else 1)
    for metric, traced_values in traced.items():
        assert np.all(same(traced_values, batch_metrics[metric], 1e-9)), metric


@each_scenario
def test_all_inputs_drawn_at_once(name):
    base, generator = answer(name), np.random.default_rng(7)
    ranged = {
        path: input_value
        for path, input_value in base.inputs.items()
        if input_value.low is not None and input_value.low < input_value.high
    }
    ranged.pop("site.rack_kw_max", None)  # a site that a rack does not fit is refused
    draws = {
        path: (generator.uniform(input_value.low, input_value.high, 4), input_value.unit)
        for path, input_value in ranged.items()
    }
    batch_metrics = ask(name, draws).metrics
    for draw_index in range(4):
        single_metrics = ask(
            name, {path: (array[draw_index], unit) for path, (array, unit) in draws.items()}
        ).metrics
        for metric, expected in single_metrics.items():
            assert (batch_metrics[metric] is None) == (expected is None), metric
            if expected is not None:
                assert same(
                    np.broadcast_to(batch_metrics[metric], 4)[draw_index], expected, 1e-12
                ), metric


@each_scenario
def test_a_structure_gives_the_answer_it_was_decided_for(name, tmp_path):
    base = answer(name)
    again = ask(name, {})
    assert (again.structure, again.lines) == (base.structure, base.lines)
    assert again.metrics.keys() == base.metrics.keys()
    # a search adds in arrays, which may differ in the last digit
    for (
        metric,
        value,
    ) in base.metrics.items():
        assert value == again.metrics[metric] or same(again.metrics[metric], value, 1e-14), metric
    base.save(tmp_path / "kept.json")
    loaded_structure = tco.load_result(tmp_path / "kept.json").structure
    assert loaded_structure == base.structure
    assert ask(name, {}, loaded_structure).metrics == again.metrics


def test_a_structure_of_native_formats_is_taken_back():
    native_settings = {"workload.formats": "native", "workload.model": "gpt-oss-120b"}
    base = tco.evaluate(NAME, native_settings, catalogue=CATALOGUE)
    assert base.structure.texts["workload.expert_format"] == "w4a8"
    assert (
        tco.evaluate(NAME, native_settings, structure=base.structure, catalogue=CATALOGUE).metrics
        == base.metrics
    )
    with pytest.raises(DataError, match="was 'w4a8' when the structure was decided"):
        tco.evaluate(
            NAME,
            native_settings | {"workload.expert_format": "fp8"},
            structure=base.structure,
            catalogue=CATALOGUE,
        )


def test_what_was_read_to_decide_is_known():
    structure = answer(NAME).structure
    assert structure.readings["cluster.chips"] == 16384
    assert structure.readings["parts.trn3.peak_fp8"] is True
    assert structure.readings["workload.concurrency"] is False
    assert SWITCH in structure.compared
    assert structure.alternatives == {"tray-switch": "scorpio-p-32"}
    assert structure.choices["network"]["tiers"] == 2
    assert "optic-800g-dr8" in structure.choices["network"]["parts"]
    assert structure.choices["formats"]["precision"] == "fp8"
    assert {"experts", "dispatch"} <= set(structure.choices["operators"]["decode"])


def test_a_dearer_switch_stays_where_the_structure_holds_it():
    base = answer(NAME)
    dearer = {SWITCH: (base.inputs[SWITCH].value * 1.25, "USD")}
    held_capex, free = (
        ask(NAME, dearer).metrics["capex_usd"],
        tco.evaluate(NAME, ROOM | dearer, base.plan, catalogue=CATALOGUE).metrics["capex_usd"],
    )
    assert same(recomputed(base.nodes, {SWITCH: dearer[SWITCH][0]})["capex_usd"], held_capex, 1e-9)
    assert base.metrics["capex_usd"] < free < held_capex  # the tree would take another switch


def test_what_is_zero_is_an_input_of_the_trace():
    leaves = {node.path for node in nodes_below(*answer("gb200-nvl72").nodes.values())}
    assert {
        *(
            "workload.cache_hit",
            "workload.draft_cost",
            "workload.kv_offload",
            "workload.spec_acceptance",
        ),
        *("performance.nvidia.exchange_overlap", "parts.gb200-gpu.frontend_bandwidth"),
    } <= leaves


@pytest.mark.parametrize(
    "setting", ["4.9 TB/s", (4.9, "TB/s"), (np.float64(4900), "GB/s")], ids=str
)
def test_number_is_accepted_in_every_spelling(setting):
    evaluation = ask(NAME, {MEMORY: setting})
    assert evaluation.metrics["hbm_byte_per_s"] == 4.9e12
    assert evaluation.inputs[MEMORY].kind == "assumed"


@pytest.mark.parametrize(
    "bare", [4.9e12, np.float64(4.9e12), np.array([4e12, 5e12])], ids=["float", "numpy", "array"]
)
def test_a_number_without_a_unit_is_refused_where_the_input_has_one(bare):
    with pytest.raises(
        DataError,
        match=rf"^{re.escape(MEMORY)}: .* without a unit, expected 'byte/s' "
        r"or another of its kind, such as \(",
    ):
        ask(NAME, {MEMORY: bare})
    with pytest.raises(DataError, match="without a unit, expected 'year'"):
        tco.compare([NAME], set={"terms.life": 4})
    assert (
        tco.compare([NAME], set={"terms.rate": 0.08}).results[0].inputs["terms.rate"].value == 0.08
    )


def test_many_values_are_converted_to_the_unit_of_their_input():
    assert list(ask(NAME, {MEMORY: (np.array([4.0, 4.9]), "TB/s")}).metrics["hbm_byte_per_s"]) == [
        4e12,
        4.9e12,
    ]


PAIR = np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({SWITCH: (PAIR, "GB")}, f"{SWITCH}: unit 'GB' is .*, expected 'USD'"),
        ({SWITCH: (PAIR, 3)}, "is no setting"),
        ({SWITCH: ("two", "USD")}, "is no setting"),
        ({SWITCH: (np.array([]), "USD")}, "is no setting"),
        ({SWITCH: (PAIR * np.nan, "USD")}, "value nan USD is outside"),
        ({SWITCH: (-PAIR, "USD")}, "value -2 USD is outside 0 to"),
        (
            {SWITCH: (PAIR, "USD"), "terms.rate": np.array([0.1, 0.2, 0.3])},
            "need one number of values each: .*price has 2, terms.rate has 3",
        ),
    ],
    ids=str,
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(DataError, match=words):
        ask(NAME, settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {SWITCH: (PAIR, "USD")},
            "tray-switch: scorpio-p-32 has 2 prices and the cheapest stands there: give the "
            "structure",
        ),
        (
            {"cluster.chips": PAIR * 512},
            r"cluster\.chips decides what exists and has 2 values: "
            r"give one value, or the structure",
        ),
        (
            {"parts.trn3.peak_fp8": (PAIR - 1, "PFLOP/s")},
            r"parts\.trn3\.peak_fp8 decides what exists and is zero in some of 2 values",
        ),
        (
            {"terms.rate": PAIR / 10},
            "a plan is searched for one value of every input; for arrays call",
        ),
    ],
    ids=str,
)
def test_many_values_need_a_structure(settings, words):
    plan = None if "terms.rate" in settings else answer(NAME).plan
    with pytest.raises(DataError, match=words):
        tco.evaluate(NAME, settings, plan, catalogue=CATALOGUE)


def test_a_structure_is_of_its_system_and_its_texts():
    with pytest.raises(DataError, match="structure: it is that of trn3-nl72x2, not of gb200-nvl72"):
        ask("gb200-nvl72", {}, answer(NAME).structure)
    with pytest.raises(
        DataError, match=r"that of trn3-nl72x2@.*switch=gen1,.*, not of trn3-nl72x2@.*switch=gen2,"
    ):
        tco.evaluate(NAME, structure=answer(NAME).structure, variant={"switch": "gen2"})
    with pytest.raises(
        DataError,
        match=r"structure: workload\.precision is 'bf16', "
        r"it was 'fp8' when the structure was decided",
    ):
        ask(NAME, {"workload.precision": "bf16"})


def test_many_values_are_not_saved(tmp_path):
    with pytest.raises(DataError, match="many values asked together cannot be saved"):
        ask(NAME, {"terms.rate": PAIR / 10}).save(tmp_path / "a.json")


def test_racks_beyond_the_site_are_counted_among_many():
    power = (np.array([600.0, 6000.0]), "W")
    (note,) = (
        note
        for note in tco.evaluate(
            NAME, {"parts.trn3.tdp": power}, structure=answer(NAME).structure
        ).notes
        if "position" in note
    )
    assert note == "us-hyperscale: in 50.0% of the cases a rack draws more than a position takes"
