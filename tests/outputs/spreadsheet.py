"""Workbooks as tests handle them: read without a library, inputs changed, cached values taken out, and calculated by LibreOffice."""

from __future__ import annotations

import io
import re
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def sheet_files(book: zipfile.ZipFile) -> dict[str, str]:
    """Return the file of every sheet by its name."""
    relations = {one.get("Id"): one.get("Target") for one in ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))}
    sheets = ElementTree.fromstring(book.read("xl/workbook.xml")).iter(f"{MAIN}sheet")
    return {sheet.get("name"): f"xl/{relations[sheet.get(RELATION)].removeprefix('/xl/')}" for sheet in sheets}


def defined_names(content: bytes) -> dict[str, str]:
    """Return what every defined name of the book stands for."""
    root = ElementTree.fromstring(zipfile.ZipFile(io.BytesIO(content)).read("xl/workbook.xml"))
    return {one.get("name"): one.text for one in root.iter(f"{MAIN}definedName")}


def cells(content: bytes, sheet: str) -> dict[str, tuple[str | None, str | float | None]]:
    """Return formula and value of every cell of a sheet by its address."""
    book = zipfile.ZipFile(io.BytesIO(content))
    shared = []
    if "xl/sharedStrings.xml" in book.namelist():
        shared = ["".join(part.itertext()) for part in ElementTree.fromstring(book.read("xl/sharedStrings.xml")).iter(f"{MAIN}si")]
    found = {}
    for cell in ElementTree.fromstring(book.read(sheet_files(book)[sheet])).iter(f"{MAIN}c"):
        formula, value = cell.find(f"{MAIN}f"), cell.find(f"{MAIN}v")
        text = None if value is None else value.text
        kind = cell.get("t", "n")
        number = shared[int(text)] if kind == "s" else float(text) if kind == "n" and text else text
        found[cell.get("r")] = (None if formula is None else formula.text, number)
    return found


def table(content: bytes, sheet: str, head: str) -> dict[str, dict[str, str | float | None]]:
    """Return the rows of a table by their first cell, each by the heads of its columns; the table begins where its first head stands in column A."""
    by_row: dict[int, dict[str, str | float | None]] = {}
    for address, (_, value) in cells(content, sheet).items():
        column, row = re.fullmatch(r"([A-Z]+)(\d+)", address).groups()
        by_row.setdefault(int(row), {})[column] = value
    top = next(row for row, values in by_row.items() if values.get("A") == head)
    heads = by_row[top]
    return {values["A"]: {str(heads[c]): v for c, v in values.items() if c in heads} for row, values in by_row.items() if row > top and values.get("A")}


def changed(content: bytes, values: dict[str, float]) -> bytes:
    """Return the book with other values of some inputs, by path, and without any cached value: whoever reads it has to calculate."""
    inputs = cells(content, "Inputs")
    address = {value: f"B{name[1:]}" for name, (_, value) in inputs.items() if re.fullmatch(r"A\d+", name)}
    source, stream = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    files = sheet_files(source)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            text = source.read(name)
            if name in files.values():
                text = re.sub(rb"</f><v>[^<]*</v>", b"</f>", text)
            if name == files["Inputs"]:
                for path, value in values.items():
                    text, count = re.subn(rb'(<c r="%s"[^>]*><v>)[^<]*' % address[path].encode(), rb"\g<1>%r" % value, text)
                    assert count == 1, path
            target.writestr(name, text)
    return stream.getvalue()


def libreoffice(content: bytes, folder: Path) -> bytes:
    """Return the book as LibreOffice calculates and saves it."""
    (folder / "in").mkdir()
    (folder / "in" / "book.xlsx").write_bytes(content)
    command = ["soffice", "--headless", f"-env:UserInstallation=file://{folder}/profile", "--convert-to", "xlsx", "--outdir", str(folder / "out")]
    subprocess.run([*command, str(folder / "in" / "book.xlsx")], check=True, capture_output=True, timeout=300)
    return (folder / "out" / "book.xlsx").read_bytes()
