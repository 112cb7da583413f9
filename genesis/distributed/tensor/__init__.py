"""Distributed tensors on a mesh: placements, DTensor, and tensor-parallel layers."""

from genesis.distributed.device_mesh import DeviceMesh, init_device_mesh
from genesis.distributed.tensor import parallel
from genesis.distributed.tensor.creation import empty, full, ones, rand, randn, zeros
from genesis.distributed.tensor.dtensor import DTensor, distribute_tensor
from genesis.distributed.tensor.operations import implicit_replication
from genesis.distributed.tensor.parallel.style import distribute_module
from genesis.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty",
    "full", "implicit_replication", "init_device_mesh", "ones", "parallel", "rand", "randn", "zeros",
]
