"""Where an answer goes: stdout for data, stderr for notes, files whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

import pytest

from tests.cli import tco

FORMS = ["table", "csv", "json", "md"]


@pytest.mark.parametrize("form", FORMS)
def test_a_file_holds_what_stdout_shows(form, tmp_path):
    path = tmp_path / "out"
    written = tco("price", "gb200-nvl72", "--format", form, "--output", path)
    assert (written.exit_code, written.stdout) == (0, "")
    assert path.read_text(encoding="utf-8") == tco("price", "gb200-nvl72", "--format", form).stdout


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_left_of_a_command_that_fails(form, tmp_path):
    assert (
        tco(
            "price",
            "gb200-nvl72",
            "--set",
            "site.pue=0.5",
            "--format",
            form,
            "--output",
            tmp_path / "out",
        ).exit_code
        == 3
    )
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_survives_a_command_that_fails(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("before")
    assert tco("price", "gb200-nvl7", "--format", "json", "--output", path).exit_code == 3
    assert path.read_text() == "before"


def test_what_was_there_survives_a_failure_in_mid_answer(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ValueError("Out of range float values are not JSON compliant")

    path = tmp_path / "out.json"
    path.write_text("before")
    monkeypatch.setattr(json, "dumps", fail)
    done = tco("price", "gb200-nvl72", "--format", "json", "--output", path)
    assert done.exit_code == 70
    assert "JSON compliant" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.json"]


@pytest.mark.parametrize("output_path", ["gone/out.csv", "file/out.csv"])
def test_an_output_that_cannot_be_written(output_path, tmp_path):
    (tmp_path / "file").write_text("")
    done = tco("compare", "--format", "csv", "--output", tmp_path / output_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {tmp_path / output_path}: cannot be written")


def test_a_read_only_folder(tmp_path, monkeypatch):
    """The system refuses a new file: simulated, since a superuser may write anywhere."""
    import tempfile

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    done = tco("compare", "--format", "csv", "--output", tmp_path / "out.csv")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"error: {tmp_path / 'out.csv'}: cannot be written (Permission denied)\n"


NOTED = ("price", "gb200-nvl72", "--set", "parts.trn3.tdp=1 W")


def test_notes_go_to_stderr():
    done = tco(*NOTED)
    assert "note: parts.trn3.tdp is set, but nothing in this scenario rests on it" in done.stderr
    assert "note:" not in done.stdout


def test_quiet_means_quiet():
    done = tco(*NOTED, "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")


def test_notes_stand_in_the_document():
    notes = json.loads(tco(*NOTED, "--format", "json").stdout)["notes"]
    assert "parts.trn3.tdp is set, but nothing in this scenario rests on it" in notes


@pytest.mark.parametrize(
    "arguments",
    [("compare",), ("price", "gb200-nvl72"), ("bom", "gb200-nvl72"), ("parts", "show", "trn3")],
    ids=" ".join,
)
@pytest.mark.parametrize("no_color", ["1", ""])
def test_no_escape_codes_leave_the_program(arguments, no_color):
    assert "\x1b" not in tco(*arguments, NO_COLOR=no_color, FORCE_COLOR="1").stdout


def test_debug_shows_the_whole_trace_of_a_fault(monkeypatch):
    def fail(*_, **__):
        raise ValueError("a defect")

    monkeypatch.setattr(json, "dumps", fail)
    with pytest.raises(ValueError, match="a defect"):
        tco("--debug", "price", "gb200-nvl72", "--format", "json")


def shell(command, **environment):
    """Run `tco` as a shell does, from a folder of its own."""
    shell_script = f'tco() {{ {sys.executable} -m tco "$@"; }}; {command}'
    environment = dict(os.environ, PYTHONPATH=os.getcwd(), **environment)
    done = subprocess.run(
        ["bash", "-c", shell_script],
        check=False,
        capture_output=True,
        text=True,
        cwd=tempfile.mkdtemp(),
        env=environment,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "tco price gb200-nvl72 --format json > /dev/full",
            "cannot be written (No space left on device)",
        ),
        (
            "ulimit -f 1; trap '' XFSZ; tco price gb200-nvl72 --format json > out",
            "cannot be written (File too large)",
        ),
        ("tco price gb200-nvl72 >&-", "is closed, expected somewhere to print"),
        ("tco price --help > /dev/full", "cannot be written (No space left on device)"),
        ("tco --version > /dev/full", "cannot be written (No space left on device)"),
        ("tco init mine > /dev/full", "cannot be written (No space left on device)"),
    ],
    ids=["full disk", "limit of 1 KiB on files", "closed", "help", "version", "init"],
)
def test_an_answer_is_never_cut_in_silence(command, message, unbuffered):
    assert shell(command, PYTHONUNBUFFERED=unbuffered) == (2, f"error: stdout: {message}\n")


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize(
    ("command", "code"), [("tco price trn3-nl72x2 --format json", 0), ("tco price nothing", 3)]
)
def test_a_stderr_that_takes_nothing_changes_neither_answer_nor_exit_code(command, code, stderr):
    """Notes that have nowhere to go do not end up in the answer."""
    shell_script = f'tco() {{ {sys.executable} -m tco "$@"; }}; {command} {stderr}'
    done = subprocess.run(["bash", "-c", shell_script], check=False, capture_output=True, text=True)
    assert done.returncode == code
    assert (json.loads(done.stdout)["schema"] if code == 0 else done.stdout) in ("tco.price/1", "")
