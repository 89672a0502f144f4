"""What the site of docs generates while it is built: the pages that README, registry, catalogue and
command line hold already.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import json
import pkgutil
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import tco
from tco.cli import app
from tco.cli.help import examples
from tco.core.formula import REGISTRY, Formula
from tco.evaluation.evaluation import HEADLINE
from tco.evidence.check import check_claims
from tco.scenario.metrics import METRICS, MORE_IS_BETTER, NEITHER

sys.path.insert(0, str(Path(__file__).parent))
from literate import drawn, filled, inside, noted, ran  # the site loads this file alone
from mathematics import mathml

ROOT = Path(__file__).parents[2]
WRITTEN = ("guide", "tutorials")  # folders of pages written by hand
# long, a GPU's, and true of one moment
NOT_RUN = (
    "tco calibrate",
    "tco measure",
    "tco baseline check",
)
LINES = 60  # of an example's answer
CONFIGURATION = {  # of a model, as the hub holds it
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
}
PICTURE = ROOT / "reports/frontier.svg"
# links of a page to files of the project, as patterns, and the pages that the site has of them
SITE_LINKS = (
    (r"\((?:\.\./){4}CONTRIBUTING\.md#add-", "(../extending.md#add-"),
    (r"\((?:\.\./){4}CONTRIBUTING\.md\)", "(../contributing.md)"),
    (r"\((?:\.\./){4}tco/(\w+)\)", r"(\1.md)"),
    (r"\(\.\./\.\./notebooks/(\w+)\.ipynb\)", r"(../notebooks/\1.md)"),
)
NOTEBOOKS = sorted((ROOT / "reports/site/notebooks").glob("*.ipynb"))
FOUR = " ".join(HEADLINE)
ROOMS = {  # what each is about, and the figure that shows it
    "system": ("From parts to bills, watts, wires and networks.", "tco plot bom trn3-nl72x2"),
    "fabric": ("From lanes to hops, bandwidths, collectives.", f"tco plot fabric {FOUR}"),
    "performance": (
        "From operators to times: chip, serving, training.",
        "tco plot roofline gb200-nvl72",
    ),
    "cost": ("From flows of money to a chip-hour.", "tco plot money gb200-nvl72"),
    "scenario": ("What joins cost and performance.", f"tco plot frontier {FOUR}"),
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, the picture of the first, and the notebooks as files."""
    files.append(File.generated(config, PICTURE.name, abs_src_path=str(PICTURE)))
    for notebook in NOTEBOOKS:
        files.append(
            File.generated(config, f"notebooks/{notebook.name}", abs_src_path=str(notebook))
        )
    for path, text in pages():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Run what a page says to type; its links to files of the project become links of the site."""
    for in_project, on_site in SITE_LINKS:
        markdown = re.sub(in_project, on_site, markdown)
    folder, inside, _ = page.file.src_uri.partition("/")
    return filled(markdown) if inside and folder in WRITTEN else markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the keyboard reach what scrolls: tables and blocks of code."""
    return re.sub(r"<(table|pre)\b", r'<\1 tabindex="0"', html)


def pages() -> Iterator[tuple[str, str]]:
    """Yield every generated page: its path and its Markdown."""
    yield "index.md", linked("README.md")
    yield from contributing_pages()
    yield "changes.md", linked("CHANGELOG.md")
    yield from command_pages()
    yield from input_pages()
    yield "reference/metrics.md", metrics()
    yield from source_pages()
    yield "conclusions.md", conclusions()
    for notebook in NOTEBOOKS:
        yield (
            f"notebooks/{notebook.stem}.md",
            f"{noted(notebook)}\n[This page as a notebook]({notebook.name})\n",
        )
    for found in pkgutil.walk_packages(tco.__path__, "tco."):
        if found.name != "tco.__main__":
            importlib.import_module(found.name)
    for room in ROOMS:
        yield from method_pages(room)


def contributing_pages() -> list[tuple[str, str]]:
    """Return how the program is changed, and how it is extended, as a page each."""
    sections = re.split(r"(?m)^(?=## )", linked("CONTRIBUTING.md"))
    added = [text for text in sections if text.startswith(("## Add ", "## Change the physics"))]
    opening, *others = [text for text in sections if text not in added]
    more = "[Extend the program](extending.md) says how you add a part, a formula or a command.\n\n"
    return [
        ("contributing.md", "".join([opening, more, *others])),
        ("extending.md", "".join(["# Extend the program\n\n", *added])),
    ]


def linked(name: str) -> str:
    """Return a document of the project, its links to others turned into links of the site."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for there, here in (
        ("CONTRIBUTING.md", "contributing.md"),
        ("CHANGELOG.md", "changes.md"),
        ("README.md", "index.md"),
    ):
        text = text.replace(f"({there})", f"({here})")
    return text.replace("(reports/site/pages/", "(").replace(
        f"({PICTURE.relative_to(ROOT).as_posix()})", f"({PICTURE.name})"
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [
        header,
        ["---"] * len(header),
        *([cell.replace("|", "\\|") for cell in row] for row in rows),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def method_pages(room: str) -> Iterator[tuple[str, str]]:
    """Yield the pages of a room's formulas, path and Markdown: the list of its modules, then one
    page each with what every formula gives, its equation, parameters, source and a value to check.
    """
    checks = golden()
    formulas_by_module: dict[str, list[Formula]] = defaultdict(list)
    for formula in REGISTRY.values():
        module = formula.function.__module__
        if module.split(".")[1] == room:
            formulas_by_module[module].append(formula)
    rows = []
    for module, formulas in sorted(formulas_by_module.items()):
        name = module.removeprefix(f"tco.{room}.")
        opening = (importlib.import_module(module).__doc__ or "").strip().partition("\n\n")[0]
        opening = " ".join(opening.split())
        rows.append((f"[{name}]({room}/{name}.md)", opening, str(len(formulas))))
        paragraphs = [paragraph for formula in formulas for paragraph in entry(formula, checks)]
        yield f"method/{room}/{name}.md", "\n\n".join([f"# {name}", opening, *paragraphs]) + "\n"
    about, figure = ROOMS[room]
    overview = [
        f"# {room.capitalize()}",
        f"{about} Every equation is the code's own, read from it.",
        drawn(figure),
        table(("module", "about", "formulas"), rows),
    ]
    yield f"method/{room}.md", "\n\n".join(overview) + "\n"


def entry(formula: Formula, checks: dict[str, dict[str, str]]) -> list[str]:
    """Return the paragraphs on one formula."""
    parameters = ", ".join(
        f"`{name}`"
        + (f" ({unit})" if unit else "")
        + (f" = {formula.defaults[name]:g}" if name in formula.defaults else "")
        for name, unit in formula.parameters.items()
    )
    check = checks[formula.name]
    given = ", ".join(
        f"{name} = {value if isinstance(value, str) else f'{value:,.12g}'}"
        for name, value in json.loads(check["inputs"]).items()
    )
    return [
        f"## {formula.name}",
        " ".join(formula.text.split("\n\n")[0].split()),
        *(" ".join(more.split()) for more in formula.text.split("\n\n")[1:]),
        f'<div class="equation" markdown="0" tabindex="0">{mathml(formula)}</div>',
        f"in {formula.unit or 'a pure number'}, of {parameters}. Source: "
        f"[{formula.source}](../../reference/sources/formulas.md#{formula.source}).",
        f"For {given}: {float(check['expected']):,.12g} {check['unit']} ({check['source']}).",
    ]


def golden() -> dict[str, dict[str, str]]:
    """Return the first value each formula is held to in the tests, by its name."""
    with (ROOT / "tests/golden/formulas.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {row["formula"]: row for row in reversed(rows)}


def command_pages() -> list[tuple[str, str]]:
    """Return the pages of the commands, path and Markdown: the list of all, then one page each
    with the help and what the first example prints.
    """
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="tco")
    rows, sheets = [], []
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        reader_files()
        for name in root.list_commands(context):
            command = root.get_command(context, name)
            rows.append((f"[`tco {name}`](commands/{name}.md)", command.get_short_help_str(200)))
            helped = helps(command, typer.Context(command, info_name=name, parent=context))
            sheets += drawn_sheets(name, helped) if name == "plot" else [sheet(name, helped)]
    overview = [
        "# Commands",
        "Each command has a page with its help and what its first example prints. "
        "[What it answers](../guide/questions.md) lists them by question.",
        table(("command", "does"), rows),
        f"```text\n{root.get_help(context)}\n```",
    ]
    return [("reference/commands.md", "\n\n".join(overview) + "\n"), *sheets]


def sheet(name: str, helped: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the page of a command and of those below it, path and Markdown."""
    parts = [f"# tco {name}"]
    for path, text in helped:
        title = [f"## {path}"] if path != f"tco {name}" else []
        parts += [*title, f"```text\n{text}\n```", *shown(examples(path))]
    return f"reference/commands/{name}.md", "\n\n".join(parts) + "\n"


def drawn_sheets(name: str, helped: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the page of a command that draws, and a page for each kind of figure."""
    (_, text), *kinds = helped
    pages = [(path, path.replace(f"tco {name} ", f"{name}-")) for path, _ in kinds]
    links = ", ".join(f"[`{path}`]({page}.md)" for path, page in pages)
    yield (
        f"reference/commands/{name}.md",
        f"# tco {name}\n\n```text\n{text}\n```\n\nEach kind has a page: {links}.\n",
    )
    for (path, page), (_, kind_text) in zip(pages, kinds, strict=True):
        parts = [f"# {path}", f"```text\n{kind_text}\n```", *shown(examples(path))]
        yield f"reference/commands/{page}.md", "\n\n".join(parts) + "\n"


def reader_files() -> None:
    """Write the files that examples read: some measured rows, a model's configuration, a trace of
    requests and a baseline.
    """
    rows = (
        gzip.decompress((ROOT / "data/measured/kernels.csv.gz").read_bytes())
        .decode()
        .splitlines(keepends=True)
    )
    Path("kernels.csv").write_text("".join(rows[:100]), encoding="utf-8")
    Path("hf").mkdir()
    Path("hf/config.json").write_text(json.dumps(CONFIGURATION), encoding="utf-8")
    requests = "".join(
        f"{at * 0.5},{500 + at % 7 * 300},{100 + at % 5 * 80}\n" for at in range(500)
    )
    Path("trace.csv").write_text(
        f"arrived,input_tokens,output_tokens\n{requests}", encoding="utf-8"
    )
    ran("tco baseline save main")


def shown(typed: Sequence[str]) -> Iterator[str]:
    """Yield what an example prints, cut where it is long, or the figure it draws; nothing of what
    needs a machine or an hour of its own.
    """
    if not typed or typed[0].startswith(NOT_RUN):
        return
    printed = ran(typed[0])
    if typed[0].startswith("tco plot"):
        yield f"`{typed[0]}`\n\n{inside(Path(typed[0].split(' -o ')[1]).read_text(encoding='utf-8'))}"
        return
    lines = printed.splitlines()
    yield (
        "```console\n"
        + "\n".join(lines[:LINES] + (["..."] if len(lines) > LINES else []))
        + "\n```"
    )


def helps(command: Any, context: typer.Context) -> Iterator[tuple[str, str]]:
    """Yield the words and the help of a command and of those below it."""
    yield context.command_path, command.get_help(context)
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        below = command.get_command(context, name)
        yield from helps(below, typer.Context(below, info_name=name, parent=context))


def input_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of what `--set` takes of documents and parts, path and Markdown: the list of
    groups, then one page each with every attribute, its unit and bounds.
    """
    with (ROOT / "data/attributes.csv").open(encoding="utf-8", newline="") as stream:
        attributes = list(csv.DictReader(stream))
    groups = []
    for group in dict.fromkeys(row["group"] for row in attributes):
        rows = [
            (
                f"`{row['attribute']}`",
                row["unit"],
                row["minimum"],
                row["maximum"],
                row["description"],
            )
            for row in attributes
            if row["group"] == group
        ]
        page = group.replace(" ", "-")
        groups.append((f"[{group}](inputs/{page}.md)", str(len(rows))))
        header = ("attribute", "unit", "least", "most", "what")
        yield f"reference/inputs/{page}.md", f"# {group}\n\n{table(header, rows)}\n"
    overview = [
        "# Inputs",
        "What `--set` and data files take, with units and bounds. Any unit of the same dimension "
        "may be written.",
        table(("group", "attributes"), groups),
    ]
    yield "reference/inputs.md", "\n\n".join(overview) + "\n"


def conclusions() -> str:
    """Return what a reader of the published articles asks, each with what comes out and the command
    that shows it.
    """
    findings = check_claims(tco.load_catalogue(), {}, conclusions=True)[0]
    rows = []
    for finding in findings:
        claim, conclusion = finding.claim, finding.conclusion
        figures = [claim.claimed.value, finding.computed, None, None, None]
        if conclusion:
            figures[2:] = conclusion.low, conclusion.high, conclusion.probability
        cells = ("-" if figure is None else f"{figure:,.4g}" for figure in figures)
        rows.append((claim.claim, claim.unit, *cells, finding.verdict, f"`{claim.command}`"))
    above = [
        "# Conclusions",
        "What published articles conclude of these racks, each computed anew (`tco claims "
        "--conclusions`): P10, P90 and chance are of the draws "
        "that `compare` makes; a conclusion holds from a chance of 0.9, is off up to 0.1, and open "
        "between.",
    ]
    return (
        "\n\n".join(
            [
                *above,
                drawn(f"tco plot frontier {FOUR}"),
                table(
                    (
                        "conclusion",
                        "unit",
                        "claimed",
                        "figure",
                        "P10",
                        "P90",
                        "chance",
                        "verdict",
                        "command",
                    ),
                    rows,
                ),
            ]
        )
        + "\n"
    )


def metrics() -> str:
    """Return what results carry."""
    sense = dict.fromkeys(MORE_IS_BETTER, "more is better") | dict.fromkeys(NEITHER, "")
    rows = [
        (f"`{name}`", metric.unit, metric.label, sense.get(name, "less is better"))
        for name, metric in METRICS.items()
    ]
    return "# Metrics\n\n" + table(("metric", "unit", "what", "sense"), rows) + "\n"


def source_pages() -> Iterator[tuple[str, str]]:
    """Yield every source of the catalogue and the formulas on the pages of what rests on it, path
    and Markdown: the list of the pages first.
    """
    with (ROOT / "data/sources.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    of_formulas = {formula.source for formula in REGISTRY.values()}
    of_parts = set()
    for path in (ROOT / "data/parts").rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as stream:
            of_parts |= {row["source"] for row in csv.DictReader(stream)}
    subjects = {
        "formulas": [row for row in rows if row["id"] in of_formulas],
        "parts": [row for row in rows if row["id"] in of_parts],
        "others": [row for row in rows if row["id"] not in of_formulas | of_parts],
    }
    about = {
        "formulas": "What formulas are taken from.",
        "parts": "What prices, powers and peaks of parts are taken from.",
        "others": "What sites, models, software, measured runs and claims are taken from.",
    }
    overview = table(
        ("sources of", "about", "number"),
        [
            (f"[{subject}](sources/{subject}.md)", about[subject], str(len(subject_rows)))
            for subject, subject_rows in subjects.items()
        ],
    )
    yield "reference/sources.md", f"# Sources\n\n{overview}\n"
    for subject, subject_rows in subjects.items():
        cells = [
            (
                f'<a id="{row["id"]}"></a>`{row["id"]}`',
                linked_title(row["title"], row["url"]),
                row["date"],
            )
            for row in subject_rows
        ]
        text = f"{about[subject]}\n\n{table(('id', 'title', 'date'), cells)}"
        yield f"reference/sources/{subject}.md", f"# Sources of {subject}\n\n{text}\n"


def linked_title(title: str, url: str) -> str:
    """Return a title, linked where its source can be followed."""
    plain = re.sub(r"([\[\]<>*_])", r"\\\1", title)
    return f"[{plain}]({url})" if url.startswith("http") else plain
