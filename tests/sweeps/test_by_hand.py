"""Partitions, draws and expected figures of a study on numbers that are made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tco import DataError
from tco.sweeps import cases, job
from tco.sweeps.answer import ExpectedFigure, _figure_of
from tco.sweeps.job import CaseLayout, CaseSlice
from tco.sweeps.study import SweepAxis, _names_of, _parse_study_integer, read_study


# ---------------------------------------------------------------- partitions
@pytest.mark.parametrize(
    ("inner", "draws", "columns", "rows"),
    [
        ((), 1, 10, 32),
        ((100,), 50, 10, 160_000),
        ((1000,), 1000, 10, 2**18),
        ((1000,), 1000, 2**8, 2**16),
        ((1000,), 1000, 2**12, 2**15),
    ],
)
def test_partition_has_as_many_rows_as_settings_numbers_and_files_take(inner, draws, columns, rows):
    assert CaseLayout(3, (2, 5), inner, draws, columns).rows == rows


def test_cases_of_a_study_are_those_of_every_setting():
    layout = CaseLayout(3, (2, 5), (4,), 7, 10)
    assert (layout.settings, layout.cases_per_setting, layout.cases) == (30, 28, 840)
    assert layout.partitions == 1
    assert list(layout.slices(0))[-1] == CaseSlice(2, (1, 4), 0, 28)


def study_job(baseline=None):
    """Return a job of two scenarios without axes, and one constraint."""
    scenarios = [SimpleNamespace(name=name) for name in ("a", "c")]
    return SimpleNamespace(
        layout=CaseLayout(2, (), (), 3, 10),
        outer=[],
        inner=[],
        scenarios=scenarios,
        baseline=next((row for row in scenarios if row.name == baseline), None),
        study=SimpleNamespace(report=["cost"], constraints={"cost": (2.0, 3.0)}),
    )


def test_constraint_keeps_cases_at_both_of_its_limits(monkeypatch):
    cost = np.array([2.0, 3.0, 3.5])
    draws = SimpleNamespace(draws=None, inputs={})
    monkeypatch.setattr(job, "_evaluate_cases", lambda *_: draws)
    monkeypatch.setattr(job, "sample_of", lambda *_: SimpleNamespace(metrics={"cost": cost}))
    count, columns = job._evaluate_slice(study_job(), CaseSlice(0, (), 0, 3))
    assert count == 2
    assert columns["cost"].tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("scenario", "baseline", "evaluated"), [(0, "a", ["a"]), (0, "c", ["a", "c"]), (0, None, ["a"])]
)
def test_baseline_of_a_study_is_evaluated_once_where_it_is_the_scenario(
    monkeypatch, scenario, baseline, evaluated
):
    names = []

    def evaluate(_, study_scenario, *__):
        names.append(study_scenario.name)
        return SimpleNamespace(draws=study_scenario.name, inputs={})

    def sample(scenario_draws, baseline_draws):
        assert (scenario_draws, baseline_draws) == ("a", baseline)
        return SimpleNamespace(metrics={"cost": np.array([2.0])})

    monkeypatch.setattr(job, "_evaluate_cases", evaluate)
    monkeypatch.setattr(job, "sample_of", sample)
    job._evaluate_slice(study_job(baseline), CaseSlice(scenario, (), 0, 1))
    assert names == evaluated


def test_site_that_takes_no_such_rack_is_a_case_of_a_study_that_is_made_ready():
    document = {
        "scenarios": ["gb300-nvl72"],
        "report": ["tco_usd_per_chip_hour"],
        "grid": {"site": ["us-hyperscale", "us-colocation"]},
    }
    assert job.prepare_sweep(read_study(document), None).layout.cases == 2


# ---------------------------------------------------------------- axes and draws
def test_other_names_of_an_axis_of_texts_change_one_text_at_a_time():
    axes = [
        SweepAxis("site", None, ("x", "y", "z")),
        SweepAxis("parts.a.price", "USD", (1.0, 2.0)),
        SweepAxis("cluster", None, ("m", "n")),
    ]
    first = (("site", "x"), ("parts.a.price", (1.0, "USD")), ("cluster", "m"))
    assert list(job._settings_of_other_texts(axes, first)) == [
        (("site", "y"), *first[1:]),
        (("site", "z"), *first[1:]),
        (*first[:2], ("cluster", "n")),
    ]


def test_deviates_of_the_ends_of_a_distribution_are_finite():
    deviates = cases._deviates(np.array([0.0, 0.5, 1.0]))
    assert np.isfinite(deviates).all()
    assert deviates[1] == 0.0
    assert -8.6 < deviates[0] < -8.2 < 8.2 < deviates[2] < 8.6


@pytest.mark.parametrize("count", [2**12, 2**13, 2**14])
def test_permutation_of_any_length_mixes_its_halves(count):
    positions = np.arange(count, dtype=np.uint64)
    values = cases.permuted(positions, count, np.array([7], dtype=np.uint64))
    assert 0.4 < np.mean(values[: count // 2] >= count // 2) < 0.6


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({}, "scenarios is missing"),
        ({"scenarios": []}, "scenarios is empty"),
        ({"scenarios": "a"}, "scenarios is no list of names"),
        ({"scenarios": [1]}, "scenarios is no list of names"),
        ({"scenarios": ["a", "a"]}, "scenarios names a twice"),
    ],
)
def test_list_of_names_that_is_no_list_is_refused_with_its_fault(document, fault):
    with pytest.raises(DataError, match=f"study: {fault}"):
        _names_of(document, "scenarios", "study")


def test_seed_is_a_whole_number_that_an_exact_float_holds():
    for seed in (0, 100, 2**53):
        assert _parse_study_integer({"seed": seed}, "seed", None, 0, "study") == seed
    for seed in (-1, 2**53 + 1, 1.0, True, None):
        with pytest.raises(DataError, match="expected a whole number from 0 on"):
            _parse_study_integer({"seed": seed}, "seed", None, 0, "study")


# ---------------------------------------------------------------- expected figures
def test_figure_is_named_by_metric_case_and_quantile():
    case = {"scenario": "rack", "site": "hall"}
    of_case = ExpectedFigure("5", "cost", case, None, 0.5)
    assert of_case.where == "cost of rack, hall"
    assert of_case._replace(over={"site": "yard"}).where == "cost of rack, hall over yard"
    assert of_case._replace(quantile=0.9).where == "cost of rack, hall, P90"


FIGURE = {"says": "5 USD", "metric": "cost", "at": {"scenario": "a", "site": "x"}}
STUDY = {
    "answer": "It costs 5 USD.",
    "report": ["cost"],
    "scenarios": ["a"],
    "grid": {"site": ["x", "y"]},
}


@pytest.mark.parametrize("quantile", [0, 0.1, 1])
def test_figure_of_a_case_takes_any_quantile_from_zero_to_one(quantile):
    figure = _figure_of({**FIGURE, "quantile": quantile}, STUDY, "study")
    assert (figure.quantile, figure.figure_case) == (quantile, FIGURE["at"])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"quantile": -0.1}, "expected a share from 0 to 1"),
        ({"quantile": 1.1}, "expected a share from 0 to 1"),
        ({"quantile": "P90"}, "expected a share from 0 to 1"),
        ({"at": {"scenario": "a"}}, "at lacks site"),
        ({"at": {"site": "x"}}, "at lacks scenario"),
    ],
)
def test_figure_without_its_case_or_share_is_refused(change, fault):
    with pytest.raises(DataError, match=fault):
        _figure_of({**FIGURE, **change}, STUDY, "study")
