"""The written page: verdict, embedded program, names as plain words, own values withheld."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape

import pytest

from tco.report.curve import cost_text
from tco.report.page.whatif import slider_bounds
from tco.report.page.write import embedded
from tests.cli import document, tco
from tests.report.helpers import vendor_colours
from tests.scenario_helpers import HEADLINE, result

PAIR = ("trn3-nl72x2", "gb200-nvl72")
PRICE, RATE, NOTE = 12345.67, 0.0871234, "SECRETNOTE of our own"
ROW = f"nitro-v6-400g,price,{PRICE},USD,{PRICE},{PRICE},2025-11,vendor,own-quote,{NOTE},"


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The file of a pair."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    done = tco("report", *PAIR, "-o", path)
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    return path.read_text(encoding="utf-8")


def program(text):
    page_data = json.loads(re.search(r'id="whatif-data">(.*?)</script>', text, re.S).group(1))
    keys = page_data["controls"].keys()
    return page_data | {
        "controls": [
            dict(zip(keys, row, strict=True))
            for row in zip(*page_data["controls"].values(), strict=True)
        ]
    }


# ---------------------------------------------------------------- the file
def test_page_needs_no_other_file(text):
    assert len(text.encode()) < 1_500_000
    assert not re.search(
        r"<(script|img|iframe|link|object|embed)[^>]+(src|href|data)=[\"']?(https?:|//)", text
    )
    assert not re.search(r"@import|url\(", text)
    assert "default-src 'none'" in unescape(text)
    for name in PAIR:
        assert name in text


@pytest.mark.thorough
def test_without_names_it_is_of_the_headline(tmp_path):
    assert tco("report", "-o", tmp_path / "report.html").exit_code == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(text.encode()) < 2_000_000
    assert len(re.findall("<svg ", text)) >= 2 * (4 * 3 + 5)
    for name in HEADLINE:
        assert name in text


def test_page_has_all_that_a_report_has(text):
    sections = re.findall(r'<section id="([\w-]+)"', text)
    assert sections[:3] == ["frontier", "what-if", "summary"]
    assert {
        "order",
        "cost",
        "roofline",
        "frontier",
        "tornado",
        "map",
        "fabric",
        "bom",
        "sources",
        "validation",
    } <= set(sections)
    figures = re.findall(r"<svg [^>]*>\s*<title>(.*?)</title>", text)
    # rooflines, tornados and bills of two, and one each of cost, frontier, map, fabric and errors
    assert len(figures) == 2 * (2 * 3 + 5)
    advice = unescape(re.search(r"<h1>(.*?)</h1>", text).group(1))
    assert advice in " ".join(tco("compare", *PAIR).stdout.split())


def test_page_has_every_point_of_the_curve(text):
    costs = [
        curve_point["median_usd_per_million_output_tokens"]
        for curve_point in document("compare", *PAIR)["curve"]
    ]
    table = re.search(r'<section id="frontier".*?</section>', text, re.S).group(0)
    assert len(costs) >= 10
    for cost in filter(None, costs):
        assert re.search(rf">{re.escape(cost_text(cost))}( \*)?<", table), cost


def test_a_vendor_keeps_its_colour():
    colours = {}
    for names in (
        PAIR,
        PAIR[::-1],
        ("gb200-nvl72", "mi450x-ualoe72"),
        ("h100-hgx8", "trn3-nl32x2"),
    ):
        for name, colour in zip(
            names, vendor_colours([result(name) for name in names]), strict=True
        ):
            colours.setdefault(name[:2], set()).add(colour)
    assert {len(colour_set) for vendor, colour_set in colours.items() if vendor != "h1"} == {1}
    assert colours["h1"] == colours["gb"]
    two = vendor_colours([result("trn3-nl32x2"), result("trn3-nl72x2")])
    assert two[0] != two[1]


# ---------------------------------------------------------------- the folder
@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The pages of one system."""
    path = tmp_path_factory.mktemp("pages") / "public"
    done = tco("report", "gb200-nvl72", "-o", f"{path}/")
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    return path


@pytest.mark.thorough
def test_pages_lead_to_each_other(folder):
    pages = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.html")}
    assert {
        "index.html",
        "report.html",
        "regimes.html",
        "accuracy.html",
        "studies.html",
        "method.html",
        "gb200-nvl72.html",
    } == set(pages)
    for text in pages.values():
        links = set(re.findall(r'<a href="([^"#:]+)"', text))
        assert links == set(pages)
        assert "default-src 'none'" in unescape(text)
    ranked = re.search(r'<section id="ranking".*?</section>', pages["index.html"], re.S).group(0)
    assert all(system_row["id"] in ranked for system_row in document("systems", "list")["items"])
    assert "usd_per_million" in pages["method.html"]


@pytest.mark.thorough
def test_a_folder_keeps_what_it_holds(folder, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    done = tco("report", "gb200-nvl72", "-o", f"{tmp_path}/")
    assert (done.exit_code, "holds other files" in done.stderr) == (2, True), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").write_text("keep")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert tco("report", "gb200-nvl72", "-o", f"{folder}/").exit_code == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (folder / "mine.txt").unlink()


@pytest.mark.thorough
def test_the_same_inputs_give_the_same_bytes(tmp_path):
    first_folder, second_folder = tmp_path / "one", tmp_path / "other"
    for folder in (first_folder, second_folder):
        folder.mkdir()
        assert tco("report", "gb200-nvl72", "-o", folder / "report.html").exit_code == 0
    assert (first_folder / "report.html").read_bytes() == (
        second_folder / "report.html"
    ).read_bytes()


def test_script_of_the_page_is_allowed_by_its_hash(text):
    script = re.search(r"<script>(.*?)</script>", text, re.S).group(1)
    mark = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{mark}'" in unescape(text)


def test_embedded_text_cannot_end_its_element():
    embedded_text = embedded({"title": "</script><script>alert(1)</script><!--"})
    assert "<" not in embedded_text
    assert json.loads(embedded_text) == {"title": "</script><script>alert(1)</script><!--"}


@pytest.mark.parametrize("name", ["report", "report.pdf", "report.html.gz"])
def test_an_unknown_ending_is_refused(tmp_path, name):
    done = tco("report", "-o", tmp_path / name)
    assert done.exit_code == 2
    assert "expected .html, .htm or a folder/" in done.stderr
    assert not (tmp_path / name).exists()


@pytest.mark.thorough
def test_a_scenario_that_trains_has_the_price_of_training(tmp_path):
    path = tmp_path / "report.html"
    done = tco("report", "train-gpt3-175b-a100x64", "-o", path)
    assert done.exit_code == 0, done.stderr
    text = path.read_text(encoding="utf-8")
    assert "per trillion training tokens" in re.search(r"<h1>(.*?)</h1>", text).group(1)
    assert (
        "train_usd_per_trillion_tokens"
        in program(text)["program"]["ways"][0]["hyperscaler"][0]["results"][0]
    )


@pytest.mark.thorough
def test_report_of_two_training_scenarios_maps_the_price_of_training(tmp_path):
    names = ("llama-3.1-405b-training-gb200-nvl72", "llama-3.1-405b-training-trn3-nl72x2")
    page = tmp_path / "training.html"
    done = tco("report", *names, "--output", str(page))
    assert done.exit_code == 0, done.stderr
    assert 'id="map-title"' in page.read_text(encoding="utf-8")


def test_impossible_page_is_refused_with_the_reason(tmp_path):
    path = tmp_path / "report.html"
    done = tco("report", "trn3-nl72x2", "--set", "site=us-air-hall", "-o", path)
    assert done.exit_code == 0, done.stderr
    text = path.read_text(encoding="utf-8")
    assert re.search(r"<h1>No verdict: trn3-nl72x2 does not fit its site", text)
    assert re.search(r"trn3-nl72x2: no frontier, .*a rack position takes 50 kW", done.stderr)
    assert "no frontier" in text


def test_a_saved_result_has_no_formulas(tmp_path):
    path = tmp_path / "saved.json"
    result("gb200-nvl72").save(path)
    done = tco("report", path, "-o", tmp_path / "report.html")
    assert done.exit_code == 3
    assert "a saved result holds no formulas" in done.stderr
    assert not (tmp_path / "report.html").exists()


# ---------------------------------------------------------------- the program
def test_what_is_computed_alike_is_one_line_and_what_is_taken_is_computed_before(text):
    page_program = program(text)["program"]
    first = len(page_program["leaves"])
    assert len({tuple(line) for line in page_program["lines"]}) == len(page_program["lines"])
    for line_index, (_, *cells) in enumerate(page_program["lines"]):
        assert all(0 <= cell < first + line_index for cell in cells)


def test_page_carries_every_plan_of_each_rack_for_every_owner(text):
    page_data = program(text)
    everybody = {perspective["id"] for perspective in document("perspectives", "list")["items"]}
    for name, ways_by_payer in zip(
        page_data["scenarios"], page_data["program"]["ways"], strict=True
    ):
        assert set(ways_by_payer) == everybody
        assert (
            len(set(page_data["program"]["plans"][ways_by_payer["hyperscaler"][0]["plans"]])) > 20
        ), name
    built_up, bought = (
        ways_by_payer["hyperscaler"] for ways_by_payer in page_data["program"]["ways"]
    )
    # a chip that is built up has a price of its own only if one is given
    assert (len(built_up), len(bought)) == (
        2,
        1,
    )


def test_a_slider_spans_what_is_believed_and_more(text):
    controls = program(text)["controls"]
    assert sum(control["open"] for control in controls) == 13
    opened = {control["path"] for control in controls if control["open"]}
    assert {
        "terms.life",
        "terms.rate",
        "workload.interactivity",
        "site.electricity_price",
        "parts.trn3.price",
        "parts.gb200-gpu.price",
    } <= opened
    for control in controls:
        assert control["least"] <= control["begin"] < control["end"] <= control["most"], control[
            "path"
        ]
        ends = (
            control["values"][0],
            *(end for end in (control["low"], control["high"]) if end is not None),
        )
        assert control["begin"] <= min(ends) + abs(min(ends)) * 1e-5
        assert control["end"] >= max(ends) - abs(max(ends)) * 1e-5


@pytest.mark.parametrize(
    ("value", "low", "high", "least", "most", "expected"),
    [
        (4.0, 3.0, 5.0, 0.0, 1e9, (2.0, 8.0)),
        (4.0, 1.0, 50.0, 0.0, 1e9, (1.0, 50.0)),
        (0.8, None, None, 0.0, 1.0, (0.4, 1.0)),
        (0.0, None, None, 0.0, 1e9, (0.0, 1.0)),
        (-2.0, None, None, -10.0, 10.0, (-4.0, -1.0)),
    ],
)
def test_where_a_slider_begins_and_ends(value, low, high, least, most, expected):
    assert slider_bounds(value, low, high, least, most) == expected


# ---------------------------------------------------------------- own values
@pytest.mark.thorough
def test_page_withholds_own_values(own_data, tmp_path):
    own_data.parts(ROW)
    own_data.write(
        "sources.csv", "id,title,url,date\nown-quote,SECRETNOTE from a friend,,2025-11\n"
    )
    full_path, redacted_path = tmp_path / "shown.html", tmp_path / "kept.html"
    assert tco("report", PAIR[0], "--data", own_data.folder, "-o", full_path).exit_code == 0
    done = tco("report", PAIR[0], "--data", own_data.folder, "--redact", "-o", redacted_path)
    assert done.exit_code == 0, done.stderr
    assert "12345.67" in full_path.read_text(encoding="utf-8")
    text = redacted_path.read_text(encoding="utf-8")
    assert not re.search(
        r"12[, ]?345|12[, ]?346|1\.2345|SECRETNOTE|whatif-data", text + done.stderr
    )
    assert "what rests on your own values is withheld" in done.stderr
    assert 'id="validation"' in text
    assert text.count("<svg") >= 4  # errors and fabric: what rests on none of them stays


@pytest.mark.thorough
def test_a_setting_is_an_own_value(tmp_path):
    path = tmp_path / "report.html"
    done = tco("report", PAIR[1], "--set", f"terms.rate={RATE}", "--redact", "-o", path)
    assert done.exit_code == 0, done.stderr
    text = path.read_text(encoding="utf-8")
    # in tags are places of marks
    assert not re.search(r"8\.71|0\.0871", re.sub("<[^>]*>", " ", text) + done.stderr)
    assert "terms.rate=..." in text
    assert "whatif-data" not in text


def test_values_independent_of_own_ones_are_shown(tmp_path):
    path = tmp_path / "report.html"
    assert tco("report", PAIR[1], "--redact", "-o", path).exit_code == 0
    text = path.read_text(encoding="utf-8")
    assert program(text)["scenarios"] == [PAIR[1]]
    assert re.search(r"<h1>[^<]*\bgb200-nvl72\b", text)
