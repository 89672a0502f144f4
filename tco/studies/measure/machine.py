"""What a machine says of itself: the processor's name, and a GPU's clock and power while it works."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import threading
from pathlib import Path
from types import TracebackType

READINGS = "clocks.sm,power.draw,power.limit"
INTERVAL = "100"  # milliseconds between readings


def processor_name(facts: Path = Path("/proc/cpuinfo")) -> str:
    """Return the model name of the processor."""
    try:
        for line in facts.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine() or "CPU"


class Meter:
    """Clock and power of a GPU, read by nvidia-smi beside the work; silent on a CPU and where there is no nvidia-smi.

    A reading taken after the work shows an idle chip, so readings are collected all the time and those since the last question
    are averaged.
    """

    def __init__(self, device: str) -> None:
        self.program = shutil.which("nvidia-smi") if device == "cuda" else None
        self.readings: list[tuple[float, float, float]] = []
        self.last = ""
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Meter:
        """Start reading."""
        if self.program:
            first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
            command = [self.program, f"--query-gpu={READINGS}", "--format=csv,noheader,nounits", f"--id={first}", f"--loop-ms={INTERVAL}"]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.reader = threading.Thread(target=self.read, daemon=True)
            self.reader.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop reading."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.reader.join()
            if self.process.stdout is not None:
                self.process.stdout.close()

    def read(self) -> None:
        """Collect readings until the program ends; a line that is none, as of a chip without a sensor, is passed over."""
        if self.process is None or self.process.stdout is None:
            return
        for line in self.process.stdout:
            try:
                clock, power, limit = (float(cell) for cell in line.split(","))
            except ValueError:
                continue
            self.readings.append((clock, power, limit))

    def conditions(self) -> str:
        """Return mean clock and power since the last question, or what was last known where no reading fell between."""
        taken, self.readings = self.readings, []
        if taken:
            clock, power, limit = (sum(values) / len(taken) for values in zip(*taken, strict=True))
            self.last = f"SM clock {clock:.0f} MHz, power {power:.0f} of {limit:.0f} W"
        return self.last
