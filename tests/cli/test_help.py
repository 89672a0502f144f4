"""The help of every command, as kept; a change of words is a change one sees in the diff."""

from __future__ import annotations

import pytest
import typer

from tests.cli import app, tco


def commands(group, above=()):
    """Yield the words of every command and group, the program itself first."""
    yield above
    if hasattr(group, "list_commands"):
        group.list_commands(None)  # a command's module is read when it is asked for
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*above, name))


ROOT = typer.main.get_command(app)
# commands are read when they are asked for: here all of them, whichever tests run beside these
ROOT.list_commands(None)
ALL = sorted(commands(ROOT))


@pytest.mark.parametrize("words", ALL, ids=["-".join(words) or "tco" for words in ALL])
def test_help_of_a_command_is_the_kept_text(words, file_regression):
    done = tco(*words, "--help")
    assert done.exit_code == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    file_regression.check(
        "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n",
        basename="-".join(("tco", *words)),
    )


@pytest.mark.parametrize("words", ALL, ids=["-".join(words) or "tco" for words in ALL])
def test_every_command_says_what_it_does(words):
    command = ROOT
    for word in words:
        command = command.commands[word]
    assert len(command.help or "") >= 10


def test_version():
    done = tco("--version")
    assert done.exit_code == 0
    assert done.stdout.startswith("tco ")


def test_nothing_at_all_shows_the_help():
    assert "Usage: tco" in tco().stdout + tco().stderr


@pytest.mark.parametrize(
    "words", [(), ("compare",), ("baseline",), ("baseline", "check"), ("help",)], ids=" ".join
)
def test_help_as_a_command_shows_the_same_page(words):
    assert tco("help", *words).stdout == tco(*words, "--help").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compar",), "tco has no command 'compar'; did you mean 'compare'?"),
        (("compare", "two"), "tco compare has no command 'two'"),
    ],
)
def test_help_of_an_unknown_command_is_refused(words, message):
    done = tco("help", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_program_help_shows_six_commands_first():
    text = tco("--help").stdout
    section = text.partition("Start here:\n")[2].partition("\n\n")[0]
    names = [line.split()[0] for line in section.splitlines()]
    assert names == ["compare", "price", "explain", "frontier", "service", "report"]
    assert text.index("Start here:") < text.index("Look into hardware:") < text.index("Options:")


def test_each_command_of_the_program_takes_one_line_of_help():
    text = tco("--help").stdout.partition("\nOptions:")[0]
    names = [line.split()[0] for line in text.splitlines() if line.startswith("  ")][2:]
    assert names == [*ROOT.list_commands(None)]


@pytest.mark.parametrize("words", ["compare", "price", "baseline", "baseline check"])
def test_help_of_a_command_says_the_exit_codes(words):
    assert (
        "1 a check failed, 2 wrong command line, 3 wrong data" in tco(*words.split(), "-h").stdout
    )
