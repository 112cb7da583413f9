"""Legalization: nodes that the backend does not support become nodes that it does.

Before: a simplified graph. After: matmuls have dtypes and operands that products take, operands have memory, and outputs
have row-major memory of their own (except saved values, which may share it).

Products take float32 and float64 matrices with one unit stride. Other operands are copied or cast; other dtypes, products with
vectors, and those of few terms and columns become elementwise products and sums. A value without memory (a literal,
a range, a broadcast) is copied where it must be in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from genesis.ir.annotations import Key
from genesis.ir.dtypes import float32
from genesis.ir.graph import Graph, Node, Value
from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.convolve import is_thin, sum_of_products
from genesis.lower.index_map import LEAST_RUN, PLAIN, AxisGroups, Digits, digits_of, grouped_layout, memory_layout, run_of
from genesis.lower.rewriting import Rewriting, Simplified, base_of
from genesis.ops.contraction import swapped
from genesis.ops.layout import Layout
from genesis.ops.registry import PRIMITIVES, cast, expand
from genesis.ops.views import reshape_value, slice_value, view_node

LANES = 8  # adjacent elements that fill a vector
GATHERED = 512  # columns from which a product takes thirty times as long as gathering its left operand


def layout_of(nodes: Sequence[Node], index: int) -> Layout | None:
    """The layout of a value in its base's memory; None for a view of a view, or of memory with gaps."""
    node = nodes[index]
    if node.op != "view":
        return memory_layout(node)
    base = nodes[node.inputs[0]]
    if base.op == "view" or not memory_layout(base).is_contiguous:
        return None
    return Layout(node.shape, node.attrs["strides"], node.attrs["offset"])


def matrix_operand(layout: Layout) -> bool:
    """Whether products can read a (.., rows, columns) layout: rows or columns have unit stride."""
    return any(stride == 1 or extent == 1 for stride, extent in zip(layout.strides[-2:], layout.shape[-2:], strict=True))


def legalize(graph: Simplified, saved: int = 0, strided: bool = False) -> Simplified:
    """The legal form of a graph, as stated above; the last `saved` outputs are never written to.

    `strided` products take operands of any strides, and of 16 bits.
    """
    result = _Legal(graph, strided)
    for node in graph.nodes:
        kind = PRIMITIVES[node.op].kind
        if kind in ("elementwise", "view", "source"):  # most nodes, with nothing to do
            result.copy(node)
            continue
        node = result.moved(node)
        if node.op == "matmul":
            result.put(_matmul(result, node).index)
        elif kind == "gather":
            source = result.copies.get(_reading(result, node.inputs[0]))  # gathers are faster from a contiguous copy
            source = _in_memory(result, node.inputs[0]) if source is None else source
            result.put(result.append(node.renumbered((source, *node.inputs[1:]))))
        elif kind == "collective":
            result.put(result.append(node.renumbered((_in_order(result, node.inputs[0]),))))
        elif kind == "host":
            ready = _in_order if PRIMITIVES[node.op].contiguous else _in_memory
            result.put(result.append(node.renumbered(tuple([ready(result, i) for i in node.inputs]))))
        elif kind == "reduce" and all(result.nodes[node.inputs[0]].shape[a] == 1 for a in node.attrs["axes"]):
            arg = node.op.startswith("arg")
            value = result.constant(0, node.dtype) if arg else result.value(node.inputs[0])
            result.put((expand if arg else reshape_value)(value, node.shape).index)
        else:
            result.put(result.append(node))
    outputs: list[int] = []
    taken: set[int] = set()
    for position, o in enumerate(graph.outputs):
        own = position < len(graph.outputs) - saved
        moved = result.new_index[o]
        outputs.append(_owned(result, moved, taken) if own else _in_memory(result, moved, spread=False))
        taken.add(base_of(result.nodes, outputs[-1]))
        result.came_from(o)
    return result.finished(outputs)


class _Legal(Rewriting):
    """The graph under construction, and its copies: value -> copy, shared by all equal views."""

    __slots__ = ("copies", "strided")

    def __init__(self, source: Simplified, strided: bool) -> None:
        super().__init__(source)
        self.strided = strided
        self.copies: dict[Key, int] = {}


def _copied(graph: _Legal, index: int) -> int:
    """The copy of `index`, an existing one or a new one."""
    key = _reading(graph, index)
    if key not in graph.copies:
        node = graph.nodes[index]
        graph.copies[key] = graph.add("clone", (index,), node.shape, node.dtype).index
    return graph.copies[key]


def _reading(graph: Graph, index: int) -> Key:
    """A key that is equal for values with equal contents."""
    node = graph.nodes[index]
    if node.op != "view":
        return index
    strides = tuple(0 if e == 1 else s for e, s in zip(node.shape, node.attrs["strides"], strict=True))
    return node.inputs, node.shape, strides, node.attrs["offset"], node.attrs.get("barrier")


def _in_memory(graph: _Legal, index: int, spread: bool = True) -> int:
    """`index` or a copy of it whose base is in memory (and, unless `spread`, which does not broadcast)."""
    layout = layout_of(graph.nodes, index)
    gaps = layout is None or (not spread and any(s == 0 and e > 1 for e, s in zip(layout.shape, layout.strides, strict=True)))
    return index if _has_memory(graph, index) and not gaps else _copied(graph, index)


def _in_order(graph: _Legal, index: int) -> int:
    """`index` or a copy of it that is contiguous."""
    index = _in_memory(graph, index)
    layout = layout_of(graph.nodes, index)
    return index if layout is not None and layout.is_contiguous else _copied(graph, index)


def _has_memory(graph: Graph, index: int) -> bool:
    base = graph.nodes[base_of(graph.nodes, index)]
    return base.op == "input" or PRIMITIVES[base.op].kind != "source"


def _owned(graph: _Legal, index: int, taken: Collection[int]) -> int:
    """`index` or a copy of it that is all of its base, contiguous, and whose base is not `taken`."""
    nodes = graph.nodes
    base = base_of(nodes, index)
    layout = layout_of(nodes, index)
    whole = layout is not None and layout.is_contiguous and numel(layout.shape) == nodes[base].numel
    if whole and base not in taken and PRIMITIVES[nodes[base].op].kind != "source":
        return index
    # Two equal outputs must not share memory: in-place operations would change both.
    if graph.copies.get(_reading(graph, index)) in taken:
        del graph.copies[_reading(graph, index)]
    return _copied(graph, index)


def _matmul(graph: _Legal, node: Node) -> Value:
    return _product(graph, node, is_thin(graph.nodes, *node.inputs))


def _product(graph: _Legal, node: Node, thin: bool) -> Value:
    a, b = (graph.value(i) for i in node.inputs)
    if a.dtype is not node.dtype:  # 16-bit operands of a product in float32
        if graph.strided and not thin:  # the device's product rounds its result
            return cast(_product(graph, Node("matmul", node.inputs, node.attrs, node.shape, a.dtype), thin), node.dtype)
        wide = Node("matmul", (_widened(a).index, _widened(b).index), node.attrs, node.shape, float32)
        return _product(graph, wide, thin)
    if node.dtype.compute is not node.dtype and (thin or not graph.strided):
        wide = Node("matmul", (_widened(a).index, _widened(b).index), node.attrs, node.shape, float32)
        return cast(_product(graph, wide, thin), node.dtype)
    if node.dtype.category < 2 or thin or numel(a.shape) == 0 or numel(b.shape) == 0:
        return sum_of_products(graph, a, b, node.shape)
    # The product's launch has two axes for the batch: operands that cannot be walked with two are copied.
    operands = [_matrix(graph, i, columns) for i, columns in zip(node.inputs, (b.shape[-1], 0), strict=True)]
    layouts = [operand_layout(graph.nodes, i)[0] for i in operands]
    if not graph.strided and len(collapsed_batch([*layouts, result_layout(node, a.shape)])[0]) > 2:
        operands = [_copied(graph, i) for i in operands]
    return graph.value(graph.append(node.renumbered(tuple(operands))))


def _matrix(graph: _Legal, index: int, columns: int) -> int:
    """`index` or a copy of it that products can read. `columns` is the number of columns that a left operand is multiplied
    with, 0 for a right one. A transposed matrix is copied in its memory order.
    """
    layout = layout_of(graph.nodes, index)
    if _has_memory(graph, index) and layout is not None and matrix_operand(layout):
        return index
    found = grouped_layout(graph.nodes, index) if _has_memory(graph, index) else None
    if found is not None and (graph.strided or (found[1] != PLAIN and _is_packed_there(graph, index, found, columns))):
        return index
    if found is not None and found[1] != PLAIN:
        return _copied_matrix(graph, index, found)
    node = graph.nodes[index]
    row, column = node.attrs["strides"][-2:] if node.op == "view" else (1, 0)
    if not 0 < row < column:
        return _copied(graph, index)
    # A transposed matrix is copied in memory order and read transposed: copying it by rows would gather, 14 of the 58 ms of a
    # CNN step.
    (*batch, rows, columns), strides = node.shape, node.attrs["strides"]
    straight = Layout((*batch, columns, rows), (*strides[:-2], column, row), node.attrs["offset"])
    as_it_lies = view_node(graph.value(node.inputs[0]), straight, "matrix")
    return swapped(graph.value(_copied(graph, as_it_lies.index))).index


def _copied_matrix(graph: _Legal, index: int, found: tuple[Layout, AxisGroups]) -> int:
    """A copy of a batch of matrices in memory order, shared by equal values and by their transposes."""
    (rows, columns), layout, x = digits_of(*found), found[0], graph.value(index)
    is_transposed = _step(rows) < _step(columns)
    once = x
    for axis, stride in enumerate(layout.strides[: x.ndim - 2]):
        once = once if stride else slice_value(once, axis, 0, 1)
    once = swapped(once) if is_transposed else once
    key = ("matrix", base_of(graph.nodes, index), layout.offset, layout.strides[: x.ndim - 2], once.shape,
           (columns, rows) if is_transposed else (rows, columns))
    if key not in graph.copies:
        graph.copies[key] = graph.add("clone", (once.index,), once.shape, x.dtype).index
    copy = graph.value(graph.copies[key])
    return expand(swapped(copy) if is_transposed else copy, x.shape).index


def _step(digits: Digits) -> int:
    """The stride along an axis; for an axis in parts, along the last part that fills a vector."""
    wide = [abs(stride) for extent, stride in digits if extent >= LANES] or [abs(stride) for _, stride in digits]
    return wide[-1]


def _is_packed_there(graph: _Legal, index: int, found: tuple[Layout, AxisGroups], columns: int) -> bool:
    """Whether a product should pack a matrix whose rows or columns span several axes of memory directly, without a copy.

    Windows are packed directly: a copy would be many times as large. A matrix without adjacent elements is copied. A left
    operand is copied by the kernel that computes it, unless its terms lie in runs; also if a whole batch shares it and each is
    multiplied with few columns, as packing it again and again takes longer.
    """
    layout, (rows, terms) = found[0], digits_of(*found)
    base = graph.nodes[base_of(graph.nodes, index)]
    spread = base.numel < numel([extent for extent, stride in zip(layout.shape, layout.strides, strict=True) if stride])
    if PRIMITIVES[base.op].kind == "contract" and not spread:
        return False
    batch = [*zip(layout.shape, layout.strides, strict=True)][: -sum(found[1])]
    repeated = any(extent > 1 and not stride for extent, stride in batch)
    if columns and repeated and columns < GATHERED:
        return False
    in_runs = run_of(terms) >= LEAST_RUN
    if not columns:  # gathered one by one, 8 x 1024 x 128 elements took 30 ms
        return spread or in_runs or run_of(rows) >= LEAST_RUN
    return spread or base.op == "input" or (len(rows) == 1 and in_runs)


def _widened(x: Value) -> Value:
    """An operand cast to float32; below views that repeat elements, as windows do, the base is cast."""
    nodes = x.graph.nodes
    if nodes[base_of(nodes, x.index)].numel >= numel(x.shape):
        return cast(x, float32)
    source = x.graph.value(x.node.inputs[0])
    return view_node(_widened(source), Layout(x.shape, x.node.attrs["strides"], x.node.attrs["offset"]), x.node.attrs["label"])


def operand_layout(nodes: Sequence[Node], index: int) -> tuple[Layout, AxisGroups]:
    """The layout of a product's operand in its base's memory."""
    layout = layout_of(nodes, index)
    found = (layout, PLAIN) if layout is not None else grouped_layout(nodes, index)
    assert found is not None, "legalize gives operands a layout"
    return found


def collapsed_batch(layouts: Sequence[Layout]) -> tuple[list[int], list[list[int]]]:
    """The batch axes of several matrices, merged where all can be: (extents, strides of each layout)."""
    extents: list[int] = []
    strides: list[list[int]] = [[] for _ in layouts]
    for axis, extent in enumerate(layouts[-1].shape[:-2]):
        if extent == 1:
            continue
        here = [layout.strides[axis] for layout in layouts]
        if extents and all(s[-1] == h * extent for s, h in zip(strides, here, strict=True)):
            extents[-1] *= extent
            for s, h in zip(strides, here, strict=True):
                s[-1] = h
        else:
            extents.append(extent)
            for s, h in zip(strides, here, strict=True):
                s.append(h)
    return extents, strides


def result_layout(node: Node, left: Sequence[int]) -> Layout:
    """The layout of a matmul's results, over the batch of its `left` shape: stride 0 along axes to be summed."""
    summed = node.attrs.get("summed", 0)
    shape = (*left[:-1], node.shape[-1])
    return Layout(shape, (*(0,) * summed, *contiguous_strides(shape[summed:])), 0)


def force_materialized(graph: Simplified, values: Collection[int]) -> Simplified:
    """The graph with each of `values` in row-major memory, written by a kernel of its own.

    A gather is written there directly; readers of another value read a copy.
    """
    result = Rewriting(graph)
    for index, node in enumerate(graph.nodes):
        if index not in values:
            result.copy(node)
        elif node.op == "gather":
            attrs = {**node.attrs, "materialize": True}
            result.put(result.append(Node(node.op, result.moved(node).inputs, attrs, node.shape, node.dtype)))
        else:
            copied = result.append(result.moved(node))
            result.put(result.append(Node("clone", (copied,), {"materialize": True}, node.shape, node.dtype)))
    return result.finished()
