"""Formulas of collectives: bytes on the wire, latency of the steps, and their pipelined sum.

A group has `ranks` chips in `domains` scale-up domains; what crosses a domain's border is spread
over its chips. Inside and outside work on different chunks at the same time, so the slower of the
two sets the pace. `size` is the whole buffer, as nccl-tests counts.
"""

from __future__ import annotations

from tco.core.elementwise import ceil, expm1, log1p, log2, sqrt
from tco.core.formula import formula, maximum, minimum, select
from tco.core.types import Quantity
from tco.core.units import Byte, BytePerSecond, PerSecond, Pure, Second, SecondPerByte


@formula("byte/s", source="dally2004")
def lanes_rate(lanes: Pure, lane: BytePerSecond) -> Quantity:
    """Rate of some equal lanes, or of the memory of some chips, together: B = n B_1."""
    return lanes * lane


@formula("", source="tco-calibration")
def latency_scale(
    clock: PerSecond, dies: Pure, die_factor: Pure, reference_clock: PerSecond
) -> Quantity:
    """On-chip latency relative to the reference chip: s = f_ref / f x (1 or phi).

    Latency falls with the clock, and grows by phi where fences cross dies.
    """
    return reference_clock / clock * select(dies > 1, die_factor, 1.0)


@formula("s", source="tco-calibration")
def scaled_latency(latency: Second, scale: Pure, ratio: Pure = 1) -> Quantity:
    """A latency of the reference chip on another: alpha = alpha_ref s x ratio."""
    return latency * scale * ratio


@formula("", source="nccl-tuning")
def step_ratio(pcie_only: Pure, pcie: Pure) -> Quantity:
    """Step latency relative to scale-up links: r where chips use PCIe only, otherwise 1.

    s = r if pcie_only, otherwise 1.
    """
    return select(pcie_only > 0.5, pcie, 1.0)


@formula("s")
def trips_to_memory(trip: Second, in_memory: Pure) -> Quantity:
    """Time between HBM and senders or receivers at both ends of a collective: e = 2 t m.

    m is the share of the ends that lie in HBM.
    """
    return 2 * trip * in_memory


@formula("s")
def reducing_latency(latency: Second, steps: Pure, reduction: Second) -> Quantity:
    """Latency of a collective some of whose steps add up what arrives: l + n r."""
    return latency + steps * reduction


@formula("byte/s")
def mesh_injection(
    bandwidth: BytePerSecond, point_to_point: Pure, ranks: Pure, domain: Pure
) -> Quantity:
    """Injection rate of a rank: B behind a switch, on a mesh B min(1, (Y-1)/(D-1)).

    A rank of a mesh uses only its links to ranks in use.
    """
    return bandwidth * select(
        point_to_point > 0.5, minimum(maximum(ranks - 1, 1) / maximum(domain - 1, 1), 1.0), 1.0
    )


@formula("byte", source="thakur2005")
def ring_bytes(size: Byte, ranks: Pure, passes: Pure) -> Quantity:
    """Bytes through a rank's links in a ring: M p (N-1)/N.

    One pass gathers or scatters, two reduce to all.
    """
    return passes * (ranks - 1) / ranks * size


@formula("byte", source="nccl-tuning")
def in_network_bytes(size: Byte, ranks: Pure) -> Quantity:
    """Bytes through a rank's links when the switch reduces: M (1 + 1/N)."""
    return size * (1 + 1 / ranks)


@formula("byte", source="thakur2005")
def one_shot_bytes(size: Byte, ranks: Pure) -> Quantity:
    """Bytes a rank reads when each takes the whole buffer of every other: M (N-1)."""
    return size * (ranks - 1)


@formula("byte", source="thakur2005")
def one_shot_crossing(size: Byte, ranks: Pure, per_domain: Pure) -> Quantity:
    """Bytes that a rank reads from other domains in a one-shot exchange: M (N-Y).

    Each rank reads the whole buffer of every other.
    """
    return size * (ranks - per_domain)


@formula("byte", source="thakur2005")
def outer_share(size: Byte, domains: Pure, per_domain: Pure, passes: Pure) -> Quantity:
    """Bytes of a rank that cross domains, each chip taking its part: M p (X-1)/X / Y."""
    return passes * (domains - 1) / domains / per_domain * size


@formula("byte", source="bruck1997")
def inner_exchange(size: Byte, ranks: Pure, per_domain: Pure) -> Quantity:
    """Bytes of an all-to-all a rank keeps in its domain: M (Y-1)/N."""
    return size * (per_domain - 1) / ranks


@formula("byte", source="bruck1997")
def outer_exchange(size: Byte, ranks: Pure, per_domain: Pure, passes: Pure = 1) -> Quantity:
    """Bytes that a rank sends straight to other domains in p passes: M p (N-Y)/N."""
    return size * passes * (ranks - per_domain) / ranks


@formula("byte", source="hockney1994")
def crossing_bytes(size: Byte, domains: Pure) -> Quantity:
    """Bytes of a point-to-point transfer that leave the domain: all of them or none."""
    return size * minimum(domains - 1, 1)


@formula("byte", source="chan2007")
def broadcast_crossing(size: Byte, domains: Pure, per_domain: Pure) -> Quantity:
    """Bytes of a rank that cross domains in a broadcast: M min(X - 1, 1) / Y.

    The buffer passes from domain to domain.
    """
    return size * minimum(domains - 1, 1) / per_domain


@formula("byte", source="hockney1994")
def staying_bytes(size: Byte, domains: Pure) -> Quantity:
    """Bytes of a point-to-point transfer that stay in the domain: none of them or all."""
    return size * (1 - minimum(domains - 1, 1))


@formula("byte/s")
def outside_rate(worlds: Pure, crossing: BytePerSecond, network: BytePerSecond) -> Quantity:
    """Rate between domains: B_cross while the group fits a scale-up domain, otherwise B_net.

    B = B_net if worlds > 1, otherwise B_cross.
    """
    return select(worlds > 1, network, crossing)


@formula("s")
def scope_latency(extent: Pure, scope: Pure, near: Second, far: Second) -> Quantity:
    """Latency of a step on the smallest scope that holds a group.

    alpha = near if n <= n_scope, otherwise far. A scope is the chips of a tray, one rank per
    domain, or one scale-up domain.
    """
    return select(extent <= scope, near, far)


@formula("s", source="hockney1994")
def wire_time(
    inner: Byte, inner_rate: BytePerSecond, outer: Byte, outer_rate: BytePerSecond
) -> Quantity:
    """Time on the wire of both tiers at once: w = max(Q_in/B_in, Q_out/B_out)."""
    return maximum(inner / inner_rate, outer / outer_rate)


@formula("s")
def shared_wire_time(
    inner: Byte, inner_rate: BytePerSecond, outer: Byte, outer_rate: BytePerSecond, shared: Pure
) -> Quantity:
    """Wire time where outgoing bytes share the domain's ports.

    w = max((Q_in + Q_out)/B_in, Q_out/B_out); without sharing the first term has no Q_out.
    """
    return maximum((inner + shared * outer) / inner_rate, outer / outer_rate)


@formula("s", source="tco-calibration")
def pipelined_time(latency: Second, wire: Second, chunk: Second) -> Quantity:
    """A transfer cut into the best number of chunks: t = l + w + 2 sqrt(c w)."""
    return latency + wire + 2 * sqrt(chunk * wire)


@formula("s", source="hockney1994")
def direct_time(latency: Second, wire: Second) -> Quantity:
    """A single transfer: t = l + w."""
    return latency + wire


@formula("byte", source="hockney1994")
def half_rate_size(latency: Second, rate: BytePerSecond, size: Byte, time: Second) -> Quantity:
    """Size that takes twice its wire time: M = B (x + sqrt(x^2 + l))^2.

    It follows from the time t of any size S: x = (t - l - S/B) / (2 sqrt(S/B)).

    x is the root of the time a chunk costs; a transfer in one piece has none, and M = l B.
    """
    chunks = maximum(time - latency - size / rate, 0) / (2 * sqrt(size / rate))
    return rate * (chunks + sqrt(chunks**2 + latency)) ** 2


@formula("s", source="thakur2005")
def ring_latency(
    start: Second, passes: Pure, ranks: Pure, domains: Pure, step: Second, outer_step: Second
) -> Quantity:
    """Latency of a ring: l = start + p ((N - X) alpha_in + (X - 1) alpha_out)."""
    return start + passes * ((ranks - domains) * step + (domains - 1) * outer_step)


@formula("s", source="sanders2009")
def tree_latency(
    start: Second,
    passes: Pure,
    per_domain: Pure,
    board: Pure,
    domains: Pure,
    step: Second,
    outer_step: Second,
) -> Quantity:
    """Latency of a tree, a chain inside a board and binary above.

    l = start + p ((c - 1 + log2(Y/c)) alpha_in + log2(X) alpha_out).
    """
    chain = minimum(per_domain, board)
    inside = chain - 1 + ceil(log2(per_domain / chain) - 1e-9)
    return start + passes * (inside * step + ceil(log2(domains) - 1e-9) * outer_step)


@formula("", source="sanders2009")
def tree_depth(per_domain: Pure, board: Pure, domains: Pure) -> Quantity:
    """Steps of a tree from the leaves to the root: c - 1 + log2(Y/c) + log2(X).

    The tree is a chain inside a board and binary above.
    """
    chain = minimum(per_domain, board)
    return chain - 1 + ceil(log2(per_domain / chain) - 1e-9) + ceil(log2(domains) - 1e-9)


@formula("s", source="thakur2005")
def halving_latency(
    start: Second, passes: Pure, per_domain: Pure, domains: Pure, step: Second, outer_step: Second
) -> Quantity:
    """Latency of recursive halving or doubling.

    l = start + p (log2(Y) alpha_in + log2(X) alpha_out).
    """
    return start + passes * (
        ceil(log2(per_domain) - 1e-9) * step + ceil(log2(domains) - 1e-9) * outer_step
    )


@formula("s", source="nccl-tuning")
def in_network_latency_of(
    start: Second, extra: Second, domains: Pure, outer_step: Second
) -> Quantity:
    """Latency of a reduction in the switch: l = start + switch + 2 log2(X) alpha_out."""
    return start + extra + 2 * ceil(log2(domains) - 1e-9) * outer_step


@formula("s")
def direct_latency(
    start: Second, phases: Pure, ranks: Pure, domains: Pure, step: Second, outer_step: Second
) -> Quantity:
    """Latency of direct exchanges, all at once in each phase.

    l = start + phases (alpha_in if a domain holds several ranks + alpha_out if domains are
    crossed).
    """
    return start + phases * (
        minimum(ranks - domains, 1) * step + minimum(domains - 1, 1) * outer_step
    )


@formula("s")
def forwarded_latency(
    start: Second, phases: Pure, ranks: Pure, domains: Pure, step: Second, outer_step: Second
) -> Quantity:
    """Latency of direct exchanges that devices on the way forward.

    l = start + phases max(alpha_in, alpha_out if domains are crossed).
    """
    return start + phases * maximum(
        minimum(ranks - domains, 1) * step, minimum(domains - 1, 1) * outer_step
    )


@formula("s", source="bruck1997")
def exchange_latency(
    start: Second, ranks: Pure, domains: Pure, step: Second, outer_step: Second
) -> Quantity:
    """Latency of an all-to-all: l = start + log2(N) alpha_in + alpha_out.

    alpha_out counts only if domains are crossed.
    """
    return start + log2(ranks) * step + minimum(domains - 1, 1) * outer_step


@formula("s", source="chan2007")
def torus_latency(start: Second, passes: Pure, steps: Pure, step: Second) -> Quantity:
    """Latency of bucket rings over the dimensions of a torus: l = start + p sum(d_i - 1) alpha."""
    return start + passes * steps * step


@formula("s", source="chan2007")
def bucket_time(
    size: Byte, ring: Pure, before: Pure, passes: Pure, link: BytePerSecond, closed: Pure = 1
) -> Quantity:
    """Wire time of one dimension of a sequential bucket: p (d-1)/d x M / prod(d before) / (n B).

    n = 2 on a closed ring, 1 on a line or a pair.
    """
    return (
        passes
        * (ring - 1)
        / ring
        * size
        / before
        / (maximum(minimum(ring - 1, 1 + closed), 1) * link)
    )


@formula("byte", source="deepep")
def token_bytes(hidden: Pure, element: Byte, scale: Byte, block: Pure) -> Quantity:
    """Bytes of one token on the wire with its block scales: h (b + s / block)."""
    return hidden * (element + scale / block)


@formula("byte", source="deepep")
def scattered_bytes(tokens: Pure, active: Pure, token: Byte, share: Pure) -> Quantity:
    """Bytes of tokens sent once for each expert: T k b x share of the places."""
    return active * token * share * tokens


@formula("")
def distinct_places(units: Pure, active: Pure) -> Quantity:
    """Distinct places the k experts of a token fall on: U (1 - (1 - 1/U)^k)."""
    return -units * expm1(active * log1p(-minimum(1 / units, 1 - 1e-16)))


@formula("", source="deepseek-v3")
def missed_share(missed: Pure, units: Pure, groups: Pure, drawn: Pure) -> Quantity:
    """Share of tokens that miss a unit of G/U groups after one more draw of a group.

    m max(G - G/min(U, G) - d, 0) / (G - d), where d = groups drawn before, without replacement.
    """
    return missed * maximum(groups - groups / minimum(units, groups) - drawn, 0) / (groups - drawn)


@formula("", source="deepseek-v3")
def limited_places(units: Pure, missed: Pure, groups: Pure, drawn: Pure, active: Pure) -> Quantity:
    """Distinct units that a token's k experts in D of G groups fall on: U (1 - m).

    Where groups span units it is D u (1 - (1 - 1/u)^(k/D)), u = U/G.
    """
    units_per_group = maximum(units / groups, 1)
    hit = -units_per_group * expm1(active / drawn * log1p(-minimum(1 / units_per_group, 1 - 1e-16)))
    return select(units > groups, drawn * hit, units * (1 - missed))


@formula("s", source="deepep")
def copy_time(
    tokens: Pure, token: Byte, copies: Pure, cores: Pure, core_rate: BytePerSecond
) -> Quantity:
    """Time some cores need to read a token once and write its copies: T b (1 + U) / (n_SM r)."""
    return tokens * token * (1 + copies) / (cores * core_rate)


@formula("s")
def only_if_shared(time: Second, ranks: Pure) -> Quantity:
    """Time of a collective or of a step, zero for a group of one: t min(N-1, 1)."""
    return time * minimum(ranks - 1, 1)


@formula("s", source="deepep")
def expert_latency(kernels: Pure, kernel: Second, network: Second) -> Quantity:
    """Latency of expert dispatch or combine: l = n kernels + network step."""
    return kernels * kernel + network


@formula("s")
def caller_time(overhead: Second, size: Byte, staged: SecondPerByte) -> Quantity:
    """Time that a caller adds to a collective, also per staged byte: o + Q s."""
    return overhead + size * staged


@formula("s", source="aws-nki-dma")
def doublings_time(phases: Pure, chips: Pure, ranks: Pure, step: Second) -> Quantity:
    """Latency by a collective's degree, where each transfer signals the next: p log2(n r) t.

    r is the number of ranks per chip.
    """
    return phases * log2(chips * ranks) * step


@formula("s")
def where_offered(time: Second, offered: Pure, otherwise: Second) -> Quantity:
    """Time of an algorithm where it is offered, otherwise of another: t = t_1 or t_0."""
    return select(offered > 0.5, time, otherwise)


@formula("", source="nccl-tests")
def bus_factor(ranks: Pure, passes: Pure) -> Quantity:
    """Bus bandwidth over algorithm bandwidth: p (N-1)/N; one for a broadcast by definition."""
    return passes * (ranks - 1) / ranks


@formula("byte/s", source="nccl-tests")
def algorithm_bandwidth(size: Byte, time: Second) -> Quantity:
    """Bytes of the buffer over the time: M / t."""
    return size / time


@formula("byte", source="deepep")
def received_bytes(tokens: Pure, token: Byte, copies: Pure) -> Quantity:
    """Bytes of the copies that some ranks or domains receive in all of one rank's tokens: T b U."""
    return token * copies * tokens
