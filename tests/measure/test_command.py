"""`tco measure` runs from end to end with a toy library, and with PyTorch where it is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli import document, tco
from tests.measure.toy import SESSION, group, library, machine, operation, rows_in


def ready(kernel):
    """A thousand numbers in a microsecond, and no wide products."""
    if kernel.op == "gemm" and kernel.dtype == "fp32":
        raise RuntimeError("no such format")
    return operation(lambda rounds: rounds * kernel.numbers * 1e-9)


@pytest.fixture
def toy(monkeypatch):
    """A machine with some GPUs."""

    def make(gpus, hip=None, ready=ready):
        monkeypatch.setitem(sys.modules, "torch", library(gpus, hip))
        monkeypatch.setattr(f"{SESSION}.TorchKernels", machine(ready))
        monkeypatch.setattr(f"{SESSION}.measure_group", group)

    return make


def test_kernels_are_written_and_read_back(toy, tmp_path):
    toy(0)
    path = tmp_path / "k.csv"
    done = tco("measure", "--quick", "--name", "my machine", "-o", path)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "note: gemm fp32 4 x 64 x 32: not measured (no such format)" in done.stderr
    assert "no accelerator 'my machine'" in done.stderr
    rows = rows_in(path)
    assert {row["accelerator"] for row in rows} == {"my machine"}
    assert {row["notes"].rsplit("; ", 1)[1] for row in rows} == {"toy"}
    assert all(float(row["time_us"]) > 0 for row in rows)
    validation = document("validate", path)
    assert (validation["kind"], validation["n"], validation["skipped"]) == (
        "kernels",
        len(rows),
        {"unknown-accelerator: 'my machine'": len(rows)},
    )


def test_collectives_of_a_known_chip_are_scored(toy, tmp_path):
    toy(4)
    path = tmp_path / "c.csv"
    done = tco("measure", "--kind", "collectives", "--name", "H100 SXM", "-o", path)
    assert done.exit_code == 0
    assert "note" not in done.stderr
    rows = rows_in(path)
    assert {row["n_gpus"] for row in rows} == {"2", "4"}
    assert {row["library"] for row in rows} == {"NCCL 2.27 via PyTorch 2.9"}
    validation = document("validate", path)
    assert (validation["kind"], validation["scored"], validation["skipped"]) == (
        "collectives",
        len(rows),
        {},
    )


@pytest.mark.parametrize(
    ("gpus", "quick", "counts"),
    [(2, False, {"2"}), (6, False, {"2", "4", "6"}), (8, False, {"2", "4", "8"}), (8, True, {"2"})],
)
def test_ranks_are_powers_of_two_and_all_there_are(toy, tmp_path, gpus, quick, counts):
    toy(gpus, hip="7.0")
    assert (
        tco(
            "measure",
            "--kind",
            "collectives",
            "-o",
            tmp_path / "c.csv",
            *(["--quick"] if quick else []),
        ).exit_code
        == 0
    )
    rows = rows_in(tmp_path / "c.csv")
    assert {row["n_gpus"] for row in rows} == counts
    assert {(row["accelerator"], row["library"]) for row in rows} == {
        ("Toy GPU", "RCCL 2.27 via PyTorch 2.9")
    }


def test_collectives_on_a_cpu_run_between_two_processes(toy, tmp_path):
    toy(0)
    assert tco("measure", "--kind", "collectives", "-o", tmp_path / "c.csv").exit_code == 0
    assert {(row["n_gpus"], row["library"]) for row in rows_in(tmp_path / "c.csv")} == {
        ("2", "gloo via PyTorch 2.9")
    }


def test_gpu_is_measured_if_present(toy, tmp_path):
    for gpus, words, formats in (
        (1, (), {"bfloat16"}),
        (1, ("--device", "cpu"), {"bfloat16", "fp32"}),
        (0, (), {"bfloat16", "fp32"}),
    ):
        toy(gpus, ready=lambda kernel: operation(lambda rounds: rounds * 1e-3))
        assert tco("measure", "--quick", *words, "-o", tmp_path / "k.csv").exit_code == 0
        assert {row["dtype"].partition("/")[0] for row in rows_in(tmp_path / "k.csv")} == formats


def test_missing_gpu_is_refused(toy, tmp_path):
    toy(0)
    done = tco("measure", "--device", "cuda", "-o", tmp_path / "k.csv")
    assert done.exit_code == 3
    assert "--device cuda: PyTorch finds no GPU" in done.stderr


OWN = {
    "hbm_bandwidth": "2 TB/s",
    "max_clock": "1.5 GHz",
    "dies": "1 count",
    "scale_up_bandwidth": "200 GB/s",
    "scale_out_bandwidth": "25 GB/s",
    "scale_up_domain": "4 ",
    "board_chips": "4 ",
    "in_network_reduction": "0 ",
    "point_to_point": "0 ",
    "pcie_only": "0 ",
}


def test_own_machine_is_predicted_and_fitted_once_it_is_described(toy, tmp_path, own_data):
    toy(4)
    path = tmp_path / "c.csv"
    own_data.parts(
        *(
            f"my-chip,{name},{text.replace(' ', ',')},,,2026-11,vendor,inferencex-gpu-specs,,"
            for name, text in OWN.items()
        )
    )
    own_data.write("accelerators.csv", "name,part\nToy GPU,my-chip\n")
    own_data.write("performance/families.toml", 'my-chip = "nvidia"\n')
    done = tco("measure", "--kind", "collectives", "--data", own_data.folder, "-o", path)
    assert "note" not in done.stderr
    before = document("validate", path, "--data", own_data.folder)
    assert before["skipped"] == {}
    fitted = own_data.folder / "calibration" / "mine.csv"
    fitted.parent.mkdir()
    assert tco("calibrate", path, "--data", own_data.folder, "-o", fitted).exit_code == 0
    after = document("validate", path, "--data", own_data.folder)
    assert after["median_ape"] < before["median_ape"] / 2
    # the shipped chips keep their families
    assert tco("collective", "gb200-nvl72", "--data", own_data.folder).exit_code == 0


def test_one_gpu_has_no_collectives(toy, tmp_path):
    toy(1)
    done = tco("measure", "--kind", "collectives", "-o", tmp_path / "c.csv")
    assert (done.exit_code, done.stdout) == (0, "")
    assert (
        "note: collectives need two devices and PyTorch finds 1: skipped, nothing is written"
        in done.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_quiet_measurement_prints_nothing(toy, tmp_path):
    toy(0)
    done = tco("measure", "--quick", "--quiet", "-o", tmp_path / "k.csv")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_a_machine_that_can_run_nothing_writes_nothing(toy, tmp_path):
    toy(0, ready=lambda kernel: (_ for _ in ()).throw(RuntimeError("broken driver")))
    done = tco("measure", "--quick", "-o", tmp_path / "k.csv")
    assert done.exit_code == 3
    assert "error: nothing could be measured; the last was" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--quick"], 2, "--output"),
        (["--kind", "training", "-o", "x.csv"], 2, "training"),
        (["--device", "tpu", "-o", "x.csv"], 2, "tpu"),
        (["-o", "x.csv", "--data", "nowhere"], 3, "nowhere"),
        (
            ["-o", "x.csv"],
            3,
            "error: measuring needs PyTorch, which is not installed: pip install '.[measure]'",
        ),
    ],
)
def test_wrong_arguments_are_refused_with_a_message(
    arguments, code, message, monkeypatch, tmp_path
):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.chdir(tmp_path)
    done = tco("measure", *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_pytorch_measures_this_machine(tmp_path):
    pytest.importorskip("torch")
    counts = {}
    for kind in ("kernels", "collectives"):
        path = tmp_path / f"{kind}.csv"
        command = [
            sys.executable,
            "-m",
            "tco",
            "measure",
            "--kind",
            kind,
            "--device",
            "cpu",
            "--quick",
            "--name",
            "H100 SXM",
            "-o",
            path,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert "not measured" not in done.stderr
        assert "Warning" not in done.stderr
        assert all(float(row["time_us"]) > 0 for row in rows_in(path))
        counts[kind] = len(rows_in(path))
        validation = document("validate", path)
        assert (validation["kind"], validation["n"]) == (kind, counts[kind])
        assert set(validation["skipped"]) <= {"unsupported number format"}
    assert counts == {"kernels": 16, "collectives": 8}
