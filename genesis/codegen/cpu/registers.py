"""Registers: the LLVM type of each dtype in a register and in memory, and constants of these types.

A value is *uniform* (a scalar `T`) or *varying* (`<width x T>`, one element per lane). A dtype is a string. `bool` is i1 in
a register and i8 in memory; `float16` and `bfloat16` live in memory only. A complex number is two registers, its parts, and
no operation of `Lanes` but those on memory knows it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

from genesis.codegen.cpu import ir

Value: TypeAlias = "ir.Value | int | float"

POINTER = ir.POINTER
I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
HALF, FLOAT, DOUBLE = ir.HALF, ir.FLOAT, ir.DOUBLE

REGISTER_TYPE: dict[str, ir.Type] = {
    "float64": DOUBLE, "float32": FLOAT, "float16": FLOAT, "bfloat16": FLOAT, "bool": I1,
    "int8": I8, "int16": I16, "int32": I32, "int64": I64, "uint8": I8, "uint16": I16, "uint32": I32, "uint64": I64,
    **dict.fromkeys(  # only moved
        ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), I8),
}  # fmt: skip
MEMORY_TYPE: dict[str, ir.Type] = REGISTER_TYPE | {"float16": HALF, "bfloat16": I16, "bool": I8}
PART = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}  # the dtype of a complex number's parts
for _complex, _part in PART.items():
    MEMORY_TYPE[_complex] = ir.ArrayType(MEMORY_TYPE[_part], 2)
FLOATING = frozenset({"float64", "float32", "float16", "bfloat16"})
UNSIGNED = frozenset({"bool", "uint8", "uint16", "uint32", "uint64"})

SIZE = {HALF: 2, FLOAT: 4, DOUBLE: 8, I1: 1, I8: 1, I16: 2, I32: 4, I64: 8, POINTER: 8}
_SHORT_NAME = {HALF: "f16", FLOAT: "f32", DOUBLE: "f64", POINTER: "p0"}


def is_varying(value: ir.Value) -> bool:
    """Whether `value` has one element per lane."""
    return isinstance(value.type, ir.VectorType)


def element_type(value: ir.Value) -> ir.Type:
    """The scalar type of a uniform or varying value."""
    return value.type.element if is_varying(value) else value.type


def is_floating(value: ir.Value) -> bool:
    return element_type(value) in (HALF, FLOAT, DOUBLE)


def mangled(type_: ir.Type) -> str:
    """LLVM's spelling of a type in the name of an overloaded intrinsic."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{mangled(type_.element)}"
    return _SHORT_NAME.get(type_) or str(type_)  # integers of any width print as `iN`


def with_shape(type_: ir.Type, like: ir.Value) -> ir.Type:
    """`type_` for every lane if `like` is varying, else `type_` itself."""
    return ir.VectorType(type_, like.type.count) if is_varying(like) else type_


def scalar_constant(type_: ir.Type, value: int | float | bool) -> ir.Constant:
    """A constant; an integer is wrapped to its width."""
    if type_ in (FLOAT, DOUBLE):
        return ir.Constant(type_, value)
    if type_ == I1:
        return ir.Constant(I1, bool(value))
    half_range = 1 << (type_.width - 1)
    return ir.Constant(type_, (int(value) + half_range) % (2 * half_range) - half_range)


def zero(type_: ir.Type) -> ir.Constant:
    return ir.Constant(type_, "zeroinitializer")


def constants(type_: ir.Type, values: Sequence[int]) -> ir.Constant:
    """A vector of integers, one to a lane."""
    return _constants(type_.width, tuple(values))


@functools.lru_cache(maxsize=256)  # kernels use the same few over and over
def _constants(bits: int, values: tuple[int, ...]) -> ir.Constant:
    return ir.Constant(ir.VectorType(ir.IntType(bits), len(values)), values)
