"""Figures are the same on any processor, in arrays and one by one.

They are computed with all instructions that numpy finds and with none of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

SWITCH = "NPY_DISABLE_CPU_FEATURES"


def process_report(disabled_features=()):
    """Return the figures of a new process, with some instructions of the processor disabled."""
    environment = {name: value for name, value in os.environ.items() if name != SWITCH} | (
        {SWITCH: " ".join(disabled_features)} if disabled_features else {}
    )
    words = [sys.executable, "-m", "tests.processor"]
    done = subprocess.run(
        words,
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_figures_are_the_same_without_instructions_and_in_arrays():
    """Formulas on their golden rows and metrics of draws, to 1e-12."""
    full_report = process_report()
    least = process_report(full_report["found"]) if full_report["found"] else full_report
    assert least["found"] == []  # numpy was without them indeed
    assert full_report["figures"].keys() == least["figures"].keys()
    wrong = []
    for name, full_figure in full_report["figures"].items():
        readings = np.array(
            [
                figure[reading]
                for figure in (full_figure, least["figures"][name])
                for reading in ("array", "alone")
            ],
            dtype=float,
        )
        off = np.abs(readings - readings[0]) > 1e-12 * np.abs(readings[0])
        wrong += [
            f"{name}: {readings[:, reading_index].tolist()}"
            for reading_index in np.flatnonzero(off.any(axis=0))
        ]
    assert not wrong, "\n".join(wrong)
