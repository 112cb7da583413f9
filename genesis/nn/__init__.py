"""Neural networks: modules, their functions, first values and losses."""

from genesis.nn import functional, init, parallel, utils
from genesis.nn.activation import GELU, ReLU, Sigmoid, SiLU, Softmax, Tanh
from genesis.nn.containers import ModuleList, Sequential
from genesis.nn.dropout import Dropout
from genesis.nn.embedding import Embedding
from genesis.nn.linear import Linear
from genesis.nn.loss import CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from genesis.nn.module import Module
from genesis.nn.normalization import LayerNorm, RMSNorm
from genesis.nn.parallel import DataParallel
from genesis.nn.parameter import Parameter
from genesis.nn.shaping import Flatten, Identity

__all__ = [
    "GELU", "CrossEntropyLoss", "DataParallel", "Dropout", "Embedding", "Flatten", "Identity", "L1Loss", "LayerNorm", "Linear",
    "MSELoss", "Module", "ModuleList", "NLLLoss", "Parameter", "RMSNorm", "ReLU", "Sequential", "SiLU", "Sigmoid",
    "Softmax", "Tanh", "functional", "init", "parallel", "utils",
]
