"""The answer of a study is checked against its cases: figures that differ are named."""

from __future__ import annotations

import pytest

import tco
from tco import DataError
from tco.sweeps.answer import ExpectedFigure
from tests.cli import document
from tests.cli import tco as cli

HOUR = "tco_usd_per_chip_hour"
PRICES = ["0.05 USD/kWh", "0.1 USD/kWh"]
CASE = {"scenario": "gb200-nvl72", "site.electricity_price": PRICES[0]}


@pytest.mark.parametrize(
    ("says", "reads", "misread_values"),
    [
        ("1,650", (1645, 1655), (1644, 1656)),
        ("13", (12.5, 13.5), (12.4, 13.6)),
        ("2.10", (2.095, 2.105), (2.09, 2.11)),
        ("0", (0, 0.4), (0.6, -1)),
        ("3.4 million", (3.35e6, 3.449e6), (3.4, 3.46e6)),
        ("+5 %", (1.046, 1.054), (0.95, 1.06, 5)),
        ("-0.1 %", (0.9990,), (1.001, 0.998)),
        ("no price", (None,), (0.0, 1.0)),
    ],
)
def test_a_figure_reads_as_it_is_rounded(says, reads, misread_values):
    figure = ExpectedFigure(says, HOUR, CASE, None, 0.5)
    assert all(figure.reads(value) for value in reads)
    assert not any(figure.reads(value) for value in misread_values)
    assert figure.reads(None) is (says == "no price")


def study(*expect, **more):
    return {
        "answer": "It costs 1.5 USD, +3 % at the dearer, or no price.",
        "scenarios": ["gb200-nvl72"],
        "report": [HOUR, "step_s"],
    } | {
        "grid": {"site.electricity_price": PRICES},
        "expect": list(expect),
        **more,
    }


def toml(path, table):
    lines = [
        f"{key} = {value!r}"
        for key, value in table.items()
        if key in {"answer", "scenarios", "report"}
    ]
    rows = (
        ", ".join(f"{key!r} = {inline(value)}" for key, value in expectation.items())
        for expectation in table["expect"]
    )
    lines.append("expect = [" + ", ".join(f"{{ {row} }}" for row in rows) + "]")
    path.write_text("\n".join([*lines, "[grid]", f"'site.electricity_price' = {PRICES!r}", ""]))
    return path


def inline(value):
    return (
        "{ " + ", ".join(f"{key!r} = {inner_value!r}" for key, inner_value in value.items()) + " }"
        if isinstance(value, dict)
        else repr(value)
    )


def test_figure_that_no_longer_holds_is_named_and_exits_1(tmp_path):
    cheap, dear = (
        tco.evaluate("gb200-nvl72", {"site.electricity_price": price}).metrics[HOUR]
        for price in PRICES
    )
    change = dear / cheap - 1
    right = {
        "says": "+3 %",
        "metric": HOUR,
        "at": {**CASE, "site.electricity_price": PRICES[1]},
        "over": {"site.electricity_price": PRICES[0]},
    }
    wrong = {"says": "1.5", "metric": HOUR, "at": CASE}
    none = {"says": "no price", "metric": "step_s", "at": CASE}
    path = toml(tmp_path / "mine.toml", study(right, wrong, none))
    answer_figures = document("sweep", path, "-o", tmp_path / "o", code=1)["answer"]
    assert [figure["today"] for figure in answer_figures] == [
        pytest.approx(dear / cheap, rel=1e-9),
        pytest.approx(cheap, rel=1e-9),
        None,
    ]
    assert [figure["holds"] for figure in answer_figures] == [round(change * 100) == 3, False, True]
    done = cli("sweep", path, "-o", tmp_path / "o")
    assert done.exit_code == 1
    assert f"'1.5' is {cheap:.4g} today: {HOUR} of gb200-nvl72, {PRICES[0]}" in done.stdout


def test_another_question_has_another_answer(tmp_path):
    path = toml(tmp_path / "mine.toml", study({"says": "1.5", "metric": HOUR, "at": CASE}))
    assert document("sweep", path, "-o", tmp_path / "o", "--set", "terms.rate=0.3")["answer"] == []


BAD = {
    "words of the answer": {"says": "5"},
    "unknown metric 'mfu'": {"metric": "mfu"},
    "unknown key 'tolerance'": {"tolerance": 0.1},
    "a share from 0 to 1": {"quantile": 90},
    "lacks site.electricity_price": {"at": {"scenario": "gb200-nvl72"}},
    "a value that the study lists": {"at": {**CASE, "scenario": "trn3-nl72x2"}},
    "unknown path 'site.pue'": {"over": {"site.pue": "1.2"}},
}


@pytest.mark.parametrize("message", BAD)
def test_figure_that_cannot_be_checked_is_refused(message, tmp_path):
    with pytest.raises(DataError, match=rf"study: expect\[0\].*{message}"):
        tco.sweep(study({"says": "1.5", "metric": HOUR, "at": CASE} | BAD[message]), tmp_path / "o")


def test_draws_that_constraints_leave_out_cannot_be_paired(tmp_path):
    paired_figure = {
        "says": "1.5",
        "metric": HOUR,
        "at": CASE,
        "over": {"site.electricity_price": PRICES[1]},
    }
    with pytest.raises(DataError, match="may leave out some of its draws"):
        tco.sweep(study(paired_figure, constraints={HOUR: {"max": 3}}), tmp_path / "o")
