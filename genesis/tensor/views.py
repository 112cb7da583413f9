"""Views: tensors that share the storage of a root, with their own layout or derivation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from genesis.execution.realize import realize
from genesis.ir.annotations import Arguments, Attributes
from genesis.ir.dtypes import DType, as_dtype
from genesis.ir.errors import ArgumentError, ArgumentTypeError, also_runtime_error
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape
from genesis.ops.layout import LAYOUT_RULES, Layout, contiguous_layout
from genesis.ops.registry import OPERATIONS
from genesis.tensor.bare_root import bare_root
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.first_call import holds_number, number_in
from genesis.tensor.handle import LAZY, Tensor, result_class, share_storage, tensor_of
from genesis.tensor.known_calls.calls import KnownCalls
from genesis.tensor.versions import leave_storage, own_versions
from genesis.tensor.view_memory import make_view
from genesis.tracing.memory import Memory
from genesis.tracing.recording_hooks import value_looked_at
from genesis.tracing.state import thread_state
from genesis.tracing.tensor_state import EXPOSED
from genesis.tracing.trace import LOCK, Array, in_memory

_SPREAD = {"flip": "dims", "permute": "dims", "expand": "size", "view": "size", "reshape": "shape"}  # `*dims`, by name
_NO_ATTRIBUTES: Attributes = {}
_Placed = tuple[Layout, Node, int, Shape | None]


def view(tensor: Tensor, name: str, *arguments: object, **attributes: object) -> Tensor:
    """A tensor that shares `tensor`'s storage (or a copy, where reshape cannot share)."""
    return (_viewed if attributes else known_views.call)(tensor, name, arguments, **attributes)  # type: ignore[no-any-return]


def _viewed(tensor: Tensor, name: str, arguments: Arguments, **attributes: object) -> Tensor:
    """`view`, by Python."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"{name}: input is a {type(tensor).__name__}; want a tensor")
    if attributes and name in _SPREAD and (given := attributes.pop(_SPREAD[name], None)) is not None:
        arguments = (given,)
    if not attributes and _are_plain(arguments):
        return _view_by(_remembered, tensor, name, arguments, _NO_ATTRIBUTES)
    wanted = attributes.get("dtype", arguments[0] if arguments else None) if name == "view" else None
    if isinstance(wanted, DType | str):
        dtype = as_dtype("view", wanted)
        return view(tensor, name, tuple(tensor.shape)) if dtype is tensor.dtype else bitcast(tensor, dtype)
    if any(map(holds_number, [*arguments, *attributes.values()])):
        arguments = tuple(number_in(name, "an argument", argument) for argument in arguments)
        attributes = {key: number_in(name, key, argument) for key, argument in attributes.items()}
    return _view_by(_placed, tensor, name, arguments, attributes)


def _view_by(
    placed: Callable[..., _Placed | None], tensor: Tensor, name: str, arguments: Arguments, attributes: Attributes
) -> Tensor:
    if tensor.__class__ is not Tensor and isinstance(tensor, CompositeTensor):
        return tensor.computed(name, (tensor, *arguments), attributes)  # type: ignore[no-any-return]
    with LOCK:
        base = tensor._base
        array = tensor._array if base is None else array_of(tensor)
        node, memory = array.node, array.memory
        at = tensor._layout or contiguous_layout(node.shape)
        try:
            to = placed(name, at, node.dtype, *arguments, **attributes)
        except (ValueError, TypeError, IndexError) as problem:
            raise also_runtime_error(problem) from None
        if to is None:
            return _reshaped_copy(tensor, name, *arguments, **attributes)
        there = None  # in memory, if the view needs no derivation
        if memory is not None and not (tensor._requires_grad and thread_state.grad_enabled):
            there = to if memory.layout == at else placed(name, memory.layout, node.dtype, *arguments, **attributes)
        if there is not None:
            result = tensor_of(Array.laid(memory.buffer, *there))  # type: ignore[union-attr]
        else:
            result = call(OPERATIONS[name], (tensor, *arguments), attributes)
        make_view(result, tensor, to[0], tensor._element_map)
        if tensor.__class__ is not Tensor:
            result.__class__ = result_class(tensor)
        return result


def _are_plain(arguments: Iterable[object]) -> bool:
    """Whether arguments are ints (no traced ones), None and tuples of these: equal ones mean the same."""
    for argument in arguments:
        kind = type(argument)
        if kind is not int and argument is not None and not (kind is tuple and _are_plain(argument)):  # type: ignore[arg-type]
            return False
    return True


def _placed(name: str, at: Layout, dtype: DType, *arguments: Any, **attributes: Any) -> _Placed | None:
    """The layout of a view, and what arrays in memory share that have it; None where a copy is needed."""
    to = LAYOUT_RULES[name](at, *arguments, **attributes)
    return None if to is None else (to, *in_memory(to, dtype))


_remembered = lru_cache(maxsize=16384)(_placed)
known_views = KnownCalls("genesis_view", _viewed, _remembered)  # `view` of a tuple of arguments


def _reshaped_copy(tensor: Tensor, name: str, *arguments: object, **attributes: object) -> Tensor:
    """The copy that `reshape` makes where no view exists; `view` and `unflatten` raise ValueError instead."""
    if name in ("view", "unflatten"):
        raise ArgumentError(
            f"{name}: shape {tensor.shape} with strides {tensor.stride()} cannot be viewed as {arguments}; use reshape, "
            "which copies")
    copied = LAYOUT_RULES[name](contiguous_layout(tensor.shape), *arguments, **attributes)
    assert copied is not None, "a contiguous layout takes every shape"
    return call(OPERATIONS["reshape_copy"], (tensor, copied.shape))  # type: ignore[no-any-return]


def bitcast(tensor: Tensor, dtype: DType) -> Tensor:
    """The bytes of `tensor` as elements of another dtype, in the same memory; the last axis grows or shrinks with their size.

    Raises RuntimeError for a tensor that requires a gradient, ValueError for bytes that do not lie as whole elements.

    >>> genesis.tensor([1.0, -2.0]).view(genesis.int32)
    tensor([ 1065353216, -1073741824], dtype=genesis.int32)
    """
    if tensor._element_map is not None:
        raise RuntimeError(f"view: {LAZY[tensor._element_map]} has no bytes of its own")
    if tensor._requires_grad and thread_state.grad_enabled:
        raise RuntimeError("view: the bytes of a tensor that requires a gradient have none; detach() it")
    with LOCK:
        memory = memory_of(tensor)
        buffer, (shape, strides, offset) = memory.buffer, memory.layout
        own, other = tensor.dtype.itemsize, dtype.itemsize
        if own != other:
            last = shape[-1] * own if shape else 1
            if not shape or strides[-1] != 1 or last % other or any(
                start * own % other for start in (*strides[:-1], offset)
            ):
                raise ArgumentError(f"view: {tensor.dtype.name} {shape} with strides {strides} cannot be seen as {dtype.name}")
            shape = (*shape[:-1], last // other)
            strides, offset = (*[stride * own // other for stride in strides[:-1]], 1), offset * own // other
        buffer.expose()  # two dtypes share these bytes, so writes through either are immediate
        root = tensor_of(Array.realized(buffer, contiguous_layout((buffer.nbytes // other,)), dtype))
        result = tensor_of(Array.realized(buffer, Layout(shape, strides, offset), dtype))
        share_storage(result, root, Layout(shape, strides, offset))
        return result


def detach(tensor: Tensor) -> Tensor:
    """A tensor that shares `tensor`'s storage and has no derivation.

    >>> x = genesis.ones(2, requires_grad=True)
    >>> x.detach().mul_(5), x
    (tensor([5., 5.]), tensor([5., 5.], requires_grad=True))
    """
    if tensor.__class__ is not Tensor and isinstance(tensor, CompositeTensor):
        return tensor.detach()
    array = tensor._array if tensor._base is None else array_of(tensor)
    if not array.node.differentiable:
        result = tensor_of(array)
    elif (memory := array.memory) is not None:  # holds no reference to the derivation, so endless loops stay bounded
        result = tensor_of(Array(None, -1, _input_like(array.node), memory))
    else:
        result = call(OPERATIONS["stop_gradient"], (tensor,))
    root = tensor if tensor._base is None else tensor._base
    result._detached = True
    if root is not tensor:
        result._versions = tensor._versions
    share_storage(result, root, tensor._layout or contiguous_layout(tensor.shape), tensor._element_map)
    if root._origin is None and root._array.node.differentiable:
        result._base = bare_root(root, result._array if root is tensor else None)
    if tensor.__class__ is not Tensor:
        result.__class__ = result_class(tensor)
    return result


@lru_cache(maxsize=4096)
def _input_like(node: Node) -> Node:
    return Node("input", (), {}, node.shape, node.dtype)


def share_data(tensor: Tensor, data: Tensor, rebound: bool = False) -> None:
    """Make `tensor`, which is new or has left its storage, a leaf that shares the storage of `data`; a new one shares also its
    count of writes, one that is `rebound` has its own.

    If `data` is a root without views, `tensor` becomes the root and `data` a view of it, as `data` usually dies soon.
    """
    with LOCK:
        array = array_of(data)
        if data._base is None and data._storage is None and not (data._requires_grad or data._keeps_derivation):
            if rebound:
                data._versions = own_versions(data)
            else:
                tensor._changes, tensor._versions = data._changes, data._versions
            tensor._array = array
            if data._is_inference:
                tensor._is_inference = True
            share_storage(data, tensor, contiguous_layout(data.shape))
            data._detached = True
        else:
            shared = detach(data)
            tensor._versions = own_versions(tensor) if rebound else shared._versions
            assert shared._base is not None, "it is a view of `data`, or of what that views"
            share_storage(tensor, shared._base, shared._layout, shared._element_map)
            tensor._array, tensor._detached = shared._array, True


def move_storage(tensor: Tensor, value: Tensor) -> None:
    """Rebind a leaf to the storage of `value`, perhaps on another device; its views keep the former, and all their count."""
    if isinstance(tensor, CompositeTensor):
        tensor.moved_to(value)
        return
    leave_storage(tensor)
    share_data(tensor, value, rebound=True)


def memory_of(tensor: Tensor) -> Memory:
    """The memory of the tensor's elements in its storage, computed now if pending. Roots are contiguous."""
    value_looked_at()
    root = tensor
    if tensor._base is not None:
        array_of(tensor)  # refreshes a view whose root was written to
        root = tensor._base
    memory = root._array.memory or realize(root._array)
    if not memory.buffer.shared:
        # Views made while the root was pending have values of their own: from now on they must see writes from outside.
        root._changes += EXPOSED
    return memory if root is tensor else memory.at(tensor.storage_layout, tensor.dtype, root.dtype)
