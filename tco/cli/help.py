"""Help that teaches: commands and options under headings, and two examples on every page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from tco.core.errors import TcoError, UsageError, nearest

HEADINGS = {  # heading -> the commands under it
    "Start here": ("compare", "price", "explain", "frontier", "service", "report"),
    "Look into an answer": ("perf", "uncertainty", "sensitivity", "solve", "diff", "sweep"),
    "Plan a site": ("fleet", "gigawatt", "rents", "curve"),
    "Look into hardware": ("bom", "fabric", "network", "collective", "kernel"),
    "Write files": ("plot", "export"),
    "Check": ("baseline", "claims", "validate", "calibrate", "measure"),
    "Find names and begin your own": ("inputs", "metrics", "init", "help"),
    "Catalogue, each with list, show and check": (
        *("scenarios", "systems", "parts", "models", "sites", "terms", "workloads"),
        *("traffic", "clusters", "perspectives", "rebates", "sources"),
    ),
}
OTHERS = "More"
EXIT_CODES = "0 answered, 1 a check failed, 2 wrong command line, 3 wrong data, 70 defect"
UNDER = {
    command_name: heading
    for heading, command_names in HEADINGS.items()
    for command_name in command_names
}


# error of a command line; every one has a message and is told apart by what else it has
CommandLineError: Any = typer.BadParameter.__base__
# option that people try -> what does the same
SAME_AS = {
    "--json": "--format json",
    "--csv": "--format csv",
    "-q": "--quiet",
    "--workload": "--set workload=NAME; `tco workloads list` shows the names",
    "--site": "--set site=NAME; `tco sites list` shows the names",
    "--model": "--set workload.model=ID; `tco models list` shows the ids",
    "--metric": "`tco uncertainty SCENARIO --metric METRIC`, or `tco explain SCENARIO METRIC`",
    "--perspective": "--set terms.perspective=on-premises; `tco perspectives list` shows all",
    "--users": "`tco service SYSTEM --users N`, which sizes racks for users",
    "--interactivity": "--speeds 30, or --set 'workload.interactivity=30 token/s'",
    "--speed": "--speeds 30",
    "--utilisation": "--set terms.utilisation=80%",
    "--utilization": "--set terms.utilisation=80%",
    "--life": "--set 'terms.life=5 year'",
    "--rate": "--set terms.rate=9%",
}
# command that takes no name -> what shows the same of a system
WITHOUT_SYSTEM = {
    "tco network": "`tco network` takes switches and chips, but no system: `tco price SYSTEM` "
    "shows the network that a system buys."
}
# form that `--format` lacks -> command that writes it
WRITTEN_BY = {
    "xlsx": "tco export SCENARIO -o FILE.xlsx",
    "parquet": "tco export SCENARIO -o FILE.parquet",
    "html": "tco report SCENARIO -o FILE.html",
    "svg": "tco plot KIND SCENARIO -o FILE.svg",
    "png": "tco plot KIND SCENARIO -o FILE.png",
}
NUMBER_KINDS = ("int", "float")  # how names of the types of numbers begin
UNQUOTED = re.compile(r"(?P<path>[\w.-]+)=(?P<number>[-+]?[\d.,]+[kKmM]?)")


def _refuse_unquoted_settings(args: Sequence[str]) -> None:
    """Refuse a setting whose unit the shell has split off.

    Raises:
        UsageError: A unit follows `--set PATH=NUMBER` as a word of its own.

    """
    for option, setting, unit_text in zip(args, args[1:], args[2:], strict=False):
        if option != "--set" or not UNQUOTED.fullmatch(setting) or unit_text.startswith("-"):
            continue
        from tco.core.units import unit

        try:
            unit(unit_text)
        except TcoError:
            continue
        raise UsageError(
            f"--set {setting} {unit_text}: the shell has split number and unit; quote both: "
            f"--set '{setting} {unit_text}'"
        )


def _next_step(error: Any, ctx: Any) -> str:
    """Return words for the end of an error of the command line: what to type instead."""
    if hasattr(error, "option_name"):
        substitute = SAME_AS.get(error.option_name)
        return (
            f" Use {substitute}." if substitute else f" `{ctx.command_path} -h` lists the options."
        )
    if hasattr(error, "param_type"):
        return _example_text(ctx)
    if error.message.startswith("Got unexpected extra argument"):
        substitute = WITHOUT_SYSTEM.get(ctx.command_path)
        return (f" {substitute}" if substitute else "") + _example_text(ctx)
    for form, command in WRITTEN_BY.items():
        if (
            isinstance(error, typer.BadParameter)
            and f"'{form}'" in error.message.partition(" is ")[0]
        ):
            return f" `{command}` writes it."
    return ""


def _example_text(ctx: Any) -> str:
    lines = examples(ctx.command_path)
    return f" Such as: {lines[0]}" if lines else ""


class HelpPage:
    """A page of help: options under their headings, then examples and exit codes."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each under its own heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):  # type: ignore[attr-defined]
            if (record := parameter.get_help_record(ctx)) is not None:
                usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
                heading = getattr(parameter, "rich_help_panel", None) or usual
                sections.setdefault(heading, []).append(record)
        _write_sections(sections, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, then what the exit codes mean."""
        if lines := examples(ctx.command_path):
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"  {line}\n")
        with formatter.section("Exit codes"):
            formatter.write(f"  {EXIT_CODES}\n")


class Taught(HelpPage, TyperCommand):
    """A command with such a page, whose errors say what to type instead."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line; an error ends with the next thing to try."""
        _refuse_unquoted_settings(args)
        try:
            self._refuse_underscored_numbers(ctx, args)
            return super().parse_args(ctx, args)
        except CommandLineError as error:
            hint = _next_step(error, ctx)
            if getattr(error, "option_name", None) in SAME_AS:
                error.possibilities = None
            if hint:
                message = error.message.rstrip(".")
                error.message = f"{message}.{hint}" if message else hint.strip()
            raise

    def _refuse_underscored_numbers(self, ctx: Any, args: list[str]) -> None:
        """Refuse `1_0` where a number is expected: Python reads it as 10.

        Raises:
            typer.BadParameter: A number has an underscore.

        """
        texts, _, _ = self.make_parser(ctx).parse_args(args=[*args])
        for parameter in self.get_params(ctx):
            option_text, kind = texts.get(parameter.name or ""), parameter.type.name
            if (
                kind.startswith(NUMBER_KINDS)
                and isinstance(option_text, str)
                and "_" in option_text
            ):
                raise typer.BadParameter(
                    f"{option_text!r} is not a valid number; leave out the underscore",
                    ctx=ctx,
                    param=parameter,
                )


class Listing(HelpPage, TyperGroup):
    """Group whose help shows each command's whole summary, beyond one line."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the named command; an unknown name without a near one lists all commands."""
        if args[:1] == ["version"] and ctx.parent is None:
            ctx.fail("No such command 'version'. `tco --version` prints the version.")
        if (
            ctx.parent is not None
            and args
            and args[0] not in (command_names := self.list_commands(ctx))
            and not nearest(args[0], command_names)
        ):
            ctx.fail(f"No such command {args[0]!r}; there are {', '.join(command_names)}")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command under its heading, then the options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for command_name in self.list_commands(ctx):
            heading = UNDER.get(command_name, OTHERS) if ctx.parent is None else "Commands"
            command: Any = self.get_command(ctx, command_name)
            summary = (command.help or "").partition("\n\n")[0]
            sections.setdefault(heading, []).append((command_name, summary))
        _write_sections(sections, formatter)
        super().format_options(ctx, formatter)


def help_position(command_name: str) -> int:
    """Return a command's position in the help; unplaced commands come last."""
    return [*UNDER].index(command_name) if command_name in UNDER else len(UNDER)


def _write_sections(sections: dict[str, list[tuple[str, str]]], formatter: Any) -> None:
    for heading, entries in sections.items():
        with formatter.section(heading):
            formatter.write_dl(entries)


@cache
def kept_examples() -> dict[str, tuple[str, ...]]:
    """Return the examples that are written down, by the words of their command."""
    examples_text = (Path(__file__).parent / "examples.txt").read_text(encoding="utf-8")
    blocks = [block.split("\n    ") for block in examples_text.rstrip().split("\n\n")]
    return {words: tuple(lines) for words, *lines in blocks}


def examples(words: str) -> tuple[str, ...]:
    """Return the example command lines of a command's page, derived for shelves of entries."""
    group, _, what = (
        words.rpartition(" ") if words.endswith((" list", " check")) else (words, "", "")
    )
    show_examples = kept_examples().get(f"{group} show", ())
    usual = {
        "": (f"{group} list", *show_examples[:1]),
        "list": (words, f"{words} --format csv"),
        "check": (words, f"{words} --data data"),
    }
    return kept_examples().get(words) or (usual[what] if show_examples else ())
