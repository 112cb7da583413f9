"""Undocumented functions of `torch` and `torch._utils` that public code imports: tensors as one, arguments of `to`, checks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import genesis
from genesis.functions.overrides import routed_function
from genesis.ir.annotations import AnyFunction
from genesis.nn.utils.parameters import parameters_to_vector
from genesis.tensor.handle import Tensor


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements of `tensors` in one vector."""
    return parameters_to_vector(tensors)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of `flat` in the shapes of `tensors`."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True))


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor's class defines how it is decomposed into tensors."""
    return isinstance(t, Tensor) and all(hasattr(type(t), f"__tensor_{way}__") for way in ("flatten", "unflatten"))


@genesis.no_grad()
def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Tensor | None]], list[int]]]:
    """The lists grouped by device and dtype of the first list's tensors, with their original positions."""
    groups: dict[tuple[Any, Any], tuple[list[list[Tensor | None]], list[int]]] = {}
    for position, first in enumerate(tensorlistlist[0]):
        assert first is not None
        lists, positions = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for grouped, given in zip(lists, tensorlistlist, strict=True):
            if given:  # an empty list stays empty, as PyTorch's
                grouped.append(given[position])
        if with_indices:
            positions.append(position)
    return groups


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, `non_blocking` and memory format among the arguments of `to`."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    flags = [arg for arg in args if isinstance(arg, bool)]
    for arg in args:
        if isinstance(arg, Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, genesis.DType):
            dtype = arg
        elif arg is not None and not isinstance(arg, bool):
            device = arg
    return (None if device is None else genesis.device(device), dtype, bool(kwargs.get("non_blocking", flags[:1] == [True])),
            kwargs.get("memory_format"))


# ---- checks ----
def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], object] | None) -> None:
    """Raise `error_type` with the result of `message` unless `cond` is true. Raises TypeError if it is no bool."""
    if isinstance(cond, Tensor):
        raise TypeError("cond must be a bool, but got a Tensor; _check_tensor_all() takes one")
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    if not cond:
        raise error_type("Expected cond to be True, but got False." if message is None else str(message()))


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable[[], object] | None = None
) -> None:
    """Raise `error_type` with the result of `message` unless all elements are true. Computes the tensor."""
    _check_with(error_type, bool(cond.all()), message)


def _assert_async(input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError with this message unless the only element is true. Computes the tensor."""
    if not bool(input):
        raise RuntimeError(assert_msg)


@routed_function
def _assert(condition: object, message: object) -> None:
    """As an assert statement, for functions of which graphs are made."""
    if not condition:
        raise AssertionError(message)


CHECKS: dict[str, AnyFunction] = {
    "_assert": _assert, "_assert_async": _assert_async,
    "_check_with": _check_with, "_check_tensor_all_with": _check_tensor_all_with,
    "_check_tensor_all": functools.partial(_check_tensor_all_with, RuntimeError),
    **{f"_check{name}": lambda cond, message=None, kind=kind: _check_with(kind, cond, message) for name, kind in {
        "": RuntimeError, "_index": IndexError, "_value": ValueError, "_type": TypeError,
        "_not_implemented": NotImplementedError}.items()},
}
