"""Layers with integer weights; those of `dynamic` quantise their inputs at each call."""

from genesis.ao.nn.quantized import dynamic
from genesis.ao.nn.quantized.functional_modules import FloatFunctional

__all__ = ["FloatFunctional", "dynamic"]
__dir__ = __all__.copy
