"""Cached arrays belong to this program and data, and answers from them are the same."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest

from tco.core.array_cache import cached_arrays
from tco.core.disk_cache import stamp
from tco.core.memory import LazySequence
from tests.cli import tco


@pytest.fixture
def cached_array(tmp_path, monkeypatch):
    """Return a cache folder, a function that reads through it, and its computations."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compute_calls = []

    def read():
        def make():
            compute_calls.append(1)
            return [np.array([0.73, 6.4])]

        stamp.cache_clear()  # a process of its own
        return cached_arrays([b"a comparison"], make)

    read()
    return tmp_path / "tco" / "arrays", read, compute_calls


@pytest.mark.parametrize("folder", ["data", "scenarios"])
def test_edit_that_keeps_size_and_time_of_a_file_empties_the_cache(
    cached_array, tmp_path, monkeypatch, folder
):
    """Copies and checkouts may set a file's time back."""
    _, read, compute_calls = cached_array
    (tmp_path / "shipped").mkdir()
    price = tmp_path / "shipped" / "chips.csv"
    price.write_text("gb200-gpu,price,30059")
    monkeypatch.setattr(
        "tco.core.disk_cache."
        + {"data": "data_directory", "scenarios": "scenario_directory"}[folder],
        lambda: tmp_path / "shipped",
    )
    read(), read()
    assert len(compute_calls) == 2
    before = price.stat()
    price.write_text("gb200-gpu,price,34959")
    os.utime(price, ns=(before.st_atime_ns, before.st_mtime_ns))
    read(), read()
    assert len(compute_calls) == 3


@pytest.mark.parametrize("environment_change", ["numpy", "scipy", "pint", "processor", "switch"])
def test_change_of_libraries_or_instructions_empties_the_cache(
    cached_array, tmp_path, monkeypatch, environment_change
):
    """They round in the last digits."""
    _, read, compute_calls = cached_array
    if environment_change in ("numpy", "scipy", "pint"):
        (tmp_path / f"{environment_change}-0.0.dist-info").mkdir()
        monkeypatch.setattr(
            "tco.core.disk_cache.find_spec",
            lambda name: SimpleNamespace(origin=str(tmp_path / name / "__init__.py")),
        )
    elif environment_change == "processor":
        (tmp_path / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu sse2\n")
        monkeypatch.setattr("tco.core.disk_cache.PROCESSOR", tmp_path / "cpuinfo")
    else:
        monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", "X86_V4")
    read(), read()
    assert len(compute_calls) == 2


@pytest.mark.parametrize("level", [0, 1])
def test_cache_folder_that_others_may_write_to_keeps_nothing(cached_array, level):
    folder, read, compute_calls = cached_array
    (folder, folder.parent)[level].chmod(0o777)
    read(), read()
    assert len(compute_calls) == 3 - 2 * level  # a file in a folder of one's own is one's own


# ---------------------------------------------------------------- answers
WORDS = ("compare", "gb200-nvl72", "trn3-nl72x2", "--no-range")


@pytest.mark.parametrize("form", ["table", "csv", "json", "md"])
def test_answer_from_the_cache_is_that_of_an_empty_one(tmp_path, monkeypatch, form):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stamp.cache_clear()
    first_run, again = (tco(*WORDS, "--format", form) for _ in range(2))
    assert [*(tmp_path / "cache").rglob("*.bin")]
    assert (first_run.stdout, first_run.stderr) == (again.stdout, again.stderr)
    assert first_run.stdout
    assert first_run.stderr.startswith("note: ")
    assert tco(*WORDS, "--format", form, "--quiet").stderr == ""


def test_answer_on_own_data_is_not_that_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data_folder(tmp_path / "here" / "data")
    shipped = tco(*WORDS).stdout
    assert tco(*WORDS, "--set", "site.pue=1.3").stdout != shipped
    monkeypatch.chdir(tmp_path / "here")
    assert tco(*WORDS).stdout == tco(*WORDS, "--data", str(tmp_path / "here" / "data")).stdout
    assert tco(*WORDS).stdout != shipped


def data_folder(folder):
    """Write a folder with a price of one's own."""
    (folder / "parts").mkdir(parents=True)
    header = "part,attribute,value,unit,low,high,as_of,kind,source,note,use"
    (folder / "parts" / "own.csv").write_text(
        f"{header}\nnitro-v6-400g,price,5000,USD,,,2025-12,vendor,semianalysis-trn3,,\n"
    )


def test_lazy_sequence_is_made_once_when_it_is_looked_at():
    make_calls = []
    names = LazySequence(lambda: make_calls.append(1) or ["a", "b"])
    assert not make_calls
    assert [len(names), names[1], [*names]] == [2, "b", ["a", "b"]]
    assert len(make_calls) == 1
    assert len({names, LazySequence(lambda: ("a", "b"))}) == 1
    assert names != LazySequence(lambda: ["b", "a"])
