"""Two programs that save to one baseline at once: neither loses what the other saved."""

from __future__ import annotations

import multiprocessing
import os
import time

import pytest

from tco.core.errors import UsageError
from tco.core.file_lock import PATIENCE, STALE, hold_lock
from tco.core.files import write_atomically
from tco.regression import baseline
from tco.regression.baseline import load_baseline, save_baseline

ROUNDS = 50
STATE = {
    "tco_version": "0",
    "data_hash": "0",
    "system": "gb200-nvl72",
    **{key: {} for key in ("documents", "variant", "alternatives", "texts", "formulas")},
    **{key: {} for key in ("metrics", "quantities", "inputs")},
    "rebates": [],
    "plan": None,
}


def write_slowly(path, content):
    time.sleep(0.005)  # the other program reads meanwhile, were it let
    write_atomically(path, content)


def save_rounds(folder, scenario, barrier):
    baseline.write_atomically = write_slowly
    for number in range(ROUNDS):
        barrier.wait()
        baseline.save_baseline(folder / f"{number}.json", {scenario: STATE}, {})


def test_two_writers_of_fifty_baselines_lose_no_scenario(tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    writers = [
        context.Process(target=save_rounds, args=(tmp_path, scenario, barrier))
        for scenario in ("first", "second")
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    saved = [set(load_baseline(tmp_path / f"{number}.json")) for number in range(ROUNDS)]
    assert saved == [{"first", "second"}] * ROUNDS
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json"] * ROUNDS


def test_lock_of_a_killed_program_is_removed_after_a_while(tmp_path):
    path, lock = tmp_path / "main.json", tmp_path / ".main.json.lock"
    lock.touch()
    old = time.time() - STALE - 1
    os.utime(lock, (old, old))
    save_baseline(path, {"first": STATE}, {})
    assert list(load_baseline(path)) == ["first"]
    assert list(tmp_path.iterdir()) == [path]


def test_lock_of_a_running_program_is_waited_for_and_then_named(tmp_path, monkeypatch):
    monkeypatch.setattr("tco.core.file_lock.PATIENCE", 0.05)
    path, lock = tmp_path / "main.json", tmp_path / ".main.json.lock"
    lock.touch()
    with (
        pytest.raises(UsageError, match=r"another program .* delete .*\.main\.json\.lock"),
        hold_lock(path),
    ):
        pass
    assert lock.exists()
    assert PATIENCE > STALE  # a lock that is left behind is removed before patience ends
