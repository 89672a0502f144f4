"""A version is written once, and the changelog begins with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tco import __version__

ROOT = Path(__file__).parents[1]


def test_the_version_is_written_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "tco/__init__.py"
    written = [path for path in (ROOT / "tco").rglob("*.py") if re.search(rf"\b{re.escape(__version__)}\b", path.read_text(encoding="utf-8"))]
    assert written == [ROOT / "tco/__init__.py"]


def test_the_changelog_begins_with_the_version_and_goes_back_in_order():
    heads = re.findall(r"^## (\d+)\.(\d+)\.(\d+), (unreleased|\d{4}-\d{2}-\d{2})$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    versions = [tuple(map(int, head[:3])) for head in heads]
    assert ".".join(map(str, versions[0])) == __version__
    assert versions == sorted(set(versions), reverse=True)
    assert all(head[3] != "unreleased" for head in heads[1:])


def test_the_image_of_the_guide_is_of_this_version():
    assert f"registry/tco:{__version__}" in (ROOT / "reports/site/pages/guide/studies.md").read_text(encoding="utf-8")
