"""`tco baseline` and the steps of `tco diff`, as a person and a pipeline meet them."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tco import __version__
from tco.regression.drift import Shift
from tco.report.drift import drift_answer
from tco.scenario.metrics import AGAINST_BASELINE
from tests.cli import document, tco

DEARER = ("--set", "site.electricity_price=0.0862 USD/kWh")
ONE = ("--metric", "usd_per_million_tokens")


@pytest.fixture(scope="module")
def baseline_folder(tmp_path_factory):
    """A folder with a baseline of two scenarios."""
    folder = tmp_path_factory.mktemp("baselines")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert tco("baseline", "save", "main", "gb200-nvl72", "trn3-nl72x2").exit_code == 0
    return folder


@pytest.fixture(autouse=True)
def enter_baseline_folder(baseline_folder, monkeypatch):
    monkeypatch.chdir(baseline_folder)


def test_unchanged_baseline_says_what_was_checked(baseline_folder):
    document = json.loads((baseline_folder / "reports/baselines/main.json").read_text())
    metrics = {metric for state in document["scenarios"].values() for metric in state["metrics"]}
    count = len({*metrics, *AGAINST_BASELINE})
    words = f"2 scenarios: {count} metrics: no change above 1e-07 % (largest 0 %)"
    assert tco("baseline", "check", "main").stdout == f"baseline main, {words}\n"
    assert tco("baseline", "check", "main", "--format", "github").stdout == (
        f"::notice title=baseline main::{words.replace('%', '%25')}\n"
    )


@pytest.mark.parametrize(
    ("metric", "limits", "words"),
    [
        ("usd_per_million_tokens", ("2%",), "no rise above 2 % (largest +0.0123 %)"),
        ("usd_per_million_tokens", ("0.05USD",), "no rise above 0.05 USD (largest +0.0123 %)"),
        (
            "usd_per_million_tokens",
            ("2%", "--threshold", "5%"),
            "no rise above 2 % and 5 % (largest +0.0123 %)",
        ),
        ("tokens_per_s_per_facility_mw", ("2%",), "no fall above 2 % (largest 0 %)"),
        ("chips", ("2%",), "no change above 1e-07 % (largest 0 %)"),
    ],
)
def test_check_that_passes_names_metric_limit_and_largest_move(metric, limits, words):
    options = ("--metric", metric, "--max-increase", *limits)
    done = tco("baseline", "check", "main", *DEARER, *options)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"baseline main, 2 scenarios: {metric}: {words}")


def test_largest_move_of_many_metrics_is_named():
    done = tco("baseline", "check", "main", *DEARER, "--max-increase", "2%")
    assert re.search(
        r"metrics: no change for the worse above 2 % \(largest \+0\.116 %, energy_\w+\)",
        done.stdout,
    )
    better = ("--set", "site.electricity_price=0.04 USD/kWh", "--max-increase", "2%", *ONE)
    assert "no rise above 2 % (largest 0 %)" in tco("baseline", "check", "main", *better).stdout


def move_words(metric_move):
    """The words for a move."""
    return (
        f"{metric_move['scenario']}: {metric_move['metric']} {metric_move['old']:.6g} -> "
        f"{metric_move['new']:.6g}  {metric_move['change'] * 100:+.3g} %"
    )


def step_words(metric_move):
    """The words for a step that is the whole of a move."""
    by = metric_move["new"] - metric_move["old"]
    return (
        f"  {by:+.4g}  {metric_move['change'] * 100:+.3g} %  price site.electricity_price: 0.0861 "
        "-> "
        "0.0862 USD/kWh"
    )


def test_a_drift_is_shown_step_by_step():
    done = tco("baseline", "check", "main", *DEARER, *ONE)
    assert done.exit_code == 1
    drift = document("baseline", "check", "main", *DEARER, *ONE, code=1)["drift"]
    _, heading, *steps, column_names = done.stdout.splitlines()[:7]
    assert heading == "Why, step by step; each step comes on top of the earlier ones:"
    assert steps == [
        line for metric_move in drift for line in (move_words(metric_move), step_words(metric_move))
    ]
    assert column_names.split()[:3] == ["metric", "old", "new"]
    accept = done.stdout.splitlines()[-1]
    names = " ".join(metric_move["scenario"] for metric_move in drift)
    setting = "--set 'site.electricity_price=0.0862 USD/kWh'"
    assert accept == f"To accept: tco baseline save main {names} {setting}"


def test_a_document_keeps_its_keys():
    drift = document("baseline", "check", "main", *DEARER, *ONE, code=1)["drift"]
    assert [(d["scenario"], d["metric"], d["unit"], d["worse"]) for d in drift] == [
        (name, "usd_per_million_tokens", "USD/Mtoken", True)
        for name in ("gb200-nvl72", "trn3-nl72x2")
    ]
    for metric_move in drift:
        assert metric_move["why"] == ["price site.electricity_price: 0.0861 -> 0.0862 USD/kWh"]
        assert sum(step["difference"] for step in metric_move["steps"]) == pytest.approx(
            metric_move["new"] - metric_move["old"], rel=1e-12
        )
        assert metric_move["change"] == pytest.approx(metric_move["new"] / metric_move["old"] - 1)
        ((cause,),) = (step["causes"] for step in metric_move["steps"])
        assert cause == {
            "cause": "input",
            "kind": "price",
            "path": "site.electricity_price",
            "old": 0.0861,
            "new": 0.0862,
            "unit": "USD/kWh",
        }


@pytest.fixture
def earlier_baseline(baseline_folder):
    """Return a function that rewrites the baseline as an earlier program would have kept it.

    It takes a change of the scenarios' states, and a factor for each metric.
    """
    path = baseline_folder / "reports" / "baselines" / "main.json"
    text = path.read_text()

    def write(change, **factors):
        content = json.loads(text)
        for state in content["scenarios"].values():
            change(state)
            for metric, factor in factors.items():
                state["metrics"][metric] *= factor
        path.write_text(json.dumps(content))

    yield write
    path.write_text(text)


def causes_of(metric):
    """Return the causes of one metric's drift in the first scenario, and the printed reasons.

    A cause is of the program or an input, of a kind, and has a path.
    """
    drift = document("baseline", "check", "main", "--metric", metric, code=1)["drift"][0]
    words = tco("baseline", "check", "main", "--metric", metric).stdout
    assert all(reason.removesuffix(" ratio") in words for reason in drift["why"])
    return [
        (cause["cause"], cause["kind"], cause["path"])
        for step in drift["steps"]
        for cause in step["causes"]
    ], drift["why"]


def test_another_version_of_the_program_is_told_from_data(earlier_baseline):
    earlier_baseline(lambda state: state.update(tco_version="0.0.9"), usd_per_million_tokens=1.01)
    version = __version__
    assert causes_of("usd_per_million_tokens") == (
        [("program", "version", "")],
        [f"program changed: version: 0.0.9 -> {version}"],
    )


def test_other_code_of_the_same_version_is_told_from_data(earlier_baseline):
    earlier_baseline(lambda state: None, capex_usd=1.01)
    assert causes_of("capex_usd") == (
        [("program", "code", "")],
        ["program changed: code that is no formula, no input differs"],
    )


def test_data_that_no_input_reads_is_data(earlier_baseline):
    earlier_baseline(lambda state: state.update(data_hash="0123456789abcdef"), capex_usd=1.01)
    causes, (why,) = causes_of("capex_usd")
    assert causes == [("input", "data", "")]
    assert why.startswith("data: 0123456789abcdef -> ")


def test_a_changed_formula_is_named_where_the_metric_rests_on_it(earlier_baseline):
    changed = {"usd_per_million": "0123456789ab", "building_price": "0123456789ab"}
    earlier_baseline(
        lambda state: state["formulas"].update(changed),
        usd_per_million_tokens=1.01,
        tco_usd_per_chip_hour=1.01,
    )
    token, _ = causes_of("usd_per_million_tokens")
    assert token == [
        ("program", "formula", "building_price"),
        ("program", "formula", "usd_per_million"),
    ]
    hour, why = causes_of("tco_usd_per_chip_hour")
    assert hour == [("program", "formula", "building_price")]
    assert why == ["program changed: formula building_price is another"]


def test_a_fit_is_told_from_what_somebody_looked_up_or_set(earlier_baseline):
    path, old = "performance.nvidia.stream_efficiency", []

    def other(state):
        if path in state["inputs"]:
            old.append(state["inputs"][path][0])
            state["inputs"][path] = [0.5, "ratio"]

    earlier_baseline(other, usd_per_million_tokens=1.01)
    causes, why = causes_of("usd_per_million_tokens")
    assert ("program", "fit", path) in causes
    assert f"program changed: fit {path}: 0.5 -> {old[0]:g} ratio" in why
    drift = document("baseline", "check", "main", "--set", f"{path}=0.7", *ONE, code=1)["drift"][0]
    assert ("input", "assumption", path) in [
        (cause["cause"], cause["kind"], cause["path"])
        for step in drift["steps"]
        for cause in step["causes"]
    ]


def test_check_can_be_limited_to_cost():
    slower = ("--set", "performance.nvidia.stream_efficiency=0.5")
    assert tco("baseline", "check", "main", *slower).exit_code == 1
    assert (
        tco("baseline", "check", "main", *slower, "--metric", "tco_usd_per_chip_hour").exit_code
        == 0
    )
    assert (
        tco("baseline", "check", "main", *DEARER, "--metric", "tco_usd_per_chip_hour").exit_code
        == 1
    )


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (("--threshold", "2%"), 0),
        (("--threshold", "0.000001USD", *ONE), 1),
        (("--max-increase", "0.05USD", *ONE), 0),
        (("--max-increase", "0.000001"), 1),
    ],
)
def test_limits_are_shares_or_amounts(limits, code):
    assert tco("baseline", "check", "main", *DEARER, *limits).exit_code == code


def test_improvement_passes_the_limit_on_increases():
    assert (
        tco(
            "baseline",
            "check",
            "main",
            "--set",
            "site.electricity_price=0.04 USD/kWh",
            "--max-increase",
            "0",
        ).exit_code
        == 0
    )


def test_drifts_are_annotations_of_github():
    done = tco("baseline", "check", "main", *DEARER, *ONE, "--format", "github")
    first, second = done.stdout.splitlines()
    metric_move = document("baseline", "check", "main", *DEARER, *ONE, code=1)["drift"][0]
    cause = "price site.electricity_price: 0.0861 -> 0.0862 USD/kWh"
    escaped_move = move_words(metric_move).partition(": ")[2].replace("%", "%25")
    assert first.startswith(
        f"::error title=baseline main%2C gb200-nvl72::{cause}%0A{escaped_move}%0A"
    )
    assert "trn3-nl72x2" in second
    assert second.count(cause) == 2


def test_one_cause_gives_one_annotation_a_scenario():
    done = tco("baseline", "check", "main", *DEARER, "--format", "github")
    assert [line.partition("::")[2].partition("::")[0] for line in done.stdout.splitlines()] == [
        f"error title=baseline main%2C {name}" for name in ("gb200-nvl72", "trn3-nl72x2")
    ]
    assert "more metrics moved" in done.stdout


def test_a_check_of_all_metrics_says_how_to_gate_on_one():
    (hint,) = [
        line
        for line in tco("baseline", "check", "main", *DEARER).stdout.splitlines()
        if "To gate on one" in line
    ]
    option = "--metric usd_per_million_output_tokens"
    assert hint.endswith(f"tco baseline check main {option}")
    gated = tco("baseline", "check", "main", *DEARER, *option.split()).stdout
    assert "To gate on one" not in gated


def test_junit_names_every_metric_that_was_checked(baseline_folder):
    done = tco("baseline", "check", "main", *DEARER, "--format", "junit", "--output", "checks.xml")
    assert (done.exit_code, done.stdout) == (1, "")
    suites = ElementTree.parse(baseline_folder / "checks.xml").getroot()
    cases = list(suites.iter("testcase"))
    failures = [case for case in cases if case.find("failure") is not None]
    assert int(suites.get("tests")) == len(cases) > 50
    assert (
        int(suites.get("failures"))
        == len(failures)
        == sum(int(suite.get("failures")) for suite in suites)
    )
    drifts = document("baseline", "check", "main", *DEARER, code=1)
    assert len(failures) == len(drifts["drift"]) + len(drifts["shifts"])
    assert {case.get("name") for case in failures} == {d["metric"] for d in drifts["drift"]} | {
        f"{d['figure']} at {d['tokens_per_s_per_user']:g} tokens/s per user"
        for d in drifts["shifts"]
    }
    assert "site.electricity_price: 0.0861 -> 0.0862 USD/kWh" in failures[0].find("failure").text


MOVED_DRAWS = Shift("gb200-nvl72", 50.0, "share_of_best", 0.8, 0.7)


def test_junit_fails_by_figures_of_the_draws_alone(catalogue):
    """The cause of exit 1 is a failure of the report, even if no metric moved."""
    checked = {"gb200-nvl72": ["tco_usd_per_chip_hour"]}
    answer = drift_answer(catalogue, "main", checked, [], [MOVED_DRAWS], [], [], "", "")
    suites = ElementTree.fromstring(answer.texts["junit"]())
    (failure,) = suites.iter("failure")
    assert (suites.get("tests"), suites.get("failures")) == ("2", "1")
    assert "share_of_best at 50 tokens/s per user: 0.8 -> 0.7" in failure.get("message")


def test_figures_of_the_draws_are_shares_lost_with_their_change(catalogue):
    """One of them is saved again with all scenarios of the baseline."""
    answer = drift_answer(catalogue, "main", {}, [], [MOVED_DRAWS], [], [], "tco save all", "")
    (table,) = answer.tables()
    assert table.rows[-1] == ["50", "mean regret, %", "20.00", "30.00", "+50 %"]
    assert table.below == ["To accept: tco save all"]


def test_moved_ratio_names_the_scenario_that_it_is_relative_to():
    text = tco("baseline", "check", "main", *DEARER).stdout
    assert "perf_per_tco_vs_baseline is the ratio to gb200-nvl72." in text


def test_a_scenario_that_no_baseline_holds_is_named():
    scenario = Path("new.toml")
    scenario.write_text('system = "gb200-nvl72"\nworkload = "chat"\n')
    Path("notes.toml").write_text('title = "no scenario"\n')
    try:
        done = tco("baseline", "check", "main")
        assert done.exit_code == 0
        assert "note: new.toml is in no baseline" in done.stderr
        assert "tco baseline save main new.toml" in done.stderr
        assert "notes.toml" not in done.stderr
        annotated = tco("baseline", "check", "main", "--format", "github").stdout
        assert "::warning file=new.toml,title=baseline main::new.toml is in no" in annotated
        assert document("baseline", "check", "main")["unguarded"] == ["new.toml"]
        report = ElementTree.fromstring(
            tco("baseline", "check", "main", "--format", "junit").stdout
        )
        assert [case.get("classname") for case in report.iter("testcase")][-1] == "new.toml"
        assert (report.get("failures"), report.get("skipped")) == ("0", "1")
    finally:
        scenario.unlink()


def test_error_is_an_annotation_of_github():
    rows = Path("data", "parts", "own.csv")
    rows.parent.mkdir(parents=True)
    try:
        rows.write_text("part,attribute\nx,price\n")
        done = tco("baseline", "check", "main", "--format", "github")
        assert done.exit_code == 3
        assert done.stdout.startswith(
            "::error file=data/parts/own.csv,line=1,title=baseline main::"
        )
        report = ElementTree.fromstring(
            tco("baseline", "check", "main", "--format", "junit").stdout
        )
        assert report.get("errors") == "1"
    finally:
        shutil.rmtree("data")
    unknown = tco("baseline", "check", "mein", "--format", "github")
    assert (unknown.exit_code, unknown.stdout.partition("::")[2][:5]) == (3, "error")


def test_csv_names_units_and_causes():
    rows = list(
        csv.DictReader(
            io.StringIO(tco("baseline", "check", "main", *DEARER, *ONE, "--format", "csv").stdout)
        )
    )
    assert [row["unit"] for row in rows] == ["USD/Mtoken"] * 2
    assert rows[0]["why"].startswith("price site.electricity_price")


def test_list_and_show_print_what_the_baseline_keeps(baseline_folder):
    (item,) = document("baseline", "list")["items"]
    assert item == {
        "id": "main",
        "path": "reports/baselines/main.json",
        "scenarios": ["gb200-nvl72", "trn3-nl72x2"],
    }
    saved_scenarios = document("baseline", "show", "main")["scenarios"]
    on_file = json.loads((baseline_folder / item["path"]).read_text())["scenarios"]
    for saved_scenario in saved_scenarios:
        state = on_file[saved_scenario["scenario"]]
        assert (saved_scenario["tco_version"], saved_scenario["data_hash"]) == (
            state["tco_version"],
            state["data_hash"],
        )
        assert saved_scenario["data_date"] >= "2026"
        assert state["metrics"].items() <= saved_scenario["metrics"].items()
        assert {
            "path": "site.electricity_price",
            "value": 0.0861,
            "unit": "USD/kWh",
        } in saved_scenario["inputs"]
    assert saved_scenarios[0]["metrics"]["perf_per_tco_vs_baseline"] == 1
    printed_text = tco("baseline", "show", "main", *ONE).stdout
    data_date = saved_scenarios[0]["data_date"]
    date = on_file["gb200-nvl72"]["texts"]["terms.date"]
    assert date < data_date
    assert (
        f"; at the prices of {date}; the latest price in the data is of {data_date}."
        in printed_text
    )
    assert f"{saved_scenarios[0]['metrics']['usd_per_million_tokens']:.6g}" in printed_text


def test_saving_one_keeps_the_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["trn3-nl72x2", "gb200-nvl72", "h100-hgx8"]
    assert tco("baseline", "save", "main", *names).exit_code == 0
    done = tco("baseline", "save", "main", "gb200-nvl72", *DEARER)
    assert "Not saved again: trn3-nl72x2, h100-hgx8." in done.stdout
    assert document("baseline", "list")["items"][0]["scenarios"] == names
    drift = document("baseline", "check", "main", code=1)["drift"]
    assert {d["scenario"] for d in drift if not d["metric"].startswith("perf_per_tco")} == {
        "gb200-nvl72"
    }


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("check", "mian"), 3, "unknown baseline 'mian'; did you mean 'main'"),
        (("show", "mian"), 3, "unknown baseline 'mian'; did you mean 'main'"),
        (
            ("check", "main", "--threshold", "lots"),
            2,
            "expected a share such as 2% or 0.02, or an amount such as 0.05USD",
        ),
        (
            ("check", "main", "--max-increase", "5 USD", "--metric", "mfu"),
            2,
            "--max-increase is in USD, mfu in no unit",
        ),
        (("check", "main", "--metric", "capex"), 3, "unknown metric 'capex'"),
        (("check", "main", "--format", "xml"), 2, "junit"),
    ],
    ids=str,
)
def test_mistakes_are_refused_with_a_message(words, code, message):
    done = tco("baseline", *words)
    assert done.exit_code == code
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "content",
    ["", "{}", '{"schema": "tco.baseline/1", "scenarios": {}}', '{"schema": "tco.price/1"}'],
)
@pytest.mark.parametrize("verb", ["check", "save", "show"])
def test_a_file_of_another_kind_is_refused_and_left(verb, content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "reports" / "baselines" / "main.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    done = tco("baseline", verb, "main")
    assert done.exit_code == 3
    assert done.stderr.startswith("error: reports/baselines/main.json: ")
    assert done.stderr.count("\n") == 1
    assert path.read_text() == content


def test_a_difference_has_steps():
    difference_document = document("diff", "gb200-nvl72", "gb200-nvl72", *DEARER)
    for move in difference_document["metrics"]:
        assert sum(step["difference"] for step in move["steps"]) == pytest.approx(
            move["new"] - move["old"], rel=1e-12
        )
    done = tco(
        "diff", "gb200-nvl72", "gb200-nvl72", *DEARER, "--metric", "energy_usd_per_chip_hour"
    )
    energy = next(
        metric_move
        for metric_move in difference_document["metrics"]
        if metric_move["metric"] == "energy_usd_per_chip_hour"
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("energy per"))
    assert line.split()[-5:] == [
        "USD/chip/h",
        f"{energy['old']:.4f}",
        f"{energy['new']:.4f}",
        "+0.116",
        "%",
    ]
    titles = [line for line in done.stdout.splitlines() if line.startswith("Why ")]
    assert [title.partition(" moved")[0] for title in titles] == ["Why energy per chip-hour"]


def test_a_plan_may_come_from_a_saved_result(tmp_path):
    import tco as program

    program.evaluate("gb200-nvl72").save(tmp_path / "a.json")
    fixed, best = (
        document("perf", "gb200-nvl72", *words) for words in (("--plan", tmp_path / "a.json"), ())
    )
    # of arrays and of numbers, which may round by a bit
    for name, value in best["metrics"].items():
        assert fixed["metrics"][name] == (
            value if value is None else pytest.approx(value, rel=1e-12)
        ), name
    assert fixed["plan"] == best["plan"]
    done = tco("perf", "train-gpt3-175b-a100x64", "--plan", tmp_path / "a.json")
    assert done.exit_code == 3
    assert "a plan of serving is given, the workload is training" in done.stderr


def test_moved_metrics_stand_under_their_scenario_within_eighty_columns():
    settings = ("--set", "site.electricity_price=0.2 USD/kWh")
    done = tco("baseline", "check", "main", *settings)
    lines = done.stdout.splitlines()
    head = next(index for index, line in enumerate(lines) if line.startswith("metric "))
    assert lines[head + 2] == "gb200-nvl72"
    below = next(index for index, line in enumerate(lines) if line.startswith("To accept:"))
    assert max(map(len, lines[head:below])) <= 80
