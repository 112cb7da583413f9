"""Lazy layers: those whose input size is that of the first input they meet, or of the state dict that they load."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from genesis.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import move_storage

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d",
    "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d",
    "LazyLinear",
]


class _Lazy(Module):
    """What lazy layers share: a layer of input size 0, until the size is known; then it is of the class `becomes`.

    Its parameters stay the same objects, so that an optimizer may have them before.
    """

    becomes: ClassVar[type[Module]]
    cls_to_become: ClassVar[type[Module]]
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __init_subclass__(cls, becomes: type[Module] | None = None) -> None:
        super().__init_subclass__()
        if becomes is not None:
            cls.becomes = cls.cls_to_become = becomes
            signature = inspect.signature(becomes.__init__)
            _, _, *others = signature.parameters.values()
            cls.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
            size = next(name for k, name in enumerate(signature.parameters) if k == 1)
            wanted = ", ".join("3" for p in others if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD)
            cls.__doc__ = f"""`{becomes.__name__}` that finds `{size}` in its first input.

    >>> genesis.nn.{cls.__name__}({wanted}).has_uninitialized_params()
    True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._arguments = args, kwargs
        self.becomes.__init__(self, 0, *args, **kwargs)  # type: ignore[call-arg]

    def reset_parameters(self) -> None:
        """Nothing: there is no element yet."""

    def has_uninitialized_params(self) -> bool:
        """True: the layer is of another class as soon as they are there."""
        return True

    def initialize_parameters(self, input: Tensor) -> None:
        """Become the layer for inputs such as `input`."""
        self._become(self._size_of(input))

    def _size_of(self, input: Tensor) -> int:
        axes = int(self.becomes.__name__[-2])
        return int(input.shape[1 if input.ndim > axes + 1 or "Norm" in self.becomes.__name__ else 0])

    def _size_in(self, state: Mapping[str, Any]) -> int | None:
        """The size by a state dict; None if that does not tell."""
        tensor = next((state[name] for name in ("weight", "running_mean") if name in state), None)
        if tensor is None:
            return None
        if isinstance(self, Conv1d | Conv2d | Conv3d):
            return int(tensor.shape[1]) * self.groups
        return int(tensor.shape[1 if isinstance(self, Linear) else 0])

    def _become(self, size: int) -> None:
        (args, kwargs), kept = self._arguments, dict(self.named_parameters())
        training, like = self.training, next(iter([*kept.values(), *self.buffers()]), None)
        self.__class__ = self.becomes  # type: ignore[assignment]
        del self._arguments
        type(self).__init__(self, size, *args, **kwargs)
        if like is not None and like.dtype.is_floating_point:
            self.to(like.device, like.dtype)
        for name, parameter in kept.items():
            move_storage(parameter, getattr(self, name))
            setattr(self, name, parameter)
        self.training = training

    def forward(self, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Become the layer, and call it."""
        self.initialize_parameters(input)
        result: Tensor = self.forward(input, *args, **kwargs)
        return result

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Become the layer that the state dict is one of, and load it."""
        size = self._size_in({key.removeprefix(prefix): value for key, value in state_dict.items() if key.startswith(prefix)})
        if size is None:
            super()._load_from_state_dict(state_dict, prefix, *others)
        else:
            self._become(size)
            self._load_from_state_dict(state_dict, prefix, *others)


class LazyLinear(_Lazy, Linear, becomes=Linear):
    def _size_of(self, input: Tensor) -> int:
        return int(input.shape[-1])


class LazyConv1d(_Lazy, Conv1d, becomes=Conv1d): ...
class LazyConv2d(_Lazy, Conv2d, becomes=Conv2d): ...
class LazyConv3d(_Lazy, Conv3d, becomes=Conv3d): ...
class LazyConvTranspose1d(_Lazy, ConvTranspose1d, becomes=ConvTranspose1d): ...
class LazyConvTranspose2d(_Lazy, ConvTranspose2d, becomes=ConvTranspose2d): ...
class LazyConvTranspose3d(_Lazy, ConvTranspose3d, becomes=ConvTranspose3d): ...
class LazyBatchNorm1d(_Lazy, BatchNorm1d, becomes=BatchNorm1d): ...
class LazyBatchNorm2d(_Lazy, BatchNorm2d, becomes=BatchNorm2d): ...
class LazyBatchNorm3d(_Lazy, BatchNorm3d, becomes=BatchNorm3d): ...
class LazyInstanceNorm1d(_Lazy, InstanceNorm1d, becomes=InstanceNorm1d): ...
class LazyInstanceNorm2d(_Lazy, InstanceNorm2d, becomes=InstanceNorm2d): ...
class LazyInstanceNorm3d(_Lazy, InstanceNorm3d, becomes=InstanceNorm3d): ...
