"""Layers whose weights are integers; those of `dynamic` quantise what they are given as it comes."""

from genesis.ao.nn.quantized import dynamic
from genesis.ao.nn.quantized.functional_modules import FloatFunctional

__all__ = ["FloatFunctional", "dynamic"]
__dir__ = __all__.copy
