"""Command lines that give the prediction of a measured row again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from tco.core.types import JsonMapping, Settings


def command_line_text(value: Any) -> str:
    """Return a value as the command line reads it, a number at full precision.

    Args:
        value: Text, number, or number with its unit.

    """
    if isinstance(value, tuple):
        number, unit = value
        return f"{command_line_text(number)} {unit}".strip()
    if isinstance(value, str):
        return value
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def plan_axes_text(axes: JsonMapping) -> str:
    """Return the axes of a plan as `--plan` takes them: tp=8,ep=1."""
    return ",".join(
        f"{axis_name}={command_line_text(axis_value)}" for axis_name, axis_value in axes.items()
    )


def command_line(words: Sequence[str], options: JsonMapping, settings: Settings) -> str:
    """Return a whole command line of `tco`.

    Args:
        words: Command and its arguments.
        options: Options by name; one that is None is left out.
        settings: Inputs that are set, by path.

    """
    line = ["tco", *words]
    for option_name, option_value in options.items():
        if option_value is not None:
            line += (
                [f"--{option_name}"]
                if option_value is True
                else [f"--{option_name}", command_line_text(option_value)]
            )
    for path, option_value in settings.items():
        line += ["--set", f"{path}={command_line_text(option_value)}"]
    return shlex.join(line)
