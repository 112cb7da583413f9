"""The settings of `FullyShardedDataParallel`, by the names of PyTorch's `torch.distributed.fsdp.api`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from genesis.ir.dtypes import DType

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig", "OptimStateKeyType", "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType",
]


class ShardingStrategy(enum.Enum):
    """What is divided among ranks: FULL_SHARD and SHARD_GRAD_OP alone; whole parameters stay after forward in the second."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """Of no effect: a program gathers what the next module reads while it computes the one before."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class StateDictType(enum.Enum):
    """Whether state dicts have whole tensors, this rank's rows, or what says which part of a whole the rows are."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


class OptimStateKeyType(enum.Enum):
    """Whether an optimizer's state is by names of parameters or by numbers."""

    PARAM_NAME = enum.auto()
    PARAM_ID = enum.auto()


@dataclass
class MixedPrecision:
    """What sharded modules compute with, and what gradients are averaged as.

    Attributes:
        param_dtype: what parameters are gathered as.
        reduce_dtype: what gradients are averaged as; as `param_dtype`, if left out.
        buffer_dtype: what floating buffers become.
        cast_forward_inputs: whether floating inputs become `param_dtype` in each module that is wrapped.
        cast_root_forward_inputs: whether those of the outermost do.
    """

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    buffer_dtype: DType | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[Any] = field(default_factory=tuple)


@dataclass
class CPUOffload:
    """Whether rows, gradients and the optimizer's state lie in the CPU's memory."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Whether the tensors of a state dict lie in the CPU's memory."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Whether rank 0 alone gets the state dict, and other ranks an empty one."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """That of state dicts with this rank's rows."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """That of state dicts with parts of wholes."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Whether the tensors of an optimizer's state lie in the CPU's memory."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Whether rank 0 alone gets the state."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """That of a state with this rank's rows."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """That of a state with parts of wholes."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What `state_dict` and `optim_state_dict` give."""

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: StateDictConfig = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: OptimStateDictConfig = field(default_factory=FullOptimStateDictConfig)
