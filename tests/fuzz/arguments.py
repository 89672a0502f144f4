"""Argument lists: declared commands and options with values that fit, nearly fit and do not fit."""

from __future__ import annotations

from random import Random

import typer

from tests.catalogue import CATALOGUE
from tests.cli import app
from tests.scenario_helpers import METRICS

# Those that fit parameters or measure machines take minutes however well they are asked.
LONG = {"calibrate", "measure"}
SCENARIOS = [
    "trn3-nl32x2",
    "gb200-nvl72",
    "mi450x-ualoe72",
    "h100-hgx8",
    "trn2-nl16",
    "trn3-nl72x2@switch=gen2",
    "llama-3.1-405b-training-gb200-nvl72",
]
ODD = [
    *[
        "",
        " ",
        "-",
        "--",
        "0",
        "-1",
        "1",
        "7",
        "1e309",
        "-inf",
        "nan",
        "1_000",
        "1,000",
        "10%",
        "99999999999999999999",
        "0x10",
        "1e-300",
        "²",
    ],
    *[
        "a" * 300,
        "\x1b[31mred",
        "tab\there",
        "two\nlines",
        "ключ",
        "🙂",
        "\u202e",
        "%s%n",
        "${HOME}",
        "$(id)",
        "';--",
        "=1+1",
        "[red]",
        "../..",
        "/",
        ".",
    ],
    *[
        "gone.json",
        "gone.toml",
        "here.toml",
        "here.json",
        "here.csv",
        "no/such/folder/x.csv",
        "/dev/null",
        "/dev/full",
        "null",
        "None",
        "true",
    ],
]
PATHS = [
    *[
        "site.pue",
        "site.electricity_price",
        "terms.rate",
        "terms.life",
        "terms.date",
        "terms.perspective",
        "terms.utilisation",
        "workload",
        "site",
    ],
    *[
        "workload.model",
        "workload.interactivity",
        "workload.input_tokens",
        "workload.formats",
        "workload.engine",
        "parts.trn3.price",
        "parts.trn3.tdp",
    ],
    *[
        "parts.gb200-gpu.hbm_bandwidth",
        "parts.gb200-gpu.price",
        "shares.astera.price",
        "cluster.chips",
        "cluster.port",
        "rebates.astera-2022.vested",
    ],
    *[
        "performance.trainium.launch_time",
        "metrics.chips",
        "parts.nobody.price",
        "site.puee",
        "",
        "=",
        "a.b.c.d",
        "parts..price",
    ],
]
VALUES = [
    *[
        "0.09 USD/kWh",
        "1.2",
        "0",
        "-1",
        "80%",
        "5 year",
        "2026-09",
        "2026-Q3",
        "banana",
        "neocloud",
        "chat",
        "us-air-hall",
        "deepseek-v3",
        "512",
    ],
    *[
        "100 token/s",
        "1e30",
        "1e-30",
        "nan",
        "inf",
        "USD",
        "9000 USD",
        "9000 USD/kWh",
        "1 GB",
        "3.35 TB/s",
        "native",
        "vllm",
        "1e400 USD",
        "",
        "7 bananas",
    ],
]
SIZES = ["1MiB", "64KiB", "0B", "-1MiB", "1", "1e9 B", "9999999 GiB", "MiB"]
FORMS = ["table", "csv", "json", "md", "xml", ""]
NUMBERS = ["0", "1", "2", "8", "64", "-1", "1e3", "nan", "99999999999999999999", "1.5", "many", ""]


def leaves(command, above=()):
    """Yield the words and the declaration of every command."""
    if hasattr(command, "list_commands"):
        command.list_commands(None)
        for name, below in command.commands.items():
            if name not in LONG:
                yield from leaves(below, (*above, name))
    else:
        yield above, command


# Those that take a second or more are drawn a tenth as often as the others.
SLOW = {
    ("claims",),
    ("scenarios", "check"),
    ("systems", "check"),
    ("uncertainty",),
    ("sensitivity",),
    ("sweep",),
    ("report",),
    ("export",),
}
COMMANDS = sorted(leaves(typer.main.get_command(app)), key=lambda command_leaf: command_leaf[0])
WEIGHTS = [1 if words in SLOW else 10 for words, _ in COMMANDS]
IDS = [
    *CATALOGUE.ids("systems"),
    *sorted({part for part, _ in CATALOGUE.part_rows})[:60],
    *CATALOGUE.ids("models")[:10],
]


def draw_arguments(number: int, seed: int = 0) -> list[str]:
    """Return the argument list of a number: a command's own options, damaged one time in four."""
    random = Random(f"{seed}/{number}")
    ((words, command),) = random.choices(COMMANDS, WEIGHTS)
    drawn_words = list(words)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            count = (
                random.choice((1, 1, 1, 2, 3))
                if parameter.nargs == -1
                else random.choice((1, 1, 1, 1, 0, 2))
            )
            drawn_words += [value(parameter, random) for _ in range(count)]
        elif parameter.name != "help" and random.random() < (0.5 if parameter.required else 0.12):
            drawn_words.append(random.choice(parameter.opts))
            drawn_words += (
                [] if getattr(parameter, "is_flag", False) else [value(parameter, random)]
            )
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        drawn_words = damage(drawn_words, random)
    return drawn_words


def damage(words: list[str], random: Random) -> list[str]:
    """Return a list with one word lost, doubled, moved, put in, or changed by a letter."""
    word_index = random.randrange(len(words) + 1)
    before, here, after = (
        words[:word_index],
        words[word_index : word_index + 1],
        words[word_index + 1 :],
    )
    word = here[0] if here else ""
    cut = random.randrange(len(word) + 1)
    kinds = (
        [],
        here * 2,
        [random.choice(ODD), *here],
        [word[:cut] + random.choice("aZ0-=.,/\x00 é") * random.choice((0, 1, 1)) + word[cut + 1 :]],
    )
    return [
        damaged_word.replace("\x00", "")
        for damaged_word in (*before, *random.choice(kinds), *after)
    ]


OUTPUTS = (
    "out.csv",
    "out.json",
    "out.md",
    "out.txt",
    "out.xlsx",
    "out/",
    "out",
    "/dev/null",
    "here.toml/x.csv",
)
VARIANTS = (
    "switch=gen2",
    "nic=400g",
    "switch=gen9",
    "spare_switch_tray=yes",
    "switch",
    "=",
    "a=b",
)
PLANS = (
    "tp=8",
    "tp=8,ep=1",
    "tp=3",
    "batch=0",
    "tp=-1",
    "tp=x",
    "zz=1",
    "tp=8,tp=4",
    "here.json",
    ",",
)
CHOICES = {  # by the name of a parameter
    "vary": PATHS,
    "path": PATHS,
    "form": FORMS,
    "format": FORMS,
    "output": OUTPUTS,
    "report": OUTPUTS,
    "data": ("data", "empty", "gone", "here.toml"),
    "variant": VARIANTS,
    "plan": PLANS,
    "size": SIZES,
    "to": SIZES,
    "to_size": SIZES,
}
CHANGES = ("1", "+10%", "-5%", "gb200-nvl72", "", "nan", "1e300")


def value(parameter, random: Random) -> str:
    """Return a value for a parameter: one of its kind, or, one time in five, anything."""
    if random.random() < 0.2:
        return random.choice(ODD)
    name = parameter.name
    if name in {"set", "settings"}:
        return f"{random.choice(PATHS)}={random.choice(VALUES)}"
    if name in CHOICES:
        return random.choice(CHOICES[name])
    if "metric" in name or name == "until":
        metric = random.choice([*list(METRICS)[:30], "chip", "cost/site"])
        return f"{metric}={random.choice(CHANGES)}" if name == "until" else metric
    if parameter.type.name in {"integer", "float", "integer range", "float range"}:
        return random.choice(NUMBERS)
    if getattr(parameter.type, "choices", None):
        return str(random.choice(list(parameter.type.choices)))
    return random.choice([*SCENARIOS, *SCENARIOS, *IDS, "here.toml", "here.json", "here.csv"])
