"""Conversion between dtypes, and between a value in a register and its form in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir

from genesis.codegen.cpu.registers import (
    FLOAT,
    FLOATING,
    HALF,
    I8,
    I16,
    I32,
    I64,
    REGISTER_TYPE,
    SIZE,
    UNSIGNED,
    element_type,
    is_varying,
    with_shape,
)

if TYPE_CHECKING:
    from genesis.codegen.cpu.lanes import Lanes

__all__ = ["convert", "from_memory", "round_to", "to_memory"]


def convert(lanes: Lanes, x: ir.Value, from_dtype: str, to_dtype: str) -> ir.Value:
    """NumPy's `astype`.

    A float goes to an integer by truncation, NaN to 0, and saturates at 32 or 64 bits; narrower integers wrap from
    there. To bool is `!= 0`. To float16 and bfloat16 the register is rounded to their precision.
    """
    if from_dtype == to_dtype:
        return x
    target = with_shape(REGISTER_TYPE[to_dtype], x)
    if to_dtype == "bool":
        return lanes.compare("!=", x, 0, from_dtype)
    if from_dtype in FLOATING:
        if to_dtype in FLOATING:
            return round_to(lanes, to_dtype, _resize_float(lanes, x, target))
        wide = with_shape(I64 if SIZE[REGISTER_TYPE[to_dtype]] == 8 else I32, x)
        name = "fptoui.sat" if to_dtype in ("uint32", "uint64") else "fptosi.sat"
        whole = lanes.intrinsic(name, wide, [x], overloads=(wide, x.type))
        return whole if wide == target else lanes.builder.trunc(whole, target)
    if to_dtype in FLOATING:
        whole = lanes.builder.uitofp if from_dtype in UNSIGNED else lanes.builder.sitofp
        return round_to(lanes, to_dtype, whole(x, target))
    if target.element.width < element_type(x).width if is_varying(x) else target.width < x.type.width:
        return lanes.builder.trunc(x, target)
    return (lanes.builder.zext if from_dtype in UNSIGNED else lanes.builder.sext)(x, target)


def _resize_float(lanes: Lanes, x: ir.Value, target: ir.Type) -> ir.Value:
    if x.type == target:
        return x
    return (lanes.builder.fpext if element_type(x) == FLOAT else lanes.builder.fptrunc)(x, target)


def round_to(lanes: Lanes, dtype: str, x: ir.Value) -> ir.Value:
    """A float32 value rounded half to even to the precision of float16 or bfloat16; for another dtype, as it is."""
    if dtype == "float16":
        return lanes.builder.fpext(lanes.builder.fptrunc(x, with_shape(HALF, x)), x.type)
    if dtype == "bfloat16":
        return lanes.bitcast_to_float(lanes.shift_left(_bfloat16_bits(lanes, x), 16))
    return x


def _bfloat16_bits(lanes: Lanes, x: ir.Value) -> ir.Value:
    """The upper 16 bits of a float32 rounded half to even, in the lower half of an i32; NaN stays a quiet NaN."""
    bits = lanes.bitcast_to_int(x)
    odd = lanes.logical_and(lanes.shift_right_logical(bits, 16), 1)
    rounded = lanes.add(lanes.add(bits, 0x7FFF), odd)
    return lanes.shift_right_logical(lanes.select(lanes.is_nan(x), lanes.logical_or(bits, 0x400000), rounded), 16)


def from_memory(lanes: Lanes, x: ir.Value, dtype: str) -> ir.Value:
    """A loaded value in its register type."""
    if dtype == "bool":
        return lanes.compare("!=", x, 0, "uint8")
    if dtype == "float16":
        return lanes.builder.fpext(x, with_shape(FLOAT, x))
    if dtype == "bfloat16":
        return lanes.bitcast_to_float(lanes.shift_left(lanes.builder.zext(x, with_shape(I32, x)), 16))
    return x


def to_memory(lanes: Lanes, x: ir.Value, dtype: str) -> ir.Value:
    """A register value in the type it is stored in."""
    if dtype == "bool":
        return lanes.builder.zext(x, with_shape(I8, x))
    if dtype == "float16":
        return lanes.builder.fptrunc(x, with_shape(HALF, x))
    if dtype == "bfloat16":
        return lanes.builder.trunc(_bfloat16_bits(lanes, x), with_shape(I16, x))
    return x
