"""The values of a kernel, each computed once where its axes are bound; their stores and scatters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.addressing import (
    address, flat_index, known_stride, lane_offsets, lane_stride, load_strided, store_strided,
)
from genesis.codegen.cpu.arithmetic import Arithmetic
from genesis.codegen.cpu.complex_memory import Pair, load_pair, store_pair
from genesis.codegen.cpu.nest import LINE, Nest
from genesis.codegen.cpu.registers import I64, PART, REGISTER_TYPE, is_varying, mangled, with_shape
from genesis.codegen.cpu.transposing_tiles import prefetch_next_block, tile_address
from genesis.codegen.cpu.vector_math import random_bits
from genesis.lower.kernel import REDUCTIONS, Instruction
from genesis.ops.registry import PRIMITIVES

WRITTEN_AHEAD = 1024  # bytes: 512 to 4096 perform equally


def hoist(nest: Nest, needed: Sequence[int]) -> None:
    """Compute here the needed values that do not vary over inner loops."""
    for n in needed:
        i = nest.kernel.instructions[n]
        if i.name not in REDUCTIONS and i.varies <= nest.bound and not nest.is_computed(n) and all(
            nest.is_computed(a) for a in i.args
        ):
            value_of(nest, n)


def value_of(nest: Nest, n: int) -> ir.Value:
    """The register with instruction `n`'s value, computed here if no open scope has it."""
    key = nest.key(n)
    for scope in reversed(nest.scopes):
        if key in scope:
            return scope[key]
    # Saved by an earlier pass, as a load is cheaper than an exponential.
    if n in nest.saved_in and nest.saved_in[n] < nest.step:
        result = nest.lanes.load(_scratch(nest, n), _scratch_dtype(nest, n), nest.mask)
    else:
        for a in nest.kernel.instructions[n].args:
            value_of(nest, a)
        result = computed(nest, nest.kernel.instructions[n])
        if n in nest.saved:
            nest.saved_in[n] = nest.step
            nest.lanes.store(result, _scratch(nest, n), _scratch_dtype(nest, n), nest.mask)
    nest.scopes[-1][key] = result
    return result


def _scratch_dtype(nest: Nest, n: int) -> str:
    return nest.kernel.words[nest.saved[n]].extra.name


def _scratch(nest: Nest, n: int) -> ir.Value:
    """The address where this worker saves the present lanes of value `n` for the next pass."""
    lane = nest.kernel.lane
    assert lane is not None
    row = nest.worker * nest.words[nest.kernel.axes[lane][0]]
    return nest.lanes.element_pointer(nest.words[nest.saved[n]], row + nest.index[lane], _scratch_dtype(nest, n))


def computed(nest: Nest, i: Instruction) -> ir.Value:
    """Emit instruction `i` on its arguments' values."""
    lanes = nest.lanes
    args = [value_of(nest, a) for a in i.args]
    dtype = i.dtype.name
    if i.name == "word":
        (word,) = nest.extra_words(i)
        if dtype in PART:  # a zero where there are no elements
            return Pair(*[lanes.constant(PART[dtype], 0)] * 2)  # type: ignore[return-value]
        return lanes.convert(word, "float64" if word.type == ir.DOUBLE else "int64", dtype)
    if i.name == "load":
        assert i.access is not None
        known = known_stride(nest, i.access)
        return load_strided(nest, i, known) if known > 1 else _read(nest, i, None)
    if i.name == "load_at":
        return _read(nest, i, _offset_along(nest, i, args[0]))
    if i.name == "index":
        assert i.access is not None
        return lanes.convert(flat_index(nest, i.access), "int64", dtype)
    if i.name in ("uniform", "normal"):
        return _random(nest, i, *args)
    if i.name == "cast":
        return lanes.convert(args[0], i.attr("source"), dtype)
    if i.name == "check_index":
        return _checked(nest, i, args[0])
    if i.name == "check_divisor":
        bad = lanes.compare("==", args[0], 0, dtype)
        return _mended(nest, i, args[0], bad, lambda bad: I64(0), 1)
    operand = dict(i.attrs).get("operand")
    return Arithmetic(lanes, dtype, operand).apply(i.name, PRIMITIVES[i.name].emit, args)


def _lanes_of(nest: Nest, i: Instruction) -> tuple[ir.Value, int | str]:
    """The address of the first lane's element, and the stride of lanes."""
    assert i.access is not None
    return (tile_address(nest, i), 1) if "tile" in dict(i.attrs) else (address(nest, i.access), lane_stride(nest, i.access))


def _offset_along(nest: Nest, i: Instruction, position: ir.Value) -> ir.Value:
    """The offset of an index along the axis that `i` indexes."""
    along = i.attr("along")
    return position if along == 1 else nest.lanes.multiply(position, nest.named(along))


def _read(nest: Nest, i: Instruction, indirect: ir.Value | None) -> ir.Value:
    lanes, dtype = nest.lanes, i.dtype.name
    start, stride = _lanes_of(nest, i)
    if stride == 1 and indirect is None and "tile" not in dict(i.attrs):
        prefetch_next_block(nest, i, start)
    if dtype in PART:
        return _read_pair(nest, start, stride, dtype, indirect)  # type: ignore[return-value]
    if indirect is not None and not is_varying(indirect):
        start, indirect = lanes.element_pointer(start, indirect, dtype), None
    if indirect is not None:
        offsets = indirect if stride == 0 else lanes.add(indirect, lane_offsets(nest, stride))
        return lanes.gather(start, offsets, dtype, nest.mask)
    if stride == 0:
        return lanes.load_uniform(start, dtype)
    if stride == 1:
        return lanes.load(start, dtype, nest.mask)
    if stride == -1:
        return lanes.load_reversed(start, dtype, nest.mask)
    return lanes.gather(start, lane_offsets(nest, stride), dtype, nest.mask)


def _read_pair(nest: Nest, start: ir.Value, stride: int | str, dtype: str, indirect: ir.Value | None) -> Pair:
    lanes = nest.lanes
    if indirect is not None and not is_varying(indirect):
        start, indirect = lanes.element_pointer(start, indirect, dtype), None
    if indirect is not None and stride != 0:
        indirect = lanes.add(indirect, lane_offsets(nest, stride))
    return load_pair(lanes, start, indirect, stride if isinstance(stride, int) else nest.named(stride), dtype, nest.mask)


def _random(nest: Nest, i: Instruction, seed: ir.Value, start: ir.Value) -> ir.Value:
    lanes = nest.lanes
    assert i.access is not None
    counter = lanes.add(start, flat_index(nest, i.access))
    spelled, dtype = partial(random_bits.draw, i.name, i.dtype.name), i.dtype.name
    if i.name not in lanes.shared:
        return spelled(lanes, seed, counter)
    symbol = ".".join([i.name, dtype, mangled(seed.type), mangled(counter.type)])
    return lanes.called(symbol, with_shape(REGISTER_TYPE[dtype], counter), [seed, counter], spelled)


def _checked(nest: Nest, i: Instruction, index: ir.Value) -> ir.Value:
    """The index, checked and counted from the front."""
    lanes = nest.lanes
    extent, wrap = nest.extra_words(i)[0], i.attr("wrap")
    lowest = -extent if wrap else I64(0)
    bad = lanes.compare(">=", lanes.subtract(index, lowest), extent - lowest, "uint64")  # below the lowest it wraps

    def seen(bad: ir.Value) -> ir.Value:
        if not is_varying(index):
            return index
        return lanes.horizontal_reduce(lanes.maximum, lanes.select(bad, index, lanes.constant("int64", -(1 << 63))))

    within = _mended(nest, i, index, bad, seen, 0)
    if not wrap:
        return within
    return lanes.select(lanes.compare("<", within, 0, "int64"), lanes.add(within, extent), within)


def _mended(
    nest: Nest, i: Instruction, value: ir.Value, bad: ir.Value, seen: Callable[[ir.Value], ir.Value], instead: int
) -> ir.Value:
    """The value, but `instead` in `bad` lanes; if there are any, the fault record says what was `seen` there."""
    # The kernel continues with valid values, so that no lane reads outside or divides by 0; the program stops after this
    # launch.
    b, lanes = nest.builder, nest.lanes
    extent, site, fault = nest.extra_words(i)
    if nest.mask is not None and is_varying(bad):
        bad = lanes.logical_and(bad, nest.mask)
    def mended() -> ir.Value:
        for position, word in enumerate((I64(1), site, seen(bad), extent)):
            b.store(word, b.gep(fault, [I64(position)], inbounds=True, source_etype=I64))
        return lanes.select(bad, instead, value)

    # In a branch: a select at each index would widen vectors of bools, which took a third of the loop.
    [within] = b.replaced(lanes.any_lane(bad), [value], lambda: [mended()], likely=False)
    return within


def effect(nest: Nest, i: Instruction) -> None:
    """Emit a store or a scatter of the present lanes."""
    if i.name == "scatter":
        _scatter(nest, i)
    else:
        stored(nest, i, value_of(nest, i.args[0]))


def stored(nest: Nest, i: Instruction, value: ir.Value) -> None:
    assert i.access is not None
    lanes, dtype = nest.lanes, i.dtype.name
    if (known := known_stride(nest, i.access)) > 1:
        store_strided(nest, i, value, known)
        return
    start, stride = _lanes_of(nest, i)
    if stride == 1:
        _store(nest, i, value if isinstance(value, Pair) else lanes.splat(value), start)
    elif isinstance(value, Pair):
        store_pair(lanes, value, start, stride if isinstance(stride, int) else nest.named(stride), dtype, nest.mask)
    elif stride == 0:
        lanes.store_uniform(value, start, dtype)
    else:
        lanes.scatter_store(lanes.splat(value), start, lane_offsets(nest, stride), dtype, nest.mask)


def _store(nest: Nest, i: Instruction, value: ir.Value | Pair, start: ir.Value) -> None:
    """Store a vector to adjacent elements; past the caches if the store streams and the vector is whole and aligned."""
    # Measured: a fifth off kernels with one output, as lines are not read before they are overwritten.
    b, lanes, dtype = nest.builder, nest.lanes, i.dtype.name
    assert i.access is not None

    def store(mask: ir.Value | None, past_caches: bool = False) -> None:
        if isinstance(value, Pair):
            lanes.wide_store(dict(enumerate(value)), start, PART[dtype], 2, mask, past_caches=past_caches)
        else:
            lanes.store(value, start, dtype, mask, past_caches=past_caches)

    if i.access.pointer not in nest.streams or "tile" in dict(i.attrs):
        _prefetch_written(nest, i, start)
        store(nest.mask)
        return
    # One comparison decides: `streams` is 0 or 1, `unaligned` is 0 where the store is aligned and unmasked.
    unaligned = b.ptrtoint(start, I64) & (LINE - 1)
    if nest.mask is not None:
        unaligned = unaligned | b.zext(~lanes.extract(nest.mask, lanes.width - 1), I64)
    with b.if_else(b.icmp_unsigned(">", nest.streams[i.access.pointer], unaligned)) as (past_caches, through_caches):
        with past_caches:
            store(None, past_caches=True)
        with through_caches:
            _prefetch_written(nest, i, start)
            store(nest.mask)


def _prefetch_written(nest: Nest, i: Instruction, start: ir.Value) -> None:
    """Prefetch the lines that rows of whole vectors will be stored to."""
    # Hardware prefetches too few. Cascade Lake, one thread, in C: 4 MB of products of two vectors 258 to 196 us, 4 MB clamped
    # 399 to 365; in a second-level cache no difference, 8 KB in a first-level one 0.14 to 0.16.
    size, kernel = i.dtype.itemsize, nest.kernel
    if nest.mask is not None or kernel.inner or kernel.lane not in nest.bound or nest.lanes.width * size < LINE:
        return
    for byte in range(WRITTEN_AHEAD, WRITTEN_AHEAD + nest.lanes.width * size, LINE):
        nest.lanes.prefetch(nest.lanes.element_pointer(start, byte // size, i.dtype.name), to_write=True)


def _scatter(nest: Nest, i: Instruction) -> None:
    assert i.access is not None
    lanes, dtype = nest.lanes, i.dtype.name
    position, value = (value_of(nest, a) for a in i.args)
    moved = _offset_along(nest, i, position)
    start, stride = address(nest, i.access), lane_stride(nest, i.access)
    if not is_varying(moved):
        start = lanes.element_pointer(start, moved, dtype)
    mode = i.attr("mode")
    arithmetic = Arithmetic(lanes, dtype)
    combine = None if mode == "set" else lambda *values: arithmetic.apply(mode, PRIMITIVES[mode].emit, [*values])
    if is_varying(moved) or stride not in (0, 1):
        offsets = lanes.splat(moved) if is_varying(moved) else lane_offsets(nest, stride)
        if is_varying(moved) and stride != 0:
            offsets = lanes.add(offsets, lane_offsets(nest, stride))
        new = combine(lanes.gather(start, offsets, dtype, nest.mask), value) if combine else value
        lanes.scatter_store(lanes.splat(new), start, offsets, dtype, nest.mask)
    elif stride == 1:
        new = combine(lanes.load(start, dtype, nest.mask), value) if combine else value
        lanes.store(lanes.splat(new), start, dtype, nest.mask)
    else:
        lanes.store_uniform(combine(lanes.load_uniform(start, dtype), value) if combine else value, start, dtype)
