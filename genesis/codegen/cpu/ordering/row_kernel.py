"""Kernels that process rows in several steps: their code, sources and launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import WORD
from genesis.codegen.cpu.ordering.keys import ALIGNED, ORDER, Keys, has_keys, order_words
from genesis.codegen.cpu.ordering.radix import Scratch, Sorting
from genesis.codegen.cpu.registers import I64
from genesis.codegen.cpu.word_kernel import WordKernel, word_types
from genesis.codegen.segment import SlotMap
from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape, numel
from genesis.lower.stages import PARALLEL_COST, HostCall
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import Addresses, Block, BlockWord, NativeLaunch

BLOCK = 1 << 15  # elements: a block of a row that all work on is no shorter
BLOCKS = 4  # for each worker


def aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNED) * ALIGNED


class Rows(NamedTuple):
    """The rows of a call's first operand, and their division among workers: whole, or in `blocks`."""

    node: Node
    keys: Keys
    n: int
    total: int
    workers: int
    blocks: int

    @classmethod
    def of(cls, node: Node, shape: tuple[int, int], threads: int, cost: int, block: int) -> Rows:
        """So many rows of n elements, which cost `cost` simple operations each; blocks are no shorter than `block`."""
        total, n = shape
        workers = threads if cost * total * n > PARALLEL_COST else 1
        blocks = max(1, min(BLOCKS * workers, n // block)) if total < workers else 1
        return cls(node, Keys(node.dtype.itemsize), n, total, workers, blocks)

    @property
    def is_shared(self) -> bool:
        """Whether several workers take part in a row."""
        return self.blocks > 1

    @property
    def at_once(self) -> int:
        """The most rows that are in work at a time, one for each worker."""
        return min(self.workers, self.total)


class LaunchPlan(NamedTuple):
    """The launches of a kernel: (step, items, words of the launch) in order, with the memory and words common to all."""

    launches: Sequence[tuple[str, int, dict[str, int]]]
    scratch: Scratch
    memory: int  # bytes, of all workers and rows
    pitch: int  # bytes from one worker's, or row's, scratch to the next
    words: dict[str, BlockWord]


class RowKernel(WordKernel):
    """Emits a kernel that runs the step given by a word for each item. A method `_NAME(item)` emits the step NAME."""

    steps: ClassVar[Sequence[str]] = ("row",)
    more: ClassVar[Sequence[str]] = ()  # words beside those of all kernels
    pointers: ClassVar[Sequence[str]] = "source", "out", "scratch"
    cost: ClassVar[int]  # of an element, in simple operations
    functions: ClassVar[type[Sorting]] = Sorting  # what the steps call

    def __init__(self, name: str, keys: Keys) -> None:
        super().__init__(name, word_types(self.names(), self.pointers), keys.lanes)
        self.keys, self.sorting = keys, self.functions(self.module, keys)

    # ---- the launches ----
    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of a launch's words, in order."""
        return (*ORDER, "step", "source", "out", "n", "blocks", "scratch", "pitch", "a", "b", *cls.more)

    @classmethod
    def plan(cls, node: Node, call: HostCall, rows: Rows, slots: SlotMap) -> LaunchPlan:
        """Every row as a whole, with memory for its pairs."""
        scratch = Scratch.of(rows.keys, rows.n)
        pitch = aligned(scratch.end)
        return LaunchPlan([(cls.steps[0], rows.total, {})], scratch, pitch * rows.at_once, pitch, {})

    @classmethod
    def takes(cls, dtype: DType) -> bool:
        """Whether there is a kernel for such elements."""
        return has_keys(dtype)

    @classmethod
    def rows(cls, shape: Shape) -> tuple[int, int]:
        """The rows of an operand, and their elements."""
        return numel(shape[:-1]), shape[-1]

    @classmethod
    def is_descending(cls, node: Node) -> bool:
        """Whether the greatest elements come first."""
        return False

    @classmethod
    def least_block(cls, node: Node) -> int:
        """The elements of the shortest block of a row."""
        return BLOCK

    @classmethod
    def source(cls, keys: Keys) -> KernelSource:
        """The kernel for elements with such keys."""
        name = f"genesis_{cls.__name__.lower()}_{keys.size}"
        return KernelSource(name, f"{name} {keys.lanes}", lambda: cls(name, keys).text())

    @classmethod
    def sources(cls, nodes: Sequence[Node], call: HostCall) -> list[KernelSource]:
        """The kernel of a call, if its elements have keys, and positions fit beside them."""
        value, layout = call.operands[0]
        dtype = nodes[value].dtype
        fits = cls.takes(dtype) and (dtype.itemsize == WORD or cls.rows(layout.shape)[1] < 1 << 32)
        return [cls.source(Keys(dtype.itemsize))] if fits else []

    @classmethod
    def launches(
        cls, nodes: Sequence[Node], call: HostCall, slots: SlotMap, addresses: Addresses, threads: int
    ) -> list[NativeLaunch] | None:
        """The launches of a call; None without a kernel for it."""
        node, (value, layout) = nodes[call.node], call.operands[0]
        if not cls.sources(nodes, call):
            return None
        rows = Rows.of(nodes[value], cls.rows(layout.shape), threads, cls.cost, cls.least_block(node))
        plan = cls.plan(node, call, rows, slots)
        dtype = rows.node.dtype
        known: dict[str, BlockWord] = {
            **dict(zip(ORDER, order_words(dtype, cls.is_descending(node)), strict=True)), **plan.words,
            "source": slots.address(value, layout.offset * dtype.itemsize), "out": slots.address(call.node),
            "n": rows.n, "blocks": rows.blocks, "scratch": slots.workspace(plan.memory), "pitch": plan.pitch,
            "a": plan.scratch.a, "b": plan.scratch.b,
        }
        kernel = addresses[cls.source(rows.keys).symbol]
        found = [known | {"step": cls.steps.index(step)} | words for step, _, words in plan.launches]
        blocks = [Block([words[name] for name in cls.names()], items)
                  for words, (_, items, _) in zip(found, plan.launches, strict=True)]
        return [NativeLaunch(kernel, [block], rows.workers) for block in blocks]

    # ---- the code ----
    def text(self) -> str:
        """The module's text."""
        for number in self.builder.cases(self.words["step"], range(len(self.steps))):
            with self.items() as item:
                getattr(self, "_" + self.steps[number])(item)
        return super().text()

    def part(self, item: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
        """(row, block, first, end) of an item that is a block of a row: all are equally long but for alignment."""
        builder, n, blocks = self.builder, self.words["n"], self.words["blocks"]
        row = builder.sdiv(item, blocks)
        block = item - row * blocks
        first, end = (self.least(builder.sdiv(n * b, blocks) + (ALIGNED - 1) & -ALIGNED, n) for b in (block, block + 1))
        return row, block, first, end

    def row(self, row: ir.Value) -> ir.Value:
        """The address of a row's elements."""
        return self.at(self.words["source"], row * self.words["n"], self.keys.size)

    def buffers(self, number: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The memory of a row, or of a worker, and its two buffers of pairs."""
        start = self.at(self.words["scratch"], number * self.words["pitch"])
        return start, self.at(start, self.words["a"]), self.at(start, self.words["b"])

    def sorted_row(self, row: ir.Value) -> ir.Value:
        """The pairs of a row in order, in the worker's memory."""
        (counts, a, b), n = self.buffers(self.worker), self.words["n"]
        low, high = self.variable(0), self.variable(0)
        with self.builder.if_then(n > self.keys.short):  # others are not sorted by digits
            self.sorting.range(self.row(row), I64(0), n, counts, self.block)
            low.set(self.get(counts, 0))
            high.set(self.get(counts, 1))
        self.sorting.encode(self.row(row), I64(0), n, a, low.get(), self.block)
        return self.sorting.sort(n, high.get() - low.get(), counts, a, b)

    def put_position(self, pair: ir.Value, index: ir.Value) -> None:
        """Write the position of a pair as element `index` of the result."""
        self.put(self.builder.zext(self.get(pair, 0, self.keys.type), I64), self.words["out"], index)
