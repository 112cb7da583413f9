"""Conversion between dtypes, and between a value in a register and its form in memory."""

from __future__ import annotations

from llvmlite import ir

from genesis.codegen.cpu.registers import (
    FLOATING, I32, I64, MEMORY_TYPE, REGISTER_TYPE, SIZE, UNSIGNED, element_type, with_shape,
)
from genesis.codegen.cpu.vectors import Vectors

__all__ = ["Conversion"]


class Conversion(Vectors):
    """Conversion of register values."""

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
                return self.round_to(to_dtype, x if x.type == target else resized(x, target))
            # Saturating: a plain conversion of NaN, or of a value out of range, gives poison.
            wide = with_shape(I64 if SIZE[REGISTER_TYPE[to_dtype]] == 8 else I32, x)
            name = "fptoui.sat" if to_dtype in ("uint32", "uint64") else "fptosi.sat"
            whole = self.intrinsic(name, wide, [x], overloads=(wide, x.type))
            return whole if wide == target else self.builder.trunc(whole, target)
        if to_dtype in FLOATING:
            whole = self.builder.uitofp if from_dtype in UNSIGNED else self.builder.sitofp
            return self.round_to(to_dtype, whole(x, target))
        if REGISTER_TYPE[to_dtype].width < element_type(x).width:
            return self.builder.trunc(x, target)
        return (self.builder.zext if from_dtype in UNSIGNED else self.builder.sext)(x, target)

    def round_to(self, dtype: str, x: ir.Value) -> ir.Value:
        """A float32 value rounded half to even to the precision of float16 or bfloat16; for another dtype, as it is."""
        if dtype == "float16":
            return self.builder.fpext(self._float16(x), x.type)
        if dtype == "bfloat16":
            return self.bitcast_to_float(self.shift_left(self._bfloat16_bits(x), 16))
        return x

    def _float16(self, x: ir.Value) -> ir.Value:
        """A float32 value as half, by a processor's instruction.

        Without the fence LLVM joins this with an earlier truncation of float64: that is a call of `__truncdfhf2`, which is not
        linked, and aborts the process.
        """
        fenced = self.intrinsic("arithmetic.fence", x.type, [x], overloads=(x.type,))
        return self.builder.fptrunc(fenced, with_shape(MEMORY_TYPE["float16"], x))

    def _bfloat16_bits(self, x: ir.Value) -> ir.Value:
        """The upper 16 bits of a float32 rounded half to even, in the lower half of an i32; NaN stays a quiet NaN."""
        bits = self.bitcast_to_int(x)
        odd = self.logical_and(self.shift_right_logical(bits, 16), 1)
        rounded = self.add(self.add(bits, 0x7FFF), odd)
        return self.shift_right_logical(self.select(self.is_nan(x), self.logical_or(bits, 0x400000), rounded), 16)

    def from_memory(self, x: ir.Value, dtype: str) -> ir.Value:
        """A loaded value in its register type."""
        if dtype == "bool":
            return self.compare("!=", x, 0, "uint8")
        if dtype == "float16":
            return self.builder.fpext(x, with_shape(REGISTER_TYPE[dtype], x))
        if dtype == "bfloat16":
            return self.bitcast_to_float(self.shift_left(self.builder.zext(x, with_shape(I32, x)), 16))
        return x

    def to_memory(self, x: ir.Value, dtype: str) -> ir.Value:
        """A register value in the type it is stored in."""
        memory = with_shape(MEMORY_TYPE[dtype], x)
        if dtype == "bool":
            return self.builder.zext(x, memory)
        if dtype == "float16":
            return self._float16(x)
        return self.builder.trunc(self._bfloat16_bits(x), memory) if dtype == "bfloat16" else x
