"""From drafts of instructions, whose maps are numbers, to a Kernel, whose maps are words: its axes, its lanes, its text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from genesis.ir.dtypes import DType
from genesis.ir.shapes import numel
from genesis.lower.group import COLUMN, FINAL, FULL, Axis
from genesis.lower.index_map import IndexMap
from genesis.lower.kernel import REDUCTIONS, Access, Instruction, Kernel, Word

__all__ = ["Draft", "kernel_of"]

MOST_TAPS = 4  # neighbours that a vector's elements may be apart
FOLD = 16  # elements of a row that take as long as it takes to make one number of its sum's lanes
ROW_SHARE = 1 / 16  # what an access once a row weighs beside one at every point, when the lane axis is chosen


class Draft(NamedTuple):
    """An instruction whose map is not yet made of words."""

    name: str
    args: tuple[int, ...]
    dtype: DType
    level: str
    step: int
    map: IndexMap | None
    storage: int | None
    attrs: tuple[tuple[str, Any], ...]
    words: tuple[Word, ...]
    origin: int


def kernel_of(nest: Sequence[Axis], drafts: Sequence[Draft], tapped: bool = True) -> tuple[Kernel, tuple[int, ...]]:
    """The kernel that computes `drafts` at the points of `nest`, with taps only if `tapped`; and the extents of its axes."""
    axes, maps = _merged(nest, [d.map for d in drafts])
    lane, taps, apart = _lane(axes, drafts, maps, tapped)
    order = [a for a in range(len(axes)) if not axes[a][1] and a != lane]
    order += [a for a in range(len(axes)) if axes[a][1] and a != lane]
    order += [lane] if lane is not None else []
    axes = [axes[a] for a in order]
    taps = {order.index(a): axes[order.index(a)][0] for a in sorted(taps)}
    place = None if lane is None else len(axes) - 1
    words = [Word("extent", extent) for extent, _ in axes]
    if place is not None:
        words += [Word("block"), Word("blocks")]
    instructions: list[Instruction] = []
    for draft, at in zip(drafts, maps, strict=True):
        instructions.append(_instruction(draft, at, order, axes, taps, apart, words, instructions))
    if any(d.level in (COLUMN, FINAL) for d in drafts):
        words += [Word("partials"), Word("items"), Word("shares")]
    named = [(n, r) for n, (_, r) in enumerate(axes)]
    origins = [d.origin for d in drafts]
    kernel = Kernel(named, place, instructions, words, taps, origins)
    if kept := kernel.kept():
        words += [Word("scratch", n, instructions[n].dtype.compute) for n in kept]
        kernel = Kernel(named, place, instructions, words, taps, origins)
    return kernel, tuple(e for e, _ in axes)


def _instruction(
    draft: Draft, at: IndexMap | None, order: Sequence[int], axes: Sequence[Axis], taps: Mapping[int, int],
    apart: bool, words: list[Word], before: Sequence[Instruction],
) -> Instruction:
    varies: frozenset[int] = frozenset().union(*[before[a].varies for a in draft.args]) if draft.args else frozenset()
    access = None
    attrs = draft.attrs
    if at is not None:
        strides = [at.strides[a] for a in order]
        varies |= frozenset([a for a, s in enumerate(strides) if s])
        size = draft.dtype.itemsize
        if draft.storage is not None:
            pointer = len(words)
            words.append(Word("pointer", draft.storage, at.offset * size))
        else:
            pointer = len(words)
            words.append(Word("stride", at.offset))
        classes: list[int | str] = []
        for axis, s in enumerate(strides):
            if s == 0 or (s == 1 and (axis in taps or axis == len(strides) - 1)) or (
                apart and axis == len(strides) - 1 and 1 < s <= MOST_TAPS
            ):
                classes.append(s)
            else:
                classes.append(f"w{len(words)}")
                words.append(Word("stride", s))
        access = Access(pointer, tuple(classes), draft.dtype)
    if draft.name == "store" and draft.level == FULL and access is not None and access.strides[-1:] == (1,):
        attrs += (("stream", f"w{len(words)}"),)
        words.append(Word("stream", draft.storage))
    if draft.words:
        attrs += (("words", ",".join(f"w{len(words) + n}" for n in range(len(draft.words)))),)
        words.extend(draft.words)
    if draft.name in REDUCTIONS and draft.level != FULL:
        reduced = frozenset(a for a, (_, r) in enumerate(axes) if r)
        varies = frozenset() if draft.level == FINAL else varies & reduced if draft.level == COLUMN else varies - reduced
    return Instruction(draft.name, draft.args, draft.dtype, draft.level, varies, draft.step, access, attrs)


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
    axes: Sequence[Axis], drafts: Sequence[Draft], maps: Sequence[IndexMap | None], tapped: bool
) -> tuple[int | None, Collection[int], bool]:
    """The axis to run as vectors, along which most accesses are to neighbours; its taps; and whether what lies between
    two lanes' elements is read too.

    A tap is a short axis along which some access is to neighbours where it steps over them along the lanes. A scatter goes
    along reduced axes one by one; a place among them is counted with the last one running fastest. Sums of columns are kept
    beside rows, along which lanes run. Along a reduced axis lanes have to become one number, which is dear for short rows.
    """
    scatters = any(d.name in ("scatter", "scan") for d in drafts)
    reduced = [axis for axis, (_, r) in enumerate(axes) if r]
    columns = any(d.level == COLUMN for d in drafts)
    barred = reduced if scatters else reduced[:-1] if any(d.name.startswith("arg") for d in drafts) else ()
    free = [axis for axis in range(len(axes) - 1, -1, -1) if axis not in barred and (axes[axis][1] or not columns)]
    memory = [(_share(axes, draft, at, tapped), at.strides) for draft, at in zip(drafts, maps, strict=True)
              if draft.storage is not None and at is not None and draft.level not in (COLUMN, FINAL)]
    pairs = () if scatters or columns or not tapped else {
        (lane, tap) for tap, (extent, _) in enumerate(axes) if extent > 1
        for lane in free if lane != tap
        for _, strides in memory if strides[tap] == 1 < strides[lane] <= MOST_TAPS
    }
    short = {(lane, tap) for lane, tap in pairs if axes[tap][0] <= MOST_TAPS}
    row = numel(extent for extent, r in axes if r)
    best, chosen = -1.0, None
    for axis in free:
        if any(tap == axis for _, tap in short):
            continue
        steps = [(share, strides[axis]) for share, strides in memory]
        score = sum(share * (3 if s == 1 else 1 if s == 0 else 0) for share, s in steps)
        score = (score + 1 / 3) * min(axes[axis][0], 16) / 16
        if axes[axis][1] and tapped:
            score *= row / (row + FOLD)
        if any(lane == axis for lane, _ in pairs):
            score += 2 * sum(share for share, s in steps if 1 < s <= MOST_TAPS)
        if score > best:
            best, chosen = score, axis
    if chosen is not None and any(d.name == "scan" for d in drafts) and all(strides[chosen] != 1 for _, strides in memory):
        return None, (), False  # row by row: each reads and writes along itself
    return chosen, {tap for lane, tap in short if lane == chosen}, any(lane == chosen for lane, _ in pairs)


def _share(axes: Sequence[Axis], draft: Draft, at: IndexMap, tapped: bool) -> float:
    """What an access weighs when the lane axis is chosen: where there are no taps, the share of its elements in all points.

    There lanes are threads, which wait for memory together: what a row or a column has once comes from a cache.
    """
    if tapped or draft.name not in ("load", "store"):
        return 1.0 if draft.level == FULL else ROW_SHARE
    varied = numel(extent for (extent, _), stride in zip(axes, at.strides, strict=True) if stride)
    return varied / max(1, numel(extent for extent, _ in axes))
