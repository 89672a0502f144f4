"""Two people with different own values at the same paths get the same bytes under redaction.

The commands run with their options, in every form. `test_redacted_commands.py` asks each command by
itself.
"""

from __future__ import annotations

import pytest

from tests.catalogue import scenario_directory
from tests.cli import tco

COLUMNS = "part,attribute,value,unit,low,high,as_of,kind,source,note,use\n"
SOURCES = "id,title,url,date\nown-quote,SECRET{} of a friend,https://example.org/{},2025-11\n"
# What two people have of their own. The second stops at what the DMA engines move, the third
# decides which parts stand in the rack.
OWN = {
    "price": lambda person: [("nitro-v6-400g", "price", ("12345.67", "9876.54")[person], "USD")],
    "bandwidth": lambda person: [("trn3", "hbm_bandwidth", ("4.7", "4.4")[person], "TB/s")],
    "parts": lambda person: [
        ("scorpio-p-32", "price", ("183.17", "419.53")[person], "USD"),
        ("trn3", "tdp", ("870", "1130.5")[person], "W"),
    ],
    "clock": lambda person: [("gb200-gpu", "clock", ("2.111", "1.7")[person], "GHz")],
}
PAIR = ("trn3-nl72x2", "gb200-nvl72")
QUICK = [
    ("price", "trn3-nl72x2"),
    ("bom", "trn3-nl72x2"),
    ("compare", *PAIR, "--no-range"),
    ("explain", "trn3-nl72x2", "tco_usd_per_chip_hour"),
    ("perf", "gb200-nvl72"),
    ("parts", "show", "nitro-v6-400g"),
]
ALL = [
    *QUICK,
    ("compare", *PAIR),
    ("compare", *PAIR, "--no-range", "--hall", "20 MW"),
    ("price", "trn3-nl72x2", "--cash-flow"),
    ("explain", "trn3-nl72x2", "usd_per_million_output_tokens", "--all"),
    ("explain", "gb200-nvl72", "output_tokens_per_s_per_chip"),
    ("perf", "trn3-nl72x2"),
    ("perf", "train-gpt3-175b-a100x64"),
    ("diff", *PAIR),
    ("frontier", *PAIR),
    ("sensitivity", "trn3-nl72x2"),
    ("uncertainty", "trn3-nl72x2", "--baseline", "gb200-nvl72", "--samples", "64"),
    (
        "solve",
        "trn3-nl72x2",
        "--vary",
        "site.electricity_price",
        "--until",
        "tco_usd_per_chip_hour=+10%",
    ),
    (
        "solve",
        "gb200-nvl72",
        "--vary",
        "parts.gb200-gpu.clock",
        "--until",
        "usd_per_peak_fp8_pflop_hour=+1e400%",
    ),
    ("solve", "trn3-nl72x2", "--vary", "parts.nitro-v6-400g.price", "--until", "capex_usd=+1%"),
    ("fleet", "trn3-nl72x2:1 MW:2026-01", "gb200-nvl72:1 MW:2027-01"),
    ("collective", "gb200-nvl72"),
    ("kernel", "trn3", "--m", "4096", "--n", "4096", "--k", "4096"),
    ("fabric", "trn3-nl72x2"),
    ("network",),
    ("inputs", "trn3-nl72x2"),
    *(
        (shelf, verb)
        for shelf in ("parts", "systems", "sites", "sources", "rebates", "scenarios")
        for verb in ("list", "check")
    ),
    ("systems", "show", "trn3-nl72x2"),
]
FILES = [
    ("export", *PAIR, "-o", "X.json"),
    ("export", *PAIR, "-o", "X.csv"),
    ("export", "trn3-nl72x2", "-o", "X/"),
    ("export", "trn3-nl72x2", "-o", "X.xlsx"),
    ("plot", "cost", "trn3-nl72x2", "-o", "X.svg"),
    ("plot", "bom", "gb200-nvl72", "-o", "X.svg"),
    ("baseline", "save", "main", "trn3-nl72x2"),
    ("sweep", "switch-generations", "-o", "X"),
]
# Answers are withheld before they are written in a form: each kind in one, one kind in each other.
# The tables are those of every run; the JSON of the price is asked of all commands.
KINDS_AND_FORMS = [
    *((kind, "json") for kind in OWN if kind != "price"),
    ("price", "csv"),
    ("price", "md"),
]


def answer_of(command, own_data, kind, person, monkeypatch, folder):
    """Return all that a command answers one of two people: exit code, both streams, every file."""
    folder.mkdir(exist_ok=True)
    rows = OWN[kind](person)
    own_data.write(
        "parts/mine.csv",
        COLUMNS
        + "".join(
            f"{part},{name},{value},{unit},{value},{value},2025-11,vendor,own-quote,"
            f"SECRET{person},\n"
            for part, name, value, unit in rows
        ),
    )
    own_data.write("sources.csv", SOURCES.format(person, person))
    monkeypatch.chdir(folder)
    done = tco(*command, "--data", own_data.folder, "--redact")
    answer_parts = {"code": done.exit_code, "stdout": done.stdout, "stderr": done.stderr}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        answer_parts[path.relative_to(folder).as_posix()] = path.read_bytes()
        path.unlink()
    return answer_parts


def assert_same_answers(command, own_data, kind, monkeypatch, tmp_path):
    answers = [
        answer_of(command, own_data, kind, person, monkeypatch, tmp_path / "out")
        for person in (0, 1)
    ]
    # whether a check holds is what its exit code is for: that much is told
    if command[:2] == (
        "scenarios",
        "check",
    ):
        assert {answer.pop("code") for answer in answers} <= {0, 1}
    assert answers[0] == answers[1]
    words = b"".join(
        answer_part if isinstance(answer_part, bytes) else str(answer_part).encode()
        for answer_part in answers[0].values()
    )
    assert b"SECRET" not in words
    assert b"Traceback" not in words
    for person in (0, 1):
        for _, name, value, _ in OWN[kind](person):
            assert name != "price" or value.encode() not in words
    return answers[0]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=pytest.mark.thorough if command[0] == "compare" else ())
        for command in QUICK
    ],
    ids=" ".join,
)
def test_two_own_prices_give_the_same_bytes(own_data, monkeypatch, tmp_path, command):
    kind = "clock" if "gb200-nvl72" in command[1:2] else "price"
    assert assert_same_answers(command, own_data, kind, monkeypatch, tmp_path)["code"] == 0


@pytest.mark.parametrize("command", FILES[:1] + FILES[2:3], ids=" ".join)
def test_two_own_prices_give_files_of_the_same_bytes(own_data, monkeypatch, tmp_path, command):
    answer_parts = assert_same_answers(command, own_data, "price", monkeypatch, tmp_path)
    assert any(
        b"withheld" in content for content in answer_parts.values() if isinstance(content, bytes)
    )


@pytest.mark.thorough
def test_values_below_and_beyond_a_limit_give_the_same_bytes(own_data, monkeypatch, tmp_path):
    """An HBM of 4.7 TB/s feeds as much as one of 4.4 where other parts limit the rate.

    The equal answers must not show that a limit is reached.
    """
    assert_same_answers(
        ("compare", *PAIR, "--no-range", "--format", "json"),
        own_data,
        "bandwidth",
        monkeypatch,
        tmp_path,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_every_command_gives_the_same_bytes(own_data, monkeypatch, tmp_path, command):
    assert_same_answers((*command, "--format", "json"), own_data, "price", monkeypatch, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "form"), KINDS_AND_FORMS)
@pytest.mark.parametrize("command", QUICK, ids=" ".join)
def test_every_kind_and_form_gives_the_same_bytes(
    own_data, monkeypatch, tmp_path, command, kind, form
):
    assert_same_answers((*command, "--format", form), own_data, kind, monkeypatch, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("command", FILES, ids=" ".join)
def test_every_file_holds_the_same_bytes(own_data, monkeypatch, tmp_path, command):
    assert_same_answers(command, own_data, "parts", monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("terms.rate={}", ("0.0876543", "0.0712345")),
        ("parts.nitro-v6-400g.price={} USD", ("12345.67", "9876.54")),
        ("site.electricity_price={} USD/kWh", ("0.0512", "0.1777")),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("price", "trn3-nl72x2"),
        pytest.param(("compare", *PAIR, "--no-range"), marks=pytest.mark.thorough),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("form", [pytest.param("table", marks=pytest.mark.thorough), "json"])
def test_two_settings_give_the_same_bytes(command, setting, values, form):
    first_answer, second_answer = (
        tco(*command, "--set", setting.format(value), "--redact", "--format", form)
        for value in values
    )
    assert (first_answer.exit_code, first_answer.stdout, first_answer.stderr) == (
        second_answer.exit_code,
        second_answer.stdout,
        second_answer.stderr,
    )
    assert first_answer.exit_code == 0
    assert not any(value in first_answer.stdout + first_answer.stderr for value in values)


@pytest.mark.parametrize(
    "command",
    [("price",), pytest.param(("frontier", "trn3-nl72x2"), marks=pytest.mark.thorough)],
    ids=" ".join,
)
def test_two_own_scenarios_give_the_same_bytes(tmp_path, command):
    """A scenario file is the user's own whatever its name, and so are its settings elsewhere.

    A frontier takes the workload of its first scenario for the others.
    """
    answers = []
    for rate, speed in (("0.0876543", "47"), ("0.0712", "41")):
        file = tmp_path / "gb200-nvl72.toml"
        settings = f'[set]\n"terms.rate" = "{rate}"\n"workload.interactivity" = "{speed} token/s"\n'
        file.write_text(f"{(scenario_directory() / file.name).read_text()}\n{settings}")
        done = tco(command[0], file, *command[1:], "--redact")
        assert done.exit_code == 0, done.stderr
        answers.append((done.stdout, done.stderr))
    assert answers[0] == answers[1]


def test_fault_of_the_program_prints_no_number(own_data, monkeypatch, tmp_path):
    """Whatever goes wrong inside may hold a value in its words."""

    def broken(*_, **__):
        raise KeyError(2111000000.0)

    monkeypatch.setattr("tco.evaluation.evaluation.evaluate_each", broken)
    done = tco("price", "trn3-nl72x2", "--set", "parts.trn3.tdp=1100 W", "--redact")
    assert done.exit_code == 70
    assert "2111" not in done.stderr
