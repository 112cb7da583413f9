"""Neural networks: modules, their functions, first values and losses."""

from genesis.nn import functional, init, parallel, utils
from genesis.nn.activation import GELU, ReLU, Sigmoid, SiLU, Softmax, Tanh
from genesis.nn.attention import MultiheadAttention
from genesis.nn.batch_norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from genesis.nn.containers import ModuleList, Sequential
from genesis.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from genesis.nn.dropout import Dropout
from genesis.nn.embedding import Embedding
from genesis.nn.linear import Linear
from genesis.nn.loss import CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from genesis.nn.module import Module
from genesis.nn.normalization import GroupNorm, LayerNorm, RMSNorm
from genesis.nn.parallel import DataParallel
from genesis.nn.parameter import Parameter
from genesis.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from genesis.nn.shaping import Flatten, Identity
from genesis.nn.transformer import TransformerEncoder, TransformerEncoderLayer

__all__ = [
    "GELU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AvgPool1d", "AvgPool2d",
    "AvgPool3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
    "ConvTranspose2d", "ConvTranspose3d", "CrossEntropyLoss", "DataParallel", "Dropout", "Embedding", "Flatten", "GroupNorm",
    "Identity", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "L1Loss", "LPPool1d", "LPPool2d", "LayerNorm", "Linear",
    "MSELoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "Module", "ModuleList", "MultiheadAttention", "NLLLoss", "Parameter",
    "RMSNorm", "ReLU", "Sequential", "SiLU", "Sigmoid", "Softmax", "Tanh", "TransformerEncoder", "TransformerEncoderLayer",
    "functional", "init", "parallel", "utils",
]
