"""Column sums in a kernel that passes over the rows: each share of the rows has its own sums.

A share's sums are contiguous in `partials`, eight bytes per number whatever the type, with room behind them: a row's last
vector is added whole. The finishing function adds the sums of all shares in order.
"""

from __future__ import annotations

from llvmlite import ir

from genesis.codegen.cpu.arithmetic import Arithmetic
from genesis.codegen.cpu.effects import effect
from genesis.codegen.cpu.nest import Nest
from genesis.codegen.cpu.reductions import Accumulator
from genesis.codegen.cpu.registers import I1, I8, I64, POINTER
from genesis.codegen.cpu.values import value_of

__all__ = ["ROOM", "add", "clear", "finish"]

NUMBER = 8  # bytes, whatever the type
ROOM = 64  # numbers, as many as the widest vectors have


def clear(nest: Nest) -> None:
    """Before the first row: all sums are 0."""
    if nest.columns:
        size = nest.builder.mul(_bytes(nest), I64(len(nest.columns)))
        start = _part(nest, nest.builder.mul(nest.share, size))
        fill = nest.lanes.declared("llvm.memset.p0.i64", ir.VoidType(), [POINTER, I8, I64, I1])
        nest.builder.call(fill, [start, I8(0), size, I1(0)])


def add(nest: Nest, n: int) -> None:
    """Add the present lanes to column sum `n`."""
    lanes, instruction = nest.lanes, nest.kernel.instructions[n]
    dtype = instruction.dtype.compute.name
    value = lanes.splat(value_of(nest, instruction.args[0]))
    # Zeros beyond the row's end, not a masked store: a load from what was stored through a mask is not forwarded, and waits
    # for the cache.
    if nest.mask is not None:
        value = lanes.select(nest.mask, value, lanes.constant(dtype, 0))
    at = _address(nest, n, nest.share)
    lanes.store(Arithmetic(lanes, dtype).add(lanes.load(at, dtype), value), at, dtype)


def finish(nest: Nest) -> None:
    """The body of the finishing function: for each column, the shares' sums and what depends on them."""
    kernel, b = nest.kernel, nest.builder
    lane = kernel.lane
    assert lane is not None

    def columns() -> None:
        for n in nest.columns:
            dtype = kernel.instructions[n].dtype
            total = Accumulator(nest.lanes, "sum", dtype.compute.name, nest.entry, varying=True)
            with nest.loop(I64(0), nest.words[nest.word_of("shares")]) as share:
                total.add(nest.lanes.load(_address(nest, n, share), dtype.compute.name, nest.mask), None, None)
            nest.scopes[-1][nest.key(n)] = nest.lanes.round_to(dtype.name, total.value())
        stores = [i for i in kernel.instructions if i.name == "store" and i.level == "column"]
        for i in stores:
            value_of(nest, i.args[0])  # reads come first: a result may alias an input
        for i in stores:
            effect(nest, i)

    def rows_of_columns() -> None:
        nest.lane_loop(I64(0), nest.words[kernel.axes[lane][0]], columns)

    nest.loops(kernel.inner, lambda: None, rows_of_columns)
    b.ret_void()


def _bytes(nest: Nest) -> ir.Value:
    """The size of one sum of all columns."""
    count: ir.Value = I64(1)
    for word, reduced in nest.kernel.axes:
        count = nest.builder.mul(count, nest.words[word]) if reduced else count
    return nest.builder.mul(nest.builder.add(count, I64(ROOM)), I64(NUMBER))


def _part(nest: Nest, offset: ir.Value) -> ir.Value:
    return nest.builder.gep(nest.words[nest.word_of("partials")], [offset], inbounds=True, source_etype=I8)


def _address(nest: Nest, n: int, share: ir.Value) -> ir.Value:
    """The address of the present lanes of `share`'s sum `n`."""
    b = nest.builder
    number = b.add(b.mul(share, I64(len(nest.columns))), I64(nest.columns.index(n)))
    at: ir.Value = I64(0)
    for axis, (word, reduced) in enumerate(nest.kernel.axes):
        at = b.add(b.mul(at, nest.words[word]), nest.index[axis]) if reduced else at
    dtype = nest.kernel.instructions[n].dtype.compute.name
    return nest.lanes.element_pointer(_part(nest, b.mul(number, _bytes(nest))), at, dtype)
