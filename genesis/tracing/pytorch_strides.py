"""The strides that PyTorch's tensors would have. PyTorch draws random numbers in the order that they give.

genesis' own tensors are row-major. In PyTorch, elementwise operations keep the order of their operands' axes, and convolutions,
pooling and others keep channels last. A result's PyTorch strides follow from the calls that computed it, which its trace lists.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from genesis.ir.graph import Node
from genesis.ir.shapes import Shape, contiguous_strides
from genesis.ops.layout import LAYOUT_RULES, Layout
from genesis.ops.registry import PRIMITIVES
from genesis.tracing.token import argument_of, arguments_in, members_in
from genesis.tracing.trace import ENTERED, Array, Trace

_FOLLOWING = frozenset({  # results have channels last if the input has
    "adaptive_avg_pool2d", "adaptive_max_pool2d", "avg_pool2d", "avg_pool3d", "batch_norm", "conv2d", "conv3d",
    "conv_transpose2d", "conv_transpose3d", "group_norm", "interpolate", "max_pool2d", "max_pool3d", "pad", "pixel_shuffle",
    "pixel_unshuffle",
})
_KEEPING = frozenset({"flip", "glu", "sort"})  # they keep the order of axes, though they are not elementwise
_DEPTH = 40  # traces in a chain, each reading the one before


class _Strides:
    """What is known of a trace: the strides of its inputs, and of its calls' results by their first position, without
    row-major ones."""

    def __init__(self) -> None:
        self.of_inputs: list[Shape] = []
        self.of_calls: dict[int, Shape] = {}
        self.seen = 0  # number of calls examined
        self.is_row_major = True  # whether all inputs and results are


def strides_of_array(array: Array, depth: int = 0) -> Shape:
    """The strides that PyTorch's tensor with this value would have."""
    if array.trace is not None and depth < _DEPTH:
        return _at(array.trace, array.index, _looked_through(array.trace, depth), depth)
    return contiguous_strides(array.node.shape) if array.memory is None else array.memory.layout.strides


def is_row_major(trace: Trace, arrays: Iterable[Array]) -> bool:
    """Whether PyTorch would hold these values of `trace` row by row, as memory does once they are computed."""
    known = _looked_through(trace, 0)
    return not known or all([_at(trace, one.index, known, 0) == contiguous_strides(one.node.shape) for one in arrays])


def _at(trace: Trace, index: int, known: Mapping[int, Shape], depth: int) -> Shape:
    """The strides of the value at `index`, given those `known` of earlier calls."""
    node = trace.nodes[index]
    if node.op in ENTERED:
        array = trace.input_at.get(index)
        if array is not None and array.trace is not trace:
            return strides_of_array(array, depth + 1)
        return contiguous_strides(node.shape)
    strides = known.get(trace.lines[bisect_right(trace.lines, index, key=itemgetter(0)) - 1][0])
    return strides if strides is not None and len(strides) == len(node.shape) else contiguous_strides(node.shape)


def _looked_through(trace: Trace, depth: int) -> dict[int, Shape]:
    """The known strides of a trace's calls. They follow from its path and the strides of its inputs, and are kept there."""
    if trace.memory_order is None:
        trace.memory_order = _Strides()
    state: _Strides = trace.memory_order
    if state.seen == len(trace.lines):
        return state.of_calls
    for array in [*trace.input_at.values()][len(state.of_inputs) :]:
        rows = contiguous_strides(array.node.shape)
        state.of_inputs.append(rows if array.trace is trace else strides_of_array(array, depth + 1))
        state.is_row_major &= state.of_inputs[-1] == rows
    if trace.step.strides is not None and trace.step.strides[0] == state.of_inputs:
        state.of_calls, state.seen = {**trace.step.strides[1]}, len(trace.lines)
        state.is_row_major &= not state.of_calls
        return state.of_calls
    while state.seen < len(trace.lines):
        number = state.seen
        state.seen += 1
        start, *_, key = trace.lines[number]
        end = trace.lines[number + 1][0] if number + 1 < len(trace.lines) else len(trace.nodes)
        is_call = start < end and type(key) is tuple and hasattr(key[0], "is_view")
        if is_call and (key[0].is_view or not state.is_row_major):
            tokens, named = arguments_in(key)
            positions = [m for token in (*tokens, *named.values()) for m in members_in(token) if type(m) is int]
            operands = [Layout(trace.nodes[i].shape, _at(trace, i, state.of_calls, depth), 0) for i in positions]
            strides = _result(trace.nodes[start:end], key, operands)
            if strides is not None:
                state.of_calls[start], state.is_row_major = strides, False
    trace.step.strides = [*state.of_inputs], {**state.of_calls}
    return state.of_calls


def _result(nodes: Sequence[Node], key: tuple[Any, ...], operands: Sequence[Layout]) -> Shape | None:
    """The strides of the result of the call `key`, which added `nodes`; None if row-major."""
    operation, name, (tokens, named) = key[0], key[0].name, arguments_in(key)
    if not operands or (not operation.is_view and all([at.is_contiguous for at in operands])):
        return None
    if name == "reshape_copy" or key[-1] == "rows":  # `clone`, by `contiguous`
        return None
    if operation.is_view:
        return _of_view(name, operands[0], tokens, named)
    shape = next((node.shape for node in reversed(nodes) if node.op not in ENTERED), None)
    if shape is None:  # the result is an operand itself
        return None
    if name in _FOLLOWING:
        return _channels_last(shape) if _has_channels_last(operands[0]) else None
    if name == "cat":
        return _channels_last(shape) if all(map(_has_channels_last, operands)) else None
    if name == "where" and not isinstance(tokens[1], int):  # `masked_fill`, a copy
        return None
    return _elementwise(shape, operands) if name in _KEEPING or all(map(_is_elementwise, nodes)) else None


def _is_elementwise(node: Node) -> bool:
    return node.op in ENTERED or node.op in ("constant", "view") or PRIMITIVES[node.op].kind == "elementwise"


def _of_view(name: str, at: Layout, tokens: Sequence[Any], named: Mapping[str, Any]) -> Shape | None:
    arguments = [argument_of(token, int) for token in tokens[1:]]
    if name == "view_at":
        return _in_other_strides(arguments[0], at)
    to = LAYOUT_RULES[name](at, *arguments, **{key: argument_of(token, int) for key, token in named.items()})
    return None if to is None else to.strides


def _in_other_strides(view: Layout, at: Layout) -> Shape:
    """Translates a view of a row-major tensor to one of a tensor with the strides of `at`: each axis maps to one of its
    axes."""
    rows = contiguous_strides(at.shape)
    strides = []
    for stride in view.strides:
        axis = next((axis for axis, step in enumerate(rows) if step and stride % step == 0 and at.shape[axis] > 1), None)
        strides.append(stride if axis is None else stride // rows[axis] * at.strides[axis])
    return tuple(strides)


def _channels_last(shape: Shape) -> Shape | None:
    if len(shape) not in (4, 5):
        return None
    batch, channels, *extents = shape
    outer, *inner = contiguous_strides((batch, *extents, channels))
    return outer, inner[-1], *inner[:-1]


def _has_channels_last(at: Layout) -> bool:
    """Whether PyTorch treats this layout as channels last."""
    rank, least = len(at.shape), 0
    if rank not in (4, 5) or 0 in at.shape or at.strides[1] == 0:
        return False
    for axis in (1, *range(rank - 1, 1, -1), 0):
        if at.strides[axis] < least or (axis == 0 and least == at.strides[1]):
            return False
        least = at.strides[axis] * max(at.shape[axis], 1)
    return True


def _elementwise(shape: Shape, operands: Sequence[Layout]) -> Shape:
    """The strides of an elementwise result: axes are ordered by the first operand whose strides differ."""
    spread = [_spread(at, shape) for at in operands]
    order = [*range(len(shape))][::-1]  # from the innermost

    def outside(a: int, b: int) -> int:
        for strides in spread:
            if strides[a] and strides[b] and strides[a] != strides[b]:
                return 1 if strides[a] > strides[b] else -1
            if strides[a] and strides[b] and shape[a] > shape[b]:
                return 1
        return 0

    for start in range(1, len(order)):
        at = start
        for before in range(start - 1, -1, -1):
            compared = outside(order[before], order[at])
            if compared > 0:
                order[before], order[at], at = order[at], order[before], before
            elif compared < 0:
                break
    strides, step = [0] * len(shape), 1
    for axis in order:
        strides[axis], step = step, step * shape[axis]
    return tuple(strides)


def _spread(at: Layout, shape: Shape) -> Shape:
    """The strides of an operand that is broadcast to `shape`."""
    lead = len(shape) - len(at.shape)
    return (0,) * lead + tuple([
        0 if extent == 1 and shape[lead + axis] != 1 else stride
        for axis, (extent, stride) in enumerate(zip(at.shape, at.strides, strict=True))])
