"""Layers whose weights are integers; those of `dynamic` quantise what they are given as it comes."""

from genesis.ao.nn.quantized import dynamic

__all__ = ["dynamic"]
__dir__ = __all__.copy
