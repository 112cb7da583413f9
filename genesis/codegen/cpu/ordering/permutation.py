"""The order of rows that exchanges of each with another describe, as pivots of Gaussian elimination do. An item is a matrix."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.codegen.cpu.code import WORD
from genesis.codegen.cpu.registers import REGISTER_TYPE
from genesis.codegen.cpu.word_kernel import WordKernel, word_types
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.stages import PARALLEL_COST, HostCall
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import FAULT, Addresses, Block, NativeLaunch

TYPES = word_types(("pivots", "order", "count", "rows", "inverse", "fault", "site"), ("pivots", "order", "fault"))
EXCHANGE = 4  # simple operations


def sources(nodes: Sequence[Node], call: HostCall) -> list[KernelSource]:
    """The kernel for pivots of a dtype, if it is real."""
    dtype = nodes[call.operands[0][0]].dtype.name
    name = f"genesis_permutation_{dtype}"
    return [KernelSource(name, name, lambda: _kernel(name, dtype))] if dtype in REGISTER_TYPE else []


def launches(
    nodes: Sequence[Node], call: HostCall, slots: SlotMap, addresses: Addresses, threads: int
) -> list[NativeLaunch] | None:
    """The launch of a call; None without a kernel for it."""
    kernels, node, (value, layout) = sources(nodes, call), nodes[call.node], call.operands[0]
    if not kernels:
        return None
    matrices, count, rows = numel(node.shape[:-1]), layout.shape[-1], node.shape[-1]
    pivots = slots.address(value, layout.offset * nodes[value].dtype.itemsize)
    words = pivots, slots.address(call.node), count, rows, int(node.attrs["inverse"]), FAULT, call.node
    workers = threads if EXCHANGE * matrices * rows > PARALLEL_COST else 1
    return [NativeLaunch(addresses[kernels[0].symbol], [Block(words, matrices)], workers)]


def _kernel(name: str, dtype: str) -> str:
    code = WordKernel(name, TYPES, 1)
    builder, words = code.builder, code.words
    with code.items() as matrix:
        order = code.at(words["order"], matrix * words["rows"], WORD)
        first = matrix * words["count"]
        with code.count(0, words["rows"]) as row:
            code.put(row, order, row)
        with code.count(0, words["count"]) as step:
            from_last = words["count"] - step - 1
            row = builder.select(words["inverse"].differs(0), from_last, step)
            pivot = code.load_uniform(code.element("pivots", first + row, dtype), dtype)
            pivot = code.convert(pivot, dtype, "int64")
            other = pivot - 1
            with builder.if_else(builder.icmp_unsigned("<", other, words["rows"])) as (fits, does_not):
                with fits:
                    here, there = code.get(order, row), code.get(order, other)
                    code.put(there, order, row)
                    code.put(here, order, other)
                with does_not:
                    code.report(pivot, words["rows"])
    return code.text()
