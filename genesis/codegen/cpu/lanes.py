"""The vector operations that CPU kernels are emitted with: conversion, division that never traps, memory access."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.partial_stores import has_masked_stores, store_apart, store_first
from genesis.codegen.cpu.registers import (
    DOUBLE, FLOATING, I1, I32, I64, MEMORY_TYPE, POINTER, REGISTER_TYPE, SIZE, UNSIGNED, Value, constants, element_type,
    is_varying, with_shape, zero,
)
from genesis.codegen.cpu.vectors import FirstLanes, Vectors, joined


class Lanes(Vectors):
    """Emits vector code of `width` lanes at the position of `builder`.

    Example::

        b = Lanes(ir.IRBuilder(block), 16)
        x = b.load(b.element_pointer(source, index, "float32"), "float32")
        b.store(b.fma(x, x, 1.0), target, "float32")
    """

    # ---- dtypes ----
    def convert(self, x: ir.Value, from_dtype: str, to_dtype: str) -> ir.Value:
        """NumPy's `astype`.

        A float goes to an integer by truncation, NaN to 0, and saturates at 32 or 64 bits; narrower integers wrap from
        there. To bool is `!= 0`. To float16 and bfloat16 the register is rounded to their precision.
        """
        if from_dtype == to_dtype:
            return x
        target = with_shape(REGISTER_TYPE[to_dtype], x)
        if to_dtype == "bool":
            return self.compare("!=", x, 0, from_dtype)
        if from_dtype in FLOATING:
            if to_dtype in FLOATING:
                resized = self.builder.fpext if element_type(x) == REGISTER_TYPE["float32"] else self.builder.fptrunc
                return self.round_to(to_dtype, resized(x, target))
            wide = with_shape(I64 if SIZE[REGISTER_TYPE[to_dtype]] == 8 else I32, x)
            return self.builder.trunc(self._saturated(x, wide, is_signed=to_dtype not in ("uint32", "uint64")), target)
        if to_dtype in FLOATING:
            whole = self.builder.uitofp if from_dtype in UNSIGNED else self.builder.sitofp
            return self.round_to(to_dtype, whole(x, target))
        if REGISTER_TYPE[to_dtype].width < element_type(x).width:
            return self.builder.trunc(x, target)
        return (self.builder.zext if from_dtype in UNSIGNED else self.builder.sext)(x, target)

    def _saturated(self, x: ir.Value, target: ir.Type, is_signed: bool) -> ir.Value:
        """Floats truncated to integers of a type; NaN is 0."""
        # A plain conversion of NaN, or of a value out of range, gives poison. LLVM's `fptosi.sat` branches for each lane.
        dtype = "float64" if element_type(x) == DOUBLE else "float32"
        bits = (target.element if is_varying(x) else target).width - is_signed
        least, end = -(2.0**bits) if is_signed else 0.0, 2.0**bits
        # NaN is not above the least integer, and not below the end.
        bounded = self.select(self.compare(">", x, least, dtype), x, least)
        inside, above = self.compare("<", x, end, dtype), self.compare(">=", x, end, dtype)
        truncate = self.builder.fptosi if is_signed else self.builder.fptoui
        return self.select(above, (1 << bits) - 1, truncate(self.select(inside, bounded, 0.0), target))

    def round_to(self, dtype: str, x: ir.Value) -> ir.Value:
        """A float32 value rounded half to even to the precision of float16 or bfloat16; unchanged for another dtype."""
        if dtype == "float16":
            return self.builder.fpext(self._float16(x), x.type)
        if dtype == "bfloat16":
            return self.bitcast_to_float(self.shift_left(self._bfloat16_bits(x), 16))
        return x

    def _float16(self, x: ir.Value) -> ir.Value:
        """A float32 value as half, by the processor's instruction."""
        return self.builder.fptrunc(self._fenced(x), with_shape(MEMORY_TYPE["float16"], x))

    def _fenced(self, x: ir.Value) -> ir.Value:
        """A float32 value whose conversion from or to half LLVM joins with nothing.

        It would join an earlier truncation of float64, which is then a call of `__truncdfhf2`, which is not linked and aborts
        the process; and round halves one by one, each converted there and back.
        """
        return self.intrinsic("arithmetic.fence", x.type, [x], overloads=(x.type,))

    def _bfloat16_bits(self, x: ir.Value) -> ir.Value:
        """The upper 16 bits of a float32 rounded half to even, in the lower half of an i32; NaN stays a quiet NaN."""
        bits = self.bitcast_to_int(x)
        odd = self.logical_and(self.shift_right_logical(bits, 16), 1)
        rounded = self.add(self.add(bits, 0x7FFF), odd)
        return self.shift_right_logical(self.select(self.is_nan(x), self.logical_or(bits, 0x400000), rounded), 16)

    def from_memory(self, x: ir.Value, dtype: str) -> ir.Value:
        if dtype == "bool":
            return self.compare("!=", x, 0, "uint8")
        if dtype == "float16":
            return self._fenced(self.builder.fpext(x, with_shape(REGISTER_TYPE[dtype], x)))
        if dtype == "bfloat16":
            return self.bitcast_to_float(self.shift_left(self.builder.zext(x, with_shape(I32, x)), 16))
        return x

    def to_memory(self, x: ir.Value, dtype: str) -> ir.Value:
        memory = with_shape(MEMORY_TYPE[dtype], x)
        if dtype == "bool":
            return self.builder.zext(x, memory)
        if dtype == "float16":
            return self._float16(x)
        return self.builder.trunc(self._bfloat16_bits(x), memory) if dtype == "bfloat16" else x

    # ---- division ----
    def floor_divide(self, a: Value, b: Value, dtype: str) -> ir.Value:
        """Python's `//`. Of integers, which `check_divisor` keeps from 0, it wraps; of floats, as torch: x // 0 is x / 0."""
        a, b = self.matched(a, b)
        if dtype not in FLOATING:
            quotient, rest = self.divide_integers(a, b, dtype)
            if dtype not in UNSIGNED:
                quotient = self.select(self._opposed(rest, b, dtype), self.subtract(quotient, 1), quotient)
            return quotient
        rest = self.fmod(a, b)
        quotient = self.divide(self.subtract(a, rest), b)
        opposed = self._opposed(rest, b, dtype)
        quotient = self.select(opposed, self.subtract(quotient, 1.0), quotient)
        floored = self.floor(quotient)
        # (a - rest) / b is rounded, so it may be just below the exact integer.
        nearly_next = self.compare(">", self.subtract(quotient, floored), 0.5, dtype)
        floored = self.select(nearly_next, self.add(floored, 1.0), floored)
        ratio = self.divide(a, b)
        floored = self.select(self.compare("==", quotient, 0.0, dtype), self.copy_sign(0.0, ratio), floored)
        return self.select(self.compare("==", b, 0.0, dtype), ratio, floored)

    def remainder(self, a: Value, b: Value, dtype: str) -> ir.Value:
        """Python's `%`, with the divisor's sign. Of floats, as in torch, x % 0 is NaN; integers are never divided by 0."""
        a, b = self.matched(a, b)
        if dtype not in FLOATING:
            _, rest = self.divide_integers(a, b, dtype)
            if dtype not in UNSIGNED:
                rest = self.select(self._opposed(rest, b, dtype), self.add(rest, b), rest)
            return rest
        rest = self.fmod(a, b)
        return self.select(self._opposed(rest, b, dtype), self.add(rest, b), rest)

    def fmod(self, a: Value, b: Value) -> ir.Value:
        """C's fmod: exact, with the dividend's sign; NaN for x % 0 and inf % y."""
        # In double, a quotient below 2^52 truncates to the true integer or the one above it, so one fused step leaves the
        # remainder or the remainder less b. Wider gaps go to the C library, lane by lane.
        a, b = self.matched(a, b)
        dtype = "float64" if element_type(a) == DOUBLE else "float32"
        wide_a, wide_b = (self.convert(self.absolute(x), dtype, "float64") for x in (a, b))
        quotient = self.truncate(self.divide(wide_a, wide_b))
        rest = self.fma(self.negate(quotient), wide_b, wide_a)
        rest = self.select(self.compare("<", rest, 0.0, "float64"), self.add(rest, wide_b), rest)
        itself_or_nan = self.fma(wide_a, 0.0, wide_a)
        rest = self.select(self.compare("==", wide_b, float("inf"), "float64"), itself_or_nan, rest)
        library = self.declared("fmod", DOUBLE, [DOUBLE, DOUBLE])
        hard = self.compare(">=", quotient, 2.0**52, "float64")
        rest = self.patched(rest, hard, lambda: self.per_lane(library, wide_a, wide_b))
        return self.copy_sign(self.convert(rest, "float64", dtype), a)

    def integer_fmod(self, a: Value, b: Value, dtype: str) -> ir.Value:
        """C's `%`, with the dividend's sign."""
        a, b = self.matched(a, b)
        return self.divide_integers(a, b, dtype)[1]

    def _opposed(self, rest: ir.Value, divisor: ir.Value, dtype: str) -> ir.Value:
        """The mask of lanes whose nonzero remainder has the opposite sign of the divisor."""
        unequal = self.logical_xor(self.compare("<", rest, 0, dtype), self.compare("<", divisor, 0, dtype))
        return self.logical_and(unequal, self.compare("!=", rest, 0, dtype))

    def divide_integers(self, a: ir.Value, b: ir.Value, dtype: str) -> tuple[ir.Value, ir.Value]:
        """The truncated quotient and its remainder."""
        # x86 traps on division by 0, which masked lanes may hold, and of the least integer by -1: such divisors are replaced.
        if dtype in UNSIGNED:
            quotient = self.builder.udiv(a, self.select(self.compare("==", b, 0, dtype), 1, b))
        else:
            minus_one = self.compare("==", b, -1, dtype)
            trapping = self.logical_or(minus_one, self.compare("==", b, 0, dtype))
            quotient = self.builder.sdiv(a, self.select(trapping, 1, b))
            quotient = self.select(minus_one, self.negate(a), quotient)
        return quotient, self.subtract(a, self.multiply(quotient, b))

    # ---- memory ----
    # Invariant: no masked lane touches memory, as a row's last vector may reach into an unmapped page. Alignment is that of one
    # element, as views begin anywhere.

    def element_pointer(self, base: ir.Value, index: Value, dtype: str) -> ir.Value:
        """The address of element `index` of an array of `dtype`; a varying index gives a pointer for each lane."""
        index = index if isinstance(index, ir.Value) else ir.Constant(I64, index)
        base = self.builder.bitcast(base, POINTER)
        base = self.splat(base) if is_varying(index) else base
        return self.builder.gep(base, [index], inbounds=True, source_etype=MEMORY_TYPE[dtype])

    def prefetch(self, pointer: ir.Value, *, to_write: bool = False, level: int = 3) -> None:
        """Prefetch a line of memory into the caches from `level` on, 3 for the first; any address is allowed."""
        self.intrinsic("prefetch", ir.VOID, [pointer, I32(int(to_write)), I32(level), I32(1)], overloads=(POINTER,))

    def load(self, pointer: ir.Value, dtype: str, mask: ir.Value | None = None) -> ir.Value:
        """Load `width` adjacent elements; masked lanes are not read and are 0."""
        memory = ir.VectorType(MEMORY_TYPE[dtype], self.width)
        if mask is None:
            return self.from_memory(self.builder.load(pointer, align=SIZE[memory.element], typ=memory), dtype)
        return self.from_memory(self._masked("load", memory, [pointer, mask, zero(memory)], memory, 0), dtype)

    def load_reversed(self, pointer: ir.Value, dtype: str, mask: ir.Value | None = None) -> ir.Value:
        """Load `width` adjacent elements in reverse, the one at `pointer` first; masked lanes as in `load`."""
        first = self.element_pointer(pointer, 1 - self.width, dtype)
        return self._backwards(self.load(first, dtype, None if mask is None else self._backwards(mask)))

    def _backwards(self, x: ir.Value) -> ir.Value:
        return self.builder.shuffle_vector(x, x, constants(I32, range(self.width)[::-1]))

    def load_uniform(self, pointer: ir.Value, dtype: str) -> ir.Value:
        memory = MEMORY_TYPE[dtype]
        return self.from_memory(self.builder.load(pointer, align=SIZE[memory], typ=memory), dtype)

    def gather(self, base: ir.Value, element_offsets: ir.Value, dtype: str, mask: ir.Value | None = None) -> ir.Value:
        """Load `base[element_offsets]`; masked lanes are not read and are 0. The first lane is never masked."""
        # One by one: gather instructions are no faster, and far slower with microcode against data leaks. Cascade Lake, 16
        # floats from the first-level cache by 64-bit offsets: 13 ns, by a gather 22.
        b, offsets, memory = self.builder, self.splat(element_offsets), MEMORY_TYPE[dtype]
        if mask is not None:
            offsets = self.select(mask, offsets, self.extract(offsets, 0))
        gathered: ir.Value = ir.Constant(ir.VectorType(memory, self.width), "poison")
        for lane in range(self.width):
            element = self.element_pointer(base, self.extract(offsets, lane), dtype)
            gathered = b.insert_element(gathered, b.load(element, align=SIZE[memory], typ=memory), I32(lane))
        if mask is not None:
            gathered = b.select(mask, gathered, zero(gathered.type))
        return self.from_memory(gathered, dtype)

    def store(
        self, x: ir.Value, pointer: ir.Value, dtype: str, mask: ir.Value | None = None, *, past_caches: bool = False
    ) -> None:
        """Store adjacent elements; masked lanes are not written. `past_caches` requires `pointer` aligned to 64 bytes."""
        x = self.to_memory(self.splat(x), dtype)
        if past_caches:
            self._store_past_caches(x, pointer)
        elif mask is None:
            self.builder.store(x, pointer, align=SIZE[x.type.element])
        else:
            self._store_masked(x, pointer, mask)

    def _store_masked(self, x: ir.Value, pointer: ir.Value, mask: ir.Value) -> None:
        if isinstance(mask, FirstLanes) and not has_masked_stores():
            store_first(self.builder, x, pointer, mask.count)
        else:
            self._masked("store", ir.VOID, [x, pointer, mask], x.type, 1)

    def _store_past_caches(self, x: ir.Value, pointer: ir.Value) -> None:
        self.builder.store(x, pointer, align=64, past_caches=True)

    def store_uniform(self, x: ir.Value, pointer: ir.Value, dtype: str) -> None:
        x = self.to_memory(x, dtype)
        self.builder.store(x, pointer, align=SIZE[x.type])

    def scatter_store(
        self, x: ir.Value, base: ir.Value, element_offsets: ir.Value, dtype: str, mask: ir.Value | None = None
    ) -> None:
        """Store to `base[element_offsets]`; of equal offsets the last lane wins. Masked lanes are not written."""
        x = self.to_memory(self.splat(x), dtype)
        pointers = self.element_pointer(base, self.splat(element_offsets), dtype)
        self._masked("scatter", ir.VOID, [x, pointers, self._every_lane(mask)], x.type, 1)

    def wide_load(
        self, pointer: ir.Value, dtype: str, stride: int, offsets: Collection[int], mask: ir.Value | None = None
    ) -> ir.Value:
        """Load `stride` times `width` adjacent elements, from which `strided` takes each lane's; only elements at `offsets`
        within each lane's group are read.
        """
        memory = ir.VectorType(MEMORY_TYPE[dtype], self.width * stride)
        chosen = self._spread_mask(stride, offsets, mask)
        if chosen is None:
            return self.builder.load(pointer, align=SIZE[memory.element], typ=memory)
        return self._masked("load", memory, [pointer, chosen, zero(memory)], memory, 0)

    def strided(self, wide: ir.Value, dtype: str, stride: int, offset: int) -> ir.Value:
        """Every `stride`-th element of a wide load, beginning with number `offset`."""
        every = constants(I32, range(offset, self.width * stride, stride))
        return self.from_memory(self.builder.shuffle_vector(wide, wide, every), dtype)

    def wide_store(
        self, values: Mapping[int, ir.Value], pointer: ir.Value, dtype: str, stride: int, mask: ir.Value | None = None,
        *, past_caches: bool = False,
    ) -> None:
        """Store `values[offset]` to every `stride`-th element, beginning with number `offset`; others are not written.

        `past_caches` requires all offsets, and `pointer` aligned to 64 bytes.
        """
        found = {offset: self.to_memory(self.splat(x), dtype) for offset, x in values.items()}
        if len(found) < stride and not has_masked_stores():
            store_apart(self.builder, found, pointer, stride, mask)
            return
        element = next(iter(found.values())).type.element
        count = 1 << (stride - 1).bit_length()
        nothing = ir.Constant(ir.VectorType(element, self.width), "poison")
        parts = [found.get(offset, nothing) for offset in range(count)]
        order = [(n % stride) * self.width + n // stride for n in range(self.width * stride)]
        whole = joined(self.builder, parts)
        wide = self.builder.shuffle_vector(whole, whole, constants(I32, order))
        chosen = self._spread_mask(stride, found, mask)
        if past_caches:
            self._store_past_caches(wide, pointer)
        elif chosen is None:
            self.builder.store(wide, pointer, align=SIZE[element])
        else:
            self._store_masked(wide, pointer, chosen)

    def _spread_mask(self, stride: int, offsets: Collection[int], mask: ir.Value | None) -> ir.Value | None:
        """`mask` widened to the elements at `offsets` of each lane; None if all are included."""
        count = self.width * stride
        wide = mask
        if mask is not None:
            wide = self.builder.shuffle_vector(mask, mask, constants(I32, [n // stride for n in range(count)]))
        if len(offsets) == stride:
            first = mask.count if isinstance(mask, FirstLanes) else None
            return wide if wide is None or first is None else FirstLanes(wide, self.multiply(first, stride))
        chosen = constants(I1, [n % stride in offsets for n in range(count)])
        return chosen if wide is None else wide & chosen

    def _every_lane(self, mask: ir.Value | None) -> ir.Value:
        return self.splat(ir.Constant(I1, 1)) if mask is None else mask

    def _masked(self, name: str, result: ir.Type, arguments: list[ir.Value], memory: ir.VectorType, pointer: int) -> ir.Value:
        """A masked memory intrinsic; its alignment is an attribute of the pointer argument (numbered `pointer`)."""
        overloads, aligned = (memory, arguments[pointer].type), (pointer, SIZE[memory.element])
        return self.intrinsic("masked." + name, result, arguments, overloads=overloads, aligned=aligned)
