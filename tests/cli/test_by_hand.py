"""Commands read options and tell files and errors, on texts and states made by hand."""

from __future__ import annotations

import inspect
import json
import os
import sys
from types import SimpleNamespace
from zipfile import ZipFile

import pytest
import typer

from tco import DataError, UsageError
from tco.cli import (
    baseline,
    compare,
    curve,
    evidence,
    options,
    output,
    redaction,
    report,
    uncertainty,
)
from tco.cli.compare import _speeds_in
from tco.cli.files import refuse_foreign_folder, refuse_namesakes
from tco.cli.help import _refuse_unquoted_settings
from tco.cli.options import _refuse_facts_of_nothing, parse_key_values
from tco.cli.plot import _of_two
from tco.cli.redaction import IN_PLACE, UNSAID, _redacted_error, redact_states
from tco.cli.uncertainty import _pair_interval_bounds
from tests.cli import document, tco


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
    refuse_namesakes(names)
    with pytest.raises(UsageError, match="two scenarios are called b"):
        refuse_namesakes([*names, names[1]])


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
    shared = redact_states({"rack": state}, {"rack": counterpart})["rack"]
    assert shared["metrics"] == {"capex_usd": 1.0}
    assert shared["inputs"] == {"site.pue": 1.2}
    assert shared["quantities"] == {"chips": 72.0}
    assert shared["plan"] is None
    assert shared["withheld"] == ["mfu", "step_s"]
    assert redact_states({"rack": state}, {"rack": state})["rack"]["plan"] == {"tp": 8}


def test_far_runs_that_all_fail_try_all_directions_only_with_the_last_span():
    tried = []

    def fail():
        making = redaction.making.get()
        making.own_paths.update(("parts.a.price", "parts.b.price"))
        tried.append((making.span, making.number))
        raise DataError("no plan")

    runs = redaction._far_runs(redaction.StandInRuns(fail))
    spans = redaction.SPANS
    assert tried == [
        *((span, 1) for span in spans[:-1]),
        *((spans[-1], number) for number in (1, 2, 3, 4)),
    ]
    assert len(runs.errors) == 4


@pytest.mark.parametrize(("is_drawn_from_own_values", "far_runs"), [(True, 1), (False, 4)])
def test_far_runs_end_at_a_figure_that_differs(is_drawn_from_own_values, far_runs):
    def draw():
        making = redaction.making.get()
        making.own_paths.update(("parts.a.price", "parts.b.price"))
        svg = f"<svg>{making.number if is_drawn_from_own_values else ''}</svg>"
        raise redaction.CapturedAnswer(redaction.FigureAnswer(svg, []))

    near = redaction.StandInRuns(draw)
    redaction._run_with_stand_ins(redaction.Making(0, near.own_paths), near)
    assert len(redaction._far_runs(near).answers) == 1 + far_runs


@pytest.mark.parametrize(
    ("is_withheld", "notes"),
    [(False, ["old prices"]), (True, ["old prices", redaction.WITHHELD_NOTE])],
)
def test_notes_of_a_redacted_answer_end_with_what_was_withheld(monkeypatch, is_withheld, notes):
    content = {"notes": ["old prices", redaction.WITHHELD], "failures": ["a"], "lines": []}
    content |= {"document": {}, "tables": [], "rows": SimpleNamespace(columns=["a"], rows=[[1]])}
    monkeypatch.setattr(redaction, "release_answer", lambda *_: content)
    monkeypatch.setattr(redaction, "_is_answer_withheld", lambda _: is_withheld)
    answer = SimpleNamespace(texts={}, json=dict, tables=list, header=[], rows=[], notes=[])
    redacted, failures = redaction.redact_answer(answer, "json", [])
    assert (redacted.notes, failures) == (notes, ["a"])


# ---------------------------------------------------------------- ends of commands
@pytest.mark.parametrize(("failures", "code"), [([], None), (["a claim"], 1)])
def test_answer_with_failures_is_printed_and_exits_with_one(monkeypatch, failures, code):
    printed = []
    for name in ("render_answer", "screen_for"):
        monkeypatch.setattr(options, name, lambda *_: "text")
    monkeypatch.setattr(options, "emit", lambda text, _: printed.append(text))
    request = SimpleNamespace(
        redact=False, form="table", texts={"output": None}, tell=printed.append
    )
    answer = SimpleNamespace(notes=["a note"])
    if code is None:
        options.CommandRequest.emit(request, answer, failures)
    else:
        with pytest.raises(typer.Exit) as end:
            options.CommandRequest.emit(request, answer, failures)
        assert end.value.exit_code == code
    assert printed == ["text", ["a note"]]


def test_stopped_sweep_ends_with_the_code_of_an_interrupt(monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tco.sweeps.run.sweep", interrupt)
    request = SimpleNamespace(redact=False, settings={}, data=(), quiet=True)
    with pytest.raises(SystemExit) as end:
        uncertainty.sweep(request, "study", "cases")
    assert end.value.code == 130


def test_switches_of_commands_are_off_unless_they_are_given():
    for function, names in (
        (evidence.claims, ("conclusions", "forecasts")),
        (compare.compare, ("full", "why", "workloads", "all_systems")),
    ):
        parameters = inspect.signature(function).parameters
        assert [parameters[name].default for name in names] == [False] * len(names)
    assert output.Screen() == (None, False)


# ---------------------------------------------------------------- words that are refused
def test_map_of_more_than_two_inputs_is_refused():
    request = SimpleNamespace(hold=False, catalogue_of=lambda _: None, emit=None)
    with pytest.raises(UsageError, match="--vary is given 3 times"):
        uncertainty.solve(request, "rack", ["a", "b", "c"], "cost=1")


def test_setting_whose_unit_the_shell_split_off_is_refused_wherever_it_stands():
    for words in (["--set", "a.b=1", "USD"], ["compare", "rack", "--set", "a.b=1", "USD"]):
        with pytest.raises(UsageError, match=r"--set 'a\.b=1 USD'"):
            _refuse_unquoted_settings(words)
    _refuse_unquoted_settings(["compare", "--set", "a.b=1", "--full"])


@pytest.mark.parametrize(("name", "is_page"), [("a.pdf", False), ("a", False), ("a.HTML", True)])
def test_report_is_written_to_a_page_or_a_folder(monkeypatch, name, is_page):
    def stop(*_):
        raise DataError("evaluated")

    monkeypatch.setattr("tco.comparison.report_data.material_of", stop)
    request = SimpleNamespace(data=(), settings={})
    with pytest.raises(DataError if is_page else UsageError, match=r"evaluated|unknown ending"):
        report.report(request, name)


def test_folder_with_other_files_is_refused_unless_it_holds_the_mark(tmp_path):
    refuse_foreign_folder(tmp_path, "mark.json")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other files"):
        refuse_foreign_folder(tmp_path, "mark.json")
    (tmp_path / "mark.json").write_text("{}")
    refuse_foreign_folder(tmp_path, "mark.json")


def test_report_is_one_file_or_a_folder_of_pages_with_their_mark(monkeypatch, tmp_path):
    monkeypatch.setattr("tco.report.page.write.render_page", lambda page: f"<{page.title}>")
    first_page, second_page = (
        SimpleNamespace(title=title, provenance=[("title", title)]) for title in ("a", "b")
    )
    report._write_page(tmp_path / "one.html", first_page)
    assert (tmp_path / "one.html").read_text() == "<a>"
    pages = {"index.html": first_page, "b.html": second_page}
    report._write_gallery(tmp_path / "pages", pages, "b.html")
    assert (tmp_path / "pages/b.html").read_text() == "<b>"
    mark = json.loads((tmp_path / "pages/tco-report.json").read_text())
    assert mark == {"title": "b", "pages": ["b.html", "index.html"]}
    assert sorted(os.listdir(tmp_path / "pages")) == ["b.html", "index.html", "tco-report.json"]


def test_notes_of_a_redacted_folder_are_those_of_its_report(monkeypatch, tmp_path):
    pages = {
        "index.html": SimpleNamespace(notes=[], provenance=[]),
        "report.html": SimpleNamespace(notes=["old prices"], provenance=[]),
    }
    monkeypatch.setattr(
        "tco.comparison.report_data.material_of", lambda *_: SimpleNamespace(evaluations=[])
    )
    monkeypatch.setattr("tco.comparison.ranking.ranking", lambda *_: None)
    monkeypatch.setattr("tco.report.page.report.report_page", lambda *_: None)
    monkeypatch.setattr("tco.report.page.report.gallery_of", lambda *_: pages)
    monkeypatch.setattr("tco.report.page.write.render_page", lambda _: "")
    monkeypatch.setattr(redaction, "pages_without_own_values", lambda gallery: gallery)
    notes = []
    request = SimpleNamespace(
        data=None, settings={}, words=lambda *_: [], redact=True, tell=notes.extend
    )
    report.report(request, f"{tmp_path}/pages/")
    assert notes == ["old prices"]


# ---------------------------------------------------------------- terminals and fits
@pytest.mark.parametrize(
    ("stated", "columns", "width"),
    [("", 120, 120), ("", 0, 80), ("100", 120, 100), ("0", 120, 120), ("wide", 120, 120)],
)
def test_width_of_a_terminal_is_stated_or_its_own(monkeypatch, stated, columns, width):
    monkeypatch.setenv("COLUMNS", stated)
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True, fileno=lambda: 1))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: SimpleNamespace(columns=columns))
    assert output.screen_width() == width


@pytest.mark.parametrize("name", ["inference", "deployed", "long-runs", "engine-kernels"])
def test_fit_of_a_name_writes_the_rows_of_that_fit(monkeypatch, name):
    from tco.validation import deployed, engine_kernels, long_runs

    names = {"deployed": deployed.NAME, "long-runs": long_runs.NAME}
    names["engine-kernels"] = engine_kernels.NAME
    monkeypatch.setattr("pandas.concat", lambda *_, **__: None)
    monkeypatch.setattr(deployed, "deployed_rows", lambda *_: [["deployed"]])
    monkeypatch.setattr(long_runs, "long_run_rows", lambda *_: [["long-runs"]])
    monkeypatch.setattr(
        engine_kernels, "fit_engine_kernel_rows", lambda *_: [{"row": "engine-kernels"}]
    )
    for reader in ("gaps", "residuals_by_source"):
        monkeypatch.setattr(deployed, reader, lambda *_: None)
    monkeypatch.setattr(long_runs, "long_runs", lambda *_: [])
    csv_text = evidence._named_fit_csv(names.get(name, name), [("kind", None)], None, None, "")
    if name in names:
        assert csv_text.splitlines()[1] == name
    else:
        assert csv_text is None


def test_time_of_a_collective_inside_a_step_is_that_of_the_algorithm_that_is_chosen():
    """Waiting for the last rank adds the same to the quickest algorithm and to another."""
    words = ("collective", "gb200-nvl72", "--size", "64MiB")
    quickest, slower = document(*words), document(*words, "--algorithm", "ring")
    assert quickest["time_us"] < slower["time_us"]
    waits = [answer["in_step_us"] - answer["time_us"] for answer in (quickest, slower)]
    assert waits[0] == pytest.approx(waits[1], rel=1e-9)


def test_network_has_the_rate_of_its_ports_in_gigabytes():
    words = ("network", "--switch", "12.8T", "--port", "100G", "--tiers", "2")
    assert document(*words)["port_gb_per_s"] == 12.5


def test_metric_that_a_scenario_has_is_explained():
    explained = tco("explain", "h100-hgx8", "tco_usd_per_chip_hour", "--depth", "1")
    assert explained.exit_code == 0


def test_designs_of_a_frontier_are_compared_only_when_they_are_asked_for(monkeypatch):
    answers = []
    monkeypatch.setattr("tco.comparison.frontier.frontier", lambda *_: "frontiers")
    monkeypatch.setattr("tco.comparison.designs.designs_of", lambda _: "designs")
    monkeypatch.setattr("tco.report.frontier.frontier_answer", lambda *parts: parts[1:])
    request = SimpleNamespace(
        hold=False, settings={}, data=(), catalogue_of=str, emit=answers.append
    )
    compare.frontier(request, ["rack"])
    compare.frontier(request, ["rack"], pareto=True)
    assert answers == [("frontiers", None), ("frontiers", "designs")]


@pytest.mark.parametrize("kind", ["kernels", "collectives"])
def test_measurement_of_a_kind_writes_the_rows_of_that_kind(monkeypatch, tmp_path, kind):
    monkeypatch.setattr("tco.measure.pytorch.load_torch", lambda: None)
    monkeypatch.setattr("tco.measure.pytorch.choose_device", lambda *_: "cpu")
    monkeypatch.setattr(
        "tco.validation.naming.accelerators", lambda _: SimpleNamespace(part=lambda _: "cpu")
    )
    for name in ("kernel", "collective"):
        monkeypatch.setattr(
            f"tco.measure.session.{name}_session", lambda _, name=name: (["kind"], [[f"{name}s"]])
        )
    request = SimpleNamespace(catalogue=None, quiet=True)
    evidence.measure(request, tmp_path / "rows.csv", kind, name="cpu")
    assert (tmp_path / "rows.csv").read_text().split() == ["kind", kind]
