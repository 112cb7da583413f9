"""Layers of quantised models."""

from genesis.ao.nn import quantized

__all__ = ["quantized"]
__dir__ = __all__.copy
