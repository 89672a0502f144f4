"""`tco bom | fabric | network | collective | kernel`: racks and what they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tco.cli import app
from tco.cli.options import CommandRequest, System, command, name_argument
from tco.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from tco.scenario.resolved import ResolvedScenario

LEAST = 0.001  # sides of a kernel may be means, of tokens over experts for one


@command(app, "set", "variant")
def bom(given: CommandRequest, system: System) -> None:
    """Show the bill of materials of one scale-up domain."""
    from tco.report.hardware import bill_answer
    from tco.scenario.evaluate import bill_of_system

    catalogue = given.catalogue
    given.emit(
        bill_answer(catalogue, bill_of_system(catalogue, system, given.settings, given.variant))
    )


@command(app, "set", "variant")
def fabric(given: CommandRequest, system: System) -> None:
    """Show what the scale-up fabric gives: injection, hops, bisection, all-to-all."""
    from tco.fabric.topology import fabric_scopes
    from tco.report.hardware import fabric_answer
    from tco.scenario.resolve import system_inputs

    catalogue = given.catalogue
    inputs = system_inputs(catalogue, system, given.settings, given.variant)
    values = inputs.values()
    scopes = fabric_scopes(inputs.system, values)
    notes = [
        f"{path} is set, but this fabric does not rest on it" for path in inputs.unused(values)
    ]
    given.emit(fabric_answer(inputs, scopes, notes))


@command(app, "set")
def network(
    given: CommandRequest,
    switch: Annotated[
        str,
        typer.Option(
            help="Switch by capacity (12.8T, 25.6T, 51.2T) or by part id (quantum-qm9700)."
        ),
    ] = "25.6T",
    port: Annotated[
        str, typer.Option(help="Rate of a logical port: 100G, 200G, 400G, 800G.")
    ] = "100G",
    tiers: Annotated[
        int | None, typer.Option(min=1, max=4, help="Tiers; left out: as many as the size needs.")
    ] = None,
    chips: Annotated[
        int | None, typer.Option(min=1, help="Chips to join; left out: as many as the tiers reach.")
    ] = None,
    nic: Annotated[
        str | None, typer.Option(help="NIC bandwidth of a chip, such as 400G; left out: one port.")
    ] = None,
    design: Annotated[
        str, typer.Option(help="tor: copper to switches in the rack; leaf: optics from the NIC on.")
    ] = "tor",
    oversubscription: Annotated[
        float,
        typer.Option(
            min=0.05, help="Downlink over uplink bandwidth; below 1 leaves spare uplinks."
        ),
    ] = 1.0,
    span: Annotated[
        str | None,
        typer.Option(
            help="Length of the links between sites, such as '80 km': chooses DR, FR or ZR optics; "
            "left out: one site."
        ),
    ] = None,
    between_sites: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of the links between the top tiers that run between sites; left out: half, "
            "as of two equal sites.",
        ),
    ] = None,
) -> None:
    """Size a folded Clos: what it reaches, and the switches, links, optics, watts and dollars of a
    cluster.
    """
    from tco.core.units import parse_quantity
    from tco.report.hardware import network_answer
    from tco.scenario.network_choice import ClosRequest, port_rate, requested_clos
    from tco.scenario.resolve import plain_inputs
    from tco.system.scale_out_network import network_planes, switch_part

    if between_sites is not None and span is None:
        raise UsageError(
            "--between-sites: how far the sites are apart is missing; add --span, such as --span "
            "'80 km'"
        )
    catalogue = given.catalogue
    inputs = plain_inputs(
        catalogue, {"cluster.oversubscription": f"{oversubscription!r}", **given.settings}
    )
    values = inputs.values()
    part = switch_part(switch, list(catalogue.parts))
    port_speed = port_rate(port, "--port")
    nic_rate = port_rate(nic, "--nic") if nic else port_speed
    request = ClosRequest(part, chips, nic_rate, port_speed, tiers, design)
    if span is not None:
        request = request._replace(span=parse_quantity(span, "m"))
        if between_sites is not None:
            request = request._replace(between_sites=between_sites)
    size, clos = requested_clos(inputs, values, request)
    planes = float(network_planes(nic_rate, port_speed))
    facts = [
        f"{size.chips:,} chips at {nic or port} on {size.radix:.0f}-port switches ({switch} in "
        f"ports of {port}), "
        f"{size.tiers} tiers in {planes:g} parallel planes",
        f"largest cluster of these tiers: {size.reach:,} endpoints",
    ]
    if span is not None:
        facts.append(
            f"{request.between_sites:.0%} of the links between the top two tiers run between "
            f"sites, {span} each"
        )
    design_facts = {
        "switch": part,
        "port_gb_per_s": port_speed / 1e9,
        "radix": size.radix,
        "planes": planes,
        "design": design,
    }
    given.emit(
        network_answer(
            catalogue,
            clos,
            design_facts | {"chips": size.chips, "max_endpoints": size.reach},
            facts,
        )
    )


@command(app, "set", "variant")
def collective(
    given: CommandRequest,
    system: System,
    operation: Annotated[
        str,
        typer.Option(
            "--op",
            help="all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, send-recv, "
            "dispatch or combine.",
        ),
    ] = "all-reduce",
    size: Annotated[
        str, typer.Option(help="The whole buffer, as nccl-tests counts it: 64KiB, 1MiB, 1GB.")
    ] = "1MiB",
    largest: Annotated[
        str | None,
        typer.Option(
            "--to", help="Also every doubling up to this size, each by its best algorithm."
        ),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(min=2, help="Chips that take part; left out: one scale-up domain.")
    ] = None,
    per_domain: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Chips of each scale-up domain that take part; left out: as many as it holds.",
        ),
    ] = None,
    library: Annotated[
        str | None,
        typer.Option(
            help="The library whose algorithms are open: nccl, rccl, deepep, best, ...; left out: "
            "the family's."
        ),
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="Take this algorithm of the library, not its quickest.")
    ] = None,
    tokens: Annotated[
        float, typer.Option(min=0, help="Tokens of a rank, of dispatch and combine.")
    ] = 128,
    hidden: Annotated[float, typer.Option(min=1, help="Elements of a token.")] = 7168,
    topk: Annotated[float, typer.Option(min=1, help="Experts of a token.")] = 8,
    precision: Annotated[
        str, typer.Option(help="Format of the tokens on the wire: fp8 or bf16.")
    ] = "bf16",
    sms: Annotated[
        float | None,
        typer.Option(min=1, help="Cores that copy tokens; left out: as many as the library takes."),
    ] = None,
    engine_kernel: Annotated[
        str | None,
        typer.Option(
            "--engine-kernel",
            help="Time the quickest as this engine's kernel was measured: ENGINE/KERNEL@RELEASE.",
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="D/G", help="Routing limited to D of G groups of experts, such as 4/8."
        ),
    ] = None,
) -> None:
    """Time a collective on a system by every algorithm its fabric allows.

    The quickest that the library offers is the answer; what it does not offer is shown beside it.
    """
    from tco.comparison.operations import (
        Measured,
        as_engine_runs,
        candidate_rows,
        doublings,
        in_a_step,
        limited,
    )
    from tco.fabric.collectives import OPERATIONS, half_rate
    from tco.fabric.expert_exchange import Tokens
    from tco.fabric.libraries import EXCHANGES, combined_library, offering, token_size
    from tco.fabric.links import group_across_domains, rank_group
    from tco.performance.chip.engine_corrections import asked_correction
    from tco.performance.chip.formats import family_of
    from tco.report.hardware import collective_answer
    from tco.report.table import significant
    from tco.scenario.network_choice import links_of_system
    from tco.scenario.resolve import system_inputs

    if system in OPERATIONS:
        raise UsageError(
            f"{system} is an operation, and the system stands first: tco collective gb200-nvl72 "
            f"--op {system}"
        )
    catalogue = given.catalogue
    inputs = system_inputs(catalogue, system, given.settings, given.variant)
    values = inputs.values()
    links = links_of_system(
        inputs, values, combined_library(catalogue, library.split("+")) if library else None
    )
    count = participating_chips(
        inputs, values.number("cluster.chips"), ranks, per_domain, float(links.domain)
    )
    group = group_across_domains(count, per_domain) if per_domain else rank_group(links, count)
    exchanges = operation in EXCHANGES
    if exchanges and largest:
        raise DataError(f"--to: {operation} has tokens, not sizes; ask for one --tokens at a time")
    drawn, all_groups = limited(groups) if groups else (0, 0)

    chip, form = inputs.system.chip, precision if exchanges else ""
    learnt = (
        asked_correction(catalogue, operation, engine_kernel, form, chip, "--engine-kernel")
        if engine_kernel
        else None
    )

    def timed(one: float) -> list[Measured]:
        size: float | Tokens = one
        if exchanges:
            size = Tokens(
                tokens, token_size(links.library, precision, hidden), topk, all_groups, drawn, sms
            )
        made = candidate_rows(links, operation, group, size, algorithm)
        return [as_engine_runs(made[0], learnt, operation, count, tokens)] if learnt else made

    buffer = buffer_of(size, "--size")
    rows = timed(buffer)
    sweep = (
        [timed(one)[0] for one in doublings(buffer, buffer_of(largest, "--to"))] if largest else []
    )
    what = (
        f"{tokens:g} tokens a rank" if exchanges else f"{size}{f' to {largest}' if largest else ''}"
    )
    by = offering(catalogue, links.library, operation, rows[0].algorithm)
    whose = "" if library else " (of the family's chips; --library takes another)"
    facts = [
        f"{operation} of {what} over {count} chips; {group.per_domain:g} chips a domain",
        f"library: {links.library.name}{whose}"
        + ("" if by.id == links.library.id else f"; {rows[0].algorithm} is of {by.name}"),
    ]
    facts += (
        [
            f"as {learnt.kernel} takes it, parts as physics has them; single shapes lie "
            f"{learnt.spread:.0%} off"
        ]
        if learnt
        else []
    )
    half = None
    if not exchanges:
        half = float(half_rate(links, operation, group, rows[0].algorithm))
        facts.append(
            f"{rows[0].algorithm} reaches half of its rate with {significant(half / 1e6, 3)} MB"
        )
    stepping = (
        in_a_step(
            values,
            family_of(catalogue, inputs.system.chip),
            operation,
            count,
            links,
            rows[0].time_us / 1e6,
        )
        * 1e6
    )
    facts.append(
        f"inside an engine's step {significant(stepping)} us: "
        f"{significant(stepping - rows[0].time_us)} more until the last of {count} ranks has come"
    )
    found = {
        "system": system,
        "op": operation,
        "size_bytes": rows[0].size,
        "ranks": count,
        "in_step_us": stepping,
        "half_rate_bytes": half,
    }
    found |= {
        "library": links.library.id,
        "algorithm_library": by.id,
        "candidates": rows,
        "sizes": sweep,
    }
    notes = [
        f"{path} is set, but this collective does not rest on it" for path in inputs.unused(values)
    ]
    given.emit(collective_answer(inputs, found, inputs.system.name, facts, notes))


def participating_chips(
    inputs: ResolvedScenario,
    cluster: float,
    ranks: int | None,
    per_domain: int | None,
    domain: float,
) -> int:
    """Return the chips that take part, one scale-up domain unless they are counted; more than there
    are raise `DataError`.
    """
    count = ranks or int(inputs.system.chips)
    if count > max(cluster, inputs.system.chips):
        raise DataError(
            f"--ranks {count}: the cluster has {cluster:,.0f} chips (cluster.chips); expected 2 to "
            f"{cluster:.0f}, or --set cluster.chips"
        )
    if per_domain and per_domain > domain:
        raise DataError(
            f"--per-domain: {per_domain} chips, but a scale-up domain of {inputs.system.id} has "
            f"{domain:g}"
        )
    return count


def buffer_of(text: str, option: str) -> float:
    """Return the bytes of a buffer; one that is negative, or counted in bits, raises
    `UsageError`.
    """
    from tco.core.units import parse_quantity

    if text.strip().endswith("b"):
        raise UsageError(
            f"{option}: {text!r} counts bits, and a buffer has bytes, such as {text.strip()[:-1]}B"
        )
    size = parse_quantity(text, "byte")
    if size < 0:
        raise UsageError(f"{option}: {text!r} is negative, expected a buffer such as 64KiB")
    return size


def side(text: str, name: str = "") -> typer.models.OptionInfo:
    """Return the option of a side of a kernel."""
    found: typer.models.OptionInfo = typer.Option(*filter(None, [name]), min=LEAST, help=text)
    return found


@command(app, "set")
def kernel(
    given: CommandRequest,
    chip: Annotated[str, name_argument("chips", "A chip's id, such as h100-sxm.")],
    operation: Annotated[
        str, typer.Option("--op", help="gemm, grouped, experts, attention or elementwise.")
    ] = "gemm",
    precision: Annotated[
        str,
        typer.Option(
            help="Format of weights, of prompts' attention, or of the cache: bf16, fp8, nvfp4."
        ),
    ] = "bf16",
    rows: Annotated[
        float | None, side("Rows of the result: tokens, of each group if grouped.", "--m")
    ] = None,
    columns: Annotated[float | None, side("Columns of the result.", "--n")] = None,
    inner: Annotated[float | None, side("Inner side of a product.", "--k")] = None,
    groups: Annotated[
        float | None, side("Products whose tiles share the chip, as experts do.")
    ] = None,
    batch: Annotated[float | None, side("Sequences of attention.")] = None,
    seq_q: Annotated[float | None, side("Queries of a sequence.", "--seq-q")] = None,
    seq_kv: Annotated[float | None, side("Keys of a sequence.", "--seq-kv")] = None,
    heads: Annotated[float | None, side("Query heads.")] = None,
    kv_heads: Annotated[float | None, side("Key heads.", "--kv-heads")] = None,
    head_dim: Annotated[float | None, side("Width of a head.", "--head-dim")] = None,
    value_dim: Annotated[
        float | None, side("Width of the values of a head, if it is another.", "--value-dim")
    ] = None,
    latent: Annotated[float | None, side("Width of the latent cache.")] = None,
    rotary: Annotated[
        float | None, side("Width of the rotary part beside the latent cache.")
    ] = None,
    tokens: Annotated[float | None, side("Tokens of all ranks that an expert layer takes.")] = None,
    topk: Annotated[float | None, side("Experts that a token chooses.")] = None,
    experts: Annotated[float | None, side("Experts of the layer, on all ranks.")] = None,
    ranks: Annotated[float, side("Ranks that share the experts; the busiest is timed.")] = 1,
    hidden: Annotated[
        float | None,
        side("Width of the tokens of an expert layer; --width is the rank's part of an expert's."),
    ] = None,
    skew: Annotated[
        float, typer.Option(min=0, help="Standard deviation over mean of how popular experts are.")
    ] = 0,
    even: Annotated[
        bool, typer.Option("--even", help="Tokens are dealt out to experts in turn, not by chance.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Attention without a causal mask.")] = False,
    phase: Annotated[
        str,
        typer.Option(
            help="Of attention: prefill, decode, or latent, which is decoding against one latent "
            "cache."
        ),
    ] = "prefill",
    width: Annotated[float | None, side("Numbers of a row of an elementwise kernel.")] = None,
    passes: Annotated[
        float | None, side("Times an elementwise kernel reads or writes a row.")
    ] = None,
    flat: Annotated[
        bool, typer.Option("--flat", help="An elementwise kernel that knows no rows, as sums.")
    ] = False,
    cores: Annotated[
        float | None, side("Cores of the chip that a product has to itself; left out: all.")
    ] = None,
    library: Annotated[
        str | None,
        typer.Option(
            help="Time it as this library's layer runs it, or an engine's kernel, "
            "ENGINE/KERNEL@RELEASE; left out: the bare kernel."
        ),
    ] = None,
) -> None:
    """Time a GEMM, attention or an elementwise kernel on one chip, and show the bound that
    binds.
    """
    from tco.comparison.operations import answer_kernel_query, operation_of
    from tco.report.hardware import kernel_answer
    from tco.scenario.resolve import plain_inputs

    catalogue = given.catalogue
    inputs = plain_inputs(catalogue, given.settings)
    values = inputs.values()
    sides = {
        "m": rows,
        "n": columns,
        "k": inner,
        "groups": groups,
        "width": width,
        "passes": passes,
        "by_row": not flat,
    }
    sides |= {
        "batch": batch,
        "seq_q": seq_q,
        "seq_kv": seq_kv,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
    }
    sides |= {
        "value_dim": value_dim or head_dim,
        "latent": latent,
        "rotary": rotary,
        "tokens": tokens,
        "topk": topk,
        "experts": experts,
    }
    sides |= {"ranks": ranks, "hidden": hidden, "skew": skew, "even": float(even)}
    sides["causal"] = 0.0 if full else 1.0
    found = answer_kernel_query(
        catalogue, values, chip, operation_of(operation, phase), precision, sides, library, cores
    )
    given.emit(
        kernel_answer(
            catalogue,
            found,
            [
                f"{path} is set, but this kernel does not rest on it"
                for path in inputs.unused(values)
            ],
        )
    )
