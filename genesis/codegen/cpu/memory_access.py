"""Access to memory: adjacent elements or scattered ones, all lanes or those of a mask.

Pointers are opaque and move by `getelementptr inbounds` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from llvmlite import ir

from genesis.codegen.cpu.conversion import Conversion
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

__all__ = ["MemoryAccess"]


class MemoryAccess(Conversion):
    """Loads and stores."""

    def element_pointer(self, base: ir.Value, index: Value, dtype: str) -> ir.Value:
        """The address of element `index` of an array of `dtype`; a varying index gives a pointer for each lane."""
        index = index if isinstance(index, ir.Value) else ir.Constant(I64, index)
        base = self.builder.bitcast(base, POINTER)
        base = self.splat(base) if is_varying(index) else base
        return self.builder.gep(base, [index], inbounds=True, source_etype=MEMORY_TYPE[dtype])

    def load(self, pointer: ir.Value, dtype: str, mask: ir.Value | None = None) -> ir.Value:
        """`width` adjacent elements; lanes outside `mask` are not read and hold 0."""
        memory = ir.VectorType(MEMORY_TYPE[dtype], self.width)
        if mask is None:
            return self.from_memory(self.builder.load(pointer, align=SIZE[memory.element], typ=memory), dtype)
        return self.from_memory(self._masked("load", memory, [pointer, mask, zero(memory)], memory, 0), dtype)

    def load_uniform(self, pointer: ir.Value, dtype: str) -> ir.Value:
        """One element."""
        memory = MEMORY_TYPE[dtype]
        return self.from_memory(self.builder.load(pointer, align=SIZE[memory], typ=memory), dtype)

    def gather(self, base: ir.Value, element_offsets: ir.Value, dtype: str, mask: ir.Value | None = None) -> ir.Value:
        """The elements `base[element_offsets]`; lanes outside `mask` are not read and hold 0."""
        memory = ir.VectorType(MEMORY_TYPE[dtype], self.width)
        pointers = self.element_pointer(base, self.splat(element_offsets), dtype)
        gathered = self._masked("gather", memory, [pointers, self._whole(mask), zero(memory)], memory, 0)
        return self.from_memory(gathered, dtype)

    def store(
        self, x: ir.Value, pointer: ir.Value, dtype: str, mask: ir.Value | None = None, *, past_caches: bool = False
    ) -> None:
        """Store adjacent elements; lanes outside `mask` are not written. `past_caches` wants `pointer` aligned to 64."""
        x = self.to_memory(self.splat(x), dtype)
        if past_caches:
            written = self.builder.store(x, pointer, align=64)
            written.set_metadata("nontemporal", self.builder.module.add_metadata([ir.Constant(I32, 1)]))
        elif mask is None:
            self.builder.store(x, pointer, align=SIZE[x.type.element])
        else:
            self._masked("store", ir.VoidType(), [x, pointer, mask], x.type, 1)

    def store_uniform(self, x: ir.Value, pointer: ir.Value, dtype: str) -> None:
        """One element."""
        x = self.to_memory(x, dtype)
        self.builder.store(x, pointer, align=SIZE[x.type])

    def scatter_store(
        self, x: ir.Value, base: ir.Value, element_offsets: ir.Value, dtype: str, mask: ir.Value | None = None
    ) -> None:
        """To `base[element_offsets]`, in lane order where offsets meet; lanes outside `mask` are not written."""
        x = self.to_memory(self.splat(x), dtype)
        pointers = self.element_pointer(base, self.splat(element_offsets), dtype)
        self._masked("scatter", ir.VoidType(), [x, pointers, self._whole(mask)], x.type, 1)

    def wide_load(
        self, pointer: ir.Value, dtype: str, apart: int, taps: Collection[int], mask: ir.Value | None = None
    ) -> Callable[[int], ir.Value]:
        """`apart` times `width` adjacent elements: a function that gives every `apart`-th of them, from number `tap` on.

        Only `taps` are asked for, and no other elements are read.
        """
        memory = ir.VectorType(MEMORY_TYPE[dtype], self.width * apart)
        chosen = self._spread_mask(apart, taps, mask)
        if chosen is None:
            wide = self.builder.load(pointer, align=SIZE[memory.element], typ=memory)
        else:
            wide = self._masked("load", memory, [pointer, chosen, zero(memory)], memory, 0)

        def tapped(tap: int) -> ir.Value:
            every = constants(I32, range(tap, self.width * apart, apart))
            return self.from_memory(self.builder.shuffle_vector(wide, wide, every), dtype)

        return tapped

    def store_apart(
        self, values: Mapping[int, ir.Value], pointer: ir.Value, dtype: str, apart: int, mask: ir.Value | None = None
    ) -> None:
        """`values[tap]` to every `apart`-th element from number `tap` on; others are not written."""
        found = {tap: self.to_memory(self.splat(x), dtype) for tap, x in values.items()}
        element = next(iter(found.values())).type.element
        count = 1 << (apart - 1).bit_length()
        nothing = Literal(ir.VectorType(element, self.width), "poison")
        parts = [found.get(tap, nothing) for tap in range(count)]
        while len(parts) > 1:  # laid end to end
            both = constants(I32, range(2 * parts[0].type.count))
            parts = [self.builder.shuffle_vector(a, b, both) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        order = [(n % apart) * self.width + n // apart for n in range(self.width * apart)]
        wide = self.builder.shuffle_vector(parts[0], parts[0], constants(I32, order))
        chosen = self._spread_mask(apart, found, mask)
        if chosen is None:
            self.builder.store(wide, pointer, align=SIZE[element])
        else:
            self._masked("store", ir.VoidType(), [wide, pointer, chosen], wide.type, 1)

    def _spread_mask(self, apart: int, taps: Collection[int], mask: ir.Value | None) -> ir.Value | None:
        """`mask` for lanes that lie `apart`, and `taps` of what lies between; None for all."""
        count = self.width * apart
        if mask is not None:
            mask = self.builder.shuffle_vector(mask, mask, constants(I32, [n // apart for n in range(count)]))
        if len(taps) == apart:
            return mask
        tapped = constants(I1, [n % apart in taps for n in range(count)])
        return tapped if mask is None else self.builder.and_(mask, tapped)

    def _whole(self, mask: ir.Value | None) -> ir.Value:
        return self.splat(ir.Constant(I1, 1)) if mask is None else mask

    def _masked(
        self, name: str, result: ir.Type, arguments: list[ir.Value], memory: ir.VectorType, pointer: int
    ) -> ir.Value:
        """A masked memory intrinsic; its alignment is an attribute of the pointer argument (numbered `pointer`)."""
        call = self.intrinsic("masked." + name, result, arguments, overloads=(memory, arguments[pointer].type))
        attributes = ir.values.ArgumentAttributes()
        attributes.align = SIZE[memory.element]
        call.arg_attributes[pointer] = attributes
        return call
