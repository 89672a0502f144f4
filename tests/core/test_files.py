"""Reading and writing files: a fault names file, line and expectation; no write stops halfway."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from tco import DataError, UsageError
from tco.core import files
from tco.core.files import read_text, write_atomically
from tests.catalogue import read_csv, read_toml


@pytest.fixture
def put(tmp_path):
    def make(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def rows(path, **options):
    return list(read_csv(path, ("id", "value"), **options))


def test_rows_carry_their_line(put):
    assert rows(put("id,value\na,1\n\nb,2\n")) == [
        (2, {"id": "a", "value": "1"}),
        (4, {"id": "b", "value": "2"}),
    ]


def test_a_quoted_cell_may_span_lines(put):
    assert rows(put('id,value\na,"1\n2"\nb,3\n')) == [
        (3, {"id": "a", "value": "1\n2"}),
        (4, {"id": "b", "value": "3"}),
    ]


@pytest.mark.parametrize("mark", "\u2028\u2029\x0b\x0c\x1c\x85")
def test_marks_that_end_a_line_elsewhere_stay_in_a_cell(put, mark):
    assert rows(put(f"id,value\na{mark}b,1\nc,2\n")) == [
        (2, {"id": f"a{mark}b", "value": "1"}),
        (3, {"id": "c", "value": "2"}),
    ]


def test_columns_may_stand_in_any_order(put):
    assert rows(put("value,id\n1,a\n")) == [(2, {"value": "1", "id": "a"})]


def test_a_byte_order_mark_and_crlf_are_read(put):
    assert rows(put("\ufeffid,value\r\na,1\r\n")) == [(2, {"id": "a", "value": "1"})]


def test_an_optional_column_may_be_there(put):
    assert rows(put("id,value,use\na,1,x\n"), optional=("use",)) == [
        (2, {"id": "a", "value": "1", "use": "x"})
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("id\na\n", r":1: lacks column 'value'"),
        ("id,value,extra\na,1,2\n", r":1: has the unexpected column 'extra'"),
        ("id,value,value\na,1,2\n", r":1: repeats a column"),
        ("id,value\na\n", r":2: 1 cells, expected 2"),
        ("id,value\na,1,2\n", r":2: 3 cells, expected 2"),
        ("id,value\na,1\nb,2,3\n", r":3: 3 cells"),
        ('id,value\na,"1\n', r":2: broken CSV"),
        ('id,value\na,"1"x\n', r":2: broken CSV"),
        (b"id,value\na,\x00\n", "NUL"),
        (b"id,value\na,\xff\xfe\n", r"not UTF-8 text \(byte 11\)"),
    ],
)
def test_a_bad_table_is_refused(put, content, message):
    path = put(content)
    with pytest.raises(DataError, match=message) as caught:
        rows(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("a = \n", "broken TOML.*line 1"),
        ("a = 1\na = 2\n", "broken TOML"),
        ("[[[", "broken TOML"),
        (b"\x00\xff\x00", "not UTF-8"),
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a = " + "1" * 5000, "digits"),
    ],
)
def test_bad_toml_is_refused(put, content, message):
    path = put(content, "x.toml")
    with pytest.raises(DataError, match=message) as caught:
        read_toml(path)
    assert str(caught.value).startswith(str(path))


def test_a_name_that_no_file_can_have_is_not_found(tmp_path):
    long_path = tmp_path / ("x" * 5000)
    assert (files.is_there(long_path), files.is_folder(long_path)) == (False, False)
    assert (files.is_there(tmp_path), files.is_folder(tmp_path)) == (True, True)


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_text(tmp_path / "nothing")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        read_text(tmp_path)


def test_a_huge_file_is_refused(put, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_FILE", 10)
    with pytest.raises(DataError, match="larger than"):
        read_text(put("x" * 11))
    assert read_text(put("x" * 10)) == "x" * 10


def test_writing_replaces_the_whole_file(tmp_path):
    path = tmp_path / "out.txt"
    write_atomically(path, "a longer text before")
    write_atomically(path, b"short")
    assert path.read_bytes() == b"short"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_written_file_has_ordinary_rights(tmp_path):
    mask = os.umask(0o022)
    try:
        write_atomically(tmp_path / "out.txt", "x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "out.txt").stat().st_mode) == 0o644


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    path.write_text("before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(UsageError, match="No space left"):
        write_atomically(path, "after")
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_an_interrupted_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    path.write_text("before")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "after")
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("name", ["", "gone/out.txt"])
def test_an_output_that_cannot_be_written(tmp_path, name):
    with pytest.raises(UsageError):
        write_atomically(tmp_path / name, "x")
    assert os.listdir(tmp_path) == []


def test_a_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "out.txt", tmp_path / "link.txt"
    target.write_text("before")
    link.symlink_to(target)
    write_atomically(link, "after")
    assert link.is_symlink()
    assert target.read_text() == "after"


def test_a_link_to_nothing_makes_its_target(tmp_path):
    (tmp_path / "link.txt").symlink_to(tmp_path / "new.txt")
    write_atomically(tmp_path / "link.txt", "x")
    assert (tmp_path / "new.txt").read_text() == "x"


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(UsageError, match="cannot be written"):
        write_atomically(tmp_path / "loop", "x")


def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "private.txt"
    path.write_text("before")
    path.chmod(0o600)
    write_atomically(path, "after")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("after", 0o600)


def test_a_read_only_file_stays(tmp_path):
    path = tmp_path / "kept.txt"
    path.write_text("before")
    path.chmod(0o444)
    with pytest.raises(UsageError, match="read-only"):
        write_atomically(path, "after")
    assert path.read_text() == "before"


def test_a_pipe_is_written_in_place(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(path, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_name_of_the_longest_length_is_written_and_a_longer_one_refused(tmp_path):
    path = tmp_path / ("n" * 255)
    write_atomically(path, "x")
    assert path.read_text() == "x"
    with pytest.raises(UsageError, match="too long"):
        write_atomically(tmp_path / ("n" * 256), "x")


def test_reading_a_pipe_without_a_writer_does_not_wait(tmp_path):
    os.mkfifo(tmp_path / "scenario.toml")
    with pytest.raises(DataError, match="is a pipe"):
        read_toml(tmp_path / "scenario.toml")


@pytest.mark.parametrize("steps", ["a.", '"a".', "1.", "a . "])
@pytest.mark.parametrize("around", ["{}b = 1", "[{}b]", "x = {{ {}b = 1 }}"])
def test_a_key_of_many_steps_is_refused_before_it_is_read(tmp_path, steps, around):
    """The TOML reader's time grows with the square of the steps: 200 KB take half a minute."""
    path = tmp_path / "deep.toml"
    path.write_text("y = 1\n" + around.format(steps * 60_000))
    began = time.process_time()
    with pytest.raises(DataError, match=r"deep\.toml:2: more than 200 dots"):
        read_toml(path)
    assert time.process_time() - began < 1


def test_a_long_list_of_numbers_and_a_long_text_are_plain(tmp_path):
    path = tmp_path / "long.toml"
    path.write_text(f"x = {[number / 8 for number in range(1000)]}\ny = '{'a.' * 1000}'\n")
    assert len(read_toml(path)["x"]) == 1000


def test_a_device_without_end_is_no_data_file():
    with pytest.raises(DataError, match="/dev/zero: is a pipe, a socket or a device"):
        read_text(Path("/dev/zero"))
