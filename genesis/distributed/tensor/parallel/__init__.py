"""Tensor parallelism: Megatron's column and row parallel layers, and sequence parallelism."""

from genesis.distributed.tensor.parallel.plan import parallelize_module
from genesis.distributed.tensor.parallel.style import (
    ColwiseParallel, ParallelStyle, PrepareModuleInput, PrepareModuleInputOutput, PrepareModuleOutput, RowwiseParallel,
    SequenceParallel, loss_parallel,
)

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]
