"""Units, files, progress and stand-ins on values that are made by hand."""

from __future__ import annotations

import math
import os
import runpy
import sys
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from tco import DataError
from tco.core import disk_cache, file_lock, progress, spreadsheets, units
from tco.core.expression import _powers_of
from tco.core.files import source_positions, write_all
from tco.core.inputs import Readable
from tco.core.notebook_display import html_of
from tco.core.own_values import own_input
from tco.core.provenance import Input
from tco.core.redaction_values import Making, figures_apart, made_with, placeholder_value
from tco.core.streams import printable_line


# ---------------------------------------------------------------- units
@pytest.mark.parametrize(
    ("quantity_text", "suggestion"),
    [
        ("2.5k", "2500 W"),
        ("3M", "3e+06 W"),
        ("3 M", "3 W"),
        ("1,200", "1200 W"),
        ("3kW", "3 W"),
        ("much", "1.5 W"),
    ],
)
def test_suggested_spelling_of_a_number_with_a_magnitude_is_written_out(quantity_text, suggestion):
    assert units.meant(quantity_text, "W") == suggestion


def test_powers_of_a_dimension_have_each_exponent_and_its_sign():
    assert _powers_of("[length] ** 2 / [time] ** 3") == {"[length]": 2.0, "[time]": -3.0}
    assert _powers_of("1 / [time]") == {"[time]": -1.0}


def test_module_of_units_when_imported_writes_no_table(monkeypatch):
    def refuse(path, *_, **__):
        raise AssertionError(f"{path} is written")

    monkeypatch.setattr(Path, "write_text", refuse)
    runpy.run_path(units.__file__, run_name="tco.core.units")


# ---------------------------------------------------------------- files
def test_source_position_below_an_empty_first_line_counts_that_line(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("\nabc,def\n", encoding="utf-8")
    assert source_positions(f"{path}:2", "def")(1) == f"{path}:2:6"
    path.write_text('abc,"d\nef"\n', encoding="utf-8")
    assert source_positions(f"{path}:2", "d\nef")(3) == f"{path}:2:2"


def test_files_of_a_new_folder_are_written_with_the_folders_that_they_need(tmp_path):
    write_all(tmp_path / "new", {"a.txt": "one", "below/b.txt": "two"})
    assert (tmp_path / "new/a.txt").read_text() == "one"
    assert (tmp_path / "new/below/b.txt").read_text() == "two"


def test_stamp_of_the_same_data_in_another_folder_is_the_same(tmp_path, monkeypatch):
    stamps = []
    monkeypatch.setattr(disk_cache, "scenario_directory", lambda: tmp_path / "none")
    for folder_name, content in (("a", "1"), ("bb", "1"), ("bb", "2")):
        folder = tmp_path / folder_name
        write_all(folder, {"parts.csv": content})
        monkeypatch.setattr(disk_cache, "data_directory", lambda folder=folder: folder)
        stamps.append(disk_cache.stamp.__wrapped__())
    assert stamps[0] == stamps[1] != stamps[2]


def test_lock_of_a_file_is_made_once_and_removed_at_the_end(tmp_path):
    lock = tmp_path / ".a.toml.lock"
    assert file_lock._create(lock)
    assert not file_lock._create(lock)
    lock.unlink()
    with file_lock.hold_lock(tmp_path / "a.toml"):
        assert lock.exists()
    assert not lock.exists()


def test_cell_without_a_column_name_is_told_with_its_column_from_one():
    start = spreadsheets.TableStart(",", 1, ["part", "", "price", ""])
    for index in (1, 3):
        cells = ["a", "", "5", ""]
        cells[index] = "x"
        with pytest.raises(DataError, match=rf"'x' stands in column {index + 1}, which"):
            spreadsheets._named_columns(Path("a.csv"), start, [(2, cells)])


def test_unexpected_column_is_told_with_the_optional_one_that_is_near_to_it():
    header = ["part", "notes", "elsewhere"]
    fault = spreadsheets.header_fault(header, ["part"], ["note"])
    assert fault.startswith("has the unexpected column 'notes'")
    assert "did you mean 'note'" in fault


@pytest.mark.parametrize(("owner", "mode", "is_refused"), [(0, 0o700, False), (1, 0o700, True)])
def test_cache_of_another_user_is_refused(monkeypatch, owner, mode, is_refused):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    state = SimpleNamespace(st_mode=0o040000 | mode, st_uid=owner)
    if is_refused:
        with pytest.raises(PermissionError):
            disk_cache._refuse_foreign(state)
    else:
        disk_cache._refuse_foreign(state)


@pytest.mark.parametrize(("count", "exists"), [(-1.0, False), (0.0, False), (1.0, True)])
def test_what_an_input_describes_exists_where_it_is_above_zero(count, exists):
    values = SimpleNamespace(structure=lambda _: count)
    assert Readable.exists(values, "cluster.chips") is exists


# ---------------------------------------------------------------- streams and progress
def test_printed_text_has_no_marks_of_direction_and_keeps_a_narrow_space():
    assert printable_line("a\u2027b\u2028c\u202ed\u202fe") == "a\u2027b c d\u202fe"
    assert printable_line("a\u2065b\u2066c\u2069d\u206ae") == "a\u2065b c d\u206ae"


def test_clearing_progress_clears_the_line_that_is_shown(monkeypatch):
    cleared = []
    line = SimpleNamespace(clear=lambda: cleared.append("line"))
    monkeypatch.setattr(progress, "_lines", [line])
    progress.clear_progress()
    assert cleared == ["line"]


def test_line_of_progress_says_seconds_and_fits_the_terminal(monkeypatch):
    written = []
    times = iter([100.0, 107.0, 109.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    monkeypatch.setattr(os, "write", lambda _, content: written.append(content.decode()))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: SimpleNamespace(columns=9))
    # a loop that a test before left early keeps its step
    monkeypatch.setattr(progress, "_steps", ContextVar("steps", default=()))
    line = progress._ProgressLine()
    line.write()
    with progress.named_step("drawing"):
        line.write()
    assert written == [f"{progress.CLEAR_LINE}7 s: wor", f"{progress.CLEAR_LINE}9 s: dra"]


@pytest.mark.parametrize(("terminal", "takes_line"), [("xterm", True), ("dumb", False)])
def test_progress_is_shown_on_a_terminal_that_is_not_dumb(monkeypatch, terminal, takes_line):
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(fileno=lambda: 2))
    monkeypatch.setattr(os, "isatty", lambda descriptor: descriptor == 2)
    assert progress.takes_progress() is takes_line


def test_shown_table_is_whole_up_to_sixty_rows():
    for row_count, is_cut in ((60, False), (61, True)):
        assert ("..." in html_of(pd.DataFrame({"a": range(row_count)}), "rows")) is is_cut


# ---------------------------------------------------------------- stand-ins
OWN_PRICE = Input("parts.a.price", 321.0, "USD")


def test_own_value_is_replaced_only_while_an_answer_keeps_values_back():
    assert own_input(OWN_PRICE, lambda: 100.0, 0.0, math.inf) is OWN_PRICE
    with made_with(Making(0, set())):
        assert own_input(OWN_PRICE, lambda: 100.0, 0.0, math.inf).value != OWN_PRICE.value


@pytest.mark.parametrize("usual", [0.5, 1.0, 101.0, 0.0, None])
def test_stand_in_of_a_shipped_value_out_of_bounds_rests_on_the_bounds(usual):
    with made_with(Making(0, set())):
        of_bounds = placeholder_value(OWN_PRICE, None, 1.0, 100.0)
        assert placeholder_value(OWN_PRICE, usual, 1.0, 100.0) == of_bounds
        assert placeholder_value(OWN_PRICE, 2.0, 1.0, 100.0) != of_bounds


@pytest.mark.parametrize(("number", "racks"), [(0, 4), (1, 8), (2, 12)])
def test_figures_that_rest_on_own_values_differ_between_makings(number, racks):
    with made_with(Making(number, {"traffic.rate"})):
        assert figures_apart({"racks": 3, "of": {"chips": 3}}, "traffic") == {
            "racks": racks,
            "of": {"chips": racks},
        }
        assert figures_apart({"racks": 3}, "parts") == {"racks": 3}
