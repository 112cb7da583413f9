"""Explicit vectors over an `llvmlite.ir.IRBuilder`: the words in which CPU kernels are written.

A value is *uniform* (a scalar `T`) or *varying* (`<width x T>`, one element per lane). Where two operands meet, a
uniform one is splatted; a Python number stands for a constant of its neighbour's type. A dtype is a string. `bool` is
i1 in a register and i8 in memory; `float16` and `bfloat16` live in memory only: a load widens to float32, a store
narrows. Integers carry no sign in LLVM, so a method that depends on it says so in its name or takes the dtype. Pointers
are opaque and move by `getelementptr inbounds` alone.
No fast-math flags: NaN, infinities and signed zeros behave as IEEE 754 says, whatever the width.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

from llvmlite import ir

Value: TypeAlias = "ir.Value | int | float"

POINTER = ir.PointerType()
I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
HALF, FLOAT, DOUBLE = ir.HalfType(), ir.FloatType(), ir.DoubleType()

REGISTER_TYPE: dict[str, ir.Type] = {
    "float64": DOUBLE, "float32": FLOAT, "float16": FLOAT, "bfloat16": FLOAT, "bool": I1,
    "int8": I8, "int16": I16, "int32": I32, "int64": I64, "uint8": I8, "uint16": I16, "uint32": I32, "uint64": I64,
}  # fmt: skip
MEMORY_TYPE: dict[str, ir.Type] = REGISTER_TYPE | {"float16": HALF, "bfloat16": I16, "bool": I8}
FLOATING = frozenset({"float64", "float32", "float16", "bfloat16"})
UNSIGNED = frozenset({"bool", "uint8", "uint16", "uint32", "uint64"})

SIZE = {HALF: 2, FLOAT: 4, DOUBLE: 8, I1: 1, I8: 1, I16: 2, I32: 4, I64: 8, POINTER: 8}
SHORT_NAME = {HALF: "f16", FLOAT: "f32", DOUBLE: "f64", I1: "i1", I8: "i8", I16: "i16", I32: "i32", I64: "i64"}
SHORT_NAME[POINTER] = "p0"


class Literal(ir.Constant):
    """A constant by its text: `ir.Constant` can print neither a splat in one word, nor a NaN."""

    def __init__(self, type_: ir.Type, text: str):
        self.type = type_
        self.constant = text

    def _get_reference(self) -> str:
        return self.constant


def is_varying(value: ir.Value) -> bool:
    """Whether `value` has one element per lane."""
    return isinstance(value.type, ir.VectorType)


def element_type(value: ir.Value) -> ir.Type:
    """The scalar type of a uniform or varying value."""
    return value.type.element if is_varying(value) else value.type


def is_floating(value: ir.Value) -> bool:
    return element_type(value) in (HALF, FLOAT, DOUBLE)


def mangled(type_: ir.Type) -> str:
    """How LLVM spells a type inside the name of an overloaded intrinsic."""
    return f"v{type_.count}{SHORT_NAME[type_.element]}" if isinstance(type_, ir.VectorType) else SHORT_NAME[type_]


def with_shape(type_: ir.Type, like: ir.Value) -> ir.Type:
    """`type_` for every lane if `like` is varying, else `type_` itself."""
    return ir.VectorType(type_, like.type.count) if is_varying(like) else type_


def scalar_constant(type_: ir.Type, value: int | float | bool) -> ir.Constant:
    """A constant: a float by its bits (so NaN and infinities print), an integer wrapped to its width."""
    if type_ in (FLOAT, DOUBLE):
        if type_ == FLOAT:
            try:
                value = struct.unpack("f", struct.pack("f", value))[0]
            except OverflowError:
                value = float("inf") if value > 0 else float("-inf")
        return Literal(type_, f"0x{struct.unpack('Q', struct.pack('d', value))[0]:016X}")
    if type_ == I1:
        return ir.Constant(I1, bool(value))
    half_range = 1 << (type_.width - 1)
    return ir.Constant(type_, (int(value) + half_range) % (2 * half_range) - half_range)


class Lanes:
    """Emits vector code of `width` lanes at the position of `builder`.

    Example::

        b = Lanes(ir.IRBuilder(block), 16)
        x = b.load(b.element_pointer(source, index, "float32"), "float32")
        b.store(b.fma(x, x, 1.0), target, "float32")
    """

    def __init__(self, builder: ir.IRBuilder, width: int):
        if width < 1 or width & (width - 1):
            raise ValueError(f"Lanes: width must be a power of two, got {width}")
        self.builder = builder
        self.width = width

    # ---- constants and shapes ----

    def constant(self, dtype: str, value: int | float | bool) -> ir.Constant:
        """The uniform constant `value`, rounded to `dtype`'s register type."""
        return scalar_constant(REGISTER_TYPE[dtype], value)

    def splat(self, value: ir.Value) -> ir.Value:
        """A uniform value in every lane; a varying one as it is."""
        if is_varying(value):
            return value
        vector = ir.VectorType(value.type, self.width)
        if isinstance(value, ir.Constant):
            return Literal(vector, f"splat ({value.type} {value.get_reference()})")
        nothing = Literal(vector, "poison")
        first = self.builder.insert_element(nothing, value, ir.Constant(I32, 0))
        return self.builder.shuffle_vector(first, nothing, constants(I32, [0] * self.width))

    def lane_index(self, dtype: str = "int64") -> ir.Constant:
        """<0, 1, .., width-1>."""
        return constants(REGISTER_TYPE[dtype], range(self.width))

    def first_lanes(self, count: ir.Value) -> ir.Value:
        """The mask of the first `count` lanes (an integer, possibly more than `width`): the tail of a row."""
        return self.builder.icmp_signed("<", constants(count.type, range(self.width)), self.splat(count))

    def extract(self, value: ir.Value, lane: int | ir.Value) -> ir.Value:
        """One lane of a varying value; a uniform one as it is."""
        if not is_varying(value):
            return value
        return self.builder.extract_element(value, ir.Constant(I32, lane) if isinstance(lane, int) else lane)

    def matched(self, *values: Value) -> list[ir.Value]:
        """Operands of one shape: numbers take the first value's type, uniforms are splatted beside varyings."""
        type_ = next(element_type(value) for value in values if isinstance(value, ir.Value))
        found = [value if isinstance(value, ir.Value) else scalar_constant(type_, value) for value in values]
        return [self.splat(value) for value in found] if any(map(is_varying, found)) else found

    def intrinsic(
        self, name: str, result: ir.Type, arguments: list[ir.Value], *, overloads: tuple[ir.Type, ...] = ()
    ) -> ir.Value:
        """Call `llvm.<name>`; `overloads` are the types its name is mangled with (the result's by default)."""
        full_name = ".".join(["llvm", name, *map(mangled, overloads or (result,))])
        return self.builder.call(self.declared(full_name, result, [argument.type for argument in arguments]), arguments)

    def declared(self, name: str, result: ir.Type, parameters: list[ir.Type]) -> ir.Function:
        """The module's function `name`, declared at its first use."""
        known = self.builder.module.globals.get(name)
        return known or ir.Function(self.builder.module, ir.FunctionType(result, parameters), name)

    # ---- arithmetic ----

    def add(self, a: Value, b: Value) -> ir.Value:
        a, b = self.matched(a, b)
        return self.builder.fadd(a, b) if is_floating(a) else self.builder.add(a, b)

    def subtract(self, a: Value, b: Value) -> ir.Value:
        a, b = self.matched(a, b)
        return self.builder.fsub(a, b) if is_floating(a) else self.builder.sub(a, b)

    def multiply(self, a: Value, b: Value) -> ir.Value:
        a, b = self.matched(a, b)
        return self.builder.fmul(a, b) if is_floating(a) else self.builder.mul(a, b)

    def divide(self, a: Value, b: Value) -> ir.Value:
        """Of floats; integers have `floor_divide`."""
        return self.builder.fdiv(*self.matched(a, b))

    def negate(self, x: ir.Value) -> ir.Value:
        return self.builder.fneg(x) if is_floating(x) else self.subtract(0, x)

    def absolute(self, x: ir.Value, dtype: str | None = None) -> ir.Value:
        if is_floating(x):
            return self.intrinsic("fabs", x.type, [x])
        return x if dtype in UNSIGNED else self.intrinsic("abs", x.type, [x, ir.Constant(I1, 0)])

    def fma(self, a: Value, b: Value, c: Value) -> ir.Value:
        """a * b + c, rounded once."""
        a, b, c = self.matched(a, b, c)
        return self.intrinsic("fma", a.type, [a, b, c])

    def square_root(self, x: ir.Value) -> ir.Value:
        return self.intrinsic("sqrt", x.type, [x])

    def floor(self, x: ir.Value) -> ir.Value:
        return self.intrinsic("floor", x.type, [x])

    def ceil(self, x: ir.Value) -> ir.Value:
        return self.intrinsic("ceil", x.type, [x])

    def truncate(self, x: ir.Value) -> ir.Value:
        return self.intrinsic("trunc", x.type, [x])

    def rint(self, x: ir.Value) -> ir.Value:
        """The nearest integer, a half going to the even one."""
        return self.intrinsic("rint", x.type, [x])

    def copy_sign(self, magnitude: Value, sign: Value) -> ir.Value:
        magnitude, sign = self.matched(magnitude, sign)
        return self.intrinsic("copysign", magnitude.type, [magnitude, sign])

    def minimum(self, a: Value, b: Value, dtype: str | None = None) -> ir.Value:
        """The lesser; NaN if either is NaN. Integers are signed unless `dtype` says otherwise."""
        return self._extremum("minimum", "min", a, b, dtype)

    def maximum(self, a: Value, b: Value, dtype: str | None = None) -> ir.Value:
        """The greater; NaN if either is NaN. Integers are signed unless `dtype` says otherwise."""
        return self._extremum("maximum", "max", a, b, dtype)

    def _extremum(self, float_name: str, int_name: str, a: Value, b: Value, dtype: str | None) -> ir.Value:
        a, b = self.matched(a, b)
        if is_floating(a):
            return self.intrinsic(float_name, a.type, [a, b])
        unsigned = dtype in UNSIGNED or element_type(a) == I1
        return self.intrinsic(("u" if unsigned else "s") + int_name, a.type, [a, b])

    # ---- division that never traps ----

    def floor_divide(self, a: Value, b: Value, dtype: str) -> ir.Value:
        """Python's `//`. Of integers, x // 0 is 0 and the quotient wraps; of floats, as torch: x // 0 is x / 0."""
        a, b = self.matched(a, b)
        if dtype not in FLOATING:
            quotient, rest = self._divide_integers(a, b, dtype)
            if dtype not in UNSIGNED:
                quotient = self.select(self._opposed(rest, b, dtype), self.subtract(quotient, 1), quotient)
            return self.select(self.compare("==", b, 0, dtype), 0, quotient)
        rest = self.fmod(a, b)
        quotient = self.divide(self.subtract(a, rest), b)
        opposed = self._opposed(rest, b, dtype)
        quotient = self.select(opposed, self.subtract(quotient, 1.0), quotient)
        floored = self.floor(quotient)
        nearly_next = self.compare(">", self.subtract(quotient, floored), 0.5, dtype)
        floored = self.select(nearly_next, self.add(floored, 1.0), floored)
        ratio = self.divide(a, b)
        floored = self.select(self.compare("==", quotient, 0.0, dtype), self.copy_sign(0.0, ratio), floored)
        return self.select(self.compare("==", b, 0.0, dtype), ratio, floored)

    def remainder(self, a: Value, b: Value, dtype: str) -> ir.Value:
        """Python's `%`, with the divisor's sign. Of integers x % 0 is 0; of floats, as in torch, NaN."""
        a, b = self.matched(a, b)
        if dtype not in FLOATING:
            _, rest = self._divide_integers(a, b, dtype)
            if dtype not in UNSIGNED:
                rest = self.select(self._opposed(rest, b, dtype), self.add(rest, b), rest)
            return self.select(self.compare("==", b, 0, dtype), 0, rest)
        rest = self.fmod(a, b)
        return self.select(self._opposed(rest, b, dtype), self.add(rest, b), rest)

    def fmod(self, a: Value, b: Value) -> ir.Value:
        """C's fmod: exact, with the dividend's sign; NaN for x % 0 and inf % y.

        In double, a quotient below 2^52 truncates to the true integer or the one above it, so one fused step leaves the
        remainder or the remainder less b. Wider gaps go to the C library, lane by lane.
        """
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

    def _opposed(self, rest: ir.Value, divisor: ir.Value, dtype: str) -> ir.Value:
        """Where a non-zero remainder lies on the other side of zero from the divisor."""
        unequal = self.logical_xor(self.compare("<", rest, 0, dtype), self.compare("<", divisor, 0, dtype))
        return self.logical_and(unequal, self.compare("!=", rest, 0, dtype))

    def _divide_integers(self, a: ir.Value, b: ir.Value, dtype: str) -> tuple[ir.Value, ir.Value]:
        """The truncated quotient and its remainder; 0 and -1, the divisors that may trap, never reach it."""
        if dtype in UNSIGNED:
            quotient = self.builder.udiv(a, self.select(self.compare("==", b, 0, dtype), 1, b))
        else:
            minus_one = self.compare("==", b, -1, dtype)
            trapping = self.logical_or(minus_one, self.compare("==", b, 0, dtype))
            quotient = self.builder.sdiv(a, self.select(trapping, 1, b))
            quotient = self.select(minus_one, self.negate(a), quotient)
        return quotient, self.subtract(a, self.multiply(quotient, b))

    # ---- comparison and choice ----

    def compare(self, predicate: str, a: Value, b: Value, dtype: str) -> ir.Value:
        """i1 lanes of `<`, `<=`, `==`, `!=`, `>` or `>=`; with a NaN only `!=` holds."""
        a, b = self.matched(a, b)
        if is_floating(a):
            return (self.builder.fcmp_unordered if predicate == "!=" else self.builder.fcmp_ordered)(predicate, a, b)
        return (self.builder.icmp_unsigned if dtype in UNSIGNED else self.builder.icmp_signed)(predicate, a, b)

    def is_nan(self, x: ir.Value) -> ir.Value:
        return self.builder.fcmp_unordered("uno", x, x)

    def select(self, condition: ir.Value, a: Value, b: Value) -> ir.Value:
        """a where the condition holds, else b."""
        a, b = self.matched(a, b)
        if is_varying(condition):
            a, b = self.splat(a), self.splat(b)
        return self.builder.select(condition, a, b)

    def any_lane(self, mask: ir.Value) -> ir.Value:
        """Whether any lane of an i1 value is set (uniform)."""
        if not is_varying(mask):
            return mask
        bits = ir.IntType(mask.type.count)
        return self.builder.icmp_unsigned("!=", self.builder.bitcast(mask, bits), ir.Constant(bits, 0))

    def patched(self, value: ir.Value, mask: ir.Value, rare: Callable[[], ir.Value]) -> ir.Value:
        """`value`, with the lanes of `mask` taken from `rare()`, whose code is jumped over when there are none."""
        before = self.builder.block
        with self.builder.if_then(self.any_lane(mask), likely=False):
            mended = self.select(mask, rare(), value)
            after = self.builder.block
        result = self.builder.phi(value.type)
        result.add_incoming(value, before)
        result.add_incoming(mended, after)
        return result

    def per_lane(self, function: ir.Function, *arguments: ir.Value) -> ir.Value:
        """A scalar function applied to each lane in turn: for rare paths."""
        arguments = tuple(self.matched(*arguments))
        if not is_varying(arguments[0]):
            return self.builder.call(function, arguments)
        before = self.builder.block
        loop, done = self.builder.append_basic_block("lane"), self.builder.append_basic_block("lanes_done")
        result_type = ir.VectorType(function.function_type.return_type, self.width)
        self.builder.branch(loop)
        self.builder.position_at_end(loop)
        lane, result = self.builder.phi(I32), self.builder.phi(result_type)
        value = self.builder.call(function, [self.builder.extract_element(argument, lane) for argument in arguments])
        grown, following = self.builder.insert_element(result, value, lane), self.builder.add(lane, ir.Constant(I32, 1))
        nothing = Literal(result_type, "poison")
        for phi, start, step in ((lane, ir.Constant(I32, 0), following), (result, nothing, grown)):
            phi.add_incoming(start, before)
            phi.add_incoming(step, loop)
        self.builder.cbranch(self.builder.icmp_unsigned("<", following, ir.Constant(I32, self.width)), loop, done)
        self.builder.position_at_end(done)
        return grown

    # ---- bits ----

    def logical_and(self, a: Value, b: Value) -> ir.Value:
        return self.builder.and_(*self.matched(a, b))

    def logical_or(self, a: Value, b: Value) -> ir.Value:
        return self.builder.or_(*self.matched(a, b))

    def logical_xor(self, a: Value, b: Value) -> ir.Value:
        return self.builder.xor(*self.matched(a, b))

    def logical_not(self, x: ir.Value) -> ir.Value:
        return self.logical_xor(x, -1)

    def shift_left(self, x: Value, count: Value) -> ir.Value:
        return self.builder.shl(*self.matched(x, count))

    def shift_right_logical(self, x: Value, count: Value) -> ir.Value:
        return self.builder.lshr(*self.matched(x, count))

    def shift_right_arithmetic(self, x: Value, count: Value) -> ir.Value:
        return self.builder.ashr(*self.matched(x, count))

    def rotate_left(self, x: Value, count: Value) -> ir.Value:
        x, count = self.matched(x, count)
        return self.intrinsic("fshl", x.type, [x, x, count])

    def bitcast_to_int(self, x: ir.Value) -> ir.Value:
        """The bits of a float, as an integer of its size."""
        return self.builder.bitcast(x, with_shape(I64 if element_type(x) == DOUBLE else I32, x))

    def bitcast_to_float(self, x: ir.Value) -> ir.Value:
        """The float whose bits are a 32- or 64-bit integer."""
        return self.builder.bitcast(x, with_shape(DOUBLE if element_type(x) == I64 else FLOAT, x))

    # ---- conversion ----

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
                return self.round_to(to_dtype, self._resize_float(x, target))
            wide = with_shape(I64 if SIZE[REGISTER_TYPE[to_dtype]] == 8 else I32, x)
            name = "fptoui.sat" if to_dtype in ("uint32", "uint64") else "fptosi.sat"
            whole = self.intrinsic(name, wide, [x], overloads=(wide, x.type))
            return whole if wide == target else self.builder.trunc(whole, target)
        if to_dtype in FLOATING:
            whole = self.builder.uitofp if from_dtype in UNSIGNED else self.builder.sitofp
            return self.round_to(to_dtype, whole(x, target))
        if target.element.width < element_type(x).width if is_varying(x) else target.width < x.type.width:
            return self.builder.trunc(x, target)
        return (self.builder.zext if from_dtype in UNSIGNED else self.builder.sext)(x, target)

    def _resize_float(self, x: ir.Value, target: ir.Type) -> ir.Value:
        if x.type == target:
            return x
        return (self.builder.fpext if element_type(x) == FLOAT else self.builder.fptrunc)(x, target)

    def round_to(self, dtype: str, x: ir.Value) -> ir.Value:
        """A float32 value rounded half to even to the precision of float16 or bfloat16; for another dtype, as it is."""
        if dtype == "float16":
            return self.builder.fpext(self.builder.fptrunc(x, with_shape(HALF, x)), x.type)
        if dtype == "bfloat16":
            return self.bitcast_to_float(self.shift_left(self._bfloat16_bits(x), 16))
        return x

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
            return self.builder.fpext(x, with_shape(FLOAT, x))
        if dtype == "bfloat16":
            return self.bitcast_to_float(self.shift_left(self.builder.zext(x, with_shape(I32, x)), 16))
        return x

    def to_memory(self, x: ir.Value, dtype: str) -> ir.Value:
        """A register value in the type it is stored in."""
        if dtype == "bool":
            return self.builder.zext(x, with_shape(I8, x))
        if dtype == "float16":
            return self.builder.fptrunc(x, with_shape(HALF, x))
        if dtype == "bfloat16":
            return self.builder.trunc(self._bfloat16_bits(x), with_shape(I16, x))
        return x

    # ---- memory ----

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

    def store(self, x: ir.Value, pointer: ir.Value, dtype: str, mask: ir.Value | None = None) -> None:
        """Every lane to adjacent elements; lanes outside `mask` are not written."""
        x = self.to_memory(self.splat(x), dtype)
        if mask is None:
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

    # ---- reductions over the lanes ----

    def reduce_add(self, x: ir.Value) -> ir.Value:
        """The sum, as a balanced tree: lane i with lane i + width/2, and so on; the same bits every time."""
        return self._reduce(self.add, x)

    def reduce_multiply(self, x: ir.Value) -> ir.Value:
        return self._reduce(self.multiply, x)

    def reduce_minimum(self, x: ir.Value, dtype: str | None = None) -> ir.Value:
        """The least; NaN if any is NaN."""
        return self._reduce(lambda a, b: self.minimum(a, b, dtype), x)

    def reduce_maximum(self, x: ir.Value, dtype: str | None = None) -> ir.Value:
        """The greatest; NaN if any is NaN."""
        return self._reduce(lambda a, b: self.maximum(a, b, dtype), x)

    def reduce_and(self, x: ir.Value) -> ir.Value:
        return self._reduce(self.logical_and, x)

    def reduce_or(self, x: ir.Value) -> ir.Value:
        return self._reduce(self.logical_or, x)

    def _reduce(self, combine: Callable[[ir.Value, ir.Value], ir.Value], x: ir.Value) -> ir.Value:
        while is_varying(x) and x.type.count > 1:
            half = x.type.count // 2
            lower = self.builder.shuffle_vector(x, x, constants(I32, range(half)))
            upper = self.builder.shuffle_vector(x, x, constants(I32, range(half, 2 * half)))
            x = combine(lower, upper)
        return self.extract(x, 0)


def zero(type_: ir.Type) -> ir.Constant:
    return Literal(type_, "zeroinitializer")


def constants(type_: ir.Type, values: Sequence[int]) -> ir.Constant:
    """A vector of integers, one to a lane."""
    return _constants(type_.width, tuple(values))


class _Constants(ir.Constant):
    """A vector constant that is spelled out once: kernels use the same few over and over."""

    def _get_reference(self) -> str:
        text = self.__dict__.get("text")
        if text is None:
            text = self.__dict__["text"] = super()._get_reference()
        return text


@functools.lru_cache(maxsize=256)
def _constants(bits: int, values: tuple[int, ...]) -> ir.Constant:
    return _Constants(ir.VectorType(ir.IntType(bits), len(values)), list(values))
