"""Number formats: the peak they compute at, their bytes, unpacking, and effect on each operand."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco import DataError
from tco.performance.layer.chip_model import model_format_notes
from tests.catalogue import CATALOGUE
from tests.cli import document, tco
from tests.performance.servers import (
    FORMATS,
    DecodePlan,
    Machine,
    PrefillPlan,
    bare,
    computed_on,
    named,
    over_layers,
    product,
    server,
)
from tests.registry import FORMULA
from tests.scenario_helpers import plain_values

COMPUTED = {  # chip: format: the format it is computed as, and whether software unpacks it first
    "trn3": {
        "mxfp4": ("fp4", False),
        "w4a8": ("fp8", False),
        "nvfp4": ("fp8", True),
        "int4": ("bf16", True),
        "int8": ("bf16", True),
        "fp8": ("fp8", False),
        "mxfp8": ("fp8", False),
        "bf16": ("bf16", False),
    },
    "gb200-gpu": {
        "nvfp4": ("fp4", False),
        "mxfp4": ("fp4", False),
        "w4a8": ("fp8", False),
        "int4": ("bf16", True),
        "int8": ("int8", False),
        "fp8": ("fp8", False),
    },
    "h100-sxm": {
        "nvfp4": ("fp8", True),
        "mxfp4": ("fp8", True),
        "w4a8": ("fp8", True),
        "fp4": ("fp8", True),
        "int8": ("int8", False),
        "fp8": ("fp8", False),
        "bf16": ("bf16", False),
    },
    "a100-sxm-80gb": {
        "fp8": ("bf16", True),
        "nvfp4": ("bf16", True),
        "w4a8": ("bf16", True),
        "int8": ("int8", False),
        "bf16": ("bf16", False),
    },
    "mi355x": {
        "nvfp4": ("fp8", True),
        "mxfp4": ("fp4", False),
        "w4a8": ("fp8", False),
        "int8": ("int8", False),
        "fp8": ("fp8", False),
    },
}
TRN3 = "trn3-nl72x2"
DECODE, PREFILL = DecodePlan(144.0, 4.0, 1.0, 1.0, 0.0, 32.0), PrefillPlan(16.0, 4.0)


def values_of(**settings: str):
    return plain_values(**settings)


@pytest.mark.parametrize(
    ("chip", "name"), [(chip, name) for chip, rows in COMPUTED.items() for name in rows], ids=str
)
def test_format_is_computed_at_the_peak_of_its_chip(chip, name):
    chip_format = computed_on(values_of(), chip, name, "workload.precision")
    assert (chip_format.computed_as, chip_format.unpacked) == COMPUTED[chip][name]
    assert chip_format.stored == name
    assert chip_format.is_native == (
        not chip_format.unpacked
        and chip_format.computed_as == FORMATS[name].peaks[0].removeprefix("peak_")
    )


def test_every_chip_computes_every_format_somehow():
    values = values_of()
    for chip, name in itertools.product(COMPUTED, FORMATS):
        assert (
            values[f"parts.{chip}.{computed_on(values, chip, name, 'workload.precision').peak}"] > 0
        )


def test_own_peak_or_unit_of_a_format_is_used():
    """A chip that gets a peak or units for a block format computes it, whatever its name."""
    chip_format = computed_on(
        values_of(**{"parts__a100-sxm-80gb__peak_fp8": "600 TFLOP/s"}),
        "a100-sxm-80gb",
        "fp8",
        "workload.precision",
    )
    assert (chip_format.computed_as, chip_format.unpacked) == ("fp8", False)
    chip_format = computed_on(
        values_of(parts__trn3__takes_nvfp4="1"), "trn3", "nvfp4", "workload.precision"
    )
    assert (chip_format.computed_as, chip_format.unpacked) == ("fp4", False)
    chip_format = computed_on(
        values_of(parts__trn3__peak_int8="1000 TFLOP/s"), "trn3", "int8", "workload.precision"
    )
    assert (chip_format.computed_as, chip_format.unpacked) == ("int8", False)


# ---------------------------------------------------------------- formats that there are not
@pytest.mark.parametrize(
    ("path", "text", "nearest"),
    [
        ("precision", "fp9", "fp8"),
        ("precision", "w4a9", "w4a8"),
        ("expert_format", "nvfp5", "nvfp4"),
        ("attention_format", "mxfp9", "mxfp8"),
        ("cache_format", "bf17", "bf16"),
    ],
)
def test_an_unknown_format_names_the_nearest(path, text, nearest):
    with pytest.raises(DataError, match=rf"{text}.*{nearest}"):
        server(TRN3, **{f"workload__{path}": text})
    done = tco("perf", TRN3, "--set", f"workload.{path}={text}")
    assert done.exit_code == 3
    assert re.search(rf"unknown .*'{text}'.*{nearest}", done.stderr.replace("\n", " "))
    assert f"workload.{path}" in done.stderr
    assert "Traceback" not in done.output + done.stderr


# ---------------------------------------------------------------- bytes and times
def passes(
    system: str = TRN3, decode: DecodePlan = DECODE, prefill: PrefillPlan = PREFILL, **settings: str
):
    model_server = server(system, **{f"workload__{name}": text for name, text in settings.items()})
    return model_server.decode(decode), model_server.prefill(prefill)


PRODUCTS = ("attention projections", "experts", "shared expert", "feed-forward")


def test_weights_in_four_bits_beside_activations_in_eight():
    narrow, wide = passes(precision="w4a8"), passes(precision="mxfp8")
    for narrow_pass, wide_pass in zip(narrow, wide, strict=True):
        assert narrow_pass.time <= wide_pass.time
        for name in PRODUCTS:
            assert over_layers(narrow_pass, name, "flops") == over_layers(wide_pass, name, "flops")
            assert [o.compute_rate for o in narrow_pass.operators if o.name == name] == [
                o.compute_rate for o in wide_pass.operators if o.name == name
            ]
            assert over_layers(narrow_pass, name, "time") <= over_layers(wide_pass, name, "time")
    assert narrow[0].memory < wide[0].memory
    # few tokens an expert: reading binds
    assert named(narrow[0], "experts").time < 0.8 * named(wide[0], "experts").time
    narrow, wide = (passes(precision=name, input_tokens="65536")[1] for name in ("w4a8", "mxfp8"))
    for name in PRODUCTS:  # many tokens: computing binds, and that is the same
        assert over_layers(narrow, name, "time") == pytest.approx(
            over_layers(wide, name, "time"), rel=0.02
        )


@pytest.mark.parametrize("name", [name for name in PRODUCTS if name != "experts"])
def test_weights_are_read_as_they_are_stored(name):
    """Bytes that stay the same at twice the tokens are those of the stored weights.

    They are the bytes of T tokens twice, less those of 2 T.
    """

    def weights(precision: str) -> float:
        small_batch, large_batch = (
            passes(decode=DECODE._replace(sequences=count), precision=precision)[0]
            for count in (32.0, 64.0)
        )
        return 2 * over_layers(small_batch, name, "bytes") - over_layers(large_batch, name, "bytes")

    blocks = {
        "w4a8": (4, 8, 32),
        "w4a16": (4, 8, 32),
        "int4": (4, 16, 32),
        "nvfp4": (4, 8, 16),
        "mxfp8": (8, 8, 32),
        "fp8_block": (8, 32, 128),
    }
    for precision, (bits, scale, block) in blocks.items():
        assert weights(precision) / weights("bf16") == pytest.approx(
            (bits + scale / block) / 16, rel=1e-9
        ), precision


@pytest.mark.parametrize("sequences", [1.0, 8.0, 64.0, 512.0])
@pytest.mark.parametrize("tensor", [1.0, 4.0, 16.0])
def test_narrow_weights_never_slow_decode(tensor, sequences):
    plan = DecodePlan(144.0, tensor, 1.0, 1.0, 0.0, sequences)
    narrow, wide = (passes(decode=plan, precision=name)[0] for name in ("w4a8", "mxfp8"))
    assert narrow.time < wide.time


UNPACKED = [("h100-hgx8", "nvfp4"), ("a100-hgx8", "fp8"), (TRN3, "nvfp4"), ("gb200-nvl72", "int4")]


@pytest.mark.parametrize(("system", "name"), UNPACKED)
def test_unpacking_never_makes_anything_quicker(system, name):
    """Unpacking is no quicker than native units, and no slower than ten times its operations."""
    model_server = server(system, workload__precision=name)

    def unpacked(change) -> Machine:
        changed_operands = (
            operand
            if operand.unpacking is None
            else operand._replace(unpacking=change(*operand.unpacking))
            for operand in model_server.machine.operands
        )
        return model_server.machine._replace(operands=tuple(changed_operands))

    machines = [
        unpacked(lambda operations, rate: None),
        unpacked(lambda operations, rate: (0.0, rate)),
        model_server.machine,
        unpacked(lambda operations, rate: (10 * operations, rate)),
    ]
    for phase, plan in (
        ("decode", DecodePlan(8.0, 8.0, 1.0, 1.0, 0.0, 16.0)),
        ("prefill", PrefillPlan(8.0, 8.0)),
    ):
        none, free, unpacking, much = (
            getattr(model_server._replace(machine=machine), phase)(plan) for machine in machines
        )
        assert none.time == pytest.approx(free.time, rel=1e-12)
        for quick, slow in ((free, unpacking), (unpacking, much)):
            assert quick.time <= slow.time
            assert all(
                before.time <= after.time
                for before, after in zip(quick.operators, slow.operators, strict=True)
            )
        assert (
            unpacking.time < much.time or phase == "prefill"
        )  # the products of many tokens hide it


def test_unpacking_takes_the_vector_units_by_hand():
    """o operations for every weight read, at the vector rate, beside the matrix products."""
    model_server = server(TRN3, workload__precision="nvfp4")
    plan = DecodePlan(144.0, 4.0, 1.0, 1.0, 0.0, 1.0)
    feed_forward, made_of = (
        named(model_server.decode(plan), "feed-forward"),
        model_server.machine.operands[1],
    )
    operations, rate = made_of.unpacking
    expected = 0.0
    for inner, outer in ((7168, 2 * 18432 / 4), (18432 / 4, 7168)):
        packed_product = product(made_of._replace(unpacking=None), 1.0, outer, inner)
        expected += (
            max(packed_product.computing, inner * outer * operations / rate) ** 2
            + packed_product.moving**2
        ) ** 0.5
    assert feed_forward.time == pytest.approx(3 * expected, rel=1e-12)


# ---------------------------------------------------------------- a format for each operand
OPERANDS = {  # what each names, of the passes of a sparse model
    "expert_format": {"experts", "permute and gate"},  # and the casts of what goes into them
    "attention_format": {"attention projections", "elementwise"},
    "cache_format": {"attention core"},
}
CASTS = {"elementwise", "permute and gate"}
FOLLOWERS = {
    "precision": {
        "experts",
        "attention projections",
        "attention core",
        "shared expert",
        "feed-forward",
        "dispatch",
        *CASTS,
    }
}


@pytest.mark.parametrize("phase", [0, 1], ids=["decode", "prefill"])
@pytest.mark.parametrize("operand", OPERANDS)
def test_a_format_changes_what_it_names_alone(operand, phase):
    base, changed_pass = (
        passes(precision="bf16")[phase],
        passes(precision="bf16", **{operand: "fp8"})[phase],
    )
    changed = {
        before.name
        for before, after in zip(bare(base), bare(changed_pass), strict=True)
        if before != after
    }
    assert changed == OPERANDS[operand]
    sizes = {
        name: over_layers(changed_pass, name, "bytes") / over_layers(base, name, "bytes")
        for name in changed - CASTS
    }
    # half of weights, activations and caches; results stay wide
    assert all(0.5 * (1 - 1e-12) <= size < 0.85 for size in sizes.values())
    assert sizes.get("attention core", 0.5) == pytest.approx(0.5, rel=1e-12)
    assert changed_pass.memory < base.memory


@pytest.mark.parametrize("phase", [0, 1], ids=["decode", "prefill"])
def test_operands_without_a_format_follow_the_precision(phase):
    base, narrow_pass = passes(precision="bf16")[phase], passes(precision="fp8")[phase]
    changed = {
        before.name
        for before, after in zip(bare(base), bare(narrow_pass), strict=True)
        if before != after
    }
    # tokens of other bytes may be sent where they were gathered, and so are their sums
    assert changed - {"combine"} == FOLLOWERS["precision"]
    stated_pass = passes(
        precision="fp8", expert_format="fp8", attention_format="fp8", cache_format="fp8"
    )[phase]
    assert (stated_pass.time, stated_pass.memory) == (narrow_pass.time, narrow_pass.memory)
    # those that have one do not
    wide_pass = passes(
        precision="fp8", expert_format="bf16", attention_format="bf16", cache_format="bf16"
    )[phase]
    changed = {
        before.name
        for before, after in zip(bare(base), bare(wide_pass), strict=True)
        if before != after
    }
    assert changed - {"combine"} == {"shared expert", "feed-forward", "dispatch", "elementwise"}


def test_caches_and_tokens_on_the_wire_keep_eight_bits():
    narrow = server(TRN3, workload__precision="mxfp4").machine
    assert (narrow.cache_size, narrow.dispatch_size, narrow.expert_size) == (1.0, 1.0, 4.25 / 8)
    wide = server(TRN3, workload__precision="mxfp8").machine
    assert (wide.cache_size, wide.dispatch_size) == (8.25 / 8, 8.25 / 8)


@pytest.mark.parametrize(
    ("system", "settings", "words"),
    [
        (
            TRN3,
            {"precision": "nvfp4"},
            "trn3 does not compute nvfp4: computed as fp8, unpacked by the vector units",
        ),
        (
            TRN3,
            {"expert_format": "nvfp4"},
            "trn3 does not compute nvfp4 (experts): computed as fp8, unpacked by the vector units",
        ),
        (
            "h100-hgx8",
            {"precision": "w4a8"},
            "h100-sxm does not compute w4a8: computed as fp8, unpacked by the vector units",
        ),
        (
            "a100-hgx8",
            {"precision": "bf16", "attention_format": "fp8"},
            "a100-sxm-80gb does not compute fp8 (attention): computed as bf16, unpacked",
        ),
    ],
)
def test_note_names_formats_that_are_unpacked(system, settings, words):
    (note,) = model_format_notes(
        server(system, **{f"workload__{name}": text for name, text in settings.items()}).machine
    )
    assert note.startswith(words)


@pytest.mark.parametrize("name", ["mxfp4", "w4a8", "mxfp8", "fp8", "bf16"])
def test_computed_formats_have_no_note(name):
    assert model_format_notes(server(TRN3, workload__precision=name).machine) == []


# ---------------------------------------------------------------- systolic arrays
ARRAY = (128, 512, 128)  # rows, rows of four joined, columns


@pytest.mark.parametrize(
    ("inner", "outer", "fill"),
    [
        (
            576,
            512,
            0.9,
        ),  # four arrays of 128 rows side by side pad 576 to 640; joined they would pad it to 1,024
        (576, 128, 0.5625),  # too narrow to stand side by side
        (512, 128, 1.0),
        (7168, 2048, 1.0),
        (128, 512, 1.0),
        (128, 128, 0.25),
        (64, 512, 0.5),
        (1, 1, 1 / 512 / 128),
    ],
)
def test_share_of_an_array_that_is_filled(inner, outer, fill):
    assert inner * outer / FORMULA.padded_weights(inner, outer, *ARRAY) == pytest.approx(
        fill, rel=1e-12
    )


@pytest.mark.parametrize(("inner", "fill"), [(576, 0.9), (512, 1.0), (640, 1.0), (129, 129 / 256)])
def test_arrays_in_sixteen_bits_are_not_joined(inner, fill):
    assert inner * 128 / FORMULA.padded_weights(inner, 128, 128, 128, 128) == pytest.approx(
        fill, rel=1e-12
    )


sides = st.one_of(st.integers(1, 20_000), st.integers(1, 156).map(lambda tiles: 128 * tiles))


@given(
    sides,
    sides,
    st.sampled_from([(128, 512, 128), (128, 128, 128), (256, 256, 256), (256, 512, 64)]),
)
def test_no_array_is_more_than_full(inner, outer, array):
    padded = FORMULA.padded_weights(inner, outer, *array)
    assert 0 < inner * outer / padded <= 1 + 1e-12
    assert padded <= FORMULA.padded_weights(inner + 1, outer, *array)
    assert padded <= FORMULA.padded_weights(inner, outer + 1, *array)


@given(st.integers(1, 64), st.integers(1, 64), sides, sides)
def test_few_rows_cost_as_much_as_the_least(tokens, least, inner, outer):
    """Fewer rows than pass while weights load take as long as those."""
    padded = FORMULA.padded_weights(inner, outer, *ARRAY)
    assert FORMULA.array_time(tokens, padded, 1, least, 1e12) == pytest.approx(
        2 * max(tokens, least) * padded / 1e12, rel=1e-12
    )


def test_products_of_a_chip_fill_its_arrays_as_far_as_they_go():
    """Products of the shared expert fill the arrays; 32 rows cost as much as 64.

    At tensor 4 they are 7,168 x 1,024 and 512 x 7,168. 64 rows pass while weights load.
    """
    matrix_operand = server(TRN3, workload__precision="mxfp8").machine.operands[1]
    least = float(matrix_operand.array[3])
    for inner, outer in ((7168, 1024), (512, 7168)):
        full = 2 * inner * outer / matrix_operand.rate
        for tokens in (least / 4, least / 2, least, 4 * least):
            assert product(matrix_operand, tokens, outer, inner).computing == pytest.approx(
                full * max(tokens, least), rel=1e-12
            )


def test_small_arrays_are_always_filled():
    assert all(operand.array is None for operand in server("gb200-nvl72").machine.operands)


@pytest.mark.parametrize(
    ("form", "size"), [("fp8", 2 * 2 + 1), ("fp8_block", 2 + 1), ("mxfp8", 2 + 1)]
)
def test_a_cast_reads_activations_once_and_a_scale_of_the_whole_once_more(form, size):
    small, large = (
        document(
            "kernel",
            "b200-sxm",
            "--m",
            rows,
            "--n",
            "8192",
            "--k",
            "8192",
            "--precision",
            form,
            "--library",
            "tensorrt-llm",
        )["parts_us"]["cast"]
        for rows in ("4096", "8192")
    )
    bandwidth = size * 4096 * 8192 / ((large - small) * 1e-6)
    stream = document(
        "kernel",
        "b200-sxm",
        "--op",
        "elementwise",
        "--m",
        "65536",
        "--width",
        "8192",
        "--passes",
        "2",
    )
    assert bandwidth == pytest.approx(stream["gb_per_s"] * 1e9, rel=0.05)


def test_a_scale_of_the_whole_takes_two_kernels_more():
    """The largest number, its scale, the cast: each waits for the one before it."""
    casts = [
        document(
            "kernel",
            "b200-sxm",
            "--m",
            "1",
            "--n",
            "8192",
            "--k",
            "8192",
            "--precision",
            form,
            "--library",
            "tensorrt-llm",
        )["parts_us"]["cast"]
        for form in ("fp8", "mxfp8", "fp8_block")
    ]
    assert casts[0] - casts[1] == pytest.approx(
        2 * CATALOGUE.practice("nvidia", "kernel_stage").value * 1e6, rel=1e-6
    )
    assert casts[1] == pytest.approx(casts[2], rel=1e-9)
