"""Lazy layers: their input size comes from the first input, or from a loaded state dict."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from genesis.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.nn.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from genesis.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter, UninitializedTensorMixin, is_lazy
from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d",
    "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d",
    "LazyLinear", "LazyModuleMixin",
]


class LazyModuleMixin:
    """A mixin for modules with parameters or buffers whose shapes depend on the first call; list it before other bases.

    The class defines `initialize_parameters`, which gets the first call's arguments and must materialize them. The module then
    changes its class to `cls_to_become`, unless that is None.

    >>> class Scale(LazyModuleMixin, genesis.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = genesis.nn.UninitializedParameter()
    ...     def initialize_parameters(self, x):
    ...         self.factor.materialize(x.shape[-1:])
    ...         genesis.nn.init.ones_(self.factor)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(genesis.ones(1, 3))
    tensor([[1., 1., 1.]], grad_fn=<MulBackward>)
    """

    cls_to_become: type[Module] | None = None
    _is_inferred: bool = False

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize all parameters and buffers for a call with these arguments. Subclasses define it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether one of its own parameters or buffers has no shape yet."""
        return any(map(is_lazy, _own_tensors(self).values()))

    def _infer_parameters(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Initialize the parameters for a call with these arguments, and change the class."""
        self.initialize_parameters(*args, **kwargs or {})
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
        self._is_inferred = True
        if self.cls_to_become is not None:
            del self._is_inferred
            self.__class__ = self.cls_to_become  # type: ignore[assignment]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._is_inferred:
            self._infer_parameters(self, args, kwargs)
            return self(*args, **kwargs)
        return super().__call__(*args, **kwargs)  # type: ignore[misc]


def _own_tensors(module: Any) -> dict[str, Tensor]:
    """A module's own parameters and buffers, by their names."""
    return {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}


class _Lazy(LazyModuleMixin, Module):
    """The base of lazy layers: a layer of input size 0 whose parameters and buffers get their shapes later.

    They stay the same objects, so an optimizer may hold them before.
    """

    __signature__: inspect.Signature
    cls_to_become: type[Module]
    _size_name: str
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __init_subclass__(cls, becomes: type[Module] | None = None, **defaults: Any) -> None:
        super().__init_subclass__()
        if becomes is not None:
            cls.cls_to_become = becomes
            signature = inspect.signature(becomes.__init__)
            _, size, *others = [p.replace(default=defaults.get(p.name, p.default)) for p in signature.parameters.values()]
            cls.__signature__ = signature.replace(parameters=others)
            cls._size_name = size.name
            wanted = ", ".join("3" for p in others if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD)
            cls.__doc__ = f"""`{becomes.__name__}` that finds `{size.name}` in its first input.

    >>> genesis.nn.{cls.__name__}({wanted}).{size.name}
    0
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = self.__signature__.bind(*args, **kwargs)
        given.apply_defaults()
        self._arguments = args, kwargs = given.args, given.kwargs
        self.cls_to_become.__init__(self, 0, *args, **kwargs)  # type: ignore[call-arg]
        for name, tensor in _own_tensors(self).items():
            if tensor.ndim:
                kind = UninitializedParameter if isinstance(tensor, Parameter) else UninitializedBuffer
                setattr(self, name, kind(tensor.requires_grad, tensor.device, tensor.dtype))

    def reset_parameters(self) -> None:
        """Does nothing: there are no elements yet."""

    def initialize_parameters(self, input: Tensor) -> None:
        """Give parameters and buffers their shapes, for inputs like `input`, and initial values."""
        if self.has_uninitialized_params() or not getattr(self, self._size_name):
            self._initialize(self._size_of(input))

    def _size_of(self, input: Tensor) -> int:
        axes = int(self.cls_to_become.__name__[-2])
        return int(input.shape[1 if input.ndim > axes + 1 or "Norm" in self.cls_to_become.__name__ else 0])

    def _size_in(self, state: Mapping[str, Any]) -> int | None:
        """The input size according to a state dict; None if unknown."""
        tensor = next((state[name] for name in ("weight", "running_mean") if name in state), None)
        if tensor is None or is_lazy(tensor):
            return None
        if isinstance(self, Conv1d | Conv2d | Conv3d):
            return int(tensor.shape[1]) * self.groups
        return int(tensor.shape[1 if isinstance(self, Linear) else 0])

    def _initialize(self, size: int) -> None:
        args, kwargs = self._arguments
        made = self.cls_to_become(size, *args, **kwargs)
        own, values = _own_tensors(self), _own_tensors(made)
        with grad_mode(False):
            for name, tensor in own.items():
                if isinstance(tensor, UninitializedTensorMixin):
                    tensor._hold(values[name].to(tensor.device, tensor.dtype))
        setattr(self, self._size_name, size)
        del self._arguments

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Initialize for the state dict's sizes, and load it."""
        size = self._size_in({key.removeprefix(prefix): value for key, value in state_dict.items() if key.startswith(prefix)})
        if size is not None and self.has_uninitialized_params():
            self._initialize(size)
        super()._load_from_state_dict(state_dict, prefix, *others)


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
class LazyInstanceNorm1d(_Lazy, InstanceNorm1d, becomes=InstanceNorm1d, affine=True, track_running_stats=True): ...
class LazyInstanceNorm2d(_Lazy, InstanceNorm2d, becomes=InstanceNorm2d, affine=True, track_running_stats=True): ...
class LazyInstanceNorm3d(_Lazy, InstanceNorm3d, becomes=InstanceNorm3d, affine=True, track_running_stats=True): ...
