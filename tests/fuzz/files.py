"""Damaged data files, scenarios, results and tables, and the commands that read them."""

from __future__ import annotations

import gzip
import re
import tempfile
from contextlib import chdir
from pathlib import Path
from random import Random

import tco
from tests.catalogue import data_directory, scenario_directory
from tests.cli import tco as run

DATA, SCENARIOS = data_directory(), scenario_directory()
SHIPPED = sorted(
    path
    for path in DATA.rglob("*")
    if path.suffix in {".csv", ".toml", ".json"} and path.stat().st_size < 60_000
)
MEASURED = sorted((DATA / "measured").glob("*.csv.gz"))
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
WORD = re.compile(r"[A-Za-z_][\w-]*")
ODD = [
    "",
    "0",
    "-1",
    "nan",
    "inf",
    "1e999",
    "9" * 5000,
    "1e-320",
    "true",
    "[]",
    "{}",
    "null",
    '"',
    "'",
    "\\",
    "\t=1+1",
    "a" * 300,
    "../../etc",
    "\x1b[2J",
    "é",
    "🙂",
]
READERS = {
    "systems": [["systems", "check"], ["bom", "gb200-nvl72"], ["fabric", "trn2-nl16"]],
    "models": [["models", "list"], ["models", "show", "deepseek-v3"], ["perf", "gb200-nvl72"]],
    "rebates": [["rebates", "show", "astera-2026"], ["rebates", "check"]],
    "claims": [["claims"]],
    "scenario": [
        ["price", "here.toml"],
        ["compare", "here.toml", "--no-range"],
        ["scenarios", "show", "here.toml"],
    ],
    "result": [
        ["diff", "here.json", "gb200-nvl72"],
        ["price", "here.json"],
        ["perf", "gb200-nvl72", "--plan", "here.json"],
    ],
    "baseline": [["baseline", "check", "here"], ["baseline", "show", "here"], ["baseline", "list"]],
    "rows": [["validate", "here.csv"], ["validate", "here.csv", "--rows", "--format", "json"]],
    "config": [
        ["models", "show", "here.json"],
        ["perf", "gb200-nvl72", "--set", "workload.model=here.json"],
    ],
}
ANY = [
    ["price", "trn3-nl32x2"],
    ["parts", "check"],
    ["perf", "mi450x-ualoe72"],
    ["parts", "show", "trn3"],
    ["explain", "gb200-nvl72", "tpot_s"],
]


def write_damaged(number: int, folder: Path, seed: int = 0) -> list[str]:
    """Write the damaged file of a number into a folder; return a command that reads it."""
    random = Random(f"{seed}/{number}")
    kind = random.choice(
        ["data"] * 6 + ["scenario", "scenario", "result", "baseline", "rows", "config"]
    )
    source, target = original(kind, random, folder)
    content = source if isinstance(source, bytes) else damaged(source, random)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    room = (
        target.relative_to(folder).parts[1]
        if kind == "data" and len(target.relative_to(folder).parts) > 2
        else kind
    )
    return list(
        random.choice(READERS.get(room, ANY) if random.random() < 0.7 or kind != "data" else ANY)
    )


def original(kind: str, random: Random, folder: Path) -> tuple[str, Path]:
    """Return the text of a sound file of some kind, and where it is to lie."""
    if kind == "data":
        path = random.choice(SHIPPED)
        return path.read_text(encoding="utf-8"), folder / "data" / path.relative_to(DATA)
    if kind == "scenario":
        return random.choice(sorted(SCENARIOS.rglob("*.toml"))).read_text(
            encoding="utf-8"
        ), folder / "here.toml"
    if kind == "config":
        return random.choice(sorted((DATA / "models").rglob("*.json"))).read_text(
            encoding="utf-8"
        ), folder / "here.json"
    if kind == "rows":
        lines = (
            gzip.decompress(random.choice(MEASURED).read_bytes())
            .decode("utf-8")
            .splitlines(keepends=True)
        )
        first = random.randrange(1, max(len(lines) - 5, 2))
        return "".join((lines[0], *lines[first : first + 5])), folder / "here.csv"
    return saved(kind), folder / (
        "here.json" if kind == "result" else "reports/baselines/here.json"
    )


SAVED: dict[str, str] = {}


def saved(kind: str) -> str:
    """Return the text of a saved result or of a baseline."""
    if not SAVED:
        with tempfile.TemporaryDirectory() as name:
            tco.evaluate("gb200-nvl72").save(Path(name) / "here.json")
            SAVED["result"] = (Path(name) / "here.json").read_text(encoding="utf-8")
        SAVED["baseline"] = baseline_text()
    return SAVED[kind]


def baseline_text() -> str:
    """Return the text of a baseline of one scenario."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        assert run("baseline", "save", "here", "gb200-nvl72").exit_code == 0
        return Path("reports/baselines/here.json").read_text(encoding="utf-8")


def damaged(text: str, random: Random) -> bytes:
    """Return a text damaged in one to three places."""
    damaged_text = text
    for _ in range(random.choice((1, 1, 2, 3))):
        damaged_text = random.choice(DAMAGES)(damaged_text, random)
    raw = damaged_text.encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        byte_index = random.randrange(len(raw) + 1)
        raw = random.choice(
            (
                raw[:byte_index],
                raw[:byte_index] + bytes([random.randrange(256)]) + raw[byte_index:],
                b"\xef\xbb\xbf" + raw,
                raw.replace(b"\n", b"\r\n"),
                b"",
            )
        )
    return raw


def replaced(pattern: re.Pattern[str]):
    """Return a function that replaces one match of a pattern by an odd text."""

    def replace(text: str, random: Random) -> str:
        matches = list(pattern.finditer(text))
        if not matches:
            return text
        chosen_match = random.choice(matches)
        replacement = random.choice([*ODD, random.choice(matches).group(0)])
        return text[: chosen_match.start()] + replacement + text[chosen_match.end() :]

    return replace


def lines_moved(text: str, random: Random) -> str:
    """Return a text with a line lost, doubled, or moved."""
    lines = text.splitlines(keepends=True) or [""]
    line_index = random.randrange(len(lines))
    line = lines.pop(line_index)
    again = random.choice((0, 2, 1))
    for _ in range(again):
        lines.insert(random.randrange(len(lines) + 1), line)
    return "".join(lines)


def cells_swapped(text: str, random: Random) -> str:
    """Return a text with two cells of a line swapped, or one of them lost."""
    lines = text.splitlines(keepends=True) or [""]
    line_index = random.randrange(len(lines))
    cells = lines[line_index].split(",")
    first_column, second_column = random.randrange(len(cells)), random.randrange(len(cells))
    cells[first_column], cells[second_column] = cells[second_column], cells[first_column]
    if random.random() < 0.3:
        cells.pop(first_column)
    lines[line_index] = ",".join(cells)
    return "".join(lines)


def nested(text: str, random: Random) -> str:
    """Return a text with something very deep put in."""
    deep = random.choice((50, 5000))
    return random.choice(
        (
            f"{text}\nx = {'[' * deep}{']' * deep}\n",
            text.replace("{", '{"x":' * deep + "{", 1),
            text.replace("= ", f"= {'[' * deep}", 1),
        )
    )


DAMAGES = (
    replaced(NUMBER),
    replaced(NUMBER),
    replaced(WORD),
    replaced(WORD),
    lines_moved,
    cells_swapped,
    nested,
)
