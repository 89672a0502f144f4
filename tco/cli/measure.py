"""`tco measure`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


class Kind(StrEnum):
    """What is measured."""

    kernels = "kernels"
    collectives = "collectives"


class Device(StrEnum):
    """What it is measured on."""

    cpu = "cpu"
    cuda = "cuda"


@command(app, usual=("data", "quiet"))
def measure(
    given: Given,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.csv", help="Where the rows go.")],
    kind: Annotated[Kind, typer.Option(help="Products, attention and memory of one device, or collectives among several.")] = Kind.kernels,
    device: Annotated[Device | None, typer.Option(help="cpu or cuda; left out: the GPU if there is one.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few small shapes, in seconds: shows that it works, not what the machine can do.")] = False,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Accelerator the rows name; left out: what its driver calls it.")] = None,
) -> None:
    """Measure kernels or collectives on this machine with PyTorch, as rows for `tco validate` and `tco calibrate`."""
    from datetime import datetime

    from tco.cli.load import catalogue_for
    from tco.foundation.files import write_atomically
    from tco.foundation.streams import tell
    from tco.outputs.table import to_csv
    from tco.studies.measure.pytorch import choose_device, device_name, load_torch
    from tco.studies.measure.session import Session, collective_session, kernel_session
    from tco.studies.validation.naming import accelerators

    def say(text: str) -> None:
        if not given.quiet:
            tell(text)

    known = accelerators(catalogue_for(None, given.data))
    torch = load_torch()
    target = choose_device(torch, device)
    accelerator = name or device_name(torch, target)
    asked = Session(torch, target, quick, accelerator, datetime.now().astimezone().date().isoformat(), not given.quiet, say)
    columns, rows = (kernel_session if kind is Kind.kernels else collective_session)(asked)
    if not rows:
        return
    write_atomically(output, to_csv(columns, rows))
    if not known.part(accelerator):
        say(f"note: the catalogue has no accelerator {accelerator!r}, so nothing is predicted for these rows; describe it in --data, or give --name")
