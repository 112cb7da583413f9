"""Stores and scatters of a kernel."""

from __future__ import annotations

from llvmlite import ir

from genesis.codegen.cpu.addressing import address, known_stride, lane_offsets, lane_stride
from genesis.codegen.cpu.arithmetic import Arithmetic
from genesis.codegen.cpu.nest import LINE, Nest
from genesis.codegen.cpu.registers import I64, is_varying
from genesis.codegen.cpu.unrolled_axes import store_strided
from genesis.codegen.cpu.values import value_of
from genesis.lower.kernel import Instruction

__all__ = ["effect", "stored"]


def effect(nest: Nest, i: Instruction) -> None:
    """Emit a store or a scatter of the present lanes."""
    if i.name == "scatter":
        _scatter(nest, i)
    else:
        stored(nest, i, value_of(nest, i.args[0]))


def stored(nest: Nest, i: Instruction, value: ir.Value) -> None:
    """Store `value` where `i` says."""
    assert i.access is not None
    lanes, dtype = nest.lanes, i.dtype.name
    stride = lane_stride(nest, i.access)
    if (known := known_stride(nest, i.access)) > 1:
        store_strided(nest, i, value, known)
        return
    start = address(nest, i.access)
    if stride == 0:
        lanes.store_uniform(value, start, dtype)
    elif stride == 1:
        _store(nest, i, lanes.splat(value), start)
    else:
        lanes.scatter_store(lanes.splat(value), start, lane_offsets(nest, stride), dtype, nest.mask)


def _store(nest: Nest, i: Instruction, value: ir.Value, start: ir.Value) -> None:
    """A vector to adjacent elements; past the caches where the store streams and the vector is whole and aligned."""
    # Measured: a fifth off kernels with one output, since no line is read in order to be overwritten.
    b, lanes, dtype = nest.builder, nest.lanes, i.dtype.name
    assert i.access is not None
    if i.access.pointer not in nest.streams:
        lanes.store(value, start, dtype, nest.mask)
        return
    # One comparison decides: `streams` is 0 or 1, `unaligned` is 0 where the store is aligned and unmasked.
    unaligned = b.and_(b.ptrtoint(start, I64), I64(LINE - 1))
    if nest.mask is not None:
        unaligned = b.or_(unaligned, b.zext(b.not_(lanes.extract(nest.mask, lanes.width - 1)), I64))
    with b.if_else(b.icmp_unsigned(">", nest.streams[i.access.pointer], unaligned)) as (past_caches, through_caches):
        with past_caches:
            lanes.store(value, start, dtype, past_caches=True)
        with through_caches:
            lanes.store(value, start, dtype, nest.mask)


def _scatter(nest: Nest, i: Instruction) -> None:
    assert i.access is not None
    lanes, dtype = nest.lanes, i.dtype.name
    position, value = (value_of(nest, a) for a in i.args)
    (stride_word,) = nest.extra_words(i)
    moved = lanes.multiply(position, stride_word)
    start, stride = address(nest, i.access), lane_stride(nest, i.access)
    if not is_varying(moved):
        start = lanes.element_pointer(start, moved, dtype)
    add = Arithmetic(lanes, dtype).add if i.attr("mode") == "add" else None
    if is_varying(moved) or stride not in (0, 1):
        offsets = lanes.splat(moved) if is_varying(moved) else lane_offsets(nest, stride)
        if is_varying(moved) and stride != 0:
            offsets = lanes.add(offsets, lane_offsets(nest, stride))
        old = lanes.gather(start, offsets, dtype, nest.mask) if add else None
        lanes.scatter_store(lanes.splat(add(old, value) if add else value), start, offsets, dtype, nest.mask)
    elif stride == 1:
        new = add(lanes.load(start, dtype, nest.mask), value) if add else value
        lanes.store(lanes.splat(new), start, dtype, nest.mask)
    else:
        lanes.store_uniform(add(lanes.load_uniform(start, dtype), value) if add else value, start, dtype)
