"""Neural networks: modules, their functions, first values and losses."""

from genesis.nn import functional, init, parallel, utils
from genesis.nn.activation import GELU, ReLU, RReLU, Sigmoid, SiLU, Softmax, Softmax2d, Tanh
from genesis.nn.attention import MultiheadAttention
from genesis.nn.batch_norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from genesis.nn.cells import GRUCell, LSTMCell, RNNCell
from genesis.nn.comparison import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    HuberLoss,
    KLDivLoss,
    MarginRankingLoss,
    SmoothL1Loss,
    SoftMarginLoss,
    TripletMarginLoss,
)
from genesis.nn.containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from genesis.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from genesis.nn.decoder import Transformer, TransformerDecoder, TransformerDecoderLayer
from genesis.nn.distance import Bilinear, CosineSimilarity, PairwiseDistance
from genesis.nn.dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout
from genesis.nn.embedding import Embedding, EmbeddingBag
from genesis.nn.exponential import CELU, ELU, GLU, SELU, LogSigmoid, LogSoftmax, Mish, Softmin, Softplus, Softsign, Tanhshrink
from genesis.nn.linear import Linear
from genesis.nn.loss import CrossEntropyLoss, CTCLoss, L1Loss, LinearCrossEntropyLoss, MSELoss, NLLLoss
from genesis.nn.margins import (
    GaussianNLLLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    PoissonNLLLoss,
    TripletMarginWithDistanceLoss,
)
from genesis.nn.module import Module
from genesis.nn.normalization import GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm
from genesis.nn.padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from genesis.nn.parallel import DataParallel
from genesis.nn.parameter import Parameter
from genesis.nn.piecewise import Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, PReLU, ReLU6, Softshrink, Threshold
from genesis.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from genesis.nn.recurrent import GRU, LSTM, RNN
from genesis.nn.resample import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d
from genesis.nn.sequences import LinearCrossEntropyOptions
from genesis.nn.shaping import Flatten, Identity, Unflatten
from genesis.nn.shuffling import ChannelShuffle, Fold, PixelShuffle, PixelUnshuffle, Unfold
from genesis.nn.transformer import TransformerEncoder, TransformerEncoderLayer
from genesis.nn.unpooling import MaxUnpool1d, MaxUnpool2d, MaxUnpool3d

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "GRU", "LSTM", "RNN", "SELU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear", "CTCLoss", "ChannelShuffle",
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv2d",
    "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss", "CosineSimilarity",
    "CrossEntropyLoss", "DataParallel", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Embedding", "EmbeddingBag",
    "FeatureAlphaDropout", "Flatten", "Fold", "GRUCell", "GaussianNLLLoss", "GroupNorm", "Hardshrink", "Hardsigmoid",
    "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "HuberLoss", "Identity", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "KLDivLoss", "L1Loss", "LPPool1d", "LPPool2d", "LSTMCell", "LayerNorm", "LeakyReLU", "Linear",
    "LinearCrossEntropyLoss", "LinearCrossEntropyOptions", "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "MSELoss",
    "MarginRankingLoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "Mish", "Module",
    "ModuleDict", "ModuleList", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "MultiheadAttention",
    "NLLLoss", "PReLU", "PairwiseDistance", "Parameter", "ParameterDict", "ParameterList", "PixelShuffle", "PixelUnshuffle",
    "PoissonNLLLoss", "RMSNorm", "RNNCell", "RReLU", "ReLU", "ReLU6", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
    "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss",
    "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink",
    "Threshold", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unflatten", "Unfold", "Upsample",
    "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d", "functional", "init", "parallel",
    "utils",
]
