"""Libraries of collectives are data: what a library lacks is never chosen.

Published rows are asked as anyone asks.
"""

from __future__ import annotations

import csv
import itertools
import json
import shlex
import tomllib

import numpy as np
import pytest

from tco import DataError
from tco.catalog.schema import LibrarySchema, expect
from tco.fabric.collectives import algorithms_for, timings_of_available
from tco.fabric.expert_exchange import units_reached_per_token
from tco.fabric.libraries import family_library, read_library
from tco.fabric.links import group_across_domains
from tests.catalogue import CATALOGUE, DATA
from tests.cli import tco
from tests.fabric_helpers import (
    OPERATIONS,
    Links,
    RankGroup,
    Tokens,
    fastest_algorithm_time,
    rank_group,
    reach,
    timings,
)
from tests.scenario_helpers import links_of
from tests.validation.today import predicted, table_of

EXCHANGES = ("dispatch", "combine")

LIBRARIES = CATALOGUE.ids("libraries")
SYSTEMS = (
    "h100-hgx8",
    "gb200-nvl72",
    "gb200-nvl36x2",
    "trn3-nl72x2",
    "trn2-nl32x2-3d",
    "tpuv7-cube64",
    "mi355x-8",
)
TOKENS = Tokens(128.0, 7168.0, 8)
SIZES = (8192.0, 1e6, 1e9)


def answer(*words: str) -> dict:
    done = tco("collective", *words, "--format", "json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_names_a_source_and_algorithms_that_some_fabric_has(name):
    document = tomllib.loads((DATA / "libraries" / f"{name}.toml").read_text())
    assert document["source"] in CATALOGUE.sources
    fabric_algorithms = {
        (op, algorithm)
        for system in SYSTEMS
        for op in (*OPERATIONS, *EXCHANGES)
        for algorithm in algorithms_for(
            whole_row(links_of(system, "best")), op, TOKENS if op in EXCHANGES else 1e6
        )
    }
    library = read_library(CATALOGUE, name)
    assert {
        (op, algorithm) for op, names in library.offers.items() for algorithm in names
    } <= fabric_algorithms


@pytest.mark.parametrize("name", LIBRARIES)
def test_shipped_library_keeps_to_the_schema_of_own_ones(name):
    path = DATA / "libraries" / f"{name}.toml"
    expect(LibrarySchema, path, tomllib.loads(path.read_text()))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("block = 128 }", "blocks = 128 }", "formats.fp8.block: Field required"),
        ("element = 1,", 'element = "one",', "formats.fp8.element: Input should be a valid number"),
        (
            "scale = 4",
            "scale = -4",
            "formats.fp8.scale: Input should be greater than or equal to 0",
        ),
        ('source = "deepep"\n', "", None),
        ("[formats]", '[formats]\nsource = "me"', "formats.source: "),
    ],
)
def test_bad_own_library_is_refused_with_the_key(own_data, old, new, message):
    text = (DATA / "libraries" / "deepep.toml").read_text()
    assert old in text
    path = own_data.write("libraries/deepep.toml", text.replace(old, new, 1))
    if message is None:
        assert (
            read_library(own_data.catalogue(), "deepep").offers
            == read_library(CATALOGUE, "deepep").offers
        )
        return
    with pytest.raises(DataError) as caught:
        read_library(own_data.catalogue(), "deepep")
    assert str(caught.value).startswith(f"{path}: {message}")


def whole_row(met: Links):
    return reach(met, rank_group(met, met.world))


@pytest.mark.parametrize(
    "family", sorted(set(CATALOGUE.toml(DATA / "performance" / "families.toml").values()))
)
def test_every_family_has_a_library_for_every_operation(family):
    library = family_library(CATALOGUE, family)
    assert all(library.offers.get(op) for op in (*OPERATIONS, *EXCHANGES))


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("library", [None, "nccl", "tensorrt-llm", "neuron", "xla", "best"])
def test_algorithm_that_the_library_lacks_is_never_chosen(system, library):
    met = links_of(system, library)
    rank_reach = whole_row(met)
    for operation, size in itertools.product(OPERATIONS, SIZES):
        algorithm_times = {
            name: float(timing.time)
            for name, timing in timings(met, operation, met.world, size).items()
        }
        offered_times = [
            algorithm_times[name]
            for name in algorithm_times
            if met.library.anywhere(operation, name)
            or (met.library.offered(operation, name) and rank_reach.group.domains == 1)
        ]
        if not offered_times:
            with pytest.raises(DataError, match="offers"):
                fastest_algorithm_time(rank_reach, operation, size)
            continue
        assert float(fastest_algorithm_time(rank_reach, operation, size)) == min(offered_times)
        assert min(algorithm_times.values()) == float(
            fastest_algorithm_time(
                reach(met._replace(library=read_library(CATALOGUE, "best")), rank_reach.group),
                operation,
                size,
            )
        )


def test_kernels_of_an_engine_stay_inside_a_domain():
    met = links_of("h100-hgx8", "tensorrt-llm")
    assert "one-shot" in timings_of_available(
        reach(met, rank_group(met, 8)),
        "all-reduce",
        algorithms_for(reach(met, rank_group(met, 8)), "all-reduce", 1e4),
        1e4,
    )
    assert "one-shot" not in timings_of_available(
        reach(met, rank_group(met, 16)),
        "all-reduce",
        algorithms_for(reach(met, rank_group(met, 16)), "all-reduce", 1e4),
        1e4,
    )
    batched_times = fastest_algorithm_time(
        reach(met, rank_group(met, np.array([8.0, 16.0]))), "all-reduce", 1e4
    )
    single_times = [
        float(fastest_algorithm_time(reach(met, rank_group(met, ranks)), "all-reduce", 1e4))
        for ranks in (8, 16)
    ]
    assert np.allclose(batched_times, single_times, rtol=1e-12)


def test_a_host_that_calls_eagerly_adds_its_time_to_collectives_alone():
    eager, plain = links_of("h100-hgx8", "pytorch"), links_of("h100-hgx8", "nccl")
    added = CATALOGUE.practice("pytorch", "eager_overhead").value
    for operation in OPERATIONS:
        expected_overhead = 0.0 if operation == "send-recv" else added
        eager_time, plain_time = (
            float(fastest_algorithm_time(reach(met, rank_group(met, 8)), operation, 1e6))
            for met in (eager, plain)
        )
        assert eager_time - plain_time == pytest.approx(expected_overhead, abs=1e-15)


def test_a_tree_passes_a_board_as_a_chain():
    """Eight boards of a server: 7 steps along the chain and 1 between two of them, up and down."""
    met = links_of("h100-hgx8")
    tree_timing = timings(met, "all-reduce", 16, 8192.0)["tree"]
    t = met.latencies
    assert float(tree_timing.stepping - tree_timing.start) == pytest.approx(
        2 * (7 * float(t.step) + float(t.network_step)), rel=1e-12
    )


def test_ranks_in_different_domains_communicate_over_the_network():
    met = links_of("h100-hgx8")
    near, far = (reach(met, group) for group in (rank_group(met, 2), group_across_domains(2, 1)))
    assert float(far.rate) == float(met.network)
    assert (
        float(fastest_algorithm_time(far, "send-recv", 8192.0))
        > float(fastest_algorithm_time(near, "send-recv", 8192.0)) + 1e-5
    )


def test_pairs_across_two_racks_of_one_world_need_no_network():
    met = links_of("trn3-nl72x2")
    assert float(reach(met, group_across_domains(2, 1)).rate) == float(met.crossing)
    assert float(reach(met, RankGroup(2, 2, 1, worlds=2)).rate) == float(met.network)


def test_a_group_on_part_of_a_mesh_uses_the_links_between_its_chips():
    met = links_of("mi300x-8")
    half, full = (reach(met, rank_group(met, ranks)).links for ranks in (4, 8))
    for rate in ("inside", "direct", "pairwise", "spread"):
        assert float(getattr(half, rate)) == pytest.approx(
            3 / 7 * float(getattr(full, rate)), rel=1e-12
        )


def test_the_protocol_of_the_network_sets_its_step():
    plain, efa = (
        links_of("h100-hgx8", cluster__chips="64", cluster__network=name)
        for name in ("rdma", "efa")
    )
    for met, name in ((plain, "network_step"), (efa, "efa_step")):
        assert float(met.latencies.network_step) == CATALOGUE.practice("nvidia", name).value


def test_chips_on_pcie_step_slower():
    """Of one clock and one die: the ratio of NCCL's table."""
    fast, slow = (
        links_of("l40s", parts__l40s__pcie_only=flag).latencies.near_step for flag in ("0", "1")
    )
    assert float(slow / fast) == pytest.approx(
        CATALOGUE.practice("nvidia", "pcie_step_ratio").value
    )


@pytest.mark.parametrize("units", [2, 4, 8, 16, 64])
def test_routing_to_some_groups_against_draws(units):
    """Four of eight groups, two experts in each of them, every choice alike."""
    random, experts = np.random.default_rng(7), 256
    units_reached = []
    for _ in range(4000):
        groups = random.choice(8, 4, replace=False)
        chosen = np.concatenate([group * 32 + random.integers(0, 32, 2) for group in groups])
        units_reached.append(len(set((chosen * units // experts).tolist())))
    assert float(units_reached_per_token(Tokens(1, 1.0, 8, 8, 4), units)) == pytest.approx(
        np.mean(units_reached), rel=0.02
    )


def test_cores_that_copy_bind_where_few():
    few_core_time, many_core_time = (
        answer(
            "h100-sxm",
            "--op",
            "dispatch",
            "--tokens",
            "4096",
            "--algorithm",
            "normal",
            "--sms",
            cores,
        )["time_us"]
        for cores in ("4", "64")
    )
    assert few_core_time > 2 * many_core_time


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--library", "ncl"), "nccl"),
        (("--algorithm", "rin"), "ring"),
        (("--algorithm", "one-shot"), "offers ring, tree, in-network"),
        (("--op", "all-reduce", "--library", "deepep"), "dispatch, combine"),
        (("--op", "dispatch", "--groups", "9/8"), "expected D/G"),
        (("--op", "dispatch", "--precision", "fp3"), "fp8"),
        (("--op", "combine", "--to", "1GiB"), "--tokens"),
        (("--ranks", "32", "--per-domain", "16"), "domain of h100-hgx8 has 8"),
        (("--ranks", "32", "--per-domain", "9" * 20), "domain of h100-hgx8 has 8"),
        (("--set", "cluster.network=token-ring"), "rdma"),
    ],
)
def test_impossible_collective_is_refused(words, message):
    done = tco("collective", "h100-hgx8", *words)
    assert done.exit_code == 3
    assert message in done.stderr


def test_own_library_is_used(tmp_path):
    (tmp_path / "libraries").mkdir()
    (tmp_path / "libraries" / "mine.toml").write_text(
        'name = "mine"\nsource = "tco-model"\nextends = "nccl"\n[offers]\nall-gather = ["direct"]\n'
    )
    library_answer = answer(
        "h100-hgx8",
        "--op",
        "all-gather",
        "--size",
        "64KiB",
        "--library",
        "mine",
        "--data",
        str(tmp_path),
    )
    assert (library_answer["algorithm"], library_answer["library"]) == ("direct", "mine")
    (tmp_path / "libraries" / "mine.toml").write_text(
        'name = "mine"\nsource = "tco-model"\n[offers]\nall-gather = "direct"\n'
    )
    done = tco("collective", "h100-hgx8", "--library", "mine", "--data", str(tmp_path))
    assert done.exit_code == 3
    assert (
        "mine.toml: offers.all-gather: Input should be a valid list, found 'direct'" in done.stderr
    )


@pytest.fixture(scope="module")
def measured():
    table = table_of("collectives")
    return table, predicted("collectives", table)


@pytest.mark.thorough
def test_a_row_of_each_kind_can_be_asked_again(measured):
    """One for each source, operation, library, chip and placement, at another size each."""
    table, predictions = measured
    rows_by_kind: dict[tuple, list[int]] = {}
    for row in np.flatnonzero(predictions.skip == ""):
        rows_by_kind.setdefault(
            tuple(table.loc[row, ["source_id", "op", "library", "accelerator", "nodes"]]), []
        ).append(row)
    assert len(rows_by_kind) > 50
    for count, rows in enumerate(rows_by_kind.values()):
        row = rows[count % len(rows)]
        program, *words = shlex.split(predictions.command[row])
        done = tco(*words)
        assert program == "tco"
        assert json.loads(done.stdout)[predictions.key[row]] * predictions.scale[
            row
        ] == pytest.approx(predictions.predicted[row], rel=1e-9), predictions.command[row]


def test_times_by_the_library_of_the_family_are_near_those_of_nccl(measured):
    """Predicted times are within a tenth of NCCL's at the median and a quarter at the tail.

    The rows are inside one domain; the library is the family's.
    """
    table, _ = measured
    on = {
        "H100 SXM": "h100-hgx8",
        "B200 SXM": "b200-hgx8",
        "A100 SXM": "a100-hgx8",
        "H200 SXM": "h200-hgx8",
    }
    rows = table[
        table.accelerator.isin(on)
        & table.library.str.startswith("NCCL 2")
        & (table.nodes == 1)
        & table.time_us.notna()
        & (table.message_size_bytes >= 4096)
    ]
    errors = []
    for (chip, op, ranks), case_rows in rows.groupby(["accelerator", "op", "n_gpus"]):
        met = links_of(on[chip])
        predicted_times = fastest_algorithm_time(
            reach(met, rank_group(met, np.full(len(case_rows), ranks))),
            {"alltoall": "all-to-all"}.get(op, op.replace("_", "-")),
            case_rows.message_size_bytes.to_numpy(float),
        )
        errors.append(np.abs(predicted_times * 1e6 / case_rows.time_us.to_numpy(float) - 1))
    all_errors = np.concatenate(errors)
    assert len(all_errors) > 600
    assert np.median(all_errors) <= 0.10
    assert np.percentile(all_errors, 90) <= 0.26


def test_words_in_rows_name_libraries_that_exist():
    for row in csv.DictReader((DATA / "libraries" / "words.csv").read_text().splitlines()):
        assert not row["library"] or row["library"] in LIBRARIES


def test_a_negative_buffer_is_refused():
    done = tco("collective", "h100-hgx8", "--size", "-1MiB")
    assert done.exit_code == 2
    assert "--size" in done.stderr
