"""Scores, fits and names of published rows on numbers that are made by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tco import DataError
from tco.validation import (
    anchors,
    back_test,
    collectives,
    deployed,
    fit,
    free_parameters,
    kernels,
    open_loop,
    score,
    unexplained,
    unstated,
)
from tco.validation.benchmark_logs import _ranks_of_process
from tco.validation.calibrate import _fitted_catalogue_rows, _refit, left_out_predictions
from tco.validation.inference import ServingRows
from tco.validation.kernels import _in_window
from tco.validation.long_runs import LongRun, fit_decline
from tco.validation.measured import _measurement_kind, columns_known
from tco.validation.naming import Accelerators
from tco.validation.run import _rescore_column, _tabulate_predictions
from tco.validation.score import Prediction, _range_scores, predict_by_accelerator
from tco.validation.training_rows import Reader, usable_domain
from tco.validation.variance_components import Noise, fit_effects, student_noise


def prediction_of(target, predicted, **columns):
    usual = {"target_name": ["rate"] * len(target), "skip": [""] * len(target)}
    arrays = {name: np.array(column) for name, column in (usual | columns).items()}
    return Prediction(np.array(target, float), np.array(predicted, float), **arrays)


# ---------------------------------------------------------------- scores
def test_a_range_holds_its_ends_and_counts_rows_that_leave_something_unstated():
    """Of four rows with a range three lie within it, two of them at an end."""
    prediction = prediction_of(
        [1.0, 4.0, 2.0, 9.0, 2.0, 2.0],
        [2.0] * 6,
        low=np.array([1.0, 1.0, 1.0, 1.0, 1.0, 5.0]),
        high=np.array([4.0, 4.0, 3.0, 2.0, 99.0, 6.0]),
        unstated=["tp", "tp pp", "pp", "tp", "", "tp"],
        skip=["", "", "", "", "", "unstated date"],
    )
    assert _range_scores(prediction) == {"n": 4, "inside": 3, "median_width": 3.5}
    assert _range_scores(prediction_of([1.0], [1.0])) == {
        "n": 0,
        "inside": 0,
        "median_width": None,
    }


def test_a_row_measured_as_nothing_is_not_scored():
    prediction = prediction_of([0.0, 2.0], [1.0, 1.0])
    assert prediction.skip.tolist() == ["suspect: zero rate", ""]
    assert math.isnan(prediction.target[0])


class Rows:
    """Rows of two accelerators."""

    def __init__(self, parts):
        self.parts = np.array(list(parts))

    def chosen(self, row_mask):
        return Rows(self.parts[row_mask])


def test_what_the_catalogue_lacks_of_an_accelerator_is_said_of_its_rows_alone(monkeypatch):
    monkeypatch.setattr(score, "unsupported_rows", lambda fault, count: (str(fault), count))
    monkeypatch.setattr(score, "_merge_predictions", lambda predictions: predictions)

    def predictor(rows):
        if len(set(rows.parts)) > 1 or rows.parts[0] == "b":
            raise DataError("no price of b")
        return "predicted"

    (mask_a, part_a), (mask_b, part_b) = predict_by_accelerator(predictor, Rows("abb"))
    assert (mask_a.tolist(), part_a) == ([True, False, False], "predicted")
    assert (mask_b.tolist(), part_b) == ([False, True, True], ("no price of b", 2))


def test_an_error_of_all_accelerators_is_that_of_the_first():
    def predictor(rows):
        raise DataError(f"no price of {rows.parts[0]}")

    with pytest.raises(DataError, match="no price of a"):
        predict_by_accelerator(predictor, Rows("bac"))
    with pytest.raises(DataError, match="no price of b"):
        predict_by_accelerator(predictor, Rows("bb"))


def test_rows_are_scored_against_a_column_that_the_model_predicts():
    table = pd.DataFrame({"rate": [1.0, 2.0], "time": [3.0, 4.0], "notes": ["", ""]})
    prediction = prediction_of([1.0, 4.0], [1.0, 1.0], target_name=["rate", "time"])
    against = _rescore_column(table, prediction, "time")
    assert against.skip.tolist() == ["unsupported target: not time", ""]
    with pytest.raises(DataError, match=r"there are rate, time$"):
        _rescore_column(table, prediction, "notes")
    with pytest.raises(DataError, match="unknown column 'rates'"):
        _rescore_column(table, prediction, "rates")


def test_the_order_of_pairs_is_right_where_both_ratios_lie_on_one_side(monkeypatch):
    """The second pair is in the wrong order, and the third is too even to have one."""
    pairs = np.array([0, 2, 4]), np.array([1, 3, 5])
    monkeypatch.setattr(back_test, "_scored_row_pairs", lambda *_: pairs)
    prediction = prediction_of(
        [4.0, 2.0, 3.0, 2.0, 1.05, 1.0],
        [3.0, 2.0, 1.0, 2.0, 0.9, 1.0],
    )
    accuracy = back_test.pair_order_accuracy(None, prediction)
    assert (accuracy["pairs"], accuracy["right"]) == (3, 0.5)
    # 1.5 for 2, 0.5 for 1.5 and 0.9 for 1.05
    assert accuracy["ratio_error"] == pytest.approx(0.25)
    monkeypatch.setattr(back_test, "_scored_row_pairs", lambda *_: (np.array([]), np.array([])))
    assert back_test.pair_order_accuracy(None, prediction) == {}


# ---------------------------------------------------------------- fits
def run_of(publisher, chips, efficiency):
    return LongRun(publisher, "chip", "model", chips, efficiency)


def test_a_decline_that_all_runs_share_is_known_without_spread():
    runs = [
        run_of(publisher, chips, 0.8 * 0.97 ** math.log2(chips / 1024))
        for publisher, sizes in (("a", (1024, 4096)), ("b", (2048,)), ("c", (8192, 16384)))
        for chips in sizes
    ]
    decline = fit_decline(runs)
    assert math.exp(decline.level) == pytest.approx(0.8)
    assert math.exp(decline.slope) == pytest.approx(0.97)
    assert decline.level_spread == pytest.approx(0.0, abs=1e-9)
    assert decline.slope_spread == pytest.approx(0.0, abs=1e-9)


def test_the_spread_of_a_decline_is_that_of_leaving_out_each_publisher():
    """Each publisher weighs as much, whichever number of runs it has: the jackknife by hand."""
    efficiencies = {"a": (0.82, 0.75), "b": (0.7,), "c": (0.72, 0.65, 0.6)}
    sizes = {"a": (1024, 4096), "b": (2048,), "c": (4096, 8192, 32768)}
    points = {
        publisher: [
            (math.log2(chips / 1024), math.log(efficiency))
            for chips, efficiency in zip(sizes[publisher], values, strict=True)
        ]
        for publisher, values in efficiencies.items()
    }

    def line(publishers):
        x, y, weights = zip(
            *(
                (*point, len(points[publisher]) ** -0.5)
                for publisher in publishers
                for point in points[publisher]
            ),
            strict=True,
        )
        slope, level = np.polyfit(x, y, 1, w=weights)
        return level, slope

    level, slope = line("abc")
    without = np.array([line(rest) for rest in ("bc", "ac", "ab")])
    spreads = np.sqrt(2 / 3 * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    residuals = [
        np.mean([y - level - slope * x for x, y in points[publisher]]) for publisher in "abc"
    ]
    runs = [
        run_of(publisher, chips, efficiency)
        for publisher in "abc"
        for chips, efficiency in zip(sizes[publisher], efficiencies[publisher], strict=True)
    ]
    decline = fit_decline(runs)
    assert (decline.level, decline.slope) == pytest.approx((level, slope))
    assert decline.slope_spread == pytest.approx(spreads[1])
    assert decline.level_spread == pytest.approx(math.hypot(spreads[0], np.std(residuals, ddof=1)))


def test_a_family_of_few_publishers_is_drawn_to_that_of_all():
    """Two publishers of 0.25 between families of 0.35: the mean of both shrinks by 2 / 2.51."""
    residuals = pd.DataFrame(
        {
            "family": ["x", "x", "x", "x", "y"],
            "source": ["a", "a", "a", "b", "a"],
            "residual": [0.1, 0.3, 0.2, 0.4, 0.0],
        }
    )
    effects = deployed.family_effects(residuals)
    weight = 2 / 0.25**2
    variance = 1 / (weight + 1 / 0.35**2)
    assert effects["x"] == pytest.approx((-0.3 * variance * weight, math.sqrt(variance), 4))
    assert effects["y"][0] == pytest.approx(0.0)


def test_runs_of_one_configuration_scatter_about_its_mean(monkeypatch):
    """Squares of 2 over three more runs than configurations."""
    fitted = {}

    def keep_noise(labels, means, variances, noise, *_):
        fitted.update(means=means, noise=noise, owners=len(labels))
        return unexplained.Effects({}, dict(variances), noise)

    monkeypatch.setattr(unexplained, "fit_effects", keep_noise)
    labels = dict.fromkeys(unexplained.SHARED, "all")
    rows = pd.DataFrame(
        [
            {**labels, unexplained.CONFIGURATION: name, "residual": residual}
            for name, residual in (("a", -1.0), ("a", 1.0), ("b", 0.0), ("b", 0.0), ("b", 0.0))
        ]
    )
    effects = unexplained.fit_variance_components(rows)
    assert effects.variances[unexplained.RUN] == pytest.approx(2 / 3)
    assert fitted["noise"].variances == pytest.approx(0.01 + 2 / 3 / np.array([2, 3]))
    assert fitted["means"] == pytest.approx([0.0, 0.0])


def test_effects_of_owners_with_little_noise_are_the_means_of_their_observations():
    labels = pd.DataFrame({"chip": ["a", "a", "b", "b"]})
    responses = np.array([0.9, 1.1, -0.4, -0.6])
    noise = Noise(1e-6, np.full(4, 1e-6))
    effects = fit_effects(labels, responses, {"chip": 1.0}, noise, lambda noise, _: noise, 1e-6)
    assert effects.of("chip", "a")[0] == pytest.approx(1.0, rel=1e-5)
    assert effects.of("chip", "b")[0] == pytest.approx(-0.5, rel=1e-5)
    # the variance of 1 and -0.5 about nought
    assert effects.variances["chip"] == pytest.approx((1 + 0.25) / 2, rel=1e-3)
    assert effects.of("chip", "c") == (0.0, math.sqrt(effects.variances["chip"]))


# ---------------------------------------------------------------- rows
@pytest.mark.parametrize(
    ("domain", "chips", "used"),
    [(72, 72, 72), (72, 144, 72), (72, 36, 72), (72, 96, 64), (72, 10, 10), (8, 12, 8)],
)
def test_a_job_uses_a_domain_that_divides_or_a_power_of_two_of_it(domain, chips, used):
    assert usable_domain(domain, chips) == used


@pytest.mark.parametrize(
    ("keys", "window", "causal", "attended"),
    [
        (1000.0, 250.0, 0.0, 250.0),
        # the first 250 queries see fewer: 250 (2 - 1/4) of twice as many pairs
        (1000.0, 250.0, 1.0, 437.5),
        (1000.0, 0.0, 1.0, 1000.0),
        (1000.0, 1000.0, 1.0, 1000.0),
        (1000.0, 2000.0, 0.0, 1000.0),
    ],
)
def test_keys_within_a_window(keys, window, causal, attended):
    assert _in_window(np.array([keys]), np.array([window]), causal) == [attended]


@pytest.mark.parametrize(
    ("config", "ranks"),
    [
        ({"nGpus": "8", "nThreads": "2"}, 16),
        ({"nGpus": "8"}, 8),
        ({"n_gpus": "4", "nThread": "3"}, 12),
        ({"nThreads": "2"}, 0),
        ({"nGpus": "8", "nThreads": "all"}, 0),
        ({"nGpus": "all", "nThreads": "2"}, 0),
    ],
)
def test_ranks_of_a_process_are_its_threads_times_their_chips(config, ranks):
    assert _ranks_of_process(config) == ranks


@pytest.mark.parametrize("kind", ["inference", "training"])
def test_a_header_with_all_columns_of_a_kind_is_of_that_kind(kind, tmp_path):
    columns = columns_known()["kinds"][kind]
    header = [columns["mark"], *columns["needed"], *columns["targets"]]
    assert _measurement_kind(header, tmp_path) == kind
    with pytest.raises(DataError, match="fits no kind of measurements"):
        _measurement_kind(["a", "b"], tmp_path)


@pytest.mark.parametrize(("printed", "holds"), [(80e9, True), (85e9, True), (40e9, False)])
def test_a_printed_memory_is_that_of_a_part_within_a_tenth(printed, holds):
    part = SimpleNamespace(value=80e9)
    catalogue = SimpleNamespace(has_part_value=lambda *_: True, part_input=lambda *_: part)
    assert Accelerators.holds(SimpleNamespace(catalogue=catalogue), "chip", printed) is holds


# ---------------------------------------------------------------- training rows
def test_domain_of_several_slices_is_the_chips_of_one():
    rows = SimpleNamespace(cells={"system": ["4x v5p-128", "v5p-128", "300x v4"]})
    assert Reader.domain(rows, 0, 256, 8960) == 64
    assert Reader.domain(rows, 1, 256, 8960) == 8960
    assert Reader.domain(rows, 2, 256, 4096) == 1


@pytest.mark.parametrize(
    ("counts", "devices", "whole_batches", "batches"),
    [
        ({"global_batch_seqs": 7, "micro_batch_seqs": 2}, 16, False, (7,)),
        ({"micro_batch_seqs": 2}, 64, True, (8,)),
        ({"micro_batch_seqs": 2}, 8, True, (2,)),
        # 4e6 tokens are 1,000 sequences of 4,000, which 62.5 and so 62 rounds of 16 hold
        ({"micro_batch_seqs": 4}, 64, False, (992,)),
        ({"micro_batch_seqs": 4000}, 64, False, (16000,)),
    ],
)
def test_batch_of_a_step_is_stated_or_whole_rounds_of_the_ranks(
    counts, devices, whole_batches, batches
):
    rows = SimpleNamespace(count=lambda name, _: counts.get(name))
    fixed = {"tp": "8", "pp": "2", "cp": "1|2"}
    assert Reader.batches(rows, 0, fixed, devices, 4000, whole_batches) == batches


# ---------------------------------------------------------------- serving rows
@pytest.mark.parametrize(
    ("cells", "columns"),
    [
        ({"prefill_gpus": 8, "prefill_workers": 2}, ["prefill_dp", "prefill_ep"]),
        ({"prefill_gpus": 8, "prefill_workers": 2, "prefill_dp": 1}, ["prefill_ep"]),
        ({"prefill_gpus": 8}, []),
        ({"decode_workers": 2}, []),
    ],
)
def test_blank_degrees_of_a_pool_are_one_or_the_chips_of_a_worker(monkeypatch, cells, columns):
    monkeypatch.setattr(unstated, "interpret_note", lambda *_: "yes")
    monkeypatch.setattr(unstated, "parse_framework", lambda *_: ("vllm", ""))
    monkeypatch.setattr(unstated, "_formats_and_date", lambda *_, **__: ())
    model = SimpleNamespace(has_experts=True, prediction_layers=0)
    row = unstated.FilledRow(cells, SimpleNamespace(catalogue=None), "", "", model)
    assert dict(unstated.serving(row)) == {
        column: [{column: 1.0}, {column: 4.0}] for column in columns
    }


def test_memory_that_an_engine_takes_is_a_share_of_what_the_driver_reports():
    unset = {
        "performance.vllm.memory_taken": 0.9,
        "performance.vllm.activation_memory": 4.0,
        "parts.chip.driver_memory": 80.0,
    }
    values = SimpleNamespace(unset=unset.get, structure=lambda _: 100.0)
    rows = SimpleNamespace(values=values)
    # 0.9 of 80 are 72, less 4 are 68 of 100
    reserve = open_loop._memory_settings(rows, "chip", "vllm", {})
    assert float(reserve["performance.vllm.memory_reserve"]) == pytest.approx(0.32)
    reserve = open_loop._memory_settings(rows, "chip", "vllm", {"memory_taken": 0.5})
    assert float(reserve["performance.vllm.memory_reserve"]) == pytest.approx(0.64)
    del unset["parts.chip.driver_memory"]
    reserve = open_loop._memory_settings(rows, "chip", "vllm", {})
    assert float(reserve["performance.vllm.memory_reserve"]) == pytest.approx(0.14)
    assert open_loop._memory_settings(rows, "chip", "other", {}) == {}


class Ladders(dict):
    def filled(self, column, default):
        return np.nan_to_num(self[column], nan=default)


def test_ladders_of_more_requests_prompts_or_servers_than_the_most_are_not_simulated():
    most = open_loop.MOST
    rows = np.array(
        [
            (1.0, 10.0, 1.0, 2.0, 3.0, False),
            (most, 1.0, 1.0, 2.0, 3.0, False),
            (most, 2.0, 1.0, 2.0, 3.0, True),
            (1.0, 10.0, 1.0, 300.0, 300.0, True),
            (1.0, 10.0, most + 1, 2.0, 3.0, True),
            (1.0, 10.0, 0.0, 2.0, 3.0, True),
            (1.0, 10.0, 1.0, most + 1, 0.1, True),
            (1.0, 10.0, 1.0, math.nan, math.nan, False),
        ]
    )
    columns = (
        "offered_requests_per_s",
        "stage_duration_s",
        "servers",
        "prefix_groups",
        "prompts_per_group",
    )
    ladders = Ladders(zip(columns, rows.T[:-1], strict=True))
    assert open_loop._unsimulable_rows(ladders).tolist() == rows.T[-1].astype(bool).tolist()


def test_each_anchor_row_is_refused_for_the_first_reason_against_it(monkeypatch):
    monkeypatch.setattr(anchors, "_max_chip_rate", lambda *_: 100.0)
    monkeypatch.setattr(anchors, "_max_user_rate", lambda *_: 50.0)
    columns = {
        "isl_tokens": [30.0] * 6,
        "osl_tokens": [10.0] * 6,
        "output_tput_tok_s_per_gpu": [26.0, 24.0, 24.0, 24.0, 24.0, 26.0],
        "system_tput_tok_s": [math.nan] * 6,
        "n_gpus": [8.0] * 6,
        "total_tput_tok_s_per_gpu": [math.nan] * 6,
        "tpot_ms_mean": [math.nan, 19.0, 21.0, 21.0, 21.0, math.nan],
        "tpot_ms_median": [math.nan] * 6,
        "interactivity_tok_s_per_user": [math.nan] * 6,
    }
    measurements = pd.DataFrame(columns)
    prediction = prediction_of(
        [24.0] * 6, [20.0, 20.0, 2.4, 2.5, 241.0, 20.0], skip=["", "", "", "", "", "claim"]
    )
    faults = anchors._row_faults(None, measurements, prediction)
    assert [fault.row_index for fault in faults] == [0, 1, 2, 4, 5]
    assert [fault.reason.split(",")[0].split(";")[0] for fault in faults] == [
        "104 tokens/s per chip",
        "52.6316 tokens/s per user are above the roofline: weights are read at 50",
        "rate 24 is 10 times the 2.4 predicted: expected the unit that its name ends in",
        "rate 24 is 0.0996 times the 241 predicted: expected the unit that its name ends in",
        "claim",
    ]


def test_refused_anchor_rows_beyond_the_shown_are_counted(monkeypatch):
    faults = [anchors.RowFault(row_index, "too fast") for row_index in range(5)]
    monkeypatch.setattr(anchors, "read_measured", lambda _: ("inference", pd.DataFrame({"a": [1]})))
    for name in ("plain_inputs", "MeasuredRows", "predict_by_accelerator"):
        monkeypatch.setattr(
            anchors, name, lambda *_: SimpleNamespace(values=lambda *_: None, inference=None)
        )
    monkeypatch.setattr(anchors.inference, "serving_rows_of", lambda _: None)
    monkeypatch.setattr(anchors, "_row_faults", lambda *_: faults)
    with pytest.raises(DataError, match=r"own\.csv:4: too fast \(and 2 more rows\)$"):
        anchors.read_anchors(None, "own.csv")


@pytest.mark.parametrize(
    ("groups", "experts", "tensor", "pipeline", "group_count"),
    [
        (1.0, 8.0, 4.0, math.nan, 8.0),
        (1.0, 4.0, 1.0, math.nan, 8.0),
        (1.0, 4.0, 4.0, math.nan, 1.0),
        (1.0, 8.0, 1.0, 1.0, 1.0),
        (2.0, 8.0, 1.0, math.nan, 2.0),
    ],
)
def test_data_parallel_attention_of_one_without_other_degrees_is_a_flag_for_all_chips(
    monkeypatch, groups, experts, tensor, pipeline, group_count
):
    columns = {
        "decode_gpus": 16.0,
        "decode_workers": 2.0,
        "decode_dp": groups,
        "decode_tp": tensor,
        "dp_attention": math.nan,
        "pp": pipeline,
    } | dict.fromkeys(("engine_chips", "groups", "ep"), 1.0)
    rows = Ladders({name: np.array([column]) for name, column in columns.items()})
    rows["decode_ep"] = np.array([experts])
    monkeypatch.setattr("tco.validation.inference.is_audited", lambda _: np.array([False]))
    pooled_rows = SimpleNamespace(
        measurements=rows,
        apart=np.array([True]),
        gpus=np.array([32.0]),
        says=lambda _: np.array([False]),
    )
    pool = ServingRows.pool(pooled_rows, "decode")
    assert (pool["size"], pool["experts"]) == (8.0, experts)
    assert pool["groups"] == group_count


# ---------------------------------------------------------------- refits
def test_error_of_a_scored_row_is_the_share_that_the_prediction_is_above():
    rows = _tabulate_predictions(
        prediction_of([2.0, 4.0, 1.0], [3.0, 1.0, 1.0], skip=["", "", "x"])
    )
    assert rows.error.tolist()[:2] == [0.5, -0.75]
    assert math.isnan(rows.error[2])


def test_refit_without_a_chip_predicts_its_scored_rows():
    skip = np.array(["", "", "unstated date", ""], dtype=object)
    prediction = prediction_of([1.0] * 4, [1.0] * 4, skip=skip)
    group = fit.LeftOutGroup("accelerator", "chip", np.array([True, False, True, False]))
    left_out_fit = SimpleNamespace(values={"a": 1.0}, predicted=np.array([2.0, 3.0, 4.0, 5.0]))
    refits = [_refit(group, left_out_fit, prediction)]
    assert refits[0].rows.tolist() == [0]
    blind = left_out_predictions(prediction, refits)
    assert blind.predicted[0] == 2.0
    assert blind.skip.tolist() == [
        "",
        "unstated left-out prediction",
        "unstated date",
        "unstated left-out prediction",
    ]


def test_range_of_a_fitted_value_covers_the_least_spread_and_the_values_of_all_refits():
    path = "performance.nvidia.link_efficiency"
    free = free_parameters.FreeParameters(
        (free_parameters.FreeParameter(path, 0.4, 0.3, 0.5, 0.1, 1.0),), ()
    )
    refits = [SimpleNamespace(values={path: value}) for value in (0.5, 0.401)]
    (row,) = _fitted_catalogue_rows(
        {path: 0.4},
        free,
        SimpleNamespace(spread={}),
        refits,
        {"n": 1200, "median_ape": 0.1},
        "2026-01",
    )
    assert (row.value, row.high) == (0.4, 0.5)
    assert row.low == pytest.approx(0.4 * math.exp(-0.02), rel=1e-3)
    assert row.note == "fitted on 1,200 rows"


def test_searched_value_lies_midway_between_belief_and_row_of_the_same_weight():
    """The belief is a logarithm of 0 with deviation 1, the only scored row asks for 1."""
    deviation = math.exp(free_parameters.NORMAL_P95)
    parameter = free_parameters.FreeParameter(
        "performance.a.b", 1.0, 1 / deviation, deviation, 0.01, 100.0
    )
    problem = SimpleNamespace(
        free=free_parameters.FreeParameters((parameter,), ()),
        is_scored=np.array([True, False]),
        residual_weights=lambda row_indices: np.full(len(row_indices), fit.CAUCHY_SCALE),
        target=np.array([math.e, 9.0]),
        log_priors=np.array([0.0]),
    )
    optimum = fit._search_optimum(
        problem, np.array([True, True]), lambda logs: np.exp(logs) @ np.ones((1, 2))
    )
    assert optimum.x == pytest.approx([0.5], abs=1e-4)


def test_group_of_16_rows_counts_as_four_rows_of_one_in_a_fit():
    problem = SimpleNamespace(row_groups=np.array([0] * 16 + [1]))
    weights = fit.FitProblem.residual_weights(problem, np.arange(17))
    assert np.sum(weights[:16] ** 2) == pytest.approx(4 * weights[16] ** 2)
    assert np.mean(weights**2) == pytest.approx(1)


def test_refits_leave_out_groups_of_20_rows_and_a_twentieth_of_a_small_file():
    def members(*counts):
        labels = [name for name, count in zip("abc", counts, strict=True) for _ in range(count)]
        problem = SimpleNamespace(table=pd.DataFrame({"model": labels}))
        groups = fit.FitProblem.groups_to_leave_out(problem)
        return [(group.kind, group.member, int(group.row_mask.sum())) for group in groups]

    assert members(460, 20, 19) == [("model", "a", 460), ("model", "b", 20)]
    assert members(55, 3, 2) == [("model", "a", 55), ("model", "b", 3)]
    assert members(5, 0, 0) == []


def test_free_parameter_is_searched_within_physics_and_a_hundred_times_its_prior(tmp_path):
    path = tmp_path / "training.csv"
    path.write_text(
        "family,attribute,prior,low,high,follows,note\n"
        "a,link_efficiency,0.005,0.004,0.006,,\n"
        "b,link_efficiency,0.8,0.5,0.9,,\n"
        "c,link_efficiency,0.4,,,performance.b.link_efficiency,\n"
    )
    free = free_parameters.read_free_parameters(
        SimpleNamespace(folder_files=lambda _: [path]), "training"
    )
    assert [(row.minimum, row.maximum) for row in free.parameters] == [(0.01, 0.5), (0.01, 1.0)]
    assert free.followers == (
        free_parameters.Follower(
            "performance.c.link_efficiency", "performance.b.link_efficiency", 0.4
        ),
    )


def test_noise_of_outliers_is_drawn_from_their_squares_and_the_mean_weight():
    """The weights 2/1 and 2/4 make 6 and 4 of the squares, whose mean is 5."""
    noise = student_noise(Noise(2.0, np.array([1.0, 4.0])), np.array([3.0, 8.0]))
    assert noise.variance == 5.0
    assert noise.variances.tolist() == [4.5, 5.75]


def test_interval_of_a_lognormal_share_is_its_p5_and_p95():
    low, high = unexplained.lognormal_interval(0.1)
    assert (1 + low) * (1 + high) == pytest.approx(1, rel=1e-12)
    assert high == pytest.approx(math.exp(0.16449) - 1, rel=1e-4)


def test_unexplained_time_has_rows_of_the_chips_and_models_that_differ_from_their_level(
    monkeypatch,
):
    owners = {("chip", "b"): 2.0, ("chip", "c"): 1.05, ("model", "m"): 2.0, ("model", "gone"): 2.0}
    monkeypatch.setattr(
        unexplained, "fit_variance_components", lambda _: SimpleNamespace(by_owner=owners)
    )
    monkeypatch.setattr(
        unexplained, "effect_width", lambda _, level, owner: owners.get((level, owner), 1.0)
    )
    monkeypatch.setattr(unexplained, "families_of", lambda _: {})
    runs = pd.DataFrame(
        {level: ["b"] for level in ("family", "chip", "engine", "model", "configuration")}
    )
    catalogue = SimpleNamespace(models={"m": None})
    rows = unexplained.unexplained_rows("training", runs, catalogue, "2026-01")
    assert [row[0] for row in rows] == ["chip", "b", "model", "m", "configuration", "run"]


class KernelRows(dict):
    parts = np.array(["chip"] * 3, dtype=object)

    def __missing__(self, column):
        return np.full(3, math.nan)

    def refused(self, *reasons):
        refused = np.full(3, "", dtype=object)
        for row_mask, reason in reasons:
            refused = np.where(np.asarray(row_mask) & (refused == ""), reason, refused)
        return refused


def test_kernel_needs_the_sides_of_its_own_shape_alone(monkeypatch):
    monkeypatch.setattr(kernels, "_copied_expert_times", lambda *_: np.zeros(3, dtype=bool))
    rows = KernelRows({name: np.array([8.0, 8.0, math.nan]) for name in ("m", "n", "k")})
    rows["op"] = np.array(["gemm", "grouped", "gemm"])
    kinds = [
        SimpleNamespace(kernel=kernel, library="", number_format="bf16") for kernel in rows["op"]
    ]
    reasons = kernels._kernel_skip_reasons(rows, kinds, np.ones(3), np.array(["time"] * 3))
    assert reasons.tolist() == ["", "unstated shape", "unstated shape"]


class CollectiveRows(dict):
    def __missing__(self, _):
        return np.full(len(self["n_gpus"]), math.nan)

    def __len__(self):
        return len(self["n_gpus"])

    def filled(self, column, default):
        return np.nan_to_num(self[column], nan=default)

    def part(self, attribute):
        return self[attribute]


def test_server_of_eight_chips_is_taken_where_a_row_states_none(monkeypatch):
    rows = CollectiveRows(
        n_gpus=np.array([64.0, 64.0, 4.0, 144.0]),
        gpus_per_node=np.array([math.nan, 16.0, math.nan, math.nan]),
        scale_up_domain=np.array([8.0, 8.0, 8.0, 72.0]),
        fabric=[""] * 4,
    )
    monkeypatch.setattr(
        collectives,
        "group_across_domains",
        lambda ranks, per_domain: SimpleNamespace(domains=ranks / per_domain),
    )
    key = SimpleNamespace(of=lambda _: None, cores=False)
    monkeypatch.setattr(CollectiveRows, "catalogue", None, raising=False)
    timed_rows = collectives.Rows(rows, key)
    assert timed_rows.per_domain.tolist() == [8.0, 16.0, 4.0, 72.0]
    assert timed_rows.domain.tolist() == [8.0, 16.0, 8.0, 72.0]


def test_expert_times_of_a_table_that_mostly_repeats_one_are_all_copied():
    """Four shapes share 5 microseconds in one table of six rows, and none does in the other."""
    times = [5.0] * 4 + [6.0, 7.0] + [1.0, 2.0, 3.0, 5.0]
    table = pd.DataFrame({"time_us": times, "tokens": range(10), "accelerator": "chip"})
    table.loc[9, "accelerator"] = "other-chip"
    sources = np.array(["repeats"] * 6 + ["measures"] * 4)
    rows = KernelRows(source_url=sources)
    rows.table = table
    kinds = [SimpleNamespace(kernel="experts")] * 10
    assert kernels._copied_expert_times(rows, kinds).tolist() == [True] * 6 + [False] * 4
    kinds[4:6] = [SimpleNamespace(kernel="gemm")] * 2
    copied = [True] * 4 + [False] * 6
    assert kernels._copied_expert_times(rows, kinds).tolist() == copied


def test_range_of_a_ratio_is_that_of_the_quotients_of_its_draws(monkeypatch):
    """Ratios of 2 and 6 are measured, and both are drawn from 1 to 3: 1.2 to 2.8 at P10 and P90."""
    row_indices = np.arange(4)
    draws = np.linspace(1.0, 3.0, back_test.DRAWS) * np.array([1.0, 1.0, 0.5, 1.0])[:, None]
    draws[1::2] = np.array([1.0, 0.5])[:, None]
    left_out = SimpleNamespace(rows=row_indices, point=np.array([2.0, 1.0, 1.0, 0.5]), draws=draws)
    measurements = SimpleNamespace(parts=np.array(["a", "b", "a", "c"]))
    prediction = prediction_of([4.0, 2.0, 6.0, 1.0], [1.0] * 4)
    pairs = back_test.Pairs(row_indices[::2], row_indices[1::2])
    table = pd.DataFrame({"rate": prediction.target})
    monkeypatch.setattr(back_test, "read_measured", lambda _: ("inference", table))
    monkeypatch.setattr(back_test, "_measurements", lambda *_: measurements)
    monkeypatch.setitem(back_test.PREDICTORS, "inference", lambda _: prediction)
    monkeypatch.setattr(back_test, "_scored_row_pairs", lambda *_: pairs)
    monkeypatch.setattr(back_test, "_left_out_draws", lambda *_: {"all": left_out})
    monkeypatch.setattr(back_test, "LEAST", 2)
    tested = back_test.back_test_ratios("own.csv", None, {})
    assert list(tested.chips) == ["a"]
    assert tested.chips["a"] == tested.all_rows
    assert (tested.all_rows.rows, tested.all_rows.inside, tested.all_rows.above) == (2, 0.5, 0.5)
    assert tested.all_rows.width == pytest.approx(2.8 / 1.2, rel=1e-2)
