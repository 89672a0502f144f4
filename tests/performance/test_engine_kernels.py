"""Corrections for kernels as engines run them: bends, releases, unknown chips and refits."""

from __future__ import annotations

import csv
import shlex

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco.core.errors import DataError
from tco.performance.chip.engine_corrections import (
    ANY,
    BENDS,
    COLUMNS,
    SIDES,
    TIMES,
    Correction,
    asked_correction,
    bend,
    correction,
    corrections,
    nearest_release,
    release,
)
from tco.validation import collectives, kernels
from tco.validation.engine_kernels import fit_engine_kernel_rows
from tests.catalogue import CATALOGUE
from tests.cli import document, tco
from tests.scenario_helpers import plain_values
from tests.validation import today
from tests.validation.today import ROOT

TABLES = sorted(
    path.name.removesuffix(".csv.gz") for path in (ROOT / "data/measured").glob("engine_*.csv.gz")
)
IN_EVERY_RUN = ("engine_all_reduce", "engine_gemm", "engine_mla_decode")
BARS = {"all_reduce": 0.2, "expert_exchange": 0.2, "gemm": 0.12}  # of median errors; of all others
OTHERS = 0.15
TRITON = "SGLang/sglang_fused_moe_triton@0.5.14"
LAYER = {"tokens": 64, "topk": 8, "experts": 256, "ranks": 8, "hidden": 7168, "width": 2048}


def kernel_answer(chip, library=None):
    line = ["kernel", chip, "--op", "experts", "--precision", "fp8_block"]
    line += [word for name, side in LAYER.items() for word in (f"--{name}", str(side))]
    return document(*line, *(("--library", library) if library else ()))


@given(st.floats(1e-3, 1e6), st.lists(st.floats(-2, 2), min_size=3, max_size=3))
def test_a_bend_is_a_line_between_its_places(x, slopes):
    bend_points = (1.0, 16.0, 256.0, 4096.0)
    heights = np.concatenate([[0], np.cumsum(np.array(slopes) * np.log(16))])
    assert bend(x, *bend_points, *slopes) == pytest.approx(
        np.interp(np.log(x), np.log(bend_points), heights), abs=1e-9
    )


@pytest.mark.parametrize("name", TABLES)
def test_correction_at_a_tabulated_size_is_the_row_of_the_table(name):
    validation = today.scored(ROOT / f"data/measured/{name}.csv.gz")
    kind = name.removeprefix("engine_")
    assert validation.card["scored"] > 0.95 * validation.card["n"]
    assert validation.card["median_ape"] < BARS.get(kind, OTHERS)


def test_measured_row_can_be_predicted_by_the_command():
    for name in TABLES:
        rows = today.scored(ROOT / f"data/measured/{name}.csv.gz").rows
        for row in rows[rows.skipped == ""].iloc[:: len(rows) // 3].itertuples():
            command_answer = document(*shlex.split(row.command)[1:])
            assert command_answer[row.key] == pytest.approx(row.predicted, rel=1e-9), row.command


def test_an_engine_takes_its_own_time():
    bare, triton = kernel_answer("h100-sxm"), kernel_answer("h100-sxm", TRITON)
    assert triton["time_us"] == pytest.approx(bare["time_us"] * triton["engine_factor"], rel=1e-12)
    assert bare["engine_factor"] is None
    # portable kernels on Blackwell
    assert kernel_answer("b200-sxm", TRITON)["engine_factor"] > 1.1 * triton["engine_factor"]


def test_a_release_that_no_table_has_takes_the_one_before():
    of = ("experts", "SGLang/sglang_fused_moe_triton")
    assert release(TRITON) == (of[1], (0, 5, 14))
    assert nearest_release(CATALOGUE, *of, "fp8_block") == TRITON
    assert nearest_release(CATALOGUE, of[0], f"{of[1]}@0.5.12", "fp8_block") == f"{of[1]}@0.5.10"
    assert nearest_release(CATALOGUE, of[0], f"{of[1]}@0.4", "fp8_block") == f"{of[1]}@0.5.10"


def test_a_release_of_thousands_of_digits_is_read():
    assert release(f"{TRITON}{'9' * 5000}")[0] == release(TRITON)[0]


def test_a_chip_without_a_table_takes_what_the_others_share():
    assert (
        correction(CATALOGUE, "experts", TRITON, "fp8_block", "mi355x")
        == corrections(CATALOGUE)["experts", TRITON, "fp8_block"][ANY]
    )
    command_result = tco(
        "kernel",
        "mi355x",
        "--op",
        "gemm",
        "--precision",
        "bf16",
        "--m",
        "64",
        "--n",
        "8",
        "--k",
        "64",
        "--library",
        "VLLM/torch.nn.functional.linear",
    )
    assert "no table of it" in command_result.stdout


def test_kernel_without_a_table_takes_the_time_of_physics():
    assert correction(CATALOGUE, "experts", "nobody/nothing", "fp8_block", "h100-sxm") is None
    with pytest.raises(DataError, match="sglang_fused_moe_triton"):
        asked_correction(
            CATALOGUE,
            "experts",
            "SGLang/sglang_fused_moe_trito",
            "fp8_block",
            "h100-sxm",
            "--library",
        )
    with pytest.raises(DataError, match="elementwise"):
        asked_correction(CATALOGUE, "elementwise", TRITON, "bf16", "h100-sxm", "--library")


def kind_of(name):
    return today.read_measured(ROOT / f"data/measured/{name}.csv.gz")[0]


def refitted(name, table):
    return list(fit_engine_kernel_rows(kind_of(name), table, CATALOGUE, plain_values(), "2026-11"))


@pytest.mark.parametrize("name", TABLES)
def test_the_rows_of_the_catalogue_are_those_of_a_refit(name):
    with (ROOT / "data/engine_kernels.csv").open(encoding="utf-8") as stream:
        stated = {
            tuple(row[key] for key in ("operation", "kernel", "format", "chip")): row
            for row in csv.DictReader(stream)
        }
    refitted_rows = refitted(name, today.table_of(ROOT / f"data/measured/{name}.csv.gz"))
    assert refitted_rows
    for row in refitted_rows:
        stated_row = stated[row["operation"], row["kernel"], row["format"], row["chip"]]
        assert float(stated_row["level"]) == pytest.approx(row["level"], abs=2e-3), stated_row


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in IN_EVERY_RUN else pytest.mark.thorough)
        for name in TABLES
    ],
)
def test_a_correction_helps_on_a_chip_that_it_has_not_seen(name):
    """Shared corrections of the other chips bring GB200's rows nearer than physics does."""
    table = today.table_of(ROOT / f"data/measured/{name}.csv.gz")
    is_unseen = table.accelerator == "GB200 NVL72"
    common = {
        (row["operation"], row["kernel"], row["format"]): row
        for row in refitted(name, table[~is_unseen].reset_index(drop=True))
        if row["chip"] == ANY
    }
    unseen = table[is_unseen].reset_index(drop=True)
    readers = {
        "kernels": kernels.engine_kernel_rows,
        "collectives": collectives.engine_collective_rows,
    }
    measured, timed = readers[kind_of(name)](today.rows_of(unseen))
    corrected, bare = [], []
    for timed_group in timed:
        row = common.get((timed_group.operation, timed_group.kernel, timed_group.format))
        if row:
            corrected_time = Correction(row["level"], tuple(row[name] for name in BENDS)).of(
                timed_group.operation, timed_group.time, timed_group.sides
            )
            corrected += list(np.abs(np.log(corrected_time / measured[timed_group.rows])))
            bare += list(np.abs(np.log(timed_group.time / measured[timed_group.rows])))
    assert len(bare) > 100
    assert np.median(corrected) < 0.75 * np.median(bare)


def test_every_operation_bends_at_rising_places():
    for sides in SIDES.values():
        assert all(list(side.bend_points) == sorted(side.bend_points) for side in sides)
    assert list(TIMES) == sorted(TIMES)


def test_own_correction_holds_on_its_chip_alone(own_data):
    """A correction for one chip is used there and refused on others."""
    cells = [
        "gemm",
        "mine/best@1",
        "bf16",
        "h100-sxm",
        "10",
        "0.5",
        *["0"] * len(BENDS),
        "0.1",
        "2026-11",
        "tco-calibration",
    ]
    folder = own_data.write(
        "engine_kernels.csv", ",".join(COLUMNS) + "\n" + ",".join(cells) + "\n"
    ).parent
    line = [
        "--op",
        "gemm",
        "--m",
        "64",
        "--n",
        "64",
        "--k",
        "64",
        "--library",
        "mine/best",
        "--data",
        str(folder),
    ]
    assert document("kernel", "h100-sxm", *line)["engine_factor"] == pytest.approx(np.exp(0.5))
    done = tco("kernel", "b200-sxm", *line)
    assert (done.exit_code, "mine/best" in done.stderr) == (3, True)


@pytest.mark.parametrize("name", ["kernels", "training"])
def test_a_file_without_kernels_of_engines_is_refused(own_data, name):
    done = tco(
        "calibrate",
        str(ROOT / f"data/measured/{name}.csv.gz"),
        "--fit",
        "engine-kernels",
        "-o",
        str(own_data.write("x.csv", "")),
    )
    assert done.exit_code == 2
    assert "engine_kernel" in done.stderr
