"""The catalogue: the content of `data/`, with the user's own folders on top of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial, reduce
from operator import or_
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from tco.catalog.halls import document_in_hall, halls_of
from tco.catalog.rows import (
    COLUMNS,
    OPTIONAL,
    CatalogueRow,
    at_date,
    attribute,
    input_attributes,
    live,
    read_row,
    row_in_place,
    split_path,
    usual_value,
)
from tco.core.errors import DataError, UnavailableError, refuse_unknown, unknown
from tco.core.files import (
    data_directory,
    file_stamps,
    is_folder,
    read_csv,
    read_toml,
    refuse_odd_files,
    scenario_directory,
)
from tco.core.mappings import lists_by_key
from tco.core.memory import once_per_owner, value_once
from tco.core.provenance import Input, making, period, refuse_own
from tco.core.redaction_values import WITHHELD
from tco.core.types import JsonMapping, JsonObject

# Prefixes of owners whose software parameters apply to one configuration or one run.
CONFIGURATION = "configuration"
RUN = "run"
LONGEST_NAME = 200  # characters of an id
# Directness of a value by its kind, where neither its row nor its source states the directness.
DIRECTNESS_BY_KIND = dict.fromkeys(("measured", "vendor", "filing"), "first-hand") | dict.fromkeys(
    ("analyst", "press", "derived"), "second-hand"
)
# Seconds between two checks for changed shipped files, since a check takes as long as an answer.
CHECK_INTERVAL = 1.0
Rows = dict[tuple[str, str], list[CatalogueRow]]  # by owner and attribute
# Folders of the tables of a group of attributes, and the column that names the owner.
TABLES = {
    "parts": (("parts",), "part"),
    "shares": (("shares",), "company"),
    "rebates": (("vesting",), "agreement"),
    "performance": (("calibration", "software"), "family"),
    "site": (("grids",), "region"),
}


class Source(NamedTuple):
    """A publication, a filing, or our own estimate."""

    id: str
    title: str
    url: str
    date: str
    publisher: str = ""  # stated where several sources have the same publisher


T = TypeVar("T")


class Catalogue:
    """Reader of the shipped data and of overlay folders.

    A value of a later folder replaces the value of an earlier one.

    Args:
        overlays: Folders of the user.

    """

    def __init__(self, overlays: Iterable[Path] = ()) -> None:
        self.folders = [data_directory(), *overlays]
        for folder in self.folders[1:]:
            if not is_folder(folder):
                raise DataError(
                    f"--data {folder}: no such folder; `tco init DIR` makes one to begin with"
                )
            for shelf in self.shelves:  # the user's folder may contain other folders
                refuse_odd_files(folder / shelf)
        self._inputs: dict[tuple[str, str], Input] = {}
        self._documents: dict[Path, JsonObject] = {}
        self.cache: dict[Any, Any] = {}  # results that other packages derived, by key
        self.anchors: tuple[Any, ...] = ()  # the user's measured runs, which correct answers

    @once_per_owner
    def rows(self, group: str) -> Rows:
        """Return a group's rows of every table by (owner, attribute), read once."""
        return reduce(or_, [self.rows_under(name, group) for name in TABLES[group][0]])

    @once_per_owner
    def rows_under(self, folder_name: str, group: str) -> Rows:
        """Return the rows of every CSV under a folder; an overlay's rows replace shipped ones.

        Shipped rows are read once for all catalogues of a process.
        """
        shipped_folder, *overlays = self.folders
        if not overlays:
            return _by_owner(group, _rows_of_tables(shipped_folder / folder_name, group))
        rows_by_owner = {**shipped().rows_under(folder_name, group)}
        for folder in overlays:
            own_rows = [
                self._own_table_row(own_row, group, rows_by_owner)
                for own_row in _rows_of_tables(folder / folder_name, group, overlay=True)
            ]
            rows_by_owner |= _by_owner(group, own_rows)
        return rows_by_owner

    def _own_table_row(
        self, table_row: CatalogueRow, group: str, rows_by_owner: Rows
    ) -> CatalogueRow:
        """Return a row of a user's table without the blanks that spreadsheets leave."""
        cells = {column_name: cell.strip() for column_name, cell in table_row.cells.items()}
        path = ".".join((group, *_owner_key(group, cells)))
        return self.own_row(table_row._replace(cells=cells), path, rows_by_owner)

    @cached_property
    def part_rows(self) -> Rows:
        """Every row of the parts database."""
        return self.rows("parts")

    @cached_property
    def calibration_rows(self) -> Rows:
        """Return every row of calibrated parameters and priors by family, and of best software."""
        return self.rows("performance")

    def practice(self, family: str, parameter_name: str) -> Input:
        """Return a software parameter of an owner, or else of the kind of the owner."""
        cache_key = (f"performance.{family}.{parameter_name}", "")
        practice_input = self._inputs.get(cache_key)
        if practice_input is None:
            practice_rows = self.calibration_rows.get(
                (family, parameter_name),
                self.calibration_rows.get((self.kind_of(family), parameter_name)),
            )
            if practice_rows is None:
                families = {family for family, _ in self.calibration_rows}
                refuse_unknown("family of chips", [family], families)
                raise unknown(
                    f"parameter of {family}",
                    parameter_name,
                    [name for owner, name in self.calibration_rows if owner == family],
                )
            practice_input = self._inputs[cache_key] = self.chosen(practice_rows, *cache_key)
        return practice_input

    def kind_of(self, owner: str) -> str:
        """Return the kind of an owner of software parameters that needs no rows of its own.

        Returns:
            `chip`, `model`, `configuration` or `run`; empty for every other owner.

        """
        for level in (CONFIGURATION, RUN):
            if owner.startswith(f"{level}-"):
                return level
        if owner in self.parts:
            return "chip"
        return "model" if owner in self.models else ""

    @cached_property
    def parts(self) -> dict[str, list[str]]:
        """Attributes of each part that rows state, by part id."""
        return lists_by_key(self.part_rows)

    @cached_property
    def sources(self) -> dict[str, Source]:
        """Every source by id."""
        source_records: dict[str, Source] = {}
        for level, folder in enumerate(self.folders):
            path = folder / "sources.csv"
            if path.is_file():
                for line, source_row in read_csv(
                    path, Source._fields[:4], optional=Source._fields[4:]
                ):
                    if not source_row["id"] or not source_row["title"]:
                        raise DataError(f"{path}:{line}: a source needs an id and a title")
                    kept_back = (
                        dict.fromkeys(("title", "url", "date"), WITHHELD)
                        if level and making.get()
                        else {}
                    )
                    source_records[source_row["id"]] = Source(**source_row | kept_back)
        return source_records

    def source_title(self, source: str) -> str:
        """Return the title of a source; a text that is not the id of a source is unchanged."""
        source_record = self.sources.get(source)
        return source_record.title if source_record else source

    def publisher(self, source: str) -> str:
        """Return the publisher of a source, or the title of the source.

        An unknown source is returned unchanged.
        """
        source_record = self.sources.get(source)
        if source_record is None:
            return source
        return source_record.publisher or source_record.title

    @cached_property
    def directness(self) -> dict[str, str]:
        """Directness of each source, by source id.

        It applies to every value of the source that does not state its directness itself.
        """
        path = data_directory() / "directness.csv"
        return {
            source_row["source"]: source_row["directness"]
            for _, source_row in read_csv(path, ("source", "directness"))
        }

    def with_directness(self, stated_input: Input) -> Input:
        """Return an input with its publisher and directness, by its row, its source or its kind."""
        direct = (
            stated_input.directness
            or self.directness.get(stated_input.source)
            or DIRECTNESS_BY_KIND[stated_input.kind]
        )
        return stated_input._replace(
            directness=direct, publisher=self.publisher(stated_input.source)
        )

    def chosen(self, input_rows: list[CatalogueRow], path: str, date: str) -> Input:
        """Return the input of the chosen row, or of a dated series' latest row up to `date`."""
        group, _, attribute_name = split_path(path)
        is_dated = attribute(group, attribute_name, input_rows[0].where).dated
        chosen_row = at_date(live(input_rows, is_dated, path), date)
        return self.with_directness(read_row(chosen_row, path))

    def part_input(self, part: str, attribute_name: str, date: str) -> Input:
        """Return the input `parts.<part>.<attribute_name>` at a date.

        Raises:
            DataError: The part is unknown, or the value is missing.

        """
        cache_key = (f"parts.{part}.{attribute_name}", date)
        shipped_input = self._inputs.get(cache_key)
        if shipped_input is None:
            attribute_rows = self.part_rows.get((part, attribute_name))
            if attribute_rows is None:
                refuse_unknown("part", [part], self.parts)
                attribute("parts", attribute_name, f"parts.{part}")
                where = self.folders[-1] / "parts"
                parts_with_attribute = self.also_missing(part, attribute_name)
                raise UnavailableError(
                    f"parts.{part}.{attribute_name} is missing in {where}; a missing value is "
                    f"never taken as zero{parts_with_attribute}"
                )
            shipped_input = self._inputs[cache_key] = self.chosen(attribute_rows, *cache_key)
        return shipped_input

    def also_missing(self, part: str, attribute_name: str) -> str:
        """Return a text on further attributes that a part without `attribute_name` lacks.

        All other parts with `attribute_name` have these attributes, so the user can add them at the
        same time. The text is empty where no further attribute is missing.
        """
        similar_parts = [
            set(attribute_names)
            for part_name, attribute_names in self.parts.items()
            if attribute_name in attribute_names and part_name != part
        ]
        if not similar_parts:
            return ""
        missing = set.intersection(*similar_parts) - set(self.parts[part]) - {attribute_name}
        if not missing:
            return ""
        return (
            f"; every part that has it has these too, and {part} has not: "
            f"{', '.join(sorted(missing))}"
        )

    def has_part_value(self, part: str, attribute_name: str) -> bool:
        """Return whether the catalogue states an attribute of a part."""
        return (part, attribute_name) in self.part_rows

    def share_price(self, company: str, date: str) -> Input:
        """Return the share price of a company at a date."""
        if (company, "price") not in (share_rows := self.rows("shares")):
            raise unknown("company", company, {company_name for company_name, _ in share_rows})
        return self.chosen(share_rows[company, "price"], f"shares.{company}.price", date)

    def grid_carbon(self, region: str, date: str) -> Input:
        """Return the carbon intensity of a region's grid at `date`.

        Raises:
            DataError: The region is unknown.

        """
        if (region, "grid_carbon") not in (site_rows := self.rows("site")):
            raise unknown(
                "grid", region, {region_name for region_name, _ in site_rows}, "site.grid"
            )
        return self.chosen(site_rows[region, "grid_carbon"], "site.grid_carbon", date)

    @once_per_owner
    def of_country(self, country: str, date: str) -> dict[str, Input]:
        """Return a country's hall, power and cooling inputs at `date`, by path.

        A site in the country has these values unless the site states its own.

        Raises:
            DataError: The country is unknown.

        """
        site_rows = self.rows("site")
        country_rows = {
            f"site.{attribute_name}": attribute_rows
            for (region, attribute_name), attribute_rows in site_rows.items()
            if region == country
        }
        if not country_rows:
            raise unknown(
                "country",
                country,
                {region for region, attribute_name in site_rows if attribute_name != "grid_carbon"},
            )
        return {
            path: self.chosen(attribute_rows, path, date)
            for path, attribute_rows in country_rows.items()
        }

    def vested(self, agreement: str, date: str) -> Input:
        """Return the share of a warrant that has vested at a date."""
        if (vesting_rows := self.rows("rebates").get((agreement, "vested"))) is None:
            raise DataError(
                f"rebates.{agreement}.vested is missing in {self.folders[-1] / 'vesting'}; a "
                "missing value is never taken as zero"
            )
        return self.chosen(vesting_rows, f"rebates.{agreement}.vested", date)

    def reachable(self, agreement: str, date: str) -> Input | None:
        """Return the share of a warrant whose hurdles of share price were reached by a date.

        Args:
            agreement: Id of a document of `rebates`.
            date: A written date; prices of later rows do not count.

        Returns:
            (P / last hurdle)^n of the highest price P of the series, at most 1; None where the
            agreement states no hurdle.

        """
        terms = self.document_inputs("rebates", agreement, "rebate", f"rebates.{agreement}")
        hurdle, steps = (
            terms.get(f"rebates.{agreement}.{term_name}")
            for term_name in ("last_hurdle", "hurdle_steps")
        )
        company = str(self.document("rebates", agreement, "rebate")[1].get("company", ""))
        series = self.rows("shares").get((company, "price"))
        path = f"shares.{company}.price"
        price_rows = live(series, True, path) if series else []
        prices = [
            read_row(price_row, path)
            for price_row in price_rows
            if price_row.begins <= period(date).last
        ]
        highest = max(prices, key=lambda price: price.value, default=None)
        if hurdle is None or steps is None or highest is None:
            return None
        ratio = min(highest.value / hurdle.value, 1.0)
        low, reached_share, high = sorted(
            ratio**exponent
            for exponent in (steps.low or steps.value, steps.value, steps.high or steps.value)
        )
        note = (
            f"the share stood at {highest.value:,.2f} USD on {highest.as_of}, the last hurdle "
            f"is {hurdle.value:,.0f} USD"
        )
        return hurdle._replace(
            path=f"rebates.{agreement}.reachable",
            value=reached_share,
            unit="ratio",
            low=None if low == high else low,
            high=None if low == high else high,
            as_of=highest.as_of,
            kind="derived",
            note=note,
            stated_quantity=(reached_share, ""),
        )

    def ids(self, folder_name: str) -> list[str]:
        """Return the ids of the documents in a folder of the catalogue."""
        return sorted(
            {path.stem for folder in self.folders for path in (folder / folder_name).glob("*.toml")}
        )

    def find(self, folder_name: str, document_name: str, what: str) -> Path:
        """Return the file of a document, from the last folder that has the document.

        Raises:
            DataError: The id is unknown, or is not a name but a path.

        """
        for folder in reversed(self.folders):
            path = folder / folder_name / f"{document_name}.toml"
            if is_name(document_name) and path.is_file():
                return path
        raise unknown(what, document_name, self.ids(folder_name))

    def document(self, folder_name: str, document_name: str, what: str) -> tuple[Path, JsonObject]:
        """Return path and content of a TOML document."""
        path, is_own_system, content = self.once(
            (folder_name, document_name),
            lambda: self._found_document(folder_name, document_name, what),
        )
        if is_own_system:
            refuse_own(f"{path}: a system of your own, its counts and lanes,")
        return path, content

    def _found_document(
        self, folder_name: str, document_name: str, what: str
    ) -> tuple[Path, bool, JsonObject]:
        path = self.find(folder_name, document_name, what)
        return path, folder_name == "systems" and self.is_overlay(path), self.toml(path)

    def with_base(self, folder_name: str, document_name: str, what: str) -> list[str]:
        """Return the name of a TOML document, preceded by the name of its base if it has a base.

        Raises:
            DataError: The base has a base itself.

        """
        where, document = self.document(folder_name, document_name, what)
        if (base := document.get("base")) is None:
            return [document_name]
        if (
            self.document(folder_name, str(base), f"{what} that {where} is based on")[1].get("base")
            is not None
        ):
            raise DataError(f"{where}: base {base!r} has a base itself; name that one")
        return [str(base), document_name]

    def toml(self, path: Path) -> JsonObject:
        """Return the content of a TOML file of the catalogue, read once."""
        if path not in self._documents:
            self._documents[path] = read_toml(path)
        return self._documents[path]

    def once(self, cache_key: Any, make: Callable[[], T]) -> T:
        """Return the cached value for `cache_key`, computed by `make` on first use."""
        return value_once(self.cache, cache_key, make)

    def folder_files(self, name: str) -> list[Path]:
        """Return the files with a name in all data folders, the shipped file first."""
        return [path for folder in self.folders if (path := folder / name).is_file()]

    @cached_property
    def models(self) -> dict[str, Path]:
        """The `config.json` of every model, by model id (the name of its folder)."""
        return {
            path.parent.name: path
            for folder in self.folders
            for path in sorted((folder / "models").glob("*/config.json"))
        }

    def is_own(self, part: str) -> bool:
        """Return whether the user has added a part, so that none of its rows is shipped."""
        matching_rows = [
            part_row
            for (owner, _), part_rows in self.part_rows.items()
            if owner == part
            for part_row in part_rows
        ]
        return bool(matching_rows) and all(part_row.overlay for part_row in matching_rows)

    def is_overlay(self, path: Path) -> bool:
        """Return whether a file is the user's own: in an own folder, or not shipped."""
        shipped_folder, *own_folders = self.folders
        in_own_folder = any(path.is_relative_to(folder) for folder in own_folders)
        return in_own_folder or not path.is_relative_to(shipped_folder)

    def document_inputs(
        self,
        folder_name: str,
        document_name: str,
        what: str,
        prefix: str,
        cooling: str | None = None,
    ) -> dict[str, Input]:
        """Return the values of a TOML document as inputs by path, read once.

        The values of a site include those of its hall with the given cooling.
        """
        path, document = self.document(folder_name, document_name, what)
        return self.once(
            (path, prefix, cooling),
            lambda: self.stated_inputs(folder_name, path, document, prefix, cooling),
        )

    def stated_inputs(
        self,
        folder_name: str,
        path: Path,
        document: JsonMapping,
        prefix: str,
        cooling: str | None = None,
    ) -> dict[str, Input]:
        """Return the values of a TOML document by path; redaction replaces own values.

        Args:
            folder_name: Folder of the catalogue with documents of the same kind.
            path: File of the document, inside or outside the catalogue.
            document: Content of the file.
            prefix: Beginning of the input paths.
            cooling: Cooling of the hall whose values are added; None for no hall.

        Raises:
            DataError: A key is unknown, or a value is malformed.

        """
        in_place = self.in_place(folder_name, path, cooling)
        hall = halls_of(document, path).get(cooling or "", {})
        is_own = self.is_overlay(path)
        stated = values_of(document, prefix, path, is_own, in_place)
        stated |= values_of(hall, prefix, path, is_own, in_place, f"halls.{cooling}.")
        return {
            input_path: self.with_directness(stated_input)
            for input_path, stated_input in stated.items()
        }

    def in_place(
        self, folder_name: str, path: Path, cooling: str | None = None
    ) -> Callable[[CatalogueRow, str], CatalogueRow]:
        """Return the function that replaces a row of a document in redaction, from row and path.

        The function does not change rows of shipped documents, nor any row outside redaction.
        """
        if not (making.get() and self.is_overlay(path)):
            return _as_stated
        shipped = {
            (document_path.stem, attribute_name): [
                CatalogueRow(cells, f"{document_path}:{attribute_name}", False)
            ]
            for document_path in sorted((self.folders[0] / folder_name).glob("*.toml"))
            for attribute_name, cells in document_in_hall(self.toml(document_path), cooling).items()
            if isinstance(cells, dict) and "value" in cells
        }
        return partial(self.own_row, shipped=shipped)

    def own_row(self, catalogue_row: CatalogueRow, path: str, shipped: Rows) -> CatalogueRow:
        """Return the user's own row, or its stand-in where the answer withholds it."""
        if not making.get():
            return catalogue_row
        group, owner_name, attribute_name = split_path(path)
        row_attribute = attribute(group, attribute_name, catalogue_row.where)
        return row_in_place(
            catalogue_row,
            path,
            row_attribute,
            shipped.get((owner_name, attribute_name), []),
            lambda: self.once(
                ("usual", group, attribute_name), lambda: usual_value(shipped, row_attribute)
            ),
        )

    @cached_property
    def scenarios(self) -> dict[str, Path]:
        """The shipped scenarios by name."""
        return {path.stem: path for path in sorted(scenario_directory().glob("*.toml"))}

    @cached_property
    def published(self) -> dict[str, Path]:
        """The scenarios with figures of publications, by name."""
        return {
            path.stem: path for path in sorted((scenario_directory() / "published").glob("*.toml"))
        }

    @cached_property
    def shelves(self) -> list[str]:
        """The names of the folders that the catalogue reads in a data folder."""
        return [
            path.name
            for path in self.folders[0].iterdir()
            if path.is_dir() and path.name != "measured"
        ]

    def hash(self) -> str:
        """Return a short hash of all data files; equal data have equal hashes."""
        import hashlib

        # With a hash a reader could confirm a guess of an own value.
        if making.get() and len(self.folders) > 1:
            return WITHHELD
        digest = hashlib.sha256()
        # The user's folder may contain other folders, which the catalogue does not read.
        for folder in self.folders:
            files = [path for path in folder.iterdir() if path.is_file()]
            for path in sorted(
                [*files, *(path for shelf in self.shelves for path in (folder / shelf).rglob("*"))]
            ):
                if path.is_file():
                    digest.update(
                        path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes()
                    )
        if self.anchors:
            digest.update(repr(self.anchors).encode())
        return digest.hexdigest()[:16]


def is_name(id_text: str) -> bool:
    """Return whether a text may be an id: a single path step, short enough for a file name.

    Args:
        id_text: The text.

    """
    return (
        bool(id_text)
        and len(id_text) <= LONGEST_NAME
        and not set(id_text) & set("/\\\0")
        and id_text not in (".", "..")
    )


def _as_stated(catalogue_row: CatalogueRow, _: str) -> CatalogueRow:
    return catalogue_row


def values_of(
    document: JsonMapping,
    prefix: str,
    where: Path,
    overlay: bool,
    in_place: Callable[[CatalogueRow, str], CatalogueRow] = _as_stated,
    table: str = "",
) -> dict[str, Input]:
    """Return the values of a TOML document as inputs by path `<prefix>.<name>`.

    Entries that are not values are ignored. The attributes belong to the group with which the
    prefix begins, such as `site`, `terms` or `rebates`.

    Args:
        document: The parsed document.
        prefix: Beginning of the input paths.
        where: Path of the file, for errors.
        overlay: Whether the file is in the user's own folder.
        in_place: Returns the replacement of a row, from the row and its path.
        table: Place of the values inside the file, such as `halls.air.`.

    Raises:
        DataError: A key is unknown, or a number is malformed, lacks its table or has no attribute.

    """
    group = prefix.partition(".")[0]
    cell_values = {}
    for attribute_name, cells in document.items():
        if isinstance(cells, dict) and "value" in cells:
            cell_place = f"{where}:{table}{attribute_name}"
            surplus = set(cells) - {*COLUMNS, *OPTIONAL}
            if surplus:
                raise unknown("key", sorted(surplus)[0], (*COLUMNS, *OPTIONAL), cell_place)
            path = f"{prefix}.{attribute_name}"
            catalogue_row = in_place(CatalogueRow(cells, cell_place, overlay), path)
            cell_values[path] = read_row(catalogue_row, path)
        elif (group, attribute_name) in input_attributes():
            raise DataError(
                f"{where}:{table}{attribute_name}: expected a table with value, unit, kind and "
                "source"
            )
    return cell_values


def _rows_of_tables(folder: Path, group: str, overlay: bool = False) -> Iterator[CatalogueRow]:
    """Yield the rows of every CSV under a folder, in the order of the paths of the files."""
    columns = (TABLES[group][1], "attribute", *COLUMNS)
    for path in sorted(folder.rglob("*.csv")):
        for line, cells in read_csv(path, columns, optional=("use", "residual", *OPTIONAL)):
            yield CatalogueRow(cells, f"{path}:{line}", overlay)


def _owner_key(group: str, cells: Mapping[str, str]) -> tuple[str, str]:
    return cells[TABLES[group][1]], cells["attribute"]


def _by_owner(group: str, table_rows: Iterable[CatalogueRow]) -> Rows:
    """Return rows by owner and attribute."""
    return lists_by_key((_owner_key(group, table_row.cells), table_row) for table_row in table_rows)


def load_catalogue(data: Path | str | None = None) -> Catalogue:
    """Return the shipped catalogue, or one with the folder `data` laid over it.

    The shipped catalogue is shared and must not be changed.
    """
    return shipped() if data is None else Catalogue([Path(data)])


class CatalogueReading(NamedTuple):
    """Shipped catalogue as this process has read it."""

    catalogue: Catalogue
    stamp: tuple[Any, ...]  # sizes and change times of the files
    checked_at: float  # s, time of the last check for changed files


_readings: dict[Path, CatalogueReading] = {}  # by data folder


def shipped() -> Catalogue:
    """Return the shipped catalogue of this process, which is read again when a file changes."""
    folder = data_directory()
    now = monotonic()
    reading = _readings.get(folder)
    if reading is not None and now - reading.checked_at < CHECK_INTERVAL:
        return reading.catalogue
    stamp = (*file_stamps(folder, "measured"), *file_stamps(scenario_directory()))
    is_unchanged = reading is not None and reading.stamp == stamp
    catalogue = reading.catalogue if reading is not None and is_unchanged else Catalogue()
    _readings[folder] = CatalogueReading(catalogue, stamp, now)
    return catalogue
