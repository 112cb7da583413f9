"""Quantised models, under PyTorch's names: `ao.quantization` converts models, `ao.nn` has their layers."""

from genesis.ao import nn, quantization

__all__ = ["nn", "quantization"]
__dir__ = __all__.copy
