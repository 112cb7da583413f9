"""Layer norm, RMS norm and group norm: layers without a state."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.functions.creation import ones, zeros
from genesis.ir.dtypes import DType
from genesis.nn import functional
from genesis.nn.layer import Layer
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


def _shape(extents: int | Sequence[int]) -> tuple[int, ...]:
    return (extents,) if isinstance(extents, int) else tuple(extents)


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) over the last axes, then `weight` and `bias` of that shape.

    >>> genesis.nn.LayerNorm(2)(genesis.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    _printed = "*normalized_shape", "eps", "elementwise_affine", "bias"

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = Parameter(ones(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.bias = Parameter(zeros(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine and bias else None

    def forward(self, input: Tensor) -> Tensor:
        """`input` (.., *normalized_shape), the same shape."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) over the last axes, then `weight` of that shape; `eps` defaults to the dtype's epsilon.

    >>> genesis.nn.RMSNorm(2, elementwise_affine=False)(genesis.tensor([[3.0, 4.0]]))
    tensor([[0.8485, 1.1314]])
    """

    _printed = "*normalized_shape", "eps", "elementwise_affine"

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True,
        device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = Parameter(ones(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None

    def forward(self, input: Tensor) -> Tensor:
        """`input` (.., *normalized_shape), the same shape."""
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
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
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: {num_groups} groups do not divide {num_channels} channels")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.weight = Parameter(ones(num_channels, device=device, dtype=dtype)) if affine else None
        self.bias = Parameter(zeros(num_channels, device=device, dtype=dtype)) if affine and bias else None

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, num_channels, ..), the same shape."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class LocalResponseNorm(Layer):
    """x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta.

    >>> genesis.nn.LocalResponseNorm(2, alpha=2.0, beta=1.0)(genesis.ones(1, 2, 1)).tolist()
    [[[0.5], [0.3333333432674408]]]
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    function = functional.local_response_norm
    _printed = "*size", "alpha", "beta", "k"
