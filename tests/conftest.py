"""Fixtures of many tests: the shipped catalogue and a user's data folder laid over it."""

from __future__ import annotations

import compileall
import gc
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tco import Catalogue, load_catalogue
from tco.cli import GARBAGE
from tests.catalogue import CATALOGUE, keep

ROOT = Path(__file__).parents[1]
CACHE_PREFIX = "tco-tests-"
KEPT_ANSWERS = "TCO_TESTS_KEPT_ANSWERS"

settings.register_profile("tco", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("tco")
# what would change how help is printed
for name in (
    "COLUMNS",
    "TERMINAL_WIDTH",
    "FORCE_COLOR",
    "PY_COLORS",
    "GITHUB_ACTIONS",
):
    os.environ.pop(name, None)
os.environ["NO_COLOR"] = "1"


def pytest_configure(config: pytest.Config) -> None:
    """Share the shipped catalogue among tests, except in benchmarks, which time its reading.

    The program is compiled once, and not by each of the many commands that tests start: an
    editable installation compiles nothing.

    Answers are kept in a cache folder of the session, so that no command a user ran before
    changes a test. Workers inherit the folder: every file in it is complete, and holds what
    each worker would compute itself.
    """
    if not config.getoption("benchmark_only"):
        keep()
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(ROOT / "tco", quiet=2)
        cache_home = tempfile.mkdtemp(prefix=CACHE_PREFIX)
        config.add_cleanup(lambda: _end_session(Path(cache_home)))
        os.environ["XDG_CACHE_HOME"] = cache_home


def pytest_collection_finish(session: pytest.Session) -> None:
    """Search for cycles as seldom as commands do, and never among what all tests share."""
    if not session.config.getoption("benchmark_only"):
        gc.set_threshold(GARBAGE)
        gc.freeze()


def _end_session(cache_home: Path) -> None:
    """Hand the answers of a session to the folder that `KEPT_ANSWERS` names, or remove them."""
    if kept_folder := os.environ.get(KEPT_ANSWERS):
        shutil.copytree(cache_home / "tco", kept_folder, dirs_exist_ok=True)
    shutil.rmtree(cache_home, ignore_errors=True)


PART_COLUMNS = "part,attribute,value,unit,low,high,as_of,kind,source,note,use\n"


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return CATALOGUE


class OwnData:
    """A user's data folder, filled line by line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    def parts(self, *rows: str) -> Path:
        """Write rows of the parts table; the first stands on line 2."""
        return self.write("parts/own.csv", PART_COLUMNS + "".join(row + "\n" for row in rows))

    def catalogue(self) -> Catalogue:
        return load_catalogue(self.folder)


@pytest.fixture
def own_data(tmp_path) -> OwnData:
    return OwnData(tmp_path / "own")
