"""The action and hook for other projects pass where a baseline holds and fail where it does not.

The files of the docs that use them are run too.
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

from tco import __version__

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "reports" / "site" / "pages" / "tutorials" / "regression.md"
FILES = dict(
    re.findall(
        r'^```yaml title="([^"]+)"\n(.*?)^```$',
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PRE_COMMIT = f"{sys.executable} -m pre_commit"
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a function that runs a shell line in a project with a baseline, as a pipeline does.

    The baseline is of one rack.
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
    environment |= {"PYTHONPATH": str(ROOT), "PRE_COMMIT_HOME": str(folder / "hooks")}

    def run(line, **variables):
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", line],
            check=False,
            cwd=folder,
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=120,
        )

    assert run("tco baseline save main gb200-nvl72").returncode == 0
    run.folder, run.summary = folder, summary
    return run


def write_dearer_part(project):
    """Write own data with a dearer part, as a pull request may bring it."""
    part = project.folder / "data" / "parts" / "quoted.csv"
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(
        "part,attribute,value,unit,low,high,as_of,kind,source,note,use\n"
        "gb200-gpu,price,39000,USD,38000,40000,2025-12,press,tco-estimate-2026,,\n"
    )
    return part


def action_step(name, **settings):
    """The script of an action's step, and its variables as a workflow with settings fills them."""
    inputs = {key: entry["default"] for key, entry in ACTION["inputs"].items()} | settings
    step = next(step for step in ACTION["runs"]["steps"] if step["name"] == name)
    assert step["shell"] == "bash"
    variables = {
        key: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], text)
        for key, text in step.get("env", {}).items()
    }
    return step["run"], variables


def test_the_action_fails_with_annotations_and_a_summary_where_a_cost_rises(project):
    project.summary.unlink(missing_ok=True)
    script, variables = action_step("Check")
    quiet_run = project(script, **variables)
    assert (quiet_run.returncode, quiet_run.stdout.startswith("::notice")) == (0, True), (
        quiet_run.stderr
    )
    assert not project.summary.exists()
    part = write_dearer_part(project)
    dear_run = project(script, **variables)
    part.unlink()
    assert (dear_run.returncode, dear_run.stdout.startswith("::error")) == (1, True), (
        dear_run.stderr
    )
    assert "usd_per_million_output_tokens" in project.summary.read_text()


def test_the_action_checks_all_metrics_and_passes_an_unknown_baseline_on(project):
    two = "usd_per_million_output_tokens\ntco_usd_per_chip_hour\n"
    project.summary.unlink(missing_ok=True)
    script, variables = action_step("Check", metrics=two)
    part = write_dearer_part(project)
    dear_run = project(script, **variables)
    part.unlink()
    assert dear_run.returncode == 1
    assert all(metric in project.summary.read_text() for metric in two.split())
    script, variables = action_step("Check", baseline="nowhere")
    unknown_run = project(script, **variables)
    assert unknown_run.returncode == 3
    assert "nowhere" in unknown_run.stderr


def test_the_workflow_of_the_docs_gives_the_action_inputs_that_it_has():
    workflow = yaml.safe_load(FILES[".github/workflows/cost.yml"])
    step = workflow["jobs"]["cost"]["steps"][-1]
    assert step["uses"] == f"YOUR-ACCOUNT/YOUR-COPY@v{__version__}"
    assert set(step["with"]) <= set(ACTION["inputs"])
    inputs = set(re.findall(r"^\| `([\w-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert set(ACTION["inputs"]) <= inputs


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_hook_passes_on_a_baseline_that_holds_and_fails_where_a_cost_rises(project):
    configuration = yaml.safe_load(FILES[".pre-commit-config.yaml"])
    (repository,) = configuration["repos"]
    assert repository.pop("rev") == f"v{__version__}"
    (hook,) = repository["hooks"]
    # as the docs configure it, from this checkout and without an environment to install
    definition = next(entry for entry in HOOKS if entry["id"] == hook["id"])
    repository |= {"repo": "local", "hooks": [definition | hook | {"language": "system"}]}
    (project.folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(configuration))
    assert project(f"{PRE_COMMIT} validate-manifest {ROOT}/.pre-commit-hooks.yaml").returncode == 0
    assert project("git init -q . && git add .pre-commit-config.yaml reports").returncode == 0
    quiet_run = project(f"{PRE_COMMIT} run --files reports/baselines/main.json")
    assert (quiet_run.returncode, "Passed" in quiet_run.stdout) == (0, True), (
        quiet_run.stdout + quiet_run.stderr
    )
    assert "Skipped" in project(f"{PRE_COMMIT} run --files .pre-commit-config.yaml").stdout
    part = write_dearer_part(project)
    dear_run = project(f"{PRE_COMMIT} run --files data/parts/quoted.csv")
    part.unlink()
    assert (dear_run.returncode, "Failed" in dear_run.stdout) == (1, True)
