"""Values of a kernel's instructions on the present lanes, each computed once, in the outermost loop that has its operands."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from genesis.codegen.cpu.addressing import address, flat_index, known_stride, lane_offsets, lane_stride
from genesis.codegen.cpu.arithmetic import Arithmetic
from genesis.codegen.cpu.nest import Nest
from genesis.codegen.cpu.registers import I64, is_varying
from genesis.codegen.cpu.unrolled_axes import load_strided
from genesis.codegen.cpu.vector_math import random_bits
from genesis.lower.kernel import REDUCTIONS, Access, Instruction
from genesis.ops.registry import PRIMITIVES

__all__ = ["hoist", "value_of"]


def hoist(nest: Nest, needed: Sequence[int]) -> None:
    """Compute here the needed values that vary over no inner loop."""
    for n in needed:
        i = nest.kernel.instructions[n]
        if i.name not in REDUCTIONS and i.varies <= nest.bound and not nest.is_computed(n) and all(
            nest.is_computed(a) for a in i.args
        ):
            value_of(nest, n)


def value_of(nest: Nest, n: int) -> ir.Value:
    """The register with instruction `n`'s value; it is computed here if no outer scope has it."""
    key = nest.key(n)
    for scope in reversed(nest.scopes):
        if key in scope:
            return scope[key]
    # Saved by an earlier pass: a load is cheaper than an exponential.
    if n in nest.saved_in and nest.saved_in[n] < nest.step:
        result = nest.lanes.load(_scratch(nest, n), _scratch_dtype(nest, n), nest.mask)
    else:
        for a in nest.kernel.instructions[n].args:
            value_of(nest, a)
        result = _compute(nest, nest.kernel.instructions[n])
        if n in nest.saved:
            nest.saved_in[n] = nest.step
            nest.lanes.store(result, _scratch(nest, n), _scratch_dtype(nest, n), nest.mask)
    nest.scopes[-1][key] = result
    return result


def _scratch_dtype(nest: Nest, n: int) -> str:
    return nest.kernel.words[nest.saved[n]].extra.name


def _scratch(nest: Nest, n: int) -> ir.Value:
    """The address where this worker saves the present lanes of value `n` for the next pass."""
    lane, b = nest.kernel.lane, nest.builder
    assert lane is not None
    row = b.mul(nest.worker, nest.words[nest.kernel.axes[lane][0]])
    return nest.lanes.element_pointer(nest.words[nest.saved[n]], b.add(row, nest.index[lane]), _scratch_dtype(nest, n))


def _compute(nest: Nest, i: Instruction) -> ir.Value:
    lanes = nest.lanes
    args = [value_of(nest, a) for a in i.args]
    dtype = i.dtype.name
    if i.name == "word":
        (word,) = nest.extra_words(i)
        return lanes.convert(word, "float64" if word.type == ir.DoubleType() else "int64", dtype)
    if i.name == "load":
        assert i.access is not None
        known = known_stride(nest, i.access)
        return load_strided(nest, i, known) if known > 1 else _read(nest, i.access, dtype, None)
    if i.name == "load_at":
        assert i.access is not None
        (stride,) = nest.extra_words(i)
        return _read(nest, i.access, dtype, lanes.multiply(args[0], stride))
    if i.name == "index":
        assert i.access is not None
        return lanes.convert(flat_index(nest, i.access), "int64", dtype)
    if i.name in ("uniform", "normal"):
        return _random(nest, i, *args)
    if i.name == "cast":
        return lanes.convert(args[0], i.attr("source"), dtype)
    if i.name == "check_index":
        return _checked(nest, i, args[0])
    operand = dict(i.attrs).get("operand")
    return Arithmetic(lanes, dtype, operand).apply(i.name, PRIMITIVES[i.name].emit, args)


def _read(nest: Nest, access: Access, dtype: str, indirect: ir.Value | None) -> ir.Value:
    lanes = nest.lanes
    start, stride = address(nest, access), lane_stride(nest, access)
    if indirect is not None and not is_varying(indirect):
        start, indirect = lanes.element_pointer(start, indirect, dtype), None
    if indirect is not None:
        offsets = indirect if stride == 0 else lanes.add(indirect, lane_offsets(nest, stride))
        return lanes.gather(start, offsets, dtype, nest.mask)
    if stride == 0:
        return lanes.load_uniform(start, dtype)
    if stride == 1:
        return lanes.load(start, dtype, nest.mask)
    return lanes.gather(start, lane_offsets(nest, stride), dtype, nest.mask)


def _random(nest: Nest, i: Instruction, seed: ir.Value, start: ir.Value) -> ir.Value:
    lanes = nest.lanes
    assert i.access is not None
    counter = lanes.add(start, flat_index(nest, i.access))
    halves = [_halves(nest, seed), _halves(nest, counter)]
    bits = random_bits.threefry2x32(lanes, *halves[0], *halves[1])
    if i.dtype.name == "float32":
        return random_bits.uniform_float32(lanes, bits[0]) if i.name == "uniform" else \
            random_bits.normal_float32(lanes, *bits)
    if i.name == "uniform":
        return random_bits.uniform_float64(lanes, *bits)
    # A second counter, 2^63 further on, that no draw reaches: a normal draw of float64 takes 128 random bits.
    upper = lanes.logical_xor(halves[1][1], lanes.constant("int32", -(1 << 31)))
    return random_bits.normal_float64(lanes, *bits, *random_bits.threefry2x32(lanes, *halves[0], halves[1][0], upper))


def _halves(nest: Nest, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    lanes = nest.lanes
    return (lanes.convert(x, "int64", "int32"),
            lanes.convert(lanes.shift_right_logical(x, 32), "int64", "int32"))


def _checked(nest: Nest, i: Instruction, index: ir.Value) -> ir.Value:
    """The index, proven in range: one out of range is written to the fault record and replaced by 0."""
    # The kernel runs on with valid indices: no lane reads outside, and the program stops after this launch.
    b, lanes = nest.builder, nest.lanes
    extent, site, fault = nest.extra_words(i)
    wrap = i.attr("wrap")
    lowest = b.neg(extent) if wrap else I64(0)
    bad = lanes.logical_or(lanes.compare("<", index, lowest, "int64"), lanes.compare(">=", index, extent, "int64"))
    if nest.mask is not None and is_varying(bad):
        bad = lanes.logical_and(bad, nest.mask)
    with b.if_then(lanes.any_lane(bad) if is_varying(bad) else bad, likely=False):
        seen = index
        if is_varying(index):
            seen = lanes.horizontal_reduce(lanes.maximum, lanes.select(bad, index, lanes.constant("int64", -(1 << 63))))
        for position, value in enumerate((I64(1), site, seen, extent)):
            b.store(value, b.gep(fault, [I64(position)], inbounds=True, source_etype=I64))
    within = lanes.select(bad, 0, index) if not is_varying(index) else lanes.select(bad, lanes.splat(I64(0)), index)
    if not wrap:
        return within
    return lanes.select(lanes.compare("<", within, 0, "int64"), lanes.add(within, extent), within)
