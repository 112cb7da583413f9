"""`out=`: writing results into the caller's tensors, the same for every operation."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from genesis.ir.annotations import AnyFunction, Options
from genesis.ir.errors import ArgumentError
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.handle import Tensor, root_of, tensors_in
from genesis.tensor.in_place import write
from genesis.tensor.return_types import written_to
from genesis.tensor.versions import count_write
from genesis.tensor.views import move_storage
from genesis.tracing.recording_hooks import storage_written
from genesis.tracing.state import grad_mode, thread_state

F = TypeVar("F", bound=AnyFunction)
Targets = Tensor | Sequence[Tensor]
_RANGES = frozenset({"arange", "linspace", "logspace", "range"})  # they fill tensors of as many elements, of any shape
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}  # NumPy's argument names, accepted by every function


def takes_out(function: F) -> F:
    """Decorator that adds `out=` and NumPy's names to a function of Tensors that is not a row.

    What makes new tensors, as `zeros`, makes them of the dtype of `out` on its device; another dtype= is refused.
    """
    makes_new = {"dtype", "device"} <= (function.__kwdefaults__ or {}).keys()

    @functools.wraps(function)
    def either(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return function(*args)
        kwargs = {NUMPY_NAMES.get(name, name): value for name, value in kwargs.items()}
        out = kwargs.pop("out", None)
        if out is None:
            return function(*args, **kwargs)
        if makes_new and isinstance(out, Tensor):
            kwargs = {"device": out.device, **kwargs, "dtype": kwargs.get("dtype") or out.dtype}
        return into(out, function.__name__, function, args, kwargs)

    return either  # type: ignore[return-value]


def into(out: Targets, name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Options) -> Any:
    """Call `function` and put its results into `out`, a tensor or one for each of several results; returns these.

    A tensor of another shape is resized, one with elements with a warning. Results are converted to a tensor's dtype within
    its category or to a wider one. Nothing is written if anything is refused.

    Raises RuntimeError for tensors that require gradients while these are recorded, for a dtype that the results do not
    convert to, and for another device; TypeError for other than Tensors; ValueError for another number of them.
    """
    targets = [out] if isinstance(out, Tensor) else [*out]
    for target in targets:
        if not isinstance(target, Tensor):
            raise TypeError(f"{name}: out= takes Tensors, got {type(target).__name__}")
    if thread_state.grad_enabled and any([t.requires_grad for t in [*targets, *tensors_in([*args, *kwargs.values()])]]):
        raise RuntimeError(
            f"{name}: out= leaves no derivation, but one of the arguments requires grad; use genesis.no_grad() or detach()")
    if isinstance(out, Tensor) and kwargs.get("dtype") not in (None, out.dtype):
        raise RuntimeError(f"{name}: dtype {kwargs['dtype']} does not match out=, which has {out.dtype}")
    with grad_mode(False):
        results = function(*args, **kwargs)
        values = [results] if isinstance(results, Tensor) else [*results]
        if len(values) != len(targets):
            raise ArgumentError(f"{name}: out= has {len(targets)} tensors for {len(values)} results")
        for target, value in zip(targets, values, strict=True):
            _check(name, target, value)
        for target, value in zip(targets, values, strict=True):
            _put(name, target, value)
    if isinstance(results, Tensor):
        return targets[0]
    return written_to(results, targets)


def _check(name: str, target: Tensor, value: Tensor) -> None:
    if value.dtype.category > target.dtype.category:
        raise RuntimeError(
            f"{name}: result type {value.dtype.name} can't be cast to the desired output type {target.dtype.name} of out=")
    if array_of(value).device is not array_of(target).device:
        raise RuntimeError(f"{name}: the result is on {array_of(value).device}, out= on {array_of(target).device}")


def _put(name: str, target: Tensor, value: Tensor) -> None:
    if value.dtype is not target.dtype:
        value = call(OPERATIONS["to_dtype"], (value, target.dtype))
    elif value._base is not None or array_of(value).trace is None:  # an argument itself, or a view of one
        value = value.clone()
    if value.shape != target.shape and name in _RANGES and value.numel() == target.numel():
        value = value.reshape(target.shape)
    if value.shape == target.shape:
        write(target, value)
        return
    if target.numel():
        warnings.warn(
            f"{name}: out= has shape {target.shape} and is resized to {value.shape}; want a tensor of that shape, or an empty "
            "one", stacklevel=6)
    storage_written(root_of(target))
    if target._storage is None:
        move_storage(target, value)
        count_write(target)
    else:  # other tensors share it
        write(target.resize_(value.shape), value)
