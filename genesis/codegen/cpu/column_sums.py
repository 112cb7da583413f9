"""Sums of columns beside reductions of rows: each share of the rows is added up in numbers of its own.

A share's sums lie one after the other in its part of `partials`, eight bytes to a number whatever its type; the
finishing function adds those of all shares in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from genesis.codegen.cpu.arithmetic import Arithmetic
from genesis.codegen.cpu.reductions import Accumulator
from genesis.codegen.cpu.registers import I1, I8, I64, POINTER

if TYPE_CHECKING:
    from genesis.codegen.cpu.emit import Emitter

__all__ = ["add", "clear", "finish"]

NUMBER = 8  # bytes, whatever the type


def clear(emitter: Emitter) -> None:
    """Before the first row: nothing is summed."""
    if emitter.columns:
        size = emitter.builder.mul(_bytes(emitter), I64(len(emitter.columns)))
        start = _part(emitter, emitter.builder.mul(emitter.share, size))
        fill = emitter.lanes.declared("llvm.memset.p0.i64", ir.VoidType(), [POINTER, I8, I64, I1])
        emitter.builder.call(fill, [start, I8(0), size, I1(0)])


def add(emitter: Emitter, n: int) -> None:
    """The present lanes of what sum `n` is over."""
    lanes, instruction = emitter.lanes, emitter.kernel.instructions[n]
    dtype = instruction.dtype.compute.name
    value = emitter.value(instruction.args[0])
    place = _place(emitter, n, emitter.share)
    held = lanes.load(place, dtype, emitter.mask)
    lanes.store(lanes.splat(Arithmetic(lanes, dtype).add(held, value)), place, dtype, emitter.mask)


def finish(emitter: Emitter) -> None:
    """The body of the finishing function: for each column, the shares' sums and what depends on them."""
    kernel, b = emitter.kernel, emitter.builder
    lane = kernel.lane
    assert lane is not None

    def columns() -> None:
        for n in emitter.columns:
            dtype = kernel.instructions[n].dtype
            total = Accumulator(emitter.lanes, "sum", dtype.compute.name, emitter.entry, varying=True)
            with emitter.loop(I64(0), emitter.words[emitter.word_of("shares")]) as share:
                total.add(emitter.lanes.load(_place(emitter, n, share), dtype.compute.name, emitter.mask), None, None)
            emitter.scopes[-1][emitter.key(n)] = emitter.lanes.round_to(dtype.name, total.value())
        stores = [i for i in kernel.instructions if i.name == "store" and i.level == "column"]
        for i in stores:
            emitter.value(i.args[0])  # all is read before anything is written: a result may lie where an input lay
        for i in stores:
            emitter.effect(i)

    def rows_of_columns() -> None:
        emitter.lane_loop(I64(0), emitter.words[kernel.axes[lane][0]], columns)

    emitter.nest(kernel.inner, lambda: None, rows_of_columns)
    b.ret_void()


def _bytes(emitter: Emitter) -> ir.Value:
    """The size of one sum of all columns."""
    size: Any = I64(NUMBER)
    for word, reduced in emitter.kernel.axes:
        size = emitter.builder.mul(size, emitter.words[word]) if reduced else size
    return size


def _part(emitter: Emitter, offset: ir.Value) -> ir.Value:
    return emitter.builder.gep(emitter.words[emitter.word_of("partials")], [offset], inbounds=True, source_etype=I8)


def _place(emitter: Emitter, n: int, share: ir.Value) -> ir.Value:
    """Where `share` keeps the present lanes of sum `n`."""
    b = emitter.builder
    number = b.add(b.mul(share, I64(len(emitter.columns))), I64(emitter.columns.index(n)))
    at: Any = I64(0)
    for axis, (word, reduced) in enumerate(emitter.kernel.axes):
        at = b.add(b.mul(at, emitter.words[word]), emitter.index[axis]) if reduced else at
    dtype = emitter.kernel.instructions[n].dtype.compute.name
    return emitter.lanes.element_pointer(_part(emitter, b.mul(number, _bytes(emitter))), at, dtype)
