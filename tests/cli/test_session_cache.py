"""The cache of a test session: a folder of its own, and never the user's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tco.core.disk_cache import cache_folder
from tests.cli import tco
from tests.conftest import CACHE_PREFIX, ROOT


def test_tests_cache_arrays_in_a_folder_of_the_session():
    assert cache_folder().parent.name.startswith(CACHE_PREFIX)
    assert tco("perf", "gb200-nvl72").exit_code == 0
    assert [*cache_folder().rglob("*.bin")]


def test_cache_of_the_user_is_neither_read_nor_written_by_tests(tmp_path):
    inner = f"{Path(__file__)}::test_tests_cache_arrays_in_a_folder_of_the_session"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", inner]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout
    assert not (tmp_path / "tco").exists()
    assert not (tmp_path / ".cache").exists()
