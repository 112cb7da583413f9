"""Normalization layers: over the batch or an example, with running statistics, and over features or groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.functions.creation import ones, zeros
from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import DType, int64
from genesis.ir.errors import ArgumentError
from genesis.nn import functional, init
from genesis.nn.layer import Family, Layer
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tracing.state import grad_mode

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm",
    "LocalResponseNorm", "RMSNorm",
]


class _Affine(Module):
    """An optional weight and bias after normalization."""

    weight: Parameter | None
    bias: Parameter | None

    def _begin_affine(
        self, shape: int | tuple[int, ...], weight: bool, bias: bool, device: DeviceLike, dtype: DType | None
    ) -> None:
        self._hold_parameter("weight", Parameter(ones(shape, device=device, dtype=dtype)) if weight else None)
        self._hold_parameter("bias", Parameter(zeros(shape, device=device, dtype=dtype)) if bias else None)

    def reset_parameters(self) -> None:
        """Reset the parameters to ones and zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


# ---- batch norm and instance norm, which keep running statistics ----
class _Norm(_Affine, Family):
    """The base of both: a weight and a bias per channel, and running statistics as buffers."""

    _ranks: Any  # the ranks that an input may have, that of a batch last
    _printed = "*num_features", "eps", "momentum", "affine", "bias", "track_running_stats"

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: DeviceLike = None, dtype: DType | None = None, *, bias: bool = True,
    ) -> None:
        super().__init__()
        if isinstance(eps, int | float) and (eps < 0 or (eps == 0 and isinstance(self, BatchNorm))):
            raise ArgumentError(f"{type(self).__name__}: eps must be positive, got {eps}")
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._begin_affine(num_features, affine, affine and bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", zeros((), device=device, dtype=int64) if tracked else None)

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Reset the parameters and the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        name = type(self).__name__
        if input.ndim not in self._ranks:
            raise ArgumentError(f"{name}: input must have {' or '.join(map(str, self._ranks))} axes, got shape {input.shape}")


class BatchNorm(_Norm):
    """`{first}` of (n, c, {extents}).

    >>> genesis.nn.{name}(3)(genesis.ones(2, 3, {4})).shape
    (2, 3, {4})
    """

    _version = 2  # version 1 had no num_batches_tracked
    _ranks = property(lambda self: (2, 3) if self._axes == 1 else (self._axes + 2,))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, local_metadata: Attributes, *others: Any) -> None:
        key = f"{prefix}num_batches_tracked"
        if local_metadata.get("version", 0) < 2 and self.num_batches_tracked is not None and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *others)

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, num_features, ..), the same shape. While training, the statistics are the batch's."""
        self._check_input_dim(input)
        momentum: Any = self.momentum
        running = (self.running_mean, self.running_var) if self.track_running_stats or not self.training else (None, None)
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            with grad_mode(False):
                write(self.num_batches_tracked, self.num_batches_tracked + 1)
                momentum = 1 / self.num_batches_tracked.double() if momentum is None else momentum
        own = self.training or self.running_mean is None
        return functional.batch_norm(input, *running, self.weight, self.bias, own, momentum, self.eps)


class BatchNorm1d(BatchNorm, axes=1):
    """(x - mean) / sqrt(var + eps) for each channel of (n, c) or (n, c, l), then `weight` and `bias`.

    While training, mean and variance are the batch's and update the running ones with weight `momentum`; with None, the
    running ones are the averages over all batches. In eval mode the running ones are used, unless `track_running_stats`
    is False.

    >>> genesis.nn.BatchNorm1d(1)(genesis.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """


class BatchNorm2d(BatchNorm, axes=2): ...
class BatchNorm3d(BatchNorm, axes=3): ...


class _InstanceNorm(_Norm):
    """`{first}` of (n, c, {extents}) or (c, {extents}).

    >>> genesis.nn.{name}(3)(genesis.ones(2, 3, {4})).shape
    (2, 3, {4})
    """

    _ranks = property(lambda self: (self._axes + 1, self._axes + 2))

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: DeviceLike = None, dtype: DType | None = None, *, bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, num_features, ..) or without n, the same shape."""
        self._check_input_dim(input)
        whole = input if input.ndim == self._ranks[-1] else input.unsqueeze(0)
        own = self.training or not self.track_running_stats or self.running_mean is None
        result = functional.instance_norm(
            whole, self.running_mean, self.running_var, self.weight, self.bias, own, self.momentum or 0.0, self.eps
        )
        return result if whole is input else result.squeeze(0)


class InstanceNorm1d(_InstanceNorm, axes=1):
    """(x - mean) / sqrt(var + eps) for each channel of each example of (n, c, l) or (c, l), then `weight` and `bias`.

    >>> genesis.nn.InstanceNorm1d(1, eps=0.0625)(genesis.tensor([[[1.0, 3.0]]]))
    tensor([[[-0.9701,  0.9701]]])
    """


class InstanceNorm2d(_InstanceNorm, axes=2): ...
class InstanceNorm3d(_InstanceNorm, axes=3): ...


# ---- without running statistics ----
def _shape(extents: int | Sequence[int]) -> tuple[int, ...]:
    return (extents,) if isinstance(extents, int) else tuple(extents)


class LayerNorm(_Affine):
    """(x - mean) / sqrt(var + eps) over the last axes, then `weight` and `bias` of that shape.

    >>> genesis.nn.LayerNorm(2)(genesis.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    _printed = "*normalized_shape", "eps", "elementwise_affine", "bias"

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._begin_affine(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """`input` (.., *normalized_shape), the same shape."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) over the last axes, then `weight` of that shape; `eps` defaults to the dtype's epsilon.

    >>> genesis.nn.RMSNorm(2, elementwise_affine=False)(genesis.tensor([[3.0, 4.0]]))
    tensor([[0.8485, 1.1314]])
    """

    weight: Parameter | None
    _printed = "*normalized_shape", "eps", "elementwise_affine"

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True,
        device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = Parameter(ones(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self._hold_parameter("weight", weight)

    def reset_parameters(self) -> None:
        """Reset the parameters to ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """`x` (.., *normalized_shape), the same shape."""
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(_Affine):
    """(x - mean) / sqrt(var + eps) over groups of channels, then `weight` and `bias` for each channel.

    Raises ValueError unless `num_groups` divides `num_channels`.

    >>> genesis.nn.GroupNorm(2, 6)(genesis.ones(2, 6, 4)).shape
    (2, 6, 4)
    """

    _printed = "*num_groups", "*num_channels", "eps", "affine", "bias"

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: DeviceLike = None,
        dtype: DType | None = None, *, bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ArgumentError(f"GroupNorm: {num_groups} groups do not divide {num_channels} channels")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._begin_affine(num_channels, affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, num_channels, ..), the same shape."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class LocalResponseNorm(Layer, function=functional.local_response_norm):
    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    _printed = "*size", "alpha", "beta", "k"
