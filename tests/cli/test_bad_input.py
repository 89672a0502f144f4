"""Bad input gets one clear message on stderr, the right exit code, and never a traceback.

Nothing is printed on stdout.
"""

from __future__ import annotations

import gzip
import json
import re

import pytest

from tco.core.files import data_directory
from tests.catalogue import CATALOGUE
from tests.cli import HEADLINE, document, tco

TWO = ("trn3-nl72x2", "gb200-nvl72")

NAME = "trn3-nl72x2"
USAGE = [  # the command line is wrong: 2
    (["frobnicate"], "frobnicate"),
    (["price"], "scenario"),
    (["price", NAME, "--frobnicate"], "--frobnicate"),
    (["price", NAME, "--set", "nonsense"], "expected PATH=VALUE"),
    (["price", NAME, "--set", "=1"], "expected PATH=VALUE"),
    (["price", NAME, "--set", "site.pue="], "expected PATH=VALUE"),
    (["bom", NAME, "--variant", "gen2"], "expected KEY=VALUE"),
    (["price", NAME, "--format", "xml"], "xml"),
    (
        ["compare", "--no-range", "--output", "/proc/nope/x.csv", "--format", "csv"],
        "/proc/nope/x.csv",
    ),
    (["compare", "--no-range", "--output", "/", "--format", "csv"], "is a folder"),
    (["explain", NAME, "capex_usd", "--depth", "0"], "--depth"),
    (["baseline", "check", "main", "--threshold", "-1"], "--threshold"),
    (["parts", "polish"], "polish"),
    (["init"], "DIR"),
    (["solve", NAME, "--vary", "site.pue"], "--until"),
    (["solve", NAME, "--vary", "site.pue", "--until", "capex_usd"], "expected METRIC=VALUE"),
    (
        [
            "solve",
            NAME,
            "--vary",
            "site.pue",
            "--until",
            "it_power_w_per_chip=1",
            "--from",
            "1.5",
            "--to",
            "1.2",
        ],
        "reversed",
    ),
    (["sensitivity", NAME, "--hold", "--sobol", "--samples", "1000"], "power of two"),
    (["price", NAME, "--anchor", __file__, "--redact"], "own cannot be withheld"),
    (["uncertainty", NAME, "--samples", "1_6"], "'1_6' is not a valid number"),
    (["uncertainty", NAME, "--seed=1_0"], "'1_0' is not a valid number"),
]
DATA = [  # the data is wrong: 3
    (["price", "trn3-nl72x"], "did you mean 'trn3-nl72x2'"),
    (["compare", "gb200-nvl72", "trn3-nl72x"], "did you mean 'trn3-nl72x2'"),
    (["price", "zzz"], "unknown scenario 'zzz'"),
    (["price", NAME, "--set", "terms.life=5 year^9999999"], "exponents of one digit"),
    (["solve", NAME, "--vary", "site.pue", "--until", "capex_usd=1-2"], "'-2' is not a unit"),
    (["perf", NAME, "--plan", "tp=1_0"], "expected a whole number"),
    (["perf", NAME, "--plan", "tp=²"], "expected a whole number"),
    (["bom", "gb200-nvl27"], "did you mean 'gb200-nvl72'"),
    (["bom", NAME, "--variant", "switch=gen9"], "unknown variant switch of trn3-nl72x2 'gen9'"),
    (["bom", NAME, "--variant", "swich=gen2"], "did you mean 'switch'"),
    (
        ["price", NAME, "--set", "parts.trn3.hbm_bandwidth=4.9 TB"],
        "parts.trn3.hbm_bandwidth=4.9 TB",
    ),
    (["price", NAME, "--set", "parts.trn3.hbm_bandwidth=-1 TB/s"], "is outside"),
    (["price", NAME, "--set", "site.pue=0.5"], "site.pue"),
    (["price", NAME, "--set", "site.puee=1.2"], "did you mean 'site.pue'"),
    (["price", NAME, "--set", "site.electricity_price=0.1 USD/kWhr"], "is not a unit"),
    (["bom", NAME, "--set", "nonsense.path=1"], "unknown input path 'nonsense.path'"),
    (
        ["solve", NAME, "--vary", "pue", "--until", "tco_usd_per_chip_hour=+10%"],
        "unknown input path 'pue'; did you mean 'site.pue'?",
    ),
    (["explain", NAME, "tco_usd_per_chip_hr"], "did you mean 'tco_usd_per_chip_hour'"),
    (["compare", "--baseline", "nobody"], "nobody"),
    (["compare", "--data", "/nowhere"], "/nowhere"),
    (["parts", "show", "trn33"], "did you mean 'trn3'"),
    (["systems", "show", "gb200"], "unknown system 'gb200'"),
    (["models", "show", "deepseek-v33"], "did you mean 'deepseek-v3"),
    (["sources", "show", "tco-modl"], "did you mean 'tco-model'"),
    (["scenarios", "show", "gb200-nvl7"], "did you mean 'gb200-nvl72'"),
    (["baseline", "check", "nobody"], "unknown baseline 'nobody'"),
    (["baseline", "save", "../x"], "is no name for a baseline"),
    (["diff", NAME, "gone.json"], "gone.json: no such file"),
    (
        ["sensitivity", NAME, "--metric", "tco_usd_per_chip_hr"],
        "did you mean 'tco_usd_per_chip_hour'",
    ),
    (["sensitivity", "gone.json"], "gone.json"),
    (["solve", NAME, "--vary", "site.puee", "--until", "capex_usd=1"], "did you mean 'site.pue'"),
    (
        ["solve", NAME, "--vary", "site.pue", "--until", "capex_usd=+1%"],
        "site.pue does not move capex_usd",
    ),
]


def one_message(done, code, fragment):
    assert done.exit_code == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert fragment in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "fragment"), USAGE, ids=[" ".join(case[0]) for case in USAGE]
)
def test_wrong_command_line_is_refused_with_one_message(arguments, fragment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one_message(tco(*arguments, COLUMNS="200"), 2, fragment)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("arguments", "fragment"), DATA, ids=[" ".join(case[0]) for case in DATA])
def test_wrong_data_is_refused_with_one_message(arguments, fragment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = tco(*arguments)
    one_message(done, 3, fragment)
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


FILES = {
    "binary": b"\x00\xff\x00 not toml [[[",
    "empty": b"",
    "blank": b"\n\n",
    "broken": b"system = \n",
    "no system": b'title = "x"\n',
    "unknown key": b'systm = "gb200-nvl72"\n',
    "a number for a name": b"system = 5\n",
    "a text for a table": b'system = "gb200-nvl72"\nsite = "us-hyperscale"\n'
    b'terms = "hyperscaler-2025-12"\nworkload = "deepseek-v3-8k-1k"\n'
    b'cluster = "tor-100g-16k"\nset = "x"\n',
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
@pytest.mark.parametrize("command", ["price", "compare", "scenarios show"])
def test_bad_scenario_file_is_refused_with_its_path(command, content, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    one_message(tco(*command.split(), path), 3, f"error: {path}: ")


def test_a_folder_is_no_scenario(tmp_path):
    one_message(tco("price", tmp_path), 3, f"error: {tmp_path}: is a folder")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"schema": "tco.compare/1"}',
        '{"state": 5}',
        '{"state": {"system": "x"}}',
    ],
)
def test_bad_result_file_is_refused_with_its_path(content, tmp_path):
    path = tmp_path / "kept.json"
    path.write_text(content)
    one_message(tco("diff", path, "gb200-nvl72"), 3, "is no saved result")


def test_bad_own_row_is_refused_with_file_and_line(own_data):
    path = own_data.parts("nitro-v6-400g,price,-5,USD,,,2025-12,vendor,tco-model,,")
    one_message(
        tco("price", NAME, "--data", own_data.folder),
        3,
        f"error: {path}:2: parts.nitro-v6-400g.price: value -5 USD is outside",
    )


def test_every_headline_scenario_is_priced_by_its_name():
    for name in HEADLINE:
        assert tco("price", name).exit_code == 0


@pytest.mark.parametrize(
    "path",
    [
        "performance.trainium.launch_time=4 us",
        "shares.astera.price=600 USD/share",
        "rebates.astera-2026.spend_threshold=3 BUSD",
    ],
)
def test_path_is_known_if_any_column_rests_on_it(path):
    """A warrant or a prior of one vendor may be varied in a comparison of several.

    The other columns note that they do not rest on it.
    """
    plain, varied_answer = (
        tco("compare", "--no-range", "--quiet"),
        tco("compare", "--no-range", "--set", path),
    )
    assert varied_answer.exit_code == 0, varied_answer.stderr
    assert plain.stdout != varied_answer.stdout
    words = f"{path.partition('=')[0]} is set, but nothing in this scenario rests on it"
    (note,) = [line for line in varied_answer.stderr.splitlines() if words in line]
    assert "gb200-nvl72" in note.partition(words)[0]


@pytest.mark.parametrize(
    "path",
    [
        "performance.trainum.launch_time=4 us",
        "shares.asterra.price=3 USD/share",
        "performance.trainium.lunch_time=4 us",
    ],
)
def test_unknown_path_is_refused_with_the_nearest(path):
    done = tco("compare", "--set", path)
    assert (done.exit_code, done.stdout) == (3, "")
    assert "unknown" in done.stderr
    assert "did you mean" in done.stderr


LONG = "a" * 300
NO_FILE_HAS_IT = [
    *(
        ("price", LONG),
        ("compare", LONG),
        ("bom", LONG),
        ("explain", LONG, "capex_usd"),
        ("fabric", LONG),
        ("frontier", LONG),
    ),
    *(
        ("parts", "show", LONG),
        ("systems", "show", LONG),
        ("models", "show", LONG),
        ("sites", "show", LONG),
        ("rebates", "show", LONG),
    ),
    *(
        ("price", f"{LONG}.toml"),
        ("models", "show", f"{LONG}.json"),
        ("price", NAME, "--data", LONG),
        ("price", NAME, "--set", f"site={LONG}"),
    ),
    *(
        ("price", NAME, "--set", f"workload.model={LONG}"),
        ("price", NAME, "--set", f"workload.model={LONG}.json"),
    ),
    *(
        ("baseline", "check", LONG),
        ("baseline", "save", LONG),
        ("baseline", "show", LONG),
        ("diff", f"{LONG}.json", NAME),
        ("validate", f"{LONG}.csv"),
    ),
]


@pytest.mark.parametrize(
    "arguments", NO_FILE_HAS_IT, ids=lambda words: " ".join(words).replace(LONG, "LONG")
)
def test_name_that_no_file_can_have_is_refused(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one_message(tco(*arguments), 3, LONG)
    assert list(tmp_path.iterdir()) == []


NOT_MADE = [
    *(
        ("init", LONG),
        ("bom", NAME, "--output", LONG),
        ("export", NAME, "--output", LONG),
        ("export", NAME, "--output", f"{LONG}/"),
    ),
    *(
        ("report", NAME, "--output", f"{LONG}/pages/"),
        ("parts", "new", "chip", "--like", "b200-sxm", "--data", LONG),
    ),
    ("validate", str(data_directory() / "measured" / "training.csv.gz"), "--report", LONG),
]


@pytest.mark.parametrize("arguments", NOT_MADE, ids=lambda words: " ".join(words[:2]))
def test_output_that_cannot_be_made_is_refused(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one_message(tco(*arguments), 2, LONG)
    assert list(tmp_path.iterdir()) == []


TRAIN = "train-gpt3-175b-a100x64"
ZEROS = [
    (TRAIN, "parts.a100-sxm-80gb.scale_out_bandwidth=0 GB/s"),
    (TRAIN, "parts.a100-sxm-80gb.scale_up_bandwidth=0 GB/s"),
    (TRAIN, "parts.a100-sxm-80gb.tdp=0 W"),
    (TRAIN, "metrics.train_tokens_per_s=0 token/s"),
    ("gb200-nvl72", "parts.gb200-gpu.scale_up_bandwidth=0 GB/s"),
    ("gb200-nvl72", "metrics.output_tokens_per_s_per_chip=0 token/s/chip"),
    ("gb200-nvl72", "metrics.usd_per_million_output_tokens=0 USD/Mtoken"),
    ("mi450x-ualoe72", "cluster.port=0G"),
    (NAME, "rebates.credo-2021.spend_threshold=0 USD"),
    (NAME, "shares.credo.price=0 USD/share"),
]


@pytest.mark.parametrize("command", ["price", "perf"])
@pytest.mark.parametrize(("scenario", "zero"), ZEROS, ids=[zero for _, zero in ZEROS])
def test_a_rate_of_zero_is_refused_by_name(command, scenario, zero):
    """A rate by which time and cost are divided is refused before anything is computed.

    There is no warning of the arithmetic.
    """
    done = tco(command, scenario, "--set", zero)
    one_message(done, 3, zero.partition("=")[0])
    assert "Warning" not in done.stderr


def test_a_chip_alone_without_bandwidth_is_no_world_of_several():
    one_message(
        tco("perf", "h100-sxm", "--set", "parts.h100-sxm.scale_up_bandwidth=0 GB/s"),
        3,
        "nothing else joins the",
    )


@pytest.mark.parametrize(
    ("agreement", "zero"),
    [
        ("amd-meta", "strike=0 USD/share"),
        ("amd-meta", "life=0 year"),
    ],
)
def test_an_agreement_without_a_threshold_is_refused(agreement, zero):
    one_message(
        tco("rebates", "show", agreement, "--set", f"rebates.{agreement}.{zero}"),
        3,
        f"rebates.{agreement}.{zero.partition('=')[0]}",
    )


@pytest.mark.parametrize("option", ["--port", "--nic"])
def test_a_port_of_no_rate_is_refused(option):
    ports = {"--switch": "25.6T", "--port": "100G", "--nic": "100G", option: "0G"}
    one_message(
        tco("network", *(word for pair in ports.items() for word in pair)),
        3,
        f"{option}=0G: expected a rate above zero",
    )


def test_value_that_is_not_finite_is_absent_in_every_form():
    from tests.report.helpers import json_number_or_none, significant, to_csv

    for endless in (float("nan"), float("inf"), float("-inf")):
        assert (
            json_number_or_none(endless),
            significant(endless),
            to_csv(["x", "y"], [[endless, 1.5]]),
        ) == (
            None,
            "-",
            "x,y\n,1.5\n",
        )


@pytest.mark.parametrize(
    ("size", "code"), [("-1MiB", 2), ("1Mb", 2), ("1e400MiB", 3), ("nanMiB", 3)]
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_buffer_of_no_size_is_refused(size, code, form):
    done = tco("collective", "h200-hgx8", "--size", size, "--format", form)
    one_message(done, code, size.removesuffix("MiB"))
    assert "Warning" not in done.stderr


def test_as_many_ranks_as_the_cluster_has_are_timed():
    words = (
        "collective",
        "h200-hgx8",
        "--ranks",
        "9" * 8,
        "--set",
        f"cluster.chips={'9' * 8}",
        "--format",
        "json",
    )
    assert all(
        candidate["time_us"] > 0 for candidate in json.loads(tco(*words).stdout)["candidates"]
    )
    one_message(
        tco("collective", "h200-hgx8", "--ranks", "9" * 20),
        3,
        "the cluster has 16,384 chips (cluster.chips); expected 2 to 16384",
    )


@pytest.mark.parametrize(("metric", "count"), [("chips", 72), ("racks", 1)])
def test_explain_of_a_counted_metric_names_where_it_is_counted(metric, count):
    """It is not another workload's metric: the answer says what it is and where it is counted."""
    one_message(
        tco("explain", "mi450x-ualoe72", metric),
        3,
        f"{metric} is {count} for mi450x-ualoe72: counted in the tree",
    )


def test_bound_of_the_error_that_is_no_number_is_refused(tmp_path):
    packed = (CATALOGUE.folders[0] / "measured" / "collectives.csv.gz").read_bytes()
    path = tmp_path / "mine.csv"
    path.write_bytes(b"".join(gzip.decompress(packed).splitlines(keepends=True)[:3]))
    one_message(tco("validate", path, "--max-error", "nan"), 2, "--max-error nan")
    assert tco("validate", path, "--max-error", "1000").exit_code == 0
    assert tco("validate", path, "--max-error", "0").exit_code == 1


def test_unreadable_model_keeps_its_line_in_the_list(own_data):
    own_data.write("models/encoder/config.json", '{"model_type": "bert"}')
    done = tco("models", "list", "--data", own_data.folder, "--format", "json")
    assert done.exit_code == 0, done.stderr
    items = {item["id"]: item for item in json.loads(done.stdout)["items"]}
    assert "model_type 'bert' is not read: an encoder" in items.pop("encoder")["not_read"]
    assert items.keys() == CATALOGUE.models.keys()
    assert all(item["parameters"] > 0 and "not_read" not in item for item in items.values())


DIGITS = "9" * 5000  # more digits than Python reads as a number


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        (
            "models/m/config.json",
            f'{{"model_type": "llama", "hidden_size": {DIGITS}}}',
            ("models", "show", "m"),
            "config.json: Exceeds the limit",
        ),
        (
            "rebates/astera-2022.toml",
            'supplier = "A"\nholder = "Amazon"\nkind = "warrant"\nparts = [["x"]]\ncompany = '
            '"astera"\n',
            ("rebates", "list"),
            "parts",
        ),
        ("rebates/astera-2022.toml", "supplier = 5\n", ("price", "trn3-nl72x2"), "supplier"),
    ],
)
def test_unreadable_own_file_is_named(own_data, name, content, arguments, message):
    own_data.write(name, content)
    done = tco(*arguments, "--data", own_data.folder)
    assert (done.exit_code, done.stdout) == (3, "")
    assert message in done.stderr


def test_list_of_systems_includes_one_without_a_name(own_data):
    own_data.write("systems/odd.toml", 'chip = "b200-sxm"\n')
    assert any(
        item["id"] == "odd"
        for item in document("systems", "list", "--data", own_data.folder)["items"]
    )
    assert any(
        "name" in finding
        for finding in document("systems", "check", "--data", own_data.folder, code=1)["findings"]
    )


def test_a_folder_that_is_a_file_holds_no_baseline(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").write_text("")
    done = tco("baseline", "save", "main", "gb200-nvl72")
    assert done.exit_code == 2
    assert "reports/baselines: cannot be made" in done.stderr


@pytest.mark.parametrize(
    ("path", "text", "form"),
    [
        ("parts.trn3.price", "9000", "'9000 USD'"),
        ("site.electricity_price", "0.083", "'0.083 USD/kWh'"),
        ("terms.utilisation", "80", "'80%'"),
        ("site.electricity_price", "8.3 c/kWh", "'USD/kWh'"),
        ("parts.trn3.price", "9000 EUR", "'USD'"),
        ("site.electricity_price", "83 EUR/MWh", "'USD/MWh'"),
        ("parts.trn3.price", "\N{EURO SIGN}9000", "'1.5 USD'"),
    ],
)
def test_a_value_is_refused_with_the_form_that_works(path, text, form):
    done = tco("price", "trn3-nl72x2", "--set", f"{path}={text}")
    assert done.exit_code == 3
    assert form in done.stderr
    works = form.strip("'") if form[1].isdigit() else f"0.1 {form.strip(chr(39))}"
    assert tco("price", "trn3-nl72x2", "--set", f"{path}={works}").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("explain", "trn3-nl72x2"),
            "METRIC is missing: tco explain trn3-nl72x2 tco_usd_per_chip_hour",
        ),
        (
            ("explain", "capex_usd", "trn3-nl72x2"),
            "the scenario stands first: tco explain trn3-nl72x2 capex_usd",
        ),
        (
            ("collective", "all-reduce"),
            "the system stands first: tco collective gb200-nvl72 --op all-reduce",
        ),
        (("diff", "trn3-nl72x2"), "B is missing: tco diff trn3-nl72x2 "),
        (("diff", "trn3-nl72x2", "capex_usd"), "--metric capex_usd"),
    ],
)
def test_arguments_that_are_missing_or_swapped_are_answered_with_those_that_work(
    arguments, message
):
    done = tco(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("path", "word", "expected"),
    [
        ("attention", "nope", "flash-attention-2"),
        ("dropout", "maybe", "yes"),
        ("expert_kernels", "many", "grouped"),
        ("trained", "some", "adapters"),
        ("gradient_sums", "quick", "separate"),
        ("stage_transfers", "fast", "overlapped"),
        ("programs", "lazy", "compiled"),
        ("loss", "none", "chunked"),
    ],
)
def test_software_word_unknown_is_refused_where_a_scenario_serves(path, word, expected):
    done = tco("perf", "h100-hgx8", "--set", f"workload.{path}={word}")
    assert done.exit_code == 3
    assert f"unknown workload.{path} '{word}'" in done.stderr
    assert expected in done.stderr or "did you mean" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "next_step"),
    [
        (
            ("price", "gb200-nvl72", "--set", "site.electricity_price=0.09", "USD/kWh"),
            "--set 'site.electricity_price=0.09 USD/kWh'",
        ),
        (("compare", "--json"), "--format json"),
        (("compare", "--workload", "chat"), "tco workloads list"),
        (("compare", "--format", "xlsx"), "tco export"),
        (("report", "gb200-nvl72"), "-o report.html"),
        (("baseline", "check"), "tco baseline check"),
        (("network", "gb200-nvl72"), "no system: `tco price SYSTEM` shows the network"),
        (("network", "gb200-nvl72"), "Such as: tco network --chips"),
        (("parts", "show", "trn3", "trn2"), "Such as: tco parts show trn3"),
        (("perf", "gb200-nvl72", "--plan", "tensor=8"), "there are batch, chips, cp"),
        (("fleet", "gb200-nvl72:500"), "500 MW"),
        (("price", "gb200-nvl72", "--set", "terms.rate=9"), "9%"),
        (("price", "trainium3"), "trn3-nl72x2"),
        (("sensitivity", "gb200-nvl72", "--metric", "price"), "tco metrics list"),
        (("compare", "--set", "site=europe"), "tco sites list"),
        (("systems", "list", "-o", "nowhere/systems.csv"), "mkdir -p nowhere"),
    ],
)
def test_message_of_a_mistake_ends_with_the_next_command(
    arguments, next_step, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = tco(*arguments)
    assert done.exit_code in (2, 3)
    assert next_step in " ".join(done.stderr.split())


def test_dates_of_a_part_are_shown_as_months():
    lines = [line.split() for line in tco("parts", "show", "trn3").stdout.splitlines()]
    assert ["released", "2025-12", "fixed", "press", "2026-11", "vendor-datasheets"] in lines
    (volume,) = [line for line in lines if line[:4] == ["first", "month", "in", "volume"]]
    assert volume[4:8] == ["2026-02", "2026-01", "to", "2026-05"]


def test_a_part_shows_the_values_of_the_headline_and_says_how_to_see_a_later_price():
    text = tco("parts", "show", "mi450x").stdout
    assert text.startswith("Part mi450x: values at 2026-11, the price date of `tco compare`")
    assert "Another price date: tco parts show mi450x --date 2027-01." in text
    assert price_lines(text) == [("55,000", "2026-07"), ("62,100", "2027-01")]
    later = tco("parts", "show", "mi450x", "--date", "2027-01").stdout
    assert "values at 2027-01\n" in later
    assert price_lines(later) == [("62,100", "2027-01"), ("55,000", "2027-01")]


def price_lines(text):
    """Return the price in use with its date, and the one of the nearest other date."""
    lines = [line.split() for line in text.splitlines() if line.startswith("price, USD")]
    in_use = [(line[2], line[-2]) for line in lines if line[4] == "to"]
    dated = [(line[2], line[5]) for line in lines if line[4] in ("from", "until")]
    return [*in_use, dated[-1]]


def test_the_first_value_of_a_part_holds_before_its_series_begins():
    text = tco("parts", "show", "mi450x", "--date", "2020-01").stdout
    assert re.search(r"price, USD +66,700 .* 2025-10", text)
    assert "from 2026-07" in text


def test_a_part_without_later_values_says_so():
    text = tco("parts", "show", "connectx-7").stdout
    assert "These values are the same at every price date." in text


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_date_of_a_part_is_refused_where_all_dates_are_given(form):
    done = tco("parts", "show", "mi450x", "--date", "2027-01", "--format", form)
    assert done.exit_code == 2
    assert "--date has no effect with --format" in done.stderr


def test_a_life_of_five_months_is_noted_once_for_all_racks():
    done = tco("compare", *TWO, "--no-range", "--set", "terms.life=5 months")
    (note,) = [line for line in done.stderr.splitlines() if "terms.life" in line]
    assert note.startswith(f"note: {', '.join(TWO)}: terms.life is 5 months")
    assert "below the shipped range, 12 to 96 months" in note
    assert "| life 0.417 years |" in done.stdout


def test_a_format_that_chips_lack_is_said_on_the_screen():
    done = tco("compare", *TWO, "--no-range", "--set", "workload.precision=int4")
    text = " ".join(done.stdout.split())
    assert f"The chips of {TWO[0]} and {TWO[1]} do not compute INT4; it runs as BF16." in text
    assert "do not compute" not in tco("compare", *TWO, "--no-range").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", *TWO, "--why", "--format", "csv"), "--format table, md or json"),
        (("compare", *TWO, "--evidence", "--format", "csv"), "--format table, md or json"),
        (("compare", *TWO, "--choose", TWO[0], "--format", "csv"), "--format table, md or json"),
        (("compare", *TWO, "--racks", "2", "--format", "csv"), "add --curve"),
        (("compare", *TWO, "--no-range", "--seed", "3"), "--no-range asks for none"),
        (("compare", *TWO, "--baseline", TWO[0]), "add --full"),
        (("compare", "--all", "--seed", "3"), "--set alone"),
        (("diff", *TWO, "--full", "--format", "json"), "--format table or md"),
        (("frontier", TWO[1], "--hold"), "add --range"),
        (("sensitivity", TWO[1], "--samples", "64"), "add --sobol"),
    ],
)
def test_option_without_effect_is_refused_with_what_has_it(words, message):
    done = tco(*words)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("service", "gb200-nvl72", "nosuch"), "unknown scenario 'nosuch'"),
        (("compare", "--users", "100"), "tco service SYSTEM --users N"),
        (("compare", "--interactivity", "30"), "--speeds 30"),
        (("version",), "tco --version"),
    ],
)
def test_likely_mistake_ends_with_what_to_type(words, message):
    done = tco(*words)
    assert done.exit_code in (2, 3)
    assert message in " ".join(done.stderr.split())
