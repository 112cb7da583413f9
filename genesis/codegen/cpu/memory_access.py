"""Access to memory: adjacent elements or scattered ones, all lanes or those of a mask.

Pointers are opaque and move by `getelementptr inbounds` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from llvmlite import ir

from genesis.codegen.cpu.conversion import from_memory, to_memory
from genesis.codegen.cpu.registers import (
    I1,
    I32,
    I64,
    MEMORY_TYPE,
    POINTER,
    SIZE,
    Literal,
    Value,
    constants,
    is_varying,
    zero,
)

if TYPE_CHECKING:
    from genesis.codegen.cpu.lanes import Lanes

__all__ = [
    "element_pointer", "gather", "load", "load_uniform", "scatter_store", "store", "store_apart", "store_uniform", "wide_load"
]


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


def store(
    lanes: Lanes, x: ir.Value, pointer: ir.Value, dtype: str, mask: ir.Value | None = None, *, past_caches: bool = False
) -> None:
    """Every lane to adjacent elements; lanes outside `mask` are not written. `past_caches` wants `pointer` aligned to 64."""
    x = to_memory(lanes, lanes.splat(x), dtype)
    if past_caches:
        written = lanes.builder.store(x, pointer, align=64)
        written.set_metadata("nontemporal", lanes.builder.module.add_metadata([ir.Constant(I32, 1)]))
    elif mask is None:
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


def wide_load(
    lanes: Lanes, pointer: ir.Value, dtype: str, apart: int, taps: Collection[int], mask: ir.Value | None = None
) -> Callable[[int], ir.Value]:
    """`apart` times `width` adjacent elements: a function that gives every `apart`-th of them, from number `tap` on.

    Only `taps` are asked for, and no other elements are read.
    """
    memory = ir.VectorType(MEMORY_TYPE[dtype], lanes.width * apart)
    chosen = _spread_mask(lanes, apart, taps, mask)
    if chosen is None:
        wide = lanes.builder.load(pointer, align=SIZE[memory.element], typ=memory)
    else:
        wide = _masked(lanes, "load", memory, [pointer, chosen, zero(memory)], memory, 0)

    def tapped(tap: int) -> ir.Value:
        every = constants(I32, range(tap, lanes.width * apart, apart))
        return from_memory(lanes, lanes.builder.shuffle_vector(wide, wide, every), dtype)

    return tapped


def store_apart(
    lanes: Lanes, values: Mapping[int, ir.Value], pointer: ir.Value, dtype: str, apart: int, mask: ir.Value | None = None
) -> None:
    """`values[tap]` to every `apart`-th element from number `tap` on; others are not written."""
    found = {tap: to_memory(lanes, lanes.splat(x), dtype) for tap, x in values.items()}
    element = next(iter(found.values())).type.element
    count = 1 << (apart - 1).bit_length()
    nothing = Literal(ir.VectorType(element, lanes.width), "poison")
    parts = [found.get(tap, nothing) for tap in range(count)]
    while len(parts) > 1:  # laid end to end
        both = constants(I32, range(2 * parts[0].type.count))
        parts = [lanes.builder.shuffle_vector(a, b, both) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    order = [(n % apart) * lanes.width + n // apart for n in range(lanes.width * apart)]
    wide = lanes.builder.shuffle_vector(parts[0], parts[0], constants(I32, order))
    chosen = _spread_mask(lanes, apart, found, mask)
    if chosen is None:
        lanes.builder.store(wide, pointer, align=SIZE[element])
    else:
        _masked(lanes, "store", ir.VoidType(), [wide, pointer, chosen], wide.type, 1)


def _spread_mask(lanes: Lanes, apart: int, taps: Collection[int], mask: ir.Value | None) -> ir.Value | None:
    """`mask` for lanes that lie `apart`, and `taps` of what lies between; None for all."""
    count = lanes.width * apart
    if mask is not None:
        mask = lanes.builder.shuffle_vector(mask, mask, constants(I32, [n // apart for n in range(count)]))
    if len(taps) == apart:
        return mask
    tapped = constants(I1, [n % apart in taps for n in range(count)])
    return tapped if mask is None else lanes.builder.and_(mask, tapped)


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
