"""Memory formats of convolution weights, without effect: kernels read any strides."""

from __future__ import annotations

from typing import TypeVar

from genesis.nn.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

Kind = TypeVar("Kind", bound=Module)


def convert_conv2d_weight_memory_format(module: Kind, memory_format: object) -> Kind:
    """The module as it is: which memory format the weights of its convolutions have is of no effect.

    >>> convert_conv2d_weight_memory_format(genesis.nn.Conv2d(1, 1, 1), None).weight.shape
    (1, 1, 1, 1)
    """
    return module


def convert_conv3d_weight_memory_format(module: Kind, memory_format: object) -> Kind:
    """The module as it is: which memory format the weights of its convolutions have is of no effect.

    >>> convert_conv3d_weight_memory_format(genesis.nn.Conv3d(1, 1, 1), None).weight.shape
    (1, 1, 1, 1, 1)
    """
    return module
