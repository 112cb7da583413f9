"""What training loops do to parameters: `genesis.nn.utils`, under PyTorch's names."""

from genesis.nn.utils import parametrizations, parametrize, rnn
from genesis.nn.utils.parameters import clip_grad_norm_, clip_grad_value_, parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "parametrizations", "parametrize", "rnn",
    "vector_to_parameters",
]
