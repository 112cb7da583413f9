"""Batch norm and instance norm: layers that keep running statistics."""

from __future__ import annotations

from typing import Any, ClassVar

from genesis.functions.creation import ones, zeros
from genesis.ir.dtypes import DType, int64
from genesis.nn import functional, init
from genesis.nn.family import Family
from genesis.nn.parameter import Parameter
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tracing.state import recording

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _Norm(Family):
    """What all share: a weight and a bias for each channel, and statistics that are buffers."""

    _ranks: ClassVar[tuple[int, ...]]  # those an input may have
    _printed = "*num_features", "eps", "momentum", "affine", "bias", "track_running_stats"

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: DeviceLike = None, dtype: DType | None = None, *, bias: bool = True,
    ) -> None:
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.weight = Parameter(ones(num_features, device=device, dtype=dtype)) if affine else None
        self.bias = Parameter(zeros(num_features, device=device, dtype=dtype)) if affine and bias else None
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", zeros((), device=device, dtype=int64) if tracked else None)

    def reset_running_stats(self) -> None:
        """Begin the statistics anew."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Begin the parameters and the statistics anew."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check(self, input: Tensor) -> None:
        name = type(self).__name__
        if input.ndim not in self._ranks:
            raise ValueError(f"{name}: input must have {' or '.join(map(str, self._ranks))} axes, got shape {input.shape}")


class _BatchNorm(_Norm):
    """`{first}` of (n, c, {extents}).

    >>> genesis.nn.{name}(3)(genesis.ones(2, 3, {4})).shape
    (2, 3, {4})
    """

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, num_features, ..), the same shape. While training, the statistics are the batch's."""
        self._check(input)
        momentum: Any = self.momentum
        if self.training and self.num_batches_tracked is not None:
            with recording(False) as again, again:
                write(self.num_batches_tracked, self.num_batches_tracked + 1)
                momentum = 1 / self.num_batches_tracked.double() if momentum is None else momentum
        own = self.training or self.running_mean is None
        return functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, own, momentum, self.eps
        )


class BatchNorm1d(_BatchNorm, axes=1):
    """(x - mean) / sqrt(var + eps) for each channel of (n, c) or (n, c, l), then `weight` and `bias`.

    While training, mean and variance are the batch's, and go into the running ones: `momentum` of the way, or with None
    such that these are the averages of all batches. In eval mode the running ones are used, unless `track_running_stats`
    is False.

    >>> genesis.nn.BatchNorm1d(1)(genesis.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm, axes=2):
    _ranks = (4,)


class BatchNorm3d(_BatchNorm, axes=3):
    _ranks = (5,)


class _InstanceNorm(_Norm):
    """`{first}` of (n, c, {extents}) or (c, {extents}).

    >>> genesis.nn.{name}(3)(genesis.ones(2, 3, {4})).shape
    (2, 3, {4})
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: DeviceLike = None, dtype: DType | None = None, *, bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, num_features, ..) or without n, the same shape."""
        self._check(input)
        whole = input if input.ndim == self._ranks[-1] else input.unsqueeze(0)
        own = self.training or self.running_mean is None
        result = functional.instance_norm(
            whole, self.running_mean, self.running_var, self.weight, self.bias, own, self.momentum or 0.0, self.eps
        )
        return result if whole is input else result.squeeze(0)


class InstanceNorm1d(_InstanceNorm, axes=1):
    """(x - mean) / sqrt(var + eps) for each channel of each example of (n, c, l) or (c, l), then `weight` and `bias`.

    >>> genesis.nn.InstanceNorm1d(1, eps=0.0625)(genesis.tensor([[[1.0, 3.0]]]))
    tensor([[[-0.9701,  0.9701]]])
    """

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm, axes=2):
    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm, axes=3):
    _ranks = (4, 5)
