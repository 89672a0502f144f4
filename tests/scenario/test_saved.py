"""Saved results are read as they were evaluated, and other files are refused with the reason."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

import tco
from tco import DataError, UsageError
from tests.catalogue import CATALOGUE
from tests.registry import REGISTRY
from tests.scenario_helpers import same

NAMES = ("trn3-nl72x2", "gb200-nvl72", "train-gpt3-175b-a100x64")
PARTS = (
    "scenario",
    "title",
    "system",
    "perspective",
    "metrics",
    "notes",
    "lines",
    "bill",
    "rebates",
    "shares",
    "bounds",
    "texts",
    "standing",
    "order",
    "ages",
    "plan",
    "structure",
)


@pytest.fixture(scope="module")
def results_folder(tmp_path_factory):
    """The file of each result."""
    folder = tmp_path_factory.mktemp("results")
    for name in NAMES:
        tco.evaluate(name, catalogue=CATALOGUE).save(folder / f"{name}.json")
    return folder


@pytest.mark.parametrize("name", CATALOGUE.scenarios)
def test_every_scenario_is_read_again(name, tmp_path):
    evaluated_result = tco.evaluate(name, catalogue=CATALOGUE)
    evaluated_result.save(tmp_path / "a.json")
    loaded_result = tco.load_result(tmp_path / "a.json")
    for part in PARTS:
        assert getattr(loaded_result, part) == getattr(evaluated_result, part), part
    assert {path: result_input[:10] for path, result_input in loaded_result.inputs.items()} == {
        path: result_input[:10] for path, result_input in evaluated_result.inputs.items()
    }
    assert tco.diff(loaded_result, evaluated_result) == ([], [])
    loaded_result.save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_two_evaluations_are_the_same_bytes(results_folder, tmp_path):
    tco.evaluate("gb200-nvl72", catalogue=CATALOGUE, trace=True).save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (
        results_folder / "gb200-nvl72.json"
    ).read_bytes()


def test_saved_result_keeps_its_settings(tmp_path):
    changed_settings = {"site.pue": "1.3", "workload": "reasoning"}
    evaluated_result = tco.evaluate(
        "trn3-nl72x2", changed_settings, catalogue=CATALOGUE, variant={"switch": "gen2"}
    )
    evaluated_result.save(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["overrides"]["set"] == {"site.pue": "1.3"}
    assert document["documents"]["workload"] == "reasoning"
    assert document["overrides"]["variant"]["switch"] == "gen2"
    assert document["plan"]["decode"]["tensor_parallel"] >= 1
    assert document["data_hash"] == CATALOGUE.hash()
    assert not any(
        input_record["where"].startswith("/") for input_record in document["inputs"].values()
    )
    rested = document["formulas"]
    assert rested.keys() <= REGISTRY.keys()
    assert {"per_chip_hour", "capital_recovery_factor", "decode_rate"} <= rested.keys()


def test_a_scenario_without_a_plan_is_kept(tmp_path):
    evaluated_result = tco.evaluate(
        "trn3-nl72x2", {"workload.interactivity": "1e6 token/s"}, catalogue=CATALOGUE, trace=True
    )
    evaluated_result.save(tmp_path / "a.json")
    loaded_result = tco.load_result(tmp_path / "a.json")
    assert loaded_result.plan is None
    assert loaded_result.metrics["usd_per_million_output_tokens"] is None
    assert (
        loaded_result.metrics["tco_usd_per_chip_hour"]
        == evaluated_result.nodes["tco_usd_per_chip_hour"].value
    )


def test_a_pickled_result_can_be_saved(results_folder, tmp_path):
    pickle.loads(pickle.dumps(tco.evaluate("gb200-nvl72", catalogue=CATALOGUE))).save(
        tmp_path / "a.json"
    )
    direct_document, pickled_document = (
        json.loads((folder / name).read_text())
        for folder, name in ((results_folder, "gb200-nvl72.json"), (tmp_path, "a.json"))
    )
    assert direct_document | {"formulas": {}} == pickled_document


def test_saved_results_stand_for_scenarios(results_folder):
    files = [str(results_folder / f"{name}.json") for name in ("trn3-nl72x2", "gb200-nvl72")]
    live, read = tco.compare(["trn3-nl72x2", "gb200-nvl72"]), tco.compare(files)
    assert read.baseline == "gb200-nvl72"
    assert [result.metrics for result in read.results] == [
        result.metrics for result in live.results
    ]
    assert tco.compare([files[0], live.results[1]]).results[0].metrics == live.results[0].metrics
    assert tco.diff(files[0], "trn3-nl72x2") == ([], [])
    moves, causes = tco.diff(files[0], "trn3-nl72x2", {"site.electricity_price": "0.3 USD/kWh"})
    assert [cause.path for cause in causes] == ["site.electricity_price"]
    assert "tco_usd_per_chip_hour" in {move.metric for move in moves}


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_plan_is_accepted(name, results_folder):
    evaluated_result, loaded_result = (
        tco.evaluate(name, catalogue=CATALOGUE),
        tco.load_result(results_folder / f"{name}.json"),
    )
    assert loaded_result.plan == evaluated_result.plan
    tables = json.loads((results_folder / f"{name}.json").read_text())["plan"]
    for plan in (loaded_result.plan, tables):
        assert same(
            tco.evaluate(name, plan=plan, catalogue=CATALOGUE).metrics, evaluated_result.metrics
        )
        dearer = tco.evaluate(
            name,
            {"workload.interactivity": "70 token/s"} if "decode" in tables else {},
            plan,
            catalogue=CATALOGUE,
        )
        assert dearer.plan == evaluated_result.plan  # it is taken, not searched


def test_a_plan_of_another_kind_of_work_is_refused(results_folder):
    plan = tco.load_result(results_folder / "train-gpt3-175b-a100x64.json").plan
    with pytest.raises(DataError, match="a plan of training is given, the workload is serving"):
        tco.evaluate("gb200-nvl72", plan=plan, catalogue=CATALOGUE)


def test_comparing_leaves_results_as_they_are():
    evaluated_result = tco.evaluate("gb200-nvl72", catalogue=CATALOGUE)
    assert tco.compare([evaluated_result]).results[0].metrics["perf_per_tco_vs_baseline"] == 1
    assert evaluated_result.metrics["perf_per_tco_vs_baseline"] is None


def test_a_saved_result_cannot_be_changed(results_folder):
    with pytest.raises(UsageError, match="cannot be changed"):
        tco.compare([str(results_folder / "gb200-nvl72.json")], set={"site.pue": "1.3"})


def test_other_data_is_noted(results_folder, tmp_path):
    document = json.loads((results_folder / "gb200-nvl72.json").read_text())
    (tmp_path / "old.json").write_text(json.dumps(document | {"data_hash": "0123456789abcdef"}))
    (result,) = tco.compare([str(tmp_path / "old.json")]).results
    assert any("on data 0123456789abcdef" in note for note in result.notes)
    (result,) = tco.compare([str(results_folder / "gb200-nvl72.json")]).results
    assert not any("was saved by" in note for note in result.notes)


def changed(*steps, to=None):
    """A change of the document at some place: another value, or none."""

    def change(document):
        document = copy.deepcopy(document)
        inner = document
        for step in steps[:-1]:
            inner = inner[step]
        if to is None:
            del inner[steps[-1]]
        else:
            inner[steps[-1]] = to
        return document

    return change


BAD = {
    "another schema": (
        changed("schema", to="tco.baseline/1"),
        r"its schema is 'tco\.baseline/1', expected 'tco\.result/2'",
    ),
    "an older schema": (changed("schema", to="tco.result/1"), r"its schema is 'tco\.result/1'"),
    "no schema": (changed("schema"), "it states no schema"),
    "a list": (lambda document: [document], "it states no schema"),
    "no metrics": (changed("metrics"), "the key 'metrics' is missing"),
    "a text for a metric": (
        changed("metrics", "capex_usd", to="much"),
        "metrics is .*, expected a table of numbers",
    ),
    "no sum of the lines": (
        changed("metrics", "tco_usd_per_chip_hour"),
        "metrics: the key 'tco_usd_per_chip_hour' is missing, expected a number",
    ),
    "not a number": (
        changed("metrics", "capex_usd", to=float("nan")),
        "metrics is .*, expected a table of numbers",
    ),
    "a truth for a number": (
        changed("inputs", "site.pue", "value", to=True),
        r"inputs \d+: value is 'True', expected a number",
    ),
    "an input without a unit": (
        changed("inputs", "site.pue", "unit"),
        r"inputs \d+: the key 'unit' is missing",
    ),
    "no term of the premise": (
        changed("inputs", "terms.life"),
        r"inputs: the key 'terms\.life' is missing",
    ),
    "no input of the workload": (
        changed("inputs", "workload.output_tokens"),
        r"the key 'workload\.output_tokens' is missing",
    ),
    "no kind of workload": (
        changed("texts", "workload.kind"),
        r"texts: the key 'workload\.kind' is missing",
    ),
    "a line that is none": (changed("lines", 0, to=3), "lines 1: '3', expected a table"),
    "a line of an input that is not there": (
        changed("lines", 0, "inputs", to=["parts.[].price"]),
        r"lines 1: unknown input 'parts\.\[\]\.price'",
    ),
    "an input of no kind": (
        changed("inputs", "site.pue", "kind", to="rumour"),
        r"inputs \d+: kind is 'rumour', expected one of measured, vendor",
    ),
    "an input of no directness": (
        changed("inputs", "site.pue", "directness", to="far"),
        r"inputs \d+: directness is 'far', expected one of first-hand",
    ),
    "a line without its cost": (
        changed("lines", 2, "usd_per_chip_hour"),
        "lines 3: the key 'usd_per_chip_hour' is missing",
    ),
    "a bill without lines": (
        changed("bill", "lines", to={}),
        "bill: lines is '{}', expected a list",
    ),
    "a bound without shares": (
        changed("bounds", "decode", to=1),
        "bounds: decode is '1', expected a table of numbers",
    ),
    "no share by kind": (changed("shares", "hardware"), "shares: the key 'hardware' is missing"),
    "notes in one": (changed("notes", to="fine"), "notes is 'fine', expected a list of texts"),
    "a payment in half a month": (
        changed("lines", 1, "first_month", to=0.5),
        "lines 2: first_month is '0.5', expected a count of months",
    ),
    "a payment before all": (
        changed("lines", 1, "recurrence", to=-1),
        "lines 2: recurrence is '-1', expected a count of months",
    ),
    "a life without end": (
        changed("lines", 1, "life", to=1e12),
        "lines 2: life is '1000000000000.0', expected a life in years",
    ),
    "no dates of the bill": (changed("ages", "later"), "ages: the key 'later' is missing"),
    "half a plan": (
        changed("plan", "prefill"),
        "plan: prefill is no plan: expected a table of chips, tensor_parallel",
    ),
    "a plan of no chips": (
        changed("plan", "decode", "chips", to=0.0),
        "plan: decode: chips is '0.0', expected a number from 1 on",
    ),
    "a plan of texts": (
        changed("plan", "decode", "sequences", to="many"),
        "plan: decode: sequences is 'many', expected a number",
    ),
    "a plan with more": (
        changed("plan", "more", to=1),
        "plan is no plan: expected a table of decode, prefill, engines, readers",
    ),
    "no report": (changed("report", "search"), "report: the key 'search' is missing"),
}


@pytest.mark.parametrize("name", BAD)
def test_document_that_is_no_saved_result_is_refused(name, results_folder, tmp_path):
    change, message = BAD[name]
    path = tmp_path / "bad.json"
    path.write_text(
        json.dumps(change(json.loads((results_folder / "gb200-nvl72.json").read_text())))
    )
    with pytest.raises(DataError, match=message) as error:
        tco.load_result(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "broken JSON"),
        ('{"schema": ', "bad.json:1: broken JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("\udcff", "not UTF-8"),
    ],
    ids=["empty", "cut off", "deep", "binary"],
)
def test_a_file_that_is_no_json_is_refused(content, message, tmp_path):
    (tmp_path / "bad.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=message):
        tco.load_result(tmp_path / "bad.json")


@pytest.mark.parametrize(
    "key",
    [
        "title",
        "documents",
        "plan",
        "lines",
        "inputs",
        "standing",
        "report",
        "formulas",
        "order",
        "bill",
    ],
)
def test_document_with_a_part_of_the_wrong_type_is_refused(key, results_folder, tmp_path):
    document = json.loads((results_folder / "gb200-nvl72.json").read_text())
    for wrong in (1, [1], {"x": 1}, "x", True):
        if key in ("title", "order") and wrong == "x":
            continue
        (tmp_path / "bad.json").write_text(json.dumps(document | {key: wrong}))
        with pytest.raises(DataError):
            tco.load_result(tmp_path / "bad.json")


def test_a_metric_that_came_later_has_no_value(results_folder, tmp_path):
    document = json.loads((results_folder / "gb200-nvl72.json").read_text())
    del document["metrics"]["goodput"], document["metrics"]["usd_per_million_tokens"]
    (tmp_path / "old.json").write_text(json.dumps(document))
    (result,) = tco.compare([str(tmp_path / "old.json")]).results
    assert result.metrics["usd_per_million_tokens"] is None


def test_the_public_names_are_listed():
    assert {"compare", "diff", "evaluate", "frontier", "load_catalogue", "load_result"} <= set(
        dir(tco)
    )
    assert all(getattr(tco, name) is not None for name in tco.__all__)
    (rack_frontier,) = tco.frontier(["gb200-nvl72"])
    assert len(rack_frontier.points) > 10


def test_a_result_shows_itself_shortly(catalogue):
    result = tco.evaluate("gb200-nvl72")
    assert len(repr(result)) < 300
    assert "gb200-nvl72" in repr(result)
    assert f"{result.metrics['tco_usd_per_chip_hour']:.6g}" in repr(result)
    html = result._repr_html_()
    assert "<table" in html
    assert "usd_per_million_output_tokens" in html
    assert "nan" not in html.lower()


def test_an_unknown_metric_of_a_result_is_refused_with_the_nearest_name():
    metrics = tco.evaluate("gb200-nvl72", catalogue=CATALOGUE).metrics
    assert metrics.get("usd_per_chip_hour") is None
    for unknown_name, words in (
        ("usd_per_chip_hour", "did you mean 'tco_usd_per_chip_hour'?"),
        ("chip-hour", "metrics of that word: energy_usd_per_chip_hour"),
    ):
        with pytest.raises(KeyError) as refused:
            metrics[unknown_name]
        assert isinstance(refused.value, DataError)
        assert str(refused.value).startswith(f"unknown metric '{unknown_name}'")
        assert words in str(refused.value)
    assert pickle.loads(pickle.dumps(metrics)) == metrics
