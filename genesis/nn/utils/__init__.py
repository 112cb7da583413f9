"""Utilities for parameters and modules in training: `genesis.nn.utils`, under PyTorch's names."""

from genesis.nn.utils import fusion, parametrizations, parametrize, prune, rnn
from genesis.nn.utils.fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
from genesis.nn.utils.normed_weights import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from genesis.nn.utils.parameters import (
    clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, convert_conv2d_weight_memory_format,
    convert_conv3d_weight_memory_format, get_total_norm, parameters_to_vector, skip_init, vector_to_parameters,
)

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format", "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval",
    "fuse_linear_bn_weights", "fusion", "get_total_norm", "parameters_to_vector", "parametrizations",
    "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init", "spectral_norm",
    "vector_to_parameters", "weight_norm",
]
__dir__ = __all__.copy
