"""Dropout, of elements and of channels."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.family import Family
from genesis.nn.layer import Layer

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class Dropout(Layer):
    """While training, zero each element with probability `p` and scale the others by 1/(1-p), optionally in place.

    Raises ValueError for a `p` outside [0, 1].

    >>> genesis.nn.Dropout(0.5).eval()(genesis.ones(2))
    tensor([1., 1.])
    """

    p: float = 0.5
    inplace: bool = False
    function = functional.dropout
    _printed = "p", "inplace"

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"{type(self).__name__}: p is a probability, got {self.p}")


class _ChannelDropout(Family, Dropout):
    """While training, zero each channel of (n, c, {extents}) with probability `p`; scale the others.

    >>> genesis.nn.{name}(1.0)(genesis.ones(1, {1}, 2)).sum()
    tensor(0.)
    """


class Dropout1d(_ChannelDropout, axes=1, function=functional.dropout1d): ...
class Dropout2d(_ChannelDropout, axes=2, function=functional.dropout2d): ...
class Dropout3d(_ChannelDropout, axes=3, function=functional.dropout3d): ...


class AlphaDropout(Dropout):
    """While training, set each element to SELU's minimum with probability `p`; keeps mean 0 and variance 1.

    >>> genesis.nn.AlphaDropout(0.5).eval()(genesis.ones(2))
    tensor([1., 1.])
    """

    function = functional.alpha_dropout


class FeatureAlphaDropout(Dropout):
    """`AlphaDropout` of whole channels, which are axis 1 of (n, c, ..).

    >>> genesis.nn.FeatureAlphaDropout(0.5).eval()(genesis.ones(1, 2))
    tensor([[1., 1.]])
    """

    function = functional.feature_alpha_dropout
