"""Layers with int8 weights, for inference: inputs are quantised row by row, results are float32."""

from __future__ import annotations

from typing import Self

from genesis.functions.creation import ones, zeros
from genesis.functions.selection import where
from genesis.ir.dtypes import DType, float32, int8
from genesis.nn.linear import Linear as FloatLinear
from genesis.nn.module import Module
from genesis.ops.quantization import LEAST, LEVELS
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode

__all__ = ["Linear"]


class Linear(Module):
    """`nn.Linear` with a weight of int8 (out_features, in_features) and a `scale` (out_features,) for each output.

    Each row of the input (.., in_features) is rounded to 255 levels between plus and minus its largest magnitude; products
    with the weight are summed exactly. `from_float` converts an `nn.Linear`. It has no gradient.

    >>> layer = Linear.from_float(genesis.nn.Linear(3, 2))
    >>> layer
    DynamicQuantizedLinear(in_features=3, out_features=2, bias=True, dtype=genesis.int8, qscheme=per_channel_symmetric)
    >>> layer(genesis.ones(5, 3)).shape
    (5, 2)
    """

    weight: Tensor
    scale: Tensor
    bias: Tensor | None
    _declared_buffers = {"weight": True, "scale": True, "bias": True}  # noqa: RUF012
    _printed = "in_features", "out_features", "bias"

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: DType = int8) -> None:
        super().__init__()
        if dtype is not int8:
            raise ValueError(f"dynamic.Linear: no weights of {dtype.name}; want int8")
        self.in_features = in_features
        self.out_features = out_features
        self.weight = zeros(out_features, in_features, dtype=int8)
        self.scale = ones(out_features, dtype=float32)
        self.bias = zeros(out_features, dtype=float32) if bias_ else None

    @classmethod
    def from_float(cls, mod: FloatLinear) -> Self:
        """The quantised layer of `mod`; each output's weights are rounded to multiples of its scale.

        Raises TypeError for another kind of module or weights that are not of float32, ValueError for those that are not
        finite.
        """
        if not isinstance(mod, FloatLinear):
            raise TypeError(f"from_float: a {type(mod).__name__}; want an nn.Linear")
        with grad_mode(False):
            weight = mod.weight.detach()
            if weight.dtype is not float32:
                raise TypeError(f"from_float: the weight is of dtype {weight.dtype.name}; want float32: call float() first")
            largest = weight.abs().amax(1) if mod.in_features else zeros(mod.out_features)
            if not bool(largest.isfinite().all()):
                raise ValueError("from_float: the weight holds NaN or an infinity")
            made = cls(0, 0, mod.bias is not None)
            made.in_features, made.out_features = mod.in_features, mod.out_features
            made.scale = where(largest >= LEAST, largest / LEVELS, 1.0)
            made.weight = (weight / made.scale.unsqueeze(1)).round().clamp(-LEVELS, LEVELS).to(int8)
            if mod.bias is not None:
                made.bias = mod.bias.detach().clone()
        made.train(mod.training)
        return made

    def forward(self, input: Tensor) -> Tensor:
        """`input` (.., in_features) of float32 -> (.., out_features)."""
        operands = (input, self.weight, self.scale) if self.bias is None else (input, self.weight, self.scale, self.bias)
        return call(OPERATIONS["linear_dynamic"], operands)  # type: ignore[no-any-return]

    def extra_repr(self) -> str: return f"{super().extra_repr()}, dtype={self.weight.dtype!r}, qscheme=per_channel_symmetric"
    def __repr__(self) -> str: return f"DynamicQuantized{super().__repr__()}"
