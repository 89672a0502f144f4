"""The workflow and the hook that the docs give: run as they stand there, on a baseline that holds
and on one that does not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.thorough

PAGE = Path(__file__).parents[2] / "reports" / "site" / "pages" / "tutorials" / "regression.md"
FILES = dict(
    re.findall(
        r'^```yaml title="([^"]+)"\n(.*?)^```$',
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with a baseline of one rack, and what runs a shell line in it as a pipeline
    does.
    """
    folder = tmp_path_factory.mktemp("project")
    binaries = folder / "bin"
    binaries.mkdir()
    shim = binaries / "tco"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tco "$@"\n')
    shim.chmod(0o755)
    summary = folder / "summary.md"
    environment = {
        **os.environ,
        "PATH": f"{binaries}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    environment |= {"PYTHONPATH": str(PAGE.parents[4]), "PRE_COMMIT_HOME": str(folder / "hooks")}

    def run(line):
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", line],
            check=False,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    assert run("tco baseline save main gb200-nvl72").returncode == 0
    run.folder, run.summary = folder, summary
    return run


def dearer(project):
    """Own data with a dearer part, as a pull request may bring it."""
    part = project.folder / "data" / "parts" / "quoted.csv"
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(
        "part,attribute,value,unit,low,high,as_of,kind,source,note,use\ngb200-gpu,price,39000,USD,38000,40000,2025-12,press,tco-estimate-2026,,\n"
    )
    return part


def test_the_workflow(project):
    workflow = yaml.safe_load(FILES[".github/workflows/cost.yml"])
    lines = {
        step["name"]: step["run"] for step in workflow["jobs"]["cost"]["steps"] if "run" in step
    }
    assert lines.pop("Install") == "pip install ."
    quiet = [project(line) for line in lines.values()]
    assert [done.returncode for done in quiet] == [0, 0]
    assert quiet[0].stdout.startswith("::notice")
    part = dearer(project)
    moved = [project(line) for line in lines.values()]
    part.unlink()
    assert [done.returncode for done in moved] == [1, 1]  # the second is run where the first fails
    assert moved[0].stdout.startswith("::error")
    assert "usd_per_million_output_tokens" in project.summary.read_text()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_hook(project):
    (project.folder / ".pre-commit-config.yaml").write_text(FILES[".pre-commit-config.yaml"])
    assert project("git init -q . && git add .pre-commit-config.yaml reports").returncode == 0
    held = project("pre-commit run --files reports/baselines/main.json")
    assert (held.returncode, "Passed" in held.stdout) == (0, True), held.stdout + held.stderr
    assert "Skipped" in project("pre-commit run --files .pre-commit-config.yaml").stdout
    part = dearer(project)
    moved = project("pre-commit run --files data/parts/quoted.csv")
    part.unlink()
    assert (moved.returncode, "Failed" in moved.stdout) == (1, True)
