"""Sweeps and uncertainty run on a real Dask scheduler with worker processes, one of them killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import tco
from tests.cli import tco as cli
from tests.sweeps.test_sweep import LARGE, SMALL, bytes_of, toml

pytestmark = pytest.mark.thorough

pytest.importorskip("distributed")
ROOT = Path(__file__).resolve().parents[2]


class Processes:
    """A scheduler on loopback, and its workers."""

    def __init__(self, folder: Path, protocol: str = "tcp") -> None:
        self.folder, self.all, self.file = folder, [], folder / "scheduler.json"
        words = (
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--protocol",
            protocol,
            "--no-dashboard",
            "--scheduler-file",
            str(self.file),
        )
        self.start("scheduler", *words)
        self.wait(lambda: self.file.exists() and self.file.read_text())
        self.address = json.loads(self.file.read_text())["address"]

    def start(self, *words: str, home: Path = ROOT) -> subprocess.Popen:
        module = f"distributed.cli.dask_{words[0]}"
        environment = {**os.environ, "PYTHONPATH": str(home)}
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", module, *words[1:]],
            env=environment,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.all.append(process)
        return process

    def worker(self, home: Path = ROOT) -> subprocess.Popen:
        return self.start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", home=home
        )

    @staticmethod
    def wait(true) -> None:
        deadline = time.monotonic() + 60
        while not true() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert true()

    def end(self) -> None:
        for process in self.all:
            process.kill()
            process.wait()


@pytest.fixture
def processes(tmp_path):
    cluster_processes = Processes(tmp_path)
    yield cluster_processes
    cluster_processes.end()


def test_a_worker_that_is_killed_changes_no_byte(processes, tmp_path):
    path, folder = toml(tmp_path, LARGE), tmp_path / "cluster"
    lost, _ = processes.worker(), processes.worker()
    words = [
        sys.executable,
        "-m",
        "tco",
        "sweep",
        str(path),
        "-o",
        str(folder),
        "--cluster",
        processes.address,
    ]
    sweep_process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    processes.wait(lambda: list(folder.glob("part-*")) or sweep_process.poll() is not None)
    os.kill(lost.pid, signal.SIGKILL)
    process_output = sweep_process.communicate(timeout=120)
    assert sweep_process.returncode == 0, process_output
    tco.sweep(path, tmp_path / "alone")
    assert bytes_of(folder) == bytes_of(tmp_path / "alone")


def test_draws_made_by_workers_are_the_same_to_the_byte(processes):
    """By two workers, of which one is killed once a block is made."""
    run_uncertainty = partial(tco.uncertainty, "trn3-nl72x2", samples=40_000, seed=5)  # two blocks
    lost, _ = processes.worker(), processes.worker()
    cluster_draws = run_uncertainty(cluster=processes.address, tell=lambda _: lost.kill())
    assert lost.wait() != 0
    assert cluster_draws.to_frame().equals(run_uncertainty().to_frame())


FEW = ("uncertainty", "b200-hgx8", "--samples", "100", "--format", "json")


def test_draws_on_data_of_ones_own_are_the_same(processes, own_data):
    own_data.parts("b200,price,41000,USD,30000,60000,2025-11,estimate,tco-estimate-2026,,")
    words = (*FEW, "--data", own_data.folder)
    processes.worker()
    cluster_run = cli(*words, "--cluster", processes.address)
    assert cluster_run.exit_code == 0, cluster_run.stderr
    assert cluster_run.stdout == cli(*words).stdout


def test_cluster_behind_tls_is_reached_by_the_configuration_of_dask(tmp_path, monkeypatch):
    """Who has no certificate is told what is missing, and is let in by none."""
    key, certificate = tmp_path / "me.key", tmp_path / "me.pem"
    openssl_command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(
        [*openssl_command, "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True,
        capture_output=True,
    )
    prefix = "DASK_DISTRIBUTED__COMM__"
    with monkeypatch.context() as tls_environment:
        tls_environment.setenv(f"{prefix}REQUIRE_ENCRYPTION", "True")
        tls_environment.setenv(f"{prefix}TLS__CA_FILE", str(certificate))
        for role in ("SCHEDULER", "WORKER", "CLIENT"):
            tls_environment.setenv(f"{prefix}TLS__{role}__CERT", str(certificate))
            tls_environment.setenv(f"{prefix}TLS__{role}__KEY", str(key))
        processes = Processes(tmp_path, "tls")
        try:
            assert processes.address.startswith("tls://")
            processes.worker()
            words = [sys.executable, "-m", "tco", *FEW, "--cluster", processes.address]
            done = subprocess.run(
                words, check=False, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path
            )
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["metrics"] == json.loads(cli(*FEW).stdout)["metrics"]
            monkeypatch.undo()
            refused = cli(*FEW, "--cluster", processes.address)
        finally:
            processes.end()
    assert refused.exit_code == 2
    assert "DASK_DISTRIBUTED__COMM__TLS__CA_FILE" in refused.stderr


def stranger(tmp_path: Path) -> Path:
    """A program of another version on the same data."""
    program_folder = tmp_path / "other"
    (program_folder / "tco").mkdir(parents=True)
    for package_path in (ROOT / "tco").iterdir():
        if package_path.name != "__init__.py" and package_path.name != "__pycache__":
            (program_folder / "tco" / package_path.name).symlink_to(package_path)
    (program_folder / "tco" / "__init__.py").write_text(
        (ROOT / "tco" / "__init__.py").read_text().replace('"0.1.0"', '"0.0.9"')
    )
    for name in ("data", "scenarios"):
        (program_folder / name).symlink_to(ROOT / name)
    return program_folder


def test_a_worker_with_another_program_is_refused(processes, tmp_path):
    processes.worker(home=stranger(tmp_path))
    done = cli("sweep", toml(tmp_path, SMALL), "-o", tmp_path / "o", "--cluster", processes.address)
    assert done.exit_code == 3
    assert "the worker tcp://127.0.0.1" in done.stderr
    assert "runs tco 0.0.9+" in done.stderr
    assert not list((tmp_path / "o").glob("part-*"))
    drawn = cli(*FEW, "--cluster", processes.address)
    assert drawn.exit_code == 3
    assert "runs tco 0.0.9+" in drawn.stderr
    assert not drawn.stdout


def test_a_worker_of_this_machine_makes_the_same(tmp_path):
    path = toml(tmp_path, SMALL)
    tco.sweep(path, tmp_path / "alone")
    words = [
        sys.executable,
        "-m",
        "tco",
        "sweep",
        str(path),
        "-o",
        str(tmp_path / "one"),
        "--workers",
        "1",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "alone")


def test_a_scheduler_that_does_not_answer_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("tco.evaluation.workers.PATIENCE", 0.5)
    path = toml(tmp_path, SMALL)
    for address in ("tcp://127.0.0.1:1", "127.0.0.1:one", "htp://127.0.0.1:8786"):
        done = cli("sweep", path, "-o", tmp_path / "o", "--cluster", address)
        assert done.exit_code == 2, done.stderr
        assert "no scheduler answers" in done.stderr
        assert address in done.stderr
    drawn = cli(*FEW, "--cluster", "tcp://127.0.0.1:1")
    assert (drawn.exit_code, drawn.stdout) == (2, "")
    assert "--cluster tcp://127.0.0.1:1: no scheduler answers" in drawn.stderr


@pytest.mark.parametrize(("missing", "extra"), [("distributed", "cluster"), ("pyarrow", "sweep")])
def test_missing_package_is_named_before_anything_is_written(tmp_path, monkeypatch, missing, extra):
    monkeypatch.setitem(sys.modules, missing, None)
    done = cli("sweep", toml(tmp_path, SMALL), "-o", tmp_path / "o", "--workers", "2")
    assert done.exit_code == 2
    assert f"needs {missing}: pip install '.[{extra}]'" in done.stderr
