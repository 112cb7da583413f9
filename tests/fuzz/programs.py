"""Random programs: each step takes tensors from a pool and puts what it makes back.

A step that decides (compares, rounds, ranks, converts to integers) is given exact operands only: small dyadic numbers
that every dtype holds without rounding, so that two right answers are one answer. `Term` keeps count of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

import genesis

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8"]
DTYPES = [*FLOATS, *INTEGERS, "bool"]
PRECISION = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
EXTENTS = [1, 2, 3, 4, 5, 7, 16]
LENGTHS = [0, 1, 15, 16, 17, 63, 64, 65, 4097]
LARGE = [(300, 257), (70_001,), (64, 33, 40), (2, 40_000), (40_000, 3)]


@dataclass(frozen=True)
class Term:
    """A tensor whose elements are multiples of 2**-fraction no larger than `bound`, or (`exact` false) any numbers."""

    tensor: genesis.Tensor = field(repr=False)  # to show it would flush it
    bound: float
    fraction: int = 0
    exact: bool = True

    @property
    def dtype(self) -> str:
        return self.tensor.dtype.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape


def made(tensor: genesis.Tensor, bound: float, fraction: int, *sources: Term) -> Term:
    """The term of a result; exact if its sources are and its dtype has the bits."""
    name = tensor.dtype.name
    bound = min(bound, 1e30)
    exact = all(s.exact for s in sources)
    if name in PRECISION:
        exact = exact and math.log2(max(bound, 1)) + fraction <= PRECISION[name]
    return Term(tensor, bound, fraction if name in PRECISION else 0, exact)


class Program:
    """A pool of terms. `integer(low, high)` chooses; every other choice is made of it."""

    def __init__(self, integer: Callable[[int, int], int], gradients: bool) -> None:
        self.integer = integer
        self.gradients = gradients
        self.random = np.random.default_rng(self.integer(0, 999))
        self.pool: list[Term] = []
        self.leaves: list[genesis.Tensor] = []

    # ---- choices ----

    def one_of(self, options):
        return options[self.integer(0, len(options) - 1)]

    def order(self, count: int) -> list[int]:
        """The numbers below `count` in any order."""
        left = list(range(count))
        return [left.pop(self.integer(0, len(left) - 1)) for _ in range(count)]

    def term(self, want: Callable[[Term], bool] = lambda term: True) -> Term | None:
        """A term of the pool that is as wanted, the newest most readily."""
        fit = [t for t in reversed(self.pool) if want(t)]
        return self.one_of(fit) if fit else None

    def axes(self, term: Term) -> tuple[int, ...]:
        rank = term.tensor.ndim
        return tuple(sorted(self.order(rank)[: self.integer(1, rank)])) if rank else ()

    # ---- leaves ----

    def leaf(self, shape: tuple[int, ...], dtype: str | None = None) -> Term:
        """A tensor over a NumPy array, often one that is not contiguous."""
        dtype = dtype or self.one_of(DTYPES)
        layout = self.one_of(["plain", "transposed", "stepped", "flipped"]) if shape else "plain"
        if layout == "transposed":
            values = self.numbers(shape[::-1], dtype).T
        elif layout == "stepped":
            values = self.numbers((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
        elif layout == "flipped":
            values = self.numbers(shape, dtype)[::-1]
        else:
            values = self.numbers(shape, dtype)
        tensor = genesis.from_numpy(np.asarray(values))
        if self.gradients and dtype in ("float32", "float64") and self.integer(0, 1):
            tensor.requires_grad = True
            self.leaves.append(tensor)
        return self.keep(Term(tensor, 4, 2 if dtype in PRECISION else 0))

    def numbers(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        low, high = {"bool": (0, 2), "uint8": (0, 5)}.get(dtype, (-4, 5))
        if dtype in PRECISION:
            numpy = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
            return (self.random.integers(-16, 17, shape) / 4).astype(numpy)
        return self.random.integers(low, high, shape).astype(dtype)

    def shape(self) -> tuple[int, ...]:
        kind = self.integer(0, 19)
        if kind == 19:
            return self.one_of(LARGE)
        if kind > 15:
            return (self.one_of(LENGTHS),)
        if kind == 15:
            return (self.one_of([0, 2, 17]), self.one_of([0, 3]))
        return tuple(self.one_of(EXTENTS) for _ in range(self.integer(0, 4)))

    def keep(self, term: Term) -> Term:
        self.pool.append(term)
        return term

    # ---- the whole ----

    def run(self, length: int, steps: list[Callable[[Program], Term | None]]) -> None:
        """`length` steps, now and then a look at a value or a value let go."""
        for _ in range(self.integer(1, 3)):
            self.leaf(self.shape())
        for _ in range(length):
            term = self.one_of(steps)(self)
            if term is not None and term.tensor.numel() < 1 << 19:
                self.keep(term)
            event = self.integer(0, 15)
            if event == 15:
                self.term().tensor.detach().numpy()
            elif event == 14 and len(self.pool) > 2:
                self.pool.pop(self.integer(0, len(self.pool) - 1))

    def finish(self) -> None:
        """Look at everything that is held, and at the gradients."""
        total = None
        for term in self.pool:
            if term.tensor.requires_grad and term.tensor.numel() and term.bound < 1e4:
                part = (term.tensor * 0.5).sum().to(genesis.float64)
                total = part if total is None else total + part
        if total is not None:
            total.backward()
        for tensor in [t.tensor.detach() for t in self.pool] + [leaf.grad for leaf in self.leaves if leaf.grad is not None]:
            tensor.numpy()
