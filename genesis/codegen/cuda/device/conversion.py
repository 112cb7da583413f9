"""Conversions: floats to integers as NumPy's `astype` where that is defined, and bfloat16, which is storage alone."""

from __future__ import annotations

from genesis.codegen.cuda.toolchain import DTYPES, device_function, libdevice

__all__ = ["bfloat16_bits", "float32_of_bfloat16", "int32_of", "int64_of"]

int32, int64, uint16, uint32 = (DTYPES[name] for name in ("int32", "int64", "uint16", "uint32"))


@device_function
def int32_of(x: float) -> int:
    """A float truncated; NaN gives 0, and values beyond the range saturate."""
    if x != x:
        return int32(0)
    if x >= 2147483647.0:
        return int32(2147483647)
    return int32(-2147483648) if x <= -2147483648.0 else int32(x)


@device_function
def int64_of(x: float) -> int:
    """A float truncated; NaN gives 0, and values beyond the range saturate."""
    if x != x:
        return int64(0)
    if x >= 9223372036854775807.0:
        return int64(9223372036854775807)
    return int64(-9223372036854775807 - 1) if x <= -9223372036854775808.0 else int64(x)


@device_function
def bfloat16_bits(x: float) -> int:
    """The upper half of a float32, rounded half to even; NaN stays a quiet NaN."""
    bits = uint32(libdevice.float_as_int(x))
    if x != x:
        return uint16((bits | 0x400000) >> 16)
    return uint16((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)


@device_function
def float32_of_bfloat16(bits: int) -> float:
    """The float32 whose upper half is `bits`."""
    return libdevice.int_as_float(int32(int32(bits) << 16))
