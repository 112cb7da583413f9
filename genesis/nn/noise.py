"""Functions that draw random numbers: dropouts, random slopes, and Gumbel softmax."""

from __future__ import annotations

import math

from genesis.functions.creation import ones, zeros_like
from genesis.functions.memory_order import memory_axes
from genesis.functions.overrides import overridable
from genesis.functions.random_draws import chosen, drawn, draws, kept_factors, stream
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import float64
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import Shape
from genesis.nn.in_place import in_place_too
from genesis.ops.registry import OPERATIONS
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write


def _probability(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: p is a probability, got {p}")


# ---- dropout ----
@in_place_too
@overridable
def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """`input` with each element zeroed with probability `p` and the others scaled by 1/(1-p); `input` if not training.

    Raises ValueError for a `p` outside [0, 1].

    >>> dropout(genesis.ones(3), p=1.0)
    tensor([0., 0., 0.])
    """
    _probability("dropout", p)
    if not training or p == 0:
        return input
    if stream(input.device) is not None:
        def draw(shape: Shape) -> Tensor:
            return kept_factors(shape, p, input.dtype, memory_axes(input))

        return input * (0 if p == 1 else input.drawn(draw) if isinstance(input, CompositeTensor) else draw(input.shape))
    return call(OPERATIONS["dropout"], (input, *draws(input.numel()), float(p)))  # type: ignore[no-any-return]


def _channels(input: Tensor, lead: int) -> Tensor:
    """Ones, one per channel: the last of the first `lead` axes counts channels."""
    return ones((*input.shape[:lead], *[1] * (input.ndim - lead)), dtype=input.dtype, device=input.device)


def _channel_dropout(axes: int, extents: str, single: str) -> AnyFunction:
    """The dropout of channels with `axes` axes, named `extents`; inputs of another rank than a batch's are `single`."""
    name = f"dropout{axes}d"

    def channel_dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
        lead = 2 if axes == 2 or input.ndim == axes + 2 else 1
        if input.ndim < lead or (axes == 1 and input.ndim not in (2, 3)):
            raise ArgumentError(f"{name}: input must be (n, c, {extents}) or {single}, got shape {input.shape}")
        _probability(name, p)
        if not training or p == 0:
            return input
        kept: Tensor = dropout(_channels(input, lead), p)
        return input * kept

    channel_dropout.__name__ = channel_dropout.__qualname__ = name
    channel_dropout.__doc__ = f"""`dropout` of whole channels of (n, c, {extents}) or {single}.

    >>> {name}(genesis.ones(1, {"1, " * axes}2), p=1.0).sum()
    tensor(0.)
    """
    return in_place_too(overridable(channel_dropout))


dropout1d = _channel_dropout(1, "l", "(c, l)")
dropout2d = _channel_dropout(2, "h, w", "(n, c, ..) of any rank, as in PyTorch")
dropout3d = _channel_dropout(3, "d, h, w", "(c, ..) of any other rank")


# ---- alpha dropout: SELU's minimum instead of zeros ----
_LEAST = -1.7580993408473766  # -alpha * scale of SELU


def _selu_dropout(name: str, input: Tensor, like: Tensor, p: float, training: bool) -> Tensor:
    """Klambauer et al., 2017: dropped elements become `_LEAST`; mean 0 and variance 1 are kept."""
    _probability(name, p)
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0
    scale = 1 / math.sqrt((1 - p) * (1 + p * _LEAST**2))
    kept = chosen(like.shape, 1 - p, input.dtype, input.device)
    return (input * kept + (1 - kept) * _LEAST - p * _LEAST) * scale


@in_place_too
@overridable
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """`input` with each element set to SELU's minimum with probability `p`; mean 0 and variance 1 are kept.

    >>> alpha_dropout(genesis.ones(3), p=0.5)
    tensor([1., 1., 1.])
    """
    return _selu_dropout("alpha_dropout", input, input, p, training)


@in_place_too
@overridable
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels, which are axis 1 of (n, c, ..).

    >>> feature_alpha_dropout(genesis.ones(1, 2, 3), p=1.0, training=True)
    tensor([[[0., 0., 0.],
             [0., 0., 0.]]])
    """
    if input.ndim < 2 and training:
        raise ArgumentError(f"feature_alpha_dropout: input must be (n, channels, ..), got shape {input.shape}")
    channels = _channels(input, 2) if input.ndim > 1 else input
    return _selu_dropout("feature_alpha_dropout", input, channels, p, training)


# ---- random slopes, and samples of classes ----
@in_place_too
@overridable
def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """x where positive, s * x elsewhere: s uniform in [lower, upper), or the middle if not training (Xu et al., 2015).

    >>> rrelu(genesis.tensor([1.0, -2.0]), lower=0.25, upper=0.75)
    tensor([ 1., -1.])
    """
    if lower > upper:
        raise ArgumentError(f"rrelu: slopes from {lower} to {upper}; want lower to be no greater than upper")
    slope: Tensor | float = (lower + upper) / 2
    if training and stream(input.device) is not None:  # PyTorch draws only for negative elements
        negative = input.detach() <= 0
        some = drawn("uniform", (int(negative.sum()),), float64, float(lower), float(upper))
        slope = zeros_like(input).masked_scatter_(negative, some.to(input.dtype))
    elif training:
        slope = drawn("uniform", input.shape, input.dtype, float(lower), float(upper), device=input.device)
    return call(OPERATIONS["where"], (input > 0, input, input * slope))


@overridable
def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """`rrelu`, in place.

    >>> rrelu_(genesis.tensor([1.0, -2.0]), lower=0.25, upper=0.75)
    tensor([ 1., -1.])
    """
    return write(input, rrelu(input, lower, upper, training))


@overridable
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + noise) / tau) along `dim`, with Gumbel noise: a differentiable sample of classes.

    With `hard` it is one-hot, with the gradient of the soft sample (Jang, Gu and Poole, 2017; Maddison, Mnih and Teh, 2017).
    `eps` has no effect.

    >>> gumbel_softmax(genesis.tensor([0.0, 1000.0]), hard=True)
    tensor([0., 1.])
    """
    noise = -zeros_like(logits).exponential_().log()
    soft: Tensor = call(OPERATIONS["softmax"], ((logits + noise) / tau, dim))
    if not hard:
        return soft
    greatest = soft.detach().argmax(dim, keepdim=True)
    chosen: Tensor = call(OPERATIONS["scatter"], (zeros_like(soft), dim, greatest, 1.0))
    return chosen - soft.detach() + soft
