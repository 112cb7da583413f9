"""Types by PyTorch's old names: `torch.FloatTensor(2, 3)`, `torch.LongTensor([1, 2])`; memory formats and layouts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import genesis
from genesis.autograd.after_backward import queue_callback
from genesis.functions.methods.inspection import TYPES
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import NAMED, DType
from genesis.ir.named_layouts import Named, strided as strided  # pickles of earlier versions have it from here
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor


class _Kind(type):
    """The metaclass of `torch.FloatTensor` and others: every tensor of the dtype is an instance of such a class."""

    dtype: DType
    device: str

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == cls.device

    def __call__(cls, *arguments: Any, size: Sequence[int] = (), device: DeviceLike = None) -> Tensor:
        if device is not None and genesis.device(device).type != cls.device:
            raise RuntimeError(f"{cls.__name__}: device is {device}; want {cls.device}")
        return legacy_tensor(cls.dtype, *arguments, *size, device=device or cls.device)


def legacy_tensor(dtype: DType, *arguments: Any, device: Any = None) -> Tensor:
    """A tensor of sizes, of data, or that shares memory: `torch.Tensor(2, 3)`, `torch.Tensor([1, 2])`, `torch.Tensor(x)`."""
    return genesis.empty(0, dtype=dtype, device=device).new(*arguments)  # type: ignore[no-any-return]


KINDS, CUDA_KINDS = ({
    name: _Kind(name, (), {"dtype": NAMED[kind], "device": device, "__module__": module}) for name, kind in TYPES.items()}
    for module, device in (("torch", "cpu"), ("torch.cuda", "cuda")))


def _sparse_kind(name: str, dtype: DType) -> AnyFunction:
    def made(indices: Tensor, values: Tensor, size: Any = None, **settings: Any) -> Tensor:
        return genesis.sparse_coo_tensor(indices, values, size, dtype=dtype, **settings)

    made.__name__, made.__doc__ = name, f"A sparse tensor of {dtype.name}, by PyTorch's old name."
    return made


SPARSE_KINDS = {name: _sparse_kind(name, NAMED[kind]) for name, kind in TYPES.items()}


class _AnyTensor(type):
    """The class of `torch.autograd.Variable`, which all tensors are instances of."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_AnyTensor):
    """The tensor itself, from here on a leaf."""

    _execution_engine = SimpleNamespace(queue_callback=lambda callback: queue_callback(partial(callback)))


def set_default_tensor_type(t: Any) -> None:
    """Set the type of new floating tensors: `torch.DoubleTensor`, or its name."""
    name = t if isinstance(t, str) else t.__name__
    genesis.set_default_dtype(NAMED[TYPES[name.rpartition(".")[2]]])


class MemoryFormat(Named):
    """The memory order of a tensor's elements. It has no effect: genesis stores them in the order of their axes."""


contiguous_format, preserve_format, channels_last, channels_last_3d = map(
    MemoryFormat, ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
)


NOT_REPLAYABLE = ("set_default_tensor_type",)
