"""Memory that one tensor alone owns, or a copy of it, to write there at once: others have the values from before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.runtime.devices import CPU
from genesis.runtime.references import is_sole_owner
from genesis.tensor.handle import Tensor
from genesis.tensor.in_memory import number_for
from genesis.tracing.memory import Memory
from genesis.tracing.state import thread_state
from genesis.tracing.trace import Array

FEW = 1 << 16  # bytes of a tensor that is copied before a write, if others may see its memory


def written_at_once(root: Tensor, tensor: Tensor, write: Callable[[Memory, bool], bool]) -> bool:
    """Have `write` change the memory of `tensor`, which is `root` or its view, where others see no change; whether it has.

    It is told whether the former value is anybody else's. The caller holds LOCK. A signal handler that writes to the tensor in
    between has done so before.
    """
    while True:
        changes, memory = root._changes, writable_memory(root, tensor)
        if memory is None:
            return False
        array = root._array
        is_known = (array.memory is not memory or array.trace is not None or tensor._array.trace is not None
                    or memory.buffer.origin is not None)
        if not write(memory if tensor._layout is None else memory.at(tensor._layout, tensor.dtype, root.dtype), is_known):
            return False
        if is_known:  # arrays are immutable: another value, another one
            array = Array.over(memory, array.node.dtype)
        if root._changes == changes:
            root._array, root._changes = array, changes + 1
            if not is_known and tensor._seen == changes and tensor._array.memory.buffer is memory.buffer:  # type: ignore[union-attr]
                tensor._seen = changes + 1
            return True


def writable_memory(root: Tensor, tensor: Tensor) -> Memory | None:
    """Memory with the values of `root` that only it, and `tensor`, which is it or its view, will see: its own, or new memory if
    it is small.

    None for other values, pending ones but for constants, and those that the outside sees. The caller holds LOCK, and has no
    names for their arrays.
    """
    owned: list[Any] = [root._array.memory]
    if owned[0] is None:
        return _filled(root._array)
    if owned[0].buffer.device is not CPU or owned[0].buffer.shared:
        return None
    owned.append(root._array)
    has_view = tensor is not root and tensor._array.memory is not None and tensor._array.memory.buffer is owned[0].buffer
    if has_view:
        owned += tensor._array, tensor._array.memory
    if is_sole_owner(owned, 1) and is_sole_owner([owned[0].buffer], 1 + has_view):
        return owned[0]  # type: ignore[no-any-return]
    return owned[0].copied(root.dtype, CPU) if root._array.node.nbytes <= FEW else None  # type: ignore[no-any-return]


def _filled(array: Array) -> Memory | None:
    """The memory of a small pending value that is one constant everywhere."""
    node, trace = array.node, array.trace
    if node.nbytes > FEW or trace is None or trace is not thread_state.traces.get(CPU.name) or trace.closed:
        return None
    if array.memory is not None or node.op != "view" or any(node.attrs["strides"]):
        return None
    source = trace.nodes[node.inputs[0]]
    if source.shape or source.op not in ("constant", "scalar"):
        return None
    value = number_for(source.attrs["value"] if source.op == "constant" else trace.scalars[source.attrs["slot"]], node.dtype)
    return None if value is None else Memory.of(np.full(node.shape, value, node.dtype.numpy), node.dtype, CPU)
