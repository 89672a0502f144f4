"""Measured collectives as questions to the engine: each row's chip, ranks, placement, network,
library and operation.

Rows of one operation by one library and algorithm are asked together, as arrays; the command line
beside each gives the same number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.types import AnyArray, JsonObject
from tco.fabric.collectives import fastest_algorithm_time, reach
from tco.fabric.expert_exchange import Tokens, reported_bytes
from tco.fabric.libraries import (
    EXCHANGES,
    CollectiveLibrary,
    NotOfferedError,
    family_library,
    read_library,
    token_size,
)
from tco.fabric.links import PROTOCOLS, RankGroup, Route, group_across_domains, links_of_chips
from tco.performance.chip.engine_corrections import correction_of_rows
from tco.validation.measured import first_stated, mapped, numeric_column, refused, texts
from tco.validation.naming import read_pattern_table
from tco.validation.score import OfEngine, Prediction
from tco.validation.specifications import (
    CHIP,
    FAMILY,
    RowValues,
    Specifications,
    command_line,
    command_line_text,
)
from tco.validation.wording import interpret_note

# chips of a server where a row does not say; larger domains are racks, which servers are parts of
SERVER = 8
PLATEAU_SIZE = 8 * 2.0**30  # bytes taken for a row that states only its plateau at large messages
WORDS = ("column", "words", "library", "algorithm", "network")
ALONE = {"cluster.oversubscription": 1.0}  # ranks of a measurement meet at one switch


def collective_skip_reasons(table: pd.DataFrame, chips: Specifications) -> AnyArray:
    """Return the reason for skipping each row, empty if scored."""
    operations, fabric = texts(table, "op").astype(str), texts(table, "fabric")
    expert, results = (
        np.char.startswith(operations, "ep_"),
        [numeric_column(table, name) for name in ("time_us", "algbw_gb_s", "busbw_gb_s")],
    )
    return refused(
        table,
        (chips.parts == "", "unknown-accelerator"),
        (np.isnan(numeric_column(table, "n_gpus")), "unstated rank count"),
        (numeric_column(table, "n_gpus") < 2, "unsupported: ranks of one chip"),
        (
            ~np.isnan(results[0]) & ~expert & np.isnan(numeric_column(table, "message_size_bytes")),
            "unstated size",
        ),
        (
            (numeric_column(table, "nodes", 1) > 1) & ((fabric == "") | (fabric == "mixed")),
            "unstated network",
        ),
        (
            mapped(
                operations,
                lambda text: not interpret_note(chips.catalogue, "collective", text),
                bool,
            ),
            "unsupported operation",
        ),
        (expert & np.isnan(numeric_column(table, "tokens_per_rank")), "unstated token count"),
        (np.isnan(results).all(axis=0), "unstated result"),
        (results[0] == 0, "suspect: zero time"),
    )


class CollectiveRowKey(NamedTuple):
    """Key of collective rows that are predicted together."""

    operation: str
    library: str  # empty: that of the family
    family: str  # whose library is taken; empty where one is named
    algorithm: str
    network: str
    form: str  # of expert tokens
    groups: tuple[int, int]  # a token reaches so many of so many groups of experts
    cores: bool  # stated
    signalled: bool  # steps are transfers that signal each other
    engine: str  # the kernel of an engine whose table the rows are of

    def of(self, catalogue: Catalogue) -> CollectiveLibrary:
        """Return the library."""
        return (
            read_library(catalogue, self.library)
            if self.library
            else family_library(catalogue, self.family)
        )


def parse_collective_rows(table: pd.DataFrame, chips: Specifications) -> list[CollectiveRowKey]:
    """Return the collective key of each row, from its cells."""
    words = read_pattern_table(chips.catalogue, "libraries/words.csv", WORDS)
    cells = {
        name: np.char.lower(texts(table, name).astype(str))
        for name in ("library", "fabric", "algo", "notes", "dtype", "op")
    }
    cores = ~np.isnan(numeric_column(table, "sms"))
    signalled = {
        part: bool(part) and chips.catalogue.has_part_value(part, "dma_signal")
        for part in set(chips.parts)
    }
    engines, found = texts(table, "engine_kernel"), []
    for row, family in enumerate(chips.families):
        said = dict.fromkeys(("library", "algorithm", "network"), "")
        for one in words:
            if one["words"] in cells[one["column"]][row]:
                said = {name: text or one[name] for name, text in said.items()}
        operation = interpret_note(chips.catalogue, "collective", cells["op"][row])
        exchange = operation in EXCHANGES
        limited = (
            re.search(r"group-limited gating \(top-(\d+) groups\)", cells["notes"][row])
            if exchange
            else None
        )
        form = ("fp8" if "fp8" in cells["dtype"][row] else "bf16") if exchange else ""
        groups = (int(limited[1]), 2 * int(limited[1])) if limited else (0, 0)
        own = (
            said["library"],
            "" if said["library"] else family,
            said["algorithm"],
            said["network"] or "rdma",
        )
        found.append(
            CollectiveRowKey(
                operation,
                *own,
                form,
                groups,
                exchange and bool(cores[row]),
                signalled[chips.parts[row]],
                engines[row],
            )
        )
    return found


def nic_rate(table: pd.DataFrame) -> AnyArray:
    """Return the NIC rate of a rank where the fabric's text states it, as count x rate of a node or
    as one rate.
    """
    rates = np.full(len(table), np.nan)
    per_node = numeric_column(table, "gpus_per_node", 8)
    for row, fabric in enumerate(texts(table, "fabric")):
        many, one = re.search(r"(\d+)x(\d+)G", str(fabric)), re.search(r"(\d+)G IB", str(fabric))
        if many:
            rates[row] = float(many[1]) * float(many[2]) * 1e9 / 8 / per_node[row]
        elif one:
            rates[row] = float(one[1]) * 1e9 / 8
    return rates


class Rows:
    """Rows that are asked together: their values, their group and what they send."""

    def __init__(self, table: pd.DataFrame, chips: Specifications, asked: CollectiveRowKey) -> None:
        self.table, self.chips, self.asked = table, chips, asked
        known = chips.part("scale_up_domain")
        ranks, stated = numeric_column(table, "n_gpus"), nic_rate(table)
        self.per_domain = np.where(
            known > SERVER,
            np.minimum(ranks, known),
            np.minimum(ranks, numeric_column(table, "gpus_per_node", SERVER)),
        )
        # a server may join more chips than their kind usually has
        self.domain = np.maximum(known, self.per_domain)
        self.set_domain = self.domain > known
        self.group: RankGroup = group_across_domains(ranks, self.per_domain)
        own = chips.part("scale_out_bandwidth")
        self.set_nic = ~np.isnan(stated) & (self.group.domains > 1)
        self.nic = np.where(self.set_nic, stated, own)
        self.library = asked.of(chips.catalogue)
        self.cores = numeric_column(table, "sms") if asked.cores else None
        self.sizes = numeric_column(table, "message_size_bytes", PLATEAU_SIZE)

    def sent(self) -> Any:
        """Return the buffer, or the tokens of an expert exchange."""
        if self.asked.operation not in EXCHANGES:
            return self.sizes
        token = token_size(self.library, self.asked.form, numeric_column(self.table, "hidden", 0))
        drawn, groups = self.asked.groups
        return Tokens(
            numeric_column(self.table, "tokens_per_rank"),
            token,
            numeric_column(self.table, "topk", 1),
            groups,
            drawn,
            self.cores,
        )

    def answers(self) -> tuple[Any, Any]:
        """Return the time of every row, and the bytes its publisher divides by it."""
        seconds, moved = self.timed()
        if not self.asked.engine:
            return seconds, moved
        asked = self.of_engine(seconds)
        learnt = correction_of_rows(
            self.chips.catalogue, asked.operation, asked.kernel, asked.format, self.chips.parts
        )
        return seconds if learnt is None else learnt.of(
            asked.operation, seconds, asked.sides
        ), moved

    def of_engine(self, seconds: Any, rows: Sequence[int] = ()) -> OfEngine:
        """Return the rows as those of one kernel of an engine."""
        sides = {
            "ranks": self.group.ranks,
            "size": self.sizes,
            "tokens": numeric_column(self.table, "tokens_per_rank"),
        }
        return OfEngine(
            self.asked.operation, self.asked.engine, self.asked.form, rows, seconds, sides
        )

    def timed(self) -> tuple[Any, Any]:
        """Return the same as physics and the library have it."""
        values = RowValues(
            self.chips,
            ALONE
            | {
                f"parts.{CHIP}.scale_out_bandwidth": self.nic,
                f"parts.{CHIP}.scale_up_domain": self.domain,
            },
        )
        links = links_of_chips(
            values,
            CHIP,
            FAMILY,
            Route("leaf", 1, PROTOCOLS[self.asked.network]),
            self.library,
            signalled=self.asked.signalled,
        )
        at, size = reach(links, self.group), self.sent()
        return fastest_algorithm_time(
            at, self.asked.operation, size, self.asked.algorithm or None
        ), reported_bytes(at, size)

    def commands(self) -> list[str]:
        """Return the command line that gives each row's answer again."""
        found, apart = [], self.group.domains > 1
        for row, chip in enumerate(self.chips.parts):
            options = {
                "op": self.asked.operation,
                "ranks": self.group.ranks[row],
                "per-domain": self.per_domain[row] if apart[row] else None,
                "library": self.asked.library or None,
                "algorithm": self.asked.algorithm or None,
                "engine-kernel": self.asked.engine or None,
                **(
                    self.tokens_asked(row)
                    if self.asked.operation in EXCHANGES
                    else {"size": f"{command_line_text(self.sizes[row])}B"}
                ),
            }
            settings: JsonObject = {"cluster.chips": self.group.ranks[row]} if apart[row] else {}
            if self.set_domain[row]:
                settings[f"parts.{chip}.scale_up_domain"] = self.domain[row]
            if self.set_nic[row]:
                settings[f"parts.{chip}.scale_out_bandwidth"] = (self.nic[row], "byte/s")
            if apart[row] and self.asked.network != "rdma":
                settings["cluster.network"] = self.asked.network
            found.append(
                command_line(["collective", chip], {**options, "format": "json"}, settings)
            )
        return found

    def tokens_asked(self, row: int) -> JsonObject:
        """Return the options of an expert exchange."""
        drawn, groups = self.asked.groups
        return {
            "tokens": numeric_column(self.table, "tokens_per_rank")[row],
            "hidden": numeric_column(self.table, "hidden", 0)[row],
            "topk": numeric_column(self.table, "topk", 1)[row],
            "precision": self.asked.form,
            "sms": None if self.cores is None else self.cores[row],
            "groups": f"{drawn}/{groups}" if groups else None,
        }


def rows_by_collective(
    table: pd.DataFrame, chips: Specifications, skip: AnyArray
) -> Iterator[tuple[CollectiveRowKey, AnyArray]]:
    """Yield the rows that are asked together, of those that are not left out."""
    groups: dict[CollectiveRowKey, list[int]] = {}
    for row, asked in enumerate(parse_collective_rows(table, chips)):
        if skip[row] == "":
            groups.setdefault(asked, []).append(row)
    for asked, rows in groups.items():
        yield asked, np.array(rows)


def engine_collective_rows(
    table: pd.DataFrame, chips: Specifications
) -> tuple[AnyArray, list[OfEngine]]:
    """Return the measured times of rows of engines' tables, in seconds, and the rows of every
    kernel with the times that physics gives them.
    """
    found = []
    for asked, chosen in rows_by_collective(table, chips, collective_skip_reasons(table, chips)):
        if asked.engine:
            rows = Rows(table.iloc[chosen], chips.rows(chosen), asked)
            found.append(rows.of_engine(rows.timed()[0], chosen.tolist()))
    return numeric_column(table, "time_us") / 1e6, found


def predict_collectives(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of collectives: its time, or the bandwidth it gives instead."""
    skip = collective_skip_reasons(table, chips)
    target, predicted = np.full(len(table), np.nan), np.full((*chips.sets, len(table)), np.nan)
    names, command, key = (np.full(len(table), "", dtype=object) for _ in range(3))
    for asked, chosen in rows_by_collective(table, chips, skip):
        rows = Rows(table.iloc[chosen], chips.rows(chosen), asked)
        try:
            seconds, moved = rows.answers()
        except NotOfferedError:
            skip[chosen] = "unsupported algorithm: neither fabric nor library have it"
            continue
        target[chosen], _ = first_stated(rows.table, "time_us", "algbw_gb_s")
        stated = ~np.isnan(numeric_column(rows.table, "time_us"))
        predicted[..., chosen] = np.where(stated, seconds * 1e6, moved / seconds / 1e9)
        names[chosen] = np.where(stated, "time_us", "algbw_gb_s")
        key[chosen] = np.where(stated, "time_us", "algorithm_gb_per_s")
        if not chips.sets:
            command[chosen] = rows.commands()
    lost = (skip == "") & np.isnan(target)
    skip[lost] = "unsupported target: bus bandwidth alone"
    impossible = (skip == "") & ~np.isfinite(predicted).reshape(-1, len(table)).all(axis=0)
    skip[impossible] = "unsupported algorithm: neither fabric nor library have it"
    return Prediction(target, predicted, names, skip, command, key, np.ones(len(table)))
