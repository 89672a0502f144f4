"""Commands read options and tell files and errors, on texts and states made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from zipfile import ZipFile

import pytest

from tco import UsageError
from tco.cli import baseline, curve, output
from tco.cli.compare import _speeds_in
from tco.cli.export import _refuse_namesakes
from tco.cli.options import _refuse_facts_of_nothing, parse_key_values
from tco.cli.plot import _of_two
from tco.cli.redaction import IN_PLACE, UNSAID, _redacted_error, alike_states
from tco.cli.uncertainty import _pair_interval_bounds


# ---------------------------------------------------------------- options
@pytest.mark.parametrize(
    ("text", "speeds"), [(None, []), ("20", [20.0]), ("20,30.5, 100", [20.0, 30.5, 100.0])]
)
def test_speeds_are_numbers_between_commas(text, speeds):
    assert _speeds_in(text) == speeds


@pytest.mark.parametrize("text", ["0", "-5", "20,0", "inf", "nan", "20,,30", "fast"])
def test_speeds_that_are_not_above_zero_are_refused(text):
    with pytest.raises(UsageError, match="expected tokens/s per user above zero"):
        _speeds_in(text)


@pytest.mark.parametrize(
    ("texts", "pair"),
    [(None, [None, None]), (["a"], ["a", None]), (["a", "b"], ["a", "b"])],
)
def test_an_option_of_two_inputs_is_given_twice_at_most(texts, pair):
    assert _of_two(texts, "--from") == pair
    with pytest.raises(UsageError, match="--from: given 3 times"):
        _of_two(["a", "b", "c"], "--from")


def test_ends_are_given_for_all_varied_inputs_or_for_none():
    assert _pair_interval_bounds(["a", "b"], None, None) == [(None, None)] * 2
    assert _pair_interval_bounds(["a", "b"], ["1", "2"], None) == [("1", None), ("2", None)]
    assert _pair_interval_bounds(["a"], ["1"], ["9"]) == [("1", "9")]
    with pytest.raises(UsageError, match="--to is given 1 times and --vary 2"):
        _pair_interval_bounds(["a", "b"], ["1", "2"], ["9"])


def test_settings_are_paths_with_values():
    assert parse_key_values(["a = 1", "b=x=y"], "--set") == {"a": "1", "b": "x=y"}
    for option, word in (("--set", "PATH"), ("--plan", "KEY")):
        for text in ("a", "a=", "=1", " =1"):
            with pytest.raises(UsageError, match=f"^{option} .*: expected {word}=VALUE$"):
                parse_key_values([text], option)


def test_facts_of_measured_runs_need_the_runs():
    _refuse_facts_of_nothing({"anchor": "runs.csv", "chip": "h100"})
    _refuse_facts_of_nothing({"chip": "h100"})  # a command without the option
    _refuse_facts_of_nothing({"anchor": None})
    with pytest.raises(UsageError, match=r"^--ranks is of measured runs"):
        _refuse_facts_of_nothing({"anchor": None, "ranks": 8})


def test_a_difference_without_a_second_scenario_names_one():
    command = getattr(baseline.diff, "__wrapped__", baseline.diff)
    with pytest.raises(UsageError, match="tco diff a mi450x-ualoe72, or"):
        command(SimpleNamespace(), "a", None)


# ---------------------------------------------------------------- files
@pytest.mark.parametrize(
    ("size", "words"), [(10, "1 kB"), (247_900, "248 kB"), (2_540_000, "2.5 MB")]
)
def test_a_written_file_is_told_with_its_size(tmp_path, size, words):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x" * size)
    assert output._size_words(path) == words


def test_sheets_of_a_workbook_and_files_of_a_folder_are_counted(tmp_path):
    path = tmp_path / "a.xlsx"
    with ZipFile(path, "w") as workbook:
        for member in ("xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"):
            workbook.writestr(member, "")
    assert output._size_words(path) == "2 sheets, 1 kB"
    (tmp_path / "b.csv").write_bytes(b"x" * 1_999_000)
    assert output._size_words(tmp_path).startswith("2 files, 2.0 MB")


def test_only_a_file_that_the_block_wrote_is_told(tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(output, "tell", lines.append)
    path = tmp_path / "a.csv"
    for quiet, is_written, line_count in ((False, True, 1), (False, False, 0), (True, True, 0)):
        lines.clear()
        with output.telling_written(path, quiet):
            if is_written:
                path.unlink(missing_ok=True)
                path.write_text("x" * 2000)
        assert len(lines) == line_count
    with output.telling_written(None, quiet=False):
        pass
    assert lines == []


def test_scenarios_of_one_name_are_refused():
    names = [SimpleNamespace(scenario=name) for name in ("a", "b")]
    _refuse_namesakes(names)
    with pytest.raises(UsageError, match="two scenarios are called b"):
        _refuse_namesakes([*names, names[1]])


@pytest.mark.parametrize(
    ("form", "missing", "notes"), [("endpoints", 1, 2), ("endpoints", 0, 1), ("csv", 1, 1)]
)
def test_points_without_a_p90_are_told_where_the_form_needs_it(monkeypatch, form, missing, notes):
    points = [SimpleNamespace(tpot_p90_ms=20.0)] * 2 + [SimpleNamespace(tpot_p90_ms=None)] * missing
    monkeypatch.setattr(
        "tco.comparison.measured_curve.priced_curves", lambda *_: (points, ["first"], None)
    )
    monkeypatch.setattr(
        "tco.report.measured_curve.curve_answer", lambda catalogue, points, notes: notes
    )
    emitted = []
    request = SimpleNamespace(form=form, settings={}, data=None, emit=emitted.append)
    command = getattr(curve.curve, "__wrapped__", curve.curve)
    command(request, [], [])
    assert len(emitted[0]) == notes
    assert (f"{missing} of {len(points)} points" in emitted[0][-1]) == (notes == 2)


# ---------------------------------------------------------------- own values
def test_errors_of_all_runs_are_told_as_far_as_they_agree():
    location = "own.csv:3"
    errors = [f"{location}: {number} is too much" for number in (5, 7)]
    assert _redacted_error(errors) == f"{IN_PLACE}: {location}: withheld is too much"
    assert _redacted_error([f"{location}: x", f"{location}: y"]) == f"{location}: {UNSAID}"
    assert _redacted_error(["a: x", "b: y"]) == UNSAID
    assert _redacted_error(["a: x"]) == f"a: {UNSAID}"
    assert _redacted_error(["nothing"]) == UNSAID


def test_states_keep_what_both_have_and_name_withheld_metrics():
    state = {
        "metrics": {"capex_usd": 1.0, "step_s": 2.0},
        "inputs": {"site.pue": 1.2, "terms.rate": 0.1},
        "quantities": {"chips": 72.0},
        "plan": {"tp": 8},
        "withheld": ["mfu"],
    }
    counterpart = state | {
        "metrics": {"capex_usd": 1.0, "step_s": 3.0},
        "inputs": {"site.pue": 1.2, "terms.rate": 0.2},
        "plan": {"tp": 4},
    }
    shared = alike_states({"rack": state}, {"rack": counterpart})["rack"]
    assert shared["metrics"] == {"capex_usd": 1.0}
    assert shared["inputs"] == {"site.pue": 1.2}
    assert shared["quantities"] == {"chips": 72.0}
    assert shared["plan"] is None
    assert shared["withheld"] == ["mfu", "step_s"]
    assert alike_states({"rack": state}, {"rack": state})["rack"]["plan"] == {"tp": 8}
