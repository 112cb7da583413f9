"""Reductions: identities, accumulators in lanes and their horizontal reduction, and column sums in memory."""

from __future__ import annotations

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.arithmetic import Arithmetic
from genesis.codegen.cpu.kernel_args import ROOM
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.nest import Nest
from genesis.codegen.cpu.registers import (
    DOUBLE, FLOAT, FLOATING, I1, I8, I32, I64, POINTER, REGISTER_TYPE, constants, is_varying,
)
from genesis.codegen.cpu.values import effect, value_of

_INTEGER_RANGE = {"bool": (0, 1)}
for _bits in (8, 16, 32, 64):
    _INTEGER_RANGE |= {f"int{_bits}": (-(1 << _bits - 1), (1 << _bits - 1) - 1), f"uint{_bits}": (0, (1 << _bits) - 1)}
# The primitive that combines two values of a reduction.
_OPERATIONS = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "bitwise_or", "all": "bitwise_and"}


def identity(name: str, dtype: str) -> float:
    """The identity of a reduction: the result of no values, and the value of a masked lane."""
    if name in ("sum", "any"):
        return 0
    if name in ("prod", "all"):
        return 1
    least = name in ("max", "argmax")
    if dtype in FLOATING:
        return float("-inf") if least else float("inf")
    return _INTEGER_RANGE[dtype][0 if least else 1]


class Accumulator:
    """A running reduction on the stack, of vectors or (not `varying`) of scalars; `arg` reductions keep positions too, as
    integers of dtype `at`, which come in order or not."""

    def __init__(self, lanes: Lanes, name: str, dtype: str, varying: bool, at: str = "int64", in_order: bool = True) -> None:
        self.lanes = lanes
        self.name = name
        self.dtype = dtype
        self.type = REGISTER_TYPE[dtype]
        self.varying = varying
        self.width = lanes.width  # of the slots; values may have fewer lanes, the first ones
        self.slot = self._slot(self.type)
        self.at = at
        self.in_order = in_order
        self.positions = self._slot(REGISTER_TYPE[at]) if name.startswith("arg") else None
        # `max` and `min` of floats keep two numbers: the extreme, if there was no NaN, and the largest magnitude as an
        # integer, which exceeds infinity's if there was one. These are two short dependency chains, where an extreme that
        # propagates NaNs is a chain of six operations.
        # Measured: row maxima of 2048 x 2048 0.20 to 0.12 ms.
        self.bits = ir.IntType({FLOAT: 32, DOUBLE: 64}[self.type]) if name in ("max", "min") and dtype in FLOATING else None
        b = lanes.builder
        b.store(self._shaped(lanes.constant(dtype, identity(name, dtype))), self.slot)
        if self.positions is not None:
            # Position 0 stands for the identity; any element replaces it.
            b.store(self._shaped(REGISTER_TYPE[at](0)), self.positions)
        if self.bits:
            self.magnitude = self._slot(self.bits)
            b.store(self._shaped(self.bits(0)), self.magnitude)

    def _slot(self, type_: ir.Type) -> ir.Value:
        return self.lanes.builder.alloca(self._vector(type_))

    def _shaped(self, x: ir.Value) -> ir.Value:
        return self.lanes.splat(x) if self.varying else x

    def value(self) -> ir.Value:
        """The accumulated value per lane; of argmax and argmin, the position."""
        value = self._current(self.slot) if self.positions is None else self._current(self.positions)
        return self._marked(value, self._current(self.magnitude)) if self.bits else value

    # Slots are loaded and stored whole: a store of four truth values would write all eight bits of a byte.

    def _current(self, slot: ir.Value) -> ir.Value:
        whole = self.lanes.builder.load(slot)
        if not self.varying or self.lanes.width == self.width:
            return whole
        return self.lanes.builder.shuffle_vector(whole, whole, constants(I32, range(self.lanes.width)))

    def _keep(self, x: ir.Value, slot: ir.Value) -> None:
        b, few = self.lanes.builder, self.lanes.width
        if self.varying and few < self.width:
            wider = b.shuffle_vector(x, x, constants(I32, [n % few for n in range(self.width)]))
            order = [n if n < few else self.width + n for n in range(self.width)]
            x = b.shuffle_vector(wider, b.load(slot), constants(I32, order))
        b.store(x, slot)

    def _vector(self, type_: ir.Type) -> ir.Type:
        return ir.VectorType(type_, self.lanes.width) if self.varying else type_

    def _marked(self, number: ir.Value, magnitude: ir.Value) -> ir.Value:
        """`number`, or NaN where the largest magnitude exceeds infinity."""
        lanes = self.lanes
        infinite = lanes.bitcast_to_int(lanes.constant(self.dtype, float("inf")))
        nan = lanes.builder.icmp_unsigned(">", *lanes.matched(magnitude, infinite))
        return lanes.select(nan, lanes.constant(self.dtype, float("nan")), number)

    def _further(self, x: ir.Value, current: ir.Value) -> ir.Value:
        """The greater (or lesser) of two numbers; `x` of equal ones, so that zeros of a scan have the last one's sign."""
        return self.lanes.select(self.lanes.compare(">" if self.name == "max" else "<", current, x, self.dtype), current, x)

    def _larger(self, x: ir.Value, current: ir.Value) -> ir.Value:
        return self.lanes.builder.select(self.lanes.builder.icmp_unsigned(">", x, current), x, current)

    def add(self, x: ir.Value, position: ir.Value | None, mask: ir.Value | None) -> None:
        """Accumulate one value, or one per lane; masked lanes are unchanged."""
        lanes = self.lanes
        x = self._shaped(x)
        if mask is not None and self.varying:
            x = lanes.select(mask, x, self._shaped(lanes.constant(self.dtype, identity(self.name, self.dtype))))
        current = self._current(self.slot)
        if self.bits:
            magnitude = lanes.bitcast_to_int(x) & self._shaped(self.bits((1 << self.bits.width - 1) - 1))
            self._keep(self._larger(magnitude, self._current(self.magnitude)), self.magnitude)
            self._keep(self._further(x, current), self.slot)
            return
        if self.positions is None:
            self._keep(self._combine(current, x), self.slot)
            return
        assert position is not None
        before = self._current(self.positions)
        better = self._better(current, x)  # false in masked lanes, which hold the identity
        position = self._shaped(lanes.convert(position, "int64", self.at))
        if not self.in_order:
            earlier = lanes.logical_and(self._equal(current, x), lanes.compare("<", position, before, self.at))
            earlier = lanes.logical_and(earlier, mask) if mask is not None and self.varying else earlier
            better = lanes.logical_or(better, earlier)
        self._keep(lanes.select(better, x, current), self.slot)
        self._keep(lanes.select(better, position, before), self.positions)

    def replace(self, x: ir.Value) -> None:
        """Continue from `x`; only for sums, in which masked lanes do not count."""
        self._keep(self._shaped(x), self.slot)

    def add_product(self, x: ir.Value, y: ir.Value, mask: ir.Value | None) -> None:
        """Accumulate x * y, rounded once with the sum; for sums of floats."""
        lanes, current = self.lanes, self._current(self.slot)
        total = lanes.fma(self._shaped(x), self._shaped(y), current)
        self._keep(lanes.select(mask, total, current) if mask is not None and self.varying else total, self.slot)

    def _better(self, current: ir.Value, x: ir.Value) -> ir.Value:
        """Whether the later value `x` replaces the current one: it is greater (less), or the first NaN."""
        lanes, order = self.lanes, ">" if self.name == "argmax" else "<"
        if self.dtype not in FLOATING:
            return lanes.compare(order, x, current, self.dtype)
        further = lanes.builder.fcmp_unordered(order, x, current)  # or one of them is NaN
        return lanes.logical_and(further, lanes.builder.fcmp_ordered("ord", current, current))

    def _equal(self, current: ir.Value, x: ir.Value) -> ir.Value:
        """Whether two values are equal, or both NaN."""
        lanes, equal = self.lanes, self.lanes.compare("==", x, current, self.dtype)
        if self.dtype not in FLOATING:
            return equal
        return lanes.logical_or(equal, lanes.logical_and(lanes.is_nan(x), lanes.is_nan(current)))

    def _combine(self, a: ir.Value, b: ir.Value) -> ir.Value:
        combined: ir.Value = getattr(Arithmetic(self.lanes, self.dtype), _OPERATIONS[self.name])(a, b)
        return combined

    def merge(self, other: Accumulator, mask: ir.Value | None = None) -> None:
        """Accumulate the value of another accumulator of the same reduction."""
        x = other.value()
        if is_varying(x) and not self.varying:
            x = other.reduced()
        self.add(x, None, mask if is_varying(x) else None)

    def reduced(self) -> ir.Value:
        """One value for all lanes."""
        if not self.varying:
            return self.value()
        lanes = self.lanes
        # Measured: row maxima of 65536 x 64 0.38 to 0.22 ms.
        if self.bits:  # number and magnitude separately, for short chains
            number = lanes.horizontal_reduce(self._further, self._current(self.slot))
            return self._marked(number, lanes.horizontal_reduce(self._larger, self._current(self.magnitude)))
        current = self.value()
        if self.positions is not None:
            return self._best_position(self._current(self.slot), current)
        return lanes.horizontal_reduce(self._combine, current)

    def _best_position(self, current: ir.Value, positions: ir.Value) -> ir.Value:
        """The position of the best lane; the first among equals."""
        lanes = self.lanes
        extreme = lanes.maximum if self.name == "argmax" else lanes.minimum
        best = lanes.horizontal_reduce(lambda x, y: extreme(x, y, self.dtype), current)
        attains = lanes.compare("==", current, best, self.dtype)
        if self.dtype in FLOATING:  # NaN is the best, but compares equal to nothing
            attains = lanes.logical_or(attains, lanes.is_nan(current))
        nowhere = REGISTER_TYPE[self.at](_INTEGER_RANGE[self.at][1])
        return lanes.horizontal_reduce(lambda x, y: lanes.minimum(x, y, self.at), lanes.select(attains, positions, nowhere))


# ---- column sums in a kernel that passes over rows: per share of the rows ----
# A share's sums are contiguous in `partials` and padded, so a row's last vector is added whole. The finishing function adds the
# sums of all shares in order.
# Measured, in the pass over rows: layer norm's gradients 6.5 to 2.35 ms, GELU's with column sums 1.85 to 1.1. A vector that is
# added whole: 30000 x 100 of float64 0.93 to 0.49 ms.
NUMBER = 8  # bytes, whatever the type


def clear_columns(nest: Nest) -> None:
    """Zero all sums before the first row."""
    if nest.columns:
        size = _bytes(nest) * len(nest.columns)
        start = _part(nest, nest.share * size)
        fill = nest.lanes.declared("llvm.memset.p0.i64", ir.VOID, [POINTER, I8, I64, I1])
        fill(start, I8(0), size, I1(0))


def add_to_columns(nest: Nest, n: int) -> None:
    """Add the present lanes to column sum `n`."""
    lanes, instruction = nest.lanes, nest.kernel.instructions[n]
    dtype = instruction.dtype.compute.name
    value = lanes.splat(value_of(nest, instruction.args[0]))
    # Zeros beyond the row's end instead of a masked store: a load after a masked store is not forwarded, and waits for the
    # cache.
    if nest.mask is not None:
        value = lanes.select(nest.mask, value, lanes.constant(dtype, 0))
    at = _address(nest, n, nest.share)
    lanes.store(Arithmetic(lanes, dtype).add(lanes.load(at, dtype), value), at, dtype)


def finish_columns(nest: Nest) -> None:
    """The body of the finishing function: for each column, the shares' sums and what depends on them."""
    kernel, b = nest.kernel, nest.builder
    lane = kernel.lane
    assert lane is not None

    def columns() -> None:
        for n in nest.columns:
            dtype = kernel.instructions[n].dtype
            total = Accumulator(nest.lanes, "sum", dtype.compute.name, varying=True)
            with nest.loop(I64(0), nest.words[nest.word_of("shares")]) as share:
                total.add(nest.lanes.load(_address(nest, n, share), dtype.compute.name, nest.mask), None, None)
            nest.scopes[-1][nest.key(n)] = nest.lanes.round_to(dtype.name, total.value())
        stores = [i for i in kernel.instructions if i.name == "store" and i.level == "column"]
        for i in stores:
            value_of(nest, i.args[0])  # reads come first: a result may alias an input
        for i in stores:
            effect(nest, i)

    nest.loops(kernel.inner, lambda: None, lambda: nest.lane_loop(I64(0), nest.words[kernel.axes[lane][0]], columns))
    b.ret_void()


def _bytes(nest: Nest) -> ir.Value:
    """The size of one sum of all columns."""
    count: ir.Value = I64(1)
    for word, reduced in nest.kernel.axes:
        count = count * nest.words[word] if reduced else count
    return (count + ROOM) * NUMBER


def _part(nest: Nest, offset: ir.Value) -> ir.Value:
    return nest.builder.gep(nest.words[nest.word_of("partials")], [offset], inbounds=True, source_etype=I8)


def _address(nest: Nest, n: int, share: ir.Value) -> ir.Value:
    """The address of the present lanes of `share`'s sum `n`."""
    number = share * len(nest.columns) + nest.columns.index(n)
    at: ir.Value = I64(0)
    for axis, (word, reduced) in enumerate(nest.kernel.axes):
        at = at * nest.words[word] + nest.index[axis] if reduced else at
    dtype = nest.kernel.instructions[n].dtype.compute.name
    return nest.lanes.element_pointer(_part(nest, number * _bytes(nest)), at, dtype)
