"""Arrays of views over their root's memory, whose writes are counted."""

from __future__ import annotations

from genesis.execution.flush import flush
from genesis.ops.layout import Layout, contiguous_layout
from genesis.tensor.handle import Tensor, share_storage
from genesis.tracing.memory import Memory
from genesis.tracing.tensor_state import EXPOSED
from genesis.tracing.trace import Array


def array_in_root(view: Tensor, root: Tensor) -> Array:
    """The array of a view that is up to date with its root.

    If a flush has computed it in memory of its own, it becomes an array over the root's memory, whose writes are counted.
    """
    array, whole, layout = view._array, root._array.memory, view._layout
    if (
        whole is not None and layout is not None and array.memory is not None and array.memory.buffer is not whole.buffer
        and not whole.buffer.shared and view._element_map is None
    ):
        array = view._array = Array(array.trace, array.index, array.node, whole.at(layout, array.node.dtype, root.dtype))
    return array


def array_over(array: Array, memory: Memory, derived: bool) -> Array:
    """An array over `memory`, with the derivation of `array` if `derived`."""
    if not (derived and array.node.differentiable):
        node = array.node
        if array.trace is None and node.op == "input" and node.shape == memory.layout.shape:  # realized before
            return Array(None, -1, node, memory)
        return Array.over(memory, node.dtype)
    assert array.trace is not None
    if not array.trace.closed:  # a call into the same trace would read the computed value
        flush(array.trace)
    return Array(array.trace, array.index, array.node, memory)


def seen_by(view: Tensor, root: Tensor) -> int:
    """The version of `root` for a new view: one behind if it must re-read memory that the outside may write."""
    memory = root._array.memory
    stale = memory is not None and memory.buffer.shared and (
        view._array.memory is None or view._array.memory.buffer is not memory.buffer)
    return root._changes - EXPOSED if stale else root._changes


def make_view(view: Tensor, tensor: Tensor, layout: Layout, element_map: str | None) -> None:
    """Make `view` a view of what `tensor` views, with its derivation, if that is detached, and its count of writes."""
    root = tensor if tensor._base is None else tensor._base
    share_storage(view, root, layout, element_map)
    view._seen = seen_by(view, root)
    if tensor._detached:
        view._detached = True
        view._detached_root = tensor if tensor._detached_root is None else tensor._detached_root
    if root is not tensor:
        view._versions = tensor._versions


def is_whole(view: Tensor, root: Tensor) -> bool:
    """Whether a view has the elements of its root, all of them and as they are."""
    whole = root._array.node
    return view._layout == contiguous_layout(whole.shape) and view.dtype is whole.dtype and view._element_map is None
