"""Cases of a sweep equal single evaluations, and its folder survives any interruption."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import tco
from tco import DataError, evaluate
from tco.core.numeric_environment import arithmetic
from tco.evaluation.workers import environment_of, make_checked_piece, useful_workers
from tco.sweeps import run
from tests.catalogue import CATALOGUE
from tests.cli import tco as cli
from tests.study_helpers import job

PRICES = {
    "site.electricity_price": {"from": "0.03 USD/kWh", "to": "0.2 USD/kWh", "steps": 12},
    "terms.rate": [0.05, 0.09, "15 %"],
}
SMALL = {"scenarios": ["gb200-nvl72"], "report": ["tco_usd_per_chip_hour"], "grid": PRICES}
COST, RATE = "usd_per_million_output_tokens", "output_tokens_per_s_per_chip"


def toml(folder, study, name="s.toml"):
    """Write a study as a file."""

    def line(key, value):
        ends = (
            "{ " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in value.items()) + " }"
            if isinstance(value, dict)
            else json.dumps(value)
        )
        return f"{json.dumps(key)} = {ends}"

    tables = [key for key, value in study.items() if isinstance(value, dict)]
    text = [line(key, value) for key, value in study.items() if key not in tables]
    for key in tables:
        text += [f"[{key}]", *(line(path, value) for path, value in study[key].items())]
    path = folder / name
    path.write_text("\n".join(text) + "\n")
    return path


def bytes_of(folder):
    """The content of all files of a folder by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def frame_of(study, folder, **options):
    return tco.sweep(study, folder, **options).to_frame()


# ---------------------------------------------------------------- what cases come to
def test_case_equals_the_scenario_evaluated_by_itself(tmp_path):
    study = {
        "scenarios": ["trn3-nl72x2", "gb200-nvl72"],
        "report": [COST, RATE, "perf_per_tco_vs_baseline"],
        "grid": {
            "site.rack_kw_max": ["60 kW", "200 kW"],  # decides whether racks fit
            "workload.interactivity": ["20 token/s", "50 token/s"],  # changes the plan
            "parts.scorpio-x-160.price": [
                "100 USD",
                "5000 USD",
            ],  # decides which alternative is the cheapest
        },
    }
    case_frame = frame_of(study, tmp_path / "o")
    assert len(case_frame) == 16
    for row in case_frame.to_dict("records"):
        case_settings = {
            path: (row[path], str(values[0]).partition(" ")[2])
            for path, values in study["grid"].items()
        }
        evaluations = {
            name: evaluate(name, case_settings, catalogue=CATALOGUE, refuse=False)
            for name in study["scenarios"]
        }
        for name in (COST, RATE):
            expected_metric = evaluations[row["scenario"]].metrics[name]
            assert (
                np.isnan(row[name])
                if expected_metric is None
                else row[name] == pytest.approx(expected_metric, rel=1e-9)
            ), (name, row)
        costs = [evaluations[name].metrics[COST] for name in ("gb200-nvl72", row["scenario"])]
        ratio = None if None in costs else costs[0] / costs[1]
        assert (
            np.isnan(row["perf_per_tco_vs_baseline"])
            if ratio is None
            else row["perf_per_tco_vs_baseline"] == pytest.approx(ratio, rel=1e-9)
        )
    # a GB200 rack needs more than 60 kW, and so does half of an NL72x2
    assert case_frame[COST].notna().sum() == 8


def test_texts_and_axes_of_the_plan_are_settings(tmp_path):
    study = {
        "scenarios": ["trn3-nl72x2@switch=gen2"],
        "report": [RATE, "tco_usd_per_chip_hour"],
        "set": {"workload.interactivity": "30 token/s"},
        "grid": {"plan.tp": ["1", "4"], "terms.date": ["2025-12", "2026-09"]},
    }
    case_frame = frame_of(study, tmp_path / "o")
    for row in case_frame.to_dict("records"):
        evaluation = evaluate(
            "trn3-nl72x2@switch=gen2",
            {"workload.interactivity": "30 token/s", "terms.date": row["terms.date"]},
            {"tp": row["plan.tp"]},
            catalogue=CATALOGUE,
        )
        assert row[RATE] == pytest.approx(evaluation.metrics[RATE], rel=1e-9)
        assert row["tco_usd_per_chip_hour"] == pytest.approx(
            evaluation.metrics["tco_usd_per_chip_hour"], rel=1e-9
        )


@pytest.mark.thorough
def test_draws_are_those_of_uncertainty(tmp_path):
    study = {
        "scenarios": ["trn3-nl72x2", "gb200-nvl72"],
        "report": [COST, "perf_per_tco_vs_baseline"],
        "draw": {"samples": 40, "seed": 3},
    }
    case_frame = frame_of(study, tmp_path / "o")
    expected_draws = tco.uncertainty("trn3-nl72x2", "gb200-nvl72", samples=40, seed=3)
    trn3_cases = case_frame[case_frame["scenario"] == "trn3-nl72x2"].reset_index(drop=True)
    for name in study["report"]:
        # a win without end is null
        np.testing.assert_allclose(
            trn3_cases[name], expected_draws.to_frame()[name].replace(np.inf, np.nan), rtol=1e-9
        )
    assert set(expected_draws.drawn) == set(case_frame.columns[1:-2])
    wafer_prices = trn3_cases["parts.trn3.wafer_price"]
    assert wafer_prices.nunique() == 40
    # no input of it
    assert (
        case_frame.loc[case_frame["scenario"] == "gb200-nvl72", "parts.trn3.wafer_price"]
        .isna()
        .all()
    )


def test_draws_of_some_inputs_at_every_point_of_a_grid(tmp_path):
    drawn = sorted(tco.uncertainty("gb200-nvl72", samples=2).drawn)
    paths = [path for path in drawn if path.startswith(("site.", "parts."))][:3]
    study = {
        "scenarios": ["gb200-nvl72"],
        "report": ["tco_usd_per_chip_hour"],
        "grid": {"terms.rate": [0.05, 0.1]},
        "draw": {"samples": 16, "method": "sobol", "paths": paths},
    }
    case_frame = frame_of(study, tmp_path / "o")
    assert case_frame.columns.tolist() == [
        "scenario",
        "terms.rate",
        *paths,
        "tco_usd_per_chip_hour",
    ]
    low, high = (
        case_frame[case_frame["terms.rate"] == rate].reset_index(drop=True) for rate in (0.05, 0.1)
    )
    pd.testing.assert_frame_equal(low[paths], high[paths])  # common draws: what both share cancels
    assert (high["tco_usd_per_chip_hour"] > low["tco_usd_per_chip_hour"]).all()


@pytest.mark.parametrize("plan", ["held", "near"])
def test_plans_may_be_held_or_chosen_among_the_best(plan, tmp_path):
    study = {
        "scenarios": ["gb200-nvl72"],
        "report": [RATE],
        "plan": plan,
        "grid": {"parts.gb200-gpu.hbm_bandwidth": ["6 TB/s", "8 TB/s", "10 TB/s"]},
    }
    swept_rates = frame_of(study, tmp_path / "o")[RATE].to_numpy()
    bandwidth_draws = {"parts.gb200-gpu.hbm_bandwidth": (np.array([6.0, 8.0, 10.0]), "TB/s")}
    held_structure = (
        evaluate("gb200-nvl72", catalogue=CATALOGUE).structure if plan == "held" else None
    )
    expected_rates = tco.evaluate_draws(
        "gb200-nvl72", bandwidth_draws, structure=held_structure, catalogue=CATALOGUE
    ).metrics[RATE]
    np.testing.assert_allclose(swept_rates, expected_rates, rtol=1e-12)


def test_constraints_leave_cases_out(tmp_path):
    all_cases = frame_of(SMALL, tmp_path / "whole")
    allowed_cases = frame_of(
        SMALL
        | {
            "constraints": {
                "tco_usd_per_chip_hour": {"max": 2.4},
                "it_power_w_per_chip": {"min": 1.0},
            }
        },
        tmp_path / "some",
    )
    pd.testing.assert_frame_equal(
        allowed_cases, all_cases[all_cases["tco_usd_per_chip_hour"] <= 2.4].reset_index(drop=True)
    )
    assert 0 < len(allowed_cases) < len(all_cases)


def test_stated_rates_are_swept(tmp_path):
    study = {
        "scenarios": ["gb200-nvl72"],
        "report": [COST],
        "set": {"workload": "stated"},
        "grid": {"workload.output_rate": ["500 token/s/chip", "1000 token/s/chip"]},
    }
    token_costs = frame_of(study, tmp_path / "o")[COST]
    assert token_costs[0] == pytest.approx(2 * token_costs[1])


# ---------------------------------------------------------------- files
def test_a_file_says_its_units_and_what_it_rests_on(tmp_path):
    sweep_result = tco.sweep(SMALL, tmp_path / "o")
    schema = pq.read_schema(tmp_path / "o" / "part-000000.parquet")
    assert {field.name: (field.metadata or {}).get(b"unit") for field in schema} == {
        "scenario": None,
        "site.electricity_price": b"USD/kWh",
        "terms.rate": b"ratio",
        "tco_usd_per_chip_hour": b"USD/chip/h",
    }
    assert schema.metadata[b"tco.inputs"].decode() == sweep_result.job.inputs_hash
    assert schema.metadata[b"tco.version"].decode() == environment_of(()).program
    (tmp_path / "o" / "_unfinished-part-000007.parquet-x").write_bytes(b"half")
    read = pd.read_parquet(tmp_path / "o")
    assert len(read) == 36
    assert read["scenario"].unique().tolist() == ["gb200-nvl72"]


@pytest.fixture
def cut(monkeypatch):
    """Partitions of seven cases."""
    monkeypatch.setattr(job, "ROWS_PER_PARTITION", 7)


def test_partition_size_changes_no_value(tmp_path, monkeypatch):
    study = SMALL | {
        "grid": {"terms.rate": [0.05, 0.09]},
        "draw": {"samples": 50, "method": "latin-hypercube"},
    }
    uncut_frame = frame_of(study, tmp_path / "whole")
    monkeypatch.setattr(job, "CASES_PER_PIECE", 16)
    monkeypatch.setattr(job, "ROWS_PER_PARTITION", 60)
    pd.testing.assert_frame_equal(frame_of(study, tmp_path / "cut"), uncut_frame, check_exact=True)


def test_a_sweep_goes_on_where_it_stopped(cut, tmp_path):
    path = toml(tmp_path, SMALL)
    assert cli("sweep", path, "-o", tmp_path / "o").exit_code == 0
    file_digests = bytes_of(tmp_path / "o")
    assert sum(name.endswith(".parquet") for name in file_digests) == 6
    modified_time = (tmp_path / "o" / "part-000003.parquet").stat().st_mtime_ns
    for name in ("part-000001.parquet", "part-000004.parquet"):
        (tmp_path / "o" / name).unlink()
    (tmp_path / "o" / "_unfinished-part-000001.parquet-abc").write_bytes(b"half")
    short = tmp_path / "o" / "part-000002.parquet"
    short.write_bytes(short.read_bytes()[:100])
    (tmp_path / "o" / "part-000005.parquet").write_bytes(b"")
    assert cli("sweep", path, "-o", tmp_path / "o").exit_code == 0
    assert bytes_of(tmp_path / "o") == file_digests
    assert (tmp_path / "o" / "part-000003.parquet").stat().st_mtime_ns == modified_time


def test_a_part_with_one_flipped_bit_is_made_again_and_named(cut, tmp_path):
    path, folder = toml(tmp_path, SMALL), tmp_path / "o"
    assert cli("sweep", path, "-o", folder).exit_code == 0
    before = bytes_of(folder)
    manifest = json.loads((folder / "_study.json").read_text())
    assert manifest["sha256"] == {
        name: digest for name, digest in before.items() if name.endswith(".parquet")
    }
    part = folder / "part-000004.parquet"
    content = part.read_bytes()
    for position in np.random.default_rng(0).integers(0, len(content), 5):
        flipped = bytearray(content)
        flipped[position] ^= 1 << int(position) % 8
        part.write_bytes(bytes(flipped))
        done = cli("sweep", path, "-o", folder)
        assert done.exit_code == 0
        assert "part-000004.parquet was made again: its SHA-256 is not" in done.stderr
        assert bytes_of(folder) == before
    assert "made again" not in cli("sweep", path, "-o", folder).stderr


def test_pages_of_a_part_have_checksums(tmp_path):
    tco.sweep(SMALL, tmp_path / "o")
    content = bytearray((tmp_path / "o" / "part-000000.parquet").read_bytes())
    column = pq.read_metadata(tmp_path / "o" / "part-000000.parquet").row_group(0).column(3)
    content[column.data_page_offset + column.total_compressed_size - 40] ^= 1
    (tmp_path / "copy.parquet").write_bytes(bytes(content))
    with pytest.raises(OSError, match="CRC checksum"):
        pq.ParquetFile(tmp_path / "copy.parquet", page_checksum_verification=True).read()


@pytest.mark.parametrize("name", ["part-000006.parquet", "part-0000001.parquet", "more.parquet"])
def test_a_file_that_is_no_part_of_the_study_is_refused(cut, name, tmp_path):
    path, folder = toml(tmp_path, SMALL), tmp_path / "o"
    tco.sweep(path, folder)
    (folder / name).write_bytes((folder / "part-000000.parquet").read_bytes())
    done = cli("sweep", path, "-o", folder)
    assert (done.exit_code, f"holds other files ({name})" in done.stderr) == (2, True)


@pytest.mark.parametrize("folder_kind", ["study", "setting", "data", "version", "broken", "files"])
def test_a_folder_of_something_else_is_refused(folder_kind, tmp_path, own_data, monkeypatch):
    path, folder = toml(tmp_path, SMALL), tmp_path / "o"
    if folder_kind == "files":
        folder.mkdir()
        (folder / "letter.txt").write_text("mine")
    else:
        tco.sweep(path, folder)
    more, message = (), "was made"
    if folder_kind == "study":
        path, message = (
            toml(tmp_path, SMALL | {"report": ["it_power_w_per_chip"]}, "t.toml"),
            "another study",
        )
    elif folder_kind == "setting":
        more, message = ("--set", "terms.life=4 year"), "other settings"
    elif folder_kind == "data":
        own_data.parts("b200,tdp,1001,W,1001,1001,2025-11,vendor,tco-estimate-2026,,")
        more, message = ("--data", own_data.folder), "on data"
    elif folder_kind == "version":
        monkeypatch.setattr("tco.evaluation.workers.program", lambda: "9.9.9+abc")
        message = "this is 9.9.9+abc"
    elif folder_kind == "broken":
        (folder / "_study.json").write_text("{")
        message = "is no study's"
    else:
        message = "letter.txt"
    before = bytes_of(folder)
    done = cli("sweep", path, "-o", folder, *more)
    assert done.exit_code == 2
    assert message in done.stderr
    assert bytes_of(folder) == before


def test_sweep_of_another_arithmetic_is_continued_if_its_figures_agree(tmp_path):
    """A sweep begun by another numpy continues with a note if its figures agree.

    Otherwise it is refused and writes no partition. Other instructions of the processor count
    as another arithmetic.
    """
    path, folder = toml(tmp_path, SMALL), tmp_path / "o"
    tco.sweep(path, folder)
    manifest, (part,) = folder / "_study.json", folder.glob("part-*")
    study_record = json.loads(manifest.read_text())
    assert study_record["arithmetic"] == [arithmetic()]
    assert pq.read_schema(part).metadata[b"tco.arithmetic"].decode() == arithmetic()
    assert study_record["figures"] == [
        evaluate(
            "gb200-nvl72", {"site.electricity_price": "0.03 USD/kWh", "terms.rate": "0.05"}
        ).metrics[SMALL["report"][0]]
    ]
    for factor, code in ((1 + 1e-10, 0), (1 + 1e-8, 2)):
        manifest.write_text(
            json.dumps(
                study_record
                | {
                    "arithmetic": ["numpy 1.0 (X)"],
                    "figures": [study_record["figures"][0] * factor],
                }
            )
        )
        part.unlink(missing_ok=True)
        done = cli("sweep", path, "-o", folder)
        assert done.exit_code == code, done.stderr
        assert part.exists() == (code == 0)
        assert (
            f"made with numpy 1.0 (X) and with {arithmetic()}"
            if code == 0
            else "with other figures by numpy 1.0 (X)"
        ) in done.stderr


def test_a_worker_with_another_arithmetic_is_held_to_the_figures():
    def made(here, there, by="numpy 1.0 (X)"):
        return make_checked_piece(environment_of(()), lambda: here, there, by, abs, -7)

    assert made((1 + 1e-10, None), (1.0, None)) == (-7, 7, arithmetic())
    assert made((2.0,), (1.0,), arithmetic()).piece_result == 7  # its own need no proof
    for worker_figures in ((1 + 1e-8, None), (1.0, 0.0), (1.0,)):
        with pytest.raises(DataError, match="computes other figures than numpy"):
            made(worker_figures, (1.0, None))


LARGE = SMALL | {
    "grid": {
        "site.electricity_price": {"from": "0.03 USD/kWh", "to": "0.2 USD/kWh", "steps": 2000},
        "terms.rate": {"from": 0.02, "to": 0.2, "steps": 2000},
    }
}


def start_sweep(path, folder):
    """Start a sweep in a new process and return it once it has written a new partition."""
    before = len(list(folder.glob("part-*"))) if folder.exists() else 0
    words = [sys.executable, "-m", "tco", "sweep", str(path), "-o", str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while (
        len(list(folder.glob("part-*"))) <= before
        and process.poll() is None
        and time.monotonic() < deadline
    ):
        time.sleep(0.005)
    return process


@pytest.mark.thorough
def test_interrupted_or_killed_sweep_loses_no_partition(tmp_path):
    path, folder = toml(tmp_path, LARGE), tmp_path / "cut"
    process = start_sweep(path, folder)
    process.send_signal(signal.SIGINT)
    _, error_output = process.communicate(timeout=60)
    assert process.returncode == 130, error_output
    assert error_output.startswith("stopped")
    assert "Traceback" not in error_output
    assert not list(folder.glob("_unfinished*"))
    process = start_sweep(path, folder)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    part_files = sorted(folder.glob("part-*"))
    assert 1 < len(part_files) < 16
    assert all(pq.read_metadata(part_file).num_rows for part_file in part_files)
    tco.sweep(path, folder)
    tco.sweep(path, tmp_path / "whole")
    assert bytes_of(folder) == bytes_of(tmp_path / "whole")


def test_full_disk_keeps_finished_partitions(cut, tmp_path, monkeypatch):
    path, folder, sync, done = toml(tmp_path, SMALL), tmp_path / "o", os.fsync, []

    def full(handle):
        done.append(handle)
        if len(list(folder.glob("part-*"))) == 3:
            raise OSError(28, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    command_result = cli("sweep", path, "-o", folder)
    assert command_result.exit_code == 2
    assert "cannot be written (No space left on device)" in command_result.stderr
    # the third is named, but its checksum has found no room: it is made again
    assert "2 of 6 files are finished and kept" in command_result.stderr
    assert sorted(bytes_of(folder)) == [
        "_study.json",
        "part-000000.parquet",
        "part-000001.parquet",
        "part-000002.parquet",
    ]
    monkeypatch.setattr(os, "fsync", sync)
    assert cli("sweep", path, "-o", folder).exit_code == 0
    assert len(pd.read_parquet(folder)) == 36


def test_cases_go_to_any_place_that_fsspec_knows(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    tco.sweep(SMALL, tmp_path / "o")
    memory_sweep = tco.sweep(SMALL, "memory://sweeps/o")
    store = fsspec.filesystem("memory")
    assert (
        store.cat_file("/sweeps/o/part-000000.parquet")
        == (tmp_path / "o" / "part-000000.parquet").read_bytes()
    )
    assert sorted(path.rpartition("/")[2] for path in store.ls("/sweeps/o", detail=False)) == [
        "_study.json",
        "part-000000.parquet",
    ]
    assert tco.sweep(SMALL, "memory://sweeps/o").progress.cases_made == 0
    store.pipe_file("/sweeps/o/part-000000.parquet", b"damaged")
    mended = cli("sweep", toml(tmp_path, SMALL), "-o", "memory://sweeps/o", "--format", "csv")
    assert mended.exit_code == 0, mended.stderr
    assert len(mended.stdout.splitlines()) == 37
    assert "part-000000.parquet was made again" in mended.stderr
    assert memory_sweep.progress.cases_made == 36


# ---------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"scenarios": []}, 3, "scenarios is empty"),
        ({"report": []}, 3, "report is empty"),
        ({"scenarios": ["gb200-nvl72", "gb200-nvl72"]}, 3, "twice"),
        ({"scenarios": ["gb200-nvl7"]}, 3, "did you mean 'gb200-nvl72'"),
        ({"scenarios": ["kept.json"]}, 3, "cannot be evaluated again"),
        ({"report": ["tco_usd_per_chip_hours"]}, 3, "did you mean 'tco_usd_per_chip_hour'"),
        (
            {"grid": {"site.electricity_prise": ["0.1 USD/kWh"]}},
            3,
            "did you mean 'site.electricity_price'",
        ),
        ({"grid": {"parts.b200.tpd": ["1 kW"]}}, 3, "did you mean"),
        (
            {
                "grid": {
                    "site.electricity_price": {
                        "from": "0.2 USD/kWh",
                        "to": "0.1 USD/kWh",
                        "steps": 3,
                    }
                }
            },
            3,
            "reversed",
        ),
        ({"grid": {"site.electricity_price": ["0.1 USD/kWh", "99 USD/Wh"]}}, 3, "is outside"),
        (
            {"grid": {"workload.model": ["deepseek-v3", "deepseek-v33"]}},
            3,
            "did you mean 'deepseek-v3'",
        ),
        (
            {"grid": {"terms.date": {"from": "2025-12", "to": "2027-12", "steps": 3}}},
            3,
            "expected a list",
        ),
        ({"set": {"terms.rate": "0.1"}}, 3, "in [grid] and in [set]"),
        ({"grids": {}}, 3, "did you mean 'grid'"),
        ({"plan": "bests"}, 3, "did you mean 'best'"),
        ({"draw": {"seed": 1}}, 3, "samples is missing"),
        ({"draw": {"samples": 0}}, 3, "from 1 on"),
        ({"draw": {"samples": 5, "method": "sobel"}}, 3, "did you mean 'sobol'"),
        ({"draw": {"samples": 5, "paths": ["terms.rate"]}}, 3, "is in [grid] too"),
        ({"draw": {"samples": 5, "paths": ["parts.b200.prise"]}}, 3, "did you mean"),
        ({"constraints": {"tco_usd_per_chip_hour": {"min": 3, "max": 2}}}, 3, "reversed"),
        ({"constraints": {"tco_usd_per_chip_hour": {"most": 2}}}, 3, "unknown key 'most'"),
        ({"constraints": {"tco": {"max": 2}}}, 3, "unknown metric 'tco'"),
        (
            {"grid": {"terms.rate": {"from": 0.01, "to": 0.2, "steps": 200_000_000}}},
            2,
            "--max-cases",
        ),
    ],
)
def test_a_bad_study_says_what_is_wrong(change, code, message, tmp_path):
    done = cli("sweep", toml(tmp_path, SMALL | change), "-o", tmp_path / "o")
    assert (done.exit_code, message in done.stderr) == (code, True), done.stderr
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("text", ["", "scenarios = [", "= 3"])
def test_an_empty_or_broken_file_is_refused(text, tmp_path):
    (tmp_path / "s.toml").write_text(text)
    done = cli("sweep", tmp_path / "s.toml", "-o", tmp_path / "o")
    assert done.exit_code == 3
    assert "s.toml" in done.stderr


@pytest.mark.parametrize(
    ("workers", "pieces", "started"), [(300, 1, 1), (2, 5, 2), (100_000, 99_999, 12), (9, 0, 0)]
)
def test_no_more_workers_start_than_have_work_and_cpus(workers, pieces, started, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert useful_workers(workers, pieces) == started


def test_a_finished_study_starts_no_worker_and_says_so(tmp_path, monkeypatch):
    path = toml(tmp_path, SMALL)
    assert cli("sweep", path, "-o", tmp_path / "o").exit_code == 0
    monkeypatch.setattr("tco.evaluation.workers.connected", None)
    done = cli("sweep", path, "-o", tmp_path / "o", "--workers", "300")
    assert done.exit_code == 0
    assert "--workers 300: 0 started, one for each of the 0 missing files" in done.stderr


def test_bad_options_say_what_was_expected(tmp_path):
    path = toml(tmp_path, SMALL)
    for options, code, message in (
        (("--workers", "0"), 2, "one or more"),
        (("--workers", "2", "--cluster", "tcp://127.0.0.1:1"), 2, "one of them"),
        (("--max-cases", "35"), 2, "36 cases"),
        (("--set", "terms.lief=4 year"), 3, "did you mean"),
    ):
        done = cli("sweep", path, "-o", tmp_path / "o", *options)
        assert (done.exit_code, message in done.stderr) == (code, True), done.stderr
    done = cli("sweep", path, "-o", path / "o")
    assert (done.exit_code, "cannot be written" in done.stderr) == (2, True), done.stderr
    done = cli("sweep", path, "-o", "nowhere://bucket/o")
    assert (done.exit_code, "cannot be written" in done.stderr) == (2, True), done.stderr
    assert cli("sweep", "no-such-study", "-o", tmp_path / "o").exit_code == 3


def test_sweep_withholds_own_values(tmp_path):
    done = cli("sweep", toml(tmp_path, SMALL), "-o", tmp_path / "o", "--redact")
    assert done.exit_code == 2
    assert not (tmp_path / "o").exists()


def test_summary_of_a_sweep_is_printed(tmp_path):
    path = toml(tmp_path, SMALL)
    sweep_document = json.loads(cli("sweep", path, "-o", tmp_path / "o", "--format", "json").stdout)
    assert (
        sweep_document["schema"],
        sweep_document["cases"],
        sweep_document["rows"],
        sweep_document["partitions"],
    ) == (
        "tco.sweep/1",
        36,
        36,
        1,
    )
    rows = cli("sweep", path, "-o", tmp_path / "o", "--format", "csv").stdout.splitlines()
    assert rows[0] == "scenario,site.electricity_price,terms.rate,tco_usd_per_chip_hour"
    assert len(rows) == 37
    wide = toml(
        tmp_path, SMALL | {"grid": {"terms.rate": {"from": 0.02, "to": 0.2, "steps": 50}}}, "w.toml"
    )
    assert "lowest" in cli("sweep", wide, "-o", tmp_path / "w").stdout


def test_progress_states_finished_cases(cut, tmp_path):
    progress_reports = []
    tco.sweep(SMALL, tmp_path / "o", tell=progress_reports.append)
    assert [progress.cases_made for progress in progress_reports] == [0, 7, 14, 21, 28, 35, 36]
    assert progress_reports[-1] == run.Progress(36, 0, 36, 6, 6)
