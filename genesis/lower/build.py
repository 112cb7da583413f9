"""Building: from a group of nodes to kernels, by reading every value through its index map.

Before: a group, whose nodes have levels. After: its kernels. A value is computed at a map, which says which of its row-major
elements is needed at each point of the loop nest. Views only change maps, so they vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import mul
from typing import NamedTuple

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.ir.unguarded import as_named
from genesis.lower.bind import UnboundInstruction, bind
from genesis.lower.group import COLUMN, FINAL, FULL, ROW, WRITES, Axis, Group, Partition, canonical_map, pattern_of, pull_views
from genesis.lower.index_map import IndexMap, SplitAxis, Unmappable, pull
from genesis.lower.kernel import SCANS, InstructionAttrs, Kernel, KernelArg
from genesis.lower.levels import LARGE
from genesis.ops.layout import Layout, layout_in
from genesis.ops.registry import PRIMITIVES

_INNERMOST = (COLUMN, FULL, ROW, FINAL, "uniform").index  # the order of levels


class Store(NamedTuple):
    """Store value `node`, computed at a level, to `layout` of the memory of `target` (None: all of it)."""

    node: int
    level: str
    target: int
    layout: Layout | None = None


class KernelCall(NamedTuple):
    """A kernel and the extents it runs over; `reads` and `writes` are the values whose memory it touches."""

    kernel: Kernel
    extents: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    nodes: tuple[int, ...]


def build_group(nodes: Sequence[Node], partition: Partition, group: Group) -> list[KernelCall]:
    """The kernels of a group, in order. Raises Unmappable with the value that a kernel cannot read where it is."""
    kernels = _Kernels(nodes, partition)
    index = group.members[-1]
    if group.kind == "loop":
        stores = [store for m in group.members if m in partition.materialized
                  for store in (kernels.parts(m) if nodes[m].op == "cat" else [Store(m, group.levels[m], m)])]
        return [kernels.storing(group.axes, stores, group)] if stores else []
    if group.kind == "cat":
        return [kernels.copying(part.node, index, part.layout) for part in kernels.parts(index)]
    if group.kind == "scan":
        return [kernels.scan(index)]
    assert group.kind in WRITES, group.kind
    if all(nodes[write].attrs.get("rest") == "unread" for write in group.members):
        return kernels.writing_parts([nodes[write] for write in group.members], index)
    # In order, into a copy of the first base, which is the memory of the last write.
    copy = kernels.copying(nodes[group.members[0]].inputs[0], index)
    return [copy, *(kernels.writing(write, index) for write in group.members)]


class _Kernels:
    """Kernels for nodes of one graph."""

    def __init__(self, nodes: Sequence[Node], partition: Partition) -> None:
        self.nodes = nodes
        self.partition = partition

    def storing(self, axes: tuple[Axis, ...], stores: Sequence[Store], group: Group | None = None) -> KernelCall:
        """The kernel that computes and stores values; members of `group` at their levels, others at any."""
        def emit(build: _Build) -> None:
            for store in stores:
                at = canonical_map(build.axes, store.level)
                value = build.value(store.node, at)
                if store.layout is not None:
                    try:
                        at = pull(at, build.extents, *store.layout)
                    except Unmappable as refusal:  # for axes were split to read it
                        refusal.index = store.node
                        raise
                build.store("store", store.target, at, [value], store.level, self.nodes[store.node].dtype)

        return self._built(axes, emit, group)

    def copying(self, source: int, target: int, layout: Layout | None = None) -> KernelCall:
        """The kernel that stores `source` to `layout` of `target`."""
        return self.storing(pattern_of((self.nodes[source].numel,), ()), [Store(source, FULL, target, layout)])

    def parts(self, index: int) -> list[Store]:
        """The stores of a concatenation's parts."""
        node, found, start = self.nodes[index], [], 0
        strides, dim = contiguous_strides(node.shape), node.attrs["dim"]
        for i in node.inputs:
            shape = self.nodes[i].shape
            found.append(Store(i, FULL, index, Layout(shape, strides, start * strides[dim])))
            start += shape[dim]
        return found

    def writing_parts(self, puts: Sequence[Node], target: int) -> list[KernelCall]:
        """The kernels that write disjoint parts of `target`: one for all parts of a shape."""
        stores: dict[Shape, list[Store]] = {}
        for put in puts:
            layout = layout_in(put)
            stores.setdefault(layout.shape, []).append(Store(put.inputs[1], FULL, target, layout))
        return [self.storing(pattern_of((numel(shape),), ()), parts) for shape, parts in stores.items()]

    def scan(self, index: int) -> KernelCall:
        """A kernel that scans along `dim` in order, vectorized over the other axes."""
        # Running sums of 4M numbers take 2.0 to 3.6 ms, along rows or across them (torch 2.1 to 16.7).
        node = self.nodes[index]

        def emit(build: _Build) -> None:
            at = canonical_map(build.axes, FULL)
            values = [build.value(i, at) for i in node.inputs]
            build.store("scan", index, at, values, FULL, node.dtype, (("over", FULL), ("mode", SCANS[node.op])))

        return self._built(pattern_of(node.shape, (node.attrs["dim"],)), emit)

    def writing(self, index: int, target: int) -> KernelCall:
        """The kernel of a `put` or a `scatter` that writes into the memory of `target`."""
        node = self.nodes[index]
        if PRIMITIVES[node.op].kind == "scatter":
            return self.scatter(index, target)
        assert node.op == "put", "put_sum is never computed"
        return self.copying(node.inputs[1], target, layout_in(node))

    def scatter(self, index: int, target: int) -> KernelCall:
        """A kernel that scatters along `dim` in order, in parallel over the other axes: so no two writers collide."""
        node = self.nodes[index]
        (_, where, source), dim, strides = node.inputs, node.attrs["dim"], contiguous_strides(node.shape)

        def emit(build: _Build) -> None:
            at = canonical_map(build.axes, FULL)
            args = build.value(where, at), build.value(source, at)
            index_map = pull(at, build.extents, self.nodes[where].shape, _without(strides, dim), 0)
            build.writes[target] = None
            # See `Kernel.place`.
            rows = (("rows", 1),) if node.shape[dim] * strides[dim] >= LARGE else ()
            build.add(UnboundInstruction(
                "scatter", args, node.dtype, FULL, build.level_and_step(args)[1], target, index_map, target,
                (("mode", node.attrs["mode"]), *rows), along=strides[dim]))

        return self._built(pattern_of(self.nodes[where].shape, (dim,)), emit)

    def _built(self, axes: tuple[Axis, ...], emit: Callable[[_Build], None], group: Group | None = None) -> KernelCall:
        """Build a kernel, starting over with finer axes whenever a map needs one split."""
        while True:
            build = _Build(self.nodes, self.partition, group, axes)
            try:
                emit(build)
                return build.finished()
            # The instructions so far have maps over the coarser axes. Axes only become finer, so this terminates.
            except SplitAxis as split:
                axes = split.applied(axes)


def _without(strides: Shape, dim: int) -> Shape:
    return tuple(0 if d == dim else s for d, s in enumerate(strides))


class _Build:
    """A kernel under construction: its instructions, and which of them computes a value at a map."""

    def __init__(self, nodes: Sequence[Node], partition: Partition, group: Group | None, axes: tuple[Axis, ...]) -> None:
        self.nodes = nodes
        self.partition = partition
        self.group = group
        self.axes = axes
        self.extents, self.reduced = [extent for extent, _ in axes], [reduced for _, reduced in axes]
        self.instructions: list[UnboundInstruction] = []
        self.memo: dict[tuple[int, IndexMap], int] = {}
        self.reads: dict[int, None] = {}
        self.writes: dict[int, None] = {}

    def add(self, instruction: UnboundInstruction) -> int:
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def store(
        self, name: str, target: int, at: IndexMap, values: Sequence[int], level: str, dtype: DType,
        attrs: InstructionAttrs = (),
    ) -> None:
        self.writes[target] = None
        step = max([self.instructions[value].step for value in values])
        self.add(UnboundInstruction(name, tuple(values), dtype, level, step, target, at, target, attrs))

    def finished(self) -> KernelCall:
        kernel, extents = bind(self.axes, self.instructions, self.partition.target.unroll)
        nodes = tuple(dict.fromkeys(kernel.origins))
        return KernelCall(kernel, extents, tuple(self.reads), tuple(self.writes), nodes)

    # ---- values ----
    def value(self, index: int, at: IndexMap) -> int:
        """The instruction that computes value `index` at map `at`."""
        try:
            index, at = pull_views(self.nodes, index, at, self.extents)
            at = self._normal(at)
            # A value read at two maps is computed twice: it has no memory.
            key = (index, at)
            found = self.memo.get(key)
            if found is None:
                found = self.memo[key] = self._compute(index, at)
        except Unmappable as refusal:
            if refusal.index < 0:  # report the innermost value that cannot be read this way
                refusal.index = index
            raise
        return found

    def _normal(self, at: IndexMap) -> IndexMap:
        """The map without strides along axes of extent 1, so that equal reads are one instruction."""
        if 1 not in self.extents:
            return at
        return IndexMap(at.offset, tuple([0 if e == 1 else s for s, e in zip(at.strides, self.extents, strict=True)]))

    def _compute(self, index: int, at: IndexMap) -> int:
        node = self.nodes[index]
        kind = PRIMITIVES[node.op].kind
        if kind == "source":
            return self._source(index, node, at)
        here = self.partition.group_of[index] is self.group
        # Loaded from memory; or recomputed here if it is in another group's registers. Reductions are never recomputed.
        if not here and (index in self.partition.materialized or kind not in ("elementwise", "gather")):
            return self._load(index, node, at)
        if kind == "reduce":
            return self._reduction(index, node, at)
        if kind == "gather":
            return self._gather(index, node, at)
        args = tuple([self.value(i, at) for i in node.inputs])
        level, step = self.level_and_step(args)
        attrs: InstructionAttrs = ()
        words: tuple[KernelArg, ...] = ()
        if PRIMITIVES[node.op].fault is not None:
            attrs = (("wrap", node.attrs["wrap"]),) if node.op == "check_index" else ()
            words = (KernelArg("extent", node.attrs.get("extent", 0)), KernelArg("site", index), KernelArg("fault"))
        if node.op == "cast":
            attrs = (("source", self.nodes[node.inputs[0]].dtype.name),)
        elif args and self.nodes[node.inputs[-1]].dtype is not node.dtype:
            attrs += (("operand", self.nodes[node.inputs[-1]].dtype.name),)
        return self.add(UnboundInstruction(node.op, args, node.dtype, level, step, index, attrs=attrs, words=words))

    def _reduction(self, index: int, node: Node, at: IndexMap) -> int:
        assert self.partition.group_of[index] is self.group is not None
        level = self.group.levels[index]
        # A reduction's result is in registers: only the point that computed it can read it.
        if at != self._normal(canonical_map(self.axes, level)):
            refusal = Unmappable(f"%{index} is read away from where it is computed")
            refusal.index = index
            raise refusal
        over = ROW if level == FINAL and self._is_of_rows(node, self.group) else FULL
        value = self.value(node.inputs[0], canonical_map(self.axes, over))
        step = self.instructions[value].step + 1  # the next pass: a reduction is complete after all points
        return self.add(UnboundInstruction(node.op, (value,), node.dtype, level, step, index, attrs=(("over", over),)))

    def _is_of_rows(self, node: Node, group: Group) -> bool:
        """Whether a total reduces row values."""
        size = self.nodes[node.inputs[0]].numel
        return group.reduces and size == group.numel(ROW) != group.numel(FULL)

    def level_and_step(self, args: Sequence[int]) -> tuple[str, int]:
        """The level and step of an elementwise value: the innermost level and the latest step of its arguments."""
        read = [self.instructions[a] for a in args]
        return min([i.level for i in read], key=_INNERMOST, default="uniform"), max([i.step for i in read], default=0)

    def _level_of(self, at: IndexMap) -> str:
        """The level of a load, by its map: once a row if it varies along no reduced axis."""
        if not any(at.strides):
            return "uniform"
        return FULL if not any(self.reduced) or any(map(mul, at.strides, self.reduced)) else ROW

    def _source(self, index: int, node: Node, at: IndexMap) -> int:
        if node.op == "input":
            return self._load(index, node, at)
        if node.op in ("constant", "scalar"):
            slot = node.attrs.get("slot")
            word = (KernelArg("constant", as_named(node.attrs["value"]), node.dtype) if slot is None
                    else KernelArg("scalar", slot, self.partition.scalars[slot]))
            return self.add(UnboundInstruction("word", (), node.dtype, "uniform", 0, index, words=(word,)))
        nowhere = IndexMap(0, (0,) * len(self.axes))  # for a seed or a counter, which all elements share
        args = tuple([self.value(i, nowhere) for i in node.inputs])
        name = "index" if node.op == "iota" else node.op
        return self.add(UnboundInstruction(name, args, node.dtype, self._level_of(at), 0, index, at))

    def _load(self, index: int, node: Node, at: IndexMap) -> int:
        self.reads[index] = None
        strides = node.attrs.get("strides") if node.op == "input" else None
        if strides is not None:
            at = pull(at, self.extents, node.shape, strides, 0)
        return self.add(UnboundInstruction("load", (), node.dtype, self._level_of(at), 0, index, at, index))

    def _gather(self, index: int, node: Node, at: IndexMap) -> int:
        """A load whose index along `dim` comes from another value. Along the other axes the source is read through its view."""
        source, where = node.inputs
        position, dim, layout = self.value(where, at), node.attrs["dim"], self.nodes[source]
        strides, offset = contiguous_strides(layout.shape), 0
        if layout.op == "view":
            strides, offset = layout.attrs["strides"], layout.attrs["offset"]
            source = layout.inputs[0]
        elif layout.op == "input" and layout.attrs.get("strides"):
            strides = layout.attrs["strides"]
        index_map = pull(at, self.extents, node.shape, _without(strides, dim), offset)
        self.reads[source] = None
        other, step = self.level_and_step((position,))
        level = max(self._level_of(index_map), other, key=("uniform", FINAL, ROW, FULL).index)
        return self.add(UnboundInstruction(
            "load_at", (position,), node.dtype, level, step, index, index_map, source, along=strides[dim]))
