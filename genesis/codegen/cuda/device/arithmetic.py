"""Arithmetic that takes more than an expression: of floats, of integers (none traps), and conversions as NumPy's `astype`."""

from __future__ import annotations

from genesis.codegen.cuda.toolchain import DTYPES, device_function, libdevice, math


@device_function
def maximum(x: float, y: float) -> float:
    """NaN if either is."""
    return x if x > y or x != x else y


@device_function
def minimum(x: float, y: float) -> float:
    """NaN if either is."""
    return x if x < y or x != x else y


@device_function
def floor_divide(x: float, y: float) -> float:
    """Python's `//`, as torch: x // 0 is x / 0."""
    if y == 0:
        return x / y
    rest = math.fmod(x, y)
    quotient = (x - rest) / y
    if rest != 0 and (rest < 0) != (y < 0):
        quotient = quotient - 1
    if quotient == 0:
        return math.copysign(quotient, x / y)
    floored = math.floor(quotient)
    return floored + 1 if quotient - floored > 0.5 else floored


@device_function
def remainder(x: float, y: float) -> float:
    """Python's `%`, with the divisor's sign; NaN for x % 0."""
    rest = math.fmod(x, y)
    return rest + y if rest != 0 and (rest < 0) != (y < 0) else rest


@device_function
def integer_floor_divide(x: int, y: int) -> int:
    """Python's `//`, which wraps; `checked_divisor` keeps y from 0."""
    return -x if y == -1 else x // y


@device_function
def integer_remainder(x: int, y: int) -> int:
    """Python's `%`, with the divisor's sign."""
    return x - x if y == -1 else x % y


@device_function
def integer_fmod(x: int, y: int) -> int:
    """C's `%`, with the dividend's sign."""
    rest = integer_remainder(x, y)
    return rest - y if rest != 0 and (x < 0) != (y < 0) else rest


@device_function
def integer_power(x: int, y: int) -> int:
    """By squaring, wrapping around; a negative exponent gives 0 but for bases 1 and -1."""
    if y < 0:
        if x == -1:
            return x if y & 1 else -x
        return x if x == 1 else x - x
    result = x - x + 1
    while y > 0:
        if y & 1:
            result = result * x
        x = x * x
        y = y >> 1
    return result


@device_function
def greatest_common_divisor(x: int, y: int) -> int:
    """By Euclid's algorithm."""
    while y != 0:
        x, y = y, integer_fmod(x, y)
    return abs(x)


@device_function
def shifted_left(x: int, count: int, bits: int) -> int:
    """0 for a count that is negative or no less than the width."""
    return x << count if 0 <= count < bits else x - x


@device_function
def shifted_right(x: int, count: int, bits: int) -> int:
    """The sign throughout, for a count that is negative or no less than the width."""
    return x >> count if 0 <= count < bits else x >> (bits - 1)


float32, int32, int64, uint16, uint32 = (DTYPES[name] for name in ("float32", "int32", "int64", "uint16", "uint32"))


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


@device_function
def _float16_bits(x: float) -> int:
    """A float32 as half, rounded half to even."""
    bits = uint32(libdevice.float_as_int(x))
    magnitude, sign = bits & 0x7FFFFFFF, (bits >> 16) & 0x8000
    if magnitude > 0x7F800000:
        return uint32(sign | 0x7E00)
    if magnitude >= 0x477FF000:  # 65520, which rounds to infinity
        return uint32(sign | 0x7C00)
    if magnitude < 0x38800000:  # below 2^-14: 0.5 has the last bit that such numbers have
        raised = float32(libdevice.int_as_float(int32(magnitude)) + float32(0.5))
        return uint32(sign | (libdevice.float_as_int(raised) - 0x3F000000))
    return uint32(sign | ((magnitude - 0x38000000 + 0xFFF + ((magnitude >> 13) & 1)) >> 13))


@device_function
def _float32_of_float16(bits: int) -> float:
    """The float32 that the half of these bits is."""
    magnitude = int32((bits & 0x7FFF) << 13)
    if bits & 0x7C00 == 0x7C00:
        x = float32(libdevice.int_as_float(int32(magnitude | 0x7F800000)))
    else:
        x = float32(libdevice.int_as_float(magnitude) * float32(2.0**112))
    return -x if bits & 0x8000 else x


@device_function
def complex32_bits(z: complex) -> int:
    """Both parts as halves, the real one in the lower bits."""
    return uint32(_float16_bits(z.real) | (_float16_bits(z.imag) << 16))


@device_function
def complex64_of_bits(bits: int) -> complex:
    """The complex64 whose parts are the halves in `bits`."""
    return complex(_float32_of_float16(bits & 0xFFFF), _float32_of_float16(bits >> 16))
