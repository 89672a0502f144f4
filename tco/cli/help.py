"""Help that teaches: commands and options under headings, and two examples on every page."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

from tco.core.errors import nearest

HEADINGS = {  # heading -> the commands under it
    "Analyse": (
        "compare",
        "price",
        "perf",
        "frontier",
        "bom",
        "fabric",
        "network",
        "collective",
        "kernel",
        "fleet",
        "gigawatt",
        "rents",
        "service",
        "curve",
    ),
    "Explain": (
        "explain",
        "diff",
        "uncertainty",
        "sensitivity",
        "solve",
        "sweep",
        "metrics",
        "inputs",
        "help",
    ),
    "Export": ("report", "plot", "export"),
    "Check": ("baseline", "claims", "validate", "calibrate", "measure"),
    "Data": (
        *(
            "init",
            "scenarios",
            "systems",
            "parts",
            "models",
            "sites",
            "terms",
            "workloads",
            "traffic",
            "clusters",
            "perspectives",
            "rebates",
        ),
        "sources",
    ),
}
OTHERS = "More"
UNDER = {name: heading for heading, names in HEADINGS.items() for name in names}


class HelpPage:
    """A page of help: options under their headings, and examples at its end, each on a line of its
    own.
    """

    epilog: str | None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; what is drawn in frames takes the examples from the epilogue."""
        self.epilog = "\n\n".join(["Examples:", *examples(ctx.command_path)])
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each under its own heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):  # type: ignore[attr-defined]
            if (record := one.get_help_record(ctx)) is not None:
                usual = "Arguments" if one.param_type_name == "argument" else "Options"
                sections.setdefault(getattr(one, "rich_help_panel", None) or usual, []).append(
                    record
                )
        _write_sections(sections, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        if found := examples(ctx.command_path):
            with formatter.section("Examples"):
                for line in found:
                    formatter.write(f"  {line}\n")


class Taught(HelpPage, TyperCommand):
    """A command with such a page."""


class Listing(HelpPage, TyperGroup):
    """A group whose help says all of what each command does, not the beginning of it that fits the
    line.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is named; of an unknown one with no name near it, say which there
        are.
        """
        if (
            ctx.parent is not None
            and args
            and args[0] not in (names := self.list_commands(ctx))
            and not nearest(args[0], names)
        ):
            ctx.fail(f"No such command {args[0]!r}; there are {', '.join(names)}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; what is drawn in frames takes headings from the commands themselves."""
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            command.rich_help_panel = UNDER.get(name, OTHERS) if ctx.parent is None else None
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then a paragraph for each command, under the headings of the program
        or under one.
        """
        super().format_options(ctx, formatter)
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            heading, command = (
                UNDER.get(name, OTHERS) if ctx.parent is None else "Commands",
                self.get_command(ctx, name),
            )
            sections.setdefault(heading, []).append(
                (name, ((command and command.help) or "").partition("\n\n")[0])
            )
        _write_sections(sections, formatter)


def help_position(name: str) -> int:
    """Return a command's position in the help; unplaced commands come last."""
    return [*UNDER].index(name) if name in UNDER else len(UNDER)


def _write_sections(sections: dict[str, list[tuple[str, str]]], formatter: Any) -> None:
    for heading, entries in sections.items():
        with formatter.section(heading):
            formatter.write_dl(entries)


@cache
def kept_examples() -> dict[str, tuple[str, ...]]:
    """Return the examples that are written down, by the words of their command."""
    text = (Path(__file__).parent / "examples.txt").read_text(encoding="utf-8")
    blocks = [block.split("\n    ") for block in text.rstrip().split("\n\n")]
    return {words: tuple(lines) for words, *lines in blocks}


def examples(words: str) -> tuple[str, ...]:
    """Return the examples on the page of a command, each a command line that runs; those of a shelf
    follow from what it shows.
    """
    group, _, what = (
        words.rpartition(" ") if words.endswith((" list", " check")) else (words, "", "")
    )
    shown = kept_examples().get(f"{group} show", ())
    usual = {
        "": (f"{group} list", *shown[:1]),
        "list": (words, f"{words} --format csv"),
        "check": (words, f"{words} --data data"),
    }
    return kept_examples().get(words) or (usual[what] if shown else ())
