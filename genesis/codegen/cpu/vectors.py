"""Explicit vectors over an `llvmlite.ir.IRBuilder`: constants, arithmetic, comparison and bits. `Lanes` adds the rest.

A value is *uniform* (a scalar `T`) or *varying* (`<width x T>`, one element per lane). Where two operands meet, a
uniform one is splatted; a Python number stands for a constant of its neighbour's type. Integers carry no sign in LLVM,
so a method that depends on it says so in its name or takes the dtype.
No fast-math flags: NaN, infinities and signed zeros behave as IEEE 754 says, whatever the width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.registers import (
    DOUBLE, FLOAT, I1, I32, I64, REGISTER_TYPE, SIZE, UNSIGNED, Value, constants, element_type, is_floating, is_varying,
    mangled, scalar_constant, with_shape,
)
from genesis.codegen.cpu.tiling import vector_bytes


@contextmanager
def counted(
    builder: ir.IRBuilder, start: ir.Value, end: ir.Value, step: int | ir.Value = 1, flags: Sequence[str] = ()
) -> Iterator[ir.Value]:
    """`for i in range(start, end, step)` around the body."""
    with builder.loop([start], lambda i: i < end) as carried:
        [i] = carried.now
        yield i
        carried.following = [builder.add(i, I64(step) if isinstance(step, int) else step, flags=flags)]


def transposed(builder: ir.IRBuilder, vectors: Sequence[ir.Value], unit: int = 1) -> list[ir.Value]:
    """The transpose of a square of vectors, of elements of `unit` lanes: blocks of 1, 2, 4, .. are exchanged across the
    diagonal (Eklundh, 1972)."""
    width, block, found = len(vectors), 1, list(vectors)

    def lanes(elements: Sequence[int]) -> ir.Constant:
        return constants(I32, [element * unit + part for element in elements for part in range(unit)])

    while block < width:
        low = lanes([n if not n & block else width + n - block for n in range(width)])
        high = lanes([n + block if not n & block else width + n for n in range(width)])
        for n in range(width):
            if not n & block:
                first, second = found[n], found[n + block]
                found[n] = builder.shuffle_vector(first, second, low)
                found[n + block] = builder.shuffle_vector(first, second, high)
        block *= 2
    return found


def joined(builder: ir.IRBuilder, parts: Sequence[ir.Value]) -> ir.Value:
    """The concatenation of vectors of one length, a power of two of them."""
    while len(parts) > 1:  # pairwise, as a shuffle takes two vectors of one length
        both = constants(I32, range(2 * parts[0].type.count))
        parts = [builder.shuffle_vector(a, b, both) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


class FirstLanes(ir.Value):
    """A mask of the first `count` lanes."""

    __slots__ = ("count",)

    def __init__(self, mask: ir.Value, count: ir.Value) -> None:
        super().__init__(mask.type, mask.text, mask.builder)
        self.count = count


def _by_type(of_floats: str, of_integers: str) -> Callable[[Vectors, Value, Value], ir.Value]:
    """A method that emits the builder's instruction for two floats, or for two integers."""

    def emit(self: Vectors, a: Value, b: Value) -> ir.Value:
        a, b = self.matched(a, b)
        found: ir.Value = getattr(self.builder, of_floats if is_floating(a) else of_integers)(a, b)
        return found

    return emit


def _intrinsic(name: str) -> Callable[[Vectors, ir.Value], ir.Value]:
    """A method that calls an intrinsic of one operand."""
    return lambda self, x: self.intrinsic(name, x.type, [x])


class Vectors:
    """Emits vector code of `width` lanes at the position of `builder`."""

    # No fast-math flags: results would depend on the width and on what is fused.

    def __init__(self, builder: ir.IRBuilder, width: int, shared: Collection[str] = ()):
        if width < 1 or width & (width - 1):
            raise ValueError(f"Lanes: width must be a power of two, got {width}")
        self.builder = builder
        self.width = width
        self.shared = shared  # elementary functions and draws that are called instead of inlined

    @contextmanager
    def narrowed(self, width: int) -> Iterator[None]:
        """A context with vectors of `width` lanes; accumulators use their first lanes."""
        before, self.width = self.width, width
        yield
        self.width = before

    # ---- constants and shapes ----
    def constant(self, dtype: str, value: int | float | bool) -> ir.Constant:
        """The uniform constant `value`, rounded to `dtype`'s register type."""
        return scalar_constant(REGISTER_TYPE[dtype], value)

    def splat(self, value: ir.Value) -> ir.Value:
        """A uniform value in every lane; a varying one unchanged."""
        if is_varying(value):
            return value
        vector = ir.VectorType(value.type, self.width)
        # As text: `ir.Constant` would print every lane, for LLVM to parse.
        if isinstance(value, ir.Constant):
            return ir.Constant(vector, f"splat ({value.type} {value.text})")
        nothing = ir.Constant(vector, "poison")
        first = self.builder.insert_element(nothing, value, ir.Constant(I32, 0))
        return self.builder.shuffle_vector(first, nothing, constants(I32, [0] * self.width))

    def lane_index(self, dtype: str = "int64") -> ir.Constant:
        """<0, 1, .., width-1>."""
        return constants(REGISTER_TYPE[dtype], range(self.width))

    def first_lanes(self, count: ir.Value) -> FirstLanes:
        """The mask of the first `count` lanes (an integer, possibly more than `width`): the tail of a row."""
        return FirstLanes(self.builder.icmp_signed("<", constants(count.type, range(self.width)), self.splat(count)), count)

    def extract(self, value: ir.Value, lane: int | ir.Value) -> ir.Value:
        """One lane of a varying value; a uniform one unchanged."""
        if not is_varying(value):
            return value
        return self.builder.extract_element(value, ir.Constant(I32, lane) if isinstance(lane, int) else lane)

    def matched(self, *values: Value) -> list[ir.Value]:
        """Operands of one shape: numbers take the first value's type, uniforms are splatted beside varyings."""
        type_ = next(element_type(value) for value in values if isinstance(value, ir.Value))
        found = [value if isinstance(value, ir.Value) else scalar_constant(type_, value) for value in values]
        return [self.splat(value) for value in found] if any(map(is_varying, found)) else found

    def intrinsic(
        self, name: str, result: ir.Type, arguments: list[ir.Value], *, overloads: tuple[ir.Type, ...] = (),
        aligned: tuple[int, int] | None = None,
    ) -> ir.Value:
        """Call `llvm.<name>`; `overloads` are the types its name is mangled with (the result's by default)."""
        full_name = ".".join(["llvm", name, *map(mangled, overloads or (result,))])
        return self.builder.call(
            self.declared(full_name, result, [argument.type for argument in arguments]), arguments, aligned)

    def declared(self, name: str, result: ir.Type, parameters: list[ir.Type]) -> ir.Function:
        """The module's function `name`, declared at its first use."""
        known = self.builder.module.globals.get(name)
        return known or ir.Function(self.builder.module, ir.FunctionType(result, parameters), name)

    def called(self, symbol: str, result: ir.Type, operands: Sequence[ir.Value], spelled: Callable[..., ir.Value]) -> ir.Value:
        """Call the module's function `symbol`, whose body `spelled(lanes, *operands)` emits at its first use."""
        function = self.builder.module.globals.get(symbol)
        if function is None:
            function = ir.Function(self.builder.module, ir.FunctionType(result, [x.type for x in operands]), symbol)
            function.linkage = "internal"
            inside = type(self)(ir.IRBuilder(function.append_basic_block("entry")), self.width)
            inside.builder.ret(spelled(inside, *function.args))
        return self.builder.call(function, operands)

    # ---- arithmetic ----
    add, subtract, multiply = _by_type("fadd", "add"), _by_type("fsub", "sub"), _by_type("fmul", "mul")
    divide = _by_type("fdiv", "")  # of floats; integers have `floor_divide`

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

    def add_products_of_pairs(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """c plus both products of the two bfloat16 numbers that are in each element of a and b; denormals count as 0."""
        a, b, c = self.matched(a, b, c)
        pairs = ir.VectorType(ir.BFLOAT, 2 * a.type.count)
        function = self.declared("llvm.x86.avx512bf16.dpbf16ps.512", c.type, [c.type, pairs, pairs])
        return self.builder.call(function, [c, *[self.builder.bitcast(x, pairs) for x in (a, b)]])

    square_root, floor, ceil, truncate = _intrinsic("sqrt"), _intrinsic("floor"), _intrinsic("ceil"), _intrinsic("trunc")
    rint = _intrinsic("rint")  # the nearest integer, a half to the even one

    def copy_sign(self, magnitude: Value, sign: Value) -> ir.Value:
        magnitude, sign = self.matched(magnitude, sign)
        return self.intrinsic("copysign", magnitude.type, [magnitude, sign])

    def has_scaling(self, x: ir.Value) -> bool:
        """Whether there is `times_power_of_two`: of vectors that fill registers of AVX-512."""
        return is_varying(x) and vector_bytes() == 64 and x.type.count * SIZE[x.type.element] >= 64

    def times_power_of_two(self, x: ir.Value, k: ir.Value) -> ir.Value:
        """x * 2^k, rounded once, for whole k."""
        count = 64 // SIZE[x.type.element]
        name = "llvm.x86.avx512.mask.scalef." + ("ps.512" if count == 16 else "pd.512")
        register, bits = ir.VectorType(x.type.element, count), ir.IntType(count)
        scale = self.declared(name, register, [register, register, register, bits, I32])
        nothing, all_lanes, rounding = ir.Constant(register, "zeroinitializer"), bits(-1), I32(4)
        parts = []
        for first in range(0, x.type.count, count):
            of_part = constants(I32, range(first, first + count))
            part, power = (self.builder.shuffle_vector(v, v, of_part) for v in (x, k))
            parts.append(self.builder.call(scale, [part, power, nothing, all_lanes, rounding]))
        return joined(self.builder, parts)

    def minimum(self, a: Value, b: Value, dtype: str | None = None) -> ir.Value:
        """The lesser; NaN if either is NaN. Integers are signed unless `dtype` says otherwise."""
        return self._extremum("minimum", "min", a, b, dtype)

    def maximum(self, a: Value, b: Value, dtype: str | None = None) -> ir.Value:
        """The greater; NaN if either is NaN. Integers are signed unless `dtype` says otherwise."""
        return self._extremum("maximum", "max", a, b, dtype)

    def _extremum(self, float_name: str, int_name: str, a: Value, b: Value, dtype: str | None) -> ir.Value:
        a, b = self.matched(a, b)
        if is_floating(a):
            return self.intrinsic(float_name, a.type, [a, b]) if is_varying(a) else self._float_extremum(int_name, a, b)
        unsigned = dtype in UNSIGNED or element_type(a) == I1
        return self.intrinsic(("u" if unsigned else "s") + int_name, a.type, [a, b])

    def _float_extremum(self, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """The extremum of two numbers by selections: LLVM's intrinsic branches on a sign before AVX-512."""
        # Zen 4, scattered maxima of 1024 x 1024 random numbers with AVX2 code: 23 cycles each, by selections 5.
        builder, (x, y) = self.builder, (self.bitcast_to_int(v) for v in (a, b))
        zero = self.bitcast_to_float(builder.and_(x, y) if name == "max" else builder.or_(x, y))  # of zeros of both signs
        picked = builder.select(builder.fcmp_ordered(">" if name == "max" else "<", a, b), a, b)
        picked = builder.select(builder.fcmp_ordered("==", a, b), zero, picked)
        return builder.select(builder.fcmp_unordered("uno", a, b), builder.fadd(a, b), picked)

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
        """`value`, with the lanes of `mask` taken from `rare()`, whose code is skipped if there are none."""
        # A branch, not a select alone: the rare path calls the C library for each lane.
        # Measured: a sine compiles in 29 ms instead of 94, with huge angles left to the C library.
        [result] = self.builder.replaced(self.any_lane(mask), [value], lambda: [self.select(mask, rare(), value)], likely=False)
        return result

    def repeated(self, state: Sequence[Value], step: Callable[..., tuple[ir.Value, Sequence[ir.Value]]]) -> Sequence[ir.Value]:
        """`goes_on, state = step(*state)` until no lane goes on. A step leaves the state of lanes that are through as it is."""
        def for_all(*now: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
            goes_on, following = step(*now)
            return self.any_lane(goes_on), following

        return self.builder.repeated(self.matched(*state), for_all)

    def per_lane(self, function: ir.Function, *arguments: ir.Value) -> ir.Value:
        """A scalar function applied to each lane in turn: for rare paths."""
        arguments = tuple(self.matched(*arguments))
        if not is_varying(arguments[0]):
            return self.builder.call(function, arguments)
        b, result_type = self.builder, ir.VectorType(function.function_type.return_type, self.width)

        def one(lane: ir.Value, result: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
            value = b.call(function, [b.extract_element(argument, lane) for argument in arguments])
            grown, following = b.insert_element(result, value, lane), lane + 1
            return b.icmp_unsigned("<", following, I32(self.width)), [following, grown]

        return b.repeated([I32(0), ir.Constant(result_type, "poison")], one)[1]

    def horizontal_reduce(self, combine: Callable[[ir.Value, ir.Value], ir.Value], x: ir.Value) -> ir.Value:
        """All lanes combined into one value: lane i with lane i + width/2, a balanced tree with the same bits every time."""
        while is_varying(x) and x.type.count > 1:
            half = x.type.count // 2
            lower = self.builder.shuffle_vector(x, x, constants(I32, range(half)))
            upper = self.builder.shuffle_vector(x, x, constants(I32, range(half, 2 * half)))
            x = combine(lower, upper)
        return self.extract(x, 0)

    # ---- bits ----
    logical_and, logical_or, logical_xor = _by_type("", "and_"), _by_type("", "or_"), _by_type("", "xor")
    shift_left, shift_right_logical = _by_type("", "shl"), _by_type("", "lshr")
    shift_right_arithmetic = _by_type("", "ashr")

    def logical_not(self, x: ir.Value) -> ir.Value:
        return self.logical_xor(x, -1)

    def trailing_zeros(self, x: ir.Value) -> ir.Value:
        """The zeros below an integer's lowest one; undefined for 0."""
        return self.intrinsic("cttz", x.type, [x, ir.Constant(I1, 1)])

    def rotate_left(self, x: Value, count: Value) -> ir.Value:
        x, count = self.matched(x, count)
        return self.intrinsic("fshl", x.type, [x, x, count])

    def bitcast_to_int(self, x: ir.Value) -> ir.Value:
        """The bits of a float, as an integer of its size."""
        return self.builder.bitcast(x, with_shape(I64 if element_type(x) == DOUBLE else I32, x))

    def bitcast_to_float(self, x: ir.Value) -> ir.Value:
        """The float whose bits are a 32- or 64-bit integer."""
        return self.builder.bitcast(x, with_shape(DOUBLE if element_type(x) == I64 else FLOAT, x))
