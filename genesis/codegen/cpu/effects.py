"""What a kernel's instructions write to memory."""

from __future__ import annotations

from llvmlite import ir

from genesis.codegen.cpu.addressing import address, lane_offsets, lane_stride, lanes_apart
from genesis.codegen.cpu.arithmetic import Arithmetic
from genesis.codegen.cpu.nest import LINE, Nest
from genesis.codegen.cpu.registers import I64, is_varying
from genesis.codegen.cpu.taps import write_tap
from genesis.codegen.cpu.values import value_of
from genesis.lower.kernel import Instruction

__all__ = ["effect", "stored"]


def effect(nest: Nest, i: Instruction) -> None:
    """A store or a scatter, of the lanes at hand."""
    if i.name == "scatter":
        _scatter(nest, i)
    else:
        stored(nest, i, value_of(nest, i.args[0]))


def stored(nest: Nest, i: Instruction, value: ir.Value) -> None:
    """`value` where `i` puts it."""
    assert i.access is not None
    lanes, dtype = nest.lanes, i.dtype.name
    stride = lane_stride(nest, i.access)
    if (apart := lanes_apart(nest, i.access)) > 1:
        write_tap(nest, i, value, apart)
        return
    start = address(nest, i.access)
    if stride == 0:
        lanes.store_uniform(value, start, dtype)
    elif stride == 1:
        _store(nest, i, lanes.splat(value), start)
    else:
        lanes.scatter_store(lanes.splat(value), start, lane_offsets(nest, stride), dtype, nest.mask)


def _store(nest: Nest, i: Instruction, value: ir.Value, start: ir.Value) -> None:
    """A vector to neighbouring elements, past the caches if so wanted of a whole and aligned one."""
    b, lanes, dtype = nest.builder, nest.lanes, i.dtype.name
    assert i.access is not None
    if i.access.pointer not in nest.streams:
        lanes.store(value, start, dtype, nest.mask)
        return
    unaligned = b.and_(b.ptrtoint(start, I64), I64(LINE - 1))
    if nest.mask is not None:
        unaligned = b.or_(unaligned, b.zext(b.not_(lanes.extract(nest.mask, lanes.width - 1)), I64))
    with b.if_else(b.icmp_unsigned(">", nest.streams[i.access.pointer], unaligned)) as (past, through):
        with past:
            lanes.store(value, start, dtype, past_caches=True)
        with through:
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
        places = lanes.splat(moved) if is_varying(moved) else lane_offsets(nest, stride)
        if is_varying(moved) and stride != 0:
            places = lanes.add(places, lane_offsets(nest, stride))
        old = lanes.gather(start, places, dtype, nest.mask) if add else None
        lanes.scatter_store(lanes.splat(add(old, value) if add else value), start, places, dtype, nest.mask)
    elif stride == 1:
        new = add(lanes.load(start, dtype, nest.mask), value) if add else value
        lanes.store(lanes.splat(new), start, dtype, nest.mask)
    else:
        lanes.store_uniform(add(lanes.load_uniform(start, dtype), value) if add else value, start, dtype)
