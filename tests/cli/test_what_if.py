"""`tco compare --what-if`: inputs replaced, with plans and all choices held."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco import evaluate
from tco.evaluation.scenario_function import ScenarioFunction
from tco.evaluation.what_if import _has_same_value, notes_on_idle_settings
from tco.scenario import run_chain
from tco.scenario.document import load_scenario
from tests.catalogue import CATALOGUE
from tests.cli import document, tco
from tests.scenario_helpers import result

PAIR = ("trn3-nl72x2", "gb200-nvl72")
MOVED = {"terms.life": "4 year", "performance.trainium.launch_time": "40 us"}
WORDS = [word for path, value in MOVED.items() for word in ("--what-if", f"{path}={value}")]


def test_what_if_holds_plans_and_choices():
    compare_document = document("compare", *PAIR, *WORDS, "--no-range")
    assert compare_document["what_if"] == list(MOVED)
    for row in compare_document["rows"]:
        scenario_result = result(row["scenario"])
        fixed_plan_result = evaluate(
            row["scenario"], MOVED, structure=scenario_result.structure, catalogue=CATALOGUE
        )
        for metric in (
            "tco_usd_per_chip_hour",
            "usd_per_million_output_tokens",
            "tokens_per_s_per_user",
        ):
            assert row["metrics"][metric] == pytest.approx(
                fixed_plan_result.metrics[metric], rel=1e-12
            )
    slow = compare_document["rows"][0]["metrics"]["tokens_per_s_per_user"]
    assert slow < 50 * 0.9  # a search would keep the target, at another batch


def test_what_if_names_what_is_held_and_draws_with_it():
    done = tco("compare", *PAIR, *WORDS)
    assert done.exit_code == 0, done.stderr
    assert (
        "note: plans and choices are those without terms.life, performance.trainium.launch_time"
        in done.stderr
    )
    assert "life 4 years" in done.stdout
    assert "at least" not in done.stdout.splitlines()[0]  # a plan that is held has no target
    assert "P10 to P90" in done.stdout


def test_plan_that_no_longer_fits_the_memory_has_no_answer_and_a_reason():
    words = ("compare", *PAIR, "--what-if", "parts.gb200-gpu.hbm_capacity=20 GB", "--no-range")
    unmoved_row, row = document(*words)["rows"]
    assert {
        row["metrics"][name]
        for name in ("usd_per_million_output_tokens", "output_tokens_per_s_per_chip", "tpot_s")
    } == {None}
    assert row["metrics"]["tco_usd_per_chip_hour"] == pytest.approx(
        result("gb200-nvl72").metrics["tco_usd_per_chip_hour"]
    )
    assert any(
        "the fixed plan needs " in note and " GB are usable" in note for note in row["notes"]
    )
    assert (
        unmoved_row["metrics"]["usd_per_million_output_tokens"]
        == result("trn3-nl72x2").metrics["usd_per_million_output_tokens"]
    )
    training = "llama-3.1-405b-training-gb200-nvl72"
    (row,) = document(
        "compare", training, "--what-if", "parts.gb200-gpu.hbm_capacity=20 GB", "--no-range"
    )["rows"]
    assert row["metrics"]["step_s"] is None
    assert any("the fixed plan needs " in note for note in row["notes"])


@pytest.mark.parametrize(
    ("setting", "note"),
    [
        (
            "workload.interactivity=30 token/s",
            "workload.interactivity moves nothing here: it decides the plan and the fixed choices",
        ),
        (
            "parts.gb200-gpu.hbm_bandwidth=4 TB/s",
            "tokens/s per user where workload.interactivity asks for 50: --set chooses another",
        ),
        ("workload.ttft=0.1 s", "s where workload.ttft asks for 0.1: --set chooses another"),
        ("parts.trn3.tdp=1 kW", "parts.trn3.tdp is set, but nothing in this scenario rests on it"),
        (
            "parts.optic-800g-dr8.reach=2 km",
            "parts.optic-800g-dr8.reach is set, but nothing in this scenario rests on it",
        ),
        (
            "performance.nvidia.hop_latency=1 us",
            "performance.nvidia.hop_latency is set, but moves no metric here: it is read but does "
            "not bind: ",
        ),
    ],
)
def test_what_if_notes_a_setting_without_effect_or_a_missed_speed(setting, note):
    (row,) = document("compare", "gb200-nvl72", "--what-if", setting, "--no-range")["rows"]
    path = setting.partition("=")[0]
    assert [row_note for row_note in row["notes"] if note in row_note]
    assert len([row_note for row_note in row["notes"] if path in row_note.partition(" ")[0]]) <= 1


@pytest.mark.parametrize(
    ("setting", "code", "words"),
    [
        ("terms.lief=4 year", 3, "did you mean 'terms.life'"),
        ("terms.life", 2, "--what-if"),
        ("terms.life=4 kW", 3, "terms.life=4 kW"),
        ("workload.model=gpt-oss-120b", 3, "when the structure was decided"),
    ],
)
def test_wrong_what_if_is_refused(setting, code, words):
    done = tco("compare", *PAIR, "--what-if", setting)
    assert done.exit_code == code
    assert words in done.stderr
    assert done.stdout == ""


def test_what_if_of_a_saved_result_is_refused(tmp_path):
    path = tmp_path / "saved.json"
    result("gb200-nvl72").save(path)
    done = tco("compare", path, *WORDS)
    assert done.exit_code == 2
    assert "name its scenario" in done.stderr


def test_an_input_that_only_one_of_two_answers_reads_has_no_same_value():
    """An answer stops reading the price of an optic where settings let it buy another."""
    path = "parts.optic-1600g-dr8.price"
    reading = SimpleNamespace(inputs={path: SimpleNamespace(value=1300.0)})
    unread = SimpleNamespace(inputs={})
    assert _has_same_value(path, reading, reading)
    assert not _has_same_value(path, reading, unread)
    assert not _has_same_value(path, unread, reading)


@pytest.mark.parametrize(
    ("path", "setting", "rated"),
    [
        ("site.electricity_price", "0.2 USD/kWh", 0),
        ("performance.trainium.launch_time", "40 us", 1),
    ],
)
def test_a_setting_that_moves_the_cost_rates_no_workload(path, setting, rated, monkeypatch):
    scenario = load_scenario(CATALOGUE, "trn3-nl32x2")
    function = ScenarioFunction(scenario, CATALOGUE, {path: setting})
    scenario_result, rate_workload, ratings = function.result({}), run_chain.rate_workload, []
    monkeypatch.setattr(
        run_chain,
        "rate_workload",
        lambda *arguments: ratings.append(arguments) or rate_workload(*arguments),
    )
    assert notes_on_idle_settings(scenario_result, [path], function) == []
    assert len(ratings) == rated
