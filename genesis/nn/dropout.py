"""Dropout, of elements and of channels."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.layer import Layer

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class Dropout(Layer, function=functional.dropout):
    p: float = 0.5
    inplace: bool = False
    _printed = "p", "inplace"

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"{type(self).__name__}: p is a probability, got {self.p}")


class Dropout1d(Dropout, function=functional.dropout1d): ...
class Dropout2d(Dropout, function=functional.dropout2d): ...
class Dropout3d(Dropout, function=functional.dropout3d): ...
class AlphaDropout(Dropout, function=functional.alpha_dropout): ...
class FeatureAlphaDropout(Dropout, function=functional.feature_alpha_dropout): ...
