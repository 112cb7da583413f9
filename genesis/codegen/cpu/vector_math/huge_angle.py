"""The reduction of huge angles: a scalar function of plain integer arithmetic, called lane by lane on the rare path."""

from __future__ import annotations

from llvmlite import ir

from genesis.codegen.cpu.lanes import DOUBLE, I1, I64, Lanes
from genesis.codegen.cpu.vector_math.double_word import DoubleWord, constant
from genesis.codegen.cpu.vector_math.number import Number, where

HALF_PI = (1.5707963267948966, 6.123233995736766e-17)

FRACTION_BITS = 1216
# floor(2^1216 / (2 pi)).
INVERSE_TURN = int(
    "28BE60DB9391054A7F09D5F47D4D377036D8A5664F10E4107F9458EAF7AEF1586DC91B8E909374B801924BBA82746487"
    "3F877AC72C4A69CFBA208D7D4BAED1213A671C09AD17DF904E64758E60D4CE7D272117E2EF7E4A0EC7FE25FFF7816603"
    "FBCBC462D6829B47DB4D9FB3C9F2C26DD3D18FD9A797FA8B5D49EEB1FAF97C5ECF41CE7DE294A4BA9AFED7EC47E35742"
    "1580CC11BF1EDAEA",
    16,
)
PART_DTYPE = {"high": "float64", "low": "float64", "quadrant": "int64"}


def reduced_huge(x: Number, part: str) -> Number:
    """One part of x = quadrant pi/2 + (high + low), |high| <= pi/4, for |x| >= 2^10; high is NaN unless x is finite."""
    dtype = PART_DTYPE[part]
    return x.like(x.lanes.per_lane(scalar_function(x.lanes.builder.module, part), x.value), dtype)


def scalar_function(module: ir.Module, part: str) -> ir.Function:
    """`part` as a function of one double, written into the module at its first use."""
    name = f"genesis.huge_angle.{part}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(I64 if part == "quadrant" else DOUBLE, [DOUBLE]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    build = ir.IRBuilder(function.append_basic_block())
    build.ret(emit_part(build, function.args[0], part))
    return function


def emit_part(build: ir.IRBuilder, x: ir.Value, part: str) -> ir.Value:
    def integer(bits: int, value: int) -> ir.Constant:
        return ir.Constant(ir.IntType(bits), value)

    def resized(value: ir.Value, bits: int) -> ir.Value:
        return (build.trunc if value.type.width > bits else build.zext)(value, ir.IntType(bits))

    # |x| = mantissa 2^exponent; keep the 192 bits of 1/(2 pi) that can reach the fraction of the product.
    pattern = build.bitcast(x, I64)
    exponent = build.sub(build.and_(build.lshr(pattern, integer(64, 52)), integer(64, 0x7FF)), integer(64, 1075))
    mantissa = build.or_(build.and_(pattern, integer(64, (1 << 52) - 1)), integer(64, 1 << 52))
    skipped = build.sub(integer(64, FRACTION_BITS - 192), exponent)
    window = build.lshr(integer(FRACTION_BITS, INVERSE_TURN), resized(skipped, FRACTION_BITS))
    product = build.mul(resized(window, 192), resized(mantissa, 192))
    turns = resized(build.lshr(product, integer(192, 64)), 128)

    # The nearest quarter of a turn, and the signed distance from it as a fraction of a quarter in 126 bits.
    quarter = build.lshr(build.add(turns, integer(128, 1 << 125)), integer(128, 126))
    negative = build.icmp_signed("<", pattern, integer(64, 0))
    if part == "quadrant":
        count = resized(quarter, 64)
        return build.select(negative, build.neg(count), count)
    rest = build.sub(turns, build.shl(quarter, integer(128, 126)))
    below = build.icmp_signed("<", rest, integer(128, 0))
    size = build.select(below, build.neg(rest), rest)

    # Its leading 106 bits as two doubles, times pi/2 in two words.
    zeros = build.ctlz(size, ir.Constant(I1, 0))
    leading = build.shl(size, zeros)
    scale = build.shl(build.sub(integer(64, 1023 - 51), resized(zeros, 64)), integer(64, 52))
    lanes = Lanes(build, 1)
    one = Number(lanes, build.bitcast(scale, DOUBLE), "float64")
    top = one * one.like(build.uitofp(resized(build.lshr(leading, integer(128, 75)), 64), DOUBLE))
    next_bits = build.and_(resized(build.lshr(leading, integer(128, 22)), 64), integer(64, (1 << 53) - 1))
    rest_of_top = one * one.like(build.uitofp(next_bits, DOUBLE)) * 2.0**-53
    angle = DoubleWord(top, rest_of_top) * constant(one, *HALF_PI)
    value = angle.high if part == "high" else angle.low
    signed = where(one.like(build.xor(below, negative), "bool"), -value, value)
    argument = one.like(x)
    return (signed + (argument - argument)).value
