"""A Mersenne Twister as LLVM IR: its words, uniform and normal numbers, and a shuffle.

    words(ptr key, ptr out, i64 count)                count words; the position of the next one follows the key
    even_floats(ptr words, i64 blocks)                words to multiples of 2^-24 in [0, 1), 8 a block, in place
    normal_floats(ptr even, i64 blocks, float, float) even numbers to normal ones of a deviation and a mean, 16 a block
    spread_float(ptr even, i64 count, float, float)   even numbers times a width plus a start, fused; spread_double as well
    shuffle(ptr order, ptr words, i64 count)          Fisher's and Yates' shuffle of `count` integers by count - 1 words
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

KEY = 624
_SHIFT = 397
_I, _F = "<8 x i32>", "<8 x float>"
_SHUFFLED = 64  # elements whose partners are fetched into cache together


class _Body:
    """Straight-line instructions on vectors of eight; each method returns the name of its result."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def let(self, instruction: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def integer(self, name: str, x: str, y: str | int) -> str:
        return self.let(f"{name} {_I} {x}, {y if isinstance(y, str) else f'splat (i32 {y})'}")

    def real(self, name: str, x: str, y: str | float) -> str:
        return self.let(f"{name} {_F} {x}, {_real(y)}")

    def fma(self, x: str, y: str | float, z: str | float) -> str:
        return self.let(f"call {_F} @llvm.fma.v8f32({_F} {x}, {_F} {_real(y)}, {_F} {_real(z)})")

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        first, second, *others = coefficients
        y = self.fma(x, first, second)
        for coefficient in others:
            y = self.fma(y, x, coefficient)
        return y

    def bits(self, x: str) -> str:
        return self.let(f"bitcast {_F} {x} to {_I}")

    def of_bits(self, x: str) -> str:
        return self.let(f"bitcast {_I} {x} to {_F}")

    def choice(self, condition: str, x: str | float, y: str | float) -> str:
        return self.let(f"select <8 x i1> {condition}, {_F} {_real(x)}, {_F} {_real(y)}")

    def load(self, kind: str, address: str) -> str:
        return self.let(f"load {kind}, ptr {address}, align 4")

    def store(self, kind: str, value: str, address: str) -> None:
        self.lines.append(f"  store {kind} {value}, ptr {address}, align 4")

    def at(self, base: str, index: str, offset: int = 0) -> str:
        element = self.let(f"add i64 {index}, {offset}") if offset else index
        return self.let(f"getelementptr i32, ptr {base}, i64 {element}")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def _real(x: str | float) -> str:
    """A register, or a number rounded to float32, as LLVM spells it: the digits of a double."""
    if isinstance(x, str):
        return x
    (rounded,) = struct.unpack("<f", struct.pack("<f", x))
    return f"splat (float 0x{struct.pack('>d', rounded).hex()})"


def _next_key() -> str:
    """Eight words of the next key, behind those of this one."""
    b = _Body()
    here, following, far = (b.load(_I, b.at("%keys", "%i", offset)) for offset in (0, 1, _SHIFT))
    mixed = b.integer("or", b.integer("and", here, -(1 << 31)), b.integer("and", following, (1 << 31) - 1))
    is_odd = b.integer("sub", "zeroinitializer", b.integer("and", following, 1))
    y = b.integer("xor", b.integer("xor", far, b.integer("lshr", mixed, 1)), b.integer("and", is_odd, 0x9908B0DF - (1 << 32)))
    b.store(_I, y, b.at("%keys", "%i", KEY))
    return b.text


def _tempered() -> str:
    b = _Body()
    y = b.load(_I, b.at("%key", "%j"))
    y = b.integer("xor", y, b.integer("lshr", y, 11))
    y = b.integer("xor", y, b.integer("and", b.integer("shl", y, 7), 0x9D2C5680 - (1 << 32)))
    y = b.integer("xor", y, b.integer("and", b.integer("shl", y, 15), 0xEFC60000 - (1 << 32)))
    y = b.integer("xor", y, b.integer("lshr", y, 18))
    b.store(_I, y, b.at("%tempered", "%j"))
    return b.text


WORDS = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @genesis_twister_words(ptr %key, ptr %out, i64 %count) {{
entry:
  %keys = alloca [{2 * KEY} x i32], align 32
  %tempered = alloca [{KEY} x i32], align 32
  %position.at = getelementptr i32, ptr %key, i64 {KEY}
  %position.word = load i32, ptr %position.at
  %position = zext i32 %position.word to i64
next:
  %from = phi i64 [ %position, %entry ], [ %to, %give ]
  %given = phi i64 [ 0, %entry ], [ %given.next, %give ]
  %left = sub i64 %count, %given
  if i64 %left == 0: %finished
more:
  if i64 %from ult {KEY}: %temper
renew:
  call void @llvm.memcpy.p0.p0.i64(ptr %keys, ptr %key, i64 {4 * KEY}, i1 0)
advance:
  %i = phi i64 [ 0, %renew ], [ %i.next, %advance ]
{_next_key()}
  %i.next = add i64 %i, 8
  if i64 %i.next != {KEY}: %advance
keep:
  %new = getelementptr i32, ptr %keys, i64 {KEY}
  call void @llvm.memcpy.p0.p0.i64(ptr %key, ptr %new, i64 {4 * KEY}, i1 0)
temper:
  %begin = phi i64 [ %from, %more ], [ 0, %keep ]
one:
  %j = phi i64 [ 0, %temper ], [ %j.next, %one ]
{_tempered().replace("%v", "%w")}
  %j.next = add i64 %j, 8
  if i64 %j.next != {KEY}: %one
give:
  %there = sub i64 {KEY}, %begin
  %few = icmp ult i64 %left, %there
  %take = select i1 %few, i64 %left, i64 %there
  %source = getelementptr i32, ptr %tempered, i64 %begin
  %target = getelementptr i32, ptr %out, i64 %given
  %bytes = mul i64 %take, 4
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 0)
  %given.next = add i64 %given, %take
  %to = add i64 %begin, %take
  br label %next
finished:
  %from.word = trunc i64 %from to i32
  store i32 %from.word, ptr %position.at
  ret void
}}
"""


def _loop(name: str, parameters: str, prologue: str, body: str, step: int) -> str:
    """A function that runs `body` at each `%i`, a multiple of `step`, of so many `%blocks`."""
    return f"""
declare {_F} @llvm.fma.v8f32({_F}, {_F}, {_F})
declare {_F} @llvm.sqrt.v8f32({_F})

define void @{name}(ptr %data, i64 %blocks{parameters}) {{
entry:
{prologue}
  %end = mul i64 %blocks, {step}
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  if i64 %i == %end: ret void
one:
{body}
  %i.next = add i64 %i, {step}
  br label %next
}}
"""


def _even() -> str:
    b = _Body()
    low = b.integer("and", b.load(_I, b.at("%data", "%i")), (1 << 24) - 1)
    number = b.let(f"sitofp {_I} {low} to {_F}")
    b.store(_F, b.real("fmul", number, 2.0**-24), b.at("%data", "%i"))
    return b.text


def _logarithm(b: _Body, x: str) -> str:
    bits = b.bits(x)
    exponent = b.integer("sub", b.integer("lshr", bits, 23), 0x7E)
    fraction = b.of_bits(b.integer("or", b.integer("and", bits, 0x7FFFFF), 0x3F000000))
    is_small = b.let(f"fcmp olt {_F} {fraction}, {_real(0.707106781186547524)}")
    e = b.real("fsub", b.let(f"sitofp {_I} {exponent} to {_F}"), b.choice(is_small, 1.0, 0.0))
    x = b.real("fadd", b.real("fsub", fraction, 1.0), b.choice(is_small, fraction, 0.0))
    z = b.real("fmul", x, x)
    y = b.polynomial(x, (
        7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
        2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1))
    y = b.fma(b.real("fmul", y, x), z, b.real("fmul", e, -2.12194440e-4))
    y = b.real("fsub", y, b.real("fmul", z, 0.5))
    return b.fma(e, 0.693359375, b.real("fadd", x, y))


def _sine_and_cosine(b: _Body, x: str) -> tuple[str, str]:
    """Of an x that is not negative."""
    octant = b.let(f"fptosi {_F} {b.real('fmul', x, 1.27323954473516)} to {_I}")
    octant = b.integer("and", b.integer("add", octant, 1), -2)
    y = b.let(f"sitofp {_I} {octant} to {_F}")
    for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):
        x = b.fma(y, part, x)
    z = b.real("fmul", x, x)
    c = b.real("fmul", b.polynomial(z, (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)), z)
    half = b.real("fmul", z, 0.5)
    c = b.real("fadd", b.fma(c, z, b.let(f"fneg {_F} {half}")), 1.0)
    s = b.real("fmul", b.polynomial(z, (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)), z)
    s = b.fma(s, x, x)
    is_even = b.let(f"icmp eq {_I} {b.integer('and', octant, 2)}, zeroinitializer")
    sign_of_sine = b.integer("shl", b.integer("and", octant, 4), 29)
    turned = b.integer("xor", b.integer("sub", octant, 2), -1)
    sign_of_cosine = b.integer("shl", b.integer("and", turned, 4), 29)
    sine, cosine = b.choice(is_even, s, c), b.choice(is_even, c, s)
    return (b.of_bits(b.integer("xor", b.bits(sine), sign_of_sine)),
            b.of_bits(b.integer("xor", b.bits(cosine), sign_of_cosine)))


def _normal() -> str:
    """Box and Muller, 1958, with Cephes' functions (S. Moshier) and the fused steps that PyTorch's code for AVX2 has."""
    b = _Body()
    first, second = b.at("%data", "%i"), b.at("%data", "%i", 8)
    share = b.let(f"fsub {_F} {_real(1.0)}, {b.load(_F, first)}")
    turn = b.load(_F, second)
    squared = b.real("fmul", _logarithm(b, share), -2.0)
    radius = b.let(f"call {_F} @llvm.sqrt.v8f32({_F} {squared})")
    sine, cosine = _sine_and_cosine(b, b.real("fmul", turn, 6.283185307179586))
    for address, part in ((first, cosine), (second, sine)):
        b.store(_F, b.fma(b.real("fmul", radius, part), "%stds", "%means"), address)
    return b.text


EVEN_FLOATS = _loop("genesis_even_floats", "", "", _even(), 8)
NORMAL_FLOATS = _loop(
    "genesis_normal_floats", ", float %std, float %mean",
    "\n".join(f"""  %{name}.one = insertelement {_F} poison, float %{name}, i32 0
  %{name}s = shufflevector {_F} %{name}.one, {_F} poison, {_I} zeroinitializer""" for name in ("std", "mean")),
    _normal(), 16)


def _spread(kind: str) -> str:
    """One number at a time: LLVM makes vectors of them."""
    return f"""
declare {kind} @llvm.fma.{"f32" if kind == "float" else "f64"}({kind}, {kind}, {kind})

define void @genesis_spread_{kind}(ptr noalias %data, i64 %count, {kind} %width, {kind} %start) {{
entry:
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  if i64 %i == %count: ret void
one:
  %at = getelementptr {kind}, ptr %data, i64 %i
  %even = load {kind}, ptr %at
  %spread = call {kind} @llvm.fma.{"f32" if kind == "float" else "f64"}({kind} %even, {kind} %width, {kind} %start)
  store {kind} %spread, ptr %at
  %i.next = add i64 %i, 1
  br label %next
}}
"""


SPREAD = {kind: _spread(kind) for kind in ("float", "double")}

# The partners of adjacent elements are scattered: a stretch of them is prefetched.
SHUFFLE = f"""
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)

define void @genesis_shuffle(ptr %order, ptr %words, i64 %count) {{
entry:
  %partners = alloca [{_SHUFFLED} x i64]
  %last = sub i64 %count, 1
next:
  %begin = phi i64 [ 0, %entry ], [ %end, %swapped ]
  if i64 %begin sge %last: ret void
stretch:
  %whole = add i64 %begin, {_SHUFFLED}
  %few = icmp slt i64 %last, %whole
  %end = select i1 %few, i64 %last, i64 %whole
find:
  %i = phi i64 [ %begin, %stretch ], [ %i.next, %find ]
  %word = load i32, ptr %words[%i]
  %left = sub i64 %count, %i
  %left.word = trunc i64 %left to i32
  %ahead = urem i32 %word, %left.word
  %ahead.long = zext i32 %ahead to i64
  %partner = add i64 %i, %ahead.long
  %at = getelementptr i64, ptr %order, i64 %partner
  call void @llvm.prefetch.p0(ptr %at, i32 1, i32 3, i32 1)
  %number = sub i64 %i, %begin
  store i64 %partner, ptr %partners[%number]
  %i.next = add i64 %i, 1
  if i64 %i.next != %end: %find
swap:
  %k = phi i64 [ %begin, %find ], [ %k.next, %swap ]
  %k.number = sub i64 %k, %begin
  %other = load i64, ptr %partners[%k.number]
  %here = getelementptr i64, ptr %order, i64 %k
  %there = getelementptr i64, ptr %order, i64 %other
  %x = load i64, ptr %here
  %y = load i64, ptr %there
  store i64 %y, ptr %here
  store i64 %x, ptr %there
  %k.next = add i64 %k, 1
  if i64 %k.next != %end: %swap
swapped:
  br label %next
}}
"""
