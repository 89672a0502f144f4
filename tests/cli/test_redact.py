"""Own values are withheld: no printed number, and no sum, difference or quotient, gives one."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tco import evaluate, load_catalogue
from tests.cli import document, tco

PRICE, TDP, RATE, NOTE = 12345.673, 987.654, 0.0876543, "SECRETNOTE of our own"
COLUMNS = "part,attribute,value,unit,low,high,as_of,kind,source,note,use\n"
ROWS = {
    1: (f"nitro-v6-400g,price,{PRICE},USD,{PRICE},{PRICE},2025-11,vendor,own-quote,{NOTE},\n",),
    2: (
        f"nitro-v6-400g,price,{PRICE},USD,{PRICE},{PRICE},2025-11,vendor,own-quote,{NOTE},\n",
        f"trn3,tdp,{TDP},W,{TDP},{TDP},2025-11,vendor,own-quote,,\n",
    ),
}
COMMANDS = [
    ("bom", "trn3-nl72x2"),
    ("price", "trn3-nl72x2"),
    ("price", "trn3-nl72x2", "--cash-flow"),
    ("explain", "trn3-nl72x2", "capex_usd_per_chip", "--all"),
    ("explain", "trn3-nl72x2", "usd_per_million_output_tokens"),
    ("compare", "trn3-nl72x2", "gb200-nvl72", "--no-range"),
    ("perf", "trn3-nl72x2"),
    ("diff", "trn3-nl72x2", "gb200-nvl72"),
    ("parts", "show", "nitro-v6-400g"),
    ("parts", "list"),
    ("sources", "list"),
    ("systems", "show", "trn3-nl72x2"),
    ("frontier", "trn3-nl72x2"),
    (
        "solve",
        "trn3-nl72x2",
        "--vary",
        "site.electricity_price",
        "--until",
        "tco_usd_per_chip_hour=+10%",
    ),
    ("solve", "trn3-nl72x2", "--vary", "parts.nitro-v6-400g.price", "--until", "capex_usd=+1%"),
]


@pytest.fixture(params=ROWS)
def folder(request, own_data):
    own_data.write("parts/mine.csv", COLUMNS + "".join(ROWS[request.param]))
    own_data.write(
        "sources.csv", "id,title,url,date\nown-quote,SECRETNOTE from a friend,,2025-11\n"
    )
    return own_data.folder


def numbers(document):
    """Yield every number of a document, and the sums of each key over each of its lists."""
    if isinstance(document, dict):
        for value in document.values():
            yield from numbers(value)
    elif isinstance(document, list):
        for value in document:
            yield from numbers(value)
        for key in {key for value in document if isinstance(value, dict) for key in value}:
            key_values = [
                value[key]
                for value in document
                if isinstance(value, dict) and isinstance(value.get(key), (int, float))
            ]
            yield float(sum(key_values))
    elif isinstance(document, (int, float)) and not isinstance(document, bool):
        yield float(document)


def derivable(numbers_shown, secret, tolerance):
    """Tell whether a number, a difference of two, or either over a count is the secret."""
    numbers_shown = np.unique(np.array([number for number in numbers_shown if number]))
    counts = np.array(
        [
            1,
            2,
            4,
            *(number for number in numbers_shown if 1 < number <= 4096 and number == int(number)),
        ]
    )
    secret_multiples = np.unique(np.concatenate([secret * counts, secret / counts]))
    for number in numbers_shown:
        for sign in (1, -1):
            rest = np.append(numbers_shown - sign * number, number)
            nearest_index = np.searchsorted(secret_multiples, rest)
            for candidate_index in (nearest_index, nearest_index - 1):
                near = np.abs(
                    secret_multiples[np.clip(candidate_index, 0, len(secret_multiples) - 1)] - rest
                )
                if (near <= tolerance * np.abs(rest)).any():
                    return True
    return False


def test_search_for_secrets_finds_a_secret(folder):
    """Without --redact the bill gives the price to whoever subtracts."""
    open_bill = json.loads(tco("bom", "trn3-nl72x2", "--data", folder, "--format", "json").stdout)
    for line in open_bill["lines"]:
        if line["part"] == "nitro-v6-400g":
            line["unit_price_usd"] = line["extended_usd"] = None
    assert derivable(numbers(open_bill), PRICE, 1e-9)


@pytest.mark.parametrize("folder", [1, pytest.param(2, marks=pytest.mark.thorough)], indirect=True)
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            command,
            marks=pytest.mark.thorough if command[0] in ("compare", "diff", "frontier") else (),
        )
        for command in COMMANDS
    ],
    ids=" ".join,
)
def test_no_printed_number_reveals_an_own_value(folder, command):
    done = tco(*command, "--data", folder, "--redact", "--format", "json")
    assert done.exit_code == 0, done.stderr
    answer_numbers = list(numbers(json.loads(done.stdout)))
    for secret in (PRICE, TDP):
        assert not derivable(answer_numbers, secret, 1e-9)


@pytest.mark.parametrize(
    ("command", "form"),
    [
        *((command, form) for command in COMMANDS[:2] for form in ("table", "csv", "md")),
        *(pytest.param(command, "table", marks=pytest.mark.thorough) for command in COMMANDS[2:]),
    ],
    ids=str,
)
@pytest.mark.parametrize("folder", [2], indirect=True)
def test_no_printed_text_holds_an_own_value(folder, command, form):
    done = tco(*command, "--data", folder, "--redact", "--format", form)
    assert done.exit_code == 0, done.stderr
    assert not re.search(
        r"12[, ]?345|12[, ]?346|1\.2345|987\.6|SECRETNOTE", done.stdout + done.stderr
    )


@pytest.mark.parametrize("folder", [2], indirect=True)
@pytest.mark.parametrize(
    "command",
    [
        ("price", "trn3-nl72x2"),
        ("baseline", "save", "main", "trn3-nl72x2"),
        ("perf", "trn3-nl72x2"),
    ],
    ids=" ".join,
)
def test_no_error_reveals_an_own_value(folder, command, tmp_path, monkeypatch):
    """An error names the limit that an own tdp exceeds, and not by how much."""
    monkeypatch.chdir(tmp_path)
    site_arguments = (*command, "--data", folder, "--set", "site=us-air-hall")
    plain, redacted_answer = tco(*site_arguments), tco(*site_arguments, "--redact")
    assert (plain.exit_code, redacted_answer.exit_code, redacted_answer.stdout) == (3, 3, "")
    assert re.search(r"draws 2\d\d\.\d kW", plain.stderr)
    assert "a rack of trn3-nl72x2 draws withheld kW" in redacted_answer.stderr
    assert "50 kW (site.rack_kw_max)" in redacted_answer.stderr


def test_error_that_only_own_values_cause_is_withheld():
    """Whether there is one tells how a hidden value stands to a limit that anybody may set."""
    limits = [f"{watts} W" for watts in (98765, 987650)]
    commands = [("price", "trn3-nl72x2", "--set", f"site.rack_kw_max={limit}") for limit in limits]
    assert [tco(*command).exit_code for command in commands] == [3, 0]
    first, second = (tco(*command, "--redact") for command in commands)
    assert first.exit_code == second.exit_code == 0
    assert first.stdout == second.stdout


@pytest.mark.parametrize(
    "command",
    [
        ("price", "gb200-nvl72"),
        ("explain", "gb200-nvl72", "tco_usd_per_chip_hour"),
        pytest.param(("compare", "--no-range"), marks=pytest.mark.thorough),
    ],
    ids=" ".join,
)
def test_setting_is_withheld_as_an_own_value(command):
    done = tco(*command, "--set", f"terms.rate={RATE}", "--redact", "--format", "json")
    assert done.exit_code == 0, done.stderr
    assert not derivable(numbers(json.loads(done.stdout)), RATE, 1e-9)
    assert "8.76" not in tco(*command, "--set", f"terms.rate={RATE}", "--redact").stdout


@pytest.mark.parametrize("form", ["table", "json"])
def test_values_of_an_own_site_are_withheld(own_data, form):
    """Two prices of electricity make the same bytes, and none of them that of the shipped site."""
    shipped, redacted_answers = (
        load_catalogue().find("sites", "us-hyperscale", "site").read_text(encoding="utf-8"),
        [],
    )
    for price in ("0.0711", "0.0822"):
        own_data.write(
            "sites/us-hyperscale.toml", shipped.replace("value = 0.0861", f"value = {price}")
        )
        redacted_answers.append(
            tco("price", "gb200-nvl72", "--data", own_data.folder, "--redact", "--format", form)
        )
    assert [done.exit_code for done in redacted_answers] == [0, 0]
    assert redacted_answers[0].stdout == redacted_answers[1].stdout
    assert "withheld" in redacted_answers[0].stderr
    assert (
        redacted_answers[0].stdout
        != tco("price", "gb200-nvl72", "--redact", "--format", form).stdout
    )


def test_hash_of_own_rows_is_withheld(folder):
    with_own, without = (
        json.loads(tco("bom", "trn3-nl72x2", "--redact", "--format", "json", *more).stdout)
        for more in (("--data", folder), ())
    )
    assert (with_own["data_hash"], without["data_hash"]) == (
        "withheld",
        document("bom", "trn3-nl72x2")["data_hash"],
    )


def test_an_answer_says_that_something_is_withheld(folder):
    assert (
        "note: what rests on your own values is withheld"
        in tco("bom", "trn3-nl72x2", "--data", folder, "--redact").stderr
    )


def test_values_independent_of_own_ones_are_printed(folder):
    has_own_power = "trn3,tdp" in (folder / "parts/mine.csv").read_text()
    plain, redacted_bill = (
        json.loads(tco("bom", "trn3-nl72x2", *more, "--format", "json").stdout)
        for more in ((), ("--data", folder, "--redact"))
    )
    assert redacted_bill["totals"]["chips"] == 144
    quantities = redacted_bill["quantity_by_part"]
    withheld = {part for part, quantity in quantities.items() if quantity is None}
    # which switch is the cheapest over its life rests on what a chip draws
    assert withheld == ({"scorpio-p-32"} if has_own_power else set())
    assert all(
        plain["quantity_by_part"][part] == quantities[part] for part in quantities.keys() - withheld
    )
    same = [
        (plain_line, redacted_line)
        for plain_line, redacted_line in zip(plain["lines"], redacted_bill["lines"], strict=True)
        if plain_line["part"] in ("backplane-cable", "ddr5-dimm")
    ]
    assert same
    assert all(
        plain_line["extended_usd"] == redacted_line["extended_usd"]
        for plain_line, redacted_line in same
    )


def test_environment_may_request_redaction(folder):
    done = tco("bom", "trn3-nl72x2", "--data", folder, TCO_REDACT="1")
    assert "12,350" in tco("bom", "trn3-nl72x2", "--data", folder).stdout
    assert "12,350" not in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ("price", "gb200-nvl72"),
        ("diff", "trn3-nl72x2", "gb200-nvl72"),
        ("scenarios", "check", "--kind", "arithmetic"),
    ],
    ids=" ".join,
)
def test_answer_without_own_values_is_the_same_under_redaction(command):
    """Settings of shipped files, and values that one answer lends another, are no own values."""
    plain, redacted_answer = tco(*command), tco(*command, "--redact")
    assert (plain.exit_code, plain.stdout, plain.stderr) == (
        redacted_answer.exit_code,
        redacted_answer.stdout,
        redacted_answer.stderr,
    )


def test_a_baseline_keeps_no_own_value(folder, tmp_path, monkeypatch):
    """A baseline keeps no own value; it checks the other values and names what changed them."""
    monkeypatch.chdir(tmp_path)
    assert (
        tco("baseline", "save", "main", "trn3-nl72x2", "--data", folder, "--redact").exit_code == 0
    )
    baseline_text = (tmp_path / "reports" / "baselines" / "main.json").read_text()
    assert "SECRETNOTE" not in baseline_text
    for secret in (PRICE, TDP):
        assert not derivable(numbers(json.loads(baseline_text)), secret, 1e-9)
    state = json.loads(baseline_text)["scenarios"]["trn3-nl72x2"]
    assert "capex_usd_per_chip" in state["withheld"]
    assert "output_tokens_per_s_per_chip" in state["metrics"]
    assert tco("baseline", "check", "main", "--data", folder).exit_code == 0
    assert (
        tco(
            "baseline", "check", "main", "--data", folder, "--set", "parts.graviton4.price=9000 USD"
        ).exit_code
        == 0
    )
    changed_check = tco(
        "baseline", "check", "main", "--data", folder, "--set", "parts.trn3.hbm_bandwidth=4.5 TB/s"
    )
    assert changed_check.exit_code == 1
    assert "parts.trn3.hbm_bandwidth" in changed_check.stdout


def test_check_of_a_withheld_metric_fails(folder, tmp_path, monkeypatch):
    """A redacted baseline gates no metric that it withholds, whoever checks it."""
    monkeypatch.chdir(tmp_path)
    names = ("gb200-nvl72", "trn3-nl72x2")
    assert tco("baseline", "save", "red", *names[1:], "--data", folder, "--redact").exit_code == 0
    assert tco("baseline", "save", "plain", "gb200-nvl72").exit_code == 0
    for metric in ("usd_per_million_output_tokens", "perf_per_tco_vs_baseline"):
        done = tco("baseline", "check", "red", "--metric", metric, "--max-increase", "2%")
        assert (done.exit_code, done.stdout) == (3, "")
        assert f"red.json: {metric} rests on your own values and is withheld" in done.stderr
        assert "nothing was checked" in done.stderr
    foreign = tco("baseline", "check", "plain", "--metric", "train_usd_per_trillion_tokens")
    assert foreign.exit_code == 3
    assert "plain.json: keeps no train_usd_per_trillion_tokens; nothing" in foreign.stderr
    # what it keeps is checked, and the rest is counted
    kept_metric = ("--metric", "chips")
    assert tco("baseline", "check", "red", *kept_metric).exit_code == 0
    withheld = json.loads((tmp_path / "reports/baselines/red.json").read_text())["scenarios"]
    count = len(withheld["trn3-nl72x2"]["withheld"])
    done = tco("baseline", "check", "red")
    assert f"trn3-nl72x2: {count} metrics of own values withheld and not checked" in done.stderr
    # beside a scenario that keeps it, the check is partial and says so
    both = tco("baseline", "save", "two", *names, "--data", folder, "--redact")
    assert both.exit_code == 0
    done = tco("baseline", "check", "two", "--metric", "capex_usd_per_chip")
    assert done.exit_code == 0
    assert "trn3-nl72x2: 1 metric of own values withheld and not checked" in done.stderr


def test_redacted_baseline_of_two_scenarios_keeps_no_drawn_figures(folder, tmp_path, monkeypatch):
    """Drawn figures rest on own values, and nothing stands in their place."""
    monkeypatch.chdir(tmp_path)
    names = ("trn3-nl32x2", "gb200-nvl72")
    saved = tco("baseline", "save", "two", *names, "--data", folder, "--redact")
    assert saved.exit_code == 0
    document = json.loads((tmp_path / "reports" / "baselines" / "two.json").read_text())
    assert set(document["scenarios"]) == set(names)
    assert "stakes" not in document


def test_command_that_accepts_a_drift_masks_a_setting_under_redaction(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert tco("baseline", "save", "red", "gb200-nvl72", "--redact").exit_code == 0
    path = tmp_path / "reports" / "baselines" / "red.json"
    document = json.loads(path.read_text())
    document["scenarios"]["gb200-nvl72"]["metrics"]["hbm_bytes"] *= 2
    path.write_text(json.dumps(document))
    price = "parts.gb200-gpu.price=33333 USD"
    done = tco("baseline", "check", "red", "--redact", "--set", price)
    assert "tco baseline save red gb200-nvl72" in done.stdout
    assert "parts.gb200-gpu.price=..." in done.stdout
    assert "33333" not in done.stdout + done.stderr


@pytest.mark.thorough
def test_sensitivity_is_the_same_whatever_the_own_value_is(own_data):
    """The document of one own value equals that of another.

    It holds so many numbers of shipped rows that some difference of two is any number, so no
    search for the secret can fail.
    """
    sensitivity_rows = []
    for tdp in (TDP, 1.07 * TDP):
        own_data.write(
            "parts/mine.csv",
            COLUMNS
            + f"trn3,tdp,{tdp},W,{0.9 * tdp},{1.1 * tdp},2025-11,vendor,own-quote,{NOTE},\n",
        )
        own_data.write(
            "sources.csv", "id,title,url,date\nown-quote,SECRETNOTE from a friend,,2025-11\n"
        )
        arguments = (
            "sensitivity",
            "trn3-nl72x2",
            "--metric",
            "tco_usd_per_chip_hour",
            "--hold",
            "--data",
            own_data.folder,
            "--redact",
        )
        document = json.loads(tco(*arguments, "--format", "json").stdout)
        sensitivity_rows.append({row.pop("path"): row for row in document["inputs"]})
        assert document["metric_value"] is None
        assert "SECRETNOTE" not in tco(*arguments).stdout
    first_rows, second_rows = sensitivity_rows
    for path, row in first_rows.items():
        for name, value in row.items():
            # a swing of what only adds to the price is the same but for its last digit, which may
            # hold it back
            second_value = second_rows[path][name]
            assert None in (value, second_value) or value == (
                pytest.approx(second_value, rel=1e-9) if isinstance(value, float) else second_value
            ), (path, name)
    assert {
        value
        for name, value in first_rows["parts.trn3.tdp"].items()
        if name in ("value", "low", "high", "metric_low", "metric_high", "swing")
    } == {None}
    assert first_rows["site.electricity_price"]["low"] is not None


def test_result_saved_with_own_values_is_refused_under_redaction(folder, tmp_path, monkeypatch):
    """A file holds them as they were: nothing can stand in their place."""
    monkeypatch.chdir(tmp_path)
    evaluate("trn3-nl72x2", catalogue=load_catalogue(folder)).save(tmp_path / "one.json")
    assert tco("baseline", "save", "main", "trn3-nl72x2", "--data", folder).exit_code == 0
    assert (
        tco(
            "price", "trn3-nl72x2", "--data", folder, "--format", "json", "--output", "state.json"
        ).exit_code
        == 0
    )
    for command in (
        ("compare", "one.json", "gb200-nvl72", "--no-range"),
        ("baseline", "check", "main"),
        ("diff", "state.json", "trn3-nl72x2"),
    ):
        done = tco(*command, "--data", folder, "--redact")
        assert (done.exit_code, done.stdout) == (2, ""), command
        assert "was saved with values of your own" in done.stderr
        assert "12345" not in done.stderr


# ---------------------------------------------------------------- two people with other files of
# their own
SYSTEM = """name = "Rack of our own"
chip = "b200-sxm"
owner_pays = "selling-price"
cooling = "air"
source = "tco-estimate-2026"
racks = 1

[assemblies]
world = {{ rack = 1, assembly-test = 1 }}
rack = {{ tray = {0}, nvswitch-5 = 2, power-shelf-33kw = 1 }}
tray = {{ b200-sxm = 2, connectx-7 = 2 }}

[fabric]
kind = "star"
switch = "nvswitch-5"

[fabric.lanes]
nvlink = {0}

[network]
first_tier = "leaf"
scale_out = {{ nic = "connectx-7" }}
"""
TRAY = """\
tray,own_price,3000,USD,2000,4500,2026-03,estimate,tco-estimate-2026,,
tray,power,60,W,40,90,2026-03,estimate,tco-estimate-2026,,
tray,assembly_time,4,h,2,8,2026-03,estimate,tco-estimate-2026,,
"""
SCENARIO = """system = "gb200-nvl72"
workload = "deepseek-v3-8k-1k"
site = "us-hyperscale"
terms = "hyperscaler-2025-12"
cluster = "tor-100g-16k"

[set]
"{0}" = "{1}"
"""


def own_arguments(own_data, kind, is_second_person):
    """Write own data of a kind for one of two people, and return the arguments of a command."""
    value = (3, 5)[is_second_person]
    if kind == "system":
        own_data.write("parts/mine.csv", COLUMNS + TRAY)
        own_data.write("systems/mine.toml", SYSTEM.format(value))
        return ["mine", "--data", own_data.folder]
    if kind == "model":
        config = json.loads(load_catalogue().models["deepseek-v3"].read_text(encoding="utf-8"))
        own_data.write(
            "models/deepseek-v3/config.json", json.dumps(config | {"num_hidden_layers": 10 * value})
        )
        return ["gb200-nvl72", "--data", own_data.folder]
    if kind in ("layers", "date", "software"):
        path, text = {
            "layers": ("model", "layers=3,hidden=40"),
            "date": ("date", "2026-0"),
            "software": ("software", "2026-0"),
        }[kind]
        return [
            "gb200-nvl72",
            "--set",
            f"{'terms' if kind == 'date' else 'workload'}.{path}={text}{value}",
        ]
    if kind == "price":
        own_data.write(
            "parts/mine.csv",
            COLUMNS + f"gb200-gpu,price,{value}0000,USD,{value}0000,{value}0000,2026-03,vendor,"
            f"own-quote,{NOTE},\n",
        )
        own_data.write("sources.csv", "id,title,url,date\nown-quote,SECRETNOTE,,2026-03\n")
        return ["gb200-nvl72", "--data", own_data.folder]
    if kind == "stated text":
        return [own_data.write("mine.toml", SCENARIO.format("terms.date", f"2026-0{value}"))]
    unread = {
        "currency": f"{value}1337 EURO",
        "unit": f"{value}1337 kg",
        "bounds": f"-{value}1337 USD",
        "stated price": f"{value}1337 EURO",
    }[kind]
    if kind == "stated price":
        return [own_data.write("mine.toml", SCENARIO.format("parts.gb200-gpu.price", unread))]
    return ["gb200-nvl72", "--set", f"parts.gb200-gpu.price={unread}"]


KINDS = [
    "system",
    "model",
    "layers",
    "date",
    "software",
    "price",
    "stated text",
    "currency",
    "unit",
    "bounds",
    "stated price",
]
ASKED = {
    "bom": (),
    "price": (),
    "perf": (),
    "compare": ("--no-range",),
    "inputs": (),
    "frontier": (),
    "sensitivity": ("--hold",),
    "explain": ("tco_usd_per_chip_hour",),
    "fabric": (),
    "network": (),
    "uncertainty": ("--samples", "64", "--hold"),
    "diff": ("trn3-nl32x2",),
}
FORMS = ("table", "json", "csv", "md")


def cases():
    """Yield each kind with each command, in JSON and in another form; by turns each meets all.

    Values are withheld before an answer is written in a form, so no three of them have to meet.
    """
    for row, kind in enumerate(KINDS):
        for column, command in enumerate(ASKED):
            forms = {"json", ("table", "csv", "md")[(row + column) % 3]}
            in_every_run = FORMS[row % 4] if (row + column) % 12 == 0 else None
            for form in FORMS:
                if form == in_every_run:
                    yield pytest.param(kind, command, form)
                elif form in forms:
                    yield pytest.param(kind, command, form, marks=pytest.mark.thorough)


@pytest.mark.parametrize(("kind", "command", "form"), list(cases()))
def test_people_with_different_own_files_get_the_same_bytes(own_data, kind, command, form):
    answers = []
    for is_second_person in (False, True):
        first, *more = own_arguments(own_data, kind, is_second_person)
        done = tco(command, first, *ASKED[command], *more, "--redact", "--format", form)
        answers.append((done.exit_code, done.stdout, done.stderr))
    assert answers[0] == answers[1]
    assert answers[0][0] in (0, 2, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_people_with_different_own_files_get_different_answers_without_redaction(own_data, kind):
    """Else the same bytes would say nothing."""
    answers = []
    for is_second_person in (False, True):
        first, *more = own_arguments(own_data, kind, is_second_person)
        done = tco("price", first, *more, "--format", "json")
        answers.append((done.exit_code, done.stdout, done.stderr))
    assert answers[0] != answers[1]


@pytest.mark.parametrize(
    ("folder", "name", "shipped", "text"),
    [
        ("clusters", "tor-100g-16k", 'port = "100G"', 'port = "137G"'),
        ("terms", "hyperscaler-2026-11", 'date = "2026-11"', 'date = "2026-04"'),
    ],
)
def test_a_text_of_an_own_document_that_no_shipped_one_states_is_refused(
    own_data, folder, name, shipped, text
):
    content = load_catalogue().find(folder, name, folder).read_text(encoding="utf-8")
    assert shipped in content
    own_data.write(f"{folder}/{name}.toml", content)
    assert tco("price", "gb200-nvl72", "--data", own_data.folder, "--redact").exit_code == 0
    own_data.write(f"{folder}/{name}.toml", content.replace(shipped, text))
    done = tco("price", "gb200-nvl72", "--data", own_data.folder, "--redact")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "a text cannot be withheld" in done.stderr
    assert text.split('"')[1] not in done.stderr


@pytest.mark.parametrize("kind", ["currency", "unit", "bounds", "stated price"])
def test_an_error_of_a_setting_names_its_path_and_not_its_value(own_data, kind):
    done = tco("price", *own_arguments(own_data, kind, False), "--redact")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "parts.gb200-gpu.price: is no quantity in USD within its bounds" in done.stderr
    assert "1337" not in done.stderr


def test_own_measured_rows_and_claims_are_refused(own_data, tmp_path):
    """An error times a prediction is a measurement."""
    measured_path = own_data.write("mine.csv", "chip,model\n")
    done = tco("validate", measured_path, "--redact")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "measured rows of your own cannot be withheld" in done.stderr
    own_data.write("claims/ledger.csv", "id\n")
    done = tco("claims", "--data", own_data.folder, "--redact")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "claims of your own cannot be withheld" in done.stderr


def test_command_that_cannot_withhold_refuses_the_request_of_the_environment(tmp_path):
    """A request of the environment to withhold is met or refused."""
    done = tco("calibrate", "kernels", "-o", tmp_path / "rows.csv", TCO_REDACT="1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "TCO_REDACT is set, and `tco calibrate` has no --redact" in done.stderr
    assert not (tmp_path / "rows.csv").exists()
