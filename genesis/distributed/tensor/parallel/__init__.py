"""Tensor parallelism: Megatron's column and row parallel layers, and sequence parallelism."""

from genesis.distributed.tensor.parallel.loss import loss_parallel_cross_entropy
from genesis.distributed.tensor.parallel.plan import parallelize_module
from genesis.distributed.tensor.parallel.style import (
    ColwiseParallel, ParallelStyle, PrepareModuleInput, PrepareModuleOutput, RowwiseParallel, SequenceParallel,
)

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel",
    "loss_parallel_cross_entropy", "parallelize_module",
]
