"""Bad input gets one clear message on stderr, nothing on stdout, the right exit code, and never a traceback."""

from __future__ import annotations

import pytest

from tests.cli import HEADLINE, tco

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
    (["compare", "--output", "/proc/nope/x.csv", "--format", "csv"], "/proc/nope/x.csv"),
    (["compare", "--output", "/", "--format", "csv"], "is a folder"),
    (["explain", NAME, "capex_usd", "--depth", "0"], "--depth"),
    (["baseline", "check", "main", "--threshold", "-1"], "--threshold"),
    (["parts", "polish"], "polish"),
    (["init"], "DIR"),
    (["solve", NAME, "--vary", "site.pue"], "--until"),
    (["solve", NAME, "--vary", "site.pue", "--until", "capex_usd"], "expected METRIC=VALUE"),
    (["solve", NAME, "--vary", "site.pue", "--until", "it_power_w_per_chip=1", "--from", "1.5", "--to", "1.2"], "reversed"),
    (["sensitivity", NAME, "--sobol", "--samples", "1000"], "power of two"),
]
DATA = [  # the data is wrong: 3
    (["price", "trn3-nl72x"], "did you mean 'trn3-nl72x2'"),
    (["compare", "gb200-nvl72", "trn3-nl72x"], "did you mean 'trn3-nl72x2'"),
    (["price", "zzz"], "unknown scenario 'zzz'"),
    (["bom", "gb200-nvl27"], "did you mean 'gb200-nvl72'"),
    (["bom", NAME, "--variant", "switch=gen9"], "unknown variant switch of trn3-nl72x2 'gen9'"),
    (["bom", NAME, "--variant", "swich=gen2"], "did you mean 'switch'"),
    (["price", NAME, "--set", "parts.trn3.hbm_bandwidth=4.9 TB"], "parts.trn3.hbm_bandwidth=4.9 TB"),
    (["price", NAME, "--set", "parts.trn3.hbm_bandwidth=-1 TB/s"], "is outside"),
    (["price", NAME, "--set", "site.pue=0.5"], "site.pue"),
    (["price", NAME, "--set", "site.puee=1.2"], "did you mean 'site.pue'"),
    (["price", NAME, "--set", "site.electricity_price=0.1 USD/kWhr"], "is not a unit"),
    (["bom", NAME, "--set", "nonsense.path=1"], "unknown input path 'nonsense.path'"),
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
    (["sensitivity", NAME, "--metric", "tco_usd_per_chip_hr"], "did you mean 'tco_usd_per_chip_hour'"),
    (["sensitivity", "gone.json"], "gone.json"),
    (["solve", NAME, "--vary", "site.puee", "--until", "capex_usd=1"], "did you mean 'site.pue'"),
    (["solve", NAME, "--vary", "site.pue", "--until", "capex_usd=+1%"], "site.pue does not move capex_usd"),
]


def one_message(done, code, fragment):
    assert done.exit_code == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert fragment in " ".join(done.stderr.split())


@pytest.mark.parametrize(("arguments", "fragment"), USAGE, ids=[" ".join(case[0]) for case in USAGE])
def test_a_wrong_command_line(arguments, fragment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one_message(tco(*arguments, COLUMNS="200"), 2, fragment)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("arguments", "fragment"), DATA, ids=[" ".join(case[0]) for case in DATA])
def test_wrong_data(arguments, fragment, tmp_path, monkeypatch):
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
    "a text for a table": b'system = "gb200-nvl72"\nsite = "us-hyperscale"\nterms = "hyperscaler-2025-12"\nworkload = "deepseek-v3-8k-1k"\n'
    b'cluster = "tor-100g-16k"\nset = "x"\n',
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
@pytest.mark.parametrize("command", ["price", "compare", "scenarios show"])
def test_a_bad_scenario_file(command, content, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    one_message(tco(*command.split(), path), 3, f"error: {path}: ")


def test_a_folder_is_no_scenario(tmp_path):
    one_message(tco("price", tmp_path), 3, f"error: {tmp_path}: is a folder")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"state": 5}', '{"state": {"system": "x"}}'])
def test_a_bad_result_file(content, tmp_path):
    path = tmp_path / "kept.json"
    path.write_text(content)
    one_message(tco("diff", path, "gb200-nvl72"), 3, "is no saved result")


def test_a_bad_row_of_ones_own_names_file_and_line(own):
    path = own.parts("nitro-v6-400g,price,-5,USD,,,2025-12,vendor,tco-model,,")
    one_message(tco("price", NAME, "--data", own.folder), 3, f"error: {path}:2: parts.nitro-v6-400g.price: value -5 USD is outside")


def test_every_headline_scenario_survives_its_own_name():
    for name in HEADLINE:
        assert tco("price", name).exit_code == 0


@pytest.mark.parametrize("path", ["performance.trainium.launch_time=4 us", "shares.astera.price=300 USD/share", "rebates.credo-2021.vested=0.5"])
def test_a_path_is_known_if_any_column_rests_on_it(path):
    """A warrant or a prior of one vendor may be varied in a comparison; the other columns say that they do not rest on it."""
    plain, moved = tco("compare", "--quiet"), tco("compare", "--set", path)
    assert moved.exit_code == 0, moved.stderr
    assert plain.stdout != moved.stdout
    assert f"gb200-nvl72: {path.partition('=')[0]} is set, but nothing in this scenario rests on it" in moved.stderr


@pytest.mark.parametrize("path", ["performance.trainum.launch_time=4 us", "shares.asterra.price=3 USD/share", "performance.trainium.lunch_time=4 us"])
def test_a_path_no_column_knows_is_refused_with_the_nearest(path):
    done = tco("compare", "--set", path)
    assert (done.exit_code, done.stdout) == (3, "")
    assert "unknown" in done.stderr
    assert "did you mean" in done.stderr
