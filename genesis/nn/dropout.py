"""Dropout, of elements and of channels."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.layer import Layer

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class Dropout(Layer):
    """While training, zero each element with probability `p` and scale the others by 1/(1-p), in place if so asked.

    Raises ValueError for a `p` outside [0, 1].

    >>> import genesis
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


class Dropout1d(Dropout):
    """While training, zero each channel of (n, c, l) or (c, l) with probability `p` and scale the others by 1/(1-p).

    >>> import genesis
    >>> genesis.nn.Dropout1d(1.0)(genesis.ones(1, 1, 2))
    tensor([[[0., 0.]]])
    """

    function = functional.dropout1d


class Dropout2d(Dropout):
    """While training, zero each channel of (n, c, h, w) or (c, h, w) with probability `p`, scale the others by 1/(1-p).

    >>> import genesis
    >>> genesis.nn.Dropout2d(1.0)(genesis.ones(1, 1, 1, 2))
    tensor([[[[0., 0.]]]])
    """

    function = functional.dropout2d


class Dropout3d(Dropout):
    """While training, zero each channel of (n, c, d, h, w) or (c, d, h, w) with probability `p`, scale the others.

    >>> import genesis
    >>> genesis.nn.Dropout3d(1.0)(genesis.ones(1, 1, 1, 1, 2))
    tensor([[[[[0., 0.]]]]])
    """

    function = functional.dropout3d


class AlphaDropout(Dropout):
    """While training, make each element the least value of SELU with probability `p`; mean 0 and variance 1 stay.

    >>> import genesis
    >>> genesis.nn.AlphaDropout(0.5).eval()(genesis.ones(2))
    tensor([1., 1.])
    """

    function = functional.alpha_dropout


class FeatureAlphaDropout(Dropout):
    """`AlphaDropout` of whole channels, which are axis 1 of (n, c, ..).

    >>> import genesis
    >>> genesis.nn.FeatureAlphaDropout(0.5).eval()(genesis.ones(1, 2))
    tensor([[1., 1.]])
    """

    function = functional.feature_alpha_dropout
