"""`tco compare --what-if`: inputs replaced, with plans and all choices held."""

from __future__ import annotations

import pytest

from tco.chain.scenario import evaluate
from tests.chain import result
from tests.cli import document, tco
from tests.shipped import CATALOGUE

PAIR = ("trn3-nl72x2", "gb200-nvl72")
MOVED = {"terms.life": "4 year", "performance.trainium.launch_time": "9 us"}
WORDS = [word for path, value in MOVED.items() for word in ("--what-if", f"{path}={value}")]


def test_it_holds_what_was_decided():
    found = document("compare", *PAIR, *WORDS, "--no-range")
    assert found["what_if"] == list(MOVED)
    for row in found["rows"]:
        one = result(row["scenario"])
        held = evaluate(row["scenario"], MOVED, structure=one.structure, catalogue=CATALOGUE)
        for metric in ("tco_usd_per_chip_hour", "usd_per_million_output_tokens", "tokens_per_s_per_user"):
            assert row["metrics"][metric] == pytest.approx(held.metrics[metric], rel=1e-12)
    slow = found["rows"][0]["metrics"]["tokens_per_s_per_user"]
    assert slow < 50 * 0.9  # a search would keep the target, at another batch


def test_it_says_what_is_held_and_draws_on_it():
    done = tco("compare", *PAIR, *WORDS)
    assert done.exit_code == 0, done.stderr
    assert "note: plans and choices are those without terms.life, performance.trainium.launch_time" in done.stderr
    assert "life 4 years" in done.stdout
    assert "at least" not in done.stdout.splitlines()[0]  # a plan that is held has no target
    assert "P10 to P90" in done.stdout


@pytest.mark.parametrize(
    ("setting", "code", "words"),
    [
        ("terms.lief=4 year", 3, "did you mean 'terms.life'"),
        ("terms.life", 2, "--what-if"),
        ("terms.life=4 kW", 3, "terms.life=4 kW"),
        ("workload.model=gpt-oss-120b", 3, "when the structure was decided"),
    ],
)
def test_what_is_wrong_is_refused(setting, code, words):
    done = tco("compare", *PAIR, "--what-if", setting)
    assert done.exit_code == code
    assert words in done.stderr
    assert done.stdout == ""


def test_a_saved_result_cannot_be_moved(tmp_path):
    path = tmp_path / "saved.json"
    result("gb200-nvl72").save(path)
    done = tco("compare", path, *WORDS)
    assert done.exit_code == 2
    assert "name its scenario" in done.stderr
