"""`tco plot` draws every kind into a file, refuses mistakes, and withholds own values."""

from __future__ import annotations

import csv
import io
import json
import struct
from xml.etree import ElementTree as ET

import pytest
import typer

from tco.cli import plot
from tests.cli import HEADLINE, app, tco
from tests.report.helpers import WIDE

KINDS = {
    "bom": ("gb200-nvl72",),
    "cost": ("gb200-nvl72", "trn3-nl72x2"),
    "errors": (),
    "fabric": ("gb200-nvl72", "trn2-nl32x2-3d"),
    "frontier": ("gb200-nvl72",),
    "line": (
        "gb200-nvl72",
        "trn3-nl72x2",
        *("--vary", "terms.rate", "--from", "5 %", "--to", "15 %", "--steps", "3"),
    ),
    "map": (
        "gb200-nvl72",
        "trn3-nl72x2",
        "--vary",
        "terms.life",
        "--vary",
        "site.electricity_price",
        "--from",
        "3 year",
        "--to",
        "6 year",
        "--steps",
        "3",
    ),
    "money": ("gb200-nvl72", "--set", "money.rent=3 USD/chip/h"),
    "operators": ("gb200-nvl72",),
    "range": ("gb200-nvl72", "--samples", "64"),
    "roofline": ("gb200-nvl72", "--plan", "tp=4,ep=1"),
    "tornado": ("gb200-nvl72", "--metric", "tco_usd_per_chip_hour"),
}
LINE = ("line", "gb200-nvl72", "-o", "figure.svg", "--vary")


def test_every_kind_is_tried():
    assert set(KINDS) == set(typer.main.get_command(app).get_command(None, "plot").commands)


def test_plot_without_a_width_is_as_wide_as_a_screen():
    assert plot.WIDE == WIDE


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_drawn_into_a_file_and_says_nothing_on_stdout(kind, tmp_path):
    done = tco("plot", kind, *KINDS[kind], "-o", tmp_path / "figure.svg", "--width", "400")
    assert (done.exit_code, done.stdout) == (0, "")
    root = ET.parse(tmp_path / "figure.svg").getroot()
    assert root.get("width") == "400"
    assert all(line.startswith(("note: ", "wrote ")) for line in done.stderr.splitlines())


def test_a_picture_of_points_is_twice_as_wide_and_has_ink(tmp_path):
    assert (
        tco("plot", "bom", "gb200-nvl72", "-o", tmp_path / "figure.PNG", "--width", "400").exit_code
        == 0
    )
    data = (tmp_path / "figure.PNG").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">I", data[16:20]) == (800,)
    import matplotlib.image

    picture = matplotlib.image.imread(tmp_path / "figure.PNG")
    pixel_colours = {
        tuple((pixel[:3] * 255).round().astype(int)) for row in picture[::5] for pixel in row[::5]
    }
    assert (0x13, 0x7E, 0xEA) in pixel_colours  # the first series
    title = picture[20:50, 16:400, :3]
    assert title.min() < 0.2  # there are letters


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("bom", "gb200-nvl72", "-o", "figure.pdf"),
            2,
            "unknown ending '.pdf', expected one of .svg, .png",
        ),
        (("bom", "gb200-nvl72", "-o", "figure"), 2, "unknown ending ''"),
        (("bom", "gb200-nvl72"), 2, "'--output'"),
        (("bon", "gb200-nvl72", "-o", "figure.svg"), 2, "Did you mean 'bom'?"),
        (("bom", "gb200-nvl7", "-o", "figure.svg"), 3, "did you mean 'gb200-nvl72'?"),
        (("bom", "gb200-nvl72", "-o", "nowhere/figure.svg"), 2, "cannot be written"),
        (("tornado", "gb200-nvl72", "-o", "figure.svg", "--metric", "cost"), 3, "cost"),
        (("frontier", "gb200-nvl72", "-o", "figure.svg", "--against", "time"), 2, "time"),
        (
            (
                "roofline",
                "gb200-nvl72",
                "-o",
                "figure.svg",
                "--set",
                "workload.interactivity=100000 token/s",
            ),
            3,
            "gb200-nvl72",
        ),
        (
            ("map", "gb200-nvl72", "-o", "figure.svg", "--vary", "terms.life"),
            2,
            "a map moves two inputs",
        ),
        (
            (
                "map",
                "gb200-nvl72",
                "-o",
                "figure.svg",
                "--vary",
                "terms.life",
                *("--from", "1") * 3,
            ),
            2,
            "expected one for each of two inputs",
        ),
        (("range", "gb200-nvl72", "-o", "figure.svg", "--samples", "1"), 3, "expected 2 or more"),
        ((*LINE, "terms.rat"), 3, "did you mean 'terms.rate'?"),
        ((*LINE, "workload.model"), 3, "is a text, expected an input that is a number"),
        ((*LINE, "terms.life", "--from", "3 kg"), 3, "expected 'year'"),
        ((*LINE, "terms.life", "--from", "6 year", "--to", "6 year"), 2, "reversed or empty"),
        (
            (*LINE, "parts.trn3.price", "--from", "4000 USD", "--to", "9000 USD"),
            3,
            "`tco sensitivity gb200-nvl72 --metric usd_per_million_output_tokens` says what does",
        ),
        (
            ("line", "gb200-nvl72", "--vary", "terms.life", "--width", "400"),
            2,
            "name its file, such as -o line.svg",
        ),
        ((*LINE, "terms.life", "--format", "csv"), 2, "leave one out"),
    ],
)
def test_a_mistake_is_told_and_leaves_no_file(words, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = tco("plot", *words)
    assert done.exit_code == code, done.stderr
    assert message in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [("frontier",), ("line", "--vary", "terms.life"), ("fabric",)])
def test_a_figure_without_a_name_shows_the_headline_racks(options, tmp_path):
    done = tco("plot", *options, "-o", tmp_path / "figure.svg")
    assert done.exit_code == 0, done.stderr
    figure = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert figure == _figure_of(options, tmp_path)


def _figure_of(options, folder):
    """Return the figure that names the four headline racks."""
    tco("plot", options[0], *HEADLINE, *options[1:], "-o", folder / "named.svg")
    return (folder / "named.svg").read_text(encoding="utf-8")


def test_a_line_without_a_file_prints_the_numbers_of_the_figure():
    words = ("plot", "line", *KINDS["line"])
    document = json.loads(tco(*words, "--format", "json").stdout)
    csv_rows = list(csv.DictReader(io.StringIO(tco(*words, "--format", "csv").stdout)))
    assert document["values"] == [5, 9, 10, 15]  # today's stands between the others
    assert [float(row["metric"]) for row in csv_rows] == [
        pytest.approx(metric, 1e-9) for line in document["lines"] for metric in line["values"]
    ]
    assert [row["value"] for row in csv_rows if row["base_case"] == "1"] == ["9", "9"]
    assert {row["unit"] for row in csv_rows} == {document["unit"]}
    table = tco(*words).stdout
    assert "base case" in table
    assert all(f"{metric:.3g}" in table for metric in document["lines"][0]["values"])


def test_a_line_names_the_base_case_that_lies_outside_its_range():
    words = ("plot", "line", "gb200-nvl72", "--vary", "parts.gb200-gpu.price", "--steps", "2")
    inside = tco(*words, "--from", "20000 USD", "--to", "40000 USD").stdout
    outside = tco(*words, "--from", "40000 USD", "--to", "50000 USD").stdout
    assert "outside" not in inside
    (price,) = (line.split()[0] for line in inside.splitlines() if line.endswith("base case"))
    assert f"The base case, {price} USD, lies outside this range." in outside


# ---------------------------------------------------------------- own values
OWN = "nitro-v6-400g,price,12345.67,USD,12345.67,12345.67,2025-11,vendor,own-quote,,"


@pytest.fixture
def folder(own_data):
    own_data.parts(OWN)
    own_data.write("sources.csv", "id,title,url,date\nown-quote,a friend,,2025-11\n")
    return own_data.folder


# from many draws, each made several times
DRAWN = [
    pytest.param(kind, marks=pytest.mark.thorough)
    for kind in ("frontier", "map", "range", "tornado")
]


@pytest.mark.parametrize(
    "kind", ["bom", "cost", pytest.param("money", marks=pytest.mark.thorough), *DRAWN]
)
def test_figure_of_own_values_is_refused_under_redaction(kind, folder, tmp_path):
    words = (
        "plot",
        kind,
        "trn3-nl72x2",
        *KINDS[kind][1:],
        "--data",
        folder,
        "-o",
        tmp_path / "figure.svg",
    )
    if kind == "cost":
        words = ("plot", kind, "trn3-nl72x2", "--data", folder, "-o", tmp_path / "figure.svg")
    done = tco(*words, "--redact")
    assert done.exit_code == 2, done.stderr
    assert "a mark tells its value by its place" in done.stderr
    assert "12345" not in done.stderr
    assert not (tmp_path / "figure.svg").exists()
    assert tco(*words).exit_code == 0


@pytest.mark.parametrize("kind", ["fabric", "operators", "errors"])
def test_figure_without_own_values_is_the_same_under_redaction(kind, folder, tmp_path):
    words = ("plot", kind, *(() if kind == "errors" else ("trn3-nl72x2",)), "--data", folder, "-o")
    assert tco(*words, tmp_path / "plain.svg").exit_code == 0
    assert tco(*words, tmp_path / "kept.svg", "--redact").exit_code == 0
    assert (tmp_path / "kept.svg").read_bytes() == (tmp_path / "plain.svg").read_bytes()
