"""Help that teaches: commands and options under headings, and two examples on every page."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

HEADINGS = {  # heading -> the commands under it
    "Analyse": ("compare", "price", "perf", "frontier", "bom", "fabric", "network", "collective", "kernel", "fleet"),
    "Explain": ("explain", "diff", "uncertainty", "sensitivity", "solve", "sweep", "metrics", "inputs", "help"),
    "Export": ("report", "plot", "export"),
    "Check": ("baseline", "claims", "validate", "calibrate", "measure"),
    "Data": ("init", "scenarios", "systems", "parts", "models", "sites", "terms", "workloads", "clusters", "perspectives", "rebates", "sources"),
}
OTHERS = "More"
UNDER = {name: heading for heading, names in HEADINGS.items() for name in names}


class Taught(TyperCommand):
    """A command whose help has its options under headings, and examples at its end."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; what is drawn in frames takes the examples from the epilogue."""
        self.epilog = "\n\n".join(["Examples:", *examples_of(ctx)])
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options."""
        write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, each on a line."""
        write_examples(ctx, formatter)


class Listing(TyperGroup):
    """A group whose help says all of what each command does, not the beginning of it that fits the line."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; what is drawn in frames takes headings and examples from the commands themselves."""
        self.epilog = "\n\n".join(["Examples:", *examples_of(ctx)])
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            command.rich_help_panel = UNDER.get(name, OTHERS) if ctx.parent is None else None
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands."""
        write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a paragraph for each command, under the headings of the program or under one."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            heading = UNDER.get(name, OTHERS) if ctx.parent is None else "Commands"
            command: Any = self.get_command(ctx, name)
            sections.setdefault(heading, []).append((name, (command.help or "").partition("\n\n")[0]))
        write_sections(sections, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, each on a line."""
        write_examples(ctx, formatter)


def place(name: str) -> int:
    """Return where a command stands in the help of the program: unplaced ones come last."""
    return [*UNDER].index(name) if name in UNDER else len(UNDER)


def examples_of(ctx: Any) -> tuple[str, ...]:
    """Return the examples of a page."""
    from tco.cli.examples import examples  # only a page of help needs them

    return examples(ctx.command_path.partition(" ")[2])


def write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Write arguments and options, each under its own heading."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for one in command.get_params(ctx):
        if (record := one.get_help_record(ctx)) is not None:
            usual = "Arguments" if one.param_type_name == "argument" else "Options"
            sections.setdefault(getattr(one, "rich_help_panel", None) or usual, []).append(record)
    write_sections(sections, formatter)


def write_sections(sections: dict[str, list[tuple[str, str]]], formatter: Any) -> None:
    """Write entries under their headings."""
    for heading, entries in sections.items():
        with formatter.section(heading):
            formatter.write_dl(entries)


def write_examples(ctx: Any, formatter: Any) -> None:
    """Write the examples of a page, each on a line of its own."""
    if found := examples_of(ctx):
        with formatter.section("Examples"):
            for line in found:
                formatter.write(f"  {line}\n")
