"""Behaviour that only a new process shows: its imports, threads, pipes and encoding."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "pandas",
    "pint",
    "scipy",
    "plotly",
    "matplotlib",
    "pyarrow",
    "pydantic",
    "hypothesis",
    "rich",
    "pygments",
}
COMMAND = [sys.executable, "-m", "tco"]


def run(*arguments, **environment):
    process_environment = {**os.environ, "PYTHONIOENCODING": "utf-8", **environment}
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=process_environment,
        check=False,
    )


# What a command does not need and must not read in: every module costs its start about a
# millisecond.
NO_ANSWER = (
    "numpy",
    "json",
    "csv",
    "tomllib",
    "tco.catalog",
    "tco.scenario",
    "tco.core.units",
    "tco.report",
)
OTHER_ANSWERS = (
    *(
        "tco.performance.training",
        "tco.performance.serving.closed_loop",
        "tco.performance.serving.axes",
        "tco.performance.serving.fixed_axes",
    ),
    *(
        "tco.models.readers.families",
        "tco.models.readers.state_space",
        "tco.models.from_figures",
        "tco.core.equation",
        "tco.scenario.saved",
    ),
    *(
        "tco.validation",
        "tco.evidence",
        "tco.comparison.frontier",
        "tco.regression",
        "tco.cli.catalogue",
        "tco.report.explanation",
    ),
)
LIGHT = {
    "--help": NO_ANSWER,
    "compare --help": (*NO_ANSWER, "tco.cli.explain", "tco.cli.catalogue"),
    "parts list": ("tco.scenario", "tco.performance", "tco.cli.explain"),
    "compare": (*OTHER_ANSWERS, "tco.cli.explain"),
    "price trn3-nl72x2": (
        *(set(OTHER_ANSWERS) - {"tco.core.equation"}),  # its draws are of compiled formulas
        "tco.cli.compare",
        "tco.performance.serving.passes",
        "tco.performance.chip.gemm",
    ),
    "bom gb200-nvl72": (*OTHER_ANSWERS, "tco.cli.explain"),
}


@pytest.mark.parametrize("words", LIGHT)
def test_light_commands_import_no_heavy_module(words):
    if words == "compare":
        run(words)  # its ranges are kept from then on
    done = run(*words.split(), PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    imported_modules = {
        line.rsplit("|", 1)[1].strip()
        for line in done.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert "tco" in imported_modules
    needless = HEAVY | set(LIGHT[words])
    assert not {
        name
        for name in imported_modules
        for above in needless
        if f"{name}.".startswith(f"{above}.")
    }


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts the threads of Linux")
def test_a_command_starts_no_threads_of_numpy():
    code = (
        "import os; from tco.cli import app; app(['price', 'gb200-nvl72'], "
        "standalone_mode=False); import numpy; print(len(os.listdir('/proc/self/task')))"
    )
    environment = {name: text for name, text in os.environ.items() if "NUM_THREADS" not in name}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split()[-1] == "1"


def test_package_imports_no_heavy_module():
    code = "import sys, tco; print(tco.__version__, 'numpy' in sys.modules, 'typer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[1:] == ["False", "False"]


def test_the_public_names():
    code = (
        "import tco; print(round(tco.evaluate('gb200-nvl72', set={'site.pue': "
        "'1.2'}).metrics['chips']), len(tco.load_catalogue().parts) > 50)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["72", "True"]


def test_works_from_any_folder(tmp_path):
    done = subprocess.run(
        [*COMMAND, "bom", "gb200-nvl72", "--format", "json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.startswith("{")


def test_closed_reader_of_a_pipe_ends_the_command_without_a_message():
    """As `tco ... | head -1` does: no traceback, and what was read is whole."""
    process = subprocess.Popen(
        [*COMMAND, "sources", "list", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "{\n"
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == 0
    assert errors == ""


def test_a_pipe_that_is_closed_at_once():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "compare"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_an_error_leaves_stdout_empty():
    done = run("price", "trn3-nl72x")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(
        "error: unknown scenario 'trn3-nl72x'; did you mean 'trn3-nl72x2'"
    )


@pytest.mark.parametrize("form", ["json", "csv", "md", "table"])
def test_output_is_utf8_whatever_the_locale(form, own_data):
    own_data.parts("nitro-v6-400g,price,500,USD,400,650,2025-12,vendor,tco-model,geprüft – 100 µm,")
    command = [
        *COMMAND,
        "parts",
        "show",
        "nitro-v6-400g",
        "--data",
        own_data.folder,
        "--format",
        form,
    ]
    done = subprocess.run(
        command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "geprüft – 100 µm" in done.stdout.decode("utf-8")


def test_output_is_the_same_for_every_hash_seed():
    first_output, two = (
        run(
            "explain",
            "gb200-nvl72",
            "tco_usd_per_chip_hour",
            "--format",
            "csv",
            PYTHONHASHSEED=seed,
        ).stdout
        for seed in ("1", "2")
    )
    assert first_output
    assert first_output == two
