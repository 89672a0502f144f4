"""Read, change and calculate workbooks in tests.

LibreOffice, the `formulas` package or a walk of our own calculates.
"""

from __future__ import annotations

import io
import re
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from string import ascii_uppercase as LETTERS  # noqa: N812
from typing import Any
from xml.etree import ElementTree

import numpy as np
import scipy.stats

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def sheet_files(book: zipfile.ZipFile) -> dict[str, str]:
    """Return the file of every sheet by its name."""
    relations = {
        relation.get("Id"): relation.get("Target")
        for relation in ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    }
    sheets = ElementTree.fromstring(book.read("xl/workbook.xml")).iter(f"{MAIN}sheet")
    return {
        sheet.get("name"): f"xl/{relations[sheet.get(RELATION)].removeprefix('/xl/')}"
        for sheet in sheets
    }


def defined_names(content: bytes) -> dict[str, str]:
    """Return the reference of every defined name of the book."""
    root = ElementTree.fromstring(zipfile.ZipFile(io.BytesIO(content)).read("xl/workbook.xml"))
    return {
        defined_name.get("name"): defined_name.text
        for defined_name in root.iter(f"{MAIN}definedName")
    }


def cells(content: bytes, sheet: str) -> dict[str, tuple[str | None, str | float | None]]:
    """Return formula and value of every cell of a sheet by its address."""
    book = zipfile.ZipFile(io.BytesIO(content))
    shared = []
    if "xl/sharedStrings.xml" in book.namelist():
        shared = [
            "".join(part.itertext())
            for part in ElementTree.fromstring(book.read("xl/sharedStrings.xml")).iter(f"{MAIN}si")
        ]
    cell_contents = {}
    for cell in ElementTree.fromstring(book.read(sheet_files(book)[sheet])).iter(f"{MAIN}c"):
        formula, value = cell.find(f"{MAIN}f"), cell.find(f"{MAIN}v")
        text = None if value is None else value.text
        kind = cell.get("t", "n")
        number = shared[int(text)] if kind == "s" else float(text) if kind == "n" and text else text
        cell_contents[cell.get("r")] = (None if formula is None else formula.text, number)
    return cell_contents


def looks(content: bytes, sheet: str) -> dict[str, tuple[bool, str | None]]:
    """Return of every cell of a sheet whether it is bold, and to which side it is set."""
    book = zipfile.ZipFile(io.BytesIO(content))
    styles = ElementTree.fromstring(book.read("xl/styles.xml"))
    bold = [font.find(f"{MAIN}b") is not None for font in styles.find(f"{MAIN}fonts")]
    sides = [
        (cell_format.find(f"{MAIN}alignment"), bold[int(cell_format.get("fontId"))])
        for cell_format in styles.find(f"{MAIN}cellXfs")
    ]
    format_looks = [
        (strong, None if side is None else side.get("horizontal")) for side, strong in sides
    ]
    return {
        cell.get("r"): format_looks[int(cell.get("s", "0"))]
        for cell in ElementTree.fromstring(book.read(sheet_files(book)[sheet])).iter(f"{MAIN}c")
    }


def row_and_column(address: str) -> tuple[int, str]:
    """Return row and column of an address."""
    column, row = re.fullmatch(r"([A-Z]+)(\d+)", address).groups()
    return int(row), column


def by_rows(content: bytes, sheet: str) -> dict[int, dict[str, str | float | None]]:
    """Return the values of a sheet by row and column."""
    values_by_row: dict[int, dict[str, str | float | None]] = {}
    for address, (_, value) in cells(content, sheet).items():
        row, column = row_and_column(address)
        values_by_row.setdefault(row, {})[column] = value
    return values_by_row


def table(content: bytes, sheet: str, head: str) -> dict[str, dict[str, str | float | None]]:
    """Return the rows of a table by their first cell, each by the heads of its columns.

    The table begins where its first head stands in column A.
    """
    by_row = by_rows(content, sheet)
    top = next(row for row, values in by_row.items() if values.get("A") == head)
    heads = by_row[top]
    return {
        values["A"]: {str(heads[c]): v for c, v in values.items() if c in heads}
        for row, values in by_row.items()
        if row > top and values.get("A")
    }


def changed(content: bytes, values: dict[str, float]) -> bytes:
    """Return the book with other values of some inputs, by path, and without cached values.

    Whoever reads it has to calculate.
    """
    inputs = cells(content, "Inputs")
    address = {
        value: f"B{name[1:]}" for name, (_, value) in inputs.items() if re.fullmatch(r"A\d+", name)
    }
    source, stream = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    files = sheet_files(source)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            text = source.read(name)
            if name in files.values():
                text = re.sub(rb"</f><v>[^<]*</v>", b"</f>", text)
            if name == files["Inputs"]:
                for path, value in values.items():
                    text, count = re.subn(
                        rb'(<c r="%s"[^>]*><v>)[^<]*' % address[path].encode(),
                        rb"\g<1>%r" % value,
                        text,
                    )
                    assert count == 1, path
            target.writestr(name, text)
    return stream.getvalue()


def libreoffice(books: Sequence[bytes], folder: Path) -> list[bytes]:
    """Return books as LibreOffice calculates and saves them."""
    (folder / "in").mkdir()
    files = [folder / "in" / f"book-{book_number}.xlsx" for book_number in range(len(books))]
    for file, content in zip(files, books, strict=True):
        file.write_bytes(content)
    command = [
        "soffice",
        "--headless",
        f"-env:UserInstallation=file://{folder}/profile",
        "--convert-to",
        "xlsx",
        "--outdir",
        str(folder / "out"),
    ]
    subprocess.run([*command, *map(str, files)], check=True, capture_output=True, timeout=300)
    return [(folder / "out" / file.name).read_bytes() for file in files]


ADDRESS = r"[A-Z]{1,3}[0-9]+"
TOKEN = re.compile(
    rf"(?:([A-Za-z]+)!)?({ADDRESS})(?::({ADDRESS}))?(?![A-Za-z0-9_(])"
    r"|([A-Za-z_][A-Za-z0-9_]*)(?![A-Za-z0-9_]*\()|[0-9.]+(?:E[+-]?[0-9]+)?"
)
FUNCTIONS = {
    "IF": np.where,
    "MAX": lambda *of: np.max(np.hstack(of)),
    "MIN": lambda *of: np.min(np.hstack(of)),
    "SUM": lambda *of: np.sum(np.hstack(of)),
    "ABS": np.abs,
    "SQRT": np.sqrt,
    "EXP": np.exp,
    "LN": np.log,
    "LOG": lambda x, base: np.log(x) / np.log(base),
    "INT": np.floor,
    "NORMSDIST": scipy.stats.norm.cdf,
}


def by_python(formula: str, look: Callable[..., Any]) -> float:
    """Return the value of a formula, read as Python.

    Every operand that could be read another way stands in brackets.
    """

    def operand(match: re.Match[str]) -> str:
        sheet, first, last, name = match.groups()
        if first:
            return f"look({sheet!r}, {first!r}, {last!r})"
        return f"look(None, {name!r})" if name else f"np.float64({match[0]})"

    with np.errstate(all="ignore"):  # a spreadsheet leaves out the side that is not chosen
        return float(
            eval(
                TOKEN.sub(operand, formula).replace("^", "**"),
                {"look": look, "np": np, **FUNCTIONS},
            )
        )


def by_formulas(formula: str, look: Callable[..., Any]) -> float:
    """Return the value of a formula as the `formulas` package reads it."""
    import formulas

    compiled = formulas.Parser().ast(f"={formula}")[1].compile()
    values = []
    for name in compiled.inputs:
        sheet, mark, address = name.rpartition("!")
        first, _, last = address.partition(":")
        values.append(
            look(
                sheet.capitalize() or None,
                first if re.fullmatch(ADDRESS, first) else address.lower(),
                last or None,
            )
        )
        assert mark or not sheet
    return float(np.asarray(compiled(*values)).ravel()[0])


def calculated(content: bytes, by: Callable[..., float]) -> dict[tuple[str, str], float]:
    """Return the value of every formula of a book, from its inputs up, without any cached value."""
    book = {
        sheet: cells(content, sheet) for sheet in sheet_files(zipfile.ZipFile(io.BytesIO(content)))
    }
    names = {
        name.lower(): target.replace("$", "").split("!")
        for name, target in defined_names(content).items()
        if "!$" in target and ":" not in target
    }
    calculated_values: dict[tuple[str, str], float] = {}

    def value(sheet: str, address: str) -> float:
        formula, number = book[sheet][address]
        if formula is None:
            return float(number)
        if (sheet, address) not in calculated_values:

            def look(there: str | None, first: str, last: str | None = None) -> Any:
                if last is not None:
                    column, top, bottom = (
                        first.rstrip("0123456789"),
                        int(first.lstrip(LETTERS)),
                        int(last.lstrip(LETTERS)),
                    )
                    return np.array(
                        [
                            value(there or sheet, f"{column}{row}")
                            for row in range(top, bottom + 1)
                            if f"{column}{row}" in book[there or sheet]
                        ]
                    )
                if not re.fullmatch(ADDRESS, first):
                    there, first = names[first.lower()]
                return np.float64(value(there or sheet, first))

            calculated_values[sheet, address] = by(formula, look)
        return calculated_values[sheet, address]

    for sheet, all_cells in book.items():
        for address, (formula, _) in all_cells.items():
            if formula is not None:
                value(sheet, address)
    return calculated_values
