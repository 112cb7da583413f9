"""From unbound of instructions, whose maps are numbers, to a Kernel, whose maps are words: its axes, its lanes, its text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from genesis.ir.dtypes import DType
from genesis.ir.shapes import numel
from genesis.lower.group import COLUMN, FINAL, FULL, Axis
from genesis.lower.index_map import IndexMap
from genesis.lower.kernel import REDUCTIONS, Access, Instruction, Kernel, KernelArg

__all__ = ["UnboundInstruction", "bind"]

MOST_STRIDE = 4  # neighbours that a vector's elements may be apart
HORIZONTAL_REDUCE = 16  # elements of a row that take as long as it takes to make one number of its sum's lanes
ROW_WEIGHT = 1 / 16  # what an access once a row weighs beside one at every point, when the lane axis is chosen


class UnboundInstruction(NamedTuple):
    """An instruction whose map is numbers, not yet words."""

    name: str
    args: tuple[int, ...]
    dtype: DType
    level: str
    step: int
    map: IndexMap | None
    storage: int | None
    attrs: tuple[tuple[str, Any], ...]
    words: tuple[KernelArg, ...]
    origin: int


def bind(nest: Sequence[Axis], unbound: Sequence[UnboundInstruction], unroll: bool = True) -> tuple[Kernel, tuple[int, ...]]:
    """The kernel that computes `unbound` at the points of `nest`, with its axes' extents; short axes unrolled if `unroll`."""
    axes, maps = _merged(nest, [d.map for d in unbound])
    lane, unrolled, apart = _lane(axes, unbound, maps, unroll)
    order = [a for a in range(len(axes)) if not axes[a][1] and a != lane]
    order += [a for a in range(len(axes)) if axes[a][1] and a != lane]
    order += [lane] if lane is not None else []
    axes = [axes[a] for a in order]
    unrolled = {order.index(a): axes[order.index(a)][0] for a in sorted(unrolled)}
    place = None if lane is None else len(axes) - 1
    words = [KernelArg("extent", extent) for extent, _ in axes]
    if place is not None:
        words += [KernelArg("block"), KernelArg("blocks")]
    instructions: list[Instruction] = []
    for raw, at in zip(unbound, maps, strict=True):
        instructions.append(_instruction(raw, at, order, axes, unrolled, apart, words, instructions))
    if any(d.level in (COLUMN, FINAL) for d in unbound):
        words += [KernelArg("partials"), KernelArg("items"), KernelArg("shares")]
    named = [(n, r) for n, (_, r) in enumerate(axes)]
    origins = [d.origin for d in unbound]
    kernel = Kernel(named, place, instructions, words, unrolled, origins)
    if kept := kernel.kept():
        words += [KernelArg("scratch", n, instructions[n].dtype.compute) for n in kept]
        kernel = Kernel(named, place, instructions, words, unrolled, origins)
    return kernel, tuple(e for e, _ in axes)


def _instruction(
    raw: UnboundInstruction, at: IndexMap | None, order: Sequence[int], axes: Sequence[Axis],
    unrolled: Mapping[int, int], apart: bool, words: list[KernelArg], before: Sequence[Instruction],
) -> Instruction:
    varies: frozenset[int] = frozenset().union(*[before[a].varies for a in raw.args]) if raw.args else frozenset()
    access = None
    attrs = raw.attrs
    if at is not None:
        strides = [at.strides[a] for a in order]
        varies |= frozenset([a for a, s in enumerate(strides) if s])
        size = raw.dtype.itemsize
        if raw.storage is not None:
            pointer = len(words)
            words.append(KernelArg("pointer", raw.storage, at.offset * size))
        else:
            pointer = len(words)
            words.append(KernelArg("stride", at.offset))
        classes: list[int | str] = []
        for axis, s in enumerate(strides):
            if s == 0 or (s == 1 and (axis in unrolled or axis == len(strides) - 1)) or (
                apart and axis == len(strides) - 1 and 1 < s <= MOST_STRIDE
            ):
                classes.append(s)
            else:
                classes.append(f"w{len(words)}")
                words.append(KernelArg("stride", s))
        access = Access(pointer, tuple(classes), raw.dtype)
    if raw.name == "store" and raw.level == FULL and access is not None and access.strides[-1:] == (1,):
        attrs += (("stream", f"w{len(words)}"),)
        words.append(KernelArg("stream", raw.storage))
    if raw.words:
        attrs += (("words", ",".join(f"w{len(words) + n}" for n in range(len(raw.words)))),)
        words.extend(raw.words)
    if raw.name in REDUCTIONS and raw.level != FULL:
        reduced = frozenset(a for a, (_, r) in enumerate(axes) if r)
        varies = frozenset() if raw.level == FINAL else varies & reduced if raw.level == COLUMN else varies - reduced
    return Instruction(raw.name, raw.args, raw.dtype, raw.level, varies, raw.step, access, attrs)


def _merged(axes: Sequence[Axis], maps: Sequence[IndexMap | None]) -> tuple[list[Axis], list[IndexMap | None]]:
    """Neighbouring axes that every map crosses as one become one; axes of extent 1 go."""
    keep = [a for a, (extent, _) in enumerate(axes) if extent != 1]
    result = [axes[a] for a in keep]
    strides = [None if m is None else [m.strides[a] for a in keep] for m in maps]
    a = len(result) - 2
    while a >= 0:
        (outer, kind), (inner, other) = result[a], result[a + 1]
        if kind == other and all(s is None or s[a] == s[a + 1] * inner for s in strides):
            result[a : a + 2] = [(outer * inner, kind)]
            for s in strides:
                if s is not None:
                    del s[a]
        a -= 1
    return result, [None if m is None else IndexMap(m.offset, tuple(s or ())) for m, s in zip(maps, strides, strict=True)]


def _lane(
    axes: Sequence[Axis], unbound: Sequence[UnboundInstruction], maps: Sequence[IndexMap | None], unroll: bool
) -> tuple[int | None, Collection[int], bool]:
    """The axis to run as vectors, along which most accesses are to neighbours; its unrolled; and whether what lies between
    two lanes' elements is read too.

    A short is a short axis along which some access is to neighbours where it steps over them along the lanes. A scatter goes
    along reduced axes one by one; a place among them is counted with the last one running fastest. Sums of columns are kept
    beside rows, along which lanes run. Along a reduced axis lanes have to become one number, which is dear for short rows.
    """
    scatters = any(d.name in ("scatter", "scan") for d in unbound)
    reduced = [axis for axis, (_, r) in enumerate(axes) if r]
    columns = any(d.level == COLUMN for d in unbound)
    barred = reduced if scatters else reduced[:-1] if any(d.name.startswith("arg") for d in unbound) else ()
    free = [axis for axis in range(len(axes) - 1, -1, -1) if axis not in barred and (axes[axis][1] or not columns)]
    memory = [(_weight(axes, raw, at, unroll), at.strides) for raw, at in zip(unbound, maps, strict=True)
              if raw.storage is not None and at is not None and raw.level not in (COLUMN, FINAL)]
    pairs = () if scatters or columns or not unroll else {
        (lane, short) for short, (extent, _) in enumerate(axes) if extent > 1
        for lane in free if lane != short
        for _, strides in memory if strides[short] == 1 < strides[lane] <= MOST_STRIDE
    }
    short = {(lane, short) for lane, short in pairs if axes[short][0] <= MOST_STRIDE}
    row = numel(extent for extent, r in axes if r)
    best, chosen = -1.0, None
    for axis in free:
        if any(short == axis for _, short in short):
            continue
        steps = [(weight, strides[axis]) for weight, strides in memory]
        score = sum(weight * (3 if s == 1 else 1 if s == 0 else 0) for weight, s in steps)
        score = (score + 1 / 3) * min(axes[axis][0], 16) / 16
        if axes[axis][1] and unroll:
            score *= row / (row + HORIZONTAL_REDUCE)
        if any(lane == axis for lane, _ in pairs):
            score += 2 * sum(weight for weight, s in steps if 1 < s <= MOST_STRIDE)
        if score > best:
            best, chosen = score, axis
    if chosen is not None and any(d.name == "scan" for d in unbound) and all(strides[chosen] != 1 for _, strides in memory):
        return None, (), False  # row by row: each reads and writes along itself
    return chosen, {short for lane, short in short if lane == chosen}, any(lane == chosen for lane, _ in pairs)


def _weight(axes: Sequence[Axis], raw: UnboundInstruction, at: IndexMap, unroll: bool) -> float:
    """What an access weighs when the lane axis is chosen: where nothing is unrolled, its elements' share of all points.

    There lanes are threads, which wait for memory together: what a row or a column has once comes from a cache.
    """
    if unroll or raw.name not in ("load", "store"):
        return 1.0 if raw.level == FULL else ROW_WEIGHT
    varied = numel(extent for (extent, _), stride in zip(axes, at.strides, strict=True) if stride)
    return varied / max(1, numel(extent for extent, _ in axes))
