"""Kernel shapes and collective sizes to measure.

The module holds structure only. Its only quantity with a unit is the bytes of a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from tco.core.files import data_directory, read_toml

# bytes of a number, by the name the measured files give its format
NUMBER_SIZES = {
    "bfloat16": 2,
    "fp32": 4,
}
FORMATS = {"cuda": ("bfloat16",), "cpu": ("fp32", "bfloat16")}
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
# passes through memory: every operand read, the result written
STREAMS = {
    "elementwise:copy": 2,
    "elementwise:add": 3,
}


@dataclass(frozen=True, slots=True)
class MeasuredKernel:
    """A kernel: a product (m, k) x (k, n), attention, or a pass over m x n; else zero."""

    op: str
    dtype: str
    m: int = 0
    n: int = 0
    k: int = 0
    batch: int = 0
    seq_q: int = 0
    seq_kv: int = 0
    heads_q: int = 0
    heads_kv: int = 0
    head_dim: int = 0

    @property
    def numbers(self) -> int:
        """Return the least numbers through memory; attention counts keys and values only.

        Published rows count so.
        """
        if self.op == "gemm":
            return self.m * self.k + self.k * self.n + self.m * self.n
        if self.op in STREAMS:
            return STREAMS[self.op] * self.m * self.n
        return 2 * self.batch * self.seq_kv * self.heads_kv * self.head_dim

    def __str__(self) -> str:
        """Return the kernel in words."""
        if self.op == "gemm":
            return f"gemm {self.dtype} {self.m} x {self.n} x {self.k}"
        if self.op in STREAMS:
            return f"{self.op} {self.dtype} {self.m} x {self.n}"
        return (
            f"{self.op} {self.dtype} {self.batch} x {self.seq_kv} tokens, "
            f"{self.heads_q}/{self.heads_kv} heads"
        )


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective over ranks, with `numbers` in the whole buffer, divisible by the ranks.

    nccl-tests counts so.
    """

    op: str
    dtype: str
    ranks: int
    numbers: int

    @property
    def size(self) -> int:
        """Bytes of the whole buffer."""
        return self.numbers * NUMBER_SIZES[self.dtype]

    def __str__(self) -> str:
        """Return the collective in words."""
        return f"{self.op} {self.dtype} {self.size:,} bytes over {self.ranks}"


class Sizes(NamedTuple):
    """The sizes of a sweep: products, sequences and heads, and widths of streams."""

    rows: Sequence[int]
    weights: Sequence[tuple[int, int]]  # n, k
    prompts: Sequence[tuple[int, int]]  # batch, tokens
    contexts: Sequence[tuple[int, int]]  # batch, tokens in the cache
    heads: Sequence[tuple[int, int]]  # query heads, key-value heads
    head_dim: int
    stream_rows: Sequence[int]
    width: int
    buffers: Sequence[int]  # bytes


@cache
def _sizes_of(device: str, quick: bool) -> Sizes:
    return Sizes(
        **read_toml(data_directory() / "measure.toml")[device]["quick" if quick else "full"]
    )


def kernels(device: str, quick: bool) -> Iterator[MeasuredKernel]:
    """Yield the kernels of a device's sweep.

    A prompt has keys per head, so that each number of heads occurs once.
    """
    sizes = _sizes_of(device, quick)
    for dtype in FORMATS[device]:
        for n, k in sizes.weights:
            for m in sizes.rows:
                yield MeasuredKernel("gemm", dtype, m=m, n=n, k=k)
        for heads, _ in sizes.heads:
            for batch, tokens in sizes.prompts:
                yield MeasuredKernel(
                    "attention_prefill",
                    dtype,
                    **_heads_of(heads, heads, sizes),
                    batch=batch,
                    seq_q=tokens,
                    seq_kv=tokens,
                )
        for heads, groups in sizes.heads:
            for batch, tokens in sizes.contexts:
                yield MeasuredKernel(
                    "attention_decode",
                    dtype,
                    **_heads_of(heads, groups, sizes),
                    batch=batch,
                    seq_q=1,
                    seq_kv=tokens,
                )
        for op in STREAMS:
            for m in sizes.stream_rows:
                yield MeasuredKernel(op, dtype, m=m, n=sizes.width)


def _heads_of(heads: int, groups: int, sizes: Sizes) -> dict[str, int]:
    return {"heads_q": heads, "heads_kv": groups, "head_dim": sizes.head_dim}


def rank_counts(device: str, available: int, quick: bool) -> list[int]:
    """Return the possible numbers of ranks: powers of two and all, empty below two."""
    # processes on one CPU share its memory: more of them measure nothing new
    if quick or device == "cpu":
        return [2] if available >= 2 or device == "cpu" else []
    return sorted({count for count in (2, 4, 8, 16, available) if 2 <= count <= available})


def collectives(device: str, ranks: int, quick: bool) -> Iterator[Collective]:
    """Yield the collectives of a number of ranks, with buffers cut to multiples of it."""
    dtype = FORMATS[device][0]
    for op in OPERATIONS:
        for size in _sizes_of(device, quick).buffers:
            yield Collective(op, dtype, ranks, size // NUMBER_SIZES[dtype] // ranks * ranks)
