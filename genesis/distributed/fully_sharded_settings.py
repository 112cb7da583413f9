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
    """The kind of sharding. Only FULL_SHARD and SHARD_GRAD_OP, which keeps whole parameters after forward, are supported."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """No effect: a program gathers the next module's parameters while it computes the current one."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class StateDictType(enum.Enum):
    """Whether state dicts have whole tensors, this rank's rows, or DTensors of the rows."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


class OptimStateKeyType(enum.Enum):
    """Whether an optimizer's state is keyed by parameter names or numbers."""

    PARAM_NAME = enum.auto()
    PARAM_ID = enum.auto()


@dataclass
class MixedPrecision:
    """The dtypes of sharded modules' computation and gradient averaging.

    Attributes:
        param_dtype: of gathered parameters.
        reduce_dtype: of gradients while averaging; by default `param_dtype`.
        buffer_dtype: of floating buffers.
        cast_forward_inputs: whether each wrapped module casts floating inputs to `param_dtype`.
        cast_root_forward_inputs: whether the outermost one does.
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
    """Whether rows, gradients and the optimizer's state are in CPU memory."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Whether a state dict's tensors are in CPU memory."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Whether only rank 0 gets the state dict, and other ranks an empty one."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """For state dicts with this rank's rows."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """For state dicts with DTensors."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Whether an optimizer state's tensors are in CPU memory."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Whether only rank 0 gets the state."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """For states with this rank's rows."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """For states with DTensors."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """The form of `state_dict` and `optim_state_dict`."""

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: StateDictConfig = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: OptimStateDictConfig = field(default_factory=FullOptimStateDictConfig)
