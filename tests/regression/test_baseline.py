"""Baselines are kept, read back, merged and compared by a rule, as the command does it."""

from __future__ import annotations

import json
import math

import pytest

from tco.regression.drift import Limit, shifts
from tco.scenario.metrics import is_worse
from tests.cli import document, tco
from tests.scenario_helpers import METRICS, MORE_IS_BETTER, again

NEITHER = {"chips", "racks"}

NAME = "gb200-nvl72"
OTHER = "trn3-nl72x2"
BASELINES = "reports/baselines"


@pytest.fixture(scope="module")
def baseline_folder(tmp_path_factory):
    """A folder with a baseline of one scenario, and one of two."""
    folder = tmp_path_factory.mktemp("regression")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, scenarios in (("main", [NAME]), ("both", [NAME, OTHER])):
            assert tco("baseline", "save", name, *scenarios).exit_code == 0
    return folder


@pytest.fixture
def kept_state(baseline_folder):
    """The state that the baseline keeps."""
    return json.loads((baseline_folder / BASELINES / "main.json").read_text())["scenarios"][NAME]


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Where a baseline lies in a folder that has none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / BASELINES).mkdir(parents=True)
    return tmp_path / BASELINES / "main.json"


def write_baseline(path, states, schema="tco.baseline/2"):
    path.write_text(json.dumps({"schema": schema, "scenarios": states}))


def drifts(*options, name="main", **settings):
    """Return the metrics that drifted from the baseline, by the rule of some options."""
    set_ = [
        word
        for path, text in settings.items()
        for word in ("--set", f"{path.replace('__', '.')}={text}")
    ]
    done = tco("baseline", "check", name, *options, *set_, "--format", "json")
    drift = json.loads(done.stdout)["drift"]
    assert done.exit_code == bool(drift)
    return drift


def drifted_metrics(*options, **settings):
    return {metric_drift["metric"] for metric_drift in drifts(*options, **settings)}


@pytest.fixture
def enter_baseline_folder(baseline_folder, monkeypatch):
    monkeypatch.chdir(baseline_folder)


def test_baseline_saved_twice_has_the_same_bytes(baseline_folder, file):
    assert tco("baseline", "save", "main", NAME).exit_code == 0
    assert file.read_bytes() == (baseline_folder / BASELINES / "main.json").read_bytes()


def test_inputs_are_kept_as_the_catalogue_writes_them(kept_state):
    assert kept_state["inputs"]["site.electricity_price"] == [0.0861, "USD/kWh"]
    assert len(kept_state["inputs"]) > 100
    assert kept_state["plan"]["decode"]["tensor_parallel"] >= 1
    assert kept_state["tco_version"]
    assert kept_state["data_hash"]
    assert len(kept_state["formulas"]) > 100


def test_states_keep_twelve_digits(kept_state):
    assert kept_state["metrics"] == {
        name: float(f"{again(NAME).metrics[name]:.12g}") for name in kept_state["metrics"]
    }


def test_scenario_that_is_not_saved_again_stays_in_the_baseline(file, kept_state):
    write_baseline(file, {NAME: kept_state, "mine": kept_state})
    assert (
        "Not saved again: mine."
        in tco("baseline", "save", "main", NAME, OTHER, "--set", "site.pue=1.5").stdout
    )
    states = json.loads(file.read_text())["scenarios"]
    assert list(states) == [NAME, "mine", OTHER]
    assert states["mine"] == kept_state
    assert states[NAME]["inputs"]["site.pue"][0] == 1.5


def test_a_drift_names_its_cause(enter_baseline_folder):
    drifted = drifts(site__electricity_price="0.3 USD/kWh")
    assert {metric_drift["metric"] for metric_drift in drifted} >= {
        "energy_usd_per_chip_hour",
        "tco_usd_per_chip_hour",
    }
    for metric_drift in drifted:
        (step,) = metric_drift["steps"]
        assert metric_drift["why"] == ["price site.electricity_price: 0.0861 -> 0.3 USD/kWh"]
        assert step["difference"] == metric_drift["new"] - metric_drift["old"]
        assert metric_drift["worse"] is (metric_drift["metric"] not in MORE_IS_BETTER)


def test_unchanged_baseline_has_no_drift(enter_baseline_folder):
    assert drifts() == []


@pytest.mark.parametrize(
    ("most", "drifted"),
    [
        ((), True),
        (("50%",), False),
        (("0.5",), False),
        (("1e-6",), True),
        (("500W",), False),
        (("1 W",), True),
    ],
)
def test_getting_worse_may_be_tolerated(enter_baseline_folder, most, drifted):
    assert (
        "facility_power_w_per_chip"
        in drifted_metrics(*(("--max-increase", *most) if most else ()), site__pue="1.3")
    ) is drifted


def test_getting_better_never_fails_a_greatest_increase(enter_baseline_folder):
    cheaper = {"site__pue": "1.01", "site__electricity_price": "0.03 USD/kWh"}
    assert drifted_metrics("--max-increase", "1e-9", **cheaper) == set()
    assert {"tco_usd_per_chip_hour", "tokens_per_s_per_facility_mw"} <= drifted_metrics(**cheaper)
    assert "tokens_per_s_per_facility_mw" in drifted_metrics(
        "--max-increase", "1%", site__pue="1.5"
    )


def test_check_of_named_metrics_ignores_the_others(enter_baseline_folder):
    metric_options = ("--metric", "tco_usd_per_chip_hour", "--metric", "capex_usd")
    assert drifted_metrics(*metric_options[2:], site__pue="1.3") == set()
    assert drifted_metrics(*metric_options, site__pue="1.3") == {"tco_usd_per_chip_hour"}


@pytest.mark.parametrize(
    ("threshold", "drifted"),
    [("0.005USD", True), ("0.5 USD", False), (" 0.5 USD/chip/h ", False), ("0.05 kUSD", False)],
)
def test_a_threshold_may_be_an_amount(enter_baseline_folder, threshold, drifted):
    assert (
        "tco_usd_per_chip_hour" in drifted_metrics("--threshold", threshold, site__pue="1.3")
    ) is drifted


def test_threshold_amount_applies_to_metrics_of_its_unit(enter_baseline_folder):
    assert "facility_power_w_per_chip" in drifted_metrics(
        "--threshold", "1000 USD", site__pue="1.3"
    )


@pytest.mark.parametrize(
    "text", ["", "much", "-2%", "2%%", "1 apple", "nan", "inf", "1e999", "1.2.3"]
)
def test_bad_limit_is_refused(enter_baseline_folder, text):
    done = tco("baseline", "check", "main", "--max-increase", text)
    assert done.exit_code == 2
    assert "--max-increase " in done.stderr
    assert "expected a share such as 2% or 0.02, or an amount" in " ".join(done.stderr.split())


def test_every_metric_is_better_higher_or_lower_or_neither():
    assert METRICS.keys() >= MORE_IS_BETTER | NEITHER
    less = METRICS.keys() - MORE_IS_BETTER - NEITHER
    costs = {
        name for name, metric in METRICS.items() if metric.unit.startswith(("USD", "W", "g/"))
    } - {"rebate_usd_per_chip"}
    assert costs <= less
    assert less - costs == {
        "ttft_s",
        "tpot_s",
        "step_s",
        "train_time_s",
        "exposed_communication",
        "pipeline_bubble",
        "host_floor",
    }
    assert (is_worse("capex_usd", 1.0), is_worse("mfu", 1.0), is_worse("chips", 1.0)) == (
        True,
        False,
        None,
    )


def test_performance_per_cost_moves_with_both_scenarios(
    enter_baseline_folder, tmp_path, monkeypatch
):
    """The rate moves both, the other's PUE moves one."""
    monkeypatch.chdir(tmp_path)
    assert tco("baseline", "save", "both", NAME, OTHER).exit_code == 0
    path = tmp_path / BASELINES / "both.json"
    states = json.loads(path.read_text())["scenarios"]
    assert tco("baseline", "save", "both", OTHER, "--set", "site.pue=1.3").exit_code == 0
    write_baseline(
        path, {NAME: states[NAME], OTHER: json.loads(path.read_text())["scenarios"][OTHER]}
    )
    (drift,) = drifts("--metric", "perf_per_tco_vs_baseline", name="both", terms__rate="0.12")
    assert drift["scenario"] == OTHER
    cost = "usd_per_million_output_tokens"
    dearer = again(OTHER, site__pue="1.3").metrics[cost]
    assert drift["old"] == pytest.approx(again(NAME).metrics[cost] / dearer, rel=1e-9)
    assert [[cause["path"] for cause in step["causes"]] for step in drift["steps"]] == [
        ["site.pue"],
        ["terms.rate"],
    ]
    assert sum(step["difference"] for step in drift["steps"]) == pytest.approx(
        drift["new"] - drift["old"], rel=1e-12
    )
    assert drift["steps"][0]["ratio"] == pytest.approx(
        dearer / again(OTHER).metrics[cost], rel=1e-9
    )
    assert math.prod(step["ratio"] for step in drift["steps"]) == pytest.approx(
        drift["new"] / drift["old"], rel=1e-12
    )


def test_metric_without_a_value_any_more_is_a_drift(file, kept_state):
    write_baseline(file, {NAME: {**kept_state, "metrics": {**kept_state["metrics"], "mfu": 0.9}}})
    (drift,) = drifts("--max-increase", "50%")
    assert (drift["metric"], drift["new"], drift["worse"], drift["steps"]) == (
        "mfu",
        None,
        True,
        [],
    )


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "/etc/passwd"])
def test_name_of_a_baseline_that_is_a_path_is_refused(file, name):
    done = tco("baseline", "check", name)
    assert done.exit_code == 3
    assert "is no name for a baseline" in done.stderr


def test_baselines_are_listed_the_broken_ones_too(file, kept_state):
    write_baseline(file.with_name("b.json"), {NAME: kept_state})
    file.with_name("a.json").write_text("{")
    done = tco("baseline", "list", "--format", "json")
    assert [
        (baseline_row["id"], baseline_row["scenarios"])
        for baseline_row in json.loads(done.stdout)["items"]
        if baseline_row["id"] == "b"
    ] == [("b", [NAME])]
    assert f"{BASELINES}/a.json: is no baseline; `tco baseline save` writes one" in " ".join(
        (done.stdout + done.stderr).split()
    )


FOREIGN = [
    "",
    "{",
    "[]",
    "{}",
    '{"scenarios": {}}',
    '{"schema": "tco.result/1"}',
    '{"schema": "tco.baseline/2"}',
    "[" * 100_000,
    '{"schema": 1}',
]


@pytest.mark.parametrize("content", FOREIGN, ids=range(len(FOREIGN)))
def test_file_that_is_no_baseline_is_refused(file, content):
    file.write_text(content)
    for words in (("check", "main"), ("save", "main", NAME)):
        done = tco("baseline", *words)
        assert done.exit_code == 3
        assert "is no baseline; `tco baseline save` writes one" in done.stderr
    assert file.read_text() == content


@pytest.mark.parametrize("schema", ["tco.baseline/1", "tco.baseline/3"])
def test_baseline_of_another_version_is_refused(file, schema):
    write_baseline(file, {}, schema)
    for words in (("check", "main"), ("save", "main", NAME)):
        assert (
            f"was saved by another version of tco ({schema}, expected tco.baseline/2)"
            in tco("baseline", *words).stderr
        )


BAD = {
    "no table": (3, "expected a table"),
    "no metrics": ({"metrics": None}, "metrics is 'None', expected a table of numbers"),
    "a text for a metric": ({"metrics": {"capex_usd": "much"}}, "expected a table of numbers"),
    "an input without a unit": (
        {"inputs": {"site.pue": [1.2]}},
        "site.pue is '[1.2]', expected a number and its unit",
    ),
    "no number": ({"inputs": {"site.pue": [float("nan"), ""]}}, "expected a number and its unit"),
    "another plan": (
        {"plan": {"decode": {}}},
        "plan: decode is no plan: expected a table of chips, tensor_parallel",
    ),
    "own values that are no list": ({"own": 3}, "own is '3', expected a list of texts"),
    "no texts": ({"texts": []}, "expected a table of texts"),
}


@pytest.mark.parametrize("case", BAD)
def test_broken_state_is_refused(file, case, kept_state):
    change, message = BAD[case]
    write_baseline(file, {"mine": {**kept_state, **change} if isinstance(change, dict) else change})
    done = tco("baseline", "check", "main")
    assert done.exit_code == 3
    assert done.stderr.startswith(f"error: {BASELINES}/main.json: mine: ")
    assert message in done.stderr


def test_an_equal_baseline_is_fine(enter_baseline_folder):
    assert document("baseline", "check", "both")["ok"] is True


def test_what_the_draws_say_moves_beyond_a_limit_or_not_at_all():
    old = {"50": {"a": {"choose": "a", "share_of_best": 0.8, "p90": None}}}
    new = {"50": {"a": {"choose": "b", "share_of_best": 0.81, "p90": 2.0}}}
    assert shifts(old, old, Limit(0.0)) == []
    assert [figure_shift.figure for figure_shift in shifts(old, new, Limit(0.0))] == [
        "choose",
        "share_of_best",
        "p90",
    ]
    assert [figure_shift.figure for figure_shift in shifts(old, new, Limit(0.02))] == [
        "choose",
        "p90",
    ]
    assert [figure_shift.new for figure_shift in shifts(old, {}, Limit(0.02))] == [None, None]
