"""The fourth pass: from a group of nodes to a Kernel, by reading every value through its index map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.bind import UnboundInstruction, bind
from genesis.lower.group import (
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
from genesis.lower.kernel import Kernel, KernelArg
from genesis.ops.layout import Layout
from genesis.ops.registry import PRIMITIVES

__all__ = ["KernelCall", "Store", "build_group"]


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
        stores = [Store(m, group.levels[m], m) for m in group.members if m in partition.materialized]
        return [_built(nodes, partition, group, group.axes, stores)] if stores else []
    index = group.members[-1]
    node = nodes[index]
    if group.kind == "put":
        return _puts(nodes, partition, group.members)
    if group.kind == "cat":
        return _cat(nodes, partition, index, node)
    if group.kind == "scan":
        return [_scan(nodes, partition, index, node)]
    flat = pattern_of((node.numel,), ())
    base = _built(nodes, partition, None, flat, [Store(node.inputs[0], FULL, index)])
    assert group.kind == "scatter", group.kind
    return [base, _scatter(nodes, partition, index, node)]


def _puts(nodes: Sequence[Node], partition: Partition, puts: Sequence[int]) -> list[KernelCall]:
    """What is put one after the other into a copy of the first base, which is the memory of the last."""
    assert all(nodes[put].op == "put" for put in puts), "put_sum is never computed"
    flat, whole = pattern_of((nodes[puts[0]].numel,), ()), Store(nodes[puts[0]].inputs[0], FULL, puts[-1])
    calls = [_built(nodes, partition, None, flat, [whole])]
    for put in puts:
        attrs = nodes[put].attrs
        at = Layout(attrs["shape"], attrs["strides"], attrs["offset"])
        inner = pattern_of((numel(at.shape),), ())
        calls.append(_built(nodes, partition, None, inner, [Store(nodes[put].inputs[1], FULL, puts[-1], at)]))
    return calls


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


def _scan(nodes: Sequence[Node], partition: Partition, index: int, node: Node) -> KernelCall:
    """Along `dim` one element after the other, the other axes side by side."""
    axes = pattern_of(node.shape, (node.attrs["dim"],))

    def emit(build: _Build) -> None:
        at = canonical_map(build.axes, FULL)
        build.store(index, at, build.value(node.inputs[0], at), FULL, node.dtype, scanned=True)

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


class _Build:
    def __init__(self, nodes: Sequence[Node], partition: Partition, group: Group | None, axes: tuple[Axis, ...]) -> None:
        self.nodes = nodes
        self.partition = partition
        self.group = group
        self.axes = axes
        self.extents = [extent for extent, _ in axes]
        self.unbound: list[UnboundInstruction] = []
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
        if not here and (index in self.partition.materialized or kind not in ("elementwise", "gather")):
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
            return self._add(node.op, (value,), node.dtype, level, self.unbound[value].step + 1,
                             attrs=(("over", over),), origin=index)
        if kind == "gather":
            return self._gather(index, node, at)
        args = tuple([self.value(i, at) for i in node.inputs])
        attrs = tuple((k, node.attrs[k]) for k in ("wrap",) if k in node.attrs)
        words: tuple[KernelArg, ...] = ()
        if node.op == "check_index":
            words = (KernelArg("extent", node.attrs["extent"]), KernelArg("site", index), KernelArg("fault"))
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
        levels = [self.unbound[a].level for a in args]
        step = max((self.unbound[a].step for a in args), default=0)
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
                             words=(KernelArg("constant", node.attrs["value"], node.dtype),), origin=index)
        if node.op == "scalar":
            slot = node.attrs["slot"]
            return self._add("word", (), node.dtype, "uniform", 0,
                             words=(KernelArg("scalar", slot, self.partition.scalars[slot]),), origin=index)
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
                         words=(KernelArg("stride", strides[dim]),), origin=index)

    # ---- effects ----

    def store(self, target: int, at: IndexMap, value: int, level: str, dtype: DType, *, scanned: bool = False) -> None:
        self.writes[target] = None
        name, attrs = ("scan", (("over", FULL),)) if scanned else ("store", ())
        self._add(name, (value,), dtype, level, self.unbound[value].step, at, target, attrs=attrs, origin=target)

    def scatter(
        self, target: int, at: IndexMap, position: int, stride: int, value: int, mode: str, dtype: DType
    ) -> None:
        self.writes[target] = None
        self._add("scatter", (position, value), dtype, FULL, self._where((position, value))[1], at, target,
                  attrs=(("mode", mode),), words=(KernelArg("stride", stride),), origin=target)

    def _add(
        self, name: str, args: tuple[int, ...], dtype: DType, level: str, step: int, at: IndexMap | None = None,
        storage: int | None = None, attrs: tuple[tuple[str, Any], ...] = (), words: tuple[KernelArg, ...] = (),
        origin: int = -1,
    ) -> int:
        self.unbound.append(UnboundInstruction(name, args, dtype, level, step, at, storage, attrs, words, origin))
        return len(self.unbound) - 1

    def finished(self) -> KernelCall:
        kernel, extents = bind(self.axes, self.unbound, self.partition.target.unroll)
        nodes = tuple(dict.fromkeys(kernel.origins))
        return KernelCall(kernel, extents, tuple(self.reads), tuple(self.writes), nodes)
