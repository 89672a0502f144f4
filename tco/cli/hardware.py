"""`tco bom | fabric | network | collective | kernel`: racks and what they are made of."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tco.cli import app
from tco.cli.options import CommandRequest, command, name_argument
from tco.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from tco.comparison.operations import Measured
    from tco.core.inputs import Values
    from tco.fabric.expert_exchange import Tokens
    from tco.fabric.links import Links, RankGroup
    from tco.performance.chip.engine_corrections import Correction
    from tco.report.record import Answer
    from tco.scenario.resolved import ResolvedScenario

# sides of a kernel may be means, such as tokens per expert
LEAST_SIDE = 0.001
Side = Annotated[float | None, typer.Option(min=LEAST_SIDE)]


@command(app, "set", "variant")
def bom(request: CommandRequest, system: str) -> None:
    """Show the bill of materials of one scale-up domain."""
    from tco.report.hardware import bill_answer
    from tco.scenario.system_bill import bill_of_system

    rack = bill_of_system(request.catalogue, system, request.settings, request.variant)
    request.emit(bill_answer(rack))


@command(app, "set", "variant")
def fabric(request: CommandRequest, system: str) -> None:
    """Show injection, hops, bisection and all-to-all of a fabric."""
    from tco.fabric.topology import fabric_scopes
    from tco.report.hardware import fabric_answer
    from tco.scenario.resolve import system_inputs

    inputs = system_inputs(request.catalogue, system, request.settings, request.variant)
    input_values = inputs.values()
    scopes = fabric_scopes(inputs.system, input_values)
    request.emit(fabric_answer(inputs, scopes, inputs.unused_notes(input_values, "this fabric")))


@command(app, "set")
def network(
    request: CommandRequest,
    switch: str = "25.6T",
    port: str = "100G",
    tiers: Annotated[int | None, typer.Option(min=1, max=4)] = None,
    chips: Annotated[int | None, typer.Option(min=1)] = None,
    nic: str | None = None,
    design: str = "tor",
    oversubscription: Annotated[float, typer.Option(min=0.05)] = 1.0,
    span: str | None = None,
    between_sites: Annotated[float | None, typer.Option(min=0, max=1)] = None,
) -> None:
    """Size a scale-out network: switches, links, optics, watts, dollars.

    It is a folded Clos, or fat tree: tiers of switches join the chips. Without --chips it is as
    large as its tiers allow. `tco price SYSTEM` shows the network that a system buys.

    Switches:
        switch: Switch by capacity (12.8T, 25.6T, 51.2T) or by part id (quantum-qm9700).
        port: Rate of a logical port: 100G, 200G, 400G, 800G.
        tiers: Tiers; default: as many as the size needs.
        design: tor: copper to switches in the rack; leaf: optics from the NIC on.
        oversubscription: Downlink over uplink bandwidth; below 1 leaves spare uplinks.

    What is asked:
        chips: Chips to join; default: as many as the tiers reach.
        nic: NIC bandwidth of a chip, such as 400G; default: one port.

    Links between sites:
        span: Length of the links between sites, such as '80 km': chooses DR, FR or ZR optics;
            default: one site.
        between_sites: Share of the links between the top tiers that run between sites; default:
            half, as of two equal sites.

    """
    from tco.core.own_values import question_quantity
    from tco.report.hardware import network_answer
    from tco.scenario.network_choice import ClosRequest, requested_clos
    from tco.scenario.network_tiers import port_rate
    from tco.scenario.resolve import plain_inputs
    from tco.system.scale_out_network import network_planes, switch_part

    if between_sites is not None and span is None:
        raise UsageError(
            "--between-sites: how far the sites are apart is missing; add --span, such as --span "
            "'80 km'"
        )
    catalogue = request.catalogue
    settings = {"cluster.oversubscription": f"{oversubscription!r}", **request.settings}
    inputs = plain_inputs(catalogue, settings)
    input_values = inputs.values()
    part = switch_part(switch, list(catalogue.parts))
    port_speed = port_rate(port, "--port")
    nic_rate = port_rate(nic, "--nic") if nic else port_speed
    wanted_network = ClosRequest(part, chips, nic_rate, port_speed, tiers, design)
    if span is not None:
        wanted_network = wanted_network._replace(span=question_quantity(span, "m"))
    if between_sites is not None:
        wanted_network = wanted_network._replace(between_sites=between_sites)
    size, clos = requested_clos(inputs, input_values, wanted_network)
    ratio = float(input_values.number("cluster.oversubscription"))
    facts = ["Switches have as much bandwidth up as down: the network is not oversubscribed."]
    if ratio != 1:
        facts = [f"Below the top tier a switch has {ratio:g} times as much bandwidth down as up."]
    if chips is None:
        facts.append("No --chips is named: the network is as large as its tiers allow.")
    if span is not None:
        share = f"{wanted_network.between_sites * 100:.0f} %"
        facts.append(
            f"{share} of the links between the top two tiers run between sites, {span} each."
        )
    figures = {
        "switch": part,
        "port_gb_per_s": port_speed / 1e9,
        "radix": size.radix,
        "planes": float(network_planes(nic_rate, port_speed)),
        "design": design,
        "chips": size.chips,
        "max_endpoints": size.reach,
    }
    request.emit(network_answer(catalogue, clos, figures, facts))


@command(app, "set", "variant")
def collective(
    request: CommandRequest,
    system: str,
    operation: str = "all-reduce",
    size: str = "1MiB",
    largest: str | None = None,
    ranks: Annotated[int | None, typer.Option(min=2)] = None,
    per_domain: Annotated[int | None, typer.Option(min=1)] = None,
    library: str | None = None,
    algorithm: str | None = None,
    tokens: Annotated[float, typer.Option(min=0)] = 128,
    hidden: Annotated[float, typer.Option(min=1)] = 7168,
    topk: Annotated[float, typer.Option(min=1)] = 8,
    precision: str = "bf16",
    sms: Annotated[float | None, typer.Option(min=1)] = None,
    engine_kernel: str | None = None,
    groups: str | None = None,
) -> None:
    """Time a collective by every algorithm that the fabric allows.

    The quickest that the library offers is the answer; what it does not offer is shown beside it.

    What is asked:
        operation (--op): all-reduce, all-gather, reduce-scatter, all-to-all, broadcast,
            send-recv, dispatch or combine.
        size: The whole buffer, as nccl-tests counts it: 64KiB, 1MiB, 1GB.
        largest (--to): Also every doubling up to this size, each by its best algorithm.
        ranks: Chips that take part; default: one scale-up domain.
        per_domain: Chips of each scale-up domain that take part; default: as many as it holds.

    Library and algorithm:
        library: The library whose algorithms are open: nccl, rccl, deepep, best, ...; default:
            the family's.
        algorithm: Take this algorithm of the library, not its quickest.
        engine_kernel: Time the quickest as this engine's kernel was measured:
            ENGINE/KERNEL@RELEASE.

    Of experts:
        tokens: Tokens of a rank, of dispatch and combine.
        hidden: Elements of a token.
        topk: Experts of a token.
        precision: Format of the tokens on the wire: fp8 or bf16.
        sms: Cores that copy tokens; default: as many as the library takes.
        groups (D/G): Routing limited to D of G groups of experts, such as 4/8.

    """
    from tco.comparison.operations import doublings, parse_group_limits
    from tco.fabric.expert_exchange import Tokens
    from tco.fabric.libraries import EXCHANGES, token_size
    from tco.performance.chip.engine_corrections import asked_correction
    from tco.scenario.resolve import system_inputs

    _refuse_operation_as_system(system)
    catalogue = request.catalogue
    inputs = system_inputs(catalogue, system, request.settings, request.variant)
    input_values = inputs.values()
    links, group = _links_and_ranks(inputs, input_values, library, ranks, per_domain)
    is_exchange = operation in EXCHANGES
    if is_exchange and largest:
        raise DataError(f"--to: {operation} has tokens, not sizes; ask for one --tokens at a time")
    drawn_groups, all_groups = parse_group_limits(groups) if groups else (0, 0)
    chip, form = inputs.system.chip, precision if is_exchange else ""
    correction = (
        asked_correction(catalogue, operation, engine_kernel, form, chip, "--engine-kernel")
        if engine_kernel
        else None
    )
    buffer = _buffer_bytes(size, "--size")
    load: float | Tokens = buffer
    if is_exchange:
        token_bytes = token_size(links.library, precision, hidden)
        load = Tokens(tokens, token_bytes, topk, all_groups, drawn_groups, sms)
    time_load = partial(_time_load, links, operation, group, algorithm, correction, tokens)
    candidates = time_load(load)
    sizes = doublings(buffer, _buffer_bytes(largest, "--to")) if largest else []
    sweep = [time_load(swept_size)[0] for swept_size in sizes]
    sizes_text = f"{size} to {largest}" if largest else size
    load_text = f"{tokens:g} tokens a rank" if is_exchange else sizes_text
    family_text = "" if library else " (of the family's chips; --library takes another)"
    timings = _CollectiveTimings(system, operation, links, group, candidates, sweep, correction)
    request.emit(_report_collective(inputs, input_values, timings, load_text, family_text))


def _refuse_operation_as_system(system: str) -> None:
    from tco.fabric.collectives import OPERATIONS

    if system in OPERATIONS:
        raise UsageError(
            f"{system} is an operation, and the system stands first: tco collective gb200-nvl72 "
            f"--op {system}"
        )


def _links_and_ranks(
    inputs: ResolvedScenario,
    input_values: Values,
    library: str | None,
    ranks: int | None,
    per_domain: int | None,
) -> tuple[Links, RankGroup]:
    """Return the links of a system under a library, and the ranks that take part.

    These are the chips of a scale-up domain unless the user counts them.

    Raises:
        DataError: The cluster or a domain has fewer chips.

    """
    from tco.fabric.libraries import combined_library
    from tco.fabric.links import group_across_domains, rank_group
    from tco.scenario.collective_links import links_of_system

    chosen_library = combined_library(inputs.catalogue, library.split("+")) if library else None
    links = links_of_system(inputs, input_values, chosen_library)
    system, cluster = inputs.system, input_values.number("cluster.chips")
    count = ranks or int(system.chips)
    if count > max(cluster, system.chips):
        raise DataError(
            f"--ranks {count}: the cluster has {cluster:,.0f} chips (cluster.chips); expected 2 to "
            f"{cluster:.0f}, or --set cluster.chips"
        )
    if per_domain and per_domain > float(links.domain):
        raise DataError(
            f"--per-domain: {per_domain} chips, but a scale-up domain of {system.id} has "
            f"{float(links.domain):g}"
        )
    group = group_across_domains(count, per_domain) if per_domain else rank_group(links, count)
    return links, group


def _time_load(
    links: Links,
    operation: str,
    group: RankGroup,
    algorithm: str | None,
    correction: Correction | None,
    tokens: float,
    load: float | Tokens,
) -> list[Measured]:
    """Return every algorithm at one load, or the quickest as an engine's kernel ran."""
    from tco.comparison.operations import as_engine_runs, candidate_rows

    candidates = candidate_rows(links, operation, group, load, algorithm)
    if correction is None:
        return candidates
    return [as_engine_runs(candidates[0], correction, operation, group.ranks, tokens)]


class _CollectiveTimings(NamedTuple):
    """A collective with its algorithms at one size, and the best of each further size."""

    system: str  # as the user names it
    operation: str
    links: Links
    group: RankGroup
    candidates: list[Measured]
    sizes: list[Measured]
    correction: Correction | None  # of an engine's kernel


def _report_collective(
    inputs: ResolvedScenario,
    input_values: Values,
    timings: _CollectiveTimings,
    load_text: str,
    family_text: str,
) -> Answer:
    """Return the answer of a timed collective, with its time inside a step and its half rate."""
    from tco.comparison.operations import in_a_step
    from tco.fabric.collectives import half_rate
    from tco.fabric.libraries import EXCHANGES, offering
    from tco.performance.chip.families import family_of
    from tco.report.kernels import collective_answer, collective_facts

    catalogue = inputs.catalogue
    system, operation, links, group, candidates, sizes, correction = timings
    best, count = candidates[0], group.ranks
    offered_by = offering(catalogue, links.library, operation, best.algorithm)
    half = (
        None
        if operation in EXCHANGES
        else float(half_rate(links, operation, group, best.algorithm))
    )
    family = family_of(catalogue, inputs.system.chip)
    step_time = 1e6 * in_a_step(input_values, family, operation, count, links, best.time_us / 1e6)
    owner_text = f"; {best.algorithm} is of {offered_by.name}"
    facts = [
        f"{operation} of {load_text} over {count} chips; {group.per_domain:g} chips a domain",
        f"library: {links.library.name}{family_text}"
        + owner_text * (offered_by.id != links.library.id),
        *collective_facts(best, count, half, step_time, correction),
    ]
    content = {
        "system": system,
        "op": operation,
        "size_bytes": best.size,
        "ranks": count,
        "in_step_us": step_time,
        "half_rate_bytes": half,
        "library": links.library.id,
        "algorithm_library": offered_by.id,
        "candidates": candidates,
        "sizes": sizes,
    }
    notes = inputs.unused_notes(input_values, "this collective")
    return collective_answer(inputs, content, facts, notes)


def _buffer_bytes(size_text: str, option: str) -> float:
    """Return the bytes of a buffer.

    Raises:
        UsageError: The size is negative, or counts bits.

    """
    from tco.core.own_values import question_quantity

    if size_text.strip().endswith("b"):
        raise UsageError(
            f"{option}: {size_text!r} counts bits, and a buffer has bytes, such as "
            f"{size_text.strip()[:-1]}B"
        )
    size = question_quantity(size_text, "byte")
    if size < 0:
        raise UsageError(f"{option}: {size_text!r} is negative, expected a buffer such as 64KiB")
    return size


@command(app, "set")
def kernel(
    request: CommandRequest,
    chip: Annotated[str, name_argument("chips")],
    operation: str = "gemm",
    precision: str = "bf16",
    m: Side = None,
    n: Side = None,
    k: Side = None,
    groups: Side = None,
    batch: Side = None,
    seq_q: Side = None,
    seq_kv: Side = None,
    heads: Side = None,
    kv_heads: Side = None,
    head_dim: Side = None,
    value_dim: Side = None,
    latent: Side = None,
    rotary: Side = None,
    tokens: Side = None,
    topk: Side = None,
    experts: Side = None,
    ranks: Annotated[float, typer.Option(min=LEAST_SIDE)] = 1,
    hidden: Side = None,
    skew: Annotated[float, typer.Option(min=0)] = 0,
    even: bool = False,
    full: bool = False,
    phase: str = "prefill",
    width: Side = None,
    passes: Side = None,
    flat: bool = False,
    cores: Side = None,
    library: str | None = None,
) -> None:
    """Time a kernel on one chip, and show the bound that binds.

    A kernel is a GEMM, attention, an expert layer or elementwise.

    Arguments:
        chip: A chip's id, such as h100-sxm.

    What is asked:
        operation (--op): gemm, grouped, experts, attention or elementwise.
        precision: Format of weights, of prompts' attention, or of the cache: bf16, fp8, nvfp4.
        cores: Cores of the chip that a product has to itself; default: all.
        library: Time it as this library's layer runs it, or an engine's kernel,
            ENGINE/KERNEL@RELEASE; default: the bare kernel.

    Of a product:
        m: Rows of the result: tokens, of each group if grouped.
        n: Columns of the result.
        k: Inner side of a product.
        groups: Products whose tiles share the chip, as experts do.

    Of attention:
        batch: Sequences of attention.
        seq_q: Queries of a sequence.
        seq_kv: Keys of a sequence.
        heads: Query heads.
        kv_heads: Key heads.
        head_dim: Width of a head.
        value_dim: Width of the values of a head, if it is another.
        latent: Width of the latent cache.
        rotary: Width of the rotary part beside the latent cache.
        full: Attention without a causal mask.
        phase: Of attention: prefill, decode, or latent, which is decoding against one latent
            cache.

    Of experts:
        tokens: Tokens of all ranks that an expert layer takes.
        topk: Experts that a token chooses.
        experts: Experts of the layer, on all ranks.
        ranks: Ranks that share the experts; the busiest is timed.
        hidden: Width of the tokens of an expert layer; --width is the rank's part of an
            expert's.
        skew: Standard deviation over mean of how popular experts are.
        even: Tokens are dealt out to experts in turn, not by chance.

    Of an elementwise kernel:
        width: Numbers of a row of an elementwise kernel.
        passes: Times an elementwise kernel reads or writes a row.
        flat: An elementwise kernel that knows no rows, as sums.

    """
    from tco.comparison.operations import answer_kernel_query, operation_of
    from tco.report.kernels import kernel_answer
    from tco.scenario.resolve import plain_inputs

    catalogue = request.catalogue
    inputs = plain_inputs(catalogue, request.settings)
    input_values = inputs.values()
    sides = {"m": m, "n": n, "k": k, "groups": groups, "by_row": not flat}
    sides |= {"width": width, "passes": passes}
    sides |= {"batch": batch, "seq_q": seq_q, "seq_kv": seq_kv, "latent": latent, "rotary": rotary}
    sides |= {"heads": heads, "kv_heads": kv_heads, "causal": float(not full)}
    sides |= {"head_dim": head_dim, "value_dim": value_dim or head_dim}
    sides |= {"tokens": tokens, "topk": topk, "experts": experts, "ranks": ranks}
    sides |= {"hidden": hidden, "skew": skew, "even": float(even)}
    kernel_name = operation_of(operation, phase)
    kernel_timing = answer_kernel_query(
        catalogue, input_values, chip, kernel_name, precision, sides, library, cores
    )
    notes = inputs.unused_notes(input_values, "this kernel")
    request.emit(kernel_answer(catalogue, kernel_timing, notes))
