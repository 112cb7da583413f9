"""Linear and bilinear layers."""

from __future__ import annotations

import math

from genesis.functions.creation import empty
from genesis.ir.dtypes import DType
from genesis.nn import functional, init
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = ["Bilinear", "Linear"]


class Linear(Module):
    """`input @ weight.T + bias` over the last axis: (.., in_features) -> (.., out_features).

    `weight` (out_features, in_features) and `bias` (out_features) start uniform in +-1/sqrt(in_features), as in PyTorch.

    >>> layer = genesis.nn.Linear(3, 2)
    >>> layer(genesis.ones(5, 3)).shape
    (5, 2)
    """

    bias: Parameter | None
    _printed = "in_features", "out_features", "bias"

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: DeviceLike = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        self._hold_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """`input` (.., in_features) -> (.., out_features)."""
        return functional.linear(input, self.weight, self.bias)


class NonDynamicallyQuantizableLinear(Linear):
    """Attention's output projection, under the name that PyTorch prints."""


class Bilinear(Module):
    """x1 @ weight[k] @ x2 + bias[k] for each k of the output; `weight` is (out_features, in1_features, in2_features).

    >>> genesis.nn.Bilinear(2, 3, 4)(genesis.ones(5, 2), genesis.ones(5, 3)).shape
    (5, 4)
    """

    bias: Parameter | None
    _printed = "in1_features", "in2_features", "out_features", "bias"

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if in1_features < 1:
            raise ValueError(f"Bilinear: in1_features is {in1_features}; want 1 or more")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, device=device, dtype=dtype))
        self._hold_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the parameters: uniform in +-1/sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """`input1` (.., in1_features), `input2` (.., in2_features) -> (.., out_features)."""
        return functional.bilinear(input1, input2, self.weight, self.bias)
