"""Fuses a normalization with fixed statistics into the layer before it."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from genesis.functions.creation import ones_like, zeros_like
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

Layer = TypeVar("Layer", bound=Module)


def fuse_conv_bn_eval(conv: Layer, bn: Module, transpose: bool = False) -> Layer:
    """A convolution, transposed or not, that computes what `conv` and then `bn` do in evaluation mode.

    Raises AssertionError in training mode, and for a `bn` without running statistics.

    >>> conv, bn = genesis.nn.Conv1d(1, 2, 3).eval(), genesis.nn.BatchNorm1d(2).eval()
    >>> fuse_conv_bn_eval(conv, bn)
    Conv1d(1, 2, kernel_size=(3,), stride=(1,))
    """
    fused: Any = _copied(conv, bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, *_settings(bn), transpose)  # type: ignore[call-arg]
    return fused  # type: ignore[no-any-return]


def fuse_linear_bn_eval(linear: Layer, bn: Module) -> Layer:
    """A linear layer that computes what `linear` and then `bn` do in evaluation mode.

    Raises AssertionError in training mode, for other extents, and for a `bn` without running statistics.

    >>> fuse_linear_bn_eval(genesis.nn.Linear(1, 2).eval(), genesis.nn.BatchNorm1d(2).eval())
    Linear(in_features=1, out_features=2, bias=True)
    """
    fused: Any = _copied(linear, bn)
    features = bn.num_features  # type: ignore[attr-defined]
    if features not in (1, fused.out_features):
        raise AssertionError(f"fuse_linear_bn_eval: {fused.out_features} features and a normalization of {features}")
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, *_settings(bn))
    return fused  # type: ignore[no-any-return]


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a convolution that computes what one of `conv_w` and `conv_b` and then a normalization by
    the means `bn_rm` and variances `bn_rv` do, with a weight and a bias for each channel.

    >>> one = genesis.ones(1)
    >>> weight, bias = fuse_conv_bn_weights(genesis.ones(1, 1, 2), None, one, 3 * one, 1.0, one, one)
    >>> weight.tolist(), bias.tolist()
    ([[[0.5, 0.5]]], [0.5])
    """
    scale = (bn_rv + bn_eps).rsqrt() * (ones_like(bn_rm) if bn_w is None else bn_w)
    shape = [1, -1] if transpose else [-1, 1]
    weight = (conv_w * scale.reshape(*shape, *[1] * (conv_w.ndim - 2))).to(conv_w.dtype)
    return _parameters(conv_w, conv_b, weight, _bias(conv_b, bn_rm, scale, bn_b))


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """`fuse_conv_bn_weights`, of a linear layer.

    >>> one = genesis.ones(1)
    >>> weight, bias = fuse_linear_bn_weights(genesis.ones(1, 2), one, one, 3 * one, 1.0, one, one)
    >>> weight.tolist(), bias.tolist()
    ([[0.5, 0.5]], [1.0])
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _bias(bias: Tensor | None, mean: Tensor, scale: Tensor, shift: Tensor | None) -> Tensor:
    centred: Tensor = (zeros_like(mean) if bias is None else bias) - mean
    return centred * scale + (zeros_like(mean) if shift is None else shift)


def _parameters(old_weight: Tensor, old_bias: Tensor | None, weight: Tensor, bias: Tensor) -> tuple[Parameter, Parameter]:
    """Parameters of the dtypes, and with the gradients, that the old ones have."""
    like = old_weight if old_bias is None else old_bias
    learned = old_bias is not None and old_bias.requires_grad
    fused = detach(weight).to(old_weight.dtype), detach(bias).to(like.dtype)
    return Parameter(fused[0], old_weight.requires_grad), Parameter(fused[1], learned)


def _copied(layer: Layer, bn: Module) -> Layer:
    if layer.training or bn.training:
        raise AssertionError("fuse: a module is in training mode; want eval() before")
    if getattr(bn, "running_mean", None) is None:
        raise AssertionError(f"fuse: {type(bn).__name__} has no running statistics")
    return copy.deepcopy(layer)


def _settings(bn: Any) -> tuple[Any, ...]:
    return bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
