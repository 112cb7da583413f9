"""Access to memory: adjacent elements or scattered ones, all lanes or those of a mask.

Pointers are opaque and move by `getelementptr inbounds` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir

from genesis.codegen.cpu.conversion import from_memory, to_memory
from genesis.codegen.cpu.registers import I1, I64, MEMORY_TYPE, POINTER, SIZE, Value, is_varying, zero

if TYPE_CHECKING:
    from genesis.codegen.cpu.lanes import Lanes

__all__ = ["element_pointer", "gather", "load", "load_uniform", "scatter_store", "store", "store_uniform"]


def element_pointer(lanes: Lanes, base: ir.Value, index: Value, dtype: str) -> ir.Value:
    """The address of element `index` of an array of `dtype`; a varying index gives a pointer for each lane."""
    index = index if isinstance(index, ir.Value) else ir.Constant(I64, index)
    base = lanes.builder.bitcast(base, POINTER)
    base = lanes.splat(base) if is_varying(index) else base
    return lanes.builder.gep(base, [index], inbounds=True, source_etype=MEMORY_TYPE[dtype])


def load(lanes: Lanes, pointer: ir.Value, dtype: str, mask: ir.Value | None = None) -> ir.Value:
    """`width` adjacent elements; lanes outside `mask` are not read and hold 0."""
    memory = ir.VectorType(MEMORY_TYPE[dtype], lanes.width)
    if mask is None:
        return from_memory(lanes, lanes.builder.load(pointer, align=SIZE[memory.element], typ=memory), dtype)
    return from_memory(lanes, _masked(lanes, "load", memory, [pointer, mask, zero(memory)], memory, 0), dtype)


def load_uniform(lanes: Lanes, pointer: ir.Value, dtype: str) -> ir.Value:
    """One element."""
    memory = MEMORY_TYPE[dtype]
    return from_memory(lanes, lanes.builder.load(pointer, align=SIZE[memory], typ=memory), dtype)


def gather(lanes: Lanes, base: ir.Value, element_offsets: ir.Value, dtype: str, mask: ir.Value | None = None) -> ir.Value:
    """The elements `base[element_offsets]`; lanes outside `mask` are not read and hold 0."""
    memory = ir.VectorType(MEMORY_TYPE[dtype], lanes.width)
    pointers = element_pointer(lanes, base, lanes.splat(element_offsets), dtype)
    gathered = _masked(lanes, "gather", memory, [pointers, _whole(lanes, mask), zero(memory)], memory, 0)
    return from_memory(lanes, gathered, dtype)


def store(lanes: Lanes, x: ir.Value, pointer: ir.Value, dtype: str, mask: ir.Value | None = None) -> None:
    """Every lane to adjacent elements; lanes outside `mask` are not written."""
    x = to_memory(lanes, lanes.splat(x), dtype)
    if mask is None:
        lanes.builder.store(x, pointer, align=SIZE[x.type.element])
    else:
        _masked(lanes, "store", ir.VoidType(), [x, pointer, mask], x.type, 1)


def store_uniform(lanes: Lanes, x: ir.Value, pointer: ir.Value, dtype: str) -> None:
    """One element."""
    x = to_memory(lanes, x, dtype)
    lanes.builder.store(x, pointer, align=SIZE[x.type])


def scatter_store(
    lanes: Lanes, x: ir.Value, base: ir.Value, element_offsets: ir.Value, dtype: str, mask: ir.Value | None = None
) -> None:
    """To `base[element_offsets]`, in lane order where offsets meet; lanes outside `mask` are not written."""
    x = to_memory(lanes, lanes.splat(x), dtype)
    pointers = element_pointer(lanes, base, lanes.splat(element_offsets), dtype)
    _masked(lanes, "scatter", ir.VoidType(), [x, pointers, _whole(lanes, mask)], x.type, 1)


def _whole(lanes: Lanes, mask: ir.Value | None) -> ir.Value:
    return lanes.splat(ir.Constant(I1, 1)) if mask is None else mask


def _masked(
    lanes: Lanes, name: str, result: ir.Type, arguments: list[ir.Value], memory: ir.VectorType, pointer: int
) -> ir.Value:
    """A masked memory intrinsic; its alignment is an attribute of the pointer argument (numbered `pointer`)."""
    call = lanes.intrinsic("masked." + name, result, arguments, overloads=(memory, arguments[pointer].type))
    attributes = ir.values.ArgumentAttributes()
    attributes.align = SIZE[memory.element]
    call.arg_attributes[pointer] = attributes
    return call
