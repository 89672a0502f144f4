"""The cost regression: kept, read back, merged, and compared by a rule."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tco import DataError, UsageError
from tco.chain.metrics import is_worse
from tco.studies.baseline import baseline_path, drifts, limit_of, listed, load, rule_of, save
from tests.chain import METRICS, MORE_IS_BETTER, again
from tests.studies.room import state_of

NEITHER = {"chips", "racks"}

NAME = "gb200-nvl72"
OTHER = "trn3-nl72x2"


@pytest.fixture(scope="module")
def plain():
    return state_of(again(NAME))


def found(plain, catalogue, threshold="1e-9", most=None, metrics=None, **settings):
    return drifts({NAME: plain}, {NAME: again(NAME, **settings)}, lambda _: catalogue, rule_of(threshold, most, metrics))


def moved(*given, **more):
    return {drift.move.metric for drift in found(*given, **more)}


def test_kept_and_read_back(tmp_path, plain):
    path = tmp_path / "deep" / "main.json"
    assert save(path, {NAME: plain}) == []
    assert load(path) == {NAME: plain}


def test_kept_twice_is_the_same_bytes(tmp_path, plain):
    save(tmp_path / "a.json", {NAME: plain})
    save(tmp_path / "b.json", {NAME: state_of(again(NAME))})
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_inputs_are_kept_as_the_catalogue_writes_them(plain):
    assert plain["inputs"]["site.electricity_price"] == [0.0861, "USD/kWh"]
    assert len(plain["inputs"]) == len(again(NAME).inputs) > 100
    assert plain["plan"]["decode"]["tensor_parallel"] >= 1
    assert plain["tco_version"]
    assert plain["data_hash"]
    assert len(plain["formulas"]) > 100


def test_what_is_not_saved_again_stays(tmp_path, plain):
    path = tmp_path / "main.json"
    save(path, {NAME: plain, "mine": plain})
    dearer = state_of(again(NAME, site__pue="1.5"))
    assert save(path, {NAME: dearer, "new": plain}) == ["mine"]
    assert load(path) == {NAME: dearer, "mine": plain, "new": plain}
    assert list(load(path)) == [NAME, "mine", "new"]


def test_a_drift_names_its_cause(plain, catalogue):
    drifted = found(plain, catalogue, site__electricity_price="0.3 USD/kWh")
    assert {drift.move.metric for drift in drifted} >= {"energy_usd_per_chip_hour", "tco_usd_per_chip_hour"}
    for drift in drifted:
        (step,) = drift.move.steps
        assert [cause.words() for cause in step.causes] == ["price site.electricity_price: 0.0861 -> 0.3 USD/kWh"]
        assert step.difference == drift.move.new - drift.move.old
        assert drift.worse is (drift.move.metric not in MORE_IS_BETTER)


def test_no_drift_no_news(plain, catalogue):
    assert found(plain, catalogue) == []


@pytest.mark.parametrize(("most", "drifted"), [(None, True), ("50%", False), ("0.5", False), ("1e-6", True), ("500W", False), ("1 W", True)])
def test_getting_worse_may_be_tolerated(plain, catalogue, most, drifted):
    assert ("facility_power_w_per_chip" in moved(plain, catalogue, most=most, site__pue="1.3")) is drifted


def test_getting_better_never_fails_a_greatest_increase(plain, catalogue):
    cheaper = {"site__pue": "1.01", "site__electricity_price": "0.03 USD/kWh"}
    assert moved(plain, catalogue, most="1e-9", **cheaper) == set()
    assert {"tco_usd_per_chip_hour", "tokens_per_s_per_facility_mw"} <= moved(plain, catalogue, **cheaper)
    assert "tokens_per_s_per_facility_mw" in moved(plain, catalogue, most="1%", site__pue="1.5")


def test_only_the_metrics_that_are_named(plain, catalogue):
    assert moved(plain, catalogue, metrics=["capex_usd"], site__pue="1.3") == set()
    wanted = ["tco_usd_per_chip_hour", "capex_usd"]
    assert moved(plain, catalogue, metrics=wanted, site__pue="1.3") == {"tco_usd_per_chip_hour"}


@pytest.mark.parametrize(("threshold", "drifted"), [("0.005USD", True), ("0.5 USD", False), ("0.5 USD/chip/h", False), ("0.05 kUSD", False)])
def test_a_threshold_may_be_an_amount(plain, catalogue, threshold, drifted):
    assert ("tco_usd_per_chip_hour" in moved(plain, catalogue, threshold=threshold, site__pue="1.3")) is drifted


def test_an_amount_says_nothing_of_metrics_in_other_units(plain, catalogue):
    assert "facility_power_w_per_chip" in moved(plain, catalogue, threshold="1000 USD", site__pue="1.3")


@pytest.mark.parametrize(
    ("text", "size", "unit"), [("2%", 0.02, ""), ("0.02", 0.02, ""), ("1e-9", 1e-9, ""), ("0.05USD", 0.05, "USD"), (" 3 W/chip ", 3, "W/chip")]
)
def test_limits(text, size, unit):
    assert limit_of(text, "--threshold") == (size, unit)


@pytest.mark.parametrize("text", ["", "much", "-2%", "2%%", "1 apple", "nan", "inf", "1e999", "1.2.3"])
def test_what_is_no_limit(text):
    with pytest.raises(UsageError, match=r"--max-increase .*expected a share such as 2% or 0\.02, or an amount"):
        limit_of(text, "--max-increase")


def test_an_amount_must_fit_the_metric_that_is_named():
    with pytest.raises(UsageError, match="--threshold is in W, mfu in no unit"):
        rule_of("5W", None, ["mfu"])
    with pytest.raises(DataError, match="unknown metric 'mfuu'; did you mean 'mfu'"):
        rule_of("1e-9", None, ["mfuu"])


def test_every_metric_has_a_sense():
    assert METRICS.keys() >= MORE_IS_BETTER | NEITHER
    less = METRICS.keys() - MORE_IS_BETTER - NEITHER
    costs = {name for name, metric in METRICS.items() if metric.unit.startswith(("USD", "W", "g/"))} - {"rebate_usd_per_chip"}
    assert costs <= less
    assert less - costs == {"ttft_s", "tpot_s", "step_s", "exposed_communication", "pipeline_bubble", "host_floor"}
    assert (is_worse("capex_usd", 1.0), is_worse("mfu", 1.0), is_worse("chips", 1.0)) == (True, False, None)


def test_performance_per_cost_moves_with_both_scenarios(catalogue):
    old = {name: state_of(again(name)) for name in (NAME, OTHER)}
    new = {NAME: again(NAME, terms__rate="0.12"), OTHER: again(OTHER, terms__rate="0.12", site__pue="1.3")}
    (drift,) = drifts(old, new, lambda _: catalogue, rule_of("1e-9", None, ["perf_per_tco_vs_baseline"]))
    assert drift.scenario == OTHER
    cost = "usd_per_million_output_tokens"
    assert drift.move.old == pytest.approx(old[NAME]["metrics"][cost] / old[OTHER]["metrics"][cost], rel=1e-12)
    assert [[cause.path for cause in step.causes] for step in drift.move.steps] == [["site.pue"], ["terms.rate"]]
    assert sum(step.difference for step in drift.move.steps) == pytest.approx(drift.move.new - drift.move.old, rel=1e-12)
    halfway = again(OTHER, site__pue="1.3").metrics[cost]
    assert drift.move.steps[0].ratio == pytest.approx(again(OTHER).metrics[cost] / halfway, rel=1e-9)
    assert math.prod(step.ratio for step in drift.move.steps) == pytest.approx(drift.move.new / drift.move.old, rel=1e-12)


def test_a_metric_that_went_is_a_loss(plain, catalogue):
    without = {**plain, "metrics": {**plain["metrics"], "mfu": 0.9}}
    (drift,) = found(without, catalogue, most="50%")
    assert (drift.move.metric, drift.move.new, drift.worse, drift.move.steps) == ("mfu", None, True, ())


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "/etc/passwd"])
def test_a_name_is_no_path(name):
    with pytest.raises(DataError, match="is no name for a baseline"):
        baseline_path(name)


def test_a_name_is_a_file_of_its_folder():
    assert baseline_path("main", Path("x")) == Path("x/main.json")


def test_an_unknown_baseline_gets_the_nearest_name(tmp_path, plain):
    save(tmp_path / "headline.json", {NAME: plain})
    with pytest.raises(DataError, match="unknown baseline 'headlin'; did you mean 'headline'"):
        load(tmp_path / "headlin.json")


def test_baselines_are_listed_the_broken_ones_too(tmp_path, plain):
    save(tmp_path / "b.json", {NAME: plain})
    (tmp_path / "a.json").write_text("{")
    assert listed(tmp_path) == {"a": f"{tmp_path / 'a.json'}: is no baseline; `tco baseline save` writes one", "b": [NAME]}


FOREIGN = ["", "{", "[]", "{}", '{"scenarios": {}}', '{"schema": "tco.result/1"}', '{"schema": "tco.baseline/2"}', "[" * 100_000, '{"schema": 1}']


@pytest.mark.parametrize("content", FOREIGN, ids=range(len(FOREIGN)))
def test_a_file_that_is_no_baseline(tmp_path, content, plain):
    path = tmp_path / "main.json"
    path.write_text(content)
    for use in (load, lambda file: save(file, {NAME: plain})):
        with pytest.raises(DataError, match="is no baseline; `tco baseline save` writes one"):
            use(path)
    assert path.read_text() == content


@pytest.mark.parametrize("schema", ["tco.baseline/1", "tco.baseline/3"])
def test_a_file_of_another_version(tmp_path, schema, plain):
    path = tmp_path / "main.json"
    path.write_text(json.dumps({"schema": schema, "scenarios": {}}))
    for use in (load, lambda file: save(file, {NAME: plain})):
        with pytest.raises(DataError, match=rf"was saved by another version of tco \({schema}, expected tco\.baseline/2\)"):
            use(path)


BAD = {
    "no table": (3, "expected a table"),
    "no metrics": ({"metrics": None}, "metrics is 'None', expected a table of numbers"),
    "a text for a metric": ({"metrics": {"capex_usd": "much"}}, "expected a table of numbers"),
    "an input without a unit": ({"inputs": {"site.pue": [1.2]}}, r"site\.pue is '\[1\.2\]', expected a number and its unit"),
    "no number": ({"inputs": {"site.pue": [float("nan"), ""]}}, "expected a number and its unit"),
    "another plan": ({"plan": {"decode": {}}}, "plan: decode is no plan: expected a table of chips, tensor_parallel"),
    "no texts": ({"texts": []}, "texts is .*, expected a table of texts"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_broken_state(tmp_path, case, plain):
    change, message = BAD[case]
    state = {**plain, **change} if isinstance(change, dict) else change
    (tmp_path / "main.json").write_text(json.dumps({"schema": "tco.baseline/2", "scenarios": {"mine": state}}))
    with pytest.raises(DataError, match=f"main.json: mine: .*{message}" if isinstance(change, dict) else message):
        load(tmp_path / "main.json")
