"""Neural networks: modules, functions, initializers and losses. Each layer file's `__all__` is exported as `genesis.nn`."""

# ruff: noqa: F403

from genesis.nn import (
    flex_attention as flex_attention, functional as functional, grad as grad, init as init, parallel as parallel,
    utils as utils,
)
from genesis.nn.activation import *
from genesis.nn.adaptive import *
from genesis.nn.attention import *
from genesis.nn.cells import *
from genesis.nn.containers import *
from genesis.nn.convolution import *
from genesis.nn.distance import *
from genesis.nn.dropout import *
from genesis.nn.embedding import *
from genesis.nn.fractional_pooling import *
from genesis.nn.lazy import *
from genesis.nn.linear import *
from genesis.nn.loss import *
from genesis.nn.module import Module as Module
from genesis.nn.normalization import *
from genesis.nn.older_names import *
from genesis.nn.padding import *
from genesis.nn.parallel import DataParallel as DataParallel
from genesis.nn.parameter import Buffer as Buffer
from genesis.nn.parameter import Parameter as Parameter
from genesis.nn.parameter import UninitializedBuffer as UninitializedBuffer
from genesis.nn.parameter import UninitializedParameter as UninitializedParameter
from genesis.nn.pooling import *
from genesis.nn.recurrent import *
from genesis.nn.sequences import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from genesis.nn.shaping import *
from genesis.nn.transformer import *

_LAYERS = [name for name, value in vars().items() if isinstance(value, type)]
__all__ = sorted(["flex_attention", "functional", "grad", "init", "parallel", "utils", *_LAYERS])
__dir__ = __all__.copy
