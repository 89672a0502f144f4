"""A machine names its processor, clocks and conditions from system files and programs."""

from __future__ import annotations

import time

import pytest

from tco.measure.pytorch import Meter, processor_name


def test_the_processor_is_named_by_its_model(tmp_path):
    facts = tmp_path / "cpuinfo"
    facts.write_text(
        "processor\t: 0\nvendor_id\t: X\nmodel name\t: Some CPU @ 2.6: fast\nmodel name\t: Other\n"
    )
    assert processor_name(facts) == "Some CPU @ 2.6: fast"


def test_a_processor_without_a_model_has_some_name(tmp_path):
    assert processor_name(tmp_path / "none")


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """An nvidia-smi of our own, which prints some lines and waits to be ended."""

    def make(*lines):
        program = tmp_path / "nvidia-smi"
        program.write_text(
            "#!/bin/sh\n"
            + "".join(f"echo '{line}'\n" for line in lines)
            + f'echo "$@" > {tmp_path}/asked\nexec sleep 60\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return tmp_path / "asked"

    return make


def settled(meter, count):
    """Wait until a meter has taken some readings."""
    until = time.monotonic() + 20
    while len(meter.readings) < count and time.monotonic() < until:
        time.sleep(0.01)


def test_readings_are_averaged_and_kept_until_there_are_new_ones(smi):
    smi("1980, 600.0, 700.0", "1960, 640.0, 700.0")
    with Meter("cuda") as meter:
        settled(meter, 2)
        assert meter.conditions() == "SM clock 1970 MHz, power 620 of 700 W"
        assert meter.readings == []
        assert meter.conditions() == "SM clock 1970 MHz, power 620 of 700 W"
    assert meter.process.returncode is not None


def test_a_line_that_is_no_reading_is_passed_over(smi):
    smi("[N/A], [N/A], [N/A]", "No devices were found", "1500, 300.5, 400")
    with Meter("cuda") as meter:
        settled(meter, 1)
        assert meter.conditions() == "SM clock 1500 MHz, power 300 of 400 W"


def test_the_first_visible_gpu_is_asked(smi, monkeypatch):
    command_log = smi("1500, 300, 400")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    with Meter("cuda") as meter:
        settled(meter, 1)
        until = time.monotonic() + 20
        while not (command_log.exists() and command_log.read_text()) and time.monotonic() < until:
            time.sleep(0.01)
    assert "--id=3 " in command_log.read_text()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_machine_without_nvidia_smi_has_no_conditions(device, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with Meter(device) as meter:
        assert meter.conditions() == ""


def test_a_cpu_asks_no_gpu(smi):
    smi("1500, 300, 400")
    with Meter("cpu") as meter:
        assert meter.process is None
