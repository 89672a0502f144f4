"""Measured collectives as questions to the engine: chip, ranks, network, library and operation.

Rows of one operation by one library and algorithm are asked together, as arrays; the command line
beside each gives the same number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.core.mappings import lists_by_key
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
from tco.validation.command_lines import command_line, command_line_text
from tco.validation.measured_rows import CHIP, FAMILY, MeasuredRows, RowValues
from tco.validation.naming import read_pattern_table
from tco.validation.score import OfEngine, Prediction
from tco.validation.wording import interpret_note

# chips of a server where a row does not say; larger domains are racks, which servers are parts of
SERVER = 8
PLATEAU_SIZE = 8 * 2.0**30  # bytes taken for a row that states only its plateau at large messages
WORDS = ("column", "words", "library", "algorithm", "network")
GROUP_LIMIT = re.compile(r"group-limited gating \(top-(\d+) groups\)")
ALONE = {"cluster.oversubscription": 1.0}  # ranks of a measurement meet at one switch


def _collective_skip_reasons(measurements: MeasuredRows) -> AnyArray:
    """Return the reason for skipping each row, empty if scored."""
    operations, fabric = measurements["op"], measurements["fabric"]
    ranks, time = measurements["n_gpus"], measurements["time_us"]
    expert = np.array(
        [operation_name.startswith("ep_") for operation_name in operations], dtype=bool
    )
    measured_results = [time, measurements["algbw_gb_s"], measurements["busbw_gb_s"]]
    return measurements.refused(
        (measurements.parts == "", "unknown-accelerator"),
        (np.isnan(ranks), "unstated rank count"),
        (ranks < 2, "unsupported: ranks of one chip"),
        (
            ~np.isnan(time) & ~expert & np.isnan(measurements["message_size_bytes"]),
            "unstated size",
        ),
        (
            (measurements.filled("nodes", 1) > 1) & ((fabric == "") | (fabric == "mixed")),
            "unstated network",
        ),
        (measurements.meanings("collective", "op") == "", "unsupported operation"),
        (expert & np.isnan(measurements["tokens_per_rank"]), "unstated token count"),
        (np.isnan(measured_results).all(axis=0), "unstated result"),
        (time == 0, "suspect: zero time"),
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


def _parse_collective_rows(measurements: MeasuredRows) -> list[CollectiveRowKey]:
    """Return the collective key of each row, from its cells."""
    catalogue = measurements.catalogue
    words = read_pattern_table(catalogue, "libraries/words.csv", WORDS)
    cells = {
        column_name: [cell_text.lower() for cell_text in measurements[column_name]]
        for column_name in ("library", "fabric", "algo", "notes", "dtype", "op")
    }
    cores = ~np.isnan(measurements["sms"])
    signalled = {
        part: bool(part) and catalogue.has_part_value(part, "dma_signal")
        for part in set(measurements.parts)
    }
    engines, collective_keys = measurements["engine_kernel"], []
    for row_index, family in enumerate(measurements.families):
        stated = dict.fromkeys(("library", "algorithm", "network"), "")
        for word in words:
            if word["words"] in cells[word["column"]][row_index]:
                stated = {
                    property_name: stated_text or word[property_name]
                    for property_name, stated_text in stated.items()
                }
        operation = interpret_note(catalogue, "collective", cells["op"][row_index])
        exchange = operation in EXCHANGES
        limited = GROUP_LIMIT.search(cells["notes"][row_index]) if exchange else None
        library = stated["library"]
        collective_keys.append(
            CollectiveRowKey(
                operation,
                library,
                "" if library else family,
                stated["algorithm"],
                stated["network"] or "rdma",
                form=("fp8" if "fp8" in cells["dtype"][row_index] else "bf16") if exchange else "",
                groups=(int(limited[1]), 2 * int(limited[1])) if limited else (0, 0),
                cores=exchange and bool(cores[row_index]),
                signalled=signalled[measurements.parts[row_index]],
                engine=engines[row_index],
            )
        )
    return collective_keys


def _nic_rate(measurements: MeasuredRows) -> AnyArray:
    """Return the NIC rate of a rank where the fabric's text states it.

    The text has it as count x rate of a node, or as one rate.
    """
    rates = np.full(len(measurements), np.nan)
    per_node = measurements.filled("gpus_per_node", 8)
    for row_index, fabric in enumerate(measurements["fabric"]):
        nics, nic = re.search(r"(\d+)x(\d+)G", fabric), re.search(r"(\d+)G IB", fabric)
        if nics:
            rates[row_index] = float(nics[1]) * float(nics[2]) * 1e9 / 8 / per_node[row_index]
        elif nic:
            rates[row_index] = float(nic[1]) * 1e9 / 8
    return rates


class Rows:
    """Rows that are predicted together: their values, their group and what they send."""

    def __init__(self, measurements: MeasuredRows, collective_key: CollectiveRowKey) -> None:
        self.measurements, self.key = measurements, collective_key
        domain = measurements.part("scale_up_domain")
        ranks, stated = measurements["n_gpus"], _nic_rate(measurements)
        servers = measurements.filled("gpus_per_node", SERVER)
        self.per_domain = np.minimum(ranks, np.where(domain > SERVER, domain, servers))
        # a server may join more chips than their kind usually has
        self.domain = np.maximum(domain, self.per_domain)
        self.set_domain = self.domain > domain
        self.group: RankGroup = group_across_domains(ranks, self.per_domain)
        self.set_nic = ~np.isnan(stated) & (self.group.domains > 1)
        self.nic = np.where(self.set_nic, stated, measurements.part("scale_out_bandwidth"))
        self.library = collective_key.of(measurements.catalogue)
        self.cores = measurements["sms"] if collective_key.cores else None
        self.sizes = measurements.filled("message_size_bytes", PLATEAU_SIZE)
        self.tokens = measurements["tokens_per_rank"]
        self.hidden = measurements.filled("hidden", 0)
        self.top_experts = measurements.filled("topk", 1)

    def sent(self) -> Any:
        """Return the buffer, or the tokens of an expert exchange."""
        if self.key.operation not in EXCHANGES:
            return self.sizes
        token = token_size(self.library, self.key.form, self.hidden)
        drawn, groups = self.key.groups
        return Tokens(self.tokens, token, self.top_experts, groups, drawn, self.cores)

    def answers(self) -> tuple[Any, Any]:
        """Return the time of every row, and the bytes its publisher divides by it."""
        seconds, reported = self.timed()
        if self.key.engine:
            engine_rows = self.of_engine(seconds)
            correction = correction_of_rows(
                self.measurements.catalogue,
                engine_rows.operation,
                engine_rows.kernel,
                engine_rows.format,
                self.measurements.parts,
            )
            if correction is not None:
                seconds = correction.of(engine_rows.operation, seconds, engine_rows.sides)
        return seconds, reported

    def of_engine(self, seconds: Any, row_indices: Sequence[int] = ()) -> OfEngine:
        """Return the rows as those of one kernel of an engine."""
        sides = {"ranks": self.group.ranks, "size": self.sizes, "tokens": self.tokens}
        return OfEngine(
            self.key.operation, self.key.engine, self.key.form, row_indices, seconds, sides
        )

    def timed(self) -> tuple[Any, Any]:
        """Return time and reported bytes as physics and the library have them."""
        row_values = RowValues(
            self.measurements,
            ALONE
            | {
                f"parts.{CHIP}.scale_out_bandwidth": self.nic,
                f"parts.{CHIP}.scale_up_domain": self.domain,
            },
        )
        route = Route("leaf", 1, PROTOCOLS[self.key.network])
        links = links_of_chips(
            row_values, CHIP, FAMILY, route, self.library, signalled=self.key.signalled
        )
        reached, size = reach(links, self.group), self.sent()
        algorithm = self.key.algorithm or None
        seconds = fastest_algorithm_time(reached, self.key.operation, size, algorithm)
        return seconds, reported_bytes(reached, size)

    def commands(self) -> list[str]:
        """Return the command line that gives each row's answer again."""
        collective_key, lines, across_domains = self.key, [], self.group.domains > 1
        for row_index, chip in enumerate(self.measurements.parts):
            across = across_domains[row_index]
            options = {
                "op": collective_key.operation,
                "ranks": self.group.ranks[row_index],
                "per-domain": self.per_domain[row_index] if across else None,
                "library": collective_key.library or None,
                "algorithm": collective_key.algorithm or None,
                "engine-kernel": collective_key.engine or None,
                **(
                    self.tokens_asked(row_index)
                    if collective_key.operation in EXCHANGES
                    else {"size": f"{command_line_text(self.sizes[row_index])}B"}
                ),
                "format": "json",
            }
            settings: JsonObject = {"cluster.chips": self.group.ranks[row_index]} if across else {}
            if self.set_domain[row_index]:
                settings[f"parts.{chip}.scale_up_domain"] = self.domain[row_index]
            if self.set_nic[row_index]:
                settings[f"parts.{chip}.scale_out_bandwidth"] = (self.nic[row_index], "byte/s")
            if across and collective_key.network != "rdma":
                settings["cluster.network"] = collective_key.network
            lines.append(command_line(["collective", chip], options, settings))
        return lines

    def tokens_asked(self, row_index: int) -> JsonObject:
        """Return the options of an expert exchange."""
        drawn, groups = self.key.groups
        return {
            "tokens": self.tokens[row_index],
            "hidden": self.hidden[row_index],
            "topk": self.top_experts[row_index],
            "precision": self.key.form,
            "sms": None if self.cores is None else self.cores[row_index],
            "groups": f"{drawn}/{groups}" if groups else None,
        }


def _rows_by_collective(
    measurements: MeasuredRows, skip: AnyArray
) -> Iterator[tuple[Rows, AnyArray]]:
    """Yield the rows that are predicted together with their indices, without those left out."""
    groups = lists_by_key(
        (collective_key, row_index)
        for row_index, collective_key in enumerate(_parse_collective_rows(measurements))
        if skip[row_index] == ""
    )
    for collective_key, row_indices in groups.items():
        indices = np.array(row_indices)
        yield Rows(measurements.chosen(indices), collective_key), indices


def engine_collective_rows(measurements: MeasuredRows) -> tuple[AnyArray, list[OfEngine]]:
    """Return the measured times of rows of engines' tables, in seconds, and physics beside.

    The rows of every kernel have the times that physics gives them.
    """
    skip = _collective_skip_reasons(measurements)
    return measurements["time_us"] / 1e6, [
        collective_rows.of_engine(collective_rows.timed()[0], chosen.tolist())
        for collective_rows, chosen in _rows_by_collective(measurements, skip)
        if collective_rows.key.engine
    ]


def predict_collectives(measurements: MeasuredRows) -> Prediction:
    """Predict every row of a file of collectives: its time, or the bandwidth it gives instead."""
    count = len(measurements)
    skip = _collective_skip_reasons(measurements)
    target = np.full(count, np.nan)
    predicted = np.full((*measurements.sets, count), np.nan)
    target_names, command, answer_keys = np.full((3, count), "", dtype=object)
    for collective_rows, chosen in _rows_by_collective(measurements, skip):
        try:
            seconds, reported = collective_rows.answers()
        except NotOfferedError:
            skip[chosen] = "unsupported algorithm: neither fabric nor library have it"
            continue
        target[chosen], _ = collective_rows.measurements.first_stated("time_us", "algbw_gb_s")
        stated = ~np.isnan(collective_rows.measurements["time_us"])
        predicted[..., chosen] = np.where(stated, seconds * 1e6, reported / seconds / 1e9)
        target_names[chosen] = np.where(stated, "time_us", "algbw_gb_s")
        answer_keys[chosen] = np.where(stated, "time_us", "algorithm_gb_per_s")
        if not measurements.sets:
            command[chosen] = collective_rows.commands()
    lost = (skip == "") & np.isnan(target)
    skip[lost] = "unsupported target: bus bandwidth alone"
    finite = np.isfinite(predicted).reshape(-1, count).all(axis=0)
    skip[(skip == "") & ~finite] = "unsupported algorithm: neither fabric nor library have it"
    return Prediction(target, predicted, target_names, skip, command, answer_keys, np.ones(count))
