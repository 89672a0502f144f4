"""Formats of the passes, and what collectives of a step take from each other and from compute."""

from __future__ import annotations

import pytest

from tco import DataError, evaluate
from tests.catalogue import CATALOGUE
from tests.performance.training.jobs import (
    A100,
    MEGATRON,
    evaluate_plan,
    job,
    job_of_scenario,
    search_training_plans,
)

TRN3, GB200 = "llama-3.1-405b-training-trn3-nl72x2", "llama-3.1-405b-training-gb200-nvl72"


def formats_of(name, **settings):
    """The formats that products run in, forward and backward."""
    return tuple(operand.form.stored for operand in job_of_scenario(name, **settings)[2])


def seconds(name, plan, **settings):
    return float(evaluate_plan(*job(name, **settings), plan)[0].time)


@pytest.fixture(scope="module")
def sharded():
    return search_training_plans(*job(TRN3)).best._replace(zero=3)


def test_gradients_are_made_in_the_format_of_the_forward_pass_unless_stated():
    assert formats_of(GB200, workload__precision="mxfp8") == ("mxfp8", "mxfp8")
    assert formats_of(GB200, workload__precision="fp4", workload__backward_precision="bf16") == (
        "fp4",
        "bf16",
    )


def test_a_step_lies_between_those_of_its_formats(sharded):
    narrow, mixed, wide = (
        seconds(GB200, sharded, workload__precision=forward, workload__backward_precision=backward)
        for forward, backward in (("nvfp4", "nvfp4"), ("nvfp4", "bf16"), ("bf16", "bf16"))
    )
    assert narrow < mixed < wide
    work = evaluate_plan(
        *job(GB200, workload__precision="fp4", workload__backward_precision="bf16"), sharded
    )[3]
    products = [item for item in work.operators if item.weight_time is not None]
    assert products
    for item in products:  # inputs' and weights' gradients take the rate of BF16
        assert float(item.backward) > 4 * float(item.time)


def test_a_format_kept_but_not_computed_is_turned_by_software(sharded):
    assert formats_of(TRN3, workload__precision="nvfp4", workload__backward_precision="mxfp8") == (
        "mxfp8",
        "mxfp8",
    )
    for traffic in ("0.5", "2"):  # the more elementwise kernels move, the more a second cast costs
        costs = {"performance__layer__elementwise_traffic": traffic}
        turned, mxfp8_time = (
            seconds(TRN3, sharded, workload__precision=form, **costs) for form in ("nvfp4", "mxfp8")
        )
        assert mxfp8_time < turned < 1.1 * mxfp8_time
    notes = evaluate(
        TRN3,
        {"workload.precision": "nvfp4", "workload.backward_precision": "mxfp8"},
        sharded,
        catalogue=CATALOGUE,
    ).notes
    assert (
        "forward: the chip does not compute nvfp4: computed as mxfp8 after a conversion by software"
        in notes
    )
    assert not [note for note in notes if note.startswith("backward:")]


def test_formats_of_one_width_do_not_stand_in_for_each_other():
    assert formats_of(GB200, workload__precision="nvfp4")[0] == "nvfp4"
    # one rate: the units expand four bits
    four, eight = (
        job(TRN3, workload__precision=name)[1].operands[0] for name in ("mxfp4", "mxfp8")
    )
    assert four.rate == eight.rate
    assert four.input_size == pytest.approx(eight.input_size * 4.25 / 8.25, rel=1e-12)
    assert formats_of(A100, workload__precision="mxfp4")[0] == "bf16"


def test_an_unknown_format_names_its_input():
    with pytest.raises(DataError, match=r"workload\.backward_precision: unknown precision 'fp7'"):
        job(workload__backward_precision="fp7")


def test_narrow_sums_of_gradients_move_less(sharded):
    assert seconds(TRN3, sharded, workload__accumulator_size="2 byte") < seconds(TRN3, sharded)


def test_classes_of_traffic_spare_what_the_chip_waits_for(sharded):
    without, mixed, ordered = (
        seconds(TRN3, sharded, parts__trn3__traffic_classes=str(classes)) for classes in (0, 0.5, 1)
    )
    assert ordered < mixed < without
    foreground_plan = sharded._replace(zero=1)  # nothing runs in the background
    assert seconds(TRN3, foreground_plan, parts__trn3__traffic_classes="0") == seconds(
        TRN3, foreground_plan
    )


def test_collectives_take_cores_and_links_from_each_other(sharded):
    unshared_time, shared = (
        seconds(TRN3, sharded, performance__trainium__communication_cores=str(share))
        for share in (0, 0.15)
    )
    assert unshared_time < shared < 1.15 * unshared_time
    training_job, machine = job(TRN3)
    step_result, pipe, _, work = evaluate_plan(training_job, machine, sharded)
    (tensor,) = [item for item in work.operators if item.name == "tensor-parallel collectives"]
    assert float(pipe.links["inside"]) >= float(pipe.waits["inside"]) > 0
    assert tensor.link_times["inside"] > 0
    # everything on the links follows one after the other
    assert float(step_result.parts["gathers"]) > 0
    narrow = machine._replace(links=machine.links._replace(network=machine.links.network / 100))
    slow, pipe, *_ = evaluate_plan(training_job, narrow, sharded)
    assert float(slow.parts["gathers"]) > float(pipe.time)


def test_norms_are_repeated_on_every_chip_without_sequence_parallelism():
    """Eight chips share traffic over the hidden state if sequences are split, else each repeats it.

    Traffic over inner widths is always shared.
    """
    training_job, machine = job(workload__global_batch="64")
    operators_by_plan = (
        evaluate_plan(training_job, machine, MEGATRON._replace(sequence_parallel=parallel))[
            3
        ].operators
        for parallel in (0, 1)
    )
    repeated_time, split = (
        next(float(item.time) for item in items if item.name == "elementwise")
        for items in operators_by_plan
    )
    passes, masks = (
        training_job.values[f"performance.layer.{name}"]
        for name in ("residual_passes", "mask_passes")
    )
    traffic = training_job.values["performance.training.elementwise_traffic"]
    hidden = (
        2048
        * 12288
        * 2
        * traffic
        * (96 * (passes + masks) + training_job.values["performance.layer.embedding_passes"])
        / machine.row_bandwidth
    )
    assert repeated_time - split == pytest.approx(7 / 8 * hidden, rel=1e-12)
    assert split > hidden / 8


def test_dropout_reads_and_writes_its_masks():
    plan = MEGATRON._replace(recompute="full")
    with_masks, without = (
        seconds(A100, plan, workload__global_batch="64", workload__dropout=dropout)
        for dropout in ("yes", "no")
    )
    assert without < with_masks < 1.05 * without


def test_the_ring_of_split_sequences_runs_once_forward_and_twice_backward():
    """Keys and values circulate before the products, and again with gradients behind them.

    Source: Ring Attention.
    """
    work = evaluate_plan(*job(A100), MEGATRON._replace(tensor=4, context=2))[3]
    (ring,) = [item for item in work.operators if item.name == "context-parallel ring"]
    assert ring.runs == (96, 2 * 96)  # layers
    assert ring.backward == pytest.approx(2 * ring.time, rel=1e-12)
    assert ring.time > 0
    # keys and values of a sequence for a quarter of the heads, two bytes each
    assert ring.bytes == 2048 * 2 * (12288 / 4) * 2
