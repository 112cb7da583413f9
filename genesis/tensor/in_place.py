"""Writing into a tensor's storage.

Arrays are immutable: a write gives the root of a storage a new array and raises the root's version. Memory shared with the
outside is written immediately.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

from genesis.execution.realize import realize
from genesis.ir.annotations import Attributes
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ops import indexing
from genesis.ops.layout import contiguous_layout
from genesis.ops.registry import OPERATIONS, Operation
from genesis.ops.view_gradient import is_injective
from genesis.runtime.devices import CPU
from genesis.tensor.bare_root import update_bare_root
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import array_of, call, known, read_by
from genesis.tensor.handle import CallArguments, Tensor, detached_root, root_of, tensor_of
from genesis.tensor.owned_memory import FEW, writable_memory, written_at_once
from genesis.tensor.versions import count_write, retain_at, versions_of
from genesis.tensor.view_memory import is_whole, seen_by
from genesis.tracing.recording_hooks import storage_written
from genesis.tracing.state import grad_mode, thread_state
from genesis.tracing.tensor_state import UNTRACKED
from genesis.tracing.trace import LOCK, Array, Change, Trace, critical

_new = tuple.__new__  # of a named tuple, in half the time
_FEW_CALLS = 16  # before a write: more may be a program that repeats with it


def write(tensor: Tensor, value: Tensor, change: Change | None = None) -> Tensor:
    """Put `value` (of the tensor's shape and dtype) into the tensor's storage; returns the tensor.

    `change` is the call that makes the change, if it is not the last one recorded; that call itself may read the former value.

    Raises RuntimeError for a leaf that requires a gradient while gradients are recorded, and for a tensor several of
    whose elements share one address.
    """
    if tensor.__class__ is not Tensor and isinstance(tensor, CompositeTensor):
        return tensor.written(value)
    array = array_of(tensor)
    if value._array.node.shape != array.node.shape:
        raise _misfit(tensor, value._array)
    change = change or last_change(value._array)
    if _is_replaced(tensor, value._array, change):
        return tensor
    refuse_leaf(tensor)
    if thread_state.multi_device and value._array.device is not array.device:
        raise RuntimeError(f"in-place: the result is on {value._array.device}, the tensor on {array.device}; use .to() first")
    if tensor._detached and thread_state.grad_enabled and (value._array.node.differentiable or array.node.differentiable):
        return _write_detached(tensor, value, change)
    root = tensor if tensor._base is None else tensor._base
    unrecorded = tensor._detached or root._keeps_derivation or not thread_state.grad_enabled
    keeps_derivation = unrecorded and root._array.node.differentiable
    if tensor._base is not None:
        require_apart(tensor)
    if not (root._keeps_derivation or (tensor._versions is not None and tensor._versions.are_ignored)):
        note(root._array, change)
        if array is not root._array:
            note(array, change)
    if unrecorded and value._array.node.differentiable:
        value = call(OPERATIONS["stop_gradient"], (value,))
    if tensor._base is None:
        _store(tensor, tensor, rederived(tensor, value) if keeps_derivation else value)
    else:
        del array  # an owner of the memory
        _write_view(tensor, root, value, unrecorded, keeps_derivation)
        array_of(tensor)
    return tensor


def refuse_leaf(tensor: Tensor) -> None:
    """Raise RuntimeError if `tensor` is a leaf that requires a gradient, or views one, while gradients are recorded, or if it
    is one of inference mode outside of that.
    """
    if (tensor if tensor._base is None else tensor._base)._is_inference and thread_state.grad_enabled is not None:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
            "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.")
    if thread_state.grad_enabled:
        viewed = detached_root(tensor) if tensor._detached else root_of(tensor)
        for leaf in (tensor, viewed):
            if leaf._requires_grad and not array_of(leaf).node.differentiable:
                what = "a leaf tensor" if leaf is tensor else "a view of a leaf"
                raise RuntimeError(f"{what} that requires grad cannot be changed in place; wrap it in genesis.no_grad()")


def require_apart(view: Tensor) -> None:
    """Raise RuntimeError if elements of `view` share memory, as those of an expanded tensor."""
    if view._layout is not None and not is_injective(view._layout):
        raise RuntimeError("in-place: several elements of the tensor share one place; clone() it first")


def _write_view(tensor: Tensor, root: Tensor, value: Tensor, unrecorded: bool, keeps_derivation: bool) -> None:
    """Write `value` into the part of its root that `tensor` views; immediately if the outside shares the memory."""
    layout = tensor._layout
    assert layout is not None
    if tensor._element_map is not None:
        value = _call_with(not unrecorded, tensor._element_map, (value,))
    memory = root._array.memory
    if memory is not None:
        has_derivation = value._array.node.differentiable or root._array.node.differentiable
        if memory.buffer.shared and (keeps_derivation or not has_derivation):
            storage_written(root)
            memory.at(layout, tensor.dtype, root.dtype).overwrite(realize(value._array), tensor.dtype)
            count_write(tensor)
            return
        del memory
        if not has_derivation and _is_written_at_once(tensor, root, value._array):
            return
    if is_whole(tensor, root):
        whole = value
    else:
        with grad_mode(not unrecorded):
            whole = _with_part(tensor, root, value)
    _store(tensor, root, rederived(root, whole) if keeps_derivation else whole)


def _with_part(view: Tensor, root: Tensor, value: Tensor) -> Tensor:
    """`root`, a whole storage, with `value`, elements as they are stored, in the place of those of `view`."""
    if view.dtype is root.dtype:
        return call(OPERATIONS["put"], (root, value), view.storage_layout._asdict())  # type: ignore[no-any-return]
    return call(OPERATIONS["put_part"], (root, value, view.storage_layout))  # type: ignore[no-any-return]


def takes_writes(trace: Trace | None) -> bool:
    """Whether values of `trace` may be computed now to write them at once: it has few calls, a program that repeats wherever
    the script writes.
    """
    state = thread_state
    if state.recorder is not None or state.deferred or critical.running:
        return False
    return trace is None or trace.done or (not trace.closed and len(trace.lines) <= _FEW_CALLS and trace.device is CPU)


def _is_written_at_once(tensor: Tensor, root: Tensor, value: Array) -> bool:
    """Write a small value into a view's part of memory of its root alone, if few calls lead to it; whether that was done."""
    if root._requires_grad or versions_of(tensor) or value.node.nbytes > FEW or not takes_writes(value.trace):
        return False
    computed = realize(value)
    with LOCK:
        return written_at_once(root, tensor, lambda memory, is_known: memory.overwrite(computed, tensor.dtype) is None)  # type: ignore[func-returns-value]


def in_place_form(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The in-place form `name_` of `function`, which writes the result into its first argument."""

    def changed(input: Tensor, *args: object, **kwargs: object) -> Tensor:
        read_in_root(input)
        return write(input, function(input, *args, **kwargs))

    changed.__name__ = changed.__qualname__ = function.__name__ + "_"
    changed.__module__ = function.__module__
    changed.__doc__ = f"`{function.__name__}`, in place."
    return changed


def read_in_root(tensor: Tensor) -> None:
    """Before a write to a view of a large root: have the trace read the view from its root, so that it has one input for that
    memory, the root, which may be overwritten.
    """
    root = root_of(tensor)
    whole = root._array
    if root is tensor or whole.memory is None or whole.memory.buffer.nbytes < indexing.LARGE:
        return
    view = array_of(tensor)
    if tensor._detached or tensor._versions or view.memory is None:
        return
    if (whole.memory.buffer.shared or view.node.differentiable or whole.node.differentiable or root._requires_grad
            or tensor.dtype is not root.dtype or tensor._element_map is not None):
        return
    del view, whole  # owners of the memory
    if not (takes_writes(thread_state.trace) and writable_memory(root, tensor) is not None):
        tensor._array = call(OPERATIONS["view_at"], (root, tensor._layout))._array


def _misfit(tensor: Tensor, array: Array) -> ArgumentError:
    return ArgumentError(f"in-place: the result has shape {array.node.shape}, which does not fit into {tensor.shape}")


def write_all(tensors: Sequence[Tensor], values: Sequence[Array]) -> None:
    """`write` for the results of one call, each into its tensor. Hot: common conditions are checked once."""
    if not values:
        return
    for tensor, array in zip(tensors, values, strict=True):  # checks come before any write
        if array.node.shape != tensor._array.node.shape:
            raise _misfit(tensor, array)
    change = last_change(values[0])
    for tensor, array in zip(tensors, values, strict=True):
        if not _is_replaced(tensor, array, change):
            write(tensor, tensor_of(array, array.node.differentiable), change)


def _is_replaced(tensor: Tensor, value: Array, change: Change | None) -> bool:
    """Replace the array of a root where nothing else has a say: no gradient, mode, or view from outside; whether it was. Hot.

    Once the tensor's array is known nothing is called, and so no signal handler comes between.
    """
    reference = None if tensor._array.memory is not None else weakref.ref(tensor)
    state, before, trace = thread_state.__dict__, tensor._array, value.trace
    if (
        tensor._base is not None or before.node.differentiable or value.node.differentiable or trace is None or trace.done
        or state["multi_device"] or state["recorder"] is not None or (tensor._requires_grad and state["grad_enabled"])
        or tensor._versions or tensor._keeps_derivation or tensor._retains_grad or tensor._is_inference
    ):
        return False
    memory, changes = before.memory, tensor._changes
    if memory is not None:
        buffer = memory.buffer
        if before.trace is not None or buffer.origin is not None or buffer._owner is not None or buffer._flat is not None:
            return False
        buffer.version += 1
        buffer.change = change
        trace.written += ((tensor, before, changes),)
    elif before.trace is trace and reference is not None:  # hold no reference to a pending array, not even the tensor's
        trace.changed[before.index] = change
        trace.written += ((reference, before.index, changes),)
    else:
        return False
    tensor._array = value
    tensor._changes = changes + 1
    return True


def _write_detached(tensor: Tensor, value: Tensor, change: Change | None) -> Tensor:
    """Write a value with a derivation into a detached tensor or its view, or over such a value: the storage gets the values,
    the detached tensor the derivation.
    """
    holder = detached_root(tensor)
    if holder is not tensor:
        require_apart(tensor)
        mapped = value if tensor._element_map is None else call(OPERATIONS[tensor._element_map], (value,))
        whole = _with_part(tensor, holder.as_strided(*contiguous_layout(root_of(tensor).shape)), mapped)
        parts = {part: read_by(part, whole) for part in (holder, tensor)}
        note(array_of(holder), change)
    elif tensor._detached_root is not None:
        raise RuntimeError("in-place: a view of a detached tensor's former storage, or of one of parts or conjugates, cannot "
                           "take what carries a gradient; clone() it first")
    else:
        parts = {tensor: value if value._array.node.differentiable else call(OPERATIONS["overwrite"], (tensor, value))}
    with grad_mode(False):
        write(tensor, call(OPERATIONS["stop_gradient"], (value,)), change)
    for part, derived in parts.items():
        part._array, part._requires_grad = derived._array, derived._array.node.differentiable
        part._seen = seen_by(part, root_of(tensor))
    return tensor


def last_change(value: Array) -> Change | None:
    """The change by the last recorded call, which computed `value`."""
    trace, index = value.trace, value.index
    if trace is None or not trace.lines:
        return None
    line = trace.lines[-1]
    if line[0] > index:  # a signal handler has recorded in between
        line = trace.call_at(index) or line
    return _new(Change, (trace.reference, line))


def note(array: Array, change: Change | None) -> None:
    """Make a later backward that reads `array` raise, because it has changed."""
    if array.trace is not None:
        array.trace.changed[array.index] = change
    if array.memory is not None:
        buffer = array.memory.buffer
        buffer.version += 1
        buffer.change = change
        if buffer.origin is not None and (trace := buffer.origin[0]()) is not None:
            trace.changed[buffer.origin[1]] = change


def rederived(root: Tensor, value: Tensor) -> Tensor:
    """`value` with the derivation of the root's present array: an unrecorded write changes only values."""
    if value.shape != root.shape:
        raise _misfit(root, value._array)
    return _call_with(True, "with_value", (root, value))


def _call_with(grad: bool, name: str, arguments: CallArguments, attributes: Attributes | None = None) -> Tensor:
    """Call an operation with the recording of gradients switched on or off."""
    with grad_mode(grad):
        return call(OPERATIONS[name], arguments, attributes)


def _store(tensor: Tensor, root: Tensor, value: Tensor) -> None:
    """Make `value` the root's array, by a write to `tensor`. Storage that the outside shares is written immediately."""
    memory, versions = root._array.memory, versions_of(tensor)
    storage_written(root)
    if root._array.node.differentiable and not value._array.node.differentiable:
        value = call(OPERATIONS["overwrite"], (root, value))
    if root._retains_grad:
        retain_at(root, value._array)
    if memory is not None and memory.buffer.shared:
        memory.overwrite(realize(value._array), root.dtype)
        if value._array.node.differentiable or root._array.node.differentiable:
            value._array.memory = memory
            root._array = value._array
    else:
        trace, array, reference = value._array.trace, root._array, weakref.ref(root)
        if trace is None or trace.done:  # nothing can take it back: it has been computed, or raises here if it was lost
            realize(value._array)  # elsewhere nothing is called, and so no signal handler comes between
        elif memory is not None:
            trace.written += ((root, array, root._changes),)
        elif array.trace is trace:  # hold no reference to a pending array, not even the tensor's
            trace.written += ((reference, array.index, root._changes),)
        if versions is not None and trace is not None:
            trace.written += ((versions, value._array.index, versions.count),)
        root._array = value._array
    root._changes += 1 if versions is None else UNTRACKED  # without a call since the array is assigned
    if versions is not None:
        versions.count += 1
    if root._bare_root is not None:
        update_bare_root(root)
    if value._array.node.differentiable:
        root._requires_grad = True


def in_place(
    tensor: Tensor, operation: Operation, arguments: CallArguments = (), attributes: Attributes | None = None
) -> Tensor:
    """Run an operation on `tensor` and further arguments, and put the result into it."""
    if tensor._base is not None:
        read_in_root(tensor)
    value = (call if attributes else known.call)(operation, (tensor, *arguments), attributes, False, tensor)
    if value is tensor:
        return tensor
    change, name = None, operation.name
    if isinstance(value, CompositeTensor) and not isinstance(tensor, CompositeTensor):
        value = value.to_dense()
    if value.shape != tensor.shape:
        raise ArgumentError(f"{name}_: the result has shape {value.shape}, which does not fit in place into {tensor.shape}")
    if value.dtype is not tensor.dtype:
        if value.dtype.category > tensor.dtype.category:
            raise ArgumentTypeError(f"{name}_: a {value.dtype.name} result cannot be cast in place to {tensor.dtype.name}")
        change = None if isinstance(value, CompositeTensor) else last_change(value._array)
        value = call(OPERATIONS["to_dtype"], (value, tensor.dtype))
    return write(tensor, value, change)
