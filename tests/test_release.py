"""A version is written once, and the changelog begins with it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tco import __version__

ROOT = Path(__file__).parents[1]


def test_the_version_is_written_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "tco/__init__.py"
    written = [
        path
        for path in (ROOT / "tco").rglob("*.py")
        if re.search(rf"\b{re.escape(__version__)}\b", path.read_text(encoding="utf-8"))
    ]
    assert written == [ROOT / "tco/__init__.py"]


CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_changelog_begins_with_what_is_unreleased_then_this_version_and_goes_back_in_order():
    titles = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert titles[0] == "Unreleased"
    releases = [
        re.fullmatch(r"(\d+)\.(\d+)\.(\d+) - (\d{4}-\d{2}-\d{2})", title) for title in titles[1:]
    ]
    assert all(releases), titles
    versions = [tuple(map(int, release.groups()[:3])) for release in releases]
    assert ".".join(map(str, versions[0])) == __version__
    assert versions == sorted(set(versions), reverse=True)
    dates = [release[4] for release in releases]
    assert dates == sorted(dates, reverse=True)


def test_an_entry_of_the_changelog_is_one_short_line_under_a_kind_of_change():
    entries = [line for line in CHANGELOG.splitlines() if line.startswith("- ")]
    assert [entry for entry in entries if len(entry) > 200 or not entry.endswith(".")] == []
    assert set(re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE)) <= KINDS


def test_the_image_of_the_guide_is_of_this_version():
    assert f"registry/tco:{__version__}" in (
        ROOT / "reports/site/pages/guide/cluster.md"
    ).read_text(encoding="utf-8")


def test_what_ci_installs_is_locked_within_the_bounds_of_the_project():
    lines = (ROOT / ".ci/constraints.txt").read_text(encoding="utf-8").splitlines()
    locked = {
        canonicalize_name(name): locked_version
        for name, locked_version in (line.split("==") for line in lines if not line.startswith("#"))
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for text in (*project["dependencies"], *project["optional-dependencies"]["dev"]):
        requirement = Requirement(text)
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), text
    assert "--constraint .ci/constraints.txt" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_the_bill_of_software_names_each_package_with_its_version_and_licence():
    bill_text = subprocess.run(
        [sys.executable, ROOT / ".ci/bill"], capture_output=True, text=True, check=True
    ).stdout
    packages = {
        canonicalize_name(component["name"]): component
        for component in json.loads(bill_text)["components"]
    }
    assert packages["numpy"]["version"] == version("numpy")
    assert all(package["licenses"][0]["license"]["name"] for package in packages.values())


def test_a_source_distribution_holds_what_tests_read():
    included_names = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "hatch"
    ]["build"]["targets"]["sdist"]["include"]
    assert {".ci", ".pre-commit-config.yaml", "SECURITY.md"} <= set(included_names)
    assert all((ROOT / name).exists() for name in included_names)
