"""The fourth pass: from a group of nodes to a Kernel, by reading every value through its index map."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.fuse import (
    COLUMN,
    FINAL,
    FULL,
    ROW,
    Axis,
    Group,
    Partition,
    canonical_map,
    pattern_of,
    pull_views,
    split_axes,
)
from genesis.lower.index_map import IndexMap, SplitAxis, Unmappable, pull
from genesis.lower.kernel import REDUCTIONS, Access, Instruction, Kernel, Word
from genesis.ops.layout import Layout
from genesis.ops.registry import PRIMITIVES

__all__ = ["KernelCall", "Store", "build_group"]

MOST_TAPS = 4  # neighbours that a vector's elements may be apart
ROW_SHARE = 1 / 16  # what an access once a row weighs beside one at every point, when the lane axis is chosen


class Store(NamedTuple):
    """Value `node`, of the given level, goes to `layout` of the storage of `target` (None: all of it)."""

    node: int
    level: str
    target: int
    layout: Layout | None = None


class KernelCall(NamedTuple):
    """A kernel and the extents it runs over; `reads` and `writes` are the values whose storage it touches."""

    kernel: Kernel
    extents: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    nodes: tuple[int, ...]


def build_group(nodes: Sequence[Node], partition: Partition, group: Group) -> list[KernelCall]:
    """The kernels of a group, in order."""
    if group.kind == "loop":
        stores = [Store(m, group.levels[m], m) for m in group.members if m in partition.realized]
        return [_built(nodes, partition, group, group.axes, stores)] if stores else []
    (index,) = group.members
    node = nodes[index]
    if group.kind == "cat":
        return _cat(nodes, partition, index, node)
    flat = pattern_of((node.numel,), ())
    base = _built(nodes, partition, None, flat, [Store(node.inputs[0], FULL, index)])
    if group.kind == "put":
        at = Layout(node.attrs["shape"], node.attrs["strides"], node.attrs["offset"])
        inner = pattern_of((numel(at.shape),), ())
        return [base, _built(nodes, partition, None, inner, [Store(node.inputs[1], FULL, index, at)])]
    assert group.kind == "scatter", group.kind
    return [base, _scatter(nodes, partition, index, node)]


def _cat(nodes: Sequence[Node], partition: Partition, index: int, node: Node) -> list[KernelCall]:
    calls, start = [], 0
    strides = contiguous_strides(node.shape)
    dim = node.attrs["dim"]
    for i in node.inputs:
        shape = nodes[i].shape
        at = Layout(shape, strides, start * strides[dim])
        calls.append(_built(nodes, partition, None, pattern_of((numel(shape),), ()), [Store(i, FULL, index, at)]))
        start += shape[dim]
    return calls


def _scatter(nodes: Sequence[Node], partition: Partition, index: int, node: Node) -> KernelCall:
    """Along `dim` one source after the other, the other axes side by side: no two writers meet."""
    _, where, source = node.inputs
    dim = node.attrs["dim"]
    axes = pattern_of(nodes[where].shape, (dim,))

    def emit(build: _Build) -> None:
        at = canonical_map(build.axes, FULL)
        position, value = build.value(where, at), build.value(source, at)
        strides = contiguous_strides(node.shape)
        place = pull(at, build.extents, nodes[where].shape, _without(strides, dim), 0)
        build.scatter(index, place, position, strides[dim], value, node.attrs["mode"], node.dtype)

    return _restarted(nodes, partition, None, axes, emit)


def _without(strides: Sequence[int], dim: int) -> tuple[int, ...]:
    return tuple(0 if d == dim else s for d, s in enumerate(strides))


def _built(
    nodes: Sequence[Node], partition: Partition, group: Group | None, axes: tuple[Axis, ...], stores: Sequence[Store]
) -> KernelCall:
    def emit(build: _Build) -> None:
        for store in stores:
            at = canonical_map(build.axes, store.level)
            value = build.value(store.node, at)
            if store.layout is not None:
                at = pull(at, build.extents, store.layout.shape, store.layout.strides, store.layout.offset)
            build.store(store.target, at, value, store.level, nodes[store.node].dtype)

    return _restarted(nodes, partition, group, axes, emit)


def _restarted(
    nodes: Sequence[Node], partition: Partition, group: Group | None, axes: tuple[Axis, ...],
    emit: Callable[[_Build], None],
) -> KernelCall:
    """Build, beginning anew with finer axes whenever a map needs one split."""
    while True:
        build = _Build(nodes, partition, group, axes)
        try:
            emit(build)
            return build.finished()
        except SplitAxis as split:
            axes = split_axes(axes, split)


class _Draft(NamedTuple):
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


class _Build:
    def __init__(self, nodes: Sequence[Node], partition: Partition, group: Group | None, axes: tuple[Axis, ...]) -> None:
        self.nodes = nodes
        self.partition = partition
        self.group = group
        self.axes = axes
        self.extents = [extent for extent, _ in axes]
        self.drafts: list[_Draft] = []
        self.memo: dict[Any, int] = {}
        self.reads: dict[int, None] = {}
        self.writes: dict[int, None] = {}

    # ---- values ----

    def value(self, index: int, at: IndexMap) -> int:
        """The instruction that gives value `index` at map `at`."""
        try:
            index, at = pull_views(self.nodes, index, at, self.extents)
            at = self._normal(at)
            key = (index, at)
            found = self.memo.get(key)
            if found is None:
                found = self.memo[key] = self._compute(index, at)
        except Unmappable as refusal:
            if refusal.index < 0:  # the innermost value that cannot be read this way
                refusal.index = index
            raise
        return found

    def _normal(self, at: IndexMap) -> IndexMap:
        if 1 not in self.extents:
            return at
        return IndexMap(at.offset, tuple([0 if e == 1 else s for s, e in zip(at.strides, self.extents, strict=True)]))

    def _compute(self, index: int, at: IndexMap) -> int:
        node = self.nodes[index]
        kind = PRIMITIVES[node.op].kind
        if kind == "source":
            return self._source(index, node, at)
        home = self.partition.home[index]
        here = home is self.group
        if not here and (index in self.partition.realized or kind not in ("elementwise", "gather")):
            return self._load(index, node, at)
        if kind == "reduce":
            assert here and self.group is not None
            level = self.group.levels[index]
            if at != self._normal(canonical_map(self.axes, level)):
                refusal = Unmappable(f"%{index} is read away from where it is computed")
                refusal.index = index
                raise refusal
            over = ROW if level == FINAL and self._row_source(node) else FULL
            value = self.value(node.inputs[0], canonical_map(self.axes, over))
            return self._add(node.op, (value,), node.dtype, level, self.drafts[value].step + 1,
                             attrs=(("over", over),), origin=index)
        if kind == "gather":
            return self._gather(index, node, at)
        args = tuple([self.value(i, at) for i in node.inputs])
        attrs = tuple((k, node.attrs[k]) for k in ("wrap",) if k in node.attrs)
        words: tuple[Word, ...] = ()
        if node.op == "check_index":
            words = (Word("extent", node.attrs["extent"]), Word("site", index), Word("fault"))
        if node.op == "cast":
            attrs = (("source", self.nodes[node.inputs[0]].dtype.name),)
        elif args and self.nodes[node.inputs[-1]].dtype is not node.dtype:
            attrs += (("operand", self.nodes[node.inputs[-1]].dtype.name),)
        return self._add(node.op, args, node.dtype, *self._where(args), attrs=attrs, words=words, origin=index)

    def _row_source(self, node: Node) -> bool:
        group = self.group
        assert group is not None
        size = numel(self.nodes[node.inputs[0]].shape)
        return group.reduces and size == group.numel(ROW) != group.numel(FULL)

    def _where(self, args: Sequence[int]) -> tuple[str, int]:
        """The level and step of an elementwise value: the innermost and latest of its arguments'."""
        levels = [self.drafts[a].level for a in args]
        step = max((self.drafts[a].step for a in args), default=0)
        level = next((level for level in (COLUMN, FULL, ROW, FINAL) if level in levels), "uniform")
        return level, step

    def _level_of(self, at: IndexMap) -> str:
        used = [axis for axis, s in enumerate(at.strides) if s]
        if not used:
            return "uniform"
        return FULL if any(self.axes[a][1] for a in used) or not any(r for _, r in self.axes) else ROW

    def _source(self, index: int, node: Node, at: IndexMap) -> int:
        level = self._level_of(at)
        if node.op == "input":
            return self._load(index, node, at)
        if node.op == "constant":
            return self._add("word", (), node.dtype, "uniform", 0,
                             words=(Word("constant", node.attrs["value"], node.dtype),), origin=index)
        if node.op == "scalar":
            slot = node.attrs["slot"]
            return self._add("word", (), node.dtype, "uniform", 0,
                             words=(Word("scalar", slot, self.partition.scalars[slot]),), origin=index)
        if node.op == "iota":
            return self._add("index", (), node.dtype, level, 0, at, origin=index)
        nothing = IndexMap(0, (0,) * len(self.axes))
        args = tuple([self.value(i, nothing) for i in node.inputs])
        return self._add(node.op, args, node.dtype, level, 0, at, origin=index)

    def _load(self, index: int, node: Node, at: IndexMap) -> int:
        self.reads[index] = None
        strides = node.attrs.get("strides") if node.op == "input" else None
        if strides is not None:
            at = pull(at, self.extents, node.shape, strides, 0)
        return self._add("load", (), node.dtype, self._level_of(at), 0, at, index, origin=index)

    def _gather(self, index: int, node: Node, at: IndexMap) -> int:
        source, where = node.inputs
        dim = node.attrs["dim"]
        position = self.value(where, at)
        layout = self.nodes[source]
        strides, offset = contiguous_strides(layout.shape), 0
        if layout.op == "view":
            strides, offset = layout.attrs["strides"], layout.attrs["offset"]
            source = layout.inputs[0]
        elif layout.op == "input" and layout.attrs.get("strides"):
            strides = layout.attrs["strides"]
        place = pull(at, self.extents, node.shape, _without(strides, dim), offset)
        self.reads[source] = None
        level = self._level_of(place)
        other, step = self._where((position,))
        rank = ("uniform", FINAL, ROW, FULL)
        return self._add("load_at", (position,), node.dtype, max(level, other, key=rank.index), step, place, source,
                         words=(Word("stride", strides[dim]),), origin=index)

    # ---- effects ----

    def store(self, target: int, at: IndexMap, value: int, level: str, dtype: DType) -> None:
        self.writes[target] = None
        self._add("store", (value,), dtype, level, self.drafts[value].step, at, target, origin=target)

    def scatter(
        self, target: int, at: IndexMap, position: int, stride: int, value: int, mode: str, dtype: DType
    ) -> None:
        self.writes[target] = None
        self._add("scatter", (position, value), dtype, FULL, self._where((position, value))[1], at, target,
                  attrs=(("mode", mode),), words=(Word("stride", stride),), origin=target)

    def _add(
        self, name: str, args: tuple[int, ...], dtype: DType, level: str, step: int, at: IndexMap | None = None,
        storage: int | None = None, attrs: tuple[tuple[str, Any], ...] = (), words: tuple[Word, ...] = (),
        origin: int = -1,
    ) -> int:
        self.drafts.append(_Draft(name, args, dtype, level, step, at, storage, attrs, words, origin))
        return len(self.drafts) - 1

    # ---- the finished kernel ----

    def finished(self) -> KernelCall:
        axes, maps = _merged(self.axes, [d.map for d in self.drafts])
        lane, taps, apart = _lane(axes, self.drafts, maps)
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
        for draft, at in zip(self.drafts, maps, strict=True):
            instructions.append(_instruction(draft, at, order, axes, taps, apart, words, instructions))
        if any(d.level in (COLUMN, FINAL) for d in self.drafts):
            words += [Word("partials"), Word("items"), Word("shares")]
        nest = [(n, r) for n, (_, r) in enumerate(axes)]
        kernel = Kernel(nest, place, instructions, words, taps)
        if kept := kernel.kept():
            words += [Word("scratch", n, instructions[n].dtype.compute) for n in kept]
            kernel = Kernel(nest, place, instructions, words, taps)
        nodes = tuple(dict.fromkeys(d.origin for d in self.drafts))
        return KernelCall(kernel, tuple(e for e, _ in axes), tuple(self.reads), tuple(self.writes), nodes)


def _instruction(
    draft: _Draft, at: IndexMap | None, order: Sequence[int], axes: Sequence[Axis], taps: Mapping[int, int],
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
    return Instruction(draft.name, draft.args, draft.dtype, draft.level, varies, draft.step, access, attrs, draft.origin)


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
    axes: Sequence[Axis], drafts: Sequence[_Draft], maps: Sequence[IndexMap | None]
) -> tuple[int | None, Collection[int], bool]:
    """The axis to run as vectors, along which most accesses are to neighbours; its taps; and whether what lies between
    two lanes' elements is read too.

    A tap is a short axis along which some access is to neighbours where it steps over them along the lanes. A scatter goes
    along reduced axes one by one; a place among them is counted with the last one running fastest. Sums of columns are kept
    beside rows, along which lanes run.
    """
    scatters = any(d.name == "scatter" for d in drafts)
    reduced = [axis for axis, (_, r) in enumerate(axes) if r]
    columns = any(d.level == COLUMN for d in drafts)
    barred = reduced if scatters else reduced[:-1] if any(d.name.startswith("arg") for d in drafts) else ()
    free = [axis for axis in range(len(axes) - 1, -1, -1) if axis not in barred and (axes[axis][1] or not columns)]
    memory = [(1.0 if draft.level == FULL else ROW_SHARE, at.strides) for draft, at in zip(drafts, maps, strict=True)
              if draft.storage is not None and at is not None and draft.level not in (COLUMN, FINAL)]
    pairs = () if scatters or columns else {
        (lane, tap) for tap, (extent, _) in enumerate(axes) if extent > 1
        for lane in free if lane != tap
        for _, strides in memory if strides[tap] == 1 < strides[lane] <= MOST_TAPS
    }
    short = {(lane, tap) for lane, tap in pairs if axes[tap][0] <= MOST_TAPS}
    best, chosen = -1.0, None
    for axis in free:
        if any(tap == axis for _, tap in short):
            continue
        steps = [(share, strides[axis]) for share, strides in memory]
        score = sum(share * (3 if s == 1 else 1 if s == 0 else 0) for share, s in steps)
        score = (score + 1 / 3) * min(axes[axis][0], 16) / 16
        if any(lane == axis for lane, _ in pairs):
            score += 2 * sum(share for share, s in steps if 1 < s <= MOST_TAPS)
        if score > best:
            best, chosen = score, axis
    return chosen, {tap for lane, tap in short if lane == chosen}, any(lane == chosen for lane, _ in pairs)
